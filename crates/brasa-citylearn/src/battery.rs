//! Batteries.

use serde::{Deserialize, Serialize};

use super::Curve;

/// The constant parameters of a battery.
///
/// One battery and its step with each set of rules.
///
/// All functions work on one battery for one step; loops over environments are in the batch. Symbols: `C`
/// nameplate capacity, `Cd` degraded capacity, `P` nominal power, `pec` efficiency against power, `cpc` power
/// limit against state of charge. One-way efficiency is `sqrt(pec)`. CityLearn's steps are one hour long, so that
/// kW and kWh are the same number; the clean step takes any length.
///
/// ```
/// use brasa_citylearn::{Battery, Curve};
///
/// let battery = Battery {
///     capacity_kwh: 10.0,
///     nominal_power_kw: 5.0,
///     efficiency: 0.81,
///     loss_coefficient: 0.0,
///     capacity_loss_coefficient: 0.0,
///     depth_of_discharge: 1.0,
///     initial_soc: 0.0,
///     power_efficiency: Curve::constant(0.81),
///     capacity_power: Curve::constant(1.0),
/// };
/// let mut state = battery.start_clean();
/// // An hour at full power: 5 kWh from the grid, of which 4.5 kWh are stored.
/// assert_eq!(battery.step_clean(&mut state, 1.0, 1.0), 5.0);
/// assert!((state.soc - 0.45).abs() < 1e-9);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Battery {
    /// Capacity when new, in kWh; above 0.
    pub capacity_kwh: f64,
    /// Power of an action of 1, in kW on the grid side; above 0.
    pub nominal_power_kw: f64,
    /// Round-trip efficiency before the first step; only CityLearn 2.5 uses it, for the discharge limit of the first
    /// step.
    pub efficiency: f64,
    /// Fraction of the stored energy lost per hour.
    pub loss_coefficient: f64,
    /// Fraction of the capacity lost per full cycle.
    pub capacity_loss_coefficient: f64,
    /// Usable fraction of the capacity.
    pub depth_of_discharge: f64,
    /// State of charge at the start of an episode, 0 to 1.
    pub initial_soc: f64,
    /// Round-trip efficiency as a function of power over nominal power.
    pub power_efficiency: Curve,
    /// Power limit over nominal power as a function of the state of charge.
    pub capacity_power: Curve,
}

/// The state of a battery.
///
/// ```
/// use brasa_citylearn::{BatteryState, District};
///
/// let district = District::phase1()?;
/// let battery = district.buildings()[0].battery.as_ref().expect("every building of phase 1 has one");
/// let BatteryState { soc, capacity_kwh, .. } = battery.start_clean();
/// assert_eq!((soc, capacity_kwh), (battery.initial_soc, battery.capacity_kwh));
/// # Ok::<(), brasa_citylearn::EnergyError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BatteryState {
    /// Stored energy over nameplate capacity, 0 to 1.
    pub soc: f64,
    /// Remaining capacity after aging, in kWh.
    pub capacity_kwh: f64,
    /// Round-trip efficiency of the last step.
    pub efficiency: f64,
}

/// CityLearn's divisor for a capacity of 0.
pub(super) const ZERO_PLACEHOLDER: f64 = 1e-6;

impl Battery {
    /// The state at the start of an episode of CityLearn 2.5, which may be below the depth of discharge.
    pub fn start_citylearn25(&self) -> BatteryState {
        let soc = f64::from(self.initial_soc as f32);
        BatteryState { soc, capacity_kwh: self.capacity_kwh, efficiency: self.efficiency }
    }

    /// The state at the start of an episode of CityLearn 3.0, not below the depth of discharge.
    pub fn start_citylearn30(&self) -> BatteryState {
        let soc = f64::from(self.initial_soc.max(self.minimum_soc()) as f32);
        BatteryState { soc, capacity_kwh: self.capacity_kwh, efficiency: self.efficiency }
    }

    /// The state at the start of an episode with the clean rules.
    pub fn start_clean(&self) -> BatteryState {
        BatteryState { soc: self.initial_soc, capacity_kwh: self.capacity_kwh, efficiency: self.efficiency }
    }

    /// Lowest state of charge that a discharge may reach, 0 to 1.
    pub fn minimum_soc(&self) -> f64 {
        (1.0 - self.depth_of_discharge).clamp(0.0, 1.0)
    }

