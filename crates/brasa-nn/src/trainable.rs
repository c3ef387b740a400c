//! A module together with what its optimizer remembers.

use brasa_device::runs_on_host;
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Tensor};

use crate::optimizer::{Moments, OptimizerStep};
use crate::{NnError, OptimizerConfig, OptimizerState};

/// Keeps the division by a gradient norm of 0 finite (PyTorch's `clip_grad_norm_`).
const NORM_EPSILON: f32 = 1e-6;
/// Why the module can be looked at.
const PRESENT: &str = "the module is away only inside a step";

/// A module on the autodiff side of a device, trained by an optimizer with clipping of the global gradient norm.
///
/// The parameters are updated as one long vector: a small network's step costs a handful of operations instead of
/// a dozen per tensor. Parameter identities stay the same throughout.
#[derive(Debug, Clone)]
pub struct Trainable<M> {
    /// Away only while a step replaces it: with a single owner its memory is reused in place.
    module: Option<M>,
    config: OptimizerConfig,
    state: OptimizerState,
    /// The autodiff side, where the module lives.
    device: Device,
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
    pub fn new(module: M, config: impl Into<OptimizerConfig>) -> Result<Self, NnError> {
        let config = config.into();
        config.validate()?;
        let mut count = Count { n: 0, device: None };
        module.visit(&mut count);
        let device =
            count.device.ok_or_else(|| NnError::Space("a module without parameters cannot be trained".into()))?;
        let plain = device.clone().without_autodiff();
        let state = OptimizerState::new(&config, count.n, &plain, runs_on_host(&plain));
        Ok(Self { module: Some(module), config, state, device })
    }

    /// The module, on the autodiff side.
    pub fn module(&self) -> &M {
        self.module.as_ref().expect(PRESENT)
    }

    /// The device of the module, on the autodiff side.
    pub fn device(&self) -> &Device {
        &self.device
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
    pub fn state(&self) -> &OptimizerState {
        &self.state
    }

    /// What the optimizer remembers, to be restored.
    pub fn state_mut(&mut self) -> &mut OptimizerState {
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
        let module = self.module.take().expect(PRESENT);
        let scale = match step.max_grad_norm {
            Some(limit) => {
                let mut squares = Squares { gradients, sum: 0.0 };
                module.visit(&mut squares);
                (limit as f32 / (squares.sum.sqrt() as f32 + NORM_EPSILON)).min(1.0)
            }
            None => 1.0,
        };
        let update = OptimizerStep::new(&self.config, self.state.steps, step.learning_rate);
        let mut apply = Replace {
            at: 0,
            gradients: Some(gradients),
            with: |at: usize, weight: Tensor<1>, grad: Option<Tensor<1>>| {
                let device = weight.device();
                let mut data = weight.into_data();
                let weight = data.as_mut_slice::<f32>().expect("parameters are f32");
                let range = at..at + weight.len();
                let (first, second) = (&mut first[range.clone()], &mut second[range]);
                let grad = grad.map(Tensor::into_data);
                // A parameter that the loss does not touch has a gradient of 0: its moments still decay.
                let zeros = if grad.is_none() { vec![0.0; weight.len()] } else { Vec::new() };
                let grad = grad.as_ref().map_or(&zeros[..], |g| g.as_slice::<f32>().expect("gradients are f32"));
                update.on_host(scale, weight, grad, first, second);
                Tensor::from_data(data, &device)
            },
        };
        self.module = Some(module.map(&mut apply));
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
        let update = OptimizerStep::new(&self.config, self.state.steps, step.learning_rate);
        let weight = update.on_device(scale, weight, grad, first, second);
        let with = |at: usize, old: Tensor<1>, _: Option<Tensor<1>>| weight.clone().slice(at..at + old.dims()[0]);
        let mut apply = Replace { at: 0, gradients: None, with };
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

/// In f64, with a sum for each lane of a vector instruction; the order is the same on every processor.
fn sum_of_squares(values: &[f32]) -> f64 {
    const LANES: usize = 16;
    let mut sums = [0.0f64; LANES];
    let (whole, rest) = values.as_chunks::<LANES>();
    pulp::Arch::new().dispatch(
        #[inline(always)]
        || {
            for chunk in whole {
                sums.iter_mut().zip(chunk).for_each(|(sum, x)| *sum += f64::from(*x) * f64::from(*x));
            }
        },
    );
    sums.iter().sum::<f64>() + rest.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>()
}

/// Adds up the squares of all gradients on the host.
struct Squares<'a> {
    gradients: &'a Gradients,
    sum: f64,
}

impl ModuleVisitor for Squares<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(grad) = param.val().grad(self.gradients) {
            let data = grad.into_data();
            let grad = data.as_slice::<f32>().expect("gradients are f32");
            self.sum += sum_of_squares(grad);
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

/// Replaces every parameter by what `with` makes of its place in the long vector, its flat value and its gradient.
struct Replace<'a, F> {
    at: usize,
    /// Where gradients are taken from; `None` where `with` does not need them.
    gradients: Option<&'a mut Gradients>,
    with: F,
}

impl<F: FnMut(usize, Tensor<1>, Option<Tensor<1>>) -> Tensor<1>> ModuleMapper for Replace<'_, F> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|tensor| {
            let shape = tensor.dims();
            let n = shape.iter().product::<usize>();
            let grad = self.gradients.as_mut().and_then(|gradients| tensor.grad_remove(gradients));
            let grad = grad.map(|grad| grad.reshape([n]));
            let value = (self.with)(self.at, tensor.inner().reshape([n]), grad);
            self.at += n;
            value.reshape(shape).autodiff().require_grad()
        })
    }
}
