//! The microgrid as tensor operations, for devices.
//!
//! Numbers have 32 bits, most of those of the host form 64.

mod calendar;
mod sockets;

use std::ops::Range;
use std::sync::Arc;

use brasa_core::{Draws, NoiseWidths, ObsParts, TensorDynamics, TensorState, TensorStep};
use brasa_env::{EnvBatch, EnvSpec};
use brasa_kernels::{Formulas, Matrix, Value, concat, elementwise};
use burn::tensor::{Device, Tensor, TensorData};

use super::config::{FileConfig, RewardConfig, RewardKind};
use super::observe::Scales;
use super::reward::{stored_worth, vehicle_worth};
use super::scenario::Iquitos;
use super::site::Site;
use crate::EnergyError;
use crate::error::fail;
use calendar::{At, Calendar, Column, Weather};
use sockets::{Sockets, Vehicles};

/// The rules of the microgrid for a device.
///
/// Random vehicles come from inverse distribution functions of the noise. Numbers of arrivals that are rarer than one in ten
/// million do not occur.
#[derive(Debug, Clone)]
pub struct TensorIquitos {
    /// Of one environment.
    spec: EnvSpec,
    site: Arc<Site>,
    scales: Scales,
    calendar: Calendar,
    sockets: Sockets,
    /// Days on which an episode may start.
    n_starts: usize,
}

/// The state of [`TensorIquitos`]; every tensor has a row per environment.
#[derive(Debug, Clone)]
pub struct IquitosTensors {
    /// The columns of [`Place`].
    site: Tensor<2>,
    vehicles: Vehicles,
}

/// A number of the state. PV, battery and grid in the last step are from `LastKw` on.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// The next step of the year.
    StepOfYear,
    StoredKwh,
    Clouds,
    /// PV and load of the next step.
    PvKwh,
    LoadKwh,
    MonthPeakKw,
    ReferencePeakKw,
    LastKw,
}

/// The columns of [`IquitosTensors::site`], in formulas.
#[derive(Clone, Copy)]
struct Numbers<'a>(Matrix<'a>);

impl<'a> Numbers<'a> {
    fn get(self, place: Place) -> Value<'a> {
        self.0.column(place as usize)
    }

    fn last_kw(self, i: usize) -> Value<'a> {
        self.0.column(Place::LastKw as usize + i)
    }
}

fn matrix(values: Vec<f64>, width: usize, device: &Device) -> Tensor<2> {
    let values: Vec<f32> = values.into_iter().map(|x| x as f32).collect();
    let rows = values.len() / width;
    Tensor::from_data(TensorData::new(values, [rows, width]), device)
}

/// `x` in units of `scale`; 0 without one.
fn ratio(x: Value<'_>, scale: f64) -> Value<'_> {
    x * if scale > 0.0 { scale.recip() } else { 0.0 }
}

/// A share, as observed.
fn clip(x: f64) -> f64 {
    x.clamp(0.0, 1.0)
}

impl TensorState for IquitosTensors {
    fn parts(&self) -> Vec<Tensor<2>> {
        let Vehicles { need_kwh, dwell_steps, power_kw } = &self.vehicles;
        [&self.site, need_kwh, dwell_steps, power_kw].map(Tensor::clone).to_vec()
    }

    fn from_parts(parts: Vec<Tensor<2>>) -> Self {
        let [site, need_kwh, dwell_steps, power_kw] =
            parts.try_into().expect("there are as many parts as were handed out");
        Self { site, vehicles: Vehicles { need_kwh, dwell_steps, power_kw } }
    }
}

impl Iquitos {
    /// The microgrid as tensor operations on `device`, and the steps of an episode.
    ///
    /// # Errors
    /// [`EnergyError::Field`] for more than 4000 arrivals of a class in a step.
    pub fn tensors(&self, device: &Device) -> Result<(TensorIquitos, u32), EnergyError> {
        let site = self.shared_site();
        if site.config.files != FileConfig::default() {
            return fail("files", "must be left out for tensors on a device", "files");
        }
        let RewardConfig { peak, ramp, wear, .. } = site.config.reward;
        for (field, weight) in [("reward.peak", peak), ("reward.ramp", ramp), ("reward.wear", wear)] {
            if weight != 0.0 {
                return fail(field, "must be 0 for tensors on a device", weight);
            }
        }
        let scales = Scales::new(&site.config);
        let steps = site.episode_steps();
        let tensors = TensorIquitos {
            spec: self.batch(0..1)?.spec().clone(),
            calendar: Calendar::new(&site, &scales, device),
            sockets: Sockets::new(&site, &scales, device)?,
            n_starts: ((site.steps_per_year - steps) / site.steps_per_day) as usize + 1,
            site,
            scales,
        };
        Ok((tensors, steps))
    }
}

/// The exchange of the battery in a step: see [`super::dispatch`].
#[derive(Clone, Copy)]
struct Exchange<'a> {
    charge_kwh: Value<'a>,
    discharge_kwh: Value<'a>,
    stored_kwh: Value<'a>,
}

