//! Environments that step while the learner computes.
#![allow(clippy::expect_used)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use brasa::buffers::{ReplayConfig, SequenceConfig};
use brasa::classic::{CartPole, Pendulum};
use brasa::contracts::{HostEnv, Learner, Metrics, OffPolicyLearner, OnPolicyLearner, Progress, Schedule};
use brasa::dqn::{Dqn, DqnConfig};
use brasa::env::wrappers::{EpisodeStats, NormalizeObs, TimeLimit};
use brasa::env::{Env, EnvRng, EnvSpec, EnvVec, Space, Step, named_rng};
use brasa::nn::{
    ActorCriticConfig, MlpActorCritic, ParamsError, Persist, QNetwork, QNetworkConfig, RecurrentActorCritic,
    RecurrentActorCriticConfig, RecurrentKind, RecurrentQNetwork, RecurrentQNetworkConfig, Saved,
};
use brasa::ppo::{Ppo, PpoConfig};
use brasa::train::{Checkpoint, OffPolicy, OffPolicyConfig, OnPolicy, Run, StopToken, Training};
use brasa_test::device;
use burn::tensor::Tensor;
use ndarray::{ArrayView1, ArrayViewMut1};

type Envs<E> = HostEnv<NormalizeObs<EpisodeStats<TimeLimit<EnvVec<E>>>>>;

fn envs<E: Env>(make: impl Fn() -> E, watches: bool) -> Envs<E> {
    let envs = EnvVec::new(0..3, |_| make()).expect("there is at least one");
    let limited = EpisodeStats::new(TimeLimit::new(envs, 40).expect("the limit is above 0"));
    let normalized = if watches { NormalizeObs::watching(limited) } else { NormalizeObs::new(limited) };
    HostEnv::new(normalized.expect("it may be normalized"), &device())
}

fn ppo(spec: &EnvSpec, learning_rate: f64, log_interval: u64) -> Ppo<MlpActorCritic> {
    let config = ActorCriticConfig { actor_hidden: vec![8], critic_hidden: vec![8], ..ActorCriticConfig::default() };
    let rng = &mut named_rng(2, "weights", 0);
    let network = MlpActorCritic::new(&config, &spec.obs, &spec.action, &device().autodiff(), rng).expect("valid");
    // Where weights do not change, neither does the unit of values.
    let normalize_value = learning_rate > 0.0;
    let learning_rate = Schedule::Constant(learning_rate);
    let config = PpoConfig {
        n_steps: 32,
        batch_size: 32,
        n_epochs: 2,
        normalize_value,
        learning_rate,
        log_interval,
        ..Default::default()
    };
    Ppo::new(network, config, 2).expect("valid")
}

fn dqn(spec: &EnvSpec, learning_rate: f64) -> Dqn<QNetwork> {
    let rng = &mut named_rng(2, "weights", 0);
    let network = QNetworkConfig { hidden: vec![8], ..QNetworkConfig::default() };
    let network = QNetwork::new(&network, &spec.obs, &spec.action, &device().autodiff(), rng).expect("valid");
    Dqn::new(network, DqnConfig { learning_rate: Schedule::Constant(learning_rate), ..DqnConfig::default() })
        .expect("valid")
}

fn replay() -> OffPolicyConfig {
    let replay = ReplayConfig { capacity: 300, n_step: 2, ..ReplayConfig::default() };
    OffPolicyConfig {
        learning_starts: 30,
        train_freq: 6,
        batch_size: 16,
        log_interval: 60,
        replay,
        ..Default::default()
    }
}

const RUN: Run = Run { total_env_steps: 960, seed: 5 };

fn on_policy(learning_rate: f64, log_interval: u64, pipelined: bool) -> OnPolicy<Envs<CartPole>, Ppo<MlpActorCritic>> {
    let env = envs(CartPole::default, false);
    let learner = ppo(env.spec(), learning_rate, log_interval);
    OnPolicy::new(env, learner, RUN).expect("it starts").pipelined(pipelined)
}

