//! Policies act.

use std::ops::Range;

use burn::tensor::{Device, Int, Tensor};

use crate::Rows;

/// Maps observations to actions.
pub trait Policy {
    /// What it sees.
    type Obs: Rows;
    /// What it decides, in the form that is stored and learned from.
    type Action: Rows;
    /// What else is stored with a decision.
    type Extra: Rows;

    /// The random numbers that one row of [`Policy::act`] consumes.
    fn noise(&self) -> NoiseSpec;

    /// Decides for every row.
    fn act(&self, obs: Self::Obs, explore: Explore) -> (Self::Action, Self::Extra);

    /// The form of a decision that the environment takes: clipped to its bounds, say.
    fn to_env(&self, action: Self::Action) -> Self::Action;
}

/// A policy that also estimates the value of observations; what on-policy algorithms learn.
pub trait ActorCritic: Policy<Extra = Decision> {
    /// `[n_rows]`: estimated return from each observation.
    fn value(&self, obs: Self::Obs) -> Tensor<1>;

    /// Probabilities and values of actions that were taken before.
    fn evaluate(&self, obs: Self::Obs, action: Self::Action) -> Evaluation;

    /// `[n]`: current standard deviations of a Gaussian policy that does not depend on the observation; for the log.
    fn std(&self) -> Option<Tensor<1>> {
        None
    }
}

/// A policy whose first steps may be uniformly random, before anything is learned.
pub trait RandomWarmup: Policy {
    /// Decides for every row with equal chances for all legal actions, whatever was learned.
    ///
    /// # Shapes
    /// - `noise`: `[n_rows, width of Policy::noise]`, uniform in [0, 1)
    fn random_action(&self, obs: Self::Obs, noise: Tensor<2>) -> Self::Action;
}

/// A policy over real actions whose draws can be differentiated; the actor of soft actor-critic.
pub trait Reparameterized: Policy {
    /// Standard normal numbers per row that [`Reparameterized::rsample`] consumes.
    fn noise_width(&self) -> usize;

    /// An action for every row as a function of `noise`, and its log-density `[n_rows]`.
    ///
    /// # Shapes
    /// - `noise`: `[n_rows, noise_width]`
    fn rsample(&self, obs: Self::Obs, noise: Tensor<2>) -> (Self::Action, Tensor<1>);
}

/// Several independent estimates of the value of an action.
pub trait Critics {
    /// What they see.
    type Obs: Rows;
    /// The actions that they value, in the form that is stored.
    type Action: Rows;

    /// `[n_critics, n_rows]`: estimated return of each action, one line per critic.
    fn values(&self, obs: Self::Obs, action: Self::Action) -> Tensor<2>;
}

/// Values of the actions of a discrete space.
///
/// [`ActionValues::values`] is enough; whoever can answer the narrower questions without judging every option does.
/// Options are indices, kept as floats like all actions.
pub trait ActionValues {
    /// What it sees.
    type Obs: Rows;

    /// `[n_rows, options]`: estimated return of each option.
    fn values(&self, obs: Self::Obs) -> Tensor<2>;

    /// Number of options.
    fn n_actions(&self) -> usize;

    /// `[n_rows, options]`: 1 for legal options, 0 for the others; `None` where all are legal.
    fn action_mask(&self, obs: &Self::Obs) -> Option<Tensor<2>>;

    /// The legal option with the highest value, `[n_rows, 1]`, and that value, `[n_rows]`; the first one of equals.
    ///
    /// A row without legal options has no answer: its option and value are any.
    fn best(&self, obs: Self::Obs) -> (Tensor<2>, Tensor<1>) {
        let legal = self.action_mask(&obs);
        let values = self.values(obs);
        let choice = largest(values.clone(), legal);
        let value = values.gather(1, choice.clone()).squeeze_dim(1);
        (choice.float(), value)
    }

    /// `[n_rows]`: estimated return of one option per row.
    ///
    /// # Shapes
    /// - `action`: `[n_rows, 1]`, indices
    fn values_of(&self, obs: Self::Obs, action: Tensor<2>) -> Tensor<1> {
        self.values(obs).gather(1, action.int()).squeeze_dim(1)
    }

    /// Uniform random numbers per row that [`ActionValues::random_action`] consumes.
    fn random_action_width(&self) -> usize {
        self.n_actions()
    }

