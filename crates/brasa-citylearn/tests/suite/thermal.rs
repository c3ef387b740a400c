//! Districts with thermal devices and storages equal recordings of CityLearn 2.5.0 and 3.0.2
//! (`scripts/record_citylearn_thermal.py`), and the clean rules have no defects.
#![allow(clippy::unwrap_used)]

use crate::common;

use std::path::{Path, PathBuf};

use brasa_citylearn::{CityLearn, CityLearnConfig, Observations, Physics, Recording, Reward, import};
use brasa_env::{BatchSlabs, EnvBatch, Space};
use common::{
    golden::{names, numbers, record, sine},
    thermal::{Golden, config, cut, golden},
};
use ndarray::Array2;

const VERSIONS: [(&str, Physics); 2] = [("2.5.0", Physics::CityLearn25), ("3.0.2", Physics::CityLearn30)];

/// Computed in f64 and stored as f32, relative to the largest number of the series.
const TOLERANCE: f64 = 1e-7;

/// Sums of networks in f32, in another order than PyTorch's.
const DYNAMICS_TOLERANCE: f64 = 1e-6;

/// Compares every recorded quantity of every row.
fn compare(golden: &Golden, recording: &Recording) {
    let about = &golden.about;
    let n = names(&about["buildings"]).len();
    let has_dynamics = names(&about["columns"]).contains(&"temperature");
    for (place, quantity) in names(&about["columns"]).into_iter().enumerate() {
        let name = format!("{quantity} of {} of {}", about["run"], about["citylearn"]);
        let columns = golden.rows.slice(ndarray::s![.., place * n..(place + 1) * n]);
        let most = columns.iter().fold(1.0_f64, |most, x| most.max(f64::from(x.abs())));
        let mut worst = 0.0_f64;
        for ((step, building), expected) in columns.indexed_iter() {
            let slot = ["cooling", "heating", "dhw"].iter().position(|part| quantity.starts_with(part));
            let ours = match (quantity, slot) {
                ("net", _) => recording.net_kwh[(step, building)],
                ("temperature", _) => recording.temperature_c[(step, building)],
                ("electrical_storage_soc", _) => recording.soc[(step, building)],
                (_, Some(slot)) if quantity.ends_with("_soc") => recording.tank_soc[(step, 3 * building + slot)],
                (_, Some(slot)) => recording.device_kwh[(step, 3 * building + slot)],
                _ => panic!("unknown quantity {quantity}"),
            };
            let off = (ours - f64::from(*expected)).abs() / most;
            let tolerance = if has_dynamics { DYNAMICS_TOLERANCE } else { TOLERANCE };
            assert!(off <= tolerance, "{name}: step {step}, building {building}: {ours}, not {expected}");
            worst = worst.max(off);
        }
        println!("{name}: worst {worst:.1e} of {most:.1}");
    }
    for (reward, expected) in recording.reward.iter().zip(numbers(&about["first_rewards"])) {
        approx::assert_abs_diff_eq!(f64::from(*reward), expected, epsilon = 1e-6 * expected.abs().max(1.0));
    }
}

#[test]
fn every_step_of_weeks() {
    for run in ["cut", "cut_heating", "cut_outages", "cut_dynamics"] {
        for (version, physics) in VERSIONS {
            let golden = golden(run, version);
            let folder = cut(&golden);
            let scenario = CityLearn::new(config(physics, folder.path())).unwrap();
            let recording = record(&scenario, sine);
            compare(&golden, &recording);
        }
    }
}

#[test]
fn indicators_are_those_of_the_packages() {
    for run in ["cut", "cut_heating", "cut_outages", "cut_dynamics"] {
        for (version, physics) in VERSIONS {
            let golden = golden(run, version);
            let folder = cut(&golden);
            let scenario = CityLearn::new(config(physics, folder.path())).unwrap();
            let indicators = scenario.indicators(&record(&scenario, sine));
            let rows = indicators.rows();
            let expected = golden.about["indicators"].as_array().unwrap();
            assert!(expected.len() > 40, "{}", expected.len());
            let mut worst = 0.0_f64;
            for row in expected {
                let (building, name) = (row[0].as_str().unwrap(), row[1].as_str().unwrap());
                let found = rows.iter().find(|(ours, indicator, _)| *ours == building && *indicator == name);
                let Some((.., value)) = found else { panic!("no {name} of {building}") };
                let expected = row[2].as_f64().unwrap();
                let value = value.unwrap_or_else(|| panic!("{run} {version}: {name} of {building} is nothing"));
                let off = (value - expected).abs() / expected.abs().max(1.0);
                assert!(off <= 2e-6, "{run} {version}: {name} of {building} is {value}, not {expected}");
                worst = worst.max(off);
            }
            println!("{run} {version}: {} indicators, worst {worst:.1e}", expected.len());
        }
    }
}

