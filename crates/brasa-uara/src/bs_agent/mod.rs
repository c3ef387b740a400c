//! A historical scenario: base stations as agents, each of which chooses one of many users.
//!
//! This is the system of the public repository `mayanksonu11/UARA-DRL` (2025), rebuilt from a description of its
//! formulas for comparison with its results. Its name is that of the scenario of this crate, but the problem differs:
//! agents are stations, actions are users, there is no choice of channels, and two links interfere only if they serve
//! the same user.
//!
//! Topology, powers, path losses, fading, demand, rewards, the shared bits as the only observation and the end of
//! episodes are reproduced. Its defects are on by default, because the published numbers contain them;
//! [`BsAgentParity`] switches them off separately. Other defects remain, because without them it would be another
//! system: small cells serve at any distance, a macro cell at 2.8 GHz and small cells at 28 GHz interfere, the distance
//! to small cells is horizontal and may be almost 0, connections last one step, and neither users nor demand are in the
//! observations. The model is not validated: do not draw conclusions about networks from it.

mod baselines;
mod batch;
mod cells;
mod config;
mod loss;
mod scenario;

pub use batch::{BsAgentBatch, BsAgentSimulation};
pub use config::{BsAgentConfig, BsAgentParity};
pub use scenario::BsAgent;
