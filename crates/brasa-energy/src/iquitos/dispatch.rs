//! One step of the energy flows: vehicles first, then the battery, then the grid.
//!
//! All energies are in kWh per step at the site's bus. With `net = load + vehicles - pv`:
//!
//! ```text
//! charge    = min(order, P dt, (E_max - E) / eta_c)            [and the PV surplus, if it must not import]
//! discharge = min(order, P dt, (E - E_min) eta_d, max(0, net + export limit))
//! E'        = (E + eta_c charge - discharge / eta_d) - standing loss
//! import    = max(0, net + charge - discharge);   surplus = max(0, -(net + charge - discharge))
//! export    = min(surplus, export limit);         curtailed = surplus - export
//! ```
//!
//! The limit of `discharge` means that the battery never discharges more than load and export take.

use super::site::Site;
use crate::Ledger;
use crate::storage::Stored;

/// Order for the battery.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum BatteryOrder {
    /// This power, in kW; positive charges.
    Power(f64),
    /// Store the PV surplus, cover the load beyond PV.
    Follow,
    /// Store the PV surplus, do not discharge.
    StoreSurplus,
}

/// The flows of one step, with their cost.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Flows {
    /// Energy flows.
    pub ledger: Ledger,
    /// Emissions of the import, in kg of CO2.
    pub carbon_kg: f64,
    /// Cost of energy, demand charge and wear, minus export revenue, in the currency of the tariff.
    pub cost: f64,
    /// Import beyond the soft limit, in kWh.
    pub grid_excess_kwh: f64,
    /// Rise of the month's peak import, in kW.
    pub peak_rise_kw: f64,
    /// Change of the power from the grid since the step before, in kW and not negative; 0 in the first step.
    pub ramp_kw: f64,
    /// Orders to the sockets above the limit of the feeder, in kWh, before their reduction.
    pub feeder_excess_kwh: f64,
    /// Vehicles without a free socket for the next step.
    pub turned_away: u32,
    /// Emissions of the same step without control, in kg, with the mean of random vehicles.
    pub reference_carbon_kg: f64,
    /// Cost of the same step without control.
    pub reference_cost: f64,
    /// Mean energy of uncontrolled vehicles in the step, in kWh.
    pub reference_vehicles_kwh: f64,
    /// Curtailed PV of the same step without control, in kWh.
    pub reference_curtailed_kwh: f64,
    /// Import beyond the soft limit of the same step without control, in kWh.
    pub reference_excess_kwh: f64,
}

/// Results of the sockets in one step.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Served {
    pub(crate) delivered_kwh: f64,
    pub(crate) excess_kwh: f64,
}

/// Charges vehicles with orders in kW, limited to their needs and, in total, to `limit_kwh`.
///
/// `need_kwh` is reduced by the delivered energy and `power_kw` becomes the mean power; the result is the sum of
/// the same numbers, so that sockets and ledger agree without rounding errors.
pub(crate) fn serve(
    orders_kw: &[f32],
    need_kwh: &mut [f32],
    power_kw: &mut [f32],
    step_hours: f64,
    limit_kwh: f64,
) -> Served {
    let (hours, per_hour) = (step_hours as f32, (1.0 / step_hours) as f32);
    for ((power, order), need) in power_kw.iter_mut().zip(orders_kw).zip(need_kwh.iter()) {
        *power = (order * hours).min(*need);
    }
    let ordered_kwh = sum(power_kw);
    let mut served = Served { delivered_kwh: ordered_kwh, excess_kwh: 0.0 };
    if ordered_kwh > limit_kwh {
        let share = (limit_kwh / ordered_kwh) as f32;
        power_kw.iter_mut().for_each(|energy| *energy *= share);
        served = Served { delivered_kwh: sum(power_kw), excess_kwh: ordered_kwh - limit_kwh };
    }
    for (power, need) in power_kw.iter_mut().zip(need_kwh) {
        *need -= *power;
        *power *= per_hour;
    }
    served
}

/// Sum in f64, in a fixed order of eight SIMD lanes.
fn sum(values: &[f32]) -> f64 {
    let mut lanes = [0.0_f64; 8];
    let chunks = values.chunks_exact(8);
    let rest: f64 = chunks.remainder().iter().copied().map(f64::from).sum();
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += f64::from(*value);
        }
    }
    lanes.iter().sum::<f64>() + rest
}

