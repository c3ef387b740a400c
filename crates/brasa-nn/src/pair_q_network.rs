//! A Q-network over pairs: each action is a pair of an item of a first kind and an item of a second kind.

use brasa_core::env::{InvalidField, PairSpec};
use brasa_core::export::{About, ExportedPolicy, Groups, Layer, Output};
use brasa_core::{ActionValues, Obs};
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::actor_critic::check_widths;
use crate::exported::{Layers, exported_function};
use crate::{Activation, Init, Linear, Mlp, MlpConfig, NnError};

/// Shape of a [`PairQNetwork`].
///
/// ```
/// use brasa_nn::{Init, PairQNetworkConfig};
///
/// let config: PairQNetworkConfig = serde_json::from_str(r#"{ "init": { "orthogonal": 1.0 } }"#)?;
/// assert_eq!((config.init, &config.hidden[..]), (Init::Orthogonal(1.0), &[32, 32][..]));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PairQNetworkConfig {
    /// Widths of the hidden layers, which are computed for every pair. Default 32, 32.
    pub hidden: Vec<usize>,
    /// Activation of the hidden layers. Default relu.
    pub activation: Activation,
    /// Initial weights: `fan-in`, the default (PyTorch's), `glorot` or `{ orthogonal = GAIN }`.
    pub init: Init,
}

impl Default for PairQNetworkConfig {
    fn default() -> Self {
        Self { hidden: vec![32, 32], activation: Activation::Relu, init: Init::FanIn }
    }
}

/// Estimates the value of every pair from the features of its two items, with the same weights for all pairs.
///
/// The weights do not depend on the number and order of items, so the network applies to other numbers of items. The
/// first layer is a sum of three products, of context, first and second item, so that each is computed once per item
/// instead of once per pair.
///
/// ```
/// use brasa_core::{ActionValues, Obs, env::named_rng};
/// use brasa_nn::{PairQNetwork, PairQNetworkConfig, PairSpec};
/// use burn::tensor::Tensor;
///
/// // Each of 3 responders, with 2 features, may take each of 5 tasks, with 1 feature.
/// let spec =
///     PairSpec { context: 0, n_first: 3, first_features: 2, n_second: 5, second_features: 1, levels: 1 };
/// let (device, rng) = (brasa_device::open_named("cpu")?, &mut named_rng(0, "weights", 0));
/// let network = PairQNetwork::new(&PairQNetworkConfig::default(), spec, &device, rng)?;
/// let values = network.values(Obs::new(Tensor::zeros([8, spec.width()], &device)));
/// assert_eq!(values.dims(), [8, 15]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Module, Debug)]
pub struct PairQNetwork {
    context: Option<Linear>,
    first: Linear,
    second: Linear,
    rest: Mlp,
    #[module(skip)]
    activation: Activation,
    #[module(skip)]
    spec: PairSpec,
}

impl PairQNetwork {
    /// A network with initial weights from `rng`.
    ///
    /// # Errors
    /// [`NnError`] if a width is 0, there is no hidden layer, or one kind of items has no features.
    pub fn new(
        config: &PairQNetworkConfig,
        spec: PairSpec,
        device: &Device,
        rng: &mut (impl Rng + ?Sized),
    ) -> Result<Self, NnError> {
        Self::with_outputs(config, config.init, spec, device, rng)
    }

    /// [`PairQNetwork::new`] with these initial weights of the last layer.
    pub(crate) fn with_outputs(
        config: &PairQNetworkConfig,
        output_init: Init,
        spec: PairSpec,
        device: &Device,
        rng: &mut (impl Rng + ?Sized),
    ) -> Result<Self, NnError> {
        check_widths("hidden", &config.hidden)?;
        config.init.check("init")?;
        let Some((width, rest)) = config.hidden.split_first() else {
            return Err(NnError::Field(InvalidField::new("hidden", "must have at least one layer", "none")));
        };
        if spec.first_features == 0 || spec.second_features == 0 {
            return Err(NnError::Space("values of pairs need features of both items".into()));
        }
        let mut linear = |inputs: usize| Linear::new(inputs, *width, config.init, device, rng);
        let context = (spec.context > 0).then(|| linear(spec.context));
        let (first, second) = (linear(spec.first_features), linear(spec.second_features));
        let rest = MlpConfig {
            inputs: *width,
            hidden: rest.to_vec(),
            outputs: Some(spec.levels),
            activation: config.activation,
            hidden_init: config.init,
            output_init,
        };
        Ok(Self { context, first, second, rest: Mlp::new(&rest, device, rng), activation: config.activation, spec })
    }
}

