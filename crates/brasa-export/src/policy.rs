//! A greedy policy as a list of layers.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{About, GraphNetwork, Groups, ImageLayer, Memory};

/// A choice that cannot be made: see [`ExportedPolicy::act`].
///
/// ```
/// use brasa_export::{ExportedPolicy, Layer, NO_ACTION, Output};
///
/// # let policy = |obs_width, layers, output| ExportedPolicy {
/// #     obs_width, n_agents: 1, masked: false, layers, output, about: brasa_export::About::default(),
/// # };
/// let layers = vec![Layer::linear(vec![1.0, -1.0], vec![0.0, 0.0])];
/// let policy: ExportedPolicy = policy(1, layers, Output::Choice { heads: vec![2] });
/// // No action is legal in the second row.
/// assert_eq!(policy.act(&[1.0, 1.0], Some(&[1.0, 1.0, 0.0, 0.0])), [0.0, NO_ACTION]);
/// ```
pub const NO_ACTION: f32 = -1.0;
/// Most columns: programs in other languages have indices of 32 bits, and files store indices as numbers of 32 bits.
const MOST_COLUMNS: usize = 1 << 24;

/// A greedy policy: observations to actions of the environment.
///
/// A row is the observation of one agent. Row `i` belongs to agent `i % n_agents`.
///
/// ```
/// use brasa_export::{About, ExportedPolicy, Layer, Output};
///
/// let policy = ExportedPolicy {
///     obs_width: 2,
///     n_agents: 1,
///     masked: false,
///     layers: vec![Layer::linear(vec![1.0, -1.0, 0.5, 2.0], vec![0.0, 0.1])],
///     output: Output::Choice { heads: vec![2] },
///     about: About::default(),
/// };
/// policy.validate()?;
/// assert_eq!(policy.act(&[3.0, 0.0, -1.0, 0.5], None), [0.0, 1.0]);
/// assert!(policy.to_c("room")?.contains("room_act"));
/// # Ok::<(), brasa_export::ExportError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ExportedPolicy {
    /// Numbers of an observation.
    pub obs_width: usize,
    /// Agents with weights of their own; 1 if all rows are treated alike.
    pub n_agents: usize,
    /// Whether environments say which actions are legal.
    pub masked: bool,
    /// From observations to scores or actions.
    pub layers: Vec<Layer>,
    /// The meaning of the result of the last layer.
    pub output: Output,
    /// Where it comes from, and what its columns are.
    pub about: About,
}

/// One operation on all rows.
///
/// ```
/// use brasa_export::{ExportedPolicy, Layer, Output};
///
/// # let policy = |obs_width, layers, output| ExportedPolicy {
/// #     obs_width, n_agents: 1, masked: false, layers, output, about: brasa_export::About::default(),
/// # };
/// let layers = vec![
///     Layer::Normalize { mean: vec![4.0], deviation: vec![2.0], clip: 10.0 },
///     Layer::Scale { factor: vec![10.0], offset: vec![1.0] },
///     Layer::Clip { low: vec![0.0], high: vec![20.0] },
/// ];
/// let policy: ExportedPolicy = policy(1, layers, Output::Real);
/// assert_eq!(policy.act(&[6.0, 9.0, 2.0], None), [11.0, 20.0, 0.0]);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Layer {
    /// `clip((x - mean) / deviation)` to at most `clip` in magnitude, per column. Mean and deviation have 64 bits: the mean of a column can
    /// be so large that the nearest number of 32 bits differs by a part of the deviation. A format without such numbers stores each as
    /// [`high_and_low`] and computes `((x - high) - low) / deviation`.
    Normalize {
        /// Mean of each column.
        mean: Vec<f64>,
        /// Standard deviation of each column.
        deviation: Vec<f64>,
        /// Largest magnitude of the result.
        clip: f32,
    },
    /// `y = x W + b`.
    Linear {
        /// Width of `y`.
        outputs: usize,
        /// `[inputs, outputs]`, or one such matrix per agent, one after the other.
        weight: Vec<f32>,
        /// `[outputs]`, or one such vector per agent.
        bias: Vec<f32>,
    },
    /// A function of every number.
    Activation(Function),
    /// `x * factor + offset`, per column, or with one number for all columns.
    Scale {
        /// Factor of each column.
        factor: Vec<f32>,
        /// Added to each column.
        offset: Vec<f32>,
    },
    /// Limits each column to its bounds, which may be infinite.
    Clip {
        /// Lower bounds.
        low: Vec<f32>,
        /// Upper bounds.
        high: Vec<f32>,
    },
    /// From observations over graphs to scores.
    Graph(Box<GraphNetwork>),
    /// The same layers on several groups of columns.
    Groups(Groups),
    /// A layer that remembers.
    Memory(Memory),
    /// A layer on images.
    Image(ImageLayer),
    /// The sum of its input and of the result of these layers.
    Residual(Vec<Layer>),
}

