//! Bookkeeping of the slots of a ring, on the host.

use rand::{Rng, RngExt};

/// Bookkeeping of a ring of slots that are written in order.
///
/// The open slot holds the newest observation and waits for its action and outcome. A slot with an outcome is a start: its
/// transition ends in the next slot that is a start or open. Slots between them hold only observations before a reset, to
/// which [`Ring::end`] points from the starts with truncated rows.
#[derive(Debug, Clone)]
pub(super) struct Ring {
    starts: Vec<bool>,
    /// Per start the slot with the observations before the reset of truncated rows, else [`NO_END`]: a ring has millions of slots.
    ends: Vec<u32>,
    n_ends: usize,
    n_starts: usize,
    open: Option<usize>,
    /// Slots with an observation: all up to the open one, or all after the ring has wrapped.
    written: usize,
}

/// No slot has this number: rows are counted in 31 bits.
const NO_END: u32 = u32::MAX;

impl Ring {
    pub fn new(n_slots: usize) -> Self {
        Self {
            starts: vec![false; n_slots],
            ends: vec![NO_END; n_slots],
            n_ends: 0,
            n_starts: 0,
            open: None,
            written: 0,
        }
    }

    /// Bytes of a ring.
    pub fn bytes(n_slots: usize) -> usize {
        n_slots * (size_of::<bool>() + size_of::<u32>())
    }

