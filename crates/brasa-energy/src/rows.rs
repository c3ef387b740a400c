//! What the simulations of sites have in common: reading actions and loading a state.

use brasa_env::{EnvError, InvalidField, StateTag};
use serde::de::DeserializeOwned;

/// Rejects actions that are no numbers; without an early exit, so that the compiler vectorizes.
pub(crate) fn check_numbers(action: &[f32]) -> Result<(), EnvError> {
    match action.iter().fold(false, |bad, a| bad | a.is_nan()) {
        true => Err(EnvError::Argument(InvalidField::new("actions", "must be numbers", "NaN"))),
        false => Ok(()),
    }
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
