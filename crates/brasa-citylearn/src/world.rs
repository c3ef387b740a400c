//! The shared state of the environments of a scenario: data, rules, observations, references.

use std::ops::Range;

use brasa_env::field;
use brasa_power::{EnergyError, TraceStart, fail, remarks};

use super::{
    Battery, CityLearnConfig, Physics, Reward,
    district::{Building, District, Exogenous},
    home_batch::Households,
    machines::Machine,
    observation::Layout,
    plugs::Schedule,
    rewards::{self, RewardClass},
    vehicles::Mobility,
};

/// The shared state of all environments of a scenario.
#[derive(Debug)]
pub(super) struct World {
    pub(super) physics: Physics,
    pub(super) reward: Reward,
    /// CityLearn's class that computes the reward, if one does.
    pub(super) reward_class: Option<Box<dyn RewardClass>>,
    pub(super) hours: f64,
    pub(super) n_rows: usize,
    pub(super) n_buildings: usize,
    /// `[row * n_buildings + building]`.
    pub(super) series: Vec<Exogenous>,
    pub(super) batteries: Vec<Option<Battery>>,
    /// Column of each building's action, if it has a battery.
    pub(super) action_columns: Vec<Option<usize>>,
    pub(super) building_names: Vec<String>,
    /// Thermal devices, thermal storages and outages, if there are any.
    pub(super) homes: Option<Households>,
    /// The vehicles and chargers, if there are any.
    pub(super) mobility: Option<Mobility>,
    /// The washing machines, and the columns of their actions.
    pub(super) machines: Vec<Machine>,
    pub(super) machine_columns: Vec<usize>,
    /// Name, lowest and highest value of each action.
    pub(super) actions: Vec<(String, f32, f32)>,
    pub(super) hour_of_day: Vec<f32>,
    /// When the first row begins, if it is known.
    pub(super) start: Option<TraceStart>,
    pub(super) layout: Layout,
    /// The sums of each row without storage.
    pub(super) reference: Vec<Totals>,
    /// Weights of the challenge reward, each divided by the mean of its term without storage.
    pub(super) scaled_weights: [f64; 4],
    /// Weight of a kWh that departing vehicles lack, in the challenge rewards.
    pub(super) shortfall_weight: f64,
    pub(super) warnings: Vec<String>,
}

/// Sums over the buildings of one step.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Totals {
    pub(super) import_kwh: f64,
    pub(super) carbon_kg: f64,
    pub(super) cost: f64,
    /// Net consumption of the district, negative when exporting.
    pub(super) net_kwh: f64,
}

impl Totals {
    /// Adds a building with the net consumption `net_kwh`, with f32 products as in CityLearn.
    #[inline]
    pub(super) fn add(&mut self, net_kwh: f64, row: &Exogenous, single: bool) {
        let import = if net_kwh > 0.0 { net_kwh } else { 0.0 };
        let (carbon_kg, cost) = if single {
            let import = import as f32;
            (f64::from(import * row.carbon), f64::from(import * row.price))
        } else {
            (import * f64::from(row.carbon), import * f64::from(row.price))
        };
        self.import_kwh += import;
        self.carbon_kg += carbon_kg;
        // A negative price is a revenue of imports; CityLearn's prices are never negative.
        self.cost += cost;
        self.net_kwh += net_kwh;
    }
}

/// Refuses data that the physics does not know.
fn check_physics(config: &CityLearnConfig, district: &District) -> Result<(), EnergyError> {
    if config.physics != Physics::Clean && district.hours_per_step != 1.0 {
        return fail(
            "physics",
            "must be `clean` for data that is not by the hour",
            format!("{:?} with {} h", config.physics, district.hours_per_step),
        );
    }
    if config.physics == Physics::CityLearn21 {
        let rule = "must not be `citylearn-2.1` for data with chargers, washing machines, thermal demand or outages";
        if !district.schedule.chargers.is_empty() || !district.machines.is_empty() || district.homes.matter {
            return fail("physics", rule, &config.data);
        }
        if let Some(building) = district.buildings.iter().find(|building| building.is_sized) {
            let rule = "must not be `citylearn-2.1` for data with batteries that are sized automatically";
            return fail("physics", rule, &building.name);
        }
    }
    if let (Physics::CityLearn30, Some(machine)) = (config.physics, district.machines.first()) {
        let rule = "must not be `citylearn-3.0` for data with washing machines, whose format it does not read";
        return fail("physics", rule, &machine.name);
    }
    Ok(())
}

