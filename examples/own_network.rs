//! A custom actor-critic in 30 lines: a body, an action head for any action space, a value; PPO trains it on CartPole.
//!
//! `cargo run --release -p brasa-examples --example own_network`; a number after `--` replaces the 50,000 steps.

use brasa::burn::module::Module;
use brasa::burn::tensor::{Device, Tensor};
use brasa::classic::Classic;
use brasa::contracts::{ActorCritic, Decision, Evaluation, Explore, NoiseSpec};
use brasa::device::open_named;
use brasa::nn::{ActionHead, ActionHeadConfig, Activation, Init, Linear, NnError};
use brasa::ppo::{Ppo, PpoConfig};
use brasa::prelude::*;
use brasa_examples::{compare, steps};

/// One wide layer, shared by actor and critic.
#[derive(Module, Debug)]
struct Wide {
    body: Linear,
    head: ActionHead,
    value: Linear,
}

impl Wide {
    fn new(spec: &EnvSpec, device: &Device, rng: &mut EnvRng) -> Result<Self, NnError> {
        Ok(Self {
            body: Linear::new(spec.obs.width(), 256, Init::Orthogonal(1.4), device, rng),
            head: ActionHead::new(&ActionHeadConfig::default(), 256, &spec.action, device, rng)?,
            value: Linear::new(256, 1, Init::Orthogonal(1.0), device, rng),
        })
    }
    fn see(&self, obs: Obs) -> Tensor<2> {
        self.body.forward(obs.values, Some(Activation::Tanh))
    }
}

impl Policy for Wide {
    type Obs = Obs;
    type Action = Tensor<2>;
    type Extra = Decision;
    fn noise(&self) -> NoiseSpec {
        self.head.noise()
    }
    fn act(&self, obs: Obs, explore: Explore) -> (Tensor<2>, Decision) {
        let (mask, features) = (obs.mask.clone(), self.see(obs));
        let value = self.value.forward(features.clone(), None).squeeze_dim(1);
        let (action, log_prob) = self.head.act(features, mask, explore);
        (action, Decision { log_prob, value: Some(value) })
    }
    fn to_env(&self, action: Tensor<2>) -> Tensor<2> {
        self.head.to_env(action)
    }
}

impl ActorCritic for Wide {
    fn value(&self, obs: Obs) -> Tensor<1> {
        self.value.forward(self.see(obs), None).squeeze_dim(1)
    }
    fn evaluate(&self, obs: Obs, action: Tensor<2>) -> Evaluation {
        let (mask, features) = (obs.mask.clone(), self.see(obs));
        let value = self.value.forward(features.clone(), None).squeeze_dim(1);
        let (log_prob, entropy) = self.head.evaluate(features, mask, action);
        Evaluation { log_prob, entropy, value }
    }
    fn choice(&self, obs: &Obs) -> Option<Tensor<1>> {
        self.head.choice(obs.mask.as_ref())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = open_named("cpu")?;
    let task = Classic::cart_pole();
    let env = HostEnv::new(task.batch(0..8)?, &device);
    let network = Wide::new(env.spec(), &device.autodiff(), &mut named_rng(0, "weights", 0))?;
    let ppo = Ppo::new(network, PpoConfig { n_steps: 128, batch_size: 256, ..PpoConfig::default() }, 0)?;
    let mut trainer = Trainer::on_policy(env, ppo).total_env_steps(steps(50_000)?).build()?;
    trainer.run()?;
    compare(&task, trainer.training(), &["random", "rule-based", "bound"])
}
