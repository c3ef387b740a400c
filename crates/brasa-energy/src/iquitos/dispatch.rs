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

use brasa_number::Number;
use brasa_power::Ledger;

use super::site::Site;
use crate::storage::Stored;

/// Order for the battery.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum BatteryOrder<N = f64> {
    /// This power, in kW; positive charges.
    Power(N),
    /// Store the PV surplus, cover the load beyond PV.
    Follow,
    /// Store the PV surplus, do not discharge.
    StoreSurplus,
}

/// The flows of one step, with their cost.
///
/// ```
/// use brasa_energy::iquitos::{Flows, Iquitos, IquitosConfig};
/// use brasa_env::{BatchSlabs, EnvBatch};
/// use ndarray::Array2;
///
/// let mut envs = Iquitos::new(IquitosConfig::default())?.batch(0..1)?;
/// let mut slabs = BatchSlabs::new(envs.spec());
/// envs.reset(7, &mut slabs)?;
/// envs.step(Array2::zeros((1, 129)).view(), &mut slabs)?;
/// let flows: &Flows = envs.flows(0);
/// // Energy is conserved, and imported energy has emissions.
/// assert!(flows.ledger.bus_residual_kwh().abs() < 1e-6);
/// assert!(flows.ledger.grid_import_kwh > 0.0 && flows.carbon_kg > 0.0);
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Flows<N = f64> {
    /// Energy flows.
    pub ledger: Ledger<N>,
    /// Emissions of the import, in kg of CO2.
    pub carbon_kg: N,
    /// Cost of energy, demand charge and wear, minus export revenue, in the currency of the tariff.
    pub cost: N,
    /// Import beyond the soft limit, in kWh.
    pub grid_excess_kwh: N,
    /// Rise of the month's peak import, in kW.
    pub peak_rise_kw: N,
    /// Change of the power from the grid since the step before, in kW and not negative; 0 in the first step.
    pub ramp_kw: N,
    /// Orders to the sockets above the limit of the feeder, in kWh, before their reduction.
    pub feeder_excess_kwh: N,
    /// Number of vehicles without a free socket for the next step.
    pub turned_away: N,
    /// Emissions of the same step without control, in kg, with the mean of random vehicles.
    pub reference_carbon_kg: N,
    /// Cost of the same step without control.
    pub reference_cost: N,
    /// Mean energy of uncontrolled vehicles in the step, in kWh.
    pub reference_vehicles_kwh: N,
    /// Import of the same step without control, in kWh.
    pub reference_import_kwh: N,
    /// Curtailed PV of the same step without control, in kWh.
    pub reference_curtailed_kwh: N,
    /// Import beyond the soft limit of the same step without control, in kWh.
    pub reference_excess_kwh: N,
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

/// The exchange of the battery in one step.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Exchange<N = f64> {
    charge_kwh: N,
    discharge_kwh: N,
    after: Stored<N>,
}

/// The exchange of the battery for a site that needs `net_kwh` beyond PV.
fn exchange<N: Number>(order: BatteryOrder<N>, stored_kwh: N, net_kwh: N, site: &Site) -> Exchange<N> {
    let (battery, storage) = (&site.config.battery, site.config.battery.storage());
    let surplus_kwh = (-net_kwh).max_of(0.0);
    let (take_kwh, give_kwh) = match order {
        BatteryOrder::Power(kw) => ((kw * site.step_hours).max_of(0.0), (-kw * site.step_hours).max_of(0.0)),
        BatteryOrder::Follow => (surplus_kwh, net_kwh.max_of(0.0)),
        BatteryOrder::StoreSurplus => (surplus_kwh, net_kwh.constant(0.0)),
    };
    let mut charge_kwh = take_kwh.min(storage.most_charge_kwh(stored_kwh, site.step_hours));
    if !battery.charge_from_grid {
        charge_kwh = charge_kwh.min(surplus_kwh);
    }
    let takers_kwh = (net_kwh + site.config.grid.export_limit_kw * site.step_hours).max_of(0.0);
    let discharge_kwh = give_kwh.min(storage.most_discharge_kwh(stored_kwh, site.step_hours)).min(takers_kwh);
    let after = storage.after(stored_kwh, charge_kwh, discharge_kwh, site.standing_loss);
    Exchange { charge_kwh, discharge_kwh, after }
}

/// What a step begins with at the bus.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bus<N> {
    pub(crate) pv_kwh: N,
    pub(crate) load_kwh: N,
    /// Energy delivered to vehicles, and what was ordered above the limit of the feeder.
    pub(crate) vehicles_kwh: N,
    pub(crate) feeder_excess_kwh: N,
    /// Mean energy of uncontrolled vehicles.
    pub(crate) reference_vehicles_kwh: N,
    pub(crate) price_per_kwh: N,
    pub(crate) carbon_kg_per_kwh: N,
    pub(crate) stored_kwh: N,
    /// Peaks of the month so far, before this step.
    pub(crate) month_peak_kw: N,
    pub(crate) reference_peak_kw: N,
    /// Power from the grid in the step before, if there was one.
    pub(crate) grid_kw: Option<N>,
}

