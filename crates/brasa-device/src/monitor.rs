//! The state of a GPU, and of this process on the processor, while a run uses them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use sysinfo::{CpuRefreshKind, MemoryRefreshKind, Pid, ProcessRefreshKind, ProcessesToUpdate, RefreshKind, System};

use crate::driver::{GpuDriver, driver};
use crate::machine::{GIB, n_threads};
use crate::{Backend, Machine};

/// The state of a GPU at one moment. Values that the GPU does not measure are `None`.
///
/// ```
/// use brasa_device::GpuState;
///
/// let state = GpuState { used_gib: 2.5, busy: Some(0.8), ..Default::default() };
/// let metrics: Vec<_> = state.metrics().collect();
/// assert_eq!(metrics, [("gpu/memory_gib", 2.5), ("gpu/busy", 0.8)]);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct GpuState {
    /// Memory in use by all programs, in GiB.
    pub used_gib: f64,
    /// Share of the last moments in which a kernel ran, 0 to 1.
    pub busy: Option<f64>,
    /// In degrees Celsius.
    pub temperature_c: Option<f64>,
    /// Power in watts.
    pub power_w: Option<f64>,
    /// Clock of the cores in MHz.
    pub clock_mhz: Option<f64>,
    /// Clock of the memory in MHz.
    pub memory_clock_mhz: Option<f64>,
}

impl GpuState {
    /// The values with the names of their metrics.
    pub fn metrics(&self) -> impl Iterator<Item = (&'static str, f64)> + use<> {
        let all = [
            ("gpu/memory_gib", Some(self.used_gib)),
            ("gpu/busy", self.busy),
            ("gpu/temperature_c", self.temperature_c),
            ("gpu/power_w", self.power_w),
            ("gpu/clock_mhz", self.clock_mhz),
            ("gpu/memory_clock_mhz", self.memory_clock_mhz),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?)))
    }
}

/// Reads the state of a GPU while a run uses it.
///
/// ```
/// use brasa_device::{Gpu, GpuMonitor, GpuState, with_driver};
///
/// # let gpu = Gpu {
/// #     index: 0, name: "Tesla T4".into(), memory_gib: 15.0, free_gib: 14.4, compute_capability: None,
/// #     driver: "580.1".into(), n_cores: None, max_clock_mhz: None, max_memory_clock_mhz: None, bus_bits: None,
/// #     state: GpuState::default(),
/// # };
/// // `gpu` is described by the test, so no hardware is needed.
/// let gpu = Gpu { state: GpuState { power_w: Some(101.5), ..Default::default() }, ..gpu };
/// with_driver(vec![gpu], || {
///     let monitor = GpuMonitor::of("cuda:0").expect("the driver reports it");
///     assert_eq!(monitor.state().and_then(|state| state.power_w), Some(101.5));
///     assert!(GpuMonitor::of("cuda:1").is_none());
/// });
/// ```
pub struct GpuMonitor {
    driver: Arc<dyn GpuDriver>,
    index: u32,
}

impl std::fmt::Debug for GpuMonitor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GpuMonitor").field("index", &self.index).finish_non_exhaustive()
    }
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
        let driver = driver()?;
        driver.state(index)?;
        Some(Self { driver, index })
    }

    /// The state now; `None` if the driver does not answer.
    pub fn state(&self) -> Option<GpuState> {
        self.driver.state(self.index)
    }
}

/// Use of the processor and of host memory.
///
/// ```
/// use brasa_device::{HostState, ProcessMonitor};
///
/// let state = ProcessMonitor::default().state();
/// # if cfg!(target_os = "linux") {
/// let HostState { busy, memory_gib } = state.expect("the operating system reports the process");
/// assert!((0.0..=1.0).contains(&busy) && memory_gib > 0.0);
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct HostState {
    /// Share of the time of all threads that this process may use, 0 to 1.
    pub busy: f64,
    /// Memory in GiB.
    pub memory_gib: f64,
}

/// Reads what this process takes of the processor.
///
/// ```
/// use brasa_device::ProcessMonitor;
///
/// let mut monitor = ProcessMonitor::default();
/// let sum: f64 = (1..100_000).map(f64::from).sum();
/// # if cfg!(target_os = "linux") {
/// // The share of the time since the monitor was created.
/// let busy = monitor.state().map(|state| state.busy);
/// assert!(sum > 0.0 && busy.is_some_and(|busy| busy <= 1.0));
/// # }
/// ```
#[derive(Debug)]
pub struct ProcessMonitor {
    system: System,
    pid: Option<Pid>,
    /// Time of the latest reading, and processor time until then in milliseconds.
    before: (Instant, u64),
}

impl Default for ProcessMonitor {
    fn default() -> Self {
        let mut this =
            Self { system: System::new(), pid: sysinfo::get_current_pid().ok(), before: (Instant::now(), 0) };
        if let Some((millis, _)) = this.read() {
            this.before = (Instant::now(), millis);
        }
        this
    }
}

impl ProcessMonitor {
    /// Processor time of this process in milliseconds, and its memory in bytes.
    fn read(&mut self) -> Option<(u64, u64)> {
        let pid = self.pid?;
        let kind = ProcessRefreshKind::nothing().with_cpu().with_memory();
        self.system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), false, kind);
        self.system.process(pid).map(|process| (process.accumulated_cpu_time(), process.memory()))
    }

    /// The use since the latest reading; `None` if the operating system does not report it.
    pub fn state(&mut self) -> Option<HostState> {
        let (millis, bytes) = self.read()?;
        let now = Instant::now();
        let (since, millis_before) = std::mem::replace(&mut self.before, (now, millis));
        let spent = millis.saturating_sub(millis_before) as f64 / 1000.0;
        let available = (now - since).as_secs_f64().max(1e-3) * n_threads() as f64;
        // The operating system counts in ticks of about 10 ms.
        Some(HostState { busy: (spent / available).min(1.0), memory_gib: bytes as f64 / GIB })
    }
}

