//! Invalid data sets and settings: each must be rejected with a message that names the location.
#![allow(clippy::unwrap_used)]

use crate::common;

use brasa_citylearn::Trace;
use brasa_citylearn::{ChallengeWeights, CityLearn, CityLearnConfig, District, LoadOptions, Physics};
use brasa_env::Who;
use brasa_test::outcomes::{ledger, play, trace};
use common::data::{Data, ROWS};
use serde_json::{Value, json};

#[test]
fn old_names_are_understood() {
    let data = Data::new();
    let district = data.load().unwrap();
    assert_eq!((district.n_rows(), district.buildings().len()), (ROWS, 1));
    let config = CityLearnConfig { data: data.folder.to_str().unwrap().into(), ..CityLearnConfig::default() };
    let scenario = CityLearn::new(config).unwrap();
    let outcome = play(&scenario, Who::Baseline("idle"), 0);
    assert_eq!(trace::<Trace>(&outcome).load_kw.len(), ROWS);
    assert_eq!(ledger(&outcome, "pv_available_kwh"), 10.0 * 10.0 * 2.0);

    // A single row in the middle is a valid part of the data set.
    data.schema(|schema| {
        schema["simulation_start_time_step"] = json!(24);
        schema["simulation_end_time_step"] = json!(71);
    });
    assert_eq!(data.load().unwrap().n_rows(), 48);
}

/// Prices below zero have a scale, too; a home that imports nothing has none, which is an error where a weight needs it.
#[test]
fn terms_without_a_scale_are_refused_and_negative_prices_have_one() {
    let returns = |data: &Data, cost: f64| {
        let weights =
            ChallengeWeights { cost, carbon: 0.0, ramping: 0.0, daily_peak: 0.0, ..ChallengeWeights::default() };
        let data = data.folder.to_str().unwrap().to_owned();
        let reward = brasa_citylearn::Reward::Challenge;
        let scenario = CityLearn::new(CityLearnConfig { data, weights, reward, ..CityLearnConfig::default() })?;
        Ok::<_, brasa_citylearn::EnergyError>(play(&scenario, Who::Baseline("idle"), 0).episode_return.unwrap())
    };
    let data = Data::new();
    let paid = returns(&data, 1.0).unwrap();
    let path = data.folder.join("pricing.csv");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("\n0.", "\n-0.")).unwrap();
    let earned = returns(&data, 1.0).unwrap();
    assert!((earned + paid).abs() < 1e-3 && paid < -100.0, "{paid} {earned}");
    // The load is 0, and nothing is imported.
    let path = data.folder.join("Home.csv");
    let text = std::fs::read_to_string(&path).unwrap();
    let without_load = |line: &str| {
        let mut cells: Vec<&str> = line.split(',').collect();
        cells[3] = if cells[0] == "7" { "0" } else { cells[3] };
        cells.join(",") + "\n"
    };
    let empty: String = text.lines().map(without_load).collect();
    std::fs::write(&path, empty).unwrap();
    let error = returns(&data, 1.0).err().unwrap().to_string();
    assert_eq!(
        error,
        "`weights.cost` must be 0 for data without any of it without storage, the scale of this term, got 1"
    );
}

#[test]
fn missing_files_and_columns_are_named() {
    Data::new().home(|home| home["pricing"] = json!("tariff.csv")).refused(&["tariff.csv"]);
    Data::new().replace("Home.csv", "Solar Generation [W/kW]", "Sun").refused(&[
        "Home.csv",
        "no column `solar_generation`",
        "`Solar Generation [W/kW]`",
    ]);
    let nowhere = CityLearnConfig { data: "nowhere/schema.json".into(), ..CityLearnConfig::default() };
    assert!(CityLearn::new(nowhere).err().unwrap().to_string().contains("nowhere/schema.json"));
}

