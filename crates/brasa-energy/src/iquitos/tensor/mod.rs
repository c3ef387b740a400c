//! The microgrid as tensor operations, for devices.
//!
//! Numbers have 32 bits, most of those of the host form 64.

mod calendar;
mod sockets;

use std::ops::Range;
use std::sync::Arc;

use brasa_core::{Draws, NoiseWidths, ObsParts, TensorDynamics, TensorState, TensorStep};
use brasa_env::{EnvBatch, EnvSpec};
use brasa_kernels::{Matrix, Value, concat, elementwise};
use brasa_power::{EnergyError, fail};
use burn::tensor::{Device, Tensor, TensorData};

use super::config::{FileConfig, RewardKind};
use super::dispatch::{BatteryOrder, Bus, balance};
use super::observe::Scales;
use super::reward::{SeedInputs, reward};
use super::scenario::Iquitos;
use super::site::Site;
use calendar::{Calendar, Column, Weather};
use sockets::{Sockets, Vehicles};

/// The rules of the microgrid for a device.
///
/// Random vehicles come from inverse distribution functions of the noise. Numbers of arrivals that are rarer than one in ten
/// million do not occur.
///
/// ```
/// # fn on(device: &burn::tensor::Device) -> Result<(), brasa_env::EnvError> {
/// use brasa_core::{TensorEnv, VecEnv};
/// use brasa_energy::iquitos::{Iquitos, IquitosConfig, tensor::TensorIquitos};
///
/// // 64 environments on `device`, with the time limit of the scenario.
/// let (dynamics, steps): (TensorIquitos, u32) = Iquitos::new(IquitosConfig::default())?.tensors(device)?;
/// let mut envs = TensorEnv::<_>::new(dynamics, 64, device)?.with_time_limit(steps)?;
/// envs.reset(7)?;
/// assert_eq!(envs.n_envs(), 64);
/// # Ok(())
/// # }
/// ```
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
///
/// ```
/// # fn on(device: &burn::tensor::Device) -> Result<(), brasa_env::EnvError> {
/// use brasa_core::{TensorEnv, TensorState, VecEnv};
/// use brasa_energy::iquitos::{Iquitos, IquitosConfig, tensor::IquitosTensors};
///
/// let (dynamics, _) = Iquitos::new(IquitosConfig::default())?.tensors(device)?;
/// let mut envs = TensorEnv::<_>::new(dynamics, 64, device)?;
/// envs.reset(7)?;
/// let state: &IquitosTensors = envs.state().expect("the environments were reset");
/// assert!(state.parts().iter().all(|part| part.dims()[0] == 64));
/// # Ok(())
/// # }
/// ```
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

impl TensorIquitos {
    fn random_start(&self) -> bool {
        self.site.config.random_start
    }

    /// The step of the year of all environments, if they have the same.
    fn shared(&self, step: u64) -> Option<usize> {
        (!self.random_start()).then(|| (step % self.calendar.n_steps() as u64) as usize)
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
        let missing = (self.site.config.reward.kind == RewardKind::Seed).then(|| self.sockets.missing(&state.vehicles));
        let draws = &mut Draws::new(noise.clone());
        let turnover = self.sockets.turn_over(&mut state.vehicles, &next, &noise, draws);
        let normal = draws.columns(2);
        let [site, reward, info] = elementwise([n_envs, 1], |formulas| {
            let (before, at, next) =
                (Numbers(formulas.matrix(&state.site)), moment.read(formulas), next.read(formulas));
            let [delivered_kwh, excess_kwh] = self.sockets.served(formulas, &served, at);
            let site = &self.site;
            let pv_kwh = before.get(Place::PvKwh);
            let bus = Bus {
                pv_kwh,
                load_kwh: before.get(Place::LoadKwh),
                vehicles_kwh: delivered_kwh,
                feeder_excess_kwh: excess_kwh,
                reference_vehicles_kwh: at.get(Column::ReferenceVehiclesKwh),
                price_per_kwh: at.get(Column::Price),
                carbon_kg_per_kwh: at.get(Column::CarbonKg),
                stored_kwh: before.get(Place::StoredKwh),
                month_peak_kw: before.get(Place::MonthPeakKw),
                reference_peak_kw: before.get(Place::ReferencePeakKw),
                grid_kw: (step > 0).then(|| before.last_kw(2)),
            };
            let order = formulas.matrix(&action).column(0).clamp(-1.0, 1.0) * site.config.battery.power_kw;
            let (mut flows, stored_kwh) = balance(site, &bus, BatteryOrder::Power(order));
            [flows.ledger.ev_unmet_kwh, flows.turned_away] = self.sockets.turned_over(formulas, &turnover);
            let noise = formulas.matrix(&noise);
            let normal = Draws::normal_pair(noise.column(normal.start), noise.column(normal.start + 1));
            let weather = self.calendar.weather(next, before.get(Place::Clouds), normal);
            let seed_inputs = || SeedInputs {
                battery_soc: ratio(stored_kwh, site.config.battery.capacity_kwh),
                vehicle_soc: self.sockets.vehicle_soc(formulas, missing.as_ref().expect("the seed formula needs it")),
                is_peak: at.get(Column::SeedPeak),
                is_before_peak: at.get(Column::SeedBeforePeak),
            };
            let reward = reward(&flows, seed_inputs, site);
            let begins_month = next.get(Column::BeginsMonth);
            let peak = |place: Place, kw| begins_month.select(0.0, before.get(place).max(kw));
            let ledger = flows.ledger;
            // In the order of [`Place`].
            let site = vec![
                self.calendar.after(before.get(Place::StepOfYear)),
                stored_kwh,
                weather.clouds,
                weather.pv_kwh,
                weather.load_kwh,
                peak(Place::MonthPeakKw, ledger.grid_import_kwh / hours),
                peak(Place::ReferencePeakKw, flows.reference_import_kwh / hours),
                pv_kwh / hours,
                (ledger.battery_in_kwh - ledger.battery_out_kwh) / hours,
                (ledger.grid_import_kwh - ledger.grid_export_kwh) / hours,
            ];
            // The order of `INFO`.
            let info = vec![
                ledger.grid_import_kwh,
                flows.carbon_kg,
                flows.cost,
                flows.reference_carbon_kg,
                flows.reference_cost,
                pv_kwh,
                ledger.pv_curtailed_kwh,
                ledger.load_kwh,
                delivered_kwh,
                ledger.ev_unmet_kwh,
                flows.turned_away,
                flows.grid_excess_kwh,
                excess_kwh,
            ];
            [site, vec![reward], info]
        });
        let state = IquitosTensors { site, vehicles: state.vehicles };
        TensorStep { state, reward: reward.reshape([n_envs]), terminated: None, info: Some(info) }
    }
}