#[test]
fn rewards_are_those_of_the_classes() {
    for run in ["cut_heating", "cut_dynamics"] {
        for (version, physics) in VERSIONS {
            let golden = golden(run, version);
            let classes = golden.about["rewards"].as_array().unwrap();
            assert_eq!(classes.len(), 8);
            for class in classes {
                let folder = cut(&golden);
                let mut schema = golden.about["schema"].clone();
                let kind = format!("citylearn.reward_function.{}", class["class"].as_str().unwrap());
                schema["reward_function"] = serde_json::json!({"type": kind, "attributes": class["attributes"]});
                std::fs::write(folder.path().join("schema.json"), schema.to_string()).unwrap();
                let config = CityLearnConfig { reward: Reward::Schema, ..config(physics, folder.path()) };
                let recording = record(&CityLearn::new(config).unwrap(), sine);
                let expected = numbers(&class["values"]);
                assert_eq!(expected.len(), 100);
                // Predicted temperatures differ by 1e-5 K, of which the penalty is up to the third power.
                let tolerance = if run == "cut_dynamics" && kind.contains("Comfort") { 2e-5 } else { 1e-6 };
                for (step, (ours, expected)) in recording.reward.iter().zip(expected).enumerate() {
                    let off = (f64::from(*ours) - expected).abs() / expected.abs().max(1.0);
                    assert!(off <= tolerance, "{run} {version} {kind}: step {step}: {ours}, not {expected}");
                }
            }
        }
    }
    // The names of the configuration are the same classes; an unknown class is refused by name.
    let golden = golden("cut_dynamics", "3.0.2");
    let folder = cut(&golden);
    let with = |reward: Reward| CityLearnConfig { reward, ..config(Physics::CityLearn30, folder.path()) };
    let comfort = record(&CityLearn::new(with(Reward::Comfort)).unwrap(), sine);
    let expected = numbers(&golden.about["rewards"][5]["values"]);
    approx::assert_abs_diff_eq!(f64::from(comfort.reward[40]), expected[40], epsilon = 1e-4);
    let mut schema = golden.about["schema"].clone();
    schema["reward_function"] = serde_json::json!({"type": "own.Reward", "attributes": {}});
    std::fs::write(folder.path().join("schema.json"), schema.to_string()).unwrap();
    let error = CityLearn::new(with(Reward::Schema)).err().unwrap().to_string();
    assert!(error.contains("own.Reward") && error.contains("ComfortReward"), "{error}");
}

/// The whole data sets of 2020, 2021 and some with dynamics, which are in no repository: 120 or 200 steps.
#[test]
fn whole_data_sets_of_the_wheel() {
    let Some(wheel) = std::env::var_os("BRASA_CITYLEARN_WHEEL").map(PathBuf::from) else {
        eprintln!("SKIPPED: set BRASA_CITYLEARN_WHEEL to the wheel CityLearn 2.1.2");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let zones = (1..=4).map(|i| (format!("zone_{i}"), format!("citylearn_challenge_2020_climate_zone_{i}")));
    let others = [
        ("2021", "citylearn_challenge_2021"),
        ("2023_1", "citylearn_challenge_2023_phase_1"),
        ("2023_2", "citylearn_challenge_2023_phase_2_local_evaluation"),
        ("2023_3", "citylearn_challenge_2023_phase_3_1"),
        ("baeda", "baeda_3dem"),
    ];
    for (run, dataset) in zones.chain(others.map(|(run, dataset)| (run.to_owned(), dataset.to_owned()))) {
        let imported = import(&wheel, Some(&dataset), &folder.path().join(&dataset)).unwrap();
        for (version, physics) in VERSIONS {
            let golden = golden(&run, version);
            let scenario = CityLearn::new(config(physics, &imported.folder)).unwrap();
            compare(&golden, &record(&scenario, sine));
        }
    }
}

#[test]
fn observations_and_actions_of_the_first_steps() {
    for (version, physics) in VERSIONS {
        for run in ["cut", "cut_heating", "cut_outages", "cut_dynamics"] {
            let golden = golden(run, version);
            let folder = cut(&golden);
            for (kind, key) in [(Observations::Raw, ""), (Observations::Normalized, "normalized_")] {
                check_observations(&golden, physics, kind, key, folder.path());
            }
        }
    }
}

fn check_observations(golden: &Golden, physics: Physics, kind: Observations, key: &str, folder: &Path) {
    let config = CityLearnConfig { observations: kind, ..config(physics, folder) };
    let mut batch = CityLearn::new(config).unwrap().batch(0..1).unwrap();
    let expected_names = names(&golden.about[format!("{key}observation_names")]);
    let Space::Box(space) = batch.spec().obs.clone() else { panic!("observations are a box") };
    let ours: Vec<&str> = space.names.iter().map(|name| name.rsplit('.').next().unwrap()).collect();
    assert_eq!(ours, expected_names);
    let Space::Box(action) = batch.spec().action.clone() else { panic!("actions are a box") };
    for (ours, theirs) in [(&action.low, "action_low"), (&action.high, "action_high")] {
        let theirs = numbers(&golden.about[theirs]);
        assert_eq!(ours.len(), theirs.len());
        for (ours, theirs) in ours.iter().zip(theirs) {
            approx::assert_abs_diff_eq!(f64::from(*ours), theirs, epsilon = 1e-7);
        }
    }
    let mut slabs = BatchSlabs::new(batch.spec());
    batch.reset(0, &mut slabs).unwrap();
    for (step, expected) in golden.about[format!("{key}observations")].as_array().unwrap().iter().enumerate() {
        for ((got, expected), name) in slabs.obs.row(0).iter().zip(numbers(expected)).zip(&space.names) {
            let tolerance = 2e-6 * expected.abs().max(1.0);
            let off = (f64::from(*got) - expected).abs();
            assert!(
                off <= tolerance,
                "{} {physics:?} {kind:?} {name} at step {step}: {got}, not {expected}",
                golden.about["run"]
            );
        }
        let actions = Array2::from_shape_fn((1, action.low.len()), |(_, i)| sine(step, i) as f32);
        batch.step(actions.view(), &mut slabs).unwrap();
    }
}
