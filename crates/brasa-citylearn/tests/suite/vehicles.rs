//! Districts with electric vehicles equal recordings of CityLearn 2.5.0 and 3.0.2 (`scripts/record_citylearn_ev.py`),
//! and the clean rules have no defects.
#![allow(clippy::unwrap_used)]

use crate::common;

use std::path::{Path, PathBuf};

use brasa_citylearn::{
    CityLearn, CityLearnConfig, District, Indicators, LoadOptions, Observations, Physics, Recording, Reward,
};
use brasa_env::{BatchSlabs, EnvBatch, Scenario, Space, Who, check_env};
use brasa_test::cases;
use brasa_test::outcomes::{play, value};
use common::golden::{gunzip, names, numbers, record, sine, uniform};
use ndarray::Array2;
use proptest::prelude::*;
use serde_json::Value;

const VERSIONS: [(&str, Physics); 2] = [("2.5.0", Physics::CityLearn25), ("3.0.2", Physics::CityLearn30)];

/// Computed in f64 and stored as f32, so roundings may differ by one unit.
const ENERGY_TOLERANCE_KWH: f64 = 4e-6;
const SOC_TOLERANCE: f64 = 1e-6;

fn data() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/citylearn_ev")
}

/// The cut of the data set, with a changed schema.
fn cut(change: impl FnOnce(&mut Value)) -> tempfile::TempDir {
    let folder = common::golden::unpacked(&data());
    let path = folder.path().join("schema.json");
    let mut schema: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let whole = schema.clone();
    without_machines(&mut schema);
    change(&mut schema);
    let schema = if schema["with_machines"] == true { whole } else { schema };
    std::fs::write(&path, schema.to_string()).unwrap();
    folder
}

/// Keeps the washing machine, which most recordings do not have.
fn with_machines(schema: &mut Value) {
    schema["with_machines"] = true.into();
}

/// The outages of the recording: the homes are cut off in eleven rows of 31.
fn with_outages(folder: &Path) {
    for home in ["Building_1", "Building_4", "Building_15"] {
        let path = folder.join(format!("{home}.csv"));
        let text = std::fs::read_to_string(&path).unwrap();
        let mut lines = text.lines();
        let mut changed = format!("{},power_outage\n", lines.next().unwrap());
        for (row, line) in lines.enumerate() {
            changed += &format!("{line},{}\n", u8::from(is_outage(row)));
        }
        std::fs::write(path, changed).unwrap();
    }
}

fn is_outage(row: usize) -> bool {
    (12..23).contains(&(row % 31))
}

fn simulate_outages(schema: &mut Value) {
    for building in schema["buildings"].as_object_mut().unwrap().values_mut() {
        building["power_outage"] = serde_json::json!({"simulate_power_outage": true, "stochastic_power_outage": false});
    }
}

/// The recordings have no washing machines.
fn without_machines(schema: &mut Value) {
    for building in schema["buildings"].as_object_mut().unwrap().values_mut() {
        building.as_object_mut().unwrap().remove("washing_machines");
    }
    for part in ["observations", "actions"] {
        schema[part].as_object_mut().unwrap().retain(|name, _| !name.contains("washing_machine"));
    }
}

fn config(physics: Physics, folder: &Path) -> CityLearnConfig {
    CityLearnConfig {
        data: folder.to_str().unwrap().to_owned(),
        physics,
        // The PV of one home is as good as switched off: 29 kWh per kWp and year.
        accept_unlikely_pv: true,
        reward: Reward::GridImport,
        ..CityLearnConfig::default()
    }
}

struct Golden {
    about: Value,
    /// `[row, net of each building, state of charge of each battery, energy of each charger, vehicle's state of charge]`.
    rows: Array2<f32>,
}

fn golden(run: &str, version: &str) -> Golden {
    let about: Value =
        serde_json::from_slice(&std::fs::read(data().join(format!("{run}-{version}.json"))).unwrap()).unwrap();
    assert_eq!(about["citylearn"], version);
    let bytes = gunzip(&data().join(format!("{run}-{version}.bin.gz")));
    let values: Vec<f32> = bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    let steps = about["steps"].as_u64().unwrap() as usize;
    let width =
        2 * names(&about["buildings"]).len() + names(&about["chargers"]).len() + names(&about["vehicles"]).len();
    Golden { about, rows: Array2::from_shape_vec((steps, width), values).unwrap() }
}

