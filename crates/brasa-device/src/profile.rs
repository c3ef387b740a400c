//! Device profiles: what kinds of machines hold and do, as data.

use std::path::Path;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::open::resolve;
use crate::{Backend, DeviceError, Machine};

/// Values of a kind of machine, from its data sheet unless stated otherwise.
///
/// The performance of a run is measured; from these values only bounds are derived.
///
/// ```
/// let profile = brasa_device::profile("rtx-4060")?;
/// assert_eq!(profile.compute_capability.as_deref(), Some("8.9"));
/// assert!(profile.usable_gib < profile.memory_gib);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Short name, as in a config (`rtx-4060`).
    pub name: String,
    /// Full name, with the variant that the values belong to.
    pub title: String,
    /// Names that the driver gives such a device.
    #[serde(default)]
    pub names: Vec<String>,
    /// The backend of the device.
    pub backend: Backend,
    /// CUDA compute capability.
    pub compute_capability: Option<String>,
    /// Memory of the device as its driver reports it, in GiB; `None` for host memory.
    pub memory_gib: Option<f64>,
    /// Memory that a run can use, in GiB: an estimate of what the driver, its context and a desktop leave.
    pub usable_gib: Option<f64>,
    /// Memory bandwidth in GB/s.
    pub bandwidth_gb_per_sec: Option<f64>,
    /// Sources of the values.
    #[serde(default)]
    pub sources: Vec<String>,
    /// Peak rates.
    pub tflops: Option<Rates>,
}

/// Peak rates of dense matrix products in TFLOP/s, with sums in 32 bits; `None` if a device has no such units.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rates {
    /// 32 bits.
    pub f32: f64,
    /// 32 bits, with products in 19 bits on tensor cores.
    pub tf32: Option<f64>,
    /// IEEE half precision.
    pub f16: Option<f64>,
    /// Half precision with the exponents of 32 bits.
    pub bf16: Option<f64>,
}

macro_rules! embedded {
    ($($name:literal),* $(,)?) => {
        [$(include_str!(concat!("../profiles/", $name, ".toml"))),*]
    };
}

/// One file each; a new one is added here.
const FILES: [&str; 7] = embedded!["cpu", "rtx-4060", "rtx-4060-laptop", "rtx-5090", "t4", "v100", "h200"];

static PROFILES: LazyLock<Vec<Profile>> =
    LazyLock::new(|| FILES.iter().map(|file| toml::from_str(file).expect("a test reads every file")).collect());

/// The profiles that come with the crate.
pub fn profiles() -> &'static [Profile] {
    &PROFILES
}

/// The profile `name`, or the one in the file `name` if it ends with `.toml`.
///
/// # Errors
/// [`DeviceError`] for an unknown name, and for a file that cannot be read or violates a rule.
pub fn profile(name: &str) -> Result<Profile, DeviceError> {
    if Path::new(name).extension().is_some_and(|extension| extension == "toml") {
        return Profile::read(Path::new(name));
    }
    profiles().iter().find(|profile| profile.name == name).cloned().ok_or_else(|| DeviceError::Unknown {
        name: name.to_owned(),
        known: profiles().iter().map(|profile| profile.name.as_str()).collect::<Vec<_>>().join(", "),
    })
}

/// The profile of a device: of its name, of the GPU that the driver reports for `cuda` and `cuda:1`, or that of the processor;
/// `None` for a device without one.
///
/// # Errors
/// [`DeviceError`] for an unknown name, and for a file that cannot be read or violates a rule.
pub fn profile_of(device: &str) -> Result<Option<Profile>, DeviceError> {
    if device.ends_with(".toml") || profiles().iter().any(|profile| profile.name == device) {
        return profile(device).map(Some);
    }
    Ok(match resolve(device)? {
        (Backend::Flex, _) => Some(profile("cpu")?),
        (Backend::Cuda, index) => {
            let gpu = Machine::found().gpus.into_iter().find(|gpu| gpu.index as usize == index);
            gpu.and_then(|gpu| gpu.profile().cloned())
        }
        (Backend::Wgpu, _) => None,
    })
}

