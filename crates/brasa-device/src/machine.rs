//! The machine at hand: its processor, and the GPUs that a driver reports.

use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::TemperatureSensor;
use serde::Serialize;
use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

use crate::{Backend, Profile, profiles};

const GIB: f64 = (1u64 << 30) as f64;

/// The processor and the GPUs of a machine.
///
/// ```
/// let machine = brasa_device::Machine::found();
/// assert!(machine.cpu.n_threads >= 1 && machine.cpu.memory_gib > 0.0);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Machine {
    /// The processor.
    pub cpu: Cpu,
    /// NVIDIA GPUs in the order of the driver; none without a driver.
    pub gpus: Vec<Gpu>,
}

/// A processor with its memory.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cpu {
    /// The processor's own name; empty if unknown.
    pub name: String,
    /// Threads that this process may use.
    pub n_threads: usize,
    /// Memory in GiB.
    pub memory_gib: f64,
    /// Memory that a new program can use, in GiB.
    pub free_gib: f64,
}

/// An NVIDIA GPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gpu {
    /// Its number, as in `cuda:1`.
    pub index: u32,
    /// Name from the driver.
    pub name: String,
    /// Memory in GiB.
    pub memory_gib: f64,
    /// Memory that nobody uses, in GiB.
    pub free_gib: f64,
    /// CUDA compute capability, if the driver knows it.
    pub compute_capability: Option<String>,
    /// Version of the driver.
    pub driver: String,
}

impl Machine {
    /// Asks the operating system and the driver.
    pub fn found() -> Self {
        Self { cpu: Cpu::found(), gpus: gpus().unwrap_or_default() }
    }
}

impl Cpu {
    fn found() -> Self {
        let kinds = RefreshKind::nothing()
            .with_cpu(CpuRefreshKind::nothing())
            .with_memory(MemoryRefreshKind::nothing().with_ram());
        let system = System::new_with_specifics(kinds);
        let name = system.cpus().first().map_or("", |cpu| cpu.brand().trim()).to_owned();
        let n_threads = std::thread::available_parallelism().map_or(1, usize::from);
        let (mut total, mut free) = (system.total_memory(), system.available_memory());
        // A container may have less than the machine. Its caches count as free, as those of the machine do.
        if let Some(limits) = system.cgroup_limits() {
            total = total.min(limits.total_memory);
            free = free.min(limits.total_memory.saturating_sub(limits.rss));
        }
        Self { name, n_threads, memory_gib: total as f64 / GIB, free_gib: free as f64 / GIB }
    }
}

impl Gpu {
    /// The profile of this kind of GPU, if there is one.
    pub fn profile(&self) -> Option<&'static Profile> {
        profiles().iter().find(|profile| profile.names.contains(&self.name))
    }
}

/// The GPUs of the driver; an error without a driver.
fn gpus() -> Result<Vec<Gpu>, nvml_wrapper::error::NvmlError> {
    let nvml = Nvml::init()?;
    let driver = nvml.sys_driver_version()?;
    let gpu = |index| {
        let device = nvml.device_by_index(index)?;
        let memory = device.memory_info()?;
        let capability = device.cuda_compute_capability().ok();
        Ok(Gpu {
            index,
            name: device.name()?,
            memory_gib: memory.total as f64 / GIB,
            free_gib: memory.free as f64 / GIB,
            compute_capability: capability.map(|capability| format!("{}.{}", capability.major, capability.minor)),
            driver: driver.clone(),
        })
    };
    (0..nvml.device_count()?).map(gpu).collect()
}

/// Reads the state of a GPU while a run uses it.
pub struct GpuMonitor {
    nvml: Nvml,
    index: u32,
}

/// The state of a GPU at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GpuState {
    /// Memory in use by all programs, in GiB.
    pub used_gib: f64,
    /// Share of the last moments in which a kernel ran, 0 to 1.
    pub busy: f64,
    /// In degrees Celsius.
    pub temperature_c: f64,
}

impl GpuMonitor {
    /// A monitor of the device that [`crate::open_named`] opens; `None` if it is not an NVIDIA GPU, or there is no driver.
    pub fn of(name: &str) -> Option<Self> {
        match crate::open::resolve(name) {
            Ok((Backend::Cuda, index)) => Self::open(u32::try_from(index).ok()?),
            _ => None,
        }
    }

    /// A monitor of GPU `index`; `None` without a driver or without this GPU.
    pub fn open(index: u32) -> Option<Self> {
        let nvml = Nvml::init().ok()?;
        nvml.device_by_index(index).ok()?;
        Some(Self { nvml, index })
    }

    /// The state now; `None` if the driver does not answer.
    pub fn state(&self) -> Option<GpuState> {
        let device = self.nvml.device_by_index(self.index).ok()?;
        Some(GpuState {
            used_gib: device.memory_info().ok()?.used as f64 / GIB,
            busy: f64::from(device.utilization_rates().ok()?.gpu) / 100.0,
            temperature_c: f64::from(device.temperature(TemperatureSensor::Gpu).ok()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_matched_by_the_name_of_their_driver() {
        let gpu = |name: &str| Gpu {
            index: 0,
            name: name.to_owned(),
            memory_gib: 8.0,
            free_gib: 8.0,
            compute_capability: None,
            driver: String::new(),
        };
        let matched = |name| gpu(name).profile().map(|profile| profile.name.as_str());
        assert_eq!(matched("NVIDIA GeForce RTX 4060 Laptop GPU"), Some("rtx-4060-laptop"));
        assert_eq!(matched("NVIDIA GeForce RTX 4060"), Some("rtx-4060"));
        assert_eq!(matched("Tesla T4"), Some("t4"));
        assert_eq!(matched("NVIDIA GeForce RTX 4060 Ti"), None);
    }

    #[test]
    fn the_machine_says_what_it_is() {
        let Machine { cpu, gpus } = Machine::found();
        assert!(cpu.n_threads >= 1 && cpu.memory_gib > 0.1 && cpu.free_gib <= cpu.memory_gib, "{cpu:?}");
        assert_eq!(GpuMonitor::open(0).is_some(), !gpus.is_empty());
        assert_eq!(GpuMonitor::of("cuda").is_some(), !gpus.is_empty());
        assert!(["cpu", "flex", "wgpu", "abacus", "cuda:99"].iter().all(|name| GpuMonitor::of(name).is_none()));
    }
}
