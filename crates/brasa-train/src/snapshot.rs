//! Conversion of networks, optimizers and moments to the arrays of a checkpoint, and back.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use brasa_core::env::wrappers::RunningMoments;
use brasa_core::export::{high_and_low, joined};
use brasa_core::{PolicyState, VecEnv};
use brasa_nn::{Arrays, Persist, Saved};
use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use crate::checkpoint::read;
use crate::sharding::SharedMoments;
use crate::{Checkpoint, CheckpointError, Counters, RunDir, TrainError};

/// Arrays of running moments. Each f64 is stored as two f32 (see `split`).
const MOMENTS: [&str; 3] = ["obs_moments.count", "obs_moments.mean", "obs_moments.squares"];

/// The JSON part of a checkpoint.
#[derive(Serialize, Deserialize)]
struct State {
    counters: Counters,
    learner: BTreeMap<String, f64>,
}

/// First part of the names of the weights that collected a rollout ahead.
const AHEAD: &str = "ahead/";

/// Adds the weights `policy` of an earlier policy to a checkpoint.
pub(crate) fn put_ahead(checkpoint: &mut Checkpoint, policy: &Arrays) {
    let named = policy.iter().map(|(name, array)| (format!("{AHEAD}{name}"), array.clone()));
    checkpoint.trainer.extend(named);
}

/// The weights of [`put_ahead`]; `None` if there are none.
pub(crate) fn ahead_of(checkpoint: &Checkpoint) -> Option<Arrays> {
    let named = checkpoint.trainer.iter();
    let ahead: Arrays =
        named.filter_map(|(name, array)| Some((name.strip_prefix(AHEAD)?.into(), array.clone()))).collect();
    (!ahead.is_empty()).then_some(ahead)
}

/// The saved state of environments, with what a policy remembers of them behind it: each shard has its own. Waits for the device.
pub(crate) fn with_state(env: Vec<u8>, state: &PolicyState) -> Vec<u8> {
    match &state.numbers {
        Some(numbers) => {
            let shape = numbers.dims();
            // Waits for the device.
            let values: Vec<f32> = numbers.to_data().iter::<f32>().collect();
            postcard::to_stdvec(&(env, shape, values)).expect("plain values always serialize")
        }
        None => env,
    }
}

/// The parts of [`with_state`] for a policy that remembers `width` numbers of each of `n_rows` rows.
pub(crate) fn without_state(
    saved: &[u8],
    [n_rows, width]: [usize; 2],
    device: &Device,
    path: &Path,
) -> Result<(Vec<u8>, PolicyState), CheckpointError> {
    if width == 0 {
        return Ok((saved.to_vec(), PolicyState::default()));
    }
    let misfit = |reason: String| CheckpointError::Misfit { path: path.to_owned(), reason };
    let (env, shape, values): (Vec<u8>, [usize; 2], Vec<f32>) = postcard::from_bytes(saved)
        .map_err(|_| misfit("its policy remembers nothing, that of this run does".into()))?;
    if shape != [n_rows, width] || values.len() != n_rows * width {
        let expected = [n_rows, width];
        return Err(misfit(format!(
            "what its policy remembers has the shape {shape:?}, that of this run {expected:?}"
        )));
    }
    Ok((env, PolicyState { numbers: Some(Tensor::from_data(TensorData::new(values, shape), device)) }))
}

/// Creates a checkpoint of `learner` and its loop.
///
/// `moments` normalize the observations. `env` is the saved state of the environments, `replay` that of the replay buffer
/// (empty if there is none).
///
/// ```
/// # mod parts { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/parts.inc")); }
/// # use parts::*;
/// use brasa_train::{Counters, take_checkpoint};
///
/// let counters = Counters { env_steps: 2048, ..Default::default() };
/// let checkpoint = take_checkpoint(&ppo(), &counters, None, Vec::new(), Vec::new());
/// assert_eq!(checkpoint.env_steps, 2048);
/// assert!(checkpoint.policy.keys().all(|name| name.starts_with("network.")));
/// ```
pub fn take_checkpoint(
    learner: &impl Persist,
    counters: &Counters,
    moments: Option<&RunningMoments>,
    env: Vec<u8>,
    replay: Vec<u8>,
) -> Checkpoint {
    let Saved { mut policy, trainer, numbers } = learner.save();
    if let Some(moments) = moments {
        for (name, values) in MOMENTS.into_iter().zip([&vec![moments.count], &moments.mean, &moments.squares]) {
            policy.insert(name.into(), (vec![2, values.len()], split(values)));
        }
    }
    let state = State { counters: counters.clone(), learner: numbers };
    let state = serde_json::to_value(state).expect("counters always serialize");
    Checkpoint { env_steps: counters.env_steps, policy, trainer, env, replay, state }
}

/// Restores `learner` from a checkpoint at `path`, and returns the counters of the loop.
///
/// ```
/// # mod parts { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/parts.inc")); }
/// # use parts::*;
/// use std::path::Path;
///
/// use brasa_nn::Persist;
/// use brasa_train::{Counters, restore_learner, take_checkpoint};
///
/// let (trained, mut learner) = (ppo(), ppo());
/// let counters = Counters { env_steps: 2048, ..Default::default() };
/// let checkpoint = take_checkpoint(&trained, &counters, None, Vec::new(), Vec::new());
/// let restored = restore_learner(&mut learner, &checkpoint, Path::new("runs/room"))?;
/// assert_eq!(restored, counters);
/// assert_eq!(learner.save(), trained.save());
/// # Ok::<(), brasa_train::CheckpointError>(())
/// ```
///
/// # Errors
/// [`CheckpointError::Misfit`] if names or shapes differ.
pub fn restore_learner(
    learner: &mut impl Persist,
    checkpoint: &Checkpoint,
    path: &Path,
) -> Result<Counters, CheckpointError> {
    let misfit = |reason: String| CheckpointError::Misfit { path: path.to_owned(), reason };
    let State { counters, learner: numbers } =
        serde_json::from_value(checkpoint.state.clone()).map_err(|error| misfit(error.to_string()))?;
    let mut trainer = checkpoint.trainer.clone();
    trainer.retain(|name, _| !name.starts_with(AHEAD));
    let saved = Saved { policy: checkpoint.policy.clone(), trainer, numbers };
    learner.load(&saved).map_err(|error| misfit(error.to_string()))?;
    Ok(counters)
}

