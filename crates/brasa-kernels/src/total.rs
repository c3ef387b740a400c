//! The sum of all numbers.

use burn::tensor::Tensor;

/// The sum of all numbers, `[1]`. Gradients pass through.
///
/// On a GPU, the sum of up to 65,536 numbers without gradients is one kernel launch, where Burn needs two. One group of threads adds them.
///
/// ```
/// use brasa_kernels::total;
/// use burn::tensor::Tensor;
///
/// let x = Tensor::<2>::from_floats([[1.0, 2.0], [3.0, 4.0]], &brasa_device::open_named("cpu")?);
/// assert_eq!(total(x).into_scalar::<f32>(), 10.0);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn total<const D: usize>(x: Tensor<D>) -> Tensor<1> {
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    {
        /// 256 numbers for each thread; no GPU was measured.
        const FEW: usize = 1 << 16;
        let n = x.dims().iter().product::<usize>();
        if (1..=FEW).contains(&n)
            && !x.is_autodiff()
            && let Some(numbers) = crate::cube::on_device(&x)
        {
            return crate::cube::from_device(crate::cube::total::launch(numbers));
        }
    }
    x.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_sum() {
        let device = brasa_test::device();
        for n in [1, 5, 256, 1000, 70_000] {
            let numbers: Vec<f32> = (0..n).map(|i| (i % 7) as f32 - 2.0).collect();
            let x = Tensor::<1>::from_floats(&numbers[..], &device);
            assert_eq!(total(x.clone()).into_scalar::<f32>(), numbers.iter().sum::<f32>());
            if n % 5 == 0 {
                assert_eq!(total(x.reshape([n / 5, 5]).transpose()).into_scalar::<f32>(), numbers.iter().sum::<f32>());
            }
        }
    }
}
