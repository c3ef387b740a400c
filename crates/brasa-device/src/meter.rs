//! Counts the memory that a program allocates on the host.

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, TryLockError};

/// An allocator that counts while [`measure`] runs and otherwise only passes calls on to `A`.
///
/// A program that plans the memory of runs installs it:
///
/// ```
/// use brasa_device::{Meter, measure};
///
/// #[global_allocator]
/// static ALLOCATOR: Meter<std::alloc::System> = Meter(std::alloc::System);
///
/// let (bytes, usage) = measure(|| vec![0u8; 5000]);
/// let usage = usage.expect("the allocator is installed");
/// assert_eq!((usage.kept, usage.peak), (5000, 5000));
/// drop(bytes);
/// ```
#[derive(Debug, Default)]
pub struct Meter<A>(pub A);

/// What a call of [`measure`] allocated, in bytes, all threads together.
///
/// ```
/// use brasa_device::{Meter, Usage, measure};
///
/// #[global_allocator]
/// static ALLOCATOR: Meter<std::alloc::System> = Meter(std::alloc::System);
///
/// let ((), usage) = measure(|| drop(vec![0u8; 5000]));
/// let Usage { kept, peak, .. } = usage.expect("the allocator is installed");
/// assert_eq!((kept, peak), (0, 5000));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Memory that is still allocated at the end; less than 0 if older memory was freed.
    pub kept: i64,
    /// Most memory that was allocated at the same time.
    pub peak: i64,
    /// Sum of all allocations.
    pub allocated: u64,
    /// Launches of [`count_launches`] and [`count_product`].
    pub launches: u64,
    /// Floating-point operations of [`count_product`].
    pub flop: u64,
}

/// Adds what a GPU would launch for this work to the measurement that runs, if one runs. The measurement is on the CPU, where nothing is
/// launched.
///
/// ```
/// use brasa_device::{Meter, count_launches, measure};
///
/// #[global_allocator]
/// static ALLOCATOR: Meter<std::alloc::System> = Meter(std::alloc::System);
///
/// // A GPU would run this work as two kernels.
/// let ((), usage) = measure(|| {
///     # drop(vec![0u8; 8]);
///     count_launches(2);
/// });
/// assert_eq!(usage.expect("the allocator is installed").launches, 2);
/// ```
pub fn count_launches(n: usize) {
    if COUNTING.load(Ordering::Relaxed) {
        LAUNCHES.fetch_add(n as u64, Ordering::Relaxed);
    }
}

/// Adds a matrix product of `flop` floating-point operations to the measurement that runs, if one runs, with the `launches` that it and what
/// belongs to it are on a GPU.
///
/// ```
/// use brasa_device::{Meter, count_product, measure};
///
/// #[global_allocator]
/// static ALLOCATOR: Meter<std::alloc::System> = Meter(std::alloc::System);
///
/// // 8 rows through a layer of 64 x 32 weights, with the bias in a second kernel.
/// let ((), usage) = measure(|| {
///     # drop(vec![0u8; 8]);
///     count_product(2 * 8 * 64 * 32, 2);
/// });
/// let usage = usage.expect("the allocator is installed");
/// assert_eq!((usage.flop, usage.launches), (32_768, 2));
/// ```
pub fn count_product(flop: usize, launches: usize) {
    count_launches(launches);
    if COUNTING.load(Ordering::Relaxed) {
        FLOP.fetch_add(flop as u64, Ordering::Relaxed);
    }
}

static INSTALLED: AtomicBool = AtomicBool::new(false);
static COUNTING: AtomicBool = AtomicBool::new(false);
static LIVE: AtomicI64 = AtomicI64::new(0);
static PEAK: AtomicI64 = AtomicI64::new(0);
static ALLOCATED: AtomicU64 = AtomicU64::new(0);
static LAUNCHES: AtomicU64 = AtomicU64::new(0);
static FLOP: AtomicU64 = AtomicU64::new(0);
/// One measurement at a time.
static MEASUREMENT: Mutex<()> = Mutex::new(());

/// Calls `what` and counts what all threads allocate meanwhile. The usage is `None` if [`Meter`] is not the allocator of the
/// program, or if another measurement runs.
///
/// ```
/// // Without `Meter` as the allocator of the program, nothing is counted.
/// let (sum, usage) = brasa_device::measure(|| (1..=10).sum::<u32>());
/// assert_eq!((sum, usage), (55, None));
/// ```
pub fn measure<T>(what: impl FnOnce() -> T) -> (T, Option<Usage>) {
    let only = match MEASUREMENT.try_lock() {
        Ok(only) => only,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => return (what(), None),
    };
    LIVE.store(0, Ordering::SeqCst);
    PEAK.store(0, Ordering::SeqCst);
    ALLOCATED.store(0, Ordering::SeqCst);
    LAUNCHES.store(0, Ordering::SeqCst);
    FLOP.store(0, Ordering::SeqCst);
    COUNTING.store(true, Ordering::SeqCst);
    // A panic of `what` must not leave the counters on.
    let off = Off;
    let result = what();
    drop(off);
    let usage = Usage {
        kept: LIVE.load(Ordering::SeqCst),
        peak: PEAK.load(Ordering::SeqCst),
        allocated: ALLOCATED.load(Ordering::SeqCst),
        launches: LAUNCHES.load(Ordering::SeqCst),
        flop: FLOP.load(Ordering::SeqCst),
    };
    drop(only);
    (result, INSTALLED.load(Ordering::SeqCst).then_some(usage))
}

/// Whether [`measure`] runs. Memory that is kept for later would then hide what a computation needs.
///
/// ```
/// use brasa_device::{is_measured, measure};
///
/// assert!(!is_measured());
/// assert!(measure(is_measured).0);
/// ```
pub fn is_measured() -> bool {
    COUNTING.load(Ordering::Relaxed)
}

struct Off;

impl Drop for Off {
    fn drop(&mut self) {
        COUNTING.store(false, Ordering::SeqCst);
    }
}

fn count(bytes: usize, freed: usize) {
    INSTALLED.store(true, Ordering::Relaxed);
    let change = bytes as i64 - freed as i64;
    let live = LIVE.fetch_add(change, Ordering::Relaxed) + change;
    // Most calls need no more of the expensive writes: programs also measure their speed meanwhile.
    if live > PEAK.load(Ordering::Relaxed) {
        PEAK.fetch_max(live, Ordering::Relaxed);
    }
    if bytes > 0 {
        ALLOCATED.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

#[allow(unsafe_code, reason = "an allocator is unsafe to implement; every call goes to `A`")]
// SAFETY: every method passes its arguments to `A` unchanged.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Meter<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if COUNTING.load(Ordering::Relaxed) {
            count(layout.size(), 0);
        }
        // SAFETY: the caller keeps the rules of `A`.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if COUNTING.load(Ordering::Relaxed) {
            count(layout.size(), 0);
        }
        // SAFETY: the caller keeps the rules of `A`.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if COUNTING.load(Ordering::Relaxed) {
            count(size, layout.size());
        }
        // SAFETY: the caller keeps the rules of `A`.
        unsafe { self.0.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if COUNTING.load(Ordering::Relaxed) {
            count(0, layout.size());
        }
        // SAFETY: the caller keeps the rules of `A`.
        unsafe { self.0.dealloc(pointer, layout) }
    }
}
