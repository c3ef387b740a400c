//! An experiment: one TOML file, with its parts created and checked.

use std::ops::Range;
use std::sync::Arc;

use brasa_env::wrappers::{JointObs, NormalizeObs, ScaleReward, ShapeReward};
use brasa_env::{Choice, EnvBatch, EnvSpec, Executor, Extensions, InvalidField, Scenario, Split, execute, field};
use brasa_nn::check_policies;
use brasa_shards::shard;
use toml::{Table, Value};

use crate::registry::{OFF_POLICY, Plan, ScenarioEntry, Sections, Size, SizeOf};
use crate::search::{SEARCH, SearchConfig};
use crate::source::Source;
use crate::suggest;
use crate::{EnvDevice, ExperimentError, Registry, TrainConfig};

/// Sections that exist in every program.
pub(crate) const SCENARIO: &str = "scenario";
pub(crate) const TRAIN: &str = "train";

/// A scenario, an algorithm and the settings of training.
///
/// ```
/// # mod program { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/program.inc")); }
/// # use program::*;
/// use brasa_experiment::Experiment;
///
/// let registry = registry();
/// let text = "[scenario.pole]\n[learner]\nn_steps = 64\n";
/// let experiment: Experiment<'_> = registry.parse(text, "room.toml", &["train.seed=5".to_owned()])?;
/// assert_eq!((experiment.algorithm.as_str(), experiment.train.seed), ("learner", 5));
/// // All defaults are written out.
/// assert!(experiment.to_toml().contains("gamma = 0.99"));
/// # Ok::<(), brasa_experiment::ExperimentError>(())
/// ```
pub struct Experiment<'a> {
    pub(crate) entry: &'a ScenarioEntry,
    /// The scenario.
    pub scenario: Arc<dyn Scenario>,
    /// The section `[train]`.
    pub train: TrainConfig,
    /// Name of the algorithm.
    pub algorithm: String,
    pub(crate) plan: Box<dyn Plan>,
    /// Spaces and sizes of the environments before wrappers.
    pub(crate) spec: EnvSpec,
    pub(crate) extensions: Extensions,
    /// Every section except `[train]`, with all defaults written out.
    resolved: Table,
}

impl std::fmt::Debug for Experiment<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Experiment")
            .field("algorithm", &self.algorithm)
            .field("train", &self.train)
            .field("spec", &self.spec)
            .finish_non_exhaustive()
    }
}

impl<'a> Experiment<'a> {
    pub(crate) fn new(registry: &'a Registry, source: &Source) -> Result<Self, ExperimentError> {
        refuse_unknown(registry, source)?;
        if source.has(SEARCH) {
            SearchConfig::read(source)?;
        }
        let train: TrainConfig = source.section(TRAIN)?;
        train.validate()?;
        let algorithm = algorithm(registry, source)?;
        let entry = scenario_entry(registry, source)?;
        let (settings, scenario) = entry.make(source)?;
        let scenario: Arc<dyn Scenario> = scenario.into();
        let mut spec = scenario.envs(Split::Train, 0..1)?.spec().with_n_envs(train.n_envs);
        if train.central_critic {
            spec = spec.joint().map_err(|error| ExperimentError::Input(format!("`train.central_critic`: {error}")))?;
        }
        check_agents(&train.policies, spec.n_agents)?;
        let extensions = scenario.extensions();
        let mut sections = Sections {
            source,
            networks: &registry.networks,
            spec: &spec,
            extensions: &extensions,
            policies: &train.policies,
            resolved: Vec::new(),
        };
        let plan = algorithm.plan(&mut sections)?;
        let parts = sections.resolved;
        refuse_foreign(registry, source, algorithm.name(), &parts)?;

        let scenario_table = Table::from_iter([(entry.name.clone(), settings)]);
        let mut resolved = Table::from_iter([(SCENARIO.to_owned(), Value::Table(scenario_table))]);
        resolved.extend(parts);
        let algorithm = algorithm.name().to_owned();
        let experiment = Self { entry, scenario, train, algorithm, plan, spec, extensions, resolved };
        experiment.check_wrappers()?;
        Ok(experiment)
    }

    /// Refuses wrappers that the scenario or the algorithm does not support.
    fn check_wrappers(&self) -> Result<(), ExperimentError> {
        let fail = |field: &str, rule: &str| {
            Err(ExperimentError::Input(format!("`train.{field}` must be off where {rule}, got true")))
        };
        if self.train.scale_reward && self.plan.replays() {
            let rule = "rewards are stored: they would keep the scale of their time (`train.reward_scale` is constant)";
            return fail("scale_reward", rule);
        }
        if self.train.central_critic && self.plan.replays() {
            return fail("central_critic", "experience is replayed: such critics learn from rollouts");
        }
        if !self.train.policies.is_empty() && self.plan.replays() {
            let rule = "must be empty where experience is replayed: networks of teams have settings for this";
            return Err(ExperimentError::input(InvalidField::new(
                "train.policies",
                rule,
                format!("{:?}", self.train.policies),
            )));
        }
        if self.train.normalize_obs && self.spec.fixed_obs {
            return fail("normalize_obs", "observations have one range by themselves, or name things");
        }
        Ok(())
    }

