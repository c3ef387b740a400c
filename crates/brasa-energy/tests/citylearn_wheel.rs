//! Which data sets of the last wheel with data load and run, and what the others are refused for.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use brasa_energy::citylearn::{CityLearn, CityLearnConfig, Physics};
use brasa_env::Who;

/// Those run; the others need what is not modeled.
const RUN: [&str; 3] =
    ["citylearn_challenge_2020_climate_zone_", "citylearn_challenge_2021", "citylearn_challenge_2022_phase_"];

#[test]
fn every_data_set_runs_a_year_or_is_refused_by_name() {
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
            match CityLearn::new(config) {
                Ok(scenario) => {
                    assert!(RUN.iter().any(|run| name.starts_with(run)), "{name} runs");
                    let recording = scenario.record(Who::Baseline("rule-based"), 0).unwrap();
                    assert!(recording.net_kwh.nrows() >= 8759 && recording.net_kwh.iter().all(|x| x.is_finite()));
                    println!("{name}, {physics:?}: {} steps", recording.net_kwh.nrows());
                }
                Err(error) => {
                    assert!(!RUN.iter().any(|run| name.starts_with(run)), "{name}: {error}");
                    assert!(error.to_string().contains("not modelled"), "{name}: {error}");
                    println!("{name}, {physics:?}: {error}");
                }
            }
        }
    }
}
