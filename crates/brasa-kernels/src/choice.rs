//! One choice per row with a mask: log-probability and entropy with their derivatives, in one launch on a GPU.

use burn::tensor::Tensor;

/// Log-probabilities and entropies with their derivatives by the logits, without gradients.
#[derive(Debug)]
pub struct JudgedChoice {
    /// `[n_rows]`.
    pub log_prob: Tensor<1>,
    /// In nats, `[n_rows]`.
    pub entropy: Tensor<1>,
    /// `[n_rows, n_actions]`: derivatives of the log-probability, `[j = a] - p_j`.
    pub by_log_prob: Tensor<2>,
    /// `[n_rows, n_actions]`: derivatives of the entropy, `-p_j (ln p_j + H)`.
    pub by_entropy: Tensor<2>,
}

/// Results for the choice of `action` on a GPU with this kernel; `None` elsewhere, where operations or a loop over the memory of the CPU take
/// its place. Of tensors with gradients, the numbers alone.
///
/// # Shapes
/// - `logits`: `[n_rows, n_actions]`
/// - `mask`: `[n_rows, n_actions]`, 1 for legal actions; the logits of others become `masked`
/// - `action`: `[n_rows, 1]`, indices, which are not checked
///
/// Actions with a log-probability below `illegal` have no share of the entropy.
pub fn judged_choice(
    logits: &Tensor<2>,
    mask: Option<&Tensor<2>>,
    action: &Tensor<2>,
    masked: f32,
    illegal: f32,
) -> Option<JudgedChoice> {
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    {
        use crate::cube::{from_device, on_device};

        if logits.dims().contains(&0) {
            return None;
        }
        let mask = match mask {
            Some(mask) => Some(on_device(mask)?),
            None => None,
        };
        let out = crate::cube::choice::launch(on_device(logits)?, mask, on_device(action)?, masked, illegal);
        let [log_prob, entropy, by_log_prob, by_entropy] = out;
        let (log_prob, entropy) = (from_device(log_prob), from_device(entropy));
        Some(JudgedChoice {
            log_prob,
            entropy,
            by_log_prob: from_device(by_log_prob),
            by_entropy: from_device(by_entropy),
        })
    }
    #[cfg(not(any(feature = "cuda", feature = "wgpu")))]
    {
        let _ = (logits, mask, action, masked, illegal);
        None
    }
}
