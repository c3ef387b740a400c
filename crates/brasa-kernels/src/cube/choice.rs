//! Log-probability and entropy of one choice per row, with their derivatives: one thread per row.

use burn::backend::TensorMetadata;
use burn_cubecl::tensor::CubeTensor;

use super::cubecl::{self, prelude::*};
use super::{at, empty, threads};

#[cube(launch, create_dummy_kernel)]
pub(super) fn choice(
    logits: &Tensor<f32>,
    mask: &Tensor<f32>,
    action: &Tensor<f32>,
    log_prob: &mut Tensor<f32>,
    entropy: &mut Tensor<f32>,
    by_log_prob: &mut Tensor<f32>,
    by_entropy: &mut Tensor<f32>,
    masked: f32,
    illegal: f32,
    #[comptime] with_mask: bool,
) {
    let row = ABSOLUTE_POS;
    let n = logits.shape(1);
    if row < logits.shape(0) {
        let mut largest = f32::min_value();
        for i in 0..n {
            let x = logit(logits, mask, row, i, masked, with_mask);
            largest = select(x > largest, x, largest);
        }
        let mut sum = 0.0f32;
        for i in 0..n {
            sum += (logit(logits, mask, row, i, masked, with_mask) - largest).exp();
        }
        let shift = largest + sum.ln();
        let mut total = 0.0f32;
        for i in 0..n {
            let score = logit(logits, mask, row, i, masked, with_mask) - shift;
            // Illegal actions have no share, not even a small one times their logarithm.
            let p = select(score < illegal, 0.0, score.exp());
            total -= p * score;
            by_log_prob[row * n + i] = -p;
        }
        for i in 0..n {
            let score = logit(logits, mask, row, i, masked, with_mask) - shift;
            by_entropy[row * n + i] = by_log_prob[row * n + i] * (score + total);
        }
        let chosen = usize::cast_from(action[row * action.stride(0)]);
        by_log_prob[row * n + chosen] += 1.0;
        log_prob[row] = logit(logits, mask, row, chosen, masked, with_mask) - shift;
        entropy[row] = total;
    }
}

#[cube]
fn logit(
    logits: &Tensor<f32>,
    mask: &Tensor<f32>,
    row: usize,
    i: usize,
    masked: f32,
    #[comptime] with_mask: bool,
) -> f32 {
    let mut x = logits[at(logits, row, i)];
    if with_mask {
        let legal = mask[at(mask, row, i)];
        x = x * legal + (1.0 - legal) * masked;
    }
    x
}

/// Log-probabilities and entropies, `[n_rows]`, and their derivatives, `[n_rows, n]`, of logits and masks `[n_rows, n]` and actions
/// `[n_rows, 1]`; nothing is empty.
pub(crate) fn launch(
    logits: CubeTensor,
    mask: Option<CubeTensor>,
    action: CubeTensor,
    masked: f32,
    illegal: f32,
) -> [CubeTensor; 4] {
    let (n_rows, n) = (logits.shape()[0], logits.shape()[1]);
    let out =
        [empty(&logits, [n_rows]), empty(&logits, [n_rows]), empty(&logits, [n_rows, n]), empty(&logits, [n_rows, n])];
    let (count, dim) = threads(&logits, n_rows);
    let (client, with_mask) = (logits.client.clone(), mask.is_some());
    let mask = mask.unwrap_or_else(|| logits.clone());
    let [logits, mask, action] = [logits, mask, action].map(CubeTensor::into_tensor_arg);
    let [log_prob, entropy, by_log_prob, by_entropy] = out.clone().map(CubeTensor::into_tensor_arg);
    choice::launch(
        &client,
        count,
        dim,
        logits,
        mask,
        action,
        log_prob,
        entropy,
        by_log_prob,
        by_entropy,
        masked,
        illegal,
        with_mask,
    );
    out
}
