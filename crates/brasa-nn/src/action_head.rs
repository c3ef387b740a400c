//! The last layer of an actor: actions, log-probabilities and entropies from features, for every kind of action space.

use std::borrow::Cow;

use brasa_core::env::{InvalidField, Space, field};
use brasa_core::{ActionSizes, Explore, HostDecisions, NoiseDistribution, NoiseSpec};
use brasa_kernels::{HostColumns, HostColumnsMut, HostTensor, RowSlopes};
use brasa_number::Normal;
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand::Rng;

use crate::action_bounds::scale;
use crate::distribution::{categorical, gaussian, hybrid};
use crate::gaussian_std::{self, GaussianStd, HostStd};
use crate::{Init, Linear, Mlp, NnError, StdKind};

/// Meaning of the outputs of an actor.
///
/// ```
/// use brasa_core::env::Space;
/// use brasa_nn::Heads;
///
/// // The logits of two choices.
/// assert_eq!(Heads::new(&Space::MultiDiscrete(vec![3, 2]), false)?.outputs(), 5);
/// // Actions without bounds cannot be squashed.
/// let power = Space::uniform_box(f32::NEG_INFINITY, f32::INFINITY, ["power_kw"]);
/// let error = Heads::new(&power, true).unwrap_err().to_string();
/// assert_eq!(error, "`squash` needs finite bounds, but action `power_kw` has none");
/// # Ok::<(), brasa_nn::NnError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Heads {
    /// Logits of one or several discrete choices; the number of actions per choice.
    Choice(Vec<usize>),
    /// Means of continuous actions, clipped or squashed to these bounds for the environment.
    Real {
        /// Lower bounds.
        low: Vec<f32>,
        /// Upper bounds.
        high: Vec<f32>,
        /// Whether tanh squashes them.
        squash: bool,
    },
    /// Logits of choices, then means of continuous actions, which are clipped to these bounds for the environment.
    Hybrid {
        /// Number of actions per choice.
        heads: Vec<usize>,
        /// Lower bounds.
        low: Vec<f32>,
        /// Upper bounds.
        high: Vec<f32>,
    },
}

impl Heads {
    /// The heads for a space of actions.
    ///
    /// # Errors
    /// [`NnError::Space`] if `squash` has no finite bounds to scale to, or choices beside the numbers.
    pub fn new(action_space: &Space, squash: bool) -> Result<Self, NnError> {
        Ok(match action_space {
            Space::Discrete(n) => Self::Choice(vec![*n]),
            Space::MultiDiscrete(heads) => Self::Choice(heads.clone()),
            Space::Box(space) => {
                let unbounded = space.low.iter().chain(&space.high).position(|bound| !bound.is_finite());
                if let (true, Some(index)) = (squash, unbounded) {
                    let name = space.name(index % space.low.len());
                    return Err(NnError::Space(format!("`squash` needs finite bounds, but action `{name}` has none")));
                }
                Self::Real { low: space.low.clone(), high: space.high.clone(), squash }
            }
            Space::Hybrid { .. } if squash => {
                return Err(NnError::Space("`squash` must be left out for choices together with numbers".into()));
            }
            Space::Hybrid { heads, numbers } => {
                Self::Hybrid { heads: heads.clone(), low: numbers.low.clone(), high: numbers.high.clone() }
            }
        })
    }

    /// Number of outputs.
    pub fn outputs(&self) -> usize {
        match self {
            Self::Choice(heads) => heads.iter().sum(),
            Self::Real { low, .. } => low.len(),
            Self::Hybrid { heads, low, .. } => heads.iter().sum::<usize>() + low.len(),
        }
    }

    /// Number of continuous actions.
    pub(crate) fn n_numbers(&self) -> usize {
        match self {
            Self::Choice(_) => 0,
            Self::Real { low, .. } | Self::Hybrid { low, .. } => low.len(),
        }
    }

    /// The noise of one row for sampling, where the standard deviation does not need noise of its own.
    pub(crate) fn noise(&self) -> NoiseSpec {
        let distribution = match self {
            Self::Choice(_) => NoiseDistribution::Gumbel,
            Self::Real { .. } => NoiseDistribution::Normal,
            Self::Hybrid { heads, .. } => NoiseDistribution::GumbelThenNormal { n_gumbel: heads.iter().sum() },
        };
        NoiseSpec { width: self.outputs(), distribution, resample_every: 1 }
    }

