//! The directory of a run.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::files::{first_link, make_dir};
use crate::{Checkpoints, write_atomically};

/// Checkpoints that stay unless told otherwise; the one before the newest is the safety net of a disk that lies about syncing.
const KEEP: usize = 2;
const CONFIG: &str = "config.toml";
const CHECKPOINTS: &str = "checkpoints";
const LOCK: &str = "lock";

/// `config.toml`, `metrics.jsonl`, `events.out.tfevents.*`, `checkpoints/` and whatever else a run leaves.
///
/// Who writes holds its lock; reading needs none.
#[derive(Debug, Clone)]
pub struct RunDir {
    path: PathBuf,
    keep: usize,
    keep_every: Option<u64>,
    /// Held as long as any copy lives; the operating system frees it when the process ends, however it ends.
    _lock: Option<Arc<File>>,
}

/// A run directory that cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunDirError {
    /// It holds something already.
    #[error("{} is not empty; choose another directory, or resume the run in it", path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// It is no run directory.
    #[error("{} is no run directory: it has neither `config.toml` nor `checkpoints`", path.display())]
    NoRun {
        /// The directory.
        path: PathBuf,
    },
    /// Another process trains in it.
    #[error("{} is in use {by}: wait until it ends, or choose another directory", path.display())]
    Locked {
        /// The directory.
        path: PathBuf,
        /// Which process, and for how long.
        by: String,
    },
    /// It holds a symbolic link, which a write could follow to anywhere.
    #[error("{} is a symbolic link: a run directory must hold files of its own", path.display())]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// Its experiment is not the one that the run wrote.
    #[error(
        "{} was edited after the run wrote it: restore it, and give changed values as --set KEY=VALUE", path.display()
    )]
    Edited {
        /// The file.
        path: PathBuf,
    },
    /// The file system refused.
    #[error("cannot use {}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Who holds a lock, for the message of who does not get it.
#[derive(Serialize, Deserialize)]
struct Owner {
    pid: u32,
    /// Seconds since 1970.
    since: u64,
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> RunDirError {
    let path = path.to_owned();
    move |source| RunDirError::Io { path, source }
}

impl RunDir {
    /// Makes a directory for a new run and locks it. One that exists must be empty, or hold a run that was killed before its first
    /// checkpoint, which is started over.
    ///
    /// # Errors
    /// [`RunDirError`] where it holds something else, is in use or cannot be made.
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
        // The lock stays: another process may wait for it.
        for name in names.iter().filter(|name| *name != LOCK) {
            let path = run_dir.file(name);
            let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.map_err(io_error(&path))?;
        }
        // It is known as a run directory even if the run is killed before its first checkpoint.
        let checkpoints = run_dir.file(CHECKPOINTS);
        make_dir(&checkpoints).map_err(io_error(&checkpoints))?;
        Ok(run_dir)
    }

