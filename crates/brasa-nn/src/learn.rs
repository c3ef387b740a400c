//! One gradient step on a loss that is written as a rule of a row.

use brasa_core::{Metrics, Rows};
use brasa_kernels::{
    HostLossData, HostTensor, LossData, LossRows, RowLosses, Standardized, concat_rows, row_loss, row_loss_in_a_kernel,
    row_loss_on_host,
};
use brasa_number::RowLoss;
use brasa_shards::shard;
use burn::module::Module;
use burn::tensor::Tensor;

use crate::advantage::{ADVANTAGE_EPSILON, normalize};
use crate::gradient::Gradient;
use crate::parts::parts;
use crate::{Copied, Forward, Part, Step, Trainable};

/// The data of a loss.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/nets.inc")); }
/// # use shown::*;
/// use brasa_kernels::LossData;
/// use brasa_nn::{AdamConfig, Data, Step, Trainable, ValuesOfChoices};
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let mut trainable = Trainable::new(q_network(&device.clone().autodiff())?, AdamConfig::default())?;
/// let (obs, action) = (observed(&device), Tensor::from_floats([[0.0], [2.0]], &device));
/// // A column of targets, one target for each row.
/// let target = Tensor::from_floats([1.0, -1.0], &device);
/// let (forward, data) = (ValuesOfChoices { obs: &obs, action: &action, sequences: None }, Data::new([LossData::Rows(&target)]));
/// let mut step = || trainable.learn(&forward, data, &Square, Step::new(1e-2, None), |_| true);
/// let losses: Vec<f64> = (0..100).map(|_| step().reports.read(0)).collect();
/// assert!(losses[99] < 0.1 * losses[0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Data<'a, const D: usize> {
    columns: [LossData<'a>; D],
    /// The place of a column that is standardized, and that of the weights of its rows.
    standardized: Option<[usize; 2]>,
}

impl<'a, const D: usize> Data<'a, D> {
    /// Columns as they are.
    pub fn new(columns: [LossData<'a>; D]) -> Self {
        Self { columns, standardized: None }
    }

    /// A column gets mean 0 and unbiased standard deviation 1; a single number is not changed. `weight` is the column with the weights of the
    /// rows in both, whose mean is 1. In a run of several shards ([`brasa_shards`]) the numbers of all of them count, who have equally many.
    ///
    /// # Panics
    /// In [`Trainable::learn`], if there is no such column, or if it is a constant.
    pub fn standardize(mut self, column: usize, weight: usize) -> Self {
        self.standardized = Some([column, weight]);
        self
    }

    /// The column that is standardized, as it will be.
    fn standard(&self) -> Option<(usize, Tensor<1>)> {
        let [column, weight] = self.standardized?;
        let LossData::Rows(numbers) = self.columns[column] else { panic!("a constant has no deviation") };
        let weight = match self.columns[weight] {
            LossData::Rows(weight) => Some(weight),
            LossData::Constant(_) => None,
        };
        Some((column, normalize(numbers.clone(), weight)))
    }

    /// The columns with that which is standardized.
    fn with<'b>(&'b self, standard: &'b Option<(usize, Tensor<1>)>) -> [LossData<'b>; D] {
        let mut columns: [LossData<'b>; D] = self.columns;
        if let Some((column, numbers)) = standard {
            columns[*column] = LossData::Rows(numbers);
        }
        columns
    }

    /// A part of the rows of columns of `n_rows`; those that are copied stand in `copies`. Nothing is standardized.
    fn part<'b>(
        columns: [LossData<'b>; D],
        part: &Part,
        n_rows: usize,
        copies: &'b mut [Option<Tensor<1>>; D],
    ) -> Data<'b, D> {
        *copies = columns.map(|column| match column {
            LossData::Rows(rows) if rows.dims()[0] == n_rows => Some(part.of(rows).into_owned()),
            _ => None,
        });
        let copies = &*copies;
        Data::new(std::array::from_fn(|i| copies[i].as_ref().map_or(columns[i], LossData::Rows)))
    }

    /// Whether all columns are in the memory of the CPU.
    fn is_on_host(&self) -> bool {
        let is_elsewhere =
            |data: &LossData<'_>| matches!(data, LossData::Rows(rows) if HostTensor::of(*rows).is_none());
        !self.columns.iter().any(is_elsewhere)
    }

