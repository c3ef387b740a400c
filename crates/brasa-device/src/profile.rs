//! Device profiles: what kinds of machines hold and do, as data.

use std::path::Path;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::driver::driver;
use crate::open::resolve;
use crate::{Backend, DeviceError, Gpu, Machine};

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
    /// Memory in GiB that other programs held before this process used the GPU; `None` unless it is a GPU of this machine.
    #[serde(skip)]
    pub held_gib: Option<f64>,
}

/// Peak rates of dense matrix products in TFLOP/s, with sums in 32 bits; `None` if a device has no such units.
///
/// ```
/// use brasa_device::{Precision, profile};
///
/// let rates = profile("t4")?.tflops.expect("the data sheet has them");
/// assert_eq!((rates.f32, rates.f16), (8.1, Some(65.0)));
/// // Turing has no units for bf16.
/// assert_eq!(Precision::Bf16.rate(&rates), None);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
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
const FILES: [&str; 11] = embedded![
    "cpu",
    "rtx-4060",
    "rtx-4060-laptop",
    "rtx-5090",
    "t4",
    "v100",
    "v100-32gb",
    "v100-pcie",
    "v100-pcie-32gb",
    "v100s",
    "h200",
];

static PROFILES: LazyLock<Vec<Profile>> =
    LazyLock::new(|| FILES.iter().map(|file| toml::from_str(file).expect("a test reads every file")).collect());

/// The profiles that come with the crate.
///
/// ```
/// use brasa_device::profiles;
///
/// let names: Vec<_> = profiles().iter().map(|profile| profile.name.as_str()).collect();
/// assert_eq!(names[..3], ["cpu", "rtx-4060", "rtx-4060-laptop"]);
/// ```
pub fn profiles() -> &'static [Profile] {
    &PROFILES
}

/// The profile `name`, or the one in the file `name` if it ends with `.toml`.
///
/// ```
/// use brasa_device::profile;
///
/// assert_eq!(profile("t4")?.bandwidth_gb_per_sec, Some(320.0));
/// let error = profile("t5").unwrap_err();
/// assert!(error.to_string().starts_with("`device` must be one of cpu, rtx-4060,"));
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
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

/// The GPU of this machine that [`crate::open_named`] opens for a name; `None` for another device, and without a driver.
///
/// ```
/// use brasa_device::{gpu_of, with_driver};
///
/// // On a machine without GPUs, and for the processor.
/// assert!(with_driver(Vec::new(), || gpu_of("cuda")).is_none());
/// assert!(gpu_of("cpu").is_none());
/// ```
pub fn gpu_of(device: &str) -> Option<Gpu> {
    let Ok((Backend::Cuda, index)) = resolve(device) else { return None };
    Machine::found().gpus.into_iter().find(|gpu| gpu.index as usize == index)
}

/// The profile of a device: of its name, of the GPU that the driver reports for `cuda` and `cuda:1` ([`Profile::of_gpu`]), or that of
/// the processor; `None` for a device without one. If the GPU is in this machine, no more memory is usable than other programs leave.
///
/// ```
/// use brasa_device::{Backend, profile_of, with_driver};
///
/// let cpu = profile_of("flex")?.expect("the processor has a profile");
/// assert_eq!((cpu.name.as_str(), cpu.backend), ("cpu", Backend::Flex));
/// // The driver reports no GPU.
/// assert_eq!(with_driver(Vec::new(), || profile_of("cuda"))?, None);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
///
/// # Errors
/// [`DeviceError`] for an unknown name, and for a file that cannot be read or violates a rule.
pub fn profile_of(device: &str) -> Result<Option<Profile>, DeviceError> {
    if device.ends_with(".toml") || profiles().iter().any(|profile| profile.name == device) {
        let profile = profile(device)?;
        return Ok(Some(match gpu_of(device).filter(|gpu| profile.names.contains(&gpu.name)) {
            Some(gpu) => profile.shared_on(&gpu),
            None => profile,
        }));
    }
    Ok(match resolve(device)? {
        (Backend::Flex, _) => Some(profile("cpu")?),
        (Backend::Cuda, _) => gpu_of(device).map(|gpu| Profile::of_gpu(&gpu).shared_on(&gpu)),
        (Backend::Wgpu, _) => None,
    })
}

/// Memory in GiB that a process needs on a GPU besides its tensors: an estimate of its context and kernels.
const CONTEXT_GIB: f64 = 0.5;

impl Profile {
    /// The profile of a GPU: that of its kind if there is one, otherwise one from the values that its driver reports. Peak rates then
    /// follow from cores, clock and compute capability; usable memory is all but half a GiB, an estimate.
    pub fn of_gpu(gpu: &Gpu) -> Self {
        gpu.profile().cloned().unwrap_or_else(|| Self {
            name: name_of(&gpu.name),
            title: format!("{}, values of its driver", gpu.name),
            names: vec![gpu.name.clone()],
            backend: Backend::Cuda,
            compute_capability: gpu.compute_capability.clone(),
            memory_gib: Some(gpu.memory_gib),
            usable_gib: Some((gpu.memory_gib - CONTEXT_GIB).max(0.0)),
            // Memory of GPUs transfers twice per cycle of the clock that the driver reports.
            bandwidth_gb_per_sec: gpu.max_memory_clock_mhz.zip(gpu.bus_bits).map(|(mhz, bits)| {
                let bytes_per_cycle = 2.0 * f64::from(bits) / 8.0;
                (mhz * 1e6 * bytes_per_cycle / 1e9).round()
            }),
            sources: vec![format!("driver {}", gpu.driver)],
            tflops: rates_of(gpu),
            held_gib: None,
        })
    }

