//! A deterministic policy over continuous actions, the actor of TD3 and other deterministic policy gradients.

use brasa_core::analytic::ByActions;
use brasa_core::env::Space;
use brasa_core::export::{ExportedPolicy, Function, Layer, Output};
use brasa_core::{
    ActionSizes, Deterministic, Explore, NetworkSizes, NoiseDistribution, NoiseSpec, Obs, Policy, RandomWarmup,
};
use brasa_kernels::{HostTensor, reused};
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::action_bounds::ActionBounds;
use crate::actor_critic::check_widths;
use crate::exported::Layers;
use crate::{Activation, Init, Mlp, MlpConfig, NnError};

/// Shape of a [`DeterministicActor`].
///
/// ```
/// use brasa_nn::{Activation, DeterministicActorConfig};
///
/// let config: DeterministicActorConfig = serde_json::from_str(r#"{ "hidden": [256, 256] }"#)?;
/// assert_eq!(config.hidden, [256, 256]);
/// assert_eq!(config.activation, Activation::Relu);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DeterministicActorConfig {
    /// Widths of the hidden layers, in units. Default 400, 300 (Fujimoto et al. 2018; Stable-Baselines3's TD3). Narrow ones
    /// cannot represent a complicated policy, wide ones are slower and need more experience.
    pub hidden: Vec<usize>,
    /// Activation of the hidden layers. Default relu (the same sources).
    pub activation: Activation,
}

impl Default for DeterministicActorConfig {
    fn default() -> Self {
        Self { hidden: vec![400, 300], activation: Activation::Relu }
    }
}

/// An MLP with actions `mu(s) = tanh(net(s))` in [-1, 1], scaled to the bounds for the environment.
///
/// The stored action is the one in [-1, 1], which critics use. [`Policy::act`] ignores exploration; a learner adds
/// noise to its result.
///
/// ```
/// use brasa_core::env::{Space, named_rng};
/// use brasa_core::{Explore, Obs, Policy, read_back};
/// use brasa_nn::{DeterministicActor, DeterministicActorConfig};
/// use burn::tensor::Tensor;
///
/// let (obs, power) = (Space::uniform_box(-1.0, 1.0, ["x", "y"]), Space::uniform_box(0.0, 10.0, ["power_kw"]));
/// let (device, rng) = (brasa_device::open_named("cpu")?, &mut named_rng(0, "weights", 0));
/// let actor = DeterministicActor::new(&DeterministicActorConfig::default(), &obs, &power, &device, rng)?;
/// let (action, ()) = actor.act(Obs::new(Tensor::ones([1, 2], &device)), Explore::Greedy);
/// // Critics see actions in [-1, 1]. The environment gets a power from 0 to 10 kW.
/// let stored = read_back(action.clone())[0];
/// assert!(stored.abs() <= 1.0 && (read_back(actor.to_env(action))[0] - (5.0 + 5.0 * stored)).abs() < 1e-5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Module, Debug)]
pub struct DeterministicActor {
    net: Mlp,
    #[module(skip)]
    bounds: ActionBounds,
}

impl DeterministicActor {
    /// An actor for these spaces, with PyTorch's default initial weights from `rng`.
    ///
    /// # Errors
    /// [`NnError`] if actions are discrete or have no finite bounds, or a setting is invalid.
    pub fn new(
        config: &DeterministicActorConfig,
        obs_space: &Space,
        action_space: &Space,
        device: &Device,
        rng: &mut (impl Rng + ?Sized),
    ) -> Result<Self, NnError> {
        check_widths("hidden", &config.hidden)?;
        let bounds = ActionBounds::new(action_space)?;
        let net = MlpConfig {
            inputs: obs_space.width(),
            hidden: config.hidden.clone(),
            outputs: Some(bounds.n_actions()),
            activation: config.activation,
            hidden_init: Init::FanIn,
            output_init: Init::FanIn,
        };
        Ok(Self { net: Mlp::new(&net, device, rng), bounds })
    }
}

impl Policy for DeterministicActor {
    type Obs = Obs;
    type Action = Tensor<2>;
    type Extra = ();

    /// One number per dimension of the action, for [`RandomWarmup::random_action`] and for exploration noise.
    /// [`Policy::act`] uses none.
    fn noise(&self) -> NoiseSpec {
        NoiseSpec { width: self.bounds.n_actions(), distribution: NoiseDistribution::Uniform, resample_every: 1 }
    }

    fn act(&self, obs: Obs, _explore: Explore) -> (Tensor<2>, ()) {
        (brasa_kernels::tanh(self.net.forward(obs.values)), ())
    }

    fn is_stochastic(&self) -> bool {
        false
    }

    fn to_env(&self, action: Tensor<2>) -> Tensor<2> {
        self.bounds.scale(action)
    }

