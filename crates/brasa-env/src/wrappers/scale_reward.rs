//! Rewards divided by the standard deviation of the discounted return.

use ndarray::{Array2, ArrayView2};

use super::{EpisodeStats, RunningMoments};
use crate::{BatchSlabs, EnvBatch, EnvError, field};

/// Divides rewards by the running standard deviation of the discounted return; the mean is not subtracted.
///
/// `gamma` must equal the learner's. The return of a row restarts at 0 when its episode ends. Statistics of episodes
/// use the unscaled rewards.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/walk.inc")); }
/// # use shown::*;
/// use brasa_env::wrappers::ScaleReward;
/// use brasa_env::{BatchSlabs, EnvBatch, EnvVec};
///
/// // `Walk` goes on a line from 3 to the goal at 0. Each step has a reward of -1.
/// let mut batch = ScaleReward::new(EnvVec::new(0..1, |_| Walk(0.0))?, 0.5)?;
/// let mut slabs = BatchSlabs::new(batch.spec());
/// batch.reset(7, &mut slabs)?;
/// for _ in 0..2 {
///     batch.step(ndarray::array![[1.0]].view(), &mut slabs)?;
/// }
/// // The returns -1 and -1.5 have a standard deviation of 0.25, and the reward was -1.
/// assert!((slabs.reward[0] + 4.0).abs() < 1e-5);
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug)]
pub struct ScaleReward<B> {
    inner: EpisodeStats<B>,
    gamma: f64,
    returns: Vec<f64>,
    moments: RunningMoments,
    scratch: Array2<f32>,
}

impl<B: EnvBatch> ScaleReward<B> {
    /// Scales the rewards of `inner`.
    ///
    /// # Errors
    /// [`EnvError::Argument`] unless `gamma` lies in [0, 1].
    pub fn new(inner: B, gamma: f64) -> Result<Self, EnvError> {
        field::share("gamma", gamma)?;
        let rows = inner.n_rows();
        let moments = RunningMoments::new(1);
        Ok(Self {
            inner: EpisodeStats::new(inner),
            gamma,
            returns: vec![0.0; rows],
            moments,
            scratch: Array2::zeros((rows, 1)),
        })
    }
}

impl<B: EnvBatch> super::Wrapper for ScaleReward<B> {
    type Inner = EpisodeStats<B>;
    type State = (Vec<f64>, RunningMoments);

    fn inner(&self) -> &EpisodeStats<B> {
        &self.inner
    }

    fn inner_mut(&mut self) -> &mut EpisodeStats<B> {
        &mut self.inner
    }

    fn reset(&mut self, seed: u64, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.returns.fill(0.0);
        EnvBatch::reset(&mut self.inner, seed, out)
    }

    fn step(&mut self, actions: ArrayView2<f32>, out: &mut BatchSlabs) -> Result<(), EnvError> {
        EnvBatch::step(&mut self.inner, actions, out)?;
        for (row, sum) in self.returns.iter_mut().enumerate() {
            *sum = *sum * self.gamma + f64::from(out.reward[row]);
            self.scratch[[row, 0]] = *sum as f32;
        }
        self.moments.add(self.scratch.view());
        let deviation = (self.moments.variance(0) + RunningMoments::EPSILON).sqrt();
        for (row, sum) in self.returns.iter_mut().enumerate() {
            out.reward[row] =
                ((f64::from(out.reward[row]) / deviation) as f32).clamp(-RunningMoments::CLIP, RunningMoments::CLIP);
            if out.episode_end(row) {
                *sum = 0.0;
            }
        }
        Ok(())
    }

    fn restart(&mut self, env: usize, out: &mut BatchSlabs) -> Result<(), EnvError> {
        let n_agents = self.inner.n_agents();
        self.returns[env * n_agents..(env + 1) * n_agents].fill(0.0);
        EnvBatch::restart(&mut self.inner, env, out)
    }

    fn running_moments(&mut self) -> Vec<&mut RunningMoments> {
        let mut all = EnvBatch::running_moments(&mut self.inner);
        all.push(&mut self.moments);
        all
    }

    fn state(&self) -> (Vec<f64>, RunningMoments) {
        (self.returns.clone(), self.moments.clone())
    }

    fn set_state(&mut self, state: (Vec<f64>, RunningMoments)) {
        (self.returns, self.moments) = state;
    }
}
