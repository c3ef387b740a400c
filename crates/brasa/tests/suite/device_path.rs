//! Training without leaving the device: one reading per log interval, and policies that learn.
#![allow(clippy::expect_used)]

use brasa::a2c::{A2c, A2cConfig};
use brasa::buffers::{PrioritizedConfig, ReplayConfig};
use brasa::classic::tensor::{TensorCartPole, TensorPendulum};
use brasa::classic::{CartPole, Classic, Pendulum};
use brasa::contracts::{HostEnv, Schedule, TeamObs, TensorDynamics, TensorEnv, VecEnv, n_read_backs};
use brasa::device::runs_on_host;
use brasa::dqn::{Dqn, DqnConfig, GreedyRamp};
use brasa::energy::iquitos::{Iquitos, IquitosConfig};
use brasa::env::named_rng;
use brasa::env::wrappers::EpisodeStats;
use brasa::nn::{
    ActorCriticConfig, MlpActorCritic, MlpCritics, MlpCriticsConfig, PairQNetwork, PairQNetworkConfig, QNetwork,
    QNetworkConfig, Sharing, SquashedActor, SquashedActorConfig, TeamQNetwork, TeamQNetworkConfig,
};
use brasa::ppo::{Ppo, PpoConfig};
use brasa::sac::{Sac, SacConfig};
use brasa::train::{OffPolicy, OffPolicyConfig, OnPolicy, Run, Training, evaluate};
use brasa::uara::tensor::TensorUara;
use brasa::uara::{Candidates, Uara, UaraConfig};
use brasa_test::device;

fn tensors<D: TensorDynamics>(dynamics: D, n_envs: usize, limit: u32) -> TensorEnv<D> {
    TensorEnv::new(dynamics, n_envs, &device()).expect("there are some").with_time_limit(limit).expect("above 0")
}

fn actor_critic(env: &impl VecEnv, seed: u64) -> MlpActorCritic {
    let spec = env.spec();
    let rng = &mut named_rng(seed, "weights", 0);
    MlpActorCritic::new(&ActorCriticConfig::default(), &spec.obs, &spec.action, &device().autodiff(), rng)
        .expect("the config is valid")
}

/// Reads per iteration, after the first one.
fn reads_of(mut training: impl Training, n: usize) -> Vec<u64> {
    training.iterate().expect("it trains");
    let mut reads = Vec::new();
    for _ in 0..n {
        let before = n_read_backs();
        let iteration = training.iterate().expect("it trains");
        reads.push(n_read_backs() - before);
        assert!(iteration.metrics.iter().any(|(name, _)| name.starts_with("train/")), "{:?}", iteration.metrics);
    }
    assert!(training.counters().episodes > 0, "episodes are counted");
    reads
}

#[test]
fn on_policy_learners_read_once_per_rollout() {
    let run = Run { total_env_steps: 1_000_000, seed: 0 };
    let env = tensors(TensorCartPole::default(), 16, 50).normalizing().expect("observations are flat");
    let config = PpoConfig { n_steps: 32, batch_size: 128, n_epochs: 2, ..PpoConfig::default() };
    let ppo = Ppo::new(actor_critic(&env, 0), config, 0).expect("valid");
    assert_eq!(reads_of(OnPolicy::new(env, ppo, run).expect("it starts"), 4), [1; 4]);
    let env = tensors(TensorPendulum::default(), 16, 20);
    let a2c = A2c::new(actor_critic(&env, 0), A2cConfig { n_steps: 8, ..A2cConfig::default() }, 0).expect("valid");
    assert_eq!(reads_of(OnPolicy::new(env, a2c, run).expect("it starts"), 4), [1; 4]);
    // Environments of the host: once per step, except on the CPU, where no step waits.
    let env = HostEnv::new(Classic::<CartPole>::cart_pole().batch(0..16).expect("some"), &device());
    let config = PpoConfig { n_steps: 32, batch_size: 128, n_epochs: 2, ..PpoConfig::default() };
    let ppo = Ppo::new(actor_critic(&env, 0), config, 0).expect("valid");
    let reads = if runs_on_host(&device()) { 1 } else { 33 };
    assert_eq!(reads_of(OnPolicy::new(env, ppo, run).expect("it starts"), 4), [reads; 4]);
}