impl Profile {
    /// Reads the profile of one's own machine.
    ///
    /// # Errors
    /// [`DeviceError::Profile`] for a file that cannot be read or violates a rule.
    pub fn read(path: &Path) -> Result<Self, DeviceError> {
        let fail = |reason: String| DeviceError::Profile { path: path.to_owned(), reason };
        let text = std::fs::read_to_string(path).map_err(|error| fail(error.to_string()))?;
        let profile: Self = toml::from_str(&text).map_err(|error| fail(error.to_string()))?;
        profile.check().map_err(fail)?;
        Ok(profile)
    }

    /// Checks that every number is above 0, and that no more memory is usable than there is.
    fn check(&self) -> Result<(), String> {
        let rate = |of: fn(&Rates) -> Option<f64>| self.tflops.as_ref().and_then(of);
        let all = [
            ("memory_gib", self.memory_gib),
            ("usable_gib", self.usable_gib),
            ("bandwidth_gb_per_sec", self.bandwidth_gb_per_sec),
            ("tflops.f32", rate(|rates| Some(rates.f32))),
            ("tflops.tf32", rate(|rates| rates.tf32)),
            ("tflops.f16", rate(|rates| rates.f16)),
            ("tflops.bf16", rate(|rates| rates.bf16)),
        ];
        for (field, value) in all {
            if let Some(value) = value.filter(|value| !(*value > 0.0 && value.is_finite())) {
                return Err(format!("`{field}` must be finite and above 0, got {value}"));
            }
        }
        match (self.usable_gib, self.memory_gib) {
            (Some(usable), Some(memory)) if usable > memory => {
                Err(format!("`usable_gib` must be at most `memory_gib`, {memory}, got {usable}"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_valid_and_names_are_unique() {
        for profile in profiles() {
            profile.check().unwrap_or_else(|reason| panic!("{}: {reason}", profile.name));
            assert!(profile.backend != Backend::Cuda || !profile.sources.is_empty(), "{} has no source", profile.name);
            assert!(profile.names.iter().all(|name| profiles().iter().filter(|p| p.names.contains(name)).count() == 1));
        }
        let mut names: Vec<_> = profiles().iter().map(|profile| &profile.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), profiles().len());
    }

    #[test]
    fn rates_of_32_bits_are_those_of_cores_and_clock() {
        // Cores, GHz, two operations per cycle.
        for (name, cores, ghz) in
            [("rtx-4060", 3072.0, 2.46), ("rtx-4060-laptop", 3072.0, 1.89), ("rtx-5090", 21760.0, 2.407)]
        {
            let rate = profile(name).expect("it is known").tflops.expect("it has rates").f32;
            assert!((rate - cores * ghz * 2e-3).abs() < 0.1, "{name}: {rate}");
        }
    }

    #[test]
    fn profiles_of_ones_own_are_read_and_checked() {
        let dir = std::env::temp_dir().join(format!("brasa-profile-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("there is room");
        let path = dir.join("mine.toml");
        let text = "name = \"mine\"\ntitle = \"my card\"\nbackend = \"cuda\"\nmemory_gib = 12.0\nusable_gib = 11.0\n";
        std::fs::write(&path, text).expect("there is room");
        let name = path.to_str().expect("plain characters");
        assert_eq!(profile(name).expect("it is valid").memory_gib, Some(12.0));
        for (wrong, message) in [
            (text.replace("11.0", "13.0"), "`usable_gib` must be at most `memory_gib`, 12, got 13"),
            (text.replace("12.0", "-1.0"), "`memory_gib` must be finite and above 0, got -1"),
            (text.replace("title", "tilte"), "unknown field `tilte`"),
        ] {
            std::fs::write(&path, wrong).expect("there is room");
            let error = profile(name).expect_err("it is wrong").to_string();
            assert!(error.contains(message) && error.contains("mine.toml"), "{error}");
        }
        std::fs::remove_dir_all(dir).expect("it can be removed");
        assert!(profile(name).expect_err("it is gone").to_string().contains("mine.toml"));
    }
}
