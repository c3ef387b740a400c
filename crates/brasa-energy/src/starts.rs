//! Where episodes start, and the days that are held out from training.

use std::collections::BTreeSet;
use std::ops::Range;

use brasa_env::{EnvRng, field};
use brasa_power::{EnergyError, Starts, fail};
use rand::RngExt;

use crate::calendar::Calendar;

/// What is held out from training: of every so many days or weeks, the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeldOut {
    /// Length of a part, in days.
    pub(crate) days: u32,
    every: u32,
    /// The setting.
    pub(crate) field: &'static str,
}

impl HeldOut {
    /// From the settings `held_out_days` and `held_out_weeks`, of which at most one may be set.
    ///
    /// # Errors
    /// [`EnergyError::Field`] if both are set, or one is set where the days of `calendar` are not those of files.
    pub(crate) fn new(days: Option<u32>, weeks: Option<u32>, calendar: Calendar) -> Result<Option<Self>, EnergyError> {
        let held_out = match (days, weeks) {
            (None, None) => return Ok(None),
            (Some(every), None) => Self { days: 1, every, field: "held_out_days" },
            (None, Some(every)) => Self { days: 7, every, field: "held_out_weeks" },
            (Some(_), Some(weeks)) => return fail("held_out_weeks", "must not come with `held_out_days`", weeks),
        };
        let rule = "needs files with days, which are held out";
        field::rule(calendar != Calendar::Year, held_out.field, rule, held_out.every)?;
        Ok(Some(held_out))
    }

    /// The days on which episodes of training of `steps` steps may start.
    ///
    /// # Errors
    /// [`EnergyError::Field`] where the calendar has no room for what is held out, or no room for an episode between two parts.
    pub(crate) fn starts(self, n_days: u32, steps: u32, steps_per_day: u32) -> Result<Starts, EnergyError> {
        let most = self.every.saturating_sub(1) * self.days * steps_per_day;
        if steps > most && self.every > 1 {
            let rule = format!("must be at most {most}, the steps between two parts that are held out");
            return fail("episode_steps", &rule, steps);
        }
        let (unit, length) = ((self.days as usize, self.every as usize), steps.div_ceil(steps_per_day) as usize);
        Starts::between(n_days as usize, length, unit, [self.field, "episode_steps"])
    }

    /// The days of each part.
    pub(crate) fn parts(self, n_days: u32) -> impl Iterator<Item = Range<u32>> {
        let (days, period) = (self.days, self.every * self.days);
        (1..=n_days / period).map(move |i| i * period - days..i * period)
    }

    /// Whether `day` is held out; the last part may be cut by the end of the data.
    pub(crate) fn contains(self, day: u32) -> bool {
        day / self.days % self.every == self.every - 1
    }
}

/// How the first days of episodes are chosen.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FirstDay {
    /// At random.
    Random(Starts),
    /// One after the other, by the index of the episode.
    InOrder(Vec<u32>),
}

impl FirstDay {
    /// The first day of the episode with index `episode`.
    pub(crate) fn of(&self, episode: u64, rng: &mut EnvRng) -> u32 {
        match self {
            Self::Random(starts) => starts.place(rng.random_range(0..starts.n as u32) as usize) as u32,
            Self::InOrder(days) => days[(episode % days.len() as u64) as usize],
        }
    }

    /// All days on which an episode may start.
    pub(crate) fn days(&self) -> Vec<u32> {
        match self {
            Self::Random(starts) => starts.places().map(|day| day as u32).collect(),
            Self::InOrder(days) => days.clone(),
        }
    }

    /// The days that episodes of `steps` steps may reach.
    pub(crate) fn reached(&self, steps: u32, steps_per_day: u32) -> BTreeSet<u32> {
        self.days().into_iter().flat_map(|first| first..first + steps.div_ceil(steps_per_day)).collect()
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_are_held_out_are_whole_and_no_start_reaches_them() {
        for (days, weeks, n_days, length) in [(Some(4), None, 31, 2), (None, Some(3), 100, 5), (Some(2), None, 9, 1)] {
            let held_out =
                HeldOut::new(days, weeks, Calendar::Dates(0, n_days.into())).expect("one is set").expect("one is set");
            let parts: Vec<u32> = held_out.parts(n_days).flatten().collect();
            let contained: Vec<u32> = (0..n_days).filter(|day| held_out.contains(*day)).collect();
            assert!(!parts.is_empty() && contained.starts_with(&parts), "{parts:?} {contained:?}");
            let starts = held_out.starts(n_days, 24 * length, 24).expect("there is room");
            assert!(starts.n > 0);
            for first in starts.places() {
                assert!((first..first + length as usize).all(|day| !parts.contains(&(day as u32))), "{first}");
            }
        }
        assert!(HeldOut::new(Some(2), Some(2), Calendar::Dates(0, 9)).is_err());
    }
}
