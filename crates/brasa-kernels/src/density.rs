//! The log-density of independent normal distributions with its derivatives, in one launch on a GPU.

use burn::tensor::Tensor;

/// Log-densities with their derivatives, without gradients.
#[derive(Debug)]
pub struct JudgedDensity {
    /// `[n_rows]`.
    pub log_prob: Tensor<1>,
    /// `[n_rows, n]`: with `z = (a - m) / s`, `z / s`.
    pub by_mean: Tensor<2>,
    /// `[n_rows, n]`: `z^2 - 1`, also where all rows have the same deviation.
    pub by_log_std: Tensor<2>,
}

/// The log-density of `action` on a GPU with this kernel; `None` elsewhere, where operations or a loop over the memory of the CPU take its
/// place. Of tensors with gradients, the numbers alone.
///
/// # Shapes
/// - `mean`, `action`: `[n_rows, n]`
/// - `log_std`: `[n_rows, n]` or `[1, n]`
pub fn judged_density(mean: &Tensor<2>, log_std: &Tensor<2>, action: &Tensor<2>) -> Option<JudgedDensity> {
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    {
        use crate::cube::{from_device, on_device};

        if mean.dims().contains(&0) {
            return None;
        }
        let half_log_2_pi = 0.5 * (2.0 * std::f32::consts::PI).ln();
        let inputs = [on_device(mean)?, on_device(log_std)?, on_device(action)?];
        let [mean, log_std, action] = inputs;
        let [log_prob, by_mean, by_log_std] = crate::cube::density::launch(mean, log_std, action, half_log_2_pi);
        let (by_mean, by_log_std) = (from_device(by_mean), from_device(by_log_std));
        Some(JudgedDensity { log_prob: from_device(log_prob), by_mean, by_log_std })
    }
    #[cfg(not(any(feature = "cuda", feature = "wgpu")))]
    {
        let _ = (mean, log_std, action);
        None
    }
}
