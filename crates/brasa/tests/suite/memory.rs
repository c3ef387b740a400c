//! Policies that remember solve what others cannot.
#![allow(clippy::expect_used)]

use crate::common;

use brasa::a2c::{A2c, A2cConfig};
use brasa::buffers::{PrioritizedConfig, ReplayConfig, Rollout, SequenceConfig};
use brasa::classic::probe::Recall;
use brasa::contracts::{ActionValues, ActorCritic, HostEnv, Obs, OnPolicyLearner, PolicyState, Schedule};
use brasa::dqn::{Dqn, DqnConfig};
use brasa::env::{EnvBatch, EnvRng, EnvSpec, named_rng};
use brasa::nn::{
    ActorCriticConfig, ActorCriticModule, AdamConfig, Init, MlpActorCritic, ModuleActorCritic, NnError, Persist,
    QNetwork, QNetworkConfig, RecurrentActorCritic, RecurrentActorCriticConfig, RecurrentKind, RecurrentQNetwork,
    RecurrentQNetworkConfig, WindowActorCritic, WindowActorCriticConfig, initialized,
};
use brasa::ppo::{Ppo, PpoConfig};
use brasa::train::{OffPolicy, OffPolicyConfig, OnPolicy, Run, Training};
use brasa_test::device;
use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::activation::sigmoid;
use burn::tensor::{Device, Tensor};
use common::{episodes_of, mean_return};

/// A network that is trained.
trait Network: ActorCritic<Obs = Obs, Action = Tensor<2>> + Module {}

impl<M: ActorCritic<Obs = Obs, Action = Tensor<2>> + Module> Network for M {}

/// The mean return without exploration.
fn trained<B, L>(env: HostEnv<B>, learner: L, total_env_steps: u64) -> f64
where
    B: EnvBatch,
    L: OnPolicyLearner<Batch = Rollout<Obs, Tensor<2>>> + Persist,
    L::Policy: Network,
{
    let mut training = OnPolicy::new(env, learner, Run { total_env_steps, seed: 1 }).expect("it starts");
    while !training.is_done() {
        training.iterate().expect("it goes on");
    }
    mean_return(&training.policy(), &mut episodes_of(8, None, Recall::default), 64, 99)
}

type Make<'a, M> = &'a dyn Fn(&EnvSpec, &Device, &mut EnvRng) -> Result<M, NnError>;

fn with_ppo<M: Network>(sequence_length: Option<usize>, make: Make<'_, M>) -> f64 {
    let env = episodes_of(8, None, Recall::default);
    let network = make(env.spec(), &device().autodiff(), &mut named_rng(1, "weights", 0)).expect("valid");
    let config = PpoConfig {
        n_steps: 32,
        batch_size: 64,
        n_epochs: 8,
        learning_rate: Schedule::linear(0.01, 0.0),
        gamma: 0.9,
        sequence_length,
        ..PpoConfig::default()
    };
    trained(env, Ppo::new(network, config, 1).expect("valid"), 24_000)
}

fn recurrent(
    kind: RecurrentKind,
    shared: bool,
) -> impl Fn(&EnvSpec, &Device, &mut EnvRng) -> Result<RecurrentActorCritic, NnError> {
    let config = RecurrentActorCriticConfig {
        kind,
        shared,
        width: 12,
        actor_hidden: vec![],
        critic_hidden: vec![],
        ..Default::default()
    };
    move |spec, device, rng| RecurrentActorCritic::new(&config, &spec.obs, &spec.action, device, rng)
}

fn mlp() -> ActorCriticConfig {
    ActorCriticConfig { actor_hidden: vec![16], critic_hidden: vec![16], ..ActorCriticConfig::default() }
}

#[test]
fn recurrent_networks_recall_what_they_saw() {
    for kind in [RecurrentKind::Lstm, RecurrentKind::Gru] {
        for shared in [false, true] {
            let mean = with_ppo(None, &recurrent(kind, shared));
            assert_eq!(mean, 1.0, "{kind:?}, shared: {shared}");
        }
    }
    // The cue is in an earlier sequence: it is known by the state of its end alone.
    let mean = with_ppo(Some(8), &recurrent(RecurrentKind::Lstm, false));
    assert_eq!(mean, 1.0, "short sequences");
}

#[test]
fn a_window_recalls_what_it_reaches() {
    let window = |frames| {
        let config = WindowActorCriticConfig { frames, network: mlp() };
        move |spec: &EnvSpec, device: &Device, rng: &mut EnvRng| {
            WindowActorCritic::new(&config, &spec.obs, &spec.action, device, rng)
        }
    };
    assert_eq!(with_ppo(Some(1), &window(4)), 1.0);
    assert_eq!(with_ppo(None, &window(4)), 1.0);
    let short = with_ppo(Some(1), &window(3));
    assert!((0.3..0.7).contains(&short), "{short}");
}

