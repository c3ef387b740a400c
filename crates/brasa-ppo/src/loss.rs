//! The loss of a minibatch.

use brasa_buffers::{ADVANTAGE_EPSILON, Rollout, choice_weight, normalize};
use brasa_core::Evaluation;
use brasa_core::by_hand::{EvaluationGradient, HostEvaluation};
use brasa_dist::shard;
use brasa_kernels::{HostTensor, SurrogateConfig, SurrogateInput, concat, surrogate, with_jacobian};
use burn::tensor::Tensor;

use crate::PpoConfig;

/// The loss of a minibatch and its parts.
pub(crate) struct Loss {
    /// `[1]`.
    pub loss: Tensor<1>,
    /// `[1, 6]` on the device: losses of policy, value and entropy, share of clipped ratios, divergence, the whole loss.
    pub parts: Tensor<2>,
}

impl Loss {
    /// The loss of `batch` under the current policy, whose results are `now`, on the tape.
    pub fn of<O, A>(now: Evaluation, batch: &Rollout<O, A>, config: &PpoConfig, clip: f64) -> Self {
        let numbers = [&now.log_prob, &now.entropy, &now.value].map(HostTensor::of);
        let [Some(log_prob), Some(entropy), Some(value)] = numbers else {
            return Self::in_a_kernel(&now, batch, config, clip)
                .unwrap_or_else(|| Self::in_operations(now, batch, config, clip));
        };
        let choice = now.choice.clone();
        let on_host = HostEvaluation { log_prob: &log_prob, entropy: &entropy, value: &value, choice: choice.as_ref() };
        HostLoss::of(on_host, batch, config, clip).record(now)
    }

    /// The loss and its derivatives in one launch on a GPU; `None` elsewhere.
    fn in_a_kernel<O, A>(now: &Evaluation, batch: &Rollout<O, A>, config: &PpoConfig, clip: f64) -> Option<Self> {
        let weight = now.choice.clone().map(choice_weight);
        // A single advantage is not changed, and those of several shards are normalized together.
        let alone = batch.advantage.dims()[0] > 1 && !shard().is_part();
        let advantage = match config.normalize_advantage && !alone {
            true => normalize(batch.advantage.clone(), weight.as_ref()),
            false => batch.advantage.clone(),
        };
        let input = SurrogateInput {
            log_prob: &now.log_prob,
            entropy: &now.entropy,
            value: &now.value,
            old_log_prob: &batch.log_prob,
            old_value: &batch.value,
            advantage: &advantage,
            returns: &batch.returns,
            weight: weight.as_ref(),
        };
        let config = SurrogateConfig {
            clip,
            clip_range_vf: config.clip_range_vf,
            vf_coef: config.vf_coef,
            ent_coef: config.ent_coef,
            normalize_advantage: config.normalize_advantage && alone,
            epsilon: ADVANTAGE_EPSILON,
        };
        let result = surrogate(input, &config)?;
        let loss = result.parts.clone().slice([0..1, 5..6]).reshape([1]);
        let loss = with_jacobian(loss, now.log_prob.clone(), result.by_log_prob.unsqueeze());
        let loss = with_jacobian(loss, now.value.clone(), result.by_value.unsqueeze());
        let loss = match config.ent_coef > 0.0 {
            // Without a bonus the entropy is only a metric.
            true => with_jacobian(loss, now.entropy.clone(), result.by_entropy.unsqueeze()),
            false => loss,
        };
        Some(Self { loss, parts: result.parts })
    }

    fn in_operations<O, A>(now: Evaluation, batch: &Rollout<O, A>, config: &PpoConfig, clip: f64) -> Self {
        // Rows without a choice have a ratio of 1 and no entropy, so they are excluded from the means.
        let weight = now.choice.map(choice_weight);
        let weigh = |x: Tensor<1>| weight.iter().fold(x, |x, weight| x * weight.clone());
        let advantage = match config.normalize_advantage {
            true => normalize(batch.advantage.clone(), weight.as_ref()),
            false => batch.advantage.clone(),
        };
        let advantage = weigh(advantage);
        let log_ratio = now.log_prob - batch.log_prob.clone();
        let ratio = log_ratio.clone().exp();
        let (plain_log_ratio, plain_ratio) = (log_ratio.inner(), ratio.clone().inner());
        let approx_kl = weigh(plain_ratio.clone() - 1.0 - plain_log_ratio).mean();
        let policy = policy_loss(ratio, advantage, clip);
        let value = value_loss(now.value, batch.value.clone(), batch.returns.clone(), config.clip_range_vf);
        // Without a bonus the entropy is only a metric.
        let bonus = config.ent_coef > 0.0;
        let entropy = entropy_loss(weigh(if bonus { now.entropy } else { now.entropy.inner() }));
        let mut loss = policy.clone() + value.clone() * config.vf_coef;
        if bonus {
            loss = loss + entropy.clone() * config.ent_coef;
        }
        let clipped = weigh((plain_ratio - 1.0).abs().greater_scalar(clip).float()).mean();
        let entropy = if bonus { entropy.inner() } else { entropy };
        let parts = [policy.inner(), value.inner(), entropy, clipped, approx_kl, loss.clone().inner()];
        Self { loss, parts: concat(parts.map(Tensor::unsqueeze).into()) }
    }
}

