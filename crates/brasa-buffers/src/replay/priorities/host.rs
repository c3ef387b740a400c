//! The sum tree in plain memory.

use std::ops::Range;

/// Children per node: a cache line, and seven levels for a million leaves.
const FAN: usize = 8;

/// A sum tree in 64 bits: level 0 holds the leaves, every further level the sums over `FAN` neighbors.
#[derive(Debug, Clone)]
pub(super) struct HostTree {
    levels: Vec<Vec<f64>>,
    /// The largest leaf so far.
    pub largest: f64,
}

impl HostTree {
    pub fn new(n_leaves: usize) -> Self {
        let mut levels = vec![vec![0.0; n_leaves]];
        let mut width = n_leaves;
        while width > 1 {
            width = width.div_ceil(FAN);
            levels.push(vec![0.0; width]);
        }
        Self { levels, largest: 1.0 }
    }

    pub fn get(&self, leaf: usize) -> f64 {
        self.levels[0][leaf]
    }

    pub fn leaves(&self) -> &[f64] {
        &self.levels[0]
    }

    pub fn sum(&self) -> f64 {
        self.levels[self.levels.len() - 1][0]
    }

    pub fn bytes(&self) -> usize {
        self.levels.iter().map(|level| level.len() * size_of::<f64>()).sum()
    }

    /// Sets all leaves in `range` to `value`.
    pub fn fill(&mut self, range: Range<usize>, value: f64) {
        self.levels[0][range.clone()].fill(value);
        self.sum_up(range);
    }

    /// Replaces a leaf that is above 0.
    pub fn replace(&mut self, leaf: usize, value: f64) {
        if self.levels[0][leaf] > 0.0 {
            self.largest = self.largest.max(value);
            self.levels[0][leaf] = value;
            self.sum_up(leaf..leaf + 1);
        }
    }

    pub fn set_leaves(&mut self, largest: f64, leaves: &[f64]) {
        self.largest = largest;
        self.levels[0].fill(0.0);
        self.levels[0][..leaves.len()].copy_from_slice(leaves);
        self.sum_up(0..self.levels[0].len());
    }

    /// The first leaf at which the cumulative sum exceeds `point`; never a leaf of 0.
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
