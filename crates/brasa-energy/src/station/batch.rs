//! The station as a batch of environments.

use std::ops::Range;
use std::sync::Arc;

use brasa_env::{Autoreset, Ending, EnvError, EnvSpec, InvalidField, Simulation, Space, StateTag, StepOut, View};

use super::config::{ActionMode, StationConfig};
use super::ledger::StationLedger;
use super::observe::{self, Scales};
use super::reward::degradation_kwh;
use super::site::Site;
use super::world::{Flows, State, World};
use crate::rows;

/// Names of the figures of a step, in the order of [`StepOut::info`].
const INFO: [&str; 15] = [
    "profit",
    "revenue",
    "energy_cost",
    "grid_import_kwh",
    "grid_export_kwh",
    "pv_available_kwh",
    "pv_curtailed_kwh",
    "ev_delivered_kwh",
    "ev_returned_kwh",
    "ev_unmet_kwh",
    "excess_kwh",
    "degradation_kwh",
    "departed",
    "turned_away",
    "overtime_hours",
];

/// Environments of a charging station as a batch; [`StationSimulation`] describes them.
///
/// ```
/// use brasa_energy::station::{Station, StationBatch, StationConfig};
/// use brasa_env::{BatchSlabs, EnvBatch};
/// use ndarray::Array2;
///
/// let mut envs: StationBatch = Station::new(StationConfig::default())?.batch(0..2)?;
/// let mut slabs = BatchSlabs::new(envs.spec());
/// envs.reset(7, &mut slabs)?;
/// let idle = Array2::from_elem((2, envs.spec().action.width()), -1.0);
/// envs.step(idle.view(), &mut slabs)?;
/// assert_eq!(slabs.reward.len(), 2);
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
pub type StationBatch = Autoreset<StationSimulation>;

/// Environments of a charging station, one row each.
///
/// # Actions
/// The battery comes first if there is one, then every socket, groups in the order of the config.
///
/// Continuous actions are clipped to [-1, 1]. The battery's is its power as a fraction of its rated power, positive when
/// charging. A socket's maps from 0 kW at -1 to full power at 1; with `v2g` from full discharge at -1 to full charge at 1. With
/// `socket_actions = "hold-back"` full power is at 0 and above.
///
/// Discrete actions are one level per head: of a socket 0 to `levels`, as a fraction of its full power; with `v2g`, and
/// for the battery, 0 to twice `levels`, of which `levels` is 0 kW and 0 is full discharge.
///
/// Orders are limited to what cars and battery can take, then to the limits of the network.
///
/// # Observations
/// Calendar, prices of the next hours, last power from the grid, PV of the next step, battery, then
/// `occupied`, `soc`, `need`, `stay`, `most_power`, `last_power` and `energy_bound` of all sockets. All are in [-1, 1];
/// the names are in the space.
///
/// # Episodes
/// An episode starts at midnight with free sockets and ends by truncation. Cars that are still connected then are not
/// counted as unmet.
///
/// ```
/// use brasa_energy::station::{Station, StationConfig};
/// use brasa_env::EnvBatch;
///
/// let config = StationConfig::default();
/// let n_actions = 1 + config.n_sockets();
/// let envs = Station::new(config)?.batch(0..4)?;
/// // The battery comes first, then every socket.
/// assert_eq!(envs.spec().action.width(), n_actions);
/// // The batch gives the methods of the simulation.
/// assert_eq!(envs.config().step_minutes, 5);
/// # Ok::<(), brasa_energy::EnergyError>(())
/// ```
#[derive(Debug)]
pub struct StationSimulation {
    pub(crate) world: World,
    spec: EnvSpec,
    scales: Scales,
    decoder: Decoder,
    /// Scratch: one order per socket.
    orders_kw: Vec<f64>,
    /// Scratch: flows of the last step of each environment.
    flows: Vec<Flows>,
}

