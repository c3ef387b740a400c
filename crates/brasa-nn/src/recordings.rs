//! Updates that are recorded once and launched as a whole.
//!
//! An update of a small network is hundreds of launches with microseconds of work each. CUDA and CubeCL's Vulkan record them as a graph, which one
//! launch replays. A recording holds addresses and constants: what changes between replays must be data in memory that stays.

use std::thread::{self, ThreadId};

use brasa_core::Rows;
use brasa_device::{Precision, precision};
use brasa_shards::shard;
use burn::backend::{Backend, BackendTypes, Dispatch};
use burn::tensor::{Device, Tensor};

use crate::held::InPlace;

/// Sizes, variants and precisions of an update that are recorded; others are computed as without recordings.
const MOST: usize = 4;
/// Sizes of which a second update is recorded.
const MOST_KNOWN: usize = 16;
/// Updates before a recording, so that all memory is there and every kernel is translated.
const WARM_UP: usize = 3;

/// A part of a learner that updates change: [`crate::Trainable`] or [`crate::Held`].
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/nets.inc")); }
/// # use shown::*;
/// use brasa_nn::{AdamConfig, Changing, Held, Trainable};
///
/// // The parts of a learner with a target network, which updates change.
/// let device = brasa_device::open_named("cpu")?;
/// let mut online = Trainable::new(q_network(&device.autodiff())?, AdamConfig::default())?;
/// let mut target = Held::new(online.valid());
/// let parts: Vec<&mut dyn Changing> = vec![&mut online, &mut target];
/// assert_eq!(parts.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Changing {
    /// The device without autodiff; `None` on the processor, which records nothing.
    #[doc(hidden)]
    fn device_of_recordings(&self) -> Option<Device>;

    /// Moves all numbers to memory that is written in place.
    #[doc(hidden)]
    fn hold(&mut self);

    /// Whether all numbers are there. They are not before [`Changing::hold`], and where somebody has replaced some.
    #[doc(hidden)]
    fn is_held(&mut self) -> bool;

    /// These numbers.
    #[doc(hidden)]
    fn places(&mut self) -> Vec<&mut InPlace>;

    /// Drops what was made from the numbers.
    #[doc(hidden)]
    fn forget(&mut self);

    /// Counts a step, and returns what it depends on besides the gradient; 0 for what takes no steps.
    #[doc(hidden)]
    fn counted(&mut self, _learning_rate: f64) -> [f64; 2] {
        [0.0; 2]
    }

    /// Sets what [`Changing::counted`] has returned, as data, `[2]`, for steps that are recorded.
    #[doc(hidden)]
    fn set_factors(&mut self, _factors: Option<Tensor<1>>) {}
}

/// A learner whose updates can be recorded.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/fit.inc")); }
/// # use shown::*;
/// use brasa_nn::{Changing, Recordable, Recordings, Trainable, Update};
/// use burn::tensor::Tensor;
///
/// /// A learner with one network.
/// struct Learner {
///     trainable: Trainable<Net>,
///     recordings: Recordings<Tensor<2>, Tensor<1>>,
/// }
///
/// impl Recordable for Learner {
///     type Batch = Tensor<2>;
///     type Computed = Tensor<1>;
///     fn changing(&mut self) -> Vec<&mut dyn Changing> {
///         vec![&mut self.trainable]
///     }
///     fn recordings(&mut self) -> &mut Recordings<Tensor<2>, Tensor<1>> {
///         &mut self.recordings
///     }
/// }
///
/// let (device, recordings) = (brasa_device::open_named("cpu")?, Recordings::default());
/// let mut learner = Learner { trainable: net(&device)?, recordings };
/// let batch = Tensor::ones([4, 2], &device);
/// let update = Update { batch, numbers: vec![], learning_rates: &[Some(1e-2)], variant: 0 };
/// // `fit` is a step of the network towards a mean output of 1. It returns the loss.
/// let loss = learner.replayed(update, |learner, batch, _| fit(&mut learner.trainable, batch));
/// assert!(brasa_core::read_back(loss)[0] > 0.0);
/// assert_eq!(learner.trainable.state().steps(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Recordable: Sized {
    /// What updates are computed from.
    type Batch: Rows;
    /// What they compute.
    type Computed: Copied;

    /// Everything that an update changes on the device, always in one order.
    fn changing(&mut self) -> Vec<&mut dyn Changing>;

    /// The recordings of this learner.
    fn recordings(&mut self) -> &mut Recordings<Self::Batch, Self::Computed>;

    /// An update: `compute` with batch and numbers, or its replay. `compute` changes nothing but the parts of [`Recordable::changing`], and its
    /// steps have the learning rates of `update`.
    ///
    /// # Panics
    /// If a replay fails.
    fn replayed(
        &mut self,
        update: Update<'_, Self::Batch>,
        compute: impl Fn(&mut Self, Self::Batch, Vec<Tensor<1>>) -> Self::Computed,
    ) -> Self::Computed {
        let mut recordings = std::mem::take(self.recordings());
        let computed = recordings.run(self, update, compute);
        *self.recordings() = recordings;
        computed
    }
}

