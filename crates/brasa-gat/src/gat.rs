//! Graph attention.

use brasa_core::env::field;
use brasa_kernels::graph_attention;
use brasa_nn::{Init, affine, leaf};
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::GatError;
use crate::graphs::GraphBatch;

/// Scoring of neighbors.
///
/// ```
/// use brasa_gat::{GatConfig, Version};
///
/// // Ends with one weight matrix exist in version 2 only.
/// let config = |version| GatConfig { share_weights: true, ..GatConfig::new(version, 3, 8, 4) };
/// assert!(config(Version::V2).validate().is_ok());
/// assert!(config(Version::V1).validate().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Version {
    /// The sum of a score of each end: the ranking of neighbors is the same for every node (static attention).
    V1,
    /// A joint score of both ends, with the same cost per edge and a projection of twice the width.
    #[default]
    V2,
}

/// Shape of a [`Gat`] layer.
///
/// ```
/// use brasa_gat::{GatConfig, Version};
///
/// let config = GatConfig::new(Version::V2, 3, 8, 4);
/// // Four heads of 8, one after the other or as a mean.
/// assert_eq!(config.width(), 32);
/// assert_eq!(GatConfig { concat: false, ..config.clone() }.width(), 8);
/// let error = GatConfig { heads: 0, ..config }.validate().unwrap_err();
/// assert_eq!(error.to_string(), "`heads` must be at least 1, got 0");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct GatConfig {
    /// Scoring of neighbors.
    pub version: Version,
    /// Width of the input.
    pub inputs: usize,
    /// Width of the result per head.
    pub outputs: usize,
    /// Number of heads.
    pub heads: usize,
    /// Whether heads are concatenated; otherwise their mean is the result.
    pub concat: bool,
    /// Features per edge, 0 for none.
    pub edge_features: usize,
    /// Whether there are biases: of the result, and with version 2 of the projections.
    pub bias: bool,
    /// Slope of the leaky ReLU below 0, in [0, 1). Both papers: 0.2.
    pub negative_slope: f32,
    /// With version 2, whether `W_l` and `W_r` are the same.
    pub share_weights: bool,
}

impl GatConfig {
    /// Concatenated heads, with biases, without edge features.
    pub fn new(version: Version, inputs: usize, outputs: usize, heads: usize) -> Self {
        let (concat, edge_features, bias, negative_slope, share_weights) = (true, 0, true, 0.2, false);
        Self { version, inputs, outputs, heads, concat, edge_features, bias, negative_slope, share_weights }
    }

    /// Width of the result.
    pub fn width(&self) -> usize {
        if self.concat { self.heads * self.outputs } else { self.outputs }
    }

    /// Checks every field.
    ///
    /// # Errors
    /// [`GatError::Field`] with the first that is outside its rule.
    pub fn validate(&self) -> Result<(), GatError> {
        for (field, value) in [("inputs", self.inputs), ("outputs", self.outputs), ("heads", self.heads)] {
            field::at_least_one(field, value as u64)?;
        }
        let slope = self.negative_slope;
        field::rule((0.0..1.0).contains(&slope), "negative_slope", "must be in [0, 1)", slope)?;
        let holds = !self.share_weights || self.version == Version::V2;
        Ok(field::rule(holds, "share_weights", "is for version v2, whose ends have weights of their own", "true")?)
    }
}

/// One layer of graph attention.
///
/// Graph attention, versions 1 and 2.
///
/// With `W x` split into heads, edges from `j` to `i` and `alpha_ij = softmax over j of e_ij`:
///
/// - version 1 (Velickovic et al. 2018, equations 1 to 6): `e_ij = leaky(a_s . W x_j + a_d . W x_i + a_e . W_e t_ij)`;
/// - version 2 (Brody et al. 2021, equation 7): `e_ij = a . leaky(W_l x_j + W_r x_i + W_e t_ij)`, where `W_l x` are the values.
///
/// The result is `sum_j alpha_ij W x_j` per head, concatenated or as a mean, plus a bias. Every node has a self-loop
/// with the mean of the features of the edges that end in it, as in PyTorch Geometric. Deviation from both papers: no
/// dropout, because its noise would change the probabilities of stored actions between collection and update.
///
/// ```
/// use brasa_core::{env::named_rng, read_back};
/// use brasa_gat::{Gat, GatConfig, Graph, Graphs, Version};
/// use burn::tensor::Tensor;
///
/// let (device, rng) = (brasa_device::open_named("cpu")?, &mut named_rng(0, "weights", 0));
/// let graphs = Graphs::new(vec![Graph::new(3, vec![[0, 1], [1, 2]])?], &device)?;
/// let layer = Gat::new(&GatConfig::new(Version::V2, 5, 8, 4), &device, rng)?;
/// let batch = graphs.batch(Tensor::from_ints([0, 0], &device));
/// let (out, weights) = layer.forward_with_weights(Tensor::ones([2, 3, 5], &device), &batch);
/// assert_eq!(out.dims(), [2, 3, 32]);
/// // The weights of the edges that end in a node sum to 1: one edge in node 0, two in nodes 1 and 2.
/// assert!((read_back(weights.sum())[0] - 2.0 * 3.0 * 4.0).abs() < 1e-4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Module, Debug)]
pub struct Gat {
    /// `[inputs, heads * outputs]`; with version 2 and separate weights, those of destinations follow.
    pub(crate) weight: Param<Tensor<2>>,
    pub(crate) projection_bias: Option<Param<Tensor<1>>>,
    /// `[2, heads, outputs]` of sources and destinations for version 1, `[1, heads, outputs]` for version 2.
    pub(crate) attention: Param<Tensor<3>>,
    /// `[edge_features, heads * outputs]`.
    pub(crate) edge_weight: Option<Param<Tensor<2>>>,
    /// `[1, heads, outputs]`, version 1 only.
    pub(crate) edge_attention: Option<Param<Tensor<3>>>,
    pub(crate) bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    pub(crate) config: GatConfig,
}

