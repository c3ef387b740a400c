//! `search`: trains trials with other settings, and compares the best of them with the experiment.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use brasa_train::{EVAL_RETURN, is_quiet, say, say_progress, write_atomically};
use serde_json::{Map, Value, json};

use super::compare::{shell_line, written};
use super::sweep::{Signals, in_words, job, processes, train_all, training, trainings};
use super::train::{self, Claimed};
use crate::args::{CompareArgs, SearchArgs};
use crate::compare::{self, Groups, Summary, first_difference, refuse_other_scenario};
use crate::comparison::number;
use crate::load::refuse_programs;
use crate::search::{Metric, Page, Record, SEARCH, SearchConfig, Space, State, Trial, page, prunes};
use crate::source::with_device;
use crate::sweep::{End, Job, Lock, Planned, Runs};
use crate::{Experiment, ExperimentError, Registry, Source};

/// The experiment and the search in the directory of a search.
const SEARCH_TOML: &str = "search.toml";
/// The experiment without its search.
const BASE_TOML: &str = "base.toml";
/// The experiment with the best settings.
const BEST_TOML: &str = "best.toml";
/// The page.
const PAGE: &str = "search.html";
/// Settings of a search that may differ when it is continued.
const MAY_DIFFER: [&str; 2] = ["trials", "report_seeds"];

pub fn run(program: &str, registry: &Registry, args: &SearchArgs) -> Result<String, ExperimentError> {
    let claimed = if args.path.is_dir() { None } else { Some(Claimed::of(args.out.as_deref(), SEARCH)?) };
    let out = claimed.as_ref().map_or(args.path.as_path(), Claimed::path);
    let source = source(registry, args, out)?;
    let experiment = Experiment::new(registry, &source)?;
    let (config, space) = SearchConfig::read(&source)?;
    let metric = config.metric(&experiment)?;
    let eval_interval = config.eval_interval(&experiment)?;
    try_out(&experiment)?;
    check_space(registry, &source, &experiment, &space, &metric)?;

    let _lock = Lock::of(out)?;
    keep(out, SEARCH_TOML, source.table())?;
    keep(out, BASE_TOML, source.without(SEARCH).table())?;
    let record = Record::read(out, &space, metric.better)?;
    let n_runs = (config.trials.saturating_sub(record.trials.len() as u64) as usize + record.count(State::Running))
        .saturating_mul(config.seeds as usize);
    let jobs = processes(args.jobs, n_runs);
    let pending: VecDeque<u64> = {
        let running = record.trials.iter().filter(|trial| trial.state == State::Running).map(|trial| trial.number);
        running.chain(record.trials.len() as u64..config.trials).collect()
    };
    let (n, done) = (config.trials, record.trials.len() - record.count(State::Running));
    let before = if done > 0 { format!(", {done} finished before") } else { String::new() };
    say_progress(&format!("{n} trials{before}, {}; directory {}", in_words(&jobs), out.display()));
    let mut searching = Searching {
        registry,
        source: &source,
        experiment: &experiment,
        config: &config,
        space: &space,
        metric: &metric,
        eval_interval,
        out,
        threads: jobs.threads,
        record,
        pending,
        ready: VecDeque::new(),
        live: Vec::new(),
    };
    let signals = Signals::new();
    let go_on = format!("interrupted; continue with `{}`", command_line(program, args, out));
    signals
        .train(&jobs, &mut searching)
        .map_err(|error| ExperimentError::Failed(format!("cannot run the search: {error}")))?;
    searching.write_page(None)?;
    if signals.is_stopped() {
        return Err(ExperimentError::Interrupted(go_on));
    }
    searching.play_final(args.jobs, &signals, &go_on)?;
    conclude(registry, args, &searching, &signals, &go_on)
}