/// Balances the bus and computes the cost; also returns the stored energy. Vehicles that leave are not known yet.
pub(crate) fn balance<N: Number>(site: &Site, bus: &Bus<N>, order: BatteryOrder<N>) -> (Flows<N>, N) {
    let (battery, grid, hours) = (&site.config.battery, &site.config.grid, site.step_hours);
    let Bus { pv_kwh, load_kwh, vehicles_kwh, price_per_kwh, carbon_kg_per_kwh, .. } = *bus;
    let (export_limit_kwh, soft_limit_kwh) = (grid.export_limit_kw * hours, grid.soft_limit_kw * hours);
    let zero = pv_kwh.constant(0.0);
    let net_kwh = load_kwh + vehicles_kwh - pv_kwh;
    let Exchange { charge_kwh, discharge_kwh, after } = exchange(order, bus.stored_kwh, net_kwh, site);
    let from_grid_kwh = net_kwh + charge_kwh - discharge_kwh;
    let import_kwh = from_grid_kwh.max_of(0.0);
    let surplus_kwh = (-from_grid_kwh).max_of(0.0);
    let export_kwh = surplus_kwh.min_of(export_limit_kwh);
    let curtailed_kwh = surplus_kwh - export_kwh;
    let pv_export_kwh = export_kwh.min((-net_kwh).max_of(0.0));

    let rise_kw = |import_kwh: N, peak_kw: N| (import_kwh / hours - peak_kw).max_of(0.0);
    let price = |import_kwh: N, peak_kw: N| {
        import_kwh * price_per_kwh + rise_kw(import_kwh, peak_kw) * grid.demand_charge_per_kw
    };
    let cost = price(import_kwh, bus.month_peak_kw) - export_kwh * grid.export_price_per_kwh
        + (charge_kwh + discharge_kwh) * battery.wear_cost_per_kwh;
    let reference_net_kwh = load_kwh + bus.reference_vehicles_kwh - pv_kwh;
    let reference_import_kwh = reference_net_kwh.max_of(0.0);
    let reference_surplus_kwh = (-reference_net_kwh).max_of(0.0);
    let reference_export_kwh = reference_surplus_kwh.min_of(export_limit_kwh);
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
            battery_lost_kwh: after.lost_kwh,
            battery_change_kwh: after.stored_kwh - bus.stored_kwh,
            ev_delivered_kwh: vehicles_kwh,
            ev_unmet_kwh: zero,
        },
        carbon_kg: import_kwh * carbon_kg_per_kwh,
        cost,
        grid_excess_kwh: (import_kwh - soft_limit_kwh).max_of(0.0),
        peak_rise_kw: rise_kw(import_kwh, bus.month_peak_kw),
        ramp_kw: bus.grid_kw.map_or(zero, |kw| ((import_kwh - export_kwh) / hours - kw).abs()),
        feeder_excess_kwh: bus.feeder_excess_kwh,
        turned_away: zero,
        reference_carbon_kg: reference_import_kwh * carbon_kg_per_kwh,
        reference_cost: price(reference_import_kwh, bus.reference_peak_kw)
            - reference_export_kwh * grid.export_price_per_kwh,
        reference_vehicles_kwh: bus.reference_vehicles_kwh,
        reference_import_kwh,
        reference_curtailed_kwh: reference_surplus_kwh - reference_export_kwh,
        reference_excess_kwh: (reference_import_kwh - soft_limit_kwh).max_of(0.0),
    };
    (flows, after.stored_kwh)
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
        assert_eq!((full.charge_kwh, full.after.stored_kwh), (1000.0, 1950.0));
        let back = exchange(BatteryOrder::Power(-2000.0), full.after.stored_kwh, 5000.0, &site);
        assert!((back.discharge_kwh - (1950.0 - 452.0) * 0.95).abs() < 1e-9);
        assert!((back.after.stored_kwh - 452.0).abs() < 1e-9);
        let idle = exchange(BatteryOrder::Power(-2000.0), full.after.stored_kwh, -10.0, &site);
        assert_eq!((idle.discharge_kwh, idle.after.stored_kwh), (0.0, 1950.0));
    }

    #[test]
    fn two_half_steps_equal_one() {
        let config = |step_minutes| IquitosConfig { step_minutes, ..IquitosConfig::default() };
        let (whole, half) = (Site::new(config(60)), Site::new(config(30)));
        let mut stored = 2000.0;
        for _ in 0..2 {
            stored = exchange(BatteryOrder::Power(0.0), stored, 100.0, &half).after.stored_kwh;
        }
        let once = exchange(BatteryOrder::Power(0.0), 2000.0, 100.0, &whole).after.stored_kwh;
        assert!((stored - once).abs() < 1e-9 && once < 2000.0);
        let twice = exchange(BatteryOrder::Power(500.0), 1000.0, 0.0, &half);
        assert_eq!(twice.charge_kwh, 250.0);
    }

    #[test]
    fn the_floor_does_not_leak() {
        let site = Site::new(IquitosConfig::default());
        assert_eq!(exchange(BatteryOrder::Power(0.0), 452.0, 1.0, &site).after.stored_kwh, 452.0);
    }
}
