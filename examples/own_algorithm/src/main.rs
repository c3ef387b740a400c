//! An algorithm of one's own in experiments: REINFORCE with a learned baseline (Sutton and Barto 2018, section 13.4). It has a learner with its
//! loss, a section `[reinforce]`, and with these everything of the `brasa` command: checkpoints, resume, `eval`, `compare`, the report.
//!
//! `cargo run --release -p own-algorithm -- train examples/own_algorithm/cart-pole.toml --out /tmp/reinforce`

use std::path::Path;
use std::process::ExitCode;

use brasa::buffers::Rollout;
use brasa::burn::tensor::Tensor;
use brasa::contracts::{Learner, Metrics, OnPolicyLearner, Progress};
use brasa::experiment::{
    Algorithm, App, Context, ExperimentError, LoadedPolicy, NetworkPlan, Plan, PolicyContext, Sections, Session,
};
use brasa::kernels::LossData;
use brasa::nn::{
    ActorCriticRole, AdamConfig, Boxed, Data, EvaluatedActions, ParamsError, Persist, Saved, Step, Trainable,
};
use brasa::number::{Number, RowLoss};
use brasa::prelude::*;
use brasa::serde::{Deserialize, Serialize};
use brasa::train::{Checkpoint, OnPolicy, restore_policy};

/// Settings with their defaults.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(crate = "brasa::serde", default, deny_unknown_fields)]
struct ReinforceConfig {
    /// Steps per environment and rollout.
    n_steps: usize,
    /// Discount per step.
    gamma: f64,
    /// Step size of Adam.
    learning_rate: f64,
}

impl Default for ReinforceConfig {
    fn default() -> Self {
        Self { n_steps: 128, gamma: 0.99, learning_rate: 3e-3 }
    }
}

/// `-(G - V) ln pi(a|s) + (G - V)^2 / 2`, of log-probability, entropy and value, from advantage and return.
#[derive(Debug, Clone, Copy)]
struct PolicyGradient;

impl RowLoss<3, 2, 1> for PolicyGradient {
    fn row<N: Number>(&self, [log_prob, _, value]: [N; 3], [advantage, returns]: [N; 2]) -> [N; 1] {
        [-(log_prob * advantage) + (returns - value).square() * 0.5]
    }
}

/// A network with its optimizer.
#[derive(Debug)]
struct Reinforce {
    network: Trainable<Boxed<ActorCriticRole>>,
    config: ReinforceConfig,
}

impl Learner for Reinforce {
    type Batch = Rollout<Obs, Tensor<2>>;
    type Policy = Boxed<ActorCriticRole>;

    fn update(&mut self, rollout: Self::Batch, _: Progress) -> Metrics {
        let forward = EvaluatedActions { obs: &rollout.obs, action: &rollout.action, sequences: None };
        let data = Data::new([&rollout.advantage, &rollout.returns].map(LossData::Rows)).standardize(0, 1);
        let step = Step::new(self.config.learning_rate, Some(0.5));
        let learned = self.network.learn(&forward, data, &PolicyGradient, step, |_| true);
        let mut metrics = Metrics::default();
        metrics.push_tensor("train/loss", learned.reports.mean(0));
        metrics
    }

    fn policy(&self, _: Progress) -> Self::Policy {
        self.network.valid()
    }
}

impl OnPolicyLearner for Reinforce {
    fn n_steps(&self) -> usize {
        self.config.n_steps
    }

    fn gamma(&self) -> f64 {
        self.config.gamma
    }

    /// The whole return, without the estimates between.
    fn gae_lambda(&self) -> f64 {
        1.0
    }
}

impl Persist for Reinforce {
    fn save(&self) -> Saved {
        let mut saved = Saved::default();
        saved.put_policy(self.network.plain());
        saved.put_optimizer("network", &self.network);
        saved
    }

    fn load(&mut self, saved: &Saved) -> Result<(), ParamsError> {
        self.network.set_module(saved.policy(self.network.valid())?);
        saved.optimizer("network", &mut self.network)
    }
}

/// The section of experiments.
struct ReinforceAlgorithm;

impl Algorithm for ReinforceAlgorithm {
    fn name(&self) -> &str {
        "reinforce"
    }

    fn plan(&self, sections: &mut Sections<'_>) -> Result<Box<dyn Plan>, ExperimentError> {
        Ok(Box::new(ReinforcePlan { config: sections.config("reinforce")?, network: sections.network()? }))
    }
}

/// What an experiment says of the algorithm: its settings and a network, any that fits the environments.
struct ReinforcePlan {
    config: ReinforceConfig,
    network: NetworkPlan<ActorCriticRole>,
}

impl Plan for ReinforcePlan {
    fn replays(&self) -> bool {
        false
    }

    fn start(&self, context: Context<'_>) -> Result<Session, ExperimentError> {
        let network = Trainable::new(self.network.build(&context.network(0))?, AdamConfig::default());
        let network = network.map_err(|error| ExperimentError::Input(error.to_string()))?;
        let learner = Reinforce { network, config: self.config.clone() };
        let training = OnPolicy::new(context.envs::<Obs>(self.config.gamma)?, learner, context.run())?;
        Ok(Session::new(training, context.spec(), |policy, _| Ok(policy.clone())))
    }

    fn policy(
        &self,
        context: &PolicyContext<'_>,
        checkpoint: &Checkpoint,
        path: &Path,
    ) -> Result<LoadedPolicy, ExperimentError> {
        let network = restore_policy(self.network.build(&context.network())?, checkpoint, path)?;
        LoadedPolicy::restored(network, context, checkpoint, path, |policy, _| Ok(policy.clone()))
    }
}

fn main() -> ExitCode {
    App::new("own-algorithm").with(brasa::registry()).algorithm(ReinforceAlgorithm).main()
}
