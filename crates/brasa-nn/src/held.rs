//! Numbers in memory that recordings read and write.

use std::sync::OnceLock;

use brasa_kernels::{concat, runs_on_host};
use burn::module::Module;
use burn::tensor::{Device, Tensor};

use crate::Changing;
use crate::gradient::{Count, Weights};
use crate::polyak::{blended, soft_update};
use crate::trainable::with_weights;

/// Flat numbers. From [`InPlace::hold`] on, new ones are written over the old ones, and nobody else has a handle to their memory for longer than a
/// computation.
#[derive(Debug)]
pub struct InPlace {
    tensor: Tensor<1>,
    is_held: bool,
}

impl Clone for InPlace {
    fn clone(&self) -> Self {
        Self { tensor: self.copy(), is_held: false }
    }
}

impl From<Tensor<1>> for InPlace {
    fn from(tensor: Tensor<1>) -> Self {
        Self { tensor, is_held: false }
    }
}

impl InPlace {
    /// A handle, for a computation.
    pub fn get(&self) -> Tensor<1> {
        self.tensor.clone()
    }

    /// The numbers in memory that is not changed any more.
    pub fn copy(&self) -> Tensor<1> {
        if self.is_held { self.tensor.clone() * 1.0 } else { self.tensor.clone() }
    }

    /// Replaces the numbers.
    pub fn set(&mut self, numbers: Tensor<1>) {
        if !self.is_held {
            self.tensor = numbers;
            return;
        }
        assert!(self.tensor.can_mut(), "nobody else has a handle to the memory of a recording");
        let n = self.tensor.dims()[0];
        self.tensor.inplace(|tensor| tensor.slice_assign(0..n, numbers));
    }

    /// Moves the numbers to memory of their own.
    pub fn hold(&mut self) {
        if !self.is_held {
            // A product is never a view of its factor.
            self.tensor = self.tensor.clone() * 1.0;
            self.is_held = true;
        }
    }

    pub fn is_held(&self) -> bool {
        self.is_held
    }
}

/// A module without autodiff, such as a target network, which is replaced as a whole: see [`crate::Recordings`].
///
/// ```
/// use brasa_core::read_back;
/// use brasa_nn::{Held, LayerNorm, leaf};
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let online = LayerNorm { shift: leaf(Tensor::ones([2], &device)), ..LayerNorm::new(2, &device) };
/// // The target network has a shift of 0, and follows the shift of 1 by a quarter.
/// let mut target = Held::new(LayerNorm::new(2, &device));
/// target.follow(&Held::new(online), 0.25);
/// assert_eq!(read_back(target.get().shift.val()), [0.25, 0.25]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Held<M> {
    /// Empty within a change, and from a change of the numbers that are held until it is asked for.
    module: OnceLock<M>,
    /// The module with other numbers, and its numbers.
    numbers: Option<(M, InPlace)>,
    /// All numbers of the module, from the last change of them that a GPU computed.
    flat: Option<Tensor<1>>,
    /// Numbers of each parameter.
    sizes: Vec<usize>,
    /// Whether another device than the CPU computes.
    on_device: bool,
}

impl<M: Module> Held<M> {
    /// A module without autodiff.
    pub fn new(module: M) -> Self {
        let Count { sizes, device, .. } = Count::of(&module);
        let on_device = device.is_some_and(|device| !runs_on_host(&device));
        Self { module: module.into(), numbers: None, flat: None, sizes, on_device }
    }

    /// The module.
    pub fn get(&self) -> &M {
        self.module.get_or_init(|| {
            let (module, numbers) = self.numbers.as_ref().expect("a module or its numbers are there");
            with_weights(module.clone(), numbers.copy(), &self.sizes)
        })
    }

    /// Replaces the module by one with equal shapes. Recordings of its numbers end.
    pub fn set(&mut self, module: M) {
        self.module = module.into();
        self.numbers = None;
        self.flat = None;
    }

    /// Replaces the module by what `change` makes of it, whose memory is its own there. Recordings of its numbers end.
    pub(crate) fn change(&mut self, change: impl FnOnce(M) -> M) {
        self.get();
        self.numbers = None;
        let module = self.module.take().expect("it was just made");
        self.set(change(module));
    }