    /// See [`ActionHead::choice`].
    pub(crate) fn choice(&self, mask: Option<&Tensor<2>>) -> Option<Tensor<1>> {
        match self {
            Self::Choice(heads) => mask.map(|mask| categorical::has_choice(mask.clone(), heads.len())),
            // There is always a number to choose.
            Self::Real { .. } | Self::Hybrid { .. } => None,
        }
    }

    /// The sizes of the actions.
    pub(crate) fn sizes(&self) -> ActionSizes {
        match self {
            Self::Choice(heads) => ActionSizes::Choices(heads.clone()),
            Self::Real { low, .. } => ActionSizes::Numbers(low.len()),
            Self::Hybrid { heads, low, .. } => ActionSizes::Both(heads.clone(), low.len()),
        }
    }

    /// See [`ActionHead::to_env`].
    pub(crate) fn to_env(&self, action: Tensor<2>) -> Tensor<2> {
        match self {
            Self::Choice(_) => action,
            Self::Real { low, high, squash: true } => scale(brasa_kernels::tanh(action), low, high),
            Self::Real { low, high, squash: false } => clipped(action, low, high),
            Self::Hybrid { heads, low, high } => {
                let [choices, numbers] = hybrid::parts(action, heads.len());
                Tensor::cat(vec![choices, clipped(numbers, low, high)], 1)
            }
        }
    }
}

/// A layer from features to actions: masked categorical and multi-discrete, or Gaussian with a standard deviation that
/// may depend on the observation, clipped or squashed by tanh.
///
/// `examples/own_network.rs` builds an actor-critic with four calls.
///
/// ```
/// use brasa_core::env::{Space, named_rng};
/// use brasa_core::{Explore, read_back};
/// use brasa_nn::{ActionHead, ActionHeadConfig};
/// use burn::tensor::Tensor;
///
/// // A head on four features, with three actions. One action is legal in each row.
/// let (device, rng) = (brasa_device::open_named("cpu")?, &mut named_rng(0, "weights", 0));
/// let head = ActionHead::new(&ActionHeadConfig::default(), 4, &Space::Discrete(3), &device, rng)?;
/// let mask = Tensor::from_floats([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]], &device);
/// let (action, log_prob) = head.act(Tensor::ones([2, 4], &device), Some(mask), Explore::Greedy);
/// assert_eq!(read_back(action), [2.0, 0.0]);
/// assert_eq!(read_back(log_prob), [0.0, 0.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Module, Debug)]
pub struct ActionHead {
    gaussian_std: Option<GaussianStd>,
    output: Linear,
    #[module(skip)]
    heads: Heads,
    #[module(skip)]
    resample_every: usize,
}

/// Settings of an [`ActionHead`].
///
/// ```
/// use brasa_core::env::{Space, named_rng};
/// use brasa_nn::{ActionHead, ActionHeadConfig};
///
/// let (device, rng) = (brasa_device::open_named("cpu")?, &mut named_rng(0, "weights", 0));
/// let config = ActionHeadConfig { squash: true, ..ActionHeadConfig::default() };
/// assert!(ActionHead::new(&config, 4, &Space::uniform_box(-1.0, 1.0, ["power"]), &device, rng).is_ok());
/// // A setting without an effect is an error.
/// let error = ActionHead::new(&config, 4, &Space::Discrete(3), &device, rng).unwrap_err();
/// assert_eq!(error.to_string(), "`squash` must be left out: it has no effect on discrete actions, got true");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ActionHeadConfig {
    /// Initial weights of the layer. A small gain makes the first policy nearly uniform.
    pub init: Init,
    /// For continuous actions: parameterization of the standard deviation.
    pub std: StdKind,
    /// Logarithm of the initial standard deviation.
    pub log_std_init: f64,
    /// Whether continuous actions are squashed by tanh and scaled to their bounds.
    pub squash: bool,
    /// With state-dependent exploration: steps with the same noise; default a whole rollout.
    pub sde_sample_freq: Option<usize>,
}

impl Default for ActionHeadConfig {
    /// Orthogonal weights of gain 0.01, a standard deviation of 1 that does not depend on the observation, clipped
    /// actions.
    fn default() -> Self {
        let init = Init::Orthogonal(0.01);
        Self { init, std: StdKind::Independent, log_std_init: 0.0, squash: false, sde_sample_freq: None }
    }
}

