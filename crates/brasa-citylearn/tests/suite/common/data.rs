//! A small data set of CityLearn, for faults and for quick episodes.
#![allow(clippy::unwrap_used)]

use std::{
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
};

use brasa_citylearn::{District, LoadOptions};
use serde_json::{Value, json};

/// Rows of [`Data`].
pub const ROWS: usize = 240;

/// A small hourly data set of ten days with the names of CityLearn up to 2.1.2; removed on drop.
pub struct Data {
    /// The folder of its `schema.json`.
    pub folder: PathBuf,
}

impl Drop for Data {
    fn drop(&mut self) {
        // A remaining temporary folder is harmless.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Data {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let unique = format!("brasa-faults-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(unique);
        std::fs::create_dir_all(&folder).unwrap();
        let data = Self { folder };
        let mut home = String::from(
            "Month,Hour,Day Type,Equipment Electric Power [kWh],DHW Heating [kWh],Cooling Load [kWh],\
             Heating Load [kWh],Solar Generation [W/kW]\n",
        );
        let mut weather =
            String::from("Outdoor Drybulb Temperature [C],6h Prediction Outdoor Drybulb Temperature [C]\n");
        let (mut pricing, mut carbon) = (String::from("Electricity Pricing [$/kWh]\n"), String::from("kg_CO2/kWh\n"));
        for row in 0..ROWS {
            let hour = row % 24 + 1;
            let sun = if (8..18).contains(&hour) { 500.0 } else { 0.0 };
            home += &format!("7,{hour},{},{},0,0,0,{sun}\n", row / 24 % 7 + 1, 0.5 + (row % 5) as f32 * 0.25);
            weather += &format!("{},{}\n", 20 + row % 10, 21 + row % 10);
            pricing += if hour > 15 { "0.54\n" } else { "0.22\n" };
            carbon += "0.2\n";
        }
        for (name, text) in
            [("Home.csv", home), ("weather.csv", weather), ("pricing.csv", pricing), ("carbon.csv", carbon)]
        {
            std::fs::write(data.folder.join(name), text).unwrap();
        }
        data.schema(|_| ());
        data
    }

    pub fn schema(&self, change: impl FnOnce(&mut Value)) {
        let active = json!({"active": true, "shared_in_central_agent": true});
        let mut schema = json!({
            "root_directory": null,
            "simulation_start_time_step": 0,
            "simulation_end_time_step": ROWS - 1,
            "seconds_per_time_step": 3600,
            "observations": {
                "hour": active, "outdoor_dry_bulb_temperature_predicted_6h": active,
                "electrical_storage_soc": {"active": true, "shared_in_central_agent": false},
            },
            "actions": {"cooling_storage": {"active": false}, "electrical_storage": {"active": true}},
            "buildings": {"Home": {
                "include": true, "energy_simulation": "Home.csv", "weather": "weather.csv",
                "carbon_intensity": "carbon.csv", "pricing": "pricing.csv",
                "inactive_observations": [], "inactive_actions": [],
                "electrical_storage": {"type": "citylearn.energy_model.Battery", "autosize": false, "attributes":
                    {"capacity": 6.4, "nominal_power": 5.0, "efficiency": 0.9, "loss_coefficient": 0.0}},
                "pv": {"type": "citylearn.energy_model.PV", "autosize": false, "attributes": {"nominal_power": 4.0}},
            }},
        });
        change(&mut schema);
        std::fs::write(self.folder.join("schema.json"), schema.to_string()).unwrap();
    }

    /// Changes the schema as it is.
    pub fn edit(&self, change: impl FnOnce(&mut Value)) {
        let path = self.folder.join("schema.json");
        let mut schema = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        change(&mut schema);
        std::fs::write(path, schema.to_string()).unwrap();
    }

    pub fn home(&self, change: impl FnOnce(&mut Value)) -> &Self {
        self.schema(|schema| change(&mut schema["buildings"]["Home"]));
        self
    }

    /// Replaces the first `from` after row `row` of a file.
    pub fn replace(&self, file: &str, from: &str, to: &str) -> &Self {
        let path = self.folder.join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "nothing to replace in {file}");
        std::fs::write(path, text.replacen(from, to, 1)).unwrap();
        self
    }

    pub fn load(&self) -> Result<District, String> {
        District::load(self.folder.to_str().unwrap(), LoadOptions::default()).map_err(|error| error.to_string())
    }

    #[track_caller]
    pub fn refused(&self, parts: &[&str]) {
        let error = self.load().map(|_| ()).expect_err("the data must be refused");
        for part in parts {
            assert!(error.contains(part), "`{error}` does not say `{part}`");
        }
    }
}
