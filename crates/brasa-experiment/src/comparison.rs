//! Comparison of a policy and baselines in the same episodes, as a table or JSON.

use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use brasa_env::{BaselineKind, Better, Effort, Evaluation, Figure, Outcome, Reference, Scenario, Split, Who, ratio};
use brasa_train::{EVAL_LENGTH, EVAL_RETURN, RunDir, WaitView};
use serde_json::{Map, Value, json};

use crate::exposure::{Exposure, TrainingData};
use crate::files::{Digests, about_changed};
use crate::policy::LoadedPolicy;
use crate::registry::{Remark, RemarkContext};
use crate::statistics::deviation;
use crate::way::{WAY, Way};
use crate::{Experiment, ExperimentError};

/// Name of the trained policy among the baselines.
pub const TRAINED: &str = "trained";

/// The episodes of a baseline, or of the policy.
///
/// ```
/// # mod program { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/program.inc")); }
/// # use program::*;
/// use brasa_classic::Classic;
/// use brasa_experiment::{App, ControllerOutcomes, NoSettings, Remark, ScenarioEntry};
///
/// # let dir = tempfile::tempdir()?;
/// # let config = written(dir.path());
/// let make = |_: NoSettings| Ok::<_, std::convert::Infallible>(Classic::cart_pole());
/// let entry = ScenarioEntry::new("pole", make);
/// let entry = entry.remark(|_, context| {
///     let ControllerOutcomes { name, kind, outcomes } = &context.played[0];
///     assert!(kind.is_some() && outcomes.len() == 3);
///     Ok(Remark { text: format!("The first baseline is {name}."), ..Default::default() })
/// });
/// let app = App::new("room").with(registry()).scenario(entry);
/// assert!(app.run_from(["room", "baseline", "--episodes", "3", &config])?.contains("The first baseline is "));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ControllerOutcomes {
    /// Name of the row.
    pub name: String,
    /// `None` for the trained policy.
    pub kind: Option<BaselineKind>,
    /// One outcome per episode.
    pub outcomes: Vec<Outcome>,
}

/// Settings of a comparison.
pub(crate) struct ComparisonSetup<'a> {
    pub experiment: &'a Experiment<'a>,
    pub policy: Option<&'a LoadedPolicy>,
    /// Number of episodes; `None` for the scenario's default.
    pub n_episodes: Option<u64>,
    /// Metrics of the training run.
    pub metrics: &'a [Map<String, Value>],
    /// What the training of the policy could see.
    pub training_data: Option<TrainingData>,
    /// Whether the policy was chosen by evaluations during training.
    pub is_best: bool,
    /// Whether the actions of the policy are sampled.
    pub is_sampled: bool,
    /// Files of the scenario with another content than in training.
    pub changed_files: Vec<PathBuf>,
}

/// Result of a comparison.
pub(crate) struct ComparisonResult {
    pub comparison: Comparison,
    pub remark: Remark,
    /// The scenario of the evaluation, if it differs from that of training.
    pub scenario: Option<Box<dyn Scenario>>,
    /// The policy, adapted to that scenario.
    pub policy: Option<LoadedPolicy>,
    pub played: Vec<ControllerOutcomes>,
}

impl<'a> ComparisonSetup<'a> {
    pub fn new(experiment: &'a Experiment<'a>, policy: Option<&'a LoadedPolicy>) -> Self {
        Self {
            experiment,
            policy,
            n_episodes: None,
            metrics: &[],
            training_data: None,
            is_best: false,
            is_sampled: experiment.train.eval_sampled,
            changed_files: Vec::new(),
        }
    }

    /// Settings for the policy of the run in `run_dir`, with the metrics of this run.
    pub fn of_run(
        experiment: &'a Experiment<'a>,
        policy: &'a LoadedPolicy,
        run_dir: &RunDir,
        metrics: &'a [Map<String, Value>],
    ) -> Self {
        let training_data = Some(TrainingData::read(run_dir));
        let changed_files = Digests::changed(run_dir, &*experiment.scenario);
        Self { metrics, training_data, changed_files, ..Self::new(experiment, Some(policy)) }
    }