impl ActionHeadConfig {
    /// Rejects settings that the actions make ineffective.
    fn check_effect(&self, heads: &Heads) -> Result<(), InvalidField> {
        let default = Self::default();
        let is_choice = matches!(heads, Heads::Choice(_));
        let freq = |freq: Option<usize>| freq.map_or("none".to_owned(), |freq| freq.to_string());
        for (field, is_default, value) in [
            ("std", self.std == default.std, self.std.name().to_owned()),
            ("log_std_init", self.log_std_init == default.log_std_init, self.log_std_init.to_string()),
            ("squash", self.squash == default.squash, self.squash.to_string()),
            ("sde_sample_freq", self.sde_sample_freq.is_none(), freq(self.sde_sample_freq)),
        ] {
            field::rule(
                !is_choice || is_default,
                field,
                "must be left out: it has no effect on discrete actions",
                value,
            )?;
        }
        let is_hybrid = matches!(heads, Heads::Hybrid { .. });
        let rule = "must not be state-dependent for choices together with numbers";
        field::rule(!is_hybrid || self.std != StdKind::StateDependent, "std", rule, self.std.name())?;
        let explores = self.sde_sample_freq.is_none() || self.std == StdKind::StateDependent;
        let rule = "must be left out: it has an effect with `std = \"state-dependent\"` alone";
        field::rule(explores, "sde_sample_freq", rule, freq(self.sde_sample_freq))
    }
}

impl ActionHead {
    /// A head on `inputs` features, with initial weights from `rng`.
    ///
    /// # Errors
    /// [`NnError`] if a bound is missing for squashing, or `log_std_init` is not finite.
    pub fn new(
        config: &ActionHeadConfig,
        inputs: usize,
        action_space: &Space,
        device: &Device,
        rng: &mut (impl Rng + ?Sized),
    ) -> Result<Self, NnError> {
        let heads = Heads::new(action_space, config.squash)?;
        let output = Linear::new(inputs, heads.outputs(), config.init, device, rng);
        Self::behind(config, inputs, heads, output, device, rng)
    }

    /// The same with an initialized layer.
    pub(crate) fn behind(
        config: &ActionHeadConfig,
        inputs: usize,
        heads: Heads,
        output: Linear,
        device: &Device,
        rng: &mut (impl Rng + ?Sized),
    ) -> Result<Self, NnError> {
        if !config.log_std_init.is_finite() {
            let value = config.log_std_init.to_string();
            return Err(NnError::Field(InvalidField::new("log_std_init", "must be finite", value)));
        }
        config.check_effect(&heads)?;
        let gaussian_std = match &heads {
            Heads::Real { low, .. } | Heads::Hybrid { low, .. } => {
                let widths = [inputs, low.len()];
                Some(GaussianStd::new(config.std, widths, Some(config.log_std_init), config.init, device, rng))
            }
            Heads::Choice(_) => None,
        };
        let resample_every = gaussian_std::resample_every(config.sde_sample_freq);
        Ok(Self { gaussian_std, output, heads, resample_every })
    }

    /// The meaning of the outputs.
    pub fn heads(&self) -> &Heads {
        &self.heads
    }

    /// The noise of one row for sampling.
    pub fn noise(&self) -> NoiseSpec {
        match &self.heads {
            Heads::Choice(_) | Heads::Hybrid { .. } => self.heads.noise(),
            Heads::Real { low, .. } => self.std_of_real().noise(low.len(), self.resample_every),
        }
    }

    /// Actions `[n_rows, action width]` for features and masks, and their log-probabilities `[n_rows]`.
    ///
    /// # Shapes
    /// - `features`: `[n_rows, inputs]`
    /// - `mask`: `[n_rows, n_actions]`, 1 for legal actions
    pub fn act(&self, features: Tensor<2>, mask: Option<Tensor<2>>, explore: Explore) -> (Tensor<2>, Tensor<1>) {
        let output = self.output.forward(features.clone(), None);
        self.act_with(output, features, mask, explore)
    }

    /// The same behind an MLP.
    pub(crate) fn act_behind(
        &self,
        body: &Mlp,
        x: Tensor<2>,
        mask: Option<Tensor<2>>,
        explore: Explore,
    ) -> (Tensor<2>, Tensor<1>) {
        let (output, features) = self.outputs(body, x);
        self.act_with(output, features, mask, explore)
    }

