//! Rollouts in the memory of the CPU are those of tensors.
#![allow(clippy::expect_used)]

use brasa::buffers::{Remembered, Rollout};
use brasa::classic::probe::{MaskedIdentity, MultiDiscreteIdentity};
use brasa::classic::{CartPole, Pendulum, Spread, SpreadConfig};
use brasa::contracts::{
    ActorCritic, HostEnv, Learner, Metrics, Obs, OnPolicyLearner, Progress, StepBatch, ValueScale, VecEnv,
};
use brasa::env::wrappers::{RunningMoments, TimeLimit};
use brasa::env::{BatchSlabs, Env, EnvBatch, EnvError, EnvSpec, EnvVec, Episode, named_rng};
use brasa::nn::{
    ActorCriticConfig, MlpActorCritic, ParamsError, Persist, RecurrentActorCritic, RecurrentActorCriticConfig,
    RecurrentKind, Saved, SeparateActorCritic, StdKind,
};
use brasa::train::{OnPolicy, Run, Training};
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use ndarray::ArrayView2;

/// Only the CPU has this path.
fn device() -> Device {
    brasa::device::open_named("cpu").expect("flex is a default feature")
}

/// Environments whose memory is hidden.
struct Hidden<E>(E);

impl<E: VecEnv> VecEnv for Hidden<E> {
    type Obs = E::Obs;
    type Action = E::Action;
    fn spec(&self) -> &EnvSpec {
        self.0.spec()
    }
    fn device(&self) -> &Device {
        self.0.device()
    }
    fn reset(&mut self, seed: u64) -> Result<E::Obs, EnvError> {
        self.0.reset(seed)
    }
    fn step(&mut self, action: E::Action) -> Result<StepBatch<E::Obs>, EnvError> {
        self.0.step(action)
    }
    fn drain_episodes(&mut self, episodes: &mut Vec<Episode>) -> Result<(), EnvError> {
        self.0.drain_episodes(episodes)
    }
    fn obs_moments(&self) -> Option<&RunningMoments> {
        self.0.obs_moments()
    }
    fn save(&self) -> Vec<u8> {
        self.0.save()
    }
    fn load(&mut self, bytes: &[u8]) -> Result<E::Obs, EnvError> {
        self.0.load(bytes)
    }
}

/// Steps of different durations.
struct Durations<B> {
    inner: B,
    spec: EnvSpec,
    steps: u32,
}

impl<B: EnvBatch> brasa::env::wrappers::Wrapper for Durations<B> {
    type Inner = B;
    type State = u32;
    fn inner(&self) -> &B {
        &self.inner
    }
    fn inner_mut(&mut self) -> &mut B {
        &mut self.inner
    }
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }
    fn step(&mut self, actions: ArrayView2<f32>, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.inner.step(actions, out)?;
        self.steps += 1;
        out.elapsed
            .iter_mut()
            .enumerate()
            .for_each(|(row, elapsed)| *elapsed = ((self.steps as usize + row) % 3) as f32);
        Ok(())
    }
    fn state(&self) -> u32 {
        self.steps
    }
    fn set_state(&mut self, steps: u32) {
        self.steps = steps;
    }
}

/// The unit of values.
const SCALE: ValueScale = ValueScale { mean: -3.0, deviation: 2.0 };

/// Keeps rollouts instead of learning from them.
struct Keep<P> {
    policy: P,
    rollouts: Vec<Rollout<Obs, Tensor<2>>>,
}

impl<P: ActorCritic<Obs = Obs, Action = Tensor<2>> + Clone> Learner for Keep<P> {
    type Batch = Rollout<Obs, Tensor<2>>;
    type Policy = P;
    fn update(&mut self, rollout: Self::Batch, _: Progress) -> Metrics {
        self.rollouts.push(rollout);
        Metrics::default()
    }
    fn policy(&self, _: Progress) -> P {
        self.policy.clone()
    }
}

