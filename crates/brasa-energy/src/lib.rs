//! Energy of sites with batteries, PV and EV charging: the Iquitos microgrid and charging stations.
//!
//! Environments step on the host, as struct of arrays. Only the feature `tensor` depends on tensors, and nothing depends on learners.
//!
//! ```
//! use brasa_energy::iquitos::{Iquitos, IquitosConfig};
//! use brasa_env::{Evaluation, Scenario, Who};
//!
//! // A year of the microgrid with the rule-based controller, relative to uncontrolled charging.
//! let iquitos = Iquitos::new(IquitosConfig::default())?;
//! let year = &iquitos.evaluate(Who::Baseline("rule-based"), &Evaluation::new(1, 1))?[0];
//! let cost = year.figure(&iquitos.figures(), "cost").and_then(|figure| figure.ratio);
//! assert!(cost < Some(1.0), "{cost:?}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`iquitos`] has the microgrid, [`station`] the charging station. The crate `brasa-citylearn` has districts of buildings. The crate `brasa`
//! trains policies for all of them from TOML configs.

pub mod iquitos;
pub mod station;

mod actions;
mod calendar;
mod check;
mod day_prices;
mod quantiles;
mod remarks;
mod rows;
mod series;
mod solar;
mod starts;
mod storage;

#[cfg(feature = "optimum")]
pub use brasa_power::Optimum;
pub use brasa_power::{EnergyError, Ledger, Trace, TraceStart};
