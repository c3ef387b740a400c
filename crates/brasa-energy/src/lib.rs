//! Building energy with batteries, PV and EV charging: CityLearn districts and the Iquitos microgrid.
//!
//! This crate knows nothing of tensors or learning: environments step on the host, as struct of arrays.

pub mod citylearn;
pub mod iquitos;

mod error;
mod ledger;
mod scenario;
mod trace;

pub use error::EnergyError;
pub use ledger::Ledger;
pub use trace::Trace;
