//! The device of a bench.

use brasa_device::{DeviceError, open_named};
use burn::tensor::Device;

/// The variable that selects the device of benches.
const VARIABLE: &str = "BRASA_BENCH_DEVICE";

/// A device and its name, which is the last part of an id.
#[derive(Debug, Clone)]
pub struct Place {
    /// The device, without autodiff.
    pub device: Device,
    /// Its name, for example `cpu` or `cuda:0`.
    pub name: String,
}

impl Place {
    /// Opens a device by its name.
    ///
    /// # Errors
    /// [`DeviceError`] if there is no such device, or its backend is not compiled in.
    pub fn named(name: &str) -> Result<Self, DeviceError> {
        Ok(Self { device: open_named(name)?, name: name.to_owned() })
    }

    /// Opens the device that the environment variable `BRASA_BENCH_DEVICE` names; the CPU without it.
    ///
    /// # Errors
    /// As [`Place::named`].
    pub fn from_env() -> Result<Self, DeviceError> {
        Self::named(&std::env::var(VARIABLE).unwrap_or_else(|_| "cpu".into()))
    }

    /// Waits until the device has finished its work; the clock must not stop before.
    ///
    /// # Panics
    /// If the device reports an error.
    pub fn sync(&self) {
        self.device.sync().expect("the device finishes its work");
    }
}
