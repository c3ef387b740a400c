//! What several tests compute.

use brasa_kernels::{RowInputs, row_rule};
use brasa_number::NormalDraw;
use burn::tensor::Tensor;

/// The sample of soft actor-critic.
pub fn squashed_rsample(mean: Tensor<2>, log_std: Tensor<2>, noise: Tensor<2>) -> (Tensor<2>, Tensor<1>) {
    let rule = NormalDraw { squash: true, log_std_range: None };
    let ([action], [log_prob]) =
        row_rule(rule, &RowInputs { results: [&mean, &log_std], data: Some(&noise), taken: None });
    (action, log_prob)
}
