//! Common parts of the scenarios of this crate.

use std::ops::Range;

use brasa_env::{
    Baseline, BaselineKind, Better, Curve, EnvError, Evaluation, Figure, Measured, Outcome, Reference, field,
};

use crate::error::fail;
use crate::{EnergyError, Ledger};

/// A figure with a ratio to `reference` in each episode.
pub(crate) fn figure(name: &str, label: impl Into<String>, better: Option<Better>, reference: &str) -> Figure {
    Figure { better, ..Figure::new(name, label) }.relative_to(Reference::OfEpisode(reference.to_owned()))
}

/// Name of the best known schedule with perfect foresight among the baselines.
pub(crate) const FORESIGHT: &str = "perfect-foresight";

/// Name of the bound of the return that no controller exceeds, among the baselines.
pub(crate) const BOUND: &str = "bound";

/// The baselines with perfect foresight: the schedule and the bound.
pub(crate) fn foresight_baselines() -> [Baseline; 2] {
    [Baseline::new(FORESIGHT, BaselineKind::Plan), Baseline::new(BOUND, BaselineKind::Bound)]
}

/// Rejects the key `optimum` of a config where this crate was compiled without linear programmes.
pub(crate) fn check_optimum(wanted: bool) -> Result<(), EnergyError> {
    match wanted && !cfg!(feature = "optimum") {
        true => fail("optimum", "needs the feature `optimum` of the crate", wanted),
        false => Ok(()),
    }
}

/// Rejects an empty batch.
pub(crate) fn at_least_one(envs: &Range<usize>) -> Result<(), EnergyError> {
    Ok(field::at_least_one("n_envs", envs.len() as u64)?)
}

/// Carbon relative to the reference during training; both are columns of the step's figures.
pub(crate) fn curves() -> Vec<Curve> {
    vec![Curve {
        label: "carbon / reference".to_owned(),
        metric: "rollout/carbon_kg".to_owned(),
        divided_by: Some("rollout/reference_carbon_kg".to_owned()),
        evaluated: None,
        figure: None,
    }]
}

/// The flows of an episode as details of its outcome.
pub(crate) fn details(ledger: &Ledger) -> Vec<(String, f64)> {
    entries(ledger.entries())
}

/// The entries of a ledger as details of an outcome.
pub(crate) fn entries<const N: usize>(entries: [(&'static str, f64); N]) -> Vec<(String, f64)> {
    entries.into_iter().map(|(name, kwh)| (format!("ledger.{name}"), kwh)).collect()
}

/// The values of an episode with those of its reference.
pub(crate) fn relative<const N: usize>(values: [f64; N], reference: [f64; N]) -> Vec<Measured> {
    values.into_iter().zip(reference).map(|(value, of)| Measured::new(value).relative_to(of)).collect()
}

/// An episode of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Evaluated {
    /// Index of the episode, which selects its days where they are played in order.
    pub(crate) index: u64,
    /// Seed of its random numbers.
    pub(crate) seed: u64,
}

/// One outcome for each episode of `evaluation`; `play` gets the episode and whether to record a trace.
///
/// An episode is played in one environment.
pub(crate) fn each_episode<E: Into<EnvError>>(
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
