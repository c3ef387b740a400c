//! Sockets and vehicles on a device.

use brasa_core::{Draws, cumulative_sum};
use burn::tensor::{Bool, Device, Tensor};

use super::calendar::{Column, Moment};
use super::matrix;
use crate::iquitos::config::{ActionMode, IquitosConfig, ObservationMode, SocketActions};
use crate::iquitos::observe::Scales;
use crate::iquitos::site::Site;
use crate::iquitos::vehicles::{Arrivals, mean_arrivals};
use crate::{EnergyError, error::fail};

/// Largest number of arrivals of a class in a step, for tables of their distribution.
const MOST_ARRIVALS: f64 = 4000.0;

/// The state of the sockets, each `[n_envs, sockets]`.
#[derive(Debug, Clone)]
pub(super) struct Vehicles {
    pub need_kwh: Tensor<2>,
    pub dwell_steps: Tensor<2>,
    pub power_kw: Tensor<2>,
}

/// The rules of sockets. Tensors over sockets are `[1, sockets]`.
#[derive(Debug, Clone)]
pub(super) struct Sockets {
    /// Sockets of motos and of mototaxis.
    n: [usize; 2],
    actions: ActionMode,
    shares: SocketActions,
    mode: ObservationMode,
    step_hours: f64,
    limit_kwh: f64,
    socket_kw: Tensor<2>,
    /// Energy from the socket for a change of the state of charge of 1.
    full_kwh: Tensor<2>,
    /// Energy of a class's full charges, kWh.
    full_of_class_kwh: [f64; 2],
    power_of_class_kw: [f64; 2],
    max_dwell_steps: f64,
    limit_kw: f64,
    target_soc: f64,
    /// Charge in a vehicle's battery per need.
    charge_per_need: Tensor<2>,
    /// Share of every socket in the energy of the profile.
    profile_share: Tensor<2>,
    /// `None` if vehicles follow the profile.
    arrivals: Option<Distributions>,
}

/// The distributions of random vehicles.
#[derive(Debug, Clone)]
struct Distributions {
    /// Probability of at most 0, 1, ... arrivals by kind of day and hour, `[48, n]`, per class.
    counts: [Tensor<2>; 2],
    /// Quantiles of the state of charge and of the steps at a socket, `[n]`.
    soc: Tensor<1>,
    dwell_steps: Tensor<1>,
    n_intervals: usize,
}

/// What sockets delivered in a step, each `[n_envs, 1]`.
pub(super) struct Served {
    pub delivered_kwh: Tensor<2>,
    pub excess_kwh: Tensor<2>,
}

/// What happened between two steps, each `[n_envs, 1]`.
pub(super) struct Turnover {
    pub unmet_kwh: Tensor<2>,
    pub turned_away: Tensor<2>,
}

fn flag(condition: Tensor<2, Bool>) -> Tensor<2> {
    condition.float()
}

