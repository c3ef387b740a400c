//! Figures, baselines and evaluations of energy scenarios.

use std::ops::Range;

use brasa_env::{
    Baseline, BaselineKind, Better, Curve, EnvError, Evaluation, Figure, FigureRule, Measured, Outcome, Reference,
    field,
};

use crate::{EnergyError, Ledger};

/// A figure with a ratio to `reference` in each episode.
///
/// ```
/// use brasa_power::scenario::{LESS, figure};
///
/// // The reference of each episode is the controller `nothing`.
/// let carbon = figure("carbon_kg", "Carbon (kg)", LESS, "nothing");
/// assert_eq!((carbon.name.as_str(), carbon.better), ("carbon_kg", LESS));
/// ```
pub fn figure(name: &str, label: impl Into<String>, better: Option<Better>, reference: &str) -> Figure {
    Figure { better, ..Figure::new(name, label) }.relative_to(Reference::OfEpisode(reference.to_owned()))
}

/// Name of the best known schedule with perfect foresight among the baselines.
///
/// ```
/// use brasa_power::scenario::{FORESIGHT, foresight_baselines};
///
/// assert!(foresight_baselines().iter().any(|baseline| baseline.name == FORESIGHT));
/// ```
pub const FORESIGHT: &str = "perfect-foresight";

/// Name of the bound of the return that no controller exceeds, among the baselines.
///
/// ```
/// use brasa_env::BaselineKind;
/// use brasa_power::scenario::{BOUND, foresight_baselines};
///
/// let bound = foresight_baselines().into_iter().find(|baseline| baseline.name == BOUND);
/// assert_eq!(bound.map(|baseline| baseline.kind), Some(BaselineKind::Bound));
/// ```
pub const BOUND: &str = "bound";

/// The baselines with perfect foresight: the schedule and the bound.
///
/// ```
/// use brasa_power::scenario::foresight_baselines;
///
/// let [schedule, bound] = foresight_baselines();
/// assert_eq!((schedule.name.as_str(), bound.name.as_str()), ("perfect-foresight", "bound"));
/// ```
pub fn foresight_baselines() -> [Baseline; 2] {
    [Baseline::new(FORESIGHT, BaselineKind::Plan), Baseline::new(BOUND, BaselineKind::Bound)]
}

/// Rejects the key `optimum` of a config where the scenario was compiled without linear programs.
///
/// ```
/// use brasa_power::scenario::check_optimum;
///
/// assert!(check_optimum(true, true).is_ok());
/// let error = check_optimum(true, false).unwrap_err();
/// assert_eq!(error.to_string(), "`optimum` needs the feature `optimum` of the crate, got true");
/// ```
pub fn check_optimum(wanted: bool, is_compiled: bool) -> Result<(), EnergyError> {
    Ok(field::rule(!wanted || is_compiled, "optimum", "needs the feature `optimum` of the crate", wanted)?)
}

/// Rejects an empty batch.
///
/// ```
/// use brasa_power::scenario::at_least_one;
///
/// assert!(at_least_one(&(4..8)).is_ok());
/// assert_eq!(at_least_one(&(4..4)).unwrap_err().to_string(), "`n_envs` must be at least 1, got 0");
/// ```
pub fn at_least_one(envs: &Range<usize>) -> Result<(), EnergyError> {
    Ok(field::at_least_one("n_envs", envs.len() as u64)?)
}

/// Carbon relative to the reference during training; both are columns of the step's figures.
///
/// ```
/// use brasa_power::scenario::curves;
///
/// let curve = &curves()[0];
/// assert_eq!(curve.metric, "rollout/carbon_kg");
/// assert_eq!(curve.divided_by.as_deref(), Some("rollout/reference_carbon_kg"));
/// ```
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
///
/// ```
/// use brasa_power::{Ledger, scenario::details};
///
/// let details = details(&Ledger { load_kwh: 3.0, ..Ledger::default() });
/// assert!(details.contains(&("ledger.load_kwh".to_owned(), 3.0)));
/// ```
pub fn details(ledger: &Ledger) -> Vec<(String, f64)> {
    entries(ledger.entries())
}

