//! The constants of a batch of environments, as one value.

use std::ops::Range;

use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};

use crate::wrappers::RunningMoments;
use crate::{BoxSpace, EnvError, InvalidField, Space, field};

/// The constants of a batch: spaces, sizes, and which slabs are written.
///
/// A wrapper forwards this one value with its changes, so that it cannot miss a part.
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
    /// Space of a complete observation, the shared numbers first.
    pub obs: Space,
    /// Space of one row of actions.
    pub action: Space,
    /// Number of environments.
    pub n_envs: usize,
    /// Agents per environment; each has its own row.
    pub n_agents: usize,
    /// Number of first values of an observation that are the same for all agents of an environment.
    ///
    /// The slabs store them once per environment, in `shared`, and the rest in `obs`.
    pub shared_width: usize,
    /// Columns of an observation that critics see and actors do not: information that is there in training alone. Policies also act on rows
    /// without these columns. None if the range is empty.
    #[serde(default)]
    pub privileged: Range<usize>,
    /// Layout of `mask` and `next_mask` of the slabs; `None` if every action is legal.
    pub mask: Option<MaskSpec>,
    /// Whether steps have different durations and `elapsed` of the slabs is written.
    pub has_elapsed: bool,
    /// Whether observations must not be normalized, because they have a fixed range or contain indices.
    /// [`crate::wrappers::NormalizeObs`] rejects them.
    pub fixed_obs: bool,
    /// Whether observations come as they are although policies must see them normalized by the batch's moments: then the loop
    /// normalizes them where it uses them, as [`crate::wrappers::NormalizeObs::watching`] asks for.
    pub normalize_on_use: bool,
    /// Least number of steps between two truncations of one environment, such as its time limit; [`EnvSpec::NEVER`] if it
    /// truncates no episode, 1 if nothing is known.
    ///
    /// Buffers store the successors of truncated steps once per interval: with a time limit of 500 steps, they take 1/500 of
    /// the memory of observations. A number that is too large overwrites successors that are still needed.
    pub truncation_interval: u64,
    /// Whether the host knows at every step which episodes ended. Environments on a device do not if their rules end episodes.
    pub ends_are_known: bool,
    /// Whether the batch uses several cores by itself, so that [`crate::execute`] adds no threads unless it is told to.
    #[serde(default)]
    pub steps_in_parallel: bool,
    /// Whether [`crate::EnvBatch::drain_episodes`] hands out episodes.
    pub keeps_episodes: bool,
    /// Names of the columns of [`crate::BatchSlabs::info`].
    pub info_names: Vec<String>,
    /// Those of [`EnvSpec::info_names`] whose value for an episode is the mean over its steps, such as a rate. The others are sums over the
    /// steps, such as an energy.
    #[serde(default)]
    pub info_means: Vec<String>,
}

/// Layout of an action mask.
///
/// ```
/// use brasa_env::{EnvSpec, MaskSpec, Space};
///
/// // Twelve actions: four places with three levels each. A mask has one flag per place.
/// let obs = Space::uniform_box(0.0, 1.0, ["x"]);
/// let mask = Some(MaskSpec { actions_per_flag: 3 });
/// let spec = EnvSpec { mask, ..EnvSpec::new(obs, Space::Discrete(12), 8) };
/// assert_eq!(spec.mask_width(), 4);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaskSpec {
    /// Consecutive actions per column of a mask; it divides the number of actions of every head.
    pub actions_per_flag: usize,
}

impl Default for MaskSpec {
    /// One column per action.
    fn default() -> Self {
        Self { actions_per_flag: 1 }
    }
}

impl EnvSpec {
    /// The [`EnvSpec::truncation_interval`] of environments that never truncate an episode.
    pub const NEVER: u64 = u64::MAX;

    /// `n_envs` environments of one agent each, without masks, info or shared numbers.
    pub fn new(obs: Space, action: Space, n_envs: usize) -> Self {
        Self {
            obs,
            action,
            n_envs,
            n_agents: 1,
            shared_width: 0,
            privileged: 0..0,
            mask: None,
            has_elapsed: false,
            fixed_obs: false,
            normalize_on_use: false,
            truncation_interval: 1,
            ends_are_known: true,
            steps_in_parallel: false,
            keeps_episodes: false,
            info_names: Vec::new(),
            info_means: Vec::new(),
        }
    }

