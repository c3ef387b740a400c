//! Statistics of advantages and of value targets.

use brasa_core::Metrics;
use brasa_kernels::HostTensor;
use brasa_shards::{mean, shard};
use burn::tensor::Tensor;

/// Added to the standard deviation of advantages: keeps the division by one of 0 finite.
pub(crate) const ADVANTAGE_EPSILON: f64 = 1e-8;

/// Advantages with mean 0 and unbiased standard deviation 1, `[n_rows]`; a single advantage is not changed.
///
/// With a `weight`, whose mean is 1 (see [`choice_weight`]), the moments are weighted. In a run of several shards ([`brasa_shards`])
/// they are those of the advantages of all shards, which have equally many.
///
/// ```
/// use brasa_core::read_back;
/// use brasa_nn::normalize;
/// use burn::tensor::Tensor;
///
/// // The mean is 3 and the unbiased standard deviation is 2.
/// let device = brasa_device::open_named("cpu")?;
/// let normal = read_back(normalize(Tensor::from_floats([1.0, 3.0, 5.0], &device), None));
/// assert!(normal.iter().zip([-1.0, 0.0, 1.0]).all(|(got, expected)| (got - expected).abs() < 1e-6));
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn normalize(advantage: Tensor<1>, weight: Option<&Tensor<1>>) -> Tensor<1> {
    let n_shards = shard().count;
    if advantage.dims()[0] * n_shards < 2 {
        return advantage;
    }
    let weights = weight.map(HostTensor::of);
    if let (Some(numbers), None | Some(Some(_))) = (HostTensor::of(&advantage), &weights) {
        let weights = weights.flatten();
        let weigh = |(i, x): (usize, f64)| x * weights.as_ref().map_or(1.0, |weights| f64::from(weights[i]));
        let n = numbers.len() as f64;
        let center = of_shards(numbers.iter().map(|x| f64::from(*x)).enumerate().map(weigh).sum::<f64>() / n);
        let squares = numbers.iter().map(|x| (f64::from(*x) - center).powi(2));
        let variance = of_shards(squares.enumerate().map(weigh).sum::<f64>() / (n - 1.0 / n_shards as f64));
        let scale = 1.0 / (variance.sqrt() + ADVANTAGE_EPSILON);
        let normal = numbers.iter().map(|x| ((f64::from(*x) - center) * scale) as f32);
        return HostTensor::tensor(normal.collect(), advantage.dims());
    }
    let weigh = |x: Tensor<1>| weight.map_or(x.clone(), |weight| x * weight.clone());
    let centered = advantage.clone() - of_shards_on_device(weigh(advantage).mean());
    let n = centered.dims()[0] as f32;
    let variance = of_shards_on_device(weigh(centered.clone().square()).sum() / (n - 1.0 / n_shards as f32));
    centered / (variance.sqrt() + ADVANTAGE_EPSILON)
}

/// The mean over all shards.
fn of_shards(x: f64) -> f64 {
    mean(vec![x])[0]
}

/// The same for a `[1]` on a device. Waits for it if there are several shards.
fn of_shards_on_device(x: Tensor<1>) -> Tensor<1> {
    if !shard().is_part() {
        return x;
    }
    let device = x.device();
    // Waits for the device: other shards are reached from the host.
    Tensor::from_floats([of_shards(x.into_scalar::<f64>()) as f32], &device)
}

/// Weights that turn a mean over all rows, also those of other shards, into the mean over the rows with a choice (`1` in `choice`).
///
/// # Shapes
/// - `choice`: `[n_rows]`, see [`brasa_core::ActorCritic::choice`]
/// - output: `[n_rows]`
///
/// ```
/// use brasa_nn::choice_weight;
/// use burn::tensor::Tensor;
///
/// // The first and the third row have several legal actions.
/// let choice = Tensor::from_floats([1.0, 0.0, 1.0, 0.0], &brasa_device::open_named("cpu")?);
/// assert_eq!(brasa_core::read_back(choice_weight(choice)), [2.0, 0.0, 2.0, 0.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn choice_weight(choice: Tensor<1>) -> Tensor<1> {
    let n = choice.dims()[0] as f32;
    choice.clone() * (of_shards_on_device(choice.sum()).clamp_min(1.0 / shard().count as f32).recip() * n)
}

