//! Environments of Gymnasium in processes of their own. One program, so that the crates below are linked once.

mod common;

mod contract;
mod faults;
mod golden;
mod rendered;
mod scenario;
