//! Initial weights of Burn's own layers from a random stream.

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Tensor, TensorData};
use rand::Rng;

use crate::Init;

/// `module` with initial weights from `rng`, in the order of its fields, so that a seed gives equal weights on every device.
///
/// This covers layers of [`burn::nn`] whose weights are matrices `[inputs, outputs]` or kernels of convolutions
/// `[channels_out, channels_in, ...]`, whose inputs are those of one output. Biases follow [`Init`] too. Other parameters, such as those of
/// normalization layers, keep their values.
///
/// ```
/// use brasa_nn::{Init, initialized};
/// use burn::nn::LinearConfig;
///
/// let device = brasa_device::open_named("cpu")?;
/// let layer = || {
///     let rng = &mut brasa_core::env::named_rng(0, "weights", 0);
///     initialized(LinearConfig::new(4, 2).init(&device), Init::Orthogonal(1.0), rng)
/// };
/// let weights = |layer: &burn::nn::Linear| layer.weight.val().into_data().iter::<f32>().collect::<Vec<_>>();
/// assert_eq!(weights(&layer()), weights(&layer()));
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn initialized<M: Module>(module: M, init: Init, rng: &mut (impl Rng + ?Sized)) -> M {
    module.map(&mut Draw { name: String::new(), init, rng, bias: None })
}

struct Draw<'a, R: ?Sized> {
    /// The field that was entered last, which is the parameter where one is mapped.
    name: String,
    init: Init,
    rng: &'a mut R,
    /// The biases that were drawn with the last weights.
    bias: Option<Vec<f32>>,
}

impl<R: Rng + ?Sized> ModuleMapper for Draw<'_, R> {
    fn enter_module(&mut self, name: &str, _container_type: &str) {
        name.clone_into(&mut self.name);
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let dims = param.val().dims();
        let numbers = match D {
            0 => None,
            1 => self.bias.take().filter(|bias| self.name == "bias" && bias.len() == dims[0]),
            2 => {
                let (weight, bias) = self.init.draw(dims[0], dims[1], self.rng);
                self.bias = Some(bias);
                Some(weight)
            }
            _ => {
                let (inputs, outputs) = (dims[1..].iter().product(), dims[0]);
                let (weight, bias) = self.init.draw(inputs, outputs, self.rng);
                self.bias = Some(bias);
                // One row per output.
                Some((0..inputs * outputs).map(|i| weight[i % inputs * outputs + i / inputs]).collect())
            }
        };
        let Some(numbers) = numbers else { return param };
        param.map(|old| {
            let value = Tensor::<D>::from_data(TensorData::new(numbers, dims), &old.device());
            if old.is_require_grad() { value.require_grad() } else { value }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brasa_core::env::named_rng;
    use brasa_core::read_back;
    use burn::nn::conv::{Conv2d, Conv2dConfig};
    use burn::nn::{LayerNorm, LayerNormConfig, Linear, LinearConfig};

    #[derive(Module, Debug)]
    struct Layers {
        kernel: Conv2d,
        norm: LayerNorm,
        linear: Linear,
    }

    fn numbers<const D: usize>(param: &Param<Tensor<D>>) -> Vec<f32> {
        read_back(param.val().inner())
    }

    #[test]
    fn kernels_and_matrices_are_drawn_and_other_parameters_stay() {
        let device = brasa_test::device().autodiff();
        let layers = |seed| {
            let layers = Layers {
                kernel: Conv2dConfig::new([2, 4], [3, 3]).init(&device),
                norm: LayerNormConfig::new(5).init(&device),
                linear: LinearConfig::new(5, 3).init(&device),
            };
            initialized(layers, Init::Orthogonal(2.0), &mut named_rng(seed, "test", 0))
        };
        let (first, again, other) = (layers(0), layers(0), layers(1));
        assert_eq!(numbers(&first.kernel.weight), numbers(&again.kernel.weight));
        assert_ne!(numbers(&first.kernel.weight), numbers(&other.kernel.weight));
        assert_eq!(numbers(&first.norm.gamma), [1.0; 5]);
        for bias in [&first.kernel.bias, &first.linear.bias] {
            assert!(numbers(bias.as_ref().expect("it has one")).iter().all(|x| *x == 0.0));
        }
        assert!(first.kernel.weight.val().is_require_grad());
        // The kernel of each output is a row: orthogonal, with the norm of the gain.
        let kernel = numbers(&first.kernel.weight);
        let rows: Vec<&[f32]> = kernel.chunks(18).collect();
        for (i, a) in rows.iter().enumerate() {
            for (j, b) in rows.iter().enumerate() {
                let dot: f32 = a.iter().zip(*b).map(|(a, b)| a * b).sum();
                let expected = if i == j { 4.0 } else { 0.0 };
                assert!((dot - expected).abs() < 1e-5, "{i}, {j}: {dot}");
            }
        }
    }

    #[test]
    fn biases_follow_the_inputs_of_their_weights() {
        let device = brasa_test::device();
        let rng = &mut named_rng(0, "test", 0);
        let layer = initialized(Conv2dConfig::new([4, 64], [5, 5]).init(&device), Init::FanIn, rng);
        let largest = |numbers: Vec<f32>| numbers.iter().fold(0.0f32, |most, x| most.max(x.abs()));
        for numbers in [numbers(&layer.weight), numbers(layer.bias.as_ref().expect("it has one"))] {
            let largest = largest(numbers);
            assert!(largest <= 0.1 && largest > 0.08, "{largest}");
        }
    }
}
