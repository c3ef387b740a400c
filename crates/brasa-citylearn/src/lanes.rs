//! Batteries of CityLearn 3.0.2 in SIMD lanes, so that the compiler vectorizes their step.
//!
//! [`Lanes::step`] is [`Battery::pass_citylearn30`] and [`Battery::step_citylearn30`] without branches, with the
//! same operations in the same order, so its results are bit-identical; the tests compare them. Lanes are
//! either environments with the same battery or, for the remaining environments, the batteries of one environment.

use super::{
    Battery, BatteryState, Curve,
    battery::{ZERO_PLACEHOLDER, at_least, at_most},
};

/// Batteries that step together; more than one vector, to hide the latency of dependent operations.
pub(super) const LANES: usize = 8;

/// A number for each lane.
pub(super) type Lane = [f64; LANES];

/// The constants of the batteries of the lanes.
#[derive(Debug)]
pub(super) struct Lanes {
    capacity_kwh: Lane,
    nominal_power_kw: Lane,
    minimum_soc: Lane,
    /// Energy at the lowest state of charge.
    floor_kwh: Lane,
    loss_coefficient: Lane,
    /// Capacity loss coefficient times nameplate capacity.
    wear_kwh: Lane,
    power_efficiency: CurveLanes,
    capacity_power: CurveLanes,
}

/// Result of one step of the batteries.
pub(super) struct Moved {
    soc: Lane,
    capacity_kwh: Lane,
    efficiency: Lane,
    /// Energy on the grid side in kWh, positive when charging.
    pub(super) balance_kwh: Lane,
}

impl Moved {
    /// The state of a lane's battery after the step.
    #[inline]
    pub(super) fn state(&self, lane: usize) -> BatteryState {
        let (soc, capacity_kwh) = (self.soc[lane], self.capacity_kwh[lane]);
        BatteryState { soc, capacity_kwh, efficiency: self.efficiency[lane] }
    }
}

/// Applies a function of the lane's index to each lane.
#[inline(always)]
fn each(value: impl Fn(usize) -> f64) -> Lane {
    let mut lanes = [0.0; LANES];
    for (lane, slot) in lanes.iter_mut().enumerate() {
        *slot = value(lane);
    }
    lanes
}

impl Lanes {
    pub(super) fn new(batteries: [&Battery; LANES]) -> Self {
        Self {
            capacity_kwh: batteries.map(|battery| battery.capacity_kwh),
            nominal_power_kw: batteries.map(|battery| battery.nominal_power_kw),
            minimum_soc: batteries.map(Battery::minimum_soc),
            floor_kwh: batteries.map(|battery| battery.minimum_soc() * battery.capacity_kwh),
            loss_coefficient: batteries.map(|battery| battery.loss_coefficient),
            wear_kwh: batteries.map(|battery| battery.capacity_loss_coefficient * battery.capacity_kwh),
            power_efficiency: CurveLanes::new(batteries.map(|battery| &battery.power_efficiency)),
            capacity_power: CurveLanes::new(batteries.map(|battery| &battery.capacity_power)),
        }
    }

    /// One step: a fraction `share` of the hourly standing loss, then charge or discharge.
    ///
    /// Not inlined, because the compiler does not vectorize it together with the callers' scattered writes.
    #[inline(never)]
    pub(super) fn step(&self, states: [&BatteryState; LANES], action: &Lane, share: &Lane) -> Moved {
        let Self { capacity_kwh: capacity, nominal_power_kw: nominal, minimum_soc, floor_kwh: floor, .. } = self;
        let soc = each(|i| states[i].soc * (1.0 - self.loss_coefficient[i] * share[i]));
        let soc = each(|i| f64::from(at_most(at_least(soc[i], minimum_soc[i]), 1.0) as f32));

        let before = each(|i| at_least(soc[i] * capacity[i], floor[i]));
        let full = each(|i| before[i] / capacity[i]);
        let limit = self.capacity_power.at(&full);
        let limit = each(|i| at_least(nominal[i] * limit[i], 0.0));
        let request = each(|i| action[i] * nominal[i]);
        // Charge and discharge are computed separately, and one of them is 0: their sum needs no branch.
        let most_in = each(|i| at_most(at_least(request[i], 0.0), limit[i]));
        let most_out = each(|i| at_most(at_least(-request[i], 0.0), limit[i]));
        let capacity_left = each(|i| states[i].capacity_kwh);
        let room = each(|i| at_least(capacity_left[i] - before[i], 0.0));
        let stock = each(|i| at_least(before[i] - floor[i], 0.0));

        let (mut energy_in, mut energy_out) = (most_in, most_out);
        let (mut efficiency, mut one_way) = ([0.0; LANES], [0.0; LANES]);
        for _ in 0..2 {
            let power = each(|i| at_most((energy_in[i] + energy_out[i]) / nominal[i], 1.0));
            efficiency = self.power_efficiency.at(&power);
            one_way = each(|i| efficiency[i].sqrt());
            energy_in = each(|i| at_most(most_in[i], room[i] / one_way[i]));
            energy_out = each(|i| at_most(most_out[i], stock[i] * one_way[i]));
        }
        let filled = each(|i| at_most(before[i] + energy_in[i] * one_way[i], capacity[i]));
        let after = each(|i| at_least(filled[i] - energy_out[i] / one_way[i], floor[i]));
        let balance = each(|i| (filled[i] - before[i]) / one_way[i] + (after[i] - filled[i]) * one_way[i]);

        let soc = each(|i| f64::from((after[i] / capacity[i]) as f32));
        let balance_kwh = each(|i| f64::from(balance[i] as f32));
        let worn = each(|i| self.wear_kwh[i] * balance_kwh[i].abs());
        let wear = each(|i| worn[i] / (2.0 * at_least(capacity_left[i], ZERO_PLACEHOLDER)));
        let capacity_kwh = each(|i| at_least(capacity_left[i] - wear[i], 0.0));
        Moved { soc, capacity_kwh, efficiency, balance_kwh }
    }
}

