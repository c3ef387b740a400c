//! Classic control tasks. One program, so that the crates below are linked once.

mod contract;
mod golden;
mod rendered;
mod scenario;
mod together;
