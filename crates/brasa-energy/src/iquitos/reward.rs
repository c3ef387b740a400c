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

use brasa_number::Number;
use brasa_power::{EnergyError, Ledger, fail};

use super::config::RewardKind;
use super::dispatch::Flows;
use super::site::Site;

/// The reward of a step. `seed_inputs` gives the inputs of the formula of the original study.
pub(crate) fn reward<N: Number>(flows: &Flows<N>, seed_inputs: impl FnOnce() -> SeedInputs<N>, site: &Site) -> N {
    match site.config.reward.kind {
        RewardKind::Normalised => shaped(normalised(flows, site), flows, site),
        RewardKind::Improvement => shaped(improvement(flows, site), flows, site),
        RewardKind::Seed => seed(flows, seed_inputs(), site),
    }
}

/// A term of the normalised reward: minus `weight * value / scale`.
pub(crate) struct Term<N> {
    /// Its setting.
    pub(crate) name: &'static str,
    pub(crate) weight: f64,
    /// What a step has of it.
    value: N,
    /// What the same step has of it without control, where no vehicle misses energy.
    idle: N,
    /// Its value for the uncontrolled site, or a limit.
    pub(crate) scale: f64,
}

/// The terms of the normalised reward; their weights are settings of the reward.
pub(crate) fn terms<N: Number>(flows: &Flows<N>, site: &Site) -> [Term<N>; 9] {
    let Flows { carbon_kg, cost, ledger, .. } = *flows;
    let (w, of, config, hours) = (&site.config.reward, &site.reference, &site.config, site.step_hours);
    let none = cost.constant(0.0);
    let term = |name, weight, value, idle, scale| Term { name, weight, value, idle, scale };
    let used_kwh = ledger.battery_in_kwh + ledger.battery_out_kwh;
    [
        term("carbon", w.carbon, carbon_kg, flows.reference_carbon_kg, of.carbon_kg),
        term("cost", w.cost, cost, flows.reference_cost, of.gross_cost),
        term("solar", w.solar, ledger.pv_curtailed_kwh, flows.reference_curtailed_kwh, of.pv_kwh),
        term("vehicles", w.vehicles, ledger.ev_unmet_kwh, none, of.wanted_kwh),
        term("grid", w.grid, flows.grid_excess_kwh, flows.reference_excess_kwh, config.grid.soft_limit_kw * hours),
        term("peak", w.peak, flows.peak_rise_kw, none, of.peak_rise_kw),
        term("ramp", w.ramp, flows.ramp_kw, none, of.ramp_kw),
        term("wear", w.wear, used_kwh, none, config.battery.power_kw * hours),
        term("feeder", w.feeder, flows.feeder_excess_kwh, none, config.vehicles.feeder_limit_kw * hours),
    ]
}

/// The terms relative to the uncontrolled reference, weighted.
pub(crate) fn normalised<N: Number>(flows: &Flows<N>, site: &Site) -> N {
    weigh(flows, site, |term| term.value)
}

/// [`normalised`] minus its value for the same step without control.
pub(crate) fn improvement<N: Number>(flows: &Flows<N>, site: &Site) -> N {
    normalised(flows, site) - weigh(flows, site, |term| term.idle)
}

/// Minus the weighted sum of the terms.
fn weigh<N: Number>(flows: &Flows<N>, site: &Site, value: impl Fn(&Term<N>) -> N) -> N {
    let weighted = terms(flows, site).into_iter().filter(|term| term.weight != 0.0);
    weighted.fold(flows.cost.constant(0.0), |sum, term| sum - relative(value(&term), term.scale) * term.weight)
}

/// A reward with the worth of the change of the stored energy, and of energy delivered instead of energy missed.
fn shaped<N: Number>(reward: N, flows: &Flows<N>, site: &Site) -> N {
    if !site.config.reward.shaped {
        return reward;
    }
    let Ledger { battery_change_kwh, ev_delivered_kwh, ev_unmet_kwh, .. } = flows.ledger;
    let credited_kwh = ev_delivered_kwh + ev_unmet_kwh - flows.reference_vehicles_kwh;
    reward + (battery_change_kwh * stored_worth(site) + credited_kwh * vehicle_worth(site))
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

/// Rejects a weight whose term has no scale because the uncontrolled site has none of it, although a controller may.
pub(crate) fn check_scales(site: &Site) -> Result<(), EnergyError> {
    let (w, grid) = (&site.config.reward, &site.config.grid);
    if w.kind == RewardKind::Seed {
        return Ok(());
    }
    let any = |of: fn(&Site, u32) -> f64| (0..site.steps_per_year).any(|step| of(site, step) > 0.0);
    let sells = grid.export_limit_kw > 0.0 && grid.export_price_per_kwh > 0.0;
    let charges = [grid.demand_charge_per_kw, site.config.battery.wear_cost_per_kwh];
    let pays = sells || charges.iter().any(|charge| *charge > 0.0) || any(Site::price_per_kwh);
    let matters = |name: &str| match name {
        "carbon" => any(Site::carbon_kg_per_kwh),
        "cost" => pays,
        name => ["peak", "ramp"].contains(&name),
    };
    for Term { name, weight, scale, .. } in terms(&Flows::<f64>::default(), site) {
        if weight > 0.0 && scale <= 0.0 && matters(name) {
            let rule = "must be 0 for a site that has none of it without control, the scale of this term";
            return fail(&format!("reward.{name}"), rule, weight);
        }
    }
    Ok(())
}

/// `value / reference`, or 0 if the reference is 0.
fn relative<N: Number>(value: N, reference: f64) -> N {
    if reference > 0.0 { value / reference } else { value.constant(0.0) }
}

/// Inputs of the seed formula besides flows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SeedInputs<N: Number> {
    pub(crate) battery_soc: N,
    pub(crate) vehicle_soc: N,
    /// Whether the step is in an hour that the formula calls peak.
    pub(crate) is_peak: N::Mask,
    /// Whether it is in the two hours before.
    pub(crate) is_before_peak: N::Mask,
}

