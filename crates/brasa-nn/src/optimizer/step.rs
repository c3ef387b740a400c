//! A step of Adam and of RMSprop, on plain memory and on tensors.

use brasa_kernels::elementwise_list;
use brasa_number::{Number, Single};
use burn::tensor::Tensor;
use pulp::{Simd, WithSimd};

use super::{OptimizerConfig, RmsPropStyle};

/// One step of an optimizer. `g` is the clipped gradient plus `weight_decay` times the weight.
///
/// Operations have PyTorch's order, so that rounding agrees as well.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OptimizerStep {
    rule: Either,
    factors: [f64; 2],
}

#[derive(Debug, Clone, Copy)]
enum Either {
    Adam(Adam),
    RmsProp(RmsProp),
}

impl OptimizerStep {
    /// Step number `step`, from 1.
    pub(crate) fn new(config: &OptimizerConfig, step: u64, learning_rate: f64) -> Self {
        match config {
            OptimizerConfig::Adam(config) => {
                let correction = |beta: f64| 1.0 - beta.powf(step as f64);
                let adam = Adam {
                    betas: [config.beta_1, config.beta_2].map(Decay::new),
                    epsilon: config.epsilon,
                    decay: config.weight_decay,
                };
                let factors = [learning_rate / correction(config.beta_1), 1.0 / correction(config.beta_2).sqrt()];
                Self { rule: Either::Adam(adam), factors }
            }
            OptimizerConfig::RmsProp(config) => {
                let (inside, outside) = match config.style {
                    RmsPropStyle::Tensorflow => (config.epsilon, 0.0),
                    RmsPropStyle::Pytorch => (0.0, config.epsilon),
                };
                let (alpha, momentum, decay) = (Decay::new(config.alpha), config.momentum, config.weight_decay);
                let rms_prop = RmsProp { alpha, momentum, decay, inside, outside };
                Self { rule: Either::RmsProp(rms_prop), factors: [learning_rate, 0.0] }
            }
        }
    }

    /// What changes from step to step: Adam's step size and the inverse root of its correction, or the learning rate.
    pub(crate) fn factors(&self) -> [f64; 2] {
        self.factors
    }

    /// The step on plain memory; the gradient is multiplied by `scale` first (clipping). `first` is empty if the optimizer keeps none.
    pub(crate) fn on_host(&self, scale: f32, weight: &mut [f32], grad: &[f32], first: &mut [f32], second: &mut [f32]) {
        let n_first = if first.is_empty() { weight.len() } else { first.len() };
        assert!([grad.len(), n_first, second.len()].iter().all(|n| *n == weight.len()), "lengths of the moments");
        let (factors, scale) = (self.factors.map(|factor| Single(factor as f32)), Single(scale));
        // Compiled once per instruction set and selected at run time.
        let arch = pulp::Arch::new();
        match self.rule {
            Either::Adam(rule) => arch.dispatch(Pass { rule, factors, scale, weight, grad, first, second }),
            Either::RmsProp(rule) => arch.dispatch(Pass { rule, factors, scale, weight, grad, first, second }),
        }
    }

    /// The step on tensors, one launch on a GPU. No handle to the old weights is left then. Both factors may be missing: by which the gradient is multiplied, `[1]`, and
    /// [`OptimizerStep::factors`] as data, `[2]`, for a step that is recorded.
    pub(crate) fn on_device(
        &self,
        weight: Tensor<1>,
        grad: Tensor<1>,
        first: &mut Option<Tensor<1>>,
        second: &mut Tensor<1>,
        [scale, factors]: [Option<&Tensor<1>>; 2],
    ) -> Tensor<1> {
        let n = weight.dims()[0];
        let new = elementwise_list([n, 1], |formulas| {
            let (weight, mut grad) = (formulas.read(&weight), formulas.read(&grad));
            if let Some(scale) = scale {
                grad = grad * formulas.read(scale);
            }
            let factors = match factors {
                Some(factors) => {
                    let factors = formulas.matrix(&factors.clone().reshape([1, 2]));
                    [0, 1].map(|i| factors.column(i))
                }
                None => self.factors.map(|factor| formulas.number(factor)),
            };
            let kept = first.as_ref().map_or_else(|| formulas.constant(0.0), |first| formulas.read(first));
            let moments = [kept, formulas.read(second)];
            let [weight, new_first, second] = match &self.rule {
                Either::Adam(rule) => rule.step(weight, grad, moments, factors),
                Either::RmsProp(rule) => rule.step(weight, grad, moments, factors),
            };
            let kept = first.as_ref().map(|_| vec![new_first]);
            [vec![weight], vec![second]].into_iter().chain(kept).collect()
        });
        let mut new = new.into_iter().map(|numbers| numbers.reshape([n]));
        let mut next = || new.next().expect("weight and second moment, and the first one if it is kept");
        let weight = next();
        *second = next();
        first.iter_mut().for_each(|first| *first = next());
        weight
    }
}