    /// Restores a ring of `n_slots` from the written ones; `None` if the parts are inconsistent.
    pub fn from_parts(
        n_slots: usize,
        mut starts: Vec<bool>,
        ends: Vec<Option<usize>>,
        open: Option<usize>,
    ) -> Option<Self> {
        let written = starts.len();
        let n_starts = starts.iter().filter(|start| **start).count();
        let fits = match open {
            None => written == 0,
            Some(open) => open < written && written <= n_slots && !starts[open],
        };
        let n_ends = ends.iter().flatten().count();
        // One more slot holds the observations before the latest resets.
        let points = ends.len() == written && ends.iter().flatten().all(|end| *end <= n_slots);
        let only_starts = ends.iter().zip(&starts).all(|(end, start)| end.is_none() || *start);
        if !(fits && points && only_starts) {
            return None;
        }
        let mut ends: Vec<u32> = ends.into_iter().map(|end| end.map_or(NO_END, |end| end as u32)).collect();
        starts.resize(n_slots, false);
        ends.resize(n_slots, NO_END);
        Some(Self { starts, ends, n_ends, n_starts, open, written })
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

    /// The slot with the next observations of a start, for rows that were not truncated.
    pub fn after(&self, slot: usize) -> usize {
        let mut next = self.beside(slot);
        while !self.starts[next] && self.open.is_some_and(|open| open != next) {
            next = self.beside(next);
        }
        next
    }

    /// The slot with the observations before the reset of truncated rows of a start.
    pub fn end(&self, slot: usize) -> Option<usize> {
        let end = self.ends[slot];
        (end != NO_END).then_some(end as usize)
    }

    /// Whether any start has truncated rows.
    pub fn has_ends(&self) -> bool {
        self.n_ends > 0
    }

    /// Sets [`Ring::end`] of a start.
    pub fn set_end(&mut self, slot: usize, end: usize) {
        self.n_ends += usize::from(std::mem::replace(&mut self.ends[slot], end as u32) == NO_END);
    }

    /// Replaces the end `from` by `to` in the newest `n` starts before the slot `to`; returns those that had it. The cost does
    /// not depend on the number of slots.
    pub fn move_ends(&mut self, from: usize, to: usize, n: usize) -> Vec<usize> {
        let (mut moved, mut slot) = (Vec::new(), to);
        let mut left = n.min(self.n_starts);
        while left > 0 {
            slot = self.before(slot);
            left -= usize::from(self.starts[slot]);
            if self.end(slot) == Some(from) {
                self.ends[slot] = to as u32;
                moved.push(slot);
            }
        }
        moved
    }

    fn beside(&self, slot: usize) -> usize {
        (slot + 1) % self.n_slots()
    }

    fn before(&self, slot: usize) -> usize {
        (slot + self.n_slots() - 1) % self.n_slots()
    }

    /// Opens the next slot; returns it and whether a start was overwritten.
    pub fn advance(&mut self) -> (usize, bool) {
        let slot = self.open.map_or(0, |open| self.beside(open));
        self.n_ends -= usize::from(std::mem::replace(&mut self.ends[slot], NO_END) != NO_END);
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

    /// The start after the transition from `slot`, if there is one.
    pub fn follower(&self, slot: usize) -> Option<usize> {
        let next = self.after(slot);
        (self.open != Some(next) || self.starts[next]).then_some(next)
    }

    /// The start whose next observation is in `slot`, if it is still stored.
    pub fn leader(&self, slot: usize) -> Option<usize> {
        let mut previous = self.before(slot);
        while !self.starts[previous] && previous != slot && self.open != Some(previous) {
            previous = self.before(previous);
        }
        (self.starts[previous] && previous != slot && self.after(previous) == slot).then_some(previous)
    }

    /// A uniformly random row of a start.
    pub fn draw(&self, n_rows: usize, rng: &mut (impl Rng + ?Sized)) -> usize {
        // A fixed width, so that a run is the same on every platform. With at most two resets in turn, a third of the slots are starts.
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

    /// Opens, completes and skips slots: `s` completes the open one, `e` does so when an episode was truncated.
    fn ring(n_slots: usize, steps: &str) -> Ring {
        let mut ring = Ring::new(n_slots);
        ring.advance();
        for step in steps.chars() {
            let start = ring.complete().expect("it is open");
            if step == 'e' {
                let (end, _) = ring.advance();
                ring.set_end(start, end);
            }
            ring.advance();
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
        assert_eq!([0, 1, 3].map(|slot| ring.after(slot)), [1, 3, 4]);
        assert_eq!([0, 1, 3].map(|slot| ring.end(slot)), [None, Some(2), None]);
        assert_eq!(ring.leader(4), Some(3));
    }

    #[test]
    fn the_oldest_slots_do_not_follow_the_newest() {
        // Slots: 3 and 4 are old, 0 to 2 new: 0 start, 1 successor, 2 open; then 3 old start, 4 old start.
        let ring = ring(5, "ssssse");
        assert_eq!(ring.starts(), [true, false, false, true, true]);
        assert_eq!([3, 4, 0].map(|slot| ring.follower(slot)), [Some(4), Some(0), None]);
        assert_eq!([3, 4, 0].map(|slot| ring.leader(slot)), [None, Some(3), Some(4)]);
        assert_eq!((ring.leader(2), ring.has_ends()), (Some(0), true));
    }

    #[test]
    fn rings_that_cannot_be_are_refused() {
        let sound = ring(6, "ses");
        let written = sound.written();
        let (starts, ends) = (sound.starts()[..written].to_vec(), (0..written).map(|slot| sound.end(slot)));
        let ends: Vec<Option<usize>> = ends.collect();
        let restored = Ring::from_parts(6, starts.clone(), ends.clone(), sound.open()).expect("it is sound");
        assert_eq!((restored.starts(), &restored.ends, restored.open()), (sound.starts(), &sound.ends, sound.open()));
        assert_eq!((restored.written(), restored.n_starts(), restored.n_ends), (5, 3, 1));
        let without = |starts: Vec<bool>, open, n_slots| {
            let ends = vec![None; starts.len()];
            Ring::from_parts(n_slots, starts, ends, open)
        };
        assert!(without(vec![true; 3], Some(1), 3).is_none());
        assert!(without(vec![false; 3], Some(3), 3).is_none());
        assert!(without(vec![false; 4], Some(0), 3).is_none());
        assert!(without(vec![true], None, 3).is_none());
        assert!(without(Vec::new(), None, 3).is_some());
        for (slot, end) in [(1, 7), (2, 0)] {
            let mut ends = ends.clone();
            ends[slot] = Some(end);
            assert!(Ring::from_parts(6, starts.clone(), ends, sound.open()).is_none(), "{slot} to {end}");
        }
    }
}