#[test]
fn bad_cells_are_named_with_row_and_column() {
    // Row 3 of the file is the second row of data.
    Data::new().replace("Home.csv", "7,2,1,0.75", "7,2,1,much").refused(&[
        "Home.csv",
        "row 3",
        "`Equipment Electric Power [kWh]`",
        "must be a number",
        "`much`",
    ]);
    Data::new().replace("Home.csv", "7,2,1,0.75", "7,2,1,NaN").refused(&["row 3", "must be finite"]);
    Data::new().replace("Home.csv", "7,2,1,0.75", "7,2,1,-4").refused(&["row 3", "must be in [0,", "`-4`"]);
    Data::new().replace("Home.csv", "7,2,1,0.75,0,0,0,0", "7,2,1").refused(&["row 3", "must be a number", "``"]);
    Data::new().replace("carbon.csv", "\n0.2", "\n200").refused(&["carbon.csv", "row 2", "[0, 2]", "`200`"]);
}

#[test]
fn pv_a_thousand_times_too_small_or_large_is_refused() {
    // kWh per kWp instead of W per kW.
    let data = Data::new();
    let path = data.folder.join("Home.csv");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace(",500\n", ",0.5\n")).unwrap();
    data.refused(&["Home", "W per kW", "1.825 kWh per kWp", "accept_unlikely_pv"]);
    let options = LoadOptions { accept_unlikely_pv: true, ..LoadOptions::default() };
    District::load(data.folder.to_str().unwrap(), options).unwrap();
    std::fs::write(&path, text.replace(",500\n", ",500000\n")).unwrap();
    data.refused(&["W per kW"]);
}

#[test]
fn features_that_are_not_modelled_are_refused_by_name() {
    let cases: [(&str, Value); 5] = [
        ("occupant", json!({"type": "x"})),
        ("type", json!("citylearn.building.LogisticRegressionOccupantInteractionBuilding")),
        ("noise_std", json!(0.1)),
        ("escalators", json!({"E1": {"simulation": "trains.csv"}})),
        ("electrical_service", json!({"phases": 3})),
    ];
    for (key, value) in cases {
        let named = if key == "type" { "OccupantInteractionBuilding" } else { key };
        Data::new().home(|home| home[key] = value).refused(&["schema.json", "`Home`", named, "not modeled"]);
    }
    Data::new().home(|home| home["pv"]["autosize"] = json!(true)).refused(&[
        "`Home.pv`",
        "autosize",
        "PySAM",
        "`autosize` to false with `attributes.nominal_power` in kW",
    ]);
    let data = Data::new();
    data.schema(|schema| schema["community_market"] = json!({"enabled": true}));
    data.refused(&["`community_market`", "not modeled"]);
    data.schema(|schema| schema["community_market"] = json!({"enabled": false}));
    data.load().unwrap();
    let data = Data::new();
    data.schema(|schema| schema["actions"]["heating_device"] = json!({"active": true}));
    data.refused(&["`Home`", "`heating_device`"]);
    let data = Data::new();
    data.schema(|schema| {
        schema["observations"]["indoor_co2"] = json!({"active": true, "shared_in_central_agent": false});
    });
    data.refused(&["`Home`", "`indoor_co2`"]);
    Data::new().replace("Home.csv", "0.75,0,0,0", "0.75,0,1.5,0").refused(&["`Home`", "`cooling_demand`"]);
    let outages = |model: Value| json!({"simulate_power_outage": true, "stochastic_power_outage": true, "stochastic_power_outage_model": model});
    let own = json!({"type": "own.Outages", "attributes": {}});
    Data::new().home(|home| home["power_outage"] = outages(own)).refused(&["`Home.power_outage", "`own.Outages`"]);
    let unseeded = json!({"type": "citylearn.power_outage.ReliabilityMetricsPowerOutage", "attributes": {}});
    Data::new().home(|home| home["power_outage"] = outages(unseeded)).refused(&["`random_seed`"]);
    let dynamics = json!({"type": "citylearn.dynamics.LSTMDynamics"});
    Data::new().home(|home| home["dynamics"] = dynamics).refused(&["`Home`", "`dynamics`", "citylearn.Building"]);
    let boiler = json!({"type": "own.Boiler", "attributes": {}});
    Data::new().home(|home| home["dhw_device"] = boiler).refused(&["`Home.dhw_device`", "`own.Boiler`"]);
    let sized = json!({"type": "citylearn.energy_model.HeatPump", "autosize": true, "autosize_attributes": {"margin": 2},
        "attributes": {}});
    Data::new().home(|home| home["cooling_device"] = sized).refused(&["`margin`"]);
}