/// Reads what all programs of this machine use.
///
/// ```
/// use brasa_device::MachineMonitor;
///
/// let mut monitor = MachineMonitor::default();
/// std::thread::sleep(std::time::Duration::from_millis(200));
/// let state = monitor.state();
/// assert!((0.0..=1.0).contains(&state.busy) && state.memory_gib > 0.0);
/// ```
#[derive(Debug)]
pub struct MachineMonitor(System);

impl Default for MachineMonitor {
    fn default() -> Self {
        let kinds = RefreshKind::nothing().with_cpu(CpuRefreshKind::nothing().with_cpu_usage());
        Self(System::new_with_specifics(kinds.with_memory(MemoryRefreshKind::nothing().with_ram())))
    }
}

impl MachineMonitor {
    /// Use of all processors since the latest reading, which must be at least 0.2 seconds ago, and the memory in use.
    pub fn state(&mut self) -> HostState {
        self.0.refresh_cpu_usage();
        let cpu = Machine::found().cpu;
        HostState { busy: f64::from(self.0.global_cpu_usage()) / 100.0, memory_gib: cpu.memory_gib - cpu.free_gib }
    }
}

/// Readings of a GPU and of this process as metrics of a run, at most one a second: a driver takes milliseconds to answer.
///
/// ```
/// use brasa_device::RunMonitor;
///
/// let mut monitor = RunMonitor::of("cpu");
/// std::thread::sleep(std::time::Duration::from_millis(110));
/// # if cfg!(target_os = "linux") {
/// let names: Vec<_> = monitor.metrics().iter().map(|(name, _)| *name).collect();
/// assert_eq!(names, ["time/process_busy", "time/process_memory_gib"]);
/// # }
/// ```
#[derive(Debug, Default)]
pub struct RunMonitor {
    gpu: Option<GpuMonitor>,
    process: ProcessMonitor,
    latest: Option<Instant>,
    metrics: Vec<(&'static str, f64)>,
}

/// Least time between readings.
const BETWEEN: Duration = Duration::from_secs(1);

impl RunMonitor {
    /// Monitors this process, and the device that [`crate::open_named`] opens if it is an NVIDIA GPU.
    pub fn of(name: &str) -> Self {
        Self { gpu: GpuMonitor::of(name), ..Self::default() }
    }

    /// The latest reading with the names of its metrics: `gpu/...` as [`GpuState::metrics`]; `time/process_busy`, the share of the
    /// processor's threads that this process used; and `time/process_memory_gib`. The first reading needs 0.1 s.
    pub fn metrics(&mut self) -> &[(&'static str, f64)] {
        let due = match self.latest {
            None => self.process.before.0.elapsed() >= BETWEEN / 10,
            Some(latest) => latest.elapsed() >= BETWEEN,
        };
        if due {
            self.latest = Some(Instant::now());
            self.metrics.clear();
            self.metrics.extend(self.gpu.as_ref().and_then(GpuMonitor::state).iter().flat_map(GpuState::metrics));
            if let Some(HostState { busy, memory_gib }) = self.process.state() {
                self.metrics.extend([("time/process_busy", busy), ("time/process_memory_gib", memory_gib)]);
            }
        }
        &self.metrics
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::tests::gpu;
    use crate::with_driver;

    #[test]
    fn a_gpu_gives_a_metric_for_every_value_that_it_measures() {
        let mut card = gpu("NVIDIA GeForce RTX 4060", 8.0, 5.5);
        card.index = 1;
        card.state.power_w = None;
        let metrics = with_driver(vec![card], || {
            assert!(GpuMonitor::of("cuda").is_none(), "there is only number 1");
            let state = GpuMonitor::of("cuda:1").expect("it is there").state().expect("it has a state");
            state.metrics().collect::<Vec<_>>()
        });
        let expected = [
            ("gpu/memory_gib", 2.5),
            ("gpu/busy", 0.8),
            ("gpu/temperature_c", 61.0),
            ("gpu/clock_mhz", 2400.0),
            ("gpu/memory_clock_mhz", 8500.0),
        ];
        assert_eq!(metrics, expected);
    }

    #[test]
    fn a_run_reads_its_gpu_and_its_process_once_a_second() {
        with_driver(vec![gpu("NVIDIA GeForce RTX 4060", 8.0, 5.5)], || {
            let mut monitor = RunMonitor::of("cuda");
            let (begin, mut x) = (Instant::now(), 0.0f64);
            while begin.elapsed() < Duration::from_millis(300) {
                x = (x + 1.0).sqrt();
            }
            assert!(x > 0.0);
            let first = monitor.metrics().to_vec();
            assert_eq!(first.len(), 8);
            let value = |name: &str| first.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
            assert_eq!(value("gpu/power_w"), Some(101.5));
            let busy = value("time/process_busy").expect("the process is known");
            // One thread computed all the time, unless other programs kept it from that.
            assert!(busy > 0.0 && busy <= 1.0, "{busy}");
            assert!(value("time/process_memory_gib").is_some_and(|gib| gib > 1e-3 && gib < 1e3));
            assert_eq!(monitor.metrics(), first, "the next reading is a second later");
        });
    }

    #[test]
    fn the_machine_uses_more_memory_than_nothing() {
        let mut monitor = MachineMonitor::default();
        std::thread::sleep(Duration::from_millis(250));
        let state = monitor.state();
        assert!((0.0..=1.0).contains(&state.busy) && state.memory_gib > 0.0, "{state:?}");
    }
}
