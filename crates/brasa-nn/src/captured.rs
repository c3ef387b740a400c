//! Computations that are recorded once and launched as a whole.
//!
//! An update of a small network is hundreds of launches with microseconds of work each. CUDA and CubeCL's Vulkan record them as a graph,
//! which one launch replays. The recording holds addresses and constants: inputs and state must stay in the same memory, and what changes
//! between replays, such as a learning rate, must be a tensor.

use std::cell::RefCell;
use std::rc::Rc;

use brasa_kernels::concat;
use burn::module::Module;
use burn::tensor::{Device, Graph, Tensor, capture};

use crate::gradient::Flatten;
use crate::optimizer::AdamConfig;
use crate::trainable::{clipped, with_weights};
use crate::{Clip, NnError, OptimizerConfig, Trainable, named_params};

/// A computation `(inputs, state) -> (output, new state)` that is recorded at its creation. Every tensor is flat.
///
/// It owns the memory that the recording uses: inputs are written there before each replay, and a new state is written over the old one.
/// It stays on the thread that created it, whose stream the recording belongs to. On a device that records nothing, the computation is
/// called again instead, with the same results.
///
/// ```
/// use brasa_nn::Captured;
/// use burn::tensor::Tensor;
///
/// let device = brasa_test::device();
/// let zero = Tensor::<1>::zeros([1], &device);
/// // A running sum, and twice its value.
/// // SAFETY: the computation reads no other tensors than its arguments.
/// let mut sum = unsafe {
///     Captured::new(&device, vec![zero.clone()], vec![zero], |inputs, state| {
///         let sum = state[0].clone() + inputs[0].clone();
///         (sum.clone() * 2.0, vec![sum])
///     })
/// };
/// sum.run(vec![Tensor::from_floats([1.0], &device)]);
/// let twice = sum.run(vec![Tensor::from_floats([2.0], &device)]);
/// assert_eq!(twice.into_scalar::<f32>(), 6.0);
/// ```
pub struct Captured {
    memory: Rc<RefCell<Memory>>,
    graph: Graph<Tensor<1>, Box<dyn FnMut() -> Tensor<1>>>,
}

/// The tensors whose memory a recording uses. Nobody else has a handle to them, so that they are written in place.
struct Memory {
    inputs: Vec<Tensor<1>>,
    state: Vec<Tensor<1>>,
}

/// Memory of its own with the same numbers.
fn copied(tensors: &[Tensor<1>]) -> Vec<Tensor<1>> {
    tensors.iter().map(|tensor| tensor.clone() * 1.0).collect()
}

/// Writes `values` into the memory of `tensors`.
fn write(tensors: &mut [Tensor<1>], values: Vec<Tensor<1>>) {
    assert_eq!(tensors.len(), values.len(), "a captured computation has a fixed number of inputs and states");
    for (tensor, value) in tensors.iter_mut().zip(values) {
        let n = tensor.dims()[0];
        tensor.inplace(|tensor| tensor.slice_assign(0..n, value));
    }
}

impl Captured {
    /// Records `work` on `device`, a device without autodiff; autodiff may be used inside. The inputs are examples of the right sizes.
    /// `work` is called several times before the recording; the state is afterwards the given one.
    ///
    /// # Panics
    /// If `work` returns another number of states, or one of another size.
    ///
    /// # Safety
    /// A replay reads the memory that `work` read while it was recorded. Every tensor on `device` that `work` reads besides its arguments, such as
    /// a constant, must be owned by `work` and neither be dropped nor be replaced as long as this value exists.
    #[allow(unsafe_code, reason = "the recording holds addresses of tensors that a closure may drop")]
    pub unsafe fn new(
        device: &Device,
        inputs: Vec<Tensor<1>>,
        state: Vec<Tensor<1>>,
        mut work: impl FnMut(&[Tensor<1>], &[Tensor<1>]) -> (Tensor<1>, Vec<Tensor<1>>) + 'static,
    ) -> Self {
        let memory = Rc::new(RefCell::new(Memory { inputs: copied(&inputs), state: copied(&state) }));
        let shared = Rc::clone(&memory);
        let mut closure: Box<dyn FnMut() -> Tensor<1>> = Box::new(move || {
            let memory = &mut *shared.borrow_mut();
            let (output, new) = work(&memory.inputs, &memory.state);
            write(&mut memory.state, new);
            output
        });
        // The first recording of a process may fail without an error if nothing was computed before.
        closure();
        let graph = capture(device, closure);
        write(&mut memory.borrow_mut().state, state);
        let captured = Self { memory, graph };
        captured.check();
        captured
    }

