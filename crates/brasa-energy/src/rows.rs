//! What the batches of microgrids do alike in each row: reading actions, writing the result of a step, and loading a state.

use brasa_env::{BatchSlabs, EnvError, InvalidField, StateTag};
use serde::de::DeserializeOwned;

/// Rejects actions that are no numbers; without an early exit, so that the compiler vectorizes.
pub(crate) fn check_numbers(action: &[f32]) -> Result<(), EnvError> {
    match action.iter().fold(false, |bad, a| bad | a.is_nan()) {
        true => Err(EnvError::Argument(InvalidField::new("actions", "must be numbers", "NaN"))),
        false => Ok(()),
    }
}

/// Writes the result of a step of environment `env`; its episode ends by truncation only.
pub(crate) fn write_step<const N: usize>(
    out: &mut BatchSlabs,
    env: usize,
    (reward, truncated): (f64, bool),
    info: [f64; N],
) {
    out.reward[env] = reward as f32;
    out.terminated[env] = false;
    out.truncated[env] = truncated;
    out.info.row_mut(env).iter_mut().zip(info).for_each(|(out, value)| *out = value);
}

/// Observes what comes next, as the episode of environment `env` goes on.
pub(crate) fn go_on(out: &mut BatchSlabs, env: usize) {
    let width = out.obs.ncols();
    let row = env * width..(env + 1) * width;
    let next = out.next_obs.as_slice().expect("slabs are in standard layout");
    let obs = out.obs.as_slice_mut().expect("slabs are in standard layout");
    obs[row.clone()].copy_from_slice(&next[row]);
}

/// The state in `bytes`, if it was saved with the settings `config`; `site` names in messages what has them.
pub(crate) fn saved<C: DeserializeOwned + PartialEq, S: DeserializeOwned>(
    tag: StateTag,
    (n_envs, bytes): (usize, &[u8]),
    (config, site): (&C, &str),
) -> Result<S, EnvError> {
    let (other, state): (C, S) = tag.decode(n_envs, bytes)?;
    match other == *config {
        true => Ok(state),
        false => Err(EnvError::State { reason: format!("it belongs to a {site} with other settings") }),
    }
}
