//! A loss of every row of a batch with its derivatives: from one text a loop over memory, a kernel, or operations of the backend.

use brasa_number::{Dual, RowLoss, Single};
use burn::tensor::Tensor;

use crate::HostTensor;
#[cfg(feature = "cube")]
use crate::elementwise::Input;
use crate::elementwise::{Formulas, Value};
use crate::jacobian::with_slopes;

/// The rows of a loss.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/loss.inc")); }
/// # use shown::*;
/// use brasa_kernels::{LossData, LossRows, row_loss};
/// use burn::tensor::Tensor;
/// # fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
/// #     tensor.into_data().iter::<f32>().collect()
/// # }
///
/// // `Squared` is half the squared error. Two groups of rows: the sum of two means.
/// let value = Tensor::<1>::from_floats([3.0, 1.0, 1.0, 1.0], &brasa_device::open_named("cpu")?);
/// let rows = LossRows { results: [&value], data: [LossData::Constant(1.0)], n_groups: 2 };
/// let [slopes] = row_loss(&Squared, &rows).slopes;
/// assert_eq!(slopes.map(numbers), Some(vec![2.0 / 2.0, 0.0, 0.0, 0.0]));
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct LossRows<'a, const X: usize, const D: usize> {
    /// Results of a network, `[n]` each. Of those with gradients, the numbers alone are used.
    pub results: [&'a Tensor<1>; X],
    /// Data of the rows.
    pub data: [LossData<'a>; D],
    /// The loss is the sum of the means of as many groups of rows, of the same size.
    pub n_groups: usize,
}

/// A column of data.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/loss.inc")); }
/// # use shown::*;
/// use brasa_kernels::{LossData, LossRows, row_loss};
/// use burn::tensor::Tensor;
/// # fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
/// #     tensor.into_data().iter::<f32>().collect()
/// # }
///
/// // `Squared` is half the squared error, with the absolute error as a report.
/// let device = brasa_device::open_named("cpu")?;
/// let [value, target] = [[3.0, 1.0], [1.0, 1.0]].map(|row| Tensor::<1>::from_floats(row, &device));
/// let means = |data| numbers(row_loss(&Squared, &LossRows { results: [&value], data: [data], n_groups: 1 }).means);
/// assert_eq!(means(LossData::Rows(&target)), [1.0, 1.0]);
/// assert_eq!(means(LossData::Constant(1.0)), [1.0, 1.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub enum LossData<'a> {
    /// `[n]` without gradients; or `[1]`, the same for all rows; or fewer, which are those of the first rows, of the next ones, and so on.
    Rows(&'a Tensor<1>),
    /// The same number for all rows. A kernel is translated again for another one: what changes often is better a tensor `[1]`.
    Constant(f64),
}

/// A loss with its derivatives.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/loss.inc")); }
/// # use shown::*;
/// use brasa_kernels::{LossData, LossRows, row_loss};
/// use burn::tensor::Tensor;
/// # fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
/// #     tensor.into_data().iter::<f32>().collect()
/// # }
///
/// // `Squared` is half the squared error.
/// let device = brasa_device::open_named("cpu")?;
/// let value = Tensor::<1>::from_floats([3.0, 1.0], &device.autodiff()).require_grad();
/// let rows = LossRows { results: [&value], data: [LossData::Constant(1.0)], n_groups: 1 };
/// // One node of the tape for the whole loss.
/// let grads = row_loss(&Squared, &rows).start([value.clone()], None).backward();
/// assert_eq!(value.grad(&grads).map(numbers), Some(vec![1.0, 0.0]));
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone)]
pub struct RowLosses<const X: usize, const R: usize> {
    /// `[1, R]`: the means over all rows of the loss and of what is reported.
    pub means: Tensor<2>,
    /// `[n]` each: derivatives of the loss by the results; `None` for a result that the loss does not use.
    pub slopes: [Option<Tensor<1>>; X],
}

impl<const X: usize, const R: usize> RowLosses<X, R> {
    /// The means `[R]` on the tape of the results: a backward pass that starts from them has the gradient of the loss, multiplied by `scale`, which
    /// is `[1]`.
    pub fn start(&self, results: [Tensor<1>; X], scale: Option<Tensor<1>>) -> Tensor<1> {
        let pairs = self.slopes.iter().zip(results);
        pairs.fold(self.means.clone().reshape([R]), |means, (slopes, result)| match (slopes, &scale) {
            (Some(slopes), None) => with_slopes(means, result, slopes.clone()),
            (Some(slopes), Some(scale)) => with_slopes(means, result, slopes.clone() * scale.clone()),
            (None, _) => means,
        })
    }
}

