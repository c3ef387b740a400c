//! `sweep`: trains every combination of settings and seeds, here or as tasks of a cluster.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use brasa_train::say_progress;

use super::compare::shell_line;
use super::train::Claimed;
use super::{compare, train};
use crate::args::{CompareArgs, SweepArgs, TrainArgs};
use crate::compare::{Groups, Training, refuse_other_scenario, settings, training_of};
use crate::source::with_device;
use crate::sweep::{Independent, Job, Jobs, Lock, Planned, Runs, grid, script};
use crate::{Experiment, ExperimentError, Registry};

/// Folder of the output of the runs.
const LOGS: &str = "logs";
/// Exit status after a signal: by convention that of Ctrl-C.
const INTERRUPTED: i32 = 130;

pub fn run(program: &str, registry: &Registry, args: &SweepArgs) -> Result<String, ExperimentError> {
    let claimed = Claimed::of(args.out.as_deref(), "sweep")?;
    let out = claimed.path();
    let set = with_device(&args.set, args.device.as_deref());
    let runs = grid(&args.configs, &set, &args.seeds, out)?;
    if let Some(only) = args.only {
        return one(program, registry, args, &runs, only);
    }
    if let Some(launcher) = args.print {
        let mut last = None;
        runs.iter().try_for_each(|run| experiment_of(registry, run, &mut last).map(drop))?;
        return Ok(script(launcher, &command_line(program, args, out), runs.len()));
    }
    // All runs are checked before the first one starts.
    let mut trainings = trainings(registry, &runs)?;
    let go_on = format!("interrupted; continue with `{}`", command_line(program, args, out));
    let lock = Lock::of(out)?;
    if lock.waited {
        // Runs that ended meanwhile have other states.
        trainings = self::trainings(registry, &runs)?;
    }
    train_all(&Signals::new(), args.jobs, out, &runs, &trainings, &go_on)?;
    let run_dirs = runs.into_iter().map(|run| run.run_dir).collect();
    let compare = CompareArgs::of_runs(run_dirs, args.episodes, args.json);
    let groups = Groups::read(registry, &compare.paths, &[], &[], out, true)?;
    compare::of_finished(registry, &compare, &groups, out)
}

/// The experiment of the last run, with its config and settings: runs of one combination follow each other.
type Last<'a, 'r> = Option<(&'a Planned, Experiment<'r>)>;

/// The experiment of a run, and whether it is not that of the run before; loading one may take a second.
fn experiment_of<'l, 'a, 'r>(
    registry: &'r Registry,
    run: &'a Planned,
    last: &'l mut Last<'a, 'r>,
) -> Result<(&'l Experiment<'r>, bool), ExperimentError> {
    let is_new = last.as_ref().is_none_or(|(known, _)| (&known.config, &known.set) != (&run.config, &run.set));
    if is_new {
        *last = Some((run, registry.load(&run.config, &run.set)?));
    }
    let (_, experiment) = last.as_ref().expect("it was loaded");
    Ok((experiment, is_new))
}

/// How each run is trained; `None` if it is finished. Makes the learner of each combination that has a run to train, because only
/// learners check the values of their settings.
pub(super) fn trainings(registry: &Registry, runs: &[Planned]) -> Result<Vec<Option<Training>>, ExperimentError> {
    let (mut last, mut is_checked) = (None, false);
    let mut comparable = Comparable::default();
    let training = |run| {
        let (experiment, is_new) = experiment_of(registry, run, &mut last)?;
        if is_new {
            comparable.add(registry, run, experiment)?;
        }
        let training = training(registry, experiment, run)?;
        is_checked &= !is_new;
        if training.is_some() && !is_checked {
            train::start(experiment, &experiment.train.open_device()?, &RefCell::new(None))?;
            is_checked = true;
        }
        Ok(training)
    };
    runs.iter().map(training).collect()
}

