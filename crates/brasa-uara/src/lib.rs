//! User association and channel allocation in cellular networks: many users, small and large cells, one spectrum.

mod error;
mod radio;
mod receiver;
mod snapshot;

pub use error::UaraError;
pub use radio::{Interference, Link, PathLoss, Radio, dbm_to_mw, mw_to_dbm};
pub use receiver::Receiver;
pub use snapshot::{Outcome, Snapshot};
