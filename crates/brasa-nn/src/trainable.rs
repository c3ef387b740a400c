//! A module with its optimizer state.

use std::collections::VecDeque;
use std::sync::OnceLock;

use brasa_core::Metrics;
use brasa_device::{Precision, precision};
use brasa_kernels::{HostTensor, clip_scale, concat, reuse, runs_on_host, split};
use brasa_shards::{mean, shard};
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Tensor, TensorData};

use crate::gradient::{Count, Flatten, Gradient, Numbers};
use crate::held::{Held, InPlace};
use crate::optimizer::{Moments, OptimizerStep, are_zero};
use crate::{Changing, LossScale, NnError, OptimizerConfig, OptimizerState};

/// Keeps the division by a gradient norm of 0 finite (PyTorch's `clip_grad_norm_`).
const NORM_EPSILON: f32 = 1e-6;

/// A module, trained by an optimizer with gradient clipping.
///
/// The parameters are updated as one concatenated vector: a step of a small network needs a few operations instead of
/// a dozen per tensor. Parameter identities do not change.
///
/// A step leaves parameters alone that need no gradient, and keeps state that the forward pass of [`Trainable::module`] has changed, such as the
/// running mean of a batch norm. Several shards keep its mean.
///
/// ```
/// use brasa_core::read_back;
/// use brasa_nn::{AdamConfig, LayerNorm, Step, Trainable};
///
/// let device = brasa_device::open_named("cpu")?;
/// let mut trainable = Trainable::new(LayerNorm::new(2, &device.autodiff()), AdamConfig::default())?;
/// for _ in 0..200 {
///     // The loss is the squared distance of the shift to 1.
///     let loss = (trainable.module().shift.val() - 1.0).square().sum();
///     trainable.step(&loss, Step::new(0.05, Some(0.5)));
/// }
/// assert!(read_back(trainable.plain().shift.val()).iter().all(|shift| (shift - 1.0).abs() < 0.05));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Trainable<M> {
    /// Without autodiff. With a single owner the memory is reused in place.
    plain: Held<M>,
    /// The same parameters with autodiff, for losses that are recorded on its tape; made when it is asked for, because every parameter
    /// on the tape costs microseconds.
    tracked: OnceLock<M>,
    /// Which parameters no gradient reaches: frozen parameters, and state such as the running mean of a batch norm. Empty if there are none.
    kept: Vec<bool>,
    config: OptimizerConfig,
    state: OptimizerState,
    /// Since the first step in 16 bits with a small range.
    loss_scale: Option<LossScale>,
    /// What a step depends on besides the gradient, while steps are recorded: see [`OptimizerStep::factors`].
    factors: Option<Tensor<1>>,
    /// The autodiff device of the module.
    device: Device,
    n_parts: usize,
}

/// Arguments of one optimizer step.
///
/// ```
/// use brasa_nn::{Clip, Step};
///
/// let step = Step::new(3e-4, Some(0.5));
/// assert_eq!(step.clip, Some(Clip::Norm { limit: 0.5, n_learners: 1 }));
/// assert_eq!(Step::new(3e-4, None), Step { learning_rate: 3e-4, clip: None });
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Learning rate.
    pub learning_rate: f64,
    /// Gradient clipping; `None` for no clipping.
    pub clip: Option<Clip>,
}

impl Step {
    /// A step with an optional limit of the global gradient norm.
    pub fn new(learning_rate: f64, max_grad_norm: Option<f64>) -> Self {
        Self { learning_rate, clip: max_grad_norm.map(|limit| Clip::Norm { limit, n_learners: 1 }) }
    }
}

/// Gradient clipping.
///
/// ```
/// use brasa_core::read_back;
/// use brasa_nn::{Clip, LayerNorm, RmsPropConfig, Step, Trainable};
///
/// let device = brasa_device::open_named("cpu")?.autodiff();
/// let config = RmsPropConfig { alpha: 0.0, epsilon: 1.0, ..RmsPropConfig::default() };
/// let mut shifts = |clip| -> Result<Vec<f32>, brasa_nn::NnError> {
///     let mut trainable = Trainable::new(LayerNorm::new(2, &device), config)?;
///     // The gradient of this loss by the shift is 3 and 4.
///     let shift = trainable.module().shift.val();
///     let loss = shift.clone().narrow(0, 0, 1) * 3.0 + shift.narrow(0, 1, 1) * 4.0;
///     trainable.step(&loss, Step { learning_rate: 1.0, clip });
///     Ok(read_back(trainable.plain().shift.val()))
/// };
/// // Without a clip, each step is `g / sqrt(g^2 + 1)`. With a clip by value, both gradients are 1.
/// assert!((shifts(None)?[0] + 3.0 / 10f32.sqrt()).abs() < 1e-5);
/// let clipped = shifts(Some(Clip::Value(1.0)))?;
/// assert!(clipped.iter().all(|shift| (shift + 0.5f32.sqrt()).abs() < 1e-5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Clip {
    /// By norm: gradients with a larger norm are scaled to the limit.
    Norm {
        /// Largest norm of all gradients of a learner together.
        limit: f64,
        /// Number of independent learners, the first dimension of every parameter; 1 for a single learner.
        n_learners: usize,
    },
    /// By value: each element is clipped to this magnitude (PyTorch's `clip_grad_value_`).
    Value(f64),
}

