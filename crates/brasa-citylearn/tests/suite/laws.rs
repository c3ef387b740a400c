//! Laws that hold for any actions in districts with thermal devices, outages and networks of indoor temperatures.
#![allow(clippy::unwrap_used)]

use crate::common;

use brasa_citylearn::{CityLearn, CityLearnConfig, Physics, Recording};
use brasa_env::{BatchSlabs, EnvBatch, EnvError, Who, check_env};
use brasa_test::cases;
use common::thermal::{config, cut, golden};
use ndarray::{Array2, ArrayViewMut2};
use proptest::prelude::*;

const PHYSICS: [Physics; 3] = [Physics::Clean, Physics::CityLearn30, Physics::CityLearn25];
const RUNS: [&str; 3] = ["cut_heating", "cut_outages", "cut_dynamics"];

/// A number in `[-1, 1]` that depends on nothing but its place.
fn number(seed: u64, step: usize, column: usize) -> f32 {
    let mut key = seed ^ (step as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (column as u64) << 40;
    for _ in 0..3 {
        key = (key ^ (key >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    }
    ((key >> 40) as f32 / (1u64 << 23) as f32) - 1.0
}

fn record(scenario: &CityLearn, seed: u64) -> Recording {
    let mut step = 0;
    let mut policy = |_: &BatchSlabs, mut actions: ArrayViewMut2<f32>| -> Result<(), EnvError> {
        actions.row_mut(0).iter_mut().enumerate().for_each(|(i, slot)| *slot = number(seed, step, i));
        step += 1;
        Ok(())
    };
    scenario.record(Who::Controller(&mut policy), 0).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(6)))]

    #[test]
    fn energy_is_conserved_and_storages_stay_within_their_bounds(seed in any::<u64>()) {
        for run in RUNS {
            let golden = golden(run, "3.0.2");
            let folder = cut(&golden);
            for physics in PHYSICS {
                let recording = record(&CityLearn::new(config(physics, folder.path())).unwrap(), seed);
                for soc in recording.tank_soc.iter().chain(&recording.soc) {
                    prop_assert!((0.0..=1.0 + 1e-6).contains(soc), "{run} {physics:?}: {soc}");
                }
                let served = recording.served_kwh.iter().zip(&recording.expected_kwh);
                for (served, expected) in served {
                    prop_assert!(*served <= expected + 1e-4 && *served >= -1e-4, "{run} {physics:?}: {served} {expected}");
                }
                let (steps, n) = recording.net_kwh.dim();
                // The versions of CityLearn count the first row in their own ways.
                for step in usize::from(physics != Physics::Clean)..steps {
                    let flows = recording.flows[step];
                    let made = flows.grid_import_kwh - flows.grid_export_kwh + flows.pv_available_kwh + flows.battery_out_kwh;
                    let used = flows.load_kwh + flows.battery_in_kwh;
                    if run == "cut_heating" {
                        prop_assert!((made - used).abs() < 1e-3, "{run} {physics:?} {step}: {made} {used}");
                    }
                    for building in 0..n {
                        let devices: f64 = (0..3).map(|slot| recording.device_kwh[(step, 3 * building + slot)]).sum();
                        prop_assert!(devices >= -1e-6, "{devices}");
                    }
                }
                if run == "cut_outages" {
                    // The home is cut off in eleven rows of 77 and then takes and gives nothing.
                    for step in (1..steps).filter(|step| (30..41).contains(&(step % 77))) {
                        prop_assert_eq!(recording.net_kwh[(step, 0)], 0.0);
                    }
                    prop_assert!(recording.served_kwh.sum() < recording.expected_kwh.sum() - 1.0, "outages cost energy");
                }
            }
        }
    }
}

#[test]
fn an_environment_alone_equals_its_row_among_many() {
    for run in RUNS {
        let golden = golden(run, "3.0.2");
        let folder = cut(&golden);
        for physics in PHYSICS {
            let config =
                CityLearnConfig { episode_steps: Some(48), random_start: true, ..config(physics, folder.path()) };
            let scenario = CityLearn::new(config).unwrap();
            let play = |envs: std::ops::Range<usize>| -> Vec<Array2<f32>> {
                let mut batch = scenario.batch(envs.clone()).unwrap();
                let mut slabs = BatchSlabs::new(batch.spec());
                batch.reset(3, &mut slabs).unwrap();
                let width = batch.spec().action.width();
                let steps = (0..100).map(|step| {
                    let actions = Array2::from_shape_fn((envs.len(), width), |(env, i)| {
                        number(envs.start as u64 + env as u64, step, i)
                    });
                    batch.step(actions.view(), &mut slabs).unwrap();
                    // A state that is saved and loaded goes on the same way.
                    let saved = batch.save();
                    batch.load(&saved).unwrap();
                    slabs.obs.clone()
                });
                steps.collect()
            };
            let many = play(0..9);
            for env in [0, 8] {
                for (step, (many, alone)) in many.iter().zip(play(env..env + 1)).enumerate() {
                    assert_eq!(many.row(env), alone.row(0), "{run} {physics:?}: environment {env} at step {step}");
                }
            }
        }
    }
}

#[test]
fn the_environment_keeps_its_contract() {
    for run in RUNS {
        let golden = golden(run, "3.0.2");
        let folder = cut(&golden);
        for physics in PHYSICS {
            let config = CityLearnConfig { episode_steps: Some(30), ..config(physics, folder.path()) };
            let scenario = CityLearn::new(config).unwrap();
            check_env(80, |envs| scenario.batch(envs).map_err(EnvError::from)).unwrap();
        }
    }
}
