//! A linear layer with widths that are safe on every device.

use brasa_device::runs_on_host;
use brasa_kernels::{
    Activation, HostMlp, any_width, best_of, best_output, chosen_of, chosen_output, layer, mlp, stacked_layer,
    stacked_mlp,
};
use burn::module::{Module, Param, ParamId};
use burn::tensor::{Device, Tensor, TensorData};
use rand::Rng;

use crate::Init;
use crate::exported::numbers;

/// Multiples of this are safe where [`any_width`] is false.
const SAFE_WIDTH: usize = 8;

/// `y = x W + b` with `W` of `[inputs, outputs]`.
///
/// Parameters have the given shape. Where Burn multiplies on a GPU, in formats other than 32 bits, operands are padded with
/// zeros to multiples of 8, because such products have been wrong for odd widths ([`any_width`]); the result and its gradients are the same.
///
/// ```
/// use brasa_core::{env::named_rng, read_back};
/// use brasa_nn::{Activation, Init, Linear};
/// use burn::tensor::Tensor;
///
/// let (device, rng) = (brasa_device::open_named("cpu")?, &mut named_rng(0, "weights", 0));
/// let layer = Linear::new(3, 2, Init::Orthogonal(1.0), &device, rng).with_bias(0.5);
/// assert_eq!(layer.numbers().1, [0.5, 0.5]);
/// // On inputs of 0, the outputs are the biases.
/// assert_eq!(read_back(layer.forward(Tensor::zeros([1, 3], &device), Some(Activation::Relu))), [0.5, 0.5]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Module, Debug)]
pub struct Linear {
    weight: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
}

impl Linear {
    /// A layer with initial weights from `rng`, trainable if `device` is an autodiff device.
    pub fn new(inputs: usize, outputs: usize, init: Init, device: &Device, rng: &mut (impl Rng + ?Sized)) -> Self {
        let (weight, bias) = init.draw(inputs, outputs, rng);
        Self { weight: parameter(weight, [inputs, outputs], device), bias: parameter(bias, [outputs], device) }
    }

    /// The same layer with all biases at `value`.
    pub fn with_bias(mut self, value: f32) -> Self {
        self.bias = leaf(Tensor::full(self.bias.dims(), value, &self.bias.device()));
        self
    }

    /// The layer on `x`, followed by an optional activation.
    ///
    /// # Shapes
    /// - `x`: `[n_rows, inputs]`
    /// - output: `[n_rows, outputs]`
    pub fn forward(&self, x: Tensor<2>, activation: Option<Activation>) -> Tensor<2> {
        affine_layer(x, self.weight.val(), self.bias.val(), activation)
    }

    pub(crate) fn inputs(&self) -> usize {
        self.weight.dims()[0]
    }

    /// Weights, `[inputs, outputs]`, and biases, on the host.
    pub fn numbers(&self) -> (Vec<f32>, Vec<f32>) {
        (numbers(self.weight.val()), numbers(self.bias.val()))
    }

    pub(crate) fn weight(&self) -> &Tensor<2> {
        &self.weight
    }

    pub(crate) fn bias(&self) -> &Tensor<1> {
        &self.bias
    }

    /// Numbers of weights and biases.
    pub(crate) fn n_params(&self) -> usize {
        self.weight.dims().iter().product::<usize>() + self.bias.dims()[0]
    }

    /// Adds the layer to `mlp`; `None` where that cannot compute it.
    pub(crate) fn push_to(&self, mlp: &mut HostMlp, activation: Option<Activation>) -> Option<()> {
        mlp.push(&*self.weight, &*self.bias, activation)
    }

    /// Every layer on `x`, each followed by its activation.
    ///
    /// # Shapes
    /// - `x`: `[n_rows, inputs]` of the first layer
    /// - output: `[n_rows, outputs]` of the last layer
    pub(crate) fn chain<'a>(
        x: Tensor<2>,
        layers: impl Iterator<Item = (&'a Self, Option<Activation>)> + Clone,
    ) -> Tensor<2> {
        let parts = layers.clone().map(|(layer, activation)| (&*layer.weight, &*layer.bias, activation));
        mlp(&x, parts).unwrap_or_else(|| layers.fold(x, |x, (layer, activation)| layer.forward(x, activation)))
    }
}

