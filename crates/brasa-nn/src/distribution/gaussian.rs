//! Independent normal distributions.

use std::f32::consts::{E, PI};

use brasa_kernels::{HostTensor, JudgedDensity, judged_density, with_jacobian};
use burn::tensor::Tensor;

/// `mean + exp(log_std) noise` and its log-density `[n_rows]`, without gradients; the mean without noise.
///
/// # Shapes
/// - `mean`, `log_std`: as for [`log_prob`]
/// - `noise`: `[n_rows, n]`
pub fn draw(mean: Tensor<2>, log_std: Tensor<2>, noise: Option<Tensor<2>>) -> (Tensor<2>, Tensor<1>) {
    let inputs = (HostTensor::of(&mean), HostTensor::of(&log_std), noise.as_ref().map(HostTensor::of));
    let (Some(means), Some(log_stds), None | Some(Some(_))) = &inputs else {
        let action = match noise {
            Some(noise) => mean.clone() + log_std.clone().exp() * noise,
            None => mean.clone(),
        };
        return (action.clone(), log_prob(mean, log_std, action));
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

/// Log-density of `action`, `[n_rows]`: the sum over dimensions.
///
/// # Shapes
/// - `mean`, `action`: `[n_rows, n]`
/// - `log_std`: `[n_rows, n]` or `[1, n]`
pub fn log_prob(mean: Tensor<2>, log_std: Tensor<2>, action: Tensor<2>) -> Tensor<1> {
    let [n_rows, n] = mean.dims();
    let inputs = if action.is_autodiff() { [None, None, None] } else { [&mean, &log_std, &action].map(HostTensor::of) };
    let [Some(means), Some(log_stds), Some(actions)] = inputs else {
        let judged = if action.is_autodiff() { None } else { judged_density(&mean, &log_std, &action) };
        if let Some(JudgedDensity { log_prob, by_mean, by_log_std }) = judged {
            return with_jacobians(log_prob, [(mean, by_mean), (log_std, by_log_std)]);
        }
        return in_operations(mean, log_std, action);
    };
    let Judged { log_prob, by_mean, by_log_std } = judge(&means, &log_stds, &actions, n);
    let [by_mean, by_log_std] = [by_mean, by_log_std].map(|jacobian| HostTensor::tensor(jacobian, [n_rows, n]));
    with_jacobians(HostTensor::tensor(log_prob, [n_rows]), [(mean, by_mean), (log_std, by_log_std)])
}

fn in_operations(mean: Tensor<2>, log_std: Tensor<2>, action: Tensor<2>) -> Tensor<1> {
    let n = mean.dims()[1];
    let scaled = (action - mean) * (-log_std.clone()).exp();
    let half = (scaled.square() * 0.5 + log_std).sum_dim(1).squeeze_dim::<1>(1);
    -half - half_log_2_pi(n)
}

/// `y` as a function of each input that has gradients.
fn with_jacobians(y: Tensor<1>, inputs: [(Tensor<2>, Tensor<2>); 2]) -> Tensor<1> {
    let tracked = inputs.into_iter().filter(|(x, _)| x.is_autodiff());
    tracked.fold(y, |y, (x, jacobian)| with_jacobian(y, x, jacobian))
}

/// Log-densities with their derivatives.
pub struct Judged {
    /// `[n_rows]`.
    pub log_prob: Vec<f32>,
    /// `[n_rows, n]`.
    pub by_mean: Vec<f32>,
    /// `[n_rows, n]`.
    pub by_log_std: Vec<f32>,
}

/// [`log_prob`] in the memory of the CPU, of `n` dimensions.
pub fn judge(means: &[f32], log_stds: &[f32], actions: &[f32], n: usize) -> Judged {
    let n_rows = means.len() / n;
    let mut log_probs = Vec::with_capacity(n_rows);
    // With z = (a - m) / s: d / d m = z / s, d / d ln s = z^2 - 1.
    let (mut by_mean, mut by_log_std) = (Vec::with_capacity(n_rows * n), Vec::with_capacity(n_rows * n));
    let shared: Option<Vec<f32>> = (log_stds.len() == n).then(|| log_stds.iter().map(|x| (-x).exp()).collect());
    for (row, (means, actions)) in means.chunks_exact(n).zip(actions.chunks_exact(n)).enumerate() {
        let mut half = half_log_2_pi(n);
        for (i, ((mean, action), log_std)) in means.iter().zip(actions).zip(of_row(log_stds, row, n)).enumerate() {
            let inverse = shared.as_ref().map_or_else(|| (-log_std).exp(), |shared| shared[i]);
            let scaled = (action - mean) * inverse;
            half += 0.5 * scaled * scaled + log_std;
            by_mean.push(scaled * inverse);
            by_log_std.push(scaled * scaled - 1.0);
        }
        log_probs.push(-half);
    }
    Judged { log_prob: log_probs, by_mean, by_log_std }
}

/// Entropy in nats: `sum(log_std) + n/2 ln(2 pi e)`, one number per row of `log_std`.
pub fn entropy(log_std: Tensor<2>) -> Tensor<1> {
    let n = log_std.dims()[1];
    log_std.sum_dim(1).squeeze_dim::<1>(1) + 0.5 * (2.0 * PI * E).ln() * n as f32
}

/// [`entropy`] of a row in the memory of the CPU.
pub fn entropy_of_row(log_std: &[f32]) -> f32 {
    log_std.iter().sum::<f32>() + 0.5 * (2.0 * PI * E).ln() * log_std.len() as f32
}

fn half_log_2_pi(n: usize) -> f32 {
    0.5 * (2.0 * PI).ln() * n as f32
}

/// The numbers of a row, or those of all rows.
fn of_row(numbers: &[f32], row: usize, n: usize) -> &[f32] {
    let at = if numbers.len() == n { 0 } else { row * n };
    &numbers[at..at + n]
}

#[cfg(test)]
mod tests {
    use super::*;

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
                let ours = run(&|mean, log_std| log_prob(mean, log_std, action.clone()));
                let operations = run(&|mean, log_std| in_operations(mean, log_std, action.clone()));
                for (ours, expected) in ours.iter().flatten().zip(operations.iter().flatten()) {
                    assert!((ours - expected).abs() < 1e-5 * expected.abs().max(1.0), "{ours} instead of {expected}");
                }
            }
        }
    }
}