impl Clip {
    fn n_learners(self) -> usize {
        match self {
            Self::Norm { n_learners, .. } => n_learners,
            Self::Value(_) => 1,
        }
    }
}

impl<M: Module> Trainable<M> {
    /// Prepares `module` for training; its parameters are on an autodiff device.
    ///
    /// # Errors
    /// [`NnError::Field`] for invalid settings; [`NnError::Space`] for a module without parameters or on a non-autodiff
    /// device.
    pub fn new(module: M, config: impl Into<OptimizerConfig>) -> Result<Self, NnError> {
        let config = config.into();
        config.validate()?;
        let count = Count::of(&module);
        let device =
            count.device.ok_or_else(|| NnError::Space("a module without parameters cannot be trained".into()))?;
        if !device.is_autodiff() {
            let name = std::any::type_name::<M>();
            let rule = "must be constructed on an autodiff device (`device.autodiff()`), where it learns";
            return Err(NnError::Space(format!("the module `{name}` {rule}")));
        }
        let plain = device.clone().without_autodiff();
        let state = OptimizerState::new(&config, count.sizes.iter().sum(), &plain, runs_on_host(&plain));
        let (plain, tracked) = (Held::new(module.valid()), module.into());
        let kept = if count.kept.contains(&true) { count.kept } else { Vec::new() };
        let (loss_scale, factors) = (None, None);
        Ok(Self { plain, tracked, kept, config, state, loss_scale, factors, device, n_parts: 1 })
    }

    /// Computes the gradient of [`Trainable::learn`] in at most as many parts of a batch, one after the other; 0 counts as 1 (gradient
    /// accumulation).
    pub fn in_parts(mut self, n_parts: u64) -> Self {
        self.n_parts = (n_parts as usize).max(1);
        self
    }

    /// See [`Trainable::in_parts`].
    pub(crate) fn n_parts(&self) -> usize {
        self.n_parts
    }

    /// The module, on the autodiff device.
    pub fn module(&self) -> &M {
        self.tracked.get_or_init(|| self.valid().train())
    }