/// [`Loss::parts`] of a minibatch. An update has hundreds, and the handle of a tensor takes thirty times the memory of its numbers.
pub(crate) enum Report {
    Host([f32; 6]),
    Device(Box<Tensor<2>>),
}

impl Report {
    /// From [`Loss::parts`].
    pub fn of(parts: Tensor<2>) -> Self {
        let numbers = HostTensor::of(&parts).and_then(|on_host| <[f32; 6]>::try_from(&*on_host).ok());
        numbers.map_or_else(|| Self::Device(Box::new(parts)), Self::Host)
    }

    /// A row per minibatch, `[reports, 6]`.
    pub fn join(reports: Vec<Self>) -> Tensor<2> {
        let on_host = |report: &Self| match report {
            Self::Host(parts) => Some(*parts),
            Self::Device(_) => None,
        };
        if let Some(parts) = reports.iter().map(on_host).collect::<Option<Vec<_>>>() {
            return HostTensor::tensor(parts.concat(), [parts.len(), 6]);
        }
        let tensor = |report| match report {
            Self::Host(parts) => HostTensor::tensor(parts.to_vec(), [1, 6]),
            Self::Device(parts) => *parts,
        };
        Tensor::cat(reports.into_iter().map(tensor).collect(), 0)
    }
}

/// The loss in one pass over the memory of the CPU, with its derivatives.
pub(crate) struct HostLoss {
    /// As [`Loss::parts`].
    pub parts: [f64; 6],
    pub gradient: EvaluationGradient,
}

impl HostLoss {
    /// The loss of a minibatch that lies where the results of its evaluation do.
    pub fn of<O, A>(now: HostEvaluation<'_>, batch: &Rollout<O, A>, config: &PpoConfig, clip: f64) -> Self {
        let HostEvaluation { log_prob, entropy, value, choice } = now;
        let host = |column: &Tensor<1>| HostTensor::of(column).expect("a minibatch is where its evaluation is");
        let [old_log_prob, old_value, returns] = [&batch.log_prob, &batch.value, &batch.returns].map(host);
        let weight = choice.cloned().map(choice_weight);
        let advantage = match config.normalize_advantage {
            true => host(&normalize(batch.advantage.clone(), weight.as_ref())),
            false => host(&batch.advantage),
        };
        let weight = weight.as_ref().map(host);
        let (old_log_prob, old_value, returns, advantage) = (&*old_log_prob, &*old_value, &*returns, &*advantage);
        let weight = weight.as_deref();
        let n = log_prob.len();
        let mean = 1.0 / n as f32;
        let bonus = config.ent_coef > 0.0;
        let (low, high) = ((1.0 - clip) as f32, (1.0 + clip) as f32);
        let (vf_coef, ent_coef) = (config.vf_coef as f32, config.ent_coef as f32);
        let mut sums = [0.0f64; 5];
        let (mut by_log_prob, mut by_value) = (Vec::with_capacity(n), Vec::with_capacity(n));
        // Without a bonus the entropy is only a metric.
        let mut by_entropy = bonus.then(|| Vec::with_capacity(n));
        for i in 0..n {
            let weight = weight.map_or(1.0, |weight| weight[i]);
            let advantage = advantage[i] * weight;
            let log_ratio = log_prob[i] - old_log_prob[i];
            let ratio = log_ratio.exp();
            let (plain, bounded) = (ratio * advantage, ratio.clamp(low, high) * advantage);
            // The clipped branch is smaller only where it is constant.
            let is_clipped = bounded < plain;
            by_log_prob.push(if is_clipped { 0.0 } else { -plain * mean });
            let change = value[i] - old_value[i];
            let (seen, moves) = match config.clip_range_vf {
                Some(range) => {
                    let range = range as f32;
                    (old_value[i] + change.clamp(-range, range), !(change < -range || change > range))
                }
                None => (value[i], true),
            };
            let error = returns[i] - seen;
            by_value.push(if moves { -2.0 * error * mean * vf_coef } else { 0.0 });
            if let Some(by_entropy) = &mut by_entropy {
                by_entropy.push(-weight * mean * ent_coef);
            }
            let clipped = f32::from(u8::from(f64::from((ratio - 1.0).abs()) > clip));
            let parts = [
                -(if is_clipped { bounded } else { plain }),
                error * error,
                -weight * entropy[i],
                weight * clipped,
                weight * (ratio - 1.0 - log_ratio),
            ];
            sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += f64::from(part));
        }
        let [policy, value, entropy, clipped, kl] = sums.map(|sum| sum / n as f64);
        let loss = policy + value * config.vf_coef + if bonus { entropy * config.ent_coef } else { 0.0 };
        let parts = [policy, value, entropy, clipped, kl, loss];
        Self { parts, gradient: EvaluationGradient { by_log_prob, by_entropy, by_value } }
    }

    /// [`Loss::parts`].
    pub fn report(&self) -> Report {
        Report::Host(self.parts.map(|part| part as f32))
    }

    /// The loss as one node of the tape per result of the evaluation.
    fn record(self, now: Evaluation) -> Loss {
        let parts = Report::join(vec![self.report()]);
        let row = |jacobian: Vec<f32>| {
            let n = jacobian.len();
            HostTensor::tensor(jacobian, [1, n])
        };
        let loss = HostTensor::tensor(vec![self.parts[5] as f32], [1]);
        let EvaluationGradient { by_log_prob, by_entropy, by_value } = self.gradient;
        let loss = with_jacobian(loss, now.log_prob, row(by_log_prob));
        let loss = with_jacobian(loss, now.value, row(by_value));
        let loss = match by_entropy {
            Some(by_entropy) => with_jacobian(loss, now.entropy, row(by_entropy)),
            None => loss,
        };
        Loss { loss, parts }
    }
}

