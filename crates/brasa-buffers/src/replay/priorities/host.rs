//! The sum tree in plain memory.

use std::ops::Range;

/// Children per node: a cache line, and seven levels for a million leaves.
const FAN: usize = 8;

/// A tree of sums, from which proportional prioritized replay (Schaul et al. 2016) samples: it finds the number at a place of the cumulative sum.
///
/// A change and a search take a few steps for a million numbers. Every sum is computed from its parts in 64 bits, so errors do not add up.
/// [`ReplayBuffer`](crate::ReplayBuffer) contains such a tree. `SumTree` is for a custom memory.
///
/// ```
/// use brasa_buffers::SumTree;
///
/// let mut tree = SumTree::new(4);
/// for (place, priority) in [1.0, 0.0, 3.0, 2.0].into_iter().enumerate() {
///     tree.set(place, priority);
/// }
/// assert_eq!(tree.total(), 6.0);
/// // The numbers lie one after the other on a line of length 6.
/// assert_eq!([0.0, 0.9, 1.0, 3.9, 4.0].map(|point| tree.find(point)), [0, 0, 2, 2, 3]);
/// ```
#[derive(Debug, Clone)]
pub struct SumTree {
    /// Level 0 holds the numbers, every further level the sums over `FAN` neighbors.
    levels: Vec<Vec<f64>>,
    /// The largest number so far.
    pub(super) largest: f64,
}

impl SumTree {
    /// A tree of `n_leaves` zeros.
    ///
    /// # Panics
    /// If there is none.
    pub fn new(n_leaves: usize) -> Self {
        assert!(n_leaves > 0, "a tree has a number");
        let mut levels = vec![vec![0.0; n_leaves]];
        let mut width = n_leaves;
        while width > 1 {
            width = width.div_ceil(FAN);
            levels.push(vec![0.0; width]);
        }
        Self { levels, largest: 1.0 }
    }

    /// How many numbers there are.
    #[allow(clippy::len_without_is_empty, reason = "there is one")]
    pub fn len(&self) -> usize {
        self.levels[0].len()
    }

    /// The number at `leaf`.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn get(&self, leaf: usize) -> f64 {
        self.levels[0][leaf]
    }

    /// All numbers.
    pub fn leaves(&self) -> &[f64] {
        &self.levels[0]
    }

    /// The sum of all numbers.
    pub fn total(&self) -> f64 {
        self.levels[self.levels.len() - 1][0]
    }

    pub(super) fn bytes(&self) -> usize {
        self.levels.iter().map(|level| level.len() * size_of::<f64>()).sum()
    }

    /// Replaces the number at `leaf`, by one that is at least 0.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn set(&mut self, leaf: usize, value: f64) {
        self.fill(leaf..leaf + 1, value);
    }

    /// Sets all leaves in `range` to `value`.
    pub(super) fn fill(&mut self, range: Range<usize>, value: f64) {
        self.levels[0][range.clone()].fill(value);
        self.sum_up(range);
    }

    /// Replaces a leaf that is above 0.
    pub(super) fn replace(&mut self, leaf: usize, value: f64) {
        if self.levels[0][leaf] > 0.0 {
            self.largest = self.largest.max(value);
            self.levels[0][leaf] = value;
            self.sum_up(leaf..leaf + 1);
        }
    }

    pub(super) fn set_leaves(&mut self, largest: f64, leaves: &[f64]) {
        self.largest = largest;
        self.levels[0].fill(0.0);
        self.levels[0][..leaves.len()].copy_from_slice(leaves);
        self.sum_up(0..self.levels[0].len());
    }

    /// The first number at which the sum of all up to it exceeds `point`, from 0 to [`SumTree::total`]; never one that is 0, unless all are.
    pub fn find(&self, mut point: f64) -> usize {
        let mut node = 0;
        for level in self.levels.iter().rev().skip(1) {
            let first = node * FAN;
            let (child, rest) = pick(&level[first..level.len().min(first + FAN)], point);
            (node, point) = (first + child, rest);
        }
        node
    }

    /// Recomputes the sums above the leaves in `range`.
    fn sum_up(&mut self, mut range: Range<usize>) {
        for i in 1..self.levels.len() {
            range = range.start / FAN..range.end.div_ceil(FAN);
            let (below, above) = self.levels.split_at_mut(i);
            let (below, above) = (&below[i - 1], &mut above[0]);
            for node in range.clone() {
                above[node] = below[node * FAN..below.len().min((node + 1) * FAN)].iter().sum();
            }
        }
    }
}

/// The child that contains `point`, and the rest of `point` in it.
fn pick(children: &[f64], mut point: f64) -> (usize, f64) {
    for (i, value) in children.iter().enumerate() {
        // Never true for 0.
        if point < *value {
            return (i, point);
        }
        point -= value;
    }
    // By rounding the point exceeds the end: take the last child above 0, and the last of its children.
    (children.iter().rposition(|value| *value > 0.0).unwrap_or(0), f64::INFINITY)
}