/// `1 - var(target - value) / var(target)`: 1 for a perfect critic, 0 for a constant one; 0 if all targets are equal.
///
/// ```
/// use brasa_nn::explained_variance;
///
/// let target = [1.0, 2.0, 3.0];
/// assert_eq!([target, [2.0; 3]].map(|value| explained_variance(&value, &target)), [1.0, 0.0]);
/// ```
///
/// # Panics
/// If their numbers of rows differ.
pub fn explained_variance(value: &[f32], target: &[f32]) -> f64 {
    assert_eq!(value.len(), target.len(), "a target for every value");
    let total = squares(target.iter().map(|target| f64::from(*target)));
    if total == 0.0 {
        return 0.0;
    }
    1.0 - squares(value.iter().zip(target).map(|(value, target)| f64::from(*target) - f64::from(*value))) / total
}

/// Adds what critic and policy of a rollout show: the explained variance of its values, and the mean deviation of actions if they have one.
///
/// # Shapes
/// - `critic`: values and their targets, `[n_rows]` each
/// - `std`: `[n_numbers]`, see [`brasa_core::ActorCritic::std`]
///
/// ```
/// use brasa_core::Metrics;
/// use brasa_nn::push_of_rollout;
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let numbers = |numbers: [f32; 2]| Tensor::from_floats(numbers, &device);
/// let mut metrics = Metrics::default();
/// push_of_rollout(&mut metrics, [numbers([1.0, 3.0]), numbers([1.0, 3.0])], Some(numbers([0.25, 0.75])));
/// assert_eq!(metrics.read()?, [("train/explained_variance", 1.0), ("train/std", 0.5)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn push_of_rollout(metrics: &mut Metrics, critic: [Tensor<1>; 2], std: Option<Tensor<1>>) {
    metrics.push_from(critic.into_iter().chain(std).collect(), |numbers| {
        let mut all = vec![("train/explained_variance", explained_variance(&numbers[0], &numbers[1]))];
        all.extend(numbers.get(2).map(|std| ("train/std", mean_of(std.as_chunks::<1>().0, 0))));
        all
    });
}

/// The mean of a column of rows.
///
/// ```
/// assert_eq!(brasa_nn::mean_of(&[[1.0, 5.0], [2.0, 6.0]], 1), 5.5);
/// ```
pub fn mean_of<const R: usize>(rows: &[[f32; R]], column: usize) -> f64 {
    rows.iter().map(|row| f64::from(row[column])).sum::<f64>() / rows.len() as f64
}

/// The sum of the squared distances from the mean.
fn squares(numbers: impl ExactSizeIterator<Item = f64> + Clone) -> f64 {
    let mean = numbers.clone().sum::<f64>() / numbers.len() as f64;
    numbers.map(|x| (x - mean) * (x - mean)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use brasa_test::device;

    fn scalar(tensor: Tensor<1>) -> f32 {
        tensor.into_scalar::<f32>()
    }

    #[test]
    fn one_advantage_is_not_normalized() {
        let device = device();
        assert_eq!(scalar(normalize(Tensor::from_floats([3.0], &device), None)), 3.0);
    }

    #[test]
    fn only_choices_count() {
        let device = device();
        let t = |x: [f32; 4]| Tensor::<1>::from_floats(x, &device);
        let weight = choice_weight(t([1.0, 0.0, 1.0, 0.0]));
        assert_eq!(scalar((t([3.0, 100.0, 5.0, -7.0]) * weight.clone()).mean()), 4.0);
        let normal = normalize(t([3.0, 100.0, 5.0, -7.0]), Some(&weight)) * weight;
        assert!(scalar(normal.mean()).abs() < 1e-6);
        assert_eq!(scalar(choice_weight(t([0.0; 4])).sum()), 0.0);
    }

    #[test]
    fn explained_variance_of_good_bad_and_constant() {
        assert_eq!(explained_variance(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0]), 1.0);
        assert_eq!(explained_variance(&[5.0, 5.0, 5.0], &[1.0, 2.0, 3.0]), 0.0);
        assert_eq!(explained_variance(&[1.0, 2.0, 3.0], &[4.1, 4.1, 4.1]), 0.0);
        // The variance of the target is 2/3, of the error 2/9.
        assert!((explained_variance(&[1.0, 1.0, 3.0], &[1.0, 2.0, 3.0]) - 2.0 / 3.0).abs() < 1e-12);
    }
}