/// The experiment of a new search, or of the one in the directory `out`.
fn source(registry: &Registry, args: &SearchArgs, out: &Path) -> Result<Source, ExperimentError> {
    let kept = out.join(SEARCH_TOML);
    let trials = args.trials.map(|trials| format!("search.trials={trials}"));
    if args.path.is_dir() {
        if !args.set.is_empty() || args.device.is_some() {
            let path = args.path.display();
            return Err(ExperimentError::Input(format!(
                "--set and --device are for a new search, but {path} is a directory"
            )));
        }
        if !kept.is_file() {
            return Err(ExperimentError::Input(format!("no search in {}: there is no {SEARCH_TOML}", out.display())));
        }
        let overrides: Vec<String> = trials.into_iter().collect();
        let source = registry.read(&kept, &overrides, |source| Ok(source.clone()))?;
        refuse_programs(registry, &source, out, &[], |_, _| args.trust)?;
        return Ok(source);
    }
    let mut overrides = with_device(&args.set, args.device.as_deref());
    overrides.extend(trials);
    let source = registry.read(&args.path, &overrides, |source| Ok(source.clone()))?;
    if kept.is_file() {
        let before = registry.read(&kept, &[], |source| Ok(source.clone()))?;
        let comparable = |source: &Source| {
            let mut table = source.table().clone();
            if let Some(search) = table.get_mut(SEARCH).and_then(toml::Value::as_table_mut) {
                MAY_DIFFER.iter().for_each(|key| drop(search.remove(*key)));
            }
            toml::Value::Table(table)
        };
        if let Some((key, is, wanted)) = first_difference("", &comparable(&before), &comparable(&source)) {
            let (out, path) = (out.display(), args.path.display());
            return Err(ExperimentError::Input(format!(
                "{out} holds another search than {path}: `{key}` is {is} there, not {wanted}; choose another --out"
            )));
        }
    }
    Ok(source)
}

/// Refuses settings that no experiment has, and those that make trials incomparable.
fn check_space(
    registry: &Registry,
    source: &Source,
    experiment: &Experiment<'_>,
    space: &Space,
    metric: &Metric,
) -> Result<(), ExperimentError> {
    let reward = |key: &str| {
        let of = experiment.entry.reward.iter().map(|name| format!("scenario.{}.{name}", experiment.entry.name));
        of.into_iter()
            .any(|reward| key.strip_prefix(&reward).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
    };
    for dimension in &space.0 {
        let key = &dimension.key;
        if reward(key) && metric.name == EVAL_RETURN {
            return Err(ExperimentError::Input(format!(
                "`search.metric` must not be the return if the setting `{key}` of the reward is searched, got {EVAL_RETURN}"
            )));
        }
        let mut refusal = None;
        let is_valid = dimension.samples().into_iter().any(|value| {
            let item = format!("{key}={value}");
            let checked = source.with(std::slice::from_ref(&item)).and_then(|source| {
                let changed = Experiment::new(registry, &source)?;
                refuse_other_scenario((Path::new("the experiment"), experiment), (Path::new(&item), &changed))?;
                try_out(&changed)
            });
            checked.map_err(|error| refusal.get_or_insert(error.to_string()).len()).is_ok()
        });
        if !is_valid {
            let refusal = refusal.unwrap_or_default();
            return Err(ExperimentError::Input(format!("no value of `search.space.\"{key}\"` is valid: {refusal}")));
        }
    }
    Ok(())
}

/// Makes the learner of an experiment: only learners check the values of their settings.
fn try_out(experiment: &Experiment<'_>) -> Result<(), ExperimentError> {
    let device = experiment.train.open_device()?;
    train::start(experiment, &device, &RefCell::new(None)).map(drop)
}

/// Writes an experiment.
fn keep(out: &Path, name: &str, table: &toml::Table) -> Result<(), ExperimentError> {
    write(out, name, &toml::to_string_pretty(table).map_err(|error| ExperimentError::Failed(error.to_string()))?)
}

fn write(out: &Path, name: &str, text: &str) -> Result<(), ExperimentError> {
    let path = out.join(name);
    write_atomically(&path, text.as_bytes()).map_err(|error| ExperimentError::cannot_write(&path, &error))
}

/// The trials of a search as runs in other processes.
struct Searching<'a> {
    registry: &'a Registry,
    source: &'a Source,
    experiment: &'a Experiment<'a>,
    config: &'a SearchConfig,
    space: &'a Space,
    metric: &'a Metric,
    eval_interval: u64,
    out: &'a Path,
    threads: usize,
    record: Record,
    /// Numbers of the trials to begin or to resume.
    pending: VecDeque<u64>,
    /// Runs of trials that have begun.
    ready: VecDeque<Job>,
    live: Vec<Live>,
}

