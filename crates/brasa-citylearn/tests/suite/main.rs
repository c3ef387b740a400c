//! Districts of buildings. One program, so that the crates below are linked once.

mod common;

mod batch;
mod faults;
mod generation_2;
mod golden;
mod held_out;
mod import;
mod laws;
mod mutations;
#[cfg(feature = "optimum")]
mod optimum;
#[cfg(feature = "optimum")]
mod optimum_thermal;
#[cfg(feature = "optimum")]
mod optimum_vehicles;
mod random;
mod report;
mod rows;
mod thermal;
mod vehicles;
