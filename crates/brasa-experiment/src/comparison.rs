//! Comparison of a policy and baselines in the same episodes, as a table or JSON.

use std::ops::Range;
use std::time::{Duration, Instant};

use brasa_env::{BaselineKind, Better, Effort, EnvError, Evaluation, Figure, Outcome, Reference, Scenario, Split, Who};
use brasa_train::{EVAL_LENGTH, EVAL_RETURN, EpisodesView};
use serde_json::{Map, Value, json};

use crate::policy::LoadedPolicy;
use crate::registry::{Remark, RemarkContext};
use crate::statistics::deviation;
use crate::{Experiment, ExperimentError};

/// Name of the trained policy among the baselines.
pub const TRAINED: &str = "trained";

/// The episodes of a baseline, or of the policy.
pub struct Played {
    /// Name of the row.
    pub name: String,
    /// `None` for the trained policy.
    pub kind: Option<BaselineKind>,
    /// One outcome per episode.
    pub outcomes: Vec<Outcome>,
}

/// Settings of a comparison.
pub(crate) struct Question<'a> {
    pub experiment: &'a Experiment<'a>,
    pub policy: Option<&'a LoadedPolicy>,
    /// Number of episodes; `None` for the scenario's default.
    pub n_episodes: Option<u64>,
    /// Metrics of the training run.
    pub metrics: &'a [Map<String, Value>],
}

/// Result of a comparison.
pub(crate) struct Answer {
    pub comparison: Comparison,
    pub remark: Remark,
    /// The scenario of the evaluation, if it differs from that of training.
    pub scenario: Option<Box<dyn Scenario>>,
    /// The policy, adapted to that scenario.
    pub policy: Option<LoadedPolicy>,
    pub played: Vec<Played>,
}

impl<'a> Question<'a> {
    pub fn new(experiment: &'a Experiment<'a>, policy: Option<&'a LoadedPolicy>) -> Self {
        Self { experiment, policy, n_episodes: None, metrics: &[] }
    }

    /// Plays the same episodes with every baseline and with the policy.
    pub fn answer(&self) -> Result<Answer, ExperimentError> {
        let of_training = &*self.experiment.scenario;
        let n_episodes = self.n_episodes.unwrap_or_else(|| of_training.n_episodes(Effort::Compare));
        let other = of_training.for_evaluation(n_episodes)?;
        let scenario = other.as_deref().unwrap_or(of_training);
        let entry = self.experiment.entry;
        // Traces are for the report of a policy; there is none for baselines alone.
        let n_traces = |name: &str| match self.policy {
            Some(_) => entry.sections.iter().map(|section| section.n_traces(name)).max().unwrap_or(0),
            None => 0,
        };
        let seed = self.experiment.train.eval_seed;
        let evaluation = |name: &str| Evaluation { n_traces: n_traces(name), ..Evaluation::new(n_episodes, seed) };
        let mut played = Vec::new();
        for baseline in scenario.baselines() {
            let outcomes = in_parts(scenario, &baseline.name, &evaluation(&baseline.name))?;
            played.push(Played { name: baseline.name, kind: Some(baseline.kind), outcomes });
        }
        let mut adapted = None;
        if let Some(policy) = self.policy {
            let (policy, outcomes) = play(scenario, policy, &evaluation(TRAINED))?;
            adapted = Some(policy);
            played.push(Played { name: TRAINED.to_owned(), kind: None, outcomes });
        }
        let context = RemarkContext { scenario, played: &played, seed, metrics: self.metrics };
        let remark = entry.remark.as_ref().map(|remark| remark(&context)).transpose()?.unwrap_or_default();
        let figures = scenario.figures();
        let rows = rows(&figures, &played);
        let note = note(&figures, &scenario.about_episodes(n_episodes), Way::among(&rows), &remark);
        let comparison = Comparison { figures, rows, note };
        Ok(Answer { comparison, remark, scenario: other, policy: adapted, played })
    }
}