/// Results of an update in memory of their own.
///
/// ```
/// use brasa_core::read_back;
/// use brasa_nn::Copied;
/// use burn::tensor::Tensor;
///
/// // A loss, and the loss of an actor that takes no step in this update.
/// let loss = Tensor::<1>::from_floats([0.5], &brasa_device::open_named("cpu")?);
/// let (critics, actor) = (loss, None::<Tensor<1>>).copied();
/// assert_eq!(read_back(critics), [0.5]);
/// assert!(actor.is_none());
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub trait Copied {
    /// A copy, which a replay does not change.
    fn copied(&self) -> Self;
}

impl<const D: usize> Copied for Tensor<D> {
    fn copied(&self) -> Self {
        // A product is never a view of its factor.
        self.clone() * 1.0
    }
}

impl Copied for bool {
    fn copied(&self) -> Self {
        *self
    }
}

impl<T: Copied> Copied for Option<T> {
    fn copied(&self) -> Self {
        self.as_ref().map(T::copied)
    }
}

impl<A: Copied, B: Copied> Copied for (A, B) {
    fn copied(&self) -> Self {
        (self.0.copied(), self.1.copied())
    }
}

/// What an update is made of.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/fit.inc")); }
/// # use shown::*;
/// use brasa_nn::{Recordable, Update};
/// use burn::tensor::Tensor;
///
/// // `Learner` is the learner of the page of `Recordable`.
/// let device = brasa_device::open_named("cpu")?;
/// let mut learner = Learner::new(&device)?;
/// for batch in [1.0, 0.5].map(|x| Tensor::full([4, 2], x, &device)) {
///     let update = Update { batch, numbers: vec![], learning_rates: &[Some(1e-2)], variant: 0 };
///     learner.replayed(update, |learner, batch, _| fit(&mut learner.trainable, batch));
/// }
/// assert_eq!(learner.trainable.state().steps(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Update<'a, B> {
    /// The batch. All of it is on the device of the learner.
    pub batch: B,
    /// Other numbers that differ from update to update, flat.
    pub numbers: Vec<Tensor<1>>,
    /// The learning rate of every part of [`Recordable::changing`] that takes a step.
    pub learning_rates: &'a [Option<f64>],
    /// Updates with other operations have another number.
    pub variant: u32,
}

/// The recorded updates of a learner, one per size of a batch. The default records nothing.
///
/// ```
/// use brasa_nn::Recordings;
/// use burn::tensor::Tensor;
///
/// // By default a learner computes every update.
/// let recordings = Recordings::<Tensor<2>, Tensor<1>>::default();
/// assert!(!recordings.is_on() && !recordings.is_in_use());
/// ```
#[derive(Debug)]
pub struct Recordings<B, O> {
    is_on: bool,
    /// What was computed before.
    known: Vec<Key>,
    recordings: Vec<(Key, Recording<B, O>)>,
}

impl<B, O> Default for Recordings<B, O> {
    fn default() -> Self {
        Self { is_on: false, known: Vec::new(), recordings: Vec::new() }
    }
}

