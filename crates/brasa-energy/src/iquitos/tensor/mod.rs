//! The microgrid as tensor operations, for devices.
//!
//! Numbers have 32 bits, most of those of the host form 64.

mod calendar;
mod sockets;

use std::sync::Arc;

use brasa_core::{Draws, NoiseWidths, ObsParts, TensorDynamics, TensorState, TensorStep};
use brasa_env::{EnvBatch, EnvSpec};
use burn::tensor::{Device, Tensor, TensorData};

use super::config::{FileConfig, RewardConfig, RewardKind};
use super::observe::Scales;
use super::reward::{stored_worth, vehicle_worth};
use super::scenario::Iquitos;
use super::site::Site;
use crate::EnergyError;
use crate::error::fail;
use calendar::{Calendar, Column, Moment, Weather};
use sockets::{Served, Sockets, Vehicles};

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

/// The state of [`TensorIquitos`]; every tensor has a row per environment and, unless stated otherwise, one column.
#[derive(Debug, Clone)]
pub struct IquitosTensors {
    /// The next step of the year.
    step_of_year: Tensor<2>,
    stored_kwh: Tensor<2>,
    clouds: Tensor<2>,
    /// PV and load of the next step.
    pv_kwh: Tensor<2>,
    load_kwh: Tensor<2>,
    month_peak_kw: Tensor<2>,
    reference_peak_kw: Tensor<2>,
    /// PV, battery and grid in the last step, `[n_envs, 3]`.
    last_kw: Tensor<2>,
    vehicles: Vehicles,
}

fn matrix(values: Vec<f64>, width: usize, device: &Device) -> Tensor<2> {
    let values: Vec<f32> = values.into_iter().map(|x| x as f32).collect();
    let rows = values.len() / width;
    Tensor::from_data(TensorData::new(values, [rows, width]), device)
}

/// A share, as observed.
fn clip(x: f64) -> f64 {
    x.clamp(0.0, 1.0)
}

impl TensorState for IquitosTensors {
    fn parts(&self) -> Vec<Tensor<2>> {
        let Vehicles { need_kwh, dwell_steps, power_kw } = &self.vehicles;
        let site = [&self.step_of_year, &self.stored_kwh, &self.clouds, &self.pv_kwh, &self.load_kwh];
        let peaks = [&self.month_peak_kw, &self.reference_peak_kw, &self.last_kw];
        site.into_iter().chain(peaks).chain([need_kwh, dwell_steps, power_kw]).cloned().collect()
    }

