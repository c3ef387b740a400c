//! What a program registers: scenarios, algorithms, networks and sections of reports.

mod algorithm;
mod network;
mod scenario;

pub use algorithm::{Algorithm, Algorithms, Plan, PolicyContext, Sections};
pub use network::{NetworkContext, NetworkKind, NetworkPlan, Networks};
pub use scenario::{Remark, RemarkContext, ScenarioEntry};
