//! What of a network a loss depends on.

use brasa_core::analytic::{ByResults, CriticsInput};
use brasa_core::{
    ActionValues, ActorCritic, Critics, Deterministic, Evaluation, Explore, Reparameterized, Rows, Sequences,
};
use brasa_kernels::{HostTensor, smallest_of};
use burn::tensor::Tensor;

use crate::Part;

/// A forward pass of a network `M` with `X` results per row, from which a loss is computed: see [`crate::Trainable::learn`].
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/nets.inc")); }
/// # use shown::*;
/// use brasa_core::{ActionValues, Obs, Rows};
/// use brasa_nn::{AdamConfig, Data, Forward, Part, QNetwork, Step, Trainable};
/// use burn::tensor::Tensor;
///
/// /// The greatest value of each observation.
/// struct Greatest<'a>(&'a Obs);
///
/// impl Forward<QNetwork, 1> for Greatest<'_> {
///     fn n_rows(&self) -> usize {
///         self.0.n_rows()
///     }
///     fn recorded(&self, network: &QNetwork, part: &Part) -> [Tensor<1>; 1] {
///         [network.values(part.of(self.0).into_owned()).max_dim(1).squeeze_dim(1)]
///     }
/// }
///
/// let device = brasa_device::open_named("cpu")?;
/// let mut trainable = Trainable::new(q_network(&device.clone().autodiff())?, AdamConfig::default())?;
/// let (obs, target) = (observed(&device), brasa_kernels::LossData::Constant(1.0));
/// // `Square` is half the squared distance of the result to the target.
/// let mut step = || trainable.learn(&Greatest(&obs), Data::new([target]), &Square, Step::new(1e-2, None), |_| true);
/// let losses: Vec<f64> = (0..50).map(|_| step().reports.read(0)).collect();
/// assert!(losses[49] < 0.1 * losses[0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Forward<M, const X: usize> {
    /// The rows of the batch.
    fn n_rows(&self) -> usize;

    /// The results of some rows on the tape of `network`, `[n]` each.
    fn recorded(&self, network: &M, part: &Part) -> [Tensor<1>; X];

    /// The gradient of a loss of these results by all parameters without the tape, where the network can: see [`brasa_core::analytic`].
    fn gradient(&self, _network: &M, _part: &Part, _by: &mut ByResults<'_, X>) -> Option<Vec<f32>> {
        None
    }

    /// The loss is the sum of the means of as many groups of the `n` results of a part.
    fn n_groups(&self, _network: &M, _part: &Part, _n: usize) -> usize {
        1
    }

    /// A part has a multiple of as many rows.
    fn unit(&self, _network: &M) -> usize {
        1
    }
}

/// Log-probability and entropy of stored actions, and value of their observations: what on-policy losses depend on.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/nets.inc")); }
/// # use shown::*;
/// use brasa_nn::{AdamConfig, Data, EvaluatedActions, Step, Trainable};
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let mut trainable = Trainable::new(actor_critic(&device.clone().autodiff())?, AdamConfig::default())?;
/// let (obs, action) = (observed(&device), Tensor::from_floats([[0.0], [2.0]], &device));
/// let forward = EvaluatedActions { obs: &obs, action: &action, sequences: None };
/// // `Imitation` is the negative log-probability of demonstrated actions, and the error of the value.
/// let mut step = || trainable.learn(&forward, Data::new([]), &Imitation, Step::new(1e-2, None), |_| true);
/// let surprise: Vec<f64> = (0..50).map(|_| step().reports.read(1)).collect();
/// // The first policy is nearly uniform over three actions.
/// assert!((surprise[0] - 3f64.ln()).abs() < 0.05 && surprise[49] < 0.5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct EvaluatedActions<'a, O, A> {
    /// The observations.
    pub obs: &'a O,
    /// The actions.
    pub action: &'a A,
    /// How a policy that remembers came to them; `None` for rows that stand alone.
    pub sequences: Option<&'a Sequences>,
}

