//! Sockets and vehicles on a device.

use brasa_core::Draws;
use brasa_kernels::{Formulas, Matrix, Value, elementwise};
use brasa_power::{EnergyError, fail};
use burn::tensor::{Device, Tensor};

use super::calendar::{At, Column, Moment};
use super::matrix;
use crate::iquitos::config::{ActionMode, IquitosConfig, ObservationMode, SocketActions};
use crate::iquitos::observe::Scales;
use crate::iquitos::site::Site;
use crate::iquitos::vehicles::{Arrivals, mean_arrivals};

/// Largest number of arrivals of a class in a step, for tables of their distribution.
const MOST_ARRIVALS: f64 = 4000.0;

/// The state of the sockets, each `[n_envs, sockets]`.
#[derive(Debug, Clone)]
pub(super) struct Vehicles {
    pub need_kwh: Tensor<2>,
    pub dwell_steps: Tensor<2>,
    pub power_kw: Tensor<2>,
}

/// A number per socket.
#[derive(Debug, Clone, Copy)]
enum Constant {
    SocketKw,
    /// Energy from the socket for a change of the state of charge of 1.
    FullKwh,
    /// Charge in a vehicle's battery per need.
    ChargePerNeed,
    /// Share of the socket in the energy of the profile.
    ProfileShare,
    /// 1 for mototaxis, 0 for motos.
    IsMototaxi,
}

/// The rules of sockets.
#[derive(Debug, Clone)]
pub(super) struct Sockets {
    /// Sockets of motos and of mototaxis.
    n: [usize; 2],
    actions: ActionMode,
    shares: SocketActions,
    mode: ObservationMode,
    step_hours: f64,
    limit_kwh: f64,
    /// `[1, constants * sockets]`: every [`Constant`] of all sockets.
    constants: Tensor<2>,
    /// Energy of a class's full charges, kWh.
    full_of_class_kwh: [f64; 2],
    power_of_class_kw: [f64; 2],
    max_dwell_steps: f64,
    limit_kw: f64,
    target_soc: f64,
    /// `None` if vehicles follow the profile.
    arrivals: Option<Distributions>,
}

/// The distributions of random vehicles.
#[derive(Debug, Clone)]
struct Distributions {
    /// Probability of at most 0, 1, ... arrivals by kind of day and hour, `[48, n]`, per class.
    counts: [Tensor<2>; 2],
    /// Quantiles of the state of charge and of the steps at a socket, and their distances to the next ones, `[n_intervals]` each.
    soc: [Tensor<1>; 2],
    dwell_steps: [Tensor<1>; 2],
    n_intervals: usize,
}

/// What is observed of sockets.
pub(super) struct Seen {
    /// Side by side: whether occupied, need, what can be delivered in a step, what is needed by the next step, and power,
    /// `[n_envs, 5 * sockets]`.
    sums: Tensor<2>,
    /// Four numbers of every socket as observed, `[n_envs, 4 * sockets]`, if they are.
    pub numbers: Option<Tensor<2>>,
}

/// A quantile between two of a table, each `[n_envs, sockets]`: the lower one, the distance of the other, and the place between them.
struct Quantile([Tensor<2>; 3]);

impl Quantile {
    fn read<'a>(&self, formulas: &'a Formulas) -> Value<'a> {
        let [low, distance, inside] = self.0.each_ref().map(|part| formulas.read(part));
        low + distance * inside
    }
}

/// What sockets delivered in a step, in kWh: ordered and delivered by every socket, each `[n_envs, sockets]`; `None` with the profile.
pub(super) struct Served(Option<[Tensor<2>; 2]>);

/// What happened between two steps; `None` with the profile.
pub(super) struct Turnover(Option<Changes>);

struct Changes {
    /// What vehicles that left still needed, kWh, `[n_envs, sockets]`.
    unmet_kwh: Tensor<2>,
    /// Flags whose number is that of arrivals, `[n_envs, n]` per class.
    arrivals: [Tensor<2>; 2],
    /// Flags of sockets that were free, `[n_envs, sockets]`.
    free: Tensor<2>,
}

