//! `train`: trains with checkpoints, compares with baselines, and writes the report.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use brasa_device::{Backend, RunMonitor, catch_out_of_memory, profile_of, runs_on_host};
use brasa_env::field::machine_bytes;
use brasa_env::{Effort, Evaluation, Executor, InvalidField, Scenario, Split, Who, field};
use brasa_shards::{RunError, ShardError, World, shard};
use brasa_train::{Ending, Run, RunDir, StopToken, WaitView, close_log, is_quiet, note, open_log, say, say_progress};
use burn::tensor::Device;
use serde_json::{Value, json};

use crate::args::TrainArgs;
use crate::comparison::{ComparisonSetup, counted, distinct, mean_figures};
use crate::exposure::TrainingData;
use crate::files::Digests;
use crate::load::experiment_of;
use crate::lowered::Lowered;
use crate::need::{FinalComparison, Need};
use crate::placement::{Placed, Placement, device_line};
use crate::policy::LoadedPolicy;
use crate::registry::SizeOf;
use crate::report::{OUT_OF_MEMORY, Player};
use crate::session::{BeginRun, Context, OpenRunDir, Session, Trained, TrainingSetup};
use crate::source::override_of;
use crate::timeline::{self, Event};
use crate::train_config::look_seed;
use crate::{Experiment, ExperimentError, OnNan, OnOom, Registry, Source, TrainConfig, report};

pub fn run(program: &str, registry: &Registry, args: &TrainArgs) -> Result<String, ExperimentError> {
    let stop = StopToken::on_ctrl_c();
    // It is dropped at the end: other ranks wait for the report of the first one.
    let world = registry.ranks.unwrap_or(World::join)().map_err(ExperimentError::input)?;
    let _view = (world.rank() == 0).then(|| WaitView::new("`train`"));
    let concluded = || {
        let learned = learn(registry, args, &world, &stop, |run_dir| interrupted(program, run_dir))?;
        let Some((experiment, trained)) = learned else { return Ok(String::new()) };
        let run_dir = trained.run_dir.path().display();
        stop.set_message(format!("interrupted after the training; compare with `{program} report {run_dir}`"));
        conclude(args, &experiment, &trained)
    };
    let result = concluded();
    match &result {
        // An error is printed after this, and belongs to the log, too.
        Ok(_) => close_log(),
        Err(ExperimentError::Interrupted(_)) => {}
        // The other ranks would wait for this one.
        Err(error) => {
            // It may end the process.
            if world.n_ranks() > 1 {
                note(&format!("error: {error}"));
            }
            world.abort(&error.to_string(), error.status());
        }
    }
    result
}

/// Starts or resumes a run and trains it to its end. `interrupted` gives the message that says how to resume a stopped run. `None` in
/// a rank other than the first one of `world`.
pub(super) fn learn<'a>(
    registry: &'a Registry,
    args: &TrainArgs,
    world: &World,
    stop: &StopToken,
    interrupted: impl Fn(&RunDir) -> String,
) -> Result<Option<(Experiment<'a>, Trained)>, ExperimentError> {
    let mut attempt = Attempt { args: args.clone(), forget_replay: args.forget_replay, n_diverged: 0 };
    loop {
        let (mut experiment, existing) = experiment(registry, &attempt.args, world)?;
        let run_dir = RefCell::new(None);
        match attempt.train(registry, &mut experiment, world, existing, &run_dir, stop, &interrupted) {
            Ok(trained) => return Ok(trained.map(|trained| (experiment, trained))),
            Err(ExperimentError::OutOfMemory(reason)) => {
                attempt = attempt.smaller(&experiment, run_dir.into_inner(), &reason)?;
            }
            Err(ExperimentError::Diverged(reason)) => {
                attempt = attempt.calmer(&experiment, run_dir.into_inner(), &reason)?;
            }
            Err(error) => return Err(error),
        }
    }
}

/// One of several attempts to train, if the device has too little memory for the first one or its numbers do not stay finite.
struct Attempt {
    args: TrainArgs,
    forget_replay: bool,
    /// Attempts before this one that diverged.
    n_diverged: usize,
}

