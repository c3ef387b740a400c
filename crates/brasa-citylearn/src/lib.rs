//! CityLearn districts: data, physics, rewards, indicators and rule-based controllers.
//!
//! Each home has a battery, PV, heat pumps, thermal storages and chargers of vehicles behind one meter; the district has a tariff and an hourly carbon
//! intensity. One agent observes the whole district and controls all batteries and chargers. There are three sets of
//! rules: CityLearn 2.5.0 and 3.0.2, number for number, and clean ones. Data sets are CityLearn's, a `schema.json` and
//! its CSV files, with the names of both generations; features that are not modeled are errors that name them.
//!
//! Indoor temperatures follow CityLearn's recurrent networks.
//!
//! Environments step on the host, as struct of arrays. Only the feature `tensor` depends on tensors, and nothing depends on learners.
//!
//! ```
//! use brasa_citylearn::{CityLearn, CityLearnConfig};
//! use brasa_env::{Evaluation, Scenario, Who};
//!
//! // A year of the embedded district with a rule, relative to the district without storage.
//! let district = CityLearn::new(CityLearnConfig::default())?;
//! let year = &district.evaluate(Who::Baseline("rule-based"), &Evaluation::new(1, 1))?[0];
//! let cost = year.figure(&district.figures(), "cost").and_then(|figure| figure.ratio);
//! assert!(cost < Some(1.0), "{cost:?}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod battery;
mod curve;
mod fleet;
mod lanes;
mod sampling;

mod files;
mod import;
mod schema;
mod schema_dynamics;
mod schema_thermal;
mod schema_vehicles;
mod section;
mod sizing;
mod table;

mod chargers;
mod dates;
mod district;
mod dynamics;
mod home_batch;
mod home_data;
mod homes;
mod limits;
mod lstm;
mod machines;
mod observation;
mod outages;
mod plugs;
mod thermal;
mod vehicles;
mod world;

mod config;
mod rewards;
mod rules;

mod batch;
mod clock;
mod comfort;
mod controllers;
mod episodes;
#[cfg(feature = "optimum")]
mod foresight;
mod indicators;
mod recording;
mod scenario;
#[cfg(feature = "tensor")]
mod tensor;

pub use batch::CityLearnBatch;
pub use battery::{Battery, BatteryState};
#[cfg(feature = "optimum")]
pub use brasa_power::Optimum;
pub use brasa_power::{EnergyError, Ledger, Trace, TraceStart};
pub use comfort::{Comfort, ComfortFigure};
pub use config::{ChallengeWeights, CityLearnConfig, Observations, Physics, Reward};
pub use curve::Curve;
pub use district::{Building, District, LoadOptions};
pub use import::{Imported, data_sets, import};
pub use indicators::{BuildingFigure, BuildingIndicators, Indicators, Pair};
pub use recording::Recording;
pub use sampling::{DeviceDraw, device_seed};
pub use scenario::CityLearn;
#[cfg(feature = "tensor")]
pub use tensor::{CityLearnTensors, TensorCityLearn};
pub use vehicles::{Charger, Vehicle};