impl Sockets {
    pub fn new(site: &Site, scales: &Scales, device: &Device) -> Result<Self, EnergyError> {
        let config = &site.config;
        let classes = [&config.vehicles.moto, &config.vehicles.mototaxi];
        let n = classes.map(|class| class.sockets);
        let total = n[0] + n[1];
        let per_socket = |of: [f64; 2]| (0..total).map(move |socket| of[usize::from(socket >= n[0])]);
        let socket_kw = classes.map(|class| class.socket_kw);
        let total_kw = socket_kw[0] * n[0] as f64 + socket_kw[1] * n[1] as f64;
        let full_kwh = scales.full_kwh.map(f64::from);
        // In the order of [`Constant`].
        let constants = [
            socket_kw,
            full_kwh,
            classes.map(|class| config.vehicles.charger_efficiency / class.battery_kwh),
            socket_kw.map(|kw| kw / total_kw),
            [0.0, 1.0],
        ];
        let distributions = |arrivals| Distributions::new(arrivals, config, device);
        let arrivals = site.arrivals.as_ref().map(distributions).transpose()?;
        Ok(Self {
            n,
            actions: config.actions,
            shares: config.socket_actions,
            mode: config.observations,
            step_hours: site.step_hours,
            limit_kwh: config.vehicles.feeder_limit_kw * site.step_hours,
            constants: matrix(constants.into_iter().flat_map(per_socket).collect(), 5 * total, device),
            full_of_class_kwh: [0, 1].map(|class| full_kwh[class] * n[class] as f64),
            power_of_class_kw: [0, 1].map(|class| socket_kw[class] * n[class] as f64),
            max_dwell_steps: scales.max_dwell_steps.into(),
            limit_kw: scales.sockets_limit_kw.into(),
            target_soc: config.vehicles.target_soc,
            arrivals,
        })
    }

    pub fn n_sockets(&self) -> usize {
        self.n[0] + self.n[1]
    }

    /// Columns of noise for [`Sockets::turn_over`]: a number of arrivals per class, and two numbers per socket.
    pub fn noise(&self) -> usize {
        match self.arrivals {
            None => 0,
            Some(_) => 2 + 2 * self.n_sockets(),
        }
    }

    /// Sockets without vehicles.
    pub fn empty(&self, n_envs: usize, device: &Device) -> Vehicles {
        let zeros = || Tensor::zeros([n_envs, self.n_sockets()], device);
        Vehicles { need_kwh: zeros(), dwell_steps: zeros(), power_kw: zeros() }
    }