#[test]
fn off_policy_learners_read_once_per_log_interval() {
    let run = Run { total_env_steps: 1_000_000, seed: 0 };
    let loop_of = || OffPolicyConfig { learning_starts: 64, log_interval: 400, ..OffPolicyConfig::default() };
    let env = tensors(TensorCartPole::default(), 4, 30);
    let rng = &mut named_rng(0, "weights", 0);
    let (obs, action) = (env.spec().obs.clone(), env.spec().action.clone());
    let network = QNetwork::new(&QNetworkConfig::default(), &obs, &action, &device().autodiff(), rng).expect("valid");
    let dqn = Dqn::new(network, DqnConfig::default()).expect("valid");
    assert_eq!(reads_of(OffPolicy::new(env, dqn, loop_of(), run).expect("it starts"), 3), [1; 3]);
    // Observations are normalized when they are used.
    let env = tensors(TensorPendulum::default(), 4, 30).watching().expect("observations are flat");
    let (obs, action) = (env.spec().obs.clone(), env.spec().action.clone());
    let hidden = vec![32, 32];
    let actor = SquashedActorConfig { hidden: hidden.clone(), ..Default::default() };
    let critics = MlpCriticsConfig { hidden, ..Default::default() };
    let actor = SquashedActor::new(&actor, &obs, &action, &device().autodiff(), rng).expect("valid");
    let critics = MlpCritics::new(&critics, &obs, &action, &device().autodiff(), rng).expect("valid");
    let sac = Sac::new(actor, critics, SacConfig::default(), 0).expect("valid");
    assert_eq!(reads_of(OffPolicy::new(env, sac, loop_of(), run).expect("it starts"), 3), [1; 3]);
}

/// The network of the shipped experiment, in which users choose cells that cover them.
fn covered() -> UaraConfig {
    UaraConfig { candidates: Candidates::Covered, ..UaraConfig::cly2020() }
}

fn team(config: UaraConfig, n_envs: usize) -> TensorEnv<TensorUara, TeamObs> {
    let scenario = Uara::new(config).expect("the config is valid");
    let (tensors, limit) = scenario.tensors(&device()).expect("the rules have this form");
    TensorEnv::in_form(tensors, n_envs, &device()).expect("there are some").with_time_limit(limit).expect("above 0")
}

fn team_learner(env: &impl VecEnv, sharing: Sharing, config: DqnConfig) -> Dqn<TeamQNetwork> {
    let (spec, rng) = (env.spec(), &mut named_rng(0, "weights", 0));
    let network = TeamQNetworkConfig { hidden: vec![16], sharing, dueling: true, ..TeamQNetworkConfig::default() };
    let device = device().autodiff();
    let network = TeamQNetwork::new(&network, spec.n_agents, &spec.obs, &spec.action, &device, rng).expect("valid");
    Dqn::new(network, config).expect("valid")
}

#[test]
fn teams_read_once_per_log_interval() {
    let run = Run { total_env_steps: 1_000_000, seed: 0 };
    let loop_of = |prioritized: Option<PrioritizedConfig>| OffPolicyConfig {
        learning_starts: 20,
        log_interval: 30,
        batch_size: 60,
        replay: ReplayConfig { capacity: 500, prioritized, ..ReplayConfig::default() },
        ..OffPolicyConfig::default()
    };
    for sharing in [Sharing::Independent, Sharing::Trunk, Sharing::All] {
        for n_envs in [1, 3] {
            let env = team(UaraConfig { episode_steps: 12, ..covered() }, n_envs);
            let learner = team_learner(&env, sharing, DqnConfig::default());
            let training = OffPolicy::new(env, learner, loop_of(None), run).expect("it starts");
            assert_eq!(reads_of(training, 3), [1; 3], "{sharing:?}");
        }
    }
    // Walking users, whose observations are rows, and values of pairs.
    let scenario = Uara::new(UaraConfig { episode_steps: 12, ..UaraConfig::physical() }).expect("valid");
    let (dynamics, limit) = scenario.tensors(&device()).expect("the rules have this form");
    let env = tensors(dynamics, 2, limit);
    let rng = &mut named_rng(0, "weights", 0);
    let network = PairQNetworkConfig { hidden: vec![8, 8], ..PairQNetworkConfig::default() };
    let network = PairQNetwork::new(&network, scenario.pairs(), &device().autodiff(), rng).expect("valid");
    let dqn = Dqn::new(network, DqnConfig::default()).expect("valid");
    let config = loop_of(Some(PrioritizedConfig::default()));
    assert_eq!(reads_of(OffPolicy::new(env, dqn, config, run).expect("it starts"), 3), [1; 3]);
}