/// Compares every recorded row; vehicles only where they are connected, as the others drift at random in 2.5.
fn compare(golden: &Golden, recording: &Recording, scenario: &CityLearn, physics: Physics) {
    let about = &golden.about;
    let name = format!("{} of {}", about["run"], about["citylearn"]);
    let (buildings, chargers) = (names(&about["buildings"]).len(), names(&about["chargers"]).len());
    let connected = connected(scenario, golden.rows.nrows());
    let mut worst = [0.0_f64; 4];
    for (step, row) in golden.rows.rows().into_iter().enumerate() {
        let mut check = |kind: usize, ours: f64, column: usize, tolerance: f64| {
            let off = (ours - f64::from(row[column])).abs();
            assert!(off <= tolerance, "{name}: column {column} at step {step} is {ours}, not {}", row[column]);
            worst[kind] = worst[kind].max(off);
        };
        for i in 0..buildings {
            check(0, recording.net_kwh[(step, i)], i, ENERGY_TOLERANCE_KWH);
            check(1, recording.soc[(step, i)], buildings + i, SOC_TOLERANCE);
        }
        for i in 0..chargers {
            check(2, recording.charger_kwh[(step, i)], 2 * buildings + i, ENERGY_TOLERANCE_KWH);
        }
        for i in 0..names(&about["vehicles"]).len() {
            if physics == Physics::CityLearn30 || connected[step].contains(&i) {
                check(3, recording.vehicle_soc[(step, i)], 2 * buildings + chargers + i, SOC_TOLERANCE);
            }
        }
    }
    for (reward, expected) in recording.reward.iter().zip(numbers(&about["first_rewards"])) {
        approx::assert_abs_diff_eq!(f64::from(*reward), expected, epsilon = 1e-4);
    }
    if recording.reward.len() == golden.rows.nrows() {
        let total: f64 = recording.reward.iter().map(|reward| f64::from(*reward)).sum();
        approx::assert_abs_diff_eq!(total, about["return"].as_f64().unwrap(), epsilon = 5e-3);
        for (capacity, expected) in recording.vehicle_capacity_kwh.iter().zip(numbers(&about["capacity_at_end_kwh"])) {
            approx::assert_abs_diff_eq!(*capacity, expected, epsilon = 1e-8);
        }
    }
    println!(
        "{name}: worst net {:.1e} kWh, battery {:.1e}, charger {:.1e} kWh, vehicle {:.1e}",
        worst[0], worst[1], worst[2], worst[3]
    );
}

/// The vehicles that are connected in each row, from the chargers' files.
fn connected(scenario: &CityLearn, n_rows: usize) -> Vec<Vec<usize>> {
    let folder = PathBuf::from(&scenario.config().data);
    let schema: Value = serde_json::from_slice(&std::fs::read(folder.join("schema.json")).unwrap()).unwrap();
    let vehicles: Vec<String> = schema["electric_vehicles_def"].as_object().unwrap().keys().cloned().collect();
    let mut rows = vec![Vec::new(); n_rows];
    for building in schema["buildings"].as_object().unwrap().values() {
        for charger in building["chargers"].as_object().into_iter().flat_map(|chargers| chargers.values()) {
            let file = std::fs::read_to_string(folder.join(charger["charger_simulation"].as_str().unwrap())).unwrap();
            for (row, line) in file.lines().skip(1).take(n_rows).enumerate() {
                let mut cells = line.split(',');
                if cells.next() == Some("1") {
                    let name = cells.next().unwrap();
                    rows[row].push(vehicles.iter().position(|vehicle| vehicle == name).unwrap());
                }
            }
        }
    }
    rows
}

#[test]
fn every_step_of_random_weeks() {
    for (version, physics) in VERSIONS {
        let golden = golden("cut_random", version);
        let folder = cut(|_| {});
        let scenario = CityLearn::new(config(physics, folder.path())).unwrap();
        let recording = record(&scenario, uniform(2.0));
        compare(&golden, &recording, &scenario, physics);
        compare_indicators(&golden, &scenario.indicators(&recording));
    }
}

/// Compares the indicators that districts without thermal demand have; the others are those of empty series.
fn compare_indicators(golden: &Golden, indicators: &Indicators) {
    let rows = indicators.rows();
    let expected = golden.about["indicators"].as_array().unwrap();
    let mut compared = 0;
    for row in &rows {
        let (building, name, value) = row;
        let of = |row: &&Value| row[0] == *building && row[1] == *name;
        let Some(expected) = expected.iter().find(of) else { continue };
        approx::assert_relative_eq!(value.unwrap(), expected[2].as_f64().unwrap(), max_relative = 1e-6);
        compared += 1;
    }
    // Five of the grid, and four for the district and each of three homes.
    assert_eq!(compared, 5 + 4 * 4, "{}", golden.about["citylearn"]);
}

#[test]
fn idle_vehicles_lose_their_energy_only_in_the_old_version() {
    for (version, physics) in VERSIONS {
        let golden = golden("cut_half_idle", version);
        let folder = cut(|_| {});
        let scenario = CityLearn::new(config(physics, folder.path())).unwrap();
        let recording = record(&scenario, uniform(0.5));
        compare(&golden, &recording, &scenario, physics);
    }
    for (physics, keeps) in [(Physics::CityLearn25, false), (Physics::CityLearn30, true), (Physics::Clean, true)] {
        let folder = cut(|_| {});
        let scenario = CityLearn::new(config(physics, folder.path())).unwrap();
        // One step of charging, then nothing.
        let once = |step: usize, _: usize| if step == 0 { 0.5 } else { 0.0 };
        let recording = record(&scenario, once);
        let connected = connected(&scenario, 4);
        for vehicle in &connected[3] {
            let (after, later) = (recording.vehicle_soc[(0, *vehicle)], recording.vehicle_soc[(3, *vehicle)]);
            assert!(after > 0.1);
            assert_eq!(later == after, keeps, "{physics:?}: {after} became {later}");
            assert!(keeps || later == 0.0);
        }
    }
}