/// Every number as the nearest number of 32 bits and the remainder. Together they have 48 bits.
///
/// ```
/// use brasa_export::{high_and_low, joined};
///
/// let values = [5_712_345.3];
/// let [high, low] = high_and_low(&values);
/// assert_eq!(high, [5_712_345.5]);
/// assert!((joined(&high, &low)[0] - values[0]).abs() < 1e-6);
/// ```
pub fn high_and_low(values: &[f64]) -> [Vec<f32>; 2] {
    let high: Vec<f32> = values.iter().map(|x| *x as f32).collect();
    let low = values.iter().zip(&high).map(|(x, high)| (x - f64::from(*high)) as f32).collect();
    [high, low]
}

/// The numbers of [`high_and_low`].
///
/// ```
/// use brasa_export::joined;
///
/// assert_eq!(joined(&[16_777_216.0], &[0.25]), [16_777_216.25]);
/// ```
pub fn joined(high: &[f32], low: &[f32]) -> Vec<f64> {
    high.iter().zip(low).map(|(high, low)| f64::from(*high) + f64::from(*low)).collect()
}

/// Factors and offsets of [`Layer::Scale`] from [-1, 1] to finite bounds. The bounds can be the largest numbers of 32 bits: neither the
/// factors and offsets nor the scaled numbers overflow.
///
/// ```
/// use brasa_export::scaling;
///
/// // From [-1, 1] to [0, 10].
/// let (factor, offset) = scaling(&[0.0], &[10.0]);
/// assert_eq!((factor, offset), (vec![5.0], vec![5.0]));
/// ```
pub fn scaling(low: &[f32], high: &[f32]) -> (Vec<f32>, Vec<f32>) {
    let scale = |(low, high): (&f32, &f32)| {
        // The difference and the sum of two bounds may exceed the range, those of their halves do not.
        let (factor, offset) = (high / 2.0 - low / 2.0, low / 2.0 + high / 2.0);
        let stays_finite = (offset + factor).is_finite() && (offset - factor).is_finite();
        (if stays_finite { factor } else { factor.next_down() }, offset)
    };
    low.iter().zip(high).map(scale).unzip()
}

/// A function of one number.
///
/// ```
/// use brasa_export::{ExportedPolicy, Function, Layer, Output};
///
/// # let policy = |obs_width, layers, output| ExportedPolicy {
/// #     obs_width, n_agents: 1, masked: false, layers, output, about: brasa_export::About::default(),
/// # };
/// let of = |function| -> Vec<f32> {
///     let policy: ExportedPolicy = policy(1, vec![Layer::Activation(function)], Output::Real);
///     policy.act(&[-2.0, 3.0], None)
/// };
/// assert_eq!(of(Function::Relu), [0.0, 3.0]);
/// assert_eq!(of(Function::LeakyRelu(0.5)), [-1.0, 3.0]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Function {
    /// Hyperbolic tangent.
    Tanh,
    /// `max(x, 0)`.
    Relu,
    /// `x` above 0, the slope times `x` below.
    LeakyRelu(f32),
    /// `x` above 0, `exp(x) - 1` below.
    Elu,
}