    /// The whole experiment as TOML, with all defaults written out.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(&self.to_table()).expect("an experiment always serializes")
    }

    /// The whole experiment as a table, with all defaults written out.
    pub(crate) fn to_table(&self) -> Table {
        self.with_train(&self.train)
    }

    /// The whole experiment as TOML, with `executor` in place of `auto`.
    pub(crate) fn to_toml_with(&self, executor: Executor) -> String {
        let train = TrainConfig { executor, ..self.train.clone() };
        toml::to_string_pretty(&self.with_train(&train)).expect("an experiment always serializes")
    }

    /// Whether another experiment describes the same run. The number of steps may differ, and so may an executor `auto`.
    pub(crate) fn is_same_run(&self, other: &Self) -> bool {
        let mut train = other.train.clone();
        train.total_env_steps = self.train.total_env_steps;
        if train.executor == Executor::Auto {
            train.executor = self.train.executor;
        }
        self.with_train(&self.train) == other.with_train(&train)
    }

    fn with_train(&self, train: &TrainConfig) -> Table {
        let mut table = self.resolved.clone();
        let train = Value::try_from(train).expect("plain settings always serialize");
        table.insert(TRAIN.to_owned(), train);
        table
    }

    /// The changes that make this the experiment of one of its shards.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] naming a size that cannot be divided.
    pub(crate) fn share(&self) -> Result<Vec<String>, ExperimentError> {
        let TrainConfig { n_envs, n_shards, executor, .. } = self.train;
        let mut changes = vec![
            "train.n_shards=1".to_owned(),
            format!("train.n_envs={}", n_envs / n_shards),
            "train.env_device=host".to_owned(),
        ];
        if executor == Executor::Auto {
            changes.push("train.executor=serial".into());
        }
        for Size { key, of } in self.plan.sizes() {
            if !matches!(of, SizeOf::Batch | SizeOf::Replay) {
                continue;
            }
            // Without a value all rows are one batch.
            let Some(size) = self.setting(&key).and_then(|value| value.as_integer()) else { continue };
            let rule = format!("must be a multiple of `train.n_shards`, which is {n_shards}");
            let share = size / n_shards as i64;
            if share * n_shards as i64 != size {
                return Err(ExperimentError::input(InvalidField::new(key, rule, size)));
            }
            changes.push(format!("{key}={share}"));
        }
        Ok(changes)
    }

    /// The value of a setting such as `train.n_envs`; `None` if it is not set.
    pub(crate) fn setting(&self, key: &str) -> Option<Value> {
        let table = self.to_table();
        let mut names = key.split('.');
        let first = table.get(names.next()?)?;
        names.try_fold(first, |value, name| value.as_table()?.get(name)).cloned()
    }

    /// Every learning rate of the algorithm, by its key.
    pub(crate) fn learning_rates(&self) -> Vec<(String, Value)> {
        let sections =
            self.to_table().into_iter().filter(|(section, _)| !["scenario", "train"].contains(&section.as_str()));
        let settings = sections.flat_map(|(section, values)| {
            let values = if let Value::Table(values) = values { values } else { Table::new() };
            values.into_iter().map(move |(key, value)| (format!("{section}.{key}"), value))
        });
        settings.filter(|(key, _)| key.ends_with("learning_rate")).collect()
    }

    /// Whether environments should be computed on the device, which may be the host.
    pub(crate) fn wants_env_device(&self, on_host: bool) -> bool {
        match self.train.env_device {
            EnvDevice::Host => false,
            EnvDevice::Device => true,
            EnvDevice::Auto => !on_host,
        }
    }

    /// The environments of a training run, before wrappers.
    pub(crate) fn training_envs(&self) -> Result<(Box<dyn EnvBatch>, Choice), ExperimentError> {
        // The environments of a shard follow those of the shard before it.
        let first = shard().index * self.train.n_envs;
        let make = |envs: Range<usize>| self.scenario.envs(Split::Train, first + envs.start..first + envs.end);
        Ok(execute(self.train.executor, self.train.n_envs, make)?)
    }

    /// Wraps the environments of a training run as the experiment specifies.
    pub(crate) fn wrap(&self, mut batch: Box<dyn EnvBatch>, gamma: f64) -> Result<Box<dyn EnvBatch>, ExperimentError> {
        let train = &self.train;
        if train.reward_scale != 1.0 || train.reward_smooth_lambda != 0.0 {
            batch = Box::new(ShapeReward::new(batch, train.reward_scale, train.reward_smooth_lambda)?);
        }
        if train.scale_reward {
            batch = Box::new(ScaleReward::new(batch, gamma)?);
        }
        if train.normalize_obs {
            batch = match self.plan.replays() {
                true => Box::new(NormalizeObs::watching(batch)?),
                false => Box::new(NormalizeObs::new(batch)?),
            };
        }
        // Outside, so that moments are those of what actors see.
        if train.central_critic {
            batch = Box::new(JointObs::new(batch)?);
        }
        Ok(batch)
    }
}

