//! Layer normalization on the CPU: one pass over rows, forward and backward.

use burn::backend::Flex;
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::tensor::TensorData;
use pulp::{Simd, WithSimd};

use super::{EPSILON, LayerNormBackward, LayerNormOps};
use crate::Activation;
use crate::elu::{elu_f32, elu_slope_f32};
use crate::layer::relu_f32;

/// Partial sums that the compiler may keep in one vector register.
const LANES: usize = 16;

impl LayerNormOps for Flex {
    fn brasa_layer_norm(
        x: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        shift: FloatTensor<Self>,
        activation: Option<Activation>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let [x, scale, shift] = [x, scale, shift].map(|tensor| tensor.to_contiguous());
        let (width, n) = (scale.layout().num_elements(), x.layout().num_elements());
        let rows = n / width.max(1);
        let (mut y, mut moments) = (vec![0.0f32; n], vec![0.0f32; 2 * rows]);
        forward_into(floats(&x), [floats(&scale), floats(&shift)], activation, &mut y, &mut moments);
        let y = FlexTensor::from_data(TensorData::new(y, x.layout().shape().to_vec()));
        (y, FlexTensor::from_data(TensorData::new(moments, [rows, 2])))
    }
}

impl LayerNormBackward for Flex {
    fn layer_norm_backward(
        kept: [FloatTensor<Self>; 4],
        grad: FloatTensor<Self>,
        activation: Option<Activation>,
    ) -> [FloatTensor<Self>; 3] {
        let [x, scale, y, moments] = kept.map(|tensor| tensor.to_contiguous());
        let grad = grad.to_contiguous();
        let width = scale.layout().num_elements();
        let mut grad_x = vec![0.0f32; x.layout().num_elements()];
        let (mut grad_scale, mut grad_shift) = (vec![0.0f32; width], vec![0.0f32; width]);
        let results = Results { x: floats(&x), scale: floats(&scale), y: floats(&y), moments: floats(&moments) };
        backward_into(results, floats(&grad), activation, &mut grad_x, [&mut grad_scale, &mut grad_shift]);
        let vector = |values| FlexTensor::from_data(TensorData::new(values, [width]));
        let grad_x = FlexTensor::from_data(TensorData::new(grad_x, x.layout().shape().to_vec()));
        [grad_x, vector(grad_scale), vector(grad_shift)]
    }
}

/// Normalizes the rows of `x`, each as long as `scale`, to `y`; `moments` receives the mean and the inverse standard deviation of each.
pub(crate) fn forward_into(
    x: &[f32],
    [scale, shift]: [&[f32]; 2],
    activation: Option<Activation>,
    y: &mut [f32],
    moments: &mut [f32],
) {
    // Compiled once per instruction set and selected at run time.
    pulp::Arch::new().dispatch(Forward { x, scale, shift, activation, y, moments });
}

/// What a forward pass had and computed.
pub(crate) struct Results<'a> {
    pub(crate) x: &'a [f32],
    pub(crate) scale: &'a [f32],
    pub(crate) y: &'a [f32],
    pub(crate) moments: &'a [f32],
}

/// From the gradient `grad` by the results: that by `x` to `grad_x`, and what is added to those of scale and shift.
pub(crate) fn backward_into(
    results: Results<'_>,
    grad: &[f32],
    activation: Option<Activation>,
    grad_x: &mut [f32],
    [grad_scale, grad_shift]: [&mut [f32]; 2],
) {
    let Results { x, scale, y, moments } = results;
    pulp::Arch::new().dispatch(Backward { x, scale, y, moments, grad, activation, grad_x, grad_scale, grad_shift });
}

/// The elements of a contiguous tensor.
fn floats(tensor: &FlexTensor) -> &[f32] {
    let first = tensor.layout().start_offset();
    &tensor.storage::<f32>()[first..first + tensor.layout().num_elements()]
}

/// `sum of term(0..n)` in SIMD lanes.
#[inline(always)]
fn sum_of(n: usize, term: impl Fn(usize) -> f32) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let whole = n / LANES * LANES;
    let mut first = 0;
    while first < whole {
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum += term(first + lane);
        }
        first += LANES;
    }
    let rest = (whole..n).fold(0.0, |sum, i| sum + term(i));
    lanes.iter().sum::<f32>() + rest
}