    /// In the memory of the CPU; `None` if a column is on another device.
    fn on_host(&self) -> Option<Vec<HostLossData>> {
        if !self.is_on_host() {
            return None;
        }
        self.with(&self.standard()).into_iter().map(HostLossData::of).collect()
    }
}

/// Weights of rows as data: 1 without any.
///
/// ```
/// use brasa_kernels::LossData;
/// use brasa_nn::weights;
/// use burn::tensor::Tensor;
///
/// // Without weights, every row counts once.
/// assert!(matches!(weights(None), LossData::Constant(1.0)));
/// let of_rows = Tensor::ones([4], &brasa_device::open_named("cpu")?);
/// assert!(matches!(weights(Some(&of_rows)), LossData::Rows(rows) if rows.dims() == [4]));
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub fn weights(weights: Option<&Tensor<1>>) -> LossData<'_> {
    weights.map_or(LossData::Constant(1.0), LossData::Rows)
}

/// The means over a batch of what a [`RowLoss`] gives. A handle of a tensor takes thirty times the memory of the numbers, so those on the CPU are
/// kept as numbers.
///
/// ```
/// use brasa_core::read_back;
/// use brasa_nn::Reports;
///
/// // The loss and one more number, of two minibatches.
/// let reports = vec![Reports::Host([0.5, 10.0]), Reports::Host([0.25, 12.0])];
/// assert_eq!(reports[1].read(1), 12.0);
/// assert_eq!(read_back(Reports::join(reports).mean_dim(0)), [0.375, 11.0]);
/// ```
#[derive(Debug, Clone)]
pub enum Reports<const R: usize> {
    /// On the CPU.
    Host([f64; R]),
    /// `[1, R]` on another device.
    Device(Box<Tensor<2>>),
}

impl<const R: usize> Reports<R> {
    fn of(means: Tensor<2>) -> Self {
        let numbers = HostTensor::of(&means).and_then(|on_host| <[f32; R]>::try_from(&*on_host).ok());
        numbers.map_or_else(|| Self::Device(Box::new(means)), |numbers| Self::Host(numbers.map(f64::from)))
    }

    /// `[1, R]`.
    pub fn tensor(&self) -> Tensor<2> {
        match self {
            Self::Host(numbers) => HostTensor::tensor(numbers.map(|x| x as f32).to_vec(), [1, R]),
            Self::Device(means) => (**means).clone(),
        }
    }

