//! CityLearn districts as tensor operations.

use brasa_core::{NoiseWidths, ObsParts, TensorDynamics, TensorState, TensorStep};
use brasa_env::{EnvBatch, EnvSpec};
use burn::tensor::{Device, Int, Tensor, TensorData};

use super::{
    Battery, CityLearn, Curve, Physics, Reward, battery::ZERO_PLACEHOLDER, episodes::Starts, observation::Source,
    world::Totals,
};
use crate::{EnergyError, error::fail};

/// The rules of a district for a device: data, batteries and observations are on the device.
///
/// Numbers have 32 bits, those of [`super::CityLearnBatch`] 64.
#[derive(Debug, Clone)]
pub struct TensorCityLearn {
    /// Of one environment.
    spec: EnvSpec,
    physics: Physics,
    reward: Reward,
    hours: f64,
    weights: [f64; 4],
    n_rows: usize,
    /// Rows at which episodes start; the first one without.
    starts: Option<Starts>,
    steps_per_day: u64,
    n_buildings: usize,
    /// `[rows, 4 * buildings]`: load, PV, price, carbon.
    series: Tensor<2>,
    /// `[rows, 4]`: [`Totals`] without storage.
    reference: Tensor<2>,
    /// The same for the first step of an episode, if its rules differ.
    first_reference: Option<Tensor<2>>,
    /// `[rows, width]`: observations, with zeros where they depend on actions.
    known: Tensor<2>,
    batteries: Batteries,
    observed: Observed,
}

/// The batteries of a district; every tensor is `[1, batteries]`.
#[derive(Debug, Clone)]
struct Batteries {
    start_soc: Tensor<2>,
    /// Of CityLearn 2.5.
    start_efficiency: Tensor<2>,
    capacity_kwh: Tensor<2>,
    nominal_power_kw: Tensor<2>,
    minimum_soc: Tensor<2>,
    /// Not limited to `[0, 1]`.
    undischarged: Tensor<2>,
    floor_kwh: Tensor<2>,
    loss_coefficient: Tensor<2>,
    /// Per hour.
    loss_rate: Tensor<2>,
    /// Fraction of the stored energy that is left after a step without power.
    kept: Tensor<2>,
    /// Energy after a step per power into the store, if it starts empty.
    lossless_hours: Tensor<2>,
    /// Capacity loss coefficient times nameplate capacity.
    wear_kwh: Tensor<2>,
    power_efficiency: Curves,
    capacity_power: Curves,
    /// `[buildings]`: the battery of each building, or the number of batteries.
    of_building: Tensor<1, Int>,
}

/// A curve per battery; tensors are `[1, batteries, segments]`, and `start` is `[1, batteries]`.
#[derive(Debug, Clone)]
struct Curves {
    start: Tensor<2>,
    from: Tensor<3>,
    length: Tensor<3>,
    slope: Tensor<3>,
}

/// Observations that depend on actions.
#[derive(Debug, Clone)]
struct Observed {
    /// `[columns]`: the place of each in states of charge, net consumptions and a zero.
    sources: Tensor<1, Int>,
    /// `[1, columns]`.
    low: Tensor<2>,
    /// `[1, columns]`.
    scale: Tensor<2>,
    /// `[width]`: the place of every observation in the known ones followed by these.
    order: Tensor<1, Int>,
}

/// The state of [`TensorCityLearn`]; every tensor has a row per environment.
#[derive(Debug, Clone)]
pub struct CityLearnTensors {
    /// Row of the data, `[n_envs, 1]`.
    row: Tensor<2>,
    /// Stored energy over nameplate capacity, `[n_envs, batteries]`.
    soc: Tensor<2>,
    /// Capacity lost by aging, in kWh, `[n_envs, batteries]`. It is small, and keeps digits that the remaining capacity would lose.
    lost_kwh: Tensor<2>,
    /// What is observed of batteries and buildings: states of charge, then net consumptions of the last step in kWh,
    /// `[n_envs, batteries + buildings]`.
    seen: Tensor<2>,
    /// Power of the last step and peak of the day, with storage and without, in kW, `[n_envs, 4]`.
    grid_kw: Tensor<2>,
    /// Round-trip efficiency of the last step, `[n_envs, batteries]`, with the rules of CityLearn 2.5; else without columns.
    efficiency: Tensor<2>,
}

