//! `brasa train`: learn, keep checkpoints, compare, report.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use brasa::env::Executor;
use brasa::train::sinks::{Jsonl, Sinks, TensorBoard};
use brasa::train::{Checkpoints, RunDir, TrainError};
use serde_json::Value;

use crate::algorithm::AnyPolicy;
use crate::args::TrainArgs;
use crate::error::CliError;
use crate::eval::{Measured, Trained, measure};
use crate::experiment::Experiment;

use crate::progress::Progress;
use crate::report;
use crate::session::Session;

pub fn run(args: &TrainArgs) -> Result<(), CliError> {
    // Everything that can be wrong is found before anything is written.
    let (mut experiment, existing) = experiment(args)?;
    let mut session = Session::new(&experiment)?;
    if experiment.train.executor == Executor::Auto {
        // A resume must not choose again: saved environments belong to a number of threads.
        experiment.train.executor = match session.choice.n_threads {
            1 => Executor::Serial,
            n => Executor::Threads(n),
        };
    }
    let run_dir = match existing {
        Some(run_dir) => {
            let (path, checkpoint) = run_dir.checkpoints().latest()?;
            session.training.restore(&checkpoint, &path)?;
            run_dir
        }
        None => RunDir::create(args.out.clone().unwrap_or_else(|| free_directory(args.config.as_deref())))?,
    };
    run_dir.write("config.toml", experiment.to_toml().as_bytes())?;
    if !args.quiet {
        eprintln!("{}; run directory {}", session.choice, run_dir.path().display());
    }

    match learn(args, &experiment, &mut session, &run_dir)? {
        End::Done => conclude(args, &experiment, &session, &run_dir),
        End::Interrupted => Err(CliError::Failed(format!(
            "interrupted after {} environment steps; go on with `brasa train --resume {}`",
            session.training.counters().env_steps,
            run_dir.path().display()
        ))),
    }
}

/// The experiment of a new run, or that of the run to go on with and its directory.
fn experiment(args: &TrainArgs) -> Result<(Experiment, Option<RunDir>), CliError> {
    let mut overrides = args.set.clone();
    overrides.extend(args.device.iter().map(|device| format!("train.device=\"{device}\"")));
    overrides.extend(args.seed.map(|seed| format!("train.seed={seed}")));
    overrides.extend(args.steps.map(|steps| format!("train.total_env_steps={steps}")));
    let Some(dir) = &args.resume else {
        let path = args.config.as_deref().expect("clap requires a config without --resume");
        return Ok((Experiment::load(path, &overrides)?, None));
    };
    let run_dir = RunDir::open(dir)?;
    let origin = run_dir.file("config.toml").display().to_string();
    let experiment = Experiment::parse(&run_dir.read("config.toml")?, &origin, &overrides)?;
    if let Some(path) = &args.config {
        let mut given = Experiment::load(path, &overrides)?;
        given.train.total_env_steps = experiment.train.total_env_steps;
        if given.train.executor == Executor::Auto {
            given.train.executor = experiment.train.executor;
        }
        if given != experiment {
            return Err(CliError::Input(format!(
                "{} differs from {origin}, the experiment of the run to resume: leave it out, or start a new run",
                path.display()
            )));
        }
    }
    Ok((experiment, Some(run_dir)))
}

/// `runs/<name of the config>-<first free number>`.
fn free_directory(config: Option<&Path>) -> PathBuf {
    let stem = config.and_then(Path::file_stem).map_or("run".into(), |stem| stem.to_string_lossy().into_owned());
    let mut candidates = (1u32..).map(|n| Path::new("runs").join(format!("{stem}-{n}")));
    candidates.find(|path| !path.exists()).expect("there are more numbers than directories")
}

enum End {
    Done,
    Interrupted,
}