impl Attempt {
    /// Trains to the end. `used` receives the path of the run directory before training starts.
    #[allow(clippy::too_many_arguments, reason = "all that a run needs")]
    fn train(
        &self,
        registry: &Registry,
        experiment: &mut Experiment<'_>,
        world: &World,
        existing: Option<RunDir>,
        used: &RefCell<Option<PathBuf>>,
        stop: &StopToken,
        interrupted: &impl Fn(&RunDir) -> String,
    ) -> Result<Option<Trained>, ExperimentError> {
        refuse_what_does_not_fit(experiment)?;
        let begun = existing.as_ref().map(|run_dir| run_dir.checkpoints().latest_env_steps()).transpose()?.flatten();
        let init_from = experiment.train.init_from.clone().filter(|_| begun.is_none());
        let (whole, share) = (experiment.to_toml(), experiment.share()?);
        let share_of = || {
            let own_device = override_of("train.device", experiment.train.device_of_shard(shard().index));
            registry.parse(&whole, "the experiment of a shard", &[&share[..], &[own_device]].concat())
        };
        let n_shards = experiment.train.n_shards;
        let forget_replay = self.forget_replay;
        // The executor that replaces `auto` is known once the environments exist. It is written before training starts.
        let placed = RefCell::new(None);
        let first = || {
            let own = (n_shards > 1).then(share_of).transpose()?;
            let own = own.as_ref().unwrap_or(experiment);
            let place = shard().is_first().then(|| self.place(experiment, &placed, existing, used, stop, interrupted));
            let progress = (!is_quiet() && place.is_some()).then(|| experiment.scenario.curves());
            let setup = TrainingSetup {
                place,
                forget_replay,
                checkpoint_secs: experiment.train.checkpoint_secs,
                checkpoint_interval: experiment.train.checkpoint_interval,
                metrics_csv: experiment.train.metrics_csv,
                init_from: init_from.clone(),
                evaluation: evaluation(experiment)?,
                eval_sampled: experiment.train.eval_sampled,
                precision: experiment.train.precision,
                cleanup_interval: experiment.train.cleanup_interval,
                progress,
                monitor: Some(RunMonitor::of(experiment.train.first_device())),
                stop: stop.clone(),
            };
            train_shard(own, &placed, setup)
        };
        let others = || {
            let own = share_of()?;
            let setup = TrainingSetup {
                place: None,
                forget_replay,
                checkpoint_secs: own.train.checkpoint_secs,
                checkpoint_interval: own.train.checkpoint_interval,
                metrics_csv: false,
                init_from: init_from.clone(),
                evaluation: None,
                eval_sampled: false,
                precision: own.train.precision,
                cleanup_interval: own.train.cleanup_interval,
                progress: None,
                monitor: None,
                stop: StopToken::default(),
            };
            train_shard(&own, &RefCell::new(None), setup).map(drop)
        };
        // Warnings of all shards are the same.
        let silent = tracing::subscriber::NoSubscriber::new;
        let others = || tracing::subscriber::with_default(silent(), others).map_err(|error| error.to_string());
        let trained = world.run_with(n_shards, first, others).map_err(|error| match error {
            RunError::Own(error) => error,
            RunError::Dist(ShardError::Shards { n_shards, n_ranks }) => {
                let rule = format!("must be a multiple of the number of ranks, which is {n_ranks}");
                ExperimentError::input(InvalidField::new("train.n_shards", rule, n_shards))
            }
            error => ExperimentError::Failed(error.to_string()),
        })?;
        if let Some(Trained { ending, run_dir, env_steps, .. }) = &trained {
            let event = if *ending == Ending::Done { Event::Done } else { Event::Stopped };
            timeline::record(run_dir, event, *env_steps)?;
        }
        if let Some(placed) = placed.into_inner() {
            experiment.train.executor = chosen_executor(experiment.train.executor, &placed);
        }
        match trained {
            Some(Trained { ending: Ending::Stopped, run_dir, .. }) => {
                Err(ExperimentError::Interrupted(interrupted(&run_dir)))
            }
            trained => Ok(trained),
        }
    }