impl TensorState for CityLearnTensors {
    fn parts(&self) -> Vec<Tensor<2>> {
        let parts = [&self.row, &self.soc, &self.lost_kwh, &self.seen, &self.grid_kw, &self.efficiency];
        parts.map(Tensor::clone).to_vec()
    }

    fn from_parts(parts: Vec<Tensor<2>>) -> Self {
        let [row, soc, lost_kwh, seen, grid_kw, efficiency] =
            parts.try_into().expect("there are as many parts as were handed out");
        Self { row, soc, lost_kwh, seen, grid_kw, efficiency }
    }
}

/// `ln(1 + x)` with all digits of a small `x`, after Kahan. On GPUs Burn's `log1p` rounds the sum first: a battery whose loss rate
/// is small would be full at once.
fn ln_1p(x: Tensor<2>) -> Tensor<2> {
    let sum = x.clone() + 1.0;
    let rounded = sum.clone() - 1.0;
    let lost = rounded.clone().equal_elem(0.0);
    (sum.log() * x.clone() / rounded).mask_where(lost, x)
}

/// Loss per hour; lossless batteries lose a billionth, so that no case divides by 0.
fn loss_rate(battery: &Battery) -> f64 {
    (-(1.0 - battery.loss_coefficient).ln()).max(1e-9)
}

fn matrix(values: Vec<f64>, width: usize, device: &Device) -> Tensor<2> {
    let values: Vec<f32> = values.into_iter().map(|x| x as f32).collect();
    let rows = values.len() / width;
    Tensor::from_data(TensorData::new(values, [rows, width]), device)
}

fn indices(values: Vec<usize>, device: &Device) -> Tensor<1, Int> {
    let n = values.len();
    Tensor::from_data(TensorData::new(values.into_iter().map(|i| i as i32).collect(), [n]), device)
}

impl Curves {
    fn new(curves: &[&Curve], device: &Device) -> Self {
        let n = curves.iter().map(|curve| curve.segments().len()).max().unwrap_or(0).max(1);
        // Segments without a slope pad the shorter curves.
        let segment = |curve: &Curve, i: usize| curve.segments().get(i).copied().unwrap_or_default();
        let table = |of: &dyn Fn(&Curve, usize) -> f64| {
            let values = curves.iter().flat_map(|curve| (0..n).map(|i| of(curve, i))).collect();
            matrix(values, curves.len() * n, device).reshape([1, curves.len(), n])
        };
        Self {
            start: matrix(curves.iter().map(|curve| curve.at(0.0)).collect(), curves.len(), device),
            from: table(&|curve, i| segment(curve, i).from),
            length: table(&|curve, i| segment(curve, i).length),
            slope: table(&|curve, i| segment(curve, i).slope),
        }
    }

    /// [`Curve::at`] of `[n_envs, batteries]`.
    fn at(&self, x: Tensor<2>) -> Tensor<2> {
        let [n_envs, batteries] = x.dims();
        let segments = self.from.dims()[2];
        let inside = (x.unsqueeze_dim::<3>(2) - self.from.clone()).clamp_min(0.0);
        let inside = inside.min_pair(self.length.clone().expand([n_envs, batteries, segments]));
        self.start.clone() + (inside * self.slope.clone()).sum_dim(2).reshape([n_envs, batteries])
    }
}

