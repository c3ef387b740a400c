//! Limits on the power of a building's chargers, in all and on each phase.
//!
//! Requests to charge are scaled down, all by the same factor, until they fit the limit of the building, then those of each
//! phase. What they were above the limits is the violation. Discharging is not limited.

use super::{Charger, Physics};

/// The limits of one building.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ChargingLimits {
    pub(super) building: usize,
    /// Limit of all chargers, in kW.
    pub(super) building_kw: Option<f64>,
    pub(super) phases: Vec<Phase>,
}

/// One phase of a building.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Phase {
    pub(super) name: String,
    pub(super) limit_kw: Option<f64>,
    /// Indices of its chargers in the district.
    pub(super) chargers: Vec<usize>,
}

impl ChargingLimits {
    /// Numbers that [`ChargingLimits::apply`] shows: the room below each limit, then the violation.
    pub(super) fn n_shown(&self) -> usize {
        self.limits_kw().count() + 1
    }

    /// The limits in the order in which they are shown.
    pub(super) fn limits_kw(&self) -> impl Iterator<Item = f64> {
        self.building_kw.into_iter().chain(self.phases.iter().filter_map(|phase| phase.limit_kw))
    }

    /// What is shown without requests: the limits, and no violation.
    pub(super) fn show_idle(&self, shown: &mut [f64]) {
        shown.iter_mut().zip(self.limits_kw().chain([0.0])).for_each(|(slot, value)| *slot = value);
    }

    /// Scales the actions of the district's chargers, which are fractions of their largest power, to fit the limits.
    /// Writes the room below each limit, in kW, then the violation, in kWh, and returns the latter.
    ///
    /// `is_counted` is whether a charger's request counts: CityLearn also counts chargers without a vehicle.
    pub(super) fn apply(
        &self,
        chargers: &[Charger],
        actions: &mut [f64],
        is_counted: impl Fn(usize) -> bool,
        physics: Physics,
        hours: f64,
        shown: &mut [f64],
    ) -> f64 {
        let most = |charger: usize| chargers[charger].max_charging_kw;
        let request = |charger: usize, action: f64| {
            let power = action.max(0.0) * most(charger);
            let reaches = physics == Physics::CityLearn25 || power >= chargers[charger].min_charging_kw;
            if reaches && is_counted(charger) { power } else { 0.0 }
        };
        let mine = || (0..chargers.len()).filter(|charger| chargers[*charger].building == self.building);
        for charger in mine() {
            if actions[charger] > 0.0 && is_counted(charger) && request(charger, actions[charger]) == 0.0 {
                actions[charger] = 0.0;
            }
        }
        let mut violation_kw = 0.0;
        let mut fit = |sum_kw: f64, limit_kw: f64| {
            if sum_kw <= limit_kw {
                return 1.0;
            }
            violation_kw += sum_kw - limit_kw;
            limit_kw / sum_kw
        };
        if let Some(limit_kw) = self.building_kw {
            let factor = fit(mine().map(|charger| request(charger, actions[charger])).sum(), limit_kw);
            scale(actions, mine(), factor);
        }
        for (phase, limit_kw) in self.phases.iter().filter_map(|phase| Some((phase, phase.limit_kw?))) {
            // A power that is scaled below the charger's smallest one still uses its share here.
            let sum = phase.chargers.iter().filter(|charger| is_counted(**charger));
            let factor = fit(sum.map(|charger| actions[*charger].max(0.0) * most(*charger)).sum(), limit_kw);
            scale(actions, phase.chargers.iter().copied(), factor);
        }
        let used = |charger: usize| if is_counted(charger) { actions[charger].max(0.0) * most(charger) } else { 0.0 };
        let building = self.building_kw.map(|limit_kw| limit_kw - mine().map(used).sum::<f64>());
        let phases = self.phases.iter().filter_map(|phase| {
            Some(phase.limit_kw? - phase.chargers.iter().map(|charger| used(*charger)).sum::<f64>())
        });
        let violation_kwh = violation_kw * hours;
        let all = building.into_iter().chain(phases).chain([violation_kwh]);
        shown.iter_mut().zip(all).for_each(|(slot, value)| *slot = value);
        violation_kwh
    }
}

/// Scales the actions that charge.
fn scale(actions: &mut [f64], chargers: impl Iterator<Item = usize>, factor: f64) {
    if factor < 1.0 {
        for charger in chargers {
            if actions[charger] > 0.0 {
                actions[charger] *= factor;
            }
        }
    }
}
