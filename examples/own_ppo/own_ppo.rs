//! PPO on an environment of one's own, a boat that holds its place in a current, with a network of Burn's layers.
//!
//! `cargo run --release -p example-own-ppo --example own_ppo`; a number after `--` replaces the 100,000 steps.

use brasa::ndarray::{ArrayView1, ArrayViewMut1, aview1};
use brasa::nn::{ActorCriticModule, ModuleActorCritic};
use brasa::ppo::{Ppo, PpoConfig};
use brasa::prelude::*;
use brasa::train::evaluate;
use burn::nn::{Linear, LinearConfig};
use burn::prelude::*;

/// Place and current.
#[derive(Default)]
struct Boat(f32, f32);

impl Env for Boat {
    type State = (f32, f32);
    fn obs_space(&self) -> Space {
        Space::uniform_box(-10.0, 10.0, ["place", "current"])
    }
    fn action_space(&self) -> Space {
        Space::named_box([("throttle", -1.0, 1.0)])
    }
    fn reset(&mut self, rng: &mut EnvRng, mut obs: ArrayViewMut1<f32>) {
        *self = Boat(rng.random_range(-5.0..5.0), rng.random_range(-0.5..0.5));
        obs.assign(&aview1(&[self.0, self.1]));
    }
    fn step(&mut self, action: ArrayView1<f32>, rng: &mut EnvRng, mut obs: ArrayViewMut1<f32>) -> Step {
        self.1 = (self.1 + rng.random_range(-0.1..0.1)).clamp(-0.5, 0.5);
        self.0 = (self.0 + self.1 + action[0]).clamp(-10.0, 10.0);
        obs.assign(&aview1(&[self.0, self.1]));
        Step { reward: -self.0.abs(), ..Step::default() }
    }
    fn state(&self) -> Self::State {
        (self.0, self.1)
    }
    fn set_state(&mut self, state: Self::State) {
        *self = Boat(state.0, state.1);
    }
}

#[derive(Module, Debug)]
struct Network {
    body: Linear,
    actor: Linear,
    critic: Linear,
}

impl ActorCriticModule for Network {
    type Obs = Obs;

    fn forward(&self, obs: Obs) -> (Tensor<2>, Tensor<1>) {
        let features = self.body.forward(obs.values).tanh();
        (self.actor.forward(features.clone()), self.critic.forward(features).squeeze_dim(1))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let steps = std::env::args().nth(1).map_or(Ok(100_000), |steps| steps.parse())?;
    let device = brasa::device::open_named("cpu")?;
    let boats = || TimeLimit::new(EnvVec::new(0..8, |_| Boat::default())?, 100);
    let env = HostEnv::new(boats()?, &device);
    let layer = |inputs, outputs| LinearConfig::new(inputs, outputs).init(&device.clone().autodiff());
    let network = Network { body: layer(2, 64), actor: layer(64, 1), critic: layer(64, 1) };
    let config = PpoConfig { n_steps: 128, ..PpoConfig::default() };
    let ppo = Ppo::new(ModuleActorCritic::new(network, env.spec())?, config, 0)?;
    let mut trainer = Trainer::on_policy(env, ppo).total_env_steps(steps).build()?;
    trainer.run()?;
    let played = evaluate(&trainer.training().policy(), &mut HostEnv::new(boats()?, &device), 20, 1)?;
    println!("mean return {:.1}", played.iter().map(|e| e.episode_return).sum::<f64>() / played.len() as f64);
    Ok(())
}
