//! A time limit for episodes.

use ndarray::ArrayView2;

use crate::{BatchSlabs, EnvBatch, EnvError, EnvSpec, field};

/// Truncates every episode that did not end within `max_steps` steps.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/walk.inc")); }
/// # use shown::*;
/// use brasa_env::wrappers::TimeLimit;
/// use brasa_env::{BatchSlabs, EnvBatch, EnvVec};
///
/// let mut batch = TimeLimit::new(EnvVec::new(0..1, |_| Walk(0.0))?, 2)?;
/// let mut slabs = BatchSlabs::new(batch.spec());
/// batch.reset(7, &mut slabs)?;
/// for _ in 0..2 {
///     batch.step(ndarray::array![[1.0]].view(), &mut slabs)?;
/// }
/// // The walk was cut at 5, and the next walk begins at 3.
/// assert!(slabs.truncated[0] && !slabs.terminated[0]);
/// assert_eq!((slabs.next_obs[[0, 0]], slabs.obs[[0, 0]]), (5.0, 3.0));
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug)]
pub struct TimeLimit<B> {
    inner: B,
    spec: EnvSpec,
    max_steps: u32,
    steps: Vec<u32>,
}

impl<B: EnvBatch> TimeLimit<B> {
    /// Episodes of at most `max_steps` steps.
    ///
    /// # Errors
    /// [`EnvError::Argument`] for a limit of 0.
    pub fn new(inner: B, max_steps: u32) -> Result<Self, EnvError> {
        field::at_least_one("max_steps", u64::from(max_steps))?;
        let truncation_interval = inner.spec().truncation_interval.min(u64::from(max_steps));
        let spec = EnvSpec { truncation_interval, ..inner.spec().clone() };
        Ok(Self { steps: vec![0; inner.n_envs()], inner, spec, max_steps })
    }
}

impl<B: EnvBatch> super::Wrapper for TimeLimit<B> {
    type Inner = B;
    type State = Vec<u32>;

    fn inner(&self) -> &B {
        &self.inner
    }

    fn inner_mut(&mut self) -> &mut B {
        &mut self.inner
    }

    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.steps.fill(0);
        self.inner.reset(seed, out)
    }

    fn step(&mut self, actions: ArrayView2<f32>, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.inner.step(actions, out)?;
        let n_agents = self.inner.n_agents();
        self.steps.iter_mut().for_each(|steps| *steps += 1);
        out.for_each_end(n_agents, |env| self.steps[env] = 0);
        // All numbers are read: a compiler vectorizes this loop.
        if !self.steps.iter().fold(false, |any, steps| any | (*steps >= self.max_steps)) {
            return Ok(());
        }
        for env in 0..self.steps.len() {
            if self.steps[env] >= self.max_steps {
                self.steps[env] = 0;
                (env * n_agents..(env + 1) * n_agents).for_each(|row| out.truncated[row] = true);
                // `next_obs` already has the observation before the reset; only `obs` changes.
                self.inner.restart(env, out)?;
            }
        }
        Ok(())
    }

    fn restart(&mut self, env: usize, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.steps[env] = 0;
        self.inner.restart(env, out)
    }

    fn state(&self) -> Vec<u32> {
        self.steps.clone()
    }

    fn set_state(&mut self, state: Vec<u32>) {
        self.steps = state;
    }
}