/// `activation(x W + b)` for given weights, with the padding of [`Linear`].
///
/// # Shapes
/// - `x`: `[n_rows, inputs]`
/// - `weight`: `[inputs, outputs]`
/// - `bias`: `[outputs]`
/// - output: `[n_rows, outputs]`
///
/// ```
/// use brasa_core::read_back;
/// use brasa_nn::affine;
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let x = Tensor::from_floats([[1.0, 2.0]], &device);
/// let weight = Tensor::from_floats([[1.0], [10.0]], &device);
/// assert_eq!(read_back(affine(x, weight, None, None)), [21.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn affine(x: Tensor<2>, weight: Tensor<2>, bias: Option<Tensor<1>>, activation: Option<Activation>) -> Tensor<2> {
    let device = x.device();
    let bias = bias.unwrap_or_else(|| Tensor::zeros([weight.dims()[1]], &device.clone().without_autodiff()));
    affine_layer(x, weight, bias, activation)
}

fn affine_layer(x: Tensor<2>, weight: Tensor<2>, bias: Tensor<1>, activation: Option<Activation>) -> Tensor<2> {
    if any_width(&x) { layer(x, weight, bias, activation) } else { padded_layer(x, weight, bias, activation) }
}

fn padded_layer(x: Tensor<2>, weight: Tensor<2>, bias: Tensor<1>, activation: Option<Activation>) -> Tensor<2> {
    let outputs = weight.dims()[1];
    first_columns(layer(pad_columns(x), pad(weight), pad_columns(bias), activation), outputs)
}

/// Several parallel layers, each with its own weights: `y_i = x_i W_i + b_i`, as one batched product.
///
/// Widths are padded as in [`Linear`].
///
/// ```
/// use brasa_core::{env::named_rng, read_back};
/// use brasa_nn::{Init, StackedLinear};
/// use burn::tensor::Tensor;
///
/// // Two layers with three outputs, on one input.
/// let (device, rng) = (brasa_device::open_named("cpu")?, &mut named_rng(0, "weights", 0));
/// let layers = StackedLinear::new(2, 4, 3, Init::FanIn, &device, rng);
/// let x = Tensor::ones([1, 5, 4], &device);
/// assert_eq!(layers.forward(x.clone(), None).dims(), [2, 5, 3]);
/// // The greatest output of each row is at least as large as its first output.
/// let (_, best) = layers.best(x.clone(), None);
/// let first = layers.chosen(x, Tensor::zeros([2, 5], &device));
/// assert!(read_back(best - first).iter().all(|gap| *gap >= 0.0));
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Module, Debug)]
pub struct StackedLinear {
    weight: Param<Tensor<3>>,
    bias: Param<Tensor<2>>,
}

impl StackedLinear {
    /// Whether operations with the weights are recorded on the tape.
    pub(crate) fn is_recorded(&self) -> bool {
        self.weight.val().is_autodiff()
    }

    /// `n` layers with initial weights from `rng`, one layer after the other.
    pub fn new(
        n: usize,
        inputs: usize,
        outputs: usize,
        init: Init,
        device: &Device,
        rng: &mut (impl Rng + ?Sized),
    ) -> Self {
        let (mut weights, mut biases) = (Vec::new(), Vec::new());
        for _ in 0..n {
            let (weight, bias) = init.draw(inputs, outputs, rng);
            weights.extend(weight);
            biases.extend(bias);
        }
        Self { weight: parameter(weights, [n, inputs, outputs], device), bias: parameter(biases, [n, outputs], device) }
    }

    pub(crate) fn inputs(&self) -> usize {
        self.weight.dims()[1]
    }

    /// Outputs of each layer, all weights, `[n, inputs, outputs]`, and all biases, `[n, outputs]`.
    pub(crate) fn numbers(&self) -> (usize, Vec<f32>, Vec<f32>) {
        (self.bias.dims()[1], numbers(self.weight.val()), numbers(self.bias.val()))
    }

    /// Every layer on its part of `x`, followed by an optional activation.
    ///
    /// # Shapes
    /// - `x`: `[n, n_rows, inputs]`, or `[1, n_rows, inputs]` if all layers have the same input
    /// - output: `[n, n_rows, outputs]`
    pub fn forward(&self, x: Tensor<3>, activation: Option<Activation>) -> Tensor<3> {
        affine_stack(x, self.weight.val(), self.bias.val(), activation)
    }

    /// Every layer on `x`, each followed by its activation.
    ///
    /// # Shapes
    /// - `x`: as for [`StackedLinear::forward`]
    /// - output: `[n, n_rows, outputs]` of the last layer
    pub(crate) fn chain<'a>(
        x: Tensor<3>,
        layers: impl Iterator<Item = (&'a Self, Option<Activation>)> + Clone,
    ) -> Tensor<3> {
        let parts = layers.clone().map(|(layer, activation)| (&*layer.weight, &*layer.bias, activation));
        stacked_mlp(&x, parts).unwrap_or_else(|| layers.fold(x, |x, (layer, activation)| layer.forward(x, activation)))
    }