/// What a policy returns.
///
/// ```
/// use brasa_export::{ExportedPolicy, Layer, Output};
///
/// # let policy = |obs_width, layers, output| ExportedPolicy {
/// #     obs_width, n_agents: 1, masked: false, layers, output, about: brasa_export::About::default(),
/// # };
/// let layers = || vec![Layer::Scale { factor: vec![1.0; 5], offset: vec![0.0; 5] }];
/// let scores = [1.0, 3.0, 5.0, 4.0, 6.0];
/// // Two choices, of two and of three actions.
/// let choices: ExportedPolicy = policy(5, layers(), Output::Choice { heads: vec![2, 3] });
/// assert_eq!(choices.act(&scores, None), [1.0, 2.0]);
/// assert_eq!(policy(5, layers(), Output::Real).act(&scores, None), scores);
/// // A choice of three actions, with two numbers.
/// assert_eq!(policy(5, layers(), Output::Both { heads: vec![3] }).act(&scores, None), [2.0, 4.0, 6.0]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Output {
    /// The index of the largest score of each group of columns, the first one if scores are equal; illegal actions are left out.
    Choice {
        /// Number of actions of each choice.
        heads: Vec<usize>,
    },
    /// The numbers themselves.
    Real,
    /// Choices as [`Output::Choice`] makes them, from the first columns, and the numbers of the others behind them.
    Both {
        /// Number of actions of each choice.
        heads: Vec<usize>,
    },
}

impl Output {
    /// Number of actions of each choice; none for numbers.
    pub fn heads(&self) -> &[usize] {
        match self {
            Self::Choice { heads } | Self::Both { heads } => heads,
            Self::Real => &[],
        }
    }

    /// Numbers behind the choices, for a last layer of `width` columns.
    pub(crate) fn n_numbers(&self, width: usize) -> usize {
        match self {
            Self::Choice { .. } => 0,
            Self::Real | Self::Both { .. } => width - self.heads().iter().sum::<usize>(),
        }
    }
}

/// A policy that cannot be exported, or a file that is not a policy.
///
/// ```
/// use brasa_export::{ExportError, ExportedPolicy, Layer, Output};
///
/// # let policy = |obs_width, layers, output| ExportedPolicy {
/// #     obs_width, n_agents: 1, masked: false, layers, output, about: brasa_export::About::default(),
/// # };
/// let policy: ExportedPolicy = policy(2, vec![Layer::linear(vec![1.0; 3], vec![0.0])], Output::Real);
/// let error = policy.validate().unwrap_err();
/// assert!(matches!(error, ExportError::Layer { layer: 0, .. }));
/// assert_eq!(error.to_string(), "layer 0: `weight` must have 2 numbers, or 1 times as many, got 3");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The layers do not fit together.
    #[error("layer {layer}: {rule}")]
    Layer {
        /// Index of the layer; the number of layers for the output.
        layer: usize,
        /// The rule and the value.
        rule: String,
    },
    /// The file cannot be read.
    #[error("this is not an exported policy: {0}")]
    File(String),
    /// The content of an archive or of a file of weights cannot be used; the text is the end of a sentence about the file.
    #[error("{0}")]
    Content(String),
    /// A model of Stable-Baselines3 cannot be read, or is more than a list of layers.
    #[error("this model of Stable-Baselines3 cannot be used: {0}")]
    StableBaselines3(String),
    /// The name cannot be that of functions in C or JavaScript.
    #[error("a name must have letters, digits and `_`, and begin with a letter, got `{0}`")]
    Name(String),
    /// The name is a word of C or JavaScript.
    #[error("a name must not be a word of C or JavaScript, or of a page, got `{0}`")]
    Reserved(String),
}

impl From<String> for ExportError {
    fn from(reason: String) -> Self {
        Self::Content(reason)
    }
}

impl Layer {
    /// A linear layer with the same weights for all agents: `weight` is `[inputs, outputs]`, and `bias` has `outputs` numbers.
    pub fn linear(weight: Vec<f32>, bias: Vec<f32>) -> Self {
        Self::Linear { outputs: bias.len(), weight, bias }
    }

