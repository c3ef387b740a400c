//! How much memory a test takes: an allocator that counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The system's allocator, which also counts what is in use and the most that ever was.
///
/// ```no_run
/// #[global_allocator]
/// static MEMORY: brasa_test::memory::Counting = brasa_test::memory::Counting::new();
/// ```
#[derive(Debug)]
pub struct Counting {
    in_use: AtomicUsize,
    peak: AtomicUsize,
}

impl Counting {
    /// Nothing counted yet.
    pub const fn new() -> Self {
        Self { in_use: AtomicUsize::new(0), peak: AtomicUsize::new(0) }
    }

    /// Bytes in use.
    pub fn in_use(&self) -> usize {
        self.in_use.load(Ordering::Relaxed)
    }

    /// Forgets the peak so far; what follows is measured from what is in use now.
    pub fn restart(&self) -> usize {
        let now = self.in_use();
        self.peak.store(now, Ordering::Relaxed);
        now
    }

    /// The most bytes in use since [`Counting::restart`].
    pub fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }

    fn add(&self, bytes: usize) {
        let now = self.in_use.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak.fetch_max(now, Ordering::Relaxed);
    }
}

impl Default for Counting {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: every call is the system allocator's own; the counters touch no memory of it.
#[allow(unsafe_code, reason = "an allocator cannot be written without")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.add(layout.size());
        // SAFETY: the caller keeps the rules of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.add(layout.size());
        // SAFETY: the caller keeps the rules of the system's allocator.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        self.in_use.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the rules of the system's allocator.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.add(size);
        self.in_use.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the rules of the system's allocator.
        unsafe { System.realloc(at, layout, size) }
    }
}