/// Results of battery and grid in one step.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Exchange {
    charge_kwh: f64,
    discharge_kwh: f64,
    lost_kwh: f64,
    stored_kwh: f64,
}

/// The exchange of the battery for a site that needs `net_kwh` beyond PV.
fn exchange(order: BatteryOrder, stored_kwh: f64, net_kwh: f64, site: &Site) -> Exchange {
    let (battery, storage) = (&site.config.battery, site.config.battery.storage());
    let surplus_kwh = (-net_kwh).max(0.0);
    let (take_kwh, give_kwh) = match order {
        BatteryOrder::Power(kw) => ((kw * site.step_hours).max(0.0), (-kw * site.step_hours).max(0.0)),
        BatteryOrder::Follow => (surplus_kwh, net_kwh.max(0.0)),
        BatteryOrder::StoreSurplus => (surplus_kwh, 0.0),
    };
    let mut charge_kwh = take_kwh.min(storage.most_charge_kwh(stored_kwh, site.step_hours));
    if !battery.charge_from_grid {
        charge_kwh = charge_kwh.min(surplus_kwh);
    }
    let takers_kwh = (net_kwh + site.config.grid.export_limit_kw * site.step_hours).max(0.0);
    let discharge_kwh = give_kwh.min(storage.most_discharge_kwh(stored_kwh, site.step_hours)).min(takers_kwh);
    let Stored { stored_kwh, lost_kwh } = storage.after(stored_kwh, charge_kwh, discharge_kwh, site.standing_loss);
    Exchange { charge_kwh, discharge_kwh, lost_kwh, stored_kwh }
}

/// State from earlier steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Running {
    pub(crate) stored_kwh: f64,
    pub(crate) month_peak_kw: f64,
    pub(crate) reference_peak_kw: f64,
    /// Power from the grid in the step before, if there was one.
    pub(crate) grid_kw: Option<f64>,
}

/// Balances the bus at `step_of_year` and computes the cost; also returns the stored energy.
///
/// Peaks are those of the month so far, before this step.
pub(crate) fn balance(
    site: &Site,
    step_of_year: u32,
    (pv_kwh, load_kwh, served): (f64, f64, Served),
    order: BatteryOrder,
    running: Running,
) -> (Flows, f64) {
    let (battery, grid) = (&site.config.battery, &site.config.grid);
    let (price_per_kwh, carbon_kg_per_kwh) = (site.price_per_kwh(step_of_year), site.carbon_kg_per_kwh(step_of_year));
    let vehicles_kwh = served.delivered_kwh;
    let net_kwh = load_kwh + vehicles_kwh - pv_kwh;
    let Exchange { charge_kwh, discharge_kwh, lost_kwh, stored_kwh } =
        exchange(order, running.stored_kwh, net_kwh, site);
    let from_grid_kwh = net_kwh + charge_kwh - discharge_kwh;
    let import_kwh = from_grid_kwh.max(0.0);
    let surplus_kwh = (-from_grid_kwh).max(0.0);
    let export_kwh = surplus_kwh.min(grid.export_limit_kw * site.step_hours);
    let curtailed_kwh = surplus_kwh - export_kwh;
    let pv_export_kwh = export_kwh.min((-net_kwh).max(0.0));

    let price = |import_kwh: f64, peak_kw: f64| {
        let rise_kw = (import_kwh / site.step_hours - peak_kw).max(0.0);
        import_kwh * price_per_kwh + rise_kw * grid.demand_charge_per_kw
    };
    let cost = price(import_kwh, running.month_peak_kw) - export_kwh * grid.export_price_per_kwh
        + (charge_kwh + discharge_kwh) * battery.wear_cost_per_kwh;
    let reference_net_kwh = load_kwh + site.reference_vehicles_kwh(step_of_year) - pv_kwh;
    let reference_import_kwh = reference_net_kwh.max(0.0);
    let reference_surplus_kwh = (-reference_net_kwh).max(0.0);
    let reference_export_kwh = reference_surplus_kwh.min(grid.export_limit_kw * site.step_hours);
    let soft_limit_kwh = grid.soft_limit_kw * site.step_hours;
    let flows = Flows {
        ledger: Ledger {
            pv_available_kwh: pv_kwh,
            pv_used_kwh: pv_kwh - curtailed_kwh - pv_export_kwh,
            pv_curtailed_kwh: curtailed_kwh,
            grid_export_kwh: export_kwh,
            grid_import_kwh: import_kwh,
            load_kwh,
            battery_in_kwh: charge_kwh,
            battery_out_kwh: discharge_kwh,
            battery_lost_kwh: lost_kwh,
            battery_change_kwh: stored_kwh - running.stored_kwh,
            ev_delivered_kwh: vehicles_kwh,
            ev_unmet_kwh: 0.0,
        },
        carbon_kg: import_kwh * carbon_kg_per_kwh,
        cost,
        grid_excess_kwh: (import_kwh - soft_limit_kwh).max(0.0),
        peak_rise_kw: (import_kwh / site.step_hours - running.month_peak_kw).max(0.0),
        ramp_kw: running.grid_kw.map_or(0.0, |kw| ((import_kwh - export_kwh) / site.step_hours - kw).abs()),
        feeder_excess_kwh: served.excess_kwh,
        turned_away: 0,
        reference_carbon_kg: reference_import_kwh * carbon_kg_per_kwh,
        reference_cost: price(reference_import_kwh, running.reference_peak_kw)
            - reference_export_kwh * grid.export_price_per_kwh,
        reference_vehicles_kwh: site.reference_vehicles_kwh(step_of_year),
        reference_curtailed_kwh: reference_surplus_kwh - reference_export_kwh,
        reference_excess_kwh: (reference_import_kwh - soft_limit_kwh).max(0.0),
    };
    (flows, stored_kwh)
}

