//! Soft updates of target networks.

use std::collections::VecDeque;

use brasa_kernels::{HostTensor, concat, elementwise, runs_on_host};
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::Tensor;

use crate::trainable::{row, with_weights};

/// `target <- (1 - tau) target + tau online` for every parameter, without autodiff; `tau = 1` copies.
///
/// The target is on the non-autodiff device and keeps its parameter identities.
///
/// ```
/// use brasa_core::read_back;
/// use brasa_nn::{LayerNorm, leaf, soft_update};
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let online = LayerNorm { shift: leaf(Tensor::ones([2], &device)), ..LayerNorm::new(2, &device) };
/// // The target has a shift of 0 and takes a quarter of the shift of 1.
/// let target = soft_update(LayerNorm::new(2, &device), &online, 0.25);
/// assert_eq!(read_back(target.shift.val()), [0.25, 0.25]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn soft_update<M: Module>(target: M, online: &M, tau: f64) -> M {
    let online = rows(online);
    // Elsewhere, all parameters as one vector are fewer launches.
    if tau == 1.0 || online.front().is_none_or(|first| runs_on_host(&first.device())) {
        return target.map(&mut Blend { online, tau });
    }
    let sizes: Vec<usize> = online.iter().map(|row| row.dims()[1]).collect();
    let [old, online] = [rows(&target), online].map(|rows| concat(rows.into()).squeeze_dim::<1>(0));
    with_weights(target, blended(&old, &online, tau), &sizes)
}

/// `(1 - tau) target + tau online` for flat numbers, in one pass.
pub(crate) fn blended(target: &Tensor<1>, online: &Tensor<1>, tau: f64) -> Tensor<1> {
    let n = target.dims()[0];
    let [numbers] = elementwise([n, 1], |formulas| {
        let [target, online] = [target, online].map(|numbers| formulas.read(numbers));
        [vec![target * (1.0 - tau) + online * tau]]
    });
    numbers.reshape([n])
}

/// Every parameter as one row, without autodiff.
fn rows<M: Module>(module: &M) -> VecDeque<Tensor<2>> {
    let mut collect = Collect { values: VecDeque::new() };
    module.visit(&mut collect);
    collect.values
}

struct Collect {
    values: VecDeque<Tensor<2>>,
}

impl ModuleVisitor for Collect {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val();
        self.values.push_back(row(if value.is_autodiff() { value.inner() } else { value }));
    }
}

/// On the CPU, or where `tau` is 1.
struct Blend {
    online: VecDeque<Tensor<2>>,
    tau: f64,
}

impl ModuleMapper for Blend {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let online = self.online.pop_front().expect("both modules have the same parameters");
        let tau = self.tau;
        param.map(|target| {
            if tau == 1.0 {
                return online.reshape(target.dims());
            }
            let online = HostTensor::of(&online).expect("both modules are on the CPU");
            let (keep, take) = ((1.0 - tau) as f32, tau as f32);
            // Compiled once per instruction set and selected at run time.
            let blend = |values: &mut [f32]| {
                let pairs = values.iter_mut().zip(online.iter());
                pairs.for_each(|(target, online)| *target = keep * *target + take * online);
            };
            HostTensor::changed(target, |values| {
                pulp::Arch::new().dispatch(
                    #[inline(always)]
                    || blend(values),
                )
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Init, Linear, named_params};
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn a_target_goes_part_of_the_way() {
        let device = brasa_test::device();
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let target = Linear::new(3, 2, Init::FanIn, &device, &mut rng);
        let online = Linear::new(3, 2, Init::FanIn, &device.clone().autodiff(), &mut rng);
        let values =
            |module: &Linear| -> Vec<f32> { named_params(module).into_iter().flat_map(|p| p.values).collect() };
        for tau in [0.0, 0.25, 1.0] {
            let after = soft_update(target.clone(), &online, tau);
            for ((after, target), online) in values(&after).iter().zip(values(&target)).zip(values(&online)) {
                assert!((f64::from(*after) - ((1.0 - tau) * f64::from(target) + tau * f64::from(online))).abs() < 1e-6);
            }
        }
    }
}