    /// Plays the same episodes with every baseline and with the policy.
    pub fn run(&self) -> Result<ComparisonResult, ExperimentError> {
        let of_training = &*self.experiment.scenario;
        let wanted = self.n_episodes.unwrap_or_else(|| of_training.n_episodes(Effort::Compare));
        let other = of_training.for_evaluation(wanted)?;
        let scenario = other.as_deref().unwrap_or(of_training);
        let n_episodes = distinct(scenario, wanted);
        let entry = self.experiment.entry;
        // Traces are for the report of a policy; there is none for baselines alone.
        let n_traces = |name: &str| match self.policy {
            Some(_) => entry.sections.iter().map(|section| section.n_traces(name)).max().unwrap_or(0),
            None => 0,
        };
        let seed = self.experiment.train.eval_seed;
        let evaluation = |name: &str, n| Evaluation { n_traces: n_traces(name), ..Evaluation::new(n, seed) };
        let mut played = Vec::new();
        for baseline in scenario.baselines() {
            let n = if baseline.is_random { wanted } else { n_episodes };
            let outcomes = in_parts(scenario, &baseline.name, &evaluation(&baseline.name, n))?;
            played.push(ControllerOutcomes { name: baseline.name, kind: Some(baseline.kind), outcomes });
        }
        let mut adapted = None;
        if let Some(policy) = self.policy {
            let (policy, outcomes) = play(scenario, policy, self.is_sampled, &evaluation(TRAINED, n_episodes))?;
            adapted = Some(policy);
            played.push(ControllerOutcomes { name: TRAINED.to_owned(), kind: None, outcomes });
        }
        let context = RemarkContext { scenario, played: &played, seed, metrics: self.metrics };
        let remark = entry.remark.as_ref().map(|remark| remark(&context)).transpose()?.unwrap_or_default();
        let figures = scenario.figures();
        let rows = rows(&figures, &played);
        let exposure = self.policy.map(|_| match &self.training_data {
            Some(data) => data.exposure(&scenario.data(Split::Evaluation)),
            None => Exposure::Unknown,
        });
        let mut about = about_episodes(scenario, self.n_episodes, n_episodes, exposure);
        if self.is_best && scenario.n_distinct_episodes().is_some() {
            about.push_str(" The policy was chosen by its return in these episodes.");
        }
        if self.is_sampled {
            about.push_str(" The actions of the policy were sampled.");
        }
        if let Some(sentence) = about_changed(&self.changed_files) {
            about = format!("{about} {sentence}");
        }
        let note = note(&figures, &rows, &about, &remark);
        let changed_files = self.changed_files.clone();
        let comparison = Comparison { figures, rows, note, exposure, changed_files };
        Ok(ComparisonResult { comparison, remark, scenario: other, policy: adapted, played })
    }
}

/// Plays the episodes of a baseline, a few at a time if they take long, and shows how many are complete.
fn in_parts(scenario: &dyn Scenario, baseline: &str, evaluation: &Evaluation) -> Result<Vec<Outcome>, ExperimentError> {
    let Range { start, end } = evaluation.episodes;
    let view = WaitView::episodes(baseline, end - start);
    let (mut outcomes, mut first, mut n) = (Vec::new(), start, 1);
    while first < end {
        let episodes = first..(first + n).min(end);
        let n_traces = evaluation.n_traces.saturating_sub((first - start) as usize);
        let begin = Instant::now();
        first = episodes.end;
        outcomes.extend(
            scenario
                .evaluate(Who::Baseline(baseline), &Evaluation { episodes, n_traces, seed: evaluation.seed })
                .map_err(ExperimentError::of_running)?,
        );
        view.show(first - start);
        if begin.elapsed() < Duration::from_millis(500) {
            n *= 2;
        }
    }
    Ok(outcomes)
}

/// Adapts the policy to `scenario` and plays its episodes; `is_sampled` is whether its actions are sampled.
pub(crate) fn play(
    scenario: &dyn Scenario,
    policy: &LoadedPolicy,
    is_sampled: bool,
    evaluation: &Evaluation,
) -> Result<(LoadedPolicy, Vec<Outcome>), ExperimentError> {
    let spec = scenario.envs(Split::Evaluation, 0..1)?.spec().clone();
    let policy = policy.adapted(&spec, &scenario.extensions())?;
    let mut controller = policy.controller_that(is_sampled, &spec, evaluation.seed)?;
    let _view = WaitView::episodes(TRAINED, evaluation.episodes.end - evaluation.episodes.start);
    let outcomes = scenario.evaluate(Who::Controller(&mut *controller), evaluation);
    let outcomes = outcomes.map_err(ExperimentError::of_running)?;
    Ok((policy, outcomes))
}