#[cfg(test)]
mod tests {
    use super::super::config::IquitosConfig;
    use super::*;

    #[test]
    fn sockets_take_no_more_than_ordered_needed_and_allowed() {
        let (mut need, mut power) = ([1.0, 0.5, 0.0, 3.0], [0.0; 4]);
        let served = serve(&[2.0, 2.0, 2.0, 1.0], &mut need, &mut power, 1.0, 100.0);
        assert_eq!((served.delivered_kwh, need, power), (2.5, [0.0, 0.0, 0.0, 2.0], [1.0, 0.5, 0.0, 1.0]));
        let (mut need, mut power) = ([1.0, 0.5, 0.0, 3.0], [0.0; 4]);
        let served = serve(&[2.0, 2.0, 2.0, 1.0], &mut need, &mut power, 1.0, 1.25);
        assert_eq!(served, Served { delivered_kwh: 1.25, excess_kwh: 1.25 });
        assert_eq!(power, [0.5, 0.25, 0.0, 0.5]);
    }

    #[test]
    fn a_cycle_loses_both_efficiencies_and_the_battery_serves_only_takers() {
        let site = Site::new(IquitosConfig::seed());
        let full = exchange(BatteryOrder::Power(1000.0), 1000.0, 500.0, &site);
        assert_eq!((full.charge_kwh, full.stored_kwh), (1000.0, 1950.0));
        let back = exchange(BatteryOrder::Power(-2000.0), full.stored_kwh, 5000.0, &site);
        assert!((back.discharge_kwh - (1950.0 - 452.0) * 0.95).abs() < 1e-9);
        assert!((back.stored_kwh - 452.0).abs() < 1e-9);
        let idle = exchange(BatteryOrder::Power(-2000.0), full.stored_kwh, -10.0, &site);
        assert_eq!((idle.discharge_kwh, idle.stored_kwh), (0.0, 1950.0));
    }

    #[test]
    fn two_half_steps_equal_one() {
        let config = |step_minutes| IquitosConfig { step_minutes, ..IquitosConfig::default() };
        let (whole, half) = (Site::new(config(60)), Site::new(config(30)));
        let mut stored = 2000.0;
        for _ in 0..2 {
            stored = exchange(BatteryOrder::Power(0.0), stored, 100.0, &half).stored_kwh;
        }
        let once = exchange(BatteryOrder::Power(0.0), 2000.0, 100.0, &whole).stored_kwh;
        assert!((stored - once).abs() < 1e-9 && once < 2000.0);
        let twice = exchange(BatteryOrder::Power(500.0), 1000.0, 0.0, &half);
        assert_eq!(twice.charge_kwh, 250.0);
    }

    #[test]
    fn the_floor_does_not_leak() {
        let site = Site::new(IquitosConfig::default());
        assert_eq!(exchange(BatteryOrder::Power(0.0), 452.0, 1.0, &site).stored_kwh, 452.0);
    }
}
