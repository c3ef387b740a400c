//! A replay buffer in the memory of the host, for a run on another device.

use brasa_core::{StepBatch, Successor};
use burn::tensor::{Device, Tensor};

use crate::compact::{Compact, Packed, Precision};

/// Rows on the `host`; waits once for the device where they are.
pub(super) fn fetch_rows<C: Compact>(rows: &C, host: &Device) -> C {
    let mut arrays = Vec::new();
    rows.clone().pack(Precision::F32, &mut arrays);
    C::unpack(rows, &mut Packed::fetch(arrays, host).into_iter())
}

/// A step on the `host`; waits once for the device where it is.
pub(super) fn fetch_step<O: Compact, A: Compact>(action: &A, step: &StepBatch<O>, host: &Device) -> (A, StepBatch<O>) {
    let mut arrays = Vec::new();
    action.clone().pack(Precision::F32, &mut arrays);
    step.obs.clone().pack(Precision::F32, &mut arrays);
    if let Successor::Rows(rows) = &step.successor {
        rows.clone().pack(Precision::F32, &mut arrays);
    }
    let outcome = [&step.reward, &step.terminated, &step.truncated].map(Tensor::clone);
    arrays.push(Packed::new(Tensor::stack(outcome.to_vec(), 1), Precision::F32));

    let mut arrays = Packed::fetch(arrays, host).into_iter();
    let action = A::unpack(action, &mut arrays);
    let obs = O::unpack(&step.obs, &mut arrays);
    let successor = match &step.successor {
        Successor::Rows(rows) => Successor::Rows(O::unpack(rows, &mut arrays)),
        other => other.clone(),
    };
    let outcome = arrays.next().expect("it was packed last").into_floats();
    let column = |i: usize| outcome.clone().slice([0..outcome.dims()[0], i..i + 1]).squeeze_dim(1);
    let step = StepBatch {
        obs,
        successor,
        reward: column(0),
        terminated: column(1),
        truncated: column(2),
        // A replay buffer has steps of one length.
        elapsed: None,
    };
    (action, step)
}
