//! A historical scenario: base stations as agents, each of which chooses one of many users.
//!
//! This is the system of the public repository `mayanksonu11/UARA-DRL` (2025), rebuilt from a description of its formulas, so
//! that what was learned there can be set beside what is learned here. It carries the same name as the scenario of this
//! crate and is another problem: agents are stations, actions are users, there are no channels to choose, and two links
//! disturb each other only if they serve the same user.
//!
//! Reproduced are topology, powers, path losses, fading, demand, rewards, the shared bits as the only observation and the
//! end of episodes. Its defects are kept by default, as the numbers that were published contain them;
//! [`BsAgentParity`] switches off those that can be, one by one. These stay, as without them it would be another system:
//! small cells serve at any distance, a macro cell at 2.8 GHz and small cells at 28 GHz disturb each other, the distance to
//! small cells is flat and may be almost 0, connections last one step, and neither users nor demand are in the observations.
//! It adds no validated science: do not draw conclusions about networks from it.

mod batch;
mod cells;
mod config;
mod loss;
mod scenario;

pub use batch::BsAgentBatch;
pub use config::{BsAgentConfig, BsAgentParity};
pub use scenario::BsAgent;