    /// How to open the run directory, and what to do before training starts.
    fn place<'a>(
        &'a self,
        experiment: &'a Experiment<'_>,
        placed: &'a RefCell<Option<Placed>>,
        existing: Option<RunDir>,
        used: &'a RefCell<Option<PathBuf>>,
        stop: &'a StopToken,
        interrupted: &'a impl Fn(&RunDir) -> String,
    ) -> (OpenRunDir<'a>, BeginRun<'a>) {
        let args = &self.args;
        let resumes = existing.is_some();
        // All settings are checked before any file is written.
        let open = move || {
            let run_dir = match existing {
                Some(run_dir) => run_dir,
                None => {
                    let stem = args.config.as_deref().and_then(Path::file_stem).map(|stem| stem.to_string_lossy());
                    let claimed = Claimed::of(args.out.as_deref(), stem.as_deref().unwrap_or("run"))?;
                    RunDir::create(claimed.path())?
                }
            };
            let log = run_dir.file("run.log");
            open_log(&log).map_err(|error| ExperimentError::cannot_write(&log, &error))?;
            let TrainConfig { keep_checkpoints, keep_every, .. } = experiment.train;
            Ok((run_dir.keeping(keep_checkpoints, keep_every), resumes))
        };
        let begin = move |run_dir: &RunDir| {
            let placed = placed.borrow();
            let placed = placed.as_ref().expect("environments are made before the directory");
            let executor = chosen_executor(experiment.train.executor, placed);
            Digests::record(run_dir, &*experiment.scenario)?;
            run_dir.write_config(&experiment.to_toml_with(executor))?;
            let init_from = experiment.train.init_from.as_deref().filter(|_| !resumes);
            TrainingData::record(run_dir, &*experiment.scenario, resumes, init_from)?;
            used.replace(Some(run_dir.path().to_owned()));
            timeline::record(run_dir, Event::Start, run_dir.checkpoints().latest_env_steps()?.unwrap_or(0))?;
            say_progress(&about(experiment));
            if let Some(path) = &experiment.train.good_recipe {
                let path = path.display();
                say_progress(&format!("These settings are published ones, kept as a record; {path} is a good recipe"));
            }
            let shards = match shard().count {
                1 => String::new(),
                n => format!("{n} shards with "),
            };
            say_progress(&format!("Run directory: {} (Ctrl-C saves and stops)", run_dir.path().display()));
            say_progress(&format!("Device: {}; {shards}{placed}", device_line(&experiment.train)));
            stop.set_message(interrupted(run_dir));
            Ok(())
        };
        (Box::new(open), Box::new(begin))
    }

    /// The next attempt after one for which the device had too little memory.
    fn smaller(
        self,
        experiment: &Experiment<'_>,
        run_dir: Option<PathBuf>,
        reason: &str,
    ) -> Result<Self, ExperimentError> {
        let profile = profile_of(experiment.train.first_device())?;
        let need = profile.map(|profile| Need::of(experiment, &profile)).transpose()?.flatten();
        let begun = run_dir.is_some() || self.args.resume.is_some();
        let lowered = Lowered::next(experiment, need.as_ref(), !begun);
        let (Some(lowered), OnOom::Shrink) = (lowered, experiment.train.on_oom) else {
            return Err(ExperimentError::OutOfMemory(format!("{reason}: {}", advice(experiment))));
        };
        let forget_replay = lowered.of_replay;
        Ok(Self { forget_replay, ..self.again(&[lowered], run_dir, OUT_OF_MEMORY, reason)? })
    }

    /// The next attempt after one whose numbers were no longer finite.
    fn calmer(
        self,
        experiment: &Experiment<'_>,
        run_dir: Option<PathBuf>,
        reason: &str,
    ) -> Result<Self, ExperimentError> {
        let n_diverged = self.n_diverged;
        let changes = match experiment.train.on_nan {
            OnNan::Stop => {
                let advice = "`train.on_nan = \"retry\"` goes back to the last checkpoint with half the learning rate, and then \
                    multiplies in 32 bits";
                return Err(ExperimentError::Diverged(format!("{reason}; {advice}")));
            }
            OnNan::Retry => Lowered::calmer(experiment, n_diverged),
        };
        if changes.is_empty() || run_dir.is_none() {
            return Err(ExperimentError::Diverged(format!(
                "{reason}; {n_diverged} attempts with other settings did not help"
            )));
        }
        Ok(Self {
            n_diverged: n_diverged + 1,
            forget_replay: false,
            ..self.again(&changes, run_dir, DIVERGED, reason)?
        })
    }

    /// The next attempt with other settings: from the last checkpoint of the run, if one has begun. `file` of the run records the changes.
    fn again(
        self,
        changes: &[Lowered],
        run_dir: Option<PathBuf>,
        file: &str,
        reason: &str,
    ) -> Result<Self, ExperimentError> {
        let Self { mut args, .. } = self;
        args.set.extend(changes.iter().map(|Lowered { key, value, .. }| format!("{key}={value}")));
        if let Some(path) = run_dir {
            let run_dir = RunDir::open_to_resume(&path)?;
            let env_steps = run_dir.checkpoints().latest_env_steps()?.unwrap_or(0);
            let mut records = std::fs::read_to_string(run_dir.file(file)).unwrap_or_default();
            for Lowered { key, before, value, .. } in changes {
                let record =
                    json!({ "env_steps": env_steps, "key": key, "before": before, "value": value, "reason": reason });
                records.push_str(&format!("{record}\n"));
            }
            run_dir.write(file, records.as_bytes())?;
            // Its `config.toml` has the rest.
            (args.config, args.out, args.init_from, args.resume) = (None, None, None, Some(path));
        }
        let changed =
            changes.iter().map(|Lowered { key, before, value, .. }| format!("`{key}` = {value} in place of {before}"));
        say(&format!("{reason}; continuing with {}", changed.collect::<Vec<_>>().join(", ")));
        Ok(Self { args, ..self })
    }
}

