//! Batches, executors and wrappers of environments. One program, so that the crates below are linked once.

mod common;

mod contract;
mod endless;
mod executors;
mod multi_agent;
mod rendered;
mod wrappers;
