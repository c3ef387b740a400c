//! Attention on the CPU: one pass per destination, forward and backward.

mod backward;
mod forward;
mod lanes;
mod problem;

use burn::backend::Flex;
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::tensor::TensorData;

use self::backward::{Backward, Grads};
use self::forward::Forward;
use self::problem::{Problem, floats};
use super::{GraphAttentionBackward, GraphAttentionOps, Kept};

impl GraphAttentionOps for Flex {
    fn brasa_graph_attention(
        projected: FloatTensor<Self>,
        attention: FloatTensor<Self>,
        edge: FloatTensor<Self>,
        with_edge: bool,
        ids: IntTensor<Self>,
        edge_ids: IntTensor<Self>,
        starts: IntTensor<Self>,
        sources: IntTensor<Self>,
        slope: f32,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let (projected, attention) = (projected.to_contiguous(), attention.to_contiguous());
        let edge = edge.to_contiguous();
        let problem = Problem::new(
            &projected,
            &attention,
            with_edge.then_some(&edge),
            [&ids, &edge_ids, &starts, &sources],
            slope,
        );
        let shape = problem.shape;
        let mut out = vec![0.0f32; shape.rows * shape.nodes * shape.hidden];
        let mut weights = vec![0.0f32; shape.rows * shape.edges * shape.heads];
        let task = Forward { problem: &problem, out: &mut out, weights: &mut weights };
        // Compiled once per instruction set and selected at run time.
        pulp::Arch::new().dispatch(task);
        let tensor = |values, dims: [usize; 3]| FlexTensor::from_data(TensorData::new(values, dims));
        let out = tensor(out, [shape.rows, shape.nodes, shape.hidden]);
        (out, tensor(weights, [shape.rows, shape.edges, shape.heads]))
    }
}

impl GraphAttentionBackward for Flex {
    fn graph_attention_backward(kept: Kept<Self>, grad: FloatTensor<Self>) -> [FloatTensor<Self>; 3] {
        let Kept { inputs: [projected, attention, edge], with_edge, tables, slope, weights } = kept;
        let [ids, edge_ids, starts, sources] = tables;
        let (projected, attention) = (projected.to_contiguous(), attention.to_contiguous());
        let edge = edge.to_contiguous();
        let (weights, grad) = (weights.to_contiguous(), grad.to_contiguous());
        let problem = Problem::new(
            &projected,
            &attention,
            with_edge.then_some(&edge),
            [&ids, &edge_ids, &starts, &sources],
            slope,
        );
        let shape = problem.shape;
        let mut grads = Grads {
            projected: vec![0.0; shape.rows * shape.nodes * shape.width],
            attention: vec![0.0; shape.vectors * shape.hidden],
            edge: vec![0.0; edge.layout().num_elements()],
        };
        let (weights, grad) = (floats(&weights), floats(&grad));
        pulp::Arch::new().dispatch(Backward { problem: &problem, weights, grad, grads: &mut grads });
        let like =
            |values, of: &FlexTensor| FlexTensor::from_data(TensorData::new(values, of.layout().shape().to_vec()));
        [like(grads.projected, &projected), like(grads.attention, &attention), like(grads.edge, &edge)]
    }
}
