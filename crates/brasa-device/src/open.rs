//! Opening a backend by name or profile.

use std::panic::{AssertUnwindSafe, catch_unwind};

use std::path::PathBuf;

use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::driver::driver;
use crate::out_of_memory::text_of;
use crate::{Machine, Precision, Profile, profile, profiles};

/// The backends that Brasa is tested on.
///
/// ```
/// use brasa_device::{Backend, profile};
///
/// assert_eq!(profile("rtx-4060")?.backend, Backend::Cuda);
/// assert_eq!(Backend::Cuda.feature(), "cuda");
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// Pure Rust on the CPU.
    Flex,
    /// NVIDIA GPUs.
    Cuda,
    /// Vulkan, Metal and WebGPU.
    Wgpu,
}

/// A device that cannot be opened.
///
/// ```
/// use brasa_device::{DeviceError, open_named};
///
/// let error = open_named("gpu").unwrap_err();
/// assert!(matches!(error, DeviceError::Unknown { .. }));
/// assert!(error.to_string().ends_with("got `gpu` (a GPU is `cuda`, or `wgpu` for other makers)"));
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// An unknown name.
    #[error("`device` must be one of {known}, got `{name}`{}", meant(name))]
    Unknown {
        /// The requested name.
        name: String,
        /// The known names.
        known: String,
    },
    /// A file with a profile that cannot be used.
    #[error("profile {}: {reason}", path.display())]
    Profile {
        /// The file.
        path: PathBuf,
        /// The rule that it violates, or the message of the operating system.
        reason: String,
    },
    /// A number format that a device does not compute in.
    #[error("`precision` must be one of {known} on this device, got {got}")]
    Precision {
        /// The requested format.
        got: Precision,
        /// The formats of the device.
        known: String,
    },
    /// A device that has no memory for an allocation.
    #[error("the device has too little memory: {reason}")]
    OutOfMemory {
        /// The message of the backend.
        reason: String,
    },
    /// A setting of GPUs that cannot be used.
    #[error("`train.gpu.{setting}` {reason}")]
    Setting {
        /// The field of [`crate::GpuSettings`].
        setting: &'static str,
        /// The rule that it violates.
        reason: String,
    },
    /// A backend that was not compiled in.
    #[error("device `{name}` needs the feature `{feature}`: build with `--features {feature}`")]
    NotCompiled {
        /// The requested name.
        name: String,
        /// The feature of the backend.
        feature: &'static str,
    },
    /// A backend that is compiled in but has no hardware or driver.
    #[error("device `{name}` cannot be used: {reason}")]
    Unusable {
        /// The requested name.
        name: String,
        /// The message of the backend.
        reason: String,
    },
}

/// The device that was probably meant.
fn meant(name: &str) -> String {
    let letters = |name: &str| name.to_lowercase().replace(['-', '_', ' '], "");
    match name.to_lowercase().as_str() {
        "gpu" | "nvidia" | "gpu:0" => " (a GPU is `cuda`, or `wgpu` for other makers)".to_owned(),
        "vulkan" | "metal" | "webgpu" | "amd" | "intel" | "mps" => {
            " (a GPU that is not from NVIDIA is `wgpu`)".to_owned()
        }
        "auto" | "best" => " (`train.device = \"auto\"` chooses one in a config)".to_owned(),
        other => match profiles().iter().find(|profile| letters(&profile.name) == letters(other)) {
            Some(profile) => format!(" (did you mean `{}`?)", profile.name),
            None => String::new(),
        },
    }
}

impl Backend {
    /// Name of the backend and of the feature that compiles it in.
    pub fn feature(self) -> &'static str {
        match self {
            Self::Flex => "flex",
            Self::Cuda => "cuda",
            Self::Wgpu => "wgpu",
        }
    }
}

/// Every backend, and whether it is compiled in.
///
/// ```
/// use brasa_device::{Backend, backends};
///
/// let compiled = backends().into_iter().filter(|(_, is_compiled)| *is_compiled);
/// let names: Vec<_> = compiled.map(|(backend, _)| backend.feature()).collect();
/// # if cfg!(feature = "flex") {
/// assert!(names.contains(&Backend::Flex.feature()));
/// # }
/// ```
pub fn backends() -> [(Backend, bool); 3] {
    [
        (Backend::Flex, cfg!(feature = "flex")),
        (Backend::Cuda, cfg!(feature = "cuda")),
        (Backend::Wgpu, cfg!(feature = "wgpu")),
    ]
}

/// Name of the device that is best for training on this machine: the first NVIDIA GPU if a driver reports one and the backend is
/// compiled in, else the processor.
///
/// ```
/// let name = brasa_device::best_device();
/// // `cuda:0` on a machine with an NVIDIA GPU and the feature `cuda`.
/// assert!(name == "cpu" || name.starts_with("cuda:"));
/// ```
pub fn best_device() -> String {
    let gpu = cfg!(feature = "cuda").then(Machine::found).and_then(|machine| machine.gpus.first().cloned());
    gpu.map_or("cpu".to_owned(), |gpu| format!("cuda:{}", gpu.index))
}

/// Opens the first device of a profile.
///
/// ```
/// use brasa_device::{open, profile, runs_on_host};
///
/// # #[cfg(feature = "flex")] {
/// let device = open(&profile("cpu")?)?;
/// assert!(runs_on_host(&device));
/// # }
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
///
/// # Errors
/// [`DeviceError`] if the backend is not compiled in or does not work on this machine.
pub fn open(profile: &Profile) -> Result<Device, DeviceError> {
    open_backend(profile.backend, 0, &profile.name)
}

