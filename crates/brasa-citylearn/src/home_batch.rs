//! The step of all buildings of a batch with thermal demand, thermal storages or outages.

use ndarray::ArrayView2;

#[cfg(feature = "optimum")]
use super::thermal::Tank;
use super::{
    BatteryState, Physics,
    battery::ZERO_PLACEHOLDER,
    dynamics::{Dynamics, DynamicsState},
    home_data::Homes,
    homes::{Home, HomeActions, HomeFlows, HomeRow, HomeState, HomeStep},
    schema_thermal::USES,
    world::World,
};

/// The buildings of a district, with the columns of their actions.
#[derive(Debug)]
pub(super) struct Households {
    homes: Vec<Home>,
    /// `[row * n_buildings + building]`.
    pub(super) rows: Vec<HomeRow>,
    tanks: Vec<TankAction>,
    /// By building: the column of the action of its devices, and which ones it controls.
    devices: Vec<Option<(usize, Controlled)>>,
}

/// The devices that an action controls.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Controlled {
    Cooling,
    Heating,
    /// Cooling below 0, heating above.
    Both,
}

impl Controlled {
    /// The shares of cooling and heating; a device that is not controlled serves the demand of the data.
    fn shares(self, action: f64) -> [Option<f64>; 2] {
        match self {
            Self::Cooling => [Some(action.clamp(0.0, 1.0)), None],
            Self::Heating => [None, Some(action.clamp(0.0, 1.0))],
            Self::Both => [Some((-action).clamp(0.0, 1.0)), Some(action.clamp(0.0, 1.0))],
        }
    }
}

/// The action of one storage.
#[derive(Debug)]
struct TankAction {
    building: usize,
    slot: usize,
    column: usize,
    /// Largest amount of the action: what the device can give in an hour, over the capacity, at most 1.
    limit: f32,
}

/// A thermal storage with an action.
#[cfg(feature = "optimum")]
pub(super) struct SteeredTank<'a> {
    pub(super) building: usize,
    pub(super) slot: usize,
    pub(super) column: usize,
    /// Largest amount of the action.
    pub(super) limit: f32,
    pub(super) tank: &'a Tank,
    /// Largest electric power of the device, in kW.
    pub(super) device_kw: f64,
}

#[cfg(feature = "optimum")]
impl SteeredTank<'_> {
    /// Largest charge and discharge of a step, in kWh.
    pub(super) fn limits_kwh(&self, hours: f64) -> [f64; 2] {
        self.tank
            .limits_kwh(hours)
            .map(|limit_kwh| limit_kwh.min(f64::from(self.limit) * self.tank.capacity_kwh * hours))
    }
}

/// The slabs of a step.
pub(super) struct HomeSlots<'a> {
    /// `[building * n_envs + env]`, as the next ones.
    pub(super) homes: &'a mut [HomeState],
    /// The same, or empty without networks.
    pub(super) dynamics: &'a mut [DynamicsState],
    pub(super) batteries: &'a mut [BatteryState],
    pub(super) balance_kwh: &'a mut [f64],
}

impl Households {
    pub(super) fn new(homes: Homes) -> Self {
        let devices = vec![None; homes.homes.len()];
        Self { homes: homes.homes, rows: homes.rows, tanks: Vec::new(), devices }
    }

    fn add_device(&mut self, building: usize, name: &str, column: usize) -> Option<(String, f32, f32)> {
        let has = |slot: usize| f32::from(u8::from(self.homes[building].devices[slot].nominal_kw > ZERO_PLACEHOLDER));
        let (controlled, low, high) = match name {
            "cooling_device" => (Controlled::Cooling, 0.0, 1.0),
            "heating_device" => (Controlled::Heating, 0.0, 1.0),
            "cooling_or_heating_device" => (Controlled::Both, -has(0), has(1)),
            _ => return None,
        };
        self.devices[building] = Some((column, controlled));
        Some((format!("{name}_power_share"), low, high))
    }

    /// Adds the action `name` of `building` in `column`; returns its name and limits, or `None` if it is not one of thermal
    /// storages and devices. A storage that was sized to no capacity keeps its action, as in CityLearn.
    pub(super) fn add_action(&mut self, building: usize, name: &str, column: usize) -> Option<(String, f32, f32)> {
        if let Some(found) = self.add_device(building, name, column) {
            return Some(found);
        }
        let slot = USES.iter().position(|part| name.strip_suffix("_storage") == Some(*part))?;
        let home = &self.homes[building];
        let capacity_kwh = home.tanks[slot].as_ref().map_or(0.0, |tank| tank.capacity_kwh);
        let share = home.devices[slot].nominal_kw / capacity_kwh.max(ZERO_PLACEHOLDER);
        let limit = share.min(1.0) as f32;
        self.tanks.push(TankAction { building, slot, column, limit });
        Some((format!("{name}_capacity_share"), -limit, limit))
    }

