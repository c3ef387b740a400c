//! The microgrid as a batch of environments.

use std::ops::Range;
use std::sync::Arc;

use brasa_env::{Autoreset, Ending, EnvError, EnvSpec, Simulation, Space, StateTag, StepOut, View};
use brasa_power::Ledger;

use super::config::{ActionMode, IquitosConfig};
use super::dispatch::{BatteryOrder, Flows};
use super::observe::{self, Scales};
use super::site::Site;
use super::world::{State, World};
use crate::rows;

/// Names of the figures of a step, in the order of [`StepOut::info`].
const INFO: [&str; 13] = [
    "grid_import_kwh",
    "carbon_kg",
    "cost",
    "reference_carbon_kg",
    "reference_cost",
    "pv_available_kwh",
    "pv_curtailed_kwh",
    "load_kwh",
    "ev_delivered_kwh",
    "ev_unmet_kwh",
    "ev_turned_away",
    "grid_excess_kwh",
    "feeder_excess_kwh",
];

/// Environments of the Iquitos microgrid as a batch; [`IquitosSimulation`] describes them.
///
/// ```
/// use brasa_energy::iquitos::{Iquitos, IquitosBatch, IquitosConfig};
/// use brasa_env::{BatchSlabs, EnvBatch};
/// use ndarray::Array2;
///
/// let mut envs: IquitosBatch = Iquitos::new(IquitosConfig::default())?.batch(0..2)?;
/// let mut slabs = BatchSlabs::new(envs.spec());
/// envs.reset(7, &mut slabs)?;
/// // The battery and 128 sockets; all at half of what they may charge.
/// envs.step(Array2::zeros((2, 129)).view(), &mut slabs)?;
/// assert!(slabs.reward.iter().all(|reward| reward.is_finite()));
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
pub type IquitosBatch = Autoreset<IquitosSimulation>;

/// Environments of the Iquitos microgrid, one row each.
///
/// # Actions
/// Actions are clipped to [-1, 1]. The first is the battery's power as a fraction of its rated power, positive when
/// charging. The others map from 0 kW at -1 to full power at 1: one per socket (motos first), or one cap for all motos
/// and one for all mototaxis. Sockets deliver at most the vehicles' needs; power above the feeder's limit is reduced in
/// proportion.
///
/// # Observations
/// Twenty numbers of the site (calendar, tariff, PV and load of the next step, battery, last step,
/// sums over sockets), then `occupied` of all sockets, `need`, `dwell` and `power` likewise, or four sums
/// per class. All are in [-1, 1], one is in [0, 2]; the names are in the space.
///
/// # Episodes
/// An episode ends by truncation, at the end of the year or of the training window; the next one starts
/// automatically. At the end of the year `next_obs` is the first step of the new year.
///
/// ```
/// use brasa_energy::iquitos::{ActionMode, Iquitos, IquitosConfig};
/// use brasa_env::EnvBatch;
///
/// let config = IquitosConfig { actions: ActionMode::Aggregate, ..IquitosConfig::default() };
/// let envs = Iquitos::new(config)?.batch(0..4)?;
/// // One row per environment: the battery and two caps.
/// assert_eq!((envs.spec().n_agents, envs.spec().action.width()), (1, 3));
/// # Ok::<(), brasa_energy::EnergyError>(())
/// ```
#[derive(Debug)]
pub struct IquitosSimulation {
    pub(crate) world: World,
    spec: EnvSpec,
    scales: Scales,
    /// Scratch: one order per socket.
    orders_kw: Vec<f32>,
    /// Scratch: flows of the last step of each environment.
    flows: Vec<Flows>,
}