/// How an optimizer changes a weight.
trait Rule: Copy {
    /// New weight, first and second moment of one number.
    fn step<N: Number>(self, weight: N, grad: N, moments: [N; 2], factors: [N; 2]) -> [N; 3];

    /// The same where the gradient is 0, by fewer operations with the same rounding.
    fn idle<N: Number>(self, weight: N, moments: [N; 2], factors: [N; 2]) -> [N; 3] {
        self.step(weight, weight.constant(0.0), moments, factors)
    }

    /// Factor of the weight that is added to its gradient. Without it, gradients of 0 are [`Rule::idle`].
    fn weight_decay(self) -> f64;
}

/// A moment that decays.
#[derive(Debug, Clone, Copy)]
struct Decay {
    old: f64,
    new: f64,
}

impl Decay {
    /// The sum of both shares is 1 in 32 bits.
    fn new(old: f64) -> Self {
        Self { old, new: f64::from(1.0 - old as f32) }
    }
}

/// Smaller moments become 0. The moments of a weight without gradients decay, and numbers without a full mantissa, to which they decay, take
/// a processor thirty times as long. The steps that such moments make are far below the last digit of any weight.
const TINY_MEAN: f32 = 1e-30;
const TINY_SQUARE: f32 = f32::MIN_POSITIVE;
/// The share of the square of a smaller gradient is below [`TINY_SQUARE`].
const TINY_ROOT: f32 = 4e-18;

/// `x`, or 0 if it is smaller than `tiny`; a NaN remains one.
#[inline(always)]
fn or_zero<N: Number>(x: N, tiny: f32) -> N {
    N::select(x.abs().lower(x.constant(f64::from(tiny))), x.constant(0.0), x)
}

/// `m = b1 m + (1 - b1) g`, `v = b2 v + (1 - b2) g^2`, `w -= lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps)`.
#[derive(Debug, Clone, Copy)]
struct Adam {
    betas: [Decay; 2],
    epsilon: f64,
    decay: f64,
}

impl Rule for Adam {
    #[inline(always)]
    fn step<N: Number>(self, w: N, grad: N, [m, v]: [N; 2], [step_size, inverse_root]: [N; 2]) -> [N; 3] {
        let [first, second] = self.betas;
        let g = grad + w * self.decay;
        let m = or_zero(m * first.old + g * first.new, TINY_MEAN);
        let g = or_zero(g, TINY_ROOT);
        let v = or_zero(v * second.old + g * second.new * g, TINY_SQUARE);
        [w - step_size * m / (v.sqrt() * inverse_root + self.epsilon), m, v]
    }

    fn weight_decay(self) -> f64 {
        self.decay
    }
}

/// `v = a v + (1 - a) g^2`, `m = mu m + g / (sqrt(v) + eps)` or `g / sqrt(v + eps)`, `w -= lr m`.
#[derive(Debug, Clone, Copy)]
struct RmsProp {
    alpha: Decay,
    momentum: f64,
    decay: f64,
    /// Epsilon inside the root, or outside.
    inside: f64,
    outside: f64,
}

impl Rule for RmsProp {
    #[inline(always)]
    fn step<N: Number>(self, w: N, grad: N, [m, v]: [N; 2], [learning_rate, _]: [N; 2]) -> [N; 3] {
        let g = grad + w * self.decay;
        let root = or_zero(g, TINY_ROOT);
        let v = or_zero(v * self.alpha.old + root * self.alpha.new * root, TINY_SQUARE);
        let m = or_zero(m * self.momentum + g / ((v + self.inside).sqrt() + self.outside), TINY_MEAN);
        [w - learning_rate * m, m, v]
    }

    /// Without root and division, because the numerator is 0.
    #[inline(always)]
    fn idle<N: Number>(self, w: N, [m, v]: [N; 2], [learning_rate, _]: [N; 2]) -> [N; 3] {
        let v = or_zero(v * self.alpha.old, TINY_SQUARE);
        let m = or_zero(m * self.momentum, TINY_MEAN);
        [w - learning_rate * m, m, v]
    }

    fn weight_decay(self) -> f64 {
        self.decay
    }
}

/// Numbers per block of the optimizer: one or two vector registers.
///
/// In networks with many actions most gradients are exactly 0, because few actions are taken; those of actions that are
/// never legal are always 0. Blocks of zero gradients have a faster path to the same result.
const LANES: usize = 16;

/// One step for all numbers of a parameter.
struct Pass<'a, R> {
    rule: R,
    factors: [Single; 2],
    scale: Single,
    weight: &'a mut [f32],
    grad: &'a [f32],
    first: &'a mut [f32],
    second: &'a mut [f32],
}

