//! `brasa eval`: the policy of a run, measured again.

use std::path::Path;

use brasa::core::{Explore, HostEnv, Obs, Policy};
use brasa::device::open_named;
use brasa::env::Episode;
use brasa::env::wrappers::RunningMoments;
use brasa::train::{RunDir, evaluate, restore_moments};
use burn::tensor::{Device, Tensor, TensorData};
use ndarray::{Array2, ArrayView2};
use serde_json::{Map, Value};

use crate::algorithm::{AnyPolicy, Exploration, Spaces};
use crate::args::EvalArgs;
use crate::comparison::{Comparison, episodes_json, episodes_text};
use crate::error::CliError;
use crate::experiment::Experiment;
use crate::scenario::Scenario;

/// Evaluation episodes of scenarios without controllers to compare with.
const EPISODES: usize = 20;

pub fn run(args: &EvalArgs) -> Result<(), CliError> {
    let run = Finished::open(&args.run_dir, &args.set, args.device.as_deref())?;
    let result = measure(&run.scenario, &run.trained(), run.experiment.train.eval_seed, args.episodes)?;
    match args.json {
        true => println!("{}", Value::Object(result.document)),
        false => print!("{}", result.text),
    }
    Ok(())
}

/// A run as its latest checkpoint left it.
pub struct Finished {
    pub run_dir: RunDir,
    pub experiment: Experiment,
    pub scenario: Scenario,
    policy: AnyPolicy,
    moments: Option<RunningMoments>,
    device: Device,
}

impl Finished {
    /// Reads the run in `path`, with some values of its experiment changed, onto `device` or the one of its training.
    pub fn open(path: &Path, set: &[String], device: Option<&str>) -> Result<Self, CliError> {
        let run_dir = RunDir::open(path)?;
        let origin = run_dir.file("config.toml").display().to_string();
        let experiment = Experiment::parse(&run_dir.read("config.toml")?, &origin, set)?;
        let (path, checkpoint) = run_dir.checkpoints().latest()?;
        let device = open_named(device.unwrap_or(&experiment.train.device))?;
        let scenario = Scenario::build(&experiment.scenario)?;
        let batch = scenario.eval_envs(1, None)?;
        let graphs = scenario.graphs()?;
        let seed = experiment.train.seed;
        let spaces =
            Spaces { batch: batch.as_ref(), graphs: graphs.as_ref(), pairs: scenario.pairs(), device: &device, seed };
        let policy = AnyPolicy::load(&experiment.algorithm(), &spaces, &checkpoint, &path)?;
        let moments = restore_moments(&checkpoint, &path)?;
        Ok(Self { run_dir, experiment, scenario, policy, moments, device })
    }

    /// The policy.
    pub fn trained(&self) -> Trained<'_> {
        Trained {
            policy: &self.policy,
            moments: self.moments.as_ref(),
            device: &self.device,
            exploration: self.experiment.algorithm().exploration(),
        }
    }
}

/// What a policy achieved.
pub struct Measured {
    pub document: Map<String, Value>,
    pub text: String,
    /// Beside controllers that do not learn, where the scenario has any.
    pub comparison: Option<Comparison>,
}

/// Plays `episodes` with the policy and with every controller to compare with.
pub fn measure(
    scenario: &Scenario,
    trained: &Trained<'_>,
    seed: u64,
    episodes: Option<u64>,
) -> Result<Measured, CliError> {
    Ok(match scenario.yardsticks() {
        Some(yardsticks) => {
            let comparison = yardsticks.compare(Some(trained), seed, episodes)?;
            let (document, text) = (comparison.to_json(), comparison.to_table());
            Measured { document, text, comparison: Some(comparison) }
        }
        None => {
            let n_episodes = episodes.map_or(EPISODES, |n| n as usize);
            let episodes = trained.episodes(scenario, n_episodes, seed)?;
            Measured { document: episodes_json(&episodes), text: episodes_text(&episodes), comparison: None }
        }
    })
}

/// A policy that acts without exploring.
pub struct Trained<'a> {
    pub policy: &'a AnyPolicy,
    pub moments: Option<&'a RunningMoments>,
    pub device: &'a Device,
    /// How much it explored while it learned.
    pub exploration: Option<Exploration>,
}

impl Trained<'_> {
    /// Decides on the host, one row of actions for each of observations and masks.
    pub fn act(&self, obs: ArrayView2<f32>, mask: Option<ArrayView2<f32>>) -> Array2<f32> {
        let mut obs = obs.to_owned();
        if let Some(moments) = self.moments {
            moments.normalize(obs.view_mut());
        }
        let upload = |values: Array2<f32>| {
            let shape = [values.nrows(), values.ncols()];
            Tensor::from_data(TensorData::new(values.into_raw_vec_and_offset().0, shape), self.device)
        };
        self.decide(Obs { values: upload(obs), mask: mask.map(|mask| upload(mask.to_owned())) })
    }

    /// The same for observations as the policy sees them.
    pub fn decide(&self, obs: Obs) -> Array2<f32> {
        let (action, _) = self.policy.act(obs, Explore::Greedy);
        let action = self.policy.to_env(action);
        let [rows, width] = action.dims();
        let values = action.into_data().iter::<f32>().collect();
        Array2::from_shape_vec((rows, width), values).expect("a tensor's data has the tensor's shape")
    }

    /// Whole episodes of any scenario.
    pub fn episodes(&self, scenario: &Scenario, n_episodes: usize, seed: u64) -> Result<Vec<Episode>, CliError> {
        let batch = scenario.eval_envs(n_episodes.min(EPISODES), self.moments)?;
        Ok(evaluate(self.policy, &mut HostEnv::new(batch, self.device), n_episodes, seed)?)
    }
}