/// A trial that runs.
struct Live {
    number: u64,
    run_dirs: Vec<PathBuf>,
    /// Runs that have not ended.
    n_left: usize,
    begun: Instant,
    /// Bytes of the metrics at the last look.
    n_bytes: u64,
    pruned: Option<(u64, f64)>,
    failed: Option<String>,
    interrupted: bool,
}

impl Runs for Searching<'_> {
    fn total_env_steps(&self) -> u64 {
        self.config.steps(self.experiment) * self.n_runs() as u64
    }

    fn n_runs(&self) -> usize {
        self.pending.len() * self.config.seeds as usize
    }

    fn next(&mut self) -> io::Result<Option<Job>> {
        loop {
            if let Some(job) = self.ready.pop_front() {
                return Ok(Some(job));
            }
            let Some(number) = self.pending.pop_front() else { return Ok(None) };
            self.begin(number).map_err(io::Error::other)?;
        }
    }

    fn is_unneeded(&mut self, job: &Job) -> bool {
        let Some(i) = self.index(job) else { return false };
        let live = &self.live[i];
        if live.failed.is_some() || live.pruned.is_some() {
            return true;
        }
        let n_bytes = live.run_dirs.iter().map(|dir| metrics_of(dir).metadata().map_or(0, |file| file.len())).sum();
        if n_bytes == live.n_bytes {
            return false;
        }
        let pruned = self.verdict(&live.run_dirs);
        self.live[i].n_bytes = n_bytes;
        self.live[i].pruned = pruned;
        pruned.is_some()
    }

    fn ended(&mut self, job: &Job, end: End) -> io::Result<()> {
        let Some(i) = self.index(job) else { return Ok(()) };
        let live = &mut self.live[i];
        live.n_left -= 1;
        match end {
            End::Finished | End::Stopped => {}
            End::Failed(words) => live.failed = Some(format!("{words} ({})", job.log.display())),
            End::Interrupted => live.interrupted = true,
        }
        if live.failed.is_some() || live.pruned.is_some() {
            let n_ready = self.ready.len();
            self.ready.retain(|job| !live.run_dirs.contains(&job.run_dir));
            live.n_left -= n_ready - self.ready.len();
        }
        if live.n_left > 0 {
            return Ok(());
        }
        let live = self.live.remove(i);
        // It is continued the next time.
        if live.interrupted && live.failed.is_none() && live.pruned.is_none() {
            return Ok(());
        }
        self.conclude(&live).map_err(io::Error::other)
    }
}