    /// This profile with no more usable memory than other programs leave on `gpu`.
    fn shared_on(mut self, gpu: &Gpu) -> Self {
        let Some(free) = driver().and_then(|driver| driver.free_before_use_gib(gpu.index)) else { return self };
        let left = (free - CONTEXT_GIB).max(0.0);
        self.usable_gib = Some(self.usable_gib.map_or(left, |usable| usable.min(left)));
        self.held_gib = Some((gpu.memory_gib - free).max(0.0));
        self
    }

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

/// Short name of a GPU without a profile, as in `[when.NAME]`: `NVIDIA GeForce RTX 4060 Ti` is `rtx-4060-ti`.
fn name_of(gpu: &str) -> String {
    let words = gpu.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let words =
        words.map(str::to_ascii_lowercase).filter(|word| !["nvidia", "geforce", "tesla", "gpu"].contains(&&**word));
    words.collect::<Vec<_>>().join("-")
}

/// Peak rates of a GPU from its cores, clock and compute capability; `None` if its driver does not report them.
///
/// A core multiplies and adds once per cycle. Products in 16 bits per core and cycle: NVIDIA, CUDA C++ programming guide, arithmetic
/// instructions, and the white papers of the generations. Without tensor cores there is no rate.
fn rates_of(gpu: &Gpu) -> Option<Rates> {
    let tera_cycles = f64::from(gpu.n_cores?) * gpu.max_clock_mhz? * 1e-6;
    let (major, minor) = gpu.compute_capability.as_ref()?.split_once('.')?;
    let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    let products_in_16_bits = match (major, minor) {
        (..7, _) => None,
        (7, _) => Some(8.0),
        (8, 0) => Some(16.0),
        (8, _) => Some(4.0),
        (9, _) => Some(16.0),
        (10 | 11, _) => Some(32.0),
        (12.., _) => Some(4.0),
    };
    let f16 = products_in_16_bits.map(|products| 2.0 * tera_cycles * products);
    let from_8_on = f16.filter(|_| major >= 8);
    Some(Rates { f32: 2.0 * tera_cycles, tf32: from_8_on.map(|rate| rate / 2.0), f16, bf16: from_8_on })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::tests::gpu;
    use crate::with_driver;

    #[test]
    fn memory_that_other_programs_hold_is_not_usable() {
        let card = |name, memory, free| vec![gpu(name, memory, free)];
        let usable = |device: &str| {
            let profile = profile_of(device).expect("it is known").expect("it has a profile");
            (profile.usable_gib, profile.held_gib)
        };
        let of_sheet = profile("rtx-4060").expect("it is known").usable_gib;
        with_driver(card("NVIDIA GeForce RTX 4060", 8.0, 7.9), || assert_eq!(usable("rtx-4060").0, of_sheet));
        with_driver(card("NVIDIA GeForce RTX 4060", 8.0, 5.5), || {
            assert_eq!(usable("rtx-4060"), (Some(5.0), Some(2.5)));
            assert_eq!(usable("cuda"), (Some(5.0), Some(2.5)));
            // A card that is not here has all its memory.
            assert_eq!(usable("t4").1, None);
        });
        with_driver(card("NVIDIA GeForce RTX 4060", 8.0, 0.1), || assert_eq!(usable("cuda"), (Some(0.0), Some(7.9))));
        with_driver(Vec::new(), || assert_eq!(usable("rtx-4060"), (of_sheet, None)));
    }

    #[test]
    fn a_card_without_a_profile_gets_one_from_its_driver() {
        let found = with_driver(vec![gpu("NVIDIA GeForce RTX 4060 Ti", 16.0, 14.5)], || profile_of("cuda:0"));
        let found = found.expect("it is there").expect("it has a profile");
        found.check().expect("its values are valid");
        assert_eq!((&*found.name, found.usable_gib, found.held_gib), ("rtx-4060-ti", Some(14.0), Some(1.5)));
        // 9001 MHz, two transfers per cycle, 16 bytes each: the data sheet has 288 GB/s.
        assert_eq!(found.bandwidth_gb_per_sec, Some(288.0));
        let rates = found.tflops.expect("cores and clock are known");
        assert!((rates.f32 - 27.03).abs() < 0.01 && rates.bf16 == rates.f16, "{rates:?}");
        found.check_precision(crate::Precision::Tf32).expect("8.9 has tf32");
    }

    #[test]
    fn rates_from_cores_and_clock_are_those_of_data_sheets() {
        // Compute capability, cores, boost clock in MHz; f32, and f16 with sums in 32 bits at most, in TFLOP/s.
        let cards = [
            ("7.0", 5120, 1530.0, 15.7, Some(125.0)),
            ("7.5", 2560, 1590.0, 8.1, Some(65.0)),
            ("8.0", 6912, 1410.0, 19.5, Some(312.0)),
            ("8.6", 9216, 1695.0, 31.2, Some(125.0)),
            ("9.0", 16896, 1830.0, 61.8, Some(989.0)),
            ("6.1", 3584, 1582.0, 11.3, None),
        ];
        for (capability, cores, clock, f32, f16) in cards {
            let mut card = gpu("a card", 8.0, 8.0);
            (card.compute_capability, card.n_cores) = (Some(capability.to_owned()), Some(cores));
            card.max_clock_mhz = Some(clock);
            let rates = rates_of(&card).expect("all is known");
            let near = |a: f64, b: f64| (a - b).abs() < 0.01 * b;
            assert!(near(rates.f32, f32), "{capability}: {rates:?}");
            assert!(
                rates.f16.is_some() == f16.is_some() && rates.f16.zip(f16).is_none_or(|(a, b)| near(a, b)),
                "{rates:?}"
            );
            assert_eq!(rates.tf32.is_some(), capability >= "8.0");
        }
    }

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
