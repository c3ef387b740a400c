//! The reward of a step, from its flows.
//!
//! [`normalised`] is the default: five costs, each divided by its value for the uncontrolled site, so that the
//! weights are comparable. The reward of the uncontrolled site is about minus the sum of the first
//! two weights per step:
//!
//! ```text
//! carbon   = -(kg of CO2) / mean kg of the reference
//! cost     = -(cost) / mean cost of the reference, without its revenue of exports
//! solar    = -(curtailed PV) / mean PV
//! vehicles = -(unmet energy at departure) / mean energy wanted
//! grid     = -(import beyond the soft limit) / soft limit
//! reward   = w_carbon carbon + w_cost cost + w_solar solar + w_vehicles vehicles + w_grid grid
//! ```
//!
//! [`improvement`] is its difference from the reward of the same step without control, for training: it has the same optimum.
//!
//! [`seed`] is the formula of the original study, for comparison only. Its defects:
//!
//! - its thresholds of 130, 200 and 250 kWh fit a site of 150 kW, but the mall alone consumes 788 to 2101 kW: the
//!   carbon, cost and grid terms are nearly always at their minimum and give no learning signal;
//! - its solar term grows with the *import*;
//! - its vehicle term rewards the mean state of charge of the connected vehicles, so it decreases when empty vehicles
//!   arrive and increases when they are turned away (in the original, the value was missing and always 0);
//! - all its terms are clipped to [-1, 1], where the gradient is 0.

use super::config::RewardKind;
use super::dispatch::Flows;
use super::site::Site;
use crate::error::fail;
use crate::{EnergyError, Ledger};

/// The terms relative to the uncontrolled reference, weighted.
pub(crate) fn normalised(flows: &Flows, site: &Site) -> f64 {
    let Flows { carbon_kg, cost, ledger, grid_excess_kwh, .. } = flows;
    weigh([*carbon_kg, *cost, ledger.pv_curtailed_kwh, ledger.ev_unmet_kwh, *grid_excess_kwh], site)
        + others(flows, site)
}

/// [`normalised`] minus its value for the same step without control, where no vehicle misses energy.
pub(crate) fn improvement(flows: &Flows, site: &Site) -> f64 {
    let idle = [
        flows.reference_carbon_kg,
        flows.reference_cost,
        flows.reference_curtailed_kwh,
        0.0,
        flows.reference_excess_kwh,
    ];
    normalised(flows, site) - weigh(idle, site)
}

/// What a shaped reward adds: the worth of the change of the stored energy, and energy delivered instead of energy missed.
pub(crate) fn shaping(flows: &Flows, site: &Site) -> f64 {
    if !site.config.reward.shaped {
        return 0.0;
    }
    let Ledger { battery_change_kwh, ev_delivered_kwh, ev_unmet_kwh, .. } = flows.ledger;
    let credited_kwh = ev_delivered_kwh + ev_unmet_kwh - flows.reference_vehicles_kwh;
    stored_worth(site) * battery_change_kwh + vehicle_worth(site) * credited_kwh
}

/// Worth of a stored kWh: the import that it saves at a low price.
pub(super) fn stored_worth(site: &Site) -> f64 {
    worth_at(site, site.low_price_per_kwh, site.mean_carbon_kg_per_kwh)
}

/// Worth of a stored kWh that saves an import with this price and these emissions.
pub(super) fn worth_at(site: &Site, price: f64, carbon_kg_per_kwh: f64) -> f64 {
    let (w, reference) = (&site.config.reward, &site.reference);
    let import =
        w.carbon * relative(carbon_kg_per_kwh, reference.carbon_kg) + w.cost * relative(price, reference.gross_cost);
    site.config.battery.discharge_efficiency * import
}

/// Worth of a kWh that vehicles want.
pub(super) fn vehicle_worth(site: &Site) -> f64 {
    site.config.reward.vehicles * relative(1.0, site.reference.wanted_kwh)
}

/// Minus the weighted sum of carbon, cost, curtailed PV, unmet energy and import beyond the soft limit.
fn weigh([carbon_kg, cost, curtailed_kwh, unmet_kwh, excess_kwh]: [f64; 5], site: &Site) -> f64 {
    let (w, reference) = (&site.config.reward, &site.reference);
    let carbon = -relative(carbon_kg, reference.carbon_kg);
    let cost = -relative(cost, reference.gross_cost);
    let solar = -relative(curtailed_kwh, reference.pv_kwh);
    let vehicles = -relative(unmet_kwh, reference.wanted_kwh);
    let grid = -excess_kwh / (site.config.grid.soft_limit_kw * site.step_hours);
    w.carbon * carbon + w.cost * cost + w.solar * solar + w.vehicles * vehicles + w.grid * grid
}

/// Minus the weighted sum of rises of the peak, ramps and use of the battery, whose weights are 0 by default.
fn others(flows: &Flows, site: &Site) -> f64 {
    let (w, reference) = (&site.config.reward, &site.reference);
    let used_kwh = flows.ledger.battery_in_kwh + flows.ledger.battery_out_kwh;
    -w.peak * relative(flows.peak_rise_kw, reference.peak_rise_kw)
        - w.ramp * relative(flows.ramp_kw, reference.ramp_kw)
        - w.wear * relative(used_kwh, site.config.battery.power_kw * site.step_hours)
}