#[test]
fn observations_of_the_first_steps() {
    for (version, physics) in VERSIONS {
        let folder = cut(|_| {});
        check_observations(&golden("cut_random", version), physics, folder.path());
        let folder = cut(limit);
        check_observations(&golden("cut_limits", version), physics, folder.path());
    }
}

fn check_observations(golden: &Golden, physics: Physics, folder: &Path) {
    {
        for (kind, key) in [(Observations::Raw, ""), (Observations::Normalized, "normalized_")] {
            let config = CityLearnConfig { observations: kind, ..config(physics, folder) };
            let mut batch = CityLearn::new(config).unwrap().batch(0..1).unwrap();
            let names = names(&golden.about[format!("{key}observation_names")]);
            let Space::Box(space) = batch.spec().obs.clone() else { panic!("observations are a box") };
            let ours: Vec<&str> = space.names.iter().map(|name| name.rsplit('.').next().unwrap()).collect();
            assert_eq!(ours, names);
            let mut slabs = BatchSlabs::new(batch.spec());
            batch.reset(0, &mut slabs).unwrap();
            let n_actions = batch.spec().action.width();
            let mut action = uniform(2.0);
            for (step, expected) in golden.about[format!("{key}observations")].as_array().unwrap().iter().enumerate() {
                for ((got, expected), name) in slabs.obs.row(0).iter().zip(numbers(expected)).zip(&space.names) {
                    let tolerance = 2e-6 * expected.abs().max(1.0);
                    let off = (f64::from(*got) - expected).abs();
                    assert!(off <= tolerance, "{physics:?} {kind:?} {name} at step {step}: {got}, not {expected}");
                }
                let actions = Array2::from_shape_fn((1, n_actions), |(_, i)| action(step, i) as f32);
                batch.step(actions.view(), &mut slabs).unwrap();
            }
        }
    }
}

/// The limits of the home with two chargers in `citylearn_charging_constraints_demo`.
fn limit(schema: &mut Value) {
    schema["buildings"]["Building_15"]["charging_constraints"] = serde_json::json!({
        "building_limit_kw": 12.0,
        "observations": {"headroom": true, "violation": true, "phase_encoding": true},
        "phases": [
            {"name": "phase_a", "limit_kw": 7.0, "chargers": ["charger_15_1"]},
            {"name": "phase_b", "limit_kw": 5.0, "chargers": ["charger_15_2"]},
            {"name": "phase_c", "chargers": []},
        ],
    });
}

/// The violation of each step of random actions, and the recording.
fn limited(physics: Physics, folder: &Path, steps: usize) -> (Vec<f64>, Recording) {
    let scenario = CityLearn::new(config(physics, folder)).unwrap();
    let mut batch = scenario.batch(0..1).unwrap();
    let place = batch.spec().info_names.iter().position(|name| name == "charging_violation_kwh").unwrap();
    let mut slabs = BatchSlabs::new(batch.spec());
    batch.reset(0, &mut slabs).unwrap();
    let mut action = uniform(2.0);
    let violations = (0..steps).map(|step| {
        batch.step(Array2::from_shape_fn((1, 7), |(_, i)| action(step, i) as f32).view(), &mut slabs).unwrap();
        slabs.info[(0, place)]
    });
    (violations.collect(), record(&scenario, uniform(2.0)))
}

#[test]
fn limits_scale_charging_down_and_report_the_violation() {
    for (version, physics) in VERSIONS {
        let golden = golden("cut_limits", version);
        let folder = cut(limit);
        let expected = numbers(&golden.about["violation_kwh"]);
        let (violations, recording) = limited(physics, folder.path(), expected.len());
        compare(&golden, &recording, &CityLearn::new(config(physics, folder.path())).unwrap(), physics);
        for (ours, expected) in violations.iter().zip(&expected) {
            approx::assert_abs_diff_eq!(*ours, *expected, epsilon = 1e-9);
        }
    }
    // Clean: within the limits at every step, and a violation only where a vehicle asked for too much.
    let (folder, free) = (cut(limit), cut(|_| {}));
    let (violations, limited_run) = limited(Physics::Clean, folder.path(), 1500);
    let (none, free_run) = limited(Physics::Clean, free.path(), 1500);
    assert!(none.iter().all(|violation| *violation == 0.0));
    assert!(violations.iter().any(|violation| *violation > 0.1));
    let first = violations.iter().position(|violation| *violation > 0.0).unwrap();
    assert!(first > 0);
    for step in 0..violations.len() {
        let (a, b) = (limited_run.charger_kwh[(step, 2)], limited_run.charger_kwh[(step, 3)]);
        assert!(a <= 7.0 + 1e-9 && b <= 5.0 + 1e-9 && a.max(0.0) + b.max(0.0) <= 12.0 + 1e-9, "{a} and {b} kWh");
        // Until the first violation, nothing is scaled.
        assert!(step >= first || limited_run.charger_kwh.row(step) == free_run.charger_kwh.row(step), "step {step}");
        assert_eq!(limited_run.charger_kwh[(step, 0)], free_run.charger_kwh[(step, 0)], "another home has no limits");
    }
}