/// Plays the episodes of a baseline, a few at a time if they take long, and shows how many are complete.
fn in_parts(scenario: &dyn Scenario, baseline: &str, evaluation: &Evaluation) -> Result<Vec<Outcome>, EnvError> {
    let Range { start, end } = evaluation.episodes;
    let mut view = EpisodesView::new(baseline, end - start);
    let (mut outcomes, mut first, mut n) = (Vec::new(), start, 1);
    while first < end {
        let episodes = first..(first + n).min(end);
        let n_traces = evaluation.n_traces.saturating_sub((first - start) as usize);
        let begin = Instant::now();
        first = episodes.end;
        outcomes.extend(
            scenario.evaluate(Who::Baseline(baseline), &Evaluation { episodes, n_traces, seed: evaluation.seed })?,
        );
        match begin.elapsed() < Duration::from_millis(500) {
            true => n *= 2,
            false => view.show(first - start),
        }
    }
    Ok(outcomes)
}

/// Adapts the policy to `scenario` and plays its episodes.
pub(crate) fn play(
    scenario: &dyn Scenario,
    policy: &LoadedPolicy,
    evaluation: &Evaluation,
) -> Result<(LoadedPolicy, Vec<Outcome>), ExperimentError> {
    let spec = scenario.envs(Split::Evaluation, 0..1)?.spec().clone();
    let policy = policy.adapted(&spec, &scenario.extensions())?;
    let mut controller = policy.controller(&spec);
    let outcomes = scenario.evaluate(Who::Controller(&mut *controller), evaluation)?;
    Ok((policy, outcomes))
}

/// The note below the table.
fn note(figures: &[Figure], episodes: &str, way: Option<Way>, remark: &Remark) -> String {
    let mut sentences = vec![episodes.to_owned()];
    sentences.extend(way.map(|way| way.note()));
    let references = references(figures);
    if !references.is_empty() {
        sentences.push(format!("Beside a figure: its ratio to {references}."));
    }
    if !remark.text.is_empty() {
        sentences.push(remark.text.clone());
    }
    sentences.retain(|sentence| !sentence.is_empty());
    sentences.join(" ")
}

/// Describes the references of the ratios.
pub(crate) fn references(figures: &[Figure]) -> String {
    let mut references: Vec<String> = Vec::new();
    for figure in figures {
        let text = match &figure.reference {
            Some(Reference::Baseline(name)) => format!("{name}'s"),
            Some(Reference::OfEpisode(text)) => text.clone(),
            None => continue,
        };
        if !references.contains(&text) {
            references.push(text);
        }
    }
    references.join(", or to ")
}

/// The returns of doing nothing and of the optimum, or of a bound that was played.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Way {
    idle: f64,
    best: f64,
    /// Names of both baselines.
    names: [String; 2],
}

impl Way {
    /// From the idle baseline to the optimum or bound among `rows`, if both have a return.
    pub fn among(rows: &[Row]) -> Option<Self> {
        let find = |kinds: &[BaselineKind]| {
            let row = rows.iter().find(|row| row.kind.is_some_and(|kind| kinds.contains(&kind)))?;
            Some((row.name.clone(), row.episode_return?.0))
        };
        let (idle_name, idle) = find(&[BaselineKind::Idle])?;
        let (best_name, best) = find(&[BaselineKind::Optimum, BaselineKind::Bound])?;
        (best > idle).then_some(Self { idle, best, names: [idle_name, best_name] })
    }

    /// The share that a return covers: 0 for the idle baseline, 1 for the optimum.
    pub fn share(&self, episode_return: f64) -> f64 {
        (episode_return - self.idle) / (self.best - self.idle)
    }

    /// A sentence for tables.
    pub fn note(&self) -> String {
        format!("Share of the way: that of the return from {} to {}.", self.names[0], self.names[1])
    }
}

/// Label of [`Way::share`] in tables, below the return.
pub(crate) const WAY: &str = "  share of the way";

/// The results of the baselines and the policy, in the order of reports.
#[derive(Debug)]
pub struct Comparison {
    /// The figures of the scenario.
    pub figures: Vec<Figure>,
    /// One row per baseline, then the policy.
    pub rows: Vec<Row>,
    /// Sentences on the origin of the episodes and on the standard errors.
    pub note: String,
}

