//! The trait of wrappers.

use ndarray::ArrayView2;
use serde::{Serialize, de::DeserializeOwned};

use super::RunningMoments;
use crate::{BatchSlabs, EnvBatch, EnvError, EnvSpec, Episode, StateTag};

/// A batch around another batch; every implementation is an [`EnvBatch`].
///
/// The default methods call the inner batch; a wrapper overrides those that it changes. The trait saves and loads the
/// inner batch.
///
/// Implement it by its path (`impl brasa_env::wrappers::Wrapper for ...`) instead of importing it, because its methods
/// have the names of those of [`EnvBatch`].
///
/// ```
/// use brasa_env::{BatchSlabs, EnvBatch, EnvError};
/// use ndarray::ArrayView2;
///
/// /// The absolute value of rewards.
/// struct AbsReward<B>(B);
///
/// impl<B: EnvBatch> brasa_env::wrappers::Wrapper for AbsReward<B> {
///     type Inner = B;
///     type State = ();
///     fn inner(&self) -> &B {
///         &self.0
///     }
///     fn inner_mut(&mut self) -> &mut B {
///         &mut self.0
///     }
///     fn step(&mut self, actions: ArrayView2<f32>, out: &mut BatchSlabs) -> Result<(), EnvError> {
///         self.0.step(actions, out)?;
///         out.reward.mapv_inplace(f32::abs);
///         Ok(())
///     }
///     fn state(&self) {}
///     fn set_state(&mut self, _: ()) {}
/// }
/// ```
pub trait Wrapper: Send {
    /// The wrapped type.
    type Inner: EnvBatch;
    /// State for a resume besides the inner batch; `()` for none.
    type State: Serialize + DeserializeOwned;

    /// The wrapped batch.
    fn inner(&self) -> &Self::Inner;

    /// The wrapped batch.
    fn inner_mut(&mut self) -> &mut Self::Inner;

    /// The constants of the wrapped batch, with the changes of this wrapper.
    fn spec(&self) -> &EnvSpec {
        self.inner().spec()
    }

    /// See [`EnvBatch::reset`].
    ///
    /// # Errors
    /// Those of the inner batch.
    fn reset(&mut self, seed: u64, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.inner_mut().reset(seed, out)
    }

    /// See [`EnvBatch::step`].
    ///
    /// # Errors
    /// Those of the inner batch.
    fn step(&mut self, actions: ArrayView2<f32>, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.inner_mut().step(actions, out)
    }

    /// See [`EnvBatch::restart`].
    ///
    /// # Errors
    /// Those of the inner batch.
    fn restart(&mut self, env: usize, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.inner_mut().restart(env, out)
    }

    /// See [`EnvBatch::drain_episodes`].
    fn drain_episodes(&mut self, episodes: &mut Vec<Episode>) {
        self.inner_mut().drain_episodes(episodes)
    }

    /// See [`EnvBatch::obs_moments`].
    fn obs_moments(&self) -> Option<&RunningMoments> {
        self.inner().obs_moments()
    }

    /// See [`EnvBatch::set_obs_moments`].
    ///
    /// # Errors
    /// Those of the inner batch.
    fn set_obs_moments(&mut self, moments: &RunningMoments) -> Result<(), EnvError> {
        self.inner_mut().set_obs_moments(moments)
    }

    /// See [`EnvBatch::running_moments`].
    fn running_moments(&mut self) -> Vec<&mut RunningMoments> {
        self.inner_mut().running_moments()
    }

    /// A copy of the wrapper's own state, for a checkpoint.
    fn state(&self) -> Self::State;

    /// Restores a saved state; the inner batch is already restored.
    fn set_state(&mut self, state: Self::State);
}

impl<W: Wrapper> EnvBatch for W {
    fn spec(&self) -> &EnvSpec {
        Wrapper::spec(self)
    }
    fn reset(&mut self, seed: u64, out: &mut BatchSlabs) -> Result<(), EnvError> {
        Wrapper::reset(self, seed, out)
    }
    fn step(&mut self, actions: ArrayView2<f32>, out: &mut BatchSlabs) -> Result<(), EnvError> {
        Wrapper::step(self, actions, out)
    }
    fn restart(&mut self, env: usize, out: &mut BatchSlabs) -> Result<(), EnvError> {
        Wrapper::restart(self, env, out)
    }
    fn drain_episodes(&mut self, episodes: &mut Vec<Episode>) {
        Wrapper::drain_episodes(self, episodes)
    }
    fn obs_moments(&self) -> Option<&RunningMoments> {
        Wrapper::obs_moments(self)
    }
    fn set_obs_moments(&mut self, moments: &RunningMoments) -> Result<(), EnvError> {
        Wrapper::set_obs_moments(self, moments)
    }
    fn running_moments(&mut self) -> Vec<&mut RunningMoments> {
        Wrapper::running_moments(self)
    }
    fn save(&self) -> Vec<u8> {
        StateTag::of::<W>(1).encode(self.spec().n_envs, &(self.state(), self.inner().save()))
    }
    fn load(&mut self, bytes: &[u8]) -> Result<(), EnvError> {
        let n_envs = Wrapper::spec(self).n_envs;
        let (state, inner): (W::State, Vec<u8>) = StateTag::of::<W>(1).decode(n_envs, bytes)?;
        self.inner_mut().load(&inner)?;
        self.set_state(state);
        Ok(())
    }
}
