//! Registries of a program: scenarios, algorithms, networks and sections of reports.

mod algorithm;
mod command;
mod network;
mod scenario;
mod settings;
mod size;
mod template;
mod tensor_form;

pub(crate) use algorithm::OFF_POLICY;
pub use algorithm::{Algorithm, Algorithms, Plan, PolicyContext, ReplayLearner, RolloutLearner, Sections, Settings};
pub use command::ExtraCommand;
pub(crate) use network::Networks;
pub use network::{NetworkContext, NetworkKind, NetworkPlan};
pub use scenario::{Remark, RemarkContext, ScenarioEntry};
pub use settings::NoSettings;
pub(crate) use settings::{Described, Setting};
pub use size::{Size, SizeOf};
pub use template::Template;
pub use tensor_form::{BoxedEnv, ExperimentObs, MakeEnv, TensorForm};
