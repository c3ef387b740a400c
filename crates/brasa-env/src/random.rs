//! A controller with uniformly random legal actions.

use std::ops::Range;

use ndarray::ArrayViewMut2;
use rand::RngExt;

use crate::{BatchSlabs, Controller, EnvError, EnvRng, EnvSpec, Space, named_rng};

/// Uniformly random legal actions, for a batch with a flag per action.
///
/// Each agent of each environment has its own random stream, so that an episode does not depend on others in the batch. Numbers without a bound
/// are drawn from -1000 to 1000.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/walk.inc")); }
/// # use shown::*;
/// use brasa_env::wrappers::TimeLimit;
/// use brasa_env::{EnvBatch, EnvVec, RandomController, play_episodes};
///
/// // `Walk` goes on a line from 3 to the goal at 0. Each step has a reward of -1.
/// let mut batch = TimeLimit::new(EnvVec::new(0..8, |_| Walk(0.0))?, 20)?;
/// let mut random = RandomController::new(batch.spec(), 0, 0..8);
/// let episodes = play_episodes(&mut batch, &mut random, 0, 0)?;
/// assert!(episodes.iter().all(|(episode, _)| (3..=20).contains(&episode.length)));
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug)]
pub struct RandomController {
    action: Space,
    rngs: Vec<EnvRng>,
}

impl RandomController {
    /// For environments like those of `spec` with the global indices `envs`, and `seed`.
    pub fn new(spec: &EnvSpec, seed: u64, envs: Range<u64>) -> Self {
        let n_agents = spec.n_agents as u64;
        let rows = envs.start * n_agents..envs.end * n_agents;
        Self { action: spec.action.clone(), rngs: rows.map(|row| named_rng(seed, "controller", row)).collect() }
    }
}

impl Controller for RandomController {
    fn act(&mut self, view: &BatchSlabs, mut actions: ArrayViewMut2<f32>) -> Result<(), EnvError> {
        for (row, (mut action, rng)) in actions.rows_mut().into_iter().zip(&mut self.rngs).enumerate() {
            let (heads, mask, mut first) = (self.action.heads(), view.mask.row(row), 0);
            for (slot, n) in action.iter_mut().zip(heads) {
                let is_legal = |option: &usize| mask.get(first + option).is_none_or(|legal| *legal > 0.0);
                let legal: Vec<usize> = (0..*n).filter(is_legal).collect();
                *slot = if legal.is_empty() { 0.0 } else { legal[rng.random_range(0..legal.len())] as f32 };
                first += n;
            }
            if let Some(numbers) = self.action.numbers() {
                numbers.sample(1e3, rng, action.iter_mut().skip(heads.len()));
            }
        }
        Ok(())
    }
}
