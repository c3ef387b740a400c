//! `brasa eval`: the policy of a run, measured again.

use brasa::core::{Explore, HostEnv, Obs, Policy};
use brasa::device::open_named;
use brasa::env::Episode;
use brasa::env::wrappers::RunningMoments;
use brasa::train::{RunDir, evaluate, restore_moments};
use burn::tensor::{Device, Tensor, TensorData};
use ndarray::{Array2, ArrayView2};

use crate::algorithm::{AnyPolicy, Spaces};
use crate::args::EvalArgs;
use crate::comparison::{episodes_json, episodes_text};
use crate::error::CliError;
use crate::experiment::Experiment;
use crate::scenario::Scenario;

/// Evaluation episodes of scenarios without controllers to compare with.
pub const EPISODES: usize = 20;

pub fn run(args: &EvalArgs) -> Result<(), CliError> {
    let run_dir = RunDir::open(&args.run_dir)?;
    let origin = run_dir.file("config.toml").display().to_string();
    let experiment = Experiment::parse(&run_dir.read("config.toml")?, &origin, &args.set)?;
    let (path, checkpoint) = run_dir.checkpoints().latest()?;
    let device = open_named(args.device.as_deref().unwrap_or(&experiment.train.device))?;
    let scenario = Scenario::build(&experiment.scenario)?;
    let batch = scenario.eval_envs(1, None)?;
    let graphs = scenario.graphs()?;
    let spaces = Spaces { batch: batch.as_ref(), graphs: graphs.as_ref(), device: &device, seed: experiment.train.seed };
    let policy = AnyPolicy::load(&experiment.algorithm(), &spaces, &checkpoint, &path)?;
    let moments = restore_moments(&checkpoint, &path)?;
    let trained = Trained { policy: &policy, moments: moments.as_ref(), device: &device };
    let seed = experiment.train.eval_seed;

    let (document, text) = match scenario.yardsticks() {
        Some(yardsticks) => {
            let comparison = yardsticks.compare(Some(&trained), seed, args.episodes)?;
            (comparison.to_json(), comparison.to_table())
        }
        None => {
            let n_episodes = args.episodes.map_or(EPISODES, |n| n as usize);
            let episodes = trained.episodes(&scenario, n_episodes, seed)?;
            (episodes_json(&episodes), episodes_text(&episodes))
        }
    };
    match args.json {
        true => println!("{}", serde_json::Value::Object(document)),
        false => print!("{text}"),
    }
    Ok(())
}

/// A policy that acts without exploring.
pub struct Trained<'a> {
    pub policy: &'a AnyPolicy,
    pub moments: Option<&'a RunningMoments>,
    pub device: &'a Device,
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
        let obs = Obs { values: upload(obs), mask: mask.map(|mask| upload(mask.to_owned())) };
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