/// Opens a device by the name of a backend (`cpu`, `flex`, `cuda`, `cuda:1`, `wgpu`), of a profile (`rtx-4060`), or of a file with
/// a profile (`my-card.toml`).
///
/// ```
/// use brasa_device::{open_named, runs_on_host};
///
/// # #[cfg(feature = "flex")] {
/// let device = open_named("cpu")?;
/// assert!(runs_on_host(&device));
/// # }
/// // Only NVIDIA GPUs have numbers.
/// assert!(open_named("cpu:1").is_err());
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
///
/// # Errors
/// [`DeviceError`] if the name is unknown, the file cannot be used, the backend is not compiled in or does not work on this machine.
pub fn open_named(name: &str) -> Result<Device, DeviceError> {
    let (backend, index) = resolve(name)?;
    open_backend(backend, index, name)
}

/// The backend and the number of the device that a name means.
pub(crate) fn resolve(name: &str) -> Result<(Backend, usize), DeviceError> {
    if name.ends_with(".toml") || profiles().iter().any(|profile| profile.name == name) {
        return Ok((profile(name)?.backend, 0));
    }
    let (backend, number) = match name.split_once(':') {
        Some((backend, number)) => (backend, Some(number)),
        None => (name, None),
    };
    let backend = backends().into_iter().map(|(backend, _)| backend).find(|known| known.feature() == backend);
    let index = match (number, backend) {
        (None, _) => Some(0),
        // Only these have several devices to choose from here.
        (Some(number), Some(Backend::Cuda)) => number.parse().ok(),
        (Some(_), _) => None,
    };
    match (backend, index) {
        (Some(backend), Some(index)) => Ok((backend, index)),
        _ => {
            let known =
                ["flex", "cuda", "cuda:N", "wgpu"].into_iter().chain(profiles().iter().map(|p| p.name.as_str()));
            Err(DeviceError::Unknown { name: name.to_owned(), known: known.collect::<Vec<_>>().join(", ") })
        }
    }
}

fn open_backend(backend: Backend, index: usize, name: &str) -> Result<Device, DeviceError> {
    // What other programs hold is read before this one holds anything.
    if let (Backend::Cuda, Some(driver), Ok(index)) = (backend, driver(), u32::try_from(index)) {
        driver.free_before_use_gib(index);
    }
    let make = || -> Option<Device> {
        let _ = index;
        match backend {
            #[cfg(feature = "flex")]
            Backend::Flex => Some(Device::flex()),
            #[cfg(feature = "cuda")]
            Backend::Cuda => Some(Device::cuda(index)),
            #[cfg(feature = "wgpu")]
            Backend::Wgpu => Some(Device::wgpu(burn::tensor::DeviceKind::DefaultDevice)),
            #[allow(unreachable_patterns, reason = "reached where a feature is off")]
            _ => None,
        }
    };
    // A backend without driver or hardware panics at its first use, so it is used once here.
    let first_use = catch_unwind(AssertUnwindSafe(|| {
        let device = make()?;
        let sum = Tensor::<1>::from_floats([1.0, 2.0], &device).sum();
        Some((device, sum.try_into_scalar::<f32>()))
    }));
    let unusable = |reason: String| DeviceError::Unusable { name: name.to_owned(), reason };
    match first_use {
        Ok(Some((device, Ok(3.0)))) => Ok(device),
        Ok(Some((_, Ok(sum)))) => Err(unusable(format!("1 + 2 gave {sum}"))),
        Ok(Some((_, Err(error)))) => Err(unusable(format!("{error:?}"))),
        Ok(None) => Err(DeviceError::NotCompiled { name: name.to_owned(), feature: backend.feature() }),
        Err(panic) => Err(unusable(
            Some(text_of(&*panic))
                .filter(|text| !text.is_empty())
                .unwrap_or_else(|| "the backend panicked without a message".to_owned()),
        )),
    }
}

/// Whether the device is the CPU, where reading a tensor is a copy without waiting.
///
/// ```
/// use brasa_device::{open_named, runs_on_host};
///
/// # #[cfg(feature = "flex")] {
/// let device = open_named("cpu")?;
/// assert!(runs_on_host(&device) && runs_on_host(&device.autodiff()));
/// # }
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn runs_on_host(device: &Device) -> bool {
    #[cfg(feature = "flex")]
    if *device == Device::flex() {
        return true;
    }
    let _ = device;
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_always_opens() {
        let device = open_named("cpu").expect("flex is a default feature");
        assert!(runs_on_host(&device));
        assert!(runs_on_host(&device.autodiff()));
    }

    #[test]
    fn unknown_names_list_the_known_ones() {
        let error = open_named("abacus").expect_err("there is no such device");
        assert!(error.to_string().starts_with("`device` must be one of flex, cuda, cuda:N, wgpu, cpu, rtx-4060"));
        // A number that would be ignored is refused.
        for name in ["cuda:x", "flex:7", "cpu:1", "wgpu:3", "flex:"] {
            let error = open_named(name).expect_err("there is no such device");
            assert!(error.to_string().contains("must be one of flex, cuda, cuda:N, wgpu"), "{error}");
        }
    }

    #[cfg(not(feature = "cuda"))]
    #[test]
    fn a_missing_feature_is_named() {
        let error = open_named("t4").expect_err("cuda is not compiled in");
        assert_eq!(error.to_string(), "device `t4` needs the feature `cuda`: build with `--features cuda`");
    }
}
