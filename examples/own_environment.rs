//! A custom environment: a room with a heater, checked against the contract and stepped in a batch, heated by a rule and not at all.
//!
//! `cargo run --release -p brasa-examples --example own_environment`

use brasa::env::{BatchSlabs, Env, EnvBatch, EnvRng, EnvVec, Space, Step, check_env};
use brasa::ndarray::{ArrayView1, ArrayViewMut1};
use brasa::rand::RngExt;

/// A room that loses heat; the action is heating power, the reward penalizes deviation from 20 C and power.
#[derive(Debug, Default)]
pub struct Room {
    temperature_c: f64,
}

const OUTSIDE_C: f64 = 5.0;
const STEPS_PER_DAY: usize = 96;

impl Env for Room {
    type State = f64;

    fn obs_space(&self) -> Space {
        Space::named_box([("temperature_c", -20.0, 60.0)])
    }

    fn action_space(&self) -> Space {
        Space::named_box([("power_kw", 0.0, 5.0)])
    }

    fn reset(&mut self, rng: &mut EnvRng, mut obs: ArrayViewMut1<f32>) {
        // All random numbers come from the given stream, so results do not depend on threads.
        self.temperature_c = rng.random_range(10.0..20.0);
        obs[0] = self.temperature_c as f32;
    }

    fn step(&mut self, action: ArrayView1<f32>, _rng: &mut EnvRng, mut obs: ArrayViewMut1<f32>) -> Step {
        let power_kw = f64::from(action[0].clamp(0.0, 5.0));
        self.temperature_c += 0.02 * (OUTSIDE_C - self.temperature_c) + 0.15 * power_kw;
        obs[0] = self.temperature_c as f32;
        let reward = -(self.temperature_c - 20.0).abs() - 0.1 * power_kw;
        Step { reward: reward as f32, terminated: false, truncated: false }
    }

    fn state(&self) -> f64 {
        self.temperature_c
    }

    fn set_state(&mut self, state: f64) {
        self.temperature_c = state;
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Reproducible, inside its spaces, independent of threads, saved and restored bit for bit.
    check_env(200, |envs| EnvVec::new(envs, |_| Room::default()))?;
    println!("the room keeps the contract");

    for (name, gain) in [("without heating (baseline)", 0.0), ("a proportional controller", 1.0)] {
        let mut rooms = EnvVec::new(0..4, |_| Room::default())?;
        let mut slabs = BatchSlabs::new(rooms.spec());
        rooms.reset(7, &mut slabs)?;
        let mut sums = [0.0; 4];
        for _ in 0..STEPS_PER_DAY {
            let actions = slabs.obs.mapv(|temperature_c| (gain * (20.0 - temperature_c)).clamp(0.0, 5.0));
            rooms.step(actions.view(), &mut slabs)?;
            slabs.reward.iter().zip(&mut sums).for_each(|(reward, sum)| *sum += f64::from(*reward));
        }
        println!("returns of a day with {name}: {sums:.1?}");
    }
    Ok(())
}
