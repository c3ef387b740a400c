//! One episode over the complete data, per step and building.

use std::sync::Arc;

use brasa_env::Outcome;
use brasa_power::{Ledger, Trace, scenario::details};
use ndarray::Array2;

use super::{
    CityLearnBatch, Comfort, Physics,
    comfort::Service,
    indicators::{BuildingIndicators, Indicators, Pair, grid_figures},
    scenario::FIGURES,
    world::{Totals, World},
};

/// Record of one episode over the complete data.
///
/// ```
/// use brasa_citylearn::{CityLearn, CityLearnConfig, Recording};
/// use brasa_env::Who;
///
/// let district = CityLearn::new(CityLearnConfig::default())?;
/// let year: Recording = district.record(Who::Baseline("rule-based"), 7)?;
/// // A row for each hour and a column for each building.
/// assert_eq!(year.net_kwh.dim(), (8760, 5));
/// assert!(year.soc.iter().all(|soc| (0.0..=1.0).contains(soc)));
/// assert!(year.ledger().bus_residual_kwh().abs() < 1e-3);
/// # Ok::<(), brasa_citylearn::EnergyError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// Row of the data of the first step.
    pub first_row: usize,
    /// `[step, building]`: net consumption, in kWh, negative when exporting.
    pub net_kwh: Array2<f64>,
    /// `[step, building]`: state of charge after the step, 0 to 1; 0 without a battery.
    pub soc: Array2<f64>,
    /// `[step, building]`: charge (above 0) or discharge on the grid side, in kWh.
    pub battery_kwh: Array2<f64>,
    /// `[step, 3 * building + use]`: state of charge of the storages for cooling, heating and hot water after the step; no
    /// columns without thermal demand, storages or outages, as in the next five.
    pub tank_soc: Array2<f64>,
    /// `[step, 3 * building + use]`: electricity of the devices for cooling, heating and hot water, in kWh.
    pub device_kwh: Array2<f64>,
    /// `[step, building]`: indoor temperature, in degrees Celsius; 0 if the data has none.
    pub temperature_c: Array2<f64>,
    /// `[step, building]`: demands for heat and cold and the load, in kWh, and what of them was served.
    pub expected_kwh: Array2<f64>,
    /// `[step, building]`.
    pub served_kwh: Array2<f64>,
    /// `[step, building]`: what the net consumption would be lower by without batteries and thermal storages, and with
    /// devices that serve the demand of the data, in kWh.
    pub removed_kwh: Array2<f64>,
    /// `[step, charger]`: energy of each charger on the grid side, in kWh, negative when discharging.
    pub charger_kwh: Array2<f64>,
    /// `[step, vehicle]`: state of charge after the step, 0 to 1.
    pub vehicle_soc: Array2<f64>,
    /// `[step]`.
    pub reward: Vec<f32>,
    /// Remaining capacity of each battery at the end, in kWh; 0 without a battery.
    pub capacity_kwh: Vec<f64>,
    /// Remaining capacity of each vehicle's battery at the end, in kWh.
    pub vehicle_capacity_kwh: Vec<f64>,
    /// Flows of each step.
    pub flows: Vec<Ledger>,
}

impl Recording {
    pub(super) fn indicators(&self, world: &World) -> Indicators {
        let (steps, n) = self.net_kwh.dim();
        let single = world.physics != Physics::Clean;
        let ahead = world.ahead();
        let mut buildings = Vec::with_capacity(n);
        for (building, name) in world.building_names.iter().enumerate() {
            let (mut control, mut baseline) = (Totals::default(), Totals::default());
            // Rows before the first one that an action changes.
            for row in 0..ahead {
                let index = (self.first_row + row) * n + building;
                let net_kwh = world.net_without_storage(index, false);
                control.add(net_kwh, &world.series[index], single);
                baseline.add(net_kwh, &world.series[index], single);
            }
            for step in 0..steps {
                let row = &world.series[(self.first_row + step + ahead) * n + building];
                control.add(self.net_kwh[(step, building)], row, single);
                baseline.add(self.net_without_storage(world, step, building), row, single);
            }
            let pair = |figure: fn(&Totals) -> f64| Pair { control: figure(&control), baseline: figure(&baseline) };
            buildings.push(BuildingIndicators {
                name: name.clone(),
                import_kwh: pair(|t| t.import_kwh),
                net_kwh: pair(|t| t.net_kwh),
                carbon_kg: pair(|t| t.carbon_kg),
                cost: pair(|t| t.cost),
                comfort: Comfort::of(world, building, steps, |step| Service {
                    temperature_c: self.temperature_c[(step, building)],
                    expected_kwh: self.expected_kwh[(step, building)],
                    served_kwh: self.served_kwh[(step, building)],
                }),
            });
        }
        let before_kw: Vec<f64> =
            (0..ahead).map(|row| world.without_storage(self.first_row + row, false).net_kwh / world.hours).collect();
        let control_kw = self.net_kwh.rows().into_iter().map(|row| row.sum() / world.hours);
        let control_kw: Vec<f64> = before_kw.iter().copied().chain(control_kw).collect();
        let baseline_kw = (0..steps).map(|step| {
            (0..n).map(|building| self.net_without_storage(world, step, building)).sum::<f64>() / world.hours
        });
        let mut baseline_kw: Vec<f64> = before_kw.into_iter().chain(baseline_kw).collect();
        if world.physics == Physics::CityLearn25 && steps == world.all_steps() {
            // CityLearn's series without storage also has the last row, which has no action, as 0.
            baseline_kw.push(0.0);
        }
        let (control, baseline) =
            (grid_figures(&control_kw, world.hours, ahead > 0), grid_figures(&baseline_kw, world.hours, ahead > 0));
        let [ramping_kw, daily_peak_kw, peak_kw, daily, monthly] =
            std::array::from_fn(|i| Pair { control: control[i], baseline: baseline[i] });
        Indicators {
            buildings,
            ramping_kw,
            daily_peak_kw,
            peak_kw,
            daily_one_minus_load_factor: daily,
            monthly_one_minus_load_factor: monthly,
        }
    }

