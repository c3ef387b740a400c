//! Memory for the observations of a batch whose wrapper has wider ones.

use ndarray::Array2;

use crate::{BatchSlabs, EnvBatch, EnvError};

/// Observations as the inner batch writes them.
#[derive(Debug)]
pub(crate) struct InnerSlabs {
    /// `[n_rows, own width]`.
    pub obs: Array2<f32>,
    /// `[n_rows, own width]`.
    pub next_obs: Array2<f32>,
}

impl InnerSlabs {
    pub fn new(inner: &impl EnvBatch) -> Self {
        let BatchSlabs { obs, next_obs, .. } = BatchSlabs::new(inner.spec());
        Self { obs, next_obs }
    }

    /// Calls the inner batch with slabs of its widths. The observations in `out` stay as they are.
    pub fn inside(
        &mut self,
        out: &mut BatchSlabs,
        call: impl FnOnce(&mut BatchSlabs) -> Result<(), EnvError>,
    ) -> Result<(), EnvError> {
        let mut swap = |out: &mut BatchSlabs| {
            std::mem::swap(&mut self.obs, &mut out.obs);
            std::mem::swap(&mut self.next_obs, &mut out.next_obs);
        };
        swap(out);
        let called = call(out);
        swap(out);
        called
    }
}