impl Batteries {
    fn new(all: &[Option<Battery>], physics: Physics, hours: f64, device: &Device) -> Self {
        let present: Vec<&Battery> = all.iter().flatten().collect();
        let of = |value: &dyn Fn(&Battery) -> f64| {
            matrix(present.iter().map(|battery| value(battery)).collect(), present.len(), device)
        };
        let curves = |curve: &dyn Fn(&Battery) -> &Curve| {
            Curves::new(&present.iter().map(|battery| curve(battery)).collect::<Vec<_>>(), device)
        };
        let mut next = 0;
        let place = |battery: &Option<Battery>| match battery {
            Some(_) => {
                next += 1;
                next - 1
            }
            None => present.len(),
        };
        Self {
            start_soc: of(&|battery| match physics {
                Physics::Clean => battery.start_clean().soc,
                Physics::CityLearn21 | Physics::CityLearn25 => battery.start_citylearn25().soc,
                Physics::CityLearn30 => battery.start_citylearn30().soc,
            }),
            start_efficiency: of(&|battery| battery.start_citylearn25().efficiency),
            capacity_kwh: of(&|battery| battery.capacity_kwh),
            nominal_power_kw: of(&|battery| battery.nominal_power_kw),
            minimum_soc: of(&Battery::minimum_soc),
            undischarged: of(&|battery| 1.0 - battery.depth_of_discharge),
            floor_kwh: of(&|battery| battery.minimum_soc() * battery.capacity_kwh),
            loss_coefficient: of(&|battery| battery.loss_coefficient),
            loss_rate: of(&loss_rate),
            kept: of(&|battery| (-loss_rate(battery) * hours).exp()),
            lossless_hours: of(&|battery| -(-loss_rate(battery) * hours).exp_m1() / loss_rate(battery)),
            wear_kwh: of(&|battery| battery.capacity_loss_coefficient * battery.capacity_kwh),
            power_efficiency: curves(&|battery| &battery.power_efficiency),
            capacity_power: curves(&|battery| &battery.capacity_power),
            of_building: indices(all.iter().map(place).collect(), device),
        }
    }

    /// [`Battery::step_citylearn25`]: state of charge, lost capacity, energy on the grid side in kWh, and efficiency, each
    /// `[n_envs, batteries]`.
    fn step_citylearn25(
        &self,
        soc: Tensor<2>,
        lost_kwh: Tensor<2>,
        action: Tensor<2>,
        efficiency: Tensor<2>,
    ) -> [Tensor<2>; 4] {
        let shape = soc.dims();
        let capacity_left = self.capacity_kwh.clone() - lost_kwh.clone();
        let share = (soc.clone() - soc.clone() * self.loss_coefficient.clone()).clamp_min(0.0);
        let before = share.clone() * self.capacity_kwh.clone();
        let limit = self.capacity_power.at(share) * self.nominal_power_kw.clone();
        let request = action.clamp(-1.0, 1.0) * self.nominal_power_kw.clone();
        let room = capacity_left.clone() - before.clone();
        let charge = limit.clone().min_pair(room).min_pair(request.clone());
        let deliverable = (soc - self.undischarged.clone()) * self.capacity_kwh.clone() * efficiency.sqrt();
        let most_out = limit.clone().min_pair(deliverable.clamp_min(0.0));
        let discharge = (-most_out).max_pair(request.clone());
        let energy = discharge.mask_where(request.clone().greater_equal_elem(0.0), charge);
        let efficiency = self.power_efficiency.at(request.abs().min_pair(limit) / self.nominal_power_kw.clone());
        let one_way = efficiency.clone().sqrt();
        // As with CityLearn 3.0: differences of stored energy would lose digits.
        let space = (self.capacity_kwh.clone() - before.clone()).clamp_min(0.0);
        let stored = (energy.clone().clamp_min(0.0) * one_way.clone()).min_pair(space);
        let taken = ((-energy).clamp_min(0.0) / one_way.clone()).min_pair(before.clone());
        let balance = stored.clone() / one_way.clone() - taken.clone() * one_way;
        let soc = (before + stored - taken) / self.capacity_kwh.clone();
        let worn = balance.clone().abs() * self.wear_kwh.clone();
        let wear = worn / (capacity_left.clamp_min(ZERO_PLACEHOLDER) * 2.0);
        let lost_kwh = (lost_kwh + wear).min_pair(self.capacity_kwh.clone().expand(shape));
        [soc, lost_kwh, balance, efficiency]
    }

