//! Where the environments of a training run are computed.

use std::cell::RefCell;
use std::fmt;

use brasa_core::HostEnv;
use brasa_device::{Machine, gpu_of};
use brasa_env::{Choice, Executor, Split};
use burn::tensor::Device;

use crate::lowered::is_host;
use crate::registry::{BoxedEnv, ExperimentObs};
use crate::{EnvDevice, Experiment, ExperimentError, TrainConfig};

/// Where the environments are computed, for the start of a run.
pub(crate) enum Placed {
    /// On the host.
    Host(Choice),
    /// On the device.
    Device,
}

impl fmt::Display for Placed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(choice) => choice.fmt(f),
            Self::Device => f.write_str("environments on the device"),
        }
    }
}

/// The device of a run, its free memory where that is known, and the precision of products: the begin of the first line of a command.
pub(crate) fn device_line(train: &TrainConfig) -> String {
    let device = train.first_device();
    let of_gpu = gpu_of(device).map(|gpu| (gpu.name, gpu.free_gib));
    let of_cpu = || is_host(device).then(|| Machine::found().cpu).map(|cpu| (cpu.name, cpu.free_gib));
    let about = of_gpu.or_else(of_cpu).map_or(String::new(), |(name, free_gib)| {
        let name = if name.is_empty() { name } else { format!(" ({name})") };
        format!("{name}, {free_gib:.1} GiB free")
    });
    format!("{}{about}, {}", train.device, train.precision)
}

/// The environments of a training run, which are created once.
pub(crate) struct Placement<'a> {
    pub experiment: &'a Experiment<'a>,
    pub placed: &'a RefCell<Option<Placed>>,
    /// Whether the device of the run is the host.
    pub on_host: bool,
}

impl Placement<'_> {
    /// Creates the environments with the wrappers of the experiment, for a discount `gamma`.
    pub fn envs<O: ExperimentObs>(&self, gamma: f64, device: &Device) -> Result<BoxedEnv<O>, ExperimentError> {
        let train = &self.experiment.train;
        if self.experiment.wants_env_device(self.on_host) {
            match (self.on_device(train, device), train.env_device) {
                (Ok(env), _) => {
                    self.placed.replace(Some(Placed::Device));
                    return Ok(env);
                }
                (Err(reason), EnvDevice::Device) => {
                    return Err(ExperimentError::Input(format!("`train.env_device` must not be \"device\": {reason}")));
                }
                (Err(reason), _) => tracing::info!("environments are computed on the host: {reason}"),
            }
        }
        let (batch, choice) = self.experiment.training_envs()?;
        self.placed.replace(Some(Placed::Host(choice)));
        let batch = self.experiment.wrap(batch, gamma)?;
        Ok(Box::new(HostEnv::<_, O>::in_form(batch, device)))
    }

    /// The same as [`Placement::envs`] for another number of environments, with one thread.
    pub fn envs_of<O: ExperimentObs>(
        &self,
        n_envs: usize,
        gamma: f64,
        device: &Device,
    ) -> Result<BoxedEnv<O>, ExperimentError> {
        let train = TrainConfig { n_envs, executor: Executor::Serial, ..self.experiment.train.clone() };
        if self.experiment.wants_env_device(self.on_host) {
            match self.on_device(&train, device) {
                Err(_) if train.env_device == EnvDevice::Auto => {}
                result => {
                    self.placed.replace(Some(Placed::Device));
                    return result.map_err(ExperimentError::Input);
                }
            }
        }
        let batch = self.experiment.scenario.envs(Split::Train, 0..n_envs)?;
        Ok(Box::new(HostEnv::<_, O>::in_form(self.experiment.wrap(batch, gamma)?, device)))
    }

    /// The environments on the device, or the reason why there are none.
    fn on_device<O: ExperimentObs>(&self, train: &TrainConfig, device: &Device) -> Result<BoxedEnv<O>, String> {
        let Experiment { entry, plan, scenario, .. } = self.experiment;
        let refused = |what: &str| Err(format!("{what} is computed on the host only"));
        if train.scale_reward {
            return refused("`train.scale_reward`");
        }
        let made = entry
            .tensor_form
            .as_ref()
            .and_then(|form| Some(O::maker(form)?(&**scenario, train, device, plan.replays())));
        made.unwrap_or_else(|| Err(ExperimentError::Input(format!("`{}` has no tensor form", entry.name))))
            .map_err(|error| error.to_string())
    }
}
