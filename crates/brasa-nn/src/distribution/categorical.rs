//! One or several independent choices, with masks.
//!
//! All functions use the log-softmax: logarithms of rounded probabilities make entropies and ratios NaN.

use brasa_kernels::{HostColumns, HostTensor, RowInputs, RowSlopes, concat, row_rule};
use brasa_number::{Categorical, CategoricalDraw, RowRule, Single};
use burn::tensor::Tensor;
use burn::tensor::activation::log_softmax;

/// Actions `[n_rows, heads]`, by the Gumbel-max trick, and their log-probabilities `[n_rows]`, without gradients; without noise, the most
/// probable actions, NaN where the logits are NaN.
///
/// # Shapes
/// - `logits`, `mask`, `heads`: as for [`log_probs`]
/// - `gumbel`: `[n_rows, n_actions]`
///
/// ```
/// use brasa_core::read_back;
/// use brasa_nn::distribution::categorical;
/// use burn::tensor::Tensor;
///
/// // Two choices, among two and among three actions. Without noise, the most probable actions.
/// let logits = Tensor::from_floats([[0.0, 1.0, 3.0, 0.0, 0.0]], &brasa_device::open_named("cpu")?);
/// let (actions, log_prob) = categorical::draw(logits, None, None, &[2, 3]);
/// assert_eq!(read_back(actions), [1.0, 0.0]);
/// let expected = -(1.0 + (-1f32).exp()).ln() - (1.0 + 2.0 * (-3f32).exp()).ln();
/// assert!((read_back(log_prob)[0] - expected).abs() < 1e-6);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn draw(
    logits: Tensor<2>,
    mask: Option<Tensor<2>>,
    gumbel: Option<Tensor<2>>,
    heads: &[usize],
) -> (Tensor<2>, Tensor<1>) {
    let numbers = [Some(&logits), mask.as_ref(), gumbel.as_ref()].map(|tensor| tensor.map(HostTensor::of));
    if numbers.iter().flatten().any(Option::is_none) {
        return draw_on_device(&logits.without_autodiff(), mask.as_ref(), gumbel.as_ref(), heads);
    }
    let [logits, mask, gumbel] = numbers.map(Option::flatten);
    let logits = logits.expect("it was there");
    let n_rows = logits.len() / heads.iter().sum::<usize>();
    let (mut actions, mut log_probs) = (Vec::with_capacity(n_rows * heads.len()), Vec::with_capacity(n_rows));
    let scratch = &mut RowSlopes::default();
    draw_rows(scratch, &logits, mask.as_deref(), gumbel.as_deref(), heads, &mut actions, &mut log_probs);
    (HostTensor::tensor(actions, [n_rows, heads.len()]), HostTensor::tensor(log_probs, [n_rows]))
}

/// [`draw`] on a GPU: two kernels per head, and some small ones without noise.
fn draw_on_device(
    logits: &Tensor<2>,
    mask: Option<&Tensor<2>>,
    gumbel: Option<&Tensor<2>>,
    heads: &[usize],
) -> (Tensor<2>, Tensor<1>) {
    let zeros = gumbel.is_none().then(|| logits.zeros_like());
    let noise = gumbel.or(zeros.as_ref()).expect("one of them");
    let masked = mask.is_some();
    let of_heads = offsets(heads).map(|(at, n)| {
        let [logits, noise] = [logits, noise].map(|tensor| columns(tensor, at, n));
        let mask = mask.map(|mask| columns(mask, at, n));
        let rows = RowInputs { results: [&logits, &noise], data: mask.as_ref(), taken: None };
        let (_, [action]) = row_rule(CategoricalDraw { masked }, &rows);
        let action = action.unsqueeze_dim::<2>(1);
        let rows = RowInputs { results: [&logits], data: mask.as_ref(), taken: Some(&action) };
        let (_, [log_prob, _]) = row_rule(Categorical { masked }, &rows);
        // NaN stays NaN.
        let action = if gumbel.is_none() { action + log_prob.clone().unsqueeze_dim(1) * 0.0 } else { action };
        (action, log_prob)
    });
    let (actions, log_probs): (Vec<_>, Vec<_>) = of_heads.unzip();
    let log_prob = log_probs.into_iter().reduce(|a, b| a + b).expect("there is a head");
    (concat(actions), log_prob)
}

