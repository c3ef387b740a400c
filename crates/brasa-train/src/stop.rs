//! Asking a run to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A request that whoever holds a copy may make; a run then saves a checkpoint and ends after the round at hand.
#[derive(Debug, Clone, Default)]
pub struct StopToken(Arc<AtomicBool>);

impl StopToken {
    /// A token that Ctrl-C and the usual signals of termination set.
    ///
    /// A program can listen once; where somebody listens already, the token is only set by hand.
    pub fn on_ctrl_c() -> Self {
        let token = Self::default();
        let signal = token.clone();
        if let Err(error) = ctrlc::set_handler(move || signal.stop()) {
            tracing::warn!("Ctrl-C will end the run without a checkpoint: {error}");
        }
        token
    }

    /// Asks the run to stop.
    pub fn stop(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether somebody asked.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
