//! Memory of a thread that is kept between computations.

use std::cell::Cell;
use std::thread::LocalKey;

/// Calls `work` with the kept memory of this thread.
///
/// The memory is taken out meanwhile. A thread that waits for a parallel computation may do another task of rayon first, which can come
/// back here: that task gets memory of its own.
pub(crate) fn with_scratch<T: Default, R>(kept: &'static LocalKey<Cell<T>>, work: impl FnOnce(&mut T) -> R) -> R {
    let mut own = kept.take();
    let result = work(&mut own);
    kept.set(own);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    thread_local! {
        static KEPT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    }

    #[test]
    fn memory_is_kept_and_an_inner_use_has_its_own() {
        with_scratch(&KEPT, |outer| {
            outer.push(1);
            with_scratch(&KEPT, |inner| {
                assert!(inner.is_empty());
                inner.push(2);
            });
            assert_eq!(*outer, [1]);
        });
        with_scratch(&KEPT, |kept| assert_eq!(*kept, [1]));
    }
}
