//! PPO on CartPole-v1 with thrust-rl, in the sizes of its example `train_cartpole_modern`.
//!
//!     thrust-rl-cart-pole [SEED] [STEPS]
//!
//! Prints one line of JSON. The clock runs from making the environments to the last update. Initial weights, actions and minibatches depend on
//! the seed, but the library cannot seed its environments. Its CartPole pays no reward for the last step of an episode, so `eval_return` is
//! the length of the episode. Rollouts use the policy without gradients, which is faster than with them, as in the example.

use std::time::Instant;

use burn::backend::{Autodiff, NdArray};
use burn::module::AutodiffModule;
use burn::optim::AdamConfig;
use burn::tensor::{Int, Tensor, TensorData, backend::Backend as BurnBackend};
use rand::{SeedableRng, rngs::StdRng};
use thrust_rl::env::{Environment, cartpole::CartPole, pool::EnvPool};
use thrust_rl::policy::mlp::{BurnActivation, MlpBurnConfig, MlpBurnPolicy};
use thrust_rl::train::optimizer::BurnOptimizer;
use thrust_rl::train::ppo::{PPOConfig, PPOTrainerBurn};

type Backend = Autodiff<NdArray<f32>>;
type Policy = MlpBurnPolicy<Backend>;
/// The policy without gradients.
type Actor = MlpBurnPolicy<NdArray<f32>>;

const N_ENVS: usize = 16;
const N_STEPS: usize = 256;
const ROLLOUT: usize = N_ENVS * N_STEPS;
const GAMMA: f32 = 0.99;
const LAMBDA: f32 = 0.95;
const LEARNING_RATE: f64 = 3e-4;
const EVAL_EPISODES: usize = 20;

fn rows<B: BurnBackend>(values: Vec<f32>) -> Tensor<B, 2> {
    let n_rows = values.len() / 4;
    Tensor::from_data(TensorData::new(values, [n_rows, 4]), &Default::default())
}

fn column(values: Vec<f32>) -> Tensor<Backend, 1> {
    let n_rows = values.len();
    Tensor::from_data(TensorData::new(values, [n_rows]), &Default::default())
}

/// Advantages of a rollout, step by step. `last` has the values after it.
fn advantages(rewards: &[f32], values: &[f32], ended: &[bool], last: &[f32]) -> Vec<f32> {
    let mut result = vec![0.0; ROLLOUT];
    for env in 0..N_ENVS {
        let (mut next_value, mut next_advantage) = (last[env], 0.0);
        for at in (env..ROLLOUT).step_by(N_ENVS).rev() {
            let goes_on = if ended[at] { 0.0 } else { 1.0 };
            let error = rewards[at] + GAMMA * goes_on * next_value - values[at];
            next_advantage = error + GAMMA * LAMBDA * goes_on * next_advantage;
            next_value = values[at];
            result[at] = next_advantage;
        }
    }
    result
}

/// Mean length of the episodes of the most likely actions.
fn evaluated(policy: &Actor) -> f64 {
    let mut total = 0;
    for _ in 0..EVAL_EPISODES {
        let mut env = CartPole::new();
        env.reset();
        loop {
            let (logits, _) = policy.forward(rows(env.get_observation()));
            let logits: Vec<f32> = logits.into_data().to_vec().unwrap();
            let result = env.step((logits[1] > logits[0]) as i64);
            total += 1;
            if result.terminated || result.truncated {
                break;
            }
        }
    }
    total as f64 / EVAL_EPISODES as f64
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|word| word.parse::<u64>().expect("a number"));
    let seed = arguments.next().unwrap_or(0);
    let steps = arguments.next().unwrap_or(200_000) as usize;

    let begin = Instant::now();
    let mut envs = EnvPool::new(CartPole::new, N_ENVS);
    let network = MlpBurnConfig {
        num_layers: 2,
        hidden_dim: 128,
        use_orthogonal_init: true,
        activation: BurnActivation::ReLU,
        seed: Some(seed),
    };
    let policy = Policy::with_config(4, 2, network, &Default::default());
    let optimizer = BurnOptimizer::new(AdamConfig::new().init(), LEARNING_RATE);
    // With the limit of the KL divergence of the example.
    let settings = PPOConfig::new()
        .learning_rate(LEARNING_RATE)
        .n_epochs(10)
        .batch_size(128)
        .gamma(GAMMA as f64)
        .gae_lambda(LAMBDA as f64)
        .clip_range(0.2)
        .clip_range_vf(0.2)
        .vf_coef(0.5)
        .ent_coef(0.01)
        .max_grad_norm(0.5)
        .target_kl(1.0)
        .seed(seed);
    let mut trainer = PPOTrainerBurn::new(settings, policy, optimizer).expect("valid settings");
    let mut generator = StdRng::seed_from_u64(seed);

    let mut observed = envs.reset();
    let n_updates = steps / ROLLOUT;
    for _ in 0..n_updates {
        let actor = trainer.policy().valid();
        let mut observations = Vec::with_capacity(4 * ROLLOUT);
        let mut actions = Vec::with_capacity(ROLLOUT);
        let mut log_probs = Vec::with_capacity(ROLLOUT);
        let mut values = Vec::with_capacity(ROLLOUT);
        let mut rewards = Vec::with_capacity(ROLLOUT);
        let mut ended = Vec::with_capacity(ROLLOUT);
        for _ in 0..N_STEPS {
            let start = observations.len();
            observed.iter().for_each(|row| observations.extend_from_slice(row));
            let (act, log_prob, value) =
                actor.get_action_host_seeded(rows(observations[start..].to_vec()), &mut generator);
            for (env, result) in envs.step(&act).into_iter().enumerate() {
                rewards.push(result.reward);
                ended.push(result.terminated || result.truncated);
                observed[env] = match ended.last() {
                    Some(true) => envs.reset_env(env).expect("an environment"),
                    _ => result.observation,
                };
            }
            actions.extend(act);
            log_probs.extend(log_prob);
            values.extend(value);
        }
        let (_, _, last) = actor.get_action_host_seeded(rows(observed.concat()), &mut generator);
        let advantages = advantages(&rewards, &values, &ended, &last);
        let returns = advantages.iter().zip(&values).map(|(a, v)| a + v).collect();
        let actions: Tensor<Backend, 1, Int> =
            Tensor::from_data(TensorData::new(actions, [ROLLOUT]), &Default::default());
        trainer
            .train_step(
                rows(observations),
                actions,
                column(log_probs),
                column(values),
                column(advantages),
                column(returns),
                |policy, observations, actions| policy.evaluate_actions(observations, actions),
            )
            .expect("an update");
    }
    let seconds = begin.elapsed().as_secs_f64();

    let env_steps = n_updates * ROLLOUT;
    println!(
        "{{\"library\": \"thrust-rl\", \"task\": \"PPO on CartPole-v1\", \"env_steps\": {env_steps}, \"updates\": {}, \
         \"seconds\": {seconds:.3}, \"env_steps_per_second\": {:.1}, \"n_envs\": {N_ENVS}, \"seed\": {seed}, \
         \"eval_return\": {:.1}, \"eval_episodes\": {EVAL_EPISODES}, \"versions\": {{\"thrust-rl\": \"{}\", \"burn\": \"0.21.0\"}}}}",
        trainer.total_steps(),
        env_steps as f64 / seconds,
        evaluated(&trainer.policy().valid()),
        thrust_rl::VERSION,
    );
}
