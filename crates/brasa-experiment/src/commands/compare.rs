//! `compare`: compares groups of runs over several seeds in the same episodes.

use std::path::{Path, PathBuf};

use brasa_env::{Effort, Evaluation, Split};
use brasa_shards::World;
use brasa_train::{StopToken, close_log, say_progress, write_atomically};
use serde_json::Value;

use super::train::{Claimed, learn};
use crate::args::{CompareArgs, TrainArgs};
use crate::compare::{self, Group, GroupCurves, Groups, Member, Participant, Summary};
use crate::comparison::{ComparisonSetup, ControllerOutcomes, about_episodes, distinct, play, references};
use crate::exposure::{Exposure, TrainingData};
use crate::load::Finished;
use crate::source::with_device;
use crate::sweep::Seeds;
use crate::timeline;
use crate::way::Way;
use crate::{ExperimentError, Registry, TrainConfig};

/// Default number of seeds of an experiment.
const N_SEEDS: u64 = 5;

/// The command of these words, for a shell.
pub(super) fn shell_line(words: &[String]) -> String {
    // A path or setting with a zero byte cannot be given as an argument.
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
}

pub fn run(program: &str, registry: &Registry, args: &CompareArgs) -> Result<String, ExperimentError> {
    if args.seeds.is_some() && args.paths.iter().all(|path| path.is_dir()) {
        return Err(ExperimentError::Input(
            "--seeds is for experiments to train, but only directories are named".into(),
        ));
    }
    let claimed = Claimed::of(args.out.as_deref(), "compare")?;
    let out = claimed.path();
    // All arguments are checked before training starts.
    let overrides = with_device(&args.set, args.device.as_deref());
    if !overrides.is_empty() && args.paths.iter().any(|path| path.is_dir()) {
        return Err(ExperimentError::Input(
            "--set and --device are for experiments to train, but a directory is named".into(),
        ));
    }
    let seeds = args.seeds.clone().unwrap_or_else(|| Seeds((0..N_SEEDS).collect()));
    let groups = Groups::read(registry, &args.paths, &overrides, &seeds.0, out, args.trust)?;
    train_all(program, registry, args, &groups.groups, out)?;
    of_finished(registry, args, &groups, out)
}

/// Compares groups of finished runs; the files are written to `out`.
pub(super) fn of_finished(
    registry: &Registry,
    args: &CompareArgs,
    groups: &Groups<'_>,
    out: &Path,
) -> Result<String, ExperimentError> {
    let summary = written(registry, args, groups, out)?;
    if args.json {
        let mut document = compare::to_json(&summary);
        document.insert("out".into(), out.display().to_string().into());
        return Ok(format!("{}\n", Value::Object(document)));
    }
    Ok(format!("{}\nReport: {}\n", compare::to_text(&summary), out.join("compare.html").display()))
}

/// Compares groups of finished runs, and writes table and page to `out`.
pub(super) fn written(
    registry: &Registry,
    args: &CompareArgs,
    groups: &Groups<'_>,
    out: &Path,
) -> Result<Summary, ExperimentError> {
    let (summary, curves) = summarize(registry, args, groups)?;
    let failed = |path: &Path, error| ExperimentError::cannot_write(path, &error);
    std::fs::create_dir_all(out).map_err(|error| failed(out, error))?;
    let write = |name: &str, text: &str| {
        let path = out.join(name);
        write_atomically(&path, text.as_bytes()).map_err(|error| failed(&path, error))
    };
    write("compare.csv", &compare::to_csv(&summary))?;
    write("compare.html", &compare::page(&summary, &curves, groups))?;
    Ok(summary)
}

/// Trains the runs that are not finished, one after the other.
fn train_all(
    program: &str,
    registry: &Registry,
    args: &CompareArgs,
    groups: &[Group],
    out: &Path,
) -> Result<(), ExperimentError> {
    let stop = StopToken::on_ctrl_c();
    let go_on = format!("interrupted; continue with `{}`", command_line(program, args, out));
    let members = || groups.iter().flat_map(|group| &group.members);
    let n_trainings = members().filter(|member| member.training.is_some()).count();
    let to_train = members().filter_map(|member| Some((member, member.training.as_ref()?)));
    for (i, (Member { seed, run_dir, .. }, training)) in to_train.enumerate() {
        stop.set_message(&*go_on);
        if stop.is_stopped() {
            return Err(ExperimentError::Interrupted(go_on));
        }
        let resumed = if training.resumes { ", resumed" } else { "" };
        say_progress(&format!(
            "Training {} of {n_trainings}: {}, seed {seed}{resumed}",
            i + 1,
            training.config.display()
        ));
        let train = TrainArgs {
            // A resumed run has its own `config.toml`, which was compared with this experiment before.
            config: (!training.resumes).then(|| training.config.clone()),
            seed: Some(*seed),
            steps: Some(training.total_env_steps),
            out: (!training.resumes).then(|| run_dir.clone()),
            // A resumed run has them already.
            set: if training.resumes { Vec::new() } else { with_device(&args.set, args.device.as_deref()) },
            resume: training.resumes.then(|| run_dir.clone()),
            // It was compared with the experiment of the user.
            trust: true,
            ..TrainArgs::default()
        };
        learn(registry, &train, &World::solo(), &stop, |_| go_on.clone())?;
        close_log();
    }
    stop.set_message(go_on);
    Ok(())
}