/// Flows of a step: see [`super::Flows`].
#[derive(Clone, Copy)]
struct StepFlows<'a> {
    delivered_kwh: Value<'a>,
    import_kwh: Value<'a>,
    export_kwh: Value<'a>,
    curtailed_kwh: Value<'a>,
    carbon_kg: Value<'a>,
    cost: Value<'a>,
    reference_carbon_kg: Value<'a>,
    reference_cost: Value<'a>,
    grid_excess_kwh: Value<'a>,
    /// Import without control, not below 0.
    reference_import_kwh: Value<'a>,
    reference_curtailed_kwh: Value<'a>,
    exchange: Exchange<'a>,
}

impl TensorIquitos {
    fn random_start(&self) -> bool {
        self.site.config.random_start
    }

    /// The step of the year of all environments, if they have the same.
    fn shared(&self, step: u64) -> Option<usize> {
        (!self.random_start()).then(|| (step % self.calendar.n_steps() as u64) as usize)
    }

    fn exchange<'a>(&self, order: Value<'a>, stored_kwh: Value<'a>, net_kwh: Value<'a>) -> Exchange<'a> {
        let (site, battery) = (&self.site, &self.site.config.battery);
        let (low_kwh, high_kwh) = (battery.soc_min * battery.capacity_kwh, battery.soc_max * battery.capacity_kwh);
        let order_kwh = order.clamp(-1.0, 1.0) * (battery.power_kw * site.step_hours);
        let room_kwh = (-stored_kwh + high_kwh) / battery.charge_efficiency;
        let mut charge_kwh = order_kwh.max(0.0).min(room_kwh).max(0.0);
        if !battery.charge_from_grid {
            charge_kwh = charge_kwh.min((-net_kwh).max(0.0));
        }
        let takers_kwh = (net_kwh + site.config.grid.export_limit_kw * site.step_hours).max(0.0);
        let stock_kwh = (stored_kwh - low_kwh) * battery.discharge_efficiency;
        let discharge_kwh = (-order_kwh).max(0.0).min(stock_kwh).min(takers_kwh).max(0.0);
        let moved_kwh =
            stored_kwh + charge_kwh * battery.charge_efficiency - discharge_kwh / battery.discharge_efficiency;
        let standing_kwh = (moved_kwh * site.standing_loss).min(moved_kwh - low_kwh).max(0.0);
        Exchange { charge_kwh, discharge_kwh, stored_kwh: moved_kwh - standing_kwh }
    }

    fn balance<'a>(&self, state: Numbers<'a>, delivered_kwh: Value<'a>, order: Value<'a>, at: At<'a>) -> StepFlows<'a> {
        let (hours, grid) = (self.site.step_hours, &self.site.config.grid);
        let limit_kwh = grid.export_limit_kw * hours;
        let [pv_kwh, load_kwh] = [Place::PvKwh, Place::LoadKwh].map(|place| state.get(place));
        let net_kwh = load_kwh + delivered_kwh - pv_kwh;
        let exchange = self.exchange(order, state.get(Place::StoredKwh), net_kwh);
        let from_grid_kwh = net_kwh + exchange.charge_kwh - exchange.discharge_kwh;
        let import_kwh = from_grid_kwh.max(0.0);
        let surplus_kwh = (-from_grid_kwh).max(0.0);
        let export_kwh = surplus_kwh.min(limit_kwh);
        let price = |import_kwh: Value<'a>, peak: Place| {
            let rise_kw = (import_kwh / hours - state.get(peak)).max(0.0);
            import_kwh * at.get(Column::Price) + rise_kw * grid.demand_charge_per_kw
        };
        let moved_kwh = exchange.charge_kwh + exchange.discharge_kwh;
        let cost = price(import_kwh, Place::MonthPeakKw) - export_kwh * grid.export_price_per_kwh
            + moved_kwh * self.site.config.battery.wear_cost_per_kwh;
        let reference_net_kwh = load_kwh - pv_kwh + at.get(Column::ReferenceVehiclesKwh);
        let reference_import_kwh = reference_net_kwh.max(0.0);
        let reference_surplus_kwh = (-reference_net_kwh).max(0.0);
        let reference_export_kwh = reference_surplus_kwh.min(limit_kwh);
        StepFlows {
            delivered_kwh,
            curtailed_kwh: surplus_kwh - export_kwh,
            carbon_kg: import_kwh * at.get(Column::CarbonKg),
            cost,
            reference_carbon_kg: reference_import_kwh * at.get(Column::CarbonKg),
            reference_cost: price(reference_import_kwh, Place::ReferencePeakKw)
                - reference_export_kwh * grid.export_price_per_kwh,
            reference_curtailed_kwh: reference_surplus_kwh - reference_export_kwh,
            grid_excess_kwh: (import_kwh - grid.soft_limit_kw * hours).max(0.0),
            import_kwh,
            export_kwh,
            reference_import_kwh,
            exchange,
        }
    }

    /// [`super::reward::normalised`].
    fn normalised<'a>(&self, flows: &StepFlows<'a>, unmet_kwh: Value<'a>) -> Value<'a> {
        self.weigh([flows.carbon_kg, flows.cost, flows.curtailed_kwh, unmet_kwh, flows.grid_excess_kwh])
    }

    /// [`super::reward::improvement`].
    fn improvement<'a>(&self, formulas: &'a Formulas, flows: &StepFlows<'a>, unmet_kwh: Value<'a>) -> Value<'a> {
        let soft_limit_kwh = self.site.config.grid.soft_limit_kw * self.site.step_hours;
        let excess_kwh = (flows.reference_import_kwh - soft_limit_kwh).max(0.0);
        let (carbon_kg, cost) = (flows.reference_carbon_kg, flows.reference_cost);
        let idle = [carbon_kg, cost, flows.reference_curtailed_kwh, formulas.constant(0.0), excess_kwh];
        self.normalised(flows, unmet_kwh) - self.weigh(idle)
    }

    /// [`super::reward::shaping`], with the stored energy before the step.
    fn shaping<'a>(&self, flows: &StepFlows<'a>, stored_kwh: Value<'a>, credited_kwh: Value<'a>) -> Value<'a> {
        let change_kwh = flows.exchange.stored_kwh - stored_kwh;
        change_kwh * stored_worth(&self.site) + credited_kwh * vehicle_worth(&self.site)
    }

    fn weigh<'a>(&self, [carbon_kg, cost, curtailed_kwh, unmet_kwh, excess_kwh]: [Value<'a>; 5]) -> Value<'a> {
        let (w, reference) = (&self.site.config.reward, &self.site.reference);
        let soft_limit_kwh = self.site.config.grid.soft_limit_kw * self.site.step_hours;
        let part = |value: Value<'a>, weight: f64, of: f64| {
            let factor = if of > 0.0 { weight / of } else { 0.0 };
            value * -factor
        };
        part(carbon_kg, w.carbon, reference.carbon_kg)
            + part(cost, w.cost, reference.gross_cost)
            + part(curtailed_kwh, w.solar, reference.pv_kwh)
            + part(unmet_kwh, w.vehicles, reference.wanted_kwh)
            + part(excess_kwh, w.grid, soft_limit_kwh)
    }

    /// [`super::reward::seed`].
    fn seed<'a>(&self, flows: &StepFlows<'a>, pv_kwh: Value<'a>, vehicle_soc: Value<'a>, at: At<'a>) -> Value<'a> {
        let w = &self.site.config.reward;
        let hours = self.site.step_hours;
        let (import, vehicles, pv) = (flows.import_kwh / hours, flows.delivered_kwh / hours, pv_kwh / hours);
        let either = |peak: Value<'a>, other: Value<'a>| at.get(Column::SeedPeak).select(peak, other);
        // `1 - factor min(import / limit, 1)`.
        let below = |limit: f64, factor: f64| (import / limit).min(1.0) * -factor + 1.0;
        let carbon = either(below(250.0, 2.0), below(130.0, 1.0));
        let bill = ((import - flows.export_kwh / hours) * 0.20).max(0.0) / 100.0;
        let cost = bill.min(1.0) * -2.0 + 1.0;
        let has_pv = pv.greater(0.0);
        let some_pv = pv.max(1e-30);
        let used = pv.min(vehicles + import * 0.5);
        let solar = (used / some_pv * 2.0 - 1.0) * has_pv;
        let satisfied = (vehicle_soc / 0.9).min(1.0) * 2.0 - 1.0;
        let bonus = (vehicles / some_pv).min(1.0) * 0.1 * has_pv;
        let grid = either(below(200.0, 4.0), below(200.0, 2.0));
        let capacity_kwh = self.site.config.battery.capacity_kwh;
        let soc = ratio(flows.exchange.stored_kwh, capacity_kwh);
        // A reserve below 65 % before the peak.
        let penalty = (soc - 0.65).min(0.0) * (0.5 / 0.65) * at.get(Column::SeedBeforePeak);
        let sum = carbon.clamp(-1.0, 1.0) * w.carbon
            + cost * w.cost
            + solar * w.solar
            + (satisfied + bonus).clamp(-1.0, 1.0) * w.vehicles
            + grid.clamp(-1.0, 1.0) * w.grid
            + penalty * 0.10;
        sum.clamp(-1.0, 1.0)
    }
}

