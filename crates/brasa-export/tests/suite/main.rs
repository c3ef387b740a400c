//! Exported and imported policies. One program, so that the crates below are linked once.

mod common;

mod formats;
mod invalid_input;
mod memory;
mod mutations;
mod rejected;
mod stable_baselines3;