impl<M: ActorCritic> Forward<M, 3> for EvaluatedActions<'_, M::Obs, M::Action> {
    fn n_rows(&self) -> usize {
        self.action.n_rows()
    }

    fn recorded(&self, network: &M, part: &Part) -> [Tensor<1>; 3] {
        let (obs, action) = (part.of(self.obs).into_owned(), part.of(self.action).into_owned());
        let Evaluation { log_prob, entropy, value } = match self.sequences {
            Some(sequences) => network.evaluate_sequences(obs, action, sequences),
            None => network.evaluate(obs, action),
        };
        [log_prob, entropy, value]
    }

    fn gradient(&self, network: &M, part: &Part, by: &mut ByResults<'_, 3>) -> Option<Vec<f32>> {
        let (obs, action) = (part.of(self.obs), part.of(self.action));
        match self.sequences {
            Some(sequences) => network.gradient_of_sequences(&obs, &action, sequences, by),
            None => network.gradient(&obs, &action, by),
        }
    }

    /// Sequences are not taken apart, nor are the agents of an environment.
    fn unit(&self, network: &M) -> usize {
        if self.sequences.is_some() { self.action.n_rows().max(1) } else { network.n_agents() }
    }
}

/// Values of actions of a discrete space. The loss is the sum over independent learners.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/nets.inc")); }
/// # use shown::*;
/// use brasa_kernels::LossData;
/// use brasa_nn::{AdamConfig, Data, Step, Trainable, ValuesOfChoices};
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let mut trainable = Trainable::new(q_network(&device.clone().autodiff())?, AdamConfig::default())?;
/// let (obs, action) = (observed(&device), Tensor::from_floats([[0.0], [2.0]], &device));
/// let forward = ValuesOfChoices { obs: &obs, action: &action, sequences: None };
/// let data = Data::new([LossData::Constant(1.0)]);
/// // `Square` is half the squared distance of the value to the target.
/// let mut step = || trainable.learn(&forward, data, &Square, Step::new(1e-2, None), |_| true);
/// let losses: Vec<f64> = (0..50).map(|_| step().reports.read(0)).collect();
/// assert!(losses[49] < 0.1 * losses[0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct ValuesOfChoices<'a, O> {
    /// The observations.
    pub obs: &'a O,
    /// The actions, `[n_rows, 1]`.
    pub action: &'a Tensor<2>,
    /// How a network that remembers came to them; `None` for rows that stand alone.
    pub sequences: Option<&'a Sequences>,
}

impl<M: ActionValues> Forward<M, 1> for ValuesOfChoices<'_, M::Obs> {
    fn n_rows(&self) -> usize {
        self.action.dims()[0]
    }

    fn recorded(&self, network: &M, part: &Part) -> [Tensor<1>; 1] {
        let (obs, action) = (part.of(self.obs).into_owned(), part.of(self.action).into_owned());
        [match self.sequences {
            Some(sequences) => network.values_of_sequences(obs, action, sequences),
            None => network.values_of(obs, action),
        }]
    }

    fn gradient(&self, network: &M, part: &Part, by: &mut ByResults<'_, 1>) -> Option<Vec<f32>> {
        let (obs, action) = (part.of(self.obs), part.of(self.action));
        match self.sequences {
            Some(sequences) => network.gradient_of_sequences(&obs, &action, sequences, by),
            None => network.gradient(&obs, &action, by),
        }
    }

    fn n_groups(&self, network: &M, _: &Part, _: usize) -> usize {
        network.n_learners()
    }

    /// Sequences are not taken apart.
    fn unit(&self, network: &M) -> usize {
        if self.sequences.is_some() { self.action.n_rows().max(1) } else { network.n_learners() }
    }
}

