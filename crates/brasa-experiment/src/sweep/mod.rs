//! Sweeps: the same experiments with several seeds and settings.

mod grid;
mod jobs;
mod parent;
mod script;

pub use grid::Seeds;
pub(crate) use grid::{Planned, grid};
pub(crate) use jobs::{Job, Jobs, Outcome};
pub(crate) use parent::end_with_sweep;
pub use script::Launcher;
pub(crate) use script::script;
