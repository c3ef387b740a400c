//! Gradients of large minibatches on several cores.

use brasa_core::analytic::ByResults;
use brasa_core::{ActorCritic, Evaluation, Rows};
use brasa_device::{Precision, autocast, precision};
use brasa_kernels::{HostTensor, runs_on_host, with_jacobian};
use burn::module::Module;
use burn::tensor::Tensor;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use crate::trainable::flat_gradient;

/// The gradient of a loss of [`ActorCritic::evaluate`] on the CPU, for an [`ActorCritic::gradient`] of a network that records on the tape:
/// `n_shards` parts of the rows, each with a tape of its own, side by side on the threads of rayon.
///
/// The loss is computed once, of all rows. Gradients are added in the order of the parts, so that the number of threads does not change
/// them. `None` for a single part, where another device computes, and in 16 bits whose losses are scaled.
///
/// # Panics
/// If `network` does not come from a network with gradients by [`Module::valid`]: its parts record on the tape.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/nets.inc")); }
/// # use shown::*;
/// use brasa_core::ActorCritic;
/// use brasa_nn::gradient_in_shards;
/// use burn::{module::Module, tensor::Tensor};
///
/// let device = brasa_device::open_named("cpu")?;
/// let (network, obs) = (actor_critic(&device.clone().autodiff())?.valid(), observed(&device));
/// let action = Tensor::from_floats([[0.0], [2.0]], &device);
/// // The loss is the mean log-probability.
/// let by = &mut |[log_prob, ..]: [&[f32]; 3]| {
///     let n = log_prob.len();
///     Some([vec![1.0 / n as f32; n], Vec::new(), vec![0.0; n]])
/// };
/// let parts = gradient_in_shards(&network, &obs, &action, 2, by).expect("the device is the CPU");
/// let whole = network.gradient(&obs, &action, by).expect("the device is the CPU");
/// assert!(parts.iter().zip(whole).all(|(part, whole)| (part - whole).abs() < 1e-5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn gradient_in_shards<M>(
    network: &M,
    obs: &M::Obs,
    action: &M::Action,
    n_shards: usize,
    by: &mut ByResults<'_, 3>,
) -> Option<Vec<f32>>
where
    M: ActorCritic + Module,
    M::Obs: Send,
    M::Action: Send,
{
    let n_rows = action.n_rows();
    let per_shard = n_rows.div_ceil(n_shards.max(1));
    let device = network.devices().into_iter().next()?;
    let format = precision();
    if per_shard >= n_rows || !runs_on_host(&device) || format == Precision::F16 {
        return None;
    }
    let part = |first: usize| {
        let rows = first..(first + per_shard).min(n_rows);
        (network.clone(), obs.range(rows.clone()), action.range(rows))
    };
    let parts: Vec<_> = (0..n_rows).step_by(per_shard).map(part).collect();
    let evaluate = |(network, obs, action): (M, M::Obs, M::Action)| {
        let network = network.train();
        let now = autocast(format, || network.evaluate(obs, action));
        (network, now)
    };
    let evaluated: Vec<(M, Evaluation)> = parts.into_par_iter().map(evaluate).collect();

    let column = |of: fn(&Evaluation) -> &Tensor<1>| -> Option<Vec<f32>> {
        let mut numbers = Vec::with_capacity(n_rows);
        for (_, now) in &evaluated {
            numbers.extend_from_slice(&HostTensor::of(of(now))?);
        }
        Some(numbers)
    };
    let (log_prob, entropy) = (column(|now| &now.log_prob)?, column(|now| &now.entropy)?);
    let value = column(|now| &now.value)?;
    let mut derivatives = by([&log_prob, &entropy, &value])?;
    // Empty for a result on which the loss does not depend.
    derivatives.iter_mut().for_each(|by| by.resize(n_rows, 0.0));
    let [by_log_prob, by_entropy, by_value] = derivatives;

    let backward = |(i, (network, now)): (usize, (M, Evaluation))| {
        let rows = i * per_shard..((i + 1) * per_shard).min(n_rows);
        // Only the derivatives of a recorded loss are used, not its value.
        let of_part = HostTensor::tensor(vec![0.0], [1]);
        let jacobian = |by: &[f32]| HostTensor::tensor(by[rows.clone()].to_vec(), [1, rows.len()]);
        let of_part = with_jacobian(of_part, now.log_prob, jacobian(&by_log_prob));
        let of_part = with_jacobian(of_part, now.value, jacobian(&by_value));
        let of_part = with_jacobian(of_part, now.entropy, jacobian(&by_entropy));
        flat_gradient(&network, of_part.backward())
    };
    let evaluated: Vec<_> = evaluated.into_iter().enumerate().collect();
    let gradients: Vec<Vec<f32>> = evaluated.into_par_iter().map(backward).collect();
    gradients.into_iter().reduce(|mut sum, gradient| {
        sum.iter_mut().zip(gradient).for_each(|(sum, x)| *sum += x);
        sum
    })
}
