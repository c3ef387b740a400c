//! Choices and real numbers together: categorical distributions and independent normal ones.
//!
//! Outputs, noise and actions have the columns of the choices first. The parts are independent, so log-probabilities and entropies are sums.

use burn::tensor::Tensor;

use super::{categorical, gaussian};

/// Samples, or the most likely choices and the means without noise, and their log-densities `[n_rows]`, without gradients.
///
/// # Shapes
/// - `outputs`: `[n_rows, logits + numbers]`; `heads` has the number of logits of each choice
/// - `log_std`: `[1, numbers]` or `[n_rows, numbers]`
/// - `mask`: `[n_rows, logits]`, 1 for legal actions
/// - `noise`: as `outputs`, standard Gumbel for logits and standard normal for numbers
///
/// ```
/// use brasa_core::read_back;
/// use brasa_nn::distribution::hybrid;
/// use burn::tensor::Tensor;
///
/// // One choice of two, and one number.
/// let device = brasa_device::open_named("cpu")?;
/// let outputs = Tensor::from_floats([[0.0, 9.0, 0.25]], &device);
/// let (action, _) = hybrid::draw(outputs, Tensor::zeros([1, 1], &device), None, None, &[2]);
/// assert_eq!(read_back(action), [1.0, 0.25]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn draw(
    outputs: Tensor<2>,
    log_std: Tensor<2>,
    mask: Option<Tensor<2>>,
    noise: Option<Tensor<2>>,
    heads: &[usize],
) -> (Tensor<2>, Tensor<1>) {
    let n_logits = heads.iter().sum();
    let ([logits, mean], noise) = (parts(outputs, n_logits), noise.map(|noise| parts(noise, n_logits)));
    let (of_logits, of_mean) = noise.map_or((None, None), |[logits, mean]| (Some(logits), Some(mean)));
    let (choices, choice_log_prob) = categorical::draw(logits, mask, of_logits, heads);
    let (numbers, number_log_prob) = gaussian::draw(mean, log_std, of_mean);
    (Tensor::cat(vec![choices, numbers], 1), choice_log_prob + number_log_prob)
}

/// Log-densities and entropies in nats, each `[n_rows]`, of `action`.
///
/// # Shapes
/// As for [`draw`]; `action`: `[n_rows, heads.len() + numbers]`.
///
/// ```
/// use brasa_core::read_back;
/// use brasa_nn::distribution::hybrid;
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let (outputs, action) = (Tensor::zeros([1, 3], &device), Tensor::from_floats([[1.0, 0.0]], &device));
/// let (log_prob, entropy) = hybrid::evaluate(outputs, Tensor::zeros([1, 1], &device), None, action, &[2]);
/// // Two equal choices, and a standard normal number.
/// let ln_2 = std::f32::consts::LN_2;
/// assert!((read_back(log_prob)[0] + ln_2 + 0.918_938_5).abs() < 1e-6);
/// assert!((read_back(entropy)[0] - ln_2 - 1.418_938_5).abs() < 1e-6);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn evaluate(
    outputs: Tensor<2>,
    log_std: Tensor<2>,
    mask: Option<Tensor<2>>,
    action: Tensor<2>,
    heads: &[usize],
) -> (Tensor<1>, Tensor<1>) {
    let ([logits, mean], [choices, numbers]) = (parts(outputs, heads.iter().sum()), parts(action, heads.len()));
    let (choice_log_prob, choice_entropy) = categorical::evaluate(logits, mask, choices, heads);
    let (number_log_prob, number_entropy) = gaussian::evaluate(mean, log_std, numbers, false);
    (choice_log_prob + number_log_prob, choice_entropy + number_entropy)
}

/// The first `n` columns, and the others.
pub(crate) fn parts(columns: Tensor<2>, n: usize) -> [Tensor<2>; 2] {
    let [n_rows, width] = columns.dims();
    [columns.clone().slice([0..n_rows, 0..n]), columns.slice([0..n_rows, n..width])]
}

#[cfg(test)]
mod tests {
    use brasa_core::env::named_rng;
    use brasa_core::{NoiseDistribution, NoiseSpec, read_back};
    use brasa_test::device;

    use super::*;
    use crate::draw_noise;

    /// Rows of a density in f64: independent of the tensors above.
    fn by_hand(outputs: &[f32], log_std: &[f32; 2], mask: &[f32], action: &[f32]) -> f64 {
        let log_softmax = |logits: &[f32], mask: &[f32], chosen: usize| {
            let legal = logits.iter().zip(mask).filter(|(_, legal)| **legal > 0.0);
            let sum: f64 = legal.map(|(logit, _)| f64::from(*logit).exp()).sum();
            f64::from(logits[chosen]) - sum.ln()
        };
        let choices = log_softmax(&outputs[..3], &mask[..3], action[0] as usize)
            + log_softmax(&outputs[3..5], &mask[3..], action[1] as usize);
        let normal = |index: usize| {
            let (deviation, log_std) = (f64::from(action[2 + index] - outputs[5 + index]), f64::from(log_std[index]));
            -0.5 * (deviation / log_std.exp()).powi(2) - log_std - 0.5 * (2.0 * std::f64::consts::PI).ln()
        };
        choices + normal(0) + normal(1)
    }

    #[test]
    fn drawn_actions_are_legal_and_have_their_density() {
        let (device, n_rows) = (device(), 200);
        let rng = &mut named_rng(3, "test", 0);
        let normal = NoiseSpec { width: 7, distribution: NoiseDistribution::Normal, resample_every: 1 };
        let outputs = draw_noise(normal, n_rows, rng, &device);
        let mask_rows = [[1.0, 0.0, 1.0, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0, 0.0], [1.0; 5]];
        let mask: Vec<f32> = (0..n_rows).flat_map(|row| mask_rows[row % 3]).collect();
        let mask = Tensor::<1>::from_floats(&mask[..], &device).reshape([n_rows, 5]);
        let log_std = [-0.5, 0.25];
        let noise = NoiseSpec { distribution: NoiseDistribution::GumbelThenNormal { n_gumbel: 5 }, ..normal };
        let noise = draw_noise(noise, n_rows, rng, &device);
        let stds = Tensor::from_floats([log_std], &device);
        let (action, log_prob) = draw(outputs.clone(), stds.clone(), Some(mask.clone()), Some(noise), &[3, 2]);
        let (evaluated, _) = evaluate(outputs.clone(), stds, Some(mask), action.clone(), &[3, 2]);
        let [outputs, actions, log_probs] = [read_back(outputs), read_back(action), read_back(log_prob)];
        let mut n_of_choice = [0; 3];
        for (row, (log_prob, evaluated)) in log_probs.iter().zip(read_back(evaluated)).enumerate() {
            let (mask, action) = (&mask_rows[row % 3], &actions[4 * row..4 * (row + 1)]);
            assert!(mask[action[0] as usize] > 0.0 && mask[3 + action[1] as usize] > 0.0, "{row}: {action:?}");
            let expected = by_hand(&outputs[7 * row..7 * (row + 1)], &log_std, mask, action);
            for log_prob in [f64::from(*log_prob), f64::from(evaluated)] {
                assert!((log_prob - expected).abs() < 2e-5, "{row}: {log_prob} {expected}");
            }
            n_of_choice[action[0] as usize] += 1;
        }
        assert!(n_of_choice.iter().all(|n| *n > 10), "{n_of_choice:?}");
    }
}