impl ActionValues for PairQNetwork {
    type Obs = Obs;

    fn values(&self, obs: Obs) -> Tensor<2> {
        let (x, spec) = (obs.values, self.spec);
        let [n_rows, width] = x.dims();
        assert_eq!(width, spec.width(), "numbers of a row");
        let columns = |from: usize, n: usize| x.clone().slice([0..n_rows, from..from + n]);
        // `[n_rows, things, hidden width]`.
        let embed = |layer: &Linear, from: usize, things: usize, features: usize| {
            let rows = columns(from, things * features).reshape([n_rows, features, things]).swap_dims(1, 2);
            let hidden = layer.forward(rows.reshape([n_rows * things, features]), None);
            let width = hidden.dims()[1];
            hidden.reshape([n_rows, things, width])
        };
        let mut first = embed(&self.first, spec.context, spec.n_first, spec.first_features);
        let from = spec.context + spec.n_first * spec.first_features;
        let second = embed(&self.second, from, spec.n_second, spec.second_features);
        if let Some(context) = &self.context {
            first = first + context.forward(columns(0, spec.context), None).unsqueeze_dim(1);
        }
        let sum: Tensor<4> = first.unsqueeze_dim::<4>(2) + second.unsqueeze_dim::<4>(1);
        let hidden = sum.dims()[3];
        let pairs = sum.reshape([n_rows * spec.n_first * spec.n_second, hidden]);
        self.rest.forward(self.activation.apply(pairs)).reshape([n_rows, self.n_actions()])
    }

    fn n_actions(&self) -> usize {
        self.spec.n_first * self.spec.n_second * self.spec.levels
    }

    fn obs_width(&self) -> Option<usize> {
        Some(self.spec.width())
    }

    fn action_mask(&self, obs: &Obs) -> Option<Tensor<2>> {
        obs.mask.clone()
    }

    fn exported(&self) -> Option<ExportedPolicy> {
        let output = Output::Choice { heads: vec![self.n_actions()] };
        Some(ExportedPolicy {
            obs_width: self.spec.width(),
            n_agents: 1,
            masked: false,
            layers: vec![self.exported_layer()],
            output,
            about: About::default(),
        })
    }
}

