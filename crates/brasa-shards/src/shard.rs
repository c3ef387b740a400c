//! The shard of the current thread, and what shards exchange.

use std::cell::RefCell;
use std::sync::Arc;

use crate::exchange::Exchange;
use crate::tree::{self, Number};
use crate::world::Ranks;

/// A part of a run.
///
/// ```
/// use brasa_shards::{Shard, World, shard};
///
/// assert_eq!(shard(), Shard { index: 0, count: 1 });
/// let first = World::solo().run(4, || Ok::<_, String>(shard()))?;
/// assert_eq!(first, Shard { index: 0, count: 4 });
/// assert!(first.is_part() && first.is_first());
/// # Ok::<(), brasa_shards::RunError<String>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// From 0.
    pub index: usize,
    /// Number of shards of the run, on all ranks; 1 outside of a sharded run.
    pub count: usize,
}

impl Shard {
    /// The shard of programs that are not sharded.
    const WHOLE: Self = Self { index: 0, count: 1 };

    /// Whether the run has several shards.
    pub fn is_part(self) -> bool {
        self.count > 1
    }

    /// Whether this is the shard that writes files and reports progress.
    pub fn is_first(self) -> bool {
        self.index == 0
    }
}

/// A shard on its thread.
#[derive(Clone)]
pub(crate) struct Member {
    pub shard: Shard,
    /// Index among the shards of this process.
    pub local: usize,
    /// Number of shards of this process.
    pub n_local: usize,
    pub exchange: Arc<Exchange>,
    pub ranks: Arc<Ranks>,
}

thread_local! {
    static MEMBER: RefCell<Option<Member>> = const { RefCell::new(None) };
}

impl Member {
    /// Makes this the shard of the current thread while `work` runs.
    pub fn during<T>(self, work: impl FnOnce() -> T) -> T {
        /// Also after a panic.
        struct Leave;
        impl Drop for Leave {
            fn drop(&mut self) {
                MEMBER.set(None);
            }
        }
        MEMBER.set(Some(self));
        let _leave = Leave;
        work()
    }
}

/// The shard of the current thread.
///
/// ```
/// use brasa_shards::{World, shard};
///
/// // Each shard takes its part of 8 environments.
/// let envs = World::solo().run(4, || {
///     let (index, n) = (shard().index, 8 / shard().count);
///     Ok::<_, String>(index * n..(index + 1) * n)
/// })?;
/// assert_eq!(envs, 0..2);
/// # Ok::<(), brasa_shards::RunError<String>>(())
/// ```
pub fn shard() -> Shard {
    MEMBER.with_borrow(|member| member.as_ref().map_or(Shard::WHOLE, |member| member.shard))
}

/// The mean over all shards of each number, in the order of the tree. All shards call it with equally many numbers, and all get the
/// same bits. Outside of a sharded run it returns `values`.
///
/// ```
/// use brasa_shards::{World, mean, shard};
///
/// let gradient = World::solo().run(2, || {
///     let own = [1.0f32, 10.0].map(|x| x * (shard().index + 1) as f32);
///     Ok::<_, String>(mean(own.to_vec()))
/// })?;
/// assert_eq!(gradient, [1.5, 15.0]);
/// # Ok::<(), brasa_shards::RunError<String>>(())
/// ```
///
/// # Panics
/// If the shards have different numbers of values; ends the thread without a message if another shard has failed.
pub fn mean<T: Number>(values: Vec<T>) -> Vec<T> {
    let Some(member) = MEMBER.with_borrow(Clone::clone) else { return values };
    let Member { shard, local, n_local, exchange, ranks } = member;
    let mean = exchange.meet(local, n_local, values, |own| {
        let mut mean = ranks.sum(tree::sum(own));
        mean.iter_mut().for_each(|x| *x = x.divided(shard.count));
        mean
    });
    Arc::unwrap_or_clone(mean)
}

/// The bytes of all shards, in their order. All shards call it. Outside of a sharded run it returns `bytes` alone.
///
/// ```
/// use brasa_shards::{World, gather, shard};
///
/// let all = World::solo().run(2, || Ok::<_, String>(gather(vec![shard().index as u8; 3])))?;
/// assert_eq!(*all, [vec![0, 0, 0], vec![1, 1, 1]]);
/// # Ok::<(), brasa_shards::RunError<String>>(())
/// ```
///
/// # Panics
/// Ends the thread without a message if another shard has failed.
pub fn gather(bytes: Vec<u8>) -> Arc<Vec<Vec<u8>>> {
    let Some(member) = MEMBER.with_borrow(Clone::clone) else { return Arc::new(vec![bytes]) };
    let Member { local, n_local, exchange, ranks, .. } = member;
    exchange.meet(local, n_local, bytes, |own| ranks.all_gather_bytes(own))
}