/// The components of an action with name and bounds, and the devices that they command.
struct Columns {
    actions: Vec<(String, f32, f32)>,
    /// Of the battery of each building.
    batteries: Vec<Option<usize>>,
    chargers: Vec<usize>,
    machines: Vec<usize>,
}

impl Columns {
    fn new(
        buildings: &[Building],
        mut homes: Option<&mut Households>,
        schedule: &Schedule,
        machines: &[Machine],
    ) -> Self {
        let mut columns =
            Self { actions: Vec::new(), batteries: Vec::new(), chargers: Vec::new(), machines: Vec::new() };
        let actions = &mut columns.actions;
        for (index, building) in buildings.iter().enumerate() {
            let mut battery = None;
            for action in &building.actions {
                if action == "electrical_storage" && building.battery.is_some() {
                    battery = Some(actions.len());
                    actions.push((format!("{}.electrical_storage_power_share", building.name), -1.0, 1.0));
                } else if let Some((name, low, high)) =
                    homes.as_mut().and_then(|homes| homes.add_action(index, action, actions.len()))
                {
                    actions.push((format!("{}.{name}", building.name), low, high));
                }
            }
            columns.batteries.push(battery);
            for charger in schedule.chargers.iter().filter(|charger| charger.building == index) {
                columns.chargers.push(actions.len());
                let least = if charger.max_discharging_kw > 0.0 { -1.0 } else { 0.0 };
                actions.push((format!("{}.{}_power_share", building.name, charger.name), least, 1.0));
            }
            for machine in machines.iter().filter(|machine| machine.building == index) {
                columns.machines.push(actions.len());
                actions.push((format!("{}.{}_start", building.name, machine.name), 0.0, 1.0));
            }
        }
        columns
    }
}

impl World {
    pub(super) fn new(config: &CityLearnConfig) -> Result<Self, EnergyError> {
        config.validate()?;
        let district = District::load(&config.data, config.load_options())?;
        let located = |warning: &String| format!("{}: {warning}", field::printable(&config.data));
        remarks::warn(&district.warnings.iter().map(located).collect::<Vec<_>>());
        check_physics(config, &district)?;
        let n_rows = district.n_rows();
        let layout = Layout::new(&district, config.observations, config.physics);
        let District {
            buildings,
            hours_per_step,
            mut series,
            hour_of_day,
            start,
            schedule,
            machines,
            random_seed,
            homes,
            reward,
            warnings,
            ..
        } = district;
        let reward_class = match (config.reward, reward) {
            (Reward::Schema, Some((name, attributes))) => Some(rewards::make(&name, &attributes, config.physics)?),
            (reward, _) => {
                let make = |name| rewards::make(name, &serde_json::Map::new(), config.physics);
                reward.class().map(make).transpose()?
            }
        };
        let mut homes = homes.matter.then(|| Households::new(homes));
        if config.physics != Physics::Clean {
            // As CityLearn does when it loads prices and carbon.
            for row in &mut series {
                row.price = row.price.clamp(0.0, 1.0);
                row.carbon = row.carbon.clamp(0.0, 1.0);
            }
        }
        let Columns { actions, batteries, chargers, machines: machine_columns } =
            Columns::new(&buildings, homes.as_mut(), &schedule, &machines);
        if actions.is_empty() {
            return fail("data", "must have a building with a storage, a charger or a washing machine", &config.data);
        }
        let mut world = Self {
            physics: config.physics,
            reward: config.reward,
            reward_class,
            hours: hours_per_step,
            n_rows,
            n_buildings: buildings.len(),
            series,
            action_columns: batteries,
            building_names: buildings.iter().map(|building| building.name.clone()).collect(),
            homes,
            mobility: Mobility::new(schedule, config.physics, chargers, random_seed),
            machines,
            machine_columns,
            actions,
            batteries: buildings
                .into_iter()
                .map(|building| match config.physics {
                    Physics::CityLearn21 => building.battery_citylearn21,
                    _ => building.battery,
                })
                .collect(),
            hour_of_day,
            start,
            layout,
            reference: Vec::new(),
            scaled_weights: [0.0; 4],
            shortfall_weight: 0.0,
            warnings,
        };
        world.reference = (0..n_rows).map(|row| world.without_storage(row, false)).collect();
        world.scaled_weights = world.scale_weights(config)?;
        let mean_import_kwh = world.reference.iter().map(|row| row.import_kwh).sum::<f64>() / n_rows as f64;
        let matters = world.mobility.is_some() && world.reward.is_weighted();
        world.shortfall_weight =
            scaled("vehicle_shortfall", config.weights.vehicle_shortfall, mean_import_kwh, matters)?;
        Ok(world)
    }