    fn sizes(&self) -> Option<NetworkSizes> {
        let action = ActionSizes::Numbers(self.bounds.n_actions());
        Some(NetworkSizes { obs: self.net.inputs(0), privileged: 0..0, action, n_agents: 1 })
    }

    fn exported(&self) -> Option<ExportedPolicy> {
        let mut layers = Layers::default();
        layers.mlp(&self.net);
        layers.push(Layer::Activation(Function::Tanh));
        layers.scale(&self.bounds);
        Some(layers.policy(1, Output::Real))
    }
}

impl RandomWarmup for DeterministicActor {
    fn random_action(&self, _obs: Obs, noise: Tensor<2>) -> Tensor<2> {
        self.bounds.uniform(noise)
    }
}

impl Deterministic for DeterministicActor {
    fn gradient(&self, obs: &Obs, by: &mut ByActions<'_, Tensor<2>, 0>) -> Option<Vec<f32>> {
        let (n_rows, obs) = (obs.values.dims()[0], HostTensor::of(&obs.values)?);
        let mut net = self.net.on_host([])?;
        if n_rows == 0 {
            return None;
        }
        let actions: Vec<f32> = net.forward(&obs, n_rows).iter().map(|x| brasa_number::tanh(*x)).collect();
        let (mut by_output, []) = by(&HostTensor::tensor(actions.clone(), [n_rows, self.bounds.n_actions()]), [])?;
        // d tanh = 1 - a^2.
        by_output.iter_mut().zip(actions).for_each(|(by, action)| *by *= 1.0 - action * action);
        let mut gradient = reused(net.n_params());
        net.backward(&obs, &by_output, Some(&mut gradient), None);
        Some(gradient)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AdamConfig, Boxed, DeterministicActorRole, Step, Trainable, named_params};
    use brasa_core::env::named_rng;

    fn actor(hidden: Vec<usize>) -> Result<DeterministicActor, NnError> {
        let obs = Space::uniform_box(-1.0, 1.0, ["x", "y", "z"]);
        let action = Space::named_box([("a", -2.0, 2.0), ("b", 0.0, 10.0)]);
        let config = DeterministicActorConfig { hidden, ..DeterministicActorConfig::default() };
        let device = brasa_test::device().autodiff();
        DeterministicActor::new(&config, &obs, &action, &device, &mut named_rng(4, "weights", 0))
    }

    fn obs() -> Obs {
        Obs::new(Tensor::from_floats([[0.3, -0.2, 0.9], [-1.0, 0.5, 0.1]], &brasa_test::device()))
    }

    fn values(tensor: Tensor<2>) -> Vec<f32> {
        tensor.into_data().iter::<f32>().collect()
    }

    #[test]
    fn actions_do_not_depend_on_noise_and_stay_within_bounds() {
        let actor = actor(vec![16]).expect("it is valid").valid();
        let noise = Tensor::ones([2, actor.noise().width], &brasa_test::device());
        let greedy = actor.act(obs(), Explore::Greedy).0;
        assert_eq!(values(greedy.clone()), values(actor.act(obs(), Explore::Sample(noise.clone())).0));
        assert!(values(greedy.clone()).iter().all(|x| x.abs() < 1.0), "{greedy}");
        let ends = Tensor::from_floats([[-1.0, 1.0], [1.0, -1.0]], &brasa_test::device());
        assert_eq!(values(actor.to_env(ends)), [-2.0, 10.0, 2.0, 0.0]);
        assert_eq!(values(actor.random_action(obs(), noise * 0.25)), [-0.5; 4]);
    }

    #[test]
    fn gradients_pass_through_actions_and_a_boxed_actor_learns_alike() {
        fn learned<A: RandomWarmup<Obs = Obs, Action = Tensor<2>> + Module>(actor: A) -> Tensor<2> {
            let mut trainable = Trainable::new(actor, AdamConfig::default()).expect("it has parameters");
            for _ in 0..300 {
                let loss = (trainable.module().act(obs(), Explore::Greedy).0 - 0.5).square().mean();
                trainable.step(&loss, Step::new(1e-2, None));
            }
            trainable.valid().act(obs(), Explore::Greedy).0
        }
        let plain = actor(vec![16]).expect("it is valid");
        let boxed: Boxed<DeterministicActorRole> = Boxed::new(plain.clone());
        assert_eq!(named_params(&boxed), named_params(&plain));
        let action = learned(plain);
        assert!(values(action.clone()).iter().all(|x| (x - 0.5).abs() < 1e-2), "{action}");
        assert_eq!(values(learned(boxed)), values(action));
    }

    #[test]
    fn a_layer_without_units_is_refused() {
        let message = actor(vec![16, 0]).expect_err("a layer has no units").to_string();
        assert_eq!(message, "`hidden` must have widths of at least 1, got [16, 0]");
    }
}
