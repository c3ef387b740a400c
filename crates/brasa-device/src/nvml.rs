//! NVIDIA's driver.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use nvml_wrapper::Device;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::error::NvmlError;

use crate::machine::GIB;
use crate::{Gpu, GpuDriver, GpuState};

/// The driver of this machine; `None` without one.
pub(crate) fn driver() -> Option<Arc<dyn GpuDriver>> {
    static DRIVER: LazyLock<Option<Arc<dyn GpuDriver>>> = LazyLock::new(|| Some(Arc::new(Nvml::open().ok()?)));
    DRIVER.clone()
}

/// NVML, which is loaded at run time.
struct Nvml {
    driver: nvml_wrapper::Nvml,
    /// Free memory in GiB of every GPU that was asked for, at the first time: later, memory of this process is in use, too.
    free_before_use: Mutex<BTreeMap<u32, f64>>,
}

impl Nvml {
    fn open() -> Result<Self, NvmlError> {
        Ok(Self { driver: nvml_wrapper::Nvml::init()?, free_before_use: Mutex::default() })
    }

    fn gpu(&self, index: u32) -> Result<Gpu, NvmlError> {
        let device = self.driver.device_by_index(index)?;
        let memory = device.memory_info()?;
        let capability = device.cuda_compute_capability().ok();
        let max_clock = |clock| device.max_clock_info(clock).ok().map(f64::from);
        Ok(Gpu {
            index,
            name: device.name()?,
            memory_gib: memory.total as f64 / GIB,
            free_gib: memory.free as f64 / GIB,
            compute_capability: capability.map(|capability| format!("{}.{}", capability.major, capability.minor)),
            driver: self.driver.sys_driver_version()?,
            n_cores: device.num_cores().ok(),
            max_clock_mhz: max_clock(Clock::SM),
            max_memory_clock_mhz: max_clock(Clock::Memory),
            bus_bits: device.memory_bus_width().ok(),
            state: state(&device)?,
        })
    }
}

impl GpuDriver for Nvml {
    fn gpus(&self) -> Vec<Gpu> {
        let all = || (0..self.driver.device_count()?).map(|index| self.gpu(index)).collect::<Result<_, NvmlError>>();
        all().unwrap_or_default()
    }

    fn state(&self, index: u32) -> Option<GpuState> {
        state(&self.driver.device_by_index(index).ok()?).ok()
    }

    fn free_before_use_gib(&self, index: u32) -> Option<f64> {
        // A number is inserted as a whole, so the map is valid after a panic.
        let mut known = self.free_before_use.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(free) = known.get(&index) {
            return Some(*free);
        }
        let free = self.driver.device_by_index(index).ok()?.memory_info().ok()?.free as f64 / GIB;
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