    /// A number of every socket, in formulas for sockets.
    fn get<'a>(&self, formulas: &'a Formulas, constant: Constant) -> Value<'a> {
        let (n, i) = (self.n_sockets(), constant as usize);
        formulas.matrix(&self.constants).columns(i * n..(i + 1) * n)
    }

    /// Orders of sockets, kW, from actions, whose first one is that of the battery.
    fn orders_kw<'a>(&self, formulas: &'a Formulas, action: Matrix<'a>) -> Value<'a> {
        let action = match self.actions {
            ActionMode::PerSocket => action.columns(1..1 + self.n_sockets()),
            ActionMode::Aggregate => {
                self.get(formulas, Constant::IsMototaxi).select(action.column(2), action.column(1))
            }
        };
        let share = match self.shares {
            SocketActions::Linear => (action.clamp(-1.0, 1.0) + 1.0) * 0.5,
            SocketActions::HoldBack => action.clamp(-1.0, 0.0) + 1.0,
        };
        share * self.get(formulas, Constant::SocketKw)
    }

    /// Charges vehicles: see [`crate::iquitos::dispatch::serve`].
    pub fn serve(&self, vehicles: &mut Vehicles, action: &Tensor<2>) -> Served {
        let shape @ [_, sockets] = vehicles.need_kwh.dims();
        if self.arrivals.is_none() {
            // The profile is always served.
            vehicles.power_kw = vehicles.need_kwh.clone() / self.step_hours;
            vehicles.need_kwh = vehicles.need_kwh.zeros_like();
            return Served(None);
        }
        let [ordered_kwh] = elementwise(shape, |formulas| {
            let order_kwh = self.orders_kw(formulas, formulas.matrix(action)) * self.step_hours;
            [vec![order_kwh.min(formulas.read(&vehicles.need_kwh))]]
        });
        let [need_kwh, power_kw, energy_kwh] = elementwise(shape, |formulas| {
            let ordered = formulas.matrix(&ordered_kwh);
            // Orders above the limit are reduced; the others have a share of 1 or more.
            let share = formulas.constant(self.limit_kwh) / ordered.sum(0..sockets).max(1e-30);
            let energy_kwh = ordered.columns(0..sockets) * share.min(1.0);
            let need_kwh = (formulas.read(&vehicles.need_kwh) - energy_kwh).max(0.0);
            [vec![need_kwh], vec![energy_kwh / self.step_hours], vec![energy_kwh]]
        });
        (vehicles.need_kwh, vehicles.power_kw) = (need_kwh, power_kw);
        Served(Some([ordered_kwh, energy_kwh]))
    }

    /// What was delivered, and how much more was ordered than the limit, in kWh.
    pub fn served<'a>(&self, formulas: &'a Formulas, served: &Served, at: At<'a>) -> [Value<'a>; 2] {
        match &served.0 {
            None => [at.get(Column::ProfileKwh), formulas.constant(0.0)],
            Some(kwh) => {
                let [ordered, delivered] = kwh.each_ref().map(|kwh| formulas.matrix(kwh).sum(0..self.n_sockets()));
                [delivered, (ordered - self.limit_kwh).max(0.0)]
            }
        }
    }

    /// Missing charge of connected vehicles and their flags, side by side, `[n_envs, 2 * sockets]`.
    pub fn missing(&self, vehicles: &Vehicles) -> Tensor<2> {
        let [missing] = elementwise(vehicles.need_kwh.dims(), |formulas| {
            let connected = formulas.read(&vehicles.dwell_steps).greater(0.0);
            let missing = match self.arrivals {
                None => formulas.constant(0.0),
                Some(_) => formulas.read(&vehicles.need_kwh) * self.get(formulas, Constant::ChargePerNeed) * connected,
            };
            [vec![missing, connected]]
        });
        missing
    }

    /// The mean state of charge of connected vehicles; the target if there are none or with the profile.
    pub fn vehicle_soc<'a>(&self, formulas: &'a Formulas, missing: &Tensor<2>) -> Value<'a> {
        let (missing, n) = (formulas.matrix(missing), self.n_sockets());
        -(missing.sum(0..n) / missing.sum(n..2 * n).max(1.0)) + self.target_soc
    }

    /// Vehicles leave and arrive; `moment` is that of the next step.
    pub fn turn_over(
        &self,
        vehicles: &mut Vehicles,
        moment: &Moment,
        noise: &Tensor<2>,
        draws: &mut Draws,
    ) -> Turnover {
        let shape @ [_, sockets] = vehicles.need_kwh.dims();
        let Some(distributions) = &self.arrivals else {
            let [need_kwh, dwell_steps] = elementwise(shape, |formulas| {
                let energy_kwh = moment.read(formulas).get(Column::ProfileKwh);
                let need_kwh = energy_kwh * self.get(formulas, Constant::ProfileShare);
                [vec![need_kwh], vec![formulas.constant(1.0)]]
            });
            (vehicles.need_kwh, vehicles.dwell_steps) = (need_kwh, dwell_steps);
            return Turnover(None);
        };
        let arrivals = distributions.arrivals(moment, noise, draws);
        let [soc, dwell_steps] = distributions.quantiles(shape, noise, draws);
        let [free, unmet_kwh] = elementwise(shape, |formulas| {
            let free = formulas.read(&vehicles.dwell_steps).lower_equal(1.0);
            [vec![free], vec![formulas.read(&vehicles.need_kwh) * free]]
        });
        let changes = Changes { unmet_kwh, arrivals, free };
        let [need_kwh, dwell_steps] = elementwise(shape, |formulas| {
            let is_mototaxi = self.get(formulas, Constant::IsMototaxi);
            let arrivals = self.arrivals(formulas, &changes);
            let free = formulas.matrix(&changes.free);
            // The vehicles of a class take its free sockets in their order.
            let before = is_mototaxi.select(free.sum(0..self.n[0]), 0.0);
            let place = free.sum_before(0..sockets) - before;
            let free = free.columns(0..sockets);
            let takes = free * place.lower(is_mototaxi.select(arrivals[1], arrivals[0]));
            let [soc, steps] = [&soc, &dwell_steps].map(|quantile| quantile.read(formulas));
            let need_kwh = ((-soc + self.target_soc) * self.get(formulas, Constant::FullKwh)).max(0.0);
            let steps = (steps + 0.5).floor().max(1.0);
            let need_kwh = takes.select(need_kwh, free.select(0.0, formulas.read(&vehicles.need_kwh)));
            let stays = formulas.read(&vehicles.dwell_steps) - 1.0;
            [vec![need_kwh], vec![takes.select(steps, free.select(0.0, stays))]]
        });
        (vehicles.need_kwh, vehicles.dwell_steps) = (need_kwh, dwell_steps);
        Turnover(Some(changes))
    }

    /// Arrivals of each class.
    fn arrivals<'a>(&self, formulas: &'a Formulas, changes: &Changes) -> [Value<'a>; 2] {
        changes.arrivals.each_ref().map(|flags| formulas.matrix(flags).sum(0..flags.dims()[1]))
    }

    /// Needs in kWh of vehicles that left, and vehicles that found no socket.
    pub fn turned_over<'a>(&self, formulas: &'a Formulas, turnover: &Turnover) -> [Value<'a>; 2] {
        let Some(changes) = &turnover.0 else { return [formulas.constant(0.0); 2] };
        let (n, free) = (self.n_sockets(), formulas.matrix(&changes.free));
        let free = [free.sum(0..self.n[0]), free.sum(self.n[0]..n)];
        let arrivals = self.arrivals(formulas, changes);
        let turned_away = |class: usize| (arrivals[class] - free[class]).max(0.0);
        [formulas.matrix(&changes.unmet_kwh).sum(0..n), turned_away(0) + turned_away(1)]
    }

    /// What is observed of sockets.
    pub fn seen(&self, vehicles: &Vehicles) -> Seen {
        let [sums, numbers] = elementwise(vehicles.need_kwh.dims(), |formulas| {
            let Vehicles { need_kwh, dwell_steps, power_kw } = vehicles;
            let [need_kwh, dwell_steps, power_kw] = [need_kwh, dwell_steps, power_kw].map(|part| formulas.read(part));
            let occupied = dwell_steps.greater(0.0);
            let wish_kwh = need_kwh.min(self.get(formulas, Constant::SocketKw) * self.step_hours);
            let urgent_kwh = need_kwh * dwell_steps.lower_equal(1.0);
            let numbers = vec![
                occupied,
                (need_kwh / self.get(formulas, Constant::FullKwh)).min(1.0),
                (dwell_steps / self.max_dwell_steps).min(1.0),
                (power_kw / self.get(formulas, Constant::SocketKw)).min(1.0),
            ];
            [vec![occupied, need_kwh, wish_kwh, urgent_kwh, power_kw], numbers]
        });
        Seen { sums, numbers: (self.mode == ObservationMode::Full).then_some(numbers) }
    }

    /// Three sums over all sockets, and those over classes if they take the place of [`Seen::numbers`].
    pub fn observed<'a>(&self, formulas: &'a Formulas, seen: &Seen) -> Vec<Value<'a>> {
        let (sums, sockets) = (formulas.matrix(&seen.sums), self.n_sockets());
        let all = |i: usize| sums.sum(i * sockets..(i + 1) * sockets);
        let full_kwh = self.full_of_class_kwh[0] + self.full_of_class_kwh[1];
        let mut values = vec![
            all(0) / sockets as f64,
            (all(1) / full_kwh).min(1.0),
            (all(2) / (self.step_hours * self.limit_kw)).min(2.0),
        ];
        if self.mode == ObservationMode::Compact {
            for class in [0, 1] {
                let sum = |i: usize| {
                    let begin = i * sockets + class * self.n[0];
                    sums.sum(begin..begin + self.n[class])
                };
                let shares = [
                    sum(0) / self.n[class] as f64,
                    sum(1) / self.full_of_class_kwh[class],
                    sum(3) / self.full_of_class_kwh[class],
                    sum(4) / self.power_of_class_kw[class],
                ];
                values.extend(shares.map(|share| share.min(1.0)));
            }
        }
        values
    }
}

