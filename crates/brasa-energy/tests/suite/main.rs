//! Microgrids and charging stations. One program, so that the crates below are linked once.

mod common;

mod iquitos;
mod iquitos_files;
mod iquitos_report;
mod mutations;
#[cfg(feature = "optimum")]
mod optimum;
mod own_site;
mod station;
mod station_files;
mod station_golden;
#[cfg(feature = "optimum")]
mod station_optimum;
mod station_report;
