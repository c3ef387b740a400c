//! The optimum of districts with perfect foresight: its schedule in the simulation, its bound, and every controller beside it.
#![allow(clippy::unwrap_used)]

use crate::common;

use brasa_citylearn::{CityLearn, CityLearnConfig, Physics, Reward};
use brasa_env::{Scenario, Who};
use brasa_test::outcomes::{episode_return, play, random};
use brasa_test::slow;
use common::data::Data;
use serde_json::json;

#[test]
fn a_district_with_constant_efficiency_follows_its_schedule() {
    let data = Data::new();
    data.home(|home| {
        home["electrical_storage"]["attributes"]["power_efficiency_curve"] = json!([[0.0, 0.9], [1.0, 0.9]]);
        home["electrical_storage"]["attributes"]["capacity_power_curve"] = json!([[0.0, 1.0], [0.8, 1.0], [1.0, 0.2]]);
        home["electrical_storage"]["attributes"]["capacity_loss_coefficient"] = json!(0.0);
    });
    for reward in [Reward::GridImport, Reward::Challenge, Reward::ChallengeImprovement] {
        let data = data.folder.to_str().unwrap().to_owned();
        let config = CityLearnConfig { data, reward, optimum: true, ..CityLearnConfig::default() };
        let scenario = CityLearn::new(config).unwrap();
        let (optimum, _) = scenario.optimum().unwrap();
        let size = optimum.planned.abs().max(1.0);
        // Only with a price on ramps would it pay to lose energy, which the program can and no battery.
        let tolerance = if reward == Reward::GridImport { 1e-5 } else { 0.02 };
        assert!((optimum.value - optimum.planned).abs() < tolerance * size, "{reward:?} {optimum:?}");
        assert!((optimum.planned - optimum.bound).abs() < 1e-6 * size, "{reward:?} {optimum:?}");
        let played = play(&scenario, Who::Baseline("perfect-foresight"), 0);
        assert!((episode_return(&played) + optimum.value).abs() < 1e-9 * size);
        for rule in ["idle", "rule-based", "basic-rbc", "optimized-rbc"] {
            let other = -episode_return(&play(&scenario, Who::Baseline(rule), 0));
            assert!(other >= optimum.bound - 1e-6 * size, "{reward:?} {rule}: {other} {optimum:?}");
        }
        for seed in 0..20 {
            let other = -episode_return(&play(&scenario, Who::Controller(&mut random(seed)), 0));
            assert!(other > optimum.bound, "{reward:?} {seed}: {other} {optimum:?}");
        }
    }
}

/// The batteries of the embedded district lose efficiency at low power, which no linear program knows: the gap is wide.
#[test]
fn the_bound_of_the_embedded_district_holds() {
    if !slow("the optimum of the embedded district") {
        return;
    }
    let scenario = CityLearn::new(CityLearnConfig { optimum: true, ..CityLearnConfig::default() }).unwrap();
    let (optimum, recording) = scenario.optimum().unwrap();
    println!("{optimum:?} gap {:.4}, score {:?}", optimum.gap(), scenario.indicators(&recording).challenge_score());
    assert!(optimum.planned < optimum.value && optimum.gap() < 0.1, "{optimum:?}");
    for baseline in scenario.baselines() {
        let other = -episode_return(&play(&scenario, Who::Baseline(&baseline.name), 0));
        assert!(other >= optimum.bound, "{baseline:?}: {other} {optimum:?}");
    }
}

#[test]
fn rules_that_no_linear_program_knows_are_refused() {
    let config = CityLearnConfig { optimum: true, physics: Physics::CityLearn30, ..CityLearnConfig::default() };
    let error = CityLearn::new(config).err().unwrap().to_string();
    assert!(error.starts_with("`physics` must be `clean` for `optimum`"), "{error}");
}
