//! A module together with what its optimizer remembers.

use brasa_device::runs_on_host;
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Tensor, TensorData};

use crate::optimizer::{AdamStep, Moments};
use crate::{AdamConfig, AdamState, NnError};

/// Keeps the division by a gradient norm of 0 finite (PyTorch's `clip_grad_norm_`).
const NORM_EPSILON: f32 = 1e-6;
/// Why the module can be looked at.
const PRESENT: &str = "the module is away only inside a step";

/// A module on the autodiff side of a device, trained by Adam with clipping of the global gradient norm.
///
/// The parameters are updated as one long vector: a small network's step costs a handful of operations instead of
/// a dozen per tensor. Parameter identities stay the same throughout.
#[derive(Debug, Clone)]
pub struct Trainable<M> {
    /// Away only while a step replaces it: with a single owner its memory is reused in place.
    module: Option<M>,
    config: AdamConfig,
    state: AdamState,
}

/// What one optimizer step is told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Learning rate.
    pub learning_rate: f64,
    /// Largest allowed norm of all gradients together; `None` for no limit.
    pub max_grad_norm: Option<f64>,
}

impl<M: Module> Trainable<M> {
    /// Trains `module`, whose parameters live on an autodiff device.
    ///
    /// # Errors
    /// [`NnError::Field`] for settings outside their rule.
    pub fn new(module: M, config: AdamConfig) -> Result<Self, NnError> {
        config.validate()?;
        let mut count = Count { n: 0, device: None };
        module.visit(&mut count);
        let device =
            count.device.ok_or_else(|| NnError::Space("a module without parameters cannot be trained".into()))?;
        let device = device.without_autodiff();
        let state = AdamState::new(count.n, &device, runs_on_host(&device));
        Ok(Self { module: Some(module), config, state })
    }

    /// The module, on the autodiff side.
    pub fn module(&self) -> &M {
        self.module.as_ref().expect(PRESENT)
    }

    /// Replaces the module, keeping what the optimizer remembers.
    pub fn set_module(&mut self, module: M) {
        self.module = Some(module);
    }

    /// The module on the plain side, for acting.
    pub fn valid(&self) -> M {
        self.module().valid()
    }

    /// What the optimizer remembers.
    pub fn state(&self) -> &AdamState {
        &self.state
    }

    /// What the optimizer remembers, to be restored.
    pub fn state_mut(&mut self) -> &mut AdamState {
        &mut self.state
    }

    /// One step down the gradient of `loss`. Waits for the device on the host's processor only.
    pub fn step(&mut self, loss: &Tensor<1>, step: Step) {
        let mut gradients = loss.backward();
        self.state.steps += 1;
        match self.state.moments {
            Moments::Host { .. } => self.step_on_host(&mut gradients, step),
            Moments::Device { .. } => self.step_on_device(&mut gradients, step),
        }
    }

    fn step_on_host(&mut self, gradients: &mut Gradients, step: Step) {
        let Moments::Host { first, second } = &mut self.state.moments else { unreachable!("chosen by the caller") };
        let mut grads = HostGrads { gradients, all: Vec::with_capacity(first.len()) };
        self.module.as_ref().expect(PRESENT).visit(&mut grads);
        let grads = grads.all;
        let scale = match step.max_grad_norm {
            Some(limit) => {
                let norm = grads.iter().map(|g| f64::from(*g) * f64::from(*g)).sum::<f64>().sqrt() as f32;
                (limit as f32 / (norm + NORM_EPSILON)).min(1.0)
            }
            None => 1.0,
        };
        let adam = AdamStep::new(&self.config, self.state.steps, step.learning_rate);
        let mut apply = Replace {
            at: 0,
            with: |at: usize, weight: Tensor<1>| {
                let device = weight.device();
                let mut data = weight.into_data();
                let weight = data.as_mut_slice::<f32>().expect("parameters are f32");
                let range = at..at + weight.len();
                let (grad, first, second) = (&grads[range.clone()], &mut first[range.clone()], &mut second[range]);
                adam.on_host(scale, weight, grad, first, second);
                Tensor::from_data(data, &device)
            },
        };
        self.module = self.module.take().map(|module| module.map(&mut apply));
    }

    fn step_on_device(&mut self, gradients: &mut Gradients, step: Step) {
        let Moments::Device { first, second } = &mut self.state.moments else { unreachable!("chosen by the caller") };
        let mut flat = Flatten { gradients, weights: Vec::new(), grads: Vec::new() };
        self.module.as_ref().expect(PRESENT).visit(&mut flat);
        let (weight, grad) = (Tensor::cat(flat.weights, 0), Tensor::cat(flat.grads, 0));
        let scale = step.max_grad_norm.map(|limit| {
            let norm = grad.clone().square().sum().sqrt();
            (norm + NORM_EPSILON).recip().mul_scalar(limit).clamp_max(1.0)
        });
        let adam = AdamStep::new(&self.config, self.state.steps, step.learning_rate);
        let weight = adam.on_device(scale, weight, grad, first, second);
        let mut apply =
            Replace { at: 0, with: |at: usize, old: Tensor<1>| weight.clone().slice(at..at + old.dims()[0]) };
        self.module = self.module.take().map(|module| module.map(&mut apply));
    }
}

/// Counts parameters and finds their device.
struct Count {
    n: usize,
    device: Option<Device>,
}

impl ModuleVisitor for Count {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val();
        self.n += value.dims().iter().product::<usize>();
        self.device = Some(value.device());
    }
}

/// Copies all gradients to the host, zeros where a parameter has none.
struct HostGrads<'a> {
    gradients: &'a mut Gradients,
    all: Vec<f32>,
}

impl ModuleVisitor for HostGrads<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val();
        match value.grad_remove(self.gradients) {
            Some(grad) => {
                let data: TensorData = grad.into_data();
                self.all.extend_from_slice(data.as_slice::<f32>().expect("gradients are f32"));
            }
            None => self.all.resize(self.all.len() + value.dims().iter().product::<usize>(), 0.0),
        }
    }
}

/// Lays weights and gradients end to end, zeros where a parameter has no gradient.
struct Flatten<'a> {
    gradients: &'a mut Gradients,
    weights: Vec<Tensor<1>>,
    grads: Vec<Tensor<1>>,
}

impl ModuleVisitor for Flatten<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val();
        let n = value.dims().iter().product::<usize>();
        let grad = value.grad_remove(self.gradients);
        let value = value.inner();
        let grad = grad.unwrap_or_else(|| value.zeros_like());
        self.weights.push(value.reshape([n]));
        self.grads.push(grad.reshape([n]));
    }
}

/// Replaces every parameter by what `with` makes of its place in the long vector and its flat value.
struct Replace<F> {
    at: usize,
    with: F,
}

impl<F: FnMut(usize, Tensor<1>) -> Tensor<1>> ModuleMapper for Replace<F> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|tensor| {
            let shape = tensor.dims();
            let n = shape.iter().product::<usize>();
            let value = (self.with)(self.at, tensor.inner().reshape([n]));
            self.at += n;
            value.reshape(shape).autodiff().require_grad()
        })
    }
}
