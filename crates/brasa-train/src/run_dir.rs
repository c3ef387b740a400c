//! Run directories.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::files::{first_foreign, make_dir};
use crate::{Checkpoints, write_atomically};

/// Default number of kept checkpoints. The second newest is a reserve for disks that report a sync before it is done.
const KEEP: usize = 2;
const CONFIG: &str = "config.toml";
const CHECKPOINTS: &str = "checkpoints";
const LOCK: &str = "lock";

/// The directory of a run: `config.toml`, `metrics.jsonl`, `events.out.tfevents.*`, `checkpoints/` and other files.
///
/// A process must hold the lock to write. Reading needs no lock.
///
/// ```
/// use brasa_train::RunDir;
///
/// let dir = tempfile::tempdir()?;
/// let run_dir = RunDir::create(dir.path().join("room"))?;
/// run_dir.write_config("[train]\nseed = 5\n")?;
/// let read = RunDir::open(run_dir.path())?;
/// assert_eq!(read.read_config()?, "[train]\nseed = 5\n");
/// // The first process holds the lock.
/// assert!(RunDir::open_to_resume(run_dir.path()).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct RunDir {
    path: PathBuf,
    keep: usize,
    keep_every: Option<u64>,
    /// Held while any clone exists. The operating system releases it when the process ends for any reason.
    _lock: Option<Arc<File>>,
}

/// A run directory that cannot be used.
///
/// ```
/// use brasa_train::{RunDir, RunDirError};
///
/// let dir = tempfile::tempdir()?;
/// let error = RunDir::open(dir.path()).unwrap_err();
/// assert!(matches!(error, RunDirError::NoRun { .. }));
/// assert!(error.to_string().ends_with("is not a run directory: it has neither `config.toml` nor `checkpoints`"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunDirError {
    /// The directory is not empty.
    #[error("{} is not empty; choose another directory, or resume the run in it", path.display())]
    NotEmpty {
        /// Path of the directory.
        path: PathBuf,
    },
    /// The directory is not a run directory.
    #[error("{} is not a run directory: it has neither `config.toml` nor `checkpoints`", path.display())]
    NoRun {
        /// Path of the directory.
        path: PathBuf,
    },
    /// Another process trains in the directory.
    #[error("{} is in use {by}: wait until it ends, or choose another directory", path.display())]
    Locked {
        /// Path of the directory.
        path: PathBuf,
        /// The process that holds the lock, and for how long.
        by: String,
    },
    /// The directory has a symbolic link, which a write could follow to another place, or a pipe, for which a reader would wait.
    #[error("{} is neither a file nor a directory: a run directory must hold files of its own", path.display())]
    Foreign {
        /// The link, pipe or device.
        path: PathBuf,
    },
    /// `config.toml` was edited after the run wrote it.
    #[error(
        "{} was edited after the run wrote it: restore it, and give changed values as --set KEY=VALUE", path.display()
    )]
    Edited {
        /// The file.
        path: PathBuf,
    },
    /// A file system operation failed.
    #[error("cannot use {}: {cause}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        cause: io::Error,
    },
}

/// The process that holds a lock, for the error message of other processes.
#[derive(Serialize, Deserialize)]
struct Owner {
    pid: u32,
    /// Seconds since 1970.
    since: u64,
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> RunDirError {
    let path = path.to_owned();
    move |cause| RunDirError::Io { path, cause }
}

impl RunDir {
    /// Creates and locks a directory for a new run. An existing directory must be empty, or contain a run that was killed before
    /// its first checkpoint; the files of that run are removed.
    ///
    /// # Errors
    /// [`RunDirError`] if the directory has other content, is in use or cannot be created.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self, RunDirError> {
        let path = path.into();
        make_dir(&path).map_err(io_error(&path))?;
        let names = names(&path)?;
        let is_run = names.iter().any(|name| name == LOCK) && names.iter().all(|name| left_at_the_start(name));
        if !names.is_empty() && !is_run {
            return Err(RunDirError::NotEmpty { path });
        }
        let run_dir = Self::locked(path)?;
        if !run_dir.has_only_a_start()? {
            return Err(RunDirError::NotEmpty { path: run_dir.path });
        }
        // The lock file is kept: another process may wait for it.
        for name in names.iter().filter(|name| *name != LOCK) {
            let path = run_dir.file(name);
            let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.map_err(io_error(&path))?;
        }
        // With `checkpoints/`, it is a run directory even if the run is killed before its first checkpoint.
        let checkpoints = run_dir.file(CHECKPOINTS);
        make_dir(&checkpoints).map_err(io_error(&checkpoints))?;
        Ok(run_dir)
    }

