//! Properties of every CityLearn batch: conservation of energy, ranges, and independence of the grouping of
//! environments.
// The grouping tests use groups of a single range.
#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

use std::sync::OnceLock;

use brasa_citylearn::Trace;
use brasa_citylearn::{CityLearn, CityLearnBatch, CityLearnConfig, Observations, Physics, Reward};
use brasa_env::{BatchSlabs, EnvBatch, EnvError, Outcome, Scenario, Space, Who, check_env};
use brasa_test::cases;
use brasa_test::outcomes::{episode_return, ledger, play, ratio, trace, value};
use ndarray::{Array2, ArrayViewMut2, s};
use proptest::prelude::*;

const ALL: [Physics; 3] = [Physics::CityLearn25, Physics::CityLearn30, Physics::Clean];
const BUILDINGS: usize = 5;

/// One scenario per set of rules, with short episodes at random starts; it is shared because reading the data is slow.
fn scenario(physics: Physics) -> &'static CityLearn {
    static SCENARIOS: [OnceLock<CityLearn>; 3] = [const { OnceLock::new() }; 3];
    let place = ALL.iter().position(|other| *other == physics).unwrap();
    SCENARIOS[place].get_or_init(|| {
        let config =
            CityLearnConfig { physics, episode_steps: Some(30), random_start: true, ..CityLearnConfig::default() };
        CityLearn::new(config).unwrap()
    })
}

/// Actions in `[-1, 1]` as a function of step and row, so that they are the same for every grouping.
fn actions(n_envs: usize, first_env: usize, step: usize, salt: u64) -> Array2<f32> {
    Array2::from_shape_fn((n_envs, BUILDINGS), |(env, battery)| {
        let key = (first_env + env) as u64 * 1_000_003 + step as u64 * 7919 + battery as u64 * 31 + salt;
        let mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((mixed >> 40) as f32 / (1u64 << 24) as f32) * 2.0 - 1.0
    })
}

fn slabs(batch: &CityLearnBatch) -> BatchSlabs {
    BatchSlabs::new(batch.spec())
}

fn info(slabs: &BatchSlabs, batch: &CityLearnBatch, env: usize, name: &str) -> f64 {
    let column = batch.spec().info_names.iter().position(|column| column == name).unwrap();
    slabs.info[(env, column)]
}

#[test]
fn a_row_does_not_depend_on_how_environments_are_grouped() {
    for physics in ALL {
        let scenario = scenario(physics);
        let groups = [vec![0..7], vec![0..3, 3..7], vec![5..7, 0..1, 1..5], (0..7).map(|env| env..env + 1).collect()];
        let mut seen: Option<Vec<BatchSlabs>> = None;
        for group in groups {
            // 70 steps pass two resets.
            let mut history = vec![Vec::new(); 7];
            for range in group {
                let mut batch = scenario.batch(range.clone()).unwrap();
                let mut out = slabs(&batch);
                batch.reset(42, &mut out).unwrap();
                for step in 0..70 {
                    batch.step(actions(range.len(), range.start, step, 1).view(), &mut out).unwrap();
                    for (place, env) in range.clone().enumerate() {
                        history[env].push(BatchSlabs {
                            obs: out.obs.slice(s![place..=place, ..]).to_owned(),
                            next_obs: out.next_obs.slice(s![place..=place, ..]).to_owned(),
                            shared: Array2::zeros((1, 0)),
                            next_shared: Array2::zeros((1, 0)),
                            mask: Array2::zeros((0, 0)),
                            next_mask: Array2::zeros((0, 0)),
                            reward: out.reward.slice(s![place..=place]).to_owned(),
                            terminated: out.terminated.slice(s![place..=place]).to_owned(),
                            truncated: out.truncated.slice(s![place..=place]).to_owned(),
                            elapsed: out.elapsed.slice(s![place..=place]).to_owned(),
                            info: out.info.slice(s![place..=place, ..]).to_owned(),
                        });
                    }
                }
            }
            let all: Vec<BatchSlabs> = history.into_iter().flatten().collect();
            assert!(all.iter().any(|row| row.truncated[0]), "an episode must have ended");
            match &seen {
                None => seen = Some(all),
                Some(first) => assert!(first == &all, "{physics:?} depends on the grouping"),
            }
        }
        // Precondition: environments start at different rows.
        let first = seen.unwrap();
        assert_ne!(first[0].obs, first[70].obs);
    }
}

