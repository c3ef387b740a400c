//! The step of all buildings of a batch with thermal demand, thermal storages or outages.

use ndarray::ArrayView2;

use super::{
    BatteryState,
    battery::ZERO_PLACEHOLDER,
    home_data::Homes,
    homes::{Home, HomeActions, HomeRow, HomeState, HomeStep},
    schema_thermal::USES,
    world::World,
};

/// The buildings of a district, with the columns of their actions.
pub(super) struct Households {
    homes: Vec<Home>,
    /// `[row * n_buildings + building]`.
    pub(super) rows: Vec<HomeRow>,
    tanks: Vec<TankAction>,
}

/// The action of one storage.
struct TankAction {
    building: usize,
    slot: usize,
    column: usize,
    /// Largest amount of the action: what the device can give in an hour, over the capacity, at most 1.
    limit: f32,
}

/// The slabs of a step.
pub(super) struct HomeSlots<'a> {
    /// `[building * n_envs + env]`, as the next two.
    pub(super) homes: &'a mut [HomeState],
    pub(super) batteries: &'a mut [BatteryState],
    pub(super) balance_kwh: &'a mut [f64],
}

impl Households {
    pub(super) fn new(homes: Homes) -> Self {
        Self { homes: homes.homes, rows: homes.rows, tanks: Vec::new() }
    }

    /// Adds the action `name` of `building` in `column`; returns its name and limits, or `None` if it is not one of thermal
    /// storages. A storage that was sized to no capacity keeps its action, as in CityLearn.
    pub(super) fn add_action(&mut self, building: usize, name: &str, column: usize) -> Option<(String, f32, f32)> {
        let slot = USES.iter().position(|part| name.strip_suffix("_storage") == Some(*part))?;
        let home = &self.homes[building];
        let capacity_kwh = home.tanks[slot].as_ref().map_or(0.0, |tank| tank.capacity_kwh);
        let share = home.devices[slot].nominal_kw / capacity_kwh.max(ZERO_PLACEHOLDER);
        let limit = share.min(1.0) as f32;
        self.tanks.push(TankAction { building, slot, column, limit });
        Some((format!("{name}_capacity_share"), -limit, limit))
    }

    /// Number of buildings.
    pub(super) fn n_buildings(&self) -> usize {
        self.homes.len()
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
                let battery = world.batteries[building].as_ref().map(|battery| (battery, &mut slots.batteries[cell]));
                let exogenous = &world.series[index];
                let step = HomeStep { home, row: &self.rows[index], exogenous, hours: world.hours, first };
                step.run(world.physics, &mut slots.homes[cell], battery, wanted);
                slots.balance_kwh[cell] = slots.homes[cell].flows.battery_kwh;
            }
        }
    }
}