    /// [`Trainable::plain`] with its numbers, for a target network that follows it.
    ///
    /// ```
    /// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/nets.inc")); }
    /// # use shown::*;
    /// use brasa_nn::{AdamConfig, Held, Trainable, named_params};
    ///
    /// let device = brasa_device::open_named("cpu")?;
    /// let online = Trainable::new(q_network(&device.clone().autodiff())?, AdamConfig::default())?;
    /// let mut target = Held::new(q_network(&device)?);
    /// target.follow(online.held(), 1.0);
    /// let weights = |network| named_params(network).into_iter().map(|param| param.values).collect::<Vec<_>>();
    /// assert_eq!(weights(target.get()), weights(online.plain()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn held(&self) -> &Held<M> {
        &self.plain
    }

    /// The module on the non-autodiff device.
    pub fn plain(&self) -> &M {
        self.plain.get()
    }

    /// The autodiff device of the module.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Replaces the module and keeps the optimizer state.
    pub fn set_module(&mut self, module: M) {
        self.plain.set(module.valid());
        self.tracked = OnceLock::new();
    }

    /// A copy of [`Trainable::plain`], for inference.
    pub fn valid(&self) -> M {
        self.plain().clone()
    }

    /// The optimizer state.
    pub fn state(&self) -> &OptimizerState {
        &self.state
    }

    /// Whether the module has numbers that no gradient reaches.
    pub(crate) fn has_state(&self) -> bool {
        !self.kept.is_empty()
    }

    /// The settings of the optimizer.
    pub fn config(&self) -> &OptimizerConfig {
        &self.config
    }

    /// The optimizer state, for restoring.
    pub fn state_mut(&mut self) -> &mut OptimizerState {
        &mut self.state
    }

    /// The scale of losses; `None` before the first step in [`Precision::F16`].
    pub fn loss_scale(&self) -> Option<&LossScale> {
        self.loss_scale.as_ref()
    }

    /// Sets the scale of losses, for restoring.
    pub fn set_loss_scale(&mut self, loss_scale: Option<LossScale>) {
        self.loss_scale = loss_scale;
    }

    /// Adds scale and number of skipped steps to the metrics of an update under these names, if losses are scaled.
    pub fn report_loss_scale(&self, [scale, skipped]: [&'static str; 2], metrics: &mut Metrics) {
        if let Some(loss_scale) = &self.loss_scale {
            metrics.push_tensor(scale, loss_scale.scale());
            metrics.push_tensor(skipped, loss_scale.skipped());
        }
    }

    /// One optimizer step on `loss`, of [`Trainable::module`]. It waits for the device only on the CPU, or if the run has several
    /// shards ([`brasa_shards`]): then the step uses the mean of their gradients.
    ///
    /// In [`Precision::F16`] the loss is scaled by [`LossScale`], and gradients that are not finite change nothing but this scale
    /// and the number of steps.
    ///
    /// # Panics
    /// If gradients are clipped for several learners and the first dimension of a parameter is not their number.
    pub fn step(&mut self, loss: &Tensor<1>, step: Step) {
        let scaled = |scale: Option<Tensor<1>>| scale.map_or(loss.clone(), |scale| loss.clone() * scale);
        let gradient = self.gradient_from(step, scaled);
        self.apply_gradient(gradient, step);
    }

    /// The gradient of [`Trainable::module`] by a backward pass from `start`, which gets the scale of the loss, `[1]`, if it is scaled.
    pub(crate) fn gradient_from(&mut self, step: Step, start: impl FnOnce(Option<Tensor<1>>) -> Tensor<1>) -> Gradient {
        let scaled = precision() == Precision::F16;
        let scale = scaled.then(|| self.loss_scale.get_or_insert_with(|| LossScale::new(&self.device)).scale());
        let mut gradients = start(scale).backward();
        let n_learners = step.clip.map_or(1, Clip::n_learners);
        let numbers = match self.state.moments {
            Moments::Host { .. } => {
                let mut taken = Take { gradients: &mut gradients, n_learners, grads: Vec::new() };
                self.module().visit(&mut taken);
                Numbers::Host(concatenated(&taken.grads, self.plain.sizes()))
            }
            Moments::Device { .. } => Numbers::Device(Flatten::of(self.module(), &mut gradients, n_learners).grads),
        };
        // The forward pass changed the state of the module with autodiff.
        let kept = self.has_state().then(|| Kept::of(&self.module().valid(), &self.kept));
        Gradient { numbers, scaled, kept }
    }

    /// A gradient that was computed without the tape, for [`Trainable::apply_gradient`]: a number per parameter, in the order in which
    /// [`Module::visit`] meets them. Only on the CPU.
    ///
    /// # Panics
    /// If there are more or fewer numbers, or on another device.
    pub(crate) fn analytic_gradient(&self, numbers: Vec<f32>) -> Gradient {
        assert_eq!(numbers.len(), self.plain.sizes().iter().sum::<usize>(), "a gradient for every parameter");
        assert!(matches!(self.state.moments, Moments::Host { .. }), "gradients of another device");
        let kept = self.has_state().then(|| Kept::of(self.plain(), &self.kept));
        Gradient { numbers: Numbers::Host(numbers), scaled: false, kept }
    }

    /// One optimizer step. Several shards use the mean of their gradients.
    pub(crate) fn apply_gradient(&mut self, gradient: Gradient, step: Step) {
        let Gradient { numbers, scaled, kept } = gradient;
        // A replay of a step counts it.
        if self.factors.is_none() {
            self.state.steps += 1;
        }
        match numbers {
            Numbers::Host(numbers) => {
                let mut numbers = mean(numbers);
                if !scaled || self.unscale(&mut numbers) {
                    self.step_on_host(&mut numbers, step);
                }
                reuse(numbers);
            }
            Numbers::Device(grads) => self.step_on_device(grads, scaled, step),
        }
        self.keep(kept);
    }

    /// Writes what a step must not change over what it has made of it.
    fn keep(&mut self, kept: Option<Kept>) {
        let Some(mut kept) = kept else { return };
        self.tracked = OnceLock::new();
        if self.plain.is_held() {
            let new = split(row(self.plain.weights()), self.plain.sizes());
            let rows = new.into_iter().zip(kept.values).map(|(new, kept)| kept.unwrap_or(new));
            let weights = concat(rows.collect());
            let n = weights.dims()[1];
            self.plain.set_weights(weights.reshape([n]));
        } else {
            self.plain.change(|module| module.map(&mut kept));
        }
    }

    /// Divides gradients by the scale of the loss, adjusts it, and says whether they are finite.
    fn unscale(&mut self, gradient: &mut [f32]) -> bool {
        let loss_scale = self.loss_scale.as_mut().expect("the loss was scaled");
        let inverse = loss_scale.inverse_on_host();
        // Every gradient is visited: none may be left scaled.
        let finite = gradient.iter_mut().fold(true, |finite, grad| {
            *grad *= inverse;
            finite & grad.is_finite()
        });
        loss_scale.adjust_on_host(finite);
        finite
    }

    fn step_on_host(&mut self, gradient: &mut [f32], step: Step) {
        // On a GPU, all parameters are one vector: gradients are joined, clipped and applied, and the new weights are split.
        let clips = matches!(step.clip, Some(Clip::Norm { .. }));
        brasa_device::count_launches(2 + usize::from(self.plain.sizes().len() > 1) + usize::from(clips));
        let Moments::Host { first, second } = &mut self.state.moments else { panic!("gradients of another device") };
        let scales = match step.clip {
            Some(Clip::Norm { limit, n_learners }) => {
                let norms = norms(parts(gradient, self.plain.sizes()), n_learners);
                norms.map(|norm| (limit as f32 / (norm as f32 + NORM_EPSILON)).min(1.0)).collect()
            }
            Some(Clip::Value(limit)) => {
                cut(gradient, limit as f32);
                vec![1.0]
            }
            None => vec![1.0f32],
        };
        let update = OptimizerStep::new(&self.config, self.state.steps, step.learning_rate);
        let gradient = &*gradient;
        let mut apply = Change {
            at: 0,
            change: |at: usize, weight: &mut [f32]| {
                let range = at..at + weight.len();
                let first = if first.is_empty() { &mut [][..] } else { &mut first[range.clone()] };
                // A parameter without a gradient has a gradient of 0: its moments still decay.
                let (second, grad) = (&mut second[range.clone()], &gradient[range]);
                // The part of each learner, with its own scale.
                let n = (weight.len() / scales.len()).max(1);
                let (weights, grads) = (weight.chunks_exact_mut(n), grad.chunks_exact(n));
                let (mut first, second) = (first.chunks_exact_mut(n), second.chunks_exact_mut(n));
                for (((weight, grad), second), scale) in weights.zip(grads).zip(second).zip(&scales) {
                    update.on_host(*scale, weight, grad, first.next().unwrap_or_default(), second);
                }
            },
        };
        // Nobody else holds the memory of the parameters then.
        self.tracked = OnceLock::new();
        self.plain.change(|module| module.map(&mut apply));
    }

    fn step_on_device(&mut self, grads: Vec<Tensor<2>>, scaled: bool, step: Step) {
        let n_learners = step.clip.map_or(1, Clip::n_learners);
        let widths: Vec<usize> = grads.iter().map(|grad| grad.dims()[1]).collect();
        let weight = self.plain.weights();
        let n = weight.dims()[0];
        let Moments::Device { first: held_first, second: held_second } = &mut self.state.moments else {
            unreachable!("chosen by the caller")
        };
        let (mut first, mut second) = (held_first.as_ref().map(InPlace::get), held_second.get());
        // `[n_learners, parameters of each]`: their parts of every parameter, concatenated.
        let mut grads = concat(grads);
        if shard().is_part() {
            let (dims, device) = (grads.dims(), grads.device());
            // Waits for the device: other shards are reached from the host.
            let own = grads.into_data().iter::<f32>().collect();
            grads = Tensor::from_data(TensorData::new(mean(own), dims), &device);
        }
        let before = match self.loss_scale.as_mut().filter(|_| scaled) {
            Some(loss_scale) => {
                grads = grads / loss_scale.scale().unsqueeze();
                let finite = loss_scale.adjust(&grads);
                Some((finite, weight.clone(), first.clone(), second.clone()))
            }
            None => None,
        };
        // The step multiplies by the factor on the way.
        let scale = match step.clip {
            Some(Clip::Norm { limit, n_learners: 1 }) => {
                Some(clip_scale(grads.clone(), limit, f64::from(NORM_EPSILON)).reshape([1]))
            }
            clip => {
                grads = clipped(grads, clip);
                None
            }
        };
        // Back to the order of parameters, as in weights and moments.
        let grads = match n_learners {
            1 => grads,
            _ => concat(split(grads, &widths).into_iter().map(row).collect()),
        };
        let update = OptimizerStep::new(&self.config, self.state.steps, step.learning_rate);
        let factors = [scale.as_ref(), self.factors.as_ref()];
        let mut weight = update.on_device(weight, grads.reshape([n]), &mut first, &mut second, factors);
        // The host does not know whether the gradients are finite, so the device chooses.
        if let Some((finite, old_weight, old_first, old_second)) = before {
            let finite = finite.expand([n]);
            let choose = |new: &Tensor<1>, old: Tensor<1>| old.mask_where(finite.clone(), new.clone());
            weight = choose(&weight, old_weight);
            first = first.zip(old_first).map(|(new, old)| choose(&new, old));
            second = choose(&second, old_second);
        }
        held_first.iter_mut().zip(first).for_each(|(held, first)| held.set(first));
        held_second.set(second);
        self.tracked = OnceLock::new();
        self.plain.set_weights(weight);
    }
}

