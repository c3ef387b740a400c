//! The parts of a training run that its shards ([`brasa_shards`]) share. Everything here does nothing in a run of one shard.

use std::path::{Path, PathBuf};

use brasa_core::VecEnv;
use brasa_core::env::wrappers::RunningMoments;
use brasa_core::env::{Episode, derived_seed, field};
use brasa_shards::{gather, mean, shard};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{Checkpoint, CheckpointError, TrainError};

/// The seed of what differs between shards, such as exploration noise and samples of stored experience. Environments and initial
/// weights use the seed of the run: the former are told apart by their index, the latter are the same in all shards.
///
/// ```
/// use brasa_shards::{World, gather};
/// use brasa_train::own_seed;
///
/// // A program that is not divided has one shard.
/// assert_eq!(own_seed(7), 7);
/// let seeds = World::solo().run(2, || Ok::<_, String>(gather(own_seed(7).to_le_bytes().to_vec())))?;
/// assert_eq!(seeds[0], 7u64.to_le_bytes());
/// assert_ne!(seeds[0], seeds[1]);
/// # Ok::<(), brasa_shards::RunError<String>>(())
/// ```
pub fn own_seed(seed: u64) -> u64 {
    match shard().index {
        0 => seed,
        index => derived_seed(seed, "shard", index as u64),
    }
}

/// Environments of all shards.
pub(crate) fn all_envs(env: &impl VecEnv) -> usize {
    env.n_envs() * shard().count
}

/// Whether a flag is set in any shard.
pub(crate) fn any(flag: bool) -> bool {
    if !shard().is_part() {
        return flag;
    }
    gather(vec![u8::from(flag)]).iter().any(|flag| flag[0] == 1)
}

/// The value of the first shard, which alone computes it.
fn of_first<T: Serialize + DeserializeOwned>(value: impl FnOnce() -> Result<T, TrainError>) -> Result<T, TrainError> {
    let own = if shard().is_first() { encode(&value()?) } else { Vec::new() };
    Ok(decode(&gather(own)[0]))
}

const SAME_PROGRAM: &str = "shards run the same program";

