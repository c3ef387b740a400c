//! The data sets of the last wheel with data load and run; those with networks need their weights converted.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use brasa_energy::citylearn::{CityLearn, CityLearnConfig, Physics};
use brasa_env::Who;

#[test]
fn every_data_set_runs_to_its_end() {
    let Some(folder) = std::env::var_os("BRASA_CITYLEARN_WHEEL").map(PathBuf::from) else {
        eprintln!("SKIPPED: set BRASA_CITYLEARN_WHEEL to `citylearn/data` of the unpacked wheel CityLearn 2.1.2");
        return;
    };
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().join("schema.json").exists())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names.len(), 18, "{names:?}");
    for name in names {
        for physics in [Physics::Clean, Physics::CityLearn30, Physics::CityLearn25] {
            let data = folder.join(&name).to_str().unwrap().to_owned();
            let config = CityLearnConfig { data, physics, accept_unlikely_pv: true, ..CityLearnConfig::default() };
            let has_networks = name.contains("_2023_") || name == "baeda_3dem";
            let is_converted = folder.join(&name).join("Building_1.safetensors").exists();
            match CityLearn::new(config) {
                Ok(scenario) => {
                    let recording = scenario.record(Who::Baseline("rule-based"), 0).unwrap();
                    let steps = recording.net_kwh.nrows();
                    assert!(steps >= if has_networks { 719 } else { 8759 }, "{name}: {steps}");
                    assert!(recording.net_kwh.iter().chain(&recording.temperature_c).all(|x| x.is_finite()));
                    println!("{name}, {physics:?}: {steps} steps");
                }
                Err(error) => {
                    assert!(has_networks && !is_converted, "{name}: {error}");
                    assert!(error.to_string().contains("convert_citylearn_dynamics.py"), "{name}: {error}");
                    println!("{name}, {physics:?}: {error}");
                }
            }
        }
    }
}