impl<R: Rule> WithSimd for Pass<'_, R> {
    type Output = ();

    // A closure of this size would not be compiled for the selected instruction set.
    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let Self { rule, factors, scale, weight, grad, first, second } = self;
        let each = Each { rule, factors, scale };
        let has_first = !first.is_empty();
        let (weights, weight) = weight.as_chunks_mut::<LANES>();
        let (grads, grad) = grad.as_chunks::<LANES>();
        let (firsts, first) = first.as_chunks_mut::<LANES>();
        let (seconds, second) = second.as_chunks_mut::<LANES>();
        if has_first {
            for (((weight, grad), first), second) in weights.iter_mut().zip(grads).zip(firsts).zip(seconds) {
                each.block(weight, grad, first, second);
            }
            for (((weight, grad), first), second) in weight.iter_mut().zip(grad).zip(first).zip(second) {
                each.one(weight, *grad, first, second);
            }
        } else {
            // The past moment is 0, and the new one is dropped.
            for ((weight, grad), second) in weights.iter_mut().zip(grads).zip(seconds) {
                each.block(weight, grad, &mut [0.0; LANES], second);
            }
            for ((weight, grad), second) in weight.iter_mut().zip(grad).zip(second) {
                each.one(weight, *grad, &mut 0.0, second);
            }
        }
    }
}

/// A rule with the numbers of this step.
#[derive(Clone, Copy)]
struct Each<R> {
    rule: R,
    factors: [Single; 2],
    scale: Single,
}

impl<R: Rule> Each<R> {
    #[inline(always)]
    fn one(self, weight: &mut f32, grad: f32, first: &mut f32, second: &mut f32) {
        let moments = [Single(*first), Single(*second)];
        let new = self.rule.step(Single(*weight), Single(grad) * self.scale, moments, self.factors);
        [*weight, *first, *second] = new.map(|x| x.0);
    }

    #[inline(always)]
    fn block(
        self,
        weight: &mut [f32; LANES],
        grad: &[f32; LANES],
        first: &mut [f32; LANES],
        second: &mut [f32; LANES],
    ) {
        if self.rule.weight_decay() == 0.0 && are_zero(grad) {
            // Unchanged memory is not written.
            if !(are_zero(first) && are_zero(second)) {
                for i in 0..LANES {
                    let moments = [Single(first[i]), Single(second[i])];
                    let new = self.rule.idle(Single(weight[i]), moments, self.factors);
                    [weight[i], first[i], second[i]] = new.map(|x| x.0);
                }
            }
            return;
        }
        for i in 0..LANES {
            self.one(&mut weight[i], grad[i], &mut first[i], &mut second[i]);
        }
    }
}

/// Whether all numbers of a block are 0, of either sign.
#[inline(always)]
pub(crate) fn are_zero(values: &[f32; LANES]) -> bool {
    values.iter().fold(0, |bits, x| bits | x.to_bits()) << 1 == 0
}

#[cfg(test)]
mod tests {
    use super::super::{AdamConfig, RmsPropConfig};
    use super::*;

    #[test]
    fn both_forms_take_the_same_steps() {
        let device = brasa_test::device();
        let tensor = |values: &[f32]| Tensor::<1>::from_floats(values, &device);
        let half = tensor(&[0.5]);
        let decayed = AdamConfig { weight_decay: 0.1, ..AdamConfig::default() };
        let pytorch = RmsPropConfig { style: RmsPropStyle::Pytorch, momentum: 0.5, ..RmsPropConfig::default() };
        for config in [
            OptimizerConfig::from(AdamConfig::default()),
            decayed.into(),
            RmsPropConfig::default().into(),
            RmsPropConfig { weight_decay: 0.1, ..pytorch }.into(),
        ] {
            let start = if config == RmsPropConfig::default().into() { 1.0 } else { 0.0 };
            // More numbers than a group of threads of a GPU has.
            let n = 1003;
            let wave = |speed: f32| (0..n).map(|i| (i as f32 * speed).sin()).collect::<Vec<_>>();
            let (mut weight, mut first, mut second) = (wave(0.3), vec![0.0; n], vec![start; n]);
            if config == RmsPropConfig::default().into() {
                first.clear();
            }
            let (mut device_weight, mut device_second) = (tensor(&weight), tensor(&second));
            let mut device_first = (!first.is_empty()).then(|| tensor(&first));
            for i in 1..=5 {
                let mut grad = wave(0.7 * i as f32);
                grad[..3].copy_from_slice(&[0.1 * i as f32, -1.0, 1e-4]);
                let step = OptimizerStep::new(&config, i, 0.01);
                step.on_host(0.5, &mut weight, &grad, &mut first, &mut second);
                let (m, v) = (&mut device_first, &mut device_second);
                // Every other one as in a recording.
                let factors = (i % 2 == 0).then(|| tensor(&step.factors().map(|factor| factor as f32)));
                device_weight = step.on_device(device_weight, tensor(&grad), m, v, [Some(&half), factors.as_ref()]);
            }
            for (got, expected) in device_weight.into_data().iter::<f32>().zip(&weight) {
                assert!((got - expected).abs() < 1e-6, "{config:?}: {got} and {expected}");
            }
        }
    }

