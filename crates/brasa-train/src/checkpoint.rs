//! Checkpoints: everything that a run needs to go on, whole or absent.
//!
//! A checkpoint is a directory `step-<env steps>` with `policy.safetensors` (weights and normalization, all that
//! acting needs), `trainer.safetensors` (what learning needs besides), for off-policy runs `replay.bin` (stored experience)
//! and `manifest.json` (counters, and a checksum of each other file). It is written under a temporary name and renamed, so a killed process leaves the previous one.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use brasa_nn::Arrays;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::files::{sync_parent, write_synced};

/// Version of the layout; a reader refuses others.
const FORMAT: u32 = 1;
const POLICY: &str = "policy.safetensors";
const TRAINER: &str = "trainer.safetensors";
const REPLAY: &str = "replay.bin";
const MANIFEST: &str = "manifest.json";
/// Start of the name of a directory that is not finished.
const UNFINISHED: &str = ".unfinished-";

/// What is saved.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Checkpoint {
    /// Environment steps taken.
    pub env_steps: u64,
    /// What acting needs.
    pub policy: Arrays,
    /// What learning needs besides.
    pub trainer: Arrays,
    /// State of the environments.
    pub env: Vec<u8>,
    /// Stored experience; empty where there is none, or none is kept.
    pub replay: Vec<u8>,
    /// Counters and whatever else is small, as JSON.
    pub state: serde_json::Value,
}

/// The small file that makes a checkpoint valid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the layout.
    pub format: u32,
    /// Environment steps taken.
    pub env_steps: u64,
    /// Checksum (CRC-32) of each file.
    pub crc32: BTreeMap<String, u32>,
    /// Counters and whatever else is small.
    pub state: serde_json::Value,
}

/// A checkpoint that cannot be written or read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The file system refused.
    #[error("cannot use {}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file that is not what was written.
    #[error("{} is broken: {reason}", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// How that shows.
        reason: String,
    },
    /// A directory without any checkpoint.
    #[error("no checkpoint in {}", path.display())]
    None {
        /// The directory.
        path: PathBuf,
    },
    /// A checkpoint of another network or environment.
    #[error("the checkpoint in {} does not fit: {reason}", path.display())]
    Misfit {
        /// The checkpoint.
        path: PathBuf,
        /// What differs.
        reason: String,
    },
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> CheckpointError {
    let path = path.to_owned();
    move |source| CheckpointError::Io { path, source }
}

/// The checkpoints of a run.
#[derive(Debug, Clone)]
pub struct Checkpoints {
    dir: PathBuf,
    keep: usize,
}

impl Checkpoints {
    /// Checkpoints in `dir`, of which the newest `keep` (at least 1) stay.
    pub fn new(dir: impl Into<PathBuf>, keep: usize) -> Self {
        Self { dir: dir.into(), keep: keep.max(1) }
    }

    /// Saves a checkpoint and removes old ones; returns its directory.
    ///
    /// # Errors
    /// Where the file system refuses; earlier checkpoints then stay.
    pub fn save(&self, checkpoint: &Checkpoint) -> Result<PathBuf, CheckpointError> {
        fs::create_dir_all(&self.dir).map_err(io_error(&self.dir))?;
        let name = format!("step-{:012}", checkpoint.env_steps);
        let unfinished = self.dir.join(format!("{UNFINISHED}{name}"));
        let finished = self.dir.join(&name);
        let written = self.write(checkpoint, &unfinished).and_then(|()| {
            if finished.exists() {
                // The same step again, after a resume: the new one counts.
                fs::remove_dir_all(&finished).map_err(io_error(&finished))?;
            }
            fs::rename(&unfinished, &finished).map_err(io_error(&finished))?;
            sync_parent(&finished).map_err(io_error(&finished))
        });
        if written.is_err() {
            let _ = fs::remove_dir_all(&unfinished);
        }
        written?;
        self.remove_old();
        Ok(finished)
    }

    fn write(&self, checkpoint: &Checkpoint, dir: &Path) -> Result<(), CheckpointError> {
        if dir.exists() {
            fs::remove_dir_all(dir).map_err(io_error(dir))?;
        }
        fs::create_dir(dir).map_err(io_error(dir))?;
        let mut crc32 = BTreeMap::new();
        let mut put = |name: &str, bytes: &[u8]| {
            crc32.insert(name.to_owned(), crc32fast::hash(bytes));
            let path = dir.join(name);
            write_synced(&path, bytes).map_err(io_error(&path))
        };
        put(POLICY, &encode(&checkpoint.policy, None))?;
        put(TRAINER, &encode(&checkpoint.trainer, Some(&checkpoint.env)))?;
        if !checkpoint.replay.is_empty() {
            put(REPLAY, &checkpoint.replay)?;
        }
        let manifest =
            Manifest { format: FORMAT, env_steps: checkpoint.env_steps, crc32, state: checkpoint.state.clone() };
        let text = serde_json::to_vec_pretty(&manifest).expect("a manifest always serializes");
        let path = dir.join(MANIFEST);
        write_synced(&path, &text).map_err(io_error(&path))
    }

