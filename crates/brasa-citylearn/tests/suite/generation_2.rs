//! The rules `citylearn-2.1` give the numbers of CityLearn 2.1.2 for the phase 1 district of 2022, read from the package with
//! its own data: sine actions `0.8 sin(0.3 t + i)` and a year of `RandomState(7).uniform(-1, 1, 5)`.
#![allow(clippy::unwrap_used)]

use crate::common;

use approx::assert_abs_diff_eq;
use brasa_citylearn::{CityLearn, CityLearnConfig, Observations, Physics, Recording, Reward};
use brasa_env::{BatchSlabs, EnvBatch, check_env};
use common::data::Data;
use common::golden::{record, sine, uniform};
use ndarray::Array2;

fn config() -> CityLearnConfig {
    CityLearnConfig { physics: Physics::CityLearn21, reward: Reward::GridImport, ..CityLearnConfig::default() }
}

fn phase1() -> CityLearn {
    CityLearn::new(config()).unwrap()
}

/// The return of that version's `RewardFunction`, minus the imports of the district; later versions add those of the buildings.
fn return_of(recording: &Recording, steps: usize) -> f64 {
    recording.net_kwh.rows().into_iter().take(steps).map(|nets| -nets.sum().max(0.0)).sum()
}

/// Net consumption in rows 1, 2, 3, 12, 99 and 999, state of charge in rows 1, 2, 12 and 47.
const SINE: [([f64; 6], [f64; 4]); 5] = [
    ([0.851167, 2.347663, 3.729136, -3.082525, 2.181633, -0.660143], [0.0, 0.215445, 0.861476, 0.997853]),
    ([5.678998, 3.449144, 0.714162, 1.210517, 0.32325, 0.48], [0.633138, 0.973285, 0.0, 0.999974]),
    ([4.655603, 2.064463, 0.161385, -0.395617, 1.189133, -2.184033], [0.677424, 0.974778, 0.0, 0.91927]),
    ([2.650701, -0.123887, 0.458233, 0.189271, 1.636266, 2.302151], [0.102853, 0.0, 0.012255, 0.0]),
    ([0.515883, 0.50305, 0.53595, -0.83128, 0.435344, 0.721403], [0.0, 0.0, 0.989397, 0.0]),
];

#[test]
fn rows_of_sine_actions() {
    let recording = record(&phase1(), sine);
    for (building, (nets, socs)) in SINE.iter().enumerate() {
        for (row, net) in [1, 2, 3, 12, 99, 999].into_iter().zip(nets) {
            // The action of step 0 changes row 1.
            assert_abs_diff_eq!(recording.net_kwh[(row - 1, building)], *net, epsilon = 2e-6);
        }
        for (row, soc) in [1, 2, 12, 47].into_iter().zip(socs) {
            assert_abs_diff_eq!(recording.soc[(row - 1, building)], *soc, epsilon = 1e-6);
        }
    }
    assert_abs_diff_eq!(return_of(&recording, 1000), -3717.798347, epsilon = 1e-3);
}

#[test]
fn indicators_of_a_random_year() {
    let scenario = phase1();
    let recording = record(&scenario, uniform(2.0));
    assert_abs_diff_eq!(return_of(&recording, 8759), -36_104.614284, epsilon = 5e-3);
    let indicators = scenario.indicators(&recording);
    let rows = indicators.rows();
    let expected = [
        ("electricity_consumption_total", 1.838903),
        ("carbon_emissions_total", 1.824183),
        ("cost_total", 1.76611),
        ("zero_net_energy", 1.380838),
        ("ramping_average", 3.591116),
        ("daily_peak_average", 1.776285),
        ("all_time_peak_average", 1.537339),
        ("daily_one_minus_load_factor_average", 1.034744),
        ("monthly_one_minus_load_factor_average", 1.028817),
    ];
    for (name, expected) in expected {
        let (.., value) = rows.iter().find(|(of, indicator, _)| *of == "District" && *indicator == name).unwrap();
        assert_abs_diff_eq!(value.unwrap(), expected, epsilon = 1e-6);
    }
}

#[test]
fn the_observation_is_the_row_that_was_changed() {
    let config = CityLearnConfig { observations: Observations::Raw, ..config() };
    let mut batch = CityLearn::new(config).unwrap().batch(0..1).unwrap();
    let mut slabs = BatchSlabs::new(batch.spec());
    batch.reset(0, &mut slabs).unwrap();
    // Load, PV, state of charge and net consumption of the first home.
    let home = |slabs: &BatchSlabs| [20, 21, 22, 23].map(|column| f64::from(slabs.obs[(0, column)]));
    for (got, expected) in home(&slabs).into_iter().zip([2.2758, 0.0, 0.0, 2.2758]) {
        assert_abs_diff_eq!(got, expected, epsilon = 1e-5);
    }
    batch.step(Array2::from_elem((1, 5), 0.5).view(), &mut slabs).unwrap();
    for (got, expected) in home(&slabs).into_iter().zip([0.85117, 0.0, 0.47157, 4.05117]) {
        assert_abs_diff_eq!(got, expected, epsilon = 1e-5);
    }
    check_env(80, |envs| {
        let config = CityLearnConfig {
            physics: Physics::CityLearn21,
            episode_steps: Some(30),
            random_start: true,
            ..CityLearnConfig::default()
        };
        Ok(CityLearn::new(config)?.batch(envs)?)
    })
    .unwrap();
}

#[test]
fn what_is_not_known_of_that_version_is_refused_by_name() {
    let data = Data::new();
    data.home(|home| {
        home["cooling_device"] = serde_json::json!({"type": "citylearn.energy_model.HeatPump", "autosize": true,
            "attributes": {"efficiency": 0.2, "target_cooling_temperature": 8.0}});
    });
    data.replace("Home.csv", "0.75,0,0,0", "0.75,0,1.5,0");
    let folder = data.folder.to_str().unwrap().to_owned();
    let error = CityLearn::new(CityLearnConfig { data: folder, ..config() }).err().unwrap().to_string();
    assert!(error.contains("citylearn-2.1") && error.contains("thermal demand"), "{error}");
}
