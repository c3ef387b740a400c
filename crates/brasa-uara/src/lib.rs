//! User association and channel allocation in cellular networks: many users, small and large cells, one spectrum.

mod batch;
mod channel;
mod config;
mod error;
mod layout;
mod observe;
mod radio;
mod receiver;
mod scenario;
mod snapshot;
pub mod yardsticks;

pub use batch::UaraBatch;
pub use config::{
    Coverage, DynamicsConfig, LayoutConfig, Mask, Parity, Part, PowerUnit, Redraw, Reward, Spread, Start, Tier,
    UaraConfig,
};
pub use error::UaraError;
pub use layout::Layout;
pub use observe::Columns;
pub use radio::{Interference, Link, PathLoss, Radio, dbm_to_mw, mw_to_dbm};
pub use receiver::Receiver;
pub use scenario::Uara;
pub use snapshot::{Outcome, Snapshot};
pub use yardsticks::{Objective, Yardstick};