    /// [`Battery::pass_citylearn30`], except at the first step of an episode, and [`Battery::step_citylearn30`]: state of charge,
    /// lost capacity, and energy on the grid side in kWh, each `[n_envs, batteries]`.
    fn step_citylearn30(&self, soc: Tensor<2>, lost_kwh: Tensor<2>, action: Tensor<2>, first: bool) -> [Tensor<2>; 3] {
        let shape = soc.dims();
        let capacity_left = self.capacity_kwh.clone() - lost_kwh.clone();
        let wide = |constant: &Tensor<2>| constant.clone().expand(shape);
        let soc = match first {
            true => soc,
            false => soc.clone() - soc * self.loss_coefficient.clone(),
        };
        let soc = soc.max_pair(wide(&self.minimum_soc)).clamp_max(1.0);
        let before = (soc * self.capacity_kwh.clone()).max_pair(wide(&self.floor_kwh));
        let limit = self.capacity_power.at(before.clone() / self.capacity_kwh.clone());
        let limit = (limit * self.nominal_power_kw.clone()).clamp_min(0.0);
        let request = action.clamp(-1.0, 1.0) * self.nominal_power_kw.clone();
        // Charge and discharge are computed separately, and one of them is 0.
        let most_in = request.clone().clamp_min(0.0).min_pair(limit.clone());
        let most_out = (-request).clamp_min(0.0).min_pair(limit);
        let room = (capacity_left.clone() - before.clone()).clamp_min(0.0);
        let stock = (before.clone() - self.floor_kwh.clone()).clamp_min(0.0);
        let efficiency_of = |energy: Tensor<2>| {
            self.power_efficiency.at((energy / self.nominal_power_kw.clone()).clamp_max(1.0)).sqrt()
        };
        let flows = |one_way: Tensor<2>| {
            let energy_in = most_in.clone().min_pair(room.clone() / one_way.clone());
            (energy_in, most_out.clone().min_pair(stock.clone() * one_way))
        };
        let (energy_in, energy_out) = flows(efficiency_of(most_in.clone() + most_out.clone()));
        let one_way = efficiency_of(energy_in + energy_out);
        let (energy_in, energy_out) = flows(one_way.clone());
        // As differences of stored energy in 64 bits; here directly, because 32 bits would lose digits.
        let space = (self.capacity_kwh.clone() - before.clone()).clamp_min(0.0);
        let stored = (energy_in * one_way.clone()).min_pair(space);
        let taken = (energy_out / one_way.clone()).min_pair(stock);
        let balance = stored.clone() / one_way.clone() - taken.clone() * one_way;
        let soc = (before + stored - taken) / self.capacity_kwh.clone();
        let worn = balance.clone().abs() * self.wear_kwh.clone();
        let wear = worn / (capacity_left.clamp_min(ZERO_PLACEHOLDER) * 2.0);
        [soc, (lost_kwh + wear).min_pair(wide(&self.capacity_kwh)), balance]
    }

