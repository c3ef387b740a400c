//! The reward of a step, from its flows.

use super::config::RewardConfig;
use super::world::Flows;

/// Profit minus weighted penalties; [`RewardConfig`] has the formula.
pub(crate) fn reward(flows: &Flows, weights: &RewardConfig) -> f64 {
    flows.profit() + weights.stored_per_kwh * flows.ledger.battery_change_kwh
        - weights.unmet_per_kwh * flows.ledger.ev_unmet_kwh
        - weights.excess_per_kwh * flows.excess_kwh
        - weights.degradation_per_kwh * degradation_kwh(flows)
        - weights.turned_away * f64::from(flows.turned_away)
        - weights.overtime_per_hour * flows.overtime_hours
        - weights.carbon_per_kg * flows.carbon_kg
        - weights.peak_per_kw * flows.peak_rise_kw
        - weights.ramp_per_kw * flows.ramp_kw
        - weights.curtailed_per_kwh * flows.ledger.pv_curtailed_kwh
}

/// What a shaped reward adds: the fall of the energy that connected cars still want, up to that of all arriving cars.
pub(crate) fn shaping(flows: &Flows, weights: &RewardConfig) -> f64 {
    let ledger = &flows.ledger;
    let fallen_kwh = ledger.ev_delivered_kwh - ledger.ev_returned_kwh + ledger.ev_unmet_kwh + flows.turned_away_kwh;
    weights.unmet_per_kwh * fallen_kwh
}

/// Energy discharged from cars and the battery, which ages them.
pub(crate) fn degradation_kwh(flows: &Flows) -> f64 {
    flows.ledger.ev_returned_kwh + flows.ledger.battery_out_kwh
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::station::{RewardKind, StationLedger};

    #[test]
    fn the_formula_by_hand() {
        let ledger = StationLedger {
            ev_unmet_kwh: 3.0,
            ev_returned_kwh: 1.0,
            battery_out_kwh: 4.0,
            battery_change_kwh: -5.0,
            pv_curtailed_kwh: 10.0,
            ..StationLedger::default()
        };
        let flows = Flows {
            ledger,
            revenue: 10.0,
            energy_cost: 4.0,
            excess_kwh: 2.0,
            departed: 1,
            turned_away: 2,
            turned_away_kwh: 7.0,
            overtime_hours: 0.5,
            carbon_kg: 3.0,
            peak_rise_kw: 4.0,
            ramp_kw: 5.0,
        };
        let weights = RewardConfig {
            kind: RewardKind::Profit,
            shaped: true,
            unmet_per_kwh: 0.1,
            excess_per_kwh: 0.2,
            degradation_per_kwh: 0.3,
            turned_away: 0.4,
            overtime_per_hour: 0.5,
            carbon_per_kg: 0.1,
            peak_per_kw: 0.2,
            ramp_per_kw: 0.3,
            curtailed_per_kwh: 0.4,
            stored_per_kwh: 0.6,
        };
        let expected = 6.0 - 3.0 - 0.3 - 0.4 - 1.5 - 0.8 - 0.25 - 0.3 - 0.8 - 1.5 - 4.0;
        assert!((reward(&flows, &weights) - expected).abs() < 1e-12);
        assert!((shaping(&flows, &weights) - 0.1 * (0.0 - 1.0 + 3.0 + 7.0)).abs() < 1e-12);
    }
}