    /// Width of the result for an input of `width`.
    pub(crate) fn width(&self, width: usize, n_agents: usize) -> Result<usize, String> {
        let columns = |name: &str, n: usize| match n == width {
            true => Ok(width),
            false => Err(format!("`{name}` must have {width} numbers, got {n}")),
        };
        match self {
            Self::Normalize { mean, deviation, clip } => {
                if !(*clip >= 0.0 && clip.is_finite()) {
                    return Err(format!("`clip` must be finite and at least 0, got {clip}"));
                }
                columns("mean", mean.len()).and(columns("deviation", deviation.len()))
            }
            Self::Scale { factor, offset } => {
                let one_or = |name: &str, n: usize| if n == 1 { Ok(width) } else { columns(name, n) };
                one_or("factor", factor.len()).and(one_or("offset", offset.len()))
            }
            Self::Clip { low, high } => {
                let is_wrong = |(low, high): &(&f32, &f32)| low.is_nan() || high.is_nan() || low > high;
                if let Some((low, high)) = low.iter().zip(high).find(is_wrong) {
                    return Err(format!("`low` must be at most `high`, got {low} and {high}"));
                }
                columns("low", low.len()).and(columns("high", high.len()))
            }
            Self::Activation(_) => Ok(width),
            Self::Graph(network) => network.scores(width),
            Self::Groups(groups) => groups.result(width),
            Self::Memory(memory) => memory.result(width),
            Self::Image(layer) => layer.result(width),
            Self::Residual(layers) => {
                let result = *inner_widths(layers, width, "a residual")?.last().expect("there is the input");
                match result == width {
                    true => Ok(width),
                    false => Err(format!("a residual must have {width} columns, as its input, got {result}")),
                }
            }
            Self::Linear { outputs, weight, bias } => {
                if *outputs == 0 {
                    return Err("`outputs` must be at least 1, got 0".into());
                }
                let too_many = || format!("{width} columns and {outputs} outputs are too many weights");
                let n_weights = width.checked_mul(*outputs).ok_or_else(too_many)?;
                for (name, n, one) in [("weight", weight.len(), n_weights), ("bias", bias.len(), *outputs)] {
                    if n != one && one.checked_mul(n_agents) != Some(n) {
                        return Err(format!("`{name}` must have {one} numbers, or {n_agents} times as many, got {n}"));
                    }
                }
                Ok(*outputs)
            }
        }
    }

    /// Checks that all numbers are finite; bounds may be infinite.
    pub(crate) fn check_numbers(&self) -> Result<(), String> {
        match self {
            Self::Normalize { mean, deviation, .. } => {
                if let Some(mean) = mean.iter().find(|mean| !mean.is_finite()) {
                    return Err(format!("`mean` must be finite, got {mean}"));
                }
                match deviation.iter().find(|deviation| !(deviation.is_finite() && **deviation > 0.0)) {
                    Some(deviation) => Err(format!("`deviation` must be finite and above 0, got {deviation}")),
                    None => Ok(()),
                }
            }
            Self::Linear { weight, bias, .. } => all_finite(&[("weight", weight), ("bias", bias)]),
            Self::Scale { factor, offset } => all_finite(&[("factor", factor), ("offset", offset)]),
            Self::Activation(Function::LeakyRelu(slope)) => all_finite(&[("slope", &[*slope])]),
            Self::Activation(_) | Self::Clip { .. } => Ok(()),
            Self::Graph(network) => network.check_numbers(),
            Self::Groups(groups) => groups.layers.iter().try_for_each(Self::check_numbers),
            Self::Memory(memory) => memory.check_numbers(),
            Self::Image(layer) => layer.check_numbers(),
            Self::Residual(layers) => layers.iter().try_for_each(Self::check_numbers),
        }
    }