impl PairQNetwork {
    /// The same layers for each pair: on context, first and second item, whose matrices follow one another.
    pub(crate) fn exported_layer(&self) -> Layer {
        let spec = self.spec;
        let parts: Vec<_> = self.context.iter().chain([&self.first, &self.second]).map(Linear::numbers).collect();
        let weight = parts.iter().flat_map(|(weight, _)| weight).copied().collect();
        let bias = (0..parts[0].1.len()).map(|j| parts.iter().map(|(_, bias)| bias[j]).sum()).collect();
        let mut layers = Layers::default();
        layers.push(Layer::linear(weight, bias));
        layers.push(Layer::Activation(exported_function(self.activation)));
        layers.mlp(&self.rest);
        // An item's features are a column of the matrix `[features, items]`.
        let items =
            |from: usize, n: usize, features: usize, item: usize| (0..features).map(move |f| from + f * n + item);
        let second = spec.context + spec.n_first * spec.first_features;
        let columns = (0..spec.n_first).flat_map(|i| (0..spec.n_second).map(move |j| (i, j))).flat_map(|(i, j)| {
            let first = items(spec.context, spec.n_first, spec.first_features, i);
            (0..spec.context).chain(first).chain(items(second, spec.n_second, spec.second_features, j))
        });
        let width = spec.context + spec.first_features + spec.second_features;
        Layer::Groups(Groups { width, columns: columns.collect(), layers: layers.list() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::{Int, TensorData};
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    const SPEC: PairSpec =
        PairSpec { context: 2, n_first: 3, first_features: 2, n_second: 4, second_features: 1, levels: 2 };

    fn network(config: &PairQNetworkConfig) -> PairQNetwork {
        let device = brasa_test::device();
        PairQNetwork::new(config, SPEC, &device, &mut ChaCha8Rng::seed_from_u64(0)).expect("the shape is sound")
    }

    fn rows(n: usize) -> Tensor<2> {
        let rng = &mut ChaCha8Rng::seed_from_u64(1);
        let values: Vec<f32> = (0..n * SPEC.width()).map(|_| rng.random::<f32>() - 0.5).collect();
        Tensor::from_data(TensorData::new(values, [n, SPEC.width()]), &brasa_test::device())
    }

    fn floats(tensor: Tensor<2>) -> Vec<f32> {
        tensor.into_data().iter::<f32>().collect()
    }

    #[test]
    fn a_pair_is_valued_by_its_own_numbers() {
        // Each pair separately, as one plain layer on context, first and second item.
        let network = network(&PairQNetworkConfig::default());
        let x = rows(5);
        let values = floats(network.values(Obs::new(x.clone())));
        let x = floats(x);
        for row in 0..5 {
            let x = &x[row * SPEC.width()..(row + 1) * SPEC.width()];
            for i in 0..3 {
                for j in 0..4 {
                    let part = |layer: &Linear, values: &[f32]| {
                        let shape = [1, values.len()];
                        let data = TensorData::new(values.to_vec(), shape);
                        layer.forward(Tensor::from_data(data, &brasa_test::device()), None)
                    };
                    let sum = part(network.context.as_ref().expect("there is one"), &x[..2])
                        + part(&network.first, &[x[2 + i], x[5 + i]])
                        + part(&network.second, &[x[8 + j]]);
                    let expected = floats(network.rest.forward(Activation::Relu.apply(sum)));
                    let option = (i * 4 + j) * 2;
                    for level in 0..2 {
                        let got = values[row * 24 + option + level];
                        assert!((got - expected[level]).abs() < 1e-5, "{got} instead of {}", expected[level]);
                    }
                }
            }
        }
    }

    #[test]
    fn things_in_another_order_are_valued_alike() {
        let network = network(&PairQNetworkConfig { hidden: vec![8], ..PairQNetworkConfig::default() });
        // Loops compare these with the environments.
        let sizes = ActionValues::sizes(&network).expect("they are known");
        assert_eq!(sizes.obs, network.spec.width());
        assert_eq!(sizes.action, brasa_core::ActionSizes::Choices(vec![network.n_actions()]));
        let x = rows(2);
        let order = Tensor::<1, Int>::from_ints([0, 1, 4, 3, 2, 7, 6, 5, 8, 9, 10, 11], &brasa_test::device());
        let turned = floats(network.values(Obs::new(x.clone().select(1, order))));
        for (at, value) in floats(network.values(Obs::new(x))).iter().enumerate() {
            let (row, i, rest) = (at / 24, at % 24 / 8, at % 8);
            assert!((value - turned[row * 24 + (2 - i) * 8 + rest]).abs() < 1e-6);
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let message = |config: PairQNetworkConfig, spec: PairSpec| {
            let rng = &mut ChaCha8Rng::seed_from_u64(0);
            PairQNetwork::new(&config, spec, &brasa_test::device(), rng).err().map(|error| error.to_string())
        };
        let none = PairQNetworkConfig { hidden: vec![], ..PairQNetworkConfig::default() };
        assert_eq!(message(none, SPEC).as_deref(), Some("`hidden` must have at least one layer, got none"));
        assert!(message(PairQNetworkConfig::default(), PairSpec { first_features: 0, ..SPEC }).is_some());
    }
}
