//! Metrics that stay on the device until they are read.

use std::fmt;
use std::sync::Arc;

use burn::tensor::Tensor;
use thiserror::Error;

use crate::read_back::read_together;

/// Named scalars of an update, on the host or still on the device.
///
/// ```
/// use brasa_core::Metrics;
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let mut metrics = Metrics::default();
/// metrics.push("train/n_updates", 10.0);
/// metrics.push_tensor("train/loss", Tensor::from_floats([0.5], &device));
/// // One wait for the device. The names are sorted.
/// assert_eq!(metrics.read()?, [("train/loss", 0.5), ("train/n_updates", 10.0)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct Metrics {
    known: Vec<(&'static str, f64)>,
    pending: Vec<Pending>,
}

/// Metrics of tensors on a device.
#[derive(Clone)]
struct Pending {
    tensors: Vec<Tensor<1>>,
    compute: Arc<Compute>,
}

/// Metrics from the numbers of each tensor.
type Compute = dyn Fn(&[Vec<f32>]) -> Vec<(&'static str, f64)> + Send + Sync;

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { known, pending } = self;
        f.debug_struct("Metrics").field("known", known).field("pending", &pending.len()).finish()
    }
}

/// Metrics that were read: name and value.
///
/// ```
/// use brasa_core::{MetricValues, Metrics};
///
/// let mut metrics = Metrics::default();
/// metrics.push("train/loss", 0.5);
/// let values: MetricValues = metrics.read()?;
/// let loss = values.iter().find(|(name, _)| *name == "train/loss");
/// assert_eq!(loss, Some(&("train/loss", 0.5)));
/// # Ok::<(), brasa_core::MetricsError>(())
/// ```
pub type MetricValues = Vec<(&'static str, f64)>;

/// Metrics that cannot be read.
///
/// ```
/// use brasa_core::Metrics;
///
/// let mut metrics = Metrics::default();
/// metrics.push("train/loss", f64::NAN);
/// let error = metrics.read().unwrap_err().to_string();
/// assert!(error.starts_with("`train/loss` is NaN: training has diverged"));
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MetricsError {
    /// The device failed while computing them.
    #[error("the device failed while metrics were read: {0}")]
    Device(String),
    /// A metric is not finite: training has diverged.
    #[error(
        "`{name}` is {value}: training has diverged (a lower learning rate, a smaller reward scale, gradient clipping, a higher \
         entropy bonus or products in 32 bits may help)"
    )]
    NotFinite {
        /// Name of the metric.
        name: &'static str,
        /// Its value.
        value: f64,
    },
}

impl Metrics {
    /// Adds a value of the host.
    pub fn push(&mut self, name: &'static str, value: f64) {
        self.known.push((name, value));
    }

    /// Adds a tensor of one element that is still on the device.
    pub fn push_tensor(&mut self, name: &'static str, value: Tensor<1>) {
        let only = |numbers: &[Vec<f32>]| numbers[0].first().map_or(f64::NAN, |value| f64::from(*value));
        self.push_from(vec![value], move |numbers| vec![(name, only(numbers))]);
    }

    /// Adds metrics of tensors: `compute` runs on the host when they are read, with the numbers of each tensor.
    ///
    /// The metrics of most updates are not read. On a GPU, a mean of a few numbers takes several kernel launches, and the numbers themselves none.
    ///
    /// ```
    /// use brasa_core::Metrics;
    /// use burn::tensor::Tensor;
    ///
    /// let values = Tensor::<1>::from_floats([1.0, 3.0], &brasa_device::open_named("cpu")?);
    /// let mut metrics = Metrics::default();
    /// metrics.push_from(vec![values], |numbers| {
    ///     let values = &numbers[0];
    ///     let largest = values.iter().copied().fold(f32::MIN, f32::max);
    ///     vec![("train/value", f64::from(values.iter().sum::<f32>()) / 2.0), ("train/largest", f64::from(largest))]
    /// });
    /// assert_eq!(metrics.read()?, [("train/largest", 3.0), ("train/value", 2.0)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn push_from(
        &mut self,
        tensors: Vec<Tensor<1>>,
        compute: impl Fn(&[Vec<f32>]) -> Vec<(&'static str, f64)> + Send + Sync + 'static,
    ) {
        self.pending.push(Pending { tensors, compute: Arc::new(compute) });
    }

    /// Waits for the device and reads everything at once, sorted by name.
    ///
    /// # Errors
    /// If the device failed or a value is not finite.
    pub fn read(self) -> Result<MetricValues, MetricsError> {
        self.read_with(None).map(|(all, _)| all)
    }

    /// The same together with other numbers, such as [`crate::VecEnv::pending_episodes`]; the device waits once.
    ///
    /// # Errors
    /// As [`Metrics::read`]; the other numbers are not checked.
    pub fn read_with(self, other: Option<Tensor<1>>) -> Result<(MetricValues, Vec<f32>), MetricsError> {
        let mut all = self.known;
        let tensors: Vec<_> = self.pending.iter().flat_map(|pending| pending.tensors.clone()).chain(other).collect();
        let mut numbers = Vec::new();
        if !tensors.is_empty() {
            let mut data = read_together(tensors).map_err(MetricsError::Device)?.into_iter();
            for Pending { tensors, compute } in &self.pending {
                let own: Vec<_> = data.by_ref().take(tensors.len()).collect();
                all.extend(compute(&own));
            }
            numbers = data.next().unwrap_or_default();
        }
        if let Some((name, value)) = all.iter().find(|(_, value)| !value.is_finite()) {
            return Err(MetricsError::NotFinite { name, value: *value });
        }
        all.sort_by_key(|(name, _)| *name);
        Ok((all, numbers))
    }
}
