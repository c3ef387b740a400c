//! A Gaussian policy squashed by tanh with differentiable samples, the actor of soft actor-critic.

use brasa_core::analytic::ByActions;
use brasa_core::env::{InvalidField, Space, field};
use brasa_core::export::{ExportedPolicy, Function, Layer, Output};
use brasa_core::{ActionSizes, Explore, NetworkSizes, NoiseSpec, Obs, Policy, RandomWarmup, Reparameterized};
use brasa_kernels::{HostColumns, HostColumnsMut, HostMlp, HostTensor, RowSlopes};
use brasa_number::NormalDraw;
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::action_bounds::ActionBounds;
use crate::actor_critic::check_widths;
use crate::branches::Branches;
use crate::distribution::gaussian;
use crate::exported::Layers;
use crate::gaussian_std::{self, GaussianStd};
use crate::{Activation, Init, Linear, Mlp, MlpConfig, NnError, StdKind};

/// Largest magnitude of a mean before tanh with state-dependent exploration (Stable-Baselines3): for larger means tanh
/// saturates and suppresses the noise.
const SDE_MEAN_LIMIT: f32 = 2.0;

/// Shape of a [`SquashedActor`].
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/nets.inc")); }
/// # use shown::*;
/// use brasa_core::env::named_rng;
/// use brasa_nn::{SquashedActor, SquashedActorConfig, StdKind};
///
/// let config: SquashedActorConfig = serde_json::from_str(r#"{ "hidden": [64], "log_std_init": -1.0 }"#)?;
/// assert_eq!((config.std, config.log_std_init), (StdKind::Dependent, Some(-1.0)));
/// let invalid = SquashedActorConfig { std: StdKind::Independent, ..config };
/// let (device, rng) = (brasa_device::open_named("cpu")?, &mut named_rng(0, "weights", 0));
/// let error = SquashedActor::new(&invalid, &obs_space(), &power(), &device, rng).unwrap_err();
/// assert_eq!(error.to_string(), "`std` must be dependent or state-dependent, got independent");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SquashedActorConfig {
    /// Widths of the hidden layers. Default 256, 256 (Haarnoja et al. 2018).
    pub hidden: Vec<usize>,
    /// Activation of the hidden layers. Default relu (the same source).
    pub activation: Activation,
    /// Parameterization of the standard deviation: `dependent` on the observation (default) or `state-dependent`.
    pub std: StdKind,
    /// Logarithm of the initial standard deviation, before tanh. Default -3 with state-dependent exploration (Stable-Baselines3), and
    /// otherwise about 0, by PyTorch's default weights. With many actions, a small value keeps the first policy near the middle of
    /// its actions instead of far from it in all.
    pub log_std_init: Option<f64>,
    /// With state-dependent exploration: steps with the same noise; default all steps between two blocks of updates.
    pub sde_sample_freq: Option<usize>,
}

impl Default for SquashedActorConfig {
    fn default() -> Self {
        Self {
            hidden: vec![256, 256],
            activation: Activation::Relu,
            std: StdKind::Dependent,
            log_std_init: None,
            sde_sample_freq: None,
        }
    }
}

/// An MLP with actions `tanh(mean + std noise)` in [-1, 1], scaled to the bounds for the environment.
///
/// The stored action is the one in [-1, 1]; critics and target entropy refer to it.
///
/// ```
/// use brasa_core::env::{Space, named_rng};
/// use brasa_core::{Obs, Reparameterized, read_back};
/// use brasa_nn::{SquashedActor, SquashedActorConfig};
/// use burn::tensor::Tensor;
///
/// let (obs, power) = (Space::uniform_box(-1.0, 1.0, ["x", "y"]), Space::uniform_box(-5.0, 5.0, ["power_kw"]));
/// let (device, rng) = (brasa_device::open_named("cpu")?, &mut named_rng(0, "weights", 0));
/// let actor = SquashedActor::new(&SquashedActorConfig::default(), &obs, &power, &device, rng)?;
/// let (seen, noise) = (Obs::new(Tensor::zeros([8, 2], &device)), Tensor::ones([8, actor.noise_width()], &device));
/// let (action, log_prob) = actor.rsample(seen, noise);
/// assert_eq!(log_prob.dims(), [8]);
/// assert!(read_back(action).iter().all(|action| action.abs() < 1.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Module, Debug)]
pub struct SquashedActor {
    body: Mlp,
    mean: Linear,
    gaussian_std: GaussianStd,
    #[module(skip)]
    bounds: ActionBounds,
    #[module(skip)]
    state_dependent: bool,
    #[module(skip)]
    resample_every: usize,
}