impl<M: Module> Changing for Trainable<M> {
    fn device_of_recordings(&self) -> Option<Device> {
        let on_device = matches!(self.state.moments, Moments::Device { .. });
        on_device.then(|| self.device.clone().without_autodiff())
    }

    fn hold(&mut self) {
        Changing::hold(&mut self.plain);
        self.places().into_iter().for_each(InPlace::hold);
    }

    fn is_held(&mut self) -> bool {
        self.plain.is_held() && self.places().iter().all(|place| place.is_held())
    }

    fn places(&mut self) -> Vec<&mut InPlace> {
        let mut places = self.plain.places();
        if let Moments::Device { first, second } = &mut self.state.moments {
            places.extend(first);
            places.push(second);
        }
        places.extend(self.loss_scale.iter_mut().flat_map(LossScale::places));
        places
    }

    fn forget(&mut self) {
        self.tracked = OnceLock::new();
        self.plain.forget();
    }

    fn counted(&mut self, learning_rate: f64) -> [f64; 2] {
        self.state.steps += 1;
        OptimizerStep::new(&self.config, self.state.steps, learning_rate).factors()
    }

    fn set_factors(&mut self, factors: Option<Tensor<1>>) {
        self.factors = factors;
    }
}

/// All numbers in one row.
pub(crate) fn row<const D: usize>(tensor: Tensor<D>) -> Tensor<2> {
    let n = tensor.dims().iter().product::<usize>();
    tensor.reshape([1, n])
}

