//! Three agents with one policy: boats on a line take a buoy each. A reward is minus the number of buoys without a boat, for all boats.
//!
//! `cargo run --release -p brasa-examples --example own_team`; a number after `--` replaces the 100,000 steps.

use brasa::device::open_named;
use brasa::env::{Ending, MultiAgentEnv, StepOut, View, play_episodes};
use brasa::ndarray::ArrayViewMut2;
use brasa::nn::ActorCriticConfig;
use brasa::ppo::{Ppo, PpoConfig};
use brasa::prelude::*;
use brasa_examples::steps;
use rand::seq::index::sample;

const BOATS: usize = 3;
const PLACES: usize = 12;

/// Places of boats and of buoys.
#[derive(Default)]
struct Harbor([[f32; BOATS]; 2]);

impl Harbor {
    /// A boat sees its number, the way to each buoy and the way to each boat.
    fn observe(&self, view: View<'_>) {
        let [boats, buoys] = &self.0;
        for (i, row) in view.obs.chunks_exact_mut(1 + 2 * BOATS).enumerate() {
            row[0] = i as f32;
            row[1..].iter_mut().zip(buoys.iter().chain(boats)).for_each(|(way, place)| *way = place - boats[i]);
        }
    }
}

impl MultiAgentEnv for Harbor {
    type State = [[f32; BOATS]; 2];
    fn spec(&self) -> EnvSpec {
        let names = ["number", "buoy_0", "buoy_1", "buoy_2", "boat_0", "boat_1", "boat_2"];
        let obs = Space::uniform_box(-(PLACES as f32), PLACES as f32, names);
        EnvSpec { n_agents: BOATS, truncation_interval: EnvSpec::NEVER, ..EnvSpec::new(obs, Space::Discrete(3), 1) }
    }
    fn reset(&mut self, rng: &mut EnvRng, view: View<'_>) {
        for places in &mut self.0 {
            let drawn = sample(rng, PLACES, BOATS);
            places.iter_mut().zip(drawn).for_each(|(place, drawn)| *place = drawn as f32);
        }
        self.0[1].sort_by(f32::total_cmp);
        self.observe(view);
    }
    fn step(&mut self, actions: &[f32], _: &mut EnvRng, next: View<'_>, out: StepOut<'_>) -> Ending {
        let [boats, buoys] = &mut self.0;
        for (boat, action) in boats.iter_mut().zip(actions) {
            *boat = (*boat + action - 1.0).clamp(0.0, PLACES as f32 - 1.0); // left, wait, right
        }
        out.reward.fill(-(buoys.iter().filter(|buoy| !boats.contains(buoy)).count() as f32));
        self.observe(next);
        Ending::None
    }
    fn state(&self) -> Self::State {
        self.0
    }
    fn set_state(&mut self, state: Self::State) {
        self.0 = state;
    }
}

/// The first boat from the left takes the first buoy, and so on: no other order has a shorter sum of ways.
fn in_order(view: &BatchSlabs, mut actions: ArrayViewMut2<f32>) -> Result<(), EnvError> {
    for (row, mut action) in view.obs.rows().into_iter().zip(actions.rows_mut()) {
        let is_before = |(boat, way): (usize, &f32)| *way < 0.0 || (*way == 0.0 && (boat as f32) < row[0]);
        let place = row.iter().skip(1 + BOATS).enumerate().filter(|boat| is_before(*boat)).count();
        action[0] = row[1 + place].clamp(-1.0, 1.0) + 1.0;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = open_named("cpu")?;
    let harbors = |envs| TimeLimit::new(EnvVec::multi_agent(envs, |_| Harbor::default())?, 20);
    check_env(100, harbors)?;
    let mean_return = |controller: &mut dyn Controller| -> Result<f64, EnvError> {
        let episodes = play_episodes(&mut harbors(0..100)?, controller, 1, 0)?;
        Ok(episodes.iter().map(|(episode, _)| episode.episode_return).sum::<f64>() / episodes.len() as f64)
    };
    let env = HostEnv::new(harbors(0..16)?, &device);
    let (spec, mut weights) = (env.spec().clone(), named_rng(7, "weights", 0));
    let tracked = device.clone().autodiff();
    let network = MlpActorCritic::new(&ActorCriticConfig::default(), &spec.obs, &spec.action, &tracked, &mut weights)?;
    let config =
        PpoConfig { n_steps: 64, gamma: 0.9, learning_rate: Schedule::linear(2e-3, 0.0), ..PpoConfig::default() };
    let mut trainer =
        Trainer::on_policy(env, Ppo::new(network, config, 7)?).total_env_steps(steps(100_000)?).build()?;
    trainer.run()?;
    let mut policy = PolicyController::new(trainer.training().policy(), &spec, None, &device);
    let (rule, trained) = (mean_return(&mut in_order)?, mean_return(&mut policy)?);
    println!("mean return: in order {rule:.1}, trained {trained:.1}");
    Ok(())
}
