//! `brasa eval`: the policy of a run, measured again.

use brasa::core::{Explore, HostEnv, Obs, Policy};
use brasa::device::open_named;
use brasa::energy::{Control, Outcome};
use brasa::env::Episode;
use brasa::env::wrappers::RunningMoments;
use brasa::train::{RunDir, evaluate, restore_moments};
use burn::tensor::{Device, Tensor, TensorData};
use ndarray::{ArrayView2, ArrayViewMut2};

use crate::algorithm::{AnyPolicy, Spaces};
use crate::args::EvalArgs;
use crate::error::CliError;
use crate::experiment::Experiment;
use crate::outcomes::{Outcomes, TRAINED, episodes_json, episodes_text};
use crate::scenario::{Energy, Scenario};

/// Evaluation episodes of scenarios without a year of their own.
pub const EPISODES: usize = 20;

pub fn run(args: &EvalArgs) -> Result<(), CliError> {
    let run_dir = RunDir::open(&args.run_dir)?;
    let origin = run_dir.file("config.toml").display().to_string();
    let experiment = Experiment::parse(&run_dir.read("config.toml")?, &origin, &[])?;
    let (path, checkpoint) = run_dir.checkpoints().latest()?;
    let device = open_named(args.device.as_deref().unwrap_or(&experiment.train.device))?;
    let scenario = Scenario::build(&experiment.scenario)?;
    let batch = scenario.eval_envs(1, None)?;
    let spaces = Spaces { batch: batch.as_ref(), device: &device, seed: experiment.train.seed };
    let policy = AnyPolicy::load(&experiment.algorithm(), &spaces, &checkpoint, &path)?;
    let moments = restore_moments(&checkpoint, &path)?;
    let trained = Trained { policy: &policy, moments: moments.as_ref(), device: &device };
    let seed = experiment.train.eval_seed;

    match scenario.energy() {
        Some(energy) => {
            let outcomes = trained.among_rules(energy, seed)?;
            let mut document = outcomes.to_json();
            let mut returns: Vec<f64> =
                outcomes.get(TRAINED).map(|outcome| outcome.episode_return).into_iter().collect();
            for episode in 1..args.episodes {
                returns.push(trained.year(energy, seed + episode)?.episode_return);
            }
            let mean = returns.iter().sum::<f64>() / returns.len() as f64;
            document.insert("trained_returns".into(), serde_json::json!(returns));
            if args.json {
                println!("{}", serde_json::Value::Object(document));
            } else {
                print!("{}", outcomes.to_table(energy));
                if returns.len() > 1 {
                    println!("Return of the trained policy over {} episodes, one seed each: {mean:.1}", returns.len());
                }
            }
        }
        None => {
            let episodes = trained.episodes(&scenario, args.episodes as usize, seed)?;
            match args.json {
                true => println!("{}", serde_json::Value::Object(episodes_json(&episodes))),
                false => print!("{}", episodes_text(&episodes)),
            }
        }
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
    /// One whole episode of this policy and of every controller that does not learn.
    pub fn among_rules(&self, energy: &dyn Energy, seed: u64) -> Result<Outcomes, CliError> {
        let mut outcomes = Outcomes::of_rules(energy, seed)?;
        outcomes.rows.push((TRAINED.into(), self.year(energy, seed)?));
        Ok(outcomes)
    }

    /// One whole episode of an energy scenario.
    fn year(&self, energy: &dyn Energy, seed: u64) -> Result<Outcome, CliError> {
        let mut act = |obs: ArrayView2<f32>, mut actions: ArrayViewMut2<f32>| {
            let mut obs = obs.to_owned();
            if let Some(moments) = self.moments {
                moments.normalize(obs.view_mut());
            }
            let shape = [obs.nrows(), obs.ncols()];
            let obs = Tensor::from_data(TensorData::new(obs.into_raw_vec_and_offset().0, shape), self.device);
            let (action, _) = self.policy.act(Obs::new(obs), Explore::Greedy);
            let data = self.policy.to_env(action).into_data();
            actions.iter_mut().zip(data.iter::<f32>()).for_each(|(slot, value)| *slot = value);
        };
        energy.evaluate(Control::Policy(&mut act), seed)
    }

    /// Whole episodes of any scenario.
    pub fn episodes(&self, scenario: &Scenario, n_episodes: usize, seed: u64) -> Result<Vec<Episode>, CliError> {
        let batch = scenario.eval_envs(n_episodes.min(EPISODES), self.moments)?;
        Ok(evaluate(self.policy, &mut HostEnv::new(batch, self.device), n_episodes, seed)?)
    }
}
