//! Checkpoints.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use brasa_core::MetricsError;
use brasa_nn::Arrays;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::TrainError;
use crate::files::{first_foreign, make_dir, sync_dir, sync_parent, write_synced};

/// Version of the file layout that is written. It and the earlier ones are read, later ones are refused.
///
/// - 1: the manifest has no checksum of itself.
/// - 2: it has one, `manifest_crc32`.
const FORMAT: u32 = 2;
const POLICY: &str = "policy.safetensors";
const TRAINER: &str = "trainer.safetensors";
const REPLAY: &str = "replay.bin";
const MANIFEST: &str = "manifest.json";
/// Prefix of the name of an unfinished checkpoint.
pub(crate) const UNFINISHED: &str = ".unfinished-";

/// The saved data of a run.
///
/// ```
/// use brasa_train::{Checkpoint, Checkpoints};
///
/// let dir = tempfile::tempdir()?;
/// let mut checkpoint = Checkpoint { env_steps: 2048, ..Default::default() };
/// checkpoint.policy.insert("network.weight".into(), (vec![2], vec![0.5, -1.0]));
/// let checkpoints = Checkpoints::new(dir.path(), 2);
/// checkpoints.save(&checkpoint)?;
/// let (_, read) = checkpoints.latest()?;
/// assert_eq!(read, checkpoint);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Checkpoint {
    /// Environment steps taken.
    pub env_steps: u64,
    /// Arrays that the policy needs to act.
    pub policy: Arrays,
    /// The other arrays of the learner.
    pub trainer: Arrays,
    /// State of the environments.
    pub env: Vec<u8>,
    /// Stored experience; empty if there is none or it is not saved.
    pub replay: Vec<u8>,
    /// Counters and other small values, as JSON.
    pub state: serde_json::Value,
}

impl Checkpoint {
    /// Refuses numbers of the policy that are not finite.
    pub(crate) fn check_weights(&self) -> Result<(), TrainError> {
        let mut numbers = self.policy.values().flat_map(|(_, values)| values);
        let Some(value) = numbers.find(|value| !value.is_finite()) else { return Ok(()) };
        let cause = MetricsError::NotFinite { name: "a weight", value: f64::from(*value) };
        Err(TrainError::Metrics { env_steps: self.env_steps, cause })
    }
}

/// The manifest of a checkpoint: a checkpoint without a valid manifest is not read.
///
/// ```
/// use brasa_train::{Checkpoint, Checkpoints, Manifest};
///
/// let dir = tempfile::tempdir()?;
/// let path = Checkpoints::new(dir.path(), 1).save(&Checkpoint { env_steps: 2048, ..Default::default() })?;
/// let text = std::fs::read_to_string(path.join("manifest.json"))?;
/// let manifest: Manifest = serde_json::from_str(&text)?;
/// assert_eq!(manifest.env_steps, 2048);
/// assert!(manifest.crc32.contains_key("policy.safetensors"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Version of the file layout.
    pub format: u32,
    /// Environment steps taken.
    pub env_steps: u64,
    /// Checksum (CRC-32) of each other file.
    pub crc32: BTreeMap<String, u32>,
    /// Checksum (CRC-32) of this manifest as compact JSON in which this field is 0; 0 in format 1, which has none.
    pub manifest_crc32: u32,
    /// Counters and other small values.
    pub state: serde_json::Value,
}

/// A checkpoint that cannot be written or read.
///
/// ```
/// use brasa_train::{CheckpointError, Checkpoints};
///
/// let error = Checkpoints::new("runs/none", 2).latest().unwrap_err();
/// assert!(matches!(error, CheckpointError::None { .. }));
/// assert_eq!(error.to_string(), "no checkpoint in runs/none");
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// A file system operation failed.
    #[error("cannot use {}: {cause}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        cause: io::Error,
    },
    /// A file is corrupted.
    #[error("{} is broken: {reason}", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// How the corruption was detected.
        reason: String,
    },
    /// A directory has no checkpoint.
    #[error("no checkpoint in {}", path.display())]
    None {
        /// The directory.
        path: PathBuf,
    },
    /// A checkpoint belongs to another network or environment.
    #[error("the checkpoint in {} does not fit: {reason}", path.display())]
    Misfit {
        /// The checkpoint.
        path: PathBuf,
        /// The difference.
        reason: String,
    },
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> CheckpointError {
    let path = path.to_owned();
    move |cause| CheckpointError::Io { path, cause }
}

