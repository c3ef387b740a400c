//! Which vehicle is at which charger when, and what the data says about it.

use brasa_power::{EnergyError, fail};

use super::{Charger, Physics, Vehicle, limits::ChargingLimits};

/// A charger in one row of its schedule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Plug {
    pub(super) state: PlugState,
    /// Index of the vehicle that is connected or arriving.
    pub(super) vehicle: Option<usize>,
    /// Whether the schedule says that this is another session than in the row before.
    pub(super) other_session: bool,
    /// State of charge that the vehicle needs at departure, as in the data; below 0 if unknown.
    pub(super) required: f32,
    /// State of charge of the arriving vehicle, as in the data; below 0 if unknown.
    pub(super) arrival: f32,
    /// Steps until the connected vehicle departs; below 0 if unknown.
    pub(super) departure_steps: f32,
}

/// Whether a vehicle is at a charger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlugState {
    Connected,
    Arriving,
    Away,
    Unknown,
}

impl Plug {
    /// The connected vehicle.
    pub(super) fn connected(&self) -> Option<usize> {
        self.vehicle.filter(|_| self.state == PlugState::Connected)
    }

    /// The vehicle that will be connected soon.
    pub(super) fn arriving(&self) -> Option<usize> {
        self.vehicle.filter(|_| self.state == PlugState::Arriving)
    }
}

/// Vehicles, chargers and their schedule, as read from a data set.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Schedule {
    pub(super) vehicles: Vec<Vehicle>,
    /// In the order of the buildings.
    pub(super) chargers: Vec<Charger>,
    /// Whether the states of charge of a charger's file are percentages, by charger.
    pub(super) in_percent: Vec<bool>,
    /// `[row * n_chargers + charger]`.
    pub(super) plugs: Vec<Plug>,
    /// The limits of the buildings that have some.
    pub(super) limits: Vec<ChargingLimits>,
}

/// Value of an unknown state of charge, as in CityLearn.
pub(super) const NO_SOC: f32 = -0.1;

impl Schedule {
    /// A state of charge of the data as a fraction; [`NO_SOC`] if unknown.
    ///
    /// All numbers of a file are percentages if one of them is above 1, and fractions otherwise. CityLearn 2.5 takes
    /// every number as a percentage, 3.0 those above 1: 1 is 1 % in 2.5 and 100 % in 3.0.
    pub(super) fn fraction(&self, charger: usize, soc: f32, physics: Physics) -> f32 {
        let in_percent = match physics {
            Physics::CityLearn21 | Physics::CityLearn25 => true,
            Physics::CityLearn30 => soc > 1.0,
            Physics::Clean => self.in_percent[charger],
        };
        match (soc < 0.0, in_percent) {
            (true, _) => NO_SOC,
            (false, true) => soc / 100.0,
            (false, false) => soc,
        }
    }

    /// The state of charge of a vehicle at `charger` whose session starts with `now`, from the plug `told` that has the
    /// estimate. CityLearn 2.5 takes the one required at departure if there is none.
    pub(super) fn at_arrival(&self, charger: usize, told: &Plug, now: &Plug, physics: Physics) -> Option<f32> {
        let required = if physics == Physics::CityLearn25 { now.required } else { NO_SOC };
        let known = [told.arrival, required].into_iter().find(|soc| *soc >= 0.0)?;
        Some(self.fraction(charger, known, physics))
    }

    /// Rejects a vehicle that is connected to two chargers in one row.
    pub(super) fn check(&self) -> Result<(), EnergyError> {
        let n_chargers = self.chargers.len().max(1);
        for (row, plugs) in self.plugs.chunks(n_chargers).enumerate() {
            for (charger, plug) in plugs.iter().enumerate() {
                let Some(vehicle) = plug.connected() else { continue };
                if let Some(other) = plugs[..charger].iter().position(|other| other.connected() == Some(vehicle)) {
                    return fail(
                        &format!("electric_vehicle_id of {}", self.vehicles[vehicle].name),
                        &format!(
                            "must be connected to one charger, not to {} and {}",
                            self.chargers[other].name, self.chargers[charger].name
                        ),
                        format!("row {row} of the simulation"),
                    );
                }
            }
        }
        Ok(())
    }
}