    pub(super) fn n_actions(&self) -> usize {
        self.actions.len()
    }

    /// Steps of one pass over the data; CityLearn has no action for the last row.
    pub(super) fn all_steps(&self) -> usize {
        if self.physics == Physics::Clean { self.n_rows } else { self.n_rows - 1 }
    }

    /// Refuses rewards that are neither computed as tensor operations nor linear.
    #[cfg(any(feature = "tensor", feature = "optimum"))]
    pub(super) fn check_reward(&self, purpose: &str) -> Result<(), EnergyError> {
        match self.reward.class() {
            Some(name) => fail("reward", &format!("must be `grid-import` or of the challenge {purpose}"), name),
            None => Ok(()),
        }
    }

    /// Refuses what is not computed as tensor operations.
    #[cfg(feature = "tensor")]
    pub(super) fn check_plain(&self, purpose: &str) -> Result<(), EnergyError> {
        self.check_reward(purpose)?;
        if self.physics == Physics::CityLearn21 {
            return fail("physics", &format!("must not be `citylearn-2.1` {purpose}"), "citylearn-2.1");
        }
        if self.homes.is_some() {
            let rule = format!("must have no thermal demand, thermal storage or outage {purpose}");
            return fail("data", &rule, self.building_names.join(", "));
        }
        Ok(())
    }

    /// Net consumption without storages, vehicles and machines of the building at `index` in the series, in kWh, with the clean rules.
    /// Other than in the reference, devices have a largest power.
    #[cfg(feature = "optimum")]
    pub(super) fn idle_kwh(&self, index: usize) -> f64 {
        let row = &self.series[index];
        let devices = self.homes.as_ref().map_or(0.0, |homes| homes.device_kwh(index, self.hours));
        f64::from(row.load_kwh) + devices - f64::from(row.pv_kwh)
    }

    /// Rows from the observed one to the one that an action changes.
    pub(super) fn ahead(&self) -> usize {
        usize::from(self.physics == Physics::CityLearn21)
    }

    /// Whether the class of rewards sees chargers.
    pub(super) fn reward_sees_chargers(&self) -> bool {
        self.reward_class.as_ref().is_some_and(|class| class.sees_chargers())
    }

    /// By building: the mean worth of the import that a full battery saves, in units of the reward; 0 without a battery.
    pub(super) fn full_battery_worth(&self) -> Vec<f64> {
        let ([w_cost, w_carbon, ..], w_import) = match self.reward {
            Reward::GridImport => ([0.0; 4], 1.0),
            _ => (self.scaled_weights, 0.0),
        };
        let worth = |row: &Exogenous| w_import + w_cost * f64::from(row.price) + w_carbon * f64::from(row.carbon);
        let of_building = |(building, battery): (usize, &Option<Battery>)| {
            let rows = self.series.iter().skip(building).step_by(self.n_buildings);
            let mean = rows.map(worth).sum::<f64>() / self.n_rows as f64;
            // Half the power stands for all.
            battery.as_ref().map_or(0.0, |of| mean * of.power_efficiency.at(0.5).sqrt() * of.capacity_kwh)
        };
        self.batteries.iter().enumerate().map(of_building).collect()
    }