/// Values of actions by every critic, one critic after the other. The loss is the sum over critics.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/nets.inc")); }
/// # use shown::*;
/// use brasa_kernels::LossData;
/// use brasa_nn::{AdamConfig, Data, Step, Trainable, ValuesOfActions};
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let mut trainable = Trainable::new(two_critics(&device.clone().autodiff())?, AdamConfig::default())?;
/// let (obs, action) = (observed(&device), Tensor::from_floats([[0.5], [-0.5]], &device));
/// let forward = ValuesOfActions { obs: &obs, action: &action };
/// let data = Data::new([LossData::Constant(1.0)]);
/// // `Square` is half the squared distance of the value to the target.
/// let mut step = || trainable.learn(&forward, data, &Square, Step::new(1e-2, None), |_| true);
/// let learned: Vec<_> = (0..50).map(|_| step()).collect();
/// assert_eq!(learned[0].n_groups, 2);
/// assert!(learned[49].reports.read(0) < 0.1 * learned[0].reports.read(0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct ValuesOfActions<'a, O> {
    /// The observations.
    pub obs: &'a O,
    /// The actions, `[n_rows, n_actions]`.
    pub action: &'a Tensor<2>,
}

impl<M: Critics<Action = Tensor<2>>> Forward<M, 1> for ValuesOfActions<'_, M::Obs> {
    fn n_rows(&self) -> usize {
        self.action.dims()[0]
    }

    fn recorded(&self, network: &M, part: &Part) -> [Tensor<1>; 1] {
        [one_after_the_other(network.values(part.of(self.obs).into_owned(), part.of(self.action).into_owned()))]
    }

    fn gradient(&self, network: &M, part: &Part, by: &mut ByResults<'_, 1>) -> Option<Vec<f32>> {
        network.gradient(&part.of(self.obs), &part.of(self.action), CriticsInput::Parameters, by)
    }

    fn n_groups(&self, _: &M, part: &Part, n: usize) -> usize {
        n / part.n_rows().max(1)
    }
}

/// Actions that are drawn from noise by a differentiable policy: log-probability, smallest value of critics, and mean square of the numbers.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/nets.inc")); }
/// # use shown::*;
/// use brasa_nn::{AdamConfig, Data, DrawnActions, Step, Trainable};
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let mut trainable = Trainable::new(squashed_actor(&device.clone().autodiff())?, AdamConfig::default())?;
/// let (critics, obs, noise) = (two_critics(&device)?, observed(&device), Tensor::zeros([2, 1], &device));
/// let forward = DrawnActions { critics: &critics, obs: &obs, noise: &noise };
/// // `Soft` is the loss of the actor of soft actor-critic, with an entropy coefficient of 0.1.
/// let mut step = || trainable.learn(&forward, Data::new([]), &Soft, Step::new(1e-2, None), |_| true);
/// let losses: Vec<f64> = (0..50).map(|_| step().reports.read(0)).collect();
/// assert!(losses[49] < losses[0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct DrawnActions<'a, C, O> {
    /// The critics, without autodiff: their parameters get no gradient.
    pub critics: &'a C,
    /// The observations.
    pub obs: &'a O,
    /// Standard normal, `[n_rows, noise_width]`.
    pub noise: &'a Tensor<2>,
}

