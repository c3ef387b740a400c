//! Advantage estimation.

use brasa_device::runs_on_host;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
use burn::backend::{Backend, backend_extension, tensor::FloatTensor};
use burn::tensor::{Tensor, TensorData};

/// Inputs of the estimator; every tensor is `[n_steps, n_rows]`.
///
/// ```
/// use brasa_kernels::{GaeInput, gae_on_host};
///
/// // Two steps. The second step cuts the episode: its next value is bootstrapped.
/// let input = GaeInput {
///     reward: &[1.0, 1.0][..],
///     value: &[0.5, 0.5],
///     next_value: &[0.5, 4.0],
///     terminated: &[0.0, 0.0],
///     episode_end: &[0.0, 1.0],
///     discount: None,
/// };
/// let mut advantage = [0.0; 2];
/// gae_on_host(&input, 1, 0.5, 0.0, &mut advantage);
/// assert_eq!(advantage, [1.0 + 0.5 * 0.5 - 0.5, 1.0 + 0.5 * 4.0 - 0.5]);
/// ```
#[derive(Debug, Clone)]
pub struct GaeInput<T> {
    /// Reward of step t.
    pub reward: T,
    /// Value of the observation before step t, at collection.
    pub value: T,
    /// Value of the observation after step t, before any reset; ignored where `terminated` is 1.
    pub next_value: T,
    /// 1 if the episode ended by the rules of the task.
    pub terminated: T,
    /// 1 if the episode was terminated or truncated.
    pub episode_end: T,
    /// Discount of step t instead of `gamma`: `gamma^d` for a step of duration `d`; `None` if all durations are 1.
    pub discount: Option<T>,
}

/// Advantages, `[n_steps, n_rows]`.
///
/// Generalized advantage estimation (Schulman et al. 2016, equations 11 to 16).
///
/// With `d_t = r_t + gamma * (1 - terminated_t) * v'_t - v_t`, where `v'_t` is the value of the next observation before
/// any reset,
///
/// `A_t = d_t + gamma * lambda * (1 - end_t) * A_(t+1)`, and `A_T = 0`.
///
/// There are two masks: only termination stops the bootstrap; termination and truncation stop the sum.
///
/// On the CPU one scan over memory; on GPUs one kernel with a thread per row; elsewhere a scan by doubling in
/// `log2(n_steps)` rounds of whole tensors. Only the first one waits for the device.
///
/// # Panics
/// If the shapes differ.
///
/// ```
/// use brasa_kernels::{GaeInput, gae};
/// use burn::tensor::Tensor;
/// # fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
/// #     tensor.into_data().iter::<f32>().collect()
/// # }
///
/// // Two steps of one environment. The second step terminates the episode, so its next value is ignored.
/// let device = brasa_device::open_named("cpu")?;
/// let column = |x: [f32; 2]| Tensor::<2>::from_floats([[x[0]], [x[1]]], &device);
/// let input = GaeInput {
///     reward: column([1.0, 1.0]),
///     value: column([0.5, 0.5]),
///     next_value: column([0.5, 9.0]),
///     terminated: column([0.0, 1.0]),
///     episode_end: column([0.0, 1.0]),
///     discount: None,
/// };
/// assert_eq!(numbers(gae(input, 0.5, 1.0)), [1.0, 0.5]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn gae(input: GaeInput<Tensor<2>>, gamma: f64, lambda: f64) -> Tensor<2> {
    let shape = input.reward.dims();
    for (name, other) in [
        ("value", &input.value),
        ("next_value", &input.next_value),
        ("terminated", &input.terminated),
        ("episode_end", &input.episode_end),
    ] {
        assert_eq!(other.dims(), shape, "shape of `{name}`, compared with `reward`");
    }
    let device = input.reward.device();
    if !runs_on_host(&device) {
        return gae_on_device(input, gamma, lambda);
    }
    // Host only, from here on.
    let discount = input.discount.map(Tensor::into_data);
    let inputs = [input.reward, input.value, input.next_value, input.terminated, input.episode_end];
    // Host only.
    let data = inputs.map(Tensor::into_data);
    fn floats(data: &TensorData) -> &[f32] {
        data.as_slice().expect("advantages are estimated in f32")
    }
    let [reward, value, next_value, terminated, episode_end] = [0, 1, 2, 3, 4].map(|i| floats(&data[i]));
    let discount = discount.as_ref().map(floats);
    let mut advantage = vec![0.0; reward.len()];
    let input = GaeInput { reward, value, next_value, terminated, episode_end, discount };
    gae_on_host(&input, shape[1], gamma as f32, lambda as f32, &mut advantage);
    Tensor::from_data(TensorData::new(advantage, shape), &device)
}

