//! A rule of rows of any width with its derivatives: from one text a loop over memory, a kernel, or operations of the backend.

mod host;

#[cfg(feature = "flex")]
pub(crate) use host::vectorized;
pub use host::{HostColumns, HostColumnsMut, RowSlopes};

use std::array::from_fn;

use brasa_number::{Dual, Number, Place, RowRule, Single};
use burn::tensor::{Int, Tensor};

use crate::elementwise::{Formulas, Value};
#[cfg(feature = "cube")]
use crate::elementwise::{Input, Program, Recorded, recorded};
use crate::{HostTensor, elementwise_list, with_jacobian};

/// The rows of a rule, without gradients or with them.
///
/// ```
/// use brasa_kernels::{RowInputs, row_rule};
/// use brasa_number::CategoricalDraw;
/// use burn::tensor::Tensor;
/// # fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
/// #     tensor.into_data().iter::<f32>().collect()
/// # }
///
/// // Logits and noise of one row. The mask forbids the last action.
/// let device = brasa_device::open_named("cpu")?;
/// let [logits, noise, mask] =
///     [[[0.0, 0.5, 9.0]], [[1.0, 0.25, 0.0]], [[1.0, 1.0, 0.0]]].map(|row| Tensor::<2>::from_floats(row, &device));
/// let rows = RowInputs { results: [&logits, &noise], data: Some(&mask), taken: None };
/// let ([], [chosen]) = row_rule(CategoricalDraw { masked: true }, &rows);
/// assert_eq!(numbers(chosen), [0.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct RowInputs<'a, const IN: usize> {
    /// Results of a network, `[n_rows, width]` each; or `[1, width]`, the same for all rows.
    pub results: [&'a Tensor<2>; IN],
    /// Data of the columns, `[n_rows, width]` without gradients; `None` for a rule that uses none.
    pub data: Option<&'a Tensor<2>>,
    /// The column of each row that is taken, `[n_rows, 1]` without gradients; `None` for a rule that asks for none.
    pub taken: Option<&'a Tensor<2>>,
}

impl<const IN: usize> RowInputs<'_, IN> {
    /// Number of rows, and of columns.
    fn dims(&self) -> [usize; 2] {
        let [_, width] = self.results[0].dims();
        let numbers = self.results.into_iter().chain(self.data).chain(self.taken);
        [numbers.map(|numbers| numbers.dims()[0]).max().unwrap_or_default(), width]
    }

    fn is_tracked(&self) -> bool {
        self.results.iter().any(|x| x.is_autodiff())
    }
}

/// Own numbers of the columns, `[n_rows, width]` each, and results of the rows, `[n_rows]` each, with gradients where the results of the network
/// have them.
///
/// # Panics
/// If shapes do not fit.
///
/// ```
/// use brasa_kernels::{RowInputs, row_rule};
/// use brasa_number::Categorical;
/// use burn::tensor::Tensor;
/// # fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
/// #     tensor.into_data().iter::<f32>().collect()
/// # }
///
/// // Two actions with equal logits. Action 1 is taken.
/// let device = brasa_device::open_named("cpu")?;
/// let logits = Tensor::<2>::from_floats([[0.0, 0.0]], &device.clone().autodiff()).require_grad();
/// let taken = Tensor::<2>::from_floats([[1.0]], &device);
/// let rows = RowInputs { results: [&logits], data: None, taken: Some(&taken) };
/// let ([], [log_prob, _entropy]) = row_rule(Categorical { masked: false }, &rows);
/// assert!((numbers(log_prob.clone())[0] - 0.5f32.ln()).abs() < 1e-6);
/// let grads = log_prob.backward();
/// assert_eq!(logits.grad(&grads).map(numbers), Some(vec![-0.5, 0.5]));
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn row_rule<const IN: usize, const OUT: usize, const SUMS: usize, const R: usize>(
    rule: impl RowRule<IN, OUT, SUMS, R>,
    rows: &RowInputs<'_, IN>,
) -> ([Tensor<2>; OUT], [Tensor<1>; R]) {
    let computed = on_host(rule, rows).or_else(|| in_a_kernel(rule, rows)).unwrap_or_else(|| in_operations(rule, rows));
    computed.record(rows.results, uses(rule))
}

