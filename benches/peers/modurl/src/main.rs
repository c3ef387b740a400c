//! PPO and DQN on CartPole-v1 and SAC on Pendulum-v1 with ModuRL, in the settings of its own comparison with other libraries.
//!
//!     modurl-peer ppo|dqn|sac [STEPS]
//!
//! Prints one line of JSON. The clock runs from making the environments to the last update, warm-up included. The random numbers of Candle
//! have no seed on the CPU, so that every run differs. Unlike the comparison, SAC scales its actions to the bounds.

use std::fmt::Debug;
use std::time::Instant;

use candle_core::{DType, Device, Module, Result, Tensor, Var};
use candle_nn::{AdamW, Optimizer, ParamsAdamW, VarBuilder, VarMap};
use modurl::prelude::*;
use modurl_gym::classic_control::{cartpole::CartPoleV1, pendulum::PendulumV1};

const DEVICE: Device = Device::Cpu;
const EVAL_EPISODES: usize = 20;

struct Outcome {
    task: &'static str,
    n_envs: usize,
    env_steps: usize,
    seconds: f64,
    eval_return: f64,
}

fn adam(vars: Vec<Var>, lr: f64) -> AdamW {
    AdamW::new(vars, ParamsAdamW { lr, beta1: 0.9, beta2: 0.999, eps: 1e-5, weight_decay: 0.0 }).expect("an optimizer")
}

/// Two layers of 64 with tanh, whose weights are in `vars`.
fn network(vars: &VarMap, n_inputs: usize, n_outputs: usize, orthogonal: Option<f64>) -> MLP {
    let builder = MLP::builder()
        .input_size(n_inputs)
        .output_size(n_outputs)
        .vb(VarBuilder::from_varmap(vars, DType::F32, &DEVICE))
        .activation(Tensor::tanh)
        .hidden_layer_sizes(vec![64, 64])
        .name("network".to_owned());
    match orthogonal {
        Some(output_gain) => {
            builder.initializer(OrthogonalMLPInitializer { hidden_gain: 2.0_f64.sqrt(), output_gain }).build()
        }
        None => builder.build(),
    }
    .expect("a network")
}

fn cart_pole() -> CartPoleV1 {
    CartPoleV1::builder().device(&DEVICE).build().expect("an environment")
}

fn pendulum() -> TimeLimitGym<PendulumV1> {
    TimeLimitGym::new(PendulumV1::builder().device(&DEVICE).build().expect("an environment"), 200)
}

fn replay() -> ReplayStorageConfig {
    ReplayStorageConfig::new(ReplayDeviceStrategy::OneDevice(DEVICE))
}

/// Mean return of episodes. `act` takes and returns batches of one.
fn evaluated<G: Gym>(mut env: G, mut act: impl FnMut(&Tensor) -> Tensor) -> f64
where
    G::Error: Debug,
{
    let mut total = 0.0;
    for _ in 0..EVAL_EPISODES {
        let mut state = env.reset().expect("a reset").state;
        loop {
            let action = act(&state.unsqueeze(0).unwrap()).get(0).unwrap();
            let step = env.step(action).expect("a step");
            total += f64::from(step.reward);
            if step.done || step.truncated {
                break;
            }
            state = step.state;
        }
    }
    total / EVAL_EPISODES as f64
}

fn ppo(env_steps: usize) -> Outcome {
    const N_ENVS: usize = 8;
    const ROLLOUT: usize = N_ENVS * 256;
    let env_steps = env_steps / ROLLOUT * ROLLOUT;
    let begin = Instant::now();
    let mut envs = VectorizedGymWrapper::from((0..N_ENVS).map(|_| cart_pole()).collect::<Vec<_>>());
    let (actor_vars, critic_vars) = (VarMap::new(), VarMap::new());
    let actor = network(&actor_vars, 4, 2, Some(0.01));
    let networks = SeparatePPONetwork::builder()
        .actor_network(ProbabilisticPolicyModel::<CategoricalDistribution>::new(actor))
        .critic_network(network(&critic_vars, 4, 1, Some(1.0)))
        .actor_optimizer(adam(actor_vars.all_vars(), 3e-4))
        .critic_optimizer(adam(critic_vars.all_vars(), 3e-4))
        .combined_loss(true)
        .build();
    let mut agent = PPOAgent::builder()
        .action_space(envs.action_space())
        .network_info(PPONetworkInfo::Separate(networks))
        .batch_size(ROLLOUT)
        .mini_batch_size(64)
        .num_epochs(10)
        .gamma(0.99)
        .gae_lambda(0.95)
        .clip_range(ConstantSchedule::new(0.2))
        .clip_value_loss(false)
        .normalize_advantage(true)
        .ent_coef(0.0)
        .vf_coef(0.5)
        .gradient_clip(0.5)
        .training_horizon(env_steps)
        .device(DEVICE)
        .build()
        .expect("valid settings");
    agent.learn(&mut envs, env_steps).expect("a run");
    let seconds = begin.elapsed().as_secs_f64();
    let eval_return = evaluated(cart_pole(), |state| agent.act_deterministic(state).expect("an action"));
    Outcome { task: "PPO on CartPole-v1", n_envs: N_ENVS, env_steps, seconds, eval_return }
}

