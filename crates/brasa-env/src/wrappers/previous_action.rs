//! Observations with the latest action.

use std::ops::Range;

use ndarray::{Array2, ArrayView2, s};

use super::inner_slabs::InnerSlabs;
use crate::{BatchSlabs, EnvBatch, EnvError, EnvSpec};

/// Puts the latest action after each observation: one column for each action of a choice, 1 for the one that was taken, and the numbers of a box.
/// All are 0 at the first step of an episode.
///
/// Training samples actions. A policy with memory needs the sampled action to follow a system that it observes in part. The results of POPGym
/// have such observations (Morad et al. 2023).
///
/// The columns belong to the policy, so evaluations need the wrapper too. A scenario adds it in [`crate::Scenario::envs`].
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/walk.inc")); }
/// # use shown::*;
/// use brasa_env::wrappers::PreviousAction;
/// use brasa_env::{BatchSlabs, EnvBatch, EnvVec};
///
/// // `Walk` goes on a line from 3 to the goal at 0, and its actions are left and right.
/// let mut batch = PreviousAction::new(EnvVec::new(0..1, |_| Walk(0.0))?)?;
/// assert_eq!(batch.spec().obs.names(), ["place", "previous:action_0", "previous:action_1"]);
/// let mut slabs = BatchSlabs::new(batch.spec());
/// batch.reset(7, &mut slabs)?;
/// assert_eq!(slabs.obs, ndarray::array![[3.0, 0.0, 0.0]]);
/// batch.step(ndarray::array![[1.0]].view(), &mut slabs)?;
/// assert_eq!(slabs.obs, ndarray::array![[4.0, 0.0, 1.0]]);
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug)]
pub struct PreviousAction<B> {
    inner: B,
    spec: EnvSpec,
    slabs: InnerSlabs,
}

impl<B: EnvBatch> PreviousAction<B> {
    /// Adds the latest action to observations.
    ///
    /// # Errors
    /// See [`EnvSpec::with_previous_action`].
    pub fn new(inner: B) -> Result<Self, EnvError> {
        let spec = inner.spec().with_previous_action()?;
        Ok(Self { slabs: InnerSlabs::new(&inner), inner, spec })
    }

    /// Writes the observations of `rows`, with 0 for every action.
    fn begin(&self, rows: Range<usize>, obs: &mut Array2<f32>) {
        let seen = self.slabs.obs.slice(s![rows.clone(), ..]);
        let mut wide = obs.slice_mut(s![rows, ..]);
        wide.slice_mut(s![.., ..seen.ncols()]).assign(&seen);
        wide.slice_mut(s![.., seen.ncols()..]).fill(0.0);
    }
}

/// Writes an action as columns.
fn write(heads: &[usize], action: &[f32], columns: &mut [f32]) {
    let mut rest = columns;
    for (choice, n) in action.iter().zip(heads) {
        let (head, others) = rest.split_at_mut(*n);
        head.iter_mut().enumerate().for_each(|(option, slot)| *slot = f32::from(u8::from(option as f32 == *choice)));
        rest = others;
    }
    rest.copy_from_slice(&action[heads.len()..]);
}

impl<B: EnvBatch> super::Wrapper for PreviousAction<B> {
    type Inner = B;
    type State = ();

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
        self.slabs.inside(out, |out| self.inner.reset(seed, out))?;
        self.begin(0..self.spec.n_rows(), &mut out.obs);
        Ok(())
    }

    fn step(&mut self, actions: ArrayView2<f32>, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.slabs.inside(out, |out| self.inner.step(actions, out))?;
        let width = self.slabs.obs.ncols();
        let actions = actions.as_standard_layout();
        let rows = actions.rows().into_iter().zip(self.slabs.next_obs.rows()).zip(out.next_obs.rows_mut());
        for ((action, seen), mut wide) in rows {
            wide.slice_mut(s![..width]).assign(&seen);
            let wide = wide.as_slice_mut().expect("slabs are in standard layout");
            write(self.spec.action.heads(), action.as_slice().expect("it has just been made so"), &mut wide[width..]);
        }
        out.obs.assign(&out.next_obs);
        for row in 0..self.spec.n_rows() {
            if out.episode_end(row) {
                self.begin(row..row + 1, &mut out.obs);
            }
        }
        Ok(())
    }

    fn restart(&mut self, env: usize, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.slabs.inside(out, |out| self.inner.restart(env, out))?;
        let n_agents = self.spec.n_agents;
        self.begin(env * n_agents..(env + 1) * n_agents, &mut out.obs);
        Ok(())
    }

    fn state(&self) {}

    fn set_state(&mut self, _: ()) {}
}