    /// The thermal storages with an action.
    #[cfg(feature = "optimum")]
    pub(super) fn steered_tanks(&self) -> impl Iterator<Item = SteeredTank<'_>> {
        self.tanks.iter().filter_map(|&TankAction { building, slot, column, limit }| {
            let home = &self.homes[building];
            let (tank, device_kw) = (home.tanks[slot].as_ref()?, home.devices[slot].nominal_kw);
            Some(SteeredTank { building, slot, column, limit, tank, device_kw })
        })
    }

    /// Electricity of the devices of the building and row at `index` without storages, in kWh.
    #[cfg(feature = "optimum")]
    pub(super) fn device_kwh(&self, index: usize, hours: f64) -> f64 {
        let (row, home) = (&self.rows[index], &self.homes[index % self.homes.len()]);
        let needed = |slot: usize| (f64::from(row.demand_kwh[slot]) / row.cop[slot]).max(0.0);
        (0..3).map(|slot| needed(slot).min(home.devices[slot].nominal_kw * hours)).sum()
    }

    /// Whether the indoor temperature of a building is predicted.
    #[cfg(feature = "optimum")]
    pub(super) fn has_dynamics(&self) -> bool {
        self.homes.iter().any(|home| home.dynamics.is_some())
    }

    /// Whether the building and row at `index` of [`Households::rows`] are without power from the grid.
    pub(super) fn is_outage(&self, index: usize) -> bool {
        self.rows[index].is_outage
    }

    /// The energy that a building in an outage has left after its step, in kWh; `None` without an outage.
    pub(super) fn left_kwh(&self, world: &World, index: usize, flows: &HomeFlows) -> Option<f64> {
        let pv_kwh = f64::from(world.series[index].pv_kwh);
        self.is_outage(index).then(|| flows.left_kwh(pv_kwh, world.physics != Physics::Clean))
    }

    /// Number of buildings.
    pub(super) fn n_buildings(&self) -> usize {
        self.homes.len()
    }

    /// States of charge of the thermal storages of a building; `None` where there is none.
    pub(super) fn tank_socs(&self, building: usize, state: &HomeState) -> [Option<f64>; 3] {
        let tanks = &self.homes[building].tanks;
        std::array::from_fn(|slot| tanks[slot].as_ref().map(|_| state.soc[slot]))
    }

    /// The states of the networks of all buildings and `n_envs` environments, empty without any network.
    pub(super) fn new_dynamics(&self, n_envs: usize) -> Vec<DynamicsState> {
        if self.homes.iter().all(|home| home.dynamics.is_none()) {
            return Vec::new();
        }
        let state = |home: &Home| home.dynamics.as_ref().map_or_else(DynamicsState::default, Dynamics::new_state);
        self.homes.iter().flat_map(|home| std::iter::repeat_n(state(home), n_envs)).collect()
    }

    /// Whether saved states of networks are those of the buildings.
    pub(super) fn fits(&self, states: &[DynamicsState], n_envs: usize) -> bool {
        let cells = states.chunks_exact(n_envs).zip(&self.homes);
        let mut networks = cells.flat_map(|(states, home)| states.iter().map(move |state| (home, state)));
        networks.all(|(home, state)| home.dynamics.as_ref().is_none_or(|dynamics| dynamics.fits(state)))
    }

    /// The state of a building at the start of an episode in `row`.
    pub(super) fn start(&self, building: usize, row: usize) -> HomeState {
        self.homes[building].start(&self.rows[row * self.homes.len() + building])
    }

    /// Steps every building; `clock` is the row of an environment and whether it is the first of its episode.
    pub(super) fn step(
        &self,
        world: &World,
        actions: ArrayView2<f32>,
        clock: impl Fn(usize) -> (usize, bool),
        slots: HomeSlots<'_>,
    ) {
        let n_envs = actions.nrows();
        let mut tanks = self.tanks.iter().peekable();
        for (building, home) in self.homes.iter().enumerate() {
            let first_tank = tanks.clone();
            while tanks.next_if(|tank| tank.building == building).is_some() {}
            for env in 0..n_envs {
                let (row, first) = clock(env);
                let (cell, index) = (building * n_envs + env, row * self.homes.len() + building);
                let mut wanted = HomeActions::default();
                for tank in first_tank.clone().take_while(|tank| tank.building == building) {
                    let action = actions[(env, tank.column)].clamp(-tank.limit, tank.limit);
                    wanted.tanks[tank.slot] = f64::from(action);
                }
                let column = world.action_columns[building];
                wanted.battery = column.map_or(0.0, |column| f64::from(actions[(env, column)].clamp(-1.0, 1.0)));
                let network = home.dynamics.as_ref().zip(slots.dynamics.get_mut(cell));
                if let Some((dynamics, state)) = &network
                    && let Some((column, controlled)) = self.devices[building]
                    && dynamics.is_controlled(state)
                {
                    wanted.devices = controlled.shares(f64::from(actions[(env, column)]));
                }
                let battery = world.batteries[building].as_ref().map(|battery| (battery, &mut slots.batteries[cell]));
                let exogenous = &world.series[index];
                let step = HomeStep { home, row: &self.rows[index], exogenous, hours: world.hours, first };
                let state = &mut slots.homes[cell];
                step.run(world.physics, state, battery, wanted);
                let data_c = f64::from(self.rows[index].room.temperature_c);
                let flows = &state.flows;
                let predicted_c = network
                    .and_then(|(dynamics, network)| dynamics.see(network, row, data_c, |slot| flows.served_kwh(slot)));
                state.temperature_c = predicted_c.unwrap_or(data_c);
                slots.balance_kwh[cell] = slots.homes[cell].flows.battery_kwh;
            }
        }
    }
}