#[test]
fn exploration_that_follows_the_episode_needs_the_host() {
    let env = team(covered(), 1);
    let config =
        DqnConfig { greedy_ramp: Some(GreedyRamp { min: 0.0, max: 0.9, increment: 0.003 }), ..DqnConfig::default() };
    let learner = team_learner(&env, Sharing::All, config);
    let run = Run { total_env_steps: 200, seed: 0 };
    let error = OffPolicy::new(env, learner, OffPolicyConfig::default(), run).expect_err("ends are not known");
    assert!(error.to_string().contains("`env` must be on the host if exploration"), "{error}");
}

/// Users find cells and channels at which more of them are satisfied than with random choices, about 30 %.
#[test]
fn a_team_learns_on_the_device() {
    let config = UaraConfig { users: 10, episode_steps: 20, ..covered() };
    let env = team(config.clone(), 4);
    let config_of = DqnConfig {
        gamma: 0.0,
        epsilon: Schedule::linear(0.5, 0.0),
        exploration_fraction: 0.8,
        learning_rate: Schedule::Constant(3e-3),
        ..DqnConfig::default()
    };
    let learner = team_learner(&env, Sharing::Independent, config_of);
    let loop_of = OffPolicyConfig {
        learning_starts: 40,
        batch_size: 320,
        updates_per_step: 0.5,
        replay: ReplayConfig { capacity: 2000, ..ReplayConfig::default() },
        ..OffPolicyConfig::default()
    };
    let mut training =
        OffPolicy::new(env, learner, loop_of, Run { total_env_steps: 3000, seed: 0 }).expect("it starts");
    while !training.is_done() {
        training.iterate().expect("it trains");
    }
    let batch = Uara::new(config).expect("valid").batch(0..1);
    let mut env = HostEnv::team(EpisodeStats::new(batch), &device());
    let episodes = evaluate(&training.policy(), &mut env, 1, 0).expect("it plays");
    let final_qos_rate = episodes[0].info[6];
    assert!(final_qos_rate >= 0.8, "{:?}", episodes[0]);
}

#[test]
fn the_microgrid_is_read_once_per_rollout() {
    let config = IquitosConfig { episode_steps: Some(48), random_start: true, ..IquitosConfig::default() };
    let (dynamics, limit) = Iquitos::new(config).expect("valid").tensors(&device()).expect("the rules have this form");
    let env = tensors(dynamics, 4, limit);
    let config = PpoConfig { n_steps: 32, batch_size: 64, n_epochs: 1, ..PpoConfig::default() };
    let ppo = Ppo::new(actor_critic(&env, 0), config, 0).expect("valid");
    let run = Run { total_env_steps: 1_000_000, seed: 0 };
    assert_eq!(reads_of(OnPolicy::new(env, ppo, run).expect("it starts"), 4), [1; 4]);
}

