//! A reward for charging vehicles at the right time.

use brasa_power::{EnergyError, fail};

use super::{Attributes, RewardClass, Seen, SeenCharger, SeenVehicle};
use crate::Physics;

/// Above this energy, in kWh, a charger without a vehicle was asked to work.
const IDLE_KWH: f64 = 0.1;

/// The sum over chargers of what applies, divided by `1 + |R|` with the district's reward `R` of the class `MARL`; then minus the energy
/// above the limits on chargers, in kWh.
///
/// - `no_car_charging`, without a vehicle, if the charger was asked for energy. In 2.5 it is never counted.
/// - `battery_limits`, if what was asked would leave the range of the battery.
/// - `soc_impossible`, if the required state of charge can no longer be reached. 2.5 asks whether the vehicle could
///   charge what it has too much.
/// - At departure: `soc_under` twice for a state of charge that is 10 to 25 percentage points below the required one, squared for less, and
///   `close_soc` within 10 percentage points.
/// - `close_soc / (hours to departure + 0.1)`, if the difference to the required state of charge can still be charged or discharged.
/// - `extra_self_production` for charging while the building exports, and minus half of it for discharging.
/// - `self_ev_consumption` for discharging while it imports, and minus half of it for charging.
#[derive(Debug)]
struct Chargers {
    weights: [f64; WEIGHTS.len()],
    physics: Physics,
}

/// The weights by name, with CityLearn's defaults.
const WEIGHTS: [(&str, f64); 7] = [
    ("no_car_charging", -5.0),
    ("battery_limits", -2.0),
    ("soc_impossible", -10.0),
    ("soc_under", -5.0),
    ("close_soc", 10.0),
    ("self_ev_consumption", 5.0),
    ("extra_self_production", 5.0),
];

impl Chargers {
    /// What a vehicle adds, before the division.
    fn of_vehicle(&self, net_kwh: f64, charger: &SeenCharger, vehicle: &SeenVehicle) -> f64 {
        let [_, battery_limits, soc_impossible, soc_under, close_soc, self_consumption, self_production] = self.weights;
        let SeenVehicle { soc_before, soc, capacity_kwh, least_kwh, required_soc, hours_left } = *vehicle;
        let asked_kwh = charger.asked_kwh;
        let when = |holds: bool, weight: f64| if holds { weight } else { 0.0 };
        let would_be_kwh = soc_before * capacity_kwh + asked_kwh;
        let mut sum = when(would_be_kwh > capacity_kwh || would_be_kwh < least_kwh, battery_limits);

        let beyond = soc - required_soc;
        let (most_in_kwh, most_out_kwh) =
            (charger.max_charging_kw * hours_left, charger.max_discharging_kw * hours_left);
        let missing = match self.physics {
            Physics::CityLearn25 => beyond,
            _ => (-beyond).max(0.0),
        };
        sum += when(missing * capacity_kwh > most_in_kwh, soc_impossible);
        if hours_left == 0.0 {
            sum += when(beyond <= -0.25, soc_under * soc_under);
            sum += when(-0.25 < beyond && beyond <= -0.1, 2.0 * soc_under);
            sum += when(-0.1 < beyond && beyond <= 0.1, close_soc);
        }
        let can_be_reached = beyond.abs() * capacity_kwh <= most_in_kwh.max(most_out_kwh);
        sum += when(can_be_reached, close_soc / (hours_left + 0.1));

        let sign = |x: f64| if x == 0.0 { 0.0 } else { x.signum() };
        sum + match (sign(net_kwh), sign(asked_kwh)) {
            (-1.0, 1.0) => self_production,
            (-1.0, -1.0) => -0.5 * self_production,
            (1.0, -1.0) => self_consumption,
            (1.0, 1.0) => -0.5 * self_consumption,
            _ => 0.0,
        }
    }
}

impl RewardClass for Chargers {
    fn reward(&self, seen: &Seen) -> f64 {
        -seen.violation_kwh
    }

    fn sees_chargers(&self) -> bool {
        true
    }

    fn of_charger(&self, building: &Seen, charger: &SeenCharger) -> f64 {
        let marl = -0.01 * building.district_squares * building.district_kwh.max(0.0);
        let sum = match &charger.vehicle {
            Some(vehicle) => self.of_vehicle(building.net_kwh, charger, vehicle),
            None if charger.asked_kwh.abs() > IDLE_KWH && self.physics != Physics::CityLearn25 => self.weights[0],
            None => 0.0,
        };
        sum / (1.0 + marl.abs())
    }
}

pub(super) fn make(attributes: &Attributes) -> Result<Box<dyn RewardClass>, EnergyError> {
    attributes.only(&["weights"])?;
    let mut weights = WEIGHTS.map(|(_, weight)| weight);
    match attributes.values.get("weights") {
        None | Some(serde_json::Value::Null) => {}
        // The class has no defaults for single weights.
        Some(serde_json::Value::Object(own)) if own.len() == WEIGHTS.len() => {
            for ((name, _), weight) in WEIGHTS.iter().zip(&mut weights) {
                match own.get(*name).and_then(serde_json::Value::as_f64) {
                    Some(own) => *weight = own,
                    None => return fail(&format!("reward.weights.{name}"), "must be a number", "nothing"),
                }
            }
        }
        Some(other) => {
            let names = WEIGHTS.map(|(name, _)| name).join(", ");
            return fail("reward.weights", &format!("must have numbers for {names}"), other);
        }
    }
    Ok(Box::new(Chargers { weights, physics: attributes.physics }))
}
