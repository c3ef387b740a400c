//! Device profiles, the machine at hand, opening a Burn backend, the format of products, and measuring memory.
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

mod driver;
mod gpu_settings;
mod machine;
mod meter;
mod monitor;
#[cfg(feature = "nvml")]
mod nvml;
mod open;
mod out_of_memory;
mod precision;
mod profile;
mod roofline;

pub use driver::{GpuDriver, with_driver};
pub use gpu_settings::{Allocator, AutotuneLevel, GpuSettings, PersistentMemory};
pub use machine::{Cpu, Gpu, Machine};
pub use meter::{Meter, Usage, count_launches, count_product, is_measured, measure};
pub use monitor::{GpuMonitor, GpuState, HostState, MachineMonitor, ProcessMonitor, RunMonitor};
pub use open::{Backend, DeviceError, backends, best_device, open, open_named, runs_on_host};
pub use out_of_memory::catch_out_of_memory;
pub use precision::{Precision, autocast, precision};
pub use profile::{Profile, Rates, gpu_of, profile, profile_of, profiles};
pub use roofline::{Bound, Load};
