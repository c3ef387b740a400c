//! Helpers for the benches: environments, networks and learners of typical sizes, and arguments of the example programs.

pub mod gat;
pub mod sac;
pub mod team_dqn;
pub mod team_loop;

use brasa::buffers::{Discounts, Rollout, RolloutBuffer};
use brasa::classic::{CartPole, Pendulum};
use brasa::contracts::{ActorCritic, Explore, HostEnv, Schedule, VecEnv};
use brasa::env::wrappers::{EpisodeStats, TimeLimit};
use brasa::env::{EnvVec, named_rng};
use brasa::nn::draw_noise;
use brasa::ppo::PpoConfig;
use brasa::train::Run;
use brasa_bench_kit::Place;
use burn::tensor::{Device, Tensor};

/// Makes mimalloc the allocator of a program, as in the `brasa` command: the system's allocator returns freed pages and faults them in
/// again. A library must not choose the allocator of those who import it.
#[macro_export]
macro_rules! allocator {
    () => {
        #[global_allocator]
        static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
    };
}

/// A run without an end, for [`brasa_bench_kit::bench_iteration`].
pub const ENDLESS: Run = Run { total_env_steps: u64::MAX, seed: 0 };

/// The device of a program: that of `BRASA_BENCH_DEVICE`, or the CPU.
///
/// # Panics
/// If that device cannot be opened.
pub fn place() -> Place {
    Place::from_env().unwrap_or_else(|error| panic!("BRASA_BENCH_DEVICE: {error}"))
}

/// The command-line argument after `name`.
///
/// # Errors
/// If it cannot be parsed.
pub fn argument<T: std::str::FromStr>(name: &str, default: T) -> Result<T, String> {
    let arguments: Vec<String> = std::env::args().collect();
    let Some(at) = arguments.iter().position(|argument| argument == name) else {
        return Ok(default);
    };
    let value = arguments.get(at + 1).map(String::as_str).unwrap_or_default();
    value.parse().map_err(|_| format!("`{name}` cannot be `{value}`"))
}

/// CartPole-v1 with episode statistics.
pub type CartPoles = HostEnv<EpisodeStats<TimeLimit<EnvVec<CartPole>>>>;
/// Pendulum-v1 with episode statistics.
pub type Pendulums = HostEnv<EpisodeStats<TimeLimit<EnvVec<Pendulum>>>>;

/// `n_envs` of them, connected to `device`.
///
/// # Panics
/// If `n_envs` is 0.
pub fn cart_poles(n_envs: usize, device: &Device) -> CartPoles {
    let envs = EnvVec::new(0..n_envs, |_| CartPole::default()).expect("there is at least one");
    let limited = TimeLimit::new(envs, CartPole::TIME_LIMIT).expect("the limit is above 0");
    HostEnv::new(EpisodeStats::new(limited), device)
}

/// `n_envs` of them, connected to `device`.
///
/// # Panics
/// If `n_envs` is 0.
pub fn pendulums(n_envs: usize, device: &Device) -> Pendulums {
    let envs = EnvVec::new(0..n_envs, |_| Pendulum::default()).expect("there is at least one");
    let limited = TimeLimit::new(envs, Pendulum::TIME_LIMIT).expect("the limit is above 0");
    HostEnv::new(EpisodeStats::new(limited), device)
}

/// PPO on CartPole-v1 with RL Zoo's settings: 8 environments, 32 steps each, one batch of 256 rows, 20 epochs.
pub fn cart_pole_config() -> PpoConfig {
    PpoConfig {
        n_steps: 32,
        batch_size: 256,
        n_epochs: 20,
        gamma: 0.98,
        gae_lambda: 0.8,
        ent_coef: 0.0,
        learning_rate: Schedule::linear(1e-3, 0.0),
        clip_range: Schedule::linear(0.2, 0.0),
        ..PpoConfig::default()
    }
}

/// Collects a rollout of `n_steps` steps per environment with `policy`, for updates.
///
/// # Panics
/// If an environment fails.
pub fn collect<E, P>(env: &mut E, policy: &P, n_steps: usize, discounts: Discounts) -> Rollout<E::Obs, Tensor<2>>
where
    E: VecEnv<Action = Tensor<2>>,
    P: ActorCritic<Obs = E::Obs, Action = Tensor<2>>,
{
    let (device, n_rows) = (env.device().clone(), env.n_rows());
    let mut obs = env.reset(0).expect("the environments start");
    let (action, _) = policy.act(obs.clone(), Explore::Greedy);
    let mut buffer = RolloutBuffer::new(n_steps, env.spec(), &obs, &action, &device);
    let mut rng = named_rng(0, "noise", 0);
    while !buffer.is_full() {
        let noise = draw_noise(policy.noise(), n_rows, &mut rng, &device);
        let (action, decision) = policy.act(obs.clone(), Explore::Sample(noise));
        let step = env.step(policy.to_env(action.clone())).expect("the environments step");
        let before = std::mem::replace(&mut obs, step.obs.clone());
        buffer.push(before, action, decision, &step);
    }
    let value_of = |obs, _: &_| policy.value(obs);
    buffer.finish(policy.value(obs), value_of, discounts).expect("their specification is right")
}
