//! Statistics of groups: for every quantity, each group against the first.

use std::path::PathBuf;

use brasa_env::{BaselineKind, Better, Figure, Outcome};

use crate::comparison::{Beside, Cell, ControllerOutcomes, Row, beside, row};
use crate::exposure::Exposure;
use crate::statistics::{
    MeanInterval, PairedTest, Resample, episode_means, interquartile_mean, iqm_interval, iqm_interval_over_runs,
    mean_interval, paired_test, probability_of_improvement,
};
use crate::timeline::Session;
use crate::way::{WAY, Way};

/// A group and the evaluation episodes of its runs.
pub(crate) struct Participant {
    pub name: String,
    pub seeds: Vec<u64>,
    pub run_dirs: Vec<PathBuf>,
    /// The sessions of each run, in their order; empty for a run without a record.
    pub sessions: Vec<Vec<Session>>,
    /// One for each run.
    pub runs: Vec<ControllerOutcomes>,
}

/// The result of a comparison of groups.
pub(crate) struct Summary {
    pub participants: Vec<Participant>,
    /// Name and kind of each baseline.
    pub baselines: Vec<(String, Option<BaselineKind>)>,
    pub quantities: Vec<Quantity>,
    pub n_episodes: u64,
    pub eval_seed: u64,
    pub scenario: String,
    /// Whether the training of a run could see the data of the episodes; the worst of all runs.
    pub exposure: Option<Exposure>,
    /// Sentences under the table.
    pub note: String,
}

/// The return, a figure, or the ratio of a figure to its reference, or the difference.
pub(crate) struct Quantity {
    /// Name in JSON and CSV.
    pub name: String,
    /// Name in tables.
    pub label: String,
    /// The better direction, if there is one.
    pub better: Option<Better>,
    pub of: Of,
    /// One for each group.
    pub groups: Vec<Statistics>,
    /// Mean of each baseline.
    pub baselines: Vec<Option<f64>>,
}

/// The kind of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    Value,
    /// A ratio of means, shown below the value. It says the same about episodes as the value, so it has means alone.
    RatioBesideValue,
    /// A difference of means, shown below the value; likewise.
    DifferenceBesideValue,
    RatioAlone,
}

impl Of {
    pub fn is_ratio(self) -> bool {
        matches!(self, Self::RatioBesideValue | Self::RatioAlone)
    }

    /// Whether it repeats a value in other units.
    pub fn is_beside_value(self) -> bool {
        matches!(self, Self::RatioBesideValue | Self::DifferenceBesideValue)
    }
}

/// The statistics of a quantity of a group.
pub(crate) struct Statistics {
    /// Values of each run, one per episode; none for a quantity that repeats a value.
    pub episodes: Vec<Vec<Option<f64>>>,
    /// Mean of each run, weighted as in the table of a run.
    pub run_means: Vec<Option<f64>>,
    pub mean: Option<MeanInterval>,
    pub iqm: Option<f64>,
    pub iqm_in_episodes: Option<(f64, f64)>,
    pub iqm_over_runs: Option<(f64, f64)>,
    /// Paired test against the first group; `None` for the first.
    pub paired: Option<PairedTest>,
    /// Probability of being better than the first group; `None` for the first, and if no direction is better.
    pub improvement: Option<f64>,
}

/// Reads a number from a `T`.
type Read<'a, T> = Box<dyn Fn(&T) -> Option<f64> + 'a>;

/// Functions that read the value of an episode and a mean.
struct Source<'a> {
    name: String,
    label: String,
    better: Option<Better>,
    of: Of,
    /// `None` for a quantity that repeats a value.
    entry: Option<Read<'a, Outcome>>,
    mean: Read<'a, Row>,
}

/// All quantities that have at least one value; the return and its share only if all groups `share_reward`.
pub(crate) fn quantities(
    figures: &[Figure],
    played: &[ControllerOutcomes],
    participants: &[Participant],
    share_reward: bool,
) -> Vec<Quantity> {
    // Each run is summarized as by `eval`, with the same baselines.
    let rows = |of: &[ControllerOutcomes]| of.iter().map(|one| row(figures, played, one)).collect::<Vec<Row>>();
    let baseline_rows = rows(played);
    let run_rows: Vec<Vec<Row>> = participants.iter().map(|participant| rows(&participant.runs)).collect();
    let mut sources = Vec::new();
    if share_reward {
        sources.push(Source {
            name: "return".into(),
            label: "return".into(),
            better: Some(Better::More),
            of: Of::Value,
            entry: Some(Box::new(|outcome: &Outcome| outcome.episode_return)),
            mean: Box::new(|row: &Row| row.episode_return.map(|(mean, _)| mean)),
        });
    }
    if let Some(way) = Way::among(&baseline_rows).filter(|_| share_reward) {
        sources.push(Source {
            name: "return_share".into(),
            label: WAY.into(),
            better: Some(Better::More),
            of: Of::RatioBesideValue,
            entry: None,
            mean: Box::new(move |row| Some(way.share(row.episode_return?.0))),
        });
    }
    for (i, figure) in figures.iter().enumerate() {
        sources.extend(of_figure(i, figure, &baseline_rows, &run_rows));
    }
    let quantity = |source: Source<'_>| {
        let mut groups: Vec<Statistics> = Vec::new();
        for (participant, rows) in participants.iter().zip(&run_rows) {
            let of_run =
                |run: &ControllerOutcomes| source.entry.as_ref().map(|entry| run.outcomes.iter().map(entry).collect());
            let episodes = participant.runs.iter().filter_map(of_run).collect();
            let run_means = rows.iter().map(&source.mean).collect();
            let statistics = Statistics::new(episodes, run_means, groups.first(), source.better);
            groups.push(statistics);
        }
        let baselines = baseline_rows.iter().map(&source.mean).collect();
        let Source { name, label, better, of, .. } = source;
        Quantity { name, label, better, of, groups, baselines }
    };
    sources.into_iter().map(quantity).collect()
}

