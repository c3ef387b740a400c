//! The runs of a sweep end when the sweep dies.

use std::process::Command;

/// The variable by which a run receives the process of its sweep.
const SWEEP: &str = "BRASA_SWEEP_PID";

/// Marks a command as a run of this process.
pub(super) fn of_this_sweep(command: &mut Command) {
    command.env(SWEEP, std::process::id().to_string());
}

/// In a run of a sweep: a thread that interrupts this process once the sweep is gone, as Ctrl-C does. The run saves a checkpoint and ends.
pub(crate) fn end_with_sweep() {
    #[cfg(unix)]
    {
        use std::os::unix::process::parent_id;
        use std::time::Duration;
        /// Between two looks at the parent.
        const LOOK: Duration = Duration::from_millis(250);

        let sweep = std::env::var(SWEEP).ok().and_then(|pid| pid.parse::<u32>().ok());
        let Some(sweep) = sweep else { return };
        let watch = move || {
            while parent_id() == sweep {
                std::thread::sleep(LOOK);
            }
            // It fails for no valid signal.
            let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGINT);
        };
        if let Err(error) = std::thread::Builder::new().name("sweep".into()).spawn(watch) {
            tracing::warn!("this run will not end with its sweep: {error}");
        }
    }
}
