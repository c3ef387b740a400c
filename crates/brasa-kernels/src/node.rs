//! A function of several tensors as one autodiff node.

use std::fmt::Debug;

use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend};

/// The gradients of all inputs, from what was kept, the inputs that need one, and the gradient of the result.
type Gradient<B, S, const N: usize> = fn(S, [bool; N], FloatTensor<B>) -> [Option<FloatTensor<B>>; N];

struct Node<B: Backend, S, const N: usize>(Gradient<B, S, N>);

impl<B: Backend, S, const N: usize> Debug for Node<B, S, N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Node")
    }
}

impl<B: Backend, S: Clone + Send + Debug + 'static, const N: usize> Backward<B, N> for Node<B, S, N> {
    type State = S;

    fn backward(self, ops: Ops<S, N>, grads: &mut Gradients, _checkpointer: &mut Checkpointer) {
        let grad = grads.consume::<B>(&ops.node);
        let needed = ops.parents.each_ref().map(Option::is_some);
        for (node, grad) in ops.parents.into_iter().zip((self.0)(ops.state, needed, grad)) {
            if let (Some(node), Some(grad)) = (node, grad) {
                grads.register::<B>(node.id, grad);
            }
        }
    }
}

/// The result of `forward`, and what else it returns. `forward` is told whether a gradient will be asked for, and then returns what `backward`
/// needs. Second derivatives are not tracked.
pub(crate) fn node<B, C, S, T, const N: usize>(
    inputs: [FloatTensor<Autodiff<B, C>>; N],
    forward: impl FnOnce([FloatTensor<B>; N], bool) -> (FloatTensor<B>, Option<S>, T),
    backward: Gradient<B, S, N>,
) -> (FloatTensor<Autodiff<B, C>>, T)
where
    B: Backend,
    C: CheckpointStrategy,
    S: Clone + Send + Debug + 'static,
{
    let nodes = inputs.each_ref().map(|input| input.node());
    let prepared = Node(backward).prepare::<C>(nodes).compute_bound().stateful();
    let inputs = inputs.map(|input| input.into_primitive());
    match prepared {
        OpsKind::Tracked(prepared) => {
            let (y, kept, rest) = forward(inputs, true);
            (prepared.finish(kept.expect("a gradient is asked for"), y), rest)
        }
        OpsKind::UnTracked(prepared) => {
            let (y, _, rest) = forward(inputs, false);
            (prepared.finish(y), rest)
        }
    }
}

/// [`node`] of an elementwise function whose derivative follows from its result.
pub(crate) fn elementwise_node<B: Backend, C: CheckpointStrategy>(
    x: FloatTensor<Autodiff<B, C>>,
    forward: fn(FloatTensor<B>) -> FloatTensor<B>,
    backward: Gradient<B, FloatTensor<B>, 1>,
) -> FloatTensor<Autodiff<B, C>> {
    let forward = |[x]: [FloatTensor<B>; 1], is_tracked: bool| {
        let y = forward(x);
        (y.clone(), is_tracked.then_some(y), ())
    };
    node::<B, C, _, _, 1>([x], forward, backward).0
}
