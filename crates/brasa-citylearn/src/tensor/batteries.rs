//! The batteries of a district as tensor operations.

use brasa_kernels::{Formulas, Matrix, Value, elementwise};
use burn::tensor::{Device, Int, Tensor, TensorData};

use crate::battery::ZERO_PLACEHOLDER;
use crate::{Battery, Curve, Physics};

/// The batteries of a district.
#[derive(Debug, Clone)]
pub(super) struct Batteries {
    /// `[1, batteries]`.
    pub(super) start_soc: Tensor<2>,
    /// Of CityLearn 2.5, `[1, batteries]`.
    pub(super) start_efficiency: Tensor<2>,
    /// `[1, constants * batteries]`: every [`Constant`] of all batteries, then the [`Curves`].
    constants: Tensor<2>,
    power_efficiency: Curves,
    capacity_power: Curves,
    /// `[1, batteries]`: worth of a full battery, if rewards are shaped.
    full_worth: Option<Tensor<2>>,
    per_building: Option<PerBuilding>,
}

/// The batteries of a district in which not every building has one.
#[derive(Debug, Clone)]
struct PerBuilding {
    /// `[buildings]`: the battery of each building, or any.
    battery: Tensor<1, Int>,
    /// `[1, buildings]`: 1 with a battery, 0 without.
    has_battery: Tensor<2>,
}

/// A number per battery.
#[derive(Debug, Clone, Copy)]
enum Constant {
    CapacityKwh,
    NominalPowerKw,
    MinimumSoc,
    /// Not limited to `[0, 1]`.
    Undischarged,
    FloorKwh,
    LossCoefficient,
    /// Per hour.
    LossRate,
    /// Fraction of the stored energy that is left after a step without power.
    Kept,
    /// Energy after a step per power into the store, if it starts empty.
    LosslessHours,
    /// Capacity loss coefficient times nameplate capacity.
    WearKwh,
}

/// A curve per battery. The table of constants has its start from `first` on, then of every segment begin, length and slope.
#[derive(Debug, Clone, Copy)]
struct Curves {
    first: usize,
    n_segments: usize,
}

/// The constants of the batteries, in formulas.
#[derive(Clone, Copy)]
struct Constants<'a> {
    table: Matrix<'a>,
    batteries: usize,
}

/// The batteries after a step.
pub(super) struct After {
    /// `[n_envs, batteries]`.
    pub(super) soc: Tensor<2>,
    /// `[n_envs, batteries]`.
    pub(super) lost_kwh: Tensor<2>,
    /// Of CityLearn 2.5, else 0, `[n_envs, batteries]`.
    pub(super) efficiency: Tensor<2>,
    /// Side by side: energy on the grid side, that of charging, that of discharging, and the gain of worth, in kWh and as a reward,
    /// `[n_envs, 4 * batteries]`.
    pub(super) moved: Tensor<2>,
}

/// Loss per hour; lossless batteries lose a billionth, so that no case divides by 0.
pub(super) fn loss_rate(battery: &Battery) -> f64 {
    (-(1.0 - battery.loss_coefficient).ln()).max(1e-9)
}

pub(super) fn matrix(values: Vec<f64>, n_rows: usize, device: &Device) -> Tensor<2> {
    let values: Vec<f32> = values.into_iter().map(|x| x as f32).collect();
    let width = values.len() / n_rows;
    Tensor::from_data(TensorData::new(values, [n_rows, width]), device)
}

pub(super) fn indices(values: Vec<usize>, device: &Device) -> Tensor<1, Int> {
    let n = values.len();
    Tensor::from_data(TensorData::new(values.into_iter().map(|i| i as i32).collect(), [n]), device)
}

impl Curves {
    /// Curves behind the constants that are there.
    fn append(constants: &mut Vec<f64>, curves: &[&Curve]) -> Self {
        let first = if curves.is_empty() { 0 } else { constants.len() / curves.len() };
        let n_segments = curves.iter().map(|curve| curve.segments().len()).max().unwrap_or(0);
        constants.extend(curves.iter().map(|curve| curve.at(0.0)));
        for i in 0..n_segments {
            // Segments without a slope pad the shorter curves.
            let segments = || curves.iter().map(|curve| curve.segments().get(i).copied().unwrap_or_default());
            constants.extend(segments().map(|segment| segment.from));
            constants.extend(segments().map(|segment| segment.length));
            constants.extend(segments().map(|segment| segment.slope));
        }
        Self { first, n_segments }
    }