#[test]
fn a_washing_machine_runs_once_in_its_window() {
    let folder = cut(with_machines);
    let golden = golden("cut_machine", "2.5.0");
    let physics = Physics::CityLearn25;
    let scenario = CityLearn::new(config(physics, folder.path())).unwrap();
    compare(&golden, &record(&scenario, uniform(2.0)), &scenario, physics);
    check_observations(&golden, physics, folder.path());
    // Clean: with a start at every row, each window adds its first profile once; rows 1 to 3 have 3.157 kWh.
    let scenario = CityLearn::new(config(Physics::Clean, folder.path())).unwrap();
    let always = |on: f64| move |_: usize, column: usize| if column == 2 { on } else { 0.0 };
    let (on, off) = (record(&scenario, always(1.0)), record(&scenario, always(0.0)));
    let added: Vec<f64> = (0..6).map(|step| on.net_kwh[(step, 0)] - off.net_kwh[(step, 0)]).collect();
    for (step, expected) in [0.0, 3.157, 0.0, 0.0, 0.0, 0.0].into_iter().enumerate() {
        approx::assert_abs_diff_eq!(added[step], expected, epsilon = 1e-6);
    }
    assert!(on.flows.iter().all(|flows| flows.bus_residual_kwh().abs() < 1e-9));
    let error = CityLearn::new(config(Physics::CityLearn30, folder.path())).err().unwrap().to_string();
    assert!(error.contains("citylearn-3.0") && error.contains("washing_machine_1"), "{error}");
    check_env(80, |envs| {
        let config = CityLearnConfig { episode_steps: Some(30), ..config(Physics::Clean, folder.path()) };
        Ok(CityLearn::new(config).unwrap().batch(envs)?)
    })
    .unwrap();
    let path = folder.path().join("Washing_Machine_1.csv");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("[3.157]", "[-3]", 1)).unwrap();
    let error = CityLearn::new(config(Physics::Clean, folder.path())).err().unwrap().to_string();
    assert!(error.contains("row 3") && error.contains("load_profile") && error.contains("[-3]"), "{error}");
}

#[test]
fn the_contract_of_environments_holds() {
    for physics in [Physics::Clean, Physics::CityLearn25, Physics::CityLearn30] {
        for random_start in [false, true] {
            let folder = cut(limit);
            let episodes = CityLearnConfig { episode_steps: Some(30), random_start, ..config(physics, folder.path()) };
            let scenario = CityLearn::new(episodes).unwrap();
            check_env(80, |envs| Ok(scenario.batch(envs)?)).unwrap();
            let mut batch = scenario.batch(0..4).unwrap();
            let mut slabs = BatchSlabs::new(batch.spec());
            batch.reset(3, &mut slabs).unwrap();
            for step in 0..90 {
                let actions = Array2::from_shape_fn((4, 7), |(env, i)| ((step * 13 + env * 5 + i * 3) as f32).sin());
                batch.step(actions.view(), &mut slabs).unwrap();
                for row in slabs.obs.rows() {
                    assert!(batch.spec().obs.contains(&row.to_vec()), "{physics:?} step {step}: {row:?}");
                }
            }
        }
    }
}

#[track_caller]
fn refused(change: impl FnOnce(&mut Value), file: Option<(&str, &str, &str)>, parts: &[&str]) {
    let folder = cut(change);
    if let Some((file, from, to)) = file {
        let path = folder.path().join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "nothing to replace in {file}");
        std::fs::write(path, text.replacen(from, to, 1)).unwrap();
    }
    let error = CityLearn::new(config(Physics::Clean, folder.path())).expect_err("it must be refused").to_string();
    for part in parts {
        assert!(error.contains(part), "`{error}` does not say `{part}`");
    }
}