    /// Outputs behind an MLP, and the features before them, if anything else needs these.
    fn outputs(&self, body: &Mlp, x: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
        if self.gaussian_std.as_ref().is_none_or(|std| std.independent().is_some()) {
            // The layers are one pass.
            let output = body.forward_before(x, Some(&self.output));
            return (output.clone(), output);
        }
        let features = body.forward(x);
        (self.output.forward(features.clone(), None), features)
    }

    fn act_with(
        &self,
        output: Tensor<2>,
        features: Tensor<2>,
        mask: Option<Tensor<2>>,
        explore: Explore,
    ) -> (Tensor<2>, Tensor<1>) {
        let noise = match explore {
            Explore::Sample(noise) => Some(noise),
            Explore::Greedy => None,
        };
        match &self.heads {
            Heads::Choice(heads) => categorical::draw(output, mask, noise, heads),
            Heads::Hybrid { heads, .. } => {
                hybrid::draw(output, self.std_of_real().log_std(&features), mask, noise, heads)
            }
            Heads::Real { squash, .. } => {
                let std = self.std_of_real();
                let log_std = std.log_std(&features);
                if !*squash && !std.is_state_dependent() {
                    return gaussian::draw(output, log_std, noise);
                }
                let action = match noise {
                    Some(noise) => output.clone() + std.deviate(&features, log_std.clone(), noise),
                    None => output.clone(),
                };
                let (log_prob, _) = gaussian::evaluate(output, log_std, action.clone(), *squash);
                (action, log_prob)
            }
        }
    }

    /// Log-probabilities `[n_rows]` of stored actions, and the entropy `[n_rows]` in nats, or its estimate if there is
    /// no closed form.
    ///
    /// # Shapes
    /// - `features`: `[n_rows, inputs]`
    /// - `mask`: `[n_rows, n_actions]`
    /// - `action`: `[n_rows, action width]`
    pub fn evaluate(&self, features: Tensor<2>, mask: Option<Tensor<2>>, action: Tensor<2>) -> (Tensor<1>, Tensor<1>) {
        let output = self.output.forward(features.clone(), None);
        self.evaluate_with(output, features, mask, action)
    }

    /// The same behind an MLP.
    pub(crate) fn evaluate_behind(
        &self,
        body: &Mlp,
        x: Tensor<2>,
        mask: Option<Tensor<2>>,
        action: Tensor<2>,
    ) -> (Tensor<1>, Tensor<1>) {
        let (output, features) = self.outputs(body, x);
        self.evaluate_with(output, features, mask, action)
    }

    fn evaluate_with(
        &self,
        output: Tensor<2>,
        features: Tensor<2>,
        mask: Option<Tensor<2>>,
        action: Tensor<2>,
    ) -> (Tensor<1>, Tensor<1>) {
        match &self.heads {
            Heads::Choice(heads) => categorical::evaluate(output, mask, action, heads),
            Heads::Hybrid { heads, .. } => {
                hybrid::evaluate(output, self.std_of_real().log_std(&features), mask, action, heads)
            }
            Heads::Real { squash, .. } => {
                let log_std = self.std_of_real().log_std(&features);
                gaussian::evaluate(output, log_std, action, *squash)
            }
        }
    }

    /// The layer.
    pub(crate) fn output(&self) -> &Linear {
        &self.output
    }

    /// Brings a gradient into the order of fields: that of the output layer, which ends at `end`, moves to the end, and `by_log_std` before it.
    pub(crate) fn put_last(&self, gradient: &mut Vec<f32>, end: usize, by_log_std: Vec<f32>) {
        let n = self.output.n_params();
        gradient[end - n..].rotate_left(n);
        let last = gradient.len() - n;
        gradient.splice(last..last, by_log_std);
    }

    /// The head in the memory of the CPU. `None` where actions are squashed or of both kinds, a layer computes the standard deviation, or the head is
    /// on another device.
    pub(crate) fn on_host(&self) -> Option<HostHead> {
        let std = match &self.heads {
            Heads::Choice(_) => None,
            Heads::Real { squash: true, .. } | Heads::Hybrid { .. } => return None,
            Heads::Real { squash: false, .. } => Some(self.host_std()?),
        };
        Some(HostHead { heads: self.heads.clone(), std, scratch: RowSlopes::default() })
    }