fn dqn(env_steps: usize) -> Outcome {
    let begin = Instant::now();
    let mut envs = VectorizedGymWrapper::from(vec![cart_pole()]);
    let (online_vars, mut target_vars) = (VarMap::new(), VarMap::new());
    let online = network(&online_vars, 4, 2, None);
    let target = network(&target_vars, 4, 2, None);
    let mut agent = DQNAgent::builder()
        .action_space(Discrete::new(2))
        .observation_space(envs.observation_space())
        .online_q_network(online)
        .target_q_network(target)
        .online_vars(&online_vars)
        .target_vars(&mut target_vars)
        .optimizer(adam(online_vars.all_vars(), 2.5e-4))
        .replay_capacity(10_000)
        .batch_size(64)
        .gamma(0.99)
        .training_start(1024)
        .update_frequency(4)
        .target_update_interval(1000)
        .epsilon_schedule(ConstantSchedule::new(0.1))
        .training_horizon(env_steps)
        .replay_storage_config(replay())
        .build()
        .expect("valid settings");
    agent.learn(&mut envs, env_steps).expect("a run");
    let seconds = begin.elapsed().as_secs_f64();
    // The agent itself acts with exploration. This network has the same weights.
    let greedy = network(&online_vars, 4, 2, None);
    let eval_return = evaluated(cart_pole(), |state| greedy.forward(state).unwrap().argmax(1).unwrap());
    Outcome { task: "DQN on CartPole-v1", n_envs: 1, env_steps, seconds, eval_return }
}

/// Mean and logarithm of the standard deviation of the torque.
struct Gaussian(MLP);

impl Module for Gaussian {
    fn forward(&self, states: &Tensor) -> Result<Tensor> {
        let output = self.0.forward(states)?;
        Tensor::cat(&[output.narrow(1, 0, 1)?, output.narrow(1, 1, 1)?.clamp(-20.0, 2.0)?], 1)
    }
}

fn critic<'a>(online_vars: &'a VarMap, target_vars: &'a mut VarMap) -> SACCritic<'a, AdamW> {
    SACCritic::builder()
        .online_network(ScalarStateActionCritic::new(network(online_vars, 4, 1, None)))
        .target_network(ScalarStateActionCritic::new(network(target_vars, 4, 1, None)))
        .online_vars(online_vars)
        .target_vars(target_vars)
        .optimizer(adam(online_vars.all_vars(), 3e-4))
        .build()
        .expect("a critic")
}

fn sac(env_steps: usize) -> Outcome {
    let begin = Instant::now();
    let mut envs = VectorizedGymWrapper::from(vec![pendulum()]);
    let actor_vars = VarMap::new();
    let bound = Tensor::full(2.0_f32, 1, &DEVICE).unwrap();
    let bounds = AffineTransform::from_bounds(&bound.neg().unwrap(), &bound).expect("bounds");
    let squashed = TransformedDistribution::new(GaussianDistribution::new(vec![1]).expect("a shape"), TanhTransform);
    let policy = ProbabilisticPolicyModel::with_distribution(
        Gaussian(network(&actor_vars, 3, 2, None)),
        TransformedDistribution::new(squashed, bounds),
    );
    let online_vars = [VarMap::new(), VarMap::new()];
    let mut target_vars = [VarMap::new(), VarMap::new()];
    let critics = online_vars.iter().zip(&mut target_vars).map(|(online, target)| critic(online, target)).collect();
    let log_alpha = Var::zeros((), DType::F32, &DEVICE).unwrap();
    let mut agent = SACAgent::builder()
        .policy(policy)
        .actor_optimizer(adam(actor_vars.all_vars(), 3e-4))
        .critics(critics)
        .entropy_configuration(SACEntropyConfiguration::automatic(log_alpha.clone(), adam(vec![log_alpha], 3e-4)))
        .action_space(envs.action_space())
        .observation_space(envs.observation_space())
        .aggregation_mode(SACCriticAggregationMode::Min)
        .replay_capacity(10_000)
        .batch_size(64)
        .training_start(256)
        .gamma(0.99)
        .tau(0.005)
        .training_horizon(env_steps)
        .replay_storage_config(replay())
        .build()
        .expect("valid settings");
    agent.learn(&mut envs, env_steps).expect("a run");
    let seconds = begin.elapsed().as_secs_f64();
    let eval_return = evaluated(pendulum(), |state| agent.act_deterministic(state).expect("an action"));
    Outcome { task: "SAC on Pendulum-v1", n_envs: 1, env_steps, seconds, eval_return }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).map(|word| word.parse::<usize>().expect("a number"));
    let (run, steps): (fn(usize) -> Outcome, _) = match arguments.first().map(String::as_str) {
        Some("ppo") => (ppo, 102_400),
        Some("dqn") => (dqn, 50_000),
        Some("sac") => (sac, 20_000),
        _ => panic!("the first argument is ppo, dqn or sac"),
    };
    let Outcome { task, n_envs, env_steps, seconds, eval_return } = run(number(1).unwrap_or(steps));
    println!(
        "{{\"library\": \"modurl\", \"task\": \"{task}\", \"env_steps\": {env_steps}, \"seconds\": {seconds:.3}, \
         \"env_steps_per_second\": {:.1}, \"n_envs\": {n_envs}, \"seed\": null, \"eval_return\": {eval_return:.1}, \
         \"eval_episodes\": {EVAL_EPISODES}, \"versions\": {{\"modurl\": \"0.1.0\", \"candle\": \"0.11.1\"}}}}",
        env_steps as f64 / seconds,
    );
}
