//! Multi-layer perceptrons.

use brasa_kernels::HostMlp;
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand::Rng;

use crate::{Activation, Init, Linear, StackedLayerNorm, StackedLinear};

/// Shape of an MLP.
///
/// ```
/// use brasa_core::env::named_rng;
/// use brasa_nn::{Activation, Init, Mlp, MlpConfig};
/// use burn::tensor::Tensor;
///
/// let config = MlpConfig {
///     inputs: 4,
///     hidden: vec![32, 16],
///     outputs: None,
///     activation: Activation::Relu,
///     hidden_init: Init::FanIn,
///     output_init: Init::FanIn,
/// };
/// let (device, rng) = (brasa_device::open_named("cpu")?, &mut named_rng(0, "weights", 0));
/// // Without a last layer, the last hidden layer gives the results.
/// let body = Mlp::new(&config, &device, rng);
/// assert_eq!(body.forward(Tensor::zeros([8, 4], &device)).dims(), [8, 16]);
/// let network = Mlp::new(&MlpConfig { outputs: Some(2), ..config }, &device, rng);
/// assert_eq!(network.forward(Tensor::zeros([8, 4], &device)).dims(), [8, 2]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct MlpConfig {
    /// Width of the input.
    pub inputs: usize,
    /// Widths of the hidden layers; each is followed by the activation.
    pub hidden: Vec<usize>,
    /// Width of the last, linear layer; `None` for a body that ends with a hidden layer.
    pub outputs: Option<usize>,
    /// Activation of the hidden layers.
    pub activation: Activation,
    /// Initial weights of hidden layers.
    pub hidden_init: Init,
    /// Initial weights of the last layer.
    pub output_init: Init,
}

impl MlpConfig {
    /// Hidden layers of an actor-critic: orthogonal with gain sqrt(2), or PyTorch's default.
    pub(crate) fn body(inputs: usize, hidden: &[usize], activation: Activation, orthogonal: bool) -> Self {
        let hidden_init = if orthogonal { Init::Orthogonal(std::f64::consts::SQRT_2) } else { Init::FanIn };
        Self { inputs, hidden: hidden.to_vec(), outputs: None, activation, hidden_init, output_init: hidden_init }
    }
}

/// Linear layers with an activation after each hidden layer.
///
/// ```
/// use brasa_core::{env::named_rng, read_back};
/// use brasa_nn::{Activation, Init, Mlp, MlpConfig};
/// use burn::tensor::Tensor;
///
/// let (activation, init) = (Activation::Tanh, Init::Orthogonal(1.0));
/// let config =
///     MlpConfig { inputs: 2, hidden: vec![8], outputs: Some(3), activation, hidden_init: init, output_init: init };
/// let (device, rng) = (brasa_device::open_named("cpu")?, &mut named_rng(0, "weights", 0));
/// let mlp = Mlp::new(&config, &device, rng);
/// // Biases are 0 at first, so inputs of 0 give outputs of 0.
/// assert_eq!(read_back(mlp.forward(Tensor::zeros([1, 2], &device))), [0.0; 3]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Module, Debug)]
pub struct Mlp {
    hidden: Vec<Linear>,
    output: Option<Linear>,
    #[module(skip)]
    activation: Activation,
}

impl Mlp {
    /// An MLP with initial weights from `rng`.
    pub fn new(config: &MlpConfig, device: &Device, rng: &mut (impl Rng + ?Sized)) -> Self {
        let mut inputs = config.inputs;
        let mut hidden = Vec::with_capacity(config.hidden.len());
        for width in &config.hidden {
            hidden.push(Linear::new(inputs, *width, config.hidden_init, device, rng));
            inputs = *width;
        }
        let output = config.outputs.map(|outputs| Linear::new(inputs, outputs, config.output_init, device, rng));
        Self { hidden, output, activation: config.activation }
    }

    /// Numbers of an input; `head` is that of the layer behind, for an MLP without layers.
    pub(crate) fn inputs(&self, head: usize) -> usize {
        self.hidden.first().or(self.output.as_ref()).map_or(head, Linear::inputs)
    }

    /// The hidden layers.
    pub(crate) fn hidden(&self) -> &[Linear] {
        &self.hidden
    }

    /// The last layer.
    pub(crate) fn output(&self) -> Option<&Linear> {
        self.output.as_ref()
    }

    /// The activation of the hidden layers.
    pub(crate) fn activation(&self) -> Activation {
        self.activation
    }

