//! The batteries of a district as tensor operations.

use burn::tensor::{Device, Int, Tensor, TensorData};

use crate::citylearn::battery::ZERO_PLACEHOLDER;
use crate::citylearn::{Battery, Curve, Physics};

/// The batteries of a district; every tensor is `[1, batteries]`.
#[derive(Debug, Clone)]
pub(super) struct Batteries {
    pub(super) start_soc: Tensor<2>,
    /// Of CityLearn 2.5.
    pub(super) start_efficiency: Tensor<2>,
    pub(super) capacity_kwh: Tensor<2>,
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
    pub(super) of_building: Tensor<1, Int>,
}

/// A curve per battery; tensors are `[1, batteries, segments]`, and `start` is `[1, batteries]`.
#[derive(Debug, Clone)]
pub(super) struct Curves {
    start: Tensor<2>,
    from: Tensor<3>,
    length: Tensor<3>,
    slope: Tensor<3>,
}

/// `ln(1 + x)` with all digits of a small `x`, after Kahan. On GPUs Burn's `log1p` rounds the sum first: a battery whose loss rate
/// is small would be full at once.
pub(super) fn ln_1p(x: Tensor<2>) -> Tensor<2> {
    let sum = x.clone() + 1.0;
    let rounded = sum.clone() - 1.0;
    let lost = rounded.clone().equal_elem(0.0);
    (sum.log() * x.clone() / rounded).mask_where(lost, x)
}

/// Loss per hour; lossless batteries lose a billionth, so that no case divides by 0.
pub(super) fn loss_rate(battery: &Battery) -> f64 {
    (-(1.0 - battery.loss_coefficient).ln()).max(1e-9)
}

pub(super) fn matrix(values: Vec<f64>, width: usize, device: &Device) -> Tensor<2> {
    let values: Vec<f32> = values.into_iter().map(|x| x as f32).collect();
    let rows = values.len() / width;
    Tensor::from_data(TensorData::new(values, [rows, width]), device)
}

pub(super) fn indices(values: Vec<usize>, device: &Device) -> Tensor<1, Int> {
    let n = values.len();
    Tensor::from_data(TensorData::new(values.into_iter().map(|i| i as i32).collect(), [n]), device)
}

impl Curves {
    pub(super) fn new(curves: &[&Curve], device: &Device) -> Self {
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
    pub(super) fn new(all: &[Option<Battery>], physics: Physics, hours: f64, device: &Device) -> Self {
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
    pub(super) fn step_citylearn25(
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
    pub(super) fn step_citylearn30(
        &self,
        soc: Tensor<2>,
        lost_kwh: Tensor<2>,
        action: Tensor<2>,
        first: bool,
    ) -> [Tensor<2>; 3] {
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
    pub(super) fn step_clean(
        &self,
        soc: Tensor<2>,
        lost_kwh: Tensor<2>,
        action: Tensor<2>,
        hours: f64,
    ) -> [Tensor<2>; 3] {
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
    pub(super) fn per_building(&self, values: Tensor<2>) -> Tensor<2> {
        let [n_envs, batteries] = values.dims();
        let [buildings] = self.of_building.dims();
        if buildings == batteries {
            return values;
        }
        let none = Tensor::zeros([n_envs, 1], &values.device());
        Tensor::cat(vec![values, none], 1).select(1, self.of_building.clone())
    }
}