    /// The standard deviation of real actions, unless a layer computes it.
    fn host_std(&self) -> Option<HeadStd> {
        let std = self.std_of_real();
        match std.independent() {
            Some(log_std) => Some(HeadStd::Independent(HostTensor::of(log_std)?)),
            None => std.on_host().map(HeadStd::StateDependent),
        }
    }

    /// Whether [`ActionHead::evaluate_on_host`] has results on the CPU.
    pub(crate) fn has_slopes(&self) -> bool {
        match &self.heads {
            Heads::Choice(_) => true,
            Heads::Real { .. } => self.std_of_real().dependent().is_none(),
            Heads::Hybrid { .. } => false,
        }
    }

    /// [`ActionHead::evaluate`] for outputs of the layer in the memory of the CPU: log-probabilities and entropies, and what gives their
    /// derivatives. `None` for choices together with numbers, and where a layer computes the standard deviation or the head is on another device.
    ///
    /// `features` are what the output layer read.
    pub(crate) fn evaluate_on_host(
        &self,
        [output, features]: [&[f32]; 2],
        mask: Option<&[f32]>,
        action: &[f32],
    ) -> Option<([Vec<f32>; 2], HeadSlopes)> {
        let width = self.heads.outputs();
        let n_rows = output.len() / width;
        let mut results = [vec![0.0; n_rows], vec![0.0; n_rows]];
        let slopes = match &self.heads {
            Heads::Choice(heads) => {
                let mut of_head = [vec![0.0; n_rows], vec![0.0; n_rows]];
                let of_heads = (0..heads.len()).map(|head| {
                    let mut slopes = RowSlopes::default();
                    let to = if head == 0 { &mut results } else { &mut of_head };
                    let at = categorical::evaluate_head(&mut slopes, [output, action], mask, (head, heads), to);
                    if head > 0 {
                        let sums = results.iter_mut().flatten().zip(of_head.iter().flatten());
                        sums.for_each(|(sum, x)| *sum += x);
                    }
                    (at, slopes)
                });
                HeadSlopes::Choice(of_heads.collect())
            }
            Heads::Real { squash, .. } => {
                let std = self.host_std()?;
                let (log_std, per_row) = std.log_stds(features, width);
                let columns = |numbers, per_row| HostColumns { numbers, per_row };
                let mut slopes = RowSlopes::default();
                slopes.forward(
                    Normal { squash: *squash },
                    [n_rows, width],
                    [columns(output, width), columns(&log_std, per_row)],
                    Some(columns(action, width)),
                    None,
                    [],
                    results.each_mut().map(|results| &mut results[..]),
                );
                let log_std = log_std.into_owned();
                let by_features = match std {
                    HeadStd::Independent(_) => None,
                    HeadStd::StateDependent(std) => Some((std, features.to_vec(), log_std)),
                };
                HeadSlopes::Real(slopes, by_features)
            }
            Heads::Hybrid { .. } => return None,
        };
        Some((results, slopes))
    }

    /// `[n_rows]`: 1 for several legal actions; `None` if every row has several. See
    /// [`brasa_core::ActorCritic::choice`].
    pub fn choice(&self, mask: Option<&Tensor<2>>) -> Option<Tensor<1>> {
        self.heads.choice(mask)
    }

    /// Actions in the form that environments take: clipped, or squashed and scaled.
    pub fn to_env(&self, action: Tensor<2>) -> Tensor<2> {
        self.heads.to_env(action)
    }

    /// `[action width]`: standard deviations, if they do not depend on the observation; for metrics.
    pub fn std(&self) -> Option<Tensor<1>> {
        self.gaussian_std.as_ref().and_then(GaussianStd::std)
    }

    fn std_of_real(&self) -> &GaussianStd {
        self.gaussian_std.as_ref().expect("real actions always have a standard deviation")
    }
}

/// Samples actions from outputs of the layer in the memory of the CPU.
pub(crate) struct HostHead {
    heads: Heads,
    /// Of real actions.
    std: Option<HeadStd>,
    /// Of choices.
    scratch: RowSlopes<1, 0, 3, 2>,
}