    /// The MLP on `x`.
    ///
    /// # Shapes
    /// - `x`: `[n_rows, inputs]`
    /// - output: `[n_rows, outputs]`, or the width of the last hidden layer
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.forward_before(x, None)
    }

    /// The same with a linear layer behind it.
    pub(crate) fn forward_before(&self, x: Tensor<2>, head: Option<&Linear>) -> Tensor<2> {
        let hidden = self.hidden.iter().map(|layer| (layer, Some(self.activation)));
        Linear::chain(x, hidden.chain(self.output.iter().chain(head).map(|layer| (layer, None))))
    }

    /// The layers in the memory of the CPU, and those of `heads`; `None` elsewhere.
    pub(crate) fn on_host<'a>(&'a self, heads: impl IntoIterator<Item = &'a Linear>) -> Option<HostMlp> {
        let mut mlp = HostMlp::default();
        for layer in &self.hidden {
            layer.push_to(&mut mlp, Some(self.activation))?;
        }
        for layer in self.output.iter().chain(heads) {
            layer.push_to(&mut mlp, None)?;
        }
        Some(mlp)
    }
}

/// Several parallel MLPs with their own weights, computed as one batched network: twin critics, ensembles, agents.
///
/// ```
/// use brasa_core::env::named_rng;
/// use brasa_nn::{Activation, Init, MlpConfig, StackedMlp};
/// use burn::tensor::Tensor;
///
/// let (activation, init) = (Activation::Relu, Init::FanIn);
/// let config =
///     MlpConfig { inputs: 2, hidden: vec![8], outputs: Some(1), activation, hidden_init: init, output_init: init };
/// let (device, rng) = (brasa_device::open_named("cpu")?, &mut named_rng(0, "weights", 0));
/// // Five networks on one input.
/// let ensemble = StackedMlp::new(5, &config, &device, rng);
/// assert_eq!(ensemble.forward(Tensor::zeros([1, 10, 2], &device)).dims(), [5, 10, 1]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Module, Debug)]
pub struct StackedMlp {
    hidden: Vec<StackedLinear>,
    output: Option<StackedLinear>,
    #[module(skip)]
    activation: Activation,
}

impl StackedMlp {
    /// `n` MLPs of the same shape with initial weights from `rng`.
    pub fn new(n: usize, config: &MlpConfig, device: &Device, rng: &mut (impl Rng + ?Sized)) -> Self {
        let mut inputs = config.inputs;
        let mut hidden = Vec::with_capacity(config.hidden.len());
        for width in &config.hidden {
            hidden.push(StackedLinear::new(n, inputs, *width, config.hidden_init, device, rng));
            inputs = *width;
        }
        let output =
            config.outputs.map(|outputs| StackedLinear::new(n, inputs, outputs, config.output_init, device, rng));
        Self { hidden, output, activation: config.activation }
    }

    /// Whether operations with the weights are recorded on the tape.
    pub(crate) fn is_recorded(&self) -> bool {
        self.output.iter().chain(&self.hidden).any(StackedLinear::is_recorded)
    }

    /// The hidden layers.
    pub(crate) fn hidden(&self) -> &[StackedLinear] {
        &self.hidden
    }

    /// The last layer.
    pub(crate) fn output(&self) -> Option<&StackedLinear> {
        self.output.as_ref()
    }

    /// The activation of the hidden layers.
    pub(crate) fn activation(&self) -> Activation {
        self.activation
    }

    /// Every MLP on its part of `x`.
    ///
    /// # Shapes
    /// - `x`: `[n, n_rows, inputs]`, or `[1, n_rows, inputs]` if all have the same input
    /// - output: `[n, n_rows, outputs]`, or the width of the last hidden layer
    pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        self.forward_normalized(x, &[])
    }

    /// The same with a normalization before the activation of each hidden layer, unless there are no `norms`.
    pub(crate) fn forward_normalized(&self, mut x: Tensor<3>, norms: &[StackedLayerNorm]) -> Tensor<3> {
        if norms.is_empty() {
            let hidden = self.hidden.iter().map(|layer| (layer, Some(self.activation)));
            return StackedLinear::chain(x, hidden.chain(self.output.iter().map(|layer| (layer, None))));
        }
        for (layer, norm) in self.hidden.iter().zip(norms) {
            x = norm.forward(layer.forward(x, None), Some(self.activation));
        }
        match &self.output {
            Some(layer) => layer.forward(x, None),
            None => x,
        }
    }

    /// The layers in the memory of the CPU, the hidden ones with `norms` unless there are none; `None` elsewhere.
    pub(crate) fn on_host(&self, norms: &[StackedLayerNorm]) -> Option<HostMlp> {
        let mut mlp = HostMlp::default();
        for (i, layer) in self.hidden.iter().enumerate() {
            layer.push_to(&mut mlp, Some(self.activation))?;
            if let Some(norm) = norms.get(i) {
                norm.push_to(&mut mlp)?;
            }
        }
        if let Some(layer) = &self.output {
            layer.push_to(&mut mlp, None)?;
        }
        Some(mlp)
    }
}