/// A curve for each lane.
#[derive(Debug)]
struct CurveLanes {
    start: Lane,
    /// Segments of slope 0 pad curves with fewer segments; segments that are constant in every lane contribute 0.
    segments: Vec<SegmentLanes>,
}
#[derive(Debug)]
struct SegmentLanes {
    from: Lane,
    length: Lane,
    slope: Lane,
}

impl CurveLanes {
    fn new(curves: [&Curve; LANES]) -> Self {
        let n_segments = curves.iter().map(|curve| curve.segments().len()).max().unwrap_or(0);
        let segments = (0..n_segments).filter_map(|index| {
            let segments = curves.map(|curve| curve.segments().get(index).copied().unwrap_or_default());
            segments.iter().any(|segment| segment.slope != 0.0).then(|| SegmentLanes {
                from: segments.map(|segment| segment.from),
                length: segments.map(|segment| segment.length),
                slope: segments.map(|segment| segment.slope),
            })
        });
        Self { start: curves.map(|curve| curve.at(0.0)), segments: segments.collect() }
    }

    /// [`Curve::at`] in each lane.
    #[inline(always)]
    fn at(&self, x: &Lane) -> Lane {
        let mut y = self.start;
        for SegmentLanes { from, length, slope } in &self.segments {
            let inside = each(|i| at_most(at_least(x[i] - from[i], 0.0), length[i]));
            y = each(|i| y[i] + slope[i] * inside[i]);
        }
        y
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two batteries in all lanes: one with sampled curves, one with plain curves, a minimum and little remaining
    /// capacity.
    #[test]
    fn lanes_equal_single_batteries_to_the_last_bit() {
        let curve = |points: &[(f64, f64)]| Curve::through("curve", points).expect("the points are in order");
        let drawn = Battery {
            capacity_kwh: 6.4,
            nominal_power_kw: 5.0,
            efficiency: 0.9,
            loss_coefficient: 0.006,
            capacity_loss_coefficient: 1e-5,
            depth_of_discharge: 1.0,
            initial_soc: 0.0,
            power_efficiency: curve(&[(0.0, 0.83), (0.3, 0.83), (0.7, 0.9), (0.8, 0.9), (1.0, 0.85)]),
            capacity_power: curve(&[(0.0, 1.0), (0.8, 1.0), (1.0, 0.2)]),
        };
        let plain = Battery {
            capacity_kwh: 4.1,
            nominal_power_kw: 3.3,
            loss_coefficient: 0.0,
            capacity_loss_coefficient: 0.2,
            depth_of_discharge: 0.8,
            initial_soc: 0.5,
            power_efficiency: Curve::constant(0.95),
            capacity_power: Curve::constant(1.0),
            ..drawn.clone()
        };
        let batteries = std::array::from_fn(|lane| if lane % 4 == 0 { &drawn } else { &plain });
        let lanes = Lanes::new(batteries);
        let mut singles = batteries.map(Battery::start_citylearn30);
        let mut key = 1u64;
        for step in 0..20_000 {
            let share = if step % 100 == 0 { 0.0 } else { 1.0 };
            let action = std::array::from_fn(|lane| {
                key = key.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                match (key >> 60, lane) {
                    (0, _) => 0.0,
                    (1, _) => -1.0,
                    (2, _) => 1.0,
                    // Long runs in one direction reach the ends.
                    (_, 3) => {
                        if step / 20 % 2 == 0 {
                            0.3
                        } else {
                            -0.3
                        }
                    }
                    _ => (key >> 11) as f64 / (1u64 << 52) as f64 - 1.0,
                }
            });
            let moved = lanes.step(singles.each_ref(), &action, &[share; LANES]);
            for (lane, single) in singles.iter_mut().enumerate() {
                batteries[lane].pass_citylearn30(single, share);
                let energy = f64::from(batteries[lane].step_citylearn30(single, action[lane]));
                assert_eq!((moved.state(lane), moved.balance_kwh[lane]), (*single, energy), "step {step}, lane {lane}");
            }
        }
        assert_eq!(singles[1].capacity_kwh, singles[1].capacity_kwh.clamp(0.0, 1.0), "it should have worn down");
    }
}