impl<P: ActorCritic<Obs = Obs, Action = Tensor<2>> + Clone> OnPolicyLearner for Keep<P> {
    fn n_steps(&self) -> usize {
        40
    }
    fn batch_rows(&self, n_rows: usize) -> usize {
        n_rows
    }
    fn gamma(&self) -> f64 {
        0.9
    }
    fn gae_lambda(&self) -> f64 {
        0.8
    }
    fn value_scale(&self) -> ValueScale {
        SCALE
    }
}

impl<P> Persist for Keep<P> {
    fn save(&self) -> Saved {
        Saved::default()
    }
    fn load(&mut self, _: &Saved) -> Result<(), ParamsError> {
        Ok(())
    }
}

/// A network that is compared.
trait Network: ActorCritic<Obs = Obs, Action = Tensor<2>> + Module {}

impl<M: ActorCritic<Obs = Obs, Action = Tensor<2>> + Module> Network for M {}

/// The numbers of three rollouts.
fn rollouts<E: VecEnv<Obs = Obs, Action = Tensor<2>>, M: Network>(env: E, network: &M) -> Vec<f32> {
    let learner = Keep { policy: network.valid(), rollouts: Vec::new() };
    let mut training = OnPolicy::new(env, learner, Run { total_env_steps: 1_000_000, seed: 3 }).expect("it starts");
    (0..3).for_each(|_| drop(training.iterate().expect("it steps")));
    let mut all = Vec::new();
    let policy = network.valid();
    for rollout in training.into_parts().1.rollouts {
        let Rollout { obs, action, log_prob, value, advantage, returns, remembered } = rollout;
        if remembered.is_none() {
            let expected = SCALE.to_rewards(policy.value(obs.clone()));
            assert!(
                (expected - value.clone()).abs().max().into_scalar::<f32>() < 1e-5,
                "values in the unit of rewards"
            );
        }
        let flat = |tensor: Tensor<2>| tensor.flatten::<1>(0, 1);
        let mask = obs.mask.map_or_else(|| log_prob.zeros_like(), flat);
        for part in [flat(obs.values), mask, flat(action), log_prob, value, advantage, returns] {
            all.extend(part.into_data().iter::<f32>());
        }
        if let Some(Remembered { state, starts }) = remembered {
            for part in [flat(state), starts] {
                all.extend(part.into_data().iter::<f32>());
            }
        }
    }
    all
}

fn envs<E: Env>(make: impl Fn() -> E) -> TimeLimit<EnvVec<E>> {
    // More than one vector of rows, and not whole tiles of them.
    TimeLimit::new(EnvVec::new(0..19, |_| make()).expect("there are some"), 15).expect("above 0")
}

/// Three agents in each of five environments.
fn spread() -> impl EnvBatch {
    Spread::new(SpreadConfig::default()).expect("valid").batch(0..5).expect("there are some")
}

fn compare<B: EnvBatch>(what: &str, config: &ActorCriticConfig, batch: impl Fn() -> B, on_host: bool) {
    let network = |spec: &EnvSpec| {
        let rng = &mut named_rng(5, "weights", 0);
        MlpActorCritic::new(config, &spec.obs, &spec.action, &device().autodiff(), rng).expect("valid")
    };
    compare_networks(what, network, batch, on_host);
}

fn compare_networks<B: EnvBatch, M: Network>(
    what: &str,
    network: impl Fn(&EnvSpec) -> M,
    batch: impl Fn() -> B,
    on_host: bool,
) {
    let mut env = HostEnv::new(batch(), &device());
    let network = network(env.spec());
    assert_eq!(env.on_host().is_some() && network.valid().host_actor().is_some(), on_host, "{what}");
    let expected = rollouts(Hidden(HostEnv::new(batch(), &device())), &network);
    let ours = rollouts(env, &network);
    assert_eq!(ours.len(), expected.len(), "{what}");
    for (i, (ours, expected)) in ours.iter().zip(&expected).enumerate() {
        assert!((ours - expected).abs() <= 1e-5 * expected.abs().max(1.0), "{what}, {i}: {ours} instead of {expected}");
    }
}

