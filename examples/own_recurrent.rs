//! A custom network that remembers: a gated unit of Burn's layers balances a pole whose speeds it does not see.
//!
//! `cargo run --release -p brasa-examples --example own_recurrent`; a number after `--` replaces the 100,000 steps.

use brasa::classic::CartPoleNoVelocity;
use brasa::contracts::Schedule;
use brasa::nn::{ActorCriticModule, ModuleActorCritic};
use brasa::ppo::{Ppo, PpoConfig};
use brasa::prelude::*;
use burn::nn::{Linear, LinearConfig};
use burn::prelude::*;
use burn::tensor::activation::sigmoid;

const CELLS: usize = 32;

/// `h' = h + z (n - h)` with a gate `z` and a candidate `n` of the observation and `h`.
#[derive(Module, Debug)]
struct Network {
    gate: Linear,
    candidate: Linear,
    actor: Linear,
    critic: Linear,
}

impl ActorCriticModule for Network {
    type Obs = Obs;

    fn forward(&self, obs: Obs) -> (Tensor<2>, Tensor<1>) {
        let state = Tensor::zeros([obs.values.dims()[0], CELLS], &obs.values.device());
        let (outputs, values, _) = self.step(obs, state);
        (outputs, values)
    }

    fn state_width(&self) -> usize {
        CELLS
    }

    fn step(&self, obs: Obs, state: Tensor<2>) -> (Tensor<2>, Tensor<1>, Tensor<2>) {
        // Positions and angles are small numbers.
        let x = Tensor::cat(vec![obs.values * 10.0, state.clone()], 1);
        let change = self.candidate.forward(x.clone()).tanh() - state.clone();
        let state = state + sigmoid(self.gate.forward(x)) * change;
        // The loss of values is large here: the memory learns from that of the actor alone.
        (self.actor.forward(state.clone()), self.critic.forward(state.clone().detach()).squeeze_dim(1), state)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let steps = std::env::args().nth(1).map_or(Ok(100_000), |steps| steps.parse())?;
    let device = brasa::device::open_named("cpu")?;
    let poles = || TimeLimit::new(EnvVec::new(0..8, |_| CartPoleNoVelocity::default())?, 500);
    let env = HostEnv::new(poles()?, &device);
    let layer = |inputs, outputs| LinearConfig::new(inputs, outputs).init(&device.clone().autodiff());
    let network = Network {
        gate: layer(4 + CELLS, CELLS),
        candidate: layer(4 + CELLS, CELLS),
        actor: layer(CELLS, 2),
        critic: layer(CELLS, 1),
    };
    let config = PpoConfig {
        n_steps: 64,
        batch_size: 512,
        n_epochs: 20,
        gamma: 0.98,
        learning_rate: Schedule::linear(1e-3, 0.0),
        ..PpoConfig::default()
    };
    let ppo = Ppo::new(ModuleActorCritic::new(network, env.spec())?, config, 0)?;
    let mut trainer = Trainer::on_policy(env, ppo).total_env_steps(steps).build()?;
    trainer.run()?;
    let played = brasa::train::evaluate(&trainer.training().policy(), &mut HostEnv::new(poles()?, &device), 20, 1)?;
    println!("mean return {:.1} of 500", played.iter().map(|e| e.episode_return).sum::<f64>() / played.len() as f64);
    Ok(())
}