/// Clipped gradients; `grads` is `[n_learners, parameters of each]`.
pub(crate) fn clipped(grads: Tensor<2>, clip: Option<Clip>) -> Tensor<2> {
    match clip {
        Some(Clip::Norm { limit, .. }) => {
            let scale = clip_scale(grads.clone(), limit, f64::from(NORM_EPSILON));
            grads * scale
        }
        Some(Clip::Value(limit)) => grads.clamp(-limit, limit),
        None => grads,
    }
}

/// The numbers of a module that no gradient reaches, in the order of the parameters.
pub(crate) struct Kept {
    /// Which parameters these are.
    kept: VecDeque<bool>,
    values: VecDeque<Option<Tensor<2>>>,
}

impl Kept {
    /// Of a module without autodiff.
    fn of<M: Module>(plain: &M, kept: &[bool]) -> Self {
        let mut all = Self { kept: kept.iter().copied().collect(), values: VecDeque::new() };
        plain.visit(&mut all);
        all
    }
}

impl ModuleVisitor for Kept {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let is_kept = self.kept.pop_front().expect("a place for every parameter");
        let value = is_kept.then(|| row(param.val()));
        // Each shard saw other rows.
        let value = value.map(|value| match shard().is_part() {
            true => {
                let (dims, device) = (value.dims(), value.device());
                // Waits for the device: other shards are reached from the host.
                Tensor::from_data(TensorData::new(mean(value.into_data().iter::<f32>().collect()), dims), &device)
            }
            false => value,
        });
        self.values.push_back(value);
    }
}

impl ModuleMapper for Kept {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        match self.values.pop_front().expect("a place for every parameter") {
            Some(value) => param.map(|old| value.reshape(old.dims())),
            None => param,
        }
    }
}

