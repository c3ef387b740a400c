//! Proportional prioritized sampling (Schaul et al. 2016, sections 3.3 and 3.4).
//!
//! Row i has the priority `p_i = (|td_error_i| + epsilon)^alpha` and is sampled with probability `p_i / sum p`.
//! Sampling is stratified: one row from each of `batch_size` equal parts of the sum. Importance-sampling weights
//! `(N p_i / sum p)^-beta` are scaled so that the largest of a batch is 1: `w_i = (min p / p_i)^beta`, where `N` and
//! the sum cancel out.
//!
//! The sum tree has two implementations: plain memory on the CPU, tensors elsewhere, so that host and device do not
//! wait for each other. Sums are always recomputed from their children: errors do not accumulate, and equal leaves give
//! a bit-identical tree.

mod device;
mod host;

use std::ops::Range;

use brasa_core::Schedule;
use brasa_device::runs_on_host;
use burn::tensor::{Device, Int, Tensor, TensorData};
use device::DeviceTree;
pub use host::SumTree;
use rand::{Rng, RngExt};

use super::config::PrioritizedConfig;

/// The priorities of all rows of a buffer; 0 for rows without a transition.
#[derive(Debug, Clone)]
pub(super) struct Priorities {
    tree: Tree,
    beta: Schedule,
    alpha: f64,
    epsilon: f64,
    device: Device,
}

#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "a buffer has one")]
enum Tree {
    Host(SumTree),
    Device(DeviceTree),
}

/// Sampled rows, on the host or on the device.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "a handle that lives for one call")]
pub(super) enum Drawn {
    Host(Vec<usize>),
    Device(Tensor<1, Int>),
}

impl Priorities {
    pub fn new(config: &PrioritizedConfig, n_rows: usize, device: &Device) -> Self {
        Self::in_form(config, n_rows, device, runs_on_host(device))
    }

    /// Either implementation on any device; tests compare the two.
    pub fn in_form(config: &PrioritizedConfig, n_rows: usize, device: &Device, on_host: bool) -> Self {
        let tree = match on_host {
            true => Tree::Host(SumTree::new(n_rows)),
            false => Tree::Device(DeviceTree::new(n_rows, device)),
        };
        Self { tree, beta: config.beta, alpha: config.alpha, epsilon: config.epsilon, device: device.clone() }
    }

    /// See [`super::ReplayBuffer::beta`].
    pub fn beta(&self, share: f64) -> f64 {
        self.beta.at(share)
    }

    pub fn on_host(&self) -> bool {
        matches!(self.tree, Tree::Host(_))
    }

    /// Gives new rows the largest priority so far, so that each is sampled soon.
    pub fn insert(&mut self, rows: Range<usize>) {
        match &mut self.tree {
            Tree::Host(tree) => tree.fill(rows, tree.largest),
            Tree::Device(tree) => tree.fill(rows, tree.largest.clone()),
        }
    }

    /// Removes rows.
    pub fn remove(&mut self, rows: Range<usize>) {
        match &mut self.tree {
            Tree::Host(tree) => tree.fill(rows, 0.0),
            Tree::Device(tree) => tree.fill(rows, Tensor::zeros([1], &self.device)),
        }
    }

    /// Samples rows, with importance-sampling weights. There must be rows.
    pub fn sample(&self, batch_size: usize, beta: f64, rng: &mut (impl Rng + ?Sized)) -> (Drawn, Tensor<1>) {
        self.at((0..batch_size).map(|i| (i as f64 + rng.random::<f64>()) / batch_size as f64).collect(), beta)
    }

    /// The rows at `points`, fractions of the total sum in [0, 1), and their weights.
    fn at(&self, points: Vec<f64>, beta: f64) -> (Drawn, Tensor<1>) {
        let n = points.len();
        match &self.tree {
            Tree::Host(tree) => {
                let sum = tree.total();
                let rows: Vec<usize> = points.into_iter().map(|point| tree.find(point * sum)).collect();
                let priority: Vec<f64> = rows.iter().map(|row| tree.get(*row)).collect();
                let least = priority.iter().copied().fold(f64::INFINITY, f64::min);
                let weight = |priority: f64| ((least / priority) as f32).powf(beta as f32);
                let weights: Vec<f32> = priority.into_iter().map(weight).collect();
                (Drawn::Host(rows), Tensor::from_data(TensorData::new(weights, [n]), &self.device))
            }
            Tree::Device(tree) => {
                let points: Vec<f32> = points.into_iter().map(|point| point as f32).collect();
                let points = Tensor::from_data(TensorData::new(points, [n, 1]), &self.device);
                let (rows, priority) = tree.find(points);
                let least = priority.clone().min();
                (Drawn::Device(rows), (least / priority).powf_scalar(beta))
            }
        }
    }

