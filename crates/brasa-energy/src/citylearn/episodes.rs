//! Length and start of episodes, and the weeks that they leave out.

use brasa_env::EnvRng;
use rand::RngExt;

use super::{CityLearnConfig, world::World};
use crate::{EnergyError, error::fail};

/// Length and start of episodes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Episodes {
    pub(super) steps: usize,
    pub(super) steps_per_day: u32,
    /// First row of an episode that does not start at a random one.
    first_row: usize,
    random_start: bool,
    /// Whether rewards are shaped.
    pub(super) shaped: bool,
    starts: Starts,
}

impl Episodes {
    pub(super) fn new(config: &CityLearnConfig, world: &World) -> Result<Self, EnergyError> {
        let available = world.all_steps();
        let steps = config.episode_steps.unwrap_or(available);
        if steps > available {
            return fail("episode_steps", &format!("must be at most {available}, the steps in the data"), steps);
        }
        let whole = Self::whole(world);
        let starts = match config.held_out_weeks {
            None => Starts { n: available - steps + 1, ..whole.starts },
            Some(weeks) => Starts::between(available, steps, whole.steps_per_week(), weeks)?,
        };
        Ok(Self { steps, starts, random_start: config.random_start, shaped: config.shaped, ..whole })
    }

    /// The episode of `steps` steps from `first_row`.
    pub(super) fn of(world: &World, first_row: usize, steps: usize) -> Self {
        Self { steps, first_row, ..Self::whole(world) }
    }

    pub(super) fn steps_per_week(&self) -> usize {
        7 * self.steps_per_day as usize
    }

    /// The rows at which episodes start, if they start at random rows.
    pub(super) fn starts(&self) -> Option<Starts> {
        self.random_start.then_some(self.starts)
    }

    /// The first row of an episode; `rng` gives its random numbers.
    pub(super) fn first_row(&self, rng: impl FnOnce() -> EnvRng) -> usize {
        if self.random_start { self.starts.row(rng().random_range(0..=self.starts.n - 1)) } else { self.first_row }
    }

    /// Episodes over the whole data.
    pub(super) fn whole(world: &World) -> Self {
        let steps_per_day = world.steps_per_day() as u32;
        let starts = Starts { n: 1, per_block: usize::MAX, gap: 0 };
        Self { steps: world.all_steps(), steps_per_day, first_row: 0, random_start: false, shaped: false, starts }
    }
}

/// Rows at which episodes may start: blocks of consecutive rows with gaps between them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Starts {
    /// Number of rows.
    pub(super) n: usize,
    /// Number of rows of a block.
    pub(super) per_block: usize,
    /// Number of other rows after a block.
    pub(super) gap: usize,
}

impl Starts {
    /// Starts of episodes of `steps` steps that do not reach into every `weeks`-th week of `available` rows.
    fn between(available: usize, steps: usize, week: usize, weeks: usize) -> Result<Self, EnergyError> {
        let (block, period) = ((weeks - 1) * week, weeks * week);
        if period > available {
            let rule = format!("must be at most {}, the weeks in the data", available / week);
            return fail("held_out_weeks", &rule, weeks);
        }
        if steps > block {
            let rule = format!("must be at most {block}, the rows between two weeks that are held out");
            return fail("episode_steps", &rule, steps);
        }
        let per_block = block - steps + 1;
        let rest = (available % period).min(block);
        let n = available / period * per_block + (rest + 1).saturating_sub(steps);
        Ok(Self { n, per_block, gap: period - per_block })
    }

    /// The row of start `index`.
    fn row(&self, index: usize) -> usize {
        index + index / self.per_block * self.gap
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::*;

    #[test]
    fn starts_are_the_rows_from_which_no_week_that_is_held_out_is_reached() {
        for (available, steps, week, weeks) in
            [(8759, 24, 168, 4), (100, 5, 7, 2), (100, 7, 7, 2), (28, 3, 7, 4), (31, 3, 7, 4)]
        {
            let starts = Starts::between(available, steps, week, weeks).expect("there is room");
            let found: Vec<usize> = (0..starts.n).map(|index| starts.row(index)).collect();
            let is_free = |row: &usize| (*row..row + steps).all(|row| row / week % weeks != weeks - 1);
            let expected: Vec<usize> = (0..=available - steps).filter(is_free).collect();
            assert_eq!(found, expected, "{available} {steps} {week} {weeks}");
        }
    }
}