    /// A step towards `other`: see [`soft_update`].
    pub fn follow(&mut self, other: &Self, tau: f64) {
        if self.is_held() || (tau < 1.0 && self.on_device) {
            let online = other.weights();
            self.set_weights(if tau == 1.0 { online } else { blended(&self.weights(), &online, tau) });
        } else {
            self.change(|module| soft_update(module, other.get(), tau));
        }
    }

    /// Numbers of each parameter, in the order in which [`Module::visit`] meets them.
    pub(crate) fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// All numbers, flat.
    pub(crate) fn weights(&self) -> Tensor<1> {
        match &self.numbers {
            Some((_, numbers)) => numbers.get(),
            None => self.flat.clone().unwrap_or_else(|| flat(self.get(), &self.sizes)),
        }
    }

    /// Replaces all numbers.
    pub(crate) fn set_weights(&mut self, weights: Tensor<1>) {
        match &mut self.numbers {
            Some((_, numbers)) => {
                // A single parameter may be a view of them.
                self.module = OnceLock::new();
                numbers.set(weights);
            }
            None => {
                let module = self.module.take().expect("it is there");
                self.module = with_weights(module, weights.clone(), &self.sizes).into();
                self.flat = Some(weights);
            }
        }
    }

    /// Whether recordings may use the numbers.
    pub(crate) fn is_held(&self) -> bool {
        self.numbers.as_ref().is_some_and(|(_, numbers)| numbers.is_held())
    }
}

/// All numbers of a module without autodiff, in the order of the parameters.
fn flat<M: Module>(module: &M, sizes: &[usize]) -> Tensor<1> {
    let mut weights = Weights::default();
    module.visit(&mut weights);
    concat(weights.0).reshape([sizes.iter().sum::<usize>()])
}

impl<M: Module> Changing for Held<M> {
    fn device_of_recordings(&self) -> Option<Device> {
        // The first one of all.
        let device = self.get().devices().into_iter().next()?;
        (!runs_on_host(&device)).then_some(device)
    }

    fn hold(&mut self) {
        if !self.is_held() {
            let mut numbers = InPlace::from(self.weights());
            numbers.hold();
            self.flat = None;
            self.numbers = Some((self.get().clone(), numbers));
        }
    }

    fn is_held(&mut self) -> bool {
        Held::is_held(self)
    }

    fn places(&mut self) -> Vec<&mut InPlace> {
        self.numbers.iter_mut().map(|(_, numbers)| numbers).collect()
    }

    fn forget(&mut self) {
        if self.numbers.is_some() {
            self.module = OnceLock::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::{AdamConfig, Init, Linear, Trainable, named_params};

    fn layer(device: &Device) -> Linear {
        Linear::new(2, 1, Init::FanIn, device, &mut ChaCha8Rng::seed_from_u64(0))
    }

    fn weights(layer: &Linear) -> Vec<f32> {
        named_params(layer).into_iter().flat_map(|param| param.values).collect()
    }

    #[test]
    fn numbers_that_are_held_are_written_in_place_and_copied_for_others() {
        let device = brasa_test::device();
        let (mut plain, mut held) = (Held::new(layer(&device)), Held::new(layer(&device)));
        Changing::hold(&mut held);
        assert!(held.is_held() && !plain.is_held());
        let before = held.get().clone();
        let kept = weights(&before);
        for tau in [0.25, 1.0] {
            let other = Linear::new(2, 1, Init::FanIn, &device, &mut ChaCha8Rng::seed_from_u64(1));
            let other = Held::new(other);
            plain.follow(&other, tau);
            held.follow(&other, tau);
            assert!(held.is_held());
            assert_eq!(weights(held.get()), weights(plain.get()));
        }
        assert_ne!(weights(held.get()), kept);
        assert_eq!(weights(&before), kept, "who got the module before has its numbers");
        held.set(before);
        assert!(!Changing::is_held(&mut held) && !held.clone().is_held());
    }

    /// Recordings of the old weights would change memory that is no longer theirs.
    #[test]
    fn a_module_that_was_replaced_is_not_held() {
        let device = brasa_test::device();
        let mut trainable = Trainable::new(layer(&device.autodiff()), AdamConfig::default()).expect("sound");
        Changing::hold(&mut trainable);
        assert!(Changing::is_held(&mut trainable));
        let other = trainable.module().clone();
        trainable.set_module(other);
        assert!(!Changing::is_held(&mut trainable));
    }
}