/// What is trained, where and on which device.
fn about(experiment: &Experiment<'_>) -> String {
    let train = &experiment.train;
    format!(
        "Training {} on {}: {}, {}, seed {}, device {}",
        experiment.algorithm.to_uppercase(),
        experiment.entry.name,
        counted(train.total_env_steps, "step"),
        counted(train.n_envs as u64, "environment"),
        train.seed,
        train.device
    )
}

/// The file of a run with the settings that were changed because numbers were no longer finite.
const DIVERGED: &str = "diverged.jsonl";

/// What helps a run whose device has too little memory.
fn advice(experiment: &Experiment<'_>) -> String {
    let sizes = experiment.plan.sizes();
    let lowered = sizes.iter().filter(|size| !matches!(size.of, SizeOf::Parts | SizeOf::Updates | SizeOf::OnHost));
    let parts = sizes.iter().find(|size| size.of == SizeOf::Parts && experiment.setting(&size.key).is_some());
    let parts = parts.map_or(String::new(), |size| format!("raise `{}`, or ", size.key));
    let keys: Vec<String> =
        lowered.map(|size| &*size.key).chain(["train.n_envs"]).map(|key| format!("`{key}`")).collect();
    let on_host = sizes.iter().find(|size| size.of == SizeOf::OnHost);
    let on_host = on_host.map_or(String::new(), |size| format!(", or set `{}`", size.key));
    let automatic = match experiment.train.on_oom {
        OnOom::Stop => "; `train.on_oom = \"shrink\"` does it by itself",
        OnOom::Shrink => "",
    };
    format!("{parts}lower {}{on_host}{automatic}", keys.join(", "))
}

/// Refuses a run that needs more memory than its device has, before anything is allocated. On the processor, runs of usual sizes are not
/// measured, which takes seconds.
fn refuse_what_does_not_fit(experiment: &Experiment<'_>) -> Result<(), ExperimentError> {
    if let Some(refusal) = FinalComparison::of(experiment).and_then(|comparison| comparison.refusal(machine_bytes())) {
        return Err(ExperimentError::Input(refusal));
    }
    let Some(profile) = profile_of(experiment.train.first_device())? else { return Ok(()) };
    let is_host = profile.usable_gib.is_none() && profile.backend == Backend::Flex;
    if profile.usable_gib.is_none() && !(is_host && is_large(experiment)) {
        return Ok(());
    }
    let Some(mut need) = Need::of(experiment, &profile)? else { return Ok(()) };
    if is_host {
        need.usable_bytes = Some(machine_bytes());
    }
    match need.refusal() {
        Some(refusal) => Err(ExperimentError::Input(format!("{refusal}; `plan --fit` finds settings that fit"))),
        None => Ok(()),
    }
}

/// Whether a run computes with so many rows at once that a processor may lack the memory.
fn is_large(experiment: &Experiment<'_>) -> bool {
    let rows = (experiment.train.n_envs * experiment.spec.n_agents) as f64;
    let size = |of: SizeOf| {
        let sizes = experiment.plan.sizes().into_iter().filter(|size| size.of == of);
        let values = sizes.filter_map(|size| experiment.setting(&size.key)?.as_integer());
        values.max().map_or(1.0, |value| value as f64)
    };
    // Without batches, all rows of a rollout are one.
    let (rollout, batch) = (rows * size(SizeOf::Rollout), size(SizeOf::Batch));
    let is_large = rows > f64::from(1 << 14) || batch > f64::from(1 << 16) || rollout > f64::from(1 << 20);
    // Rows of which not even two numbers fit are refused by their setting when they are made.
    is_large && 8.0 * rollout.max(batch) <= machine_bytes()
}

