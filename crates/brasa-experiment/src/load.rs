//! Policies of finished runs.

use std::path::Path;

use brasa_device::open_named;
use brasa_train::RunDir;
use burn::tensor::Device;

use crate::policy::LoadedPolicy;
use crate::registry::PolicyContext;
use crate::{Experiment, ExperimentError, Registry};

/// The policy in the latest checkpoint of the run in `path`, on `device`, without autodiff. Whatever the run's algorithm and
/// network are: its own `config.toml` says how they were made, and `registry` knows the names in it.
///
/// # Errors
/// [`ExperimentError`] where there is no run, its experiment names something that is not registered, or no checkpoint is whole.
pub fn load_policy(
    registry: &Registry,
    path: impl AsRef<Path>,
    device: &Device,
) -> Result<LoadedPolicy, ExperimentError> {
    Ok(Finished::open(registry, path.as_ref(), &[], Some(device.clone()), false)?.policy)
}

/// A run as its latest checkpoint left it.
pub(crate) struct Finished<'a> {
    pub(crate) run_dir: RunDir,
    pub(crate) experiment: Experiment<'a>,
    pub(crate) policy: LoadedPolicy,
}

impl<'a> Finished<'a> {
    /// Reads the run in `path`, with some values of its experiment changed, onto `device` or the one of its training; its last policy,
    /// or that with the `best` evaluation.
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
