//! Lower bounds of the time that work takes on a device (Williams, Waterman and Patterson 2009, "Roofline").

use crate::{Backend, DeviceError, Machine, Precision, Profile};

/// Least seconds per launch of a kernel: an assumption, which no data sheet has. Launches one after the other take 2 to 5 us with CUDA.
const LAUNCH_SECS: f64 = 2e-6;
const GIB: f64 = (1u64 << 30) as f64;

/// Work on tensors.
///
/// ```
/// use brasa_device::{Load, profile};
///
/// // Reading and writing 32 GB at 320 GB/s.
/// let load = Load { flop: 1e9, bytes: 32e9, ..Default::default() };
/// let (secs, _) = profile("t4")?.least_secs(&load).expect("the profile has rates");
/// assert_eq!(secs, 0.1);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Load {
    /// Floating-point operations of products.
    pub flop: f64,
    /// Bytes that are read and written.
    pub bytes: f64,
    /// Kernels that are launched.
    pub launches: f64,
    /// The format of the products.
    pub precision: Precision,
}

/// What bounds the time of a load.
///
/// ```
/// use brasa_device::{Bound, Load, profile};
///
/// let t4 = profile("t4")?;
/// let bound = |load: &Load| t4.least_secs(load).map(|(_, bound)| bound);
/// assert_eq!(bound(&Load { flop: 1e12, bytes: 1e9, ..Default::default() }), Some(Bound::Arithmetic));
/// assert_eq!(bound(&Load { flop: 1e6, launches: 100.0, ..Default::default() }), Some(Bound::Launches));
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The rate of products.
    Arithmetic,
    /// The bandwidth of memory.
    Memory,
    /// The number of launches.
    Launches,
}

impl Profile {
    /// Seconds that a load takes at least, and what they are spent on; `None` if the profile has no rates of
    /// this format.
    ///
    /// ```
    /// use brasa_device::{Bound, Load, Precision, profile};
    ///
    /// let t4 = profile("t4")?;
    /// let load = Load { flop: 8.1e12, bytes: 1e9, launches: 10.0, precision: Precision::F32 };
    /// assert_eq!(t4.least_secs(&load), Some((1.0, Bound::Arithmetic)));
    /// # Ok::<(), brasa_device::DeviceError>(())
    /// ```
    pub fn least_secs(&self, load: &Load) -> Option<(f64, Bound)> {
        let (rates, bandwidth) = (self.tflops?, self.bandwidth_gb_per_sec?);
        let times = [
            (load.flop / (load.precision.rate(&rates)? * 1e12), Bound::Arithmetic),
            (load.bytes / (bandwidth * 1e9), Bound::Memory),
            (load.launches * LAUNCH_SECS, Bound::Launches),
        ];
        times.into_iter().max_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// Checks that the device has units for products in `precision`. A profile without rates has all.
    ///
    /// # Errors
    /// [`DeviceError::Precision`] with the formats of the device.
    pub fn check_precision(&self, precision: Precision) -> Result<(), DeviceError> {
        precision.check_among(|precision| self.tflops.is_none_or(|rates| precision.rate(&rates).is_some()))
    }

    /// Bytes that a run can use: on a GPU what the profile says, on the processor what is free now; `None` if unknown.
    pub fn usable_bytes(&self) -> Option<f64> {
        let of_processor = || (self.backend == Backend::Flex).then(|| Machine::found().cpu.free_gib);
        self.usable_gib.or_else(of_processor).map(|gib| gib * GIB)
    }
}