impl SquashedActor {
    /// An actor for these spaces, with PyTorch's default initial weights from `rng`.
    ///
    /// # Errors
    /// [`NnError`] if actions are discrete or have no finite bounds, or a setting is invalid.
    pub fn new(
        config: &SquashedActorConfig,
        obs_space: &Space,
        action_space: &Space,
        device: &Device,
        rng: &mut (impl Rng + ?Sized),
    ) -> Result<Self, NnError> {
        check_widths("hidden", &config.hidden)?;
        if config.std == StdKind::Independent {
            let value = "independent";
            return Err(NnError::Field(InvalidField::new("std", "must be dependent or state-dependent", value)));
        }
        let explores = config.sde_sample_freq.is_none() || config.std == StdKind::StateDependent;
        let rule = "must be left out: it has an effect with `std = \"state-dependent\"` alone";
        field::rule(explores, "sde_sample_freq", rule, config.sde_sample_freq.unwrap_or_default())?;
        field::finite("log_std_init", config.log_std_init.unwrap_or_default())?;
        let bounds = ActionBounds::new(action_space)?;
        let body = MlpConfig {
            inputs: obs_space.width(),
            hidden: config.hidden.clone(),
            outputs: None,
            activation: config.activation,
            hidden_init: Init::FanIn,
            output_init: Init::FanIn,
        };
        let width = config.hidden.last().copied().unwrap_or(body.inputs);
        let outputs = bounds.n_actions();
        let body = Mlp::new(&body, device, rng);
        let mean = Linear::new(width, outputs, Init::FanIn, device, rng);
        let gaussian_std =
            GaussianStd::new(config.std, [width, outputs], config.log_std_init, Init::FanIn, device, rng);
        let gaussian_std = gaussian_std.teaching();
        Ok(Self {
            body,
            mean,
            gaussian_std,
            bounds,
            state_dependent: config.std == StdKind::StateDependent,
            resample_every: gaussian_std::resample_every(config.sde_sample_freq),
        })
    }

    /// Features and mean, before tanh.
    fn forward(&self, obs: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
        let hidden = self.body.forward(obs);
        let mean = self.mean.forward(hidden.clone(), None);
        let mean = if self.state_dependent { mean.clamp(-SDE_MEAN_LIMIT, SDE_MEAN_LIMIT) } else { mean };
        (hidden, mean)
    }

    /// Actions, and their log-probabilities, from features, means and noise for each number of an action.
    fn sample(&self, hidden: &Tensor<2>, mean: Tensor<2>, noise: Tensor<2>) -> (Tensor<2>, Tensor<1>) {
        let (log_std, range) = match self.gaussian_std.unbounded(hidden) {
            Some((log_std, (low, high))) => (log_std, Some((f64::from(low), f64::from(high)))),
            None => (self.gaussian_std.log_std(hidden), None),
        };
        gaussian::squashed_sample_within(mean, log_std, range, noise)
    }
}

impl Policy for SquashedActor {
    type Obs = Obs;
    type Action = Tensor<2>;
    type Extra = ();

    fn noise(&self) -> NoiseSpec {
        self.gaussian_std.noise(self.bounds.n_actions(), self.resample_every)
    }

    fn act(&self, obs: Obs, explore: Explore) -> (Tensor<2>, ()) {
        let (hidden, mean) = self.forward(obs.values);
        let u = match explore {
            Explore::Sample(noise) if self.state_dependent => {
                let log_std = self.gaussian_std.log_std(&hidden);
                mean + self.gaussian_std.deviate(&hidden, log_std, noise)
            }
            Explore::Sample(noise) => return (self.sample(&hidden, mean, noise).0, ()),
            Explore::Greedy => mean,
        };
        (brasa_kernels::tanh(u), ())
    }

    fn to_env(&self, action: Tensor<2>) -> Tensor<2> {
        self.bounds.scale(action)
    }

    fn sizes(&self) -> Option<NetworkSizes> {
        let action = ActionSizes::Numbers(self.bounds.n_actions());
        Some(NetworkSizes { obs: self.body.inputs(self.mean.inputs()), privileged: 0..0, action, n_agents: 1 })
    }

