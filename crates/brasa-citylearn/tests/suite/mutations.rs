//! Readers of data sets survive broken files: no panic, no endless loop, no memory without end.
#![allow(clippy::unwrap_used)]

use std::fmt::Write;
use std::path::Path;

use brasa_citylearn::{District, LoadOptions};
use brasa_test::{memory::Counting, mutate::hold_reader};

#[global_allocator]
static MEMORY: Counting = Counting::new();

/// Files of each reader where nobody asks for a million.
const FEW: u64 = 3000;
/// Hours of the data; two days keep a reader busy for some 100 us.
const ROWS: usize = 48;

const SCHEMA: &str = r#"{
  "root_directory": null, "random_seed": 7, "simulation_start_time_step": 0, "simulation_end_time_step": 47,
  "seconds_per_time_step": 3600,
  "observations": {
    "hour": {"active": true, "shared_in_central_agent": true},
    "outdoor_dry_bulb_temperature": {"active": true, "shared_in_central_agent": true},
    "electrical_storage_soc": {"active": true, "shared_in_central_agent": false}
  },
  "actions": {"electrical_storage": {"active": true}},
  "buildings": {
    "Home": {
      "include": true, "energy_simulation": "Home.csv", "weather": "weather.csv", "carbon_intensity": "carbon.csv",
      "pricing": "pricing.csv", "inactive_observations": [], "inactive_actions": [],
      "electrical_storage": {"type": "citylearn.energy_model.Battery", "autosize": false, "attributes":
        {"capacity": 6.4, "nominal_power": 5.0, "efficiency": 0.9, "loss_coefficient": 0.0, "depth_of_discharge": 0.8,
         "power_efficiency_curve": [[0, 0.83], [0.5, 0.9], [1, 0.85]]}},
      "pv": {"type": "citylearn.energy_model.PV", "autosize": false, "attributes": {"nominal_power": 4.0}}
    }
  }
}"#;

fn write_data(folder: &Path) -> String {
    let mut home = String::from(
        "month,hour,day_type,non_shiftable_load,dhw_demand,cooling_demand,heating_demand,solar_generation\n",
    );
    let mut weather = String::from("outdoor_dry_bulb_temperature\n");
    for row in 0..ROWS {
        let hour = row % 24 + 1;
        let sun = if (8..18).contains(&hour) { 500.0 } else { 0.0 };
        writeln!(home, "7,{hour},{},{},0,0,0,{sun}", row / 24 + 1, 0.5 + (row % 5) as f32 * 0.25).unwrap();
        writeln!(weather, "{}.5", 20 + row % 10).unwrap();
    }
    let files = [
        ("schema.json", SCHEMA.to_owned()),
        ("Home.csv", home.clone()),
        ("weather.csv", weather),
        ("pricing.csv", "electricity_pricing\n".to_owned() + &"0.22\n".repeat(ROWS)),
        ("carbon.csv", "carbon_intensity\n".to_owned() + &"0.2\n".repeat(ROWS)),
    ];
    files.iter().for_each(|(name, text)| std::fs::write(folder.join(name), text).unwrap());
    home
}

/// Holds the reader of a data set of which one file is changed.
fn hold(reader: &str, file: &str, text: &str, folder: &Path) {
    hold_reader(reader, &[text.as_bytes().to_vec()], &MEMORY, FEW, |bytes| {
        std::fs::write(folder.join(file), bytes).unwrap();
        District::load(folder.to_str().unwrap(), LoadOptions::default()).map(|district| {
            assert!((2..=ROWS * 60).contains(&district.n_rows()) && !district.buildings().is_empty());
            assert!(!district.buildings().iter().any(|building| building.name.contains(char::is_control)));
        })
    });
}

#[test]
fn citylearn_schema() {
    let folder = tempfile::tempdir().unwrap();
    write_data(folder.path());
    hold("CityLearn schema", "schema.json", SCHEMA, folder.path());
}

#[test]
fn csv() {
    let folder = tempfile::tempdir().unwrap();
    let home = write_data(folder.path());
    hold("CSV", "Home.csv", &home, folder.path());
}
