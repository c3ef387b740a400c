//! Outcomes of scenarios, and their environments.
#![allow(clippy::expect_used, missing_docs)]

use std::ops::Range;

use brasa_env::{BatchSlabs, EnvBatch, EnvError, Evaluation, Outcome, Scenario, Split, Who, named_rng};
use ndarray::{Array2, ArrayViewMut2, s};
use rand::RngExt;

/// The episode of `seed`, with its trace.
pub fn play(scenario: &dyn Scenario, who: Who<'_>, seed: u64) -> Outcome {
    let evaluation = Evaluation { n_traces: 1, ..Evaluation::new(1, seed) };
    scenario.evaluate(who, &evaluation).expect("the episode is played").remove(0)
}

pub fn value(scenario: &dyn Scenario, outcome: &Outcome, name: &str) -> f64 {
    let figure = outcome.figure(&scenario.figures(), name).unwrap_or_else(|| panic!("no figure {name}"));
    figure.value.unwrap_or_else(|| panic!("{name} has no value"))
}

pub fn ratio(scenario: &dyn Scenario, outcome: &Outcome, name: &str) -> f64 {
    let figure = outcome.figure(&scenario.figures(), name).unwrap_or_else(|| panic!("no figure {name}"));
    figure.ratio.unwrap_or_else(|| panic!("{name} has no ratio"))
}

pub fn ledger(outcome: &Outcome, name: &str) -> f64 {
    outcome.detail(&format!("ledger.{name}")).unwrap_or_else(|| panic!("no flow {name}"))
}

/// The trace of an outcome, of type `T`.
pub fn trace<T: 'static>(outcome: &Outcome) -> &T {
    outcome.trace.as_ref().and_then(|trace| trace.downcast_ref()).expect("a trace was asked for")
}

pub fn episode_return(outcome: &Outcome) -> f64 {
    outcome.episode_return.expect("an episode was played")
}

/// A controller that chooses actions from -1 to 1 at random.
pub fn random(seed: u64) -> impl FnMut(&BatchSlabs, ArrayViewMut2<'_, f32>) -> Result<(), EnvError> {
    let mut rng = named_rng(seed, "actions", 0);
    move |_, mut actions| {
        actions.mapv_inplace(|_| 2.0 * rng.random::<f32>() - 1.0);
        Ok(())
    }
}

/// Plays `n` environments, and the one with index `row` alone: its numbers are the same.
pub fn one_equals_a_row_of_many(
    scenario: &dyn Scenario,
    n: usize,
    row: usize,
    mut actions: impl FnMut(&dyn EnvBatch) -> Array2<f32>,
) {
    let batch = |envs: Range<usize>| {
        let mut batch = scenario.envs(Split::Train, envs).expect("a batch");
        let mut slabs = BatchSlabs::new(batch.spec());
        batch.reset(11, &mut slabs).expect("resets");
        (batch, slabs)
    };
    let ((mut many, mut all), (mut one, mut alone)) = (batch(0..n), batch(row..row + 1));
    for _ in 0..100 {
        let actions = actions(&*many);
        many.step(actions.view(), &mut all).expect("steps");
        one.step(actions.slice(s![row..row + 1, ..]), &mut alone).expect("steps");
        assert_eq!(alone.obs.row(0), all.obs.row(row));
        assert_eq!(alone.next_obs.row(0), all.next_obs.row(row));
        assert_eq!(alone.info.row(0), all.info.row(row));
        assert_eq!(alone.reward[0].to_bits(), all.reward[row].to_bits());
        assert_eq!(alone.truncated[0], all.truncated[row]);
    }
}