/// The results of a baseline or the policy.
#[derive(Debug)]
pub struct Row {
    /// Name of the baseline or the policy.
    pub name: String,
    /// `None` for the trained policy.
    pub kind: Option<BaselineKind>,
    /// Mean and standard deviation over episodes; `None` for a bound, which plays no episodes.
    pub episode_return: Option<(f64, f64)>,
    /// Mean length of an episode.
    pub length: f64,
    /// One cell per figure.
    pub cells: Vec<Cell>,
    /// Additional values for JSON: means over episodes.
    details: Map<String, Value>,
    /// The figures of every episode.
    episodes: Map<String, Value>,
    n_episodes: usize,
}

/// The value of a figure in a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    /// The mean over the episodes in which the figure is defined.
    pub value: Option<f64>,
    /// Ratio to the reference of the figure.
    pub ratio: Option<f64>,
    /// Standard error of the mean; `None` with fewer than two episodes.
    pub standard_error: Option<f64>,
}

impl Cell {
    /// The number by which rows are ranked.
    pub fn score(&self) -> Option<f64> {
        self.ratio.or(self.value)
    }
}

/// Weighted mean; `None` without values.
fn mean(values: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let (sum, weight) = values.fold((0.0, 0.0), |(sum, total), (value, weight)| (sum + value * weight, total + weight));
    (weight > 0.0).then(|| sum / weight)
}

/// Mean of figure `i` over the episodes in which it is defined.
fn mean_value(outcomes: &[Outcome], i: usize) -> Option<f64> {
    mean(outcomes.iter().filter_map(|o| Some((o.figures.get(i)?.value?, o.figures[i].weight))))
}

fn mean_length(outcomes: &[Outcome]) -> Option<f64> {
    mean(outcomes.iter().map(|outcome| (outcome.length as f64, 1.0)))
}

fn rows(figures: &[Figure], played: &[Played]) -> Vec<Row> {
    played.iter().map(|one| row(figures, played, one)).collect()
}

/// The results of `played`. Ratios refer to the baselines among `all`.
pub(crate) fn row(figures: &[Figure], all: &[Played], played: &Played) -> Row {
    let cell = |outcomes: &[Outcome], (i, figure): (usize, &Figure)| {
        let value = mean_value(outcomes, i);
        let ratio = match &figure.reference {
            None => None,
            Some(Reference::OfEpisode(_)) => {
                mean(outcomes.iter().filter_map(|o| Some((o.figures.get(i)?.ratio?, 1.0))))
            }
            Some(Reference::Baseline(name)) => {
                let reference = all.iter().find(|row| row.name == *name);
                let reference = reference.and_then(|row| mean_value(&row.outcomes, i)).filter(|value| *value != 0.0);
                value.zip(reference).map(|(value, reference)| value / reference)
            }
        };
        let values: Vec<f64> = outcomes.iter().filter_map(|o| o.figures.get(i)?.value).collect();
        let standard_error = deviation(&values).map(|deviation| deviation / (values.len() as f64).sqrt());
        Cell { value, ratio, standard_error }
    };
    let outcomes = &played.outcomes;
    let returns: Vec<f64> = outcomes.iter().filter_map(|outcome| outcome.episode_return).collect();
    let episode_return = mean(returns.iter().map(|value| (*value, 1.0)));
    let mut episodes = Map::from_iter([("return".to_owned(), json!(returns))]);
    for (i, figure) in figures.iter().enumerate() {
        let values: Vec<Option<f64>> =
            outcomes.iter().map(|outcome| outcome.figures.get(i).and_then(|measured| measured.value)).collect();
        episodes.insert(figure.name.clone(), json!(values));
    }
    let mut details = Map::new();
    for (name, _) in outcomes.first().map(|outcome| outcome.details.as_slice()).unwrap_or_default() {
        let values = outcomes.iter().filter_map(|outcome| Some((outcome.detail(name)?, 1.0)));
        details.insert(name.clone(), json!(mean(values)));
    }
    Row {
        name: played.name.clone(),
        kind: played.kind,
        episode_return: episode_return.map(|mean| (mean, deviation(&returns).unwrap_or(0.0))),
        length: mean_length(outcomes).unwrap_or(0.0),
        cells: figures.iter().enumerate().map(|figure| cell(outcomes, figure)).collect(),
        details,
        episodes,
        n_episodes: outcomes.len(),
    }
}

