//! Targets of values.

use brasa_kernels::elementwise;
use burn::tensor::Tensor;

/// `reward + discount (min_i values_i - cost)`, in one pass. The cost is the product of a number of the row and one of all rows, such as
/// log-probability and temperature; without both it is 0. The least of several estimates keeps an error from growing (Fujimoto et al. 2018).
///
/// # Shapes
/// - `reward`, `discount`: `[n_rows]`; `discount` is 0 after a terminal step
/// - `values`: `[n_estimates, n_rows]`, of the next observation
/// - `cost`: `[n_rows]` and `[1]`
/// - output: `[n_rows]`, detached
///
/// ```
/// use brasa_core::read_back;
/// use brasa_nn::bootstrapped;
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let row = |values: [f32; 2]| Tensor::<1>::from_floats(values, &device);
/// // Two transitions, the second of which ended its episode, and two estimates.
/// let values = Tensor::<2>::from_floats([[5.0, 9.0], [4.0, 9.0]], &device);
/// let target = bootstrapped(row([1.0, 1.0]), row([0.5, 0.0]), values, None);
/// assert_eq!(read_back(target), [1.0 + 0.5 * 4.0, 1.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn bootstrapped(
    reward: Tensor<1>,
    discount: Tensor<1>,
    values: Tensor<2>,
    cost: Option<[Tensor<1>; 2]>,
) -> Tensor<1> {
    let [n_estimates, n] = values.dims();
    let [target] = elementwise([1, n], |formulas| {
        let row = |numbers: &Tensor<1>| formulas.read(&numbers.clone().unsqueeze::<2>());
        let values = formulas.matrix(&values.clone().reshape([1, n_estimates * n]));
        let estimate = |i: usize| values.columns(i * n..(i + 1) * n);
        let least = (1..n_estimates).fold(estimate(0), |least, i| least.min(estimate(i)));
        let value = cost.as_ref().map_or(least, |[of_row, of_all]| least - row(of_row) * row(of_all));
        [vec![row(&reward) + row(&discount) * value]]
    });
    target.reshape([n])
}
