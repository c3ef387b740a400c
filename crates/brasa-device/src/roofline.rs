//! Lower bounds of the time that work takes on a device (Williams, Waterman and Patterson 2009, "Roofline").

use crate::{Backend, Machine, Profile};

/// Seconds per launch of a kernel: an estimate, which no data sheet has.
const LAUNCH_SECS: f64 = 5e-6;
const GIB: f64 = (1u64 << 30) as f64;

/// Work on tensors.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Load {
    /// Floating-point operations of products.
    pub flop: f64,
    /// Bytes that are read and written.
    pub bytes: f64,
    /// Kernels that are launched.
    pub launches: f64,
}

/// What bounds the time of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The rate of products in 32 bits.
    Arithmetic,
    /// The bandwidth of memory.
    Memory,
    /// The number of launches.
    Launches,
}

impl Profile {
    /// Seconds that a load takes at least, and what they are spent on; `None` if the profile has no rates.
    ///
    /// ```
    /// use brasa_device::{Bound, Load, profile};
    ///
    /// let t4 = profile("t4")?;
    /// let (secs, bound) = t4.least_secs(&Load { flop: 8.1e12, bytes: 1e9, launches: 10.0 }).expect("it has rates");
    /// assert_eq!((secs, bound), (1.0, Bound::Arithmetic));
    /// # Ok::<(), brasa_device::DeviceError>(())
    /// ```
    pub fn least_secs(&self, load: &Load) -> Option<(f64, Bound)> {
        let (rates, bandwidth) = (self.tflops?, self.bandwidth_gb_per_sec?);
        let times = [
            (load.flop / (rates.f32 * 1e12), Bound::Arithmetic),
            (load.bytes / (bandwidth * 1e9), Bound::Memory),
            (load.launches * LAUNCH_SECS, Bound::Launches),
        ];
        times.into_iter().max_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// Bytes that a run can use: on a GPU what the profile says, on the processor what is free now; `None` if unknown.
    pub fn usable_bytes(&self) -> Option<f64> {
        let of_processor = || (self.backend == Backend::Flex).then(|| Machine::found().cpu.free_gib);
        self.usable_gib.or_else(of_processor).map(|gib| gib * GIB)
    }
}
