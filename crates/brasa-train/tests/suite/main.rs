//! Checkpoints and outputs of a training. One program, so that the crates below are linked once.

mod checkpoints;
mod formats;
#[cfg(unix)]
mod outputs;
