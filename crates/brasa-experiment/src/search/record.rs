//! The trials of a search, in a file.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use brasa_env::{Better, named_rng};
use brasa_train::write_atomically;
use serde::{Deserialize, Serialize};

use super::config::{Sampler, SearchConfig};
use super::prune::Evaluations;
use super::space::Space;
use crate::ExperimentError;
use crate::comparison::number;
use crate::statistics::explained_share;
use crate::tpe::{Domain, n_good, suggest};

/// The file in the directory of a search: a line of JSON for each trial.
const FILE: &str = "trials.jsonl";
/// Groups of equal size into which the values of an interval are divided for its importance.
const N_GROUPS: usize = 4;

/// What became of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum State {
    /// It has begun.
    Running,
    /// All its runs are finished.
    Complete,
    /// It was stopped, because others were better at that time.
    Pruned,
    /// It cannot be trained.
    Failed,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Complete => "complete",
            Self::Pruned => "pruned",
            Self::Failed => "failed",
        }
    }
}

/// A trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Trial {
    pub number: u64,
    /// Its place in the space; empty for the settings of the experiment, if the space does not have them.
    pub point: Vec<f64>,
    /// Its settings, such as `learner.gamma=0.95`.
    pub set: Vec<String>,
    pub state: State,
    /// The value: that of the last evaluation that counts.
    pub value: Option<f64>,
    /// The mean over its seeds and those of the final, if it was in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_value: Option<f64>,
    /// Means over its runs by the number of the evaluation.
    pub evaluations: Evaluations,
    /// Seconds of its runs; those of interrupted ones are not counted.
    pub secs: f64,
    /// Why it failed.
    pub reason: Option<String>,
}

impl Trial {
    /// The value in words: the mean over all seeds if the trial was in a final.
    pub fn reached(&self, config: &SearchConfig) -> String {
        match self.final_value {
            Some(value) => format!("{} over {} seeds", number(value), config.all_seeds().end),
            None => self.value.map_or_else(String::new, number),
        }
    }
}

/// All trials that have begun, by their number.
pub(crate) struct Record {
    path: PathBuf,
    pub trials: Vec<Trial>,
    better: Better,
}