/// The metrics of an evaluation during training.
pub(crate) fn mean_figures(scenario: &dyn Scenario, outcomes: &[Outcome]) -> Vec<(String, f64)> {
    let mut metrics = Vec::new();
    let returns = mean(outcomes.iter().filter_map(|outcome| Some((outcome.episode_return?, 1.0))));
    metrics.extend(returns.map(|mean| (EVAL_RETURN.to_owned(), mean)));
    metrics.extend(mean_length(outcomes).map(|mean| (EVAL_LENGTH.to_owned(), mean)));
    for (i, figure) in scenario.figures().iter().enumerate() {
        metrics.extend(mean_value(outcomes, i).map(|value| (format!("eval/{}", figure.name), value)));
    }
    metrics
}

impl Comparison {
    /// `{"controllers": {name: {"kind", "return", "return_std", "length", "return_share", figures ..., "ratios": {...}, "standard_errors": {...},
    /// "details": {...}, "episodes": {...}}}}`.
    pub fn to_json(&self) -> Map<String, Value> {
        let controllers = self.rows.iter().map(|row| (row.name.clone(), self.row_json(row)));
        Map::from_iter([("controllers".to_owned(), Value::Object(controllers.collect()))])
    }

    fn row_json(&self, row: &Row) -> Value {
        let mut object = Map::from_iter([("kind".to_owned(), json!(row.kind.map_or(TRAINED, BaselineKind::name)))]);
        if let Some((mean, deviation)) = row.episode_return {
            object.insert("return".into(), json!(mean));
            object.insert("return_std".into(), json!(deviation));
            object.insert("length".into(), json!(row.length));
            if let Some(way) = Way::among(&self.rows) {
                object.insert("return_share".into(), json!(way.share(mean)));
            }
        }
        let named = |of: fn(&Cell) -> Option<f64>| -> Map<String, Value> {
            let cells = self.figures.iter().zip(&row.cells);
            cells.filter_map(|(figure, cell)| Some((figure.name.clone(), json!(of(cell)?)))).collect()
        };
        object.extend(named(|cell| cell.value));
        object.insert("ratios".into(), Value::Object(named(|cell| cell.ratio)));
        object.insert("standard_errors".into(), Value::Object(named(|cell| cell.standard_error)));
        object.insert("details".into(), Value::Object(row.details.clone()));
        object.insert("episodes".into(), Value::Object(row.episodes.clone()));
        object.insert("n_episodes".into(), json!(row.n_episodes));
        Value::Object(object)
    }

    /// The result as a line of JSON or as text.
    pub(crate) fn to_output(&self, json: bool) -> String {
        match json {
            true => format!("{}\n", Value::Object(self.to_json())),
            false => self.to_text(),
        }
    }

    /// The result as text: a table, or a sentence if there is only a return.
    pub fn to_text(&self) -> String {
        if let ([row], true) = (&self.rows[..], self.figures.is_empty()) {
            let (mean, deviation) = row.episode_return.unwrap_or_default();
            return format!("return {mean:.1} +- {deviation:.1} over {} episodes\n", row.n_episodes);
        }
        let mut lines = vec![(String::new(), self.rows.iter().map(|row| row.name.clone()).collect::<Vec<_>>())];
        let kinds = self.rows.iter().map(|row| row.kind.map_or("", BaselineKind::name).to_owned()).collect();
        lines.push((String::new(), kinds));
        let value = |row: &Row| row.episode_return.map(|(mean, _)| number(mean)).unwrap_or_default();
        lines.push(("return".into(), self.rows.iter().map(value).collect()));
        if let Some(way) = Way::among(&self.rows) {
            let share = |row: &Row| row.episode_return.map(|(mean, _)| format!("{:.4}", way.share(mean)));
            lines.push((WAY.into(), self.rows.iter().map(|row| share(row).unwrap_or_default()).collect()));
        }
        for (i, figure) in self.figures.iter().enumerate() {
            let has_ratio = self.rows.iter().any(|row| row.cells[i].ratio.is_some());
            let cells = self.rows.iter().map(|row| {
                let cell = &row.cells[i];
                let ratio = cell.ratio.map(|ratio| format!("{ratio:.4}")).unwrap_or_default();
                match cell.value {
                    Some(value) if has_ratio => format!("{} {ratio:>7}", number(value)),
                    Some(value) => number(value),
                    None => ratio,
                }
            });
            lines.push((figure.label.clone(), cells.collect()));
        }
        format!("{}\n{}\n", align(&lines), self.note)
    }

