//! Scaled and smoothed rewards.

use ndarray::ArrayView2;

use super::EpisodeStats;
use crate::{BatchSlabs, EnvBatch, EnvError, field};

/// Multiplies rewards by a constant, then smooths them over the steps of each row.
///
/// With `x_t = scale * r_t` and `l = smooth_lambda`, the shaped reward is `y_0 = x_0` at the first step of an
/// episode and `y_t = (1 - l) x_t + l y_(t-1)` after it.
///
/// A scale alone does not change the optimal policy. It changes the magnitude of values and of their loss, and the
/// weight of the reward relative to an entropy bonus.
///
/// `l` above 0 changes the task, so settings should have 0 as their default:
///
/// - rewards are delayed by `l / (1 - l)` steps on average, and the rest at the end of an episode is lost;
/// - the sum over an episode changes: `sum y = sum x + l / (1 - l) (x_0 - y_last)`;
/// - the first reward of an episode has weight `1 / (1 - l)` and the last one `1 - l`, so the optimal policy may change
///   if the end of an episode depends on the policy;
/// - the reward depends on `y_(t-1)`, which is not observed, so even the best critic has an error.
///
/// Statistics of episodes use the original rewards, and so do evaluations without this wrapper.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/walk.inc")); }
/// # use shown::*;
/// use brasa_env::wrappers::ShapeReward;
/// use brasa_env::{BatchSlabs, EnvBatch, EnvVec};
///
/// // `Walk` goes on a line from 3 to the goal at 0. Each step has a reward of -1.
/// // Half of each reward, without smoothing.
/// let mut batch = ShapeReward::new(EnvVec::new(0..1, |_| Walk(0.0))?, 0.5, 0.0)?;
/// let mut slabs = BatchSlabs::new(batch.spec());
/// batch.reset(7, &mut slabs)?;
/// batch.step(ndarray::array![[0.0]].view(), &mut slabs)?;
/// assert_eq!(slabs.reward[0], -0.5);
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug)]
pub struct ShapeReward<B> {
    inner: EpisodeStats<B>,
    scale: f64,
    smooth_lambda: f64,
    /// `y_(t-1)` of every row; `None` before the first step of an episode.
    last: Vec<Option<f64>>,
}

impl<B: EnvBatch> ShapeReward<B> {
    /// Shapes the rewards of `inner`; a scale of 1 and a `smooth_lambda` of 0 do not change them.
    ///
    /// # Errors
    /// [`EnvError::Argument`] unless `scale` is finite and above 0 and `smooth_lambda` lies in [0, 1).
    pub fn new(inner: B, scale: f64, smooth_lambda: f64) -> Result<Self, EnvError> {
        field::positive("reward_scale", scale)?;
        let below_one = (0.0..1.0).contains(&smooth_lambda);
        field::rule(below_one, "reward_smooth_lambda", "must be in [0, 1)", smooth_lambda)?;
        let rows = inner.n_rows();
        Ok(Self { inner: EpisodeStats::new(inner), scale, smooth_lambda, last: vec![None; rows] })
    }
}

impl<B: EnvBatch> super::Wrapper for ShapeReward<B> {
    type Inner = EpisodeStats<B>;
    type State = Vec<Option<f64>>;

    fn inner(&self) -> &EpisodeStats<B> {
        &self.inner
    }

    fn inner_mut(&mut self) -> &mut EpisodeStats<B> {
        &mut self.inner
    }

    fn reset(&mut self, seed: u64, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.last.fill(None);
        EnvBatch::reset(&mut self.inner, seed, out)
    }

    fn step(&mut self, actions: ArrayView2<f32>, out: &mut BatchSlabs) -> Result<(), EnvError> {
        EnvBatch::step(&mut self.inner, actions, out)?;
        for (row, last) in self.last.iter_mut().enumerate() {
            let scaled = f64::from(out.reward[row]) * self.scale;
            let shaped = match *last {
                Some(last) => (1.0 - self.smooth_lambda) * scaled + self.smooth_lambda * last,
                None => scaled,
            };
            out.reward[row] = shaped as f32;
            *last = (!out.episode_end(row)).then_some(shaped);
        }
        Ok(())
    }

    fn restart(&mut self, env: usize, out: &mut BatchSlabs) -> Result<(), EnvError> {
        let n_agents = self.inner.n_agents();
        self.last[env * n_agents..(env + 1) * n_agents].fill(None);
        EnvBatch::restart(&mut self.inner, env, out)
    }

    fn state(&self) -> Vec<Option<f64>> {
        self.last.clone()
    }

    fn set_state(&mut self, state: Vec<Option<f64>>) {
        self.last = state;
    }
}
