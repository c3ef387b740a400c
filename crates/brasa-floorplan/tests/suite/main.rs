//! Floor plans, read and generated. One program, so that the crates below are linked once.

mod faults;
mod generate;
mod mutations;
mod outlines;
mod plans;
mod reference;