/// Computed in f64, with a sum per SIMD lane; the order is the same on every processor.
fn sum_of_squares(values: &[f32]) -> f64 {
    const LANES: usize = 16;
    let square = |x: f32| f64::from(x) * f64::from(x);
    let (whole, rest) = values.as_chunks::<LANES>();
    let sums = pulp::Arch::new().dispatch(
        #[inline(always)]
        || {
            // Sums of this closure stay in registers. Actions that were not taken have gradients of 0.
            let mut sums = [0.0f64; LANES];
            for chunk in whole.iter().filter(|chunk| !are_zero(chunk)) {
                sums.iter_mut().zip(chunk).for_each(|(sum, x)| *sum += square(*x));
            }
            sums
        },
    );
    sums.iter().sum::<f64>() + rest.iter().map(|x| square(*x)).sum::<f64>()
}

/// The gradient norm of each learner; the parts of a parameter are stored learner by learner.
fn norms<'a>(grads: impl Iterator<Item = &'a [f32]>, n_learners: usize) -> impl Iterator<Item = f64> {
    let mut sums = vec![0.0; n_learners];
    for grad in grads {
        let shares = grad.chunks_exact((grad.len() / n_learners).max(1));
        sums.iter_mut().zip(shares).for_each(|(sum, share)| *sum += sum_of_squares(share));
    }
    sums.into_iter().map(f64::sqrt)
}

/// Clips every number to a magnitude of `limit`.
fn cut(values: &mut [f32], limit: f32) {
    pulp::Arch::new().dispatch(
        #[inline(always)]
        || values.iter_mut().for_each(|x| *x = x.clamp(-limit, limit)),
    );
}

/// Moves out all gradients, in the order of the parameters.
struct Take<'a> {
    gradients: &'a mut Gradients,
    n_learners: usize,
    grads: Vec<Option<HostTensor>>,
}

impl ModuleVisitor for Take<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let grad = param.val().grad_remove(self.gradients);
        let counts = self.n_learners == 1 || param.dims()[0] == self.n_learners;
        assert!(counts || grad.is_none(), "a parameter must count learners first");
        self.grads.push(grad.map(|grad| HostTensor::of(&grad).expect("gradients are where the moments are")));
    }
}

/// The gradients of all parameters of `module`, in the order in which [`Module::visit`] meets them; 0 where there is none. Only on the CPU.
pub(crate) fn flat_gradient<M: Module>(module: &M, mut gradients: Gradients) -> Vec<f32> {
    let mut count = Count::default();
    module.visit(&mut count);
    let mut taken = Take { gradients: &mut gradients, n_learners: 1, grads: Vec::new() };
    module.visit(&mut taken);
    concatenated(&taken.grads, &count.sizes)
}

/// All gradients as one vector; 0 where there is none.
fn concatenated(grads: &[Option<HostTensor>], sizes: &[usize]) -> Vec<f32> {
    let mut flat = Vec::with_capacity(sizes.iter().sum());
    for (grad, n) in grads.iter().zip(sizes) {
        match grad {
            Some(grad) => flat.extend_from_slice(grad),
            None => flat.resize(flat.len() + n, 0.0),
        }
    }
    flat
}

/// The parts of a concatenated vector.
fn parts<'a>(flat: &'a [f32], sizes: &[usize]) -> impl Iterator<Item = &'a [f32]> {
    let mut rest = flat;
    sizes.iter().map(move |n| rest.split_off(..*n).expect("numbers of every parameter"))
}

/// Changes the numbers of every parameter in place, given its offset in the concatenated vector.
struct Change<F> {
    at: usize,
    change: F,
}

impl<F: FnMut(usize, &mut [f32])> ModuleMapper for Change<F> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|leaf| {
            let at = self.at;
            self.at += leaf.dims().iter().product::<usize>();
            HostTensor::changed(leaf, |numbers| (self.change)(at, numbers))
        })
    }
}

/// `module` with other weights: all of them in the order of the parameters, whose numbers `sizes` counts.
pub(crate) fn with_weights<M: Module>(module: M, weight: Tensor<1>, sizes: &[usize]) -> M {
    module.map(&mut Replace { weights: split(row(weight), sizes).into_iter() })
}

struct Replace {
    weights: std::vec::IntoIter<Tensor<2>>,
}

impl ModuleMapper for Replace {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|old| {
            let value = self.weights.next().expect("weights of every parameter").reshape(old.dims());
            if old.is_autodiff() { value.autodiff().require_grad() } else { value }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brasa_device::autocast;

    use crate::{AdamConfig, Init, RmsPropConfig, RmsPropStyle, StackedLinear, named_params};
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    const LEARNERS: usize = 3;

    /// The form for plain memory runs on the CPU alone, the other one also there.
    fn place(on_host: bool) -> Device {
        if on_host { brasa_device::open_named("cpu").expect("flex is a default feature") } else { brasa_test::device() }
    }

