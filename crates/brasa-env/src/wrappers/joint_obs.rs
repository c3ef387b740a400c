//! Observations of all agents of an environment, for critics.

use ndarray::{Array2, ArrayView2, s};

use super::inner_slabs::InnerSlabs;
use crate::{BatchSlabs, EnvBatch, EnvError, EnvSpec};

/// Puts the observations of the other agents of an environment before those of each agent, for critics alone ([`EnvSpec::privileged`]).
///
/// This is the input of a central critic (Lowe et al. 2017, arXiv 1706.02275; Yu et al. 2022, arXiv 2103.01955): the critic learns from what the
/// whole team sees, and the actor acts on what one agent sees. The others follow in the order of agents, from the next one on, and after the last
/// one comes the first one: every agent sees itself at the end, and one critic serves all.
///
/// Normalization of observations belongs inside this wrapper: then it has the columns that policies see.
///
/// ```
/// use brasa_env::wrappers::JointObs;
/// # use brasa_env::{Ending, EnvRng, EnvSpec, MultiAgentEnv, Space, StepOut, View};
/// use brasa_env::{BatchSlabs, EnvBatch, EnvVec};
///
/// # struct Three;
/// # impl MultiAgentEnv for Three {
/// #     type State = ();
/// #     fn spec(&self) -> EnvSpec {
/// #         EnvSpec { n_agents: 3, ..EnvSpec::new(Space::uniform_box(0.0, 9.0, ["level"]), Space::Discrete(2), 1) }
/// #     }
/// #     fn reset(&mut self, _: &mut EnvRng, view: View<'_>) {
/// #         view.obs.copy_from_slice(&[1.0, 2.0, 3.0]);
/// #     }
/// #     fn step(&mut self, _: &[f32], _: &mut EnvRng, _: View<'_>, _: StepOut<'_>) -> Ending {
/// #         Ending::of(false, false)
/// #     }
/// #     fn state(&self) {}
/// #     fn set_state(&mut self, _: ()) {}
/// # }
/// // Three agents see the levels 1, 2 and 3.
/// let mut batch = JointObs::new(EnvVec::multi_agent(0..1, |_| Three)?)?;
/// assert_eq!(batch.spec().privileged, 0..2);
/// assert_eq!(batch.spec().obs.names(), ["next_1:level", "next_2:level", "level"]);
/// let mut slabs = BatchSlabs::new(batch.spec());
/// batch.reset(7, &mut slabs)?;
/// assert_eq!(slabs.obs, ndarray::array![[2.0, 3.0, 1.0], [3.0, 1.0, 2.0], [1.0, 2.0, 3.0]]);
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug)]
pub struct JointObs<B> {
    inner: B,
    spec: EnvSpec,
    slabs: InnerSlabs,
}

impl<B: EnvBatch> JointObs<B> {
    /// Gives critics the observations of all agents.
    ///
    /// # Errors
    /// See [`EnvSpec::joint`].
    pub fn new(inner: B) -> Result<Self, EnvError> {
        let spec = inner.spec().joint()?;
        Ok(Self { slabs: InnerSlabs::new(&inner), inner, spec })
    }
}

/// Writes the joint observations of the agents of `envs`.
fn join(own: &Array2<f32>, n_agents: usize, envs: std::ops::Range<usize>, joint: &mut Array2<f32>) {
    let width = own.ncols();
    for env in envs {
        let team = own.slice(s![env * n_agents..(env + 1) * n_agents, ..]);
        for agent in 0..n_agents {
            let mut row = joint.row_mut(env * n_agents + agent);
            for place in 0..n_agents {
                let seen = team.row((agent + 1 + place) % n_agents);
                row.slice_mut(s![place * width..(place + 1) * width]).assign(&seen);
            }
        }
    }
}

impl<B: EnvBatch> super::Wrapper for JointObs<B> {
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
        join(&self.slabs.obs, self.spec.n_agents, 0..self.spec.n_envs, &mut out.obs);
        Ok(())
    }

    fn step(&mut self, actions: ArrayView2<f32>, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.slabs.inside(out, |out| self.inner.step(actions, out))?;
        let envs = 0..self.spec.n_envs;
        join(&self.slabs.obs, self.spec.n_agents, envs.clone(), &mut out.obs);
        match out.any_episode_end() {
            true => join(&self.slabs.next_obs, self.spec.n_agents, envs, &mut out.next_obs),
            false => out.next_obs.assign(&out.obs),
        }
        Ok(())
    }

    fn restart(&mut self, env: usize, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.slabs.inside(out, |out| self.inner.restart(env, out))?;
        join(&self.slabs.obs, self.spec.n_agents, env..env + 1, &mut out.obs);
        Ok(())
    }

    fn state(&self) {}

    fn set_state(&mut self, _: ()) {}
}
