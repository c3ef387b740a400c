//! Products in 32 bits.

use burn::tensor::DType;
use burn_cubecl::kernel::matmul::init_matmul_output;
use burn_cubecl::tensor::CubeTensor;
use cubek::matmul::definition::{MatmulElems, MatmulSetupError};
use cubek::matmul::launch::launch_ref;
use cubek::matmul::multi_level::Strategy as Kernel;
use cubek::matmul::strategy::Strategy;
use cubek::std::InputBinding;

use super::cubecl::prelude::*;

/// `lhs rhs` without tensor cores, which would round the factors. Neither may be empty.
///
/// With the feature `autotune`, the first product of a size runs all candidates, and later ones run the fastest.
pub(crate) fn exact(lhs: CubeTensor, rhs: CubeTensor) -> CubeTensor {
    let out = init_matmul_output(&lhs, &rhs, DType::F32);
    #[cfg(feature = "autotune")]
    tuned::multiply(lhs, rhs, &out);
    #[cfg(not(feature = "autotune"))]
    multiply(&standard(), lhs, rhs, &out).expect("this product needs no special hardware");
    out
}

/// What Burn itself falls back to on devices without tensor cores.
fn standard() -> Kernel {
    Kernel::SimpleUnit(Default::default())
}

/// Writes the product by one kernel.
///
/// # Errors
/// If the device cannot run it.
fn multiply(kernel: &Kernel, lhs: CubeTensor, rhs: CubeTensor, out: &CubeTensor) -> Result<(), MatmulSetupError> {
    let elem = f32::elem_type_native();
    let input = |factor: CubeTensor| InputBinding::new(factor.binding(), elem);
    let strategy = Strategy::MultiLevel(kernel.clone());
    let mut elems = MatmulElems::from_single_dtype(elem);
    launch_ref(&strategy, &out.client, input(lhs), input(rhs), out.clone().binding(), &mut elems)
}

/// The choice of a kernel by measurement.
#[cfg(feature = "autotune")]
mod tuned {
    use burn_cubecl::CubeTuneId;
    use burn_cubecl::cubecl::tune::{LocalTuner, Tunable, TunableSet, local_tuner};
    use cubek::matmul::multi_level::routines::TileSizeSelection;
    use cubek::matmul::multi_level::routines::batch::double_unit::DoubleUnitSelectionArgs;
    use cubek::matmul::multi_level::routines::batch::simple_unit::SimpleUnitSelectionArgs;
    use cubek::matmul::routine::BlueprintStrategy;
    use cubek::matmul::tune_key::MatmulAutotuneKey;

    use super::*;

    /// Factors and result.
    type Inputs = (CubeTensor, CubeTensor, CubeTensor);

    /// Kernels without tensor cores.
    pub(super) fn candidates() -> [Kernel; 6] {
        let small = TileSizeSelection::MinTileSize;
        let double = |tile_size| BlueprintStrategy::Inferred(DoubleUnitSelectionArgs { tile_size });
        [
            standard(),
            Kernel::SimpleUnit(BlueprintStrategy::Inferred(SimpleUnitSelectionArgs { tile_size: small })),
            Kernel::DoubleUnit(double(TileSizeSelection::MaxTileSize)),
            Kernel::DoubleUnit(double(small)),
            Kernel::Gemm(BlueprintStrategy::Inferred(Default::default())),
            Kernel::Naive,
        ]
    }

    pub(super) fn multiply(lhs: CubeTensor, rhs: CubeTensor, out: &CubeTensor) {
        static TUNER: LocalTuner<MatmulAutotuneKey, CubeTuneId> = local_tuner!();
        let (client, id) = (lhs.client.clone(), CubeTuneId::new(&lhs.client, &lhs.device));
        let set = TUNER.init(&id, || {
            let set = TunableSet::new(size, |_: &_, (lhs, rhs, out): &Inputs| (lhs.clone(), rhs.clone(), out.copy()));
            candidates().into_iter().fold(set, |set, kernel| {
                set.with(Tunable::new(&kernel.to_string(), move |(lhs, rhs, out): Inputs| {
                    super::multiply(&kernel, lhs, rhs, &out).map_err(|error| format!("{error:?}"))
                }))
            })
        });
        TUNER.execute(&id, &client, set, (lhs, rhs, out.clone()));
    }

