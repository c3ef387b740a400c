//! Dynamic loss scaling, for gradients in 16 bits.

use brasa_core::read_back;
use burn::tensor::{Bool, Device, Tensor};

use crate::held::InPlace;

/// Scale at the start (PyTorch's `GradScaler`).
const INITIAL: f32 = 65536.0;
/// Steps without overflow before the scale grows (PyTorch's `growth_interval`).
const INTERVAL: f32 = 2000.0;
const GROWTH: f32 = 2.0;
const BACK_OFF: f32 = 0.5;
/// The scale stays in this range, so that it can recover.
const RANGE: (f32, f32) = (1.0 / 65536.0, 16_777_216.0);

/// A factor of losses that keeps small gradients above the smallest numbers of [`brasa_device::Precision::F16`] (Micikevicius et al.
/// 2018, section 3.2).
///
/// Gradients are divided by it before they are used. If one is not finite, the step is skipped and the scale halved; after 2000 steps
/// without that it doubles. A skipped step still counts in the bias correction of Adam, because a device does not report it.
/// All values stay on the device.
///
/// ```
/// use brasa_nn::LossScale;
///
/// let device = brasa_device::open_named("cpu")?;
/// // The scale at the start, steps since its last change, and skipped steps.
/// assert_eq!(LossScale::new(&device).read(), [65536.0, 0.0, 0.0]);
/// // As saved by an earlier program.
/// assert_eq!(LossScale::restored([8192.0, 100.0, 3.0], &device).read(), [8192.0, 100.0, 3.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone)]
pub struct LossScale {
    /// `[1]`, like the others.
    scale: InPlace,
    /// Steps since the last change of the scale.
    good: InPlace,
    /// Steps that were skipped.
    skipped: InPlace,
}

impl LossScale {
    /// The scale before the first step; `device` may be an autodiff device.
    pub fn new(device: &Device) -> Self {
        Self::restored([INITIAL, 0.0, 0.0], device)
    }

    /// A saved state: see [`LossScale::read`].
    pub fn restored([scale, good, skipped]: [f32; 3], device: &Device) -> Self {
        let device = device.clone().without_autodiff();
        let tensor = |value: f32| Tensor::<1>::from_floats([value], &device).into();
        Self { scale: tensor(scale), good: tensor(good), skipped: tensor(skipped) }
    }

    /// Scale, steps since its last change, and number of skipped steps; waits for the device.
    pub fn read(&self) -> [f32; 3] {
        let all = read_back(Tensor::cat(vec![self.scale.get(), self.good.get(), self.skipped.get()], 0));
        [all[0], all[1], all[2]]
    }

    /// The scale, `[1]`.
    pub fn scale(&self) -> Tensor<1> {
        self.scale.copy()
    }

    /// Number of skipped steps, `[1]`.
    pub fn skipped(&self) -> Tensor<1> {
        self.skipped.copy()
    }

    pub(crate) fn places(&mut self) -> [&mut InPlace; 3] {
        [&mut self.scale, &mut self.good, &mut self.skipped]
    }

    /// Adjusts the scale after a backward pass. Returns whether all gradients are finite, `[1]`.
    pub(crate) fn adjust(&mut self, grads: &Tensor<2>) -> Tensor<1, Bool> {
        // A sum is not finite if one of its terms is not, and no comparison with NaN is true.
        let finite = grads.clone().abs().sum().lower_equal_scalar(f32::MAX);
        self.adjust_by(finite.clone().float());
        finite
    }

    /// The inverse of the scale, on a device whose tensors are read without waiting.
    pub(crate) fn inverse_on_host(&self) -> f32 {
        1.0 / self.read()[0]
    }

    pub(crate) fn adjust_on_host(&mut self, finite: bool) {
        self.adjust_by(Tensor::full([1], f32::from(finite), &self.scale.get().device()));
    }

    /// `finite` is 1 or 0.
    fn adjust_by(&mut self, finite: Tensor<1>) {
        let overflow = -finite.clone() + 1.0;
        let good = (self.good.get() + 1.0) * finite.clone();
        let grows = good.clone().greater_equal_scalar(INTERVAL).float();
        let factor = finite * (grows.clone() * (GROWTH - 1.0) + 1.0) + overflow.clone() * BACK_OFF;
        self.scale.set((self.scale.get() * factor).clamp(RANGE.0, RANGE.1));
        self.good.set(good * (-grows + 1.0));
        self.skipped.set(self.skipped.get() + overflow);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_halves_with_every_overflow_and_doubles_after_2000_steps() {
        let device = brasa_test::device();
        let mut scale = LossScale::new(&device);
        let grads = |x: f32| Tensor::<2>::from_floats([[1.0, x, -2.0]], &device);
        for x in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
            assert!(!scale.adjust(&grads(x)).into_scalar::<bool>());
        }
        assert_eq!(scale.read(), [8192.0, 0.0, 3.0]);
        for _ in 0..1999 {
            scale.adjust_on_host(true);
        }
        assert_eq!(scale.read(), [8192.0, 1999.0, 3.0]);
        assert!(scale.adjust(&grads(0.5)).into_scalar::<bool>());
        assert_eq!(scale.read(), [16384.0, 0.0, 3.0]);
        (0..100).for_each(|_| scale.adjust_on_host(false));
        assert_eq!(scale.read(), [RANGE.0, 0.0, 103.0]);
    }
}
