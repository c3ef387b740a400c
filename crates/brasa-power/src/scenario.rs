//! Figures, baselines and evaluations of energy scenarios.

use std::ops::Range;

use brasa_env::{
    Baseline, BaselineKind, Better, Curve, EnvError, Evaluation, Figure, FigureRule, Measured, Outcome, Reference,
    field,
};

use crate::{EnergyError, Ledger};

/// A figure with a ratio to `reference` in each episode.
pub fn figure(name: &str, label: impl Into<String>, better: Option<Better>, reference: &str) -> Figure {
    Figure { better, ..Figure::new(name, label) }.relative_to(Reference::OfEpisode(reference.to_owned()))
}

/// Name of the best known schedule with perfect foresight among the baselines.
pub const FORESIGHT: &str = "perfect-foresight";

/// Name of the bound of the return that no controller exceeds, among the baselines.
pub const BOUND: &str = "bound";

/// The baselines with perfect foresight: the schedule and the bound.
pub fn foresight_baselines() -> [Baseline; 2] {
    [Baseline::new(FORESIGHT, BaselineKind::Plan), Baseline::new(BOUND, BaselineKind::Bound)]
}

/// Rejects the key `optimum` of a config where the scenario was compiled without linear programs.
pub fn check_optimum(wanted: bool, is_compiled: bool) -> Result<(), EnergyError> {
    Ok(field::rule(!wanted || is_compiled, "optimum", "needs the feature `optimum` of the crate", wanted)?)
}

/// Rejects an empty batch.
pub fn at_least_one(envs: &Range<usize>) -> Result<(), EnergyError> {
    Ok(field::at_least_one("n_envs", envs.len() as u64)?)
}

/// Carbon relative to the reference during training; both are columns of the step's figures.
pub fn curves() -> Vec<Curve> {
    vec![Curve {
        label: "carbon / reference".to_owned(),
        metric: "rollout/carbon_kg".to_owned(),
        divided_by: Some("rollout/reference_carbon_kg".to_owned()),
        evaluated: None,
        figure: None,
    }]
}

/// The flows of an episode as details of its outcome.
pub fn details(ledger: &Ledger) -> Vec<(String, f64)> {
    entries(ledger.entries())
}

/// The entries of a ledger as details of an outcome.
pub fn entries<const N: usize>(entries: [(&'static str, f64); N]) -> Vec<(String, f64)> {
    entries.into_iter().map(|(name, kwh)| (format!("ledger.{name}"), kwh)).collect()
}

/// Less is better, for tables of figures.
pub const LESS: Option<Better> = Some(Better::Less);
/// More is better, for tables of figures.
pub const MORE: Option<Better> = Some(Better::More);

/// The figures of a table, relative to `reference` in each episode. `{currency}` in a label stands for the currency of the scenario.
pub fn figures<T, V>(table: &[FigureRule<T, V>], currency: &str, reference: &str) -> Vec<Figure> {
    let labeled = |label: &str| label.replace("{currency}", currency);
    table.iter().map(|(name, label, better, _)| figure(name, labeled(label), *better, reference)).collect()
}

/// The figures of an episode with those of its reference, in the order of the table.
pub fn relative<T>(table: &[FigureRule<T>], episode: &T, reference: &T) -> Vec<Measured> {
    table.iter().map(|(.., of)| Measured::new(of(episode)).relative_to(of(reference))).collect()
}

/// An episode of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evaluated {
    /// Index of the episode, which selects its days where they are played in order.
    pub index: u64,
    /// Seed of its random numbers.
    pub seed: u64,
}

/// One outcome for each episode of `evaluation`; `play` gets the episode and whether to record a trace.
///
/// An episode is played in one environment.
pub fn each_episode<E: Into<EnvError>>(
    evaluation: &Evaluation,
    mut play: impl FnMut(Evaluated, bool) -> Result<Outcome, E>,
) -> Result<Vec<Outcome>, EnvError> {
    let place = evaluation.episodes.clone().enumerate();
    place
        .map(|(place, index)| {
            let episode = Evaluated { index, seed: evaluation.seed.wrapping_add(index) };
            play(episode, place < evaluation.n_traces)
        })
        .map(|outcome| outcome.map_err(Into::into))
        .collect()
}
