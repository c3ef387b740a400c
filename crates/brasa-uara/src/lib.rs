//! User association and channel allocation in cellular networks: many users, small and large cells, one spectrum.
//!
//! # Networks
//!
//! A [`Uara`] constructs environments from a [`UaraConfig`]: [`UaraConfig::physical`], the default,
//! [`UaraConfig::cly2020`] and [`UaraConfig::zhao2019`]. [`BsAgentBatch`] is another published system, in which
//! stations choose users.
//!
//! # Baselines
//!
//! A [`Snapshot`] is a network at one time; [`Snapshot::outcome`] is the result of a joint choice. The heuristics of
//! [`baselines`] compute joint choices, [`baselines::upper_bound`] bounds all of them, and [`exploration_floor`] is the
//! result of a joint choice with exploration.
//!
//! ```
//! use brasa_env::{Evaluation, Scenario, Who};
//! use brasa_uara::{Uara, UaraConfig};
//!
//! // Thirty users on one layout: the greedy planner satisfies all of them in the first step.
//! let scenario = Uara::new(UaraConfig::cly2020())?;
//! let outcome = &scenario.evaluate(Who::Baseline("greedy"), &Evaluation::new(1, 0))?[0];
//! let satisfied = outcome.figure(&scenario.figures(), "qos_rate").and_then(|figure| figure.value);
//! assert_eq!((outcome.length, satisfied), (1, Some(1.0)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod baselines;
mod batch;
mod bs_agent;
mod channel;
mod config;
mod episode;
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
#[cfg(feature = "tensor")]
pub mod tensor;
mod trace;
mod uara;

pub use baselines::{Heuristic, Objective};
pub use batch::{UaraBatch, UaraSimulation};
pub use bs_agent::{BsAgent, BsAgentBatch, BsAgentConfig, BsAgentParity, BsAgentSimulation};
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
pub use snapshot::{Outcome, Snapshot};
pub use trace::{Frame, Trace};
pub use uara::Uara;