/// Trains one shard of a run, or all of it.
fn train_shard(
    own: &Experiment<'_>,
    placed: &RefCell<Option<Placed>>,
    setup: TrainingSetup<'_>,
) -> Result<Option<Trained>, ExperimentError> {
    let device = own.train.open_device()?;
    let trained = catch_out_of_memory(|| start(own, &device, placed)?.train(setup));
    // The memory of what failed must not be missing in the next attempt.
    if matches!(trained, Err(_) | Ok(Err(ExperimentError::OutOfMemory(_)))) {
        device.memory_cleanup();
    }
    trained?
}

/// Creates the algorithm of an experiment and its loop. `placed` receives the place of its environments.
pub(super) fn start(
    experiment: &Experiment<'_>,
    device: &Device,
    placed: &RefCell<Option<Placed>>,
) -> Result<Session, ExperimentError> {
    let train = &experiment.train;
    train.precision.check(device)?;
    experiment.plan.start(Context {
        spec: &experiment.spec,
        extensions: &experiment.extensions,
        device,
        autodiff: &device.clone().autodiff(),
        run: Run { total_env_steps: train.total_env_steps, seed: train.seed },
        placement: Placement { experiment, placed, on_host: runs_on_host(device) },
    })
}

/// The message of an interrupted run.
fn interrupted(program: &str, run_dir: &RunDir) -> String {
    format!("interrupted; continue with `{program} train --resume {}`", run_dir.path().display())
}

/// The executor that replaces `auto`. A resumed run must use the same one: saved environments belong to a number of threads.
fn chosen_executor(configured: Executor, placed: &Placed) -> Executor {
    match (configured, placed) {
        (Executor::Auto, Placed::Host(choice)) if choice.n_threads == 1 => Executor::Serial,
        (Executor::Auto, Placed::Host(choice)) => Executor::Threads(choice.n_threads),
        (executor, _) => executor,
    }
}

/// The experiment of a new run, or the experiment and directory of the run to resume.
fn experiment<'a>(
    registry: &'a Registry,
    args: &TrainArgs,
    world: &World,
) -> Result<(Experiment<'a>, Option<RunDir>), ExperimentError> {
    let mut overrides = args.set.clone();
    overrides.extend(args.device.iter().map(|device| override_of("train.device", device)));
    overrides.extend(args.init_from.iter().map(|run| override_of("train.init_from", &run.to_string_lossy())));
    overrides.extend(args.seed.map(|seed| format!("train.seed={seed}")));
    overrides.extend(args.steps.map(|steps| format!("train.total_env_steps={steps}")));
    let Some(dir) = &args.resume else {
        let path = args.config.as_deref().expect("clap requires a config without --resume");
        return Ok((registry.load(path, &overrides)?, None));
    };
    // The first rank writes.
    let run_dir = if world.rank() == 0 { RunDir::open_to_resume(dir)? } else { RunDir::open(dir)? };
    let (text, origin) = (run_dir.read_config()?, run_dir.file("config.toml").display().to_string());
    let experiment = experiment_of(registry, &run_dir, &overrides, |_, _| args.trust)?;
    Digests::check(&run_dir, &*experiment.scenario)?;
    let before: TrainConfig = Source::parse(&text, &origin, &[])?.section("train")?;
    let (n_envs, total) = (experiment.train.n_envs, experiment.train.total_env_steps);
    let changed = |key: &str, from: usize, to: usize, what: &str| match from == to {
        true => Ok(()),
        false => Err(ExperimentError::Input(format!(
            "cannot change `train.{key}` from {from} to {to} on resume: the checkpoint contains {from} {what}. Use --init-from RUN \
            for a new run"
        ))),
    };
    changed("n_envs", before.n_envs, n_envs, "environments")?;
    changed("n_shards", before.n_shards, experiment.train.n_shards, "shards")?;
    let done = run_dir.checkpoints().latest_env_steps()?.unwrap_or(0);
    let rule = format!("must be at least {done}, the steps that the run has taken");
    // The last step of several environments may exceed the total of a run that is complete.
    let is_shorter = total < before.total_env_steps && total < done;
    field::rule(!is_shorter, "train.total_env_steps", rule, total).map_err(ExperimentError::input)?;
    if let Some(path) = &args.config
        && !experiment.is_same_run(&registry.load(path, &overrides)?)
    {
        return Err(ExperimentError::Input(format!(
            "{} differs from {origin}, the experiment of the run to resume: leave it out, or start a new run",
            path.display()
        )));
    }
    Ok((experiment, Some(run_dir)))
}