/// The resolved experiments of a sweep: the comparison at its end must be possible before the first run starts.
#[derive(Default)]
struct Comparable<'a, 'r> {
    first: Option<(&'a Planned, Experiment<'r>)>,
    settings: Vec<(&'a Planned, toml::Table)>,
}

impl<'a, 'r> Comparable<'a, 'r> {
    /// Adds the experiment of a combination.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] if it is that of another combination, as with a value that is spelled twice or a key without effect on the
    /// result, or if it plays other episodes.
    fn add(
        &mut self,
        registry: &'r Registry,
        run: &'a Planned,
        experiment: &Experiment<'_>,
    ) -> Result<(), ExperimentError> {
        let settings = settings(experiment);
        if let Some((known, _)) = self.settings.iter().find(|(_, known)| *known == settings) {
            let (one, other) = (known.in_words(), run.in_words());
            return Err(ExperimentError::Input(format!(
                "{one} and {other} are the same experiment: leave one out, or give different values"
            )));
        }
        self.settings.push((run, settings));
        match &self.first {
            Some((first, of_first)) => {
                let (first, run) = (PathBuf::from(first.in_words()), PathBuf::from(run.in_words()));
                refuse_other_scenario((&first, of_first), (&run, experiment))
            }
            None => {
                self.first = Some((run, registry.load(&run.config, &run.set)?));
                Ok(())
            }
        }
    }
}

/// How a run is trained; `None` if it is finished.
pub(super) fn training(
    registry: &Registry,
    experiment: &Experiment<'_>,
    run: &Planned,
) -> Result<Option<Training>, ExperimentError> {
    let training = training_of(registry, &run.config, experiment, run.seed, &run.run_dir)?;
    let is_reported = run.run_dir.join("result.json").is_file();
    let total_env_steps = experiment.train.total_env_steps;
    // A run that ended between its last checkpoint and its report writes the report.
    let report = || (!is_reported).then(|| Training { config: run.config.clone(), total_env_steps, resumes: true });
    Ok(training.or_else(report))
}

/// Trains the run with the number `only` in this process.
fn one(
    program: &str,
    registry: &Registry,
    args: &SweepArgs,
    runs: &[Planned],
    only: usize,
) -> Result<String, ExperimentError> {
    let run = runs.get(only).ok_or_else(|| {
        let last = runs.len().saturating_sub(1);
        ExperimentError::Input(format!("--only must be at most {last}, the last run of the sweep, got {only}"))
    })?;
    let experiment = registry.load(&run.config, &run.set)?;
    let Some(training) = training(registry, &experiment, run)? else {
        return Ok(format!("{} is finished\n", run.run_dir.display()));
    };
    let resumes = training.resumes;
    let train = TrainArgs {
        config: (!resumes).then(|| run.config.clone()),
        seed: (!resumes).then_some(run.seed),
        out: (!resumes).then(|| run.run_dir.clone()),
        set: if resumes { Vec::new() } else { run.set.clone() },
        resume: resumes.then(|| run.run_dir.clone()),
        json: args.json,
        trust: true,
        ..TrainArgs::default()
    };
    train::run(program, registry, &train)
}

/// Ctrl-C, for commands that train in other processes.
pub(super) struct Signals {
    stop: Arc<AtomicBool>,
    trains: Arc<AtomicBool>,
}

impl Signals {
    /// Handles signals from now on. A process has one of these.
    pub(super) fn new() -> Self {
        let (stop, trains) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (signalled, is_training) = (Arc::clone(&stop), Arc::clone(&trains));
        let handler = move || {
            // The second signal ends the process, and the first one if nothing is trained.
            if signalled.swap(true, Ordering::SeqCst) || !is_training.load(Ordering::SeqCst) {
                std::process::exit(INTERRUPTED);
            }
        };
        if let Err(error) = ctrlc::set_handler(handler) {
            tracing::warn!("Ctrl-C will end the command without checkpoints: {error}");
        }
        Self { stop, trains }
    }

