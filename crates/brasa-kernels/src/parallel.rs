//! Work of the CPU on several threads.

use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// Does the work of all `n` parts, on as many threads as rayon has; `RAYON_NUM_THREADS` sets their number.
///
/// A single part, and all of them on a single thread, are done by the caller: to pass work to another thread takes 10 us.
pub(crate) fn in_parallel<P: Send>(n: usize, parts: impl Iterator<Item = P>, work: impl Fn(P) + Sync + Send) {
    match n < 2 || rayon::current_num_threads() < 2 {
        true => parts.for_each(work),
        false => parts.collect::<Vec<P>>().into_par_iter().for_each(work),
    }
}