    /// [`Battery::step_clean`] for a step of `hours`: state of charge, lost capacity, and energy on the grid side in kWh, each
    /// `[n_envs, batteries]`. All cases are computed, and each battery takes its own.
    fn step_clean(&self, soc: Tensor<2>, lost_kwh: Tensor<2>, action: Tensor<2>, hours: f64) -> [Tensor<2>; 3] {
        let shape = soc.dims();
        let capacity_left = self.capacity_kwh.clone() - lost_kwh.clone();
        let limit = self.capacity_power.at(soc.clone()) * self.nominal_power_kw.clone();
        let request = action.clamp(-1.0, 1.0) * self.nominal_power_kw.clone();
        let power = request.max_pair(-limit.clone()).min_pair(limit);
        let one_way = self.power_efficiency.at(power.clone().abs() / self.nominal_power_kw.clone()).sqrt();
        let charges = power.clone().greater_elem(0.0);
        let discharges = power.clone().lower_elem(0.0);
        let inner = (power.clone() / one_way.clone()).mask_where(charges.clone(), power.clone() * one_way.clone());
        let before = soc * self.capacity_kwh.clone();
        let kept = before.clone() * self.kept.clone();
        let free = kept.clone() + inner.clone() * self.lossless_hours.clone();
        let floor = self.floor_kwh.clone().expand(shape);
        let rate = self.loss_rate.clone();
        let full = capacity_left.clone();

        // The bound towards which power moves the energy, whether it already lies there or beyond it, and the hours until it is
        // reached. Above a capacity that has aged only losses work.
        let above = charges.clone().bool_and(before.clone().greater_equal(full.clone()));
        let below = discharges.clone().bool_and(before.clone().lower_equal(floor.clone()));
        let bound = full.clone().mask_where(discharges.clone(), floor.clone());
        // The energy to which the store would converge.
        let rest = (inner / rate.clone()).mask_fill(above.clone(), 0.0);
        let until = ln_1p((bound.clone() - before) / (rest - bound)) / rate.clone();
        let moved = (power.clone() * until.clone()).mask_fill(above.clone().bool_or(below.clone()), 0.0);
        let then = -until + hours;

        // Full before the end of the step: losses are replaced from then on.
        let stays = above.bool_and(kept.clone().greater_equal(full.clone()));
        let filled = full.clone().mask_where(stays.clone(), kept.clone());
        let holding = then.clone() * full.clone() * rate.clone() / one_way;
        let filling = (moved.clone() + holding).mask_fill(stays, 0.0);

        // At the floor before the end of the step: only losses from then on.
        let emptied = (floor.clone() * (-then * rate).exp()).mask_where(below, kept);

        let is_full = charges.bool_and(free.clone().greater(full));
        let is_empty = discharges.bool_and(free.clone().lower(floor));
        let after = free.mask_where(is_full.clone(), filled).mask_where(is_empty.clone(), emptied);
        let energy = (power * hours).mask_where(is_full, filling).mask_where(is_empty, moved);
        let soc = (after / self.capacity_kwh.clone()).clamp_min(0.0);
        let worn = energy.clone().abs() * self.wear_kwh.clone();
        // The difference of `C` and `sqrt(C^2 - worn)`, without a subtraction.
        let after = (capacity_left.clone().square() - worn.clone()).clamp_min(0.0).sqrt();
        let wear = worn / (capacity_left + after).clamp_min(ZERO_PLACEHOLDER);
        [soc, (lost_kwh + wear).min_pair(self.capacity_kwh.clone().expand(shape)), energy]
    }

    /// `[n_envs, batteries]` values per building; 0 without a battery.
    fn per_building(&self, values: Tensor<2>) -> Tensor<2> {
        let [n_envs, batteries] = values.dims();
        let [buildings] = self.of_building.dims();
        if buildings == batteries {
            return values;
        }
        let none = Tensor::zeros([n_envs, 1], &values.device());
        Tensor::cat(vec![values, none], 1).select(1, self.of_building.clone())
    }
}

/// Sums over buildings, each `[n_envs, 1]`: see [`Totals`].
struct Sums {
    import_kwh: Tensor<2>,
    carbon_kg: Tensor<2>,
    cost: Tensor<2>,
    net_kwh: Tensor<2>,
}