    /// Adds the layers to `mlp`; `None` where that cannot compute them.
    pub(crate) fn push_to(&self, mlp: &mut HostMlp, activation: Option<Activation>) -> Option<()> {
        mlp.push(&*self.weight, &*self.bias, activation)
    }

    /// One output per row, without computing the others if that is faster.
    ///
    /// # Shapes
    /// - `x`: `[n, n_rows, inputs]`, or `[1, n_rows, inputs]` if all layers have the same input
    /// - `index`: `[n, n_rows]`, index of the output
    /// - output: `[n, n_rows]`
    ///
    /// # Panics
    /// If an index is out of range.
    pub fn chosen(&self, x: Tensor<3>, index: Tensor<2>) -> Tensor<2> {
        match runs_on_host(&x.device()) {
            true => chosen_output(x, self.weight.val(), self.bias.val(), index),
            false => chosen_of(self.forward(x, None), index),
        }
    }

    /// The largest legal output per row: its index (the first one if outputs are equal) and its value, both detached.
    ///
    /// # Shapes
    /// - `x`: as for [`StackedLinear::chosen`]
    /// - `mask`: `[n, n_rows, flags]`; each flag, 0 or 1, covers `outputs / flags` consecutive outputs
    /// - output: twice `[n, n_rows]`
    pub fn best(&self, x: Tensor<3>, mask: Option<Tensor<3>>) -> (Tensor<2>, Tensor<2>) {
        if runs_on_host(&x.device()) {
            return best_output(x, self.weight.val(), self.bias.val(), mask);
        }
        best_of(self.forward(x, None), mask)
    }

    /// This layer minus the mean over the outputs of `other`, without computing them: the mean of linear outputs is the
    /// output of the mean weights.
    ///
    /// # Shapes
    /// - `x`: as for [`StackedLinear::forward`]
    /// - output: `[n, n_rows, outputs]`
    pub(crate) fn forward_less_mean_of(&self, other: &Self, x: Tensor<3>) -> Tensor<3> {
        let weight = self.weight.val() - other.weight.val().mean_dim(2);
        let bias = self.bias.val() - other.bias.val().mean_dim(1);
        affine_stack(x, weight, bias, None)
    }

    /// The same layers with `by` added to every output.
    #[cfg(test)]
    pub(crate) fn shifted(self, by: f32) -> Self {
        Self { bias: leaf(self.bias.val() + by), ..self }
    }
}

fn affine_stack(x: Tensor<3>, weight: Tensor<3>, bias: Tensor<2>, activation: Option<Activation>) -> Tensor<3> {
    if any_width(&x) { stacked_layer(x, weight, bias, activation) } else { padded_stack(x, weight, bias, activation) }
}

fn padded_stack(x: Tensor<3>, weight: Tensor<3>, bias: Tensor<2>, activation: Option<Activation>) -> Tensor<3> {
    let outputs = weight.dims()[2];
    first_columns(stacked_layer(pad_columns(x), pad(weight), pad_columns(bias), activation), outputs)
}

/// A new parameter with these initial values, in memory that a GPU keeps for it.
fn parameter<const D: usize>(values: Vec<f32>, dims: [usize; D], device: &Device) -> Param<Tensor<D>> {
    let values = TensorData::new(values, dims);
    leaf(device.memory_persistent_allocations(values, |values| Tensor::from_data(values, device)))
}

/// A new parameter, with gradients if its device is an autodiff device.
///
/// ```
/// use brasa_nn::leaf;
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// // A parameter is trained on an autodiff device only.
/// assert!(leaf(Tensor::<1>::zeros([2], &device.clone().autodiff())).val().is_require_grad());
/// assert!(!leaf(Tensor::<1>::zeros([2], &device)).val().is_autodiff());
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn leaf<const D: usize>(value: Tensor<D>) -> Param<Tensor<D>> {
    let tracked = value.is_autodiff();
    Param::initialized(ParamId::new(), if tracked { value.require_grad() } else { value })
}

/// Pads each matrix with zero rows and columns to multiples of [`SAFE_WIDTH`].
fn pad<const D: usize>(tensor: Tensor<D>) -> Tensor<D> {
    let mut to = tensor.dims();
    to[D - 2] = to[D - 2].next_multiple_of(SAFE_WIDTH);
    to[D - 1] = to[D - 1].next_multiple_of(SAFE_WIDTH);
    pad_to(tensor, to)
}

/// Pads with zero columns only: the number of rows of a batch is arbitrary.
fn pad_columns<const D: usize>(tensor: Tensor<D>) -> Tensor<D> {
    let mut to = tensor.dims();
    to[D - 1] = to[D - 1].next_multiple_of(SAFE_WIDTH);
    pad_to(tensor, to)
}