/// The forward pass; it is a type because only small closures are compiled for the selected instruction set.
struct Forward<'a> {
    x: &'a [f32],
    scale: &'a [f32],
    shift: &'a [f32],
    activation: Option<Activation>,
    y: &'a mut [f32],
    moments: &'a mut [f32],
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        match self.activation {
            Some(Activation::Tanh) => self.run(brasa_number::tanh),
            Some(Activation::Relu) => self.run(relu_f32),
            Some(Activation::Elu) => self.run(elu_f32),
            None => self.run(|x| x),
        }
    }
}

impl Forward<'_> {
    #[inline(always)]
    fn run(self, activation: impl Fn(f32) -> f32) {
        let width = self.scale.len();
        if width == 0 {
            return;
        }
        let rows = self.x.chunks_exact(width).zip(self.y.chunks_exact_mut(width)).zip(self.moments.chunks_exact_mut(2));
        for ((x, y), moments) in rows {
            let mean = sum_of(width, |i| x[i]) / width as f32;
            // A second pass over cached numbers: the mean of squares minus the square of the mean loses digits.
            let variance = sum_of(width, |i| (x[i] - mean) * (x[i] - mean)) / width as f32;
            let inverse = 1.0 / (variance + EPSILON).sqrt();
            moments.copy_from_slice(&[mean, inverse]);
            for (((y, x), scale), shift) in y.iter_mut().zip(x).zip(self.scale).zip(self.shift) {
                *y = activation((x - mean) * inverse * scale + shift);
            }
        }
    }
}

/// The backward pass.
struct Backward<'a> {
    x: &'a [f32],
    scale: &'a [f32],
    y: &'a [f32],
    moments: &'a [f32],
    grad: &'a [f32],
    activation: Option<Activation>,
    grad_x: &'a mut [f32],
    grad_scale: &'a mut [f32],
    grad_shift: &'a mut [f32],
}

impl WithSimd for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        // Derivatives of the activation from results.
        match self.activation {
            Some(Activation::Tanh) => self.run(|y| 1.0 - y * y),
            Some(Activation::Relu) => self.run(|y| if y <= 0.0 { 0.0 } else { 1.0 }),
            Some(Activation::Elu) => self.run(elu_slope_f32),
            None => self.run(|_| 1.0),
        }
    }
}

impl Backward<'_> {
    /// With `n = (x - mean) inverse` and `g` the gradient of `n`: `inverse (g - mean(g) - n mean(g n))`.
    #[inline(always)]
    fn run(self, slope: impl Fn(f32) -> f32) {
        let width = self.scale.len();
        if width == 0 {
            return;
        }
        let scale = self.scale;
        let (mut normal, mut inner) = (vec![0.0f32; width], vec![0.0f32; width]);
        let rows = self.x.chunks_exact(width).zip(self.y.chunks_exact(width)).zip(self.grad.chunks_exact(width));
        let rows = rows.zip(self.moments.chunks_exact(2)).zip(self.grad_x.chunks_exact_mut(width));
        for ((((x, y), grad), moments), grad_x) in rows {
            let (mean, inverse) = (moments[0], moments[1]);
            for (normal, x) in normal.iter_mut().zip(x) {
                *normal = (x - mean) * inverse;
            }
            for ((inner, grad), y) in inner.iter_mut().zip(grad).zip(y) {
                *inner = grad * slope(*y);
            }
            for ((sum, inner), normal) in self.grad_scale.iter_mut().zip(&inner).zip(&normal) {
                *sum += inner * normal;
            }
            for (sum, inner) in self.grad_shift.iter_mut().zip(&inner) {
                *sum += inner;
            }
            for (inner, scale) in inner.iter_mut().zip(scale) {
                *inner *= scale;
            }
            let (inner, normal) = (&inner[..width], &normal[..width]);
            let mean_grad = sum_of(width, |i| inner[i]) / width as f32;
            let mean_both = sum_of(width, |i| inner[i] * normal[i]) / width as f32;
            for ((grad_x, inner), normal) in grad_x.iter_mut().zip(inner).zip(normal) {
                *grad_x = inverse * (inner - mean_grad - normal * mean_both);
            }
        }
    }
}