/// The scan on the host: row-major `[n_steps, n_rows]` slices, one pass from the last step to the first.
///
/// # Panics
/// If the slices differ in length or their length is not a multiple of `n_rows`.
///
/// ```
/// use brasa_kernels::{GaeInput, gae_on_host};
///
/// // Three steps with a reward of 1 and no values: the advantages are discounted sums of rewards.
/// let (zeros, mut advantage) = ([0.0; 3], [0.0; 3]);
/// let input = GaeInput {
///     reward: &[1.0; 3][..],
///     value: &zeros,
///     next_value: &zeros,
///     terminated: &zeros,
///     episode_end: &zeros,
///     discount: None,
/// };
/// gae_on_host(&input, 1, 0.5, 1.0, &mut advantage);
/// assert_eq!(advantage, [1.75, 1.5, 1.0]);
/// ```
pub fn gae_on_host(input: &GaeInput<&[f32]>, n_rows: usize, gamma: f32, lambda: f32, advantage: &mut [f32]) {
    let length = advantage.len();
    assert!(n_rows > 0 && length.is_multiple_of(n_rows), "{length} values are not whole steps of {n_rows} rows");
    for slice in [input.reward, input.value, input.next_value, input.terminated, input.episode_end] {
        assert_eq!(slice.len(), length, "values of an input, compared with the output");
    }
    if let Some(discount) = input.discount {
        assert_eq!(discount.len(), length, "discounts, compared with the output");
        return scan_discounted(input, discount, n_rows, lambda, advantage);
    }
    if n_rows >= WIDE {
        return scan_steps(input, n_rows, gamma, lambda, advantage);
    }
    let mut first = 0;
    while first + LANES <= n_rows {
        scan_columns::<LANES>(input, n_rows, first, gamma, lambda, advantage);
        first += LANES;
    }
    for first in first..n_rows {
        scan_columns::<1>(input, n_rows, first, gamma, lambda, advantage);
    }
}

/// Number of rows from which a scan by steps vectorizes well; columns would have large strides in memory.
const WIDE: usize = 64;
/// Rows of a narrow batch that are computed together, with their sums in registers.
const LANES: usize = 8;

/// One pass over memory, step by step.
fn scan_steps(input: &GaeInput<&[f32]>, n_rows: usize, gamma: f32, lambda: f32, advantage: &mut [f32]) {
    let mut later = vec![0.0f32; n_rows];
    for step in (0..advantage.len() / n_rows).rev() {
        let at = step * n_rows..(step + 1) * n_rows;
        // Slices of equal length allow the compiler to drop bounds checks and to vectorize.
        let (reward, value) = (&input.reward[at.clone()], &input.value[at.clone()]);
        let (next_value, terminated) = (&input.next_value[at.clone()], &input.terminated[at.clone()]);
        let (episode_end, out) = (&input.episode_end[at.clone()], &mut advantage[at]);
        let later = &mut later[..n_rows];
        for i in 0..n_rows {
            let delta = reward[i] + gamma * (1.0 - terminated[i]) * next_value[i] - value[i];
            later[i] = delta + gamma * lambda * (1.0 - episode_end[i]) * later[i];
            out[i] = later[i];
        }
    }
}

/// One pass over memory with a discount per step.
fn scan_discounted(input: &GaeInput<&[f32]>, discount: &[f32], n_rows: usize, lambda: f32, advantage: &mut [f32]) {
    for at in (0..advantage.len()).rev() {
        let later = advantage.get(at + n_rows).copied().unwrap_or(0.0);
        let bootstrap = discount[at] * (1.0 - input.terminated[at]) * input.next_value[at];
        let delta = input.reward[at] + bootstrap - input.value[at];
        advantage[at] = delta + discount[at] * lambda * (1.0 - input.episode_end[at]) * later;
    }
}