impl CityLearn {
    /// The district as tensor operations on `device`, and the steps of an episode.
    ///
    /// # Errors
    /// Those of [`CityLearn::batch`], and [`EnergyError::Field`] for a district with vehicles.
    pub fn tensors(&self, device: &Device) -> Result<(TensorCityLearn, u32), EnergyError> {
        let world = &*self.world;
        if let Some(mobility) = &world.mobility {
            return fail("data", "must have no chargers to run as tensor operations", &mobility.chargers[0].name);
        }
        if let Some(machine) = world.machines.first() {
            return fail("data", "must have no washing machines to run as tensor operations", &machine.name);
        }
        world.check_plain("to run as tensor operations")?;
        let (n, batteries) = (world.n_buildings, world.batteries.iter().flatten().count());
        let part = |of: fn(&super::district::Exogenous) -> f32, row: usize| {
            world.series[row * n..(row + 1) * n].iter().map(move |cell| f64::from(of(cell)))
        };
        let series = (0..world.n_rows).flat_map(|row| {
            let loads = part(|cell| cell.load_kwh, row).chain(part(|cell| cell.pv_kwh, row));
            loads.chain(part(|cell| cell.price, row)).chain(part(|cell| cell.carbon, row))
        });
        let totals = |totals: &Totals| [totals.import_kwh, totals.carbon_kg, totals.cost, totals.net_kwh];
        let known = (0..world.n_rows).flat_map(|row| world.layout.row(row)).map(|x| f64::from(*x));
        let dynamic = &world.layout.dynamic;
        let battery_of = |building: usize| world.batteries[..building].iter().flatten().count();
        // States of charge, net consumptions, and a zero for buildings without a battery.
        let source = |item: &super::observation::Dynamic| match item.source {
            Source::Net(building) => batteries + building,
            Source::Soc(building) if world.batteries[building].is_some() => battery_of(building),
            Source::Soc(_) => batteries + n,
            other => unreachable!("districts with {other:?} are refused above"),
        };
        let mut order: Vec<usize> = (0..world.layout.width).collect();
        for (place, item) in dynamic.iter().enumerate() {
            order[item.column] = world.layout.width + place;
        }
        let (low, scale) = dynamic.iter().map(super::observation::Dynamic::range).unzip();
        let observed = Observed {
            sources: indices(dynamic.iter().map(source).collect(), device),
            low: matrix(low, dynamic.len().max(1), device),
            scale: matrix(scale, dynamic.len().max(1), device),
            order: indices(order, device),
        };
        let starts = self.episodes.starts();
        let tensors = TensorCityLearn {
            spec: self.batch(0..1)?.spec().clone(),
            physics: world.physics,
            reward: world.reward,
            hours: world.hours,
            weights: world.scaled_weights,
            n_rows: world.n_rows,
            starts,
            steps_per_day: u64::from(self.episodes.steps_per_day),
            n_buildings: n,
            series: matrix(series.collect(), 4 * n, device),
            reference: matrix(world.reference.iter().flat_map(totals).collect(), 4, device),
            first_reference: (world.physics == Physics::CityLearn25).then(|| {
                let first = (0..world.n_rows).flat_map(|row| totals(&world.without_storage(row, true)));
                matrix(first.collect(), 4, device)
            }),
            known: matrix(known.collect(), world.layout.width, device),
            batteries: Batteries::new(&world.batteries, world.physics, world.hours, device),
            observed,
        };
        Ok((tensors, u32::try_from(self.episodes.steps).unwrap_or(u32::MAX)))
    }
}

impl TensorCityLearn {
    /// The rows of a table: one for all environments if they have the same, else one per environment.
    fn rows(&self, table: &Tensor<2>, row: &Tensor<2>, shared: Option<usize>) -> Tensor<2> {
        match shared {
            Some(row) => table.clone().slice(row..row + 1),
            None => {
                let n_envs = row.dims()[0];
                table.clone().select(0, row.clone().reshape([n_envs]).int())
            }
        }
    }

    fn part(&self, series: &Tensor<2>, i: usize) -> Tensor<2> {
        let (rows, n) = (series.dims()[0], self.n_buildings);
        series.clone().slice([0..rows, i * n..(i + 1) * n])
    }