impl Gat {
    /// A layer with initial weights from `rng` as in PyTorch Geometric (Glorot and Bengio 2010), and biases of 0.
    ///
    /// # Errors
    /// [`GatError`] if a setting is invalid.
    pub fn new(config: &GatConfig, device: &Device, rng: &mut (impl Rng + ?Sized)) -> Result<Self, GatError> {
        config.validate()?;
        let hidden = config.heads * config.outputs;
        let mut matrix = |inputs: usize, outputs: usize| Init::Glorot.draw(inputs, outputs, rng).0;
        let tensor = |values: Vec<f32>, dims: [usize; 2]| Tensor::<2>::from_data(TensorData::new(values, dims), device);
        let mut parts = vec![tensor(matrix(config.inputs, hidden), [config.inputs, hidden])];
        if config.version == Version::V2 && !config.share_weights {
            parts.push(tensor(matrix(config.inputs, hidden), [config.inputs, hidden]));
        }
        let columns = parts.len() * hidden;
        let mut vectors = |n: usize| {
            let parts = (0..n).flat_map(|_| matrix(config.heads, config.outputs)).collect();
            leaf(tensor(parts, [n * config.heads, config.outputs]).reshape([n, config.heads, config.outputs]))
        };
        let attention = vectors(if config.version == Version::V1 { 2 } else { 1 });
        let with_edges = config.edge_features > 0;
        let edge_attention = (with_edges && config.version == Version::V1).then(|| vectors(1));
        let edge_weight =
            with_edges.then(|| leaf(tensor(matrix(config.edge_features, hidden), [config.edge_features, hidden])));
        let zeros = |n: usize| leaf(Tensor::<1>::zeros([n], device));
        Ok(Self {
            weight: leaf(Tensor::cat(parts, 1)),
            projection_bias: (config.bias && config.version == Version::V2).then(|| zeros(columns)),
            attention,
            edge_weight,
            edge_attention,
            bias: config.bias.then(|| zeros(config.width())),
            config: config.clone(),
        })
    }

    /// The shape of the layer.
    pub fn config(&self) -> &GatConfig {
        &self.config
    }

    /// The layer on node features.
    ///
    /// # Shapes
    /// - `x`: `[n_rows, n_nodes, inputs]`
    /// - output: `[n_rows, n_nodes, heads * outputs]`, or `[n_rows, n_nodes, outputs]` for a mean
    ///
    /// # Panics
    /// If the numbers of rows, nodes or edge features of `graphs` do not fit.
    pub fn forward(&self, x: Tensor<3>, graphs: &GraphBatch) -> Tensor<3> {
        self.forward_with_weights(x, graphs).0
    }

    /// The same, and the attention weights `[n_rows, n_edges, heads]` in the order of
    /// [`Graphs::edges`](crate::Graphs::edges), detached.
    pub fn forward_with_weights(&self, x: Tensor<3>, graphs: &GraphBatch) -> (Tensor<3>, Tensor<3>) {
        let [n_rows, n_nodes, inputs] = x.dims();
        assert_eq!([n_rows, n_nodes], [graphs.ids().dims()[0], graphs.n_nodes()], "rows and nodes of the graphs");
        let GatConfig { heads, outputs, negative_slope, .. } = self.config;
        let projected = self.project(x.reshape([n_rows * n_nodes, inputs]));
        let width = projected.dims()[1];
        let projected = projected.reshape([n_rows, n_nodes, width]);
        let attention = self.attention.val();
        let edge = self.edge_term(graphs);
        let (out, weights) = graph_attention(projected, attention, edge, graphs.edges(), negative_slope);
        let out = match self.config.concat {
            true => out,
            false => out.reshape([n_rows, n_nodes, heads, outputs]).mean_dim(2).squeeze_dim::<3>(2),
        };
        let out = match &self.bias {
            Some(bias) => out + bias.val().unsqueeze(),
            None => out,
        };
        (out, weights)
    }

    fn project(&self, x: Tensor<2>) -> Tensor<2> {
        affine(x, self.weight.val(), self.projection_bias.as_ref().map(Param::val), None)
    }

    /// The edge term of scores: `[n_lines, n_edges, heads]` for version 1, `[n_lines, n_edges, heads * outputs]` for
    /// version 2.
    fn edge_term(&self, graphs: &GraphBatch) -> Option<Tensor<3>> {
        let mut weight = self.edge_weight.as_ref()?.val();
        let features = graphs.edge_features();
        let features = features.unwrap_or_else(|| panic!("the layer needs {} features per edge", weight.dims()[0]));
        let [n_lines, n_edges, width] = features.dims();
        if let Some(attention) = &self.edge_attention {
            // a . (W t) = (W a) . t: one number per head instead of all channels.
            let by_head = weight.reshape([width, self.config.heads, self.config.outputs]);
            weight = (by_head * attention.val()).sum_dim(2).squeeze_dim::<2>(2);
        }
        let columns = weight.dims()[1];
        let term = affine(features.reshape([n_lines * n_edges, width]), weight, None, None);
        Some(term.reshape([n_lines, n_edges, columns]))
    }
}
