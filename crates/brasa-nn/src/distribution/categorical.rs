//! One or several independent choices, with masks.
//!
//! All functions use the log-softmax: logarithms of rounded probabilities make entropies and ratios NaN.

use burn::tensor::activation::log_softmax;
use burn::tensor::{Int, Tensor};

/// Logit of masked actions; minus infinity would make gradients NaN (0 times infinity).
const MASKED: f32 = -1e9;

/// Log-probabilities of the actions of each head, `[n_rows, n_actions]`; illegal actions have probability 0.
///
/// # Shapes
/// - `logits`: `[n_rows, n_actions]`, heads concatenated
/// - `mask`: `[n_rows, n_actions]`, 1 for legal actions
/// - `heads`: actions per head
pub fn log_probs(logits: Tensor<2>, mask: Option<Tensor<2>>, heads: &[usize]) -> Tensor<2> {
    let logits = match mask {
        // The addition keeps gradients of legal actions exact and those of illegal ones 0.
        Some(mask) => logits.clone() * mask.clone() + (mask - 1.0) * -MASKED,
        None => logits,
    };
    if heads.len() == 1 {
        return log_softmax(logits, 1);
    }
    let parts = logits.split_with_sizes(heads.to_vec(), 1).into_iter().map(|head| log_softmax(head, 1));
    Tensor::cat(parts.collect(), 1)
}

/// Log-probability of `action`, `[n_rows]`: the sum over heads.
///
/// # Shapes
/// - `log_probs`: of [`log_probs`]
/// - `action`: `[n_rows, heads]`, indices within each head
pub fn log_prob(log_probs: Tensor<2>, action: Tensor<2>, heads: &[usize]) -> Tensor<1> {
    let index = options(action, heads);
    let chosen = log_probs.gather(1, index);
    if heads.len() == 1 { chosen.squeeze_dim(1) } else { chosen.sum_dim(1).squeeze_dim(1) }
}

/// `[n_rows]`: 1 if more actions are legal than there are heads, 0 if no head has a choice.
pub fn has_choice(mask: Tensor<2>, n_heads: usize) -> Tensor<1> {
    mask.sum_dim(1).squeeze_dim(1).greater_scalar(n_heads as f32 + 0.5).float()
}

/// Entropy in nats, `[n_rows]`, over legal actions: the sum over heads.
pub fn entropy(log_probs: Tensor<2>) -> Tensor<1> {
    // exp underflows to exactly 0 for illegal actions, and 0 times a finite number is 0.
    -(log_probs.clone().exp() * log_probs).sum_dim(1).squeeze_dim(1)
}

/// Samples by the Gumbel-max trick, `[n_rows, heads]`; without noise, the most probable action.
pub fn choose(log_probs: Tensor<2>, gumbel: Option<Tensor<2>>, heads: &[usize]) -> Tensor<2> {
    let scores = match gumbel {
        Some(noise) => log_probs + noise,
        None => log_probs,
    };
    if heads.len() == 1 {
        return scores.argmax(1).float();
    }
    let parts = scores.split_with_sizes(heads.to_vec(), 1).into_iter().map(|head| head.argmax(1).float());
    Tensor::cat(parts.collect(), 1)
}

/// Columns of the actions in `action`, `[n_rows, heads]`.
fn options(action: Tensor<2>, heads: &[usize]) -> Tensor<2, Int> {
    if heads.len() == 1 {
        return action.int();
    }
    let starts: Vec<f32> = heads.iter().scan(0, |sum, n| Some(std::mem::replace(sum, *sum + n) as f32)).collect();
    let starts = Tensor::<1>::from_floats(starts.as_slice(), &action.device().without_autodiff());
    (action.without_autodiff() + starts.unsqueeze()).int()
}