#[test]
fn without_tensors_a_policy_remembers_the_same() {
    let base = RecurrentActorCriticConfig {
        width: 7,
        encoder_hidden: vec![5],
        actor_hidden: vec![6],
        critic_hidden: vec![],
        ..Default::default()
    };
    let gru = RecurrentActorCriticConfig { kind: RecurrentKind::Gru, shared: true, ..base.clone() };
    let network = |config: RecurrentActorCriticConfig| {
        move |spec: &EnvSpec| {
            let rng = &mut named_rng(5, "weights", 0);
            RecurrentActorCritic::new(&config, &spec.obs, &spec.action, &device().autodiff(), rng).expect("valid")
        }
    };
    compare_networks("LSTM, choices, truncated", network(base.clone()), || envs(CartPole::default), true);
    compare_networks("GRU for both, masks", network(gru.clone()), || envs(MaskedIdentity::default), true);
    compare_networks("GRU for both, real actions", network(gru), || envs(Pendulum::default), true);
    let explores =
        RecurrentActorCriticConfig { std: StdKind::StateDependent, sde_sample_freq: Some(4), ..base.clone() };
    compare_networks("LSTM, state-dependent exploration", network(explores), || envs(Pendulum::default), true);
    let agents = |spec: &EnvSpec| {
        let one = |agent| {
            let rng = &mut named_rng(5, "weights", agent);
            RecurrentActorCritic::for_env(&base, spec, &device().autodiff(), rng).expect("valid")
        };
        SeparateActorCritic::new((0..2).map(one).collect(), vec![1, 0, 1]).expect("an index for each")
    };
    compare_networks("LSTM for each agent", agents, spread, true);
    let squash = RecurrentActorCriticConfig { squash: true, ..base };
    compare_networks("LSTM, squashed actions", network(squash), || envs(Pendulum::default), false);
}

#[test]
fn without_tensors_a_rollout_is_the_same() {
    let base = ActorCriticConfig { actor_hidden: vec![9, 8], critic_hidden: vec![7], ..ActorCriticConfig::default() };
    let shared = ActorCriticConfig { shared_hidden: vec![9], actor_hidden: vec![], ..base.clone() };
    let squash = ActorCriticConfig { squash: true, ..base.clone() };
    let dependent = ActorCriticConfig { std: StdKind::Dependent, ..base.clone() };
    compare("choices, truncated", &base, || envs(CartPole::default), true);
    compare("choices with a shared body", &shared, || envs(CartPole::default), true);
    compare("real actions, clipped", &base, || envs(Pendulum::default), true);
    compare("real actions with a shared body", &shared, || envs(Pendulum::default), true);
    let explores = |config: &ActorCriticConfig| ActorCriticConfig { std: StdKind::StateDependent, ..config.clone() };
    compare("state-dependent exploration", &explores(&base), || envs(Pendulum::default), true);
    let every_4 = ActorCriticConfig { sde_sample_freq: Some(4), ..explores(&shared) };
    compare("the same with a shared body, for four steps", &every_4, || envs(Pendulum::default), true);
    compare("masks", &base, || envs(MaskedIdentity::default), true);
    compare("several choices", &base, || envs(MultiDiscreteIdentity::default), true);
    let durations = || {
        let inner = envs(Pendulum::default);
        let spec = EnvSpec { has_elapsed: true, ..inner.spec().clone() };
        Durations { inner, spec, steps: 0 }
    };
    compare("durations", &base, durations, true);
    let agents = |spec: &EnvSpec| {
        let one = |agent| {
            let rng = &mut named_rng(5, "weights", agent);
            MlpActorCritic::for_env(&shared, spec, &device().autodiff(), rng).expect("valid")
        };
        SeparateActorCritic::new((0..3).map(one).collect(), vec![0, 1, 2]).expect("an index for each")
    };
    compare_networks("a network for each agent", agents, spread, true);
    // These have no such form.
    compare("squashed actions", &squash, || envs(Pendulum::default), false);
    compare("a deviation of the features", &dependent, || envs(Pendulum::default), false);
}