/// The clipped surrogate, equation 7 of the paper with the sign of a loss: `-mean(min(r A, clip(r, 1-c, 1+c) A))`.
///
/// # Shapes
/// - `ratio`, `advantage`: `[n_rows]`
/// - output: `[1]`
pub fn policy_loss(ratio: Tensor<1>, advantage: Tensor<1>, clip: f64) -> Tensor<1> {
    // The clipped branch is smaller only where it is constant, so only `r A` elsewhere has a gradient. Selecting the
    // branch on detached tensors saves eight autodiff operations.
    let plain = ratio.clone().inner();
    let clipped = plain.clone().clamp(1.0 - clip, 1.0 + clip) * advantage.clone();
    let is_clipped = clipped.clone().lower(plain * advantage.clone());
    let constant = clipped.mask_fill(is_clipped.clone().bool_not(), 0.0).mean();
    -(ratio * advantage.mask_fill(is_clipped, 0.0)).mean() - constant
}

/// Mean squared error of the value; with a clip range, of the value clipped to this range around the old value.
///
/// # Shapes
/// - `value`, `old_value`, `target`: `[n_rows]`
/// - output: `[1]`
pub fn value_loss(value: Tensor<1>, old_value: Tensor<1>, target: Tensor<1>, clip: Option<f64>) -> Tensor<1> {
    let value = match clip {
        Some(clip) => old_value.clone() + (value - old_value).clamp(-clip, clip),
        None => value,
    };
    (target - value).square().mean()
}

/// `-mean(H)`.
///
/// # Shapes
/// - `entropy`: `[n_rows]`
/// - output: `[1]`
pub fn entropy_loss(entropy: Tensor<1>) -> Tensor<1> {
    -entropy.mean()
}

#[cfg(test)]
mod tests {
    use super::*;
    use brasa_core::Schedule;

    fn device() -> burn::tensor::Device {
        brasa_test::device()
    }

    fn scalar(tensor: Tensor<1>) -> f32 {
        tensor.into_scalar::<f32>()
    }

    #[test]
    fn clipping_removes_the_reward_of_large_changes_only() {
        let device = device();
        let t = |x: f32| Tensor::<1>::from_floats([x], &device);
        for (ratio, advantage, expected) in
            [(1.5, 1.0, -1.2), (0.5, 1.0, -0.5), (1.5, -1.0, 1.5), (0.5, -1.0, 0.8), (1.1, 2.0, -2.2)]
        {
            let loss = scalar(policy_loss(t(ratio), t(advantage), 0.2));
            assert!((loss - expected).abs() < 1e-6, "ratio {ratio}, advantage {advantage}: {loss}");
        }
    }