/// The number of different episodes among the first `n_episodes` of an evaluation.
pub(crate) fn distinct(scenario: &dyn Scenario, n_episodes: u64) -> u64 {
    scenario.n_distinct_episodes().map_or(n_episodes, |n_distinct| n_episodes.min(n_distinct.max(1)))
}

/// Sentences on the episodes that were played, where `asked` is their number if the user gave one.
pub(crate) fn about_episodes(
    scenario: &dyn Scenario,
    asked: Option<u64>,
    n_episodes: u64,
    exposure: Option<Exposure>,
) -> String {
    let mut sentences = vec![scenario.about_episodes(n_episodes)];
    if let Some(asked) = asked.filter(|asked| *asked > n_episodes) {
        sentences.push(format!("Different episodes: {n_episodes} of {asked}; copies are not run."));
    }
    sentences.extend(exposure.map(Exposure::sentence));
    sentences.join(" ")
}

/// The note below the table.
fn note(figures: &[Figure], rows: &[Row], episodes: &str, remark: &Remark) -> String {
    let mut sentences = vec![episodes.to_owned()];
    sentences.extend(Way::among(rows).map(|way| way.note()));
    let references = references(figures);
    if !references.is_empty() {
        let differs = (0..figures.len()).any(|i| beside(rows, i) == Some(Beside::Differences));
        let or = if differs {
            ", or its difference (with a sign) where one of both is negative or the reference is 0"
        } else {
            ""
        };
        sentences.push(format!("Next to a metric: its ratio to {references}{or}."));
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

/// The results of the baselines and the policy, in the order of reports.
#[derive(Debug)]
pub(crate) struct Comparison {
    /// The figures of the scenario.
    pub figures: Vec<Figure>,
    /// One row per baseline, then the policy.
    pub rows: Vec<Row>,
    /// Sentences on the origin of the episodes and on the references.
    pub note: String,
    /// Whether training could see the data of the episodes; `None` without a policy.
    pub(crate) exposure: Option<Exposure>,
    /// Files of the scenario with another content than in training.
    pub(crate) changed_files: Vec<PathBuf>,
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
    /// Number of different episodes.
    pub n_episodes: usize,
}

/// The value of a figure in a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    /// The mean over the episodes in which the figure is defined.
    pub value: Option<f64>,
    /// Mean of the reference of the figure.
    pub reference: Option<f64>,
    /// Ratio to the reference: of the means, or the mean of ratios for a figure without values. `None` where a ratio compares
    /// nothing, because value or reference are negative or the reference is 0.
    pub ratio: Option<f64>,
    /// Standard error of the mean; `None` with fewer than two episodes.
    pub standard_error: Option<f64>,
}

impl Cell {
    /// The number by which rows are ranked.
    pub fn score(&self) -> Option<f64> {
        self.value.or(self.ratio)
    }

    /// The difference from the reference.
    pub fn difference(&self) -> Option<f64> {
        Some(self.value? - self.reference?)
    }
}

/// What a table shows next to the values of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beside {
    Ratios,
    Differences,
}

/// What is shown next to the values of figure `i`, the same in all rows; `None` if it has no reference, or all rows equal a
/// reference without ratios.
pub(crate) fn beside<'a>(rows: impl IntoIterator<Item = &'a Row>, i: usize) -> Option<Beside> {
    let (mut has_ratio, mut lacks_ratio, mut differs) = (false, false, false);
    for cell in rows.into_iter().map(|row| &row.cells[i]) {
        has_ratio |= cell.ratio.is_some();
        lacks_ratio |= cell.difference().is_some() && cell.ratio.is_none();
        differs |= cell.difference().is_some_and(|difference| difference != 0.0);
    }
    match (lacks_ratio, has_ratio) {
        (true, _) => differs.then_some(Beside::Differences),
        (false, true) => Some(Beside::Ratios),
        (false, false) => None,
    }
}

/// The text next to a value.
pub(crate) fn beside_text(beside: Option<Beside>, cell: &Cell) -> Option<String> {
    match beside? {
        Beside::Ratios => cell.ratio.map(|ratio| format!("{ratio:.4}")),
        Beside::Differences => cell.difference().map(signed),
    }
}

