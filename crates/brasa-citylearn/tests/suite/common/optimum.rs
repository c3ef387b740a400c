//! Districts whose optimum is computed, and controllers that must not be better than its bound.
#![cfg(feature = "optimum")]
#![allow(clippy::unwrap_used)]

use brasa_citylearn::{ChallengeWeights as Weights, CityLearn, CityLearnConfig, Reward};
use brasa_env::{BatchSlabs, EnvError, Scenario, Who, named_rng};
use ndarray::ArrayViewMut2;
use rand::RngExt;

use super::data::Data;
use brasa_test::outcomes::{episode_return, play};

pub fn scenario(data: &Data, reward: Reward, weights: Weights) -> CityLearn {
    let data = data.folder.to_str().unwrap().to_owned();
    let accept_unlikely_pv = true;
    CityLearn::new(CityLearnConfig {
        data,
        reward,
        weights,
        accept_unlikely_pv,
        optimum: true,
        ..CityLearnConfig::default()
    })
    .unwrap()
}

/// Random actions of half of the steps; idle or full charge in the other ones.
fn random(seed: u64) -> impl FnMut(&BatchSlabs, ArrayViewMut2<'_, f32>) -> Result<(), EnvError> {
    let mut rng = named_rng(seed, "actions", 0);
    move |_, mut actions| {
        let all = [-1.0, 0.0, 1.0][seed as usize % 3];
        let mixed = rng.random::<bool>();
        actions.mapv_inplace(|_| if mixed { 2.0 * rng.random::<f32>() - 1.0 } else { all });
        Ok(())
    }
}

/// Compares every rule and twelve random controllers with the bound; `seed` chooses the reward.
pub fn no_controller_exceeds_the_bound(data: &Data, seed: u64) {
    let reward = [Reward::Challenge, Reward::ChallengeImprovement, Reward::GridImport][seed as usize % 3];
    let scenario = scenario(data, reward, Weights::default());
    let (optimum, _) = scenario.optimum().unwrap();
    let slack = 1e-7 * optimum.bound.abs().max(1.0);
    assert!(optimum.bound <= optimum.planned + slack && optimum.bound <= optimum.value + slack, "{seed}: {optimum:?}");
    for baseline in scenario.baselines() {
        let other = -episode_return(&play(&scenario, Who::Baseline(&baseline.name), 0));
        assert!(other >= optimum.bound - slack, "{seed} {}: {other} {optimum:?}", baseline.name);
    }
    for actions in 0..12 {
        let other = -episode_return(&play(&scenario, Who::Controller(&mut random(actions)), 0));
        assert!(other >= optimum.bound - slack, "{seed} {actions}: {other} {optimum:?}");
    }
    println!("{seed}: {reward:?} {optimum:?} gap {:.1e}", optimum.gap());
}
