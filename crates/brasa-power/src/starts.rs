//! Where episodes start.

use brasa_env::field;

use crate::EnergyError;

/// Places at which episodes may start, such as days or rows: blocks of consecutive places with gaps between them.
///
/// ```
/// use brasa_power::Starts;
///
/// // 28 days, of which every fourth week is held out; an episode takes 6 days.
/// let starts = Starts::between(28, 6, (7, 4), ["holdout_every", "episode_days"])?;
/// assert_eq!((starts.n, starts.place(15)), (16, 15));
/// // Day 15 is the last one: its episode ends with day 20.
/// assert_eq!(starts.places().last(), Some(15));
/// # Ok::<(), brasa_power::EnergyError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Starts {
    /// Number of places.
    pub n: usize,
    /// Number of places of a block.
    pub per_block: usize,
    /// Number of other places after a block.
    pub gap: usize,
}

impl Starts {
    /// The first `n` places.
    pub fn first(n: usize) -> Self {
        Self { n, per_block: usize::MAX, gap: 0 }
    }

    /// Starts of episodes of `length` that do not reach into what is held out of `available` places: the last `unit` of each
    /// `every * unit`. `fields` are the names of the two settings.
    pub fn between(
        available: usize,
        length: usize,
        (unit, every): (usize, usize),
        fields: [&'static str; 2],
    ) -> Result<Self, EnergyError> {
        let (block, period) = (every.saturating_sub(1) * unit, every * unit);
        let rule = format!("must be at least 2 and at most {}, as many as the data have", available / unit);
        field::rule(every >= 2 && period <= available, fields[0], rule, every)?;
        let rule = format!("must be at most {block}, between two parts that are held out");
        field::rule(length <= block, fields[1], rule, length)?;
        let per_block = block - length + 1;
        let rest = (available % period).min(block);
        let n = available / period * per_block + (rest + 1).saturating_sub(length);
        Ok(Self { n, per_block, gap: period - per_block })
    }

    /// The place of start `index`.
    pub fn place(&self, index: usize) -> usize {
        index + index / self.per_block * self.gap
    }

    /// All places.
    pub fn places(self) -> impl Iterator<Item = usize> {
        (0..self.n).map(move |index| self.place(index))
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::*;

    #[test]
    fn starts_are_the_places_from_which_nothing_that_is_held_out_is_reached() {
        for (available, length, unit, every) in
            [(8759, 24, 168, 4), (100, 5, 7, 2), (100, 7, 7, 2), (28, 3, 7, 4), (31, 3, 7, 4), (7, 2, 1, 4)]
        {
            let starts = Starts::between(available, length, (unit, every), ["", ""]).expect("there is room");
            let found: Vec<usize> = starts.places().collect();
            let is_free = |place: &usize| (*place..place + length).all(|place| place / unit % every != every - 1);
            let expected: Vec<usize> = (0..=available - length).filter(is_free).collect();
            assert_eq!(found, expected, "{available} {length} {unit} {every}");
        }
    }
}
