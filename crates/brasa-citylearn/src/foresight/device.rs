//! The linear limits of a battery, and its steps in a program.

use brasa_lp::{Program, Solution, Variable};

use super::super::Battery;

/// Intervals in which a curve is bounded by its larger or smaller end.
const INTERVALS: usize = 200;

/// The variables of a battery in a step, in kWh.
pub(super) struct Step {
    pub(super) charge: Variable,
    /// `None` for a battery that cannot be discharged.
    pub(super) discharge: Option<Variable>,
    /// Stored after the step.
    pub(super) stored: Variable,
}

impl Step {
    /// The planned energy at the terminals, positive when charging.
    pub(super) fn energy_kwh(&self, solution: &Solution) -> f64 {
        solution.value(self.charge) - self.discharge.map_or(0.0, |discharge| solution.value(discharge))
    }
}

/// The stored energy before a step.
#[derive(Clone, Copy)]
pub(super) struct Stored {
    /// A variable, or what is known, in kWh.
    now: Result<Variable, f64>,
    /// It is not below this, in kWh: the smallest energy to which the battery can be discharged, or less if it began with less.
    floor_kwh: f64,
}

impl Stored {
    /// After a step.
    pub(super) fn after(self, step: &Step) -> Self {
        Self { now: Ok(step.stored), ..self }
    }
}

/// The linear limits of a battery.
pub(super) struct Device {
    /// Largest energy of a step at the terminals.
    pub(super) power_kwh: f64,
    floor_kwh: f64,
    full_kwh: f64,
    /// Fraction of the stored energy that is left after a step.
    kept: f64,
    /// Whether there is a standing loss, which may take energy below the floor.
    has_loss: bool,
    /// Smallest one-way efficiency.
    least_efficiency: f64,
    /// Slope and height of lines that limit `a` from above, as functions of `c`.
    gains: Vec<(f64, f64)>,
    /// The same for `b` from below, as functions of `d`.
    takes: Vec<(f64, f64)>,
    /// The same for `c + d` from above, as functions of the stored energy.
    powers: Vec<(f64, f64)>,
}

impl Device {
    /// `lowest_soc` is the smallest state of charge that the battery ever starts with.
    pub(super) fn new(battery: &Battery, hours: f64, lowest_soc: f64) -> Self {
        let nominal_kwh = battery.nominal_power_kw * hours;
        let curve = &battery.power_efficiency;
        let gain = |x: f64, efficiency: f64| (x * nominal_kwh, x * nominal_kwh * efficiency.sqrt());
        let take = |x: f64, efficiency: f64| (x * nominal_kwh, x * nominal_kwh / efficiency.sqrt());
        // In each interval the efficiency is at most that of its better end.
        let (mut gains, mut takes) = (Vec::new(), Vec::new());
        for interval in 0..INTERVALS {
            let ends = [interval, interval + 1].map(|end| end as f64 / INTERVALS as f64);
            let breaks = curve.points().into_iter().filter(|(x, _)| ends[0] < *x && *x < ends[1]);
            let best = breaks.map(|(_, y)| y).chain(ends.map(|x| curve.at(x))).fold(0.0, f64::max);
            gains.extend(ends.map(|x| gain(x, best)));
            takes.extend(ends.map(|x| take(x, best)).map(|(x, y)| (x, -y)));
        }
        let capacity_kwh = battery.capacity_kwh;
        let floor_kwh = battery.minimum_soc() * capacity_kwh;
        // Below the floor, the largest power there.
        let limit = &battery.capacity_power;
        let (low, high): (Vec<_>, Vec<_>) = limit.points().into_iter().partition(|(x, _)| *x <= battery.minimum_soc());
        let of_floor = low.iter().map(|(_, y)| *y).fold(limit.at(battery.minimum_soc()), f64::max);
        let lowest = (lowest_soc < battery.minimum_soc()).then_some((lowest_soc, of_floor));
        let limits = lowest.into_iter().chain([(battery.minimum_soc(), of_floor)]).chain(high);
        let limits: Vec<(f64, f64)> = limits.map(|(x, y)| (x * capacity_kwh, y * nominal_kwh)).collect();
        Self {
            power_kwh: nominal_kwh * battery.capacity_power.points().iter().fold(0.0, |most, (_, y)| y.max(most)),
            floor_kwh,
            full_kwh: capacity_kwh,
            kept: (1.0 - battery.loss_coefficient).powf(hours),
            has_loss: battery.loss_coefficient > 0.0,
            least_efficiency: curve.points().iter().fold(1.0, |least: f64, (_, y)| y.min(least)).sqrt(),
            gains: few(upper_hull(&gains)),
            takes: few(upper_hull(&takes)).into_iter().map(|(slope, height)| (-slope, -height)).collect(),
            powers: upper_hull(&limits),
        }
    }