/// [`draw`] in the memory of the CPU: appends to `actions` and `log_probs`.
///
/// ```
/// use brasa_kernels::RowSlopes;
/// use brasa_nn::distribution::categorical;
///
/// // Two rows with three actions. The mask forbids the most probable action of the second row.
/// let (logits, mask) = ([0.0, 5.0, 0.0, 0.0, 5.0, 1.0], [1.0, 1.0, 1.0, 1.0, 0.0, 1.0]);
/// let (mut actions, mut log_probs) = (Vec::new(), Vec::new());
/// let scratch = &mut RowSlopes::default();
/// categorical::draw_rows(scratch, &logits, Some(&mask), None, &[3], &mut actions, &mut log_probs);
/// assert_eq!(actions, [1.0, 2.0]);
/// assert!(log_probs.iter().all(|log_prob| *log_prob < 0.0));
/// ```
pub fn draw_rows(
    scratch: &mut RowSlopes<1, 0, 3, 2>,
    logits: &[f32],
    mask: Option<&[f32]>,
    gumbel: Option<&[f32]>,
    heads: &[usize],
    actions: &mut Vec<f32>,
    log_probs: &mut Vec<f32>,
) {
    let width: usize = heads.iter().sum();
    let (n_rows, first) = (logits.len() / width, actions.len());
    let draw = CategoricalDraw { masked: mask.is_some() };
    for row in 0..n_rows {
        for (at, n) in offsets(heads) {
            let key = |i: usize| {
                let i = row * width + at + i;
                let noise = gumbel.map_or(0.0, |noise| noise[i]);
                draw.key([Single(logits[i]), Single(noise)], Single(mask.map_or(1.0, |mask| mask[i]))).0
            };
            let first = (0, key(0));
            let (best, _) = (1..n).map(|i| (i, key(i))).fold(first, |a, b| if b.1 > a.1 { b } else { a });
            actions.push(best as f32);
        }
    }
    let mut results = [vec![0.0; n_rows], vec![0.0; n_rows]];
    let from = log_probs.len();
    log_probs.resize(from + n_rows, 0.0);
    for head in 0..heads.len() {
        evaluate_head(scratch, [logits, &actions[first..]], mask, (head, heads), &mut results);
        for (row, log_prob) in results[0].iter().enumerate() {
            log_probs[from + row] += log_prob;
            if gumbel.is_none() && log_prob.is_nan() {
                actions[first + row * heads.len() + head] = f32::NAN;
            }
        }
    }
}

/// [`evaluate`] of a head in the memory of the CPU, with what gives derivatives; returns its first column.
pub(crate) fn evaluate_head(
    slopes: &mut RowSlopes<1, 0, 3, 2>,
    [logits, actions]: [&[f32]; 2],
    mask: Option<&[f32]>,
    (head, heads): (usize, &[usize]),
    [log_prob, entropy]: &mut [Vec<f32>; 2],
) -> usize {
    let (at, n) = offsets(heads).nth(head).expect("there is such a head");
    let per_row = heads.iter().sum();
    slopes.forward(
        Categorical { masked: mask.is_some() },
        [log_prob.len(), n],
        [HostColumns { numbers: &logits[at..], per_row }],
        mask.map(|mask| HostColumns { numbers: &mask[at..], per_row }),
        Some(HostColumns { numbers: &actions[head..], per_row: heads.len() }),
        [],
        [log_prob, entropy],
    );
    at
}

/// Some columns of a matrix.
fn columns(matrix: &Tensor<2>, at: usize, n: usize) -> Tensor<2> {
    let [n_rows, width] = matrix.dims();
    if width == n { matrix.clone() } else { matrix.clone().slice([0..n_rows, at..at + n]) }
}

/// Log-probabilities of `action` and entropies, `[n_rows]` each: sums over heads.
///
/// # Shapes
/// - `logits`, `mask`, `heads`: as for [`log_probs`]
/// - `action`: `[n_rows, heads]`, indices within each head
///
/// ```
/// use brasa_core::read_back;
/// use brasa_nn::distribution::categorical;
/// use burn::tensor::Tensor;
///
/// // Two actions with equal logits.
/// let device = brasa_device::open_named("cpu")?;
/// let (logits, action) = (Tensor::zeros([1, 2], &device), Tensor::from_floats([[1.0]], &device));
/// let (log_prob, entropy) = categorical::evaluate(logits, None, action, &[2]);
/// assert!((read_back(log_prob)[0] - 0.5f32.ln()).abs() < 1e-6);
/// assert!((read_back(entropy)[0] - 2f32.ln()).abs() < 1e-6);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn evaluate(
    logits: Tensor<2>,
    mask: Option<Tensor<2>>,
    action: Tensor<2>,
    heads: &[usize],
) -> (Tensor<1>, Tensor<1>) {
    let of_heads = offsets(heads).enumerate().map(|(head, (at, n))| {
        let (logits, mask) = (columns(&logits, at, n), mask.as_ref().map(|mask| columns(mask, at, n)));
        let taken = columns(&action, head, 1);
        let rows = RowInputs { results: [&logits], data: mask.as_ref(), taken: Some(&taken) };
        row_rule(Categorical { masked: mask.is_some() }, &rows).1
    });
    let [log_prob, entropy] = of_heads.reduce(|[a, b], [c, d]| [a + c, b + d]).expect("there is a head");
    (log_prob, entropy)
}

