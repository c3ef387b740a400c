//! The runs of a comparison, grouped by experiment.

use std::path::{Path, PathBuf};

use brasa_train::RunDir;
use toml::{Table, Value};

use crate::load::experiment_of;
use crate::{Experiment, ExperimentError, Registry};

/// Runs that differ only in their seed.
pub(crate) struct Group {
    pub name: String,
    pub members: Vec<Member>,
    /// The experiment without the settings that may differ within a group.
    settings: Table,
}

/// A run that is finished or will be trained.
pub(crate) struct Member {
    pub seed: u64,
    pub run_dir: PathBuf,
    /// How the run is trained; `None` for a finished run.
    pub training: Option<Training>,
}

/// How a run is trained.
pub(crate) struct Training {
    pub config: PathBuf,
    pub total_env_steps: u64,
    /// The interrupted run in the directory is resumed.
    pub resumes: bool,
}

/// All groups, in the order of the arguments.
pub(crate) struct Groups<'a> {
    pub groups: Vec<Group>,
    /// The first experiment. All others have its scenario, except for the reward, and its evaluation seed.
    pub experiment: Experiment<'a>,
    /// The settings of the reward in which the experiments differ: then their returns are not comparable.
    pub other_reward: Option<String>,
}

/// Settings that may differ within a group besides the seed, because they are not meant to influence the learned policy.
fn is_of_no_account(key: &str) -> bool {
    ["seed", "executor", "device", "env_device", "keep_every"].contains(&key) || key.contains("checkpoint")
}