    /// `n_envs * n_agents`.
    pub fn n_rows(&self) -> usize {
        self.n_envs * self.n_agents
    }

    /// Consecutive actions per column of a mask; 1 without masks.
    pub fn actions_per_flag(&self) -> usize {
        self.mask.map_or(1, |mask| mask.actions_per_flag)
    }

    /// Columns of a mask; 0 without masks.
    pub fn mask_width(&self) -> usize {
        self.mask.map_or(0, |mask| self.action.n_actions() / mask.actions_per_flag)
    }

    /// The figures of an episode of `length` steps from their sums over the steps: [`crate::Episode::info`].
    pub fn episode_figures(&self, mut sums: Vec<f64>, length: u64) -> Vec<f64> {
        for (sum, name) in sums.iter_mut().zip(&self.info_names) {
            if self.info_means.contains(name) {
                *sum /= length.max(1) as f64;
            }
        }
        sums
    }

    /// Rejects rows for a policy of these environments, in any number of environments, that do not have their sizes: complete observations
    /// `[n_rows, obs width]` and masks `[n_rows, n_actions]`, one flag per action.
    ///
    /// # Errors
    /// [`EnvError::Argument`] for another width, for rows that are not those of whole environments, and for a mask that is missing, has
    /// another shape, or is given although every action is legal.
    pub fn check_rows(&self, obs: ArrayView2<f32>, mask: Option<ArrayView2<f32>>) -> Result<(), EnvError> {
        let fail = |field, rule, value: String| Err(EnvError::Argument(InvalidField::new(field, rule, value)));
        let (rows, width) = obs.dim();
        if width != self.obs.width() {
            return fail("obs", format!("must be rows of {} numbers", self.obs.width()), width.to_string());
        }
        if rows == 0 || rows % self.n_agents != 0 {
            return fail(
                "obs",
                format!("must be rows of whole environments, {} each", self.n_agents),
                rows.to_string(),
            );
        }
        let needed = (rows, self.action.n_actions());
        match (self.mask, mask.map(|mask| mask.dim())) {
            (Some(_), None) => {
                let rule = "must be given: in these environments not every action is legal";
                fail("mask", rule.into(), "none".into())
            }
            (None, Some(shape)) => {
                let rule = "must not be given: these environments have no masks";
                fail("mask", rule.into(), format!("{shape:?}"))
            }
            (Some(_), Some(shape)) if shape != needed => {
                fail("mask", format!("must have the shape {needed:?}"), format!("{shape:?}"))
            }
            _ => Ok(()),
        }
    }

    /// Bytes of the slabs of such a batch, the least memory that it takes.
    pub fn slab_bytes(&self) -> f64 {
        let own = (self.obs.width() - self.shared_width + self.mask_width()) as f64;
        let per_row = 8.0 * own + 10.0;
        let per_env = 8.0 * (self.shared_width + self.info_names.len()) as f64;
        self.n_envs as f64 * (self.n_agents as f64 * per_row + per_env)
    }

    /// A copy whose observations are normalized.
    ///
    /// # Errors
    /// [`EnvError::Space`] for observations that must not be normalized.
    pub fn normalized(&self) -> Result<Self, EnvError> {
        if self.fixed_obs {
            let rule = "observations with a fixed range or indices must not be normalized";
            return Err(EnvError::Space { rule: rule.into() });
        }
        let clip = RunningMoments::CLIP;
        let obs = match &self.obs {
            Space::Box(space) => {
                let n = space.low.len();
                Space::Box(BoxSpace { low: vec![-clip; n], high: vec![clip; n], bytes: false, ..space.clone() })
            }
            other => Space::uniform_box(-clip, clip, (0..other.width()).map(|i| format!("obs_{i}"))),
        };
        Ok(Self { obs, ..self.clone() })
    }