    fn from_parts(parts: Vec<Tensor<2>>) -> Self {
        let parts: [Tensor<2>; 11] = parts.try_into().expect("there are as many parts as were handed out");
        let [step_of_year, stored_kwh, clouds, pv_kwh, load_kwh, peaks @ ..] = parts;
        let [month_peak_kw, reference_peak_kw, last_kw, need_kwh, dwell_steps, power_kw] = peaks;
        let vehicles = Vehicles { need_kwh, dwell_steps, power_kw };
        Self { step_of_year, stored_kwh, clouds, pv_kwh, load_kwh, month_peak_kw, reference_peak_kw, last_kw, vehicles }
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
        let steps = site.config.episode_steps.unwrap_or(site.steps_per_year);
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

/// The exchange of the battery in a step, each `[n_envs, 1]`: see [`super::dispatch`].
struct Exchange {
    charge_kwh: Tensor<2>,
    discharge_kwh: Tensor<2>,
    stored_kwh: Tensor<2>,
}

/// Flows of a step, each `[n_envs, 1]`: see [`super::Flows`].
struct StepFlows {
    import_kwh: Tensor<2>,
    export_kwh: Tensor<2>,
    curtailed_kwh: Tensor<2>,
    carbon_kg: Tensor<2>,
    cost: Tensor<2>,
    reference_carbon_kg: Tensor<2>,
    reference_cost: Tensor<2>,
    grid_excess_kwh: Tensor<2>,
    /// Import without control, not below 0.
    reference_import_kwh: Tensor<2>,
    reference_curtailed_kwh: Tensor<2>,
    exchange: Exchange,
}

impl TensorIquitos {
    fn random_start(&self) -> bool {
        self.site.config.random_start
    }

    /// The step of the year of all environments, if they have the same.
    fn shared(&self, step: u64) -> Option<usize> {
        (!self.random_start()).then(|| (step % self.calendar.n_steps() as u64) as usize)
    }

    fn exchange(&self, order: Tensor<2>, stored_kwh: Tensor<2>, net_kwh: &Tensor<2>) -> Exchange {
        let (site, battery) = (&self.site, &self.site.config.battery);
        let (low_kwh, high_kwh) = (battery.soc_min * battery.capacity_kwh, battery.soc_max * battery.capacity_kwh);
        let power_kwh = battery.power_kw * site.step_hours;
        let order_kwh = order.clamp(-1.0, 1.0) * power_kwh;
        let room_kwh = (-stored_kwh.clone() + high_kwh) / battery.charge_efficiency;
        let mut charge_kwh = order_kwh.clone().clamp_min(0.0).min_pair(room_kwh).clamp_min(0.0);
        if !battery.charge_from_grid {
            charge_kwh = charge_kwh.min_pair((-net_kwh.clone()).clamp_min(0.0));
        }
        let takers_kwh = (net_kwh.clone() + site.config.grid.export_limit_kw * site.step_hours).clamp_min(0.0);
        let stock_kwh = (stored_kwh.clone() - low_kwh) * battery.discharge_efficiency;
        let discharge_kwh = (-order_kwh).clamp_min(0.0).min_pair(stock_kwh).min_pair(takers_kwh).clamp_min(0.0);
        let moved_kwh = stored_kwh + charge_kwh.clone() * battery.charge_efficiency
            - discharge_kwh.clone() / battery.discharge_efficiency;
        let standing_kwh = moved_kwh.clone() * site.standing_loss;
        let standing_kwh = standing_kwh.min_pair(moved_kwh.clone() - low_kwh).clamp_min(0.0);
        Exchange { charge_kwh, discharge_kwh, stored_kwh: moved_kwh - standing_kwh }
    }

    fn balance(&self, state: &IquitosTensors, served: &Served, order: Tensor<2>, moment: &Moment) -> StepFlows {
        let (hours, grid) = (self.site.step_hours, &self.site.config.grid);
        let limit_kwh = grid.export_limit_kw * hours;
        let IquitosTensors { pv_kwh, load_kwh, .. } = state;
        let net_kwh = load_kwh.clone() + served.delivered_kwh.clone() - pv_kwh.clone();
        let exchange = self.exchange(order, state.stored_kwh.clone(), &net_kwh);
        let from_grid_kwh = net_kwh + exchange.charge_kwh.clone() - exchange.discharge_kwh.clone();
        let import_kwh = from_grid_kwh.clone().clamp_min(0.0);
        let surplus_kwh = (-from_grid_kwh).clamp_min(0.0);
        let export_kwh = surplus_kwh.clone().clamp_max(limit_kwh);
        let price = |import_kwh: &Tensor<2>, peak_kw: &Tensor<2>| {
            let rise_kw = (import_kwh.clone() / hours - peak_kw.clone()).clamp_min(0.0);
            import_kwh.clone() * moment.get(Column::Price) + rise_kw * grid.demand_charge_per_kw
        };
        let moved_kwh = exchange.charge_kwh.clone() + exchange.discharge_kwh.clone();
        let cost = price(&import_kwh, &state.month_peak_kw) - export_kwh.clone() * grid.export_price_per_kwh
            + moved_kwh * self.site.config.battery.wear_cost_per_kwh;
        let reference_net_kwh = load_kwh.clone() - pv_kwh.clone() + moment.get(Column::ReferenceVehiclesKwh);
        let reference_import_kwh = reference_net_kwh.clone().clamp_min(0.0);
        let reference_surplus_kwh = (-reference_net_kwh).clamp_min(0.0);
        let reference_export_kwh = reference_surplus_kwh.clone().clamp_max(limit_kwh);
        StepFlows {
            curtailed_kwh: surplus_kwh - export_kwh.clone(),
            carbon_kg: import_kwh.clone() * moment.get(Column::CarbonKg),
            cost,
            reference_carbon_kg: reference_import_kwh.clone() * moment.get(Column::CarbonKg),
            reference_cost: price(&reference_import_kwh, &state.reference_peak_kw)
                - reference_export_kwh.clone() * grid.export_price_per_kwh,
            reference_curtailed_kwh: reference_surplus_kwh - reference_export_kwh,
            grid_excess_kwh: (import_kwh.clone() - grid.soft_limit_kw * hours).clamp_min(0.0),
            import_kwh,
            export_kwh,
            reference_import_kwh,
            exchange,
        }
    }

    /// [`super::reward::normalised`].
    fn normalised(&self, flows: &StepFlows, unmet_kwh: &Tensor<2>) -> Tensor<2> {
        self.weigh([&flows.carbon_kg, &flows.cost, &flows.curtailed_kwh, unmet_kwh, &flows.grid_excess_kwh])
    }

    /// [`super::reward::improvement`].
    fn improvement(&self, flows: &StepFlows, unmet_kwh: &Tensor<2>) -> Tensor<2> {
        let soft_limit_kwh = self.site.config.grid.soft_limit_kw * self.site.step_hours;
        let excess_kwh = (flows.reference_import_kwh.clone() - soft_limit_kwh).clamp_min(0.0);
        let (carbon_kg, cost) = (&flows.reference_carbon_kg, &flows.reference_cost);
        let idle = [carbon_kg, cost, &flows.reference_curtailed_kwh, &unmet_kwh.zeros_like(), &excess_kwh];
        self.normalised(flows, unmet_kwh) - self.weigh(idle)
    }

    /// [`super::reward::shaping`], with the stored energy before the step.
    fn shaping(&self, flows: &StepFlows, stored_kwh: &Tensor<2>, credited_kwh: Tensor<2>) -> Tensor<2> {
        let change_kwh = flows.exchange.stored_kwh.clone() - stored_kwh.clone();
        change_kwh * stored_worth(&self.site) + credited_kwh * vehicle_worth(&self.site)
    }

    fn weigh(&self, [carbon_kg, cost, curtailed_kwh, unmet_kwh, excess_kwh]: [&Tensor<2>; 5]) -> Tensor<2> {
        let (w, reference) = (&self.site.config.reward, &self.site.reference);
        let soft_limit_kwh = self.site.config.grid.soft_limit_kw * self.site.step_hours;
        let part = |value: &Tensor<2>, weight: f64, of: f64| {
            let factor = if of > 0.0 { weight / of } else { 0.0 };
            value.clone() * -factor
        };
        part(carbon_kg, w.carbon, reference.carbon_kg)
            + part(cost, w.cost, reference.cost)
            + part(curtailed_kwh, w.solar, reference.pv_kwh)
            + part(unmet_kwh, w.vehicles, reference.wanted_kwh)
            + part(excess_kwh, w.grid, soft_limit_kwh)
    }

    /// [`super::reward::seed`].
    fn seed(
        &self,
        flows: &StepFlows,
        served: &Served,
        pv_kwh: &Tensor<2>,
        vehicle_soc: Tensor<2>,
        moment: &Moment,
    ) -> Tensor<2> {
        let w = &self.site.config.reward;
        let per_hour = |kwh: &Tensor<2>| kwh.clone() / self.site.step_hours;
        let (import, vehicles, pv) = (per_hour(&flows.import_kwh), per_hour(&served.delivered_kwh), per_hour(pv_kwh));
        let is_peak = moment.get(Column::SeedPeak);
        let either = |peak: Tensor<2>, other: Tensor<2>| peak * is_peak.clone() + other * (-is_peak.clone() + 1.0);
        // `1 - factor min(import / limit, 1)`.
        let below = |limit: f64, factor: f64| (import.clone() / limit).clamp_max(1.0) * -factor + 1.0;
        let carbon = either(below(250.0, 2.0), below(130.0, 1.0));
        let bill = ((import.clone() - per_hour(&flows.export_kwh)) * 0.20).clamp_min(0.0) / 100.0;
        let cost = bill.clamp_max(1.0) * -2.0 + 1.0;
        let has_pv = pv.clone().greater_elem(0.0).float();
        let some_pv = pv.clone().clamp_min(1e-30);
        let used = pv.min_pair(vehicles.clone() + import.clone() * 0.5);
        let solar = (used / some_pv.clone() * 2.0 - 1.0) * has_pv.clone();
        let satisfied = (vehicle_soc / 0.9).clamp_max(1.0) * 2.0 - 1.0;
        let bonus = (vehicles / some_pv).clamp_max(1.0) * 0.1 * has_pv;
        let grid = either(below(200.0, 4.0), below(200.0, 2.0));
        let capacity_kwh = self.site.config.battery.capacity_kwh;
        let stored = &flows.exchange.stored_kwh;
        let soc = if capacity_kwh > 0.0 { stored.clone() / capacity_kwh } else { stored.zeros_like() };
        // A reserve below 65 % before the peak.
        let penalty = (soc - 0.65).clamp_max(0.0) * (0.5 / 0.65) * moment.get(Column::SeedBeforePeak);
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
        let draws = &mut Draws::new(noise);
        let zeros = |width: usize| Tensor::zeros([n_envs, width], &device);
        let step_of_year = match self.random_start() {
            true => draws.index(1, self.n_starts) * f64::from(self.site.steps_per_day),
            false => zeros(1),
        };
        let moment = self.calendar.at(&step_of_year, self.shared(0));
        let clouds = self.calendar.first_clouds(draws);
        let mut vehicles = self.sockets.empty(n_envs, &device);
        self.sockets.turn_over(&mut vehicles, &moment, draws);
        let Weather { clouds, pv_kwh, load_kwh } = self.calendar.weather(&moment, clouds, draws);
        let battery = &self.site.config.battery;
        IquitosTensors {
            step_of_year,
            stored_kwh: zeros(1) + battery.soc_start * battery.capacity_kwh,
            clouds,
            pv_kwh,
            load_kwh,
            month_peak_kw: zeros(1),
            reference_peak_kw: zeros(1),
            last_kw: zeros(3),
            vehicles,
        }
    }

    fn observe(&self, state: &IquitosTensors) -> ObsParts {
        let (config, hours) = (&self.site.config, self.site.step_hours);
        let n_envs = state.stored_kwh.dims()[0];
        let calendar = self.calendar.at(&state.step_of_year, None).observed();
        let last = |i: usize| state.last_kw.clone().slice([0..n_envs, i..i + 1]);
        let ratio = |x: Tensor<2>, scale: f64| if scale > 0.0 { x / scale } else { x.zeros_like() };
        let share = |x: Tensor<2>| x.clamp(0.0, 1.0);
        let signed = |x: Tensor<2>| x.clamp(-1.0, 1.0);
        let site = [
            share(state.pv_kwh.clone() / (hours * config.pv.peak_kw)),
            share(last(0) / config.pv.peak_kw),
            share(state.load_kwh.clone() / (hours * self.scales.load_kw)),
            share(ratio(state.stored_kwh.clone(), config.battery.capacity_kwh)),
            signed(ratio(last(1), config.battery.power_kw)),
            signed(last(2) / self.scales.grid_kw),
            share(state.month_peak_kw.clone() / self.scales.grid_kw),
        ];
        let parts = [calendar].into_iter().chain(site).chain(self.sockets.observe(&state.vehicles));
        let own = Tensor::cat(parts.collect(), 1);
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
        let ([n_envs, width], hours) = (action.dims(), self.site.step_hours);
        let moment = self.calendar.at(&state.step_of_year, self.shared(step));
        let sockets = action.clone().slice([0..n_envs, 1..width]);
        let served = self.sockets.serve(&mut state.vehicles, sockets, &moment);
        let flows = self.balance(&state, &served, action.slice([0..n_envs, 0..1]), &moment);
        // It is read before vehicles leave.
        let vehicle_soc =
            (self.site.config.reward.kind == RewardKind::Seed).then(|| self.sockets.vehicle_soc(&state.vehicles));

        let n_steps = self.calendar.n_steps() as f64;
        let next = state.step_of_year.clone() + 1.0;
        let step_of_year = next.clone() * next.lower_elem(n_steps - 0.5).float();
        let next = self.calendar.at(&step_of_year, self.shared(step + 1));
        let draws = &mut Draws::new(noise);
        let turnover = self.sockets.turn_over(&mut state.vehicles, &next, draws);
        let weather = self.calendar.weather(&next, state.clouds.clone(), draws);

        let reward = match vehicle_soc {
            None if self.site.config.reward.kind == RewardKind::Improvement => {
                self.improvement(&flows, &turnover.unmet_kwh)
            }
            None => self.normalised(&flows, &turnover.unmet_kwh),
            Some(vehicle_soc) => self.seed(&flows, &served, &state.pv_kwh, vehicle_soc, &moment),
        };
        let reward = match self.site.config.reward.shaped {
            false => reward,
            true => {
                let credited_kwh = served.delivered_kwh.clone() + turnover.unmet_kwh.clone()
                    - moment.get(Column::ReferenceVehiclesKwh);
                reward + self.shaping(&flows, &state.stored_kwh, credited_kwh)
            }
        };
        let same_month = -next.get(Column::BeginsMonth) + 1.0;
        let peak =
            |before: &Tensor<2>, kwh: &Tensor<2>| before.clone().max_pair(kwh.clone() / hours) * same_month.clone();
        let exchange = flows.exchange;
        let last_kwh = [
            state.pv_kwh.clone(),
            exchange.charge_kwh - exchange.discharge_kwh,
            flows.import_kwh.clone() - flows.export_kwh,
        ];
        let after = IquitosTensors {
            step_of_year,
            stored_kwh: exchange.stored_kwh,
            clouds: weather.clouds,
            pv_kwh: weather.pv_kwh,
            load_kwh: weather.load_kwh,
            month_peak_kw: peak(&state.month_peak_kw, &flows.import_kwh),
            reference_peak_kw: peak(&state.reference_peak_kw, &flows.reference_import_kwh),
            last_kw: Tensor::cat(last_kwh.to_vec(), 1) / hours,
            vehicles: state.vehicles,
        };
        // The order of `INFO`.
        let info = [
            flows.import_kwh,
            flows.carbon_kg,
            flows.cost,
            flows.reference_carbon_kg,
            flows.reference_cost,
            state.pv_kwh,
            flows.curtailed_kwh,
            state.load_kwh,
            served.delivered_kwh,
            turnover.unmet_kwh,
            turnover.turned_away,
            flows.grid_excess_kwh,
            served.excess_kwh,
        ];
        let info = Some(Tensor::cat(info.to_vec(), 1));
        TensorStep { state: after, reward: reward.reshape([n_envs]), terminated: None, info }
    }
}