impl Searching<'_> {
    fn index(&self, job: &Job) -> Option<usize> {
        self.live.iter().position(|live| live.run_dirs.contains(&job.run_dir))
    }

    /// Begins or resumes a trial.
    fn begin(&mut self, number: u64) -> Result<(), ExperimentError> {
        if self.record.trials.len() as u64 == number {
            let (point, set) = self.proposed(number);
            let state = State::Running;
            let (value, final_value, evaluations, secs, reason) = (None, None, Vec::new(), 0.0, None);
            self.record.trials.push(Trial { number, point, set, state, value, final_value, evaluations, secs, reason });
            self.record.write()?;
        }
        let trial = &self.record.trials[number as usize];
        let planned: Vec<Planned> = self.config.trial_seeds().map(|seed| self.planned(trial, seed)).collect();
        let run_dirs: Vec<PathBuf> = planned.iter().map(|planned| planned.run_dir.clone()).collect();
        let mut live = Live {
            number,
            run_dirs,
            n_left: 0,
            begun: Instant::now(),
            n_bytes: 0,
            pruned: None,
            failed: None,
            interrupted: false,
        };
        // What ran before may be enough.
        live.pruned = self.verdict(&live.run_dirs);
        if live.pruned.is_some() {
            return self.conclude(&live);
        }
        match self.jobs(&planned) {
            Ok(jobs) if jobs.is_empty() => self.conclude(&live),
            Ok(jobs) => {
                live.n_left = jobs.len();
                self.ready.extend(jobs);
                self.live.push(live);
                Ok(())
            }
            Err(error) => {
                live.failed = Some(error.to_string());
                self.conclude(&live)
            }
        }
    }

    /// The point of a new trial and its settings. The first trial has the settings of the experiment.
    fn proposed(&self, number: u64) -> (Vec<f64>, Vec<String>) {
        if number == 0 {
            return (self.space.point_of(self.experiment).unwrap_or_default(), Vec::new());
        }
        let point = self.record.propose(self.config, self.space, number);
        let set = self.space.set(&point);
        (point, set)
    }

    fn planned(&self, trial: &Trial, seed: u64) -> Planned {
        let mut set = trial.set.clone();
        set.push(format!("train.total_env_steps={}", self.config.steps(self.experiment)));
        set.push(format!("train.eval_interval={}", self.eval_interval));
        let run_dir = self.out.join("trials").join(format!("{:04}-seed{seed}", trial.number));
        Planned { config: self.out.join(BASE_TOML), set, seed, run_dir }
    }

    /// Trains the leading trials with more seeds, and records their means over all seeds.
    fn play_final(&mut self, jobs: Option<usize>, signals: &Signals, go_on: &str) -> Result<(), ExperimentError> {
        if self.config.finalists < 2 {
            return Ok(());
        }
        let finalists: Vec<u64> = self.record.leading(self.config.finalists).iter().map(|trial| trial.number).collect();
        say_progress(&format!("Final of {} trials: {} more seeds each", finalists.len(), self.config.final_seeds));
        let of = |number: u64| {
            let trial = &self.record.trials[number as usize];
            self.config.all_seeds().map(|seed| self.planned(trial, seed)).collect::<Vec<_>>()
        };
        let runs: Vec<Planned> = finalists.iter().flat_map(|number| of(*number)).collect();
        let trainings = trainings(self.registry, &runs)?;
        train_all(signals, jobs, self.out, &runs, &trainings, go_on)?;
        let n_seeds = self.config.all_seeds().end as usize;
        for (number, runs) in finalists.into_iter().zip(runs.chunks_exact(n_seeds)) {
            let run_dirs: Vec<PathBuf> = runs.iter().map(|run| run.run_dir.clone()).collect();
            let (_, value) = self.evaluations(&run_dirs);
            self.record.trials[number as usize].final_value = value;
        }
        self.record.write()?;
        self.write_page(None)
    }

    /// The runs of a trial that are not finished.
    ///
    /// # Errors
    /// If its settings are invalid.
    fn jobs(&self, planned: &[Planned]) -> Result<Vec<Job>, ExperimentError> {
        let Some(first) = planned.first() else { return Ok(Vec::new()) };
        let source = self.source.without(SEARCH).with(&first.set)?;
        let experiment = Experiment::new(self.registry, &source)?;
        try_out(&experiment)?;
        let mut jobs = Vec::new();
        for planned in planned {
            let training = training(self.registry, &experiment, planned)?;
            jobs.extend(training.map(|training| job(planned, &training, self.out, self.threads)));
        }
        Ok(jobs)
    }

    /// The evaluation that stops a trial with these runs.
    fn verdict(&self, run_dirs: &[PathBuf]) -> Option<(u64, f64)> {
        if self.config.pruner == crate::search::Pruner::None {
            return None;
        }
        let complete: Vec<_> = self.record.complete().map(|trial| &trial.evaluations).collect();
        let (evaluations, _) = self.evaluations(run_dirs);
        let n_least = self.config.startup_trials as usize;
        prunes(&evaluations, &complete, self.metric.better, n_least, self.config.evaluations)
    }

    /// Means over the runs that have reached an evaluation, by its number, and the mean of the last values, if all have one.
    fn evaluations(&self, run_dirs: &[PathBuf]) -> (Vec<(u64, f64)>, Option<f64>) {
        let mut all: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        let mut last = Vec::new();
        for dir in run_dirs {
            let text = std::fs::read_to_string(metrics_of(dir)).unwrap_or_default();
            let name = format!("\"{}\"", self.metric.name);
            let value = |line: &str| {
                let line: Map<String, Value> = serde_json::from_str(line).ok()?;
                let number = line.get("env_steps")?.as_u64()? / self.eval_interval;
                Some((number.clamp(1, self.config.evaluations), line.get(&self.metric.name)?.as_f64()?))
            };
            // What a resumed run wrote twice counts once.
            let values: BTreeMap<u64, f64> =
                text.lines().filter(|line| line.contains(&name)).filter_map(value).collect();
            last.extend(values.values().next_back().copied());
            values.into_iter().for_each(|(number, value)| all.entry(number).or_default().push(value));
        }
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let value = (last.len() == run_dirs.len()).then(|| mean(&last));
        (all.into_iter().map(|(number, values)| (number, mean(&values))).collect(), value)
    }

    /// Records what became of a trial.
    fn conclude(&mut self, live: &Live) -> Result<(), ExperimentError> {
        let (mut evaluations, value) = self.evaluations(&live.run_dirs);
        let pruned = live.pruned.filter(|_| live.failed.is_none());
        // A run may have ended before it was stopped.
        let pruned = pruned.or_else(|| self.verdict(&live.run_dirs).filter(|_| live.failed.is_none()));
        let name = &self.metric.name;
        let missing = || format!("a run has no value of {name}");
        let (state, value, reason) = match (&live.failed, pruned, value) {
            (Some(reason), ..) => (State::Failed, None, Some(reason.clone())),
            (None, Some((number, value)), _) => {
                evaluations.retain(|(other, _)| *other <= number);
                (State::Pruned, Some(value), None)
            }
            (None, None, Some(value)) => (State::Complete, Some(value), None),
            (None, None, None) => (State::Failed, None, Some(missing())),
        };
        let trial = &mut self.record.trials[live.number as usize];
        let secs = trial.secs + live.begun.elapsed().as_secs_f64();
        *trial = Trial { state, value, reason, evaluations, secs, ..trial.clone() };
        let trial = trial.clone();
        self.record.write()?;
        let shown = |value: Option<f64>| value.map_or_else(String::new, number);
        let what = match trial.state {
            State::Complete => format!("{name} {}", shown(trial.value)),
            State::Pruned => format!(
                "stopped at evaluation {} of {} with {}",
                trial.evaluations.last().map_or(0, |(number, _)| *number),
                self.config.evaluations,
                shown(trial.value)
            ),
            State::Failed | State::Running => format!("failed: {}", trial.reason.as_deref().unwrap_or_default()),
        };
        let best = self.record.best().map(|best| format!("; best {} (trial {})", shown(best.value), best.number));
        let line = format!("Trial {} of {}: {what}{}", trial.number, self.config.trials, best.unwrap_or_default());
        if trial.state == State::Failed {
            say(&line)
        } else {
            say_progress(&line)
        }
        self.write_page(None)
    }

    fn write_page(&self, summary: Option<&Summary>) -> Result<(), ExperimentError> {
        let title = self.out.file_name().map_or(SEARCH.into(), |name| name.to_string_lossy().into_owned());
        let scenario = &self.experiment.entry.name;
        let of = Page { title: &title, scenario, algorithm: &self.experiment.algorithm, config: self.config };
        write(self.out, PAGE, &page(&of, self.space, self.metric, &self.record, summary))
    }
}