    /// Replaces the priorities of rows; those that hold no transition any more stay at 0.
    ///
    /// A TD error that is not finite gives the largest priority so far: as a priority itself it would make every sum above it
    /// NaN or infinite, and one row would be drawn for ever.
    pub fn update(&mut self, rows: &Tensor<1, Int>, td_error: Tensor<1>) {
        match &mut self.tree {
            Tree::Host(tree) => {
                // Host only: this tree is in the memory of the CPU.
                let (rows, errors) = (rows.to_data(), td_error.into_data());
                for (row, error) in rows.iter::<i64>().zip(errors.iter::<f32>()) {
                    let priority = (f64::from(error.abs()) + self.epsilon).powf(self.alpha);
                    let priority = if priority.is_finite() { priority } else { tree.largest };
                    tree.replace(usize::try_from(row).expect("rows are counted from 0"), priority);
                }
            }
            Tree::Device(tree) => {
                let error = td_error.abs();
                let priority = (error.clone() + self.epsilon).powf_scalar(self.alpha);
                // A comparison with NaN is false. On Vulkan `is_finite` of the power missed a NaN; the power of a large error may overflow.
                let sound = |x: Tensor<1>| x.lower_equal_elem(f32::MAX);
                let broken = sound(error).bool_and(sound(priority.clone())).bool_not();
                let largest = tree.largest.clone().expand(priority.dims());
                tree.replace(rows, priority.mask_where(broken, largest));
            }
        }
    }

    pub fn bytes(&self) -> usize {
        match &self.tree {
            Tree::Host(tree) => tree.bytes(),
            Tree::Device(tree) => tree.bytes(),
        }
    }

    /// The largest priority so far, and those of the first rows.
    pub fn leaves(&self, n_rows: usize) -> (f64, Vec<f64>) {
        match &self.tree {
            Tree::Host(tree) => (tree.largest, tree.leaves()[..n_rows].to_vec()),
            Tree::Device(tree) => tree.leaves(n_rows),
        }
    }