    /// One step of CityLearn 2.5.0; returns the energy on the grid side in kWh, positive when charging.
    ///
    /// With `e0 = max(0, soc C (1 - loss))`, `q = action P` and `Pm = P cpc(e0 / C)`, a charge takes
    /// `q' = min(Pm, P, Cd - e0, q)`; a discharge is limited by `Pm` and by the depth of discharge *with the
    /// efficiency of the previous step*. The new efficiency is `pec(min(|q|, Pm) / P)`, of the *requested*
    /// energy. The state of charge, the balance and the aging are rounded to f32.
    #[inline]
    pub fn step_citylearn25(&self, state: &mut BatteryState, action: f64) -> f32 {
        self.charge_citylearn25(state, action * self.nominal_power_kw)
    }

    /// [`Battery::step_citylearn25`] with a request in kWh.
    #[inline]
    pub(super) fn charge_citylearn25(&self, state: &mut BatteryState, request: f64) -> f32 {
        self.charge_citylearn2(state, request, |limit, _| at_most(request.abs(), limit) / self.nominal_power_kw)
    }

    /// One step of CityLearn 2.1.2; returns the energy on the grid side in kWh, positive when charging.
    ///
    /// As [`Battery::step_citylearn25`], but the request is `action C` and the efficiency that of the actual energy.
    #[inline]
    pub fn step_citylearn21(&self, state: &mut BatteryState, action: f64) -> f32 {
        let share = |_, energy: f64| at_most(energy.abs() / self.nominal_power_kw, 1.0);
        self.charge_citylearn2(state, action * self.capacity_kwh, share)
    }

    /// A step of CityLearn 2 with a request in kWh; `share` gives the share of the nominal power that decides the efficiency, from the
    /// limit and the actual energy.
    #[inline(always)]
    fn charge_citylearn2(&self, state: &mut BatteryState, request: f64, share: impl Fn(f64, f64) -> f64) -> f32 {
        let before = at_least(state.soc * self.capacity_kwh * (1.0 - self.loss_coefficient), 0.0);
        let limit = self.nominal_power_kw * self.capacity_power.at(before / self.capacity_kwh);

        let room = state.capacity_kwh - before;
        let charge = at_most(at_most(at_most(limit, self.nominal_power_kw), room), request);
        let above_floor = (state.soc - (1.0 - self.depth_of_discharge)) * self.capacity_kwh;
        let deliverable = at_least(above_floor * state.efficiency.sqrt(), 0.0);
        let discharge = at_least(at_least(-limit, -deliverable), request);
        let energy = if request >= 0.0 { charge } else { discharge };

        state.efficiency = self.power_efficiency.at(share(limit, energy));
        let one_way = state.efficiency.sqrt();
        let filled = at_most(before + energy * one_way, self.capacity_kwh);
        let emptied = at_least(before + energy / one_way, 0.0);
        let after = if energy >= 0.0 { filled } else { emptied };
        self.settle_citylearn(state, before, after, one_way)
    }

    /// One step of CityLearn 3.0.2, without the standing loss of [`Battery::pass_citylearn30`]; returns the
    /// energy on the grid side in kWh, positive when charging.
    ///
    /// The efficiency of the actual energy is computed in two passes:
    /// `eta = pec(x / P)`, then `x = min(|q|, Pm, (Cd - e0) / sqrt(eta))`, or `(e0 - e_min) sqrt(eta)` for a
    /// discharge. The state of charge and the balance are rounded to f32.
    #[inline]
    pub fn step_citylearn30(&self, state: &mut BatteryState, action: f64) -> f32 {
        self.charge_citylearn30(state, action * self.nominal_power_kw)
    }

    /// [`Battery::step_citylearn30`] with a request in kWh.
    #[inline]
    pub(super) fn charge_citylearn30(&self, state: &mut BatteryState, request: f64) -> f32 {
        let floor = self.minimum_soc() * self.capacity_kwh;
        let before = at_least(state.soc * self.capacity_kwh, floor);
        let limit = at_least(self.nominal_power_kw * self.capacity_power.at(before / self.capacity_kwh), 0.0);
        let charging = request >= 0.0;
        let most = at_most(request.abs(), limit);
        let room = at_least(state.capacity_kwh - before, 0.0);
        let stock = at_least(before - floor, 0.0);

        let (mut energy, mut one_way) = (most, 0.0);
        for _ in 0..2 {
            state.efficiency = self.power_efficiency.at(at_most(energy / self.nominal_power_kw, 1.0));
            one_way = state.efficiency.sqrt();
            let storable = if charging { room / one_way } else { stock * one_way };
            energy = at_most(most, storable);
        }
        let filled = at_most(before + energy * one_way, self.capacity_kwh);
        let emptied = at_least(before - energy / one_way, floor);
        let after = if charging { filled } else { emptied };
        self.settle_citylearn(state, before, after, one_way)
    }