    /// Net consumption of a building without storage, in kWh.
    ///
    /// CityLearn subtracts what storages took and gave from the controlled net consumption, also in outages.
    fn net_without_storage(&self, world: &World, step: usize, building: usize) -> f64 {
        if world.homes.is_none() || world.physics == Physics::Clean {
            let row = self.first_row + step + world.ahead();
            return world.net_without_storage(row * world.n_buildings + building, step == 0);
        }
        let chargers = world.mobility.as_ref().map_or(0..0, |mobility| mobility.of_building(building));
        let vehicles: f64 = chargers.map(|charger| self.charger_kwh[(step, charger)]).sum();
        self.net_kwh[(step, building)] - self.removed_kwh[(step, building)] - vehicles
    }

    /// The outcome, whose figures are those of [`FIGURES`].
    pub(super) fn outcome(&self, world: &World, traced: bool) -> Outcome {
        let indicators = self.indicators(world);
        Outcome {
            episode_return: Some(self.reward.iter().map(|reward| f64::from(*reward)).sum()),
            length: self.reward.len() as u64,
            figures: FIGURES.iter().map(|(.., of)| of(&indicators)).collect(),
            details: details(&self.ledger()),
            trace: traced.then(|| -> brasa_env::Trace { Arc::new(self.trace(world)) }),
        }
    }

    /// The sum of the flows of all steps.
    pub fn ledger(&self) -> Ledger {
        let mut ledger = Ledger::default();
        self.flows.iter().for_each(|step| ledger.add(step));
        ledger
    }

    fn trace(&self, world: &World) -> Trace {
        let n_batteries = world.batteries.iter().flatten().count().max(1) as f64;
        let power = |energy: fn(&Ledger) -> f64| -> Vec<f32> {
            self.flows.iter().map(|step| (energy(step) / world.hours) as f32).collect()
        };
        let mobility = world.mobility.as_ref();
        let sockets = mobility
            .map_or_else(Vec::new, |mobility| mobility.chargers.iter().map(|charger| charger.name.clone()).collect());
        let socket_kw = mobility.map_or_else(Vec::new, |mobility| {
            let rows = self.charger_kwh.rows().into_iter().enumerate();
            let power = |(kwh, has_vehicle): (&f64, bool)| has_vehicle.then_some((kwh / world.hours) as f32);
            rows.flat_map(|(row, kwh)| {
                kwh.to_vec().iter().zip(mobility.has_vehicle(self.first_row + row)).map(power).collect::<Vec<_>>()
            })
            .collect()
        });
        Trace {
            step_hours: world.hours,
            start: world.start.map(|start| start.later(self.first_row as f64 * world.hours)),
            grid_limit_kw: None,
            ev_limit_kw: None,
            sockets,
            socket_kw,
            load_kw: power(|step| step.load_kwh),
            pv_kw: power(|step| step.pv_available_kwh),
            battery_kw: power(|step| step.battery_in_kwh - step.battery_out_kwh),
            ev_kw: power(|step| step.ev_delivered_kwh),
            grid_kw: power(|step| step.grid_import_kwh - step.grid_export_kwh),
            soc: self.soc.rows().into_iter().map(|row| (row.sum() / n_batteries) as f32).collect(),
        }
    }
}

/// The flows of one step, without losses and changes of the batteries.
pub(super) fn step_flows(world: &World, row: usize, batch: &CityLearnBatch) -> Ledger {
    let mut flows = Ledger::default();
    let (_, charger_kwh) = batch.vehicles();
    let mut homes = batch.homes();
    for (building, (net, balance)) in batch.nets_kwh().zip(batch.balances_kwh()).enumerate() {
        let data = &world.series[row * world.n_buildings + building];
        let served_kwh = match homes.next() {
            None => f64::from(data.load_kwh),
            Some(home) => home.flows.load_kwh + home.flows.device_kwh.iter().sum::<f64>(),
        };
        let (load, pv) = (served_kwh + batch.machine_kwh(building), f64::from(data.pv_kwh));
        let chargers = world.mobility.as_ref().map_or(0..0, |mobility| mobility.of_building(building));
        let vehicles: f64 = charger_kwh[chargers].iter().sum();
        flows.pv_available_kwh += pv;
        flows.load_kwh += load;
        flows.ev_delivered_kwh += vehicles;
        flows.battery_in_kwh += balance.max(0.0);
        flows.battery_out_kwh += (-balance).max(0.0);
        flows.pv_used_kwh += pv.min(load + balance.max(0.0) + vehicles.max(0.0));
        flows.grid_import_kwh += net.max(0.0);
        flows.grid_export_kwh += (-net).max(0.0);
    }
    flows.ev_unmet_kwh = batch.vehicle_flows().shortfall_kwh;
    flows
}