#[test]
fn what_is_switched_off_is_accepted() {
    let data = Data::new();
    data.home(|home| {
        home["chargers"] = json!({});
        home["dynamics"] = Value::Null;
        home["power_outage"] = json!({"simulate_power_outage": false, "stochastic_power_outage": false});
        home["cooling_device"] =
            json!({"type": "citylearn.energy_model.HeatPump", "attributes": {"nominal_power": 0.0}});
        home["dhw_storage"] = json!({"type": "citylearn.energy_model.StorageTank", "attributes": {"capacity": 3.0}});
    });
    data.load().unwrap();
}

#[test]
fn batteries_outside_their_ranges_are_refused() {
    let cases = [
        ("initial_soc", json!(1.2), "[0, 1]"),
        ("efficiency", json!(0.0), "(0, 1]"),
        ("efficiency", json!("high"), "must be a number"),
        ("nominal_power", json!(0.0), "must be in (0, 1000000000]"),
        ("capacity", json!(-1.0), "must be in [0, 1000000000]"),
        ("depth_of_discharge", json!(80), "[0, 1]"),
        ("power_efficiency_curve", json!([[0.0, 0.9], [0.8, 0.9]]), "from 0 to 1"),
        ("capacity_power_curve", json!([0.0, 1.0]), "list of pairs"),
    ];
    for (key, value, rule) in cases {
        Data::new().home(|home| home["electrical_storage"]["attributes"][key] = value).refused(&[
            "Home.electrical_storage",
            key,
            rule,
        ]);
    }
}

#[test]
fn rows_and_steps_must_fit() {
    let data = Data::new();
    data.schema(|schema| schema["simulation_end_time_step"] = json!(8759));
    data.refused(&["has 240 rows", "8760"]);
    let data = Data::new();
    data.schema(|schema| schema["seconds_per_time_step"] = json!(900));
    data.refused(&["`seconds_per_time_step`", "3600 s", "900"]);
    for key in ["simulation_start_time_step", "simulation_end_time_step", "seconds_per_time_step"] {
        data.schema(|schema| schema[key] = Value::Null);
        data.refused(&[&format!("`{key}` must be "), "got null"]);
    }
    data.schema(|schema| drop(schema.as_object_mut().unwrap().remove("simulation_end_time_step")));
    data.refused(&["`simulation_end_time_step` must be the last row", "got none"]);
    let data = Data::new();
    std::fs::write(data.folder.join("schema.json"), "{").unwrap();
    data.refused(&["schema.json", "line 1"]);
}

