//! Multi-layer perceptrons.

use burn::module::Module;
use burn::tensor::{Device, Tensor, activation};
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::{Init, Linear};

/// What stands between the layers of a perceptron.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// Smooth and bounded; the usual choice for on-policy control.
    #[default]
    Tanh,
    /// Cheap; the usual choice for off-policy learning.
    Relu,
}

/// Shape of a perceptron.
#[derive(Debug, Clone, PartialEq)]
pub struct MlpConfig {
    /// Width of the input.
    pub inputs: usize,
    /// Widths of the hidden layers; each is followed by the activation.
    pub hidden: Vec<usize>,
    /// Width of the last, linear layer; `None` for a body that ends with a hidden layer.
    pub outputs: Option<usize>,
    /// Between layers.
    pub activation: Activation,
    /// Initial weights of hidden layers.
    pub hidden_init: Init,
    /// Initial weights of the last layer.
    pub output_init: Init,
}

/// Linear layers with an activation after each but the last.
#[derive(Module, Debug)]
pub struct Mlp {
    hidden: Vec<Linear>,
    output: Option<Linear>,
    #[module(skip)]
    activation: Activation,
}

impl Mlp {
    /// A perceptron with weights drawn from `rng`.
    pub fn new(config: &MlpConfig, device: &Device, rng: &mut impl Rng) -> Self {
        let mut inputs = config.inputs;
        let mut hidden = Vec::with_capacity(config.hidden.len());
        for width in &config.hidden {
            hidden.push(Linear::new(inputs, *width, config.hidden_init, device, rng));
            inputs = *width;
        }
        let output = config.outputs.map(|outputs| Linear::new(inputs, outputs, config.output_init, device, rng));
        Self { hidden, output, activation: config.activation }
    }

    /// The perceptron on `x`.
    ///
    /// # Shapes
    /// - `x`: `[n_rows, inputs]`
    /// - output: `[n_rows, outputs]`, or the width of the last hidden layer
    pub fn forward(&self, mut x: Tensor<2>) -> Tensor<2> {
        for layer in &self.hidden {
            x = match self.activation {
                Activation::Tanh => layer.forward_tanh(x),
                Activation::Relu => activation::relu(layer.forward(x)),
            };
        }
        match &self.output {
            Some(layer) => layer.forward(x),
            None => x,
        }
    }
}
