//! The machine at hand: its processor, and the GPUs that a driver reports.

use serde::Serialize;
use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

use crate::driver::driver;
use crate::{GpuState, Profile, profiles};

pub(crate) const GIB: f64 = (1u64 << 30) as f64;

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
///
/// ```
/// use brasa_device::{Cpu, Machine};
///
/// let Cpu { n_threads, memory_gib, free_gib, .. } = Machine::found().cpu;
/// assert!(n_threads >= 1);
/// assert!(0.0 < free_gib && free_gib <= memory_gib);
/// ```
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
///
/// ```
/// use brasa_device::{Gpu, GpuState};
///
/// let gpu = Gpu {
///     index: 0,
///     name: "Tesla T4".into(),
///     memory_gib: 15.0,
///     free_gib: 14.4,
///     driver: "580.1".into(),
///     # compute_capability: Some("7.5".into()),
///     # n_cores: Some(2560),
///     # max_clock_mhz: Some(1590.0),
///     # max_memory_clock_mhz: Some(5001.0),
///     # bus_bits: Some(256),
///     state: GpuState::default(),
/// };
/// let profile = gpu.profile().expect("there is a profile of this kind of GPU");
/// assert_eq!(profile.name, "t4");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gpu {
    /// Its number, as in `cuda:1`.
    pub index: u32,
    /// Name from the driver.
    pub name: String,
    /// Memory in GiB.
    pub memory_gib: f64,
    /// Memory that no program uses, in GiB.
    pub free_gib: f64,
    /// CUDA compute capability, if the driver reports it.
    pub compute_capability: Option<String>,
    /// Version of the driver.
    pub driver: String,
    /// Number of CUDA cores, if the driver reports it.
    pub n_cores: Option<u32>,
    /// Highest clock of the cores in MHz, if the driver reports it.
    pub max_clock_mhz: Option<f64>,
    /// Highest clock of the memory in MHz, if the driver reports it.
    pub max_memory_clock_mhz: Option<f64>,
    /// Width of the memory's bus in bits, if the driver reports it.
    pub bus_bits: Option<u32>,
    /// Its state when it was found.
    pub state: GpuState,
}

impl Machine {
    /// Asks the operating system and the driver.
    pub fn found() -> Self {
        Self { cpu: Cpu::found(), gpus: driver().map(|driver| driver.gpus()).unwrap_or_default() }
    }
}

impl Cpu {
    fn found() -> Self {
        let kinds = RefreshKind::nothing()
            .with_cpu(CpuRefreshKind::nothing())
            .with_memory(MemoryRefreshKind::nothing().with_ram());
        let system = System::new_with_specifics(kinds);
        let name = system.cpus().first().map_or("", |cpu| cpu.brand().trim()).to_owned();
        let n_threads = n_threads();
        let (mut total, mut free) = (system.total_memory(), system.available_memory());
        // A container may have less than the machine. Its caches count as free, as those of the machine do.
        if let Some(limits) = system.cgroup_limits() {
            total = total.min(limits.total_memory);
            free = free.min(limits.total_memory.saturating_sub(limits.rss));
        }
        Self { name, n_threads, memory_gib: total as f64 / GIB, free_gib: free as f64 / GIB }
    }
}

/// Threads that this process may use.
pub(crate) fn n_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

impl Gpu {
    /// The profile of this kind of GPU, if there is one. [`Profile::of_gpu`] makes one for every GPU.
    pub fn profile(&self) -> Option<&'static Profile> {
        profiles().iter().find(|profile| profile.names.contains(&self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GpuMonitor;
    use crate::driver::tests::gpu;

    #[test]
    fn gpus_are_matched_by_the_name_of_their_driver() {
        let matched = |name| gpu(name, 8.0, 8.0).profile().map(|profile| profile.name.as_str());
        assert_eq!(matched("NVIDIA GeForce RTX 4060 Laptop GPU"), Some("rtx-4060-laptop"));
        assert_eq!(matched("NVIDIA GeForce RTX 4060"), Some("rtx-4060"));
        assert_eq!(matched("Tesla T4"), Some("t4"));
        assert_eq!(matched("Tesla V100-PCIE-32GB"), Some("v100-pcie-32gb"));
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
