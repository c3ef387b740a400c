//! The numbers of `docs/reference/citylearn.md`: steps per second on one core, and the results of the controllers.
//!
//! Prints and asserts nothing, so it only runs with `BRASA_SLOW=1`; add `--release` for the speed.
#![allow(clippy::unwrap_used)]

use std::time::Instant;

use brasa_citylearn::{CityLearn, CityLearnConfig, Physics};
use brasa_env::{BatchSlabs, EnvBatch, Evaluation, Scenario, Who};
use ndarray::Array2;

#[test]
fn district_steps_per_second() {
    if std::env::var_os("BRASA_SLOW").is_none() {
        return;
    }
    for physics in [Physics::CityLearn25, Physics::CityLearn30, Physics::Clean] {
        let scenario = CityLearn::new(CityLearnConfig { physics, ..CityLearnConfig::default() }).unwrap();
        for n_envs in [1, 64, 1024, 4096] {
            let mut batch = scenario.batch(0..n_envs).unwrap();
            let mut slabs = BatchSlabs::new(batch.spec());
            batch.reset(0, &mut slabs).unwrap();
            // Sampled once, because the actions of a learner are not part of a step.
            let actions: Vec<Array2<f32>> = (0..16)
                .map(|turn| {
                    Array2::from_shape_fn((n_envs, 5), |(env, battery)| {
                        let key = (turn * 100_003 + env * 101 + battery * 7) as u64;
                        ((key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f32 / (1u64 << 24) as f32) * 2.0 - 1.0
                    })
                })
                .collect();
            let turns = 2_000_000 / n_envs;
            let begin = Instant::now();
            let mut sum = 0.0;
            for turn in 0..turns {
                batch.step(actions[turn % 16].view(), &mut slabs).unwrap();
                sum += f64::from(slabs.reward[0]);
            }
            let rate = (turns * n_envs) as f64 / begin.elapsed().as_secs_f64();
            println!("{physics:?} {n_envs} environments: {rate:.3e} district steps/s (checksum {sum:.3})");
        }
    }
}

#[test]
fn controllers_side_by_side() {
    if std::env::var_os("BRASA_SLOW").is_none() {
        return;
    }
    for physics in [Physics::CityLearn25, Physics::CityLearn30, Physics::Clean] {
        let scenario = CityLearn::new(CityLearnConfig { physics, ..CityLearnConfig::default() }).unwrap();
        for baseline in scenario.baselines() {
            let outcome = scenario.evaluate(Who::Baseline(&baseline.name), &Evaluation::new(1, 0)).unwrap().remove(0);
            let names = scenario.figures().into_iter().map(|figure| figure.name);
            let figures = names.zip(&outcome.figures).map(|(name, figure)| match (figure.value, figure.ratio) {
                (Some(value), Some(ratio)) => format!("{name} {value:.2} ({ratio:.4})"),
                (_, ratio) => format!("{name} ({:.4})", ratio.unwrap_or(f64::NAN)),
            });
            println!("{physics:?} {}: {}", baseline.name, figures.collect::<Vec<_>>().join(", "));
        }
    }
}