/// Whether own numbers, and results, have derivatives by each result of the network.
type Uses<const IN: usize, const OUT: usize, const R: usize> = ([[bool; IN]; OUT], [[bool; IN]; R]);

fn uses<const IN: usize, const OUT: usize, const SUMS: usize, const R: usize>(
    rule: impl RowRule<IN, OUT, SUMS, R>,
) -> Uses<IN, OUT, R> {
    let half = Single(0.5);
    let place = Place { column: half, taken: true, is_top: true, top: half };
    let (own, added) = rule.column(Dual::variables([half; IN]), Dual::constant(half), constant(place));
    let results = rule.row(Dual::variables([half; SUMS]), Dual::constant(half));
    let by_sums = results
        .map(|result| from_fn(|i| (0..SUMS).any(|s| result.slopes[s].is_some() && added[s].slopes[i].is_some())));
    (own.map(|own| own.slopes.map(|slope| slope.is_some())), by_sums)
}

/// The same place for numbers with derivatives.
fn constant<N: Number, const K: usize>(Place { column, taken, is_top, top }: Place<N>) -> Place<Dual<N, K>> {
    Place { column: Dual::constant(column), taken, is_top, top: Dual::constant(top) }
}

/// Numbers without gradients.
struct Computed<const IN: usize, const OUT: usize, const R: usize> {
    own: [Tensor<2>; OUT],
    results: [Tensor<1>; R],
    /// If a result of the network has gradients.
    slopes: Option<Slopes<IN, OUT, R>>,
}

/// Derivatives by the results of a network, `[n_rows, width]` each.
struct Slopes<const IN: usize, const OUT: usize, const R: usize> {
    by_own: [[Tensor<2>; IN]; OUT],
    by_results: [[Tensor<2>; IN]; R],
}

impl<const IN: usize, const OUT: usize, const R: usize> Computed<IN, OUT, R> {
    /// From parts in the order of [`Inputs::columns`].
    fn of(part: impl Fn(usize) -> Tensor<2>, result: impl Fn(usize) -> Tensor<1>, has_slopes: bool) -> Self {
        let slopes = has_slopes.then(|| Slopes {
            by_own: from_fn(|o| from_fn(|i| part(OUT + o * IN + i))),
            by_results: from_fn(|r| from_fn(|i| part(OUT + (OUT + r) * IN + i))),
        });
        Self { own: from_fn(&part), results: from_fn(result), slopes }
    }

    fn record(
        self,
        inputs: [&Tensor<2>; IN],
        (own_uses, uses): Uses<IN, OUT, R>,
    ) -> ([Tensor<2>; OUT], [Tensor<1>; R]) {
        let Some(slopes) = self.slopes else { return (self.own, self.results) };
        let own = from_fn(|o| {
            let [n_rows, width] = self.own[o].dims();
            let used = (0..IN).filter(|i| own_uses[o][*i] && inputs[*i].is_autodiff());
            let own = used.fold(self.own[o].clone().reshape([n_rows * width]), |own, i| {
                let by_own = slopes.by_own[o][i].clone().reshape([n_rows * width, 1]);
                with_jacobian(own, inputs[i].clone().expand([n_rows, width]), by_own)
            });
            own.reshape([n_rows, width])
        });
        let results = from_fn(|r| {
            let used = (0..IN).filter(|i| uses[r][*i] && inputs[*i].is_autodiff());
            used.fold(self.results[r].clone(), |result, i| {
                with_jacobian(result, inputs[i].clone(), slopes.by_results[r][i].clone())
            })
        });
        (own, results)
    }
}

