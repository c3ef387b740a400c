//! The meeting point of the shards of a process.

use std::any::Any;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

/// Where the shards of one process meet. The last one to arrive combines what all have brought.
#[derive(Default)]
pub(crate) struct Exchange {
    state: Mutex<State>,
    wake: Condvar,
    /// Meetings that have ended or failed, for shards that look before they wait.
    ended: AtomicU64,
    n_cores: OnceLock<usize>,
}

/// How long a shard with a core looks before it waits: to wake it would take as long as a gradient of a small network.
const PATIENCE: Duration = Duration::from_micros(200);

#[derive(Default)]
struct State {
    /// The parts of a meeting that not all have reached.
    brought: Vec<(usize, Box<dyn Any + Send>)>,
    /// Meetings that have ended.
    meetings: u64,
    /// Of the latest meeting.
    result: Option<Arc<dyn Any + Send + Sync>>,
    /// A shard whose work has ended well: nobody can meet it any more.
    left: Option<usize>,
    /// The shard that failed first, with the reason.
    failure: Option<(usize, String)>,
}

impl State {
    /// Fails if one shard has ended and another one waits for it.
    fn check_left(&mut self) {
        if let Some(shard) = self.left.filter(|_| !self.brought.is_empty()) {
            let reason = "it ended while other shards wait for it: all shards exchange equally often";
            self.failure.get_or_insert((shard, reason.to_owned()));
        }
    }
}

/// The payload of the panic that ends a shard because another one has failed.
pub(crate) struct Cancelled;

impl Exchange {
    /// Waits for all `n` shards of the process, and returns what `combine` made of their parts, in the order of the shards.
    ///
    /// Unwinds with [`Cancelled`] if a shard has failed, or has ended before this meeting.
    ///
    /// # Panics
    /// If shards exchange values of different types: they must run the same program.
    pub fn meet<P, R>(&self, local: usize, n: usize, mine: P, combine: impl FnOnce(Vec<P>) -> R) -> Arc<R>
    where
        P: Send + 'static,
        R: Send + Sync + 'static,
    {
        let mut state = self.lock();
        state.brought.push((local, Box::new(mine)));
        state.check_left();
        if state.failure.is_some() {
            drop(state);
            self.end_waiting();
            cancel();
        }
        let result = if state.brought.len() == n {
            let mut brought = std::mem::take(&mut state.brought);
            brought.sort_by_key(|(local, _)| *local);
            let parts = brought.into_iter().map(|(_, part)| *part.downcast::<P>().expect(SAME));
            // The lock is held: all others wait for the result anyway.
            let result: Arc<R> = Arc::new(combine(parts.collect()));
            state.result = Some(result.clone());
            state.meetings += 1;
            drop(state);
            self.end_waiting();
            return result;
        } else {
            let meeting = state.meetings;
            state = self.look(state, n);
            while state.meetings == meeting {
                if state.failure.is_some() {
                    drop(state);
                    cancel();
                }
                state = match self.wake.wait(state) {
                    Ok(state) => state,
                    Err(_) => cancel(),
                };
            }
            // The next meeting cannot end before this shard takes part in it.
            state.result.clone().expect("the meeting has ended")
        };
        drop(state);
        result.downcast::<R>().unwrap_or_else(|_| panic!("{SAME}"))
    }

    /// Ends all shards at their next meeting, because of `shard`.
    pub fn fail(&self, shard: usize, reason: String) {
        // A lock that is poisoned ends them as well.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.failure.get_or_insert((shard, reason));
        drop(state);
        self.end_waiting();
    }

    /// The work of `shard` has ended well. Shards that wait for it, now or later, fail: it will not come.
    pub fn leave(&self, shard: usize) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.left.get_or_insert(shard);
        state.check_left();
        drop(state);
        self.end_waiting();
    }

    /// The shard that failed first, with the reason.
    pub fn failure(&self) -> Option<(usize, String)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).failure.clone()
    }

    /// Looks for a while, without the lock, until a meeting has ended.
    fn look<'a>(&'a self, state: MutexGuard<'a, State>, n_shards: usize) -> MutexGuard<'a, State> {
        if n_shards > *self.n_cores.get_or_init(|| available_parallelism().map_or(1, usize::from)) {
            return state;
        }
        // Read with the lock: a later meeting changes it.
        let (ended, begin) = (self.ended.load(Ordering::Acquire), Instant::now());
        drop(state);
        while self.ended.load(Ordering::Acquire) == ended && begin.elapsed() < PATIENCE {
            std::hint::spin_loop();
        }
        self.lock()
    }

    /// Ends the waiting of all shards, which look at the state then.
    fn end_waiting(&self) {
        self.ended.fetch_add(1, Ordering::Release);
        self.wake.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|_| cancel())
    }
}

const SAME: &str = "all shards exchange the same values in the same order";

/// Ends this shard without a message: the shard that failed has its own.
fn cancel() -> ! {
    resume_unwind(Box::new(Cancelled))
}
