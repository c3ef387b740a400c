//! The clipped surrogate loss of a minibatch with its derivatives: one group of threads, as its sums need all rows.

use burn::backend::TensorMetadata;
use burn_cubecl::tensor::CubeTensor;

use super::cubecl::{self, prelude::*};
use super::{LANES, empty, sum_of_lanes};
use crate::SurrogateConfig;

/// What the translation of the kernel depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SurrogateForm {
    pub(crate) normalize: bool,
    pub(crate) weighted: bool,
    pub(crate) clip_value: bool,
    pub(crate) bonus: bool,
}

#[cube(launch, create_dummy_kernel)]
pub(super) fn surrogate(
    log_prob: &Tensor<f32>,
    entropy: &Tensor<f32>,
    value: &Tensor<f32>,
    old_log_prob: &Tensor<f32>,
    old_value: &Tensor<f32>,
    advantage: &Tensor<f32>,
    returns: &Tensor<f32>,
    weight: &Tensor<f32>,
    parts: &mut Tensor<f32>,
    by_log_prob: &mut Tensor<f32>,
    by_entropy: &mut Tensor<f32>,
    by_value: &mut Tensor<f32>,
    clip: f32,
    clip_value: f32,
    vf_coef: f32,
    ent_coef: f32,
    epsilon: f32,
    #[comptime] form: SurrogateForm,
) {
    let lane = UNIT_POS as usize;
    let n = by_log_prob.shape(0);
    let mean = 1.0 / f32::cast_from(n);
    let mut sums = Shared::<[f32]>::new_slice(LANES);
    let mut center = 0.0f32;
    let mut deviation = 1.0f32;
    if form.normalize {
        let mut sum = 0.0f32;
        for i in range_stepped(lane, n, LANES) {
            sum += weight_of(weight, i, form) * column(advantage, i);
        }
        center = sum_of_lanes(&mut sums, lane, sum) * mean;
        let mut square = 0.0f32;
        for i in range_stepped(lane, n, LANES) {
            let centered = column(advantage, i) - center;
            square += weight_of(weight, i, form) * centered * centered;
        }
        deviation = (sum_of_lanes(&mut sums, lane, square) / (f32::cast_from(n) - 1.0)).sqrt() + epsilon;
    }
    let mut policy = 0.0f32;
    let mut error = 0.0f32;
    let mut certainty = 0.0f32;
    let mut clipped = 0.0f32;
    let mut divergence = 0.0f32;
    for i in range_stepped(lane, n, LANES) {
        let weight = weight_of(weight, i, form);
        let gain = (column(advantage, i) - center) / deviation * weight;
        let log_ratio = column(log_prob, i) - column(old_log_prob, i);
        let ratio = log_ratio.exp();
        let low = select(ratio < 1.0 - clip, 1.0 - clip, ratio);
        let plain = ratio * gain;
        let bounded = select(low > 1.0 + clip, 1.0 + clip, low) * gain;
        // The clipped branch is smaller only where it is constant.
        by_log_prob[i] = select(bounded < plain, 0.0, -plain * mean);
        policy -= select(bounded < plain, bounded, plain);
        let (now, before) = (column(value, i), column(old_value, i));
        let mut seen = now;
        let mut slope = -(mean * vf_coef * 2.0);
        if form.clip_value {
            let change = now - before;
            seen = select(change < -clip_value, before - clip_value, seen);
            seen = select(change > clip_value, before + clip_value, seen);
            slope = select(change.abs() > clip_value, 0.0, slope);
        }
        let missing = column(returns, i) - seen;
        by_value[i] = missing * slope;
        error += missing * missing;
        by_entropy[i] = -weight * mean * ent_coef;
        certainty -= weight * column(entropy, i);
        clipped += select((ratio - 1.0).abs() > clip, weight, 0.0);
        divergence += weight * (ratio - 1.0 - log_ratio);
    }
    let policy = sum_of_lanes(&mut sums, lane, policy) * mean;
    let error = sum_of_lanes(&mut sums, lane, error) * mean;
    let certainty = sum_of_lanes(&mut sums, lane, certainty) * mean;
    let clipped = sum_of_lanes(&mut sums, lane, clipped) * mean;
    let divergence = sum_of_lanes(&mut sums, lane, divergence) * mean;
    if lane == 0 {
        parts[0] = policy;
        parts[1] = error;
        parts[2] = certainty;
        parts[3] = clipped;
        parts[4] = divergence;
        let mut loss = policy + error * vf_coef;
        if form.bonus {
            loss += certainty * ent_coef;
        }
        parts[5] = loss;
    }
}

#[cube]
fn column(values: &Tensor<f32>, i: usize) -> f32 {
    values[i * values.stride(0)]
}

#[cube]
fn weight_of(weight: &Tensor<f32>, i: usize, #[comptime] form: SurrogateForm) -> f32 {
    let mut of_row = 1.0f32;
    if form.weighted {
        of_row = column(weight, i);
    }
    of_row
}

/// The parts, `[1, 6]`, and derivatives by log-probability, entropy and value, `[n]` each, of columns `[n]` in the order of the kernel's
/// arguments; `n` is above 0.
pub(crate) fn launch(
    columns: [CubeTensor; 7],
    weight: Option<CubeTensor>,
    config: &SurrogateConfig,
) -> [CubeTensor; 4] {
    let like = columns[0].clone();
    let n = like.shape()[0];
    let form = SurrogateForm {
        normalize: config.normalize_advantage,
        weighted: weight.is_some(),
        clip_value: config.clip_range_vf.is_some(),
        bonus: config.ent_coef > 0.0,
    };
    let out = [empty(&like, [1, 6]), empty(&like, [n]), empty(&like, [n]), empty(&like, [n])];
    let (count, dim) = (CubeCount::Static(1, 1, 1), CubeDim::new_1d(LANES as u32));
    let weight = weight.unwrap_or_else(|| like.clone()).into_tensor_arg();
    let [log_prob, entropy, value, old_log_prob, old_value, advantage, returns] =
        columns.map(CubeTensor::into_tensor_arg);
    let [parts, by_log_prob, by_entropy, by_value] = out.clone().map(CubeTensor::into_tensor_arg);
    surrogate::launch(
        &like.client,
        count,
        dim,
        log_prob,
        entropy,
        value,
        old_log_prob,
        old_value,
        advantage,
        returns,
        weight,
        parts,
        by_log_prob,
        by_entropy,
        by_value,
        config.clip as f32,
        config.clip_range_vf.unwrap_or(0.0) as f32,
        config.vf_coef as f32,
        config.ent_coef as f32,
        config.epsilon as f32,
        form,
    );
    out
}