    /// The standing loss of CityLearn 3.0.2, a fraction `share` of the hourly one. It applies when the clock advances,
    /// but the observation has the state before it.
    #[inline]
    pub fn pass_citylearn30(&self, state: &mut BatteryState, share: f64) {
        let soc = at_most(at_least(state.soc * (1.0 - self.loss_coefficient * share), self.minimum_soc()), 1.0);
        state.soc = f64::from(soc as f32);
    }

    /// Balance `(e1 - e0) / sqrt(eta)` or `(e1 - e0) sqrt(eta)`, and aging `Cd -= clc C |b| / (2 Cd)`.
    #[inline]
    fn settle_citylearn(&self, state: &mut BatteryState, before: f64, after: f64, one_way: f64) -> f32 {
        state.soc = f64::from((after / self.capacity_kwh) as f32);
        let change = after - before;
        let balance = if change >= 0.0 { change / one_way } else { change * one_way } as f32;
        let worn = self.capacity_loss_coefficient * self.capacity_kwh * f64::from(balance.abs());
        state.capacity_kwh =
            at_least(state.capacity_kwh - worn / (2.0 * at_least(state.capacity_kwh, ZERO_PLACEHOLDER)), 0.0);
        balance
    }

    /// One step of the clean rules; returns the energy on the grid side in kWh, positive when charging.
    ///
    /// The solution in continuous time of `de/dt = sqrt(eta) p - l e` for a charge and `p / sqrt(eta) - l e` for a
    /// discharge, with constant power `p` until the battery is full (then it is kept full) or at its minimum (then
    /// it delivers nothing). Without curves a split step therefore gives the same result. The efficiency
    /// is that of the power `p`, the power limit that of the state of charge at the start, the loss rate is
    /// `l = -ln(1 - loss)` per hour. Aging integrates `dCd = -clc C d|b| / (2 Cd)` exactly.
    #[inline]
    pub fn step_clean(&self, state: &mut BatteryState, action: f64, hours: f64) -> f64 {
        let limit = self.nominal_power_kw * self.capacity_power.at(state.soc);
        let request = action * self.nominal_power_kw;
        let power = at_most(at_least(request, -limit), limit);
        state.efficiency = self.power_efficiency.at(power.abs() / self.nominal_power_kw);
        let one_way = state.efficiency.sqrt();
        let inner_power = if power >= 0.0 { power * one_way } else { power / one_way };

        let before = state.soc * self.capacity_kwh;
        let loss_rate = if self.loss_coefficient > 0.0 { -(1.0 - self.loss_coefficient).ln() } else { 0.0 };
        let (kept, lossless_hours) = if loss_rate > 0.0 {
            let kept = (-loss_rate * hours).exp();
            (kept, -(-loss_rate * hours).exp_m1() / loss_rate)
        } else {
            (1.0, hours)
        };
        let free = before * kept + inner_power * lossless_hours;
        let floor = self.minimum_soc() * self.capacity_kwh;
        let (after, energy) = if power > 0.0 && free > state.capacity_kwh {
            self.fill_clean(state, before, power, one_way, loss_rate, hours)
        } else if power < 0.0 && free < floor {
            empty_clean(before, floor, power, inner_power, loss_rate, hours)
        } else {
            (free, power * hours)
        };
        state.soc = at_least(after / self.capacity_kwh, 0.0);
        let worn = self.capacity_loss_coefficient * self.capacity_kwh * energy.abs();
        state.capacity_kwh = at_least(state.capacity_kwh * state.capacity_kwh - worn, 0.0).sqrt();
        energy
    }

    /// Charges until full, then replaces losses.
    fn fill_clean(
        &self,
        state: &BatteryState,
        before: f64,
        power: f64,
        one_way: f64,
        loss_rate: f64,
        hours: f64,
    ) -> (f64, f64) {
        let full = state.capacity_kwh;
        if before >= full {
            // Aging has reduced the capacity below the stored energy: no charging until losses make room.
            let kept = before * (-loss_rate * hours).exp();
            if kept >= full {
                return (kept, 0.0);
            }
            let reached = (before / full).ln() / loss_rate;
            return (full, full * loss_rate / one_way * (hours - reached));
        }
        if loss_rate == 0.0 {
            return (full, (full - before) / one_way);
        }
        let rest = power * one_way / loss_rate;
        let reached = ((rest - before) / (rest - full)).ln() / loss_rate;
        (full, power * reached + full * loss_rate / one_way * (hours - reached))
    }
}