#[test]
fn the_contract_of_environments_holds() {
    for physics in ALL {
        let make = |envs| Ok(scenario(physics).batch(envs)?);
        check_env(80, make).unwrap();
    }
}

#[test]
fn observations_stay_inside_their_space_and_successors_come_before_resets() {
    for physics in ALL {
        for observations in [Observations::Normalized, Observations::Raw] {
            let config = CityLearnConfig { observations, ..scenario(physics).config().clone() };
            let mut batch = CityLearn::new(config).unwrap().batch(0..4).unwrap();
            batch.spec().obs.validate().unwrap();
            assert_eq!(batch.spec().obs.width(), if observations == Observations::Raw { 44 } else { 47 });
            let mut out = slabs(&batch);
            batch.reset(3, &mut out).unwrap();
            for step in 0..95 {
                batch.step(actions(4, 0, step, 9).view(), &mut out).unwrap();
                for env in 0..4 {
                    for row in [out.obs.row(env), out.next_obs.row(env)] {
                        let row = row.to_vec();
                        assert!(batch.spec().obs.contains(&row), "{physics:?} step {step}: {row:?}");
                    }
                    let ended = step % 30 == 29;
                    assert_eq!((out.terminated[env], out.truncated[env]), (false, ended));
                    assert_eq!(out.obs.row(env) == out.next_obs.row(env), !ended, "{physics:?} step {step}");
                }
            }
        }
    }
}

#[test]
fn the_same_seed_repeats_and_a_saved_batch_goes_on() {
    for physics in ALL {
        let mut batch = scenario(physics).batch(2..5).unwrap();
        let mut out = slabs(&batch);
        batch.reset(7, &mut out).unwrap();
        let start = out.obs.clone();
        for step in 0..45 {
            batch.step(actions(3, 2, step, 5).view(), &mut out).unwrap();
        }
        let saved = batch.save();
        let mut other = scenario(physics).batch(2..5).unwrap();
        other.load(&saved).unwrap();
        let mut resumed = slabs(&other);
        for step in 45..120 {
            batch.step(actions(3, 2, step, 5).view(), &mut out).unwrap();
            other.step(actions(3, 2, step, 5).view(), &mut resumed).unwrap();
            assert!(out == resumed, "{physics:?} differs after the resume, at step {step}");
        }
        batch.reset(7, &mut out).unwrap();
        assert_eq!(out.obs, start);
        batch.reset(8, &mut out).unwrap();
        assert_ne!(out.obs, start);

        let error = scenario(physics).batch(0..3).unwrap().load(&saved).unwrap_err().to_string();
        assert!(error.contains("first 2"), "{error}");
        assert!(other.load(&saved[..saved.len() / 2]).is_err());
    }
}

#[test]
fn actions_are_clipped_and_must_be_finite() {
    for physics in ALL {
        let step = |value: f32| {
            let mut batch = scenario(physics).batch(0..1).unwrap();
            let mut out = slabs(&batch);
            batch.reset(0, &mut out).unwrap();
            batch.step(Array2::from_elem((1, BUILDINGS), value).view(), &mut out).map(|()| out)
        };
        assert_eq!(step(1.0).unwrap(), step(40.0).unwrap());
        let error = step(f32::NAN).unwrap_err().to_string();
        assert_eq!(error, "`actions` must be finite, got NaN");
    }
}

#[test]
fn a_clean_year_acts_on_every_row_and_idle_is_its_own_reference() {
    for (physics, steps) in [(Physics::CityLearn25, 8759), (Physics::CityLearn30, 8759), (Physics::Clean, 8760)] {
        for reward in [Reward::Challenge, Reward::ChallengeImprovement] {
            let config = CityLearnConfig { physics, reward, ..CityLearnConfig::default() };
            let scenario = CityLearn::new(config).unwrap();
            let outcome = play(&scenario, Who::Baseline("idle"), 0);
            assert_eq!(trace::<Trace>(&outcome).grid_kw.len(), steps);
            for name in ["cost", "carbon_kg", "grid_import_kwh", "ramping_kw", "peak_kw", "challenge_score"] {
                let ratio = ratio(&scenario, &outcome, name);
                // In 2.5 the series without storage has one row more.
                let exact = physics != Physics::CityLearn25;
                assert!((ratio - 1.0).abs() <= if exact { 1e-12 } else { 1e-5 }, "{physics:?} {name} {ratio}");
            }
            let per_step = episode_return(&outcome) / steps as f64;
            let expected = if reward == Reward::Challenge { -1.0 } else { 0.0 };
            // The first row counts three times in 2.5, and the first ramp is missing from an episode.
            approx::assert_abs_diff_eq!(per_step, expected, epsilon = 1e-3);
        }
    }
}