#[test]
fn faults_are_named() {
    let charger = |schema: &mut Value, key: &str, value: Value| {
        schema["buildings"]["Building_1"]["chargers"]["charger_1_1"]["attributes"][key] = value;
    };
    let place = "Building_1.chargers.charger_1_1";
    refused(|s| charger(s, "min_charging_power", 12.0.into()), None, &[place, "min_charging_power", "at most", "12"]);
    refused(|s| charger(s, "efficiency", 1.5.into()), None, &[place, "efficiency", "(0, 1]", "1.5"]);
    refused(
        |s| s["actions"]["electric_vehicle_storage"]["active"] = false.into(),
        None,
        &[place, "electric_vehicle_storage"],
    );
    refused(
        |s| s["electric_vehicles_def"]["Electric_Vehicle_7"]["battery"]["attributes"]["capacity"] = (-1).into(),
        None,
        &["electric_vehicles_def.Electric_Vehicle_7.battery.attributes.capacity", "-1"],
    );
    let limits = |key: &'static str, value: Value| {
        move |s: &mut Value| {
            limit(s);
            s["buildings"]["Building_15"]["charging_constraints"][key] = value;
        }
    };
    let place = "Building_15.charging_constraints";
    refused(limits("building_limit_kw", (-1).into()), None, &[place, "building_limit_kw", "-1"]);
    refused(limits("electrical_service", true.into()), None, &[place, "electrical_service", "not modeled"]);
    let nobody = serde_json::json!([{"name": "L1", "limit_kw": 3.0, "chargers": ["nobody"]}]);
    refused(limits("phases", nobody), None, &[place, "L1", "nobody"]);
    let file = "charger_1_1.csv";
    let id = "electric_vehicle_id";
    refused(|_| {}, Some((file, "1,Electric_Vehicle_7,", "1,Nobody,")), &[file, "row 2", id, "Nobody"]);
    refused(|_| {}, Some((file, "\n1,", "\n1.5,")), &[file, "row 2", "charger_state", "1.5"]);
    refused(|_| {}, Some((file, ",87,", ",870,")), &[file, "row 2", "required_soc_departure", "[-0.1, 100]", "870"]);
    refused(|_| {}, Some((file, "departure_time", "gone")), &[file, "electric_vehicle_departure_time"]);
    refused(|_| {}, Some((file, "Electric_Vehicle_7", "Electric_Vehicle_8")), &["one charger", "charger_4_1", "row 0"]);
}

#[test]
fn fractions_are_as_good_as_percentages() {
    let percent = cut(|_| {});
    let fractions = cut(|_| {});
    for charger in ["charger_1_1.csv", "charger_4_1.csv", "charger_15_1.csv", "charger_15_2.csv"] {
        let path = fractions.path().join(charger);
        let text = std::fs::read_to_string(&path).unwrap();
        let header: Vec<&str> = text.lines().next().unwrap().split(',').collect();
        let soc = |name: &str| name.contains("_required_soc_") || name.contains("_soc_arrival");
        let lines = text.lines().skip(1).map(|line| {
            let cells = line.split(',').zip(&header).map(|(cell, name)| match cell.parse::<f64>() {
                Ok(value) if soc(name) => (value / 100.0).to_string(),
                _ => cell.to_owned(),
            });
            cells.collect::<Vec<_>>().join(",")
        });
        let text: Vec<String> = std::iter::once(header.join(",")).chain(lines).collect();
        std::fs::write(path, text.join("\n")).unwrap();
    }
    let record = |folder: &Path| {
        let scenario = CityLearn::new(config(Physics::Clean, folder)).unwrap();
        record(&scenario, uniform(2.0))
    };
    let (percent, fractions) = (record(percent.path()), record(fractions.path()));
    for (a, b) in percent.vehicle_soc.iter().zip(&fractions.vehicle_soc) {
        approx::assert_abs_diff_eq!(*a, *b, epsilon = 1e-6);
    }
}

#[test]
fn vehicles_draw_missing_parameters_as_the_package() {
    for (version, physics) in VERSIONS {
        let golden = golden("cut_random", version);
        let folder = cut(|_| {});
        let options = LoadOptions { accept_unlikely_pv: true, ..LoadOptions::default() };
        let district = District::load(folder.path().to_str().unwrap(), options).unwrap();
        for (vehicle, expected) in district.vehicles().iter().zip(golden.about["parameters"].as_array().unwrap()) {
            let new = physics == Physics::CityLearn30;
            let battery = if new { &vehicle.battery } else { &vehicle.battery_citylearn25 };
            let fields = [
                ("efficiency", battery.efficiency),
                ("loss_coefficient", battery.loss_coefficient),
                ("capacity_loss_coefficient", battery.capacity_loss_coefficient),
                ("depth_of_discharge", battery.depth_of_discharge),
                ("initial_soc", battery.initial_soc),
            ];
            // The last one is drawn by Python's generator without a seed in 2.5.
            for (name, value) in &fields[..if new { 5 } else { 4 }] {
                approx::assert_abs_diff_eq!(*value, expected[name].as_f64().unwrap(), epsilon = 1e-15);
            }
        }
    }
}

/// The folder with the whole data set: `BRASA_SHARED_DATA`, or `shared/data` beside the checkout.
fn shared(archive: &str) -> Option<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("BRASA_SHARED_DATA").map_or(beside, PathBuf::from);
    let path = folder.join(archive);
    if path.exists() {
        return Some(path);
    }
    eprintln!("SKIPPED: {} is not there; set BRASA_SHARED_DATA to its folder", path.display());
    None
}

