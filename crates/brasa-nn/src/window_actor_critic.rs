//! An actor-critic that sees its last observations.

use brasa_core::analytic::ByResults;
use brasa_core::env::{Space, field};
use brasa_core::export::{ExportedPolicy, Layer, Memory};
use brasa_core::{
    ActorCritic, Decision, Evaluation, Explore, NetworkSizes, NoiseSpec, Obs, Policy, PolicyState, Sequences,
};
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::{ActorCriticConfig, MlpActorCritic, NnError};

/// Shape of an actor-critic with a window of observations.
///
/// ```
/// use brasa_nn::WindowActorCriticConfig;
///
/// let text = r#"{ "frames": 8, "network": { "actor_hidden": [32] } }"#;
/// let config: WindowActorCriticConfig = serde_json::from_str(text)?;
/// assert_eq!((config.frames, &config.network.actor_hidden[..]), (8, &[32][..]));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WindowActorCriticConfig {
    /// Observations that the network sees, the current one included. Default 4. Before an episode begins, they are 0.
    pub frames: usize,
    /// The network on all of them.
    pub network: ActorCriticConfig,
}

impl Default for WindowActorCriticConfig {
    fn default() -> Self {
        Self { frames: 4, network: ActorCriticConfig::default() }
    }
}

/// An MLP on the last observations of an episode: the simplest memory, and what a recurrent network is compared with.
///
/// What it remembers is the window itself. It does not depend on parameters, so nothing is learned through time, and sequences of one step
/// (`ppo.sequence_length = 1`) give the gradients of longer ones.
///
/// ```
/// use brasa_core::env::{Space, named_rng};
/// use brasa_core::{Explore, Obs, Policy, PolicyState};
/// use brasa_nn::{WindowActorCritic, WindowActorCriticConfig};
/// use burn::tensor::Tensor;
///
/// let (obs, action) = (Space::uniform_box(-1.0, 1.0, ["x", "y"]), Space::Discrete(3));
/// let (device, rng) = (brasa_device::open_named("cpu")?, &mut named_rng(0, "weights", 0));
/// let policy = WindowActorCritic::new(&WindowActorCriticConfig::default(), &obs, &action, &device, rng)?;
/// // Three earlier observations of two numbers.
/// assert_eq!(policy.state_width(), 6);
/// let mut state = PolicyState::new(1, 6, &device);
/// policy.act_from(Obs::new(Tensor::from_floats([[0.5, 0.25]], &device)), &mut state, Explore::Greedy);
/// let window = state.numbers.expect("it remembers").into_data();
/// assert_eq!(window.iter::<f32>().collect::<Vec<_>>(), [0.0, 0.0, 0.0, 0.0, 0.5, 0.25]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Module, Debug)]
pub struct WindowActorCritic {
    network: MlpActorCritic,
    #[module(skip)]
    obs_width: usize,
    #[module(skip)]
    frames: usize,
}

impl WindowActorCritic {
    /// A network for these spaces, with initial weights from `rng`.
    ///
    /// # Errors
    /// [`NnError`] if there is no frame, and as [`MlpActorCritic::new`].
    pub fn new(
        config: &WindowActorCriticConfig,
        obs_space: &Space,
        action_space: &Space,
        device: &Device,
        rng: &mut (impl Rng + ?Sized),
    ) -> Result<Self, NnError> {
        field::at_least_one("frames", config.frames as u64)?;
        let (obs_width, frames) = (obs_space.width(), config.frames);
        let bytes = 4.0 * obs_width as f64 * frames as f64;
        field::fits_in_memory("frames", frames, bytes)?;
        let window = Space::shaped(f32::NEG_INFINITY, f32::INFINITY, [frames, obs_width]);
        let network = MlpActorCritic::new(&config.network, &window, action_space, device, rng)?;
        Ok(Self { network, obs_width, frames })
    }

