//! The directory of a run.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::{Checkpoints, write_atomically};

/// Checkpoints that stay; the one before the newest is the safety net of a disk that lies about syncing.
const KEEP: usize = 2;

/// `config.toml`, `metrics.jsonl`, `events.out.tfevents.*`, `checkpoints/` and whatever else a run leaves.
#[derive(Debug, Clone)]
pub struct RunDir {
    path: PathBuf,
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
    /// The file system refused.
    #[error("cannot use {}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl RunDir {
    /// Makes a directory for a new run; one that exists must be empty.
    ///
    /// # Errors
    /// [`RunDirError`] where it holds something or cannot be made.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self, RunDirError> {
        let path = path.into();
        let error = |source| RunDirError::Io { path: path.clone(), source };
        fs::create_dir_all(&path).map_err(error)?;
        if fs::read_dir(&path).map_err(error)?.next().is_some() {
            return Err(RunDirError::NotEmpty { path });
        }
        Ok(Self { path })
    }

    /// The directory of an earlier run.
    ///
    /// # Errors
    /// [`RunDirError::NoRun`] where there is none.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, RunDirError> {
        let path = path.into();
        if !path.join("config.toml").is_file() && !path.join("checkpoints").is_dir() {
            return Err(RunDirError::NoRun { path });
        }
        Ok(Self { path })
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
        Checkpoints::new(self.path.join("checkpoints"), KEEP)
    }

    /// Writes a whole file, or leaves the old one.
    ///
    /// # Errors
    /// Where the file system refuses.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), RunDirError> {
        let path = self.file(name);
        write_atomically(&path, bytes).map_err(|source| RunDirError::Io { path, source })
    }

    /// Reads a whole text file.
    ///
    /// # Errors
    /// Where the file system refuses.
    pub fn read(&self, name: &str) -> Result<String, RunDirError> {
        let path = self.file(name);
        fs::read_to_string(&path).map_err(|source| RunDirError::Io { path, source })
    }
}