/// Unpacks with the system's `tar`, which tests on other machines may lack.
fn unpacked(archive: &Path) -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir().unwrap();
    let done = std::process::Command::new("tar").arg("xJf").arg(archive).arg("-C").arg(folder.path()).status();
    if done.is_ok_and(|status| status.success()) {
        return Some(folder);
    }
    eprintln!("SKIPPED: `tar` cannot unpack {}", archive.display());
    None
}

const WHOLE: &str = "citylearn_challenge_2022_phase_all_plus_evs";

/// The whole data set without washing machines, as the recordings.
fn whole() -> Option<(tempfile::TempDir, PathBuf)> {
    let folder = unpacked(&shared(&format!("{WHOLE}.tar.xz"))?)?;
    let inside = folder.path().join(WHOLE);
    let path = inside.join("schema.json");
    let mut schema: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    without_machines(&mut schema);
    std::fs::write(&path, schema.to_string()).unwrap();
    Some((folder, inside))
}

/// Sine actions: state of charge of `Electric_Vehicle_7` at steps 0, 1, 2, 3, 12, 23, 99, 199, then net consumption of
/// the first building at steps 0, 1, 2, 3, 12, 199, as published.
const SINE: [(Physics, [f64; 8], [f64; 6]); 2] = [
    (
        Physics::CityLearn25,
        [0.973361, 0.996999, 0.99956, 0.999835, 0.600972, 0.99972, 0.199212, 0.766228],
        [14.232346, 3.781763, 3.350361, 4.067051, -15.847209, -5.482327],
    ),
    (
        Physics::CityLearn30,
        [0.354296, 0.474, 0.598263, 0.715785, 0.536749, 0.999992, 0.2, 0.770446],
        [9.680745, 10.51256, 11.889419, 12.298916, -15.84721, -5.482327],
    ),
];

#[test]
fn seventeen_homes_with_eight_chargers() {
    let Some((_folder, path)) = whole() else { return };
    for ((version, physics), (_, vehicle, net)) in VERSIONS.into_iter().zip(SINE) {
        let golden = golden("whole_sine", version);
        let config = CityLearnConfig { observations: Observations::Raw, ..config(physics, &path) };
        let scenario = CityLearn::new(config).unwrap();
        let spec = scenario.batch(0..1).unwrap().spec().clone();
        assert_eq!((spec.obs.width(), spec.action.width()), (148, 25));
        let recording = record(&scenario, sine);
        compare(&golden, &recording, &scenario, physics);
        let index = names(&golden.about["vehicles"]).iter().position(|name| *name == "Electric_Vehicle_7").unwrap();
        for (step, expected) in [0, 1, 2, 3, 12, 23, 99, 199].into_iter().zip(vehicle) {
            approx::assert_abs_diff_eq!(recording.vehicle_soc[(step, index)], expected, epsilon = 1e-6);
        }
        for (step, expected) in [0, 1, 2, 3, 12, 199].into_iter().zip(net) {
            approx::assert_abs_diff_eq!(recording.net_kwh[(step, 0)], expected, epsilon = 2e-6);
        }
        // A whole year runs.
        assert_eq!(recording.net_kwh.nrows(), 8759);
    }
}

#[test]
fn a_year_of_the_district_with_limits() {
    const DEMO: &str = "citylearn_charging_constraints_demo";
    let Some(folder) = shared(&format!("{DEMO}.tar.xz")).and_then(|archive| unpacked(&archive)) else { return };
    // 2.5 counts the 11 kW of the other charger even if it has no vehicle: 7.4 kW become 7.4 12 / 18.4.
    for (physics, steps, most) in [(Physics::Clean, 8760, 7.0), (Physics::CityLearn25, 8759, 7.4 * 12.0 / 18.4)] {
        // Batteries, chargers and the washing machine as the schema has them.
        let scenario = CityLearn::new(config(physics, &folder.path().join(DEMO))).unwrap();
        let recording = scenario.record(Who::Baseline("charge-at-once"), 0).unwrap();
        assert_eq!(recording.net_kwh.nrows(), steps);
        let (a, b) = (6, 7);
        let seen = recording.charger_kwh.column(a).iter().copied().fold(0.0, f64::max);
        approx::assert_abs_diff_eq!(seen, most, epsilon = 1e-5);
        for row in recording.charger_kwh.rows() {
            assert!(row[a] <= 7.0 + 1e-5 && row[b] <= 5.0 + 1e-5, "{} and {} kWh", row[a], row[b]);
        }
    }
}