/// Loads the weights and moments of another run into a learner and its environments, before the first step. Returns the
/// first observations, and the moments that all shards share.
pub(crate) fn take_over<E: VecEnv>(
    env: &mut E,
    learner: &mut impl Persist,
    checkpoint: &Checkpoint,
    path: &Path,
    seed: u64,
) -> Result<(E::Obs, SharedMoments), TrainError> {
    restore_learner(learner, checkpoint, path)?;
    match (restore_moments(checkpoint, path)?, env.obs_moments().is_some()) {
        (Some(moments), true) => env.set_obs_moments(&moments)?,
        (None, false) => {}
        (moments, _) => {
            let (has, here) = if moments.is_some() { ("", "not ") } else { ("not ", "") };
            let reason = format!("its observations are {has}normalized, those of this run are {here}normalized");
            return Err(CheckpointError::Misfit { path: path.to_owned(), reason }.into());
        }
    }
    let mut moments = SharedMoments::new(env)?;
    let obs = env.reset(seed)?;
    moments.merge(env);
    Ok((obs, moments))
}

/// Loads the weights of the policy into `module`.
///
/// ```
/// # mod parts { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/parts.inc")); }
/// # use parts::*;
/// use std::path::Path;
///
/// use brasa_train::{Counters, restore_policy, take_checkpoint};
///
/// let checkpoint = take_checkpoint(&ppo(), &Counters::default(), None, Vec::new(), Vec::new());
/// let path = Path::new("runs/room");
/// restore_policy(ppo().network, &checkpoint, path)?;
/// let error = restore_policy(td3().actor, &checkpoint, path).unwrap_err();
/// assert!(error.to_string().starts_with("the checkpoint in runs/room does not fit: "));
/// # Ok::<(), brasa_train::CheckpointError>(())
/// ```
///
/// # Errors
/// [`CheckpointError::Misfit`] if names or shapes differ.
pub fn restore_policy<M: Module>(module: M, checkpoint: &Checkpoint, path: &Path) -> Result<M, CheckpointError> {
    let saved = Saved { policy: checkpoint.policy.clone(), ..Saved::default() };
    saved.policy(module).map_err(|error| CheckpointError::Misfit { path: path.to_owned(), reason: error.to_string() })
}

/// The moments that normalized the observations; `None` if observations were not normalized.
///
/// ```
/// # mod parts { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/parts.inc")); }
/// # use parts::*;
/// use std::path::Path;
///
/// use brasa_core::env::wrappers::RunningMoments;
/// use brasa_train::{Counters, restore_moments, take_checkpoint};
///
/// let moments = RunningMoments { count: 100.0, mean: vec![0.5], squares: vec![25.0] };
/// let checkpoint = take_checkpoint(&ppo(), &Counters::default(), Some(&moments), Vec::new(), Vec::new());
/// assert_eq!(restore_moments(&checkpoint, Path::new("runs/room"))?, Some(moments));
/// # Ok::<(), brasa_train::CheckpointError>(())
/// ```
///
/// # Errors
/// [`CheckpointError::Misfit`] if some of the arrays are missing.
pub fn restore_moments(checkpoint: &Checkpoint, path: &Path) -> Result<Option<RunningMoments>, CheckpointError> {
    let arrays = MOMENTS.map(|name| checkpoint.policy.get(name).map(|(_, values)| join(values)));
    match arrays {
        [Some(count), Some(mean), Some(squares)] if count.len() == 1 && mean.len() == squares.len() => {
            Ok(Some(RunningMoments { count: count[0], mean, squares }))
        }
        [None, None, None] => Ok(None),
        _ => {
            let reason = "the moments of the observations are incomplete".into();
            Err(CheckpointError::Misfit { path: path.to_owned(), reason })
        }
    }
}

/// The nearest f32 of each f64, then the remainders.
fn split(values: &[f64]) -> Vec<f32> {
    high_and_low(values).concat()
}

fn join(values: &[f32]) -> Vec<f64> {
    let (high, low) = values.split_at(values.len() / 2);
    joined(high, low)
}

/// Key of the mean return in the checkpoint of the best policy.
pub(crate) const BEST: &str = "mean_return";

/// The return of the best policy of a run, of any step. Of two that a killed process left, the better one is kept.
pub(crate) fn best_of(run_dir: &RunDir) -> Option<f64> {
    let checkpoints = run_dir.best();
    let of = |path: PathBuf| Some((read(&path).ok()?.state[BEST].as_f64()?, path));
    let returns = checkpoints.list().ok()?.into_iter().filter_map(of);
    let (best, path) = returns.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    checkpoints.remove_others(&path);
    Some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_values_join_again() {
        let values = vec![1.0 / 3.0, 1e9 + 0.125, -7.0];
        for (a, b) in join(&split(&values)).iter().zip(&values) {
            assert!((a - b).abs() <= b.abs() * 1e-14);
        }
    }
}
