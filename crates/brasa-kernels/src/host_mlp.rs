//! An MLP in the memory of the CPU, forward and backward, without tensors and without a tape.
//!
//! An autodiff node takes three microseconds, a small layer less than one. Where a learner knows the derivative of its loss by the outputs
//! of a network, the gradient of the weights needs no tape: it is two products per layer.

use burn::tensor::Tensor;

#[cfg(feature = "flex")]
use crate::mlp::is_in_one_pass;
#[cfg(feature = "flex")]
use crate::reused::{make_room, reused};
use crate::{Activation, HostTensor, reuse};

/// Layers one after the other; of several networks side by side, each layer has the weights of all.
///
/// ```
/// use brasa_kernels::{Activation, HostMlp};
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let weight = Tensor::<2>::from_floats([[1.0], [2.0]], &device);
/// let bias = Tensor::<1>::from_floats([0.5], &device);
/// let mut mlp = HostMlp::default();
/// // Another device than the CPU has no such memory.
/// if mlp.push(&weight, &bias, Some(Activation::Relu)).is_some() {
///     let x = [3.0, 4.0];
///     assert_eq!(mlp.forward(&x, 1), [11.5]);
///     // The gradient of the result by weight and bias, and by x.
///     let (mut gradient, mut by_x) = ([0.0; 3], Vec::new());
///     mlp.backward(&x, &[1.0], Some(&mut gradient), Some(&mut by_x));
///     assert_eq!((gradient, by_x), ([3.0, 4.0, 1.0], vec![1.0, 2.0]));
/// }
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Default)]
pub struct HostMlp {
    layers: Vec<Layer>,
    rows: usize,
}

#[derive(Debug)]
struct Layer {
    weight: HostTensor,
    bias: HostTensor,
    activation: Option<Activation>,
    members: usize,
    inputs: usize,
    outputs: usize,
    norm: Option<Norm>,
    /// The results of the last forward pass.
    y: Vec<f32>,
}

/// A layer normalization between a layer and its activation.
#[derive(Debug)]
struct Norm {
    scale: HostTensor,
    shift: HostTensor,
    /// The inputs of the last forward pass.
    #[cfg(feature = "flex")]
    x: Vec<f32>,
    /// Mean and inverse standard deviation of each row.
    #[cfg(feature = "flex")]
    moments: Vec<f32>,
}

impl Drop for Layer {
    fn drop(&mut self) {
        reuse(std::mem::take(&mut self.y));
    }
}

#[cfg(feature = "flex")]
impl Layer {
    fn dims(&self, rows: usize) -> crate::product::Dims {
        crate::product::Dims { members: self.members, rows, inputs: self.inputs, outputs: self.outputs }
    }

    /// Counts a product of the forward or the backward pass.
    fn count_product(&self, rows: usize, launches: usize) {
        brasa_device::count_product(2 * rows * self.weight.len(), launches);
    }
}

#[cfg(feature = "flex")]
impl Norm {
    /// Normalizes the rows of each member.
    fn forward(&mut self, activation: Option<Activation>, dims: crate::product::Dims, y: &mut Vec<f32>) {
        let (rows, width) = (dims.rows, dims.outputs);
        y.resize(self.x.len(), 0.0);
        self.moments.resize(2 * dims.members * rows, 0.0);
        for member in 0..dims.members {
            let [cells, own, moments] = [rows * width, width, 2 * rows].map(|n| member * n..(member + 1) * n);
            crate::layer_norm::host::forward_into(
                &self.x[cells.clone()],
                [&self.scale[own.clone()], &self.shift[own]],
                activation,
                &mut y[cells],
                &mut self.moments[moments],
            );
        }
    }

    /// From the gradient by the results `y`: that by the inputs to `by_x`, and those of scale and shift to `gradient`.
    fn backward(
        &self,
        y: &[f32],
        activation: Option<Activation>,
        dims: crate::product::Dims,
        grad: &[f32],
        gradient: Option<&mut [f32]>,
        by_x: &mut Vec<f32>,
    ) {
        let (rows, width) = (dims.rows, dims.outputs);
        by_x.resize(self.x.len(), 0.0);
        let mut unused = Vec::new();
        let gradient = gradient.unwrap_or_else(|| {
            unused.resize(2 * self.scale.len(), 0.0);
            &mut unused
        });
        gradient.fill(0.0);
        let (by_scale, by_shift) = gradient.split_at_mut(self.scale.len());
        for member in 0..dims.members {
            let [cells, own, moments] = [rows * width, width, 2 * rows].map(|n| member * n..(member + 1) * n);
            let results = crate::layer_norm::host::Results {
                x: &self.x[cells.clone()],
                scale: &self.scale[own.clone()],
                y: &y[cells.clone()],
                moments: &self.moments[moments],
            };
            let sums = [&mut by_scale[own.clone()], &mut by_shift[own]];
            crate::layer_norm::host::backward_into(results, &grad[cells.clone()], activation, &mut by_x[cells], sums);
        }
    }
}

