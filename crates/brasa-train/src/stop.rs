//! Asking a run to stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::{Checkpoint, Checkpoints, say};

/// How long a round may go on after the first signal before the process ends without it.
const GRACE: Duration = Duration::from_secs(3);
/// How long a program may take from the end of its run to its own end.
const FAREWELL: Duration = Duration::from_secs(1);
/// Exit status of a process that a signal ended, by convention that of Ctrl-C.
const INTERRUPTED: i32 = 130;

/// A request to stop, made by [`StopToken::stop`] of any copy, or by a signal.
///
/// A [`crate::Trainer`] then saves a checkpoint and returns: after the round at hand, or, where it replays, after the update at hand.
#[derive(Debug, Clone, Default)]
pub struct StopToken(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    stopped: AtomicBool,
    run: Mutex<RunState>,
}

/// What would be lost if the process ended now. Locked while a checkpoint is written.
#[derive(Debug, Default)]
struct RunState {
    is_running: bool,
    /// The state before the round at hand, where it is newer than what is on disk.
    before_round: Option<(Checkpoints, Checkpoint)>,
    /// What the user is told when the process ends before the program says anything.
    message: String,
}

impl StopToken {
    /// A token that Ctrl-C and the usual signals of termination set.
    ///
    /// The first signal ends the process within 5 seconds, whatever it is doing. Outside of a run that is at once. A run has 3 seconds
    /// to reach the end of its round and to save it; after that the round is given up, and the checkpoint holds the state before it. A
    /// checkpoint that is being written is finished first. The second signal ends the process at once. Exit status: 130.
    ///
    /// A program can listen once; where it listens already, the token is only set by hand.
    pub fn on_ctrl_c() -> Self {
        let token = Self::default();
        let signalled = token.clone();
        let handler = move || {
            if signalled.0.stopped.swap(true, Ordering::SeqCst) {
                std::process::exit(INTERRUPTED);
            }
            // The handler must return, or a second signal would not be seen.
            let signalled = signalled.clone();
            thread::spawn(move || signalled.end_process());
        };
        if let Err(error) = ctrlc::set_handler(handler) {
            tracing::warn!("Ctrl-C will end the run without a checkpoint: {error}");
        }
        token
    }

    /// Asks the run to stop.
    pub fn stop(&self) {
        self.0.stopped.store(true, Ordering::SeqCst);
    }

    /// Whether somebody asked.
    pub fn is_stopped(&self) -> bool {
        self.0.stopped.load(Ordering::SeqCst)
    }

    /// Sets what standard error says when a signal ends the process: how to go on, say.
    pub fn set_message(&self, message: impl Into<String>) {
        self.lock().message = message.into();
    }

    /// Tells that a run begins or ends.
    pub(crate) fn set_running(&self, is_running: bool) {
        let mut run = self.lock();
        run.is_running = is_running;
        run.before_round = None;
    }

    /// Keeps what is to be saved if the process must end before the next call.
    pub(crate) fn keep(&self, before_round: Option<(Checkpoints, Checkpoint)>) {
        self.lock().before_round = before_round;
    }

    /// Writes a checkpoint, which the end of the process waits for.
    pub(crate) fn saving<T>(&self, save: impl FnOnce() -> T) -> T {
        let mut run = self.lock();
        let saved = save();
        run.before_round = None;
        saved
    }

    fn lock(&self) -> MutexGuard<'_, RunState> {
        // The state is replaced as a whole: one that panicked left nothing half done.
        self.0.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the process as [`StopToken::on_ctrl_c`] says.
    fn end_process(&self) {
        let (start, was_running) = (Instant::now(), self.lock().is_running);
        while self.lock().is_running && start.elapsed() < GRACE {
            thread::sleep(Duration::from_millis(20));
        }
        if was_running && !self.lock().is_running {
            // The run has just ended in good order: what the program says of it is better than anything here.
            thread::sleep(FAREWELL);
        }
        let mut run = self.lock();
        if let Some((checkpoints, checkpoint)) = run.before_round.take()
            && let Err(error) = checkpoints.save(&checkpoint)
        {
            say(&format!("the state before the last round could not be saved: {error}"));
        }
        let message = if run.message.is_empty() { "interrupted" } else { &run.message };
        say(message);
        std::process::exit(INTERRUPTED);
    }
}