impl<'a> Groups<'a> {
    /// Reads the experiments, changed by `overrides`, and the finished runs in `paths`. An experiment gets `seeds`, with
    /// directories in `out`.
    pub fn read(
        registry: &'a Registry,
        paths: &[PathBuf],
        overrides: &[String],
        seeds: &[u64],
        out: &Path,
        trust: bool,
    ) -> Result<Self, ExperimentError> {
        let mut groups: Vec<Group> = Vec::new();
        let mut first: Option<(&Path, Experiment<'a>)> = None;
        let mut other_reward = None;
        for path in paths {
            let is_run = path.is_dir();
            let experiment = if is_run { finished(registry, path, trust)? } else { registry.load(path, overrides)? };
            if let Some((first_path, first)) = &first {
                refuse_other_scenario((first_path, first), (path, &experiment))?;
                other_reward = other_reward.or_else(|| differing_reward(first, &experiment));
            }
            let mut settings = settings(&experiment);
            if is_run {
                add_earlier(&mut settings, &RunDir::open(path)?)?;
            }
            let seed = experiment.train.seed;
            let stem = if is_run { run_stem(path, seed) } else { stem(path) };
            let known = groups.iter().position(|group| group.settings == settings);
            let index = known.unwrap_or_else(|| {
                groups.push(Group { name: free_name(&groups, &stem), members: Vec::new(), settings });
                groups.len() - 1
            });
            let group = &mut groups[index];
            if is_run {
                group.add(Member { seed, run_dir: path.clone(), training: None })?;
            } else {
                for seed in seeds.iter().copied() {
                    let run_dir = out.join(format!("{}-seed{seed}", group.name));
                    let training = training_of(registry, path, &experiment, seed, &run_dir)?;
                    group.add(Member { seed, run_dir, training })?;
                }
            }
            first.get_or_insert((path, experiment));
        }
        let (_, experiment) = first.ok_or_else(|| ExperimentError::Input("there is nothing to compare".into()))?;
        Ok(Self { groups, experiment, other_reward })
    }
}

impl Group {
    fn add(&mut self, member: Member) -> Result<(), ExperimentError> {
        if let Some(same) = self.members.iter().find(|known| known.seed == member.seed) {
            let (first, second, seed) = (same.run_dir.display(), member.run_dir.display(), member.seed);
            return Err(ExperimentError::Input(format!(
                "{first} and {second} are the same experiment with the same seed, {seed}: a group needs runs of different seeds"
            )));
        }
        self.members.push(member);
        Ok(())
    }
}

/// How the run of `config` in `run_dir` with `seed` is trained: new, resumed, or `None` if it is finished.
pub(crate) fn training_of(
    registry: &Registry,
    config: &Path,
    experiment: &Experiment<'_>,
    seed: u64,
    run_dir: &Path,
) -> Result<Option<Training>, ExperimentError> {
    let total_env_steps = experiment.train.total_env_steps;
    let training = |resumes| Some(Training { config: config.to_owned(), total_env_steps, resumes });
    let done = match RunDir::open(run_dir) {
        Ok(opened) => opened.checkpoints().latest_env_steps()?,
        // Other files in the directory are detected when the run is created.
        Err(brasa_train::RunDirError::NoRun { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let Some(done) = done else { return Ok(training(false)) };
    let opened = RunDir::open(run_dir)?;
    // Programs are those that the user's experiment names.
    let existing =
        experiment_of(registry, &opened, &[], |key, program| experiment.setting(key).as_ref() == Some(program))?;
    let difference = first_difference("", &Value::Table(settings(&existing)), &Value::Table(settings(experiment)));
    let difference = difference.or_else(|| {
        let is = existing.train.seed;
        (is != seed).then(|| ("train.seed".to_owned(), is.to_string(), seed.to_string()))
    });
    if let Some((key, is, wanted)) = difference {
        let (run_dir, config) = (run_dir.display(), config.display());
        return Err(ExperimentError::Input(format!(
            "{run_dir} holds a run of another experiment than {config}: `{key}` is {is} there, not {wanted}; choose another --out"
        )));
    }
    Ok(if done < total_env_steps { training(true) } else { None })
}

/// Reads the experiment of the run in `path`, which must be finished.
fn finished<'a>(registry: &'a Registry, path: &Path, trust: bool) -> Result<Experiment<'a>, ExperimentError> {
    let run_dir = RunDir::open(path)?;
    let experiment = experiment_of(registry, &run_dir, &[], |_, _| trust)?;
    let done = run_dir.checkpoints().latest_env_steps()?.unwrap_or(0);
    let total = experiment.train.total_env_steps;
    if done < total {
        let path = path.display();
        return Err(ExperimentError::Input(format!(
            "{path} took {done} of {total} environment steps: only finished runs are compared; finish it with train --resume {path}"
        )));
    }
    Ok(experiment)
}

/// Refuses an experiment whose evaluation episodes differ from those of the first one.
pub(crate) fn refuse_other_scenario(
    (first_path, first): (&Path, &Experiment<'_>),
    (path, experiment): (&Path, &Experiment<'_>),
) -> Result<(), ExperimentError> {
    let difference = if first.entry.name != experiment.entry.name {
        Some(("scenario".to_owned(), first.entry.name.clone(), experiment.entry.name.clone()))
    } else if first.train.eval_seed != experiment.train.eval_seed {
        let (first, other) = (first.train.eval_seed.to_string(), experiment.train.eval_seed.to_string());
        Some(("train.eval_seed".to_owned(), first, other))
    } else {
        let (of_first, of_other) = (scenario_settings(first), scenario_settings(experiment));
        let without_reward = |mut table: Table| {
            first.entry.reward.iter().for_each(|key| drop(table.remove(*key)));
            Value::Table(table)
        };
        let name = format!("scenario.{}", first.entry.name);
        first_difference(&name, &without_reward(of_first), &without_reward(of_other))
    };
    let Some((key, of_first, of_other)) = difference else { return Ok(()) };
    let (first_path, path) = (first_path.display(), path.display());
    Err(ExperimentError::Input(format!(
        "{first_path} and {path} do not play the same episodes: `{key}` is {of_first} in the first and {of_other} in the second"
    )))
}

/// The settings of the scenario.
fn scenario_settings(experiment: &Experiment<'_>) -> Table {
    let mut table = experiment.to_table();
    let scenario =
        table.get_mut("scenario").and_then(|scenario| scenario.as_table_mut()?.remove(&experiment.entry.name));
    match scenario {
        Some(Value::Table(settings)) => settings,
        _ => Table::new(),
    }
}

/// The first setting of the reward that differs.
fn differing_reward(first: &Experiment<'_>, other: &Experiment<'_>) -> Option<String> {
    let (of_first, of_other) = (scenario_settings(first), scenario_settings(other));
    let only_reward = |table: Table| {
        Value::Table(table.into_iter().filter(|(key, _)| first.entry.reward.contains(&&**key)).collect())
    };
    first_difference("", &only_reward(of_first), &only_reward(of_other)).map(|(key, ..)| key)
}

/// The experiment without the settings that may differ within a group.
pub(crate) fn settings(experiment: &Experiment<'_>) -> Table {
    of_account(experiment.to_table())
}

/// An experiment without the settings that may differ within a group.
fn of_account(mut table: Table) -> Table {
    if let Some(train) = table.get_mut("train").and_then(Value::as_table_mut) {
        train.retain(|key, _| !is_of_no_account(key));
    }
    table
}

/// Adds the experiments with which a run was trained before it was resumed with others, and the steps until which it was: such a run is no
/// seed of the experiment in its `config.toml`.
fn add_earlier(settings: &mut Table, run_dir: &RunDir) -> Result<(), ExperimentError> {
    let mut earlier = Table::new();
    for (steps, text) in run_dir.earlier_configs()? {
        let table: Table = toml::from_str(&text).map_err(ExperimentError::input)?;
        let table = of_account(table);
        if table != *settings {
            earlier.insert(format!("until step {steps}"), Value::Table(table));
        }
    }
    if !earlier.is_empty() {
        settings.insert("earlier".to_owned(), Value::Table(earlier));
    }
    Ok(())
}

/// The first key with different values, and both values.
pub(crate) fn first_difference(key: &str, one: &Value, other: &Value) -> Option<(String, String, String)> {
    let (Value::Table(one), Value::Table(other)) = (one, other) else {
        return (one != other).then(|| (key.to_owned(), one.to_string(), other.to_string()));
    };
    let below = |name: &str| if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") };
    let missing = || "absent".to_owned();
    one.keys().chain(other.keys().filter(|name| !one.contains_key(*name))).find_map(|name| {
        match (one.get(name), other.get(name)) {
            (Some(one), Some(other)) => first_difference(&below(name), one, other),
            (Some(one), None) => Some((below(name), one.to_string(), missing())),
            (None, Some(other)) => Some((below(name), missing(), other.to_string())),
            (None, None) => None,
        }
    })
}

fn stem(path: &Path) -> String {
    path.file_stem().map_or("run".into(), |stem| stem.to_string_lossy().into_owned())
}

/// The name of a directory without the seed that a comparison appends.
fn run_stem(path: &Path, seed: u64) -> String {
    // `.` and `..` must be resolved to have a name.
    let resolved = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = resolved.file_name().map_or("run".into(), |name| name.to_string_lossy().into_owned());
    name.strip_suffix(&format!("-seed{seed}")).map_or(name.clone(), str::to_owned)
}

/// `stem`, with a number if another group has the same name.
fn free_name(groups: &[Group], stem: &str) -> String {
    let numbered = (2u32..).map(|n| format!("{stem}-{n}"));
    let mut names = std::iter::once(stem.to_owned()).chain(numbered);
    names.find(|name| groups.iter().all(|group| group.name != *name)).expect("there are more numbers than groups")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Value {
        Value::Table(toml::from_str(text).expect("it is TOML"))
    }

    #[test]
    fn the_first_difference_is_named_with_both_values() {
        let one = table("a.b = 1\na.c = [1, 2]\nd = 'x'");
        assert_eq!(first_difference("", &one, &one), None);
        let found = |other: &str| first_difference("s", &one, &table(other)).expect("they differ");
        let words = |key: &str, one: &str, other: &str| (key.to_owned(), one.to_owned(), other.to_owned());
        assert_eq!(found("a.b = 1\na.c = [1, 3]\nd = 'x'"), words("s.a.c", "[1, 2]", "[1, 3]"));
        assert_eq!(found("a.b = 1\na.c = [1, 2]"), words("s.d", "\"x\"", "absent"));
        assert_eq!(found("a.b = 1\na.c = [1, 2]\nd = 'x'\ne = 2.5"), words("s.e", "absent", "2.5"));
    }

    #[test]
    fn names_are_unique() {
        let group = |name: &str| Group { name: name.into(), members: Vec::new(), settings: Table::new() };
        assert_eq!(free_name(&[], "fast"), "fast");
        assert_eq!(free_name(&[group("fast"), group("fast-2")], "fast"), "fast-3");
        assert_eq!(run_stem(Path::new("runs/nowhere/fast-seed3"), 3), "fast");
        assert_eq!(run_stem(Path::new("runs/nowhere/fast-seed3"), 4), "fast-seed3");
    }
}