/// Updates with equal keys have equal operations.
#[derive(Debug, Clone, PartialEq)]
struct Key {
    n_rows: usize,
    bytes_per_row: f64,
    numbers: Vec<usize>,
    steps: Vec<bool>,
    variant: u32,
    precision: Precision,
}

impl Key {
    fn of<B: Rows>(update: &Update<'_, B>) -> Self {
        Self {
            n_rows: update.batch.n_rows(),
            bytes_per_row: update.batch.bytes_per_row(),
            numbers: update.numbers.iter().map(|numbers| numbers.dims()[0]).collect(),
            steps: update.learning_rates.iter().map(Option::is_some).collect(),
            variant: update.variant,
            precision: precision(),
        }
    }
}

/// A recorded update and the memory that it uses besides that of the learner.
#[derive(Debug)]
struct Recording<B, O> {
    graph: <Dispatch as BackendTypes>::GraphPrimitive,
    device: Device,
    /// The thread whose stream it belongs to.
    thread: ThreadId,
    batch: B,
    numbers: Vec<InPlace>,
    /// `[2 * parts of the learner]`.
    factors: InPlace,
    output: O,
}

impl<B: Rows, O: Copied> Recordings<B, O> {
    /// Records updates if `is_on`, on a device that can.
    ///
    /// # Safety
    /// A replay reads the memory that an update read while it was recorded. Every tensor on the device that an update reads besides its batch,
    /// its numbers and the parts of the learner, such as a constant of a network, must neither be dropped nor be replaced as long as this
    /// value exists. Numbers of the host, such as settings of a loss, must stay what they are.
    #[allow(unsafe_code, reason = "a recording holds addresses of tensors that their owner may drop")]
    pub unsafe fn new(is_on: bool) -> Self {
        Self { is_on, ..Self::default() }
    }

    /// Whether updates are recorded, on a device that can.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Whether updates are replayed: the second one of a size and all later ones, where the device can.
    pub fn is_in_use(&self) -> bool {
        !self.recordings.is_empty()
    }

    /// See [`Recordable::replayed`].
    #[allow(unsafe_code, reason = "a replay reads and writes the memory of the recording")]
    fn run<L: Recordable>(
        &mut self,
        learner: &mut L,
        update: Update<'_, B>,
        compute: impl Fn(&mut L, B, Vec<Tensor<1>>) -> O,
    ) -> O {
        let Some(device) = self.is_on.then(|| device(learner)).flatten() else {
            return compute(learner, update.batch, update.numbers);
        };
        // Weights that were replaced from outside are elsewhere.
        if !learner.changing().into_iter().all(|part| part.is_held()) {
            self.recordings.clear();
        }
        let key = Key::of(&update);
        let mut place = self.recordings.iter().position(|(other, _)| *other == key);
        if place.is_none() && self.recordings.len() < MOST {
            match self.known.contains(&key) {
                false if self.known.len() < MOST_KNOWN => self.known.push(key),
                false => {}
                true => match Recording::new(learner, &device, &update, &compute) {
                    Ok(recording) => {
                        place = Some(self.recordings.len());
                        self.recordings.push((key, recording));
                    }
                    Err(error) => {
                        self.is_on = false;
                        tracing::warn!("updates are not recorded: {error}");
                    }
                },
            }
        }
        match place.map(|place| &mut self.recordings[place].1) {
            Some(recording) if recording.thread == thread::current().id() => {
                // SAFETY: parts of the learner are held by it and were written in place only, or the recordings would have ended above; who turned
                // recordings on answers for other tensors.
                unsafe { recording.replay(learner, update) }
            }
            _ => compute(learner, update.batch, update.numbers),
        }
    }
}

/// The device of all parts of a learner, if its updates can be recorded.
fn device<L: Recordable>(learner: &mut L) -> Option<Device> {
    if shard().is_part() {
        return None;
    }
    let devices: Option<Vec<Device>> = learner.changing().iter().map(|part| part.device_of_recordings()).collect();
    devices?.pop()
}

