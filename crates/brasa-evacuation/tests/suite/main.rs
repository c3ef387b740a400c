//! Evacuations, their baselines and their bound. One program, so that the crates below are linked once.

mod common;

mod bound;
mod contract;
mod exits;
mod faults;
mod heuristics;
mod jupedsim;
mod reference;
mod scenario;