fn metrics_of(run_dir: &Path) -> PathBuf {
    run_dir.join("metrics.jsonl")
}

/// Writes the best settings, trains them and those of the experiment with seeds that no trial had, and compares both.
fn conclude(
    registry: &Registry,
    args: &SearchArgs,
    searching: &Searching<'_>,
    signals: &Signals,
    go_on: &str,
) -> Result<String, ExperimentError> {
    let Searching { source, config, space, metric, record, out, .. } = searching;
    let Some(best) = record.best() else {
        let reasons: Vec<&str> = record.trials.iter().filter_map(|trial| trial.reason.as_deref()).collect();
        let reason = reasons.last().map_or_else(String::new, |reason| format!("; the last one: {reason}"));
        return Err(ExperimentError::Failed(format!("none of {} trials is complete{reason}", record.trials.len())));
    };
    let value = best.reached(config);
    let head = format!(
        "# Trial {} of a search, the best of {}: {} {value}\n\n",
        best.number,
        record.trials.len(),
        metric.name
    );
    let table = source.without(SEARCH).with(&best.set)?.table().clone();
    let text = toml::to_string_pretty(&table).map_err(|error| ExperimentError::Failed(error.to_string()))?;
    write(out, BEST_TOML, &format!("{head}{text}"))?;
    let summary = if config.report_seeds == 0 || best.set.is_empty() {
        None
    } else {
        let planned = |name: &str, set: &[String], seed: u64| Planned {
            config: out.join(BASE_TOML),
            set: set.to_vec(),
            seed,
            run_dir: out.join("comparison").join(format!("{name}-seed{seed}")),
        };
        let of = |name: String, set: &[String]| {
            config.unseen_seeds().map(|seed| planned(&name, set, seed)).collect::<Vec<_>>()
        };
        let runs = [of("base".into(), &[]), of(format!("trial-{}", best.number), &best.set)].concat();
        let trainings = trainings(registry, &runs)?;
        train_all(signals, args.jobs, out, &runs, &trainings, go_on)?;
        let run_dirs = runs.into_iter().map(|run| run.run_dir).collect();
        let compared = CompareArgs::of_runs(run_dirs, args.episodes, false);
        let groups = Groups::read(registry, &compared.paths, &[], &[], out, true)?;
        let summary = written(registry, &compared, &groups, out)?;
        searching.write_page(Some(&summary))?;
        Some(summary)
    };
    if args.json {
        let settings: Map<String, Value> = if best.point.is_empty() {
            Map::new()
        } else {
            space.settings(&best.point).map(|(key, value)| (key.to_owned(), json!(value))).collect()
        };
        let counts: Map<String, Value> = [State::Complete, State::Pruned, State::Failed]
            .map(|state| (state.name().to_owned(), json!(record.count(state))))
            .into_iter()
            .collect();
        let document = json!({
            "out": out.display().to_string(), "metric": metric.name, "trials": counts,
            "best": {
                "trial": best.number, "value": best.value, "final_value": best.final_value, "settings": settings,
                "config": out.join(BEST_TOML),
            },
            "comparison": summary.as_ref().map(compare::to_json),
        });
        return Ok(format!("{document}\n"));
    }
    let count = |state: State| record.count(state);
    let mut text = format!(
        "{} trials: {} complete, {} pruned, {} failed\nBest: trial {}, {} {value}\n",
        record.trials.len(),
        count(State::Complete),
        count(State::Pruned),
        count(State::Failed),
        best.number,
        metric.name
    );
    if best.set.is_empty() {
        text.push_str("  the settings of the experiment\n");
    }
    best.set.iter().for_each(|item| text.push_str(&format!("  {}\n", item.replacen('=', " = ", 1))));
    if let Some(summary) = &summary {
        text.push_str(&format!("\nBoth trained with {}, which no trial had:\n\n", config.unseen_in_words()));
        text.push_str(&compare::to_text(summary));
    }
    if !is_quiet() {
        text.push_str(&format!("\nConfig: {}\nReport: {}\n", out.join(BEST_TOML).display(), out.join(PAGE).display()));
    }
    Ok(text)
}

/// The command that continues a search.
fn command_line(program: &str, args: &SearchArgs, out: &Path) -> String {
    let mut words = vec![program.to_owned(), SEARCH.to_owned(), args.path.display().to_string()];
    words.extend(args.trials.iter().flat_map(|n| ["--trials".to_owned(), n.to_string()]));
    words.extend(args.set.iter().flat_map(|item| ["--set".to_owned(), item.clone()]));
    words.extend(args.device.iter().flat_map(|device| ["--device".to_owned(), device.clone()]));
    words.extend(args.jobs.iter().flat_map(|jobs| ["--jobs".to_owned(), jobs.to_string()]));
    words.extend(args.episodes.iter().flat_map(|n| ["--episodes".to_owned(), n.to_string()]));
    words.extend(args.json.then(|| "--json".to_owned()));
    words.extend(args.trust.then(|| "--trust".to_owned()));
    if !args.path.is_dir() {
        words.extend(["--out".to_owned(), out.display().to_string()]);
    }
    shell_line(&words)
}