#[test]
fn controllers_have_names_and_wrong_ones_are_told() {
    let scenario = scenario(Physics::Clean);
    let names: Vec<String> = scenario.baselines().into_iter().map(|baseline| baseline.name).collect();
    assert_eq!(names, ["idle", "basic-rbc", "optimized-rbc", "rule-based"]);
    let error = scenario.record(Who::Baseline("greedy"), 0).unwrap_err().to_string();
    let known = "idle, basic-rbc, optimized-rbc, rule-based";
    assert_eq!(error, format!("`baseline` must be one of the scenario's, got `greedy`; there are {known}"));
}

#[test]
fn spaces_are_named() {
    let batch = scenario(Physics::Clean).batch(0..1).unwrap();
    let Space::Box(space) = &batch.spec().action else { panic!("actions are a box") };
    assert_eq!(space.names[4], "Building_5.electrical_storage_power_share");
    assert_eq!((space.low[0], space.high[0]), (-1.0, 1.0));
    let Space::Box(space) = &batch.spec().obs else { panic!("observations are a box") };
    assert_eq!(space.names[0], "month_cos");
    assert!(space.names.contains(&"Building_3.electrical_storage_soc".to_owned()));
}

/// Records a year with one action per battery and block of hours.
fn year(physics: Physics, salt: u64, hold: usize) -> (Outcome, brasa_citylearn::Recording) {
    let mut step = 0;
    let mut policy = |_: &BatchSlabs, mut out: ArrayViewMut2<f32>| -> Result<(), EnvError> {
        out.assign(&actions(1, 0, step / hold, salt));
        step += 1;
        Ok(())
    };
    let recording = scenario(physics).record(Who::Controller(&mut policy), 0).unwrap();
    let mut step = 0;
    let mut policy = |_: &BatchSlabs, mut out: ArrayViewMut2<f32>| -> Result<(), EnvError> {
        out.assign(&actions(1, 0, step / hold, salt));
        step += 1;
        Ok(())
    };
    (play(scenario(physics), Who::Controller(&mut policy), 0), recording)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases(6)) })]

    #[test]
    fn energy_is_conserved_at_every_step(salt in 0u64..1_000_000, hold in 1usize..9, place in 0usize..3) {
        let physics = ALL[place];
        let (outcome, recording) = year(physics, salt, hold);
        // f32 accounts round to 2^-24 of a few kWh per building.
        let tolerance = if physics == Physics::Clean { 1e-12 } else { 5e-6 };
        for (step, flows) in recording.flows.iter().enumerate() {
            // 2.5 counts the first row several times.
            if physics != Physics::CityLearn25 || step > 0 {
                prop_assert!(flows.bus_residual_kwh().abs() <= tolerance, "{physics:?} {step}: {flows:?}");
                let grid = flows.grid_import_kwh - flows.grid_export_kwh;
                prop_assert!((recording.net_kwh.row(step).sum() - grid).abs() <= 1e-9);
            }
            // Efficiencies are below 1: a battery that gives more than it took has made energy.
            prop_assert!(flows.battery_lost_kwh >= -tolerance, "{physics:?} {step}: {flows:?}");
            prop_assert!(flows.grid_export_kwh <= flows.pv_available_kwh + flows.battery_out_kwh + tolerance);
        }
        prop_assert!(recording.soc.iter().all(|soc| (0.0..=1.0).contains(soc)));
        // Each battery of this district holds 6.4 kWh, loses nothing standing, and its efficiency over a cycle is
        // between 0.85 * 0.9 and 0.9, of which each direction has the square root.
        let one_way = (0.765_f64.sqrt() - 1e-3)..=(0.9_f64.sqrt() + 1e-3);
        for step in 1..recording.flows.len() {
            for building in 0..BUILDINGS {
                let stored = 6.4 * (recording.soc[(step, building)] - recording.soc[(step - 1, building)]);
                let balance = recording.battery_kwh[(step, building)];
                // Below 1 Wh the rounding of f32 is no longer small.
                if balance.abs() > 1e-3 {
                    let efficiency = if balance > 0.0 { stored / balance } else { balance / stored };
                    prop_assert!(one_way.contains(&efficiency), "{physics:?} {step}: {balance} kWh, stored {stored}");
                } else {
                    prop_assert!(stored.abs() <= 1.3e-3, "{physics:?} {step}: {balance} kWh, stored {stored}");
                }
            }
        }
        // The ledger's losses are computed from the other flows, so its change is compared with the states of charge:
        // every battery of this district starts empty.
        let kept = 6.4 * recording.soc.row(recording.soc.nrows() - 1).sum();
        prop_assert_eq!(ledger(&outcome, "battery_change_kwh"), recording.ledger().battery_change_kwh);
        let ledger = recording.ledger();
        prop_assert!((ledger.battery_change_kwh - kept).abs() <= 1e-4, "{kept} kWh kept: {ledger:?}");
        // The efficiency is at most 0.9: a year of random actions loses at least a tenth of the charge, up to the
        // stored energy.
        prop_assert!(ledger.battery_lost_kwh >= 0.1 * (ledger.battery_in_kwh - 5.0 * 6.4), "{ledger:?}");
    }

    #[test]
    fn info_adds_up_to_the_figures(salt in 0u64..1_000_000) {
        for physics in ALL {
            let config = CityLearnConfig { physics, ..CityLearnConfig::default() };
            let full = CityLearn::new(config).unwrap();
            let mut batch = full.batch(0..1).unwrap();
            let mut out = slabs(&batch);
            batch.reset(0, &mut out).unwrap();
            let mut sums = [0.0; 4];
            let mut step = 0;
            while !(step > 0 && out.truncated[0]) {
                batch.step(actions(1, 0, step, salt).view(), &mut out).unwrap();
                for (sum, name) in sums.iter_mut().zip(["grid_import_kwh", "carbon_kg", "cost", "ramping_kw"]) {
                    *sum += info(&out, &batch, 0, name);
                }
                step += 1;
            }
            let (outcome, _) = year(physics, salt, 1);
            for (sum, name) in sums.iter().zip(["grid_import_kwh", "carbon_kg", "cost", "ramping_kw"]) {
                let value = value(&full, &outcome, name);
                prop_assert!((sum - value).abs() <= 1e-6 * value, "{physics:?} {name}: {sum}, not {value}");
            }
        }
    }
}