    /// [`Curve::at`].
    fn at<'a>(self, constants: Constants<'a>, x: Value<'a>) -> Value<'a> {
        let part = |i: usize| constants.column(self.first + i);
        (0..self.n_segments).fold(part(0), |sum, i| {
            let [from, length, slope] = [1, 2, 3].map(|j| part(3 * i + j));
            sum + (x - from).max(0.0).min(length) * slope
        })
    }
}

impl<'a> Constants<'a> {
    fn get(self, constant: Constant) -> Value<'a> {
        self.column(constant as usize)
    }

    fn column(self, i: usize) -> Value<'a> {
        self.table.columns(i * self.batteries..(i + 1) * self.batteries)
    }
}

impl Batteries {
    pub(super) fn new(
        all: &[Option<Battery>],
        physics: Physics,
        hours: f64,
        full_worth: Option<Vec<f64>>,
        device: &Device,
    ) -> Self {
        let present: Vec<&Battery> = all.iter().flatten().collect();
        let row = |values: Vec<f64>| matrix(values, 1, device);
        let of = |value: &dyn Fn(&Battery) -> f64| row(present.iter().map(|battery| value(battery)).collect());
        // In the order of [`Constant`].
        let values: [&dyn Fn(&Battery) -> f64; 10] = [
            &|battery| battery.capacity_kwh,
            &|battery| battery.nominal_power_kw,
            &Battery::minimum_soc,
            &|battery| 1.0 - battery.depth_of_discharge,
            &|battery| battery.minimum_soc() * battery.capacity_kwh,
            &|battery| battery.loss_coefficient,
            &loss_rate,
            &|battery| (-loss_rate(battery) * hours).exp(),
            &|battery| -(-loss_rate(battery) * hours).exp_m1() / loss_rate(battery),
            &|battery| battery.capacity_loss_coefficient * battery.capacity_kwh,
        ];
        let mut constants: Vec<f64> =
            values.iter().flat_map(|value| present.iter().map(move |battery| value(battery))).collect();
        let mut curves = |curve: &dyn Fn(&Battery) -> &Curve| {
            Curves::append(&mut constants, &present.iter().map(|battery| curve(battery)).collect::<Vec<_>>())
        };
        let power_efficiency = curves(&|battery| &battery.power_efficiency);
        let capacity_power = curves(&|battery| &battery.capacity_power);
        let mut n_before = 0;
        let mut place = |battery: &Option<Battery>| {
            n_before += usize::from(battery.is_some());
            n_before.saturating_sub(1)
        };
        let per_building = (present.len() < all.len()).then(|| PerBuilding {
            battery: indices(all.iter().map(&mut place).collect(), device),
            has_battery: row(all.iter().map(|battery| f64::from(u8::from(battery.is_some()))).collect()),
        });
        Self {
            start_soc: of(&|battery| match physics {
                Physics::Clean => battery.start_clean().soc,
                Physics::CityLearn21 | Physics::CityLearn25 => battery.start_citylearn25().soc,
                Physics::CityLearn30 => battery.start_citylearn30().soc,
            }),
            start_efficiency: of(&|battery| battery.start_citylearn25().efficiency),
            constants: row(constants),
            power_efficiency,
            capacity_power,
            full_worth: full_worth.map(row),
            per_building,
        }
    }

    /// Takes a step of `hours` with every battery; all inputs are `[n_envs, batteries]`, an efficiency only that of CityLearn 2.5.
    pub(super) fn step(
        &self,
        physics: Physics,
        [soc, lost_kwh, efficiency]: [Tensor<2>; 3],
        action: &Tensor<2>,
        hours: f64,
        first: bool,
    ) -> After {
        let shape @ [_, batteries] = soc.dims();
        let [soc_after, lost_kwh, efficiency, moved] = elementwise(shape, |formulas| {
            let constants = Constants { table: formulas.matrix(&self.constants), batteries };
            let [before, lost, action] = [&soc, &lost_kwh, action].map(|matrix| formulas.read(matrix));
            let mut after = formulas.constant(0.0);
            let [soc, lost, energy] = match physics {
                Physics::Clean => self.step_clean(constants, before, lost, action, hours),
                Physics::CityLearn30 => self.step_citylearn30(constants, before, lost, action, first),
                Physics::CityLearn21 | Physics::CityLearn25 => {
                    let [changed @ .., last] =
                        self.step_citylearn25(constants, before, lost, action, formulas.read(&efficiency));
                    after = last;
                    changed
                }
            };
            let gain = match &self.full_worth {
                Some(worth) => (soc - before) * formulas.read(worth),
                None => formulas.constant(0.0),
            };
            [vec![soc], vec![lost], vec![after], vec![energy, energy.max(0.0), (-energy).max(0.0), gain]]
        });
        After { soc: soc_after, lost_kwh, efficiency, moved }
    }

