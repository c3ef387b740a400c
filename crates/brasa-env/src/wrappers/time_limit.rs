//! A time limit for episodes.

use ndarray::ArrayView2;

use crate::batch::slab;
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
        let [terminated, truncated] = [&mut out.terminated, &mut out.truncated].map(|flags| &*slab(flags));
        // With one agent, the rows of agents lie side by side: a compiler vectorizes the loop.
        let any = match n_agents {
            1 => count(&mut self.steps, terminated, truncated, 1, self.max_steps),
            _ => count(&mut self.steps, terminated, truncated, n_agents, self.max_steps),
        };
        if !any {
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

/// Counts a step of every environment, from 0 again after an end; whether one of them has reached the limit.
#[inline(always)]
fn count(steps: &mut [u32], terminated: &[bool], truncated: &[bool], n_agents: usize, max_steps: u32) -> bool {
    let ended = terminated.chunks_exact(n_agents).zip(truncated.chunks_exact(n_agents));
    steps.iter_mut().zip(ended).fold(false, |any, (steps, (terminated, truncated))| {
        *steps = if terminated[0] | truncated[0] { 0 } else { *steps + 1 };
        any | (*steps >= max_steps)
    })
}