/// The same for only the `N` rows from `first` on, from the last step to the first.
fn scan_columns<const N: usize>(
    input: &GaeInput<&[f32]>,
    n_rows: usize,
    first: usize,
    gamma: f32,
    lambda: f32,
    advantage: &mut [f32],
) {
    let mut later = [0.0f32; N];
    for step in (0..advantage.len() / n_rows).rev() {
        let at = step * n_rows + first;
        let part = |slice: &[f32]| -> [f32; N] { std::array::from_fn(|i| slice[at..at + N][i]) };
        let (reward, value, next_value) = (part(input.reward), part(input.value), part(input.next_value));
        let (terminated, episode_end) = (part(input.terminated), part(input.episode_end));
        for i in 0..N {
            let delta = reward[i] + gamma * (1.0 - terminated[i]) * next_value[i] - value[i];
            later[i] = delta + gamma * lambda * (1.0 - episode_end[i]) * later[i];
        }
        advantage[at..at + N].copy_from_slice(&later);
    }
}

fn gae_on_device(input: GaeInput<Tensor<2>>, gamma: f64, lambda: f64) -> Tensor<2> {
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    if crate::cube::runs_on(&input.reward) && !input.reward.is_autodiff() {
        let with_discount = input.discount.is_some();
        // A backend extension cannot have optional tensors.
        let discount = input.discount.unwrap_or_else(|| input.reward.clone());
        return Tensor::from_dispatch(<burn::backend::Dispatch as GaeOps>::brasa_gae(
            input.reward.into_dispatch(),
            input.value.into_dispatch(),
            input.next_value.into_dispatch(),
            input.terminated.into_dispatch(),
            input.episode_end.into_dispatch(),
            discount.into_dispatch(),
            with_discount,
            gamma as f32,
            lambda as f32,
        ));
    }
    gae_by_doubling(input, gamma, lambda)
}

/// Backends with a kernel for the scan.
#[cfg(any(feature = "cuda", feature = "wgpu"))]
#[backend_extension(Cube)]
pub(crate) trait GaeOps: Backend {
    /// Advantages; `discount` is used `with_discount`, else `gamma`.
    #[allow(clippy::too_many_arguments, reason = "an extension takes its tensors one by one")]
    fn brasa_gae(
        reward: FloatTensor<Self>,
        value: FloatTensor<Self>,
        next_value: FloatTensor<Self>,
        terminated: FloatTensor<Self>,
        episode_end: FloatTensor<Self>,
        discount: FloatTensor<Self>,
        with_discount: bool,
        gamma: f32,
        lambda: f32,
    ) -> FloatTensor<Self>;
}

#[cfg(any(feature = "cuda", feature = "wgpu"))]
impl GaeOps for burn_cubecl::CubeBackend {
    fn brasa_gae(
        reward: FloatTensor<Self>,
        value: FloatTensor<Self>,
        next_value: FloatTensor<Self>,
        terminated: FloatTensor<Self>,
        episode_end: FloatTensor<Self>,
        discount: FloatTensor<Self>,
        with_discount: bool,
        gamma: f32,
        lambda: f32,
    ) -> FloatTensor<Self> {
        let inputs = [reward, value, next_value, terminated, episode_end, discount];
        crate::cube::gae::launch(inputs, with_discount, gamma, lambda)
    }
}