/// The policy of PPO after `total_env_steps` on 1024 cart-poles, in the environments of the host.
fn learned_return(total_env_steps: u64, seed: u64) -> f64 {
    let env = tensors(TensorCartPole::default(), 1024, CartPole::TIME_LIMIT);
    let config = PpoConfig {
        n_steps: 32,
        batch_size: 1024,
        n_epochs: 6,
        learning_rate: Schedule::linear(2e-3, 0.0),
        ..PpoConfig::default()
    };
    let ppo = Ppo::new(actor_critic(&env, seed), config, seed).expect("valid");
    let mut training = OnPolicy::new(env, ppo, Run { total_env_steps, seed }).expect("it starts");
    while !training.is_done() {
        training.iterate().expect("it trains");
    }
    let batch = Classic::<CartPole>::cart_pole().batch(0..32).expect("some");
    let mut env = HostEnv::new(EpisodeStats::new(batch), &device());
    let episodes = evaluate(&training.policy(), &mut env, 64, 1_000_003).expect("it plays");
    episodes.iter().map(|episode| episode.episode_return).sum::<f64>() / episodes.len() as f64
}

#[test]
fn ppo_balances_a_thousand_poles() {
    let mean = learned_return(260_000, 0);
    assert!(mean >= 300.0, "{mean}");
}

#[test]
fn ppo_balances_a_thousand_poles_over_seeds() {
    if !brasa_test::slow("1024 cart-poles on the device, 600,000 steps, three seeds") {
        return;
    }
    let means: Vec<f64> = (0..3).map(|seed| learned_return(600_000, seed)).collect();
    println!("returns of 64 episodes: {means:?}");
    assert!(means.iter().all(|mean| *mean >= 475.0), "{means:?}");
}

/// Evaluation in environments of the device plays the same number of episodes in each.
#[test]
fn evaluation_works_on_the_device() {
    let env = tensors(TensorPendulum::default(), 3, Pendulum::TIME_LIMIT);
    let network = actor_critic(&env, 0);
    let config = PpoConfig { n_steps: 8, batch_size: 24, ..PpoConfig::default() };
    let ppo = Ppo::new(network, config, 0).expect("valid");
    let training = OnPolicy::new(env, ppo, Run { total_env_steps: 1, seed: 0 }).expect("it starts");
    let mut env = tensors(TensorPendulum::default(), 3, 70);
    let episodes = evaluate(&training.policy(), &mut env, 7, 4).expect("it plays");
    let per_env = |env| episodes.iter().filter(|episode| episode.env == env).count();
    assert_eq!([0, 1, 2].map(per_env), [3, 2, 2]);
    assert!(episodes.iter().all(|episode| episode.length == 70 && episode.episode_return < 0.0));
}

/// Everything that environments on the device need for a resume is in a checkpoint.
#[test]
fn a_resumed_run_continues_bit_for_bit() {
    let start = || {
        let env = tensors(TensorCartPole::default(), 8, 40).normalizing().expect("observations are flat");
        let config = PpoConfig { n_steps: 16, batch_size: 64, n_epochs: 2, ..PpoConfig::default() };
        let ppo = Ppo::new(actor_critic(&env, 0), config, 0).expect("valid");
        OnPolicy::new(env, ppo, Run { total_env_steps: 10_000, seed: 0 }).expect("it starts")
    };
    let go_on = |training: &mut dyn FnMut() -> Vec<(String, f64)>| (0..4).map(|_| training()).collect::<Vec<_>>();
    // Times differ between runs.
    let metrics_of = |metrics: Vec<(String, f64)>| -> Vec<(String, f64)> {
        metrics.into_iter().filter(|(name, _)| !name.starts_with("time/")).collect()
    };
    let mut whole = start();
    for _ in 0..5 {
        whole.iterate().expect("it trains");
    }
    let checkpoint = whole.checkpoint();
    let mut resumed = start();
    resumed.restore(&checkpoint, std::path::Path::new("memory")).expect("it fits");
    let expected = go_on(&mut || metrics_of(whole.iterate().expect("it trains").metrics));
    let got = go_on(&mut || metrics_of(resumed.iterate().expect("it trains").metrics));
    assert_eq!(got, expected);
    assert_eq!(resumed.checkpoint().env, whole.checkpoint().env);
    assert_eq!(resumed.checkpoint().policy, whole.checkpoint().policy);
}