    /// Sizes and layouts that share a choice.
    fn size((lhs, rhs, _): &Inputs) -> MatmulAutotuneKey {
        let elem = f32::elem_type_native();
        MatmulAutotuneKey::generate(
            &lhs.client,
            lhs.meta.shape(),
            rhs.meta.shape(),
            lhs.meta.strides(),
            rhs.meta.strides(),
            lhs.meta.tiling,
            rhs.meta.tiling,
            elem,
            elem,
            elem,
            None,
            None,
        )
    }
}

#[cfg(all(test, feature = "autotune"))]
mod tests {
    use burn::tensor::{Device, Tensor};

    use super::super::{from_device, on_device};
    use super::*;

    /// Small integers, so that every order of sums gives the same bits.
    fn integers(shape: [usize; 3], step: usize) -> Vec<f32> {
        (0..shape.iter().product::<usize>()).map(|i| ((i * step) % 7) as f32 - 3.0).collect()
    }

    /// The product by its definition.
    fn defined(lhs: &[f32], rhs: &[f32], members: usize, [rows, inner, columns]: [usize; 3]) -> Vec<f32> {
        let cells = 0..members * rows * columns;
        let at = |cell: usize| {
            let (member, row, column) = (cell / (rows * columns), cell / columns % rows, cell % columns);
            let term = |i: usize| lhs[(member * rows + row) * inner + i] * rhs[(member * inner + i) * columns + column];
            (0..inner).map(term).sum()
        };
        cells.map(at).collect()
    }

    /// The memory of `numbers`, stored by rows or by columns.
    fn memory(numbers: &[f32], shape: [usize; 3], by_columns: bool, device: &Device) -> CubeTensor {
        let factor = Tensor::<1>::from_data(numbers, device).reshape(shape);
        let factor = if by_columns { factor.swap_dims(1, 2).mul_scalar(1.0).swap_dims(1, 2) } else { factor };
        on_device(&factor).expect("f32 on a GPU")
    }

    #[test]
    fn every_candidate_gives_the_same_product() {
        let device = brasa_test::device();
        if brasa_device::runs_on_host(&device) {
            eprintln!("SKIPPED: BRASA_TEST_DEVICE names no GPU");
            return;
        }
        let sizes = [
            (1, [32, 64, 64]),
            (1, [1, 1, 1]),
            (1, [1, 7, 126]),
            (1, [126, 1, 7]),
            (1, [7, 126, 1]),
            (1, [33, 5, 2]),
            (2, [65, 31, 129]),
            (3, [4, 300, 17]),
            (1, [130, 64, 260]),
        ];
        for kernel in tuned::candidates() {
            let mut n_ran = 0;
            for (members, size) in sizes {
                let [rows, inner, columns] = size;
                let shapes = [[members, rows, inner], [members, inner, columns]];
                let [lhs, rhs] = [integers(shapes[0], 3), integers(shapes[1], 5)];
                let expected = defined(&lhs, &rhs, members, size);
                for turned in [[false, false], [true, false], [false, true]] {
                    let [lhs, rhs] =
                        [(&lhs, 0), (&rhs, 1)].map(|(numbers, i)| memory(numbers, shapes[i], turned[i], &device));
                    let out = init_matmul_output(&lhs, &rhs, DType::F32);
                    if let Err(error) = multiply(&kernel, lhs, rhs, &out) {
                        println!("{kernel} does not run for {size:?}: {error:?}");
                        continue;
                    }
                    n_ran += 1;
                    let found: Vec<f32> = from_device::<3>(out).into_data().iter::<f32>().collect();
                    assert_eq!(found, expected, "{kernel}: {members} of {size:?}, by columns {turned:?}");
                }
            }
            assert!(n_ran > 0, "{kernel} runs for no size");
        }
    }
}