    /// A state of charge that is known.
    pub(super) fn known(&self, soc: f64) -> Stored {
        let kwh = soc * self.full_kwh;
        Stored { now: Err(kwh), floor_kwh: self.floor_kwh.min(kwh) }
    }

    /// Adds a step after the stored energy `before`, with at most the given charge and discharge.
    pub(super) fn add(&self, program: &mut Program, before: Stored, [charge_kwh, discharge_kwh]: [f64; 2]) -> Step {
        let charge = program.variable(0.0, 0.0, charge_kwh.min(self.power_kwh));
        let discharge = (discharge_kwh > 0.0).then(|| program.variable(0.0, 0.0, discharge_kwh.min(self.power_kwh)));
        let Stored { now, floor_kwh } = before;
        let after = program.variable(0.0, floor_kwh, self.full_kwh);
        let span_kwh = self.full_kwh - floor_kwh;
        let gained = linear(program, charge, &self.gains, span_kwh, 1.0);
        let taken = discharge.map(|discharge| linear(program, discharge, &self.takes, span_kwh, -1.0));
        let (known_kwh, variable) = (now.err().unwrap_or(0.0), now.ok());
        let before = |factor: f64| variable.map(|variable| (variable, factor));
        program.at_most(
            [(after, 1.0), (gained.0, -gained.1)]
                .into_iter()
                .chain(taken.map(|(taken, factor)| (taken, self.kept * factor)))
                .chain(before(-self.kept)),
            self.kept * known_kwh + (1.0 - self.kept) * floor_kwh,
        );
        if !self.has_loss || floor_kwh == 0.0 {
            // Energy is not lost on purpose, which would soften ramps: at worst all of it has the smallest efficiency.
            let least = self.least_efficiency;
            program.at_most(
                [(after, -1.0), (charge, self.kept * least)]
                    .into_iter()
                    .chain(discharge.map(|discharge| (discharge, -1.0 / least)))
                    .chain(before(self.kept)),
                -self.kept * known_kwh,
            );
        }
        if let Some(taken) = taken {
            // Nothing is taken below the floor; a line above that, where the energy may be less.
            let share = (self.full_kwh - self.floor_kwh) / span_kwh.max(f64::MIN_POSITIVE);
            program.at_most([taken].into_iter().chain(before(-share)), share * (known_kwh - floor_kwh));
        }
        for (slope, height) in &self.powers {
            let both = [(charge, 1.0)].into_iter().chain(discharge.map(|discharge| (discharge, 1.0)));
            program.at_most(both.chain(before(-slope)), height + slope * known_kwh);
        }
        Step { charge, discharge, stored: after }
    }
}

/// The smallest action between the limits after which the state of charge is `soc`, or the one that comes closest; the state of charge
/// rises with the action. A larger one than needed would ask for power that limits count and the battery does not take.
pub(super) fn action_towards(soc: f64, [least, most]: [f64; 2], after: impl Fn(f64) -> f64) -> f32 {
    const CLOSE: f64 = 1e-9;
    let idle = after(0.0);
    // Standing losses are not replaced by nothing: idle where that is close enough.
    if (idle - soc).abs() < CLOSE {
        return 0.0;
    }
    let most = if soc > idle { most } else { least };
    let is_reached = |share: f64| (after(share * most) - soc) * most.signum() >= -CLOSE;
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if is_reached(middle) { high = middle } else { low = middle }
    }
    (high * most) as f32
}

/// A variable and its factor that is limited by `lines` of `of`, from above (`sign` 1) or below (-1).
fn linear(program: &mut Program, of: Variable, lines: &[(f64, f64)], most: f64, sign: f64) -> (Variable, f64) {
    if let [(slope, height)] = lines
        && height.abs() < 1e-12
    {
        return (of, *slope);
    }
    let variable = program.variable(0.0, 0.0, most);
    for (slope, height) in lines {
        program.at_most([(variable, sign), (of, -sign * slope)], sign * height);
    }
    (variable, 1.0)
}