fn off_policy(learning_rate: f64, pipelined: bool) -> OffPolicy<Envs<CartPole>, Dqn<QNetwork>> {
    let env = envs(CartPole::default, true);
    let learner = dqn(env.spec(), learning_rate);
    OffPolicy::new(env, learner, replay(), RUN).expect("it starts").pipelined(pipelined)
}

/// The metrics of every iteration, without times.
fn history(mut training: impl Training) -> Vec<Vec<(String, f64)>> {
    let mut all = Vec::new();
    while !training.is_done() {
        let mut metrics = training.iterate().expect("it trains").metrics;
        metrics.retain(|(name, _)| !name.starts_with("time/"));
        all.push(metrics);
    }
    all
}

fn end(mut training: impl Training) -> Checkpoint {
    while !training.is_done() {
        training.iterate().expect("it trains");
    }
    training.checkpoint()
}

/// Stops at every chance from step `from` on, and resumes each time in a loop of its own.
fn with_stops<T: Training>(start: impl Fn() -> T, from: u64) -> (Checkpoint, usize) {
    let mut training = start();
    let mut n_stops = 0;
    while !training.is_done() {
        let stop = StopToken::default();
        if training.counters().env_steps >= from {
            stop.stop();
        }
        let before = training.counters().clone();
        training.iterate_until(&stop).expect("it trains");
        if *training.counters() == before {
            training.iterate().expect("it trains");
        }
        let saved = training.checkpoint();
        training = start();
        training.restore(&saved, Path::new("memory")).expect("it is the same run");
        n_stops += 1;
    }
    (training.checkpoint(), n_stops)
}

#[test]
fn a_resumed_run_continues_bit_for_bit() {
    for log_interval in [1, 300] {
        let start = || on_policy(1e-2, log_interval, true);
        let (stopped, n_stops) = with_stops(start, 200);
        assert!(n_stops >= 4, "{n_stops}");
        assert!(end(start()) == stopped, "rollouts, read every {log_interval} steps");
    }
    let start = || off_policy(1e-2, true);
    let (stopped, n_stops) = with_stops(start, 200);
    assert!(n_stops >= 10, "{n_stops}");
    assert!(end(start()) == stopped, "a replay buffer");
}

/// What a policy remembers is part of a checkpoint, in the middle of episodes too.
#[test]
fn a_resumed_policy_remembers_bit_for_bit() {
    for (pipelined, kind) in [(false, RecurrentKind::Lstm), (true, RecurrentKind::Gru)] {
        let start = || {
            let env = envs(CartPole::default, false);
            let (spec, rng) = (env.spec(), &mut named_rng(2, "weights", 0));
            let config = RecurrentActorCriticConfig {
                kind,
                width: 6,
                actor_hidden: vec![8],
                critic_hidden: vec![],
                ..Default::default()
            };
            let network = RecurrentActorCritic::new(&config, &spec.obs, &spec.action, &device().autodiff(), rng);
            let config = PpoConfig {
                n_steps: 32,
                sequence_length: Some(16),
                batch_size: 32,
                n_epochs: 2,
                learning_rate: Schedule::Constant(1e-2),
                ..Default::default()
            };
            let ppo = Ppo::new(network.expect("valid"), config, 2).expect("valid");
            OnPolicy::new(env, ppo, RUN).expect("it starts").pipelined(pipelined)
        };
        let (stopped, n_stops) = with_stops(start, 200);
        assert!(n_stops >= 4, "{n_stops}");
        assert!(end(start()) == stopped, "{kind:?}");
    }
}

/// The same from replayed sequences.
#[test]
fn a_resumed_network_of_values_remembers_bit_for_bit() {
    for pipelined in [false, true] {
        let start = || {
            let env = envs(CartPole::default, true);
            let (spec, rng) = (env.spec(), &mut named_rng(2, "weights", 0));
            let config = RecurrentQNetworkConfig { width: 6, hidden: vec![8], ..Default::default() };
            let network = RecurrentQNetwork::new(&config, &spec.obs, &spec.action, &device().autodiff(), rng);
            let config = DqnConfig { learning_rate: Schedule::Constant(1e-2), rescale: true, ..DqnConfig::default() };
            let learner = Dqn::new(network.expect("valid"), config).expect("valid");
            let sequences = Some(SequenceConfig { length: 4, burn_in: 3, ..SequenceConfig::default() });
            let config = replay();
            let config = OffPolicyConfig { replay: ReplayConfig { sequences, ..config.replay }, ..config };
            OffPolicy::new(env, learner, config, RUN).expect("it starts").pipelined(pipelined)
        };
        let (stopped, n_stops) = with_stops(start, 200);
        assert!(n_stops >= 10, "{n_stops}");
        assert!(end(start()) == stopped, "pipelined: {pipelined}");
    }
}

