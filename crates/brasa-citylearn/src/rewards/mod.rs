//! CityLearn's classes of rewards, by their names in Python.
//!
//! A class computes the reward of one building; the agent's reward is the sum over the buildings. Another one takes a file
//! that implements [`RewardClass`] and a line in [`CLASSES`].

mod chargers;
mod comfort;
mod net;
mod solar;

use brasa_env::field;
use brasa_power::{EnergyError, fail};
use serde_json::{Map, Value};

use super::{
    BatteryState, Physics,
    homes::{HomeState, Room},
    vehicles::Asked,
    world::World,
};

/// What a reward sees of a building after a step.
pub(super) struct Seen {
    /// Net consumption of the building, in kWh.
    pub(super) net_kwh: f64,
    /// Net consumption of the district, in kWh.
    pub(super) district_kwh: f64,
    /// States of charge of the storages for cooling, heating, hot water and electricity; `None` without a capacity.
    pub(super) socs: [Option<f64>; 4],
    /// Cold and heat that reach the rooms, in kWh.
    pub(super) cooling_kwh: f64,
    pub(super) heating_kwh: f64,
    pub(super) temperature_c: f64,
    pub(super) room: Room,
    /// Sum over the buildings of the district of `E |E|` with their net consumption `E`, in kWh^2.
    pub(super) district_squares: f64,
    /// Energy by which the requests of chargers were above their limits, in kWh.
    pub(super) violation_kwh: f64,
}

/// What a reward sees of a charger after a step.
pub(super) struct SeenCharger {
    /// What the action asked for, in kWh on the grid side, positive when charging.
    pub(super) asked_kwh: f64,
    pub(super) vehicle: Option<SeenVehicle>,
    pub(super) max_charging_kw: f64,
    pub(super) max_discharging_kw: f64,
}

/// A vehicle at a charger.
pub(super) struct SeenVehicle {
    pub(super) soc_before: f64,
    pub(super) soc: f64,
    pub(super) capacity_kwh: f64,
    /// The energy that its depth of discharge leaves.
    pub(super) least_kwh: f64,
    /// At departure; below 0 if unknown.
    pub(super) required_soc: f64,
    /// Until departure.
    pub(super) hours_left: f64,
}

/// A class of rewards with its attributes.
pub(super) trait RewardClass: std::fmt::Debug + Send + Sync {
    /// The reward of one building.
    fn reward(&self, seen: &Seen) -> f64;

    /// Whether chargers add to the reward.
    fn sees_chargers(&self) -> bool {
        false
    }

    /// What a charger adds to the reward of its building.
    fn of_charger(&self, _building: &Seen, _charger: &SeenCharger) -> f64 {
        0.0
    }
}

/// Makes a class from its attributes.
type Make = fn(&Attributes) -> Result<Box<dyn RewardClass>, EnergyError>;

/// The classes by their names in Python.
const CLASSES: [(&str, Make); 7] = [
    ("RewardFunction", net::import),
    ("MARL", net::marl),
    ("IndependentSACReward", net::independent),
    ("SolarPenaltyReward", solar::make),
    ("ComfortReward", comfort::make),
    ("SolarPenaltyAndComfortReward", comfort::with_solar),
    ("Electric_Vehicles_Reward_Function", chargers::make),
];

/// The class `name`, also with its module in front, with `attributes`, as it is in the version of CityLearn that has `physics`.
///
/// # Errors
/// [`EnergyError::Field`] if the class or an attribute is unknown, or an attribute is invalid.
pub(super) fn make(
    name: &str,
    attributes: &Map<String, Value>,
    physics: Physics,
) -> Result<Box<dyn RewardClass>, EnergyError> {
    let short = name.rsplit('.').next().unwrap_or_default();
    let Some((_, make)) = CLASSES.iter().find(|(known, _)| *known == short) else {
        let known: Vec<&str> = CLASSES.iter().map(|(name, _)| *name).collect();
        return fail("reward", &format!("must be a class of {}", known.join(", ")), field::printable(name));
    };
    make(&Attributes { class: short, values: attributes, physics })
}

