//! Sizes of networks, and their comparison with environments.

use std::ops::Range;

use brasa_env::{EnvError, EnvSpec, Space};

/// The sizes of a network, which must be those of its environments.
///
/// ```
/// use brasa_core::{ActionSizes, NetworkSizes};
/// use brasa_env::{EnvSpec, Space};
///
/// let network = NetworkSizes { obs: 4, privileged: 0..0, action: ActionSizes::Choices(vec![2]), n_agents: 1 };
/// let spec = EnvSpec::new(Space::uniform_box(0.0, 1.0, ["x", "y"]), Space::Discrete(2), 8);
/// let error = network.check(&spec).unwrap_err().to_string();
/// let rule = "the network takes observations of 4 numbers, the environments have 2";
/// assert_eq!(error, format!("invalid space: {rule}"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkSizes {
    /// Numbers of a complete observation.
    pub obs: usize,
    /// Those of them that the actor does not use ([`EnvSpec::privileged`]): it also acts on observations without them.
    pub privileged: Range<usize>,
    /// The actions of a row.
    pub action: ActionSizes,
    /// Agents with weights of their own: row `i` belongs to agent `i % n_agents`. 1 if all rows are computed alike.
    pub n_agents: usize,
}

/// The actions of a row of a network.
///
/// ```
/// use brasa_core::ActionSizes;
/// use brasa_env::Space;
///
/// assert_eq!(ActionSizes::of(&Space::MultiDiscrete(vec![3, 2])), ActionSizes::Choices(vec![3, 2]));
/// let power = Space::uniform_box(-1.0, 1.0, ["battery", "heat_pump"]);
/// assert_eq!(ActionSizes::of(&power), ActionSizes::Numbers(2));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActionSizes {
    /// One or several choices, with the number of alternatives of each.
    Choices(Vec<usize>),
    /// As many numbers.
    Numbers(usize),
    /// Choices, and as many numbers behind them.
    Both(Vec<usize>, usize),
}

impl ActionSizes {
    /// Of a space of actions.
    pub fn of(space: &Space) -> Self {
        match space {
            Space::Discrete(n) => Self::Choices(vec![*n]),
            Space::MultiDiscrete(heads) => Self::Choices(heads.clone()),
            Space::Box(space) => Self::Numbers(space.low.len()),
            Space::Hybrid { heads, numbers } => Self::Both(heads.clone(), numbers.low.len()),
        }
    }

    fn in_words(&self) -> String {
        let choices = |heads: &[usize]| match heads {
            [n] => format!("one of {n} actions"),
            heads => format!("choices among {heads:?} actions"),
        };
        let numbers = |n: usize| if n == 1 { "1 number".into() } else { format!("{n} numbers") };
        match self {
            Self::Choices(heads) => choices(heads),
            Self::Numbers(n) => numbers(*n),
            Self::Both(heads, n) => format!("{} with {}", choices(heads), numbers(*n)),
        }
    }
}

impl NetworkSizes {
    /// Rejects environments of other sizes.
    ///
    /// # Errors
    /// [`EnvError::Space`] with both sizes, and if the actor would see columns that are for critics.
    pub fn check(&self, spec: &EnvSpec) -> Result<(), EnvError> {
        let (obs, action) = (spec.obs.width(), ActionSizes::of(&spec.action));
        let rule = if self.obs != obs {
            format!("the network takes observations of {} numbers, the environments have {obs}", self.obs)
        } else if self.privileged != spec.privileged {
            let (own, theirs) = (&self.privileged, &spec.privileged);
            format!(
                "columns {theirs:?} of the observations are for critics alone, the network hides {own:?} from its actor"
            )
        } else if self.action != action {
            let (own, theirs) = (self.action.in_words(), action.in_words());
            format!("the actions of the network are {own}, those of the environments {theirs}")
        } else if self.n_agents > 1 && self.n_agents != spec.n_agents {
            format!("the network has weights for {} agents, the environments have {}", self.n_agents, spec.n_agents)
        } else {
            return Ok(());
        };
        Err(EnvError::Space { rule })
    }

    /// Rejects environments in which the network cannot act. Those of its actor may lack [`NetworkSizes::privileged`].
    ///
    /// # Errors
    /// As [`NetworkSizes::check`].
    pub fn check_acting(&self, spec: &EnvSpec) -> Result<(), EnvError> {
        if self.privileged.is_empty() || !spec.privileged.is_empty() || spec.obs.width() == self.obs {
            return self.check(spec);
        }
        let actor = Self { obs: self.obs - self.privileged.len(), privileged: 0..0, ..self.clone() };
        actor.check(spec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_actor_needs_no_columns_that_are_for_critics() {
        let space = |n: usize| Space::uniform_box(-1.0, 1.0, (0..n).map(|i| i.to_string()));
        let own = EnvSpec { n_agents: 3, ..EnvSpec::new(space(2), Space::Discrete(4), 1) };
        let joint = own.joint().expect("there are several agents");
        let sizes = NetworkSizes { obs: 6, privileged: 0..4, action: ActionSizes::Choices(vec![4]), n_agents: 1 };
        sizes.check(&joint).expect("critics see all agents");
        sizes.check_acting(&joint).expect("it acts there, too");
        sizes.check_acting(&own).expect("actors see themselves");
        let refused = |checked: Result<(), EnvError>| checked.expect_err("it does not fit").to_string();
        let rule = "the network takes observations of 6 numbers, the environments have 2";
        assert_eq!(refused(sizes.check(&own)), format!("invalid space: {rule}"));
        let wider = EnvSpec::new(space(3), Space::Discrete(4), 1);
        let rule = "the network takes observations of 2 numbers, the environments have 3";
        assert_eq!(refused(sizes.check_acting(&wider)), format!("invalid space: {rule}"));
        let open = NetworkSizes { privileged: 0..0, ..sizes };
        let rule = "columns 0..4 of the observations are for critics alone, the network hides 0..0 from its actor";
        assert_eq!(refused(open.check_acting(&joint)), format!("invalid space: {rule}"));
    }

    #[test]
    fn other_sizes_are_named() {
        let space = |n: usize| Space::uniform_box(-1.0, 1.0, (0..n).map(|i| i.to_string()));
        let spec = EnvSpec::new(space(8), Space::Discrete(4), 1);
        let sizes = |obs, action| NetworkSizes { obs, privileged: 0..0, action, n_agents: 1 };
        let refused = |sizes: NetworkSizes| sizes.check(&spec).expect_err("it does not fit").to_string();
        sizes(8, ActionSizes::Choices(vec![4])).check(&spec).expect("it fits");
        assert_eq!(
            refused(sizes(16, ActionSizes::Choices(vec![4]))),
            "invalid space: the network takes observations of 16 numbers, the environments have 8"
        );
        assert_eq!(
            refused(sizes(8, ActionSizes::Choices(vec![9]))),
            "invalid space: the actions of the network are one of 9 actions, those of the environments one of 4 actions"
        );
        let both = ActionSizes::Both(vec![2, 2], 1);
        assert!(refused(sizes(8, both)).contains("choices among [2, 2] actions with 1 number"));
        assert!(refused(sizes(8, ActionSizes::Numbers(1))).contains("are 1 number, those"));
        assert!(refused(sizes(8, ActionSizes::Choices(vec![2, 2]))).contains("choices among [2, 2] actions"));
        let own_weights = NetworkSizes { n_agents: 3, ..sizes(8, ActionSizes::Choices(vec![4])) };
        assert_eq!(
            refused(own_weights),
            "invalid space: the network has weights for 3 agents, the environments have 1"
        );
    }
}