    /// Removes all but the newest; what cannot be removed is no reason to stop a run.
    fn remove_old(&self) {
        let Ok(mut all) = self.list() else { return };
        all.truncate(all.len().saturating_sub(self.keep));
        for old in all {
            if let Err(error) = fs::remove_dir_all(&old) {
                tracing::warn!("cannot remove the old checkpoint {}: {error}", old.display());
            }
        }
    }

    /// Directories of finished checkpoints, oldest first.
    ///
    /// # Errors
    /// Where the directory cannot be listed; one that does not exist is empty.
    pub fn list(&self) -> Result<Vec<PathBuf>, CheckpointError> {
        if !self.dir.exists() {
            return Ok(Vec::new());
        }
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.dir).map_err(io_error(&self.dir))? {
            let path = entry.map_err(io_error(&self.dir))?.path();
            let finished =
                path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("step-"));
            if finished {
                all.push(path);
            }
        }
        all.sort();
        Ok(all)
    }

    /// The newest checkpoint that is whole, with its directory; warns of broken ones that it passes over.
    ///
    /// # Errors
    /// [`CheckpointError::None`] where there is no checkpoint; what is wrong with the newest where all are broken.
    pub fn latest(&self) -> Result<(PathBuf, Checkpoint), CheckpointError> {
        let mut newest_error = None;
        for path in self.list()?.into_iter().rev() {
            match read(&path) {
                Ok(checkpoint) => return Ok((path, checkpoint)),
                Err(error) => {
                    tracing::warn!("{error}; looking for an older checkpoint");
                    newest_error.get_or_insert(error);
                }
            }
        }
        Err(newest_error.unwrap_or_else(|| CheckpointError::None { path: self.dir.clone() }))
    }
}

/// Reads one checkpoint and verifies its checksums.
fn read(dir: &Path) -> Result<Checkpoint, CheckpointError> {
    let path = dir.join(MANIFEST);
    let text = fs::read(&path).map_err(io_error(&path))?;
    let broken = |path: &Path, reason: String| CheckpointError::Broken { path: path.to_owned(), reason };
    let manifest: Manifest = serde_json::from_slice(&text).map_err(|error| broken(&path, error.to_string()))?;
    if manifest.format != FORMAT {
        return Err(broken(&path, format!("`format` must be {FORMAT}, got {}", manifest.format)));
    }
    let get = |name: &str| {
        let path = dir.join(name);
        let bytes = fs::read(&path).map_err(io_error(&path))?;
        match manifest.crc32.get(name) {
            Some(expected) if *expected == crc32fast::hash(&bytes) => Ok((path, bytes)),
            Some(_) => Err(broken(&path, format!("its checksum differs from the one in {MANIFEST}"))),
            None => Err(broken(&path, format!("{MANIFEST} has no checksum for it"))),
        }
    };
    let (path, bytes) = get(POLICY)?;
    let (policy, _) = decode(&bytes).map_err(|reason| broken(&path, reason))?;
    let (path, bytes) = get(TRAINER)?;
    let (trainer, env) = decode(&bytes).map_err(|reason| broken(&path, reason))?;
    let replay = if manifest.crc32.contains_key(REPLAY) { get(REPLAY)?.1 } else { Vec::new() };
    Ok(Checkpoint { env_steps: manifest.env_steps, policy, trainer, env, replay, state: manifest.state })
}

/// Name of the array that holds the state of the environments.
const ENV: &str = "env";

fn encode(arrays: &Arrays, env: Option<&[u8]>) -> Vec<u8> {
    let bytes: Vec<(&String, &Vec<usize>, Vec<u8>)> = arrays
        .iter()
        .map(|(name, (shape, values))| (name, shape, values.iter().flat_map(|x| x.to_le_bytes()).collect()))
        .collect();
    let floats = bytes.iter().map(|(name, shape, bytes)| {
        let view = TensorView::new(Dtype::F32, (*shape).clone(), bytes).expect("the values fill the shape");
        ((*name).clone(), view)
    });
    let env = env.map(|env| {
        (ENV.to_owned(), TensorView::new(Dtype::U8, vec![env.len()], env).expect("bytes fill their own length"))
    });
    // What a reader without this crate needs to know; docs/weights.md says it in full. One entry only: several would come in
    // any order, and equal checkpoints are equal files.
    let about = format!("version {FORMAT}: y = x W + b with W of [inputs, outputs], row-major f32");
    let metadata = std::collections::HashMap::from([("brasa".to_owned(), about)]);
    safetensors::serialize(floats.chain(env), Some(metadata)).expect("distinct names and valid views always serialize")
}

fn decode(bytes: &[u8]) -> Result<(Arrays, Vec<u8>), String> {
    let file = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
    let (mut arrays, mut env) = (Arrays::new(), Vec::new());
    for (name, view) in file.tensors() {
        match view.dtype() {
            Dtype::F32 => {
                let values = view.data().chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
                arrays.insert(name, (view.shape().to_vec(), values.collect()));
            }
            Dtype::U8 if name == ENV => env = view.data().to_vec(),
            other => return Err(format!("array `{name}` has the unknown type {other:?}")),
        }
    }
    Ok((arrays, env))
}