fn on_host<const IN: usize, const OUT: usize, const SUMS: usize, const R: usize>(
    rule: impl RowRule<IN, OUT, SUMS, R>,
    rows: &RowInputs<'_, IN>,
) -> Option<Computed<IN, OUT, R>> {
    let numbers: Vec<HostTensor> = rows.results.iter().map(|x| HostTensor::of(x)).collect::<Option<_>>()?;
    let [data, taken] = [rows.data, rows.taken].map(|tensor| tensor.map(HostTensor::of));
    let (None | Some(Some(_)), None | Some(Some(_))) = (&data, &taken) else { return None };
    let [data, taken] = [data.flatten(), taken.flatten()];
    let [n_rows, width] = rows.dims();
    let columns = |numbers: &'_ HostTensor, wide: usize| if numbers.len() == wide && n_rows != 1 { 0 } else { wide };
    let mut results: [Vec<f32>; R] = from_fn(|_| vec![0.0; n_rows]);
    let mut own: [Vec<f32>; OUT] = from_fn(|_| vec![0.0; n_rows * width]);
    let mut row_slopes = RowSlopes::default();
    row_slopes.forward(
        rule,
        [n_rows, width],
        from_fn(|i| HostColumns { numbers: &numbers[i], per_row: columns(&numbers[i], width) }),
        data.as_ref().map(|data| HostColumns { numbers: data, per_row: columns(data, width) }),
        taken.as_ref().map(|taken| HostColumns { numbers: taken, per_row: columns(taken, 1) }),
        own.each_mut().map(|own| HostColumnsMut { numbers: own, per_row: width }),
        results.each_mut().map(|results| &mut results[..]),
    );
    let slopes = rows.is_tracked().then(|| {
        let ones = vec![1.0; n_rows * width.max(1)];
        // The derivatives of one of them alone.
        let slopes = |of_own: Option<usize>, of_results: Option<usize>| -> [Tensor<2>; IN] {
            let mut slopes: [Vec<f32>; IN] = from_fn(|_| vec![0.0; n_rows * width]);
            row_slopes.backward(
                from_fn(|o| if of_own == Some(o) { &ones[..] } else { &[] }),
                from_fn(|r| if of_results == Some(r) { &ones[..n_rows] } else { &[] }),
                slopes.each_mut().map(|slopes| HostColumnsMut { numbers: slopes, per_row: width }),
            );
            slopes.map(|slopes| HostTensor::tensor(slopes, [n_rows, width]))
        };
        Slopes { by_own: from_fn(|o| slopes(Some(o), None)), by_results: from_fn(|r| slopes(None, Some(r))) }
    });
    Some(Computed {
        slopes,
        own: own.map(|own| HostTensor::tensor(own, [n_rows, width])),
        results: results.map(|results| HostTensor::tensor(results, [n_rows])),
    })
}

fn in_a_kernel<const IN: usize, const OUT: usize, const SUMS: usize, const R: usize>(
    rule: impl RowRule<IN, OUT, SUMS, R>,
    rows: &RowInputs<'_, IN>,
) -> Option<Computed<IN, OUT, R>> {
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    {
        use crate::cube::{from_device, on_device};

        let [n_rows, width] = rows.dims();
        if n_rows * width == 0 || on_device(rows.results[0]).is_none() {
            return None;
        }
        let (program, inputs) = RowProgram::of(rule, rows);
        let inputs: Vec<_> = inputs.iter().map(Input::on_device).collect::<Option<_>>()?;
        let [results, columns] = crate::cube::row_rule::launch(&program, inputs, [n_rows, width])?;
        brasa_device::count_launches(1);
        let part = |i: usize| from_device(columns[i].clone());
        let result = |r: usize| from_device(results[r].clone());
        Some(Computed::of(part, result, rows.is_tracked()))
    }
    #[cfg(not(any(feature = "cuda", feature = "wgpu")))]
    {
        let _ = (rule, rows);
        None
    }
}