/// Whoever resumes may change the setting: what was collected ahead is used up.
#[test]
fn a_pipelined_run_can_be_continued_without_a_pipeline() {
    let mut first = on_policy(1e-2, 1, true);
    first.iterate().expect("it trains");
    let saved = first.checkpoint();
    let mut second = on_policy(1e-2, 1, false);
    second.restore(&saved, Path::new("memory")).expect("it is the same run");
    let both = [first.iterate(), second.iterate()].map(|iteration| iteration.expect("it trains"));
    for name in ["train/loss", "train/approx_kl"] {
        assert_eq!(both[0].metric(name), both[1].metric(name), "{name}");
    }
    assert!(second.checkpoint().trainer.keys().all(|name| !name.starts_with("ahead/")));
    assert_eq!(end(second).env_steps, 960);
}

#[test]
fn actions_come_from_the_policy_of_one_update_earlier() {
    // A policy that does not change acts alike, before and after an update.
    let frozen = |pipelined| end(on_policy(0.0, 1, pipelined));
    let (with, without) = (frozen(true), frozen(false));
    assert_eq!((with.env_steps, with.policy == without.policy), (without.env_steps, true));
    // One that changes sees its first two rollouts by the same weights: the second update is another one.
    let (with, without) = (history(on_policy(1e-2, 1, true)), history(on_policy(1e-2, 1, false)));
    let losses = |all: &[Vec<(String, f64)>]| -> Vec<f64> {
        let loss =
            |metrics: &Vec<(String, f64)>| metrics.iter().find(|(name, _)| name == "train/loss").map(|(_, loss)| *loss);
        all.iter().map(|metrics| loss(metrics).expect("it is logged")).collect()
    };
    let (with, without) = (losses(&with), losses(&without));
    assert_eq!((with.len(), without.len()), (10, 10));
    assert!(with[0] == without[0] && with[1] != without[1], "{with:?} {without:?}");

    let frozen = |pipelined| history(off_policy(0.0, pipelined));
    let (with, without) = (frozen(true), frozen(false));
    let returns = |all: &[Vec<(String, f64)>]| -> Vec<Option<f64>> {
        all.iter()
            .map(|metrics| metrics.iter().find(|(name, _)| name == "rollout/ep_rew_mean").map(|(_, x)| *x))
            .collect()
    };
    assert_eq!(returns(&with), returns(&without));
    let updates = |training: &dyn Fn() -> OffPolicy<Envs<CartPole>, Dqn<QNetwork>>| {
        let mut training = training();
        while !training.is_done() {
            training.iterate().expect("it trains");
        }
        training.counters().updates
    };
    assert_eq!(updates(&|| off_policy(1e-2, true)), updates(&|| off_policy(1e-2, false)));
}

/// Whether an update is under way (0 or 1), and how many steps were taken during one.
#[derive(Clone, Default)]
struct Meeting {
    updating: Arc<AtomicU64>,
    met: Arc<AtomicU64>,
}

/// An environment whose steps are passed on by a function.
struct Hooked<E, F>(E, F);

impl<E: Env, F: FnMut(Step) -> Step + Send + 'static> Env for Hooked<E, F> {
    type State = E::State;
    fn obs_space(&self) -> Space {
        self.0.obs_space()
    }
    fn action_space(&self) -> Space {
        self.0.action_space()
    }
    fn reset(&mut self, rng: &mut EnvRng, obs: ArrayViewMut1<f32>) {
        self.0.reset(rng, obs);
    }
    fn step(&mut self, action: ArrayView1<f32>, rng: &mut EnvRng, obs: ArrayViewMut1<f32>) -> Step {
        (self.1)(self.0.step(action, rng, obs))
    }
    fn state(&self) -> Self::State {
        self.0.state()
    }
    fn set_state(&mut self, state: Self::State) {
        self.0.set_state(state);
    }
}