/// First column and number of actions of every head.
fn offsets(heads: &[usize]) -> impl Iterator<Item = (usize, usize)> {
    heads.iter().scan(0, |at, n| Some((std::mem::replace(at, *at + n), *n)))
}

/// Log-probabilities of the actions of each head, `[n_rows, n_actions]`; illegal actions have probability 0.
///
/// # Shapes
/// - `logits`: `[n_rows, n_actions]`, heads concatenated
/// - `mask`: `[n_rows, n_actions]`, 1 for legal actions
/// - `heads`: actions per head
///
/// ```
/// use brasa_core::read_back;
/// use brasa_nn::distribution::categorical;
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let mask = Tensor::from_floats([[1.0, 1.0, 0.0]], &device);
/// let log_probs = categorical::log_probs(Tensor::zeros([1, 3], &device), Some(mask), &[3]);
/// // The illegal action has probability 0.
/// let probs = read_back(log_probs.exp());
/// assert!((probs[0] - 0.5).abs() < 1e-6 && probs[2] == 0.0);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn log_probs(logits: Tensor<2>, mask: Option<Tensor<2>>, heads: &[usize]) -> Tensor<2> {
    let logits = match mask {
        // As in `Categorical`.
        Some(mask) => logits.clone() * mask.clone() + (mask - 1.0) * Categorical::MASKED_BY,
        None => logits,
    };
    if heads.len() == 1 {
        return log_softmax(logits, 1);
    }
    let parts = logits.split_with_sizes(heads.to_vec(), 1).into_iter().map(|head| log_softmax(head, 1));
    Tensor::cat(parts.collect(), 1)
}