impl TensorDynamics for TensorIquitos {
    type State = IquitosTensors;

    const STATE_VERSION: u32 = 2;

    fn spec(&self, n_envs: usize) -> EnvSpec {
        self.spec.with_n_envs(n_envs)
    }

    fn noise(&self) -> NoiseWidths {
        let [first_clouds, weather] = Calendar::noise();
        let step = self.sockets.noise() + weather;
        NoiseWidths { start: usize::from(self.random_start()) + first_clouds + step, step }
    }

    fn terminates(&self) -> bool {
        false
    }

    /// The noise is used for the day, the clouds, and then as that of a step.
    fn start(&self, noise: Tensor<2>) -> IquitosTensors {
        let (n_envs, device) = (noise.dims()[0], noise.device());
        let draws = &mut Draws::new(noise.clone());
        let step_of_year = match self.random_start() {
            true => draws.index(1, self.n_starts) * f64::from(self.site.steps_per_day),
            false => Tensor::zeros([n_envs, 1], &device),
        };
        let moment = self.calendar.at(|| step_of_year.clone(), self.shared(0));
        let first = draws.columns(2);
        let mut vehicles = self.sockets.empty(n_envs, &device);
        self.sockets.turn_over(&mut vehicles, &moment, &noise, draws);
        let after = draws.columns(2);
        let battery = &self.site.config.battery;
        let [site] = elementwise([n_envs, 1], |formulas| {
            let (noise, at) = (formulas.matrix(&noise), moment.read(formulas));
            let normal = |columns: Range<usize>| {
                Draws::normal_pair(noise.column(columns.start), noise.column(columns.start + 1))
            };
            let clouds = self.calendar.first_clouds(normal(first)[0]);
            let Weather { clouds, pv_kwh, load_kwh } = self.calendar.weather(at, clouds, normal(after));
            let zero = formulas.constant(0.0);
            let stored_kwh = formulas.constant(battery.soc_start * battery.capacity_kwh);
            // In the order of [`Place`].
            let site = [formulas.read(&step_of_year), stored_kwh, clouds, pv_kwh, load_kwh, zero, zero];
            [[&site[..], &[zero; 3]].concat()]
        });
        IquitosTensors { site, vehicles }
    }

