//! Requests to stop a run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::{Checkpoint, Checkpoints, say};

/// Time that an iteration has to finish after the first signal.
const GRACE: Duration = Duration::from_secs(3);
/// Time that a program has to exit after its run has ended.
const FAREWELL: Duration = Duration::from_secs(1);
/// Exit status after a signal: by convention that of Ctrl-C.
const INTERRUPTED: i32 = 130;

/// Calls `set`, which sets handlers of signals. A signal of a closed terminal (SIGHUP) that the process ignores stays ignored: `nohup`
/// asks for that, and `ctrlc` would replace it.
#[cfg(unix)]
#[allow(unsafe_code, reason = "to ignore a signal runs no code when it arrives; a former action is put back as it was")]
fn hangups_stay_ignored<E>(set: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
    use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

    let ignore = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
    // The only way to read an action is to replace it.
    // SAFETY: to ignore a signal runs no code when it arrives.
    let Ok(before) = (unsafe { sigaction(Signal::SIGHUP, &ignore) }) else { return set() };
    let result = set();
    if result.is_err() || matches!(before.handler(), SigHandler::SigIgn) {
        // It fails for signals that do not exist alone.
        // SAFETY: the action was there before.
        let _ = unsafe { sigaction(Signal::SIGHUP, &before) };
    }
    result
}

#[cfg(not(unix))]
fn hangups_stay_ignored<E>(set: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
    set()
}

/// A request to stop a run. [`StopToken::stop`] of any clone or a signal sets it.
///
/// A [`crate::Trainer`] then saves a checkpoint and returns. An on-policy loop first finishes its iteration, an off-policy
/// loop its current update.
///
/// ```
/// # mod parts { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/parts.inc")); }
/// # use parts::*;
/// use brasa_train::{Ending, StopToken, Trainer, Training};
///
/// let token = StopToken::default();
/// let mut trainer = Trainer::on_policy(cart_poles(4), ppo()).stop_on(token.clone()).build()?;
/// // Another thread or a callback may do this.
/// token.stop();
/// assert_eq!(trainer.run()?, Ending::Stopped);
/// assert_eq!(trainer.training().counters().env_steps, 0);
/// # Ok::<(), brasa_train::TrainError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct StopToken(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    stopped: AtomicBool,
    run: Mutex<RunState>,
}

/// State to save if the process ends now. Locked while a checkpoint is written.
#[derive(Debug, Default)]
struct RunState {
    is_running: bool,
    /// The state before the current iteration, if it is newer than the checkpoint on disk.
    before_round: Option<(Checkpoints, Checkpoint)>,
    /// Printed if a signal ends the process before the program exits by itself.
    message: String,
}

impl StopToken {
    /// A token that is set by Ctrl-C and the usual termination signals.
    ///
    /// The first signal ends the process within 5 seconds, and immediately if no run is active. A run has 3 seconds to finish its
    /// iteration and save a checkpoint. Otherwise the iteration is discarded, and the checkpoint has the state before it. A
    /// checkpoint that is being written is finished first. The second signal ends the process immediately. Exit status: 130.
    ///
    /// A closed terminal is such a signal, unless the process ignores it from its start, as `nohup` makes it do.
    ///
    /// A process can have one signal handler. If it already has one, only [`StopToken::stop`] sets the token.
    pub fn on_ctrl_c() -> Self {
        let token = Self::default();
        let signalled = token.clone();
        let handler = move || {
            if signalled.0.stopped.swap(true, Ordering::SeqCst) {
                std::process::exit(INTERRUPTED);
            }
            // The handler must return, otherwise a second signal is not handled.
            let signalled = signalled.clone();
            thread::spawn(move || signalled.end_process());
        };
        if let Err(error) = hangups_stay_ignored(|| ctrlc::set_handler(handler)) {
            tracing::warn!("Ctrl-C will end the run without a checkpoint: {error}");
        }
        token
    }

    /// Asks the run to stop.
    pub fn stop(&self) {
        self.0.stopped.store(true, Ordering::SeqCst);
    }

    /// Whether a stop was requested.
    pub fn is_stopped(&self) -> bool {
        self.0.stopped.load(Ordering::SeqCst)
    }

    /// Sets the message on standard error when a signal ends the process, for example how to resume.
    pub fn set_message(&self, message: impl Into<String>) {
        self.lock().message = message.into();
    }

    /// Marks the start or the end of a run.
    pub(crate) fn set_running(&self, is_running: bool) {
        let mut run = self.lock();
        run.is_running = is_running;
        run.before_round = None;
    }

    /// Sets the state to save if the process ends before the next call.
    pub(crate) fn keep(&self, before_round: Option<(Checkpoints, Checkpoint)>) {
        self.lock().before_round = before_round;
    }

    /// Writes a checkpoint. The process does not exit while it is being written.
    pub(crate) fn saving<T>(&self, save: impl FnOnce() -> T) -> T {
        let mut run = self.lock();
        let saved = save();
        run.before_round = None;
        saved
    }

    fn lock(&self) -> MutexGuard<'_, RunState> {
        // The state is always replaced as a whole, so it is valid after a panic.
        self.0.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the process as described at [`StopToken::on_ctrl_c`].
    fn end_process(&self) {
        let (start, was_running) = (Instant::now(), self.lock().is_running);
        while self.lock().is_running && start.elapsed() < GRACE {
            thread::sleep(Duration::from_millis(20));
        }
        if was_running && !self.lock().is_running {
            // The run has ended by itself: the program prints its own message.
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
