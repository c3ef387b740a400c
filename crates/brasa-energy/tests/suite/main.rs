//! Districts, microgrids and charging stations. One program, so that the crates below are linked once.

mod common;

mod citylearn_21;
mod citylearn_batch;
mod citylearn_faults;
mod citylearn_golden;
mod citylearn_held_out;
mod citylearn_import;
mod citylearn_laws;
mod citylearn_random;
mod citylearn_report;
mod citylearn_rows;
mod citylearn_thermal;
mod citylearn_vehicles;
mod iquitos;
mod iquitos_files;
mod iquitos_report;
mod mutations;
#[cfg(feature = "optimum")]
mod optimum;
#[cfg(feature = "optimum")]
mod optimum_thermal;
#[cfg(feature = "optimum")]
mod optimum_vehicles;
mod own_site;
mod scenario;
mod station;
mod station_files;
mod station_golden;
#[cfg(feature = "optimum")]
mod station_optimum;
mod station_report;