    pub(super) fn steps_per_day(&self) -> usize {
        (24.0 / self.hours).round().max(1.0) as usize
    }

    /// Net consumption without storage of the building at `index` in the series, in kWh; `first` is the first step of an
    /// episode.
    #[inline]
    pub(super) fn net_without_storage(&self, index: usize, first: bool) -> f64 {
        let row = &self.series[index];
        let load_kwh = match &self.homes {
            None => row.load_kwh,
            Some(homes) if homes.is_outage(index) => return 0.0,
            Some(homes) => homes.rows[index].ideal_kwh + row.load_kwh,
        };
        match self.physics {
            Physics::CityLearn25 if first => f64::from(3.0 * load_kwh - row.pv_kwh),
            Physics::CityLearn21 | Physics::CityLearn25 | Physics::CityLearn30 => f64::from(load_kwh - row.pv_kwh),
            Physics::Clean => f64::from(load_kwh) - f64::from(row.pv_kwh),
        }
    }

    /// The sums of a row without storage.
    pub(super) fn without_storage(&self, row: usize, first: bool) -> Totals {
        let mut totals = Totals::default();
        for index in row * self.n_buildings..(row + 1) * self.n_buildings {
            let net_kwh = self.net_without_storage(index, first);
            totals.add(net_kwh, &self.series[index], self.physics != Physics::Clean);
        }
        totals
    }

    /// Cost, carbon in kg, upward changes and daily peaks, both in kWh per step, of these rows without storage.
    pub(super) fn reference_sums(&self, rows: Range<usize>) -> [f64; 4] {
        let reference = &self.reference[rows];
        let sum = |term: fn(&Totals) -> f64| reference.iter().map(term).sum::<f64>();
        let ramps = reference.windows(2).map(|pair| (pair[1].net_kwh - pair[0].net_kwh).max(0.0)).sum();
        let days = reference.chunks(self.steps_per_day());
        let peaks = days.map(|day| day.iter().fold(0.0, |peak: f64, row| peak.max(row.net_kwh))).sum();
        [sum(|row| row.cost), sum(|row| row.carbon_kg), ramps, peaks]
    }

    /// Each weight divided by the mean per step of its term without storage; of the cost, what changes hands, because prices may be
    /// negative.
    fn scale_weights(&self, config: &CityLearnConfig) -> Result<[f64; 4], EnergyError> {
        let [_, carbon_kg, ramps, peaks] =
            self.reference_sums(0..self.reference.len()).map(|sum| sum / self.n_rows as f64);
        let cost = self.reference.iter().map(|row| row.cost.abs()).sum::<f64>() / self.n_rows as f64;
        let (weights, is_used) = (config.weights, self.reward.is_weighted());
        // A term that is 0 for every controller needs no scale.
        let has = |column: fn(&Exogenous) -> f32| is_used && self.series.iter().any(|row| column(row) != 0.0);
        let moves = is_used && self.n_actions() > 0;
        Ok([
            scaled("cost", weights.cost, cost, has(|row| row.price))?,
            scaled("carbon", weights.carbon, carbon_kg, has(|row| row.carbon))?,
            scaled("ramping", weights.ramping, ramps, moves)?,
            scaled("daily_peak", weights.daily_peak, peaks, moves)?,
        ])
    }
}

/// `weight / mean`, or 0 for a term that is always 0. Without a positive mean a term that `matters` has no scale.
fn scaled(term: &str, weight: f64, mean: f64, matters: bool) -> Result<f64, EnergyError> {
    match mean > 0.0 {
        true => Ok(weight / mean),
        false if weight > 0.0 && matters => {
            let rule = "must be 0 for data without any of it without storage, the scale of this term";
            fail(&format!("weights.{term}"), rule, weight)
        }
        false => Ok(0.0),
    }
}
