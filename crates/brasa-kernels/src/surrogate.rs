//! The clipped surrogate loss (Schulman et al. 2017) of a minibatch with its derivatives, in one launch on a GPU.

use burn::tensor::Tensor;

/// Columns of a minibatch, `[n]` each. Of those with gradients, the numbers alone are used.
#[derive(Debug, Clone, Copy)]
pub struct SurrogateInput<'a> {
    /// Log-probabilities under the current policy.
    pub log_prob: &'a Tensor<1>,
    /// Entropies of the current policy.
    pub entropy: &'a Tensor<1>,
    /// Values by the current critic.
    pub value: &'a Tensor<1>,
    /// Log-probabilities when the actions were taken.
    pub old_log_prob: &'a Tensor<1>,
    /// Values then.
    pub old_value: &'a Tensor<1>,
    /// Advantages.
    pub advantage: &'a Tensor<1>,
    /// Targets of the values.
    pub returns: &'a Tensor<1>,
    /// Weights of the rows in all terms but that of the values, with mean 1; `None` for 1.
    pub weight: Option<&'a Tensor<1>>,
}

/// Settings of the loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SurrogateConfig {
    /// Largest distance of a ratio from 1.
    pub clip: f64,
    /// Largest change of a value; `None` for no limit.
    pub clip_range_vf: Option<f64>,
    /// Weight of the loss of values.
    pub vf_coef: f64,
    /// Weight of the loss of entropies; without a weight it is reported alone.
    pub ent_coef: f64,
    /// Whether advantages get mean 0 and unbiased deviation 1; there must be two rows.
    pub normalize_advantage: bool,
    /// Added to the deviation of the advantages.
    pub epsilon: f64,
}

/// A loss with its derivatives.
#[derive(Debug)]
pub struct Surrogate {
    /// `[1, 6]`: losses of policy, value and entropy, share of clipped ratios, divergence, and the whole loss.
    pub parts: Tensor<2>,
    /// `[n]`: derivatives of the whole loss by log-probabilities.
    pub by_log_prob: Tensor<1>,
    /// `[n]`: by entropies.
    pub by_entropy: Tensor<1>,
    /// `[n]`: by values.
    pub by_value: Tensor<1>,
}

/// The loss on a GPU with this kernel; `None` elsewhere, where operations or a loop over the memory of the CPU take its place.
pub fn surrogate(input: SurrogateInput<'_>, config: &SurrogateConfig) -> Option<Surrogate> {
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    {
        use crate::cube::{from_device, on_device};

        let SurrogateInput { log_prob, entropy, value, old_log_prob, old_value, advantage, returns, weight } = input;
        if log_prob.dims()[0] == 0 {
            return None;
        }
        let columns = [
            on_device(log_prob)?,
            on_device(entropy)?,
            on_device(value)?,
            on_device(old_log_prob)?,
            on_device(old_value)?,
            on_device(advantage)?,
            on_device(returns)?,
        ];
        let weight = match weight {
            Some(weight) => Some(on_device(weight)?),
            None => None,
        };
        let [parts, by_log_prob, by_entropy, by_value] = crate::cube::surrogate::launch(columns, weight, config);
        let [by_log_prob, by_entropy, by_value] = [by_log_prob, by_entropy, by_value].map(from_device);
        Some(Surrogate { parts: from_device(parts), by_log_prob, by_entropy, by_value })
    }
    #[cfg(not(any(feature = "cuda", feature = "wgpu")))]
    {
        let _ = (input, config);
        None
    }
}
