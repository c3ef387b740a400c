//! Building energy with batteries, PV and EV charging: CityLearn districts, the Iquitos microgrid and charging stations.
//!
//! This crate does not depend on tensors or learners: environments step on the host, as struct of arrays.
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
//! [`citylearn`] has the districts, [`iquitos`] the microgrid, [`station`] the charging station. The crate `brasa` trains
//! policies for all of them from TOML configs.

pub mod citylearn;
pub mod iquitos;
pub mod station;

mod actions;
mod calendar;
mod check;
mod day_prices;
mod delimited;
mod error;
mod ledger;
#[cfg(feature = "optimum")]
mod optimum;
mod quantiles;
mod remarks;
mod rows;
mod scenario;
mod series;
mod solar;
mod starts;
mod storage;
mod trace;

pub use error::EnergyError;
pub use ledger::Ledger;
#[cfg(feature = "optimum")]
pub use optimum::Optimum;
pub use trace::{Trace, TraceStart};