#[test]
fn without_memory_half_of_it_is_luck() {
    let mean = with_ppo(None, &|spec: &EnvSpec, device: &Device, rng: &mut EnvRng| {
        MlpActorCritic::new(&mlp(), &spec.obs, &spec.action, device, rng)
    });
    assert!((0.3..0.7).contains(&mean), "{mean}");
}

#[test]
fn a2c_learns_through_time_too() {
    let env = episodes_of(8, None, Recall::default);
    let network =
        recurrent(RecurrentKind::Gru, false)(env.spec(), &device().autodiff(), &mut named_rng(1, "weights", 0));
    let config = A2cConfig {
        n_steps: 4,
        learning_rate: Schedule::linear(0.01, 0.0),
        gamma: 0.9,
        ent_coef: 0.01,
        optimizer: AdamConfig::default().into(),
        ..A2cConfig::default()
    };
    assert_eq!(trained(env, A2c::new(network.expect("valid"), config, 1).expect("valid"), 64_000), 1.0);
}

#[test]
fn settings_without_an_effect_are_rejected() {
    let spec = EnvSpec::new(brasa::env::Space::Discrete(2), brasa::env::Space::Discrete(2), 1);
    let rng = &mut named_rng(1, "weights", 0);
    let plain = MlpActorCritic::new(&mlp(), &spec.obs, &spec.action, &device().autodiff(), rng).expect("valid");
    let config = PpoConfig { sequence_length: Some(64), ..PpoConfig::default() };
    let error = Ppo::new(plain, config, 0).expect_err("no memory").to_string();
    assert_eq!(error, "`sequence_length` must be left out: the network has no memory, got 64");
    let remembers =
        || recurrent(RecurrentKind::Gru, true)(&spec, &device().autodiff(), &mut named_rng(1, "weights", 0));
    let config = PpoConfig { accumulation_steps: 2, ..PpoConfig::default() };
    let error = Ppo::new(remembers().expect("valid"), config, 0).expect_err("parts").to_string();
    assert_eq!(error, "`accumulation_steps` must be 1 for a network with memory: sequences are not taken apart, got 2");
    let config = PpoConfig { sequence_length: Some(7), ..PpoConfig::default() };
    let error = Ppo::new(remembers().expect("valid"), config, 0).expect_err("no divisor").to_string();
    assert_eq!(error, "`sequence_length` must divide `n_steps`, got 7 for 2048");
}

/// A module of Burn that remembers: see `examples/own_recurrent.rs`.
#[derive(Module, Debug)]
struct Own {
    gate: Linear,
    candidate: Linear,
    actor: Linear,
    critic: Linear,
}

impl ActorCriticModule for Own {
    type Obs = Obs;

    fn forward(&self, obs: Obs) -> (Tensor<2>, Tensor<1>) {
        let state = Tensor::zeros([obs.values.dims()[0], 12], &obs.values.device());
        let (outputs, values, _) = self.step(obs, state);
        (outputs, values)
    }

    fn state_width(&self) -> usize {
        12
    }

    fn step(&self, obs: Obs, state: Tensor<2>) -> (Tensor<2>, Tensor<1>, Tensor<2>) {
        let x = Tensor::cat(vec![obs.values, state.clone()], 1);
        let change = self.candidate.forward(x.clone()).tanh() - state.clone();
        let state = state + sigmoid(self.gate.forward(x)) * change;
        (self.actor.forward(state.clone()), self.critic.forward(state.clone()).squeeze_dim(1), state)
    }
}

#[test]
fn a_custom_module_remembers() {
    let mean = with_ppo(None, &|spec: &EnvSpec, device: &Device, rng: &mut EnvRng| {
        let layer = |inputs, outputs| LinearConfig::new(inputs, outputs).init(device);
        let own = Own { gate: layer(13, 12), candidate: layer(13, 12), actor: layer(12, 2), critic: layer(12, 1) };
        ModuleActorCritic::new(initialized(own, Init::FanIn, rng), spec)
    });
    assert_eq!(mean, 1.0);
}

/// The mean return of DQN, which learns from sequences.
fn with_dqn<N>(network: impl Fn(&EnvSpec, &Device, &mut EnvRng) -> N, replay: ReplayConfig) -> f64
where
    N: ActionValues<Obs = Obs> + Module,
{
    let env = episodes_of(8, None, Recall::default);
    let network = network(env.spec(), &device().autodiff(), &mut named_rng(1, "weights", 0));
    let config = DqnConfig {
        learning_rate: Schedule::linear(5e-3, 0.0),
        gamma: 0.9,
        target_update_interval: 50,
        exploration_fraction: 0.5,
        ..DqnConfig::default()
    };
    let loop_config = OffPolicyConfig {
        learning_starts: 500,
        train_freq: 8,
        updates_per_step: 0.125,
        batch_size: 64,
        replay: ReplayConfig { capacity: 8_000, ..replay },
        ..OffPolicyConfig::default()
    };
    let run = Run { total_env_steps: 12_000, seed: 1 };
    let learner = Dqn::new(network, config).expect("valid");
    let mut training = OffPolicy::new(env, learner, loop_config, run).expect("it starts");
    while !training.is_done() {
        training.iterate().expect("it goes on");
    }
    mean_return(&training.policy(), &mut episodes_of(8, None, Recall::default), 64, 99)
}