/// A number with its sign.
pub(crate) fn signed(value: f64) -> String {
    format!("{}{}", if value > 0.0 { "+" } else { "" }, number(value))
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

/// Mean of the references of figure `i` over the episodes in which it is defined.
fn mean_reference(outcomes: &[Outcome], i: usize) -> Option<f64> {
    let defined = outcomes.iter().filter_map(|o| o.figures.get(i)).filter(|measured| measured.value.is_some());
    mean(defined.filter_map(|measured| Some((measured.reference?, measured.weight))))
}

fn mean_length(outcomes: &[Outcome]) -> Option<f64> {
    mean(outcomes.iter().map(|outcome| (outcome.length as f64, 1.0)))
}

fn rows(figures: &[Figure], played: &[ControllerOutcomes]) -> Vec<Row> {
    played.iter().map(|one| row(figures, played, one)).collect()
}

/// The results of `played`. Ratios refer to the baselines among `all`.
pub(crate) fn row(figures: &[Figure], all: &[ControllerOutcomes], played: &ControllerOutcomes) -> Row {
    let cell = |outcomes: &[Outcome], (i, figure): (usize, &Figure)| {
        let value = mean_value(outcomes, i);
        let reference = match &figure.reference {
            None => None,
            Some(Reference::OfEpisode(_)) => mean_reference(outcomes, i),
            Some(Reference::Baseline(name)) => {
                all.iter().find(|row| row.name == *name).and_then(|row| mean_value(&row.outcomes, i))
            }
        };
        let ratio = match value {
            Some(value) => reference.and_then(|reference| ratio(value, reference)),
            None => mean(outcomes.iter().filter_map(|o| Some((o.figures.get(i)?.ratio?, 1.0)))),
        };
        let values: Vec<f64> = outcomes.iter().filter_map(|o| o.figures.get(i)?.value).collect();
        let standard_error = deviation(&values).map(|deviation| deviation / (values.len() as f64).sqrt());
        Cell { value, reference, ratio, standard_error }
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
    /// `{"controllers": {name: {"kind", "return", "return_std", "length", "return_share", figures ..., "ratios": {...},
    /// "differences": {...}, "standard_errors": {...}, "details": {...}, "episodes": {...}, "n_episodes"}}, "return_references":
    /// {"lower", "upper"}, "training_data", "changed_files"}`.
    pub fn to_json(&self) -> Map<String, Value> {
        let controllers = self.rows.iter().map(|row| (row.name.clone(), self.row_json(row)));
        let mut document = Map::from_iter([("controllers".to_owned(), Value::Object(controllers.collect()))]);
        if let Some(way) = Way::among(&self.rows) {
            let [lower, upper] = way.names();
            document.insert("return_references".into(), json!({ "lower": lower, "upper": upper }));
        }
        if let Some(exposure) = self.exposure {
            document.insert("training_data".into(), json!(exposure.name()));
        }
        if !self.changed_files.is_empty() {
            document.insert("changed_files".into(), json!(self.changed_files));
        }
        document
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
        object.insert("differences".into(), Value::Object(named(Cell::difference)));
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
            let exposure = self.exposure.map(|exposure| format!("{}\n", exposure.sentence())).unwrap_or_default();
            let changed = about_changed(&self.changed_files).map(|text| format!("{text}\n")).unwrap_or_default();
            return format!(
                "return {mean:.1}, standard deviation {deviation:.1} over {} episodes\n{exposure}{changed}",
                row.n_episodes
            );
        }
        let mut lines = vec![(String::new(), self.rows.iter().map(|row| row.name.clone()).collect::<Vec<_>>())];
        let kinds = self.rows.iter().map(|row| row.kind.map_or("", BaselineKind::name).to_owned()).collect();
        lines.push((String::new(), kinds));
        let value = |row: &Row| row.episode_return.map(|(mean, _)| number(mean)).unwrap_or_default();
        lines.push(("return".into(), self.rows.iter().map(value).collect()));
        let rows: Vec<&Row> = self.rows.iter().collect();
        lines.extend(self.return_lines(&rows).into_iter().map(|(label, texts)| (label.to_owned(), texts)));
        for (i, figure) in self.figures.iter().enumerate() {
            let beside = beside(&self.rows, i);
            let texts: Vec<String> =
                self.rows.iter().map(|row| beside_text(beside, &row.cells[i]).unwrap_or_default()).collect();
            let width = texts.iter().map(String::len).max().unwrap_or(0);
            let cells = self.rows.iter().zip(texts).map(|(row, text)| match row.cells[i].value {
                Some(value) if width > 0 => format!("{} {text:>width$}", number(value)),
                Some(value) => number(value),
                None => text,
            });
            lines.push((figure.label.clone(), cells.collect()));
        }
        format!("{}\n{}\n", align(&lines), self.note)
    }

    /// The lines below the return, with a text for each of `rows`: spread and number of episodes, and the normalized return.
    pub(crate) fn return_lines(&self, rows: &[&Row]) -> Vec<(&'static str, Vec<String>)> {
        let texts = |of: &dyn Fn(&Row) -> Option<String>| rows.iter().map(|row| of(row).unwrap_or_default()).collect();
        let deviation = |row: &Row| row.episode_return.filter(|_| row.n_episodes > 1).map(|(_, spread)| number(spread));
        let mut lines = Vec::new();
        if rows.iter().any(|row| row.n_episodes > 1) {
            lines.push(("  standard deviation", texts(&deviation)));
        }
        lines.push(("  episodes", texts(&|row| Some(row.n_episodes.to_string()))));
        if let Some(way) = Way::among(&self.rows) {
            let share = |row: &Row| row.episode_return.map(|(mean, _)| format!("{:.4}", way.share(mean)));
            lines.push((WAY, texts(&share)));
        }
        lines
    }

    /// The best score of figure `i` among the policy and rules. `None` if the figure has no better direction, if all of them and the idle
    /// baseline read alike, or if doing nothing is better.
    pub fn best(&self, i: usize) -> Option<f64> {
        let better = self.figures[i].better?;
        let scores = |of: &dyn Fn(&Row) -> bool| -> Vec<f64> {
            self.rows.iter().filter(|row| of(row)).filter_map(|row| row.cells[i].score()).collect()
        };
        let (racing, idle) = (scores(&races), scores(&|row| row.kind == Some(BaselineKind::Idle)));
        let best = match better {
            Better::Less => racing.iter().copied().reduce(f64::min)?,
            Better::More => racing.iter().copied().reduce(f64::max)?,
        };
        let differs = |score: &f64| number(*score) != number(best);
        let is_better = |score: &f64| differs(score) && (*score < best) == (better == Better::Less);
        let is_marked = racing.iter().chain(&idle).any(differs) && !idle.iter().any(is_better);
        is_marked.then_some(best)
    }
}

/// Whether a row can be the best of a table: the policy and rules. Doing nothing is no merit, and the others know the future.
pub(crate) fn races(row: &Row) -> bool {
    matches!(row.kind, None | Some(BaselineKind::Heuristic))
}

/// Formats a number with 0, 1 or 3 decimals, depending on its size, and with separated thousands.
///
/// ```
/// use brasa_experiment::number;
///
/// assert_eq!([0.12345, 12.345, 12345.0].map(number), ["0.123", "12.3", "12,345"]);
/// ```
pub fn number(value: f64) -> String {
    let decimals = match value.abs() {
        x if x >= 1000.0 => 0,
        x if x >= 10.0 => 1,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    let (sign, digits) = text.strip_prefix('-').map_or(("", text.as_str()), |digits| ("-", digits));
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(a, b)| (a, Some(b)));
    match fraction {
        Some(fraction) => format!("{sign}{}.{fraction}", grouped(whole)),
        None => format!("{sign}{}", grouped(whole)),
    }
}

/// Digits with separated thousands.
fn grouped(digits: &str) -> String {
    let separator = |i: usize| if i > 0 && (digits.len() - i).is_multiple_of(3) { "," } else { "" };
    digits.chars().enumerate().map(|(i, digit)| format!("{}{digit}", separator(i))).collect()
}

/// A count and what is counted: `1 step`, `10,000 steps`.
pub(crate) fn counted(count: u64, one: &str) -> String {
    format!("{} {one}{}", grouped(&count.to_string()), if count == 1 { "" } else { "s" })
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

    fn played(name: &str, kind: Option<BaselineKind>, values: &[Option<f64>]) -> ControllerOutcomes {
        let outcome = |value: &Option<f64>| Outcome {
            episode_return: Some(1.0),
            figures: vec![Measured::maybe(*value)],
            ..Outcome::default()
        };
        ControllerOutcomes { name: name.into(), kind, outcomes: values.iter().map(outcome).collect() }
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
        let cell = Cell { value: Some(2.0), reference: Some(5.0), ratio: Some(0.4), standard_error: None };
        assert_eq!(rows[2].cells[0], cell);
        assert_eq!(rows[0].cells[0].standard_error, Some(1.0));
        let comparison = Comparison { figures, rows, note: "Means.".into(), exposure: None, changed_files: Vec::new() };
        // A bound is never marked as the best.
        assert_eq!(comparison.best(0), Some(2.0));
        let text = comparison.to_text();
        assert!(text.contains("idle") && text.contains("bound") && text.contains("2.000 0.4000"), "{text}");
        let json = comparison.to_json();
        assert_eq!(json["controllers"]["trained"]["episodes"]["cost"], json!([2.0, null]));
    }

    fn relative(name: &str, kind: Option<BaselineKind>, values: &[(f64, f64)]) -> ControllerOutcomes {
        let outcome = |(value, reference): &(f64, f64)| Outcome {
            episode_return: Some(1.0),
            figures: vec![Measured::new(*value).relative_to(*reference)],
            ..Outcome::default()
        };
        ControllerOutcomes { name: name.into(), kind, outcomes: values.iter().map(outcome).collect() }
    }

    fn cost() -> Vec<Figure> {
        vec![Figure::new("cost", "cost").less_is_better().relative_to(Reference::OfEpisode("no control".into()))]
    }

    /// A large ratio of a small episode does not outweigh the others, and episodes without a reference count.
    #[test]
    fn a_ratio_over_episodes_is_the_ratio_of_means() {
        let all = [relative(TRAINED, None, &[(8.0, 0.01), (100.0, 50.0), (12.0, 0.0)])];
        let cell = rows(&cost(), &all)[0].cells[0];
        assert_eq!(cell.value, Some(40.0));
        assert!((cell.ratio.expect("it is defined") - 120.0 / 50.01).abs() < 1e-12, "{cell:?}");
    }

    #[test]
    fn below_zero_rows_are_ranked_by_value_and_compared_by_difference() {
        let all = [
            relative("worst", Some(BaselineKind::Idle), &[(-4834.0, -4834.0)]),
            relative("best", Some(BaselineKind::Heuristic), &[(-4990.0, -4834.0)]),
            relative("plan", Some(BaselineKind::Plan), &[(-5500.0, -4834.0)]),
        ];
        let rows = rows(&cost(), &all);
        assert_eq!((rows[1].cells[0].ratio, rows[1].cells[0].difference()), (None, Some(-156.0)));
        let note = note(&cost(), &rows, "Episodes.", &Remark::default());
        assert!(note.contains("or its difference"), "{note}");
        let comparison = Comparison { figures: cost(), rows, note, exposure: None, changed_files: Vec::new() };
        assert_eq!(comparison.best(0), Some(-4990.0));
        let text = comparison.to_text();
        assert!(text.contains("-4,990 -156.0") && !text.contains("1.03"), "{text}");
        let json = comparison.to_json();
        assert_eq!(json["controllers"]["best"]["differences"]["cost"], json!(-156.0));
        assert_eq!(json["controllers"]["best"]["ratios"], json!({}));
        // One value below zero is enough: a column of ratios and differences could not be read.
        let all = [
            relative("worst", Some(BaselineKind::Idle), &[(20.0, 20.0)]),
            relative("best", Some(BaselineKind::Heuristic), &[(-30.0, 20.0)]),
        ];
        assert_eq!(beside(&super::rows(&cost(), &all), 0), Some(Beside::Differences));
        let all = [relative("worst", Some(BaselineKind::Idle), &[(0.0, 0.0)])];
        assert_eq!(beside(&super::rows(&cost(), &all), 0), None);
        let all = [relative("worst", Some(BaselineKind::Idle), &[(20.0, 20.0)])];
        assert_eq!(beside(&super::rows(&cost(), &all), 0), Some(Beside::Ratios));
    }

    #[test]
    fn the_normalized_return_is_relative_to_a_bound_before_a_plan() {
        let row = |name: &str, kind, value: f64| {
            let outcome = Outcome { episode_return: Some(value), ..Outcome::default() };
            ControllerOutcomes { name: name.into(), kind: Some(kind), outcomes: vec![outcome] }
        };
        let (idle, plan) = (row("idle", BaselineKind::Idle, 0.0), row("perfect-foresight", BaselineKind::Plan, 6.0));
        let bound = row("bound", BaselineKind::Bound, 8.0);
        let way = Way::among(&rows(&[], &[idle, plan, bound])).expect("there are both");
        assert_eq!((way.share(6.0), way.names()[1].as_str()), (0.75, "bound"));
        assert_eq!(way.note(), "Normalized return: idle is 0, bound is 1.");
    }
}
