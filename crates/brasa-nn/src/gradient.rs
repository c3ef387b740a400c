//! Gradients of all parameters of a module, its weights, and their number, parameter by parameter.

use brasa_kernels::reuse;
use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Tensor};

use crate::trainable::{Kept, row};

/// A gradient of all parameters.
pub(crate) struct Gradient {
    pub numbers: Numbers,
    /// Whether it is that of a loss that was scaled.
    pub scaled: bool,
    /// State that the forward pass has changed.
    pub kept: Option<Kept>,
}

pub(crate) enum Numbers {
    Host(Vec<f32>),
    /// `[n_learners, numbers]` of every parameter.
    Device(Vec<Tensor<2>>),
}

impl Gradient {
    /// The sum of two gradients of one module; the state is that of the later forward pass.
    ///
    /// # Panics
    /// If they are on different devices.
    pub fn plus(mut self, other: Self) -> Self {
        match (&mut self.numbers, other.numbers) {
            (Numbers::Host(sum), Numbers::Host(other)) => {
                sum.iter_mut().zip(&other).for_each(|(sum, x)| *sum += x);
                reuse(other);
            }
            (Numbers::Device(sum), Numbers::Device(other)) => {
                sum.iter_mut().zip(other).for_each(|(sum, x)| *sum = sum.clone() + x);
            }
            _ => panic!("gradients of two devices"),
        }
        self.kept = other.kept;
        self
    }
}

/// Counts the numbers of parameters and finds their device.
#[derive(Default)]
pub(crate) struct Count {
    pub sizes: Vec<usize>,
    pub device: Option<Device>,
    /// Whether no gradient reaches a parameter.
    pub kept: Vec<bool>,
}

impl Count {
    pub fn of<M: Module>(module: &M) -> Self {
        let mut count = Self::default();
        module.visit(&mut count);
        count
    }
}

impl ModuleVisitor for Count {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val();
        self.sizes.push(value.dims().iter().product());
        self.device = Some(value.device());
        self.kept.push(!value.is_require_grad());
    }
}

/// The numbers of every parameter in one row.
#[derive(Default)]
pub(crate) struct Weights(pub Vec<Tensor<2>>);

impl ModuleVisitor for Weights {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.push(row(param.val()));
    }
}

/// Gradients as `[n_learners, numbers]`, with zeros for a parameter without gradient.
pub(crate) struct Flatten<'a> {
    gradients: &'a mut Gradients,
    n_learners: usize,
    pub grads: Vec<Tensor<2>>,
}

impl<'a> Flatten<'a> {
    pub fn of<M: Module>(module: &M, gradients: &'a mut Gradients, n_learners: usize) -> Self {
        let mut flat = Self { gradients, n_learners, grads: Vec::new() };
        module.visit(&mut flat);
        flat
    }
}

impl ModuleVisitor for Flatten<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val();
        let (n, n_learners) = (value.dims().iter().product::<usize>(), self.n_learners);
        assert!(n_learners == 1 || value.dims()[0] == n_learners, "a parameter must count learners first");
        let grad = value.grad_remove(self.gradients);
        let grad = grad.unwrap_or_else(|| value.inner().zeros_like());
        self.grads.push(grad.reshape([n_learners, n / n_learners]));
    }
}
