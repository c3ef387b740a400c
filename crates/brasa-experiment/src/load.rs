//! Policies of finished runs.

use std::path::Path;

use brasa_device::DeviceError;
use brasa_train::{CheckpointError, RunDir};
use burn::tensor::Device;

use crate::experiment::scenario_entry;
use crate::files::{Digests, about_changed};
use crate::policy::LoadedPolicy;
use crate::registry::PolicyContext;
use crate::{Experiment, ExperimentError, Registry, Source, TrainConfig};

/// The experiment of the run in `run_dir`, with `overrides`. A program that its scenario would start is started only if the overrides name it, or if
/// `trusts` accepts setting and value.
///
/// # Errors
/// [`ExperimentError::Input`] for a run that names another program, or cannot be read.
pub(crate) fn experiment_of<'a>(
    registry: &'a Registry,
    run_dir: &RunDir,
    overrides: &[String],
    trusts: impl Fn(&str, &toml::Value) -> bool,
) -> Result<Experiment<'a>, ExperimentError> {
    let (text, origin) = (run_dir.read_config()?, run_dir.file("config.toml").display().to_string());
    let source = Source::parse(&text, &origin, &[])?;
    refuse_programs(registry, &source, run_dir.path(), overrides, trusts)?;
    registry.parse(&text, &origin, overrides)
}

/// Refuses programs that the scenario of `source`, the experiment in the directory `path`, would start, unless `overrides` name them or `trusts`
/// accepts setting and value.
///
/// # Errors
/// [`ExperimentError::Input`] naming the program.
pub(crate) fn refuse_programs(
    registry: &Registry,
    source: &Source,
    path: &Path,
    overrides: &[String],
    trusts: impl Fn(&str, &toml::Value) -> bool,
) -> Result<(), ExperimentError> {
    let entry = scenario_entry(registry, source)?;
    for setting in entry.programs {
        let key = format!("scenario.{}.{setting}", entry.name);
        let is_given = overrides.iter().any(|item| item.split_once('=').is_some_and(|(given, _)| given.trim() == key));
        if let Some(program) = source.value(&["scenario", &entry.name, setting])
            && !is_given
            && !trusts(&key, program)
        {
            return Err(ExperimentError::Input(format!(
                "the run in {} starts the program {program} (`{key}`), which can do anything on this machine: add --trust if you know the run, or \
                 name another program with --set {key}=PROGRAM",
                path.display()
            )));
        }
    }
    Ok(())
}

/// Loads the policy from the latest checkpoint of the run in `path`, on `device` without autodiff. It supports every algorithm
/// and network in `registry`: the `config.toml` of the run names them. It may also name a program, such as a Python interpreter, which is started:
/// load only runs that you trust.
///
/// ```
/// # mod program { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/program.inc")); }
/// # use program::*;
/// use brasa_experiment::load_policy;
///
/// # let dir = tempfile::tempdir()?;
/// # let run = trained(dir.path());
/// // `run` is the directory of a run of 256 steps.
/// let policy = load_policy(&registry(), &run, &brasa_device::open_named("cpu")?)?;
/// assert_eq!(policy.env_steps(), Some(256));
/// let action = policy.act_one(&[0.0, 0.0, 0.1, 0.0], None)?;
/// assert!(action == [0.0] || action == [1.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`ExperimentError`] if there is no run, its experiment has a name that is not registered, or no checkpoint is complete.
pub fn load_policy(
    registry: &Registry,
    path: impl AsRef<Path>,
    device: &Device,
) -> Result<LoadedPolicy, ExperimentError> {
    Ok(Finished::open(registry, path.as_ref(), &[], |_| Ok(device.clone()), false, true)?.policy)
}

/// A run loaded from a checkpoint.
pub(crate) struct Finished<'a> {
    pub(crate) run_dir: RunDir,
    pub(crate) experiment: Experiment<'a>,
    pub(crate) policy: LoadedPolicy,
    /// Steps of the environments until the policy was saved.
    pub(crate) env_steps: u64,
}

impl<'a> Finished<'a> {
    /// Reads the run in `path` and applies `overrides` to its experiment. The policy is on the device that `open`
    /// gives. It is the last one, or with `best` the one with the best evaluation. With `trust`, programs that the run names are started.
    pub(crate) fn open(
        registry: &'a Registry,
        path: &Path,
        set: &[String],
        open: impl FnOnce(&TrainConfig) -> Result<Device, DeviceError>,
        best: bool,
        trust: bool,
    ) -> Result<Self, ExperimentError> {
        let run_dir = RunDir::open(path)?;
        let experiment = experiment_of(registry, &run_dir, set, |_, _| trust)?;
        if let Some(sentence) = about_changed(&Digests::changed(&run_dir, &*experiment.scenario)) {
            tracing::warn!("{sentence}");
        }
        let checkpoints = if best { run_dir.best() } else { run_dir.checkpoints() };
        let (path, checkpoint) = checkpoints.latest().map_err(|error| match error {
            CheckpointError::None { path } if best => ExperimentError::Input(format!(
                "{} has no best policy: `train.eval_interval` was not set. Omit --best to use the last policy",
                path.parent().and_then(Path::parent).unwrap_or(&path).display()
            )),
            error => error.into(),
        })?;
        let device = open(&experiment.train)?;
        let context = PolicyContext { spec: &experiment.spec, extensions: &experiment.extensions, device: &device };
        let policy = experiment.plan.policy(&context, &checkpoint, &path)?;
        Ok(Self { run_dir, experiment, policy, env_steps: checkpoint.env_steps })
    }
}
