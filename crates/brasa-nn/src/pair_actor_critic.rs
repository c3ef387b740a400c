//! An actor-critic over pairs: each action is a pair of an item of a first kind and an item of a second kind.

use std::ops::Range;

use brasa_core::env::{EnvSpec, PairSpec, field};
use brasa_core::export::Layer;
use brasa_core::{ActionValues, Obs};
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::privileged::seen;
use crate::{Activation, ActorCriticModule, Init, ModuleActorCritic, NnError, PairQNetwork, PairQNetworkConfig};

/// Shape of a [`PairActorCritic`].
///
/// ```
/// use brasa_nn::PairActorCriticConfig;
///
/// let config: PairActorCriticConfig = serde_json::from_str(r#"{ "hidden": [64] }"#)?;
/// assert_eq!((&config.hidden[..], &config.critic_hidden[..]), (&[64][..], &[32, 32][..]));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PairActorCriticConfig {
    /// Widths of the hidden layers of the actor, which are computed for every pair. Default 32, 32.
    pub hidden: Vec<usize>,
    /// The same of the critic. Default 32, 32.
    pub critic_hidden: Vec<usize>,
    /// Activation of the hidden layers. Default relu.
    pub activation: Activation,
}

impl Default for PairActorCriticConfig {
    fn default() -> Self {
        Self { hidden: vec![32, 32], critic_hidden: vec![32, 32], activation: Activation::Relu }
    }
}

/// The logits of all pairs, and a value that is the mean of a number of each pair: with the same weights for all pairs, as in
/// [`PairQNetwork`]. A central critic adds the mean over what the other agents see.
///
/// ```
/// use brasa_core::env::{EnvSpec, Space, named_rng};
/// use brasa_core::{ActorCritic, Obs};
/// use brasa_nn::{PairActorCritic, PairActorCriticConfig, PairSpec};
/// use burn::tensor::Tensor;
///
/// // Each of 3 responders, with 2 features, may take each of 5 tasks, with 1 feature.
/// let pairs = PairSpec { context: 0, n_first: 3, first_features: 2, n_second: 5, second_features: 1, levels: 1 };
/// let spec = EnvSpec::new(Space::shaped(-1.0, 1.0, [pairs.width()]), Space::Discrete(15), 1);
/// let (device, rng) = (brasa_device::open_named("cpu")?.autodiff(), &mut named_rng(0, "weights", 0));
/// let network = PairActorCritic::new(&PairActorCriticConfig::default(), pairs, &spec, &device, rng)?;
/// assert_eq!(network.value(Obs::new(Tensor::zeros([8, 11], &device))).dims(), [8]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Module, Debug)]
pub struct PairActorCritic {
    actor: PairQNetwork,
    critic: PairQNetwork,
    /// Of what other agents see, for a central critic.
    others: Option<PairQNetwork>,
    #[module(skip)]
    privileged: Range<usize>,
    #[module(skip)]
    width: usize,
}

impl PairActorCritic {
    /// A network for environments of `spec`, whose observations and actions are those of `pairs`, with initial weights from `rng`.
    ///
    /// # Errors
    /// As [`PairQNetwork::new`]; [`NnError`] for columns of critics alone that are no observations of other agents.
    #[allow(clippy::new_ret_no_self, reason = "the network is the module with the distribution of its actions")]
    pub fn new(
        config: &PairActorCriticConfig,
        pairs: PairSpec,
        spec: &EnvSpec,
        device: &Device,
        rng: &mut (impl Rng + ?Sized),
    ) -> Result<ModuleActorCritic<Self>, NnError> {
        let (width, privileged) = (pairs.width(), spec.privileged.clone());
        let whole = privileged.len().is_multiple_of(width);
        field::rule(whole, "privileged", "must be observations of other agents", format!("{privileged:?}"))?;
        let mut network = |hidden: &[usize], output: f64| {
            let init = Init::Orthogonal(std::f64::consts::SQRT_2);
            let config = PairQNetworkConfig { hidden: hidden.to_vec(), activation: config.activation, init };
            PairQNetwork::with_outputs(&config, Init::Orthogonal(output), pairs, device, rng)
        };
        let actor = network(&config.hidden, 0.01)?;
        let critic = network(&config.critic_hidden, 1.0)?;
        let others = if privileged.is_empty() { None } else { Some(network(&config.critic_hidden, 1.0)?) };
        ModuleActorCritic::new(Self { actor, critic, others, privileged, width }, spec)
    }
}

