//! Helpers for outcomes of both scenarios.
#![allow(dead_code, reason = "no test uses all of it")]

pub mod data;
pub mod golden;
pub mod station;
pub mod thermal;

use brasa_energy::Trace;
use brasa_env::{Evaluation, Outcome, Scenario, Who};

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

pub fn trace(outcome: &Outcome) -> &Trace {
    outcome.trace.as_ref().and_then(|trace| trace.downcast_ref()).expect("a trace was asked for")
}

pub fn episode_return(outcome: &Outcome) -> f64 {
    outcome.episode_return.expect("an episode was played")
}
