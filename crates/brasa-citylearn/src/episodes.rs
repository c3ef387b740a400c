//! Length and start of episodes, and the weeks that they leave out.

use std::ops::Range;

use brasa_env::EnvRng;
use brasa_power::{EnergyError, Starts, fail};
use rand::RngExt;

use super::{CityLearnConfig, world::World};

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
            None => Starts::first(available - steps + 1),
            Some(weeks) => {
                let unit = (whole.steps_per_week(), weeks);
                Starts::between(available, steps, unit, ["held_out_weeks", "episode_steps"])?
            }
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

    /// All rows of all episodes.
    pub(super) fn rows(&self) -> impl Iterator<Item = Range<usize>> {
        let (starts, steps) = (if self.random_start { self.starts } else { Starts::first(1) }, self.steps);
        let first_row = self.first_row;
        starts.places().map(move |place| first_row + place..first_row + place + steps)
    }

    /// The first row of an episode; `rng` gives its random numbers.
    pub(super) fn first_row(&self, rng: impl FnOnce() -> EnvRng) -> usize {
        if self.random_start { self.starts.place(rng().random_range(0..=self.starts.n - 1)) } else { self.first_row }
    }

    /// Episodes over the whole data.
    pub(super) fn whole(world: &World) -> Self {
        let steps_per_day = world.steps_per_day() as u32;
        let starts = Starts::first(1);
        Self { steps: world.all_steps(), steps_per_day, first_row: 0, random_start: false, shaped: false, starts }
    }
}
