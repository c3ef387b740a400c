//! The driver of NVIDIA GPUs, which a test replaces.

use std::cell::RefCell;
use std::sync::Arc;

use crate::{Gpu, GpuState};

/// A driver that reports GPUs: NVML, or GPUs that a test makes up. A `Vec<Gpu>` is a driver whose GPUs never change.
///
/// ```
/// use brasa_device::{Gpu, GpuDriver, GpuState, Machine, with_driver};
///
/// /// A machine whose driver reports no GPU.
/// struct NoGpu;
///
/// impl GpuDriver for NoGpu {
///     fn gpus(&self) -> Vec<Gpu> {
///         Vec::new()
///     }
///     fn state(&self, _index: u32) -> Option<GpuState> {
///         None
///     }
/// }
///
/// assert_eq!(with_driver(NoGpu, || Machine::found().gpus), []);
/// assert_eq!(NoGpu.free_before_use_gib(0), None);
/// ```
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

/// The driver of this machine, or the one that replaces it; `None` without a driver, and without a backend for GPUs.
pub(crate) fn driver() -> Option<Arc<dyn GpuDriver>> {
    #[cfg(feature = "nvml")]
    let of_machine = crate::nvml::driver;
    #[cfg(not(feature = "nvml"))]
    let of_machine = || None;
    REPLACED.with_borrow(Clone::clone).or_else(of_machine)
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