/// Slope and height of the edges of the smallest concave function above `points`, which are ordered by `x`.
fn upper_hull(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut hull: Vec<(f64, f64)> = Vec::new();
    for point in points {
        while let [.., a, b] = hull[..]
            && (b.1 - a.1) * (point.0 - a.0) <= (point.1 - a.1) * (b.0 - a.0)
        {
            hull.pop();
        }
        match hull.last() {
            Some(last) if last.0 == point.0 => {
                let highest = last.1.max(point.1);
                hull.pop();
                hull.push((point.0, highest));
            }
            _ => hull.push(*point),
        }
    }
    let edge = |pair: &[(f64, f64)]| {
        let slope = (pair[1].1 - pair[0].1) / (pair[1].0 - pair[0].0);
        (slope, pair[0].1 - slope * pair[0].0)
    };
    hull.windows(2).map(edge).collect()
}

/// At most four of the lines, the first and the last among them: fewer lines are a weaker limit, and a smaller program.
fn few(lines: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    const MOST: usize = 4;
    if lines.len() <= MOST {
        return lines;
    }
    let last = lines.len() - 1;
    (0..MOST).map(|i| lines[i * last / (MOST - 1)]).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::BatteryState;
    use super::super::super::Curve;
    use super::*;

    fn battery() -> Battery {
        let curve = [(0.0, 0.83), (0.3, 0.83), (0.7, 0.9), (0.8, 0.9), (1.0, 0.85)];
        Battery {
            capacity_kwh: 6.4,
            nominal_power_kw: 5.0,
            efficiency: 0.9,
            loss_coefficient: 0.006,
            capacity_loss_coefficient: 1e-5,
            depth_of_discharge: 0.9,
            initial_soc: 0.4,
            power_efficiency: Curve::through("curve", &curve).unwrap(),
            capacity_power: Curve::through("curve", &[(0.0, 1.0), (0.8, 1.0), (1.0, 0.2)]).unwrap(),
        }
    }

    #[test]
    fn every_step_of_a_battery_keeps_the_linear_limits() {
        for (hours, loss_coefficient, depth_of_discharge) in
            [(1.0, 0.006, 0.9), (0.25, 0.006, 0.9), (1.0, 0.0, 0.9), (1.0, 0.006, 1.0)]
        {
            let battery = Battery { loss_coefficient, depth_of_discharge, ..battery() };
            let device = Device::new(&battery, hours, 0.0);
            let below = |lines: &[(f64, f64)], x: f64| lines.iter().fold(f64::MAX, |y, (s, h)| y.min(s * x + h));
            let above = |lines: &[(f64, f64)], x: f64| lines.iter().fold(0.0_f64, |y, (s, h)| y.max(s * x + h));
            for start in 0..=40 {
                for request in -40..=40 {
                    let soc = f64::from(start) / 40.0;
                    let mut state = BatteryState { soc, ..battery.start_clean() };
                    let energy = battery.step_clean(&mut state, f64::from(request) / 40.0, hours);
                    let (charge, discharge) = (energy.max(0.0), (-energy).max(0.0));
                    let start = device.known(soc);
                    let inside = |soc: f64| (soc * battery.capacity_kwh).max(start.floor_kwh);
                    let (before, after) = (inside(soc), inside(state.soc));
                    let (gain, take) = (below(&device.gains, charge), above(&device.takes, discharge));
                    let room = device.kept * before + gain - device.kept * take + (1.0 - device.kept) * start.floor_kwh;
                    assert!(after <= room + 1e-9, "{soc} {request}: {after} above {room}");
                    if !device.has_loss || start.floor_kwh == 0.0 {
                        let least = device.least_efficiency;
                        let least = device.kept * (before + charge * least) - discharge / least;
                        assert!(after >= least - 1e-9, "{soc} {request}: {after} below {least}");
                    }
                    let share = (device.full_kwh - device.floor_kwh) / (device.full_kwh - start.floor_kwh);
                    let free = share * (before - start.floor_kwh);
                    assert!(take <= free + 1e-9, "{soc} {request}: takes {take} of {free}");
                    let most = below(&device.powers, before);
                    assert!(charge + discharge <= most + 1e-9, "{soc} {request}: {energy} above {most}");
                }
            }
        }
    }

    #[test]
    fn a_constant_efficiency_needs_one_line() {
        let device = Device::new(&Battery { power_efficiency: Curve::constant(0.81), ..battery() }, 1.0, 0.4);
        assert_eq!((device.gains.len(), device.takes.len(), device.powers.len()), (1, 1, 2));
        assert!((device.gains[0].0 - 0.9).abs() < 1e-12 && (device.takes[0].0 - 1.0 / 0.9).abs() < 1e-12);
    }
}
