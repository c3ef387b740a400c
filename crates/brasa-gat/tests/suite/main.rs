//! Graph attention and its policies. One program, so that the crates below are linked once.

mod common;

mod golden;
mod invariances;
mod lookup;
mod policy;