/// A column of data that gets mean 0 and deviation 1 before the loss is computed, where the kernel for a GPU does that on the way.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/loss.inc")); }
/// # use shown::*;
/// use brasa_kernels::{LossData, LossRows, Standardized, row_loss_in_a_kernel};
/// use burn::tensor::Tensor;
///
/// // A kernel for a GPU would normalize the only column of data. The CPU has no kernel.
/// let value = Tensor::<1>::ones([2], &brasa_device::open_named("cpu")?);
/// let rows = LossRows { results: [&value], data: [LossData::Rows(&value)], n_groups: 1 };
/// let standardized = Standardized { column: 0, weight: 0, epsilon: 1e-8 };
/// assert!(row_loss_in_a_kernel(&Squared, &rows, Some(standardized)).is_none());
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standardized {
    /// Place among the data.
    pub column: usize,
    /// Place of the weights of the rows, whose mean is 1.
    pub weight: usize,
    /// Added to the deviation.
    pub epsilon: f64,
}

/// Which results a loss uses: those by which it has a derivative.
pub fn uses<const X: usize, const D: usize, const R: usize>(loss: &impl RowLoss<X, D, R>) -> [bool; X] {
    let row = loss.row(Dual::variables([Single(0.5); X]), [Dual::constant(Single(0.5)); D]);
    row[0].slopes.map(|slope| slope.is_some())
}

/// The loss by a kernel, one launch, if all tensors are on a GPU that this crate computes for; `None` on other devices, and for no rows.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/loss.inc")); }
/// # use shown::*;
/// use brasa_kernels::{LossData, LossRows, row_loss, row_loss_in_a_kernel};
/// use burn::tensor::Tensor;
/// # fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
/// #     tensor.into_data().iter::<f32>().collect()
/// # }
///
/// // `Squared` is half the squared error, with the absolute error as a report.
/// let value = Tensor::<1>::from_floats([3.0, 1.0], &brasa_device::open_named("cpu")?);
/// let rows = LossRows { results: [&value], data: [LossData::Constant(1.0)], n_groups: 1 };
/// // The CPU has no kernel.
/// let losses = row_loss_in_a_kernel(&Squared, &rows, None).unwrap_or_else(|| row_loss(&Squared, &rows));
/// assert_eq!(numbers(losses.means), [1.0, 1.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn row_loss_in_a_kernel<const X: usize, const D: usize, const R: usize>(
    loss: &impl RowLoss<X, D, R>,
    rows: &LossRows<'_, X, D>,
    standardized: Option<Standardized>,
) -> Option<RowLosses<X, R>> {
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    {
        let n = rows.results[0].dims()[0];
        if n == 0 || crate::cube::on_device(rows.results[0]).is_none() {
            return None;
        }
        let recorded = Recorded::of(loss, rows);
        let columns: Vec<_> = recorded.inputs.iter().map(Input::on_device).collect::<Option<_>>()?;
        let (means, slopes) = crate::cube::row_loss::launch(&recorded, columns, [n, rows.n_groups], standardized)?;
        brasa_device::count_launches(1);
        let mut slopes = slopes.into_iter().map(crate::cube::from_device);
        Some(RowLosses {
            means: crate::cube::from_device(means),
            slopes: recorded.uses.map(|used| used.then(|| slopes.next().expect("a column per result"))),
        })
    }
    #[cfg(not(any(feature = "cuda", feature = "wgpu")))]
    {
        let _ = (loss, rows, standardized);
        None
    }
}