fn remembering(kind: RecurrentKind) -> impl Fn(&EnvSpec, &Device, &mut EnvRng) -> RecurrentQNetwork {
    let config = RecurrentQNetworkConfig { kind, width: 12, hidden: vec![], ..Default::default() };
    move |spec, device, rng| RecurrentQNetwork::new(&config, &spec.obs, &spec.action, device, rng).expect("valid")
}

fn sequences(length: usize, burn_in: usize) -> ReplayConfig {
    let sequences = Some(SequenceConfig { length, burn_in, ..SequenceConfig::default() });
    ReplayConfig { sequences, ..ReplayConfig::default() }
}

#[test]
fn dqn_recalls_what_it_saw() {
    for kind in [RecurrentKind::Lstm, RecurrentKind::Gru] {
        assert_eq!(with_dqn(remembering(kind), sequences(8, 0)), 1.0, "{kind:?}");
    }
    // Sequences of two steps: the cue is known from the burn-in alone.
    let prioritized = Some(PrioritizedConfig::default());
    let several = ReplayConfig { prioritized, n_step: 2, ..sequences(2, 4) };
    assert_eq!(with_dqn(remembering(RecurrentKind::Gru), several), 1.0, "burn-in");
}

#[test]
fn dqn_without_memory_has_luck_in_half_of_it() {
    let plain = |spec: &EnvSpec, device: &Device, rng: &mut EnvRng| {
        QNetwork::new(&QNetworkConfig::default(), &spec.obs, &spec.action, device, rng).expect("valid")
    };
    let mean = with_dqn(plain, ReplayConfig::default());
    assert!((0.3..0.7).contains(&mean), "{mean}");
}

/// The first outputs as values; the other methods for memory follow from two.
impl ActionValues for Own {
    type Obs = Obs;

    fn values(&self, obs: Obs) -> Tensor<2> {
        self.values_from(obs, &mut PolicyState::default())
    }

    fn n_actions(&self) -> usize {
        2
    }

    fn action_mask(&self, obs: &Obs) -> Option<Tensor<2>> {
        obs.mask.clone()
    }

    fn state_width(&self) -> usize {
        12
    }

    fn values_from(&self, obs: Obs, state: &mut PolicyState) -> Tensor<2> {
        let zeros = Tensor::zeros([obs.values.dims()[0], 12], &obs.values.device());
        let (values, _, after) = self.step(obs, state.numbers.take().unwrap_or(zeros));
        state.numbers = Some(after);
        values
    }
}

#[test]
fn dqn_with_a_custom_module_remembers() {
    let own = |_: &EnvSpec, device: &Device, rng: &mut EnvRng| {
        let layer = |inputs, outputs| LinearConfig::new(inputs, outputs).init(device);
        let own = Own { gate: layer(13, 12), candidate: layer(13, 12), actor: layer(12, 2), critic: layer(12, 1) };
        initialized(own, Init::FanIn, rng)
    };
    assert_eq!(with_dqn(own, sequences(8, 0)), 1.0);
}

#[test]
fn sequences_without_memory_and_memory_without_sequences_are_rejected() {
    let start = |replay: ReplayConfig, remembers: bool| {
        let env = episodes_of(2, None, Recall::default);
        let (spec, device, rng) = (env.spec().clone(), device().autodiff(), &mut named_rng(1, "weights", 0));
        let config =
            OffPolicyConfig { replay: ReplayConfig { capacity: 1000, ..replay }, ..OffPolicyConfig::default() };
        let run = Run { total_env_steps: 1000, seed: 1 };
        let error = match remembers {
            true => {
                let learner = Dqn::new(remembering(RecurrentKind::Gru)(&spec, &device, rng), DqnConfig::default());
                OffPolicy::new(env, learner.expect("valid"), config, run).map(drop)
            }
            false => {
                let network = QNetwork::new(&QNetworkConfig::default(), &spec.obs, &spec.action, &device, rng);
                let learner = Dqn::new(network.expect("valid"), DqnConfig::default());
                OffPolicy::new(env, learner.expect("valid"), config, run).map(drop)
            }
        };
        error.expect_err("it cannot learn").to_string()
    };
    let missing = "`sequences` must be set for a network that remembers, such as { length = 16 }, got none";
    assert_eq!(start(ReplayConfig::default(), true), missing);
    let useless = "`sequences` must be left out: the network has no memory, got a length of 8";
    assert_eq!(start(sequences(8, 0), false), useless);
}