    /// Upward ramp and rise of the daily peak, and the new `[last, peak]`, all in kW and `[n_envs, 1]`.
    fn see(&self, net_kw: Tensor<2>, grid_kw: [Tensor<2>; 2], step: u64) -> [Tensor<2>; 4] {
        let [last, peak] = grid_kw;
        let ramp = match step {
            0 => last.zeros_like(),
            _ => (net_kw.clone() - last).clamp_min(0.0),
        };
        let peak = if step.is_multiple_of(self.steps_per_day) { peak.zeros_like() } else { peak };
        let higher = peak.clone().max_pair(net_kw.clone());
        [ramp, higher.clone() - peak, net_kw, higher]
    }

    fn burden(&self, cost: Tensor<2>, carbon_kg: Tensor<2>, ramp: Tensor<2>, rise: Tensor<2>) -> Tensor<2> {
        let [w_cost, w_carbon, w_ramp, w_rise] = self.weights;
        cost * w_cost + carbon_kg * w_carbon + ramp * w_ramp + rise * w_rise
    }
}

impl TensorDynamics for TensorCityLearn {
    type State = CityLearnTensors;

    const STATE_VERSION: u32 = 2;

    fn spec(&self, n_envs: usize) -> EnvSpec {
        self.spec.with_n_envs(n_envs)
    }

    fn noise(&self) -> NoiseWidths {
        NoiseWidths { start: usize::from(self.starts.is_some()), step: 0 }
    }

    fn terminates(&self) -> bool {
        false
    }

    fn start(&self, noise: Tensor<2>) -> CityLearnTensors {
        let (n_envs, device) = (noise.dims()[0], noise.device());
        let batteries = self.batteries.start_soc.dims()[1];
        let (row, shared) = match self.starts {
            Some(Starts { n, per_block, gap }) => {
                // 32 bits may round a number just below 1 up.
                let index = (noise * n as f64).floor().clamp_max((n - 1) as f64);
                // A half away from whole numbers, so that rounding does not matter.
                let block = ((index.clone() + 0.5) / per_block as f64).floor();
                (index + block * gap as f64, None)
            }
            None => (Tensor::zeros([n_envs, 1], &device), Some(0)),
        };
        let series = self.rows(&self.series, &row, shared);
        let net_kwh = (self.part(&series, 0) - self.part(&series, 1)).expand([n_envs, self.n_buildings]);
        let soc = self.batteries.start_soc.clone().expand([n_envs, batteries]);
        CityLearnTensors {
            row,
            seen: Tensor::cat(vec![soc.clone(), net_kwh], 1),
            soc,
            lost_kwh: Tensor::zeros([n_envs, batteries], &device),
            grid_kw: Tensor::zeros([n_envs, 4], &device),
            efficiency: match self.physics {
                Physics::CityLearn21 | Physics::CityLearn25 => {
                    self.batteries.start_efficiency.clone().expand([n_envs, batteries])
                }
                Physics::Clean | Physics::CityLearn30 => Tensor::zeros([n_envs, 0], &device),
            },
        }
    }

    fn observe(&self, state: &CityLearnTensors) -> ObsParts {
        let n_envs = state.row.dims()[0];
        // After the last row comes the first.
        let row = state.row.clone().reshape([n_envs]).int().remainder_scalar(self.n_rows as i64);
        let known = self.known.clone().select(0, row);
        let own = match self.observed.sources.dims()[0] {
            0 => known,
            _ => {
                let none = Tensor::zeros([n_envs, 1], &state.row.device());
                let values = Tensor::cat(vec![state.seen.clone(), none], 1);
                let values = values.select(1, self.observed.sources.clone());
                let scaled = (values - self.observed.low.clone()) * self.observed.scale.clone();
                Tensor::cat(vec![known, scaled], 1).select(1, self.observed.order.clone())
            }
        };
        ObsParts { shared: None, own: Some(own), mask: None, n_agents: 1, actions_per_flag: 1 }
    }

