//! Where the environments of a training run are computed.

use std::cell::RefCell;
use std::fmt;

use brasa_core::HostEnv;
use brasa_device::{Backend, Machine, profile_of};
use brasa_env::{Choice, Executor, Split};
use burn::tensor::Device;

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

/// The device of a run, its free memory and the precision of products: what the first line of a command says.
pub(crate) fn device_line(train: &TrainConfig) -> String {
    let Machine { cpu, gpus } = Machine::found();
    let (device, precision) = (train.first_device(), train.precision);
    let index = device.strip_prefix("cuda").map(|rest| rest.trim_start_matches(':').parse().unwrap_or(0));
    let by_profile = || {
        let profile = profile_of(device).ok().flatten().filter(|profile| profile.backend == Backend::Cuda)?;
        gpus.iter().find(|gpu| profile.names.contains(&gpu.name))
    };
    let gpu = index.map_or_else(by_profile, |index| gpus.iter().find(|gpu| gpu.index == index));
    let (name, free_gib) = match gpu {
        Some(gpu) => (&gpu.name, gpu.free_gib),
        None => (&cpu.name, cpu.free_gib),
    };
    let named = if name.is_empty() { train.device.clone() } else { format!("{} ({name})", train.device) };
    format!("{named}, {free_gib:.1} GiB free, {precision}")
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