impl HostHead {
    /// As [`ActionHead::act`] and [`ActionHead::to_env`] behind the layer: appends to `to`, and replaces `in_env`.
    pub fn draw(
        &mut self,
        [output, features]: [&[f32]; 2],
        mask: Option<&[f32]>,
        noise: &[f32],
        to: &mut HostDecisions,
        in_env: &mut Vec<f32>,
    ) {
        let HostDecisions { action, log_prob, .. } = to;
        let from = action.len();
        in_env.clear();
        match (&self.heads, &self.std) {
            (Heads::Real { low, high, .. }, Some(std)) => {
                let (n, (log_std, _)) = (low.len(), std.log_stds(features, low.len()));
                let noise = match std {
                    HeadStd::Independent(_) => Cow::Borrowed(noise),
                    HeadStd::StateDependent(std) => Cow::Owned(std.scaled_deviations(features, &log_std, noise)),
                };
                gaussian::draw_rows(output, &log_std, &noise, n, action, log_prob);
                in_env.extend(clipped_rows(&action[from..], low, high));
            }
            (Heads::Real { .. }, None) => unreachable!("real actions always have a standard deviation"),
            (Heads::Hybrid { .. }, _) => unreachable!("hybrid actions have no head in the memory of the CPU"),
            (Heads::Choice(heads), _) => {
                categorical::draw_rows(&mut self.scratch, output, mask, Some(noise), heads, action, log_prob);
                in_env.extend_from_slice(&action[from..]);
            }
        }
    }
}

/// The standard deviation of real actions in the memory of the CPU.
enum HeadStd {
    /// Its logarithm for every action.
    Independent(HostTensor),
    StateDependent(HostStd),
}

impl HeadStd {
    /// Logarithms of the deviation, and how many of them a row has: `n`, or 0 if all rows share `n`.
    fn log_stds<'a>(&'a self, features: &[f32], n: usize) -> (Cow<'a, [f32]>, usize) {
        match self {
            Self::Independent(log_std) => (Cow::Borrowed(log_std), 0),
            Self::StateDependent(std) => (Cow::Owned(std.log_stds(features)), n),
        }
    }
}

/// Derivatives of log-probabilities and entropies.
pub(crate) enum HeadSlopes {
    /// The first column of every head.
    Choice(Vec<(usize, RowSlopes<1, 0, 3, 2>)>),
    /// For state-dependent exploration with the features and their logarithms of the deviation.
    Real(RowSlopes<2, 0, 2, 2>, Option<(HostStd, Vec<f32>, Vec<f32>)>),
}

impl HeadSlopes {
    /// Derivatives of a loss by the outputs, `[n_rows, outputs]`, and of a Gaussian by its logarithms, `[outputs]`, from those by
    /// log-probabilities and entropies, which may be empty.
    pub fn gradient(&self, by_results: [&[f32]; 2], [n_rows, width]: [usize; 2]) -> (Vec<f32>, Vec<f32>) {
        let mut by_outputs = vec![0.0; n_rows * width];
        let mut by_log_std = Vec::new();
        match self {
            Self::Choice(of_heads) => {
                for (at, slopes) in of_heads {
                    let to = HostColumnsMut { numbers: &mut by_outputs[*at..], per_row: width };
                    slopes.backward([], by_results, [to]);
                }
            }
            Self::Real(slopes, state_dependent) => {
                let per_row = if state_dependent.is_some() { width } else { 0 };
                by_log_std.resize(if per_row > 0 { n_rows * width } else { width }, 0.0);
                let outputs = HostColumnsMut { numbers: &mut by_outputs, per_row: width };
                slopes.backward([], by_results, [outputs, HostColumnsMut { numbers: &mut by_log_std, per_row }]);
                if let Some((std, features, log_stds)) = state_dependent {
                    by_log_std = std.gradient(features, log_stds, &by_log_std);
                }
            }
        }
        (by_outputs, by_log_std)
    }
}

/// The numbers of every row within the bounds of their columns. A NaN remains one.
fn clipped_rows<'a>(numbers: &'a [f32], low: &'a [f32], high: &'a [f32]) -> impl Iterator<Item = f32> + 'a {
    let columns = numbers.chunks_exact(low.len()).flat_map(move |row| row.iter().zip(low).zip(high));
    columns.map(|((x, low), high)| x.clamp(*low, *high))
}

/// Every column within its bounds.
fn clipped(action: Tensor<2>, low: &[f32], high: &[f32]) -> Tensor<2> {
    if let Some(numbers) = HostTensor::of(&action) {
        return HostTensor::tensor(clipped_rows(&numbers, low, high).collect(), action.dims());
    }
    let device = action.device();
    let row = |values: &[f32]| Tensor::<1>::from_floats(values, &device).unsqueeze::<2>();
    action.max_pair(row(low)).min_pair(row(high))
}
