//! Smoothed rewards of environments on a device.

use brasa_kernels::elementwise;
use burn::tensor::{Device, Tensor};

/// Rewards that are smoothed over the steps of a row: see [`brasa_env::wrappers::ShapeReward`].
#[derive(Debug)]
pub(crate) struct Smoothing {
    lambda: f64,
    /// `[n_rows, 2]`: the latest smoothed reward, and its weight in the next one, which is 0 where an episode begins.
    past: Tensor<2>,
}

impl Smoothing {
    /// For `n_rows` rows with `lambda` in (0, 1).
    pub(crate) fn new(lambda: f64, n_rows: usize, device: &Device) -> Self {
        Self { lambda, past: Tensor::zeros([n_rows, 2], device) }
    }

    /// No row has a past.
    pub(crate) fn reset(&mut self) {
        self.past = self.past.zeros_like();
    }

    /// The state, `[n_envs, 2 n_agents]`.
    pub(crate) fn save(&self, n_envs: usize) -> Tensor<2> {
        let n_rows = self.past.dims()[0];
        self.past.clone().reshape([n_envs, 2 * n_rows / n_envs])
    }

    /// Takes the state of [`Smoothing::save`].
    pub(crate) fn load(&mut self, saved: Tensor<2>) {
        self.past = saved.reshape(self.past.dims());
    }

    /// The smoothed rewards, `[n_rows]`, of a step with `reward`. Every row goes on until [`Smoothing::end`] says otherwise.
    pub(crate) fn apply(&mut self, reward: Tensor<1>) -> Tensor<1> {
        let n_rows = reward.dims()[0];
        let [past] = elementwise([n_rows, 1], |formulas| {
            let (now, past) = (formulas.read(&reward), formulas.matrix(&self.past));
            let smoothed = now + past.column(1) * (past.column(0) - now);
            [vec![smoothed, formulas.constant(self.lambda)]]
        });
        self.past = past;
        self.past.clone().slice([0..n_rows, 0..1]).reshape([n_rows])
    }

    /// Rows whose episode has ended, `[n_rows]` flags, have no past.
    pub(crate) fn end(&mut self, ended: &Tensor<1>) {
        let n_rows = ended.dims()[0];
        let [past] = elementwise([n_rows, 1], |formulas| {
            let past = formulas.matrix(&self.past);
            [vec![past.column(0), formulas.read(ended).select(0.0, past.column(1))]]
        });
        self.past = past;
    }
}