/// Whether the seed formula calls an hour peak, and whether it is in the two hours before.
pub(crate) fn seed_hours(hour: u8) -> [bool; 2] {
    [(18..=21).contains(&hour), hour == 16 || hour == 17]
}

/// The formula of the original study; its energies per hour are read as mean powers, so that it does not depend
/// on the length of a step.
pub(crate) fn seed<N: Number>(flows: &Flows<N>, inputs: SeedInputs<N>, site: &Site) -> N {
    let w = &site.config.reward;
    let per_hour = 1.0 / site.step_hours;
    let import = flows.ledger.grid_import_kwh * per_hour;
    let export = flows.ledger.grid_export_kwh * per_hour;
    let vehicles = flows.ledger.ev_delivered_kwh * per_hour;
    let pv = flows.ledger.pv_available_kwh * per_hour;
    let (zero, has_pv) = (pv.constant(0.0), pv.greater(pv.constant(0.0)));
    // `1 - factor min(x, 1)`.
    let below = |x: N, factor: f64| -(x.min_of(1.0) * factor) + 1.0;
    let at_peak = |peak: N, other: N| N::select(inputs.is_peak, peak, other);
    let carbon = at_peak(below(import / 250.0, 2.0), below(import / 130.0, 1.0));
    let cost = below(((import - export) * 0.20).max_of(0.0) / 100.0, 2.0);
    // What is divided by no PV is not selected.
    let solar = pv.min(vehicles + import * 0.5) * 2.0 / pv - 1.0;
    let satisfied = (inputs.vehicle_soc / 0.9).min_of(1.0) * 2.0 - 1.0;
    let charges_with_pv = N::both(vehicles.greater(zero), has_pv);
    let bonus = ((vehicles / pv).min_of(1.0) * 0.1).or_zero(charges_with_pv);
    let grid = at_peak(below(import / 200.0, 4.0), below(import / 200.0, 2.0));
    let missing = -inputs.battery_soc + 0.65;
    let is_low = N::both(inputs.is_before_peak, missing.greater(zero));
    let reserve = N::select(is_low, -(missing / 0.65) + 1.0, zero + 1.0);
    let penalty = (reserve - 1.0) * 0.5;
    let sum = carbon.clamp(-1.0, 1.0) * w.carbon
        + cost * w.cost
        + solar.or_zero(has_pv) * w.solar
        + (satisfied + bonus).clamp(-1.0, 1.0) * w.vehicles
        + grid.clamp(-1.0, 1.0) * w.grid
        + penalty * 0.10;
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
    fn orders_beyond_the_feeder_cost_a_share_of_its_limit() {
        let mut config = IquitosConfig::default();
        (config.reward.feeder, config.vehicles.feeder_limit_kw) = (0.5, 60.0);
        let site = Site::new(config);
        let reward = |feeder_excess_kwh| normalised(&Flows { feeder_excess_kwh, ..flows(100.0, 0.0, 60.0) }, &site);
        assert!((reward(30.0) - (reward(0.0) - 0.25)).abs() < 1e-12);
    }

    #[test]
    fn the_seed_formula_by_hand() {
        let site = Site::new(IquitosConfig::seed());
        let inputs = |hour| {
            let [is_peak, is_before_peak] = seed_hours(hour);
            SeedInputs { battery_soc: 0.5, vehicle_soc: 0.9, is_peak, is_before_peak }
        };
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
        let inputs = SeedInputs { battery_soc: 0.5, vehicle_soc: 0.9, is_peak: true, is_before_peak: false };
        let at = |import| seed(&flows(import, 0.0, 272.0), inputs, &site);
        assert_eq!(at(800.0), at(2300.0));
    }
}