    /// The directory of an earlier run, for reading.
    ///
    /// # Errors
    /// [`RunDirError::NoRun`] where there is none, [`RunDirError::Link`] where it holds a symbolic link.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, RunDirError> {
        let path = path.into();
        let run_dir = Self { path, keep: KEEP, keep_every: None, _lock: None };
        let (config, checkpoints) = (run_dir.file(CONFIG), run_dir.file(CHECKPOINTS));
        if !config.is_file() && !checkpoints.is_dir() {
            return Err(RunDirError::NoRun { path: run_dir.path });
        }
        run_dir.refuse_links()?;
        Ok(run_dir)
    }

    /// The same, locked, to go on with the run.
    ///
    /// # Errors
    /// As [`RunDir::open`]; [`RunDirError::Locked`] where another process trains in it.
    pub fn open_to_resume(path: impl Into<PathBuf>) -> Result<Self, RunDirError> {
        Self::locked(Self::open(path)?.path)
    }

    /// The same, where `keep` checkpoints stay, and besides them the first one of every `every` environment steps.
    pub fn keeping(self, keep: usize, every: Option<u64>) -> Self {
        Self { keep, keep_every: every, ..self }
    }

    fn locked(path: PathBuf) -> Result<Self, RunDirError> {
        let mut run_dir = Self { path, keep: KEEP, keep_every: None, _lock: None };
        run_dir.refuse_links()?;
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
        // Only for messages: a full disk is noticed where something is at stake.
        let _ = lock.set_len(0).and_then(|()| lock.write_all(owner.as_bytes()));
        run_dir._lock = Some(Arc::new(lock));
        Ok(run_dir)
    }

    fn refuse_links(&self) -> Result<(), RunDirError> {
        let mut paths: Vec<PathBuf> = names(&self.path)?.iter().map(|name| self.file(name)).collect();
        let checkpoints = self.file(CHECKPOINTS);
        if checkpoints.is_dir() && first_link([&*checkpoints]).is_none() {
            paths.extend(names(&checkpoints)?.iter().map(|name| checkpoints.join(name)));
        }
        match first_link(paths.iter().map(|path| &**path)) {
            Some(link) => Err(RunDirError::Link { path: link.to_owned() }),
            None => Ok(()),
        }
    }

    /// Whether nothing in it is worth keeping: no checkpoint, and no file that somebody else wrote.
    fn has_only_a_start(&self) -> Result<bool, RunDirError> {
        let (config, checkpoints) = (self.file(CONFIG), self.file(CHECKPOINTS));
        let is_ours = !config.exists() || self.read_config().is_ok();
        let saved = if checkpoints.is_dir() { names(&checkpoints)? } else { Vec::new() };
        Ok(is_ours && saved.iter().all(|name| name.starts_with(crate::checkpoint::UNFINISHED)))
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Its checkpoints.
    pub fn checkpoints(&self) -> Checkpoints {
        Checkpoints::new(self.file(CHECKPOINTS), self.keep).keep_every(self.keep_every)
    }

    /// Where the policy with the best evaluation is.
    pub fn best(&self) -> Checkpoints {
        Checkpoints::new(self.file(CHECKPOINTS).join("best"), 1)
    }

    /// What sinks wrote so far, one map for each reading, oldest first.
    ///
    /// # Errors
    /// Where the file system refuses.
    pub fn metrics(&self) -> Result<Vec<serde_json::Map<String, serde_json::Value>>, RunDirError> {
        let path = self.file("metrics.jsonl");
        crate::sinks::Jsonl::read(&path).map_err(io_error(&path))
    }

    /// Writes a whole file, or leaves the old one.
    ///
    /// # Errors
    /// Where the file system refuses.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), RunDirError> {
        let path = self.file(name);
        write_atomically(&path, bytes).map_err(io_error(&path))
    }

    /// Writes `config.toml` with a last line that tells whether it was edited.
    ///
    /// # Errors
    /// Where the file system refuses.
    pub fn write_config(&self, text: &str) -> Result<(), RunDirError> {
        let crc32 = crc32fast::hash(text.as_bytes());
        self.write(CONFIG, format!("{text}{SEAL}{crc32:08x}\n").as_bytes())
    }

    /// Reads `config.toml` as it was written.
    ///
    /// # Errors
    /// [`RunDirError::Edited`] where it is another text; where the file system refuses.
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

/// Start of the last line of `config.toml`.
const SEAL: &str =
    "# Written by the run, which refuses edits (give --set KEY=VALUE instead). CRC-32 of the lines above: ";

/// Names of what is in a directory, sorted.
fn names(dir: &Path) -> Result<Vec<String>, RunDirError> {
    let entries = fs::read_dir(dir).map_err(io_error(dir))?;
    let names = entries.map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()));
    let mut names = names.collect::<io::Result<Vec<String>>>().map_err(io_error(dir))?;
    names.sort();
    Ok(names)
}

/// Whether a run leaves a file or directory of this name before its first checkpoint.
fn left_at_the_start(name: &str) -> bool {
    let whole = name.strip_suffix(".tmp").unwrap_or(name);
    [CONFIG, CHECKPOINTS, LOCK, "metrics.jsonl"].contains(&whole) || name.starts_with("events.out.tfevents.")
}

/// The holder of a lock in words.
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