impl<B: Rows, O: Copied> Recording<B, O> {
    /// Records `compute`. The learner stays what it is.
    fn new<L: Recordable>(
        learner: &mut L,
        device: &Device,
        update: &Update<'_, B>,
        compute: &impl Fn(&mut L, B, Vec<Tensor<1>>) -> O,
    ) -> Result<Self, String> {
        learner.changing().iter_mut().for_each(|part| part.hold());
        let before: Vec<Tensor<1>> =
            learner.changing().iter_mut().flat_map(|part| part.places()).map(|place| place.copy()).collect();
        let reset = |learner: &mut L| {
            let mut before = before.iter();
            for part in learner.changing() {
                part.forget();
                for place in part.places() {
                    place.set(before.next().expect("as many as before").clone());
                }
            }
        };
        let n_rows = update.batch.n_rows();
        let mut batch = update.batch.zeroed(n_rows, device);
        batch.assign(0..n_rows, update.batch.clone());
        let held = |numbers: Tensor<1>| {
            let mut place = InPlace::from(numbers);
            place.hold();
            place
        };
        let numbers: Vec<InPlace> = update.numbers.iter().cloned().map(held).collect();
        // Of no effect: the learner stays what it is.
        let factors = held(Tensor::ones([2 * update.learning_rates.len()], device));
        let once = |learner: &mut L| {
            for (i, part) in learner.changing().into_iter().enumerate() {
                part.forget();
                part.set_factors(Some(factors.get().slice(2 * i..2 * i + 2)));
            }
            // In other memory than batch and parts.
            compute(learner, batch.clone(), numbers.iter().map(InPlace::get).collect()).copied()
        };
        let recorded = record(device, || once(learner));
        learner.changing().into_iter().for_each(|part| part.set_factors(None));
        reset(learner);
        let (graph, output) = recorded?;
        let (device, thread) = (device.clone(), thread::current().id());
        Ok(Self { graph, device, thread, batch, numbers, factors, output })
    }

    /// The recorded update with another batch.
    ///
    /// # Safety
    /// Every tensor that the recording reads or writes must still be in its place.
    #[allow(unsafe_code, reason = "a replay reads and writes the memory of the recording")]
    unsafe fn replay<L: Recordable>(&mut self, learner: &mut L, update: Update<'_, B>) -> O {
        let mut factors = Vec::with_capacity(2 * update.learning_rates.len());
        for (part, rate) in learner.changing().into_iter().zip(update.learning_rates) {
            factors.extend(rate.map_or([0.0; 2], |rate| part.counted(rate)).map(|factor| factor as f32));
        }
        self.factors.set(Tensor::from_floats(&factors[..], &self.device));
        self.batch.assign(0..update.batch.n_rows(), update.batch);
        self.numbers.iter_mut().zip(update.numbers).for_each(|(place, numbers)| place.set(numbers));
        // SAFETY: the memory of batch, numbers and factors is that of the recording, because it was written in place; the caller answers for the
        // rest, and the backend for temporary memory. Everything is on the stream of this thread.
        let replayed = unsafe { Dispatch::graph_replay(self.device.as_dispatch(), &self.graph) };
        replayed.unwrap_or_else(|error| panic!("a recorded update could not be replayed: {error}"));
        learner.changing().into_iter().for_each(|part| part.forget());
        self.output.copied()
    }
}

/// Records what `compute` launches. It is called several times.
fn record<O>(
    device: &Device,
    mut compute: impl FnMut() -> O,
) -> Result<(<Dispatch as BackendTypes>::GraphPrimitive, O), String> {
    let dispatch = device.as_dispatch();
    let text = |error: burn::backend::ExecutionError| error.to_string();
    Dispatch::graph_prepare(dispatch).map_err(text)?;
    for _ in 0..WARM_UP {
        let output = compute();
        // Waits for the device, so that the memory of this call is there for the next one.
        device.sync().map_err(text)?;
        drop(output);
    }
    Dispatch::graph_start_capture(dispatch).map_err(text)?;
    let output = compute();
    Ok((Dispatch::graph_stop_capture(dispatch).map_err(text)?, output))
}