    fn layers(n: usize, device: &Device) -> StackedLinear {
        StackedLinear::new(n, 4, 5, Init::FanIn, &device.clone().autodiff(), &mut ChaCha8Rng::seed_from_u64(2))
    }

    /// Three learners; each has much larger gradients than the one before.
    fn loss(trainable: &Trainable<StackedLinear>, factor: f64) -> Tensor<1> {
        let device = trainable.device().clone().without_autodiff();
        let x = Tensor::<3>::ones([1, 2, 4], &device);
        let scale = Tensor::<3>::from_floats([[[0.1]], [[1.0]], [[10.0]]], &device);
        (trainable.module().forward(x, None) * scale).square().sum() * factor
    }

    fn trained(config: OptimizerConfig, on_host: bool, clip: Option<Clip>, factor: f64) -> Vec<f32> {
        let mut trainable = in_form(config, on_host);
        for _ in 0..5 {
            let loss = loss(&trainable, factor);
            trainable.step(&loss, Step { learning_rate: 0.01, clip });
        }
        weights(&trainable)
    }

    fn gap(a: &[f32], b: &[f32]) -> f32 {
        a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
    }

    #[test]
    fn both_forms_clip_alike() {
        let pytorch = RmsPropConfig { style: RmsPropStyle::Pytorch, momentum: 0.5, ..RmsPropConfig::default() };
        let norm = |n_learners| Some(Clip::Norm { limit: 0.5, n_learners });
        let clips = [None, norm(1), norm(LEARNERS), Some(Clip::Value(0.05))];
        for config in [OptimizerConfig::from(AdamConfig::default()), pytorch.into()] {
            let results = clips.map(|clip| {
                let [host, device] = [true, false].map(|on_host| trained(config, on_host, clip, 1.0));
                assert!(gap(&host, &device) < 1e-5, "{config:?}, {clip:?}: {}", gap(&host, &device));
                host
            });
            for (i, result) in results.iter().enumerate().skip(1) {
                assert!(gap(&results[0], result) > 1e-4, "{:?} is without effect", clips[i]);
            }
        }
    }

    #[test]
    fn what_is_clipped_learner_by_learner_does_not_depend_on_others() {
        let config = OptimizerConfig::from(AdamConfig::default());
        let params = |values: &[f32]| -> Vec<Vec<f32>> {
            // Weights of all learners come first, then biases.
            let (weights, biases) = values.split_at(LEARNERS * 20);
            (0..LEARNERS).map(|i| [&weights[20 * i..20 * (i + 1)], &biases[5 * i..5 * (i + 1)]].concat()).collect()
        };
        let clip = |n_learners| Some(Clip::Norm { limit: 0.5, n_learners });
        // The first learner's gradients are below the limit: they are scaled down only together with the others.
        let alone = params(&trained(config, true, None, 1.0));
        let each = params(&trained(config, true, clip(LEARNERS), 1.0));
        assert_eq!(alone[0], each[0]);
        assert_ne!(alone[2], each[2]);
    }

    fn in_form(config: OptimizerConfig, on_host: bool) -> Trainable<StackedLinear> {
        let device = place(on_host);
        let mut trainable = Trainable::new(layers(LEARNERS, &device), config).expect("sound");
        let n = trainable.state().read().1.len();
        trainable.state = OptimizerState::new(&config, n, &device, on_host);
        trainable
    }

    fn weights(trainable: &Trainable<StackedLinear>) -> Vec<f32> {
        named_params(trainable.module()).into_iter().flat_map(|param| param.values).collect()
    }

    #[test]
    fn gradients_below_the_range_of_16_bits_are_kept_by_scaling() {
        if let Err(error) = Precision::F16.check(&brasa_test::device()) {
            return eprintln!("SKIPPED: {error}");
        }
        let config = OptimizerConfig::from(AdamConfig::default());
        let clip = Some(Clip::Norm { limit: 1e-7, n_learners: LEARNERS });
        for on_host in [true, false] {
            let first = |precision| {
                let mut trainable = in_form(config, on_host);
                // Gradients with respect to results are near 1e-8, below half the smallest number of 16 bits.
                let loss = autocast(precision, || loss(&trainable, 1e-9));
                autocast(precision, || trainable.step(&loss, Step { learning_rate: 0.01, clip }));
                trainable.state().read().0
            };
            let [full, half] = [first(Precision::F32), first(Precision::F16)];
            let largest = full.iter().fold(0.0f32, |largest, x| largest.max(x.abs()));
            assert!(largest > 0.0 && gap(&full, &half) < 5e-3 * largest, "{} of {largest}", gap(&full, &half));
        }
    }