    /// `[n_rows, 1]`: a legal option, all equally likely.
    ///
    /// # Shapes
    /// - `noise`: `[n_rows, random_action_width]`, uniform in [0, 1)
    fn random_action(&self, obs: &Self::Obs, noise: Tensor<2>) -> Tensor<2> {
        largest(noise, self.action_mask(obs)).float()
    }

    /// Independent learners that this network holds, 1 unless every parameter counts learners in its first dimension.
    ///
    /// Row `i` belongs to learner `i % n_learners`. The loss is then the sum over learners of the mean over their rows, and
    /// gradients are clipped learner by learner, so that each learns as it would alone.
    fn n_learners(&self) -> usize {
        1
    }
}

/// A policy that always takes the action with the highest value: what deep Q-learning has learned.
#[derive(Debug, Clone)]
pub struct Greedy<N>(
    /// Estimates the values, on the device without autodiff.
    pub N,
);

impl<N: ActionValues> Policy for Greedy<N> {
    type Obs = N::Obs;
    type Action = Tensor<2>;
    type Extra = ();

    fn noise(&self) -> NoiseSpec {
        NoiseSpec { width: 0, distribution: NoiseDistribution::Uniform, resample_every: 1 }
    }

    fn act(&self, obs: N::Obs, _explore: Explore) -> (Tensor<2>, ()) {
        (self.0.best(obs).0, ())
    }

    fn to_env(&self, action: Tensor<2>) -> Tensor<2> {
        action
    }
}

/// `[n_rows, 1]`: the legal column with the largest number, the first one of equals.
fn largest(values: Tensor<2>, legal: Option<Tensor<2>>) -> Tensor<2, Int> {
    let values = match legal {
        Some(legal) => values.mask_fill(legal.equal_scalar(0.0), f32::NEG_INFINITY),
        None => values,
    };
    values.argmax(1)
}

/// What is stored with a decision of an [`ActorCritic`].
#[derive(Debug, Clone)]
pub struct Decision {
    /// `[n_rows]`: log-probability (density) of the stored action, summed over its dimensions.
    pub log_prob: Tensor<1>,
    /// `[n_rows]`: estimated return.
    pub value: Tensor<1>,
}

impl Rows for Decision {
    fn n_rows(&self) -> usize {
        self.value.n_rows()
    }

    fn zeroed(&self, n_rows: usize, device: &Device) -> Self {
        Self { log_prob: self.log_prob.zeroed(n_rows, device), value: self.value.zeroed(n_rows, device) }
    }

    fn select(&self, indices: Tensor<1, Int>) -> Self {
        Self { log_prob: Rows::select(&self.log_prob, indices.clone()), value: Rows::select(&self.value, indices) }
    }

    fn assign(&mut self, range: Range<usize>, rows: Self) {
        self.log_prob.assign(range.clone(), rows.log_prob);
        self.value.assign(range, rows.value);
    }
}

/// How likely decisions are now, and what they are worth.
#[derive(Debug, Clone)]
pub struct Evaluation {
    /// `[n_rows]`: log-probability under the current policy.
    pub log_prob: Tensor<1>,
    /// `[n_rows]`: entropy of the policy in nats, or its estimate `-log_prob` where there is no closed form.
    pub entropy: Tensor<1>,
    /// `[n_rows]`: estimated return.
    pub value: Tensor<1>,
    /// `[n_rows]`: 1 where several actions were legal, 0 where the only one was taken, which teaches a policy nothing;
    /// `None` where every row had a choice.
    pub choice: Option<Tensor<1>>,
}

/// Whether to explore.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "a handle that is passed once per step")]
pub enum Explore {
    /// Draws from the policy with noise of [`Policy::noise`], `[n_rows, width]`.
    Sample(Tensor<2>),
    /// Takes the most likely action.
    Greedy,
}

/// The random numbers that a policy needs per row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoiseSpec {
    /// Numbers per row.
    pub width: usize,
    /// Their distribution.
    pub distribution: NoiseDistribution,
    /// Steps of an environment that share the same numbers, at most those of one rollout; 1 for new numbers each step.
    pub resample_every: usize,
}

/// The distribution of exploration noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoiseDistribution {
    /// Standard normal.
    Normal,
    /// Standard Gumbel: the largest of `logits + noise` is a draw from the categorical distribution.
    Gumbel,
    /// Uniform in [0, 1).
    Uniform,
}