    /// One of the means, `[1]`.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn mean(&self, place: usize) -> Tensor<1> {
        match self {
            Self::Host(numbers) => HostTensor::tensor(vec![numbers[place] as f32], [1]),
            Self::Device(means) => (**means).clone().slice([0..1, place..place + 1]).reshape([1]),
        }
    }

    /// One of the means as a number. Waits for the device.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn read(&self, place: usize) -> f64 {
        match self {
            Self::Host(numbers) => numbers[place],
            // Waits for the device.
            Self::Device(_) => self.mean(place).into_scalar::<f64>(),
        }
    }

    /// Adds metrics of the means, which are in 32 bits.
    ///
    /// ```
    /// use brasa_core::Metrics;
    /// use brasa_nn::Reports;
    ///
    /// // The sum over two critics.
    /// let (reports, mut metrics) = (Reports::Host([0.25]), Metrics::default());
    /// reports.push_to(&mut metrics, |[loss]| [("train/critic_loss", 2.0 * loss)]);
    /// assert_eq!(metrics.read()?, [("train/critic_loss", 0.5)]);
    /// # Ok::<(), brasa_core::MetricsError>(())
    /// ```
    pub fn push_to<const N: usize>(
        &self,
        metrics: &mut Metrics,
        named: impl Fn([f64; R]) -> [(&'static str, f64); N] + Send + Sync + 'static,
    ) {
        match self {
            Self::Host(numbers) => {
                for (name, value) in named(numbers.map(|x| f64::from(x as f32))) {
                    metrics.push(name, value);
                }
            }
            Self::Device(means) => metrics.push_from(vec![(**means).clone().reshape([R])], move |numbers| {
                named(std::array::from_fn(|i| f64::from(numbers[0][i]))).into()
            }),
        }
    }

    /// All of them, times a factor.
    fn times(&self, factor: f64) -> Self {
        match self {
            Self::Host(own) => Self::Host(own.map(|x| x * factor)),
            Self::Device(own) => Self::Device(Box::new((**own).clone() * factor)),
        }
    }

    /// A row per batch, `[reports, R]`.
    pub fn join(reports: Vec<Self>) -> Tensor<2> {
        let on_host = |report: &Self| match report {
            Self::Host(numbers) => Some(numbers.map(|x| x as f32)),
            Self::Device(_) => None,
        };
        if let Some(rows) = reports.iter().map(on_host).collect::<Option<Vec<_>>>() {
            return HostTensor::tensor(rows.concat(), [rows.len(), R]);
        }
        concat_rows(reports.iter().map(Self::tensor).collect())
    }

    /// Those of the parts so far, and these with the share of their rows.
    fn after(&self, so_far: Option<&Self>, share: f64) -> Self {
        match (so_far, self.times(share)) {
            (None, own) => own,
            (Some(Self::Host(sum)), Self::Host(own)) => Self::Host(std::array::from_fn(|i| sum[i] + own[i])),
            (Some(sum), own) => Self::Device(Box::new(sum.tensor() + own.tensor())),
        }
    }
}

/// What a step was made from.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/nets.inc")); }
/// # use shown::*;
/// use brasa_core::{ActionValues, read_back};
/// use brasa_kernels::LossData;
/// use brasa_nn::{AdamConfig, Data, Learned, Step, Trainable, ValuesOfChoices};
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let mut trainable = Trainable::new(q_network(&device.clone().autodiff())?, AdamConfig::default())?;
/// let (obs, action) = (observed(&device), Tensor::from_floats([[0.0], [2.0]], &device));
/// let values = read_back(trainable.plain().values_of(obs.clone(), action.clone()));
/// let forward = ValuesOfChoices { obs: &obs, action: &action, sequences: None };
/// let target = LossData::Constant(0.0);
/// let learned: Learned<1, 1> =
///     trainable.learn(&forward, Data::new([target]), &Square, Step::new(1e-2, None), |_| true);
/// // The errors before the step, for prioritized replay.
/// let errors = read_back(learned.distances(&Tensor::zeros([2], &device)));
/// assert!(errors.iter().zip(values).all(|(error, value)| (error - value.abs()).abs() < 1e-6));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Learned<const X: usize, const R: usize> {
    parts: Vec<Results<X>>,
    /// The groups of rows of [`Forward::n_groups`].
    pub n_groups: usize,
    /// The means of the loss and of what it reports.
    pub reports: Reports<R>,
}

/// The results of a network in a part of a batch.
#[derive(Debug, Clone)]
struct Results<const X: usize> {
    n_rows: usize,
    results: [Column; X],
}

#[derive(Debug, Clone)]
enum Column {
    Host(Vec<f32>),
    Device(Box<Tensor<1>>),
}

impl<const R: usize> Learned<1, R> {
    /// `[n_rows]`: the distances of the result before the step from `target`, `[n_rows]`, for priorities; of several results per row, one group
    /// after the other, their means.
    pub fn distances(&self, target: &Tensor<1>) -> Tensor<1> {
        let mut first = 0;
        let parts = self.parts.iter().map(|Results { n_rows, results: [result] }| {
            let target = match self.parts.len() {
                1 => target.clone(),
                _ => target.clone().slice(first..first + n_rows),
            };
            first += n_rows;
            let result = match result {
                Column::Host(numbers) => HostTensor::tensor(numbers.clone(), [numbers.len()]),
                Column::Device(numbers) => (**numbers).clone(),
            };
            let per_row = result.dims()[0] / n_rows.max(&1);
            let distance = result.reshape([per_row, *n_rows]) - target.unsqueeze();
            distance.abs().mean_dim(0).squeeze_dim::<1>(0)
        });
        Rows::cat(parts.collect())
    }
}

impl<const R: usize> Copied for Reports<R> {
    fn copied(&self) -> Self {
        match self {
            Self::Host(numbers) => Self::Host(*numbers),
            Self::Device(means) => Self::Device(Box::new(means.copied())),
        }
    }
}

impl<const X: usize, const R: usize> Copied for Learned<X, R> {
    fn copied(&self) -> Self {
        let column = |column: &Column| match column {
            Column::Host(numbers) => Column::Host(numbers.clone()),
            Column::Device(numbers) => Column::Device(Box::new(numbers.copied())),
        };
        let part = |part: &Results<X>| Results { n_rows: part.n_rows, results: part.results.each_ref().map(column) };
        Self { parts: self.parts.iter().map(part).collect(), n_groups: self.n_groups, reports: self.reports.copied() }
    }
}