/// `[n_rows]`: 1 if more actions are legal than there are heads, 0 if no head has a choice.
///
/// ```
/// use brasa_core::read_back;
/// use brasa_nn::distribution::categorical;
/// use burn::tensor::Tensor;
///
/// let mask = Tensor::from_floats([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]], &brasa_device::open_named("cpu")?);
/// assert_eq!(read_back(categorical::has_choice(mask, 1)), [1.0, 0.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn has_choice(mask: Tensor<2>, n_heads: usize) -> Tensor<1> {
    mask.sum_dim(1).squeeze_dim(1).greater_scalar(n_heads as f32 + 0.5).float()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Flags of legal actions: where numbers are above 0, and the last action of every head.
    fn legal(numbers: &[f32], heads: &[usize]) -> Vec<f32> {
        let width: usize = heads.iter().sum();
        let ends: Vec<usize> = offsets(heads).map(|(at, n)| at + n - 1).collect();
        let flag = |(i, x): (usize, &f32)| f32::from(ends.contains(&(i % width)) || *x > 0.0);
        numbers.iter().enumerate().map(flag).collect()
    }

    /// [`evaluate`] in operations of the backend.
    fn in_operations(
        logits: Tensor<2>,
        mask: Option<Tensor<2>>,
        action: Tensor<2>,
        heads: &[usize],
    ) -> (Tensor<1>, Tensor<1>) {
        let log_probs = log_probs(logits, mask, heads);
        let starts: Vec<f32> = offsets(heads).map(|(at, _)| at as f32).collect();
        let starts = Tensor::<1>::from_floats(starts.as_slice(), &action.device());
        let log_prob = log_probs.clone().gather(1, (action + starts.unsqueeze()).int()).sum_dim(1).squeeze_dim(1);
        // exp underflows to exactly 0 for illegal actions, and 0 times a finite number is 0.
        (log_prob, -(log_probs.clone().exp() * log_probs).sum_dim(1).squeeze_dim(1))
    }

    /// On the CPU a loop over memory, on a GPU a kernel.
    #[test]
    fn results_and_gradients_are_those_of_the_operations() {
        let device = brasa_test::device().autodiff();
        let plain = device.clone().without_autodiff();
        for (n_rows, heads) in [(1, vec![2]), (5, vec![7]), (300, vec![3]), (4, vec![3, 2])] {
            let width: usize = heads.iter().sum();
            let wave = |n: usize, phase: f32| -> Vec<f32> { (0..n).map(|i| (i as f32 * 1.7 + phase).sin()).collect() };
            let numbers = |phase| wave(n_rows * width, phase);
            let mask = legal(&numbers(0.3), &heads);
            let mask = Tensor::<1>::from_floats(&mask[..], &plain).reshape([n_rows, width]);
            // The last action of every head, which is always legal.
            let taken: Vec<f32> = (0..n_rows).flat_map(|_| heads.iter().map(|n| (n - 1) as f32)).collect();
            let action = Tensor::<1>::from_floats(&taken[..], &plain).reshape([n_rows, heads.len()]);
            for mask in [None, Some(mask)] {
                let leaf = || Tensor::<1>::from_floats(&numbers(1.0)[..], &device).require_grad();
                let run = |evaluate: &dyn Fn(Tensor<2>) -> (Tensor<1>, Tensor<1>)| {
                    let logits = leaf();
                    let (log_prob, entropy) = evaluate(logits.clone().reshape([n_rows, width]) * 3.0);
                    let weight = Tensor::<1>::from_floats(&wave(n_rows, 0.7)[..], &plain);
                    let grads = ((log_prob.clone() + entropy.clone() * 0.3) * weight).sum().backward();
                    let grad = logits.grad(&grads).expect("it is a leaf");
                    [log_prob.inner(), entropy.inner(), grad].map(|t| t.into_data().iter::<f32>().collect::<Vec<_>>())
                };
                let ours = run(&|logits| evaluate(logits, mask.clone(), action.clone(), &heads));
                let operations = run(&|logits| in_operations(logits, mask.clone(), action.clone(), &heads));
                for (ours, expected) in ours.iter().flatten().zip(operations.iter().flatten()) {
                    assert!((ours - expected).abs() < 1e-5 * expected.abs().max(1.0), "{ours} instead of {expected}");
                }
            }
        }
    }

    /// The same actions as the loop over memory, with the same probabilities.
    #[test]
    fn draws_on_a_device_are_those_of_the_host() {
        let device = brasa_test::device();
        for (n_rows, heads) in [(1, vec![1]), (5, vec![7]), (300, vec![3]), (64, vec![3, 2, 5])] {
            let width: usize = heads.iter().sum();
            let wave = |phase: f32| -> Vec<f32> {
                (0..n_rows * width).map(|i| (i as f32 * 1.7 + phase).sin() * 3.0).collect()
            };
            let tensor = |numbers: &[f32]| Tensor::<1>::from_floats(numbers, &device).reshape([n_rows, width]);
            let flags = legal(&wave(0.3), &heads);
            let (logits, noise) = (wave(1.0), wave(2.0));
            for mask in [None, Some(&flags)] {
                for noise in [None, Some(&noise)] {
                    let (mut actions, mut log_probs) = (Vec::new(), Vec::new());
                    let [mask_on_host, noise_on_host] = [mask, noise].map(|numbers| numbers.map(|x| &x[..]));
                    draw_rows(
                        &mut RowSlopes::default(),
                        &logits,
                        mask_on_host,
                        noise_on_host,
                        &heads,
                        &mut actions,
                        &mut log_probs,
                    );
                    let [mask, noise] = [mask, noise].map(|numbers| numbers.map(|x| tensor(x)));
                    let drawn = draw_on_device(&tensor(&logits), mask.as_ref(), noise.as_ref(), &heads);
                    assert_eq!(drawn.0.dims(), [n_rows, heads.len()]);
                    assert_eq!(drawn.0.into_data().iter::<f32>().collect::<Vec<_>>(), actions);
                    for (ours, expected) in drawn.1.into_data().iter::<f32>().zip(log_probs) {
                        assert!(
                            (ours - expected).abs() < 1e-5 * expected.abs().max(1.0),
                            "{ours} instead of {expected}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_logit_that_is_not_a_number_shows() {
        let device = brasa_test::device();
        let logits = Tensor::<2>::from_floats([[0.0, f32::NAN], [0.0, 1.0]], &device);
        let (log_prob, entropy) = evaluate(logits, None, Tensor::zeros([2, 1], &device), &[2]);
        let numbers = |t: Tensor<1>| t.into_data().iter::<f32>().map(f32::is_nan).collect::<Vec<_>>();
        assert_eq!((numbers(log_prob), numbers(entropy)), (vec![true, false], vec![true, false]));
        // No index is the greedy action of such logits.
        let logits = [[0.0, f32::NAN, 5.0, 6.0], [0.0, 1.0, 6.0, 5.0]];
        let drawn = draw(Tensor::from_floats(logits, &device), None, None, &[2, 2]).0.into_data();
        let on_device = draw_on_device(&Tensor::from_floats(logits, &device), None, None, &[2, 2]).0.into_data();
        for actions in [drawn, on_device] {
            let actions: Vec<f32> = actions.iter::<f32>().collect();
            assert!(actions[0].is_nan(), "{actions:?}");
            assert_eq!(actions[2..], [1.0, 0.0]);
        }
    }
}