/// The recurrence `A_t = d_t + c_t A_(t+1)` by doubling: after round k every element is a sum over 2^k steps.
fn gae_by_doubling(input: GaeInput<Tensor<2>>, gamma: f64, lambda: f64) -> Tensor<2> {
    let [n_steps, n_rows] = input.reward.dims();
    let device = input.reward.device();
    let discounted = |values: Tensor<2>| match &input.discount {
        Some(discount) => values * discount.clone(),
        None => values * gamma,
    };
    let bootstrap = discounted((-input.terminated + 1.0) * input.next_value);
    let mut sum = input.reward + bootstrap - input.value;
    let mut factor = discounted(-input.episode_end + 1.0) * lambda;
    let mut reach = 1;
    while reach < n_steps {
        // Steps after the last one add 0.
        let later = |tensor: &Tensor<2>| {
            Tensor::cat(vec![tensor.clone().slice(reach..n_steps), Tensor::zeros([reach, n_rows], &device)], 0)
        };
        sum = sum.clone() + factor.clone() * later(&sum);
        factor = factor.clone() * later(&factor);
        reach *= 2;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ROWS: usize = 3;

    /// The definition as a sum over all later steps of one row, in f64.
    fn by_definition(input: &GaeInput<Vec<f32>>, gamma: f64, lambda: f64) -> Vec<f64> {
        let at = |values: &[f32], t: usize, row: usize| f64::from(values[t * ROWS + row]);
        let n_steps = input.reward.len() / ROWS;
        let mut out = vec![0.0; input.reward.len()];
        for row in 0..ROWS {
            for t in 0..n_steps {
                let mut weight = 1.0;
                for k in t..n_steps {
                    let bootstrap = gamma * (1.0 - at(&input.terminated, k, row)) * at(&input.next_value, k, row);
                    out[t * ROWS + row] += weight * (at(&input.reward, k, row) + bootstrap - at(&input.value, k, row));
                    if at(&input.episode_end, k, row) > 0.0 {
                        break;
                    }
                    weight *= gamma * lambda;
                }
            }
        }
        out
    }

    fn inputs() -> impl Strategy<Value = GaeInput<Vec<f32>>> {
        (1usize..20).prop_flat_map(|n_steps| {
            let n = n_steps * ROWS;
            let values = || proptest::collection::vec(-3.0f32..3.0, n);
            let flags = || proptest::collection::vec(proptest::bool::weighted(0.2), n);
            (values(), values(), values(), flags(), flags()).prop_map(|(reward, value, next_value, dead, cut)| {
                let episode_end = dead.iter().zip(&cut).map(|(a, b)| f32::from(u8::from(*a || *b))).collect();
                let terminated = dead.iter().map(|a| f32::from(u8::from(*a))).collect();
                GaeInput { reward, value, next_value, terminated, episode_end, discount: None }
            })
        })
    }

    proptest! {
        #[test]
        fn both_scans_equal_the_definition(input in inputs(), gamma in 0.0f64..1.0, lambda in 0.0f64..1.0) {
            let device = brasa_test::device();
            let n_steps = input.reward.len() / ROWS;
            let tensor = |v: &[f32]| Tensor::<2>::from_data(TensorData::new(v.to_vec(), [n_steps, ROWS]), &device);
            let expected = by_definition(&input, gamma, lambda);
            let tensors = GaeInput {
                reward: tensor(&input.reward),
                value: tensor(&input.value),
                next_value: tensor(&input.next_value),
                terminated: tensor(&input.terminated),
                episode_end: tensor(&input.episode_end),
                discount: None,
            };
            for advantage in [gae(tensors.clone(), gamma, lambda), gae_by_doubling(tensors, gamma, lambda)] {
                for (got, want) in advantage.into_data().iter::<f64>().zip(&expected) {
                    prop_assert!((got - want).abs() < 1e-4, "{got} instead of {want}");
                }
            }
        }

        #[test]
        fn lambda_0_is_the_one_step_error(input in inputs(), gamma in 0.0f32..1.0) {
            let mut advantage = vec![0.0; input.reward.len()];
            let slices = GaeInput {
                reward: &input.reward[..], value: &input.value[..], next_value: &input.next_value[..],
                terminated: &input.terminated[..], episode_end: &input.episode_end[..],
                discount: None,
            };
            gae_on_host(&slices, ROWS, gamma, 0.0, &mut advantage);
            for (i, advantage) in advantage.iter().enumerate() {
                let delta = input.reward[i] + gamma * (1.0 - input.terminated[i]) * input.next_value[i] - input.value[i];
                prop_assert!((advantage - delta).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn batches_of_any_width_give_the_same_rows() {
        let n_steps = 12;
        let cell = |step: usize, row: usize| ((step * 31 + row * 17) % 23) as f32 / 23.0;
        let advantage = |rows: &[usize]| {
            let fill = |of: &dyn Fn(f32) -> f32| -> Vec<f32> {
                (0..n_steps)
                    .flat_map(|step| rows.iter().map(move |row| (step, *row)))
                    .map(|(s, r)| of(cell(s, r)))
                    .collect()
            };
            let (reward, value, next_value) = (fill(&|x| x), fill(&|x| 1.0 - x), fill(&|x| x * x));
            let terminated = fill(&|x| f32::from(u8::from(x < 0.05)));
            let episode_end = fill(&|x| f32::from(u8::from(x < 0.1)));
            let slices = GaeInput {
                reward: &reward[..],
                value: &value[..],
                next_value: &next_value[..],
                terminated: &terminated[..],
                episode_end: &episode_end[..],
                discount: None,
            };
            let mut out = vec![0.0; n_steps * rows.len()];
            gae_on_host(&slices, rows.len(), 0.99, 0.95, &mut out);
            out
        };
        // Single rows, eight rows at a time with a remainder, and by steps.
        for width in [1, 7, 8, 9, 63, 64, 70] {
            let rows: Vec<usize> = (0..width).collect();
            let together = advantage(&rows);
            for row in rows {
                let alone = advantage(&[row]);
                assert!((0..n_steps).all(|step| together[step * width + row] == alone[step]), "row {row} of {width}");
            }
        }
    }

    #[test]
    fn lambda_1_is_the_discounted_return_minus_the_value() {
        // One row, three steps, no end: A_0 = r_0 + g r_1 + g^2 r_2 + g^3 v' - v_0.
        let (gamma, reward, value) = (0.5f32, [1.0, 2.0, 4.0], [10.0, 20.0, 30.0]);
        let slices = GaeInput {
            reward: &reward[..],
            value: &value[..],
            next_value: &[20.0, 30.0, 8.0][..],
            terminated: &[0.0; 3][..],
            episode_end: &[0.0; 3][..],
            discount: None,
        };
        let mut advantage = [0.0; 3];
        gae_on_host(&slices, 1, gamma, 1.0, &mut advantage);
        assert_eq!(advantage[0], 1.0 + 0.5 * 2.0 + 0.25 * 4.0 + 0.125 * 8.0 - 10.0);
    }

    #[test]
    fn a_discount_of_gamma_everywhere_is_gamma_and_nothing_goes_past_a_discount_of_0() {
        let device = brasa_test::device();
        let grid = |values: [f32; 4]| Tensor::<2>::from_data(TensorData::new(values.to_vec(), [2, 2]), &device);
        let input = |discount| GaeInput {
            reward: grid([1.0, 2.0, 3.0, 4.0]),
            value: grid([0.5, 0.4, 0.3, 0.2]),
            next_value: grid([0.3, 0.2, 7.0, 8.0]),
            terminated: grid([0.0; 4]),
            episode_end: grid([0.0, 1.0, 0.0, 0.0]),
            discount,
        };
        let numbers = |advantage: Tensor<2>| advantage.into_data().iter::<f32>().collect::<Vec<f32>>();
        for estimate in [gae, gae_by_doubling] {
            let plain = numbers(estimate(input(None), 0.9, 0.8));
            assert_eq!(numbers(estimate(input(Some(grid([0.9; 4]))), 0.0, 0.8)), plain);
            assert_eq!(numbers(estimate(input(Some(grid([0.0; 4]))), 0.9, 0.8)), [0.5, 1.6, 2.7, 3.8]);
        }
    }

    #[test]
    fn truncation_bootstraps_and_termination_does_not() {
        let advantage = |terminated: f32| {
            let mut out = [0.0];
            let slices = GaeInput {
                reward: &[1.0][..],
                value: &[0.0][..],
                next_value: &[10.0][..],
                terminated: &[terminated][..],
                episode_end: &[1.0][..],
                discount: None,
            };
            gae_on_host(&slices, 1, 0.9, 0.95, &mut out);
            out[0]
        };
        assert_eq!(advantage(0.0), 10.0);
        assert_eq!(advantage(1.0), 1.0);
    }
}