    /// [`Battery::step_citylearn25`]: state of charge, lost capacity, energy on the grid side in kWh, and efficiency.
    fn step_citylearn25<'a>(
        &self,
        constants: Constants<'a>,
        soc: Value<'a>,
        lost_kwh: Value<'a>,
        action: Value<'a>,
        efficiency: Value<'a>,
    ) -> [Value<'a>; 4] {
        let of = |constant: Constant| constants.get(constant);
        let capacity_kwh = of(Constant::CapacityKwh);
        let capacity_left = capacity_kwh - lost_kwh;
        let share = (soc - soc * of(Constant::LossCoefficient)).max(0.0);
        let before = share * capacity_kwh;
        let limit = self.capacity_power.at(constants, share) * of(Constant::NominalPowerKw);
        let request = action.clamp(-1.0, 1.0) * of(Constant::NominalPowerKw);
        let charge = limit.min(capacity_left - before).min(request);
        let deliverable = (soc - of(Constant::Undischarged)) * capacity_kwh * efficiency.sqrt();
        let most_out = limit.min(deliverable.max(0.0));
        let energy = request.greater_equal(0.0).select(charge, (-most_out).max(request));
        let efficiency = self.power_efficiency.at(constants, request.abs().min(limit) / of(Constant::NominalPowerKw));
        let one_way = efficiency.sqrt();
        // As with CityLearn 3.0: differences of stored energy would lose digits.
        let space = (capacity_kwh - before).max(0.0);
        let stored = (energy.max(0.0) * one_way).min(space);
        let taken = ((-energy).max(0.0) / one_way).min(before);
        let balance = stored / one_way - taken * one_way;
        let soc = (before + stored - taken) / capacity_kwh;
        [soc, Self::worn(constants, lost_kwh, balance), balance, efficiency]
    }

    /// The lost capacity after an exchange, in kWh, with the rules of CityLearn.
    fn worn<'a>(constants: Constants<'a>, lost_kwh: Value<'a>, balance: Value<'a>) -> Value<'a> {
        let capacity_kwh = constants.get(Constant::CapacityKwh);
        let worn = balance.abs() * constants.get(Constant::WearKwh);
        let wear = worn / ((capacity_kwh - lost_kwh).max(ZERO_PLACEHOLDER) * 2.0);
        (lost_kwh + wear).min(capacity_kwh)
    }

    /// [`Battery::pass_citylearn30`], except at the first step of an episode, and [`Battery::step_citylearn30`]: state of charge,
    /// lost capacity, and energy on the grid side in kWh.
    fn step_citylearn30<'a>(
        &self,
        constants: Constants<'a>,
        soc: Value<'a>,
        lost_kwh: Value<'a>,
        action: Value<'a>,
        first: bool,
    ) -> [Value<'a>; 3] {
        let of = |constant: Constant| constants.get(constant);
        let (capacity_kwh, nominal_power_kw, floor_kwh) =
            (of(Constant::CapacityKwh), of(Constant::NominalPowerKw), of(Constant::FloorKwh));
        let capacity_left = capacity_kwh - lost_kwh;
        let soc = if first { soc } else { soc - soc * of(Constant::LossCoefficient) };
        let soc = soc.max(of(Constant::MinimumSoc)).min(1.0);
        let before = (soc * capacity_kwh).max(floor_kwh);
        let limit = (self.capacity_power.at(constants, before / capacity_kwh) * nominal_power_kw).max(0.0);
        let request = action.clamp(-1.0, 1.0) * nominal_power_kw;
        // Charge and discharge are computed separately, and one of them is 0.
        let most_in = request.max(0.0).min(limit);
        let most_out = (-request).max(0.0).min(limit);
        let room = (capacity_left - before).max(0.0);
        let stock = (before - floor_kwh).max(0.0);
        let efficiency_of =
            |energy: Value<'a>| self.power_efficiency.at(constants, (energy / nominal_power_kw).min(1.0)).sqrt();
        let flows = |one_way: Value<'a>| (most_in.min(room / one_way), most_out.min(stock * one_way));
        let (energy_in, energy_out) = flows(efficiency_of(most_in + most_out));
        let one_way = efficiency_of(energy_in + energy_out);
        let (energy_in, energy_out) = flows(one_way);
        // As differences of stored energy in 64 bits; here directly, because 32 bits would lose digits.
        let space = (capacity_kwh - before).max(0.0);
        let stored = (energy_in * one_way).min(space);
        let taken = (energy_out / one_way).min(stock);
        let balance = stored / one_way - taken * one_way;
        let soc = (before + stored - taken) / capacity_kwh;
        [soc, Self::worn(constants, lost_kwh, balance), balance]
    }

    /// [`Battery::step_clean`] for a step of `hours`: state of charge, lost capacity, and energy on the grid side in kWh. All
    /// cases are computed, and each battery takes its own.
    fn step_clean<'a>(
        &self,
        constants: Constants<'a>,
        soc: Value<'a>,
        lost_kwh: Value<'a>,
        action: Value<'a>,
        hours: f64,
    ) -> [Value<'a>; 3] {
        let of = |constant: Constant| constants.get(constant);
        let (capacity_kwh, nominal_power_kw) = (of(Constant::CapacityKwh), of(Constant::NominalPowerKw));
        let (floor, rate) = (of(Constant::FloorKwh), of(Constant::LossRate));
        let full = capacity_kwh - lost_kwh;
        let limit = self.capacity_power.at(constants, soc) * nominal_power_kw;
        let request = action.clamp(-1.0, 1.0) * nominal_power_kw;
        let power = request.max(-limit).min(limit);
        let one_way = self.power_efficiency.at(constants, power.abs() / nominal_power_kw).sqrt();
        let charges = power.greater(0.0);
        let discharges = power.lower(0.0);
        let inner = charges.select(power * one_way, power / one_way);
        let before = soc * capacity_kwh;
        let kept = before * of(Constant::Kept);
        let free = kept + inner * of(Constant::LosslessHours);

        // The bound towards which power moves the energy, whether it already lies there or beyond it, and the hours until it is
        // reached. Above a capacity that has aged only losses work.
        let above = charges.and(before.greater_equal(full));
        let below = discharges.and(before.lower_equal(floor));
        let bound = discharges.select(floor, full);
        // The energy to which the store would converge.
        let rest = above.select(0.0, inner / rate);
        let until = ((bound - before) / (rest - bound)).ln_1p() / rate;
        let moved = above.or(below).select(0.0, power * until);
        let then = -until + hours;

        // Full before the end of the step: losses are replaced from then on.
        let stays = above.and(kept.greater_equal(full));
        let filled = stays.select(kept, full);
        let holding = then * full * rate / one_way;
        let filling = stays.select(0.0, moved + holding);

        // At the floor before the end of the step: only losses from then on.
        let emptied = below.select(kept, floor * (-then * rate).exp());

        let is_full = charges.and(free.greater(full));
        let is_empty = discharges.and(free.lower(floor));
        let after = is_empty.select(emptied, is_full.select(filled, free));
        let energy = is_empty.select(moved, is_full.select(filling, power * hours));
        let soc = (after / capacity_kwh).max(0.0);
        let worn = energy.abs() * of(Constant::WearKwh);
        // The difference of `C` and `sqrt(C^2 - worn)`, without a subtraction.
        let wear = worn / (full + (full.square() - worn).max(0.0).sqrt()).max(ZERO_PLACEHOLDER);
        [soc, (lost_kwh + wear).min(capacity_kwh), energy]
    }

    /// Energy on the grid side of [`After::moved`] by the battery of each building, `[n_envs, buildings]` or more columns; that of buildings
    /// without a battery does not count: see [`Batteries::balance`].
    pub(super) fn of_buildings(&self, moved: Tensor<2>) -> Tensor<2> {
        match &self.per_building {
            Some(buildings) => moved.select(1, buildings.battery.clone()),
            None => moved,
        }
    }

    /// The same in formulas per building, and 0 without a battery.
    pub(super) fn balance<'a>(&self, formulas: &'a Formulas, of_buildings: &Tensor<2>, buildings: usize) -> Value<'a> {
        let balance = formulas.matrix(of_buildings).columns(0..buildings);
        match &self.per_building {
            Some(PerBuilding { has_battery, .. }) => balance * formulas.read(has_battery),
            None => balance,
        }
    }
}