/// The entries of a ledger as details of an outcome.
///
/// ```
/// use brasa_power::scenario::entries;
///
/// assert_eq!(entries([("heat_kwh", 2.5)]), [("ledger.heat_kwh".to_owned(), 2.5)]);
/// ```
pub fn entries<const N: usize>(entries: [(&'static str, f64); N]) -> Vec<(String, f64)> {
    entries.into_iter().map(|(name, kwh)| (format!("ledger.{name}"), kwh)).collect()
}

/// Less is better, for tables of figures.
///
/// ```
/// use brasa_env::Better;
/// use brasa_power::scenario::LESS;
///
/// assert_eq!(LESS, Some(Better::Less));
/// ```
pub const LESS: Option<Better> = Some(Better::Less);
/// More is better, for tables of figures.
///
/// ```
/// use brasa_env::Better;
/// use brasa_power::scenario::MORE;
///
/// assert_eq!(MORE, Some(Better::More));
/// ```
pub const MORE: Option<Better> = Some(Better::More);

/// The figures of a table, relative to `reference` in each episode. `{currency}` in a label stands for the currency of the scenario.
///
/// ```
/// use brasa_env::FigureRule;
/// use brasa_power::scenario::{LESS, figures};
///
/// struct Totals {
///     cost: f64,
/// }
///
/// let table: [FigureRule<Totals>; 1] = [("cost", "Cost ({currency})", LESS, |totals| totals.cost)];
/// let figures = figures(&table, "EUR", "nothing");
/// assert_eq!((figures[0].name.as_str(), figures[0].label.as_str()), ("cost", "Cost (EUR)"));
/// ```
pub fn figures<T, V>(table: &[FigureRule<T, V>], currency: &str, reference: &str) -> Vec<Figure> {
    let labeled = |label: &str| label.replace("{currency}", currency);
    table.iter().map(|(name, label, better, _)| figure(name, labeled(label), *better, reference)).collect()
}

/// The figures of an episode with those of its reference, in the order of the table.
///
/// ```
/// use brasa_env::FigureRule;
/// use brasa_power::scenario::{LESS, relative};
///
/// struct Totals {
///     cost: f64,
/// }
///
/// let table: [FigureRule<Totals>; 1] = [("cost", "Cost (EUR)", LESS, |totals| totals.cost)];
/// let measured = relative(&table, &Totals { cost: 30.0 }, &Totals { cost: 40.0 });
/// assert_eq!(measured[0].value, Some(30.0));
/// ```
pub fn relative<T>(table: &[FigureRule<T>], episode: &T, reference: &T) -> Vec<Measured> {
    table.iter().map(|(.., of)| Measured::new(of(episode)).relative_to(of(reference))).collect()
}

/// An episode of an evaluation.
///
/// ```
/// use brasa_env::{EnvError, Evaluation, Outcome};
/// use brasa_power::scenario::{Evaluated, each_episode};
///
/// let mut played = Vec::new();
/// each_episode(&Evaluation::new(2, 7), |episode, _| {
///     played.push(episode);
///     Ok::<_, EnvError>(Outcome::default())
/// })?;
/// assert_eq!(played, [Evaluated { index: 0, seed: 7 }, Evaluated { index: 1, seed: 8 }]);
/// # Ok::<(), EnvError>(())
/// ```
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
///
/// ```
/// use brasa_env::{EnvError, Evaluation, Outcome};
/// use brasa_power::scenario::each_episode;
///
/// // A controller whose return is the index of the episode.
/// let outcomes = each_episode(&Evaluation::new(3, 7), |episode, _has_trace| {
///     Ok::<_, EnvError>(Outcome { episode_return: Some(episode.index as f64), ..Outcome::default() })
/// })?;
/// assert!(outcomes.iter().map(|outcome| outcome.episode_return).eq([0.0, 1.0, 2.0].map(Some)));
/// # Ok::<(), EnvError>(())
/// ```
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
