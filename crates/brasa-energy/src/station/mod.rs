//! A charging station for electric cars: a tree of splitters with limits, AC and DC sockets, random cars, prices, a
//! stationary battery and PV.
//!
//! The problem has the shape of Chargax (Ponse et al., arXiv 2507.01522), so that both can run side by side; equations,
//! profiles and code are independent of it. No files are needed: every series is a closed form or is sampled from the
//! random stream of (seed, environment, episode). One's own prices, PV and sessions come from CSV files. [`StationConfig`] has the settings; [`Station`] has training batches,
//! the rule-based controllers, and what is known of an episode before it is played.

mod arrivals;
mod batch;
mod config;
mod controllers;
mod data;
mod episode;
#[cfg(feature = "optimum")]
mod foresight;
mod ledger;
mod network;
mod observe;
mod presets;
mod profiles;
mod reference;
mod reward;
mod scenario;
mod site;
mod sockets;
#[cfg(feature = "optimum")]
mod stays;
mod validate;
mod world;

pub use batch::{StationBatch, StationSimulation};
pub use config::{
    ActionMode, ArrivalConfig, BatteryConfig, CarModel, LimitMode, NodeConfig, PlaceKind, PriceConfig, PvConfig,
    RewardConfig, RewardKind, SocketActions, SocketConfig, SocketKind, StationConfig,
};
pub use episode::{Session, StationEpisode};
pub use ledger::StationLedger;
pub use scenario::Station;
pub use world::Flows;
