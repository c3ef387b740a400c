//! The number format of matrix products.

use std::cell::Cell;
use std::fmt;

use burn::tensor::{Device, FloatDType};
use serde::{Deserialize, Serialize};

use crate::{DeviceError, Rates};

/// The format in which layers multiply matrices. Weights, sums over rows, activations, losses and optimizers keep 32 bits.
///
/// The factors of a product are rounded to the format and its result is converted back (Micikevicius et al. 2018, "Mixed precision
/// training"). This saves time only where a device multiplies the format faster, which usually needs large layers.
///
/// ```
/// use brasa_device::{Precision, open_named};
///
/// # #[cfg(feature = "flex")] {
/// let cpu = open_named("cpu")?;
/// Precision::Bf16.check(&cpu)?;
/// let error = Precision::Tf32.check(&cpu).unwrap_err();
/// assert_eq!(error.to_string(), "`precision` must be one of f32, bf16, f16 on this device, got tf32");
/// # }
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 32 bits.
    #[default]
    F32,
    /// 19 bits: the range of 32 bits and 10 bits of mantissa, on tensor cores of NVIDIA GPUs from compute capability 8.0 on. Factors
    /// are stored in 32 bits.
    Tf32,
    /// 16 bits with 7 bits of mantissa and the range of 32 bits.
    Bf16,
    /// 16 bits with 10 bits of mantissa. Gradients below 6e-8 become 0, so that losses are scaled up: `brasa_nn::LossScale`.
    F16,
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::Tf32 => "tf32",
            Self::Bf16 => "bf16",
            Self::F16 => "f16",
        })
    }
}

impl Precision {
    /// Every format.
    pub const ALL: [Self; 4] = [Self::F32, Self::Tf32, Self::Bf16, Self::F16];

    /// The format that factors of products are converted to; `None` if they stay as they are.
    pub fn cast(self) -> Option<FloatDType> {
        match self {
            Self::F32 | Self::Tf32 => None,
            Self::Bf16 => Some(FloatDType::BF16),
            Self::F16 => Some(FloatDType::F16),
        }
    }

    /// The peak rate of products in TFLOP/s; `None` if the device has no units for them.
    pub fn rate(self, rates: &Rates) -> Option<f64> {
        match self {
            Self::F32 => Some(rates.f32),
            Self::Tf32 => rates.tf32,
            Self::Bf16 => rates.bf16,
            Self::F16 => rates.f16,
        }
    }

    /// Checks that `device` computes in this format.
    ///
    /// # Errors
    /// [`DeviceError::Precision`] with the formats of the device.
    pub fn check(self, device: &Device) -> Result<(), DeviceError> {
        self.check_among(|precision| match (precision, precision.cast()) {
            (Self::Tf32, _) => has_tf32(device),
            (_, format) => format.is_none_or(|format| device.supports_dtype(format)),
        })
    }

    pub(crate) fn check_among(self, works: impl Fn(Self) -> bool) -> Result<(), DeviceError> {
        if works(self) {
            return Ok(());
        }
        let known = Self::ALL.into_iter().filter(|known| works(*known)).map(|known| known.to_string());
        Err(DeviceError::Precision { got: self, known: known.collect::<Vec<_>>().join(", ") })
    }
}

/// Whether the device is an NVIDIA GPU of compute capability 8.0 or above.
fn has_tf32(device: &Device) -> bool {
    #[cfg(feature = "cuda")]
    {
        let plain = device.clone().without_autodiff();
        let gpus = crate::Machine::found().gpus;
        let gpu = gpus.into_iter().find(|gpu| plain == Device::cuda(gpu.index as usize));
        let capability = gpu.and_then(|gpu| gpu.compute_capability);
        capability.and_then(|capability| capability.parse::<f64>().ok()).is_some_and(|capability| capability >= 8.0)
    }
    #[cfg(not(feature = "cuda"))]
    {
        let _ = device;
        false
    }
}

thread_local! {
    static CURRENT: Cell<Precision> = const { Cell::new(Precision::F32) };
}

/// Calls `work`; layers multiply in `precision` meanwhile, on this thread. Backward passes use the format of their forward pass.
///
/// ```
/// use brasa_device::{Precision, autocast, precision};
///
/// autocast(Precision::Bf16, || assert_eq!(precision(), Precision::Bf16));
/// assert_eq!(precision(), Precision::F32);
/// ```
pub fn autocast<T>(precision: Precision, work: impl FnOnce() -> T) -> T {
    /// A panic of `work` must not leave the format behind.
    struct Restore(Precision);
    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.set(self.0);
        }
    }
    let _restore = Restore(CURRENT.replace(precision));
    work()
}

/// The format of the innermost [`autocast`] on this thread.
///
/// ```
/// use brasa_device::{Precision, autocast, precision};
///
/// assert_eq!(precision(), Precision::F32);
/// let inner = autocast(Precision::F16, || autocast(Precision::Bf16, precision));
/// assert_eq!(inner, Precision::Bf16);
/// ```
pub fn precision() -> Precision {
    CURRENT.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_nest_and_end_with_a_panic() {
        autocast(Precision::F16, || {
            autocast(Precision::F32, || assert_eq!(precision(), Precision::F32));
            assert_eq!(precision(), Precision::F16);
            assert!(std::panic::catch_unwind(|| autocast(Precision::Bf16, || panic!("expected"))).is_err());
            assert_eq!(precision(), Precision::F16);
            // Other threads have their own.
            std::thread::scope(|scope| {
                scope.spawn(|| assert_eq!(precision(), Precision::F32)).join().expect("it ends")
            });
        });
        assert_eq!(precision(), Precision::F32);
    }

    #[test]
    fn a_format_that_the_device_lacks_is_refused_with_those_it_has() {
        let error = Precision::Bf16.check_among(|precision| precision != Precision::Bf16).expect_err("it lacks bf16");
        assert_eq!(error.to_string(), "`precision` must be one of f32, tf32, f16 on this device, got bf16");
        let device = crate::open_named("cpu").expect("flex is a default feature");
        assert!(Precision::ALL.iter().all(|known| known.check(&device).is_ok() != (*known == Precision::Tf32)));
    }
}
