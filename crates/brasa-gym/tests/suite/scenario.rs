//! The scenario: its splits and its baseline.

use crate::common;

use brasa_env::{BatchSlabs, EnvBatch, EnvError, Evaluation, Scenario, Split, Who};
use brasa_gym::{GymConfig, Gymnasium};
use common::{config, python};
use ndarray::ArrayViewMut2;

fn scenario(config: GymConfig) -> Gymnasium {
    Gymnasium::new(config).expect("it is valid")
}

#[test]
fn invalid_settings_start_nothing() {
    let error = Gymnasium::new(GymConfig::default()).expect_err("it has no id").to_string();
    assert_eq!(error, "`id` must name an environment, got \"\"");
}

#[test]
fn training_and_evaluation_differ() {
    if python().is_none() {
        return;
    }
    let scenario = scenario(config("CartPole-v1"));
    let first = |split| {
        let mut batch = scenario.envs(split, 0..2).expect("the environments start");
        let mut slabs = BatchSlabs::new(batch.spec());
        batch.reset(3, &mut slabs).expect("they start");
        slabs.obs
    };
    assert_eq!(first(Split::Train), first(Split::Train));
    assert_ne!(first(Split::Train), first(Split::Evaluation));
}

#[test]
fn random_is_the_baseline_and_does_not_depend_on_the_batch() {
    if python().is_none() {
        return;
    }
    let scenario = scenario(config("CartPole-v1"));
    assert_eq!(scenario.baselines().len(), 1);
    let run = |episodes| {
        let evaluation = Evaluation { episodes, seed: 5, n_traces: 0 };
        let outcomes = scenario.evaluate(Who::Baseline("random"), &evaluation).expect("it runs");
        outcomes.into_iter().map(|outcome| (outcome.episode_return, outcome.length)).collect::<Vec<_>>()
    };
    let all = run(0..6);
    assert_eq!([run(0..2), run(2..6)].concat(), all);
    assert!(all.iter().all(|(episode_return, length)| *episode_return == Some(*length as f64)));
    let error = scenario.evaluate(Who::Baseline("best"), &Evaluation::new(2, 5)).expect_err("there is no such");
    assert!(error.to_string().contains("`best`; there are random"), "{error}");
}

#[test]
fn controllers_are_evaluated() {
    if python().is_none() {
        return;
    }
    let mut rule = |view: &BatchSlabs, mut actions: ArrayViewMut2<f32>| -> Result<(), EnvError> {
        for (mut action, obs) in actions.rows_mut().into_iter().zip(view.obs.rows()) {
            action[0] = f32::from(u8::from(obs[2] + obs[3] > 0.0));
        }
        Ok(())
    };
    let scenario = scenario(config("CartPole-v1"));
    let outcomes = scenario.evaluate(Who::Controller(&mut rule), &Evaluation::new(4, 5)).expect("it runs");
    assert!(outcomes.iter().all(|outcome| outcome.length > 100), "{outcomes:?}");
}