    /// The whole window: what is remembered, then the current observation.
    fn seen(&self, obs: Obs, state: &PolicyState) -> Obs {
        let values = match &state.numbers {
            Some(before) => Tensor::cat(vec![before.clone(), obs.values], 1),
            None => {
                let [n_rows, _] = obs.values.dims();
                let before = PolicyState::new(n_rows, self.state_width(), &obs.values.device());
                before.numbers.map_or(obs.values.clone(), |before| Tensor::cat(vec![before, obs.values], 1))
            }
        };
        Obs { values, mask: obs.mask }
    }

    /// The windows of all steps of sequences.
    fn seen_in(&self, obs: Obs, sequences: &Sequences) -> Obs {
        let windows = sequences.steps(|rows, before| {
            let window = Tensor::cat(vec![before, obs.values.clone().slice(rows)], 1);
            let after = window.clone().narrow(1, self.obs_width, self.state_width());
            (window, after)
        });
        Obs { values: Tensor::cat(windows, 0), mask: obs.mask }
    }

    /// What is remembered after a window.
    fn after(&self, window: &Tensor<2>) -> PolicyState {
        let width = self.state_width();
        PolicyState { numbers: (width > 0).then(|| window.clone().narrow(1, self.obs_width, width)) }
    }
}

impl Policy for WindowActorCritic {
    type Obs = Obs;
    type Action = Tensor<2>;
    type Extra = Decision;

    fn noise(&self) -> NoiseSpec {
        self.network.noise()
    }

    fn act(&self, obs: Obs, explore: Explore) -> (Tensor<2>, Decision) {
        self.act_from(obs, &mut PolicyState::default(), explore)
    }

    fn state_width(&self) -> usize {
        (self.frames - 1) * self.obs_width
    }

    fn act_from(&self, obs: Obs, state: &mut PolicyState, explore: Explore) -> (Tensor<2>, Decision) {
        let seen = self.seen(obs, state);
        *state = self.after(&seen.values);
        let (action, mut decision) = self.network.act(seen.clone(), explore);
        // Values of a whole rollout cannot be computed without what was remembered.
        decision.value.get_or_insert_with(|| self.network.value(seen));
        (action, decision)
    }

    fn to_env(&self, action: Tensor<2>) -> Tensor<2> {
        self.network.to_env(action)
    }

    fn sizes(&self) -> Option<NetworkSizes> {
        self.network.sizes().map(|sizes| NetworkSizes { obs: self.obs_width, ..sizes })
    }

    fn exported(&self) -> Option<ExportedPolicy> {
        let mut policy = self.network.exported()?;
        policy.layers.insert(0, Layer::Memory(Memory::Window { frames: self.frames }));
        Some(ExportedPolicy { obs_width: self.obs_width, ..policy })
    }
}

impl ActorCritic for WindowActorCritic {
    fn value(&self, obs: Obs) -> Tensor<1> {
        self.value_from(obs, &PolicyState::default())
    }

    fn value_from(&self, obs: Obs, state: &PolicyState) -> Tensor<1> {
        self.network.value(self.seen(obs, state))
    }

    fn evaluate(&self, obs: Obs, action: Tensor<2>) -> Evaluation {
        self.network.evaluate(self.seen(obs, &PolicyState::default()), action)
    }

    fn evaluate_sequences(&self, obs: Obs, action: Tensor<2>, sequences: &Sequences) -> Evaluation {
        self.network.evaluate(self.seen_in(obs, sequences), action)
    }

    fn choice(&self, obs: &Obs) -> Option<Tensor<1>> {
        self.network.choice(obs)
    }

    fn gradient(&self, obs: &Obs, action: &Tensor<2>, by: &mut ByResults<'_, 3>) -> Option<Vec<f32>> {
        self.network.gradient(&self.seen(obs.clone(), &PolicyState::default()), action, by)
    }

    fn gradient_of_sequences(
        &self,
        obs: &Obs,
        action: &Tensor<2>,
        sequences: &Sequences,
        by: &mut ByResults<'_, 3>,
    ) -> Option<Vec<f32>> {
        self.network.gradient(&self.seen_in(obs.clone(), sequences), action, by)
    }

    fn std(&self) -> Option<Tensor<1>> {
        self.network.std()
    }
}