/// The quantities of figure `i`: its value, and its ratio or difference, if they exist.
fn of_figure<'a>(i: usize, figure: &'a Figure, baseline_rows: &'a [Row], run_rows: &'a [Vec<Row>]) -> Vec<Source<'a>> {
    let rows = || baseline_rows.iter().chain(run_rows.iter().flatten());
    let has_values = rows().any(|row| row.cells[i].value.is_some());
    let beside = beside(rows(), i);
    let mut sources = Vec::new();
    if has_values {
        sources.push(Source {
            name: figure.name.clone(),
            label: figure.label.clone(),
            better: figure.better,
            of: Of::Value,
            entry: Some(Box::new(move |outcome| outcome.figures.get(i)?.value)),
            mean: Box::new(move |row| row.cells[i].value),
        });
    }
    if let Some(beside) = beside {
        let (of, suffix) = match beside {
            Beside::Ratios if has_values => (Of::RatioBesideValue, "ratio"),
            Beside::Ratios => (Of::RatioAlone, "ratio"),
            Beside::Differences => (Of::DifferenceBesideValue, "difference"),
        };
        let mean = move |cell: &Cell| if of.is_ratio() { cell.ratio } else { cell.difference() };
        let entry = move |outcome: &Outcome| outcome.figures.get(i)?.ratio;
        sources.push(Source {
            name: format!("{}_{suffix}", figure.name),
            label: if has_values { format!("  {suffix}") } else { figure.label.clone() },
            better: figure.better,
            of,
            entry: (of == Of::RatioAlone).then(|| -> Read<'_, Outcome> { Box::new(entry) }),
            mean: Box::new(move |row| mean(&row.cells[i])),
        });
    }
    sources
}

impl Statistics {
    fn new(
        episodes: Vec<Vec<Option<f64>>>,
        run_means: Vec<Option<f64>>,
        first: Option<&Self>,
        better: Option<Better>,
    ) -> Self {
        let means: Vec<f64> = run_means.iter().copied().flatten().collect();
        let paired = first.and_then(|first| paired_test(&episode_means(&episodes), &episode_means(&first.episodes)));
        let improvement = first.zip(better).and_then(|(first, better)| {
            let higher = probability_of_improvement(&episodes, &first.episodes)?;
            Some(if better == Better::More { higher } else { 1.0 - higher })
        });
        Self {
            mean: mean_interval(&means),
            iqm: interquartile_mean(&episodes),
            iqm_in_episodes: iqm_interval(&episodes, Resample::RunsInEpisodes),
            iqm_over_runs: iqm_interval_over_runs(&episodes),
            paired,
            improvement,
            run_means,
            episodes,
        }
    }

    /// Number of runs with a mean.
    pub fn n_runs(&self) -> usize {
        self.run_means.iter().flatten().count()
    }

    /// Number of missing values in all episodes of all runs.
    pub fn n_missing(&self) -> usize {
        self.episodes.iter().flatten().filter(|value| value.is_none_or(|value| !value.is_finite())).count()
    }
}

/// Sentences about the numbers in the table; `about` are those of the scenario.
pub(crate) fn note(about: &str, references: &str, remark: &str, first: &str) -> String {
    let mut sentences = vec![about.to_owned()];
    sentences.push(
        "+-: half the 95 % confidence interval of the mean over seeds, by Student's t; n: number of runs. \
         IQM: mean of the middle half of all runs and episodes, from 5 runs on with its 95 % interval over runs."
            .to_owned(),
    );
    sentences.push(format!(
        "p: two-sided sign-flip test of the differences from {first} in the same episodes. \
         P(better): probability that a run is better than one of {first} in the same episode."
    ));
    if !references.is_empty() {
        sentences.push(format!("Ratios and differences are to {references}."));
    }
    sentences.push(remark.to_owned());
    sentences.retain(|sentence| !sentence.is_empty());
    sentences.join(" ")
}
