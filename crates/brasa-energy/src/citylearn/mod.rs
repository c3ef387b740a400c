//! CityLearn districts: data, physics, rewards, indicators and rule-based controllers.
//!
//! Homes with a battery and PV behind one meter each, a tariff and a grid whose carbon changes by the hour. An
//! agent sees the whole district and steers every battery. Three sets of rules: CityLearn 2.5.0 and 3.0.2, number
//! for number, and clean ones. Data sets are CityLearn's own, a `schema.json` and its CSV files, in the names of
//! either generation; what this module does not model is refused by name.
//!
//! Nothing here knows thermal devices, vehicles, outages or building dynamics.

mod battery;
mod curve;
mod lanes;
mod sampling;

mod files;
mod schema;
mod table;

mod district;
mod observation;
mod world;

mod config;
mod rules;

mod batch;
mod controllers;
mod indicators;
mod recording;
mod scenario;

pub use batch::CityLearnBatch;
pub use battery::{Battery, BatteryState};
pub use config::{ChallengeWeights, CityLearnConfig, Observations, Physics, Reward};
pub use curve::Curve;
pub use district::{Building, District, LoadOptions};
pub use indicators::{BuildingFigure, BuildingIndicators, Indicators, Pair};
pub use recording::Recording;
pub use sampling::{DeviceDraw, device_seed};
pub use scenario::CityLearn;
