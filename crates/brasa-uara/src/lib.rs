//! User association and channel allocation in cellular networks: many users, small and large cells, one spectrum.

mod batch;
mod bs_agent;
mod channel;
mod config;
mod error;
mod floor;
mod layout;
mod networks;
mod observe;
mod radio;
mod receiver;
mod reward;
mod scenario;
mod snapshot;
mod trace;
pub mod yardsticks;

pub use batch::UaraBatch;
pub use bs_agent::{BsAgentBatch, BsAgentConfig, BsAgentParity};
pub use config::{
    Candidates, Coverage, DynamicsConfig, LayoutConfig, Parity, Part, PowerUnit, Redraw, Reward, Spread, Start, Tier,
    UaraConfig,
};
pub use error::UaraError;
pub use floor::{Floor, exploration_floor};
pub use layout::Layout;
pub use observe::Columns;
pub use radio::{Interference, Link, PathLoss, Radio, dbm_to_mw, mw_to_dbm};
pub use receiver::Receiver;
pub use scenario::{Control, Played, PolicyFn, Uara};
pub use snapshot::{Outcome, Snapshot};
pub use trace::{Frame, Trace};
pub use yardsticks::{Objective, Yardstick};