/// CartPole whose step waits a moment for an update that is under way.
fn waits(meeting: &Meeting) -> impl Env {
    let (meeting, mut n) = (meeting.clone(), 0);
    Hooked(CartPole::default(), move |step| {
        n += 1;
        // Before the first update there is none to meet.
        if n > 40 {
            let begin = Instant::now();
            while meeting.updating.load(Ordering::SeqCst) == 0 && begin.elapsed() < Duration::from_millis(4) {
                std::thread::yield_now();
            }
            meeting.met.fetch_add(meeting.updating.load(Ordering::SeqCst), Ordering::SeqCst);
        }
        step
    })
}

/// A learner that says when it updates, and takes at least five milliseconds.
struct Says<L>(L, Meeting);

impl<L: Learner> Learner for Says<L> {
    type Batch = L::Batch;
    type Policy = L::Policy;
    fn update(&mut self, batch: L::Batch, progress: Progress) -> Metrics {
        self.1.updating.store(1, Ordering::SeqCst);
        let metrics = self.0.update(batch, progress);
        std::thread::sleep(Duration::from_millis(5));
        self.1.updating.store(0, Ordering::SeqCst);
        metrics
    }
    fn policy(&self, progress: Progress) -> L::Policy {
        self.0.policy(progress)
    }
}

impl<L: Persist> Persist for Says<L> {
    fn save(&self) -> Saved {
        self.0.save()
    }
    fn load(&mut self, saved: &Saved) -> Result<(), ParamsError> {
        self.0.load(saved)
    }
}

impl<L: OnPolicyLearner> OnPolicyLearner for Says<L> {
    fn n_steps(&self) -> usize {
        self.0.n_steps()
    }
    fn gamma(&self) -> f64 {
        self.0.gamma()
    }
    fn gae_lambda(&self) -> f64 {
        self.0.gae_lambda()
    }
}

impl<L: OffPolicyLearner> OffPolicyLearner for Says<L> {
    fn gamma(&self) -> f64 {
        self.0.gamma()
    }
    fn td_error(&self) -> Tensor<1> {
        self.0.td_error()
    }
}

#[test]
fn environments_step_during_updates() {
    for pipelined in [true, false] {
        let meeting = Meeting::default();
        let env = envs(|| waits(&meeting), false);
        let learner = Says(ppo(env.spec(), 1e-3, 1), meeting.clone());
        let run = Run { total_env_steps: 300, seed: 0 };
        let mut training = OnPolicy::new(env, learner, run).expect("it starts").pipelined(pipelined);
        while !training.is_done() {
            training.iterate().expect("it trains");
        }
        let met = meeting.met.load(Ordering::SeqCst);
        assert_eq!(met > 0, pipelined, "{met} steps of rollouts met an update");

        let meeting = Meeting::default();
        let env = envs(|| waits(&meeting), true);
        let learner = Says(dqn(env.spec(), 1e-3), meeting.clone());
        let mut training = OffPolicy::new(env, learner, replay(), run).expect("it starts").pipelined(pipelined);
        while !training.is_done() {
            training.iterate().expect("it trains");
        }
        let met = meeting.met.load(Ordering::SeqCst);
        assert_eq!(met > 0, pipelined, "{met} steps for a replay buffer met an update");
    }
}

/// An environment that fails in its thread.
fn fails() -> impl Env {
    let mut n = 0;
    Hooked(Pendulum::default(), move |step| {
        n += 1;
        if n == 50 { Step { reward: f32::NAN, ..step } } else { step }
    })
}

#[test]
fn an_error_of_an_environment_ends_the_run() {
    let env = envs(fails, false);
    let learner = ppo(env.spec(), 1e-3, 1);
    let mut training = OnPolicy::new(env, learner, RUN).expect("it starts").pipelined(true);
    let error = training.iterate().expect_err("the second rollout has a reward that is no number").to_string();
    assert!(error.contains("returned NaN as reward"), "{error}");
}