/// The loss by a loop over memory on the CPU, and by operations of the backend on other devices.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/loss.inc")); }
/// # use shown::*;
/// use brasa_kernels::{LossData, LossRows, row_loss};
/// use burn::tensor::Tensor;
/// # fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
/// #     tensor.into_data().iter::<f32>().collect()
/// # }
///
/// // `Squared` is half the squared error, with the absolute error as a report.
/// let value = Tensor::<1>::from_floats([3.0, 1.0], &brasa_device::open_named("cpu")?);
/// let rows = LossRows { results: [&value], data: [LossData::Constant(1.0)], n_groups: 1 };
/// let losses = row_loss(&Squared, &rows);
/// assert_eq!(numbers(losses.means), [1.0, 1.0]);
/// // The derivatives by the values: the errors, divided by the number of rows.
/// assert_eq!(losses.slopes.map(|slopes| slopes.map(numbers)), [Some(vec![1.0, 0.0])]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn row_loss<const X: usize, const D: usize, const R: usize>(
    loss: &impl RowLoss<X, D, R>,
    rows: &LossRows<'_, X, D>,
) -> RowLosses<X, R> {
    on_host(loss, rows).unwrap_or_else(|| in_operations(loss, rows))
}

fn on_host<const X: usize, const D: usize, const R: usize>(
    loss: &impl RowLoss<X, D, R>,
    rows: &LossRows<'_, X, D>,
) -> Option<RowLosses<X, R>> {
    let results = all(rows.results.map(HostTensor::of))?;
    let data = all(rows.data.map(HostLossData::of))?;
    let (means, slopes) = row_loss_on_host(loss, results.each_ref().map(|x| &**x), data.each_ref(), rows.n_groups);
    let column = |slopes: Vec<f32>| {
        let n = slopes.len();
        (n > 0).then(|| HostTensor::tensor(slopes, [n]))
    };
    Some(RowLosses {
        means: HostTensor::tensor(means.map(|mean| mean as f32).to_vec(), [1, R]),
        slopes: slopes.map(column),
    })
}

fn in_operations<const X: usize, const D: usize, const R: usize>(
    loss: &impl RowLoss<X, D, R>,
    rows: &LossRows<'_, X, D>,
) -> RowLosses<X, R> {
    let n = rows.results[0].dims()[0];
    let used = uses(loss);
    let mut outputs = crate::elementwise_list([n, 1], |formulas| outputs_of(formulas, loss, rows).0).into_iter();
    let share = rows.n_groups as f64 / n as f64;
    let slopes = used.map(|used| used.then(|| outputs.next().expect("an output per result").reshape([n]) * share));
    let numbers: Tensor<2> = outputs.next().expect("the last output");
    RowLosses { means: numbers.mean_dim(0), slopes }
}

/// All of them, if none is missing.
fn all<T, const N: usize>(options: [Option<T>; N]) -> Option<[T; N]> {
    if options.iter().any(Option::is_none) {
        return None;
    }
    Some(options.map(|option| option.expect("none is missing")))
}

/// A loss in formulas: its derivatives by each result that is used, then the loss and what is reported; and the data.
fn outputs_of<'a, const X: usize, const D: usize, const R: usize>(
    formulas: &'a Formulas,
    loss: &impl RowLoss<X, D, R>,
    rows: &LossRows<'_, X, D>,
) -> (Vec<Vec<Value<'a>>>, [Value<'a>; D]) {
    let column = |column: &Tensor<1>| formulas.cycle(column).column(0);
    let results = rows.results.map(column);
    let data = rows.data.map(|data| match data {
        LossData::Rows(rows) => column(rows),
        LossData::Constant(number) => formulas.constant(number),
    });
    let row = loss.row(Dual::variables(results), data.map(Dual::constant));
    let slopes = row[0].slopes.into_iter().flatten().map(|slope| vec![slope]);
    (slopes.chain([row.iter().map(|number| number.value).collect()]).collect(), data)
}

/// A loss as what a kernel is translated from.
#[cfg(feature = "cube")]
pub(crate) struct Recorded<const X: usize, const D: usize> {
    /// See [`outputs_of`].
    pub(crate) program: crate::elementwise::Program,
    pub(crate) inputs: Vec<Input>,
    pub(crate) uses: [bool; X],
    /// The nodes of the data.
    pub(crate) data: [usize; D],
}

#[cfg(feature = "cube")]
impl<const X: usize, const D: usize> Recorded<X, D> {
    pub(crate) fn of<const R: usize>(loss: &impl RowLoss<X, D, R>, rows: &LossRows<'_, X, D>) -> Self {
        let (n, mut data) = (rows.results[0].dims()[0], [0; D]);
        let crate::elementwise::Recorded { program, inputs, .. } = crate::elementwise::recorded([n, 1], |formulas| {
            let (outputs, values) = outputs_of(formulas, loss, rows);
            data = values.map(Value::index);
            outputs
        });
        Self { program, inputs, uses: uses(loss), data }
    }
}

