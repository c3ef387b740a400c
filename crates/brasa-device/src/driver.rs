//! The driver of NVIDIA GPUs, which a test replaces.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

use crate::machine::GIB;
use crate::{Gpu, GpuState};

/// A driver that reports GPUs: NVML, or GPUs that a test makes up. A `Vec<Gpu>` is a driver whose GPUs never change.
pub trait GpuDriver: Send + Sync {
    /// Every GPU, in the order of the driver, with its present state.
    fn gpus(&self) -> Vec<Gpu>;

    /// The present state of GPU `index`; `None` if the driver does not report it.
    fn state(&self, index: u32) -> Option<GpuState>;

    /// Memory of GPU `index`, in GiB, that was free before this process used the GPU; `None` if the driver does not report it.
    fn free_before_use_gib(&self, index: u32) -> Option<f64> {
        self.gpus().into_iter().find(|gpu| gpu.index == index).map(|gpu| gpu.free_gib)
    }
}

impl GpuDriver for Vec<Gpu> {
    fn gpus(&self) -> Vec<Gpu> {
        self.clone()
    }

    fn state(&self, index: u32) -> Option<GpuState> {
        self.iter().find(|gpu| gpu.index == index).map(|gpu| gpu.state)
    }
}

thread_local! {
    static REPLACED: RefCell<Option<Arc<dyn GpuDriver>>> = const { RefCell::new(None) };
}

/// Calls `work`; meanwhile, and on this thread, `driver` takes the place of the machine's driver. It is for tests: the GPUs are
/// reported, but no kernel runs on them.
///
/// ```
/// use brasa_device::{Machine, with_driver};
///
/// assert_eq!(with_driver(Vec::new(), || Machine::found().gpus.len()), 0);
/// ```
pub fn with_driver<T>(driver: impl GpuDriver + 'static, work: impl FnOnce() -> T) -> T {
    /// A panic of `work` must not leave the driver behind.
    struct Restore(Option<Arc<dyn GpuDriver>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            REPLACED.set(self.0.take());
        }
    }
    let _restore = Restore(REPLACED.replace(Some(Arc::new(driver))));
    work()
}

/// The driver of this machine, or the one that replaces it; `None` without a driver.
pub(crate) fn driver() -> Option<Arc<dyn GpuDriver>> {
    static OF_MACHINE: LazyLock<Option<Arc<dyn GpuDriver>>> = LazyLock::new(|| Some(Arc::new(OfMachine::open().ok()?)));
    REPLACED.with_borrow(Clone::clone).or_else(|| OF_MACHINE.clone())
}

/// NVML, which is loaded at run time.
struct OfMachine {
    nvml: Nvml,
    /// Free memory in GiB of every GPU that was asked for, at the first time: later, memory of this process is in use, too.
    free_before_use: Mutex<BTreeMap<u32, f64>>,
}

impl OfMachine {
    fn open() -> Result<Self, NvmlError> {
        Ok(Self { nvml: Nvml::init()?, free_before_use: Mutex::default() })
    }

    fn gpu(&self, index: u32) -> Result<Gpu, NvmlError> {
        let device = self.nvml.device_by_index(index)?;
        let memory = device.memory_info()?;
        let capability = device.cuda_compute_capability().ok();
        let max_clock = |clock| device.max_clock_info(clock).ok().map(f64::from);
        Ok(Gpu {
            index,
            name: device.name()?,
            memory_gib: memory.total as f64 / GIB,
            free_gib: memory.free as f64 / GIB,
            compute_capability: capability.map(|capability| format!("{}.{}", capability.major, capability.minor)),
            driver: self.nvml.sys_driver_version()?,
            n_cores: device.num_cores().ok(),
            max_clock_mhz: max_clock(Clock::SM),
            max_memory_clock_mhz: max_clock(Clock::Memory),
            bus_bits: device.memory_bus_width().ok(),
            state: state(&device)?,
        })
    }
}

impl GpuDriver for OfMachine {
    fn gpus(&self) -> Vec<Gpu> {
        let all = || (0..self.nvml.device_count()?).map(|index| self.gpu(index)).collect::<Result<_, NvmlError>>();
        all().unwrap_or_default()
    }

    fn state(&self, index: u32) -> Option<GpuState> {
        state(&self.nvml.device_by_index(index).ok()?).ok()
    }

    fn free_before_use_gib(&self, index: u32) -> Option<f64> {
        // A number is inserted as a whole, so the map is valid after a panic.
        let mut known = self.free_before_use.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(free) = known.get(&index) {
            return Some(*free);
        }
        let free = self.nvml.device_by_index(index).ok()?.memory_info().ok()?.free as f64 / GIB;
        known.insert(index, free);
        Some(free)
    }
}

/// The state of a GPU. A value that the GPU does not measure is missing.
fn state(device: &Device<'_>) -> Result<GpuState, NvmlError> {
    let memory = device.memory_info()?;
    let clock = |clock| device.clock_info(clock).ok().map(f64::from);
    Ok(GpuState {
        used_gib: memory.total.saturating_sub(memory.free) as f64 / GIB,
        busy: device.utilization_rates().ok().map(|rates| f64::from(rates.gpu) / 100.0),
        temperature_c: device.temperature(TemperatureSensor::Gpu).ok().map(f64::from),
        // In milliwatts.
        power_w: device.power_usage().ok().map(|power| f64::from(power) / 1000.0),
        clock_mhz: clock(Clock::SM),
        memory_clock_mhz: clock(Clock::Memory),
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Machine;

    /// A GPU with values in the order of a desktop card.
    pub(crate) fn gpu(name: &str, memory_gib: f64, free_gib: f64) -> Gpu {
        let state = GpuState {
            used_gib: memory_gib - free_gib,
            busy: Some(0.8),
            temperature_c: Some(61.0),
            power_w: Some(101.5),
            clock_mhz: Some(2400.0),
            memory_clock_mhz: Some(8500.0),
        };
        Gpu {
            index: 0,
            name: name.to_owned(),
            memory_gib,
            free_gib,
            compute_capability: Some("8.9".to_owned()),
            driver: "580.1".to_owned(),
            n_cores: Some(4352),
            max_clock_mhz: Some(3105.0),
            max_memory_clock_mhz: Some(9001.0),
            bus_bits: Some(128),
            state,
        }
    }

    #[test]
    fn a_driver_is_replaced_on_its_thread_until_the_end_or_a_panic() {
        let found = || Machine::found().gpus.into_iter().map(|gpu| gpu.name).collect::<Vec<_>>();
        let before = found();
        with_driver(vec![gpu("made up", 8.0, 6.0)], || {
            assert_eq!(found(), ["made up"]);
            assert_eq!(driver().and_then(|driver| driver.free_before_use_gib(0)), Some(6.0));
            std::thread::scope(|scope| scope.spawn(|| assert_eq!(found(), before)).join().expect("it ends"));
            let panicked = std::panic::catch_unwind(|| with_driver(Vec::new(), || panic!("expected")));
            assert!(panicked.is_err());
            assert_eq!(found(), ["made up"]);
        });
        assert_eq!(found(), before);
    }
}