    /// Opens the directory of an earlier run for reading.
    ///
    /// # Errors
    /// [`RunDirError::NoRun`] if there is no run, [`RunDirError::Foreign`] if the directory has a symbolic link or a pipe.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, RunDirError> {
        let path = path.into();
        let run_dir = Self { path, keep: KEEP, keep_every: None, _lock: None };
        let (config, checkpoints) = (run_dir.file(CONFIG), run_dir.file(CHECKPOINTS));
        if !config.is_file() && !checkpoints.is_dir() {
            return Err(RunDirError::NoRun { path: run_dir.path });
        }
        run_dir.refuse_foreign()?;
        Ok(run_dir)
    }

    /// Opens and locks the directory of an earlier run to continue the run.
    ///
    /// # Errors
    /// As [`RunDir::open`]; [`RunDirError::Locked`] if another process trains in it.
    pub fn open_to_resume(path: impl Into<PathBuf>) -> Result<Self, RunDirError> {
        Self::locked(Self::open(path)?.path)
    }

    /// Keeps the newest `keep` checkpoints, and the first one of every `every` environment steps.
    pub fn keeping(self, keep: usize, every: Option<u64>) -> Self {
        Self { keep, keep_every: every, ..self }
    }

    fn locked(path: PathBuf) -> Result<Self, RunDirError> {
        let mut run_dir = Self { path, keep: KEEP, keep_every: None, _lock: None };
        run_dir.refuse_foreign()?;
        let lock_path = run_dir.file(LOCK);
        let mut options = OpenOptions::new();
        let lock = options.read(true).write(true).create(true).truncate(false).open(&lock_path);
        let mut lock = lock.map_err(io_error(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let _ = lock.read_to_string(&mut text);
                return Err(RunDirError::Locked { path: run_dir.path, by: by(&text) });
            }
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                tracing::warn!("{} cannot be locked on this file system: {error}", run_dir.path.display());
            }
            Err(TryLockError::Error(error)) => return Err(io_error(&lock_path)(error)),
        }
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let owner = serde_json::to_string(&Owner { pid: std::process::id(), since }).expect("two numbers serialize");
        // The owner is used for messages only, so an error here is ignored.
        let _ = lock.set_len(0).and_then(|()| lock.write_all(owner.as_bytes()));
        run_dir._lock = Some(Arc::new(lock));
        Ok(run_dir)
    }

    fn refuse_foreign(&self) -> Result<(), RunDirError> {
        let mut paths: Vec<PathBuf> = names(&self.path)?.iter().map(|name| self.file(name)).collect();
        let checkpoints = self.file(CHECKPOINTS);
        if checkpoints.is_dir() && first_foreign([&*checkpoints]).is_none() {
            paths.extend(names(&checkpoints)?.iter().map(|name| checkpoints.join(name)));
        }
        match first_foreign(paths.iter().map(|path| &**path)) {
            Some(path) => Err(RunDirError::Foreign { path: path.to_owned() }),
            None => Ok(()),
        }
    }

    /// Whether the directory has no checkpoint and no files of another program.
    fn has_only_a_start(&self) -> Result<bool, RunDirError> {
        let (config, checkpoints) = (self.file(CONFIG), self.file(CHECKPOINTS));
        let is_ours = !config.exists() || self.read_config().is_ok();
        let saved = if checkpoints.is_dir() { names(&checkpoints)? } else { Vec::new() };
        Ok(is_ours && saved.iter().all(|name| name.starts_with(crate::checkpoint::UNFINISHED)))
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Path of a file in the directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The checkpoints of the run.
    pub fn checkpoints(&self) -> Checkpoints {
        Checkpoints::new(self.file(CHECKPOINTS), self.keep).keep_every(self.keep_every)
    }

    /// The checkpoint of the policy with the best evaluation.
    pub fn best(&self) -> Checkpoints {
        Checkpoints::new(self.file(CHECKPOINTS).join("best"), 1)
    }

    /// The metrics of the run: one map per reading, oldest first.
    ///
    /// # Errors
    /// If a file system operation fails.
    pub fn metrics(&self) -> Result<Vec<serde_json::Map<String, serde_json::Value>>, RunDirError> {
        let path = self.file("metrics.jsonl");
        crate::sinks::Jsonl::read(&path).map_err(io_error(&path))
    }

    /// Writes a file atomically: after an error, the old file is unchanged.
    ///
    /// # Errors
    /// If a file system operation fails.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), RunDirError> {
        let path = self.file(name);
        write_atomically(&path, bytes).map_err(io_error(&path))
    }

    /// Writes `config.toml`. Its last line is a checksum, by which edits are detected.
    ///
    /// If the run has taken steps with another experiment, that one is kept as `config-until-STEP.toml`, where `STEP` is the step at which the new
    /// one begins.
    ///
    /// # Errors
    /// If a file system operation fails.
    pub fn write_config(&self, text: &str) -> Result<(), RunDirError> {
        let begun = self.checkpoints().latest_env_steps().ok().flatten().filter(|steps| *steps > 0);
        if let (Some(steps), Ok(before)) = (begun, self.read_config())
            && before != text
        {
            let name = format!("{EARLIER}{steps:012}{TOML}");
            // The one that was in use until this step, not one that no step was taken with.
            if !self.file(&name).exists() {
                self.write(&name, before.as_bytes())?;
            }
        }
        let crc32 = crc32fast::hash(text.as_bytes());
        self.write(CONFIG, format!("{text}{SEAL}{crc32:08x}\n").as_bytes())
    }

    /// The experiments that the run had before the one in `config.toml`, each with the step until which it was in use, in their order.
    ///
    /// # Errors
    /// [`RunDirError::Io`] if a file cannot be read.
    pub fn earlier_configs(&self) -> Result<Vec<(u64, String)>, RunDirError> {
        let until = |name: &str| name.strip_prefix(EARLIER)?.strip_suffix(TOML)?.parse().ok();
        let named = names(&self.path)?.into_iter().filter_map(|name| Some((until(&name)?, self.file(&name))));
        named.map(|(steps, path)| Ok((steps, fs::read_to_string(&path).map_err(io_error(&path))?))).collect()
    }

    /// The checksum (CRC-32) of `config.toml`, which its last line states.
    ///
    /// # Errors
    /// As [`RunDir::read_config`].
    pub fn config_checksum(&self) -> Result<u32, RunDirError> {
        self.read_config().map(|text| crc32fast::hash(text.as_bytes()))
    }

    /// Reads `config.toml` without its checksum line.
    ///
    /// # Errors
    /// [`RunDirError::Edited`] if the checksum differs; [`RunDirError::Io`] if the file cannot be read.
    pub fn read_config(&self) -> Result<String, RunDirError> {
        let path = self.file(CONFIG);
        let mut text = fs::read_to_string(&path).map_err(io_error(&path))?;
        let sealed = text.rfind(SEAL).filter(|at| {
            let (text, seal) = (&text[..*at], text[*at + SEAL.len()..].trim_end());
            u32::from_str_radix(seal, 16).is_ok_and(|crc32| crc32 == crc32fast::hash(text.as_bytes()))
        });
        match sealed {
            Some(at) => {
                text.truncate(at);
                Ok(text)
            }
            None => Err(RunDirError::Edited { path }),
        }
    }
}

