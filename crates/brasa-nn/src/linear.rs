//! A linear layer whose widths are safe on every device.

use brasa_device::runs_on_host;
use burn::module::{Module, Param, ParamId};
use burn::tensor::{Device, Tensor, TensorData, module::linear};
use rand::Rng;

use crate::Init;

/// Fused GPU kernels have computed wrong results for widths such as 1, 7 or 126; multiples of this are safe.
const SAFE_WIDTH: usize = 8;

/// `y = x W + b` with `W` of `[inputs, outputs]`.
///
/// Parameters keep their true shape. Off the host's processor the operands are padded with zeros to multiples of
/// 8 while they are used, because odd widths have met wrong kernels; the result and its gradients are the same.
#[derive(Module, Debug)]
pub struct Linear {
    weight: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
    #[module(skip)]
    padded: bool,
}

impl Linear {
    /// A layer with weights drawn from `rng`, ready to be trained if `device` is an autodiff device.
    pub fn new(inputs: usize, outputs: usize, init: Init, device: &Device, rng: &mut impl Rng) -> Self {
        let (weight, bias) = init.draw(inputs, outputs, rng);
        let weight = Tensor::from_data(TensorData::new(weight, [inputs, outputs]), device);
        let bias = Tensor::from_data(TensorData::new(bias, [outputs]), device);
        Self { weight: leaf(weight), bias: leaf(bias), padded: !runs_on_host(device) }
    }

    /// The same layer with all biases at `value`.
    pub fn with_bias(mut self, value: f32) -> Self {
        self.bias = leaf(Tensor::full(self.bias.dims(), value, &self.bias.device()));
        self
    }

    /// The layer on `x`, then the hyperbolic tangent.
    ///
    /// # Shapes
    /// As [`Linear::forward`].
    pub fn forward_tanh(&self, x: Tensor<2>) -> Tensor<2> {
        match self.padded {
            true => brasa_kernels::tanh(self.forward(x)),
            false => brasa_kernels::linear_tanh(x, self.weight.val(), self.bias.val()),
        }
    }

    /// The layer on `x`.
    ///
    /// # Shapes
    /// - `x`: `[n_rows, inputs]`
    /// - output: `[n_rows, outputs]`
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let (weight, bias) = (self.weight.val(), self.bias.val());
        if self.padded { linear_padded(x, weight, bias) } else { linear(x, weight, Some(bias)) }
    }
}

/// A new parameter, tracked where its device tracks.
pub(crate) fn leaf<const D: usize>(value: Tensor<D>) -> Param<Tensor<D>> {
    let tracked = value.is_autodiff();
    Param::initialized(ParamId::new(), if tracked { value.require_grad() } else { value })
}

/// The same function with every width a multiple of [`SAFE_WIDTH`].
fn linear_padded(x: Tensor<2>, weight: Tensor<2>, bias: Tensor<1>) -> Tensor<2> {
    let ([rows, inputs], outputs) = (x.dims(), weight.dims()[1]);
    let wide = |width: usize| width.next_multiple_of(SAFE_WIDTH);
    let x = pad(x, [rows, wide(inputs)]);
    let weight = pad(weight, [wide(inputs), wide(outputs)]);
    let bias = pad(bias.unsqueeze::<2>(), [1, wide(outputs)]);
    (x.matmul(weight) + bias).slice([0..rows, 0..outputs])
}

/// Adds zeros after the last row and column.
fn pad(tensor: Tensor<2>, to: [usize; 2]) -> Tensor<2> {
    let [rows, columns] = tensor.dims();
    if to == [rows, columns] {
        return tensor;
    }
    Tensor::zeros(to, &tensor.device()).slice_assign([0..rows, 0..columns], tensor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn padding_changes_neither_output_nor_gradients() {
        let device = brasa_device::open_named("cpu").expect("flex is a default feature").autodiff();
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        for (inputs, outputs) in [(1, 1), (3, 7), (17, 126), (8, 16)] {
            let layer = Linear::new(inputs, outputs, Init::FanIn, &device, &mut rng);
            let x =
                Tensor::<2>::from_data(TensorData::new(Init::FanIn.draw(5, inputs, &mut rng).0, [5, inputs]), &device);
            let plain = layer.forward(x.clone());
            let padded = linear_padded(x, layer.weight.val(), layer.bias.val());
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