impl HostMlp {
    /// Adds a layer: weights `[inputs, outputs]` and bias `[outputs]`, or `[members, inputs, outputs]` and `[members, outputs]`. `None`
    /// where another device than the CPU computes, in other formats than 32 bits, and for a layer without inputs or outputs.
    pub fn push<const D: usize, const E: usize>(
        &mut self,
        weight: &Tensor<D>,
        bias: &Tensor<E>,
        activation: Option<Activation>,
    ) -> Option<()> {
        if brasa_device::precision().cast().is_some() {
            return None;
        }
        let dims = weight.dims();
        let members = dims[..D - 2].iter().product();
        let (inputs, outputs) = (dims[D - 2], dims[D - 1]);
        if members * inputs * outputs == 0 {
            return None;
        }
        let (weight, bias) = (HostTensor::of(weight)?, HostTensor::of(bias)?);
        self.layers.push(Layer { weight, bias, activation, members, inputs, outputs, norm: None, y: Vec::new() });
        Some(())
    }

    /// Normalizes the last layer before its activation, with `scale` and `shift` of its bias's shape (see [`crate::layer_norm`]). `None`
    /// as for [`HostMlp::push`].
    ///
    /// # Panics
    /// If there is no layer, or the sizes differ.
    pub fn normalize<const D: usize>(&mut self, scale: &Tensor<D>, shift: &Tensor<D>) -> Option<()> {
        let layer = self.layers.last_mut().expect("a layer to normalize");
        let (scale, shift) = (HostTensor::of(scale)?, HostTensor::of(shift)?);
        assert!(scale.len() == layer.bias.len() && shift.len() == layer.bias.len(), "one number per output");
        layer.norm = Some(Norm {
            scale,
            shift,
            #[cfg(feature = "flex")]
            x: Vec::new(),
            #[cfg(feature = "flex")]
            moments: Vec::new(),
        });
        Some(())
    }

    /// Numbers of the gradient: weights and biases of all layers, then scales and shifts of all normalizations.
    pub fn n_params(&self) -> usize {
        let layers = self.layers.iter().map(|layer| layer.weight.len() + layer.bias.len());
        layers.sum::<usize>() + self.n_norm_params()
    }

    fn n_norm_params(&self) -> usize {
        self.layers.iter().filter_map(|layer| layer.norm.as_ref()).map(|norm| 2 * norm.scale.len()).sum()
    }

    /// Whether a GPU computes all layers in one pass.
    #[cfg(feature = "flex")]
    fn is_whole(&self) -> bool {
        let has_norms = self.layers.iter().any(|layer| layer.norm.is_some());
        let sizes = self.layers.iter().map(|layer| [layer.inputs, layer.outputs]);
        !has_norms && self.layers.first().is_some_and(|first| is_in_one_pass(first.members, self.rows, sizes))
    }

    /// The results, `[n_rows, outputs]` of each member, for `x` of `[n_rows, inputs]`, or that of each member; without layers, `x`.
    ///
    /// # Panics
    /// If there is no row, or `x` has another size.
    pub fn forward<'a>(&'a mut self, x: &'a [f32], n_rows: usize) -> &'a [f32] {
        self.rows = n_rows;
        #[cfg(feature = "flex")]
        {
            let (is_whole, n_layers) = (self.is_whole(), self.layers.len());
            for i in 0..n_layers {
                let (before, layer) = self.layers.split_at_mut(i);
                let layer = &mut layer[0];
                let x = before.last().map_or(x, |before| &before.y);
                let dims = layer.dims(n_rows);
                layer.count_product(n_rows, crate::layer::Pass::new(is_whole, i, n_layers).forward());
                let Layer { weight, bias, activation, norm, y, .. } = layer;
                let n = dims.members * n_rows * dims.outputs;
                match norm {
                    None => {
                        make_room(y, n);
                        crate::layer::layer_into(x, weight, bias, *activation, dims, y);
                    }
                    Some(norm) => {
                        reuse(std::mem::replace(y, reused(n)));
                        crate::layer::layer_into(x, weight, bias, None, dims, &mut norm.x);
                        norm.forward(*activation, dims, y);
                    }
                }
            }
        }
        self.results(x)
    }