/// The directory of a command's result: the one that the user gives, or `runs/STEM-N` with the first free number. The latter is created at once, so
/// that two commands never have the same, and removed if nothing was written to it.
pub(super) struct Claimed {
    path: PathBuf,
    is_new: bool,
}

impl Claimed {
    /// # Errors
    /// [`ExperimentError::cannot_write`] if `runs` cannot be written.
    pub(super) fn of(given: Option<&Path>, stem: &str) -> Result<Self, ExperimentError> {
        if let Some(path) = given {
            return Ok(Self { path: path.to_owned(), is_new: false });
        }
        let runs = Path::new("runs");
        let failed = |path: &Path, error: io::Error| ExperimentError::cannot_write(path, &error);
        fs::create_dir_all(runs).map_err(|error| failed(runs, error))?;
        let mut n = 1u64;
        loop {
            let path = runs.join(format!("{stem}-{n}"));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path, is_new: true }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => n += 1,
                Err(error) => return Err(failed(&path, error)),
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        if self.is_new {
            // It fails for a directory with a result.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

/// The evaluation during training, if `eval_interval` is set. It has its own environments, so it does not affect the run.
fn evaluation(experiment: &Experiment<'_>) -> Result<Option<(u64, crate::session::Evaluate)>, ExperimentError> {
    let Some(every) = experiment.train.eval_interval else { return Ok(None) };
    let n_episodes = experiment.scenario.n_episodes(Effort::Look);
    let scenario: Arc<dyn Scenario> = match experiment.scenario.for_evaluation(n_episodes)? {
        Some(scenario) => scenario.into(),
        None => Arc::clone(&experiment.scenario),
    };
    let n_episodes = distinct(&*scenario, n_episodes);
    let (seed, extensions) = (look_seed(experiment.train.eval_seed), scenario.extensions());
    let spec = scenario.envs(Split::Evaluation, 0..1)?.spec().clone();
    let is_sampled = experiment.train.eval_sampled;
    Ok(Some((
        every,
        Box::new(move |policy: LoadedPolicy| {
            let mut controller = policy.adapted(&spec, &extensions)?.controller_that(is_sampled, &spec, seed)?;
            let evaluation = Evaluation::new(n_episodes, seed);
            let _view = WaitView::episodes("evaluation", n_episodes);
            let outcomes = scenario.evaluate(Who::Controller(&mut *controller), &evaluation);
            let outcomes = outcomes.map_err(ExperimentError::of_running)?;
            Ok(mean_figures(&*scenario, &outcomes))
        }),
    )))
}

/// Compares the policy with the baselines, writes the report and returns the result.
fn conclude(args: &TrainArgs, experiment: &Experiment<'_>, trained: &Trained) -> Result<String, ExperimentError> {
    let run_dir = &trained.run_dir;
    let metrics = run_dir.metrics()?;
    let setup = ComparisonSetup::of_run(experiment, &trained.policy, run_dir, &metrics);
    let result = ComparisonSetup { n_episodes: args.episodes, ..setup }.run()?;
    let player = Player::after_training(experiment, &result);
    let page = report::page(experiment, run_dir, &metrics, &result, &player);
    run_dir.write("report.html", page.as_bytes())?;
    let mut document = result.comparison.to_json();
    document.insert("env_steps".into(), trained.env_steps.into());
    document.insert("run_dir".into(), run_dir.path().display().to_string().into());
    let document = Value::Object(document);
    run_dir.write("result.json", format!("{document:#}\n").as_bytes())?;
    if args.json {
        return Ok(format!("{document}\n"));
    }
    let mut text = result.comparison.to_text();
    if !is_quiet() {
        text.push_str(&format!("\nReport: {}\n", run_dir.file("report.html").display()));
    }
    Ok(text)
}