/// Discharges to the minimum, then has only losses.
fn empty_clean(before: f64, floor: f64, power: f64, inner_power: f64, loss_rate: f64, hours: f64) -> (f64, f64) {
    if before <= floor {
        return (before * (-loss_rate * hours).exp(), 0.0);
    }
    if loss_rate == 0.0 {
        return (floor, (floor - before) / inner_power * power);
    }
    // The energy would converge to a value below 0, `inner_power / loss_rate`.
    let rest = inner_power / loss_rate;
    let reached = ((before - rest) / (floor - rest)).ln() / loss_rate;
    (floor * (-loss_rate * (hours - reached)).exp(), power * reached)
}

/// `max` that compiles to one instruction; the operands are never NaN.
#[inline]
pub(super) fn at_least(value: f64, low: f64) -> f64 {
    if value > low { value } else { low }
}

/// `min` that compiles to one instruction; the operands are never NaN.
#[inline]
pub(super) fn at_most(value: f64, high: f64) -> f64 {
    if value < high { value } else { high }
}

#[cfg(test)]
mod tests {
    use super::*;
    use approx::assert_abs_diff_eq;

    fn plain(efficiency: f64, loss_coefficient: f64) -> Battery {
        Battery {
            capacity_kwh: 6.4,
            nominal_power_kw: 5.0,
            efficiency,
            loss_coefficient,
            capacity_loss_coefficient: 0.0,
            depth_of_discharge: 0.9,
            initial_soc: 0.5,
            power_efficiency: Curve::constant(efficiency),
            capacity_power: Curve::constant(1.0),
        }
    }

    #[test]
    fn a_full_cycle_returns_the_efficiency() {
        let battery = plain(0.81, 0.0);
        let mut state = BatteryState { soc: 0.1, ..battery.start_clean() };
        let (mut into, mut out) = (0.0, 0.0);
        for _ in 0..4 {
            into += battery.step_clean(&mut state, 0.6, 1.0);
        }
        assert_abs_diff_eq!(state.soc, 1.0, epsilon = 1e-12);
        for _ in 0..4 {
            out -= battery.step_clean(&mut state, -0.6, 1.0);
        }
        assert_abs_diff_eq!(state.soc, 0.1, epsilon = 1e-12);
        assert_abs_diff_eq!(out / into, 0.81, epsilon = 1e-12);
    }

    #[test]
    fn idle_loses_by_the_hour() {
        let battery = plain(0.9, 0.006);
        let mut state = battery.start_clean();
        for _ in 0..10 {
            assert_eq!(battery.step_clean(&mut state, 0.0, 1.0), 0.0);
        }
        assert_abs_diff_eq!(state.soc, 0.5 * 0.994_f64.powi(10), epsilon = 1e-12);
    }

    #[test]
    fn half_steps_add_up_to_a_step() {
        // Unlimited, until full, until empty, and idle below the minimum, with and without loss.
        for loss in [0.0, 0.006] {
            for (soc, action) in
                [(0.5, 0.3), (0.5, -0.2), (0.8, 0.9), (0.3, -0.8), (0.05, -0.5), (0.05, 0.7), (1.0, 1.0)]
            {
                let battery = plain(0.9, loss);
                let start = BatteryState { soc, ..battery.start_clean() };
                let (mut whole, mut halves) = (start, start);
                let once = battery.step_clean(&mut whole, action, 1.0);
                let twice = battery.step_clean(&mut halves, action, 0.5) + battery.step_clean(&mut halves, action, 0.5);
                assert_abs_diff_eq!(once, twice, epsilon = 1e-9);
                assert_abs_diff_eq!(whole.soc, halves.soc, epsilon = 1e-9);
                assert!(once * action >= 0.0, "action {action} moved {once} kWh");
                // A very small loss gives nearly the result without loss.
                let (mut nearly, mut none) = (start, start);
                let few = plain(0.9, 1e-10).step_clean(&mut nearly, action, 1.0);
                let zero = plain(0.9, 0.0).step_clean(&mut none, action, 1.0);
                assert_abs_diff_eq!(few, zero, epsilon = 1e-5);
                assert_abs_diff_eq!(nearly.soc, none.soc, epsilon = 1e-5);
            }
        }
    }

    #[test]
    fn ageing_adds_up_over_half_steps() {
        let battery = Battery { capacity_loss_coefficient: 1e-3, ..plain(0.9, 0.006) };
        let (mut whole, mut halves) = (battery.start_clean(), battery.start_clean());
        battery.step_clean(&mut whole, 0.4, 1.0);
        battery.step_clean(&mut halves, 0.4, 0.5);
        battery.step_clean(&mut halves, 0.4, 0.5);
        assert_abs_diff_eq!(whole.capacity_kwh, halves.capacity_kwh, epsilon = 1e-12);
        assert!(whole.capacity_kwh < 6.4 - 9e-4, "2 kWh through the battery must wear it");
    }
}