    /// The layer on one row of agent `agent`, with what it remembers of the row, which it replaces.
    pub(crate) fn forward(&self, agent: usize, x: &[f32], memory: &mut [f32], y: &mut Vec<f32>) {
        y.clear();
        match self {
            Self::Normalize { mean, deviation, clip } => {
                let columns = x.iter().zip(mean).zip(deviation);
                let normal = |((x, mean), deviation): ((&f32, &f64), &f64)| ((f64::from(*x) - mean) / deviation) as f32;
                y.extend(columns.map(|column| normal(column).clamp(-clip, *clip)));
            }
            Self::Scale { factor, offset } => {
                let of = |values: &[f32], i: usize| if values.len() == 1 { values[0] } else { values[i] };
                y.extend(x.iter().enumerate().map(|(i, x)| x * of(factor, i) + of(offset, i)));
            }
            Self::Clip { low, high } => {
                // `max` and `min` would drop NaN.
                let limit = |((x, low), high): ((&f32, &f32), &f32)| match x {
                    x if x < low => *low,
                    x if x > high => *high,
                    x => *x,
                };
                y.extend(x.iter().zip(low).zip(high).map(limit));
            }
            Self::Activation(function) => y.extend(x.iter().map(|x| function.of(*x))),
            Self::Graph(network) => network.forward(x, y),
            Self::Groups(groups) => groups.forward(x, y),
            Self::Memory(layer) => layer.forward(x, memory, y),
            Self::Image(layer) => layer.forward(x, y),
            Self::Residual(layers) => {
                let (mut inside, mut next) = (x.to_vec(), Vec::new());
                forward_inside(layers, &mut inside, &mut next);
                y.extend(x.iter().zip(inside).map(|(x, inside)| x + inside));
            }
            Self::Linear { outputs, weight, bias } => {
                y.extend_from_slice(of_agent(bias, *outputs, agent));
                let weight = of_agent(weight, x.len() * outputs, agent);
                for (x, row) in x.iter().zip(weight.chunks_exact(*outputs)) {
                    y.iter_mut().zip(row).for_each(|(y, weight)| *y += x * weight);
                }
            }
        }
    }
}

/// Replaces the row `x` by the result of layers inside another one, which remember nothing; `next` is memory for results.
pub(crate) fn forward_inside(layers: &[Layer], x: &mut Vec<f32>, next: &mut Vec<f32>) {
    for layer in layers {
        layer.forward(0, x, &mut [], next);
        std::mem::swap(x, next);
    }
}

/// Width of the input of each layer inside `of`, and of the last result, for an input of `width`.
pub(crate) fn inner_widths(layers: &[Layer], width: usize, of: &str) -> Result<Vec<usize>, String> {
    let mut widths = vec![width];
    for (i, layer) in layers.iter().enumerate() {
        if matches!(layer, Layer::Graph(_) | Layer::Groups(_) | Layer::Memory(_) | Layer::Residual(_)) {
            return Err(format!("layer {i} of {of} must be a function of its columns alone"));
        }
        widths.push(layer.width(widths[i], 1).map_err(|rule| format!("layer {i} of {of}: {rule}"))?);
    }
    Ok(widths)
}

pub(crate) fn all_finite(lists: &[(&str, &[f32])]) -> Result<(), String> {
    for (name, values) in lists {
        if let Some(i) = values.iter().position(|x| !x.is_finite()) {
            return Err(format!("`{name}` must have finite numbers, got {} at index {i}", values[i]));
        }
    }
    Ok(())
}

/// The numbers of one agent, `n` for each of them or for all.
fn of_agent(numbers: &[f32], n: usize, agent: usize) -> &[f32] {
    if numbers.len() == n { numbers } else { &numbers[agent * n..(agent + 1) * n] }
}

impl Function {
    /// NaN stays NaN.
    pub(crate) fn of(self, x: f32) -> f32 {
        match self {
            Self::Tanh => x.tanh(),
            Self::Relu => {
                if x < 0.0 {
                    0.0
                } else {
                    x
                }
            }
            Self::LeakyRelu(slope) => {
                if x < 0.0 {
                    slope * x
                } else {
                    x
                }
            }
            Self::Elu => {
                if x > 0.0 {
                    x
                } else {
                    x.exp_m1()
                }
            }
        }
    }
}

