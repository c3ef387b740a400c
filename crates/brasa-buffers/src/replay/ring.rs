//! Bookkeeping of the slots of a ring, on the host.

use rand::{Rng, RngExt};

/// Bookkeeping of a ring of slots that are written in order.
///
/// The open slot holds the newest observation and waits for its action and outcome. A slot with an outcome is a start:
/// a transition starts there and ends in the following slot. If an episode ended, the following slot holds only the
/// observation before the reset: it is neither start nor open, and two of them are never adjacent.
#[derive(Debug, Clone)]
pub(super) struct Ring {
    starts: Vec<bool>,
    n_starts: usize,
    open: Option<usize>,
    /// Slots with an observation: all up to the open one, or all after the ring has wrapped.
    written: usize,
}

impl Ring {
    pub fn new(n_slots: usize) -> Self {
        Self { starts: vec![false; n_slots], n_starts: 0, open: None, written: 0 }
    }

    /// Restores a ring; `None` if the parts are inconsistent.
    pub fn from_parts(starts: Vec<bool>, open: Option<usize>, written: usize) -> Option<Self> {
        let n_starts = starts.iter().filter(|start| **start).count();
        let fits = match open {
            None => written == 0 && n_starts == 0,
            Some(open) => open < written && written <= starts.len() && !starts[open],
        };
        let beyond = starts.iter().skip(written).any(|start| *start);
        (fits && !beyond).then_some(Self { starts, n_starts, open, written })
    }

    pub fn starts(&self) -> &[bool] {
        &self.starts
    }

    pub fn n_slots(&self) -> usize {
        self.starts.len()
    }

    pub fn n_starts(&self) -> usize {
        self.n_starts
    }

    pub fn open(&self) -> Option<usize> {
        self.open
    }

    pub fn written(&self) -> usize {
        self.written
    }

    pub fn after(&self, slot: usize) -> usize {
        (slot + 1) % self.n_slots()
    }

    fn before(&self, slot: usize) -> usize {
        (slot + self.n_slots() - 1) % self.n_slots()
    }

    /// Opens the next slot; returns it and whether a start was overwritten.
    pub fn advance(&mut self) -> (usize, bool) {
        let slot = self.open.map_or(0, |open| self.after(open));
        let was_start = std::mem::replace(&mut self.starts[slot], false);
        self.n_starts -= usize::from(was_start);
        self.written = self.written.max(slot + 1);
        self.open = Some(slot);
        (slot, was_start)
    }

    /// Makes the open slot a start.
    pub fn complete(&mut self) -> Option<usize> {
        let open = self.open?;
        self.starts[open] = true;
        self.n_starts += 1;
        Some(open)
    }

    /// Whether the open slot has the next observation of a start, so that it must not be overwritten.
    pub fn open_is_successor(&self) -> bool {
        self.open.is_some_and(|open| self.starts[self.before(open)])
    }

    /// The start after the transition from `slot`, if there is one.
    pub fn follower(&self, slot: usize) -> Option<usize> {
        let next = self.after(slot);
        if self.starts[next] {
            return Some(next);
        }
        // The oldest slots come after the open slot.
        let over = self.after(next);
        (self.open != Some(next) && self.starts[over]).then_some(over)
    }

    /// The start before `slot`, if it is still stored.
    pub fn leader(&self, slot: usize) -> Option<usize> {
        let previous = self.before(slot);
        if self.starts[previous] {
            return Some(previous);
        }
        let under = self.before(previous);
        (self.starts[under] && self.follower(under) == Some(slot)).then_some(under)
    }

    /// A uniformly random row of a start.
    pub fn draw(&self, n_rows: usize, rng: &mut impl Rng) -> usize {
        // A fixed width, so that a run is the same on every platform. At least half of the slots are starts.
        let end = u32::try_from(self.written * n_rows).expect("rows are counted in 31 bits");
        loop {
            let row = rng.random_range(0..end) as usize;
            if self.starts[row / n_rows] {
                return row;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opens, completes and skips slots: `s` completes the open one, `e` does so at the end of an episode.
    fn ring(n_slots: usize, steps: &str) -> Ring {
        let mut ring = Ring::new(n_slots);
        ring.advance();
        for step in steps.chars() {
            ring.complete().expect("it is open");
            ring.advance();
            if step == 'e' {
                ring.advance();
            }
        }
        ring
    }

    #[test]
    fn followers_skip_successors_and_stop_at_the_open_slot() {
        // Slots: 0 start, 1 start, 2 successor, 3 start, 4 open, 5 empty.
        let ring = ring(6, "ses");
        assert_eq!(ring.starts(), [true, true, false, true, false, false]);
        assert_eq!([0, 1, 3].map(|slot| ring.follower(slot)), [Some(1), Some(3), None]);
        assert_eq!([0, 1, 3].map(|slot| ring.leader(slot)), [None, Some(0), Some(1)]);
        assert_eq!((ring.n_starts(), ring.written(), ring.open()), (3, 5, Some(4)));
        assert!(ring.open_is_successor());
    }

    #[test]
    fn the_oldest_slots_do_not_follow_the_newest() {
        // Slots: 3 and 4 are old, 0 to 2 new: 0 start, 1 successor, 2 open; then 3 old start, 4 old start.
        let ring = ring(5, "ssssse");
        assert_eq!(ring.starts(), [true, false, false, true, true]);
        assert_eq!([3, 4, 0].map(|slot| ring.follower(slot)), [Some(4), Some(0), None]);
        assert_eq!([3, 4, 0].map(|slot| ring.leader(slot)), [None, Some(3), Some(4)]);
        assert!(!ring.open_is_successor());
    }

    #[test]
    fn rings_that_cannot_be_are_refused() {
        let sound = ring(6, "ses");
        assert!(Ring::from_parts(sound.starts().to_vec(), sound.open(), sound.written()).is_some());
        assert!(Ring::from_parts(vec![true; 3], Some(1), 3).is_none());
        assert!(Ring::from_parts(vec![false; 3], Some(3), 3).is_none());
        assert!(Ring::from_parts(vec![false; 3], Some(0), 4).is_none());
        assert!(Ring::from_parts(vec![false, false, true], Some(0), 2).is_none());
        assert!(Ring::from_parts(vec![true, false, false], None, 0).is_none());
    }
}