fn learn(args: &TrainArgs, experiment: &Experiment, session: &mut Session, run_dir: &RunDir) -> Result<End, CliError> {
    let stop = Arc::new(AtomicBool::new(false));
    let signal = Arc::clone(&stop);
    if let Err(error) = ctrlc::set_handler(move || signal.store(true, Ordering::SeqCst)) {
        tracing::warn!("Ctrl-C will end the run without a checkpoint: {error}");
    }
    let done = session.training.counters().env_steps;
    let mut sinks = open_sinks(run_dir, done)?;
    let checkpoints = run_dir.checkpoints();
    let interval = Duration::from_secs_f64(experiment.train.checkpoint_secs);
    let mut progress = Progress::new(args.quiet, done, experiment.train.total_env_steps);
    let mut next_save = save_and_plan(session, &checkpoints, interval)?;
    while !session.training.is_done() {
        if stop.load(Ordering::SeqCst) {
            progress.finish();
            save(session, &checkpoints)?;
            return Ok(End::Interrupted);
        }
        let before = session.training.counters().env_steps;
        let mut iteration = session.training.iterate().inspect_err(|_| progress.finish())?;
        if let Some(interval) = experiment.train.eval_interval
            && before / interval != iteration.env_steps / interval
        {
            let scores = look(experiment, session).inspect_err(|_| progress.finish())?;
            iteration.metrics.extend(scores.into_iter().map(|(name, value)| (name.to_owned(), value)));
        }
        iteration.report(&mut sinks)?;
        progress.show(&iteration);
        if Instant::now() >= next_save {
            next_save = save_and_plan(session, &checkpoints, interval)?;
        }
    }
    progress.finish();
    save(session, &checkpoints)?;
    Ok(End::Done)
}

fn open_sinks(run_dir: &RunDir, env_steps: u64) -> Result<Sinks, CliError> {
    let failed = |error| CliError::Failed(format!("cannot write into {}: {error}", run_dir.path().display()));
    let jsonl = Jsonl::open(&run_dir.file("metrics.jsonl"), env_steps).map_err(failed)?;
    let tensorboard = TensorBoard::create(run_dir.path()).map_err(failed)?;
    Ok(Sinks(vec![Box::new(jsonl), Box::new(tensorboard)]))
}

/// Saves, and says when to save again: a large replay must not take more than a twentieth of the run.
fn save_and_plan(session: &Session, checkpoints: &Checkpoints, interval: Duration) -> Result<Instant, TrainError> {
    let begin = Instant::now();
    save(session, checkpoints)?;
    Ok(Instant::now() + interval.max(20 * begin.elapsed()))
}

fn save(session: &Session, checkpoints: &Checkpoints) -> Result<(), TrainError> {
    checkpoints.save(&session.training.checkpoint())?;
    Ok(())
}

/// A quick look at the policy as it is now.
fn look(experiment: &Experiment, session: &Session) -> Result<Vec<(&'static str, f64)>, CliError> {
    let Some(yardsticks) = session.scenario.yardsticks() else { return Ok(Vec::new()) };
    let policy = session.training.policy();
    yardsticks.score(&trained(experiment, session, &policy), experiment.train.eval_seed)
}

fn trained<'a>(experiment: &Experiment, session: &'a Session, policy: &'a AnyPolicy) -> Trained<'a> {
    Trained {
        policy,
        moments: session.training.obs_moments(),
        device: &session.device,
        exploration: experiment.algorithm().exploration(),
    }
}

/// Compares with the controllers that do not learn, writes the report and says the result.
fn conclude(args: &TrainArgs, experiment: &Experiment, session: &Session, run_dir: &RunDir) -> Result<(), CliError> {
    let policy = session.training.policy();
    let trained = trained(experiment, session, &policy);
    let Measured { mut document, text, comparison } =
        measure(&session.scenario, &trained, experiment.train.eval_seed, None)?;
    document.insert("env_steps".into(), session.training.counters().env_steps.into());
    document.insert("run_dir".into(), run_dir.path().display().to_string().into());
    let page = report::page(experiment, run_dir, &text, comparison.as_ref())?;
    run_dir.write("report.html", page.as_bytes())?;
    let document = Value::Object(document);
    run_dir.write("result.json", format!("{document:#}\n").as_bytes())?;
    if args.json {
        println!("{document}");
    } else {
        print!("{text}");
        if !args.quiet {
            println!("\nReport: {}", run_dir.file("report.html").display());
        }
    }
    Ok(())
}