#[test]
fn settings_are_refused_with_their_rule() {
    let refuse = |config: CityLearnConfig| CityLearn::new(config).err().unwrap().to_string();
    let default = CityLearnConfig::default;
    assert_eq!(
        refuse(CityLearnConfig { episode_steps: Some(8760), physics: Physics::CityLearn30, ..default() }),
        "`episode_steps` must be at most 8759, the steps in the data, got 8760"
    );
    assert_eq!(
        refuse(CityLearnConfig { episode_steps: Some(0), ..default() }),
        "`episode_steps` must be at least 1, got 0"
    );
    assert_eq!(
        refuse(CityLearnConfig { random_start: true, ..default() }),
        "`random_start` needs `episode_steps`, got true"
    );
    let weights = ChallengeWeights { carbon: 1.0, ..ChallengeWeights::default() };
    let reward = brasa_citylearn::Reward::GridImport;
    assert_eq!(
        refuse(CityLearnConfig { weights, reward, ..default() }),
        "`weights` must be left out unless `reward` is \"challenge\" or \"challenge-improvement\", as no other has weights, \
         got `reward = \"grid-import\"`"
    );
    let weights = ChallengeWeights { carbon: -1.0, ..ChallengeWeights::default() };
    assert_eq!(refuse(CityLearnConfig { weights, ..default() }), "`weights.carbon` must be from 0 to 1000000, got -1");
    for text in [r#"{"physic": "clean"}"#, r#"{"physics": "citylearn-2.6"}"#] {
        assert!(serde_json::from_str::<CityLearnConfig>(text).is_err(), "{text}");
    }
    let config: CityLearnConfig =
        serde_json::from_str(r#"{"physics": "citylearn-2.5", "reward": "grid-import"}"#).unwrap();
    assert_eq!(config.physics, Physics::CityLearn25);
}

/// What is switched by a word that is none of the two is refused, as either reading would be wrong for somebody.
#[test]
fn switches_are_true_or_false() {
    let data = Data::new();
    data.home(|home| home["include"] = json!("yes")).refused(&["`Home.include` must be true or false, got \"yes\""]);
    data.home(|home| home["pv"]["autosize"] = json!(1)).refused(&["`Home.pv.autosize` must be true or false, got 1"]);
    data.schema(|schema| schema["observations"]["hour"]["active"] = json!("no"));
    data.refused(&["`observations.hour.active` must be true or false, got \"no\""]);
    data.schema(|schema| schema["actions"]["electrical_storage"]["active"] = json!("true"));
    data.refused(&["`actions.electrical_storage.active` must be true or false, got \"true\""]);
    // Without a word everything is included, and null is no.
    data.home(|home| drop(home.as_object_mut().unwrap().remove("include")));
    assert_eq!(data.load().unwrap().buildings().len(), 1);
    data.home(|home| home["include"] = Value::Null).refused(&["has no building to include"]);
}

/// More rows than there are, and half a row, are refused before there is memory for them.
#[test]
fn rows_that_are_not_there_take_no_memory() {
    let data = Data::new();
    data.schema(|schema| schema["simulation_end_time_step"] = json!(1e9));
    data.refused(&["Home.csv", "has 240 rows, but the schema asks for 1000000001"]);
    for (value, got) in [(json!(0.5), "0.5"), (json!(-1), "-1"), (json!(1e300), "1000")] {
        data.schema(|schema| schema["simulation_end_time_step"] = value);
        data.refused(&["`simulation_end_time_step` must be a whole number from 0 to 4294967295, got ", got]);
    }
    data.schema(|schema| schema["simulation_start_time_step"] = json!(0.5));
    data.refused(&["`simulation_start_time_step` must be a whole number"]);
    data.schema(|schema| schema["random_seed"] = json!(-3));
    data.refused(&["`random_seed` must be a whole number"]);
    Data::new().replace("Home.csv", "7,2,1,0.75", "7,2,1,1e30").refused(&["row 3", "must be in [0, 1000000000]"]);
}

/// Spreadsheets put a byte order mark in front of what they write.
#[test]
fn byte_order_marks_are_skipped() {
    let data = Data::new();
    let plain = data.load().unwrap();
    for file in ["schema.json", "Home.csv", "weather.csv", "pricing.csv", "carbon.csv"] {
        let path = data.folder.join(file);
        let marked = [b"\xef\xbb\xbf", std::fs::read(&path).unwrap().as_slice()].concat();
        std::fs::write(path, marked).unwrap();
    }
    assert_eq!(data.load().unwrap(), plain);
}

/// Names end up on terminals and pages, which obey control characters.
#[test]
fn names_command_no_terminal() {
    let data = Data::new();
    data.schema(|schema| {
        let home = schema["buildings"]["Home"].take();
        schema["buildings"] = json!({"Home\u{1b}[31m": home});
    });
    data.refused(&["must be a name without control characters", "Home\\u{1b}[31m"]);
    data.schema(|schema| schema["observations"]["so\u{7f}c"] = json!({"active": true}));
    data.refused(&["must be a name without control characters", "so\\u{7f}c"]);
    data.home(|home| home["weather"] = json!("\u{1b}]0;title\u{7}.csv"));
    data.refused(&["`Home.weather` must hold no control characters"]);
    Data::new().replace("Home.csv", "7,2,1,0.75", "7,2,1,\u{1b}[2J").refused(&["row 3", "`\\u{1b}[2J`"]);
}