/// The checkpoints of a run.
///
/// Checkpoints: all data that a run needs to continue. A checkpoint is either complete or absent.
///
/// A checkpoint is a directory `step-<env steps>` with `policy.safetensors` (weights and normalization: all that the policy
/// needs to act), `trainer.safetensors` (the other arrays of the learner), for off-policy runs `replay.bin` (stored
/// experience), and `manifest.json` (counters, and a checksum of each file, including the manifest). It is written under a
/// temporary name and renamed, so a killed process leaves the previous one. A second, different checkpoint of the same step
/// is `step-<env steps>.1`.
///
/// ```
/// use brasa_train::{Checkpoint, Checkpoints};
///
/// let dir = tempfile::tempdir()?;
/// let checkpoints = Checkpoints::new(dir.path(), 2);
/// for env_steps in [1000, 2000, 3000] {
///     checkpoints.save(&Checkpoint { env_steps, ..Default::default() })?;
/// }
/// // The two newest are kept.
/// assert_eq!(checkpoints.list()?.len(), 2);
/// assert_eq!(checkpoints.latest_env_steps()?, Some(3000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Checkpoints {
    dir: PathBuf,
    keep: usize,
    every: Option<u64>,
}

impl Checkpoints {
    /// Checkpoints in `dir`. The newest `keep` (at least 1) are kept.
    pub fn new(dir: impl Into<PathBuf>, keep: usize) -> Self {
        Self { dir: dir.into(), keep: keep.max(1), every: None }
    }

    /// Also keeps the first checkpoint of every `env_steps` environment steps.
    pub fn keep_every(self, env_steps: Option<u64>) -> Self {
        Self { every: env_steps, ..self }
    }

