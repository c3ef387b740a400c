//! The optimum of an episode with perfect foresight.

/// An optimum with perfect foresight: what a schedule reaches, and what no controller can exceed.
///
/// Objectives are minimized; that of the return is minus the return.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Optimum {
    /// The objective that the schedule reaches in the simulation.
    pub value: f64,
    /// The objective of the schedule in the linear programme.
    pub planned: f64,
    /// No controller has a smaller objective. It follows from dual variables by weak duality, independent of how well the
    /// solver converged.
    pub bound: f64,
}

impl Optimum {
    /// What the simulated schedule may be above the true optimum, relative to the bound.
    pub fn gap(&self) -> f64 {
        (self.value - self.bound) / self.bound.abs().max(f64::MIN_POSITIVE)
    }

    /// As details of an outcome.
    pub(crate) fn details(&self) -> [(String, f64); 3] {
        [("optimum.planned", self.planned), ("optimum.bound", self.bound), ("optimum.gap", self.gap())]
            .map(|(name, value)| (name.to_owned(), value))
    }
}
