//! Rewards times a constant, and smoothed over time.

use ndarray::ArrayView2;

use super::EpisodeStats;
use crate::{BatchSlabs, EnvBatch, EnvError, field};

/// Multiplies rewards by a constant, then smooths them row by row.
///
/// With `x_t = scale * r_t` and `l = smooth_lambda`, the reward that comes out is `y_0 = x_0` at the first step of an
/// episode and `y_t = (1 - l) x_t + l y_(t-1)` after it; nothing is carried from one episode to the next.
///
/// A scale alone leaves the best policy of a task as it is. It changes the size of values and of their loss, and how
/// much the reward weighs beside an entropy bonus.
///
/// With `l` above 0 the task is another one, so settings should have 0 as their default:
///
/// - a reward is paid `l / (1 - l)` steps late on average, and what is unpaid when its episode ends is lost;
/// - the sum over an episode is kept approximately: `sum y = sum x + l / (1 - l) (x_0 - y_last)`;
/// - the first reward of an episode counts `1 / (1 - l)` times as much as later ones, the last one only `1 - l` times,
///   so the best policy may change wherever it matters when an episode ends;
/// - the reward depends on `y_(t-1)`, which no observation shows, so that not even a perfect critic is right.
///
/// Statistics of episodes, which it keeps of what is inside, and evaluations without it show the rewards as they were.
pub struct ShapeReward<B> {
    inner: EpisodeStats<B>,
    scale: f64,
    smooth_lambda: f64,
    /// `y_(t-1)` of every row; `None` before the first step of an episode.
    last: Vec<Option<f64>>,
}

impl<B: EnvBatch> ShapeReward<B> {
    /// Shapes the rewards of `inner`; a scale of 1 and a `smooth_lambda` of 0 leave them as they are.
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