/// Refuses policies of other agents than the environments have.
fn check_agents(policies: &[usize], n_agents: usize) -> Result<(), ExperimentError> {
    if policies.is_empty() {
        return Ok(());
    }
    let rule = format!("must have an index for each agent of an environment, of which there are {n_agents}");
    field::rule(policies.len() == n_agents, "train.policies", rule, format!("{policies:?}"))
        .map_err(ExperimentError::input)?;
    let n_policies = policies.iter().max().map_or(0, |last| last + 1);
    check_policies("train.policies", policies, n_policies).map_err(ExperimentError::input)
}

/// Refuses sections that are not registered.
fn refuse_unknown(registry: &Registry, source: &Source) -> Result<(), ExperimentError> {
    let algorithms = registry.algorithms.0.iter().map(|algorithm| algorithm.name());
    let known: Vec<&str> = [SCENARIO, TRAIN]
        .into_iter()
        .chain(algorithms)
        .chain(registry.networks.sections())
        .chain([OFF_POLICY, SEARCH])
        .collect();
    match source.names().into_iter().find(|name| !known.contains(name)) {
        Some(unknown) => {
            let meant = suggest::in_brackets(unknown, known.iter().copied());
            let known = known.join("], [");
            Err(ExperimentError::Input(format!("unknown section [{unknown}]{meant}; there are [{known}]")))
        }
        None => Ok(()),
    }
}

/// Refuses known sections that the algorithm does not read.
fn refuse_foreign(
    registry: &Registry,
    source: &Source,
    algorithm: &str,
    parts: &[(String, Value)],
) -> Result<(), ExperimentError> {
    let of_others = registry.networks.sections().chain([OFF_POLICY]);
    let mut stray = of_others.filter(|name| source.has(name) && !parts.iter().any(|(part, _)| part == name));
    let Some(stray) = stray.next() else { return Ok(()) };
    let parts: Vec<&str> = parts.iter().map(|(name, _)| name.as_str()).filter(|name| *name != algorithm).collect();
    let parts = parts.join("], [");
    Err(ExperimentError::Input(format!("[{stray}] is no part of {algorithm}, which has [{parts}]")))
}

/// The algorithm that the experiment names, or the first registered one.
fn algorithm<'a>(
    registry: &'a Registry,
    source: &Source,
) -> Result<&'a dyn crate::registry::Algorithm, ExperimentError> {
    let all = &registry.algorithms.0;
    let named: Vec<_> = all.iter().filter(|algorithm| source.has(algorithm.name())).collect();
    match named[..] {
        [one] => Ok(one.as_ref()),
        [] => all
            .first()
            .map(|first| first.as_ref())
            .ok_or_else(|| ExperimentError::Input("no algorithm is registered".into())),
        _ => {
            let found = named
                .iter()
                .map(|algorithm| format!("[{0}] ({1})", algorithm.name(), source.origin_of(algorithm.name())));
            let found = found.collect::<Vec<_>>().join(" and ");
            Err(ExperimentError::Input(format!("an experiment has one algorithm, found {found}")))
        }
    }
}

/// The scenario that the experiment names.
pub(crate) fn scenario_entry<'a>(
    registry: &'a Registry,
    source: &Source,
) -> Result<&'a ScenarioEntry, ExperimentError> {
    let names: Vec<&str> = registry.scenarios.iter().map(|entry| entry.name.as_str()).collect();
    let known = || names.join(", ");
    match source.names_in(SCENARIO)[..] {
        [name] => registry.scenarios.iter().find(|entry| entry.name == name).ok_or_else(|| {
            let meant = suggest::in_brackets(name, names.iter().copied());
            ExperimentError::Input(format!("unknown scenario `{name}`{meant}; there are {}", known()))
        }),
        [] => Err(ExperimentError::Input(format!("an experiment needs [scenario.NAME], one of {}", known()))),
        ref several => {
            let several = several.join("] and [scenario.");
            Err(ExperimentError::Input(format!("an experiment has one scenario, found [scenario.{several}]")))
        }
    }
}