impl<M: Module> Trainable<M> {
    /// One step on the mean over rows of `loss`, of the results of `forward` and of `data`, unless `accepts` rejects what is reported.
    ///
    /// Derivatives come with the loss. The gradient of the parameters is computed by the network where it can, without the tape, else with it; on
    /// a GPU a loss is one launch.
    ///
    /// ```
    /// use brasa_core::env::{Space, named_rng};
    /// use brasa_core::Obs;
    /// use brasa_kernels::LossData;
    /// use brasa_nn::{AdamConfig, Data, QNetwork, QNetworkConfig, Step, Trainable, ValuesOfChoices};
    /// use brasa_number::{Number, RowLoss};
    /// use burn::tensor::Tensor;
    ///
    /// /// Half the square of the distance to a target.
    /// struct Square;
    ///
    /// impl RowLoss<1, 1, 1> for Square {
    ///     fn row<N: Number>(&self, [value]: [N; 1], [target]: [N; 1]) -> [N; 1] {
    ///         [(value - target).square() * 0.5]
    ///     }
    /// }
    ///
    /// let device = brasa_device::open_named("cpu")?;
    /// let space = Space::uniform_box(-1.0, 1.0, ["x"]);
    /// let rng = &mut named_rng(0, "weights", 0);
    /// let network = QNetworkConfig { hidden: vec![8], ..Default::default() };
    /// let network = QNetwork::new(&network, &space, &Space::Discrete(2), &device.clone().autodiff(), rng)?;
    /// let mut trainable = Trainable::new(network, AdamConfig::default())?;
    ///
    /// let obs = Obs::new(Tensor::from_floats([[0.5], [-0.5]], &device));
    /// let action = Tensor::from_floats([[0.0], [1.0]], &device);
    /// let target = Tensor::from_floats([1.0, -1.0], &device);
    /// let mut loss = f64::INFINITY;
    /// for _ in 0..200 {
    ///     let forward = ValuesOfChoices { obs: &obs, action: &action, sequences: None };
    ///     let data = Data::new([LossData::Rows(&target)]);
    ///     let learned = trainable.learn(&forward, data, &Square, Step::new(1e-2, None), |_| true);
    ///     loss = learned.reports.read(0);
    /// }
    /// assert!(loss < 1e-2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// With [`Trainable::in_parts`] the gradient is that of the whole batch, and takes the memory of one part. On the CPU, a network that needs no tape
    /// computes large batches in parts that stay in the cache.
    ///
    /// # Panics
    /// As [`Trainable::step`] and [`Data::standardize`].
    pub fn learn<F: Forward<M, X>, const X: usize, const D: usize, const R: usize>(
        &mut self,
        forward: &F,
        data: Data<'_, D>,
        loss: &impl RowLoss<X, D, R>,
        step: Step,
        accepts: impl Fn(&Reports<R>) -> bool,
    ) -> Learned<X, R> {
        let n_rows = forward.n_rows();
        let unit = forward.unit(self.plain());
        let n_parts = self.n_parts().max(self.n_parts_in_cache(forward, unit, &data));
        let ranges = parts(n_rows, n_parts, unit);
        let mut left = ranges.len();
        if left == 1 {
            let whole = Part::new(0..n_rows, n_rows);
            let (learned, gradient) = self.gradient_of(forward, &whole, data, loss, step, accepts);
            gradient.into_iter().for_each(|gradient| self.apply_gradient(gradient, step));
            return learned;
        }
        let standard = data.standard();
        let (mut gradients, mut total): (Option<Gradient>, Option<Learned<X, R>>) = (None, None);
        for range in ranges {
            left -= 1;
            let (part, mut copies) = (Part::new(range, n_rows), [const { None }; D]);
            let data = Data::part(data.with(&standard), &part, n_rows, &mut copies);
            let so_far = total.as_ref().map(|total| &total.reports);
            // The last part decides, when all is known.
            let goes_on = |own: &Reports<R>| left > 0 || accepts(&own.after(so_far, part.share));
            let (own, gradient) = self.gradient_of(forward, &part, data, loss, step, goes_on);
            gradients = match (gradients, gradient) {
                (Some(sum), Some(gradient)) => Some(sum.plus(gradient)),
                (_, gradient) => gradient,
            };
            let reports = own.reports.after(so_far, part.share);
            let mut parts = total.map_or_else(Vec::new, |total| total.parts);
            parts.extend(own.parts);
            total = Some(Learned { parts, reports, ..own });
        }
        gradients.into_iter().for_each(|gradient| self.apply_gradient(gradient, step));
        total.expect("there are several parts")
    }

