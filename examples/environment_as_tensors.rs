//! Your own environment on the device of the learner: its rules are written once, for the host and for devices.
//!
//! `cargo run --release -p brasa-examples --example environment_as_tensors`; a number after `--` replaces the 400,000 steps.

use brasa::classic::Classic;
use brasa::contracts::{RuleTensors, TensorEnv};
use brasa::env::{After, RuleEnv, Rules};
use brasa::nn::ActorCriticConfig;
use brasa::number::Number;
use brasa::ppo::{Ppo, PpoConfig};
use brasa::prelude::*;
use brasa_examples::{compare, steps};

/// A drone that should hover at a height of 1 m. A state consists of its height in m and its speed in m/s.
#[derive(Clone, PartialEq, Default)]
struct Hover;

// Two numbers of state, one of action, two observed.
impl Rules<2, 1, 2> for Hover {
    const TIME_LIMIT: u32 = 100;
    const OBSERVES_STATE: bool = true;
    const TERMINATES: bool = true;

    fn obs_space(&self) -> Space {
        Space::named_box([("height_m", 0.0, 3.0), ("speed_m_per_s", f32::NEG_INFINITY, f32::INFINITY)])
    }

    fn action_space(&self) -> Space {
        Space::named_box([("thrust", -1.0, 1.0)])
    }

    fn begin<N: Number>(&self, [height, speed]: [N; 2]) -> [N; 2] {
        [height + 0.5, speed - 0.5]
    }

    /// A thrust of 0 balances gravity. The episode ends on the ground and at 3 m.
    #[inline(always)]
    fn step<N: Number>(&self, [height, speed]: [N; 2], [thrust]: [N; 1]) -> After<N, 2> {
        let speed = speed + thrust.clamp(-1.0, 1.0) * 0.2;
        let height = (height + speed * 0.05).clamp(0.0, 3.0);
        let crashed = N::either(height.equal(height.constant(0.0)), height.equal(height.constant(3.0)));
        let reward = -((height - 1.0).abs().min_of(1.0)) + 1.0 - thrust.square() * 0.01;
        After { state: [height, speed], reward, terminated: Some(crashed) }
    }

    #[inline(always)]
    fn observe<N: Number>(&self, state: [N; 2]) -> [N; 2] {
        state
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Another device, for example `cuda`, needs no other change.
    let device = brasa::device::open_named("cpu")?;
    let env = TensorEnv::new(RuleTensors::new(Hover), 256, &device)?.with_time_limit(Hover::TIME_LIMIT)?;
    let (spec, rng) = (env.spec().clone(), &mut named_rng(0, "weights", 0));
    let network = ActorCriticConfig::default();
    let network = MlpActorCritic::new(&network, &spec.obs, &spec.action, &device.clone().autodiff(), rng)?;
    let config = PpoConfig { n_steps: 32, batch_size: 1024, gamma: 0.98, gae_lambda: 0.8, ..PpoConfig::default() };
    let config = PpoConfig { learning_rate: Schedule::linear(2e-3, 0.0), ..config };
    let mut trainer =
        Trainer::on_policy(env, Ppo::new(network, config, 0)?).total_env_steps(steps(400_000)?).build()?;
    trainer.run()?;
    // Played on the host, by the same rules.
    let on_host = Classic::new(|| RuleEnv::new(Hover), Hover::TIME_LIMIT);
    compare(&on_host, trainer.training(), &["random"])
}
