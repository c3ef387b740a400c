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
    pending: Vec<(&'static str, Tensor<1>)>,
    later: Vec<Arc<Add>>,
}

/// Adds metrics.
type Add = dyn Fn(&mut Metrics) + Send + Sync;

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { known, pending, later } = self;
        let mut fields = f.debug_struct("Metrics");
        fields.field("known", known).field("pending", pending).field("later", &later.len()).finish()
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
        self.pending.push((name, value));
    }

    /// Adds metrics that must be computed: `add` runs when they are read. The metrics of most updates are not read.
    ///
    /// ```
    /// use brasa_core::Metrics;
    /// use burn::tensor::Tensor;
    ///
    /// let values = Tensor::<1>::from_floats([1.0, 3.0], &brasa_device::open_named("cpu")?);
    /// let mut metrics = Metrics::default();
    /// metrics.push_when_read(move |metrics| metrics.push_tensor("train/value", values.clone().mean()));
    /// assert_eq!(metrics.read()?, [("train/value", 2.0)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn push_when_read(&mut self, add: impl Fn(&mut Self) + Send + Sync + 'static) {
        self.later.push(Arc::new(add));
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
    pub fn read_with(mut self, other: Option<Tensor<1>>) -> Result<(MetricValues, Vec<f32>), MetricsError> {
        for add in std::mem::take(&mut self.later) {
            add(&mut self);
        }
        let mut all = self.known;
        let (names, mut tensors): (Vec<_>, Vec<_>) = self.pending.into_iter().unzip();
        let has_other = other.is_some();
        tensors.extend(other);
        let mut numbers = Vec::new();
        if !tensors.is_empty() {
            let mut data = read_together(tensors).map_err(MetricsError::Device)?;
            numbers = data.pop_if(|_| has_other).unwrap_or_default();
            for (name, data) in names.into_iter().zip(data) {
                all.push((name, data.first().map_or(f64::NAN, |value| f64::from(*value))));
            }
        }
        if let Some((name, value)) = all.iter().find(|(_, value)| !value.is_finite()) {
            return Err(MetricsError::NotFinite { name, value: *value });
        }
        all.sort_by_key(|(name, _)| *name);
        Ok((all, numbers))
    }
}
