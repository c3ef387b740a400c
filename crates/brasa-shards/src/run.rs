//! The threads of a sharded run.

use std::any::Any;
use std::fmt::{self, Display};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread;

use thiserror::Error;

use crate::exchange::{Cancelled, Exchange};
use crate::shard::{Member, Shard};
use crate::{ShardError, World};

/// A run that did not succeed.
///
/// ```
/// use brasa_shards::{RunError, World, shard};
///
/// let error = World::solo().run(3, || Ok::<_, String>(())).unwrap_err();
/// assert!(matches!(error, RunError::Dist(_)));
/// let work = || if shard().index == 1 { Err("no data") } else { Ok(()) };
/// let error = World::solo().run(2, work).unwrap_err();
/// assert_eq!(error.to_string(), "shard 1: no data");
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunError<E: Display + fmt::Debug> {
    /// The run cannot be divided like that.
    #[error(transparent)]
    Dist(#[from] ShardError),
    /// The first shard of this process failed.
    #[error("{0}")]
    Own(E),
    /// Another shard of this process failed.
    #[error("shard {shard}: {message}")]
    Other {
        /// Its index.
        shard: usize,
        /// Its error.
        message: String,
    },
}

/// How the work of a shard ended.
enum Ended<T, E> {
    Well(T),
    Badly(E),
    Panicked(Box<dyn Any + Send>),
    Cancelled,
}

impl World {
    /// Runs `work` once per shard and returns the result of the first shard of this process: [`World::run_with`] with the same work for
    /// all.
    ///
    /// # Errors
    /// As [`World::run_with`].
    ///
    /// # Panics
    /// As [`World::run_with`].
    pub fn run<T, E>(&self, n_shards: usize, work: impl Fn() -> Result<T, E> + Sync) -> Result<T, RunError<E>>
    where
        E: Display + fmt::Debug,
    {
        let others = || work().map(drop).map_err(|error| error.to_string());
        self.run_with(n_shards, &work, others)
    }

    /// Runs `first` in the first shard of this process and `others` in its other shards, and returns the result of `first`.
    ///
    /// Every rank calls it with the same number of shards. The first shard of a process runs on the calling thread, the others on
    /// threads of their own; these compute without the threads of rayon's global pool. With a single shard `first` is just called.
    ///
    /// A shard that fails or panics ends all others at their next exchange, and so does one that returns while another one waits for it in an
    /// exchange. With several ranks the rank then prints the error and aborts all processes, because the other ranks could wait for it
    /// forever.
    ///
    /// # Errors
    /// [`RunError::Dist`] if `n_shards` is not a power of two or not a multiple of the number of ranks; otherwise the error of the
    /// shard that failed first.
    ///
    /// # Panics
    /// With the panic of the first shard of this process.
    pub fn run_with<T, E>(
        &self,
        n_shards: usize,
        first: impl FnOnce() -> Result<T, E>,
        others: impl Fn() -> Result<(), String> + Sync,
    ) -> Result<T, RunError<E>>
    where
        E: Display + fmt::Debug,
    {
        let n_ranks = self.n_ranks();
        if !n_shards.is_power_of_two() || !n_shards.is_multiple_of(n_ranks) {
            return Err(ShardError::Shards { n_shards, n_ranks }.into());
        }
        if n_shards == 1 {
            return first().map_err(RunError::Own);
        }
        let n_local = n_shards / n_ranks;
        let exchange = Arc::new(Exchange::default());
        let (rank, ranks) = (self.rank(), self.ranks());
        let member = |local: usize| Member {
            shard: Shard { index: rank * n_local + local, count: n_shards },
            local,
            n_local,
            exchange: exchange.clone(),
            ranks: ranks.clone(),
        };
        let own = thread::scope(|scope| {
            for local in 1..n_local {
                let (member, others) = (member(local), &others);
                let body = move || {
                    // The threads of a pool are shared by its users: a shard with a pool of its own waits for nobody.
                    let _ = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build();
                    run_shard(member, others);
                };
                let thread = thread::Builder::new().name(format!("shard {local}")).spawn_scoped(scope, body);
                if let Err(error) = thread {
                    exchange.fail(rank * n_local + local, format!("cannot start its thread: {error}"));
                }
            }
            run_shard(member(0), first)
        });
        let Some((shard, message)) = exchange.failure() else {
            ranks.leave();
            return match own {
                Ended::Well(result) => Ok(result),
                _ => unreachable!("a shard that does not end well is a failure"),
            };
        };
        self.abort(&format!("shard {shard}: {message}"), 1);
        match own {
            Ended::Badly(error) => Err(RunError::Own(error)),
            Ended::Panicked(panic) => resume_unwind(panic),
            Ended::Well(_) | Ended::Cancelled => Err(RunError::Other { shard, message }),
        }
    }
}

/// Runs the work of one shard, and reports its end to the others.
fn run_shard<T, E: Display>(member: Member, work: impl FnOnce() -> Result<T, E>) -> Ended<T, E> {
    let (index, exchange) = (member.shard.index, member.exchange.clone());
    let ended = match catch_unwind(AssertUnwindSafe(|| member.during(work))) {
        Ok(Ok(result)) => Ended::Well(result),
        Ok(Err(error)) => Ended::Badly(error),
        Err(panic) if panic.is::<Cancelled>() => Ended::Cancelled,
        Err(panic) => Ended::Panicked(panic),
    };
    match &ended {
        Ended::Badly(error) => exchange.fail(index, error.to_string()),
        Ended::Panicked(panic) => exchange.fail(index, format!("panicked: {}", text_of(&**panic))),
        Ended::Well(_) => exchange.leave(index),
        Ended::Cancelled => {}
    }
    ended
}

/// The message of a panic.
fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}
