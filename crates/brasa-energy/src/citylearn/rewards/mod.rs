//! CityLearn's classes of rewards, by their names in Python.
//!
//! A class computes the reward of one building; the agent's reward is the sum over the buildings. Another one takes a file
//! that implements [`RewardClass`] and a line in [`CLASSES`].

mod comfort;
mod net;
mod solar;

use brasa_env::field;
use serde_json::{Map, Value};

use super::{
    BatteryState,
    homes::{HomeState, Room},
    world::World,
};
use crate::{EnergyError, error::fail};

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
}

/// A class of rewards with its attributes.
pub(super) trait RewardClass: Send + Sync {
    /// The reward of one building.
    fn reward(&self, seen: &Seen) -> f64;
}

/// Makes a class from its attributes.
type Make = fn(&Attributes) -> Result<Box<dyn RewardClass>, EnergyError>;

/// The classes by their names in Python.
const CLASSES: [(&str, Make); 6] = [
    ("RewardFunction", net::import),
    ("MARL", net::marl),
    ("IndependentSACReward", net::independent),
    ("SolarPenaltyReward", solar::make),
    ("ComfortReward", comfort::make),
    ("SolarPenaltyAndComfortReward", comfort::with_solar),
];

/// The class `name`, also with its module in front, with `attributes`.
///
/// # Errors
/// [`EnergyError::Field`] if the class or an attribute is unknown, or an attribute is invalid.
pub(super) fn make(name: &str, attributes: &Map<String, Value>) -> Result<Box<dyn RewardClass>, EnergyError> {
    let short = name.rsplit('.').next().unwrap_or_default();
    let Some((_, make)) = CLASSES.iter().find(|(known, _)| *known == short) else {
        let known: Vec<&str> = CLASSES.iter().map(|(name, _)| *name).collect();
        return fail("reward", &format!("must be a class of {}", known.join(", ")), field::printable(name));
    };
    make(&Attributes { class: short, values: attributes })
}

/// The reward of environment `env` after a step with `row`.
pub(super) fn district(
    world: &World,
    class: &dyn RewardClass,
    (env, n_envs, row): (usize, usize, usize),
    (homes, batteries, net_kwh): (&[HomeState], &[BatteryState], &[f64]),
) -> f64 {
    let cells = (0..world.n_buildings).map(|building| building * n_envs + env);
    let district_kwh: f64 = cells.clone().map(|cell| net_kwh[cell]).sum();
    let rewards = cells.enumerate().map(|(building, cell)| {
        let battery = world.batteries[building].as_ref().map(|_| batteries[cell].soc);
        let mut seen = Seen {
            net_kwh: net_kwh[cell],
            district_kwh,
            socs: [None, None, None, battery],
            cooling_kwh: 0.0,
            heating_kwh: 0.0,
            temperature_c: 0.0,
            room: Room::default(),
        };
        if let Some(households) = &world.homes {
            let state = &homes[cell];
            let tanks = households.tank_socs(building, state);
            seen.socs[..3].copy_from_slice(&tanks);
            (seen.cooling_kwh, seen.heating_kwh) = (state.flows.served_kwh(0), state.flows.served_kwh(1));
            seen.temperature_c = state.temperature_c;
            seen.room = households.rows[row * world.n_buildings + building].room;
        }
        class.reward(&seen)
    });
    rewards.sum()
}

/// The attributes of a class.
pub(super) struct Attributes<'a> {
    class: &'a str,
    values: &'a Map<String, Value>,
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
