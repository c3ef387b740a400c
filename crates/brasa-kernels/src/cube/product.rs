//! Products in 32 bits.

use burn::tensor::DType;
use burn_cubecl::kernel::matmul::init_matmul_output;
use burn_cubecl::tensor::CubeTensor;
use cubek::matmul::definition::MatmulElems;
use cubek::matmul::launch::launch_ref;
use cubek::matmul::multi_level;
use cubek::matmul::strategy::Strategy;
use cubek::std::InputBinding;

use super::cubecl::prelude::*;

/// `lhs rhs` without tensor cores, which would round the factors. Neither may be empty.
pub(crate) fn exact(lhs: CubeTensor, rhs: CubeTensor) -> CubeTensor {
    let out = init_matmul_output(&lhs, &rhs, DType::F32);
    let elem = f32::elem_type_native();
    let input = |factor: CubeTensor| InputBinding::new(factor.binding(), elem);
    // What Burn itself falls back to on devices without tensor cores.
    let strategy = Strategy::MultiLevel(multi_level::Strategy::SimpleUnit(Default::default()));
    let mut elems = MatmulElems::from_single_dtype(elem);
    launch_ref(&strategy, &out.client, input(lhs), input(rhs), out.clone().binding(), &mut elems)
        .expect("this product needs no special hardware");
    out
}