    /// The best score of figure `i`, if the figure has a better direction. Bounds are excluded.
    pub fn best(&self, i: usize) -> Option<f64> {
        let scores = || {
            let racing = self.rows.iter().filter(|row| row.kind != Some(BaselineKind::Bound));
            racing.filter_map(|row| row.cells[i].score())
        };
        let best = match self.figures[i].better? {
            Better::Less => scores().reduce(f64::min),
            Better::More => scores().reduce(f64::max),
        };
        best.filter(|best| scores().any(|score| (score - best).abs() > 1e-9))
    }
}

/// Formats a number with 0, 1 or 3 decimals, depending on its size, and with separated thousands.
pub fn number(value: f64) -> String {
    let decimals = match value.abs() {
        x if x >= 1000.0 => 0,
        x if x >= 10.0 => 1,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    let (sign, digits) = text.strip_prefix('-').map_or(("", text.as_str()), |digits| ("-", digits));
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(a, b)| (a, Some(b)));
    let mut grouped = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    match fraction {
        Some(fraction) => format!("{sign}{grouped}.{fraction}"),
        None => format!("{sign}{grouped}"),
    }
}

/// Formats a table: the first column left-aligned, the others right-aligned, a line below the header.
pub(crate) fn align(lines: &[(String, Vec<String>)]) -> String {
    let n_columns = lines.iter().map(|(_, cells)| cells.len()).max().unwrap_or(0);
    let first = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let width = |column: usize| lines.iter().filter_map(|(_, cells)| cells.get(column)).map(String::len).max();
    let widths: Vec<usize> = (0..n_columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for (i, (name, cells)) in lines.iter().enumerate() {
        let mut line = format!("{name:<first$}");
        for (cell, width) in cells.iter().zip(&widths) {
            line.push_str(&format!("   {cell:>width$}"));
        }
        text.push_str(line.trim_end());
        text.push('\n');
        let names_end = lines.get(i + 1).is_some_and(|(name, _)| !name.is_empty()) && name.is_empty();
        if names_end {
            text.push_str(&"-".repeat(first + widths.iter().map(|width| width + 3).sum::<usize>()));
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use brasa_env::Measured;

    #[test]
    fn numbers_are_grouped_and_rounded() {
        for (value, text) in [
            (1234567.8, "1,234,568"),
            (-29272.373, "-29,272"),
            (43.84, "43.8"),
            (0.90531, "0.905"),
            (999.96, "1,000.0"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    fn played(name: &str, kind: Option<BaselineKind>, values: &[Option<f64>]) -> Played {
        let outcome = |value: &Option<f64>| Outcome {
            episode_return: Some(1.0),
            figures: vec![Measured::maybe(*value)],
            ..Outcome::default()
        };
        Played { name: name.into(), kind, outcomes: values.iter().map(outcome).collect() }
    }

    #[test]
    fn means_skip_what_has_no_meaning_and_ratios_are_of_means() {
        let figures =
            vec![Figure::new("cost", "cost [$]").less_is_better().relative_to(Reference::Baseline("idle".into()))];
        let all = [
            played("idle", Some(BaselineKind::Idle), &[Some(4.0), Some(6.0)]),
            played("floor", Some(BaselineKind::Bound), &[Some(1.0), Some(1.0)]),
            played(TRAINED, None, &[Some(2.0), None]),
        ];
        let rows = rows(&figures, &all);
        assert_eq!(rows[2].cells[0], Cell { value: Some(2.0), ratio: Some(0.4), standard_error: None });
        assert_eq!(rows[0].cells[0].standard_error, Some(1.0));
        let comparison = Comparison { figures, rows, note: "Means.".into() };
        // A bound is never marked as the best.
        assert_eq!(comparison.best(0), Some(0.4));
        let text = comparison.to_text();
        assert!(text.contains("idle") && text.contains("bound") && text.contains("2.000  0.4000"), "{text}");
        let json = comparison.to_json();
        assert_eq!(json["controllers"]["trained"]["episodes"]["cost"], json!([2.0, null]));
    }
}