/// Speed of the whole district; `BRASA_SLOW=1 cargo test --release -- --nocapture`.
#[test]
fn steps_per_second() {
    if std::env::var_os("BRASA_SLOW").is_none() {
        return;
    }
    let Some((_folder, path)) = whole() else { return };
    for physics in [Physics::Clean, Physics::CityLearn25, Physics::CityLearn30] {
        let scenario = CityLearn::new(config(physics, &path)).unwrap();
        for n_envs in [1, 64, 1024] {
            let mut batch = scenario.batch(0..n_envs).unwrap();
            let mut slabs = BatchSlabs::new(batch.spec());
            batch.reset(0, &mut slabs).unwrap();
            let actions = Array2::from_shape_fn((n_envs, batch.spec().action.width()), |(env, column)| {
                ((env * 7 + column * 3) % 11) as f32 / 5.5 - 1.0
            });
            let steps = 200_000 / n_envs;
            let start = std::time::Instant::now();
            for _ in 0..steps {
                batch.step(actions.view(), &mut slabs).unwrap();
            }
            let rate = (steps * n_envs) as f64 / start.elapsed().as_secs_f64();
            println!("{physics:?}, {n_envs} environments: {rate:.3e} district steps/s");
        }
    }
}

#[test]
fn charging_at_once_serves_vehicles_and_idle_does_not() {
    let folder = cut(|_| {});
    let scenario = CityLearn::new(config(Physics::Clean, folder.path())).unwrap();
    let names: Vec<String> = scenario.baselines().into_iter().map(|baseline| baseline.name.to_string()).collect();
    assert!(names.iter().any(|name| name == "charge-at-once"), "{names:?}");
    let short = |rule| brasa_test::outcomes::ledger(&play(&scenario, Who::Baseline(rule), 0), "ev_unmet_kwh");
    let (idle, served) = (short("idle"), short("charge-at-once"));
    assert!(served < 0.2 * idle && idle > 100.0, "{served} of {idle} kWh are missing");
    let import = |rule| value(&scenario, &play(&scenario, Who::Baseline(rule), 0), "grid_import_kwh");
    assert!(import("charge-at-once") > import("idle"));
}

#[test]
fn outages_of_homes_with_chargers() {
    for (version, physics) in VERSIONS {
        let golden = golden("cut_outages", version);
        let folder = cut(simulate_outages);
        with_outages(folder.path());
        let scenario = CityLearn::new(config(physics, folder.path())).unwrap();
        let recording = record(&scenario, uniform(1.0));
        compare(&golden, &recording, &scenario, physics);
        let in_outages = (1..recording.charger_kwh.nrows()).filter(|step| is_outage(*step));
        let powers = in_outages.flat_map(|step| recording.charger_kwh.row(step).to_vec());
        let (up, down) =
            powers.fold((0, 0), |(up, down), kwh| (up + u32::from(kwh > 0.0), down + u32::from(kwh < 0.0)));
        // 3.0 charges with what is left and never discharges; 2.5 goes on as if there were power.
        assert!(up > 5 && (down > 5) == (physics == Physics::CityLearn25), "{version}: {up} {down}");
    }
}

