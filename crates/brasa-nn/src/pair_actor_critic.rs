//! An actor-critic over pairs: each action is a pair of an item of a first kind and an item of a second kind.

use std::f64::consts::SQRT_2;
use std::ops::Range;

use brasa_core::env::{EnvSpec, InvalidField, PairSpec, field};
use brasa_core::export::Layer;
use brasa_core::{ActionValues, Obs};
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::actor_critic::check_widths;
use crate::privileged::seen;
use crate::{
    Activation, ActorCriticModule, Init, Linear, Mlp, MlpConfig, ModuleActorCritic, NnError, PairQNetwork,
    PairQNetworkConfig,
};

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
    /// Widths of the hidden layers of the critic, the first one also of the features of items. Default 32, 32.
    pub critic_hidden: Vec<usize>,
    /// Activation of the hidden layers. Default relu.
    pub activation: Activation,
}

impl Default for PairActorCriticConfig {
    fn default() -> Self {
        Self { hidden: vec![32, 32], critic_hidden: vec![32, 32], activation: Activation::Relu }
    }
}

/// The logits of all pairs, with the same weights for all of them, as in [`PairQNetwork`]; and a value from the mean features of the items of
/// each kind. A central critic also sees the mean of what the other agents observe.
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
    /// Features of the items of each kind, for the critic.
    first: Linear,
    second: Linear,
    critic: Mlp,
    #[module(skip)]
    activation: Activation,
    #[module(skip)]
    pairs: PairSpec,
    #[module(skip)]
    privileged: Range<usize>,
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
        let (activation, privileged) = (config.activation, spec.privileged.clone());
        let whole = privileged.len().is_multiple_of(pairs.width());
        field::rule(whole, "privileged", "must be observations of other agents", format!("{privileged:?}"))?;
        check_widths("critic_hidden", &config.critic_hidden)?;
        let Some(width) = config.critic_hidden.first().copied() else {
            return Err(NnError::Field(InvalidField::new("critic_hidden", "must have at least one layer", "none")));
        };
        let init = Init::Orthogonal(SQRT_2);
        let of_actor = PairQNetworkConfig { hidden: config.hidden.clone(), activation, init };
        let actor = PairQNetwork::with_outputs(&of_actor, Init::Orthogonal(0.01), pairs, device, rng)?;
        let first = Linear::new(pairs.first_features, width, init, device, rng);
        let second = Linear::new(pairs.second_features, width, init, device, rng);
        let n_views = if privileged.is_empty() { 1 } else { 2 };
        let critic = MlpConfig {
            inputs: n_views * (pairs.context + 2 * width),
            hidden: config.critic_hidden.clone(),
            outputs: Some(1),
            activation,
            hidden_init: init,
            output_init: Init::Orthogonal(1.0),
        };
        let critic = Mlp::new(&critic, device, rng);
        ModuleActorCritic::new(Self { actor, first, second, critic, activation, pairs, privileged }, spec)
    }

    /// The context and the mean features of the items of each kind, of observations of one agent.
    fn summary(&self, rows: Tensor<2>) -> Vec<Tensor<2>> {
        let (pairs, [n_rows, _]) = (self.pairs, rows.dims());
        let mean = |layer: &Linear, from: usize, n: usize, features: usize| {
            let items = rows.clone().slice([0..n_rows, from..from + n * features]);
            let items = items.reshape([n_rows, features, n]).swap_dims(1, 2).reshape([n_rows * n, features]);
            let hidden = self.activation.apply(layer.forward(items, None));
            let width = hidden.dims()[1];
            hidden.reshape([n_rows, n, width]).mean_dim(1).squeeze_dim::<2>(1)
        };
        let first = mean(&self.first, pairs.context, pairs.n_first, pairs.first_features);
        let from = pairs.context + pairs.n_first * pairs.first_features;
        let second = mean(&self.second, from, pairs.n_second, pairs.second_features);
        let context = (pairs.context > 0).then(|| rows.clone().slice([0..n_rows, 0..pairs.context]));
        context.into_iter().chain([first, second]).collect()
    }
}

impl ActorCriticModule for PairActorCritic {
    type Obs = Obs;

    /// The values of rows without the columns of critics alone are 0.
    fn forward(&self, obs: Obs) -> (Tensor<2>, Tensor<1>) {
        let ([n_rows, width], own) = (obs.values.dims(), self.pairs.width());
        let seen = seen(&self.privileged, own, obs.values.clone());
        let outputs = self.actor.values(Obs::new(seen.clone()));
        if width < own + self.privileged.len() {
            return (outputs, Tensor::zeros([n_rows], &obs.values.device()));
        }
        let mut summary = self.summary(seen);
        if !self.privileged.is_empty() {
            let n_others = self.privileged.len() / own;
            let others = obs.values.slice([0..n_rows, self.privileged.clone()]).reshape([n_rows, n_others, own]);
            summary.extend(self.summary(others.mean_dim(1).squeeze_dim(1)));
        }
        (outputs, self.critic.forward(Tensor::cat(summary, 1)).squeeze_dim(1))
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
