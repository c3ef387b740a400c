//! The meeting point of the shards of a process.

use std::any::Any;
use std::panic::resume_unwind;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// Where the shards of one process meet. The last one to arrive combines what all have brought.
#[derive(Default)]
pub(crate) struct Exchange {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    brought: Vec<(usize, Box<dyn Any + Send>)>,
    /// Meetings that have ended.
    meetings: u64,
    /// Of the latest meeting.
    result: Option<Arc<dyn Any + Send + Sync>>,
    failed: bool,
}

/// The payload of the panic that ends a shard because another one has failed.
pub(crate) struct Cancelled;

impl Exchange {
    /// Waits for all `n` shards of the process, and returns what `combine` made of their parts, in the order of the shards.
    ///
    /// Unwinds with [`Cancelled`] if a shard has failed.
    ///
    /// # Panics
    /// If shards exchange values of different types: they must run the same program.
    pub fn meet<P, R>(&self, local: usize, n: usize, mine: P, combine: impl FnOnce(Vec<P>) -> R) -> Arc<R>
    where
        P: Send + 'static,
        R: Send + Sync + 'static,
    {
        let mut state = self.lock();
        if state.failed {
            drop(state);
            cancel();
        }
        state.brought.push((local, Box::new(mine)));
        let result = if state.brought.len() == n {
            let mut brought = std::mem::take(&mut state.brought);
            brought.sort_by_key(|(local, _)| *local);
            let parts = brought.into_iter().map(|(_, part)| *part.downcast::<P>().expect(SAME));
            // The lock is held: all others wait for the result anyway.
            let result: Arc<R> = Arc::new(combine(parts.collect()));
            state.result = Some(result.clone());
            state.meetings += 1;
            self.wake.notify_all();
            return result;
        } else {
            let meeting = state.meetings;
            while state.meetings == meeting {
                if state.failed {
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

    /// Ends all shards at their next meeting.
    pub fn fail(&self) {
        // A lock that is poisoned ends them as well.
        if let Ok(mut state) = self.state.lock() {
            state.failed = true;
        }
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
