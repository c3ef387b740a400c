//! Truncations that come sooner than the specification of the environments permits.

use brasa_core::env::EnvSpec;
use brasa_device::runs_on_host;
use brasa_kernels::{Formulas, Value};
use burn::tensor::{Device, Tensor};

use crate::BufferError;

/// Counts truncations of rows that come sooner than [`EnvSpec::truncation_interval`].
#[derive(Debug, Clone)]
pub(crate) struct Watch {
    interval: u64,
    /// `[n_rows, 2]`: steps since the latest truncation of each row, and its truncations that came too soon.
    rows: Tensor<2>,
}

/// Steps are counted up to this number: all integers up to it are exact in 32 bits.
const MOST_COUNTED: u64 = 1 << 24;

impl Watch {
    pub fn new(interval: u64, n_rows: usize, device: &Device) -> Self {
        let mut watch = Self { interval, rows: Tensor::zeros([n_rows, 2], device) };
        watch.set_since(Tensor::full([n_rows], MOST_COUNTED as f32, device));
        watch
    }

    /// `[n_rows]`: steps since the latest truncation.
    pub fn since(&self) -> Tensor<1> {
        self.column(0)
    }

    /// Continues after [`Watch::since`] of another buffer.
    pub fn set_since(&mut self, since: Tensor<1>) {
        let early = since.zeros_like();
        self.rows = Tensor::stack(vec![since, early], 1);
    }

    fn column(&self, column: usize) -> Tensor<1> {
        let [n_rows, _] = self.rows.dims();
        self.rows.clone().slice([0..n_rows, column..column + 1]).reshape([n_rows])
    }

    /// The rows after a step with these flags, as formulas.
    pub fn formulas<'a>(&self, formulas: &'a Formulas, truncated: Value<'a>) -> Vec<Value<'a>> {
        let rows = formulas.matrix(&self.rows);
        let since = rows.column(0) + 1.0;
        let least = if self.interval == EnvSpec::NEVER { 2 * MOST_COUNTED } else { self.interval.min(MOST_COUNTED) };
        let early = rows.column(1) + truncated * since.lower(least as f64);
        vec![truncated.select(0.0, since.min(MOST_COUNTED as f64)), early]
    }

    /// Continues with the rows after a step. If its successors were given, the host checks its own memory.
    ///
    /// # Errors
    /// [`BufferError::EarlyTruncation`]; then nothing changes.
    pub fn step(&mut self, rows: Tensor<2>, with_successors: bool) -> Result<(), BufferError> {
        let before = std::mem::replace(&mut self.rows, rows);
        // Host only.
        if with_successors && self.is_checked_at_once() && self.count().into_scalar::<f32>() > 0.0 {
            self.rows = before;
            return Err(BufferError::EarlyTruncation { interval: self.interval });
        }
        Ok(())
    }

    /// `[1]`: the number of truncations that came too soon; `None` if [`Watch::step`] checks them.
    pub fn pending(&self) -> Option<Tensor<1>> {
        (!self.is_checked_at_once()).then(|| self.count())
    }

    fn count(&self) -> Tensor<1> {
        self.column(1).sum()
    }

    fn is_checked_at_once(&self) -> bool {
        runs_on_host(&self.rows.device())
    }
}