impl Record {
    /// Reads the record in the directory `out`; without one, no trial has begun.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] for a file that is no record of trials in `space`.
    pub fn read(out: &Path, space: &Space, better: Better) -> Result<Self, ExperimentError> {
        let path = out.join(FILE);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(ExperimentError::Input(format!("cannot read {}: {error}", path.display()))),
        };
        let mut trials = Vec::new();
        for (i, line) in text.lines().enumerate() {
            let wrong = |what: &str| ExperimentError::Input(format!("{}, line {}: {what}", path.display(), i + 1));
            let trial: Trial = serde_json::from_str(line).map_err(|error| wrong(&error.to_string()))?;
            let fits = trial.number == i as u64 && (trial.point.is_empty() || space.contains(&trial.point));
            if !fits {
                return Err(wrong("no trial of this search"));
            }
            trials.push(trial);
        }
        Ok(Self { path, trials, better })
    }

    /// # Errors
    /// [`ExperimentError::cannot_write`].
    pub fn write(&self) -> Result<(), ExperimentError> {
        let line = |trial: &Trial| serde_json::to_string(trial).expect("a trial always serializes") + "\n";
        let text: String = self.trials.iter().map(line).collect();
        write_atomically(&self.path, text.as_bytes()).map_err(|error| ExperimentError::cannot_write(&self.path, &error))
    }

    pub fn count(&self, state: State) -> usize {
        self.trials.iter().filter(|trial| trial.state == state).count()
    }

    /// Trials with a value of all their runs.
    pub fn complete(&self) -> impl Iterator<Item = &Trial> {
        self.trials.iter().filter(|trial| trial.state == State::Complete && trial.value.is_some())
    }

    /// The best trial, of those of the final if there was one: the first one of equal ones.
    pub fn best(&self) -> Option<&Trial> {
        let in_final = self.complete().filter(|trial| trial.final_value.is_some());
        let best = in_final.min_by(|a, b| self.cost_of(a.final_value).total_cmp(&self.cost_of(b.final_value)));
        best.or_else(|| self.complete().min_by(|a, b| self.order(a, b)))
    }

    /// The best `n` trials by their value, the first ones of equal ones.
    pub fn leading(&self, n: u64) -> Vec<&Trial> {
        let mut all: Vec<&Trial> = self.complete().collect();
        all.sort_by(|a, b| self.order(a, b));
        all.truncate(usize::try_from(n).unwrap_or(usize::MAX));
        all
    }

    fn cost(&self, trial: &Trial) -> f64 {
        self.cost_of(trial.value)
    }

    /// Less is better.
    fn cost_of(&self, value: Option<f64>) -> f64 {
        let value = value.unwrap_or(f64::NAN);
        let cost = if self.better == Better::More { -value } else { value };
        if cost.is_nan() { f64::INFINITY } else { cost }
    }

    /// The place of the trial with the number `number`, from the trials that have ended.
    pub fn propose(&self, config: &SearchConfig, space: &Space, number: u64) -> Vec<f64> {
        let domains = space.domains();
        let rng = &mut named_rng(config.seed, "trial", number);
        let has_value =
            |trial: &&Trial| matches!(trial.state, State::Complete | State::Pruned) && !trial.point.is_empty();
        let mut ended: Vec<&Trial> = self.trials.iter().filter(has_value).collect();
        if config.sampler == Sampler::Random || (ended.len() as u64) < config.startup_trials {
            return space.rounded(domains.iter().map(|domain| domain.random(rng)).collect());
        }
        ended.sort_by(|a, b| self.order(a, b));
        let (good, others) = ended.split_at(n_good(ended.len()));
        let points = |trials: &[&Trial]| {
            let mut trials = trials.to_vec();
            trials.sort_by_key(|trial| trial.number);
            trials.into_iter().map(|trial| trial.point.clone()).collect::<Vec<_>>()
        };
        space.rounded(suggest(&domains, &points(good), &points(others), rng))
    }

    /// Better trials first: the complete ones by their value, then those that were stopped, the later the better.
    fn order(&self, a: &Trial, b: &Trial) -> Ordering {
        let last = |trial: &Trial| trial.evaluations.last().map_or(0, |(number, _)| *number);
        let stopped = |trial: &Trial| (trial.state == State::Pruned).then(|| u64::MAX - last(trial));
        stopped(a).cmp(&stopped(b)).then(self.cost(a).total_cmp(&self.cost(b))).then(a.number.cmp(&b.number))
    }

    /// The share of the variance of the ranks of all complete trials that each setting explains by itself; `None` without enough trials.
    pub fn importance(&self, space: &Space) -> Vec<Option<f64>> {
        let trials: Vec<&Trial> = self.complete().filter(|trial| !trial.point.is_empty()).collect();
        let of = |(i, domain): (usize, &Domain)| {
            let mut values: Vec<(f64, f64)> = trials.iter().map(|trial| (trial.point[i], self.cost(trial))).collect();
            values.sort_by(|a, b| a.0.total_cmp(&b.0));
            let n = values.len();
            let mut groups: Vec<Vec<f64>> = Vec::new();
            let mut last: Option<(usize, f64)> = None;
            for (rank, (value, cost)) in values.into_iter().enumerate() {
                let group = if let Domain::Choices(_) = domain { value as usize } else { rank * N_GROUPS / n };
                match last {
                    // Equal values are in one group.
                    Some((known, before)) if known == group || before == value => {
                        groups.last_mut().expect("there is one").push(cost);
                        last = Some((known, value));
                    }
                    _ => {
                        groups.push(vec![cost]);
                        last = Some((group, value));
                    }
                }
            }
            explained_share(&groups)
        };
        space.domains().iter().enumerate().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACE: &str = "\"a.x\" = { low = -10, high = 10 }\n\"b.rate\" = { low = 1e-5, high = 1e-1, log = true }\n\
        \"c.kind\" = { choice = [\"p\", \"q\", \"r\"] }\n";

    fn space() -> Space {
        Space::new(&toml::from_str(SPACE).expect("it is TOML")).expect("it is valid")
    }

    fn empty(out: &Path) -> Record {
        Record::read(out, &space(), Better::Less).expect("there is none")
    }

    fn objective(point: &[f64]) -> f64 {
        (point[0] - 3.0).powi(2) + (point[1].log10() + 3.0).powi(2) + if point[2] == 1.0 { 0.0 } else { 2.0 }
    }

    fn ended(number: u64, point: Vec<f64>, state: State, value: f64) -> Trial {
        Trial {
            number,
            set: space().set(&point),
            point,
            state,
            value: Some(value),
            final_value: None,
            evaluations: vec![(1, value)],
            secs: 0.0,
            reason: None,
        }
    }

    fn searched(config: &SearchConfig, record: &mut Record, n: u64) {
        for number in record.trials.len() as u64..n {
            let point = record.propose(config, &space(), number);
            let value = objective(&point);
            let state = if number % 5 == 4 { State::Pruned } else { State::Complete };
            record.trials.push(ended(number, point, state, value));
        }
    }

    #[test]
    fn a_record_that_was_read_again_gives_the_same_trials() {
        let dir = tempfile::tempdir().expect("there is room");
        let config = SearchConfig::default();
        let mut whole = empty(dir.path());
        searched(&config, &mut whole, 40);
        let mut first = empty(dir.path());
        searched(&config, &mut first, 23);
        first.write().expect("there is room");
        let mut again = Record::read(dir.path(), &space(), Better::Less).expect("it was written");
        searched(&config, &mut again, 40);
        assert_eq!(again.trials, whole.trials);
        let mut other = empty(&dir.path().join("none"));
        searched(&SearchConfig { seed: 1, ..config }, &mut other, 40);
        assert!(other.trials != whole.trials);
    }

    #[test]
    fn what_is_no_record_is_refused() {
        let dir = tempfile::tempdir().expect("there is room");
        let line = |point: [f64; 3]| {
            let mut trial = ended(0, vec![0.0, 1e-3, 0.0], State::Complete, 1.0);
            trial.point = point.to_vec();
            serde_json::to_string(&trial).expect("a trial always serializes")
        };
        let [choice, part, high] = [[0.0, 1e-3, 3.0], [0.0, 1e-3, 0.5], [11.0, 1e-3, 0.0]].map(line);
        for (text, expected) in [
            ("{}\n", "line 1: missing field"),
            ("no\n", "line 1"),
            (&choice, "line 1: no trial of this search"),
            (&part, "line 1: no trial of this search"),
            (&high, "line 1: no trial of this search"),
        ] {
            std::fs::write(dir.path().join(FILE), text).expect("there is room");
            let Err(error) = Record::read(dir.path(), &space(), Better::Less) else { panic!("{text} is no record") };
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn suggestions_are_better_than_random_settings() {
        let dir = tempfile::tempdir().expect("there is room");
        let median = |sampler: Sampler| {
            let best = |seed: u64| {
                let mut record = empty(dir.path());
                searched(&SearchConfig { sampler, seed, ..SearchConfig::default() }, &mut record, 50);
                record.best().and_then(|trial| trial.value).expect("there are trials")
            };
            let mut all: Vec<f64> = (0..15).map(best).collect();
            all.sort_by(f64::total_cmp);
            all[7]
        };
        let (tpe, random) = (median(Sampler::Tpe), median(Sampler::Random));
        assert!(tpe < 0.4 * random, "{tpe} and {random}");
    }

    #[test]
    fn settings_are_ordered_by_what_they_explain() {
        let dir = tempfile::tempdir().expect("there is room");
        let mut record = empty(dir.path());
        assert_eq!(record.importance(&space()), [None, None, None]);
        searched(&SearchConfig { sampler: Sampler::Random, ..SearchConfig::default() }, &mut record, 60);
        let shares: Vec<f64> = record.importance(&space()).into_iter().flatten().collect();
        assert!(shares[0] > 0.4 && shares[1] < 0.2 && shares[2] < 0.2, "{shares:?}");
    }

    #[test]
    fn a_stopped_trial_is_worse_than_every_complete_one() {
        let dir = tempfile::tempdir().expect("there is room");
        let mut record = empty(dir.path());
        let point = vec![0.0, 1e-3, 0.0];
        record.trials = vec![
            ended(0, point.clone(), State::Pruned, 1.0),
            ended(1, point.clone(), State::Complete, 5.0),
            Trial { evaluations: vec![(1, 1.0), (4, 2.0)], ..ended(2, point.clone(), State::Pruned, 2.0) },
            ended(3, point, State::Complete, 4.0),
        ];
        let mut order: Vec<&Trial> = record.trials.iter().collect();
        order.sort_by(|a, b| record.order(a, b));
        assert_eq!(order.iter().map(|trial| trial.number).collect::<Vec<_>>(), [3, 1, 2, 0]);
        assert_eq!(record.best().map(|trial| trial.number), Some(3));
    }
}