fn in_operations<const IN: usize, const OUT: usize, const SUMS: usize, const R: usize>(
    rule: impl RowRule<IN, OUT, SUMS, R>,
    rows: &RowInputs<'_, IN>,
) -> Computed<IN, OUT, R> {
    let [n_rows, width] = rows.dims();
    let device = rows.results[0].device().without_autodiff();
    let numbers = Tensor::<1, Int>::arange(0..width as i64, &device).float().unsqueeze::<2>();
    let keys = elementwise_list([n_rows, width], |formulas| vec![vec![Inputs::read(formulas, rows).key(rule)]]);
    fn place<'a>(formulas: &'a Formulas, numbers: &Tensor<2>, keys: &Tensor<2>) -> [Value<'a>; 3] {
        let (keys, width) = (formulas.matrix(keys), keys.dims()[1]);
        let top = keys.max(0..width);
        [formulas.read(numbers), top, keys.find(0..width, top)]
    }
    let sums = elementwise_list([n_rows, width], |formulas| {
        let added = Inputs::read(formulas, rows).sums(rule, place(formulas, &numbers, &keys[0]));
        added.map(|sum| vec![sum]).into()
    });
    let whole = elementwise_list([n_rows, 1], |formulas| {
        let sums = from_fn(|s| formulas.matrix(&sums[s]).sum(0..width));
        row(rule, sums, width).into_iter().map(|number| vec![number]).collect()
    });
    let columns = elementwise_list([n_rows, width], |formulas| {
        let slope = |i: usize| formulas.matrix(&whole[R + i]).column(0);
        let columns = Inputs::read(formulas, rows).columns(rule, place(formulas, &numbers, &keys[0]), slope);
        columns.into_iter().map(|number| vec![number]).collect()
    });
    Computed::of(|i| columns[i].clone(), |r| whole[r].clone().reshape([n_rows]), rows.is_tracked())
}

/// What formulas of a column read, in the same order for every part of a rule.
struct Inputs<'a, const IN: usize> {
    results: [Value<'a>; IN],
    data: Value<'a>,
    /// The number of the column that is taken.
    taken: Value<'a>,
}

impl<'a, const IN: usize> Inputs<'a, IN> {
    fn read(formulas: &'a Formulas, rows: &RowInputs<'_, IN>) -> Self {
        Self {
            results: rows.results.map(|x| formulas.read(x)),
            data: rows.data.map_or_else(|| formulas.constant(1.0), |data| formulas.read(data)),
            taken: rows.taken.map_or_else(|| formulas.constant(-1.0), |taken| formulas.read(taken)),
        }
    }

    fn key<const OUT: usize, const SUMS: usize, const R: usize>(
        self,
        rule: impl RowRule<IN, OUT, SUMS, R>,
    ) -> Value<'a> {
        rule.key(self.results, self.data)
    }

    /// The place of a column: of its number, the greatest key, and the number of the column that has it.
    fn place(&self, [column, top, best]: [Value<'a>; 3]) -> Place<Value<'a>> {
        Place { column, taken: Number::equal(self.taken, column), is_top: Number::equal(best, column), top }
    }

    /// What a column adds.
    fn sums<const OUT: usize, const SUMS: usize, const R: usize>(
        self,
        rule: impl RowRule<IN, OUT, SUMS, R>,
        place: [Value<'a>; 3],
    ) -> [Value<'a>; SUMS] {
        let place = self.place(place);
        rule.column(self.results, self.data, place).1
    }

    /// Own numbers, their derivatives by every result of the network, and those of the results of the row, from their derivatives by its sums.
    fn columns<const OUT: usize, const SUMS: usize, const R: usize>(
        self,
        rule: impl RowRule<IN, OUT, SUMS, R>,
        place: [Value<'a>; 3],
        slope: impl Fn(usize) -> Value<'a>,
    ) -> Vec<Value<'a>> {
        let zero = place[0].constant(0.0);
        let place = constant(self.place(place));
        let (own, added) = rule.column(Dual::variables(self.results), Dual::constant(self.data), place);
        let own_numbers = own.iter().map(|own| own.value);
        let by_own = own.iter().flat_map(|own| (0..IN).map(|i| own.by(i)));
        let by_results = (0..R).flat_map(|r| (0..IN).map(move |i| (r, i))).map(|(r, i)| {
            let known = added.iter().enumerate().filter_map(|(s, sum)| Some((s, sum.slopes[i]?)));
            let products = known.map(|(s, by_sum)| by_sum * slope(r * SUMS + s));
            products.reduce(|a, b| a + b).unwrap_or(zero)
        });
        own_numbers.chain(by_own).chain(by_results).collect()
    }
}

/// The results of a row, and their derivatives by its sums.
fn row<'a, const IN: usize, const OUT: usize, const SUMS: usize, const R: usize>(
    rule: impl RowRule<IN, OUT, SUMS, R>,
    sums: [Value<'a>; SUMS],
    width: usize,
) -> Vec<Value<'a>> {
    let width = Dual::constant(sums[0].constant(width as f64));
    let results = rule.row(Dual::variables(sums), width);
    let slopes = results.iter().flat_map(|result| (0..SUMS).map(|s| result.by(s)));
    results.iter().map(|result| result.value).chain(slopes).collect()
}

/// A rule as what a kernel is translated from. Every part reads the same matrices; beside them it gets numbers of the kernel.
#[cfg(feature = "cube")]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct RowProgram {
    /// The key of a column; `None` if the rule has none.
    pub(crate) key: Option<Program>,
    /// What a column adds to each sum. Given: the number of the column, the greatest key, and the column that has it.
    pub(crate) sums: Program,
    /// Results and their derivatives by the sums. Given: the sums.
    pub(crate) row: Program,
    /// See [`Inputs::columns`]; `None` if nobody needs them. Given: as for the sums, and then derivatives by the sums.
    pub(crate) columns: Option<Program>,
    pub(crate) n_results: usize,
}