impl IquitosSimulation {
    pub(crate) fn new(site: Arc<Site>, envs: Range<usize>) -> Self {
        let config = &site.config;
        let mut names = vec!["battery".to_owned()];
        match config.actions {
            ActionMode::PerSocket => names.extend((0..config.n_sockets()).map(|i| format!("socket_{i}"))),
            ActionMode::Aggregate => names.extend(["moto_cap".to_owned(), "mototaxi_cap".to_owned()]),
        }
        Self {
            spec: EnvSpec {
                info_names: INFO.map(str::to_owned).to_vec(),
                truncation_interval: u64::from(site.episode_steps()),
                ..EnvSpec::new(observe::space(config), Space::uniform_box(-1.0, 1.0, names), envs.len())
            },
            scales: Scales::new(config).with_given(&site),
            orders_kw: vec![0.0; config.n_sockets()],
            flows: vec![Flows::default(); envs.len()],
            world: World::new(site, envs),
        }
    }

    /// The settings.
    pub fn config(&self) -> &IquitosConfig {
        &self.world.site.config
    }

    /// Flows of the last step of environment `env` (its index in the batch).
    pub fn flows(&self, env: usize) -> &Flows {
        &self.flows[env]
    }

    /// Sum of the flows of the current episode of environment `env`.
    pub fn ledger(&self, env: usize) -> &Ledger {
        &self.world.state.envs[env].ledger
    }

    /// State of charge of the battery of environment `env`.
    pub fn soc(&self, env: usize) -> f64 {
        let capacity_kwh = self.config().battery.capacity_kwh;
        if capacity_kwh > 0.0 { self.world.state.envs[env].stored_kwh / capacity_kwh } else { 0.0 }
    }

    fn observe(&self, env: usize, row: &mut [f32]) {
        self.scales.write(&self.world.site, &self.world.state.envs[env], self.world.sockets(env), row);
    }

    /// Converts a row of actions to orders.
    fn decode(&mut self, action: &[f32]) -> BatteryOrder {
        let vehicles = &self.world.site.config.vehicles;
        let shares = self.world.site.config.socket_actions;
        let power_kw = |action: f32, socket_kw: f64| shares.share(action.clamp(-1.0, 1.0)) * socket_kw as f32;
        let (motos, mototaxis) = self.orders_kw.split_at_mut(vehicles.moto.sockets);
        let (moto_kw, mototaxi_kw) = (vehicles.moto.socket_kw, vehicles.mototaxi.socket_kw);
        match self.world.site.config.actions {
            ActionMode::PerSocket => {
                let (first, second) = action[1..].split_at(motos.len());
                motos.iter_mut().zip(first).for_each(|(order, a)| *order = power_kw(*a, moto_kw));
                mototaxis.iter_mut().zip(second).for_each(|(order, a)| *order = power_kw(*a, mototaxi_kw));
            }
            ActionMode::Aggregate => {
                motos.fill(power_kw(action[1], moto_kw));
                mototaxis.fill(power_kw(action[2], mototaxi_kw));
            }
        }
        BatteryOrder::Power(f64::from(action[0].clamp(-1.0, 1.0)) * self.world.site.config.battery.power_kw)
    }
}

/// Tag of saved states; the version changes with their content.
const TAG: StateTag = StateTag::new("iquitos", 3);

impl Simulation for IquitosSimulation {
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
        rows::check_numbers(actions)?;
        let order = self.decode(actions);
        let played = self.world.play(env, &self.orders_kw, order);
        let flows = played.flows;
        self.flows[env] = flows;
        let info: [f64; INFO.len()] = [
            flows.ledger.grid_import_kwh,
            flows.carbon_kg,
            flows.cost,
            flows.reference_carbon_kg,
            flows.reference_cost,
            flows.ledger.pv_available_kwh,
            flows.ledger.pv_curtailed_kwh,
            flows.ledger.load_kwh,
            flows.ledger.ev_delivered_kwh,
            flows.ledger.ev_unmet_kwh,
            flows.turned_away,
            flows.grid_excess_kwh,
            flows.feeder_excess_kwh,
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
        let state: State = rows::saved(TAG, (self.spec.n_envs, bytes), (self.config(), "microgrid"))?;
        if state.envs.len() != self.spec.n_envs || state.need_kwh.len() != self.world.state.need_kwh.len() {
            let reason = format!("it holds {} environments, the batch {}", state.envs.len(), self.spec.n_envs);
            return Err(EnvError::State { reason });
        }
        self.world.state = state;
        Ok(())
    }
}