/// Linear maps from actions to powers.
#[derive(Debug, Clone)]
struct Decoder {
    /// Smallest action: -1 for numbers and 0 for levels.
    low: f32,
    /// Largest action of the battery and of a socket.
    high: f32,
    socket_high: f32,
    battery: Option<(f64, f64)>,
    /// Power per action and power at action 0 of every socket.
    sockets: Vec<(f64, f64)>,
}

impl Decoder {
    fn new(site: &Site) -> Self {
        let config = &site.config;
        let levels = f64::from(config.levels);
        // The power of an action is `slope * action + offset`.
        let line = |kw: f64, both_ways: bool| match (config.actions, both_ways) {
            (ActionMode::Continuous, _) => (kw, 0.0),
            (ActionMode::Discrete, true) => (kw / levels, -kw),
            (ActionMode::Discrete, false) => (kw / levels, 0.0),
        };
        let (socket_most, slope, offset) = config.socket_actions.line();
        let (low, high, socket_high) = match config.actions {
            ActionMode::Continuous => (-1.0, 1.0, socket_most),
            ActionMode::Discrete => (0.0, f32::INFINITY, f32::INFINITY),
        };
        let socket = |kw: f64| match (config.actions, config.v2g) {
            // A share of the way from full discharge to full charge.
            (ActionMode::Continuous, true) => (2.0 * kw * slope, 2.0 * kw * offset - kw),
            (ActionMode::Continuous, false) => (kw * slope, kw * offset),
            (ActionMode::Discrete, both_ways) => line(kw, both_ways),
        };
        Self {
            low,
            high,
            socket_high,
            battery: config.has_battery().then(|| line(config.battery.power_kw, true)),
            sockets: site.socket_kw.iter().map(|kw| socket(*kw)).collect(),
        }
    }

    /// Writes the orders of a row of actions and returns that of the battery, in kW.
    fn decode(&self, action: &[f32], orders_kw: &mut [f64]) -> f64 {
        let power = |action: f32, high: f32, (slope, offset): (f64, f64)| {
            f64::from(action.clamp(self.low, high)) * slope + offset
        };
        let (battery_kw, action) = match self.battery {
            Some(line) => (power(action[0], self.high, line), &action[1..]),
            None => (0.0, action),
        };
        for ((order, action), line) in orders_kw.iter_mut().zip(action).zip(&self.sockets) {
            *order = power(*action, self.socket_high, *line);
        }
        battery_kw
    }
}

/// The space of one row of actions.
fn action_space(config: &StationConfig) -> Space {
    let battery = config.has_battery();
    match config.actions {
        ActionMode::Continuous => {
            let battery = battery.then(|| "battery".to_owned());
            Space::uniform_box(-1.0, 1.0, battery.into_iter().chain(observe::socket_names(config)))
        }
        ActionMode::Discrete => {
            let levels = config.levels as usize;
            let (one_way, both_ways) = (levels + 1, 2 * levels + 1);
            let sockets = vec![if config.v2g { both_ways } else { one_way }; config.n_sockets()];
            Space::MultiDiscrete(battery.then_some(both_ways).into_iter().chain(sockets).collect())
        }
    }
}

impl StationSimulation {
    pub(crate) fn new(site: Arc<Site>, envs: Range<usize>) -> Self {
        let config = &site.config;
        Self {
            spec: EnvSpec {
                info_names: INFO.map(str::to_owned).to_vec(),
                truncation_interval: u64::from(config.n_steps()),
                ..EnvSpec::new(observe::space(config), action_space(config), envs.len())
            },
            scales: Scales::new(&site),
            decoder: Decoder::new(&site),
            orders_kw: vec![0.0; config.n_sockets()],
            flows: vec![Flows::default(); envs.len()],
            world: World::new(site, envs),
        }
    }

    /// The settings.
    pub fn config(&self) -> &StationConfig {
        &self.world.site.config
    }

    /// Flows of the last step of environment `env` (its index in the batch).
    pub fn flows(&self, env: usize) -> &Flows {
        &self.flows[env]
    }

    /// Sum of the flows of the current episode of environment `env`.
    pub fn ledger(&self, env: usize) -> &StationLedger {
        &self.world.state.envs[env].ledger
    }