    #[test]
    fn the_gradient_is_that_of_the_smaller_branch() {
        let device = device().autodiff();
        let ratio = Tensor::<1>::from_floats([1.5, 0.5, 1.5, 0.5, 1.1], &device).require_grad();
        let advantage = Tensor::<1>::from_floats([1.0, 1.0, -1.0, -1.0, 2.0], &device.without_autodiff());
        let literally = {
            let clipped = ratio.clone().clamp(0.8, 1.2) * advantage.clone();
            -(ratio.clone() * advantage.clone()).min_pair(clipped).mean()
        };
        let (ours, expected) = (policy_loss(ratio.clone(), advantage, 0.2), literally);
        assert!((scalar(ours.clone().inner()) - scalar(expected.clone().inner())).abs() < 1e-7);
        let grad = |loss: Tensor<1>| ratio.grad(&loss.backward()).expect("it is a leaf").into_data();
        let (ours, expected) = (grad(ours), grad(expected));
        assert!(ours.iter::<f32>().zip(expected.iter::<f32>()).all(|(a, b)| (a - b).abs() < 1e-7), "{ours} {expected}");
    }

    #[test]
    fn a_clipped_value_stays_near_the_old_one() {
        let device = device();
        let t = |x: f32| Tensor::<1>::from_floats([x], &device);
        assert_eq!(scalar(value_loss(t(5.0), t(1.0), t(5.0), None)), 0.0);
        assert_eq!(scalar(value_loss(t(5.0), t(1.0), t(5.0), Some(0.5))), 3.5 * 3.5);
    }

    #[test]
    fn the_fused_forms_are_the_sum_of_the_operations() {
        for n in [2, 37, 700] {
            fused_forms_are_the_sum_of_the_operations(n);
        }
    }

    /// On the CPU a pass over memory, on a GPU a kernel.
    fn fused_forms_are_the_sum_of_the_operations(n: usize) {
        let device = device().autodiff();
        let plain = device.clone().without_autodiff();
        let numbers = |seed: f32| -> Vec<f32> { (0..n).map(|i| ((i as f32 + seed) * 1.7).sin()).collect() };
        let column = |seed: f32| Tensor::<1>::from_floats(numbers(seed).as_slice(), &plain);
        let leaf = |seed: f32| Tensor::<1>::from_floats(numbers(seed).as_slice(), &device).require_grad();
        let choice = Tensor::<1>::from_floats(
            numbers(0.0).iter().map(|x| f32::from(*x > -0.5)).collect::<Vec<_>>().as_slice(),
            &plain,
        );
        let batch = Rollout {
            obs: (),
            action: (),
            log_prob: column(1.0),
            value: column(2.0),
            advantage: column(3.0),
            returns: column(4.0),
        };
        let base = PpoConfig { clip_range: Schedule::from(0.2), ..PpoConfig::default() };
        for config in [
            base.clone(),
            PpoConfig { ent_coef: 0.1, clip_range_vf: Some(0.3), ..base.clone() },
            PpoConfig { normalize_advantage: false, vf_coef: 0.25, ..base },
        ] {
            for choice in [None, Some(choice.clone())] {
                let inputs = [leaf(1.3), leaf(5.0), leaf(6.0)];
                let evaluation = || {
                    let [log_prob, entropy, value] = inputs.clone();
                    Evaluation { log_prob, entropy, value, choice: choice.clone() }
                };
                let run = |Loss { loss, parts }: Loss| {
                    let grads = loss.backward();
                    let mut all: Vec<f32> = parts.into_data().iter().collect();
                    for input in &inputs {
                        let grad = input.grad(&grads).map(|grad| grad.into_data().iter().collect::<Vec<f32>>());
                        all.extend(grad.unwrap_or_else(|| vec![0.0; n]));
                    }
                    all
                };
                let fused = run(Loss::of(evaluation(), &batch, &config, 0.2));
                let operations = run(Loss::in_operations(evaluation(), &batch, &config, 0.2));
                assert!(n < 10 || fused[3] > 0.1 && fused[3] < 0.9, "some ratios are clipped");
                for (i, (a, b)) in fused.iter().zip(&operations).enumerate() {
                    assert!((a - b).abs() < 2e-6 * b.abs().max(1.0), "number {i}: {a} instead of {b}");
                }
            }
        }
    }
}