    /// Whether the device replays a recording; otherwise the computation is called again.
    pub fn is_hardware(&self) -> bool {
        self.graph.is_hardware()
    }

    /// A replay would use other memory than this if somebody else had a handle to it.
    fn check(&self) {
        let memory = self.memory.borrow();
        let alone = memory.inputs.iter().chain(&memory.state).all(Tensor::can_mut);
        assert!(alone || !self.is_hardware(), "nobody else has a handle to the memory of a recording");
    }

    /// Computes with these inputs and the present state. The output is a copy.
    ///
    /// # Panics
    /// If the inputs differ in number or size from those at the creation.
    #[allow(unsafe_code, reason = "a replay writes to the memory of the recording")]
    pub fn run(&mut self, inputs: Vec<Tensor<1>>) -> Tensor<1> {
        self.check();
        write(&mut self.memory.borrow_mut().inputs, inputs);
        // SAFETY: inputs and state live in `memory`, which this value and the closure own and which is only written in place, as was just
        // checked; the caller of `new` keeps other tensors of `work` alive, and the backend keeps temporary ones. `Rc` keeps this value on
        // its thread, so that everything is on one stream.
        let output = unsafe { self.graph.replay() };
        output.clone() * 1.0
    }

    /// A copy of the state.
    pub fn state(&self) -> Vec<Tensor<1>> {
        copied(&self.memory.borrow().state)
    }
}

/// Steps of Adam on a loss, recorded once: forward pass, backward pass and optimizer are one launch where the device can.
///
/// Burn's own Adam cannot be recorded: its bias corrections would stay those of the first step. Here they are part of the state, as
/// `c' = beta c + (1 - beta)`, which equals `1 - beta^t` without its cancellation. The learning rate is an input.
pub struct CapturedStep {
    captured: Captured,
    config: AdamConfig,
    steps: u64,
}

