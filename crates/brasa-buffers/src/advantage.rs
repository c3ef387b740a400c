//! What on-policy learners do with advantages and value targets.

use burn::tensor::Tensor;

/// Keeps the division by a deviation of 0 finite.
const EPSILON: f32 = 1e-8;

/// Advantages of mean 0 and unbiased deviation 1, `[n_rows]`; a single one stays as it is.
pub fn normalize(advantage: Tensor<1>) -> Tensor<1> {
    if advantage.dims()[0] < 2 {
        return advantage;
    }
    let centered = advantage.clone() - advantage.mean();
    let n = centered.dims()[0] as f32;
    let deviation = (centered.clone().square().sum() / (n - 1.0)).sqrt();
    centered / (deviation + EPSILON)
}

/// `1 - var(target - value) / var(target)`: 1 for a perfect critic, 0 for a constant one; 0 where targets are equal.
pub fn explained_variance(value: Tensor<1>, target: Tensor<1>) -> Tensor<1> {
    let squares = |x: Tensor<1>| (x.clone() - x.mean()).square().sum();
    let total = squares(target.clone());
    let constant = total.clone().equal_scalar(0.0);
    let share = squares(target - value) / (total + f32::MIN_POSITIVE);
    (-share + 1.0).mask_fill(constant, 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device() -> burn::tensor::Device {
        brasa_device::open_named("cpu").expect("flex is a default feature")
    }

    fn scalar(tensor: Tensor<1>) -> f32 {
        tensor.into_scalar::<f32>()
    }

    #[test]
    fn one_advantage_is_not_normalized() {
        let device = device();
        assert_eq!(scalar(normalize(Tensor::from_floats([3.0], &device))), 3.0);
    }

    #[test]
    fn explained_variance_of_good_bad_and_constant() {
        let device = device();
        let t = |x: [f32; 3]| Tensor::<1>::from_floats(x, &device);
        assert_eq!(scalar(explained_variance(t([1.0, 2.0, 3.0]), t([1.0, 2.0, 3.0]))), 1.0);
        assert_eq!(scalar(explained_variance(t([5.0, 5.0, 5.0]), t([1.0, 2.0, 3.0]))), 0.0);
        assert_eq!(scalar(explained_variance(t([1.0, 2.0, 3.0]), t([4.0, 4.0, 4.0]))), 0.0);
    }
}