    /// A copy in which critics see the observations of all agents of an environment, as [`crate::wrappers::JointObs`] gives them: an observation
    /// has the shared numbers, the own numbers of the other agents, then the agent's.
    ///
    /// # Errors
    /// [`EnvError::Space`] for a single agent, for observations that are choices, shared as a whole or normalized where they are used, and where
    /// critics see more than actors already.
    pub fn joint(&self) -> Result<Self, EnvError> {
        let fail = |rule: &str| Err(EnvError::Space { rule: rule.into() });
        let Space::Box(space) = &self.obs else { return fail("observations that are choices have no joint form") };
        if self.n_agents == 1 {
            return fail("the observations of a single agent have no joint form");
        }
        if self.normalize_on_use {
            // Moments are those of an actor's columns.
            return fail("observations that are normalized where they are used have no joint form");
        }
        if !self.privileged.is_empty() {
            return fail("critics of these environments see more than actors already");
        }
        let shared = self.shared_width;
        if shared == self.obs.width() {
            return fail("agents that share all numbers of their observations see the joint observation already");
        }
        let privileged = shared..shared + (self.n_agents - 1) * (self.obs.width() - shared);
        let own = shared..self.obs.width();
        let others = (1..self.n_agents).flat_map(|_| own.clone());
        let mut joint = space.select((0..shared).chain(others).chain(own.clone()));
        for (index, name) in joint.names[privileged.clone()].iter_mut().enumerate() {
            *name = format!("next_{}:{name}", 1 + index / own.len());
        }
        Ok(Self { obs: Space::Box(joint), privileged, ..self.clone() })
    }

    /// A copy whose observations end with the latest action, as [`crate::wrappers::PreviousAction`] gives them: a column for each action of a choice,
    /// then the numbers of a box.
    ///
    /// # Errors
    /// [`EnvError::Space`] for observations that are choices, bytes or have a shape.
    pub fn with_previous_action(&self) -> Result<Self, EnvError> {
        let fail = |rule: &str| Err(EnvError::Space { rule: rule.into() });
        let Space::Box(space) = &self.obs else { return fail("an action cannot follow observations that are choices") };
        if space.bytes || !space.shape.is_empty() {
            return fail("an action cannot follow observations of bytes or with a shape");
        }
        let mut obs = space.clone();
        let names = self.action.names();
        let (choices, numbers) = names.split_at(self.action.heads().len());
        for (name, n) in choices.iter().zip(self.action.heads()) {
            obs.names.extend((0..*n).map(|option| format!("previous:{name}_{option}")));
            obs.low.extend(std::iter::repeat_n(0.0, *n));
            obs.high.extend(std::iter::repeat_n(1.0, *n));
        }
        if let Some(bounds) = self.action.numbers() {
            obs.names.extend(numbers.iter().map(|name| format!("previous:{name}")));
            // 0 stands for the first step.
            obs.low.extend(bounds.low.iter().map(|low| low.min(0.0)));
            obs.high.extend(bounds.high.iter().map(|high| high.max(0.0)));
        }
        Ok(Self { obs: Space::Box(obs), ..self.clone() })
    }

    /// A copy with the observations of actors: without [`EnvSpec::privileged`].
    pub fn of_actors(&self) -> Self {
        let Space::Box(space) = &self.obs else { return self.clone() };
        if self.privileged.is_empty() {
            return self.clone();
        }
        let seen = |column: &usize| !self.privileged.contains(column);
        let obs = space.select((0..space.low.len()).filter(seen));
        let shared_width = (0..self.shared_width).filter(seen).count();
        Self { obs: Space::Box(obs), shared_width, privileged: 0..0, ..self.clone() }
    }

    /// A copy with another number of environments.
    pub fn with_n_envs(&self, n_envs: usize) -> Self {
        Self { n_envs, ..self.clone() }
    }

