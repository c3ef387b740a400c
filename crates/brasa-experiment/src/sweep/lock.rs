//! One sweep or search in a directory at a time.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use brasa_train::say_progress;

use crate::ExperimentError;

/// Longest wait for the runs of a sweep that is gone: they save a checkpoint and end.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time between two looks at the lock.
const LOOK: Duration = Duration::from_millis(100);

/// The lock of the directory of a sweep: two sweeps in it would write the same logs. The runs hold it too, so that it is free once the sweep and
/// all its runs have ended for any reason.
pub(crate) struct Lock {
    _file: File,
    /// Runs of an earlier sweep had to end first.
    pub waited: bool,
}

impl Lock {
    /// Locks `out`, and creates it if it is missing. Waits for the runs of a sweep that was killed.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] if another sweep or search is in the directory; if nothing can be written there.
    pub(crate) fn of(out: &Path) -> Result<Self, ExperimentError> {
        let path = out.join("sweep.lock");
        let open = || File::options().create(true).read(true).write(true).truncate(false).open(&path);
        let cannot_write = |error: io::Error| ExperimentError::cannot_write(&path, &error);
        let mut file = fs::create_dir_all(out).and_then(|()| open()).map_err(cannot_write)?;
        let begun = Instant::now();
        let mut waited = false;
        while let Err(TryLockError::WouldBlock) = file.try_lock() {
            if begun.elapsed() >= PATIENCE || !owner_is_gone(&mut file) {
                let out = out.display();
                return Err(ExperimentError::Input(format!(
                    "{out} is in use by another sweep or search: wait until it ends, or choose another --out"
                )));
            }
            if !waited {
                say_progress(&format!("Waiting until the runs of the last start in {} have ended", out.display()));
            }
            waited = true;
            thread::sleep(LOOK);
        }
        // Some file systems have no locks, and the owner serves messages only.
        let owner = std::process::id().to_string();
        let _ = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(owner.as_bytes()));
        hold_in_runs(&file);
        Ok(Self { _file: file, waited })
    }
}

/// Whether the process that wrote the file has ended; `false` where that is unknown.
fn owner_is_gone(file: &mut File) -> bool {
    let mut text = String::new();
    let read = file.rewind().and_then(|()| file.read_to_string(&mut text));
    let Some(owner) = read.ok().and_then(|_| text.trim().parse::<i32>().ok()) else { return false };
    #[cfg(unix)]
    {
        use nix::errno::Errno;
        use nix::sys::signal::kill;
        use nix::unistd::Pid;
        owner > 0 && kill(Pid::from_raw(owner), None) == Err(Errno::ESRCH)
    }
    #[cfg(not(unix))]
    {
        let _ = owner;
        false
    }
}

/// Lets the processes that this one starts inherit the file, and its lock with it.
fn hold_in_runs(file: &File) {
    #[cfg(unix)]
    {
        use nix::fcntl::{FcntlArg, FdFlag, fcntl};
        if let Err(error) = fcntl(file, FcntlArg::F_SETFD(FdFlag::empty())) {
            tracing::warn!("a start right after a kill may find runs of this sweep: {error}");
        }
    }
    #[cfg(not(unix))]
    let _ = file;
}