    fn step(
        &self,
        state: CityLearnTensors,
        action: Tensor<2>,
        _: Tensor<2>,
        step: Option<u64>,
    ) -> TensorStep<CityLearnTensors> {
        let step = step.expect("no episode terminates, so that all have the same time");
        let n_envs = state.row.dims()[0];
        let shared = self.starts.is_none().then_some(step as usize);
        let (soc, lost_kwh, mut efficiency) = (state.soc, state.lost_kwh, state.efficiency);
        let [soc, lost_kwh, moved] = match self.physics {
            Physics::Clean => self.batteries.step_clean(soc, lost_kwh, action, self.hours),
            Physics::CityLearn30 => self.batteries.step_citylearn30(soc, lost_kwh, action, step == 0),
            Physics::CityLearn21 | Physics::CityLearn25 => {
                let [soc, lost_kwh, moved, last] = self.batteries.step_citylearn25(soc, lost_kwh, action, efficiency);
                efficiency = last;
                [soc, lost_kwh, moved]
            }
        };
        let series = self.rows(&self.series, &state.row, shared);
        let balance_kwh = self.batteries.per_building(moved.clone());
        // At the first step CityLearn 2.5 adds the load three times and the battery twice.
        let first = self.first_reference.as_ref().filter(|_| step == 0);
        let (loads, batteries) = if first.is_some() { (3.0, 2.0) } else { (1.0, 1.0) };
        let net_kwh = balance_kwh * batteries + (self.part(&series, 0) * loads - self.part(&series, 1));
        let import = net_kwh.clone().clamp_min(0.0);
        let with = Sums {
            import_kwh: import.clone().sum_dim(1),
            carbon_kg: (import.clone() * self.part(&series, 3)).sum_dim(1),
            cost: (import * self.part(&series, 2)).sum_dim(1),
            net_kwh: net_kwh.clone().sum_dim(1),
        };
        let reference = self.rows(first.unwrap_or(&self.reference), &state.row, shared).expand([n_envs, 4]);
        let column = |tensor: &Tensor<2>, i: usize| tensor.clone().slice([0..n_envs, i..i + 1]);
        let grid = |i: usize| [column(&state.grid_kw, i), column(&state.grid_kw, i + 1)];
        let [ramp, rise, last, peak] = self.see(with.net_kwh / self.hours, grid(0), step);
        let [reference_ramp, reference_rise, reference_last, reference_peak] =
            self.see(column(&reference, 3) / self.hours, grid(2), step);
        let borne = self.burden(with.cost.clone(), with.carbon_kg.clone(), ramp.clone(), rise.clone());
        let reward = match self.reward {
            Reward::GridImport => -with.import_kwh.clone(),
            Reward::Challenge => -borne,
            // Classes of CityLearn are refused when the tensors are made.
            _ => {
                let (cost, carbon_kg) = (column(&reference, 2), column(&reference, 1));
                self.burden(cost, carbon_kg, reference_ramp.clone(), reference_rise.clone()) - borne
            }
        };
        let flows = [moved.clone().clamp_min(0.0).sum_dim(1), (-moved).clamp_min(0.0).sum_dim(1)];
        // The order of `INFO`.
        let info = [with.import_kwh, with.carbon_kg, with.cost, ramp, rise]
            .into_iter()
            .chain([0, 1, 2].map(|i| column(&reference, i)))
            .chain([reference_ramp, reference_rise])
            .chain(flows);
        let seen = Tensor::cat(vec![soc.clone(), net_kwh], 1);
        let state = CityLearnTensors {
            row: state.row + 1.0,
            soc,
            lost_kwh,
            // CityLearn 2.5 observes zeros after the first step.
            seen: if self.physics == Physics::CityLearn25 { seen.zeros_like() } else { seen },
            grid_kw: Tensor::cat(vec![last, peak, reference_last, reference_peak], 1),
            efficiency,
        };
        let info = Some(Tensor::cat(info.collect(), 1));
        TensorStep { state, reward: reward.reshape([n_envs]), terminated: None, info }
    }
}
