//! Networks, distributions and optimizers of Brasa.
//!
//! This crate knows no algorithm and no environment.

mod actor_critic;
pub mod distribution;
mod init;
mod linear;
mod mlp;
mod noise;
mod optimizer;
mod params;
mod trainable;

pub use actor_critic::{ActorCriticConfig, Heads, MlpActorCritic, StdKind};
pub use init::Init;
pub use linear::Linear;
pub use mlp::{Activation, Mlp, MlpConfig};
pub use noise::draw_noise;
pub use optimizer::{AdamConfig, AdamState};
pub use params::{NamedParam, ParamsError, load_params, named_params};
pub use trainable::{Step, Trainable};

use thiserror::Error;

/// A network or optimizer that cannot be built.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NnError {
    /// A field outside its rule.
    #[error("`{field}` {rule}, got {value}")]
    Field {
        /// Name of the field.
        field: &'static str,
        /// What it must be.
        rule: &'static str,
        /// What it was.
        value: String,
    },
    /// A space that this network cannot serve.
    #[error("{0}")]
    Space(String),
}