/// Rewards of a day that charges, rests and discharges to the end, with and without shaping.
#[test]
fn shaped_rewards_credit_stored_energy_and_take_it_back() {
    for physics in [Physics::Clean, Physics::CityLearn25, Physics::CityLearn30] {
        for reward in [Reward::GridImport, Reward::ChallengeImprovement] {
            let day = |shaped: bool| -> Vec<f64> {
                let config = CityLearnConfig { physics, reward, shaped, episode_steps: Some(48), ..Default::default() };
                let mut batch = CityLearn::new(config).expect("the config is valid").batch(0..1).expect("a batch");
                let mut slabs = BatchSlabs::new(batch.spec());
                batch.reset(0, &mut slabs).expect("a reset");
                let action = |step: usize| [0.4, 0.0, -1.0][(step / 8).min(2)];
                let reward = |step: usize| {
                    batch.step(Array2::from_elem((1, 5), action(step)).view(), &mut slabs).expect("a step");
                    f64::from(slabs.reward[0])
                };
                (0..40).map(reward).collect()
            };
            let credits: Vec<f64> = day(true).iter().zip(day(false)).map(|(shaped, plain)| shaped - plain).collect();
            let charged: f64 = credits[..8].iter().sum();
            assert!(
                credits[..3].iter().all(|credit| *credit > 0.0) && charged > 1.0,
                "{physics:?} {reward:?} {credits:?}"
            );
            assert!(credits.iter().sum::<f64>().abs() < 1e-3 * charged, "{physics:?} {reward:?} {credits:?}");
        }
    }
    let returned = |shaped: bool| {
        let scenario = CityLearn::new(CityLearnConfig { shaped, ..Default::default() }).expect("the config is valid");
        scenario.record(Who::Baseline("rule-based"), 0).expect("the baseline exists").reward
    };
    assert_eq!(returned(true), returned(false), "evaluations are never shaped");
}
