//! Independent normal distributions.

use brasa_kernels::{HostTensor, RowInputs, row_rule};
use brasa_number::{HALF_LN_2_PI, Normal, NormalDraw};
use burn::tensor::Tensor;

/// `mean + exp(log_std) noise` and its log-density `[n_rows]`, without gradients; the mean without noise.
///
/// # Shapes
/// - `mean`, `log_std`: as for [`evaluate`]
/// - `noise`: `[n_rows, n]`
///
/// ```
/// use brasa_core::read_back;
/// use brasa_nn::distribution::gaussian;
/// use burn::tensor::Tensor;
///
/// // The means are 1 and 2, and the deviations are 1.
/// let device = brasa_device::open_named("cpu")?;
/// let mean = Tensor::from_floats([[1.0, 2.0]], &device);
/// let noise = Tensor::from_floats([[0.5, -0.5]], &device);
/// let (value, log_prob) = gaussian::draw(mean, Tensor::zeros([1, 2], &device), Some(noise));
/// assert_eq!(read_back(value), [1.5, 1.5]);
/// assert!((read_back(log_prob)[0] - (-0.25 - 2.0 * 0.918_938_5)).abs() < 1e-6);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn draw(mean: Tensor<2>, log_std: Tensor<2>, noise: Option<Tensor<2>>) -> (Tensor<2>, Tensor<1>) {
    let inputs = (HostTensor::of(&mean), HostTensor::of(&log_std), noise.as_ref().map(HostTensor::of));
    let (Some(means), Some(log_stds), None | Some(Some(_))) = &inputs else {
        let action = match noise {
            Some(noise) => mean.clone() + log_std.clone().exp() * noise,
            None => mean.clone(),
        };
        return (action.clone(), evaluate(mean, log_std, action, false).0);
    };
    let [n_rows, n] = mean.dims();
    let Some(Some(noises)) = &inputs.2 else {
        // The density of the mean has no term of the noise.
        let log_prob = |row: usize| -half_log_2_pi(n) - of_row(log_stds, row, n).iter().sum::<f32>();
        return (mean, HostTensor::tensor((0..n_rows).map(log_prob).collect(), [n_rows]));
    };
    let (mut actions, mut log_probs) = (Vec::with_capacity(n_rows * n), Vec::with_capacity(n_rows));
    draw_rows(means, log_stds, noises, n, &mut actions, &mut log_probs);
    (HostTensor::tensor(actions, [n_rows, n]), HostTensor::tensor(log_probs, [n_rows]))
}

/// [`draw`] of `n` dimensions in the memory of the CPU: appends to `actions` and `log_probs`.
///
/// ```
/// use brasa_nn::distribution::gaussian;
///
/// // Two rows of one number. One deviation belongs to both rows.
/// let (mut values, mut log_probs) = (Vec::new(), Vec::new());
/// gaussian::draw_rows(&[1.0, 2.0], &[0.0], &[0.5, 0.0], 1, &mut values, &mut log_probs);
/// assert_eq!(values, [1.5, 2.0]);
/// assert!((log_probs[1] + 0.918_938_5).abs() < 1e-6);
/// ```
pub fn draw_rows(
    means: &[f32],
    log_stds: &[f32],
    noises: &[f32],
    n: usize,
    actions: &mut Vec<f32>,
    log_probs: &mut Vec<f32>,
) {
    for (row, (means, noises)) in means.chunks_exact(n).zip(noises.chunks_exact(n)).enumerate() {
        let mut half = half_log_2_pi(n);
        for ((mean, noise), log_std) in means.iter().zip(noises).zip(of_row(log_stds, row, n)) {
            actions.push(mean + log_std.exp() * noise);
            half += 0.5 * noise * noise + log_std;
        }
        log_probs.push(-half);
    }
}

/// Log-densities of `value` and entropies, `[n_rows]` each.
///
/// # Shapes
/// - `mean`: `[n_rows, n]`
/// - `log_std`: `[n_rows, n]` or `[1, n]`
/// - `value`: `[n_rows, n]`, before tanh, without gradients: it cannot be recovered from `tanh(u)` near the bounds
///
/// ```
/// use brasa_core::read_back;
/// use brasa_nn::distribution::gaussian;
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let zeros = || Tensor::<2>::zeros([1, 1], &device);
/// let (log_prob, entropy) = gaussian::evaluate(zeros(), zeros(), zeros(), false);
/// assert!((read_back(log_prob)[0] + 0.918_938_5).abs() < 1e-6);
/// assert!((read_back(entropy)[0] - 1.418_938_5).abs() < 1e-6);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn evaluate(mean: Tensor<2>, log_std: Tensor<2>, value: Tensor<2>, squash: bool) -> (Tensor<1>, Tensor<1>) {
    let rows = RowInputs { results: [&mean, &log_std], data: Some(&value), taken: None };
    let (_, [log_prob, entropy]) = row_rule(Normal { squash }, &rows);
    (log_prob, entropy)
}