impl Distributions {
    fn new(arrivals: &Arrivals, config: &IquitosConfig, device: &Device) -> Result<Self, EnergyError> {
        let largest = |means: &[f64]| means.iter().copied().fold(0.0, f64::max);
        for (name, class) in [("moto", 0), ("mototaxi", 1)] {
            let largest = largest(&mean_arrivals(config, class));
            if largest > MOST_ARRIVALS {
                let rule = format!("must be at most {MOST_ARRIVALS} in a step for environments on a device");
                return fail(&format!("vehicles.{name}.arrivals_per_day"), &rule, largest);
            }
        }
        let counts = [0, 1].map(|class| {
            let means = mean_arrivals(config, class);
            let largest = largest(&means);
            // The rest has a probability below the resolution of 32 bits.
            let n = (largest + 8.0 * largest.sqrt()) as usize + 16;
            matrix(means.iter().flat_map(|mean| at_most(*mean, n)).collect(), n, device)
        });
        let quantiles = |values: &[f32]| {
            let row = |values: Vec<f64>| {
                let n = values.len();
                matrix(values, n, device).squeeze_dim::<1>(0)
            };
            let low = values[..values.len() - 1].iter().map(|value| f64::from(*value));
            let distance = values.windows(2).map(|pair| f64::from(pair[1] - pair[0]));
            [row(low.collect()), row(distance.collect())]
        };
        let [soc, dwell_steps] = arrivals.quantiles();
        Ok(Self { counts, n_intervals: soc.len() - 1, soc: quantiles(soc), dwell_steps: quantiles(dwell_steps) })
    }