    /// Saves a checkpoint and removes old ones; returns its directory.
    ///
    /// An existing checkpoint of the same step with equal content is not written again: a resumed run starts from it.
    ///
    /// # Errors
    /// If a file system operation fails. Earlier checkpoints are then kept.
    pub fn save(&self, checkpoint: &Checkpoint) -> Result<PathBuf, CheckpointError> {
        make_dir(&self.dir).map_err(io_error(&self.dir))?;
        let files = Files::of(checkpoint);
        let same_step: Vec<Entry> =
            self.entries()?.into_iter().filter(|entry| entry.env_steps == checkpoint.env_steps).collect();
        let same = same_step.iter().rev().find(|entry| holds(&entry.path, &files));
        if let Some(same) = same.filter(|entry| !entry.unfinished) {
            return Ok(same.path.clone());
        }
        // A different checkpoint of the same step gets a revision number, so that one of the two exists at every moment.
        let revisions = same_step.iter().filter(|entry| !entry.unfinished).map(|entry| entry.revision + 1);
        let name = name(checkpoint.env_steps, revisions.max().unwrap_or(0));
        let finished = self.dir.join(&name);
        let (unfinished, written) = match same {
            // A killed process left it complete but did not rename it.
            Some(same) => (same.path.clone(), Ok(())),
            None => {
                let unfinished = self.dir.join(format!("{UNFINISHED}{name}"));
                let written = files.write(&unfinished);
                (unfinished, written)
            }
        };
        let written = written.and_then(|()| {
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

    /// Saves a checkpoint in place of all others, which may be of later steps; returns its directory.
    ///
    /// # Errors
    /// As [`Checkpoints::save`].
    pub fn replace(&self, checkpoint: &Checkpoint) -> Result<PathBuf, CheckpointError> {
        let saved = Self { keep: usize::MAX, ..self.clone() }.save(checkpoint)?;
        self.remove_others(&saved);
        Ok(saved)
    }

    /// Removes all finished checkpoints but the one in `kept`. A failure to remove one is only a warning.
    pub(crate) fn remove_others(&self, kept: &Path) {
        for path in self.list().unwrap_or_default().iter().filter(|path| *path != kept) {
            if let Err(error) = fs::remove_dir_all(path) {
                tracing::warn!("cannot remove the old checkpoint {}: {error}", path.display());
            }
        }
    }

    /// Removes checkpoints older than the newest `keep`, and unfinished ones. A failure to remove one is only a warning.
    fn remove_old(&self) {
        let Ok(entries) = self.entries() else { return };
        let whole: Vec<bool> = entries.iter().map(|entry| !entry.unfinished && manifest(&entry.path).is_ok()).collect();
        let mut kept_period = None;
        for (i, entry) in entries.iter().enumerate() {
            // A newer checkpoint that is not complete is not counted and not removed: its origin is unknown.
            let newer = whole[i..].iter().filter(|whole| **whole).count();
            let is_new = newer <= self.keep && !entry.unfinished;
            let period = self.every.map(|every| entry.env_steps / every.max(1)).filter(|_| whole[i]);
            let is_first = period.is_some() && period != kept_period;
            kept_period = period.or(kept_period);
            if is_new || is_first {
                continue;
            }
            if let Err(error) = fs::remove_dir_all(&entry.path) {
                tracing::warn!("cannot remove the old checkpoint {}: {error}", entry.path.display());
            }
        }
    }

    /// Directories of finished checkpoints, oldest first. Entries with other names are ignored.
    ///
    /// # Errors
    /// If the directory cannot be listed. A directory that does not exist has no checkpoints.
    pub fn list(&self) -> Result<Vec<PathBuf>, CheckpointError> {
        Ok(self.entries()?.into_iter().filter(|entry| !entry.unfinished).map(|entry| entry.path).collect())
    }

    /// All checkpoints, oldest first, including those that a killed process left under a temporary name.
    fn entries(&self) -> Result<Vec<Entry>, CheckpointError> {
        if !self.dir.exists() {
            return Ok(Vec::new());
        }
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.dir).map_err(io_error(&self.dir))? {
            all.extend(Entry::of(entry.map_err(io_error(&self.dir))?.path()));
        }
        all.sort();
        Ok(all)
    }

    /// The newest complete checkpoint, with its directory. Corrupted newer ones are skipped with a warning.
    ///
    /// # Errors
    /// [`CheckpointError::None`] if there is no checkpoint; the error of the newest one if all are corrupted.
    pub fn latest(&self) -> Result<(PathBuf, Checkpoint), CheckpointError> {
        self.newest(read)
    }

    /// Environment steps of the newest checkpoint, read from its manifest alone; `None` if there is no checkpoint.
    ///
    /// # Errors
    /// As [`Checkpoints::latest`].
    pub fn latest_env_steps(&self) -> Result<Option<u64>, CheckpointError> {
        match self.newest(manifest) {
            Ok((_, manifest)) => Ok(Some(manifest.env_steps)),
            Err(CheckpointError::None { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn newest<T>(&self, read: impl Fn(&Path) -> Result<T, CheckpointError>) -> Result<(PathBuf, T), CheckpointError> {
        /// Lists of a directory that a training process changes at the same time.
        const LISTS: usize = 20;
        let mut newest_error = None;
        for list in 1.. {
            newest_error = None;
            let mut is_replaced = false;
            for entry in self.entries()?.into_iter().rev() {
                match read(&entry.path) {
                    Ok(found) => return Ok((entry.path, found)),
                    // Another process has replaced it since it was listed.
                    Err(_) if list < LISTS && !entry.path.is_dir() => is_replaced = true,
                    // The process was killed while it wrote this checkpoint: use the previous one.
                    Err(_) if entry.unfinished => {}
                    Err(error) => {
                        tracing::warn!("{error}; looking for an older checkpoint");
                        newest_error.get_or_insert(error);
                    }
                }
            }
            if !is_replaced {
                break;
            }
        }
        Err(newest_error.unwrap_or_else(|| CheckpointError::None { path: self.dir.clone() }))
    }
}

/// A checkpoint directory, parsed from its name. Ordered by age.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    env_steps: u64,
    revision: u64,
    unfinished: bool,
    path: PathBuf,
}

fn name(env_steps: u64, revision: u64) -> String {
    match revision {
        0 => format!("step-{env_steps:012}"),
        _ => format!("step-{env_steps:012}.{revision}"),
    }
}

impl Entry {
    /// `None` if the name is not that of a checkpoint.
    fn of(path: PathBuf) -> Option<Self> {
        let file_name = path.file_name()?.to_str()?;
        let (unfinished, finished) = match file_name.strip_prefix(UNFINISHED) {
            Some(finished) => (true, finished),
            None => (false, file_name),
        };
        let numbers = finished.strip_prefix("step-")?;
        let (env_steps, revision) = match numbers.split_once('.') {
            Some((env_steps, revision)) => (env_steps.parse().ok()?, revision.parse().ok()?),
            None => (numbers.parse().ok()?, 0),
        };
        // Names such as `step-7` or `step-+00000000007` are never written by this crate.
        (finished == name(env_steps, revision)).then_some(Self { env_steps, revision, unfinished, path })
    }
}

/// The files of a checkpoint before they are on disk.
struct Files<'a> {
    /// Name and content of every file except the manifest.
    parts: Vec<(&'static str, Cow<'a, [u8]>)>,
    manifest: Vec<u8>,
}

impl<'a> Files<'a> {
    fn of(checkpoint: &'a Checkpoint) -> Self {
        let mut parts = vec![
            (POLICY, Cow::from(encode(&checkpoint.policy, None))),
            (TRAINER, Cow::from(encode(&checkpoint.trainer, Some(&checkpoint.env)))),
        ];
        if !checkpoint.replay.is_empty() {
            parts.push((REPLAY, Cow::from(&checkpoint.replay)));
        }
        let crc32 = parts.iter().map(|(name, bytes)| ((*name).to_owned(), crc32fast::hash(bytes))).collect();
        let state = checkpoint.state.clone();
        let manifest =
            Manifest { format: FORMAT, env_steps: checkpoint.env_steps, crc32, manifest_crc32: 0, state }.sealed();
        let manifest = serde_json::to_vec_pretty(&manifest).expect("a manifest always serializes");
        Self { parts, manifest }
    }

    fn write(&self, dir: &Path) -> Result<(), CheckpointError> {
        if dir.exists() {
            fs::remove_dir_all(dir).map_err(io_error(dir))?;
        }
        fs::create_dir(dir).map_err(io_error(dir))?;
        let parts = self.parts.iter().map(|(name, bytes)| (*name, &**bytes));
        // The manifest is written last: it makes the checkpoint complete.
        for (name, bytes) in parts.chain([(MANIFEST, &*self.manifest)]) {
            let path = dir.join(name);
            write_synced(&path, bytes).map_err(io_error(&path))?;
        }
        sync_dir(dir).map_err(io_error(dir))
    }
}

/// Whether the checkpoint in `dir` is complete and equals these files.
fn holds(dir: &Path, files: &Files<'_>) -> bool {
    fs::read(dir.join(MANIFEST)).is_ok_and(|manifest| manifest == files.manifest) && read(dir).is_ok()
}

impl Manifest {
    /// Sets the checksum of the manifest itself.
    fn sealed(mut self) -> Self {
        self.manifest_crc32 = 0;
        let text = serde_json::to_vec(&self).expect("a manifest always serializes");
        self.manifest_crc32 = crc32fast::hash(&text);
        self
    }
}

fn broken(path: &Path, reason: String) -> CheckpointError {
    CheckpointError::Broken { path: path.to_owned(), reason }
}

/// Reads a file of a checkpoint. Symbolic links and pipes are refused.
fn read_file(path: &Path) -> Result<Vec<u8>, CheckpointError> {
    if first_foreign([path]).is_some() {
        return Err(broken(path, "it is neither a file nor a directory".into()));
    }
    fs::read(path).map_err(io_error(path))
}

/// Reads and verifies the manifest of a checkpoint.
fn manifest(dir: &Path) -> Result<Manifest, CheckpointError> {
    if first_foreign([dir]).is_some() {
        return Err(broken(dir, "it is neither a file nor a directory".into()));
    }
    let path = dir.join(MANIFEST);
    let text = read_file(&path)?;
    let mut value: serde_json::Value =
        serde_json::from_slice(&text).map_err(|error| broken(&path, error.to_string()))?;
    // The version is checked first, because other versions have other fields.
    let format = value["format"].as_u64().filter(|format| (1..=u64::from(FORMAT)).contains(format));
    let Some(format) = format else {
        return Err(broken(
            &path,
            format!("`format` must be at least 1 and at most {FORMAT}, got {}", value["format"]),
        ));
    };
    let has_seal = format >= 2;
    if let (false, Some(object)) = (has_seal, value.as_object_mut()) {
        // Otherwise a changed digit would switch the checksum off.
        if object.insert("manifest_crc32".to_owned(), 0.into()).is_some() {
            return Err(broken(&path, format!("`manifest_crc32` must not be in a manifest of format {format}")));
        }
    }
    let manifest: Manifest = serde_json::from_value(value).map_err(|error| broken(&path, error.to_string()))?;
    if has_seal && manifest.clone().sealed() != manifest {
        return Err(broken(&path, "its checksum differs from the one that it holds".into()));
    }
    Ok(manifest)
}

/// Reads one checkpoint and verifies its checksums.
pub(crate) fn read(dir: &Path) -> Result<Checkpoint, CheckpointError> {
    let manifest = manifest(dir)?;
    let get = |name: &str| {
        let path = dir.join(name);
        let bytes = read_file(&path)?;
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
    // A short description for readers without this crate; docs/reference/weights.md has the details. There is one entry only, because
    // several would be written in random order, and equal checkpoints must be equal files.
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
