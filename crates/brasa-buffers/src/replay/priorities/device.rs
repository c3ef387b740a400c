//! The sum tree as tensors, without read-back.

use std::ops::Range;

use burn::tensor::{Device, IndexingUpdateOp, Int, Tensor, TensorData};

/// Children per node: three levels for a million leaves.
const FAN: usize = 128;

/// A sum tree in 32 bits: level 0 holds the leaves, every further level the sums over `FAN` neighbors.
#[derive(Debug, Clone)]
pub(super) struct DeviceTree {
    /// Each padded with zeros to a multiple of `FAN`; the last one has `FAN` values.
    levels: Vec<Tensor<1>>,
    /// `[1]`: the largest leaf so far.
    pub largest: Tensor<1>,
}

impl DeviceTree {
    pub fn new(n_leaves: usize, device: &Device) -> Self {
        let mut levels = Vec::new();
        let mut width = n_leaves;
        loop {
            let padded = width.next_multiple_of(FAN);
            levels.push(Tensor::zeros([padded], device));
            if padded == FAN {
                return Self { levels, largest: Tensor::ones([1], device) };
            }
            width = padded / FAN;
        }
    }

    pub fn bytes(&self) -> usize {
        self.levels.iter().map(|level| level.dims()[0] * size_of::<f32>()).sum()
    }

    /// Sets all leaves in `range` to `value`, `[1]`.
    pub fn fill(&mut self, mut range: Range<usize>, value: Tensor<1>) {
        let mut values = value.expand([range.len()]);
        for i in 0..self.levels.len() {
            if i > 0 {
                // The parents, and the sums over all of their children.
                range = range.start / FAN..range.end.div_ceil(FAN);
                let children = self.levels[i - 1].clone().slice(range.start * FAN..range.end * FAN);
                values = children.reshape([range.len(), FAN]).sum_dim(1).reshape([range.len()]);
            }
            self.levels[i].inplace(|level| level.slice_assign(range.clone(), values.clone()));
        }
    }

    /// Replaces the leaves `[n]` that are above 0. For equal indices any one of the values is used.
    pub fn replace(&mut self, leaves: &Tensor<1, Int>, values: Tensor<1>) {
        let [n] = leaves.dims();
        let live = self.levels[0].clone().select(0, leaves.clone()).greater_scalar(0.0);
        let mut values = values * live.float();
        self.largest = Tensor::cat(vec![self.largest.clone(), values.clone()], 0).max();
        let mut nodes = leaves.clone();
        for i in 0..self.levels.len() {
            if i > 0 {
                nodes = nodes.div_scalar(FAN as i64);
                values = self.children(i - 1, nodes.clone()).sum_dim(1).reshape([n]);
            }
            let (places, values) = (nodes.clone().reshape([n, 1]), values.clone());
            self.levels[i].inplace(|level| level.scatter_nd(places, values, IndexingUpdateOp::Assign));
        }
    }

    /// For points in [0, 1), `[n, 1]`, the first leaves at which the cumulative sum exceeds this fraction of the total,
    /// and their values; never a leaf of 0. Both are `[n]`.
    pub fn find(&self, points: Tensor<2>) -> (Tensor<1, Int>, Tensor<1>) {
        let [n, _] = points.dims();
        let device = points.device();
        let places = Tensor::<1, Int>::arange(0..FAN as i64, &device).reshape([1, FAN]).expand([n, FAN]);
        let top = self.levels.len() - 1;
        let mut node = Tensor::<1, Int>::zeros([n], &device);
        let mut value = self.levels[top].clone().sum().expand([n]).reshape([n, 1]);
        let mut rest = points * value.clone();
        for i in (0..=top).rev() {
            let children = self.children(i, node.clone());
            let sums = children.clone().cumsum(1);
            let reach = sums.clone() * children.clone().greater_scalar(0.0).float();
            // By rounding the point can exceed the last child above 0.
            let last = reach.clone().max_dim(1) * (1.0 - 1e-6);
            rest = rest.min_pair(last);
            let beyond = reach.lower_equal(rest.clone().expand([n, FAN]));
            let place = places.clone().mask_fill(beyond, FAN as i64 - 1).min_dim(1);
            value = children.gather(1, place.clone());
            rest = (rest - sums.gather(1, place.clone()) + value.clone()).clamp_min(0.0);
            node = node * FAN as i64 + place.reshape([n]);
        }
        (node, value.reshape([n]))
    }

    pub fn leaves(&self, n_leaves: usize) -> (f64, Vec<f64>) {
        // Waits for the device: for a checkpoint.
        let largest = self.largest.to_data().iter::<f64>().sum();
        // Waits for the device.
        (largest, self.levels[0].clone().slice(0..n_leaves).into_data().iter::<f64>().collect())
    }

    pub fn set_leaves(&mut self, largest: f64, leaves: &[f64]) {
        let device = self.largest.device();
        self.largest = Tensor::from_data(TensorData::from([largest as f32]), &device);
        let padded = self.levels[0].dims()[0];
        let mut values = vec![0.0; padded];
        for (value, leaf) in values.iter_mut().zip(leaves) {
            *value = *leaf as f32;
        }
        let mut level = Tensor::from_data(TensorData::new(values, [padded]), &device);
        for i in 0..self.levels.len() {
            let [width] = self.levels[i].dims();
            let [filled] = level.dims();
            if filled < width {
                level = Tensor::cat(vec![level, Tensor::zeros([width - filled], &device)], 0);
            }
            self.levels[i] = level.clone();
            level = level.reshape([width / FAN, FAN]).sum_dim(1).reshape([width / FAN]);
        }
    }

    /// `[n, FAN]`: the values in level `i` below nodes of the level above.
    fn children(&self, i: usize, nodes: Tensor<1, Int>) -> Tensor<2> {
        let level = self.levels[i].clone();
        let n_nodes = level.dims()[0] / FAN;
        level.reshape([n_nodes, FAN]).select(0, nodes)
    }
}