    fn observe(&self, state: &IquitosTensors) -> ObsParts {
        let (config, hours) = (&self.site.config, self.site.step_hours);
        let n_envs = state.site.dims()[0];
        let moment = self.calendar.at(|| state.site.clone().slice([0..n_envs, 0..1]), None);
        let seen = self.sockets.seen(&state.vehicles);
        let [site] = elementwise([n_envs, 1], |formulas| {
            let numbers = Numbers(formulas.matrix(&state.site));
            let site = [
                (numbers.get(Place::PvKwh) / (hours * config.pv.peak_kw)).clamp(0.0, 1.0),
                (numbers.last_kw(0) / config.pv.peak_kw).clamp(0.0, 1.0),
                (numbers.get(Place::LoadKwh) / (hours * self.scales.load_kw)).clamp(0.0, 1.0),
                ratio(numbers.get(Place::StoredKwh), config.battery.capacity_kwh).clamp(0.0, 1.0),
                ratio(numbers.last_kw(1), config.battery.power_kw).clamp(-1.0, 1.0),
                (numbers.last_kw(2) / self.scales.grid_kw).clamp(-1.0, 1.0),
                (numbers.get(Place::MonthPeakKw) / self.scales.grid_kw).clamp(0.0, 1.0),
            ];
            let calendar = moment.read(formulas).observed();
            [calendar.chain(site).chain(self.sockets.observed(formulas, &seen)).collect()]
        });
        let own = match seen.numbers {
            Some(numbers) => concat(vec![site, numbers]),
            None => site,
        };
        ObsParts { shared: None, own: Some(own), mask: None, n_agents: 1, actions_per_flag: 1 }
    }

