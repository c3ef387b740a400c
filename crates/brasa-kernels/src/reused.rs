//! Memory for many numbers that a thread keeps for the next computation.
//!
//! The allocator gives large blocks back to the system, which clears every page before it gives it out again: in an update of a small network, that
//! took as long as the loss.

use std::cell::RefCell;

use brasa_device::is_measured;

/// Blocks that a thread keeps.
const BLOCKS: usize = 32;
/// Numbers that a thread keeps, in all blocks: 16 MB.
const NUMBERS: usize = 1 << 22;

thread_local! {
    static KEPT: RefCell<Kept> = const { RefCell::new(Kept { blocks: Vec::new(), n: 0 }) };
}

struct Kept {
    blocks: Vec<Vec<f32>>,
    n: usize,
}

/// `n` numbers of any value, to be written over: in memory that [`reuse`] keeps, if there is a block of this size. While memory is measured
/// ([`brasa_device::measure`]), it is new.
///
/// ```
/// use brasa_kernels::{reuse, reused};
///
/// let mut gradient = reused(1000);
/// gradient.fill(0.5);
/// reuse(gradient);
/// // The same memory, with whatever is in it.
/// assert_eq!(reused(900), [0.5; 900]);
/// ```
pub fn reused(n: usize) -> Vec<f32> {
    let mut numbers = room(n);
    numbers.resize(n, 0.0);
    numbers
}

/// Memory for at least `n` numbers; its length is that of its last use.
fn room(n: usize) -> Vec<f32> {
    let kept = with_kept(|kept| {
        let fitting = kept.blocks.iter().enumerate().filter(|(_, block)| block.capacity() >= n);
        let (place, _) = fitting.min_by_key(|(_, block)| block.capacity())?;
        let block = kept.blocks.swap_remove(place);
        kept.n -= block.capacity();
        Some(block)
    });
    kept.flatten().unwrap_or_else(|| Vec::with_capacity(n))
}

/// Keeps the memory of `numbers` for [`reused`] in this thread, or frees it if enough is kept.
pub fn reuse(numbers: Vec<f32>) {
    with_kept(|kept| {
        let n = numbers.capacity();
        if n > 0 && kept.blocks.len() < BLOCKS && kept.n + n <= NUMBERS {
            kept.n += n;
            kept.blocks.push(numbers);
        }
    });
}

/// Replaces `numbers` by nothing, with room for `n` numbers.
#[cfg(feature = "flex")]
pub(crate) fn make_room(numbers: &mut Vec<f32>, n: usize) {
    if numbers.capacity() < n {
        reuse(std::mem::replace(numbers, room(n)));
    }
    numbers.clear();
}

/// `None` while memory is measured, and at the end of the thread, when a network may still be dropped.
fn with_kept<R>(work: impl FnOnce(&mut Kept) -> R) -> Option<R> {
    if is_measured() {
        return None;
    }
    KEPT.try_with(|kept| work(&mut kept.borrow_mut())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_block_that_is_large_enough_is_used_and_few_are_kept() {
        let sizes = || KEPT.with_borrow(|kept| kept.blocks.iter().map(Vec::capacity).collect::<Vec<_>>());
        let block = |n: usize| vec![n as f32; n];
        [300, 100, 200].into_iter().for_each(|n| reuse(block(n)));
        assert_eq!(reused(150), [200.0; 150]);
        assert_eq!(sizes(), [300, 100]);
        // No block is large enough.
        assert_eq!(reused(400), [0.0; 400]);
        assert_eq!(sizes(), [300, 100]);
        reuse(Vec::new());
        reuse(block(NUMBERS));
        assert_eq!(sizes(), [300, 100], "that is more than a thread keeps");
        (0..2 * BLOCKS).for_each(|_| reuse(block(1)));
        assert_eq!(sizes().len(), BLOCKS);
        assert_eq!(KEPT.with_borrow(|kept| kept.n), sizes().iter().sum::<usize>());
    }
}
