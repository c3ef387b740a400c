//! What is constant about a batch of environments, as one value.

use serde::{Deserialize, Serialize};

use crate::{EnvError, InvalidField, Space, field};

/// Everything about a batch that no step changes: spaces, sizes, and which slabs are written.
///
/// A wrapper hands on this one value, changed where it changes something, so that it cannot forget a part.
///
/// ```
/// use brasa_env::{EnvSpec, MaskSpec, Space};
///
/// let obs = Space::uniform_box(-1.0, 1.0, ["x", "y"]);
/// let spec = EnvSpec { n_agents: 3, mask: Some(MaskSpec::default()), ..EnvSpec::new(obs, Space::Discrete(4), 8) };
/// assert_eq!(spec.n_rows(), 24);
/// assert_eq!(spec.mask_width(), 4);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EnvSpec {
    /// Space of one row of observations, the shared numbers first.
    pub obs: Space,
    /// Space of one row of actions.
    pub action: Space,
    /// Environments in the batch.
    pub n_envs: usize,
    /// Decision-makers per environment; each has a row of its own.
    pub n_agents: usize,
    /// How many of the first numbers of an observation are the same for all agents of an environment.
    ///
    /// The slabs hold those once per environment, in `shared`, and only the rest in `obs`.
    pub shared_width: usize,
    /// How `mask` and `next_mask` of the slabs are laid out; `None` where every action is legal.
    pub mask: Option<MaskSpec>,
    /// Whether steps last differently long and `elapsed` of the slabs is written.
    pub has_elapsed: bool,
    /// Whether observations must reach a network as they are: they have one range by themselves, or name things.
    /// [`crate::wrappers::NormalizeObs`] refuses them.
    pub fixed_obs: bool,
    /// Whether observations come as they are although policies must see them normalized by the batch's moments: then the loop
    /// normalizes them where it uses them, as [`crate::wrappers::NormalizeObs::watching`] asks for.
    pub normalize_on_use: bool,
    /// Whether [`crate::EnvBatch::drain_episodes`] hands out episodes.
    pub keeps_episodes: bool,
    /// Names of the columns of [`crate::BatchSlabs::info`].
    pub info_names: Vec<String>,
}

/// How an action mask is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaskSpec {
    /// Consecutive actions that one column of a mask speaks for; divides the number of actions of every head.
    pub actions_per_flag: usize,
}

impl Default for MaskSpec {
    /// One column per action.
    fn default() -> Self {
        Self { actions_per_flag: 1 }
    }
}

impl EnvSpec {
    /// `n_envs` environments of one agent each, without masks, info or shared numbers.
    pub fn new(obs: Space, action: Space, n_envs: usize) -> Self {
        Self {
            obs,
            action,
            n_envs,
            n_agents: 1,
            shared_width: 0,
            mask: None,
            has_elapsed: false,
            fixed_obs: false,
            normalize_on_use: false,
            keeps_episodes: false,
            info_names: Vec::new(),
        }
    }

    /// `n_envs * n_agents`.
    pub fn n_rows(&self) -> usize {
        self.n_envs * self.n_agents
    }

    /// Consecutive actions that one column of a mask speaks for; 1 without masks.
    pub fn actions_per_flag(&self) -> usize {
        self.mask.map_or(1, |mask| mask.actions_per_flag)
    }

    /// Columns of a mask; 0 without masks.
    pub fn mask_width(&self) -> usize {
        self.mask.map_or(0, |mask| self.action.n_actions() / mask.actions_per_flag)
    }

    /// The same for another number of environments.
    pub fn with_n_envs(&self, n_envs: usize) -> Self {
        Self { n_envs, ..self.clone() }
    }

    /// Refuses what no batch can be.
    ///
    /// # Errors
    /// [`EnvError::Space`] for an invalid space or a mask that does not fit the actions; [`EnvError::Argument`] for a
    /// number of environments or agents of 0 or a shared width beyond the observation.
    pub fn validate(&self) -> Result<(), EnvError> {
        self.obs.validate()?;
        self.action.validate()?;
        let fail = |field, rule, value: usize| Err(EnvError::Argument(InvalidField::new(field, rule, value)));
        field::at_least_one("n_envs", self.n_envs as u64)?;
        field::at_least_one("n_agents", self.n_agents as u64)?;
        if self.shared_width > self.obs.width() {
            return fail("shared_width", "must not be above the width of an observation", self.shared_width);
        }
        let Some(MaskSpec { actions_per_flag }) = self.mask else { return Ok(()) };
        let heads = match &self.action {
            Space::Box(_) => return Err(EnvError::Space { rule: "a box of actions has no mask".into() }),
            Space::Discrete(n) => std::slice::from_ref(n),
            Space::MultiDiscrete(heads) => heads,
        };
        if actions_per_flag == 0 || heads.iter().any(|n| n % actions_per_flag != 0) {
            return fail("actions_per_flag", "must divide the number of actions of every head", actions_per_flag);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_batch_can_be_is_named() {
        let spec = EnvSpec::new(Space::uniform_box(0.0, 1.0, ["x"]), Space::Discrete(4), 2);
        assert!(spec.validate().is_ok());
        let message = |spec: EnvSpec| spec.validate().expect_err("it is wrong").to_string();
        assert_eq!(message(spec.with_n_envs(0)), "`n_envs` must be at least 1, got 0");
        let mask = Some(MaskSpec { actions_per_flag: 3 });
        assert!(message(EnvSpec { mask, ..spec.clone() }).contains("`actions_per_flag` must divide"));
        assert!(message(EnvSpec { shared_width: 2, ..spec }).contains("`shared_width` must not be above"));
    }
}