    fn step(
        &self,
        mut state: IquitosTensors,
        action: Tensor<2>,
        noise: Tensor<2>,
        step: Option<u64>,
    ) -> TensorStep<IquitosTensors> {
        let step = step.expect("no episode terminates, so that all have the same time");
        let (n_envs, hours) = (action.dims()[0], self.site.step_hours);
        let steps = || state.site.clone().slice([0..n_envs, 0..1]);
        let moment = self.calendar.at(steps, self.shared(step));
        let next_step = || {
            let [next] = elementwise([n_envs, 1], |formulas| {
                [vec![self.calendar.after(formulas.matrix(&state.site).column(Place::StepOfYear as usize))]]
            });
            next
        };
        let next = self.calendar.at(next_step, self.shared(step + 1));
        let served = self.sockets.serve(&mut state.vehicles, &action);
        // It is read before vehicles leave.
        let config = &self.site.config.reward;
        let missing = (config.kind == RewardKind::Seed).then(|| self.sockets.missing(&state.vehicles));
        let draws = &mut Draws::new(noise.clone());
        let turnover = self.sockets.turn_over(&mut state.vehicles, &next, &noise, draws);
        let normal = draws.columns(2);
        let [site, reward, info] = elementwise([n_envs, 1], |formulas| {
            let (before, at, next) =
                (Numbers(formulas.matrix(&state.site)), moment.read(formulas), next.read(formulas));
            let [delivered_kwh, excess_kwh] = self.sockets.served(formulas, &served, at);
            let flows = self.balance(before, delivered_kwh, formulas.matrix(&action).column(0), at);
            let [unmet_kwh, turned_away] = self.sockets.turned_over(formulas, &turnover);
            let noise = formulas.matrix(&noise);
            let normal = Draws::normal_pair(noise.column(normal.start), noise.column(normal.start + 1));
            let weather = self.calendar.weather(next, before.get(Place::Clouds), normal);
            let pv_kwh = before.get(Place::PvKwh);
            let reward = match &missing {
                None if config.kind == RewardKind::Improvement => self.improvement(formulas, &flows, unmet_kwh),
                None => self.normalised(&flows, unmet_kwh),
                Some(missing) => self.seed(&flows, pv_kwh, self.sockets.vehicle_soc(formulas, missing), at),
            };
            let reward = match config.shaped {
                false => reward,
                true => {
                    let credited_kwh = delivered_kwh + unmet_kwh - at.get(Column::ReferenceVehiclesKwh);
                    reward + self.shaping(&flows, before.get(Place::StoredKwh), credited_kwh)
                }
            };
            let begins_month = next.get(Column::BeginsMonth);
            let peak = |place: Place, kw| begins_month.select(0.0, before.get(place).max(kw));
            let exchange = flows.exchange;
            // In the order of [`Place`].
            let site = vec![
                self.calendar.after(before.get(Place::StepOfYear)),
                exchange.stored_kwh,
                weather.clouds,
                weather.pv_kwh,
                weather.load_kwh,
                peak(Place::MonthPeakKw, flows.import_kwh / hours),
                peak(Place::ReferencePeakKw, flows.reference_import_kwh / hours),
                pv_kwh / hours,
                (exchange.charge_kwh - exchange.discharge_kwh) / hours,
                (flows.import_kwh - flows.export_kwh) / hours,
            ];
            // The order of `INFO`.
            let info = vec![
                flows.import_kwh,
                flows.carbon_kg,
                flows.cost,
                flows.reference_carbon_kg,
                flows.reference_cost,
                pv_kwh,
                flows.curtailed_kwh,
                before.get(Place::LoadKwh),
                delivered_kwh,
                unmet_kwh,
                turned_away,
                flows.grid_excess_kwh,
                excess_kwh,
            ];
            [site, vec![reward], info]
        });
        let state = IquitosTensors { site, vehicles: state.vehicles };
        TensorStep { state, reward: reward.reshape([n_envs]), terminated: None, info: Some(info) }
    }
}