    /// Parts of a batch whose numbers stay in the cache of a core; 1 where the gradient is not computed in the memory of the CPU without the tape.
    fn n_parts_in_cache<F: Forward<M, X>, const X: usize, const D: usize>(
        &self,
        forward: &F,
        unit: usize,
        data: &Data<'_, D>,
    ) -> usize {
        /// Two networks of 64 units have about 4 MB of activations and their derivatives in as many rows.
        const ROWS: usize = 2048;
        let n_rows = forward.n_rows();
        if n_rows <= ROWS || unit >= n_rows || !data.is_on_host() {
            return 1;
        }
        let few = Part::new(0..unit, n_rows);
        let mut needs_no_tape = false;
        forward.gradient(self.plain(), &few, &mut |_| {
            needs_no_tape = true;
            None
        });
        if needs_no_tape { n_rows.div_ceil(ROWS) } else { 1 }
    }

    /// The gradient of a share of the loss, and what it was made from; no gradient if `goes_on` says so.
    fn gradient_of<F: Forward<M, X>, const X: usize, const D: usize, const R: usize>(
        &mut self,
        forward: &F,
        part: &Part,
        data: Data<'_, D>,
        loss: &impl RowLoss<X, D, R>,
        step: Step,
        goes_on: impl Fn(&Reports<R>) -> bool,
    ) -> (Learned<X, R>, Option<Gradient>) {
        if let Some(on_host) = data.on_host() {
            let mut learned = None;
            let network = self.plain();
            let gradient = forward.gradient(network, part, &mut |results| {
                let n_groups = forward.n_groups(network, part, results[0].len());
                let data = std::array::from_fn(|i| &on_host[i]);
                let (means, mut slopes) = row_loss_on_host(loss, results, data, n_groups);
                if part.share < 1.0 {
                    slopes.iter_mut().flatten().for_each(|slope| *slope *= part.share as f32);
                }
                let reports = Reports::Host(means);
                let goes_on = goes_on(&reports);
                let results = results.map(|numbers| Column::Host(numbers.to_vec()));
                let parts = vec![Results { n_rows: part.n_rows(), results }];
                learned = Some(Learned { parts, n_groups, reports });
                goes_on.then_some(slopes)
            });
            // A network that cannot has not called.
            if let Some(learned) = learned {
                return (learned, gradient.map(|numbers| self.analytic_gradient(numbers)));
            }
        }
        let results = forward.recorded(self.module(), part);
        let n_groups = forward.n_groups(self.plain(), part, results[0].dims()[0]);
        let losses = losses(loss, &results, &data, n_groups);
        let reports = Reports::of(losses.means.clone());
        let gradient = goes_on(&reports).then(|| {
            self.gradient_from(step, |scale| {
                let share = (part.share < 1.0).then_some(part.share);
                let scale = match (scale, share) {
                    (Some(scale), Some(share)) => Some(scale * share),
                    (None, Some(share)) => Some(Tensor::full([1], share, &losses.means.device())),
                    (scale, None) => scale,
                };
                losses.start(results.clone(), scale)
            })
        });
        let results = results.map(|result| Column::Device(Box::new(result.inner())));
        (Learned { parts: vec![Results { n_rows: part.n_rows(), results }], n_groups, reports }, gradient)
    }
}

/// The loss of results that are on the tape.
fn losses<const X: usize, const D: usize, const R: usize>(
    loss: &impl RowLoss<X, D, R>,
    results: &[Tensor<1>; X],
    data: &Data<'_, D>,
    n_groups: usize,
) -> RowLosses<X, R> {
    let rows = LossRows { results: results.each_ref(), data: data.columns, n_groups };
    // The kernel standardizes what is here alone.
    if data.standardized.is_none() || !shard().is_part() {
        let standardized =
            data.standardized.map(|[column, weight]| Standardized { column, weight, epsilon: ADVANTAGE_EPSILON });
        if let Some(losses) = row_loss_in_a_kernel(loss, &rows, standardized) {
            return losses;
        }
    }
    let standard = data.standard();
    let rows = LossRows { data: data.with(&standard), ..rows };
    row_loss_in_a_kernel(loss, &rows, None).unwrap_or_else(|| row_loss(loss, &rows))
}
