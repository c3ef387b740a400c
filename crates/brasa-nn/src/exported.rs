//! Networks as the lists of layers of `brasa-export`.

use brasa_core::export::{About, ExportedPolicy, Function, Layer, Output};
use burn::tensor::Tensor;

use crate::action_bounds::ActionBounds;
use crate::{ActionHead, Activation, Heads, Linear, Mlp, Recurrent, StackedLinear, StackedMlp};

/// The numbers of a parameter.
pub(crate) fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    // Waits for the device: once per exported policy.
    tensor.into_data().iter::<f32>().collect()
}

/// The activation in exported policies.
///
/// ```
/// use brasa_core::export::Function;
/// use brasa_nn::{Activation, exported_function};
///
/// assert_eq!(exported_function(Activation::Tanh), Function::Tanh);
/// ```
pub fn exported_function(activation: Activation) -> Function {
    match activation {
        Activation::Tanh => Function::Tanh,
        Activation::Relu => Function::Relu,
        Activation::Elu => Function::Elu,
    }
}

impl Mlp {
    /// The layers in exported policies.
    pub fn exported(&self) -> Vec<Layer> {
        let mut layers = Layers::default();
        layers.mlp(self);
        layers.list()
    }
}

/// Layers that are being collected.
#[derive(Default)]
pub(crate) struct Layers {
    /// The inputs of the first linear layer.
    inputs: Option<usize>,
    list: Vec<Layer>,
}

impl Layers {
    /// Layers of observations of `inputs` numbers.
    pub(crate) fn of(inputs: usize, list: Vec<Layer>) -> Self {
        Self { inputs: Some(inputs), list }
    }

    pub(crate) fn push(&mut self, layer: Layer) {
        self.list.push(layer);
    }

    pub(crate) fn list(self) -> Vec<Layer> {
        self.list
    }

    pub(crate) fn linear(&mut self, linear: &Linear) {
        self.inputs.get_or_insert(linear.inputs());
        let (weight, bias) = linear.numbers();
        self.push(Layer::linear(weight, bias));
    }

    pub(crate) fn mlp(&mut self, mlp: &Mlp) {
        for layer in mlp.hidden() {
            self.linear(layer);
            self.push(Layer::Activation(exported_function(mlp.activation())));
        }
        mlp.output().into_iter().for_each(|layer| self.linear(layer));
    }

    pub(crate) fn recurrent(&mut self, layer: &Recurrent) {
        self.inputs.get_or_insert(layer.inputs());
        self.push(Layer::Memory(layer.exported()));
    }

    pub(crate) fn stacked_linear(&mut self, linear: &StackedLinear) {
        self.inputs.get_or_insert(linear.inputs());
        let (outputs, weight, bias) = linear.numbers();
        self.push(Layer::Linear { outputs, weight, bias });
    }

    pub(crate) fn stacked_mlp(&mut self, mlp: &StackedMlp) {
        for layer in mlp.hidden() {
            self.stacked_linear(layer);
            self.push(Layer::Activation(exported_function(mlp.activation())));
        }
        mlp.output().into_iter().for_each(|layer| self.stacked_linear(layer));
    }

    /// From [-1, 1] to the bounds.
    pub(crate) fn scale(&mut self, bounds: &ActionBounds) {
        let (factor, offset) = bounds.factor_and_offset();
        self.push(Layer::Scale { factor, offset });
    }

    /// The head of an actor, with its actions in the form of the environment.
    pub(crate) fn head(mut self, head: &ActionHead) -> ExportedPolicy {
        self.linear(head.output());
        let output = self.actions(head.heads());
        self.policy(1, output)
    }

    /// From the outputs of an actor to actions of the environment.
    pub(crate) fn actions(&mut self, heads: &Heads) -> Output {
        match heads {
            Heads::Choice(heads) => Output::Choice { heads: heads.clone() },
            Heads::Real { low, high, squash: false } => {
                self.push(Layer::Clip { low: low.clone(), high: high.clone() });
                Output::Real
            }
            Heads::Real { low, high, squash: true } => {
                self.push(Layer::Activation(Function::Tanh));
                self.scale(&ActionBounds::between(low.clone(), high.clone()));
                Output::Real
            }
            Heads::Hybrid { heads, low, high } => {
                // Scores of choices have no bounds.
                let free = |bound: f32| vec![bound; heads.iter().sum()];
                let (low, high) =
                    ([free(f32::NEG_INFINITY), low.clone()].concat(), [free(f32::INFINITY), high.clone()].concat());
                self.push(Layer::Clip { low, high });
                Output::Both { heads: heads.clone() }
            }
        }
    }

    pub(crate) fn policy(self, n_agents: usize, output: Output) -> ExportedPolicy {
        let obs_width = self.inputs.expect("every network has a layer with weights");
        ExportedPolicy { obs_width, n_agents, masked: false, layers: self.list, output, about: About::default() }
    }

    /// A head for advantages and one for the value, `Q = V + A - mean(A)`, as one layer: the sum of linear functions is linear. `advantage`
    /// and `value` are weights and biases of equally many layers with `inputs` inputs.
    pub(crate) fn dueling(
        &mut self,
        inputs: usize,
        n_actions: usize,
        advantage: (Vec<f32>, Vec<f32>),
        value: (Vec<f32>, Vec<f32>),
    ) {
        self.inputs.get_or_insert(inputs);
        let (weight, bias) = advantage;
        let joined = |advantages: Vec<f32>, values: Vec<f32>| -> Vec<f32> {
            let rows = advantages.chunks_exact(n_actions).zip(values);
            rows.flat_map(|(row, value)| {
                let mean = row.iter().map(|x| f64::from(*x)).sum::<f64>() / n_actions as f64;
                row.iter().map(move |x| (f64::from(*x) - mean + f64::from(value)) as f32)
            })
            .collect()
        };
        let (weight, bias) = (joined(weight, value.0), joined(bias, value.1));
        self.push(Layer::Linear { outputs: n_actions, weight, bias });
    }

    /// The first layer takes the observation and the one-hot number of the agent: the weights of the latter are biases of each agent.
    pub(crate) fn with_agent_numbers(&mut self, n_agents: usize) {
        let Some(Layer::Linear { outputs, weight, bias }) = self.list.first_mut() else { return };
        let inputs = self.inputs.as_mut().expect("there is a linear layer");
        *inputs -= n_agents;
        let of_agents = weight.split_off(*inputs * *outputs);
        let own = of_agents.chunks_exact(*outputs);
        *bias = own.flat_map(|own| own.iter().zip(bias.iter()).map(|(own, bias)| own + bias)).collect();
    }
}
