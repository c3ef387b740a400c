//! Device profiles, the machine at hand, and opening a Burn backend.
//!
//! This is the only crate that names backends. Features select the compiled backends, [`open`] opens one.
//!
//! ```
//! # #[cfg(feature = "flex")] {
//! let device = brasa_device::open_named("cpu")?;
//! assert!(brasa_device::runs_on_host(&device));
//! # }
//! let error = brasa_device::open_named("abacus").unwrap_err();
//! assert!(error.to_string().contains("must be one of"));
//! # Ok::<(), brasa_device::DeviceError>(())
//! ```

mod machine;
mod open;
mod profile;

pub use machine::{Cpu, Gpu, GpuMonitor, GpuState, Machine};
pub use open::{Backend, DeviceError, backends, open, open_named, runs_on_host};
pub use profile::{Profile, Rates, profile, profiles};