    /// Rejects an inconsistent specification.
    ///
    /// # Errors
    /// [`EnvError::Space`] for an invalid space or a mask that does not fit the actions; [`EnvError::Argument`] for a
    /// number of environments or agents of 0, a shared width or privileged columns beyond the observation, an observation without a number for
    /// actors, or a mean of an unknown figure.
    pub fn validate(&self) -> Result<(), EnvError> {
        self.obs.validate()?;
        self.action.validate()?;
        let fail = |field, rule, value: usize| Err(EnvError::Argument(InvalidField::new(field, rule, value)));
        field::at_least_one("n_envs", self.n_envs as u64)?;
        field::at_least_one("n_agents", self.n_agents as u64)?;
        field::at_least_one("truncation_interval", self.truncation_interval)?;
        if self.shared_width > self.obs.width() {
            return fail("shared_width", "must not be above the width of an observation", self.shared_width);
        }
        if !self.privileged.is_empty() {
            let rule = "must be columns of an observation, and leave one for actors";
            let fits = self.privileged.end <= self.obs.width() && self.privileged.len() < self.obs.width();
            field::rule(fits, "privileged", rule, format!("{:?}", self.privileged))?;
            let rule = "must be empty where observations are choices";
            field::rule(matches!(self.obs, Space::Box(_)), "privileged", rule, format!("{:?}", self.privileged))?;
        }
        if let Some(name) = self.info_means.iter().find(|name| !self.info_names.contains(name)) {
            let rule = "must be names of `info_names`";
            return Err(EnvError::Argument(InvalidField::new("info_means", rule, format!("`{name}`"))));
        }
        let Some(MaskSpec { actions_per_flag }) = self.mask else { return Ok(()) };
        if self.action.heads().is_empty() {
            return Err(EnvError::Space { rule: "a box of actions has no mask".into() });
        }
        if actions_per_flag == 0 || self.action.heads().iter().any(|n| n % actions_per_flag != 0) {
            return fail("actions_per_flag", "must divide the number of actions of every head", actions_per_flag);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;

    #[test]
    fn rows_of_other_sizes_are_named() {
        let spec = EnvSpec::new(Space::uniform_box(0.0, 1.0, ["x", "y"]), Space::Discrete(4), 2);
        let masked = EnvSpec { mask: Some(MaskSpec { actions_per_flag: 2 }), n_agents: 2, ..spec.clone() };
        let check = |spec: &EnvSpec, obs: (usize, usize), mask: Option<(usize, usize)>| {
            let (obs, mask) = (Array2::zeros(obs), mask.map(Array2::zeros));
            spec.check_rows(obs.view(), mask.as_ref().map(|mask| mask.view())).map_err(|error| error.to_string())
        };
        assert_eq!(check(&spec, (3, 2), None), Ok(()));
        assert_eq!(check(&masked, (4, 2), Some((4, 4))), Ok(()));
        for (spec, obs, mask, expected) in [
            (&spec, (3, 1), None, "`obs` must be rows of 2 numbers, got 1"),
            (&spec, (0, 2), None, "`obs` must be rows of whole environments, 1 each, got 0"),
            (&masked, (3, 2), Some((3, 4)), "`obs` must be rows of whole environments, 2 each, got 3"),
            (&masked, (2, 2), None, "`mask` must be given: in these environments not every action is legal, got none"),
            (&masked, (2, 2), Some((2, 2)), "`mask` must have the shape (2, 4), got (2, 2)"),
            (&masked, (4, 2), Some((2, 4)), "`mask` must have the shape (4, 4), got (2, 4)"),
            (&spec, (1, 2), Some((1, 4)), "`mask` must not be given: these environments have no masks, got (1, 4)"),
        ] {
            assert_eq!(check(spec, obs, mask), Err(expected.into()));
        }
    }

    #[test]
    fn what_no_batch_can_be_is_named() {
        let spec = EnvSpec::new(Space::uniform_box(0.0, 1.0, ["x"]), Space::Discrete(4), 2);
        assert!(spec.validate().is_ok());
        let message = |spec: EnvSpec| spec.validate().expect_err("it is wrong").to_string();
        assert_eq!(message(spec.with_n_envs(0)), "`n_envs` must be at least 1, got 0");
        let mask = Some(MaskSpec { actions_per_flag: 3 });
        let means = EnvSpec { info_means: vec!["load".into()], ..spec.clone() };
        assert_eq!(message(means), "`info_means` must be names of `info_names`, got `load`");
        assert!(message(EnvSpec { mask, ..spec.clone() }).contains("`actions_per_flag` must divide"));
        assert!(message(EnvSpec { shared_width: 2, ..spec }).contains("`shared_width` must not be above"));
    }
}