/// A differentiable sample `tanh(mean + exp(log_std) noise)`, `[n_rows, n]`, and its log-density, `[n_rows]`.
///
/// # Shapes
/// - `mean`, `log_std`: `[n_rows, n]`
/// - `noise`: `[n_rows, n]`, without gradients
///
/// ```
/// use brasa_core::read_back;
/// use brasa_nn::distribution::gaussian;
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let [mean, log_std, noise] = [0.25, 0.0, 0.5].map(|x| Tensor::<2>::from_floats([[x]], &device));
/// let (action, _log_prob) = gaussian::squashed_sample(mean, log_std, noise);
/// assert!((read_back(action)[0] - 0.75f32.tanh()).abs() < 1e-6);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn squashed_sample(mean: Tensor<2>, log_std: Tensor<2>, noise: Tensor<2>) -> (Tensor<2>, Tensor<1>) {
    squashed_sample_within(mean, log_std, None, noise)
}

/// The same for logarithms that are cut to a range.
pub(crate) fn squashed_sample_within(
    mean: Tensor<2>,
    log_std: Tensor<2>,
    log_std_range: Option<(f64, f64)>,
    noise: Tensor<2>,
) -> (Tensor<2>, Tensor<1>) {
    let rows = RowInputs { results: [&mean, &log_std], data: Some(&noise), taken: None };
    let ([action], [log_prob]) = row_rule(NormalDraw { squash: true, log_std_range }, &rows);
    (action, log_prob)
}

fn half_log_2_pi(n: usize) -> f32 {
    HALF_LN_2_PI as f32 * n as f32
}

/// The numbers of a row, or those of all rows.
fn of_row(numbers: &[f32], row: usize, n: usize) -> &[f32] {
    let at = if numbers.len() == n { 0 } else { row * n };
    &numbers[at..at + n]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The log-density in operations of the backend.
    fn in_operations(mean: Tensor<2>, log_std: Tensor<2>, action: Tensor<2>) -> Tensor<1> {
        let n = mean.dims()[1];
        let scaled = (action - mean) * (-log_std.clone()).exp();
        let half = (scaled.square() * 0.5 + log_std).sum_dim(1).squeeze_dim::<1>(1);
        -half - half_log_2_pi(n)
    }

    /// On the CPU a loop over memory, on a GPU a kernel.
    #[test]
    fn results_and_gradients_are_those_of_the_operations() {
        let device = brasa_test::device().autodiff();
        let plain = device.clone().without_autodiff();
        for (n_rows, n) in [(1, 1), (5, 3), (300, 17)] {
            let wave = |n: usize, phase: f32| -> Vec<f32> { (0..n).map(|i| (i as f32 * 1.7 + phase).sin()).collect() };
            let action = Tensor::<1>::from_floats(&wave(n_rows * n, 0.2)[..], &plain).reshape([n_rows, n]);
            let weight = Tensor::<1>::from_floats(&wave(n_rows, 0.7)[..], &plain);
            for deviations in [1, n_rows] {
                let run = |log_prob: &dyn Fn(Tensor<2>, Tensor<2>) -> Tensor<1>| {
                    let leaf = |n, phase| Tensor::<1>::from_floats(&wave(n, phase)[..], &device).require_grad();
                    let (mean, log_std) = (leaf(n_rows * n, 0.0), leaf(deviations * n, 1.0));
                    let y = log_prob(mean.clone().reshape([n_rows, n]), log_std.clone().reshape([deviations, n]));
                    let grads = (y.clone() * weight.clone()).sum().backward();
                    let [by_mean, by_log_std] = [mean, log_std].map(|leaf| leaf.grad(&grads).expect("it is a leaf"));
                    [y.inner(), by_mean, by_log_std].map(|t| t.into_data().iter::<f32>().collect::<Vec<_>>())
                };
                let ours = run(&|mean, log_std| evaluate(mean, log_std, action.clone(), false).0);
                let operations = run(&|mean, log_std| in_operations(mean, log_std, action.clone()));
                for (ours, expected) in ours.iter().flatten().zip(operations.iter().flatten()) {
                    assert!((ours - expected).abs() < 1e-5 * expected.abs().max(1.0), "{ours} instead of {expected}");
                }
            }
        }
    }
}