    /// Energy stored in the stationary battery of environment `env`, in kWh.
    pub fn stored_kwh(&self, env: usize) -> f64 {
        self.world.state.envs[env].stored_kwh
    }

    /// Energy in the connected cars of environment `env`, one entry per socket and 0 at a free one, in kWh.
    pub fn cars_kwh(&self, env: usize) -> &[f64] {
        &self.world.state.sockets.stored_kwh[self.world.places(env)]
    }

    /// Power of every socket of environment `env` in the last step at the cars that are still there, in kW.
    pub fn socket_powers_kw(&self, env: usize) -> &[f64] {
        &self.world.state.sockets.power_kw[self.world.places(env)]
    }

    fn observe(&self, env: usize, row: &mut [f32]) {
        let (state, first) = (&self.world.state, self.world.places(env).start);
        self.scales.write(&self.world.site, &state.envs[env], &state.sockets, first, row);
    }

    /// Rejects actions that mean nothing.
    fn check(&self, action: &[f32]) -> Result<(), EnvError> {
        match &self.spec.action {
            Space::MultiDiscrete(heads) => {
                let is_level =
                    |(action, n): (&f32, &usize)| (*action as usize) < *n && (*action as u32) as f32 == *action;
                match action.iter().zip(heads).find(|pair| !is_level(*pair)) {
                    Some((action, _)) => {
                        let field = InvalidField::new("actions", "must be levels of their heads", *action);
                        Err(EnvError::Argument(field))
                    }
                    None => Ok(()),
                }
            }
            _ => rows::check_numbers(action),
        }
    }
}

/// Tag of saved states; the version changes with their content.
const TAG: StateTag = StateTag::new("station", 3);

impl Simulation for StationSimulation {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn set_seed(&mut self, seed: u64) {
        self.world.state.seed = seed;
    }

    fn episode(&self, env: usize) -> u64 {
        self.world.state.envs[env].episode
    }

    fn start(&mut self, env: usize, episode: u64, view: View<'_>) -> Result<(), EnvError> {
        self.world.begin(env, episode);
        self.observe(env, view.obs);
        Ok(())
    }

    fn step(&mut self, env: usize, actions: &[f32], next: View<'_>, out: StepOut<'_>) -> Result<Ending, EnvError> {
        self.check(actions)?;
        let battery_kw = self.decoder.decode(actions, &mut self.orders_kw);
        let played = self.world.play(env, &self.orders_kw, battery_kw);
        let flows = played.flows;
        self.flows[env] = flows;
        let info: [f64; INFO.len()] = [
            flows.profit(),
            flows.revenue,
            flows.energy_cost,
            flows.ledger.grid_import_kwh,
            flows.ledger.grid_export_kwh,
            flows.ledger.pv_available_kwh,
            flows.ledger.pv_curtailed_kwh,
            flows.ledger.ev_delivered_kwh,
            flows.ledger.ev_returned_kwh,
            flows.ledger.ev_unmet_kwh,
            flows.excess_kwh,
            degradation_kwh(&flows),
            f64::from(flows.departed),
            f64::from(flows.turned_away),
            flows.overtime_hours,
        ];
        out.info.copy_from_slice(&info);
        out.reward[0] = played.reward as f32;
        self.observe(env, next.obs);
        Ok(Ending::of(false, played.truncated))
    }

    fn save(&self) -> Vec<u8> {
        TAG.encode(self.spec.n_envs, &(self.config(), &self.world.state))
    }

    fn load(&mut self, bytes: &[u8]) -> Result<(), EnvError> {
        let state: State = rows::saved(TAG, (self.spec.n_envs, bytes), (self.config(), "station"))?;
        if state.envs.len() != self.spec.n_envs || !state.sockets.has(self.spec.n_envs * self.orders_kw.len()) {
            let reason = format!("it holds {} environments, the batch {}", state.envs.len(), self.spec.n_envs);
            return Err(EnvError::State { reason });
        }
        self.world.state = state;
        Ok(())
    }
}