/// Without the grid, chargers get what PV and the battery have left, one after the other.
#[test]
fn chargers_of_a_home_without_power_share_what_is_left() {
    let folder = cut(|schema| {
        simulate_outages(schema);
        schema["simulation_end_time_step"] = 600.into();
        for building in schema["buildings"].as_object_mut().unwrap().values_mut() {
            building["pv"]["attributes"]["nominal_power"] = 60.0.into();
        }
    });
    with_outages(folder.path());
    let scenario = CityLearn::new(config(Physics::Clean, folder.path())).unwrap();
    // The batteries rest.
    let recording = record(&scenario, |_, column| if [0, 2, 4].contains(&column) { 0.0 } else { 1.0 });
    let (connected, mut charged, mut rested) = (connected(&scenario, 601), 0, 0);
    for step in (1..600).filter(|step| is_outage(*step)) {
        let powers = recording.charger_kwh.row(step);
        assert!(powers.iter().all(|kwh| *kwh >= 0.0), "{powers}");
        assert!(recording.net_kwh.row(step).iter().all(|net| *net == 0.0), "{step}");
        let flows = &recording.flows[step];
        let made = flows.pv_available_kwh + flows.battery_out_kwh;
        assert!(flows.load_kwh + flows.battery_in_kwh + flows.ev_delivered_kwh <= made + 1e-9, "{flows:?}");
        charged += usize::from(powers.sum() > 0.1);
        rested += usize::from(powers.sum() == 0.0 && !connected[step].is_empty());
    }
    assert!(charged > 10 && rested > 10, "{charged} {rested}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(16)))]

    /// Energy at the grid is energy in the vehicles plus losses, states of charge stay in their range, and chargers
    /// stay within their powers.
    #[test]
    fn vehicles_conserve_energy(salt in 0_u64..1_000_000, place in 0_usize..3) {
        let physics = [Physics::Clean, Physics::CityLearn30, Physics::CityLearn25][place];
        let folder = cut(|schema| schema["simulation_end_time_step"] = 300.into());
        let scenario = CityLearn::new(config(physics, folder.path())).unwrap();
        let mut key = salt;
        let recording = record(&scenario, |_, _| {
            key = key.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((key >> 40) as f64 / f64::from(1 << 23)) - 1.0
        });
        for (step, flows) in recording.flows.iter().enumerate() {
            if step > 0 || physics != Physics::CityLearn25 {
                prop_assert!(flows.bus_residual_kwh().abs() < 1e-4, "{flows:?}");
            }
            prop_assert!(flows.ev_unmet_kwh >= 0.0);
        }
        prop_assert!(recording.vehicle_soc.iter().all(|soc| (0.0..=1.0).contains(soc)));
        let powers = [(11.0, 7.2), (22.0, 22.0), (7.4, 7.4), (11.0, 11.0)];
        for row in recording.charger_kwh.rows() {
            for (energy, (most_in, most_out)) in row.iter().zip(powers) {
                prop_assert!((-most_out - 1e-5..=most_in + 1e-5).contains(energy), "{energy} kWh");
            }
        }
        if physics == Physics::Clean {
            let connected = connected(&scenario, 301);
            for step in 1..recording.vehicle_soc.nrows() {
                for vehicle in connected[step].iter().filter(|v| connected[step - 1].contains(v)) {
                    // Without standing losses, a vehicle gains no more than the grid gave.
                    let gain = recording.vehicle_soc[(step, *vehicle)] - recording.vehicle_soc[(step - 1, *vehicle)];
                    prop_assert!(gain * 100.0 <= recording.charger_kwh.row(step).iter().sum::<f64>().max(0.0) + 40.0);
                }
            }
        }
    }
}

#[test]
fn the_reward_for_chargers() {
    let rewards = |physics: Physics, share: f64, steps: usize, attributes: Value| -> Vec<f64> {
        let folder = cut(|schema| {
            limit(schema);
            let class = "citylearn.reward_function.Electric_Vehicles_Reward_Function";
            schema["reward_function"] = serde_json::json!({"type": class, "attributes": attributes});
        });
        let config = CityLearnConfig { reward: Reward::Schema, ..config(physics, folder.path()) };
        let recording = record(&CityLearn::new(config).unwrap(), uniform(share));
        recording.reward.iter().take(steps).map(|reward| f64::from(*reward)).collect()
    };
    let weights = serde_json::json!({
        "no_car_charging": -5.0, "battery_limits": -2.0, "soc_impossible": -10.0, "soc_under": -5.0, "close_soc": 10.0,
        "self_ev_consumption": 5.0, "extra_self_production": 5.0,
    });
    let mut seen = std::collections::HashSet::new();
    for (run, share) in [("cut_reward", 2.0), ("cut_reward_half_idle", 0.5)] {
        for (version, physics) in VERSIONS {
            let about = std::fs::read(data().join(format!("{run}-{version}.json"))).unwrap();
            let expected = numbers(&serde_json::from_slice::<Value>(&about).unwrap()["first_rewards"]);
            assert_eq!(expected.len(), 400);
            let ours = rewards(physics, share, 400, serde_json::json!({}));
            for (step, (reward, expected)) in ours.iter().zip(&expected).enumerate() {
                let off = (reward - expected).abs();
                assert!(
                    off <= 1e-5 * expected.abs().max(1.0),
                    "{run} {version} at step {step}: {reward}, not {expected}"
                );
            }
            // Every rule applies somewhere in the recordings.
            for name in weights.as_object().unwrap().keys() {
                let mut other = weights.clone();
                other[name] = 0.5.into();
                if rewards(physics, share, 400, serde_json::json!({"weights": other})) != ours {
                    seen.insert((physics == Physics::CityLearn30, name.clone()));
                }
            }
        }
    }
    // 2.5 never counts a charger without a vehicle.
    assert!(!seen.contains(&(false, "no_car_charging".to_owned())));
    assert_eq!(seen.len(), 13, "{seen:?}");
    let folder = cut(limit);
    let by_name = CityLearnConfig { reward: Reward::ElectricVehicles, ..config(Physics::Clean, folder.path()) };
    let by_name = record(&CityLearn::new(by_name).unwrap(), uniform(2.0));
    let by_schema = rewards(Physics::Clean, 2.0, usize::MAX, serde_json::json!({}));
    assert_eq!(by_name.reward.iter().map(|reward| f64::from(*reward)).collect::<Vec<_>>(), by_schema);
    // The clean rules are those of 3.0, with hours instead of steps.
    assert_ne!(
        rewards(Physics::Clean, 2.0, 400, serde_json::json!({})),
        rewards(Physics::CityLearn25, 2.0, 400, serde_json::json!({}))
    );
    let folder = cut(|schema| {
        let class = "Electric_Vehicles_Reward_Function";
        let attributes = serde_json::json!({"weights": {"close_soc": 1.0}});
        schema["reward_function"] = serde_json::json!({"type": class, "attributes": attributes});
    });
    let config = CityLearnConfig { reward: Reward::Schema, ..config(Physics::Clean, folder.path()) };
    let message = CityLearn::new(config).err().unwrap().to_string();
    assert!(message.contains("reward.weights") && message.contains("soc_impossible"), "{message}");
}