    /// 35 numbers: two blocks and a rest.
    #[test]
    fn steps_without_momentum_need_no_first_moment() {
        let config = OptimizerConfig::from(RmsPropConfig::default());
        let grad: Vec<f32> = (0..35).map(|i| if i < 16 { 0.0 } else { (i as f32).sin() }).collect();
        let (mut with, mut without) = ((vec![0.5; 35], vec![0.0; 35], vec![1.0; 35]), (vec![0.5; 35], vec![1.0; 35]));
        for step in 1..4 {
            let step = OptimizerStep::new(&config, step, 0.01);
            step.on_host(0.7, &mut with.0, &grad, &mut with.1, &mut with.2);
            step.on_host(0.7, &mut without.0, &grad, &mut [], &mut without.1);
        }
        assert_eq!((with.0, with.2), without);
    }

    #[test]
    fn moments_without_gradients_become_0_without_an_effect_on_weights() {
        let config = OptimizerConfig::from(AdamConfig::off_policy());
        let (mut weight, mut first, mut second) = (vec![0.5f32], vec![0.0], vec![0.0]);
        for step in 1..=200_000 {
            let grad = if step == 1 { 1e-3 } else { 0.0 };
            OptimizerStep::new(&config, step, 1e-3).on_host(1.0, &mut weight, &[grad], &mut first, &mut second);
            assert!(first[0] == 0.0 || first[0].is_normal());
            assert!(second[0] == 0.0 || second[0].is_normal());
        }
        assert_eq!((first[0], second[0]), (0.0, 0.0));
        // As in 64 bits without a limit.
        let (mut exact, mut m, mut v) = (0.5f64, 0.0, 0.0);
        for step in 1..=1000 {
            let grad: f64 = if step == 1 { 1e-3 } else { 0.0 };
            m = 0.9 * m + 0.1 * grad;
            v = 0.999 * v + 0.001 * grad * grad;
            exact -= 1e-3 / (1.0 - 0.9f64.powi(step)) * m / (v.sqrt() / (1.0 - 0.999f64.powi(step)).sqrt() + 1e-8);
        }
        assert!((f64::from(weight[0]) - exact).abs() < 1e-6, "{} instead of {exact}", weight[0]);
    }

    #[test]
    fn gradients_of_0_go_the_short_way_to_the_same_result() {
        let pytorch = RmsPropConfig { style: RmsPropStyle::Pytorch, momentum: 0.5, ..RmsPropConfig::default() };
        for config in [
            OptimizerConfig::from(AdamConfig::default()),
            AdamConfig { weight_decay: 0.1, ..AdamConfig::default() }.into(),
            RmsPropConfig::default().into(),
            pytorch.into(),
        ] {
            // Blocks with and without gradients, some with earlier moments, and a remainder.
            let n = 5 * LANES + 3;
            let grad: Vec<f32> =
                (0..n).map(|i| if (i / LANES).is_multiple_of(2) { 0.0 } else { (i as f32).sin() }).collect();
            let start = |seed: f32| -> Vec<f32> {
                (0..n).map(|i| if i < 3 * LANES { 0.0 } else { (i as f32 * seed).cos().abs() }).collect()
            };
            let [mut weight, mut first, mut second] = [0.3, 0.7, 1.1].map(start);
            let [mut one_weight, mut one_first, mut one_second] = [0.3, 0.7, 1.1].map(start);
            for step in 1..4 {
                let step = OptimizerStep::new(&config, step, 0.01);
                step.on_host(0.7, &mut weight, &grad, &mut first, &mut second);
                // Pieces shorter than a block do not use the faster path.
                let at = |values: &mut Vec<f32>, i: usize| values[i..i + 1].to_vec();
                for i in 0..n {
                    let (mut w, mut m, mut v) = (at(&mut one_weight, i), at(&mut one_first, i), at(&mut one_second, i));
                    step.on_host(0.7, &mut w, &grad[i..i + 1], &mut m, &mut v);
                    (one_weight[i], one_first[i], one_second[i]) = (w[0], m[0], v[0]);
                }
            }
            assert_eq!((&weight, &first, &second), (&one_weight, &one_first, &one_second), "{config:?}");
        }
    }
}