impl<M, C> Forward<M, 3> for DrawnActions<'_, C, M::Obs>
where
    M: Reparameterized<Action = Tensor<2>>,
    C: Critics<Obs = M::Obs, Action = Tensor<2>>,
{
    fn n_rows(&self) -> usize {
        self.noise.dims()[0]
    }

    fn recorded(&self, network: &M, part: &Part) -> [Tensor<1>; 3] {
        let obs = part.of(self.obs).into_owned();
        let (action, log_prob) = network.rsample(obs.clone(), part.of(self.noise).into_owned());
        let values = self.critics.values(obs, action.clone());
        [log_prob, smallest_of(values), action.square().mean_dim(1).squeeze_dim(1)]
    }

    fn gradient(&self, network: &M, part: &Part, by: &mut ByResults<'_, 3>) -> Option<Vec<f32>> {
        let obs = part.of(self.obs);
        network.gradient(&obs, &part.of(self.noise), &mut |action, [log_prob]| {
            let (n, numbers) = (log_prob.len(), HostTensor::of(action)?);
            let width = numbers.len() / n.max(1);
            let squares: Vec<f32> =
                numbers.chunks_exact(width).map(|row| row.iter().map(|x| x * x).sum::<f32>() / width as f32).collect();
            let (mut by_log_prob, mut by_square) = (Vec::new(), Vec::new());
            let mut by_action = self.critics.gradient(&obs, action, CriticsInput::Actions, &mut |[values]| {
                // The first one of equal values.
                let smaller = |best: usize, i: usize| if values[i] < values[best] { i } else { best };
                let smallest: Vec<usize> =
                    (0..n).map(|row| (row..values.len()).step_by(n).fold(row, smaller)).collect();
                let value: Vec<f32> = smallest.iter().map(|i| values[*i]).collect();
                let slopes = by([log_prob, &value, &squares])?;
                let mut by_values = vec![0.0; values.len()];
                smallest.iter().zip(&slopes[1]).for_each(|(i, slope)| by_values[*i] = *slope);
                [by_log_prob, _, by_square] = slopes;
                Some([by_values])
            })?;
            let rows = by_action.chunks_exact_mut(width).zip(numbers.chunks_exact(width)).zip(&by_square);
            rows.for_each(|((by, row), slope)| {
                by.iter_mut().zip(row).for_each(|(by, x)| *by += slope * 2.0 * x / width as f32);
            });
            Some((by_action, [by_log_prob]))
        })
    }
}

/// Greedy actions of a differentiable policy: their value by the first critic.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/nets.inc")); }
/// # use shown::*;
/// use brasa_nn::{AdamConfig, Data, GreedyActions, Step, Trainable};
///
/// let device = brasa_device::open_named("cpu")?;
/// let mut trainable = Trainable::new(deterministic_actor(&device.clone().autodiff())?, AdamConfig::default())?;
/// let (critics, obs) = (two_critics(&device)?, observed(&device));
/// let forward = GreedyActions { critics: &critics, obs: &obs };
/// // `Negative` is the loss of a deterministic policy gradient: the negative value.
/// let mut step = || trainable.learn(&forward, Data::new([]), &Negative, Step::new(1e-2, None), |_| true);
/// let losses: Vec<f64> = (0..50).map(|_| step().reports.read(0)).collect();
/// assert!(losses[49] < losses[0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct GreedyActions<'a, C, O> {
    /// The critics, without autodiff: their parameters get no gradient.
    pub critics: &'a C,
    /// The observations.
    pub obs: &'a O,
}

impl<M, C> Forward<M, 1> for GreedyActions<'_, C, M::Obs>
where
    M: Deterministic<Action = Tensor<2>>,
    C: Critics<Obs = M::Obs, Action = Tensor<2>>,
{
    fn n_rows(&self) -> usize {
        self.obs.n_rows()
    }

    fn recorded(&self, network: &M, part: &Part) -> [Tensor<1>; 1] {
        let obs = part.of(self.obs).into_owned();
        let (action, _) = network.act(obs.clone(), Explore::Greedy);
        [self.critics.values(obs, action).slice(0..1).squeeze_dim(0)]
    }

    fn gradient(&self, network: &M, part: &Part, by: &mut ByResults<'_, 1>) -> Option<Vec<f32>> {
        let obs = part.of(self.obs);
        network.gradient(&obs, &mut |action, []| {
            let by_action = self.critics.gradient(&obs, action, CriticsInput::Actions, &mut |[values]| {
                let [mut by_values] = by([&values[..part.n_rows()]])?;
                by_values.resize(values.len(), 0.0);
                Some([by_values])
            })?;
            Some((by_action, []))
        })
    }
}

/// The values of every critic, `[n_critics, n_rows]`, in one column.
fn one_after_the_other(values: Tensor<2>) -> Tensor<1> {
    let [n_critics, n_rows] = values.dims();
    values.reshape([n_critics * n_rows])
}