/// A column of data in the memory of the CPU.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/loss.inc")); }
/// # use shown::*;
/// use brasa_kernels::{HostLossData, LossData, row_loss_on_host};
/// use burn::tensor::Tensor;
///
/// let target = Tensor::<1>::from_floats([1.0, 2.0], &brasa_device::open_named("cpu")?);
/// let target = HostLossData::of(LossData::Rows(&target)).expect("the tensor is in the memory of the CPU");
/// let (means, _) = row_loss_on_host(&Squared, [&[3.0, 2.0]], [&target], 1);
/// assert_eq!(means, [1.0, 1.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug)]
pub enum HostLossData {
    /// As [`LossData::Rows`].
    Rows(HostTensor),
    /// As [`LossData::Constant`].
    Constant(f32),
}

impl HostLossData {
    /// `None` if it is on another device.
    pub fn of(data: LossData<'_>) -> Option<Self> {
        Some(match data {
            LossData::Rows(rows) => Self::Rows(HostTensor::of(rows)?),
            LossData::Constant(number) => Self::Constant(number as f32),
        })
    }

    fn numbers(&self) -> &[f32] {
        match self {
            Self::Rows(rows) => rows,
            Self::Constant(number) => std::slice::from_ref(number),
        }
    }
}

/// Rows that are computed together: enough that vector registers are full, and few enough that all columns stay in them.
const LANES: usize = 32;

type Lane = [f32; LANES];

/// [`row_loss`] in the memory of the CPU: the means of the loss and of what is reported, and derivatives by the results, which are empty for
/// a result that the loss does not use.
///
/// # Shapes
/// - `results`: `[n]` each
/// - `data`: as in [`LossData`]
///
/// # Panics
/// If the number of rows is not a multiple of that of a column of data.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/loss.inc")); }
/// # use shown::*;
/// use brasa_kernels::{HostLossData, row_loss_on_host};
///
/// // `Squared` is half the squared error, with the absolute error as a report.
/// let (means, slopes) = row_loss_on_host(&Squared, [&[3.0, 1.0]], [&HostLossData::Constant(1.0)], 1);
/// assert_eq!(means, [1.0, 1.0]);
/// assert_eq!(slopes, [[1.0, 0.0]]);
/// ```
pub fn row_loss_on_host<const X: usize, const D: usize, const R: usize>(
    loss: &impl RowLoss<X, D, R>,
    results: [&[f32]; X],
    data: [&HostLossData; D],
    n_groups: usize,
) -> ([f64; R], [Vec<f32>; X]) {
    brasa_device::count_launches(1);
    let (n, data) = (results[0].len(), data.map(HostLossData::numbers));
    let mut slopes = uses(loss).map(|used| vec![0.0; if used { n } else { 0 }]);
    let share = n_groups as f32 / n as f32;
    let mut sums = [0.0; R];
    // Shorter columns begin again at the same rows.
    let per_pass = data.iter().map(|column| column.len()).filter(|len| *len > 1).min().unwrap_or(n).max(1);
    for first in (0..n).step_by(per_pass) {
        let range = first..first + per_pass;
        let data = data.map(|column| match column.len() {
            0 | 1 => column,
            len => {
                assert!(len.is_multiple_of(per_pass) && n.is_multiple_of(len), "{len} numbers for {n} rows");
                &column[first % len..][..per_pass]
            }
        });
        let slopes = slopes.each_mut().map(|slopes| slopes.get_mut(range.clone()).unwrap_or_default());
        let of_rows = pass(loss, results.map(|result| &result[range.clone()]), data, share, slopes);
        sums.iter_mut().zip(of_rows).for_each(|(sum, of_rows)| *sum += of_rows);
    }
    (sums.map(|sum| sum / n as f64), slopes)
}