#[cfg(feature = "cube")]
impl RowProgram {
    /// The program, and the matrices that it reads.
    pub(crate) fn of<const IN: usize, const OUT: usize, const SUMS: usize, const R: usize>(
        rule: impl RowRule<IN, OUT, SUMS, R>,
        rows: &RowInputs<'_, IN>,
    ) -> (Self, Vec<Input>) {
        let shape = rows.dims();
        let key = has_key(rule)
            .then(|| recorded(shape, |formulas| vec![vec![Inputs::read(formulas, rows).key(rule)]]).program);
        let Recorded { program: sums, inputs, .. } = recorded(shape, |formulas| {
            let sums = Inputs::read(formulas, rows).sums(rule, [0, 1, 2].map(|i| formulas.given(i)));
            vec![sums.to_vec()]
        });
        let row = recorded(shape, |formulas| vec![row(rule, from_fn(|s| formulas.given(s)), shape[1])]);
        let columns = (OUT > 0 || rows.is_tracked()).then(|| {
            let columns = recorded(shape, |formulas| {
                let given = [0, 1, 2].map(|i| formulas.given(i));
                let mut columns = Inputs::read(formulas, rows).columns(rule, given, |i| formulas.given(3 + i));
                if !rows.is_tracked() {
                    columns.truncate(OUT);
                }
                vec![columns]
            });
            columns.program
        });
        (Self { key, sums, row: row.program, columns, n_results: R }, inputs)
    }
}

/// The programs of the distributions.
#[cfg(feature = "cuda-source")]
pub(crate) fn programs() -> Vec<(&'static str, RowProgram)> {
    use brasa_number::{Categorical, CategoricalDraw, Normal, NormalDraw};

    let device = burn::tensor::Device::flex();
    let column = Tensor::<2>::zeros([64, 1], &device);
    let [wide, shared] = [64, 1].map(|n| Tensor::<2>::zeros([n, 64], &device.clone().autodiff()));
    let choice = RowInputs { results: [&wide], data: Some(&wide), taken: Some(&column) };
    let real = |log_std| RowInputs { results: [&wide, log_std], data: Some(&wide), taken: None };
    let draw = NormalDraw { squash: true, log_std_range: Some((-5.0, 2.0)) };
    vec![
        ("choice", RowProgram::of(Categorical { masked: false }, &choice).0),
        ("masked_choice", RowProgram::of(Categorical { masked: true }, &choice).0),
        ("choice_draw", RowProgram::of(CategoricalDraw { masked: true }, &real(&wide)).0),
        ("normal", RowProgram::of(Normal { squash: false }, &real(&wide)).0),
        ("shared_normal", RowProgram::of(Normal { squash: true }, &real(&shared)).0),
        ("normal_draw", RowProgram::of(draw, &real(&wide)).0),
    ]
}