/// Names of the experiments that a run had before.
const EARLIER: &str = "config-until-";
const TOML: &str = ".toml";

/// Prefix of the last line of `config.toml`.
const SEAL: &str =
    "# Written by the run, which refuses edits (give --set KEY=VALUE instead). CRC-32 of the lines above: ";

/// Names of the entries of a directory, sorted.
fn names(dir: &Path) -> Result<Vec<String>, RunDirError> {
    let entries = fs::read_dir(dir).map_err(io_error(dir))?;
    let names = entries.map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()));
    let mut names = names.collect::<io::Result<Vec<String>>>().map_err(io_error(dir))?;
    names.sort();
    Ok(names)
}

/// Whether a run creates an entry of this name before its first checkpoint.
fn left_at_the_start(name: &str) -> bool {
    let whole = name.strip_suffix(".tmp").unwrap_or(name);
    let others = ["metrics.jsonl", "metrics.csv", "run.log", "timeline.jsonl", "training_data.json", "files.json"];
    [CONFIG, CHECKPOINTS, LOCK].contains(&whole) || others.contains(&whole) || name.starts_with("events.out.tfevents.")
}

/// Describes the process that holds a lock.
fn by(text: &str) -> String {
    let Ok(Owner { pid, since }) = serde_json::from_str(text) else { return "by another process".into() };
    let age = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH + Duration::from_secs(since)).unwrap_or_default();
    let age = match age.as_secs() {
        secs @ 0..120 => format!("{secs} seconds"),
        secs @ 120..7200 => format!("{} minutes", secs / 60),
        secs => format!("{} hours", secs / 3600),
    };
    format!("by process {pid} for {age}")
}