impl CapturedStep {
    /// Records steps that minimize `loss(module, inputs)` from the weights and moments of `trainable`, with the learning rate of each
    /// run, and gradients clipped as in `clip`. `inputs` are examples of the right sizes on the device without autodiff.
    ///
    /// # Errors
    /// [`NnError::Space`] if the optimizer is not Adam, gradients are clipped for several learners, or the module has numbers that no gradient
    /// reaches.
    ///
    /// # Safety
    /// The tensors that `loss` reads besides its arguments must be owned by `loss` and stay what they are: see [`Captured::new`].
    #[allow(unsafe_code, reason = "the recording holds addresses of tensors that a closure may drop")]
    pub unsafe fn new<M: Module + 'static>(
        trainable: &Trainable<M>,
        clip: Option<Clip>,
        inputs: Vec<Tensor<1>>,
        loss: impl Fn(&M, &[Tensor<1>]) -> Tensor<1> + 'static,
    ) -> Result<Self, NnError> {
        let OptimizerConfig::Adam(config) = *trainable.config() else {
            return Err(NnError::Space("only steps of Adam can be recorded".into()));
        };
        if trainable.has_state() {
            return Err(NnError::Space(
                "steps of a module with state, or with frozen parameters, cannot be recorded".into(),
            ));
        }
        if matches!(clip, Some(Clip::Norm { n_learners: 2.., .. })) {
            return Err(NnError::Space("steps of several learners cannot be recorded".into()));
        }
        let device = trainable.device().clone().without_autodiff();
        let tensor = |values: Vec<f32>| Tensor::<1>::from_floats(&values[..], &device);
        let (first, second) = trainable.state().read();
        let steps = trainable.state().steps();
        let correction = |beta: f64| tensor(vec![(1.0 - beta.powf(steps as f64)) as f32]);
        let weight = tensor(named_params(trainable.module()).into_iter().flat_map(|param| param.values).collect());
        let state = vec![weight, tensor(first), tensor(second), correction(config.beta_1), correction(config.beta_2)];
        let (template, sizes) = (trainable.module().clone(), trainable.sizes().to_vec());
        let all = [vec![Tensor::zeros([1], &device)], inputs].concat();
        let work = move |inputs: &[Tensor<1>], state: &[Tensor<1>]| {
            let (rate, inputs) = (inputs[0].clone(), &inputs[1..]);
            let [weight, first, second, correction_1, correction_2] = [0, 1, 2, 3, 4].map(|i| state[i].clone());
            let module = with_weights(template.clone(), weight.clone(), &sizes);
            let loss = loss(&module, inputs);
            let mut gradients = loss.backward();
            let grads = concat(Flatten::of(&module, &mut gradients, 1).grads);
            let grad = clipped(grads, clip).reshape(weight.dims());
            let AdamConfig { beta_1, beta_2, epsilon, weight_decay } = config;
            let grad = if weight_decay > 0.0 { grad + weight.clone() * weight_decay } else { grad };
            let mean = |old: Tensor<1>, beta: f64, new: Tensor<1>| old * beta + new * (1.0 - beta);
            let one = || Tensor::ones_like(&correction_1);
            let (c_1, c_2) = (mean(correction_1.clone(), beta_1, one()), mean(correction_2, beta_2, one()));
            let (first, second) = (mean(first, beta_1, grad.clone()), mean(second, beta_2, grad.square()));
            let root = second.clone().sqrt() / c_2.clone().sqrt();
            let new = weight - first.clone() * (rate / c_1.clone()) / (root + epsilon);
            (loss.inner(), vec![new, first, second, c_1, c_2])
        };
        // SAFETY: the closure owns `template`, which it only clones; the caller answers for `loss`.
        let captured = unsafe { Captured::new(&device, all, state, work) };
        Ok(Self { captured, config, steps })
    }

    /// Whether the device replays a recording: see [`Captured::is_hardware`].
    pub fn is_hardware(&self) -> bool {
        self.captured.is_hardware()
    }

    /// One step; returns the loss before it, `[1]`.
    ///
    /// # Panics
    /// If the inputs differ in number or size from those at the creation.
    pub fn run(&mut self, learning_rate: f64, inputs: Vec<Tensor<1>>) -> Tensor<1> {
        let device = self.captured.memory.borrow().inputs[0].device();
        let rate = Tensor::full([1], learning_rate, &device);
        self.steps += 1;
        self.captured.run([vec![rate], inputs].concat())
    }

    /// Gives weights and moments back to the module from which the recording was made.
    ///
    /// # Panics
    /// If `trainable` has another number of weights or another optimizer.
    pub fn write_back<M: Module>(&self, trainable: &mut Trainable<M>) {
        assert_eq!(*trainable.config(), OptimizerConfig::Adam(self.config), "the optimizer must be the recorded one");
        let state = self.captured.state();
        let host = |i: usize| brasa_core::read_back(state[i].clone());
        assert!(trainable.state_mut().write(self.steps, host(1), host(2)), "the module must be the recorded one");
        let module = with_weights(trainable.module().clone(), state[0].clone(), trainable.sizes());
        trainable.set_module(module);
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::{Init, RmsPropConfig, StackedLinear, Step};

    fn trainable(config: impl Into<OptimizerConfig>) -> Trainable<StackedLinear> {
        let (device, mut rng) = (brasa_test::device().autodiff(), ChaCha8Rng::seed_from_u64(5));
        Trainable::new(StackedLinear::new(1, 4, 3, Init::FanIn, &device, &mut rng), config).expect("sound")
    }

    fn loss(layer: &StackedLinear, inputs: &[Tensor<1>]) -> Tensor<1> {
        let (x, y) = (inputs[0].clone().reshape([1, 8, 4]), inputs[1].clone().reshape([1, 8, 3]));
        (layer.forward(x, None) - y).square().mean()
    }

    fn inputs(step: usize) -> Vec<Tensor<1>> {
        let wave = |n: usize, phase: f32| {
            let values: Vec<f32> = (0..n).map(|i| ((i + 17 * step) as f32 * 0.7 + phase).sin()).collect();
            Tensor::from_floats(&values[..], &brasa_test::device())
        };
        vec![wave(32, 0.0), wave(24, 1.0)]
    }

    fn weights(trainable: &Trainable<StackedLinear>) -> Vec<f32> {
        named_params(trainable.module()).into_iter().flat_map(|param| param.values).collect()
    }

    #[test]
    fn recorded_steps_equal_others_and_can_be_mixed_with_them() {
        let decaying = AdamConfig { weight_decay: 0.1, ..AdamConfig::default() };
        let norm = Some(Clip::Norm { limit: 0.3, n_learners: 1 });
        for (config, clip) in [(AdamConfig::default(), None), (decaying, norm), (decaying, Some(Clip::Value(0.02)))] {
            let (mut plain, mut recorded) = (trainable(config), trainable(config));
            let rate = |step: usize| 0.03 / (1.0 + step as f64);
            let one = |trainable: &mut Trainable<StackedLinear>, step: usize| {
                let loss = loss(trainable.module(), &inputs(step));
                trainable.step(&loss, Step { learning_rate: rate(step), clip });
                loss.inner().into_scalar::<f32>()
            };
            let mut losses = vec![Vec::new(), Vec::new()];
            for step in 0..12 {
                losses[0].push(one(&mut plain, step));
            }
            for step in 0..3 {
                losses[1].push(one(&mut recorded, step));
            }
            // SAFETY: `loss` reads nothing but its arguments.
            #[allow(unsafe_code, reason = "a recording")]
            let captured = unsafe { CapturedStep::new(&recorded, clip, inputs(0), loss) };
            let mut captured = captured.expect("it is Adam");
            // CubeCL records on both of its backends.
            let records = ["cuda", "wgpu"].contains(&std::env::var("BRASA_TEST_DEVICE").as_deref().unwrap_or("cpu"));
            assert_eq!(captured.is_hardware(), records);
            let outputs: Vec<_> = (3..9).map(|step| captured.run(rate(step), inputs(step))).collect();
            losses[1].extend(outputs.into_iter().map(|loss| loss.into_scalar::<f32>()));
            captured.write_back(&mut recorded);
            for step in 9..12 {
                losses[1].push(one(&mut recorded, step));
            }
            let gap = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(gap(&losses[0], &losses[1]) < 1e-5, "{losses:?}");
            let (plain, recorded) = (weights(&plain), weights(&recorded));
            assert!(gap(&plain, &recorded) < 1e-5, "{plain:?} {recorded:?}");
            assert!(losses[0][11] < losses[0][0], "it learns: {losses:?}");
        }
    }

    #[test]
    fn what_cannot_be_recorded_is_refused() {
        let refused = |config: OptimizerConfig, clip| {
            // SAFETY: `loss` reads nothing but its arguments.
            #[allow(unsafe_code, reason = "a recording")]
            let step = unsafe { CapturedStep::new(&trainable(config), clip, inputs(0), loss) };
            step.err().expect("it cannot be recorded").to_string()
        };
        assert!(refused(RmsPropConfig::default().into(), None).contains("only steps of Adam"));
        let clip = Some(Clip::Norm { limit: 1.0, n_learners: 2 });
        assert!(refused(AdamConfig::default().into(), clip).contains("several learners"));
    }
}