impl ExportedPolicy {
    /// The policies of agents, each for rows of one agent, as one policy. `None` if they differ in more than the numbers of linear layers, or have
    /// agents already.
    ///
    /// ```
    /// use brasa_export::{ExportedPolicy, Layer, Output};
    ///
    /// # let policy = |obs_width, layers, output| ExportedPolicy {
    /// #     obs_width, n_agents: 1, masked: false, layers, output, about: brasa_export::About::default(),
    /// # };
    /// let times = |factor| policy(1, vec![Layer::linear(vec![factor], vec![0.0])], Output::Real);
    /// let agents: [ExportedPolicy; 2] = [times(2.0), times(10.0)];
    /// let joined = ExportedPolicy::of_agents(&agents).expect("they have equal layers");
    /// assert_eq!(joined.act(&[1.0, 1.0, 3.0, 3.0], None), [2.0, 10.0, 6.0, 30.0]);
    /// ```
    pub fn of_agents<'a>(policies: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        let mut policies = policies.into_iter();
        let mut joined = policies.next()?.clone();
        for (before, own) in (1..).zip(policies) {
            let frame = |policy: &Self| (policy.obs_width, policy.masked, policy.output.clone(), policy.layers.len());
            if frame(&joined) != frame(own) || joined.n_agents != before || own.n_agents != 1 {
                return None;
            }
            for (layer, own) in joined.layers.iter_mut().zip(&own.layers) {
                match (layer, own) {
                    (
                        Layer::Linear { outputs, weight, bias },
                        Layer::Linear { outputs: own_outputs, weight: own_weight, bias: own_bias },
                    ) if outputs == own_outputs
                        && weight.len() == before * own_weight.len()
                        && bias.len() == before * own_bias.len() =>
                    {
                        weight.extend(own_weight);
                        bias.extend(own_bias);
                    }
                    (layer, own) if layer == own => {}
                    _ => return None,
                }
            }
            joined.n_agents += 1;
        }
        Some(joined)
    }

    /// Checks that the layers fit together, and that their numbers are finite.
    ///
    /// # Errors
    /// [`ExportError::Layer`] naming the first one that does not.
    pub fn validate(&self) -> Result<(), ExportError> {
        self.widths()?;
        self.layers.iter().enumerate().try_for_each(|(layer, operation)| {
            operation.check_numbers().map_err(|rule| ExportError::Layer { layer, rule })
        })
    }

    /// Width of the input of each layer, and of the result of the last one.
    pub(crate) fn widths(&self) -> Result<Vec<usize>, ExportError> {
        let of_agents = self.obs_width.checked_mul(self.n_agents);
        if !of_agents.is_some_and(|n| (1..=MOST_COLUMNS).contains(&n)) {
            let (width, agents) = (self.obs_width, self.n_agents);
            let rule =
                format!("observations of all agents must have 1 to {MOST_COLUMNS} numbers, got {agents} times {width}");
            return Err(ExportError::Layer { layer: 0, rule });
        }
        let mut widths = vec![self.obs_width];
        for (layer, operation) in self.layers.iter().enumerate() {
            let width = operation.width(widths[layer], self.n_agents);
            let width = width.and_then(|width| match width <= MOST_COLUMNS {
                true => Ok(width),
                false => Err(format!("its result must have at most {MOST_COLUMNS} columns, got {width}")),
            });
            widths.push(width.map_err(|rule| ExportError::Layer { layer, rule })?);
        }
        let (heads, width) = (self.output.heads(), widths[self.layers.len()]);
        let n = heads.iter().try_fold(0usize, |sum, n| sum.checked_add(*n));
        let fits = match &self.output {
            Output::Choice { .. } => n == Some(width),
            Output::Both { .. } => !heads.is_empty() && n.is_some_and(|n| n < width),
            Output::Real => true,
        };
        if !fits || heads.contains(&0) {
            let most = if matches!(self.output, Output::Choice { .. }) { "" } else { "fewer than " };
            // A file may have any number of them.
            let shown = &heads[..heads.len().min(16)];
            let rule =
                format!("the choices must have {most}{width} actions together, and each at least one, got {shown:?}");
            return Err(ExportError::Layer { layer: self.layers.len(), rule });
        }
        Ok(widths)
    }

    /// Width of an action.
    pub fn action_width(&self) -> usize {
        let numbers = self.widths().map_or(0, |widths| self.output.n_numbers(widths[self.layers.len()]));
        self.output.heads().len() + numbers
    }

    /// Number of scores of a row, and width of its mask; 0 if actions are no choices.
    pub fn n_actions(&self) -> usize {
        self.output.heads().iter().sum()
    }

    /// Numbers that the policy remembers of a row from step to step; 0 for a policy without memory.
    ///
    /// # Panics
    /// If the layers do not fit together.
    pub fn state_width(&self) -> usize {
        self.states(&self.widths().expect("the caller's policy is valid")).into_iter().sum()
    }

    /// Numbers that each layer remembers of a row.
    pub(crate) fn states(&self, widths: &[usize]) -> Vec<usize> {
        let of = |(layer, width): (&Layer, &usize)| match layer {
            Layer::Memory(memory) => memory.state_width(*width),
            _ => 0,
        };
        self.layers.iter().zip(widths).map(of).collect()
    }

    /// Actions for rows of observations; by a policy that remembers, for first steps of episodes. Choices are indices.
    ///
    /// Invalid input is no plausible action: where a number of the observation is NaN, or names a graph or node that does not exist,
    /// continuous actions are NaN and choices are [`NO_ACTION`]. A choice is [`NO_ACTION`] too if a score or a number of its mask is NaN, if no
    /// action is legal, or if there is no mask where the environments have one.
    ///
    /// # Shapes
    /// - `obs`: `[n_rows, obs_width]`, the rows of all agents of an environment one after the other
    /// - `mask`: `[n_rows, n_actions]`, above 0 for legal actions
    /// - output: `[n_rows, action_width]`
    ///
    /// # Panics
    /// If the layers do not fit together or a slice has another length.
    pub fn act(&self, obs: &[f32], mask: Option<&[f32]>) -> Vec<f32> {
        self.act_from(obs, mask, &mut Vec::new())
    }

    /// [`ExportedPolicy::act`] with what the policy remembers of each row, `[n_rows, state_width]`, which it replaces. An empty list is that of
    /// episodes that begin. An observation with a number that is NaN leaves what is remembered as it is.
    ///
    /// # Panics
    /// As [`ExportedPolicy::act`].
    pub fn act_from(&self, obs: &[f32], mask: Option<&[f32]>, state: &mut Vec<f32>) -> Vec<f32> {
        let widths = self.widths().expect("the caller's policy is valid");
        let states = self.states(&widths);
        let state_width: usize = states.iter().sum();
        let (n_rows, n_actions) = (obs.len() / self.obs_width, self.n_actions());
        assert_eq!(obs.len(), n_rows * self.obs_width, "whole rows of observations");
        assert!(mask.is_none_or(|mask| mask.len() == n_rows * n_actions), "a row of the mask per row");
        if state.is_empty() {
            state.resize(n_rows * state_width, 0.0);
        }
        assert_eq!(state.len(), n_rows * state_width, "a state per row");
        let mut actions = Vec::with_capacity(n_rows * self.action_width());
        let (mut x, mut y, mut unchanged) = (Vec::new(), Vec::new(), Vec::new());
        for (row, obs) in obs.chunks_exact(self.obs_width).enumerate() {
            x.clear();
            x.extend_from_slice(obs);
            let is_known = !obs.iter().any(|x| x.is_nan());
            let mut memory = &mut state[row * state_width..(row + 1) * state_width];
            if !is_known {
                unchanged.clear();
                unchanged.extend_from_slice(memory);
                memory = &mut unchanged;
            }
            for (layer, n) in self.layers.iter().zip(&states) {
                let own = memory.split_off_mut(..*n).expect("a state has the numbers of all layers");
                layer.forward(row % self.n_agents, &x, own, &mut y);
                std::mem::swap(&mut x, &mut y);
            }
            let mask = mask.map(|mask| &mask[row * n_actions..(row + 1) * n_actions]);
            let is_masked = mask.is_some() || !self.masked;
            let mut first = 0;
            for n in self.output.heads() {
                let own = first..first + n;
                let is_known = is_known
                    && is_masked
                    && !x[own.clone()].iter().any(|x| x.is_nan())
                    && !mask.is_some_and(|mask| mask[own.clone()].iter().any(|flag| flag.is_nan()));
                let legal = |i: &usize| mask.is_none_or(|mask| mask[*i] > 0.0);
                let better = |best: usize, i: usize| if x[i] > x[best] { i } else { best };
                let best = own.filter(legal).reduce(better).filter(|_| is_known);
                actions.push(best.map_or(NO_ACTION, |best| (best - first) as f32));
                first += n;
            }
            actions.extend(x[first..].iter().map(|x| if is_known { *x } else { f32::NAN }));
        }
        actions
    }
}
