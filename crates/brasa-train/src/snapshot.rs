//! Networks, optimizers and moments as arrays of a checkpoint, and back.

use std::path::Path;

use brasa_core::env::wrappers::RunningMoments;
use brasa_nn::{NamedParam, Trainable, load_params, named_params};
use burn::module::Module;

use crate::checkpoint::Arrays;
use crate::{Checkpoint, CheckpointError};

/// Arrays of running moments: counts and means beyond f32 are kept as two parts.
const MOMENTS: [&str; 3] = ["obs_moments.count", "obs_moments.mean", "obs_moments.squares"];
/// Start of the names of weights.
const NETWORK: &str = "network.";

/// What acting needs: the weights of `module`, and the moments that observations are normalized with.
pub fn policy_arrays<M: Module>(module: &M, moments: Option<&RunningMoments>) -> Arrays {
    let mut arrays = Arrays::new();
    for param in named_params(module) {
        arrays.insert(format!("{NETWORK}{}", param.name), (param.shape, param.values));
    }
    if let Some(moments) = moments {
        for (name, values) in MOMENTS.into_iter().zip([&vec![moments.count], &moments.mean, &moments.squares]) {
            arrays.insert(name.into(), (vec![2, values.len()], split(values)));
        }
    }
    arrays
}

/// What learning needs besides: the moments of the optimizer.
pub fn trainer_arrays<M: Module>(trainable: &Trainable<M>) -> Arrays {
    let (first, second) = trainable.state().read();
    let n = vec![first.len()];
    Arrays::from([("adam.first".into(), (n.clone(), first)), ("adam.second".into(), (n, second))])
}

/// Puts the weights of a checkpoint into `module`.
///
/// # Errors
/// [`CheckpointError::Misfit`] where names or shapes differ.
pub fn restore_policy<M: Module>(module: M, checkpoint: &Checkpoint, path: &Path) -> Result<M, CheckpointError> {
    let params: Vec<NamedParam> = (checkpoint.policy.iter())
        .filter_map(|(name, (shape, values))| {
            let name = name.strip_prefix(NETWORK)?.to_owned();
            Some(NamedParam { name, shape: shape.clone(), values: values.clone() })
        })
        .collect();
    load_params(module, &params)
        .map_err(|error| CheckpointError::Misfit { path: path.to_owned(), reason: error.to_string() })
}

/// Puts weights and optimizer moments of a checkpoint into `trainable`, after `steps` optimizer steps.
///
/// # Errors
/// [`CheckpointError::Misfit`] where names or shapes differ.
pub fn restore_trainable<M: Module>(
    trainable: &mut Trainable<M>,
    checkpoint: &Checkpoint,
    steps: u64,
    path: &Path,
) -> Result<(), CheckpointError> {
    let module = restore_policy(trainable.module().clone(), checkpoint, path)?;
    let misfit = |reason: String| CheckpointError::Misfit { path: path.to_owned(), reason };
    let array = |name: &str| match checkpoint.trainer.get(name) {
        Some((_, values)) => Ok(values.clone()),
        None => Err(misfit(format!("no array `{name}`"))),
    };
    let (first, second) = (array("adam.first")?, array("adam.second")?);
    if !trainable.state_mut().write(steps, first, second) {
        return Err(misfit("the optimizer's moments have another length than the network".into()));
    }
    trainable.set_module(module);
    Ok(())
}

/// The moments that observations were normalized with; `None` where they were not.
///
/// # Errors
/// [`CheckpointError::Misfit`] where some of the arrays are missing.
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

/// f64 as the nearest f32 and the rest, which together carry 48 bits: enough for statistics.
fn split(values: &[f64]) -> Vec<f32> {
    let high = values.iter().map(|x| *x as f32);
    let low = values.iter().map(|x| (x - f64::from(*x as f32)) as f32);
    high.chain(low).collect()
}

fn join(values: &[f32]) -> Vec<f64> {
    let (high, low) = values.split_at(values.len() / 2);
    high.iter().zip(low).map(|(high, low)| f64::from(*high) + f64::from(*low)).collect()
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