    #[test]
    fn gradients_that_overflow_change_nothing_but_the_scale() {
        if let Err(error) = Precision::F16.check(&brasa_test::device()) {
            return eprintln!("SKIPPED: {error}");
        }
        let rms_prop = RmsPropConfig { style: RmsPropStyle::Pytorch, momentum: 0.5, ..RmsPropConfig::default() };
        for config in [OptimizerConfig::from(AdamConfig::default()), rms_prop.into()] {
            let [host, device] = [true, false].map(|on_host| {
                let mut trainable = in_form(config, on_host);
                let begin = weights(&trainable);
                let mut skipped = 0;
                loop {
                    autocast(Precision::F16, || {
                        let loss = loss(&trainable, 30.0);
                        trainable.step(&loss, Step::new(0.01, Some(1.0)));
                    });
                    if weights(&trainable) != begin {
                        break;
                    }
                    skipped += 1;
                    assert!(trainable.state().read().0.iter().all(|moment| *moment == 0.0));
                    assert!(skipped < 40, "the scale must reach the range of 16 bits");
                }
                assert!(skipped > 2, "the first steps must overflow");
                let scale = trainable.loss_scale().expect("losses are scaled").read();
                assert_eq!(scale, [65536.0 * 0.5f32.powi(skipped), 1.0, skipped as f32]);
                assert_eq!(trainable.state().steps(), skipped as u64 + 1);
                // A run that is resumed continues with the same scale.
                let mut saved = crate::Saved::default();
                saved.put_optimizer("network", &trainable);
                let mut other = in_form(config, on_host);
                saved.optimizer("network", &mut other).expect("it was saved");
                assert_eq!(other.loss_scale().expect("it was saved").read(), scale);
                weights(&trainable)
            });
            assert!(gap(&host, &device) < 1e-5, "{}", gap(&host, &device));
        }
    }

    /// A batch norm, and a layer that is not trained.
    #[derive(Module, Debug)]
    struct Normed {
        norm: burn::nn::BatchNorm,
        frozen: Param<Tensor<1>>,
    }

    #[test]
    fn state_of_a_forward_pass_is_kept_and_what_is_frozen_stays() {
        for on_host in [true, false] {
            let device = place(on_host).autodiff();
            let module = Normed {
                norm: burn::nn::BatchNormConfig::new(2).init(&device),
                frozen: Param::from_tensor(Tensor::ones([3], &device)).no_grad(),
            };
            let config = OptimizerConfig::from(AdamConfig { weight_decay: 0.1, ..AdamConfig::default() });
            let mut trainable = Trainable::new(module, config).expect("sound");
            assert!(trainable.has_state());
            let plain = device.clone().without_autodiff();
            trainable.state = OptimizerState::new(&config, trainable.plain.sizes().iter().sum(), &plain, on_host);
            let x = Tensor::<2>::from_floats([[4.0, -1.0], [6.0, 1.0]], &device);
            let gamma = |trainable: &Trainable<Normed>| trainable.plain().norm.gamma.val().into_data();
            let before = gamma(&trainable);
            for _ in 0..300 {
                let loss = trainable.module().norm.forward(x.clone()).square().mean();
                trainable.step(&loss, Step::new(0.01, Some(1.0)));
            }
            let plain = trainable.plain();
            let mean = plain.norm.running_mean.value().into_data().iter::<f32>().collect::<Vec<_>>();
            assert!(gap(&mean, &[5.0, 0.0]) < 1e-3, "{mean:?}");
            let frozen = plain.frozen.val().into_data().iter::<f32>().collect::<Vec<_>>();
            assert_eq!(frozen, [1.0; 3], "weight decay is for what is trained");
            assert_ne!(gamma(&trainable), before, "the rest is trained");
            // Without autodiff it normalizes by what it has seen.
            let y = plain.norm.forward(Tensor::<2>::from_floats([[5.0, 0.0]], &place(on_host)));
            assert!(y.into_data().iter::<f32>().all(|y| y.abs() < 0.1));
        }
    }

    #[test]
    #[should_panic(expected = "a parameter must count learners first")]
    fn a_parameter_that_counts_no_learners_is_refused() {
        let mut trainable = Trainable::new(layers(2, &brasa_test::device()), AdamConfig::default()).expect("sound");
        let loss = trainable.module().forward(Tensor::ones([1, 2, 4], &brasa_test::device()), None).sum();
        trainable.step(&loss, Step { learning_rate: 0.01, clip: Some(Clip::Norm { limit: 0.5, n_learners: 3 }) });
    }
}
