//! A custom environment from its rules to a trained policy: the program of `docs/tutorials/own-environment.md`.
//!
//! `cargo run --release -p brasa-examples --example room`

use std::ops::Range;

use brasa::env::{play_episodes, wrappers::NormalizeObs};
use brasa::ndarray::{ArrayView1, ArrayViewMut1, ArrayViewMut2};
use brasa::nn::ActorCriticConfig;
use brasa::ppo::{Ppo, PpoConfig};
use brasa::prelude::*;
use brasa::rand::RngExt;

/// A room that loses heat. The action is the power of the heater.
#[derive(Default)]
struct Room {
    temperature_c: f32,
}

impl Env for Room {
    type State = f32;

    fn obs_space(&self) -> Space {
        Space::named_box([("temperature_c", -20.0, 60.0)])
    }
    fn action_space(&self) -> Space {
        Space::named_box([("power_kw", 0.0, 5.0)])
    }
    fn reset(&mut self, rng: &mut EnvRng, mut obs: ArrayViewMut1<f32>) {
        self.temperature_c = rng.random_range(10.0..20.0);
        obs[0] = self.temperature_c;
    }
    fn step(&mut self, action: ArrayView1<f32>, _: &mut EnvRng, mut obs: ArrayViewMut1<f32>) -> Step {
        let power_kw = action[0].clamp(0.0, 5.0);
        self.temperature_c += 0.02 * (5.0 - self.temperature_c) + 0.15 * power_kw;
        obs[0] = self.temperature_c;
        let reward = -(self.temperature_c - 20.0).abs() - 0.1 * power_kw;
        Step { reward, ..Step::default() }
    }
    // With the state, Brasa saves, resumes and tests the environment.
    fn state(&self) -> f32 {
        self.temperature_c
    }
    fn set_state(&mut self, temperature_c: f32) {
        self.temperature_c = temperature_c;
    }
}

/// Days of 96 steps in rooms with these numbers.
fn days(rooms: Range<usize>) -> Result<TimeLimit<EnvVec<Room>>, EnvError> {
    TimeLimit::new(EnvVec::new(rooms, |_| Room::default())?, 96)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // 1. Test the contract: spaces, repeatability, saved states.
    check_env(200, |rooms| EnvVec::new(rooms, |_| Room::default()))?;

    // 2. Evaluate a baseline in 20 rooms: power in proportion to the missing degrees.
    let mut rule = |view: &BatchSlabs, mut power_kw: ArrayViewMut2<f32>| -> Result<(), EnvError> {
        power_kw.assign(&view.obs.mapv(|temperature_c| (20.0 - temperature_c).clamp(0.0, 5.0)));
        Ok(())
    };
    let episodes = play_episodes(&mut days(0..20)?, &mut rule, 1, 0)?;
    let mean = episodes.iter().map(|(episode, _)| episode.episode_return).sum::<f64>() / 20.0;
    println!("rule: {mean:.1}");

    // 3. Train PPO in 8 rooms, and evaluate it in 20 rooms every 20,000 steps.
    let device = brasa::device::open_named("cpu")?;
    let env = HostEnv::new(NormalizeObs::new(days(0..8)?)?, &device);
    let (spec, rng) = (env.spec().clone(), &mut named_rng(0, "weights", 0));
    let tracked = device.clone().autodiff();
    let network = ActorCriticConfig { squash: true, ..Default::default() };
    let network = MlpActorCritic::new(&network, &spec.obs, &spec.action, &tracked, rng)?;
    let learning_rate = Schedule::linear(1e-3, 0.0);
    let config = PpoConfig { n_steps: 128, gamma: 0.9, learning_rate, ..Default::default() };
    let mut trainer = Trainer::on_policy(env, Ppo::new(network, config, 0)?)
        .total_env_steps(100_000)
        .evaluate_every(20_000, days(0..20)?)
        .build()?;
    trainer.run()?;
    println!("PPO: {:.1}", trainer.best_return().unwrap_or(f64::NAN));
    Ok(())
}
