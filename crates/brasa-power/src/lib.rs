//! What energy scenarios share: power flows of a site, tables in CSV files, starts of episodes, figures and optima.
//!
//! The crates `brasa-energy` (microgrid, charging station) and `brasa-citylearn` (districts of buildings) are built on it. A scenario of your own
//! can use it in the same way.
//!
//! ```
//! use brasa_power::Ledger;
//!
//! let noon = Ledger { pv_available_kwh: 5.0, pv_used_kwh: 3.0, grid_export_kwh: 2.0, load_kwh: 3.0, ..Ledger::default() };
//! assert_eq!(noon.bus_residual_kwh(), 0.0);
//! ```

pub mod dates;
pub mod delimited;
#[cfg(feature = "optimum")]
pub mod optimum;
pub mod remarks;
pub mod scenario;

mod error;
mod ledger;
mod starts;
mod trace;

pub use error::{EnergyError, fail};
pub use ledger::Ledger;
#[cfg(feature = "optimum")]
pub use optimum::Optimum;
pub use starts::Starts;
pub use trace::{Trace, TraceStart};
