//! The Iquitos microgrid: PV, a battery, a mall and 128 sockets for light electric vehicles.
//!
//! The sizes are from a public study of a shopping center in Iquitos, Peru, an island grid run on thermal power. No
//! files are read: every series is a closed form or is sampled from the random stream of (seed, environment, episode).
//! [`IquitosConfig`] has the settings; [`Iquitos`] has training batches and the rule-based controllers.

mod batch;
mod config;
mod controllers;
mod data;
mod dispatch;
#[cfg(feature = "optimum")]
mod foresight;
mod observe;
#[cfg(feature = "optimum")]
mod planner;
mod profiles;
mod reward;
mod reward_config;
mod scenario;
#[cfg(feature = "optimum")]
mod sessions;
mod site;
#[cfg(feature = "tensor")]
pub mod tensor;
mod validate;
mod vehicles;
mod world;

use crate::solar;

pub use batch::{IquitosBatch, IquitosSimulation};
pub use config::{
    ActionMode, ArrivalModel, BatteryConfig, FileConfig, GridConfig, IquitosConfig, MallConfig, ObservationMode,
    PvConfig, PvModel, RewardConfig, RewardKind, SocketActions, VehicleClass, VehicleConfig,
};
pub use dispatch::Flows;
#[cfg(feature = "optimum")]
pub use foresight::Objective;
pub use scenario::Iquitos;