/// Without the columns of the padding. A slice of everything would still be a launch, and two in the backward pass.
fn first_columns<const D: usize>(tensor: Tensor<D>, n: usize) -> Tensor<D> {
    if tensor.dims()[D - 1] == n { tensor } else { tensor.narrow(D - 1, 0, n) }
}

fn pad_to<const D: usize>(tensor: Tensor<D>, to: [usize; D]) -> Tensor<D> {
    let from = tensor.dims();
    if to == from {
        return tensor;
    }
    Tensor::zeros(to, &tensor.device()).slice_assign(from.map(|n| 0..n), tensor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn padded_layers_side_by_side_are_the_same() {
        let device = brasa_test::device();
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let layer = StackedLinear::new(2, 3, 7, Init::FanIn, &device, &mut rng);
        let x = Tensor::from_data(TensorData::new(Init::FanIn.draw(5, 3, &mut rng).0, [1, 5, 3]), &device);
        let (weight, bias) = (layer.weight.val(), layer.bias.val());
        let padded = padded_stack(x.clone(), weight, bias, Some(Activation::Relu));
        let plain = layer.forward(x, Some(Activation::Relu));
        assert_eq!(padded.dims(), [2, 5, 7]);
        let difference = (padded - plain).abs().max().into_scalar::<f32>();
        assert!(difference < 1e-6, "{difference}");
    }

    /// The short ways of the CPU to one output, against all outputs.
    #[test]
    fn chosen_and_best_outputs_are_those_of_all_outputs() {
        let device = brasa_test::device().autodiff();
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let layer = StackedLinear::new(2, 3, 12, Init::FanIn, &device, &mut rng);
        let x = Tensor::from_data(TensorData::new(Init::FanIn.draw(5, 3, &mut rng).0, [1, 5, 3]), &device);
        let flags = (0..2 * 5 * 4).map(|i| f32::from(u8::from(i % 3 != 1))).collect::<Vec<_>>();
        let mask = Tensor::<3>::from_data(TensorData::new(flags, [2, 5, 4]), &device.clone().without_autodiff());
        for mask in [Some(mask), None] {
            let (index, value) = layer.best(x.clone(), mask.clone());
            let all = best_of(layer.forward(x.clone(), None).inner(), mask);
            assert_eq!(index.into_data(), all.0.into_data());
            let difference = (value - all.1).abs().max().into_scalar::<f32>();
            assert!(difference < 1e-6, "{difference}");
        }
        let index = Tensor::<1, burn::tensor::Int>::arange(0..10, &device.clone().without_autodiff()).float();
        let index = index.reshape([2, 5]);
        let one = layer.chosen(x.clone(), index.clone());
        let all = chosen_of(layer.forward(x, None), index);
        let [one, all] = [one, all].map(|y| {
            let grads = y.clone().square().sum().backward();
            let grad = layer.weight.val().grad(&grads).expect("it is a parameter");
            (y.inner(), grad)
        });
        assert!((one.0 - all.0).abs().max().into_scalar::<f32>() < 1e-6);
        assert!((one.1 - all.1).abs().max().into_scalar::<f32>() < 1e-5);
    }

    #[test]
    fn padding_changes_neither_output_nor_gradients() {
        let device = brasa_test::device().autodiff();
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        for (inputs, outputs) in [(1, 1), (3, 7), (17, 126), (8, 16)] {
            let layer = Linear::new(inputs, outputs, Init::FanIn, &device, &mut rng);
            let x =
                Tensor::<2>::from_data(TensorData::new(Init::FanIn.draw(5, inputs, &mut rng).0, [5, inputs]), &device);
            let plain = layer.forward(x.clone(), None);
            let padded = padded_layer(x, layer.weight.val(), layer.bias.val(), None);
            let grad = |y: Tensor<2>| {
                let grads = y.square().sum().backward();
                let of = |t: Option<TensorData>| t.expect("both parameters have gradients");
                (
                    of(layer.weight.val().grad(&grads).map(Tensor::into_data)),
                    of(layer.bias.val().grad(&grads).map(Tensor::into_data)),
                )
            };
            let close = |a: TensorData, b: TensorData| {
                a.iter::<f32>().zip(b.iter::<f32>()).for_each(|(a, b)| assert!((a - b).abs() < 1e-5, "{a} and {b}"));
            };
            close(plain.clone().into_data(), padded.clone().into_data());
            let ((w, b), (padded_w, padded_b)) = (grad(plain), grad(padded));
            close(w, padded_w);
            close(b, padded_b);
        }
    }
}
