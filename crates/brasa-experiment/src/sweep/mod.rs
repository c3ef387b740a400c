//! Sweeps: experiments with several seeds and settings, and the processes that train them.

mod grid;
mod jobs;
mod lock;
mod parent;
mod script;

pub use grid::Seeds;
pub(crate) use grid::{Planned, grid};
pub(crate) use jobs::{End, Independent, Job, Jobs, Runs};
pub(crate) use lock::Lock;
pub(crate) use parent::end_with_sweep;
pub use script::Launcher;
pub(crate) use script::script;