    /// As many flags as vehicles arrive, `[n_envs, n]` per class, from a column of noise each.
    fn arrivals(&self, moment: &Moment, noise: &Tensor<2>, draws: &mut Draws) -> [Tensor<2>; 2] {
        let (n_envs, places) = (noise.dims()[0], moment.places(Column::Arrivals));
        self.counts.each_ref().map(|counts| {
            let at_most = counts.clone().select(0, places.clone());
            let column = draws.columns(1).start;
            let [flags] = elementwise([n_envs, at_most.dims()[1]], |formulas| {
                [vec![formulas.read(&at_most).lower_equal(formulas.matrix(noise).column(column))]]
            });
            flags
        })
    }

    /// The state of charge and the steps of a vehicle at every socket, from a column of noise per socket each.
    fn quantiles(&self, shape: [usize; 2], noise: &Tensor<2>, draws: &mut Draws) -> [Quantile; 2] {
        let columns = [(); 2].map(|()| draws.columns(shape[1]));
        let [soc, soc_inside, dwell_steps, dwell_steps_inside] = elementwise(shape, |formulas| {
            let noise = formulas.matrix(noise);
            let [soc, dwell_steps] = columns.map(|columns| {
                let place = noise.columns(columns) * self.n_intervals as f64;
                let index = place.floor().min(self.n_intervals as f64 - 1.0);
                [index, place - index]
            });
            [vec![soc[0]], vec![soc[1]], vec![dwell_steps[0]], vec![dwell_steps[1]]]
        });
        let quantile = |[low, distance]: &[Tensor<1>; 2], index: Tensor<2>, inside: Tensor<2>| {
            let index = index.reshape([shape[0] * shape[1]]).int();
            let at = |table: &Tensor<1>| table.clone().select(0, index.clone()).reshape(shape);
            Quantile([at(low), at(distance), inside])
        };
        [quantile(&self.soc, soc, soc_inside), quantile(&self.dwell_steps, dwell_steps, dwell_steps_inside)]
    }
}

/// Probabilities of at most 0, 1, ..., `n - 1` events with a Poisson distribution.
fn at_most(mean: f64, n: usize) -> impl Iterator<Item = f64> {
    let (mut log_factorial, mut sum) = (0.0, 0.0);
    (0..n).map(move |k| {
        if k > 0 {
            log_factorial += (k as f64).ln();
        }
        // No event is certain for a mean of 0.
        let power = if k == 0 { 0.0 } else { k as f64 * mean.ln() };
        sum += (power - mean - log_factorial).exp();
        f64::min(sum, 1.0)
    })
}