fn encode(value: &impl Serialize) -> Vec<u8> {
    postcard::to_stdvec(value).expect("plain values always serialize")
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> T {
    postcard::from_bytes(bytes).expect(SAME_PROGRAM)
}

/// The episodes of all shards.
pub(crate) fn all_episodes(own: Vec<Episode>) -> Vec<Episode> {
    if !shard().is_part() {
        return own;
    }
    gather(encode(&own)).iter().flat_map(|bytes| decode::<Vec<Episode>>(bytes)).collect()
}

/// The means of metrics over the shards.
pub(crate) fn mean_metrics(mut own: Vec<(&'static str, f64)>) -> Vec<(&'static str, f64)> {
    let values = mean(own.iter().map(|(_, value)| *value).collect());
    own.iter_mut().zip(values).for_each(|((_, value), mean)| *value = mean);
    own
}

/// Moments that grow in every shard on their own, and are merged from time to time.
#[derive(Debug, Default)]
pub(crate) struct SharedMoments {
    /// As they were after the latest merge, the same in all shards.
    merged: Vec<RunningMoments>,
}

impl SharedMoments {
    /// Those of environments before their first step.
    ///
    /// # Errors
    /// [`TrainError::Field`] if the run has several shards and the environments have moments that cannot be merged.
    pub fn new(env: &mut impl VecEnv) -> Result<Self, TrainError> {
        if !shard().is_part() {
            return Ok(Self::default());
        }
        let normalizes = env.obs_moments().is_some();
        let merged: Vec<RunningMoments> = env.running_moments().into_iter().map(|moments| moments.clone()).collect();
        let rule = "must normalize observations on the host if the run has several shards";
        field::rule(!normalizes || !merged.is_empty(), "env", rule, "moments on a device")?;
        Ok(Self { merged })
    }

    /// Merges what every shard has seen since the latest merge.
    pub fn merge(&mut self, env: &mut impl VecEnv) {
        if self.merged.is_empty() {
            return;
        }
        let mut all = env.running_moments();
        let seen: Vec<RunningMoments> = all.iter().zip(&self.merged).map(|(now, before)| now.since(before)).collect();
        for seen in gather(encode(&seen)).iter().map(|bytes| decode::<Vec<RunningMoments>>(bytes)) {
            self.merged.iter_mut().zip(seen).for_each(|(merged, seen)| *merged = merged.merged(&seen));
        }
        all.iter_mut().zip(&self.merged).for_each(|(now, merged)| **now = merged.clone());
    }
}

/// Key of the number of shards in the state of a checkpoint.
const N_SHARDS: &str = "n_shards";

/// What differs between the shards of a checkpoint.
#[derive(Serialize, Deserialize)]
struct Own {
    env: Vec<u8>,
    replay: Vec<u8>,
}

/// The checkpoint of the whole run, in the first shard.
pub(crate) fn whole_checkpoint(checkpoint: Checkpoint) -> Option<Checkpoint> {
    let shard = shard();
    if !shard.is_part() {
        return Some(checkpoint);
    }
    let Checkpoint { env, replay, mut state, .. } = checkpoint;
    let all = gather(encode(&Own { env, replay }));
    if !shard.is_first() {
        return None;
    }
    let all: Vec<Own> = all.iter().map(|bytes| decode(bytes)).collect();
    let (env, replay): (Vec<_>, Vec<_>) = all.into_iter().map(|own| (own.env, own.replay)).unzip();
    state[N_SHARDS] = shard.count.into();
    let replay = if replay.iter().all(Vec::is_empty) { Vec::new() } else { encode(&replay) };
    Some(Checkpoint { env: encode(&env), replay, state, ..checkpoint })
}

/// The part of this shard of the checkpoint that the first shard finds, with its path.
///
/// # Errors
/// That of `find`; [`CheckpointError::Misfit`] if the checkpoint has another number of shards.
pub(crate) fn own_checkpoint(
    find: impl FnOnce() -> Result<Option<(PathBuf, Checkpoint)>, TrainError>,
) -> Result<Option<(PathBuf, Checkpoint)>, TrainError> {
    let shard = shard();
    if !shard.is_part() {
        let found = find()?;
        if let Some((path, checkpoint)) = &found {
            check_shards(&checkpoint.state, path)?;
        }
        return Ok(found);
    }
    /// A checkpoint in a format that does not describe itself.
    #[derive(Serialize, Deserialize)]
    struct Sent {
        path: PathBuf,
        env_steps: u64,
        policy: brasa_nn::Arrays,
        trainer: brasa_nn::Arrays,
        env: Vec<u8>,
        replay: Vec<u8>,
        state: String,
    }
    let sent: Option<Sent> = of_first(|| {
        Ok(find()?.map(|(path, checkpoint)| {
            let Checkpoint { env_steps, policy, trainer, env, replay, state } = checkpoint;
            Sent { path, env_steps, policy, trainer, env, replay, state: state.to_string() }
        }))
    })?;
    let Some(Sent { path, env_steps, policy, trainer, env, replay, state }) = sent else { return Ok(None) };
    let state: serde_json::Value = serde_json::from_str(&state).expect("it was written by the first shard");
    check_shards(&state, &path)?;
    let broken = |error: postcard::Error| CheckpointError::Broken { path: path.clone(), reason: error.to_string() };
    let own = |parts| own_part(parts, shard.index).map_err(broken);
    let checkpoint = Checkpoint { env_steps, policy, trainer, env: own(env)?, replay: own(replay)?, state };
    Ok(Some((path, checkpoint)))
}

/// The bytes of shard `index` among those of all; empty if none were saved.
fn own_part(parts: Vec<u8>, index: usize) -> Result<Vec<u8>, postcard::Error> {
    if parts.is_empty() {
        return Ok(parts);
    }
    let parts: Vec<Vec<u8>> = postcard::from_bytes(&parts)?;
    parts.into_iter().nth(index).ok_or(postcard::Error::DeserializeUnexpectedEnd)
}

/// Refuses a checkpoint of another number of shards.
fn check_shards(state: &serde_json::Value, path: &Path) -> Result<(), CheckpointError> {
    let (saved, count) = (state[N_SHARDS].as_u64().unwrap_or(1), shard().count);
    if saved == count as u64 {
        return Ok(());
    }
    let reason = format!("its run has {saved} shards, this one {count}");
    Err(CheckpointError::Misfit { path: path.to_owned(), reason })
}