/// The mean over all pairs, `[n_rows]`.
fn pooled(network: &PairQNetwork, rows: Tensor<2>) -> Tensor<1> {
    network.values(Obs::new(rows)).mean_dim(1).squeeze_dim(1)
}

impl ActorCriticModule for PairActorCritic {
    fn forward(&self, obs: Obs) -> (Tensor<2>, Tensor<1>) {
        let [n_rows, width] = obs.values.dims();
        let own = seen(&self.privileged, self.width, obs.values.clone());
        let mut value = pooled(&self.critic, own.clone());
        if let Some(others) = self.others.as_ref().filter(|_| width > self.width) {
            let n_others = self.privileged.len() / self.width;
            let rows = obs.values.slice([0..n_rows, self.privileged.clone()]).reshape([n_rows * n_others, self.width]);
            value = value + pooled(others, rows).reshape([n_rows, n_others]).mean_dim(1).squeeze_dim(1);
        }
        (self.actor.values(Obs::new(own)), value)
    }

    fn has_central_critic(&self) -> bool {
        true
    }

    fn exported(&self) -> Option<Vec<Layer>> {
        Some(vec![self.actor.exported_layer()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brasa_core::env::{Space, named_rng};
    use brasa_core::{ActorCritic, Explore, Policy, read_back};
    use burn::tensor::TensorData;

    const PAIRS: PairSpec =
        PairSpec { context: 1, n_first: 2, first_features: 2, n_second: 3, second_features: 1, levels: 1 };

    fn rows(n: usize, width: usize) -> Tensor<2> {
        let values: Vec<f32> = (0..n * width).map(|i| (i as f32 * 1.7).sin()).collect();
        Tensor::from_data(TensorData::new(values, [n, width]), &brasa_test::device())
    }

    fn spec(n_agents: usize) -> EnvSpec {
        let obs = Space::shaped(-1.0, 1.0, [PAIRS.width()]);
        EnvSpec { n_agents, ..EnvSpec::new(obs, Space::Discrete(6), 1) }
    }

    fn network(spec: &EnvSpec) -> ModuleActorCritic<PairActorCritic> {
        let (device, rng) = (brasa_test::device().autodiff(), &mut named_rng(3, "weights", 0));
        PairActorCritic::new(&PairActorCriticConfig::default(), PAIRS, spec, &device, rng).expect("valid").valid()
    }

    #[test]
    fn a_central_critic_depends_on_the_others_in_any_order_and_the_actor_does_not() {
        let joint = spec(3).joint().expect("boxes can be joined");
        assert_eq!(joint.privileged, 0..16);
        let network = network(&joint);
        let all = rows(5, 24);
        let part = |from: usize| all.clone().narrow(1, from, 8);
        let turned = Tensor::cat(vec![part(8), part(0), part(16)], 1);
        let other = Tensor::cat(vec![part(0) + 1.0, part(8), part(16)], 1);
        let value = |rows: &Tensor<2>| read_back(network.value(Obs::new(rows.clone())));
        let close = |a: Vec<f32>, b: Vec<f32>| a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-5);
        assert!(close(value(&all), value(&turned)) && !close(value(&all), value(&other)));
        let logits = |rows: Tensor<2>| read_back(network.network().forward(Obs::new(rows)).0);
        assert_eq!(logits(all.clone()), logits(other));
        // An agent that acts alone has its own numbers.
        assert_eq!(logits(all.clone()), logits(part(16)));
        let sizes = network.sizes().expect("they are known");
        assert_eq!((sizes.obs, sizes.privileged), (24, 0..16));
    }

    #[test]
    fn an_exported_network_has_the_logits_of_pairs() {
        for spec in [spec(1), spec(3).joint().expect("boxes can be joined")] {
            let network = network(&spec);
            let own = rows(7, 8);
            let (action, _) = network.act(Obs::new(own.clone()), Explore::Greedy);
            let exported = network.exported().expect("it has layers");
            assert_eq!(exported.obs_width, 8);
            assert_eq!(exported.act(&read_back(own), None), read_back(action));
        }
    }

    #[test]
    fn columns_that_are_no_observations_are_named() {
        let (device, rng) = (brasa_test::device().autodiff(), &mut named_rng(3, "weights", 0));
        let spec = EnvSpec { privileged: 0..3, ..spec(1) };
        let error = PairActorCritic::new(&PairActorCriticConfig::default(), PAIRS, &spec, &device, rng).unwrap_err();
        assert_eq!(error.to_string(), "`privileged` must be observations of other agents, got 0..3");
    }
}