#[cfg(feature = "cube")]
fn has_key<const IN: usize, const OUT: usize, const SUMS: usize, const R: usize, T: RowRule<IN, OUT, SUMS, R>>(
    _: T,
) -> bool {
    T::HAS_KEY
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything that a rule may have: a key, data, a column that is taken, own numbers, sums that a result does not use.
    #[derive(Clone, Copy)]
    struct Sample;

    impl RowRule<2, 1, 3, 2> for Sample {
        const HAS_KEY: bool = true;

        fn key<N: Number>(&self, [x, _]: [N; 2], data: N) -> N {
            x * data
        }

        fn column<N: Number>(&self, [x, y]: [N; 2], data: N, at: Place<N>) -> ([N; 1], [N; 3]) {
            let share = (x * data - at.top).exp();
            let best = (y * 0.3 + at.column).or_zero(at.is_top);
            ([(x * y).tanh()], [share, y.square() * share, (x * 0.5).or_zero(at.taken) + best])
        }

        fn row<N: Number>(&self, [sum, squares, taken]: [N; 3], width: N) -> [N; 2] {
            [taken - sum.ln() * 0.1, squares / sum + width]
        }
    }

    fn numbers(n: usize, seed: usize) -> Vec<f32> {
        (0..n).map(|i| ((i as f32 + 1.0) * (1.7 + seed as f32)).sin()).collect()
    }

    fn list<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
        tensor.into_data().iter().collect()
    }

    /// Of a weighted sum of everything: the numbers themselves, and the gradients of both inputs.
    fn all(computed: ([Tensor<2>; 1], [Tensor<1>; 2]), leaves: [&Tensor<2>; 2]) -> Vec<f32> {
        let ([own], [first, second]) = computed;
        let loss = own.clone().powi_scalar(3).sum() + (first.clone() * second.clone()).sum();
        let gradients = loss.backward();
        let mut all = [list(own.inner()), list(first.inner()), list(second.inner())].concat();
        all.extend(leaves.into_iter().flat_map(|leaf| list(leaf.grad(&gradients).expect("a leaf"))));
        all
    }

    #[test]
    fn every_form_is_the_same_function() {
        let device = brasa_test::device().autodiff();
        let plain = device.clone().without_autodiff();
        for ([n_rows, width], is_shared) in
            [([1, 1], false), ([3, 5], false), ([70, 2], true), ([33, 17], true), ([2, 300], false)]
        {
            let matrix = |rows: usize, seed| Tensor::<1>::from_floats(&numbers(rows * width, seed)[..], &plain);
            let leaf = |rows, seed| Tensor::from_inner(matrix(rows, seed).reshape([rows, width])).require_grad();
            let (x, y) = (leaf(n_rows, 1), leaf(if is_shared { 1 } else { n_rows }, 2));
            let data = matrix(n_rows, 3).reshape([n_rows, width]);
            let taken: Vec<f32> = (0..n_rows).map(|row| (row % width) as f32).collect();
            let taken = Tensor::<1>::from_floats(&taken[..], &plain).reshape([n_rows, 1]);
            let rows = RowInputs { results: [&x, &y], data: Some(&data), taken: Some(&taken) };
            let expected = all(in_operations(Sample, &rows).record(rows.results, uses(Sample)), [&x, &y]);
            let got = all(row_rule(Sample, &rows), [&x, &y]);
            assert_eq!(got.len(), expected.len());
            for (got, expected) in got.iter().zip(expected) {
                assert!((got - expected).abs() < 2e-5 * expected.abs().max(1.0), "{got} instead of {expected}");
            }
        }
    }

    #[test]
    fn gradients_are_those_of_differences() {
        let (n_rows, width) = (35, 4);
        let (x, y, data) = (numbers(n_rows * width, 1), numbers(width, 2), numbers(n_rows * width, 3));
        let textbook = |x: &[f64], y: &[f64]| -> f64 {
            let row = |row: usize| {
                let at = |i: usize| (x[row * width + i], y[i], f64::from(data[row * width + i]));
                let shares: Vec<f64> = (0..width).map(|i| (at(i).0 * at(i).2).exp()).collect();
                let sum: f64 = shares.iter().sum();
                let key = |i: usize| at(i).0 * at(i).2;
                let best = (1..width).fold(0, |best, i| if key(i) > key(best) { i } else { best });
                let top = key(best);
                let squares: f64 = (0..width).map(|i| at(i).1.powi(2) * shares[i]).sum();
                let own: f64 = (0..width).map(|i| (at(i).0 * at(i).1).tanh() * (i as f64 + 0.5)).sum();
                let chosen = at(row % width).0 * 0.5 + at(best).1 * 0.3 + best as f64;
                own + 2.0 * (chosen - (sum.ln() - top) * 0.1) - squares / sum
            };
            (0..n_rows).map(row).sum()
        };
        // The greatest key is a number without derivatives, here and there.
        let mut slopes = RowSlopes::default();
        let (mut own, mut results) = (vec![0.0; n_rows * width], [vec![0.0; n_rows], vec![0.0; n_rows]]);
        let taken: Vec<f32> = (0..n_rows).map(|row| (row % width) as f32).collect();
        let columns = |numbers, per_row| HostColumns { numbers, per_row };
        slopes.forward(
            Sample,
            [n_rows, width],
            [columns(&x, width), columns(&y, 0)],
            Some(columns(&data, width)),
            Some(columns(&taken, 1)),
            [HostColumnsMut { numbers: &mut own, per_row: width }],
            results.each_mut().map(|results| &mut results[..]),
        );
        let by_own: Vec<f32> = (0..n_rows * width).map(|i| (i % width) as f32 + 0.5).collect();
        let (mut by_x, mut by_y) = (vec![0.0; n_rows * width], vec![0.0; width]);
        slopes.backward(
            [&by_own],
            [&vec![2.0; n_rows], &vec![-1.0; n_rows]],
            [HostColumnsMut { numbers: &mut by_x, per_row: width }, HostColumnsMut { numbers: &mut by_y, per_row: 0 }],
        );
        let [x, y] = [x, y].map(|x| x.iter().map(|x| f64::from(*x)).collect::<Vec<_>>());
        let moved = |of: &[f64], i: usize, by: f64| {
            let mut moved = of.to_vec();
            moved[i] += by;
            moved
        };
        // The derivative of the greatest key is left out: add it where it is.
        let top = |i: usize| {
            let row = i / width;
            let keys: Vec<f64> = (0..width).map(|c| x[row * width + c] * f64::from(data[row * width + c])).collect();
            let is_top = keys.iter().all(|key| *key <= keys[i % width]);
            if is_top { 0.2 * f64::from(data[i]) } else { 0.0 }
        };
        for (i, got) in by_x.iter().enumerate() {
            let change = textbook(&moved(&x, i, 1e-6), &y) - textbook(&moved(&x, i, -1e-6), &y);
            let expected = change / 2e-6 - top(i);
            assert!((f64::from(*got) - expected).abs() < 3e-6, "{got} instead of {expected} at {i}");
        }
        for (i, got) in by_y.iter().enumerate() {
            let expected = (textbook(&x, &moved(&y, i, 1e-6)) - textbook(&x, &moved(&y, i, -1e-6))) / 2e-6;
            assert!((f64::from(*got) - expected).abs() < 2e-5, "{got} instead of {expected} at {i}");
        }
    }

    #[test]
    fn what_is_not_a_number_shows() {
        let device = brasa_test::device();
        let x = Tensor::<2>::from_floats([[0.0, f32::NAN], [0.0, 1.0]], &device);
        let rows = RowInputs { results: [&x, &x], data: None, taken: None };
        for (_, [first, second]) in
            [row_rule(Sample, &rows), in_operations(Sample, &rows).record(rows.results, uses(Sample))]
        {
            for result in [first, second] {
                assert_eq!(list(result).into_iter().map(f32::is_nan).collect::<Vec<_>>(), [true, false]);
            }
        }
    }
}
