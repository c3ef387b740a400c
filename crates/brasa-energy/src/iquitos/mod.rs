//! The Iquitos microgrid: PV, a battery, a mall and 128 sockets for light electric vehicles.
//!
//! The scenario takes its sizes from a public study of a shopping center in Iquitos, Peru, an island grid run
//! on thermal power. Nothing is read from files: every series is a closed form or drawn from the stream of
//! (seed, environment, episode). [`IquitosConfig`] says what can be chosen, [`Iquitos`] gives batches to train
//! on and plays the controllers that do not learn.

mod batch;
mod config;
mod controllers;
mod dispatch;
mod observe;
mod profiles;
mod reward;
mod scenario;
mod site;
mod solar;
mod validate;
mod vehicles;
mod world;

pub use batch::IquitosBatch;
pub use config::{
    ActionMode, ArrivalModel, BatteryConfig, GridConfig, IquitosConfig, MallConfig, ObservationMode, PvConfig, PvModel,
    RewardConfig, RewardKind, VehicleClass, VehicleConfig,
};
pub use dispatch::Flows;
pub use scenario::Iquitos;
