//! Work of the CPU on several threads.

use brasa_device::{Precision, autocast};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// Does the work of all `n` parts, on as many threads as rayon has; `RAYON_NUM_THREADS` sets their number.
///
/// A single part, and all of them on a single thread, are done by the caller: to pass work to another thread takes 10 us.
///
/// A thread of rayon that waits for parts of others may do another task first, to which the format of this one must not apply.
pub(crate) fn in_parallel<P: Send>(n: usize, parts: impl Iterator<Item = P>, work: impl Fn(P) + Sync + Send) {
    match n < 2 || rayon::current_num_threads() < 2 {
        true => parts.for_each(work),
        false => autocast(Precision::F32, || parts.collect::<Vec<P>>().into_par_iter().for_each(work)),
    }
}