    fn exported(&self) -> Option<ExportedPolicy> {
        let mut layers = Layers::default();
        layers.mlp(&self.body);
        layers.linear(&self.mean);
        if self.state_dependent {
            let n = self.bounds.n_actions();
            layers.push(Layer::Clip { low: vec![-SDE_MEAN_LIMIT; n], high: vec![SDE_MEAN_LIMIT; n] });
        }
        layers.push(Layer::Activation(Function::Tanh));
        layers.scale(&self.bounds);
        Some(layers.policy(1, Output::Real))
    }
}

impl RandomWarmup for SquashedActor {
    fn random_action(&self, _obs: Obs, noise: Tensor<2>) -> Tensor<2> {
        self.bounds.uniform(noise)
    }
}

impl Reparameterized for SquashedActor {
    fn noise_width(&self) -> usize {
        self.bounds.n_actions()
    }

    fn rsample(&self, obs: Obs, noise: Tensor<2>) -> (Tensor<2>, Tensor<1>) {
        let (hidden, mean) = self.forward(obs.values);
        self.sample(&hidden, mean, noise)
    }

    fn gradient(&self, obs: &Obs, noise: &Tensor<2>, by: &mut ByActions<'_, Tensor<2>, 1>) -> Option<Vec<f32>> {
        let (log_std_head, (low, high)) = self.gaussian_std.dependent()?;
        let ([n_rows, n], obs, noise) = (noise.dims(), HostTensor::of(&obs.values)?, HostTensor::of(noise)?);
        if n_rows == 0 {
            return None;
        }
        let mut branches = [HostMlp::default(), HostMlp::default()];
        self.mean.push_to(&mut branches[0], None)?;
        log_std_head.push_to(&mut branches[1], None)?;
        let mut networks = Branches { body: self.body.on_host([])?, branches };
        let [mean, unbounded] = networks.forward(&obs, n_rows);
        let log_std_range = Some((f64::from(low), f64::from(high)));
        let (rule, mut slopes) = (NormalDraw { squash: true, log_std_range }, RowSlopes::default());
        let (mut action, mut log_prob) = (vec![0.0; n_rows * n], vec![0.0; n_rows]);
        let columns = |numbers| HostColumns { numbers, per_row: n };
        let own = HostColumnsMut { numbers: &mut action, per_row: n };
        let results = [columns(mean), columns(unbounded)];
        slopes.forward(rule, [n_rows, n], results, Some(columns(&noise)), None, [own], [&mut log_prob]);
        let (by_action, [by_log_prob]) = by(&HostTensor::tensor(action, [n_rows, n]), [&log_prob])?;
        let [mut by_mean, mut by_log_std] = [vec![0.0; n_rows * n], vec![0.0; n_rows * n]];
        let to = [&mut by_mean, &mut by_log_std].map(|numbers| HostColumnsMut { numbers, per_row: n });
        slopes.backward([&by_action], [&by_log_prob], to);
        Some(networks.backward(&obs, [&by_mean, &by_log_std], None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brasa_core::env::named_rng;

    /// The mean logarithm of the standard deviations that an actor starts with.
    fn log_std(std: StdKind, log_std_init: Option<f64>) -> f32 {
        let device = brasa_device::open_named("cpu").expect("flex is a default feature");
        let space = |n: usize| Space::uniform_box(-1.0, 1.0, (0..n).map(|i| i.to_string()));
        let config = SquashedActorConfig { std, log_std_init, ..Default::default() };
        let rng = &mut named_rng(1, "weights", 0);
        let actor = SquashedActor::new(&config, &space(5), &space(40), &device, rng).expect("valid");
        let obs = Tensor::<2>::ones([1, 5], &device);
        let (hidden, _) = actor.forward(obs);
        actor.gaussian_std.log_std(&hidden).mean().into_scalar::<f32>()
    }

    #[test]
    fn the_first_noise_is_as_large_as_asked() {
        assert!(log_std(StdKind::Dependent, None).abs() < 0.1);
        assert!((log_std(StdKind::Dependent, Some(-2.0)) + 2.0).abs() < 0.1);
        let started = |at| log_std(StdKind::StateDependent, at);
        assert_eq!(started(None), started(Some(-3.0)));
        assert!((started(Some(-4.0)) - started(None) + 1.0).abs() < 0.01);
        let device = brasa_device::open_named("cpu").expect("flex is a default feature");
        let config = SquashedActorConfig { log_std_init: Some(f64::NAN), ..Default::default() };
        let space = Space::uniform_box(-1.0, 1.0, ["a"]);
        let error = SquashedActor::new(&config, &space, &space, &device, &mut named_rng(1, "weights", 0)).err();
        assert!(error.expect("not finite").to_string().contains("log_std_init"));
    }
}