/// What rewards are computed from, of all environments.
#[derive(Clone, Copy)]
pub(super) struct Sources<'a> {
    /// `[building * n_envs + env]`, as the next two.
    pub(super) homes: &'a [HomeState],
    pub(super) batteries: &'a [BatteryState],
    pub(super) net_kwh: &'a [f64],
    /// `[env * n_vehicles + vehicle]`.
    pub(super) vehicles: &'a [BatteryState],
    /// `[env * n_chargers + charger]`.
    pub(super) asked: &'a [Asked],
    /// `[env * n_shown + place]`: what the limits on chargers show.
    pub(super) shown: &'a [f64],
}

/// The reward of environment `env` after a step with `row`.
pub(super) fn district(
    world: &World,
    class: &dyn RewardClass,
    (env, n_envs, row): (usize, usize, usize),
    from: Sources<'_>,
) -> f64 {
    let cells = (0..world.n_buildings).map(|building| building * n_envs + env);
    let nets = || cells.clone().map(|cell| from.net_kwh[cell]);
    let (district_kwh, district_squares) = (nets().sum(), nets().map(|net| net * net.abs()).sum());
    let mobility = world.mobility.as_ref().filter(|_| class.sees_chargers());
    let of_env = |all: usize| env * (all / n_envs)..(env + 1) * (all / n_envs);
    let (vehicles, asked) = (&from.vehicles[of_env(from.vehicles.len())], &from.asked[of_env(from.asked.len())]);
    let shown = &from.shown[of_env(from.shown.len())];
    let rewards = cells.clone().enumerate().map(|(building, cell)| {
        let battery = world.batteries[building].as_ref().map(|_| from.batteries[cell].soc);
        let mut seen = Seen {
            net_kwh: from.net_kwh[cell],
            district_kwh,
            district_squares,
            violation_kwh: mobility.map_or(0.0, |mobility| mobility.violation_kwh(building, shown)),
            socs: [None, None, None, battery],
            cooling_kwh: 0.0,
            heating_kwh: 0.0,
            temperature_c: 0.0,
            room: Room::default(),
        };
        if let Some(households) = &world.homes {
            let state = &from.homes[cell];
            let tanks = households.tank_socs(building, state);
            seen.socs[..3].copy_from_slice(&tanks);
            (seen.cooling_kwh, seen.heating_kwh) = (state.flows.served_kwh(0), state.flows.served_kwh(1));
            seen.temperature_c = state.temperature_c;
            seen.room = households.rows[row * world.n_buildings + building].room;
        }
        let of_chargers = mobility.map_or(0.0, |mobility| {
            let see = |charger: usize| mobility.seen(row, charger, world.hours, asked[charger], vehicles);
            mobility.of_building(building).map(|charger| class.of_charger(&seen, &see(charger))).sum()
        });
        class.reward(&seen) + of_chargers
    });
    rewards.sum()
}

/// The attributes of a class.
pub(super) struct Attributes<'a> {
    class: &'a str,
    values: &'a Map<String, Value>,
    physics: Physics,
}

impl Attributes<'_> {
    /// Refuses attributes that the class does not have.
    fn only(&self, known: &[&str]) -> Result<(), EnergyError> {
        match self.values.keys().find(|key| !known.contains(&key.as_str())) {
            None => Ok(()),
            Some(key) => {
                let rule = format!("must have no attributes of {} but {known:?}", self.class);
                fail("reward", &rule, field::printable(key))
            }
        }
    }

    /// A number, from 0 to 100; `None` if it is missing.
    fn number(&self, key: &str) -> Result<Option<f64>, EnergyError> {
        match self.values.get(key).filter(|value| !value.is_null()) {
            None => Ok(None),
            Some(value) => match value.as_f64().filter(|number| (0.0..=100.0).contains(number)) {
                Some(number) => Ok(Some(number)),
                None => fail(&format!("reward.{key}"), "must be a number from 0 to 100", value),
            },
        }
    }
}