    /// Restores the result of [`Priorities::leaves`]; all other rows have no transition.
    pub fn set_leaves(&mut self, largest: f64, leaves: &[f64]) {
        match &mut self.tree {
            Tree::Host(tree) => tree.set_leaves(largest, leaves),
            Tree::Device(tree) => tree.set_leaves(largest, leaves),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn forms(config: &PrioritizedConfig, n_rows: usize) -> [Priorities; 2] {
        let device = brasa_test::device();
        [true, false].map(|on_host| Priorities::in_form(config, n_rows, &device, on_host))
    }

    fn rows_at(priorities: &Priorities, points: &[f64], beta: f64) -> (Vec<usize>, Vec<f32>) {
        let (rows, weight) = priorities.at(points.to_vec(), beta);
        let rows = match rows {
            Drawn::Host(rows) => rows,
            Drawn::Device(rows) => rows.to_data().iter::<i64>().map(|row| row as usize).collect(),
        };
        (rows, weight.to_data().iter().collect())
    }

    fn update(priorities: &mut Priorities, rows: &[usize], errors: &[f32]) {
        let rows: Vec<i32> = rows.iter().map(|row| *row as i32).collect();
        let rows = Tensor::from_data(TensorData::from(&rows[..]), &priorities.device);
        let errors = Tensor::from_data(TensorData::from(errors), &priorities.device);
        priorities.update(&rows, errors);
    }

    #[test]
    fn a_priority_that_overflows_does_not_spoil_the_sums() {
        for mut priorities in forms(&PrioritizedConfig { alpha: 2.0, ..PrioritizedConfig::default() }, 20) {
            priorities.insert(0..20);
            update(&mut priorities, &[3], &[1e30]);
            let (largest, leaves) = priorities.leaves(20);
            assert!(largest.is_finite() && leaves.iter().all(|leaf| leaf.is_finite() && *leaf > 0.0), "{leaves:?}");
        }
    }

    #[test]
    fn errors_that_are_not_finite_do_not_capture_the_draw() {
        for mut priorities in forms(&PrioritizedConfig::default(), 20) {
            priorities.insert(0..20);
            update(&mut priorities, &[3, 7, 11], &[f32::NAN, f32::INFINITY, 2.0]);
            let (largest, leaves) = priorities.leaves(20);
            assert!(largest.is_finite() && leaves.iter().all(|leaf| leaf.is_finite() && *leaf > 0.0), "{leaves:?}");
            assert_eq!(leaves[3], leaves[0], "the largest so far, as that of a new row");
            let points: Vec<f64> = (0..200).map(|i| (f64::from(i) + 0.5) / 200.0).collect();
            let (rows, weights) = rows_at(&priorities, &points, 0.5);
            assert!((0..20).all(|row| rows.contains(&row)), "{rows:?}");
            assert!(weights.iter().all(|weight| weight.is_finite()));
        }
    }

    fn numbers(value: &Value) -> Vec<f64> {
        value.as_array().expect("an array").iter().map(|x| x.as_f64().expect("a number")).collect()
    }

    fn places(value: &Value) -> Vec<usize> {
        numbers(value).into_iter().map(|x| x as usize).collect()
    }

    fn close(got: impl IntoIterator<Item = f64>, want: &[f64], tolerance: f64, what: &str) {
        for (i, (got, want)) in got.into_iter().zip(want).enumerate() {
            assert!((got - want).abs() <= tolerance * want.abs(), "{what} {i}: {got} instead of {want}");
        }
    }

    /// Leaves, sampled rows and weights equal Tianshou's.
    #[test]
    fn priorities_are_those_of_tianshou() {
        let golden: Value = serde_json::from_str(include_str!("../../../tests/data/replay.json")).expect("JSON");
        let golden = &golden["prioritised"];
        let [alpha, beta, epsilon] = ["alpha", "beta", "epsilon"].map(|name| golden[name].as_f64().expect("f64"));
        let capacity = golden["capacity"].as_u64().expect("u64") as usize;
        for mut priorities in forms(&PrioritizedConfig { alpha, beta: beta.into(), epsilon }, capacity) {
            let mut next = 0;
            for stage in golden["stages"].as_array().expect("an array") {
                for _ in 0..stage["added"].as_u64().expect("u64") {
                    priorities.insert(next..next + 1);
                    next = (next + 1) % capacity;
                }
                let leaves = |priorities: &Priorities| priorities.leaves(numbers(&stage["leaf"]).len()).1;
                close(leaves(&priorities), &numbers(&stage["leaf_after_adding"]), 1e-5, "leaf after adding");
                let errors: Vec<f32> = numbers(&stage["priorities"]).into_iter().map(|x| x as f32).collect();
                update(&mut priorities, &places(&stage["indices"]), &errors);
                close(leaves(&priorities), &numbers(&stage["leaf"]), 1e-5, "leaf");

                let total = stage["total"].as_f64().expect("f64");
                let masses: Vec<f64> = numbers(&stage["mass"]).iter().map(|mass| mass / total).collect();
                assert_eq!(rows_at(&priorities, &masses, beta).0, places(&stage["mass_leaf"]));

                let (batch, probability) = (places(&stage["batch"]), numbers(&stage["probability"]));
                let middle = |row: &usize| probability[..*row].iter().sum::<f64>() + 0.5 * probability[*row];
                let (rows, weights) = rows_at(&priorities, &batch.iter().map(middle).collect::<Vec<_>>(), beta);
                assert_eq!(rows, batch);
                close(weights.into_iter().map(f64::from), &numbers(&stage["weight"]), 1e-5, "weight");
            }
        }
    }

    #[test]
    fn rows_without_priority_are_never_found() {
        // Trees of one to three levels, in both implementations, with gaps at both ends.
        for n_rows in [3, 16, 17, 300, 20_000] {
            for mut priorities in forms(&PrioritizedConfig::default(), n_rows) {
                priorities.insert(0..n_rows);
                priorities.remove(0..1);
                priorities.remove(n_rows - 1..n_rows);
                let points = [0.0, 1e-9, 0.3, 0.999_999, 1.0];
                let (rows, _) = rows_at(&priorities, &points, 1.0);
                assert!(rows.iter().all(|row| (1..n_rows - 1).contains(row)), "{rows:?} of {n_rows}");
                assert_eq!([rows[0], rows[4]], [1, n_rows - 2]);
                // A single row left.
                priorities.remove(0..n_rows);
                priorities.insert(n_rows / 2..n_rows / 2 + 1);
                assert!(rows_at(&priorities, &points, 1.0).0.iter().all(|row| *row == n_rows / 2));
            }
        }
    }

    #[test]
    fn a_tree_from_saved_leaves_is_the_same_tree() {
        for mut priorities in forms(&PrioritizedConfig::default(), 1000) {
            priorities.insert(0..900);
            let errors: Vec<f32> = (0..900).map(|i| (i * 7919 % 900) as f32 / 77.0).collect();
            update(&mut priorities, &(0..900).collect::<Vec<_>>(), &errors);
            priorities.remove(300..350);
            let mut other = priorities.clone();
            other.insert(0..1000);
            let (largest, leaves) = priorities.leaves(900);
            other.set_leaves(largest, &leaves);
            assert_eq!(other.leaves(1000), priorities.leaves(1000));
            let points: Vec<f64> = (0..5000).map(|i| f64::from(i) / 5000.0).collect();
            assert_eq!(rows_at(&other, &points, 0.5), rows_at(&priorities, &points, 0.5));
        }
    }
}
