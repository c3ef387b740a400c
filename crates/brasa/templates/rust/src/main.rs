//! A room with a heater: an environment, a thermostat as a baseline, a figure and a report section; the rest is the
//! command's. Try `cargo run --release -- train room.toml`.

use std::ops::Range;
use std::process::ExitCode;

use brasa::ndarray::{ArrayView1, ArrayViewMut1, ArrayViewMut2};
use brasa::prelude::*;
use brasa::rand::RngExt;
use brasa::serde::{Deserialize, Serialize};

/// `[scenario.room]`.
#[derive(Clone, Serialize, Deserialize)]
#[serde(crate = "brasa::serde", default, deny_unknown_fields)]
struct RoomConfig {
    /// Number of steps of a day; a step is a quarter of an hour.
    steps: u32,
    /// Cost of an hour at full power, relative to an hour with one degree too cold.
    energy_price: f32,
}

impl Default for RoomConfig {
    fn default() -> Self {
        Self { steps: 96, energy_price: 0.3 }
    }
}

struct Room {
    config: RoomConfig,
    state: (f32, f32), // inside, outside, in degrees
    energy_kwh: f64,
}

impl Env for Room {
    type State = (f32, f32);
    fn obs_space(&self) -> Space {
        Space::named_box([("inside", -20.0, 40.0), ("outside", -20.0, 40.0)])
    }
    fn action_space(&self) -> Space {
        Space::uniform_box(0.0, 1.0, ["heating"])
    }
    fn info_names(&self) -> Vec<String> {
        vec!["energy_kwh".into()]
    }
    fn info(&self, mut info: ArrayViewMut1<f64>) {
        info[0] = self.energy_kwh;
    }
    fn reset(&mut self, rng: &mut EnvRng, mut obs: ArrayViewMut1<f32>) {
        self.state = (16.0, rng.random_range(-5.0..10.0));
        obs.assign(&ArrayView1::from(&[self.state.0, self.state.1]));
    }
    fn step(&mut self, action: ArrayView1<f32>, rng: &mut EnvRng, mut obs: ArrayViewMut1<f32>) -> Step {
        let (inside, outside) = self.state;
        let heating = action[0].clamp(0.0, 1.0);
        self.state.0 = inside + 0.02 * (outside - inside) + 0.8 * heating;
        self.state.1 = (outside + rng.random_range(-0.5..0.5)).clamp(-15.0, 20.0);
        self.energy_kwh = 0.25 * 2.0 * f64::from(heating); // 2 kW for a quarter of an hour
        obs.assign(&ArrayView1::from(&[self.state.0, self.state.1]));
        let reward = -0.25 * ((20.0 - self.state.0).max(0.0) + self.config.energy_price * heating);
        Step { reward, ..Step::default() }
    }
    fn state(&self) -> Self::State {
        self.state
    }
    fn set_state(&mut self, state: Self::State) {
        self.state = state;
    }
}

struct Rooms(RoomConfig);

impl Scenario for Rooms {
    fn envs(&self, _: Split, envs: Range<usize>) -> Result<Box<dyn EnvBatch>, EnvError> {
        let room = |_| Room { config: self.0.clone(), state: (16.0, 0.0), energy_kwh: 0.0 };
        Ok(Box::new(TimeLimit::new(EnvVec::new(envs, room)?, self.0.steps)?))
    }
    fn figures(&self) -> Vec<Figure> {
        vec![Figure::new("energy_kwh", "energy [kWh]").less_is_better()]
    }
    fn baselines(&self) -> Vec<Baseline> {
        let thermostat = |view: &BatchSlabs, mut actions: ArrayViewMut2<f32>| -> Result<(), EnvError> {
            let cold = view.obs.column(0).mapv(|inside| f32::from(u8::from(inside < 20.0)));
            actions.column_mut(0).assign(&cold);
            Ok(())
        };
        vec![Baseline::new("thermostat", BaselineKind::Heuristic).by(move || Box::new(thermostat))]
    }
}

fn main() -> ExitCode {
    let day = Section::new("day").scripts(&[include_str!("day.js")]);
    let room = ScenarioEntry::new("room", |config| Ok::<_, EnvError>(Rooms(config))).section(day);
    App::new("room").with(brasa::algorithms()).scenario(room).main()
}