    /// Trains `runs`, which a signal stops.
    pub(super) fn train(&self, jobs: &Jobs, runs: &mut impl Runs) -> io::Result<()> {
        self.trains.store(true, Ordering::SeqCst);
        let trained = jobs.train(runs, || self.is_stopped());
        self.trains.store(false, Ordering::SeqCst);
        trained
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }
}

/// The processes for at most `n_runs` runs; by default as many at a time as there are cores, which they divide among themselves.
pub(super) fn processes(at_once: Option<usize>, n_runs: usize) -> Jobs {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let at_once = at_once.unwrap_or(cores).min(n_runs).max(1);
    Jobs { at_once, threads: (cores / at_once).max(1) }
}

/// In words, for messages.
pub(super) fn in_words(Jobs { at_once, threads }: &Jobs) -> String {
    format!("{at_once} at a time with {threads} thread{} each", if *threads == 1 { "" } else { "s" })
}

/// Trains the runs that are not finished, each in a separate process. `go_on` is the message of an interruption.
pub(super) fn train_all(
    signals: &Signals,
    at_once: Option<usize>,
    out: &Path,
    runs: &[Planned],
    trainings: &[Option<Training>],
    go_on: &str,
) -> Result<(), ExperimentError> {
    let to_train = || runs.iter().zip(trainings).filter_map(|(run, training)| Some((run, training.as_ref()?)));
    let n_to_train = to_train().count();
    let jobs = processes(at_once, n_to_train);
    let done = runs.len() - n_to_train;
    let before = if done > 0 { format!(", {done} finished before") } else { String::new() };
    say_progress(&format!("{} runs{before}, {}; directory {}", runs.len(), in_words(&jobs), out.display()));
    let waiting = to_train().map(|(run, training)| job(run, training, out, jobs.threads)).collect();
    let mut independent = Independent::new(waiting);
    signals
        .train(&jobs, &mut independent)
        .map_err(|error| ExperimentError::Failed(format!("cannot run the sweep: {error}")))?;
    let outcome = independent.outcome();
    if outcome.interrupted {
        return Err(ExperimentError::Interrupted(go_on.to_owned()));
    }
    if !outcome.failed.is_empty() {
        let shown = outcome.failed.iter().map(|(name, log, words)| format!("{name} ({}):\n{words}", log.display()));
        let (n, all) = (outcome.failed.len(), shown.collect::<Vec<_>>().join("\n"));
        return Err(ExperimentError::Failed(format!(
            "{n} of {} runs failed; the same command tries them again\n{all}",
            runs.len()
        )));
    }
    Ok(())
}

pub(super) fn job(run: &Planned, training: &Training, out: &Path, threads: usize) -> Job {
    let name = run.run_dir.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let mut args: Vec<OsString> = vec!["train".into(), "--quiet".into()];
    if training.resumes {
        args.extend(["--resume".into(), run.run_dir.clone().into()]);
    } else {
        args.extend([run.config.clone().into(), "--out".into(), run.run_dir.clone().into()]);
        args.extend(["--seed".into(), run.seed.to_string().into()]);
        // With one thread there is nothing to choose; settings of the sweep come later and win.
        let serial = (threads == 1).then(|| "train.executor=serial".to_owned());
        args.extend(serial.iter().chain(&run.set).flat_map(|item| ["--set".into(), item.into()]));
    }
    Job {
        log: out.join(LOGS).join(format!("{name}.log")),
        name,
        args,
        run_dir: run.run_dir.clone(),
        total_env_steps: training.total_env_steps,
    }
}

/// The command of this sweep, for a shell.
fn command_line(program: &str, args: &SweepArgs, out: &Path) -> String {
    let path = |path: &Path| path.display().to_string();
    let mut words = vec![program.to_owned(), "sweep".to_owned()];
    words.extend(args.configs.iter().map(|config| path(config)));
    words.extend(["--seeds".to_owned(), args.seeds.argument()]);
    words.extend(args.set.iter().flat_map(|item| ["--set".to_owned(), item.clone()]));
    words.extend(args.device.iter().flat_map(|device| ["--device".to_owned(), device.clone()]));
    words.extend(args.jobs.iter().flat_map(|jobs| ["--jobs".to_owned(), jobs.to_string()]));
    words.extend(args.episodes.iter().flat_map(|n| ["--episodes".to_owned(), n.to_string()]));
    words.extend(args.json.then(|| "--json".to_owned()));
    words.extend(["--out".to_owned(), path(out)]);
    shell_line(&words)
}