    /// The results of the last [`HostMlp::forward`], whose input was `x`.
    pub fn results<'a>(&'a self, x: &'a [f32]) -> &'a [f32] {
        self.layers.last().map_or(x, |layer| &layer.y)
    }

    /// What the last layer read in the last [`HostMlp::forward`], whose input was `x`.
    pub fn features<'a>(&'a self, x: &'a [f32]) -> &'a [f32] {
        let before = self.layers.len().checked_sub(2).map(|index| &self.layers[index]);
        before.map_or(x, |layer| &layer.y)
    }

    /// From the derivative of a loss by the results of the last [`HostMlp::forward`], whose input was `x`: the gradient of the
    /// parameters, layer by layer, weights first, then those of normalizations, and the derivative by `x`.
    ///
    /// # Panics
    /// If `x`, `grad` or `gradient` has another size than the results, or [`HostMlp::n_params`].
    pub fn backward(&self, x: &[f32], grad: &[f32], gradient: Option<&mut [f32]>, by_x: Option<&mut Vec<f32>>) {
        #[cfg(feature = "flex")]
        {
            use crate::layer::{Pass, grad_before};
            use crate::product::{input_grad_into, weight_grad_into};

            let (by_results, mut grad, mut next) = (grad, Vec::new(), Vec::new());
            make_room(&mut grad, by_results.len());
            grad.extend_from_slice(by_results);
            let (mut rest, mut rest_of_norms) = gradient.map_or((None, None), |gradient| {
                assert_eq!(gradient.len(), self.n_params(), "a gradient for every parameter");
                let (layers, norms) = gradient.split_at_mut(gradient.len() - self.n_norm_params());
                (Some(layers), Some(norms))
            });
            let is_whole = self.is_whole();
            for (i, layer) in self.layers.iter().enumerate().rev() {
                let pass = Pass::new(is_whole, i, self.layers.len());
                let dims = layer.dims(self.rows);
                let x = if i == 0 { x } else { &self.layers[i - 1].y };
                let own = rest.take().map(|gradient| {
                    let n = layer.weight.len() + layer.bias.len();
                    let (before, own) = gradient.split_at_mut(gradient.len() - n);
                    rest = Some(before);
                    own.split_at_mut(layer.weight.len())
                });
                brasa_device::count_launches(pass.backward(layer.activation, own.is_some()));
                // The activation of a normalized layer is behind its normalization.
                let (y, activation) = match &layer.norm {
                    None => (&layer.y, layer.activation),
                    Some(norm) => {
                        let own = rest_of_norms.take().map(|gradient| {
                            let (before, own) = gradient.split_at_mut(gradient.len() - 2 * norm.scale.len());
                            rest_of_norms = Some(before);
                            own
                        });
                        norm.backward(&layer.y, layer.activation, dims, &grad, own, &mut next);
                        std::mem::swap(&mut grad, &mut next);
                        (&norm.x, None)
                    }
                };
                match own {
                    Some((weight, bias)) => {
                        grad_before(y, &mut grad, activation, dims, Some(bias));
                        layer.count_product(self.rows, pass.product());
                        weight_grad_into(x, &grad, dims, weight);
                    }
                    None => grad_before(y, &mut grad, activation, dims, None),
                }
                if i > 0 || by_x.is_some() {
                    layer.count_product(self.rows, pass.product());
                    make_room(&mut next, dims.members * dims.rows * dims.inputs);
                    input_grad_into(&grad, &layer.weight, dims, &mut next);
                    std::mem::swap(&mut grad, &mut next);
                }
            }
            if let Some(by_x) = by_x {
                // Of an input that members share it is the sum.
                let (sums, others) = grad.split_at_mut(x.len());
                for member in others.chunks_exact(sums.len()) {
                    sums.iter_mut().zip(member).for_each(|(sum, x)| *sum += x);
                }
                grad.truncate(x.len());
                std::mem::swap(by_x, &mut grad);
            }
            [grad, next].into_iter().for_each(reuse);
        }
        #[cfg(not(feature = "flex"))]
        let _ = (x, grad, gradient, by_x);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stacked_layer;
    use burn::tensor::TensorData;
    use proptest::prelude::*;

    fn numbers(n: usize, seed: f32) -> Vec<f32> {
        (0..n).map(|i| ((i as f32 + seed) * 0.7).sin()).collect()
    }

    proptest! {
        #[test]
        #[cfg_attr(not(feature = "flex"), ignore = "the loops for the CPU need the feature `flex`")]
        fn results_and_gradients_are_those_of_the_tape(
            members in 1usize..4, rows in 1usize..40, widths in proptest::collection::vec(1usize..20, 2..5), shared in any::<bool>(),
            wants_params in any::<bool>(), normalized in any::<bool>(),
        ) {
            // Only the CPU has this path.
            let plain = brasa_device::open_named("cpu").expect("flex is a default feature");
            let device = plain.clone().autodiff();
            let leaf = |dims: [usize; 3], seed: f32| {
                let data = TensorData::new(numbers(dims.iter().product(), seed), dims);
                Tensor::<3>::from_data(data, &device).require_grad()
            };
            let n_inputs = if shared { 1 } else { members };
            let x = leaf([n_inputs, rows, widths[0]], 0.3);
            let activations = [Some(Activation::Tanh), Some(Activation::Elu), Some(Activation::Relu), None];
            let parts: Vec<_> = widths
                .windows(2)
                .zip(activations)
                .map(|(pair, activation)| {
                    let scale = 1.0 / (pair[0] as f32).sqrt();
                    let weight = (leaf([members, pair[0], pair[1]], 0.1).inner() * scale).autodiff().require_grad();
                    let vectors = |seed| leaf([1, members, pair[1]], seed).inner().squeeze_dim::<2>(0).autodiff().require_grad();
                    (weight, vectors(0.2), [vectors(0.4), vectors(0.6)], activation)
                })
                .collect();
            let mut mlp = HostMlp::default();
            let mut y = x.clone();
            for (weight, bias, [scale, shift], activation) in &parts {
                mlp.push(weight, bias, *activation).expect("on the CPU");
                if !normalized {
                    y = stacked_layer(y, weight.clone(), bias.clone(), *activation);
                    continue;
                }
                mlp.normalize(scale, shift).expect("on the CPU");
                let x = stacked_layer(y, weight.clone(), bias.clone(), None);
                let row = |of: &Tensor<2>, i: usize| of.clone().narrow(0, i, 1).squeeze_dim::<1>(0);
                let one = |i: usize| crate::layer_norm(x.clone().narrow(0, i, 1), row(scale, i), row(shift, i), *activation);
                y = Tensor::cat((0..members).map(one).collect(), 0);
            }
            let close = |got: &[f32], expected: Option<Vec<f32>>| {
                let expected = expected.expect("a number for each");
                prop_assert_eq!(got.len(), expected.len());
                for (got, expected) in got.iter().zip(&expected) {
                    prop_assert!((got - expected).abs() < 2e-5 * expected.abs().max(1.0), "{} instead of {}", got, expected);
                }
                Ok(())
            };
            let host = |tensor: Tensor<3>| tensor.into_data().iter::<f32>().collect::<Vec<f32>>();
            let input = host(x.clone().inner());
            close(mlp.forward(&input, rows), Some(host(y.clone().inner())))?;
            let weights = Tensor::<3>::from_data(
                TensorData::new(numbers(y.dims().iter().product(), 0.7), y.dims()), &plain,
            );
            let grads = (y * weights.clone()).sum().backward();
            let (mut gradient, mut by_x) = (vec![f32::NAN; mlp.n_params()], vec![1.0; 3]);
            mlp.backward(&input, &host(weights), wants_params.then_some(&mut gradient), Some(&mut by_x));
            close(&by_x, x.grad(&grads).map(host))?;
            let mut at = gradient.as_slice();
            for (weight, bias, ..) in parts.iter().filter(|_| wants_params) {
                let (own, rest) = at.split_at(weight.dims().iter().product());
                close(own, weight.grad(&grads).map(host))?;
                let (own, rest) = rest.split_at(bias.dims().iter().product());
                close(own, bias.grad(&grads).map(|bias| host(bias.unsqueeze())))?;
                at = rest;
            }
            for vector in parts.iter().filter(|_| wants_params && normalized).flat_map(|(_, _, vectors, _)| vectors) {
                let (own, rest) = at.split_at(vector.dims().iter().product());
                close(own, vector.grad(&grads).map(|vector| host(vector.unsqueeze())))?;
                at = rest;
            }
            prop_assert!(at.is_empty() || !wants_params);
        }
    }

    #[test]
    #[cfg_attr(not(feature = "flex"), ignore = "the loops for the CPU need the feature `flex`")]
    fn what_the_cpu_does_not_compute_in_32_bits_is_refused() {
        let device = brasa_device::open_named("cpu").expect("flex is a default feature");
        let push = |inputs| {
            HostMlp::default().push(&Tensor::<2>::zeros([inputs, 2], &device), &Tensor::<1>::zeros([2], &device), None)
        };
        assert!(push(3).is_some() && push(0).is_none());
        assert!(brasa_device::autocast(brasa_device::Precision::Bf16, || push(3)).is_none());
    }
}
