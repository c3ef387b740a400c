//! Policies of finished runs.

use std::path::Path;

use brasa_device::open_named;
use brasa_train::RunDir;
use burn::tensor::Device;

use crate::policy::LoadedPolicy;
use crate::registry::PolicyContext;
use crate::{Experiment, ExperimentError, Registry};

/// Loads the policy from the latest checkpoint of the run in `path`, on `device` without autodiff. It supports every algorithm
/// and network in `registry`: the `config.toml` of the run names them.
///
/// # Errors
/// [`ExperimentError`] if there is no run, its experiment has a name that is not registered, or no checkpoint is complete.
pub fn load_policy(
    registry: &Registry,
    path: impl AsRef<Path>,
    device: &Device,
) -> Result<LoadedPolicy, ExperimentError> {
    Ok(Finished::open(registry, path.as_ref(), &[], Some(device.clone()), false)?.policy)
}

/// A run loaded from a checkpoint.
pub(crate) struct Finished<'a> {
    pub(crate) run_dir: RunDir,
    pub(crate) experiment: Experiment<'a>,
    pub(crate) policy: LoadedPolicy,
}

impl<'a> Finished<'a> {
    /// Reads the run in `path` and applies `overrides` to its experiment. The policy is on `device`, by default the one of
    /// training. It is the last one, or with `best` the one with the best evaluation.
    pub(crate) fn open(
        registry: &'a Registry,
        path: &Path,
        set: &[String],
        device: Option<Device>,
        best: bool,
    ) -> Result<Self, ExperimentError> {
        let run_dir = RunDir::open(path)?;
        let origin = run_dir.file("config.toml").display().to_string();
        let experiment = registry.parse(&run_dir.read_config()?, &origin, set)?;
        let checkpoints = if best { run_dir.best() } else { run_dir.checkpoints() };
        let (path, checkpoint) = checkpoints.latest()?;
        let device = match device {
            Some(device) => device,
            None => open_named(&experiment.train.device)?,
        };
        let context = PolicyContext { spec: &experiment.spec, extensions: &experiment.extensions, device: &device };
        let policy = experiment.plan.policy(&context, &checkpoint, &path)?;
        Ok(Self { run_dir, experiment, policy })
    }
}