/// Rejects a weight whose term has no scale because the uncontrolled site has none of it, although a controller may.
pub(crate) fn check_scales(site: &Site) -> Result<(), EnergyError> {
    let (w, reference, grid) = (&site.config.reward, &site.reference, &site.config.grid);
    if w.kind == RewardKind::Seed {
        return Ok(());
    }
    let any = |of: fn(&Site, u32) -> f64| (0..site.steps_per_year).any(|step| of(site, step) > 0.0);
    let sells = grid.export_limit_kw > 0.0 && grid.export_price_per_kwh > 0.0;
    let charges = [grid.demand_charge_per_kw, site.config.battery.wear_cost_per_kwh];
    let pays = sells || charges.iter().any(|charge| *charge > 0.0) || any(Site::price_per_kwh);
    for (field, weight, scale, matters) in [
        ("reward.carbon", w.carbon, reference.carbon_kg, any(Site::carbon_kg_per_kwh)),
        ("reward.cost", w.cost, reference.gross_cost, pays),
        ("reward.peak", w.peak, reference.peak_rise_kw, true),
        ("reward.ramp", w.ramp, reference.ramp_kw, true),
    ] {
        if weight > 0.0 && matters && scale <= 0.0 {
            let rule = "must be 0 for a site that has none of it without control, the scale of this term";
            return fail(field, rule, weight);
        }
    }
    Ok(())
}

/// `value / reference`, or 0 if the reference is 0.
fn relative(value: f64, reference: f64) -> f64 {
    if reference > 0.0 { value / reference } else { 0.0 }
}

/// Inputs of the seed formula besides flows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SeedInputs {
    pub(crate) battery_soc: f64,
    pub(crate) vehicle_soc: f64,
    pub(crate) hour: u8,
}

/// The formula of the original study; its energies per hour are read as mean powers, so that it does not depend
/// on the length of a step.
pub(crate) fn seed(flows: &Flows, inputs: SeedInputs, site: &Site) -> f64 {
    let w = &site.config.reward;
    let per_hour = 1.0 / site.step_hours;
    let import = flows.ledger.grid_import_kwh * per_hour;
    let export = flows.ledger.grid_export_kwh * per_hour;
    let vehicles = flows.ledger.ev_delivered_kwh * per_hour;
    let pv = flows.ledger.pv_available_kwh * per_hour;
    let is_peak = (18..=21).contains(&inputs.hour);
    let carbon = if is_peak { 1.0 - 2.0 * (import / 250.0).min(1.0) } else { 1.0 - (import / 130.0).min(1.0) };
    let cost = 1.0 - 2.0 * (((import - export) * 0.20).max(0.0) / 100.0).min(1.0);
    let solar = if pv > 0.0 { 2.0 * pv.min(vehicles + 0.5 * import) / pv - 1.0 } else { 0.0 };
    let satisfied = 2.0 * (inputs.vehicle_soc / 0.9).min(1.0) - 1.0;
    let bonus = if vehicles > 0.0 && pv > 0.0 { 0.1 * (vehicles / pv).min(1.0) } else { 0.0 };
    let grid = if is_peak { 1.0 - 4.0 * (import / 200.0).min(1.0) } else { 1.0 - 2.0 * (import / 200.0).min(1.0) };
    let is_before_peak = inputs.hour == 16 || inputs.hour == 17;
    let reserve = match is_before_peak && inputs.battery_soc < 0.65 {
        true => 1.0 - (0.65 - inputs.battery_soc) / 0.65,
        false => 1.0,
    };
    let penalty = 0.5 * (reserve - 1.0);
    let sum = w.carbon * carbon.clamp(-1.0, 1.0)
        + w.cost * cost
        + w.solar * solar
        + w.vehicles * (satisfied + bonus).clamp(-1.0, 1.0)
        + w.grid * grid.clamp(-1.0, 1.0)
        + 0.10 * penalty;
    sum.clamp(-1.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::super::config::IquitosConfig;
    use super::*;

    fn flows(import_kwh: f64, pv_kwh: f64, vehicles_kwh: f64) -> Flows {
        let ledger = Ledger {
            grid_import_kwh: import_kwh,
            pv_available_kwh: pv_kwh,
            ev_delivered_kwh: vehicles_kwh,
            ..Ledger::default()
        };
        Flows { ledger, ..Flows::default() }
    }

    #[test]
    fn the_seed_formula_by_hand() {
        let site = Site::new(IquitosConfig::seed());
        let inputs = |hour| SeedInputs { battery_soc: 0.5, vehicle_soc: 0.9, hour };
        // Noon, import 65, PV 100, vehicles 50: carbon .5, cost .74, solar .65, vehicles 1 (clipped), grid .35.
        let noon = seed(&flows(65.0, 100.0, 50.0), inputs(12), &site);
        let expected = 0.5 * 0.5 + 0.15 * 0.74 + 0.2 * 0.65 + 0.1 * 1.0 + 0.05 * 0.35;
        assert!((noon - expected).abs() < 1e-12, "{noon} {expected}");
        // 17 h with a battery below 65 %: the reserve term costs 0.1 * 0.5 * 0.15 / 0.65.
        let late = seed(&flows(65.0, 100.0, 50.0), inputs(17), &site);
        assert!((noon - late - 0.05 * 0.15 / 0.65).abs() < 1e-12);
    }

    #[test]
    fn the_seed_formula_is_blind_at_the_scale_of_the_mall() {
        let site = Site::new(IquitosConfig::seed());
        let inputs = SeedInputs { battery_soc: 0.5, vehicle_soc: 0.9, hour: 20 };
        let at = |import| seed(&flows(import, 0.0, 272.0), inputs, &site);
        assert_eq!(at(800.0), at(2300.0));
    }
}
