//! Rewards of the net consumption `E` of a building.

use brasa_power::EnergyError;

use super::{Attributes, RewardClass, Seen};

/// CityLearn's default: `-max(E, 0)^k`, with the attribute `exponent`, 1 by default.
#[derive(Debug)]
struct Import {
    exponent: f64,
}

impl RewardClass for Import {
    fn reward(&self, seen: &Seen) -> f64 {
        -seen.net_kwh.max(0.0).powf(self.exponent)
    }
}

pub(super) fn import(attributes: &Attributes) -> Result<Box<dyn RewardClass>, EnergyError> {
    attributes.only(&["exponent", "charging_constraint_penalty_coefficient"])?;
    Ok(Box::new(Import { exponent: attributes.number("exponent")?.unwrap_or(1.0) }))
}

/// `-sign(E) 0.01 E^2 max(0, D)` with the net consumption `D` of the district.
#[derive(Debug)]
struct Marl;

impl RewardClass for Marl {
    fn reward(&self, seen: &Seen) -> f64 {
        -0.01 * seen.net_kwh * seen.net_kwh.abs() * seen.district_kwh.max(0.0)
    }
}

pub(super) fn marl(attributes: &Attributes) -> Result<Box<dyn RewardClass>, EnergyError> {
    attributes.only(&[])?;
    Ok(Box::new(Marl))
}

/// `min(-E, 0)`: documented as a third power, which Python's order of operations makes linear.
#[derive(Debug)]
struct Independent;

impl RewardClass for Independent {
    fn reward(&self, seen: &Seen) -> f64 {
        (-seen.net_kwh).min(0.0)
    }
}

pub(super) fn independent(attributes: &Attributes) -> Result<Box<dyn RewardClass>, EnergyError> {
    attributes.only(&[])?;
    Ok(Box::new(Independent))
}
