//! Districts, the microgrid and charging stations.

mod data;
mod power;

use brasa_citylearn::{CityLearn, CityLearnConfig};
use brasa_energy::iquitos::{Iquitos, IquitosConfig};
use brasa_energy::station::{Station, StationConfig};
use brasa_experiment::{Registry, ScenarioEntry};

pub fn register(registry: &mut Registry) {
    registry.command(data::command());
    let citylearn =
        ScenarioEntry::new("citylearn", CityLearn::new).reward(&["reward", "weights"]).section(power::section("idle"));
    #[cfg(feature = "tensor")]
    let citylearn = citylearn
        .tensor(|district: &CityLearn, device| district.tensors(device).map(|(tensors, steps)| (tensors, Some(steps))));
    registry.scenario(citylearn);
    let iquitos =
        ScenarioEntry::new("iquitos", Iquitos::new).reward(&["reward"]).section(power::section("uncontrolled"));
    #[cfg(feature = "tensor")]
    let iquitos = iquitos
        .tensor(|microgrid: &Iquitos, device| microgrid.tensors(device).map(|(tensors, steps)| (tensors, Some(steps))));
    registry.scenario(iquitos);
    let station = ScenarioEntry::new("station", Station::new).reward(&["reward"]);
    registry.scenario(station.section(power::section("uncontrolled")));
    registry.settings::<CityLearnConfig>(
        "scenario.citylearn",
        "Batteries, storages and vehicles of a district of buildings, as in CityLearn",
    );
    registry.settings::<IquitosConfig>(
        "scenario.iquitos",
        "A microgrid with PV, a battery and sockets for electric motorcycles",
    );
    registry.settings::<StationConfig>("scenario.station", "A charging station for electric cars with a battery");
    registry.rules("scenario.citylearn", || drop(CityLearnConfig::default().validate()));
    registry.rules("scenario.iquitos", || drop(IquitosConfig::default().validate()));
    registry.rules("scenario.station", || drop(StationConfig::default().validate()));
}