/// Sums over rows; each column of data has a number per row, or one. A function of its own: in larger ones the compiler stops to vectorize.
#[inline(never)]
#[allow(clippy::needless_range_loop, reason = "a compiler vectorizes loops over constant ranges")]
fn pass<const X: usize, const D: usize, const R: usize>(
    loss: &impl RowLoss<X, D, R>,
    results: [&[f32]; X],
    data: [&[f32]; D],
    share: f32,
    slopes: [&mut [f32]; X],
) -> [f64; R] {
    pulp::Arch::new().dispatch(
        #[inline(always)]
        move || {
            let mut sums = [0.0f64; R];
            // In arrays: what stands behind a reference is not vectorized.
            let mut x = [[0.0; LANES]; X];
            let mut d: [Lane; D] = data.map(|column| [column.first().copied().unwrap_or_default(); LANES]);
            for first in (0..results[0].len()).step_by(LANES) {
                let n = LANES.min(results[0].len() - first);
                for k in 0..X {
                    x[k][..n].copy_from_slice(&results[k][first..][..n]);
                }
                for k in 0..D {
                    if data[k].len() > 1 {
                        d[k][..n].copy_from_slice(&data[k][first..][..n]);
                    }
                }
                let (mut by, mut parts) = ([[0.0; LANES]; X], [[0.0; LANES]; R]);
                for l in 0..LANES {
                    let results = Dual::variables(std::array::from_fn(|k| Single(x[k][l])));
                    let row = loss.row(results, std::array::from_fn(|k| Dual::constant(Single(d[k][l]))));
                    for k in 0..X {
                        by[k][l] = row[0].slopes[k].map_or(0.0, |slope| slope.0) * share;
                    }
                    for k in 0..R {
                        parts[k][l] = row[k].value.0;
                    }
                }
                for k in 0..X {
                    if !slopes[k].is_empty() {
                        slopes[k][first..][..n].copy_from_slice(&by[k][..n]);
                    }
                }
                for k in 0..R {
                    for part in &parts[k][..n] {
                        sums[k] += f64::from(*part);
                    }
                }
            }
            sums
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use brasa_number::Number;

    /// Everything that a loss may have: a result that it does not use, settings, comparisons, several reports.
    #[derive(Clone, Copy)]
    struct Sample;

    impl RowLoss<3, 3, 3> for Sample {
        fn row<N: Number>(&self, [x, y, unused]: [N; 3], [a, b, c]: [N; 3]) -> [N; 3] {
            let ratio = (x - a).exp();
            let gain = (ratio * b).min(ratio.clamp(0.8, 1.2) * b);
            [(y - b).square() * 0.5 - gain * c, ratio, unused.abs()]
        }
    }

    fn column(n: usize, seed: usize) -> Vec<f32> {
        (0..n).map(|i| ((i * 37 + seed * 11) % 101) as f32 / 60.0 - 0.8).collect()
    }

    #[test]
    fn every_form_is_the_same_function() {
        for (n, n_groups, [a, b, c]) in
            [(1, 1, [1, 1, 1]), (7, 1, [7, 1, 7]), (64, 2, [32, 64, 1]), (129, 3, [129, 43, 43]), (1000, 1, [1000; 3])]
        {
            let results = [1, 2, 3].map(|seed| column(n, seed));
            let data = [(a, 4), (b, 5), (c, 6)].map(|(n, seed)| column(n, seed));
            let device = brasa_test::device();
            let tensor = |numbers: &Vec<f32>| Tensor::<1>::from_floats(&numbers[..], &device);
            let (result_tensors, data_tensors) = (results.each_ref().map(tensor), data.each_ref().map(tensor));
            let rows = LossRows {
                results: result_tensors.each_ref(),
                data: data_tensors.each_ref().map(LossData::Rows),
                n_groups,
            };
            let by_operations = in_operations(&Sample, &rows);
            let on_host = row_loss(&Sample, &rows);
            let read = |tensor: Tensor<1>| tensor.into_data().iter::<f32>().collect::<Vec<_>>();
            let within = |got: &[f32], expected: &[f32], error: f32| {
                assert_eq!(got.len(), expected.len());
                for (got, expected) in got.iter().zip(expected) {
                    assert!((got - expected).abs() < error * expected.abs().max(0.01), "{got} instead of {expected}");
                }
            };
            let slopes_of = |losses: &RowLosses<3, 3>, k: usize| read(losses.slopes[k].clone().expect("it is used"));
            let expected = read(by_operations.means.clone().reshape([3]));
            for other in [Some(on_host.clone()), row_loss_in_a_kernel(&Sample, &rows, None)].into_iter().flatten() {
                // A backend adds a thousand numbers in 32 bits.
                within(&read(other.means.clone().reshape([3])), &expected, 1e-5);
                assert!(other.slopes[2].is_none() && by_operations.slopes[2].is_none());
                for k in 0..2 {
                    within(&slopes_of(&other, k), &slopes_of(&by_operations, k), 2e-6);
                }
            }
            let slopes = slopes_of(&on_host, 0);
            // Row by row in 64 bits, differences of the sum over groups of means.
            let of = |row: usize, step: f64| {
                let x = [f64::from(results[0][row]) + step, f64::from(results[1][row]), 0.0];
                let d = data.each_ref().map(|column| f64::from(column[row % column.len()]));
                Sample.row(x, d)[0]
            };
            for row in (0..n).step_by(13) {
                let expected = (of(row, 1e-6) - of(row, -1e-6)) / 2e-6 * n_groups as f64 / n as f64;
                assert!((f64::from(slopes[row]) - expected).abs() < 1e-6, "{} at {row}", slopes[row]);
            }
        }
    }

    /// On a GPU; elsewhere a learner standardizes before.
    #[test]
    fn a_kernel_standardizes_on_the_way() {
        let n = 300;
        let device = brasa_test::device();
        let tensor = |numbers: &[f32]| Tensor::<1>::from_floats(numbers, &device);
        let results = [1, 2, 3].map(|seed| tensor(&column(n, seed)));
        let (a, b) = (column(n, 4), column(n, 5));
        let weight: Vec<f32> = column(n, 6).into_iter().map(|x| x + 1.0).collect();
        let weighted = |of: &dyn Fn(f64) -> f64| -> f64 {
            b.iter().zip(&weight).map(|(x, w)| of(f64::from(*x)) * f64::from(*w)).sum()
        };
        let center = weighted(&|x| x) / n as f64;
        let deviation = (weighted(&|x| (x - center).powi(2)) / (n as f64 - 1.0)).sqrt() + 1e-8;
        let standard: Vec<f32> = b.iter().map(|x| ((f64::from(*x) - center) / deviation) as f32).collect();
        let losses = |b: &[f32], standardized| {
            let data = [tensor(&a), tensor(b), tensor(&weight)];
            let data = data.each_ref().map(LossData::Rows);
            row_loss_in_a_kernel(&Sample, &LossRows { results: results.each_ref(), data, n_groups: 1 }, standardized)
        };
        let standardized = Standardized { column: 1, weight: 2, epsilon: 1e-8 };
        let (Some(got), Some(expected)) = (losses(&b, Some(standardized)), losses(&standard, None)) else {
            return eprintln!("SKIPPED: this device has no such kernel; set BRASA_TEST_DEVICE");
        };
        let numbers = |losses: &RowLosses<3, 3>| {
            let slopes = losses.slopes[..2].iter().map(|slopes| slopes.clone().expect("it is used"));
            let columns = slopes.chain([losses.means.clone().reshape([3])]);
            columns.flat_map(|column| column.into_data().iter::<f32>().collect::<Vec<_>>()).collect::<Vec<_>>()
        };
        for (got, expected) in numbers(&got).into_iter().zip(numbers(&expected)) {
            assert!((got - expected).abs() < 2e-5 * expected.abs().max(0.1), "{got} instead of {expected}");
        }
    }

    #[test]
    fn the_tape_gets_the_derivatives() {
        let device = brasa_test::device().autodiff();
        let leaf = |seed| Tensor::<1>::from_floats(&column(6, seed)[..], &device).require_grad();
        let (x, data) = ([1, 2, 3].map(leaf), [4, 5, 6].map(|seed| leaf(seed).inner()));
        let rows = LossRows { results: x.each_ref(), data: data.each_ref().map(LossData::Rows), n_groups: 2 };
        let losses = row_loss(&Sample, &rows);
        let gradients = losses.start(x.clone(), None).backward();
        for (x, slopes) in x.iter().zip(&losses.slopes) {
            let gradient = x.grad(&gradients).map(Tensor::into_data);
            assert_eq!(gradient, slopes.clone().map(Tensor::into_data));
        }
    }

    #[test]
    fn what_is_not_a_number_shows() {
        let (nan, one) = ([f32::NAN], [1.0f32]);
        let data = [(); 3].map(|()| HostLossData::Constant(1.0));
        let (means, slopes) = row_loss_on_host(&Sample, [&nan, &one, &one], data.each_ref(), 1);
        assert!(means[0].is_nan() && slopes[0][0].is_nan() && !slopes[1][0].is_nan());
    }
}