impl Sockets {
    pub fn new(site: &Site, scales: &Scales, device: &Device) -> Result<Self, EnergyError> {
        let config = &site.config;
        let classes = [&config.vehicles.moto, &config.vehicles.mototaxi];
        let n = classes.map(|class| class.sockets);
        let total = n[0] + n[1];
        let per_socket = |of: [f64; 2]| {
            let values = (0..total).map(|socket| of[usize::from(socket >= n[0])]).collect();
            matrix(values, total, device)
        };
        let socket_kw = classes.map(|class| class.socket_kw);
        let total_kw = socket_kw[0] * n[0] as f64 + socket_kw[1] * n[1] as f64;
        let full_kwh = scales.full_kwh.map(f64::from);
        let distributions = |arrivals| Distributions::new(arrivals, config, device);
        let arrivals = site.arrivals.as_ref().map(distributions).transpose()?;
        Ok(Self {
            n,
            actions: config.actions,
            shares: config.socket_actions,
            mode: config.observations,
            step_hours: site.step_hours,
            limit_kwh: config.vehicles.feeder_limit_kw * site.step_hours,
            socket_kw: per_socket(socket_kw),
            full_kwh: per_socket(full_kwh),
            full_of_class_kwh: [0, 1].map(|class| full_kwh[class] * n[class] as f64),
            power_of_class_kw: [0, 1].map(|class| socket_kw[class] * n[class] as f64),
            max_dwell_steps: scales.max_dwell_steps.into(),
            limit_kw: scales.sockets_limit_kw.into(),
            target_soc: config.vehicles.target_soc,
            charge_per_need: per_socket(classes.map(|class| config.vehicles.charger_efficiency / class.battery_kwh)),
            profile_share: per_socket(socket_kw.map(|kw| kw / total_kw)),
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

    /// Orders of sockets, kW, `[n_envs, sockets]`, from actions without that of the battery.
    fn orders_kw(&self, action: Tensor<2>) -> Tensor<2> {
        let share = match self.shares {
            SocketActions::Linear => (action.clamp(-1.0, 1.0) + 1.0) * 0.5,
            SocketActions::HoldBack => action.clamp(-1.0, 0.0) + 1.0,
        };
        let share = match self.actions {
            ActionMode::PerSocket => share,
            ActionMode::Aggregate => {
                let n_envs = share.dims()[0];
                let class = |class: usize| share.clone().slice([0..n_envs, class..class + 1]);
                Tensor::cat([0, 1].map(|i| class(i).expand([n_envs, self.n[i]])).to_vec(), 1)
            }
        };
        share * self.socket_kw.clone()
    }

    /// Charges vehicles: see [`crate::iquitos::dispatch::serve`].
    pub fn serve(&self, vehicles: &mut Vehicles, action: Tensor<2>, moment: &Moment) -> Served {
        let [n_envs, _] = vehicles.need_kwh.dims();
        let need_kwh = vehicles.need_kwh.clone();
        if self.arrivals.is_none() {
            // The profile is always served.
            vehicles.power_kw = need_kwh.clone() / self.step_hours;
            vehicles.need_kwh = need_kwh.zeros_like();
            let delivered_kwh = moment.get(Column::ProfileKwh).expand([n_envs, 1]);
            return Served { excess_kwh: delivered_kwh.zeros_like(), delivered_kwh };
        }
        let energy_kwh = (self.orders_kw(action) * self.step_hours).min_pair(need_kwh.clone());
        let ordered_kwh = energy_kwh.clone().sum_dim(1);
        // Orders above the limit are reduced; the others have a share of 1 or more.
        let share = (ordered_kwh.clone().clamp_min(1e-30).recip() * self.limit_kwh).clamp_max(1.0);
        let energy_kwh = energy_kwh * share;
        vehicles.need_kwh = (need_kwh - energy_kwh.clone()).clamp_min(0.0);
        vehicles.power_kw = energy_kwh.clone() / self.step_hours;
        Served { delivered_kwh: energy_kwh.sum_dim(1), excess_kwh: (ordered_kwh - self.limit_kwh).clamp_min(0.0) }
    }

    /// The mean state of charge of connected vehicles, `[n_envs, 1]`; the target if there are none or with the profile.
    pub fn vehicle_soc(&self, vehicles: &Vehicles) -> Tensor<2> {
        let connected = flag(vehicles.dwell_steps.clone().greater_elem(0.0));
        let missing = vehicles.need_kwh.clone() * self.charge_per_need.clone() * connected.clone();
        let missing = match self.arrivals {
            None => missing.zeros_like(),
            Some(_) => missing,
        };
        -(missing.sum_dim(1) / connected.sum_dim(1).clamp_min(1.0)) + self.target_soc
    }

    /// Vehicles leave and arrive; `moment` is that of the next step.
    pub fn turn_over(&self, vehicles: &mut Vehicles, moment: &Moment, draws: &mut Draws) -> Turnover {
        let [n_envs, sockets] = vehicles.need_kwh.dims();
        let Some(distributions) = &self.arrivals else {
            let energy_kwh = moment.get(Column::ProfileKwh).expand([n_envs, 1]);
            let none = energy_kwh.zeros_like();
            vehicles.need_kwh = energy_kwh * self.profile_share.clone();
            vehicles.dwell_steps = vehicles.need_kwh.ones_like();
            return Turnover { unmet_kwh: none.clone(), turned_away: none };
        };
        let counts = [0, 1].map(|class| distributions.count(class, moment, draws.uniform(1)));
        let soc = distributions.quantile(&distributions.soc, draws.uniform(sockets));
        let dwell_steps = distributions.quantile(&distributions.dwell_steps, draws.uniform(sockets));
        let free = flag(vehicles.dwell_steps.clone().lower_equal_elem(1.0));
        let unmet_kwh = (vehicles.need_kwh.clone() * free.clone()).sum_dim(1);
        let (mut takes, mut turned_away) = (Vec::new(), unmet_kwh.zeros_like());
        let mut begin = 0;
        for (n, count) in self.n.into_iter().zip(counts) {
            // The vehicles of a class take its free sockets in their order.
            let free = free.clone().slice([0..n_envs, begin..begin + n]);
            let place = cumulative_sum(free.clone());
            let n_free = place.clone().slice([0..n_envs, n - 1..n]);
            turned_away = turned_away + (count.clone() - n_free).clamp_min(0.0);
            takes.push(free * flag((place - count).lower_elem(0.5)));
            begin += n;
        }
        let takes = Tensor::cat(takes, 1);
        let stays = -free + 1.0;
        let need_kwh = ((-soc + self.target_soc) * self.full_kwh.clone()).clamp_min(0.0);
        let dwell_steps = (dwell_steps + 0.5).floor().clamp_min(1.0);
        vehicles.need_kwh = vehicles.need_kwh.clone() * stays.clone() + need_kwh * takes.clone();
        vehicles.dwell_steps = (vehicles.dwell_steps.clone() - 1.0) * stays + dwell_steps * takes;
        Turnover { unmet_kwh, turned_away }
    }

    /// Three sums over all sockets, `[n_envs, 3]`, and the numbers after those of the site.
    pub fn observe(&self, vehicles: &Vehicles) -> [Tensor<2>; 2] {
        let Vehicles { need_kwh, dwell_steps, power_kw } = vehicles;
        let n_envs = need_kwh.dims()[0];
        let shape = need_kwh.dims();
        let occupied = flag(dwell_steps.clone().greater_elem(0.0));
        let wish = need_kwh.clone().min_pair((self.socket_kw.clone() * self.step_hours).expand(shape));
        let full_kwh = self.full_of_class_kwh[0] + self.full_of_class_kwh[1];
        let sums = [
            occupied.clone().sum_dim(1) / self.n_sockets() as f64,
            (need_kwh.clone().sum_dim(1) / full_kwh).clamp_max(1.0),
            (wish.sum_dim(1) / (self.step_hours * self.limit_kw)).clamp_max(2.0),
        ];
        let numbers = match self.mode {
            ObservationMode::Full => vec![
                occupied,
                (need_kwh.clone() / self.full_kwh.clone()).clamp_max(1.0),
                (dwell_steps.clone() / self.max_dwell_steps).clamp_max(1.0),
                (power_kw.clone() / self.socket_kw.clone()).clamp_max(1.0),
            ],
            ObservationMode::Compact => {
                let urgent = need_kwh.clone() * flag(dwell_steps.clone().lower_equal_elem(1.0));
                let sum = |values: &Tensor<2>, class: usize| {
                    let begin = class * self.n[0];
                    values.clone().slice([0..n_envs, begin..begin + self.n[class]]).sum_dim(1)
                };
                let of_class = |class: usize| {
                    [
                        sum(&occupied, class) / self.n[class] as f64,
                        sum(need_kwh, class) / self.full_of_class_kwh[class],
                        sum(&urgent, class) / self.full_of_class_kwh[class],
                        sum(power_kw, class) / self.power_of_class_kw[class],
                    ]
                    .map(|share| share.clamp_max(1.0))
                };
                [of_class(0), of_class(1)].concat()
            }
        };
        [Tensor::cat(sums.to_vec(), 1), Tensor::cat(numbers, 1)]
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
            let values: Vec<f64> = values.iter().map(|value| f64::from(*value)).collect();
            let n = values.len();
            matrix(values, n, device).squeeze_dim::<1>(0)
        };
        let [soc, dwell_steps] = arrivals.quantiles();
        Ok(Self { counts, n_intervals: soc.len() - 1, soc: quantiles(soc), dwell_steps: quantiles(dwell_steps) })
    }

    /// The number of arrivals of `class`, `[n_envs, 1]`, from uniform noise of this shape.
    fn count(&self, class: usize, moment: &Moment, noise: Tensor<2>) -> Tensor<2> {
        let place = moment.get(Column::Arrivals);
        let n = place.dims()[0];
        let at_most = self.counts[class].clone().select(0, place.reshape([n]).int());
        flag((at_most - noise).lower_equal_elem(0.0)).sum_dim(1)
    }

    /// The quantiles of uniform noise, `[n_envs, sockets]`.
    fn quantile(&self, table: &Tensor<1>, noise: Tensor<2>) -> Tensor<2> {
        let shape = noise.dims();
        let place = noise * self.n_intervals as f64;
        let index = place.clone().floor().clamp_max(self.n_intervals as f64 - 1.0);
        let inside = place - index.clone();
        let index = index.reshape([shape[0] * shape[1]]).int();
        let low = table.clone().select(0, index.clone()).reshape(shape);
        let high = table.clone().select(0, index.add_scalar(1)).reshape(shape);
        low.clone() + (high - low) * inside
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