/// The command that continues a comparison.
fn command_line(program: &str, args: &CompareArgs, out: &Path) -> String {
    let mut words = vec![program.to_owned(), "compare".to_owned()];
    words.extend(args.paths.iter().map(|path| path.display().to_string()));
    words.extend(args.seeds.iter().flat_map(|seeds| ["--seeds".to_owned(), seeds.argument()]));
    words.extend(args.episodes.iter().flat_map(|n| ["--episodes".to_owned(), n.to_string()]));
    words.extend(args.sampled.then(|| "--sampled".to_owned()));
    words.extend(args.json.then(|| "--json".to_owned()));
    words.extend(args.set.iter().flat_map(|set| ["--set".to_owned(), set.clone()]));
    words.extend(args.device.iter().flat_map(|device| ["--device".to_owned(), device.clone()]));
    words.extend(["--out".to_owned(), out.display().to_string()]);
    shell_line(&words)
}

/// Plays the same episodes once with every baseline, and with every run.
fn summarize(
    registry: &Registry,
    args: &CompareArgs,
    groups: &Groups<'_>,
) -> Result<(Summary, Vec<GroupCurves>), ExperimentError> {
    let experiment = &groups.experiment;
    let wanted = args.episodes.unwrap_or_else(|| experiment.scenario.n_episodes(Effort::Compare));
    let baselines = ComparisonSetup { n_episodes: Some(wanted), ..ComparisonSetup::new(experiment, None) }.run()?;
    let scenario = baselines.scenario.as_deref().unwrap_or(&*experiment.scenario);
    let n_episodes = distinct(scenario, wanted);
    let (data, mut exposures) = (scenario.data(Split::Evaluation), Vec::new());
    let evaluation = Evaluation::new(n_episodes, experiment.train.eval_seed);
    let (mut participants, mut curves, mut sampled) = (Vec::new(), Vec::new(), Vec::new());
    for group in &groups.groups {
        let (mut runs, mut metrics) = (Vec::new(), Vec::new());
        for member in &group.members {
            let finished = Finished::open(registry, &member.run_dir, &[], TrainConfig::open_device, false, args.trust)?;
            let is_sampled = args.sampled || finished.experiment.train.eval_sampled;
            sampled.extend(is_sampled.then(|| format!("`{}`", group.name)));
            let (_, outcomes) = play(scenario, &finished.policy, is_sampled, &evaluation)?;
            exposures.push(TrainingData::read(&finished.run_dir).exposure(&data));
            runs.push(ControllerOutcomes { name: group.name.clone(), kind: None, outcomes });
            metrics.push(finished.run_dir.metrics()?);
        }
        let seeds = group.members.iter().map(|member| member.seed).collect();
        let run_dirs: Vec<PathBuf> = group.members.iter().map(|member| member.run_dir.clone()).collect();
        let sessions = group.members.iter().map(|member| timeline::sessions(&member.run_dir)).collect();
        participants.push(Participant { name: group.name.clone(), seeds, run_dirs, sessions, runs });
        curves.push(GroupCurves::new(&metrics));
    }
    let figures = &baselines.comparison.figures;
    let exposure = Exposure::worst(exposures);
    let mut about = about_episodes(scenario, args.episodes, n_episodes, exposure);
    sampled.dedup();
    match sampled.len() {
        0 => {}
        n if n == groups.groups.len() => about.push_str(" The actions of the policies were sampled."),
        _ => about.push_str(&format!(" The actions of {} were sampled.", sampled.join(" and "))),
    }
    match (&groups.other_reward, Way::among(&baselines.comparison.rows)) {
        (Some(key), _) => {
            about =
                format!("{about} The groups differ in `{key}`, a setting of the reward, so returns are not compared.");
        }
        (None, Some(way)) => about = format!("{about} {}", way.note()),
        (None, None) => {}
    }
    let note = compare::note(&about, &references(figures), &baselines.remark.text, &groups.groups[0].name);
    let summary = Summary {
        quantities: compare::quantities(figures, &baselines.played, &participants, groups.other_reward.is_none()),
        baselines: baselines.played.iter().map(|played| (played.name.clone(), played.kind)).collect(),
        participants,
        exposure,
        n_episodes,
        eval_seed: experiment.train.eval_seed,
        scenario: experiment.entry.name.clone(),
        note,
    };
    Ok((summary, curves))
}
