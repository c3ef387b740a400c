//! Observations with mean 0 and variance 1.

use ndarray::{Array2, ArrayView2};

use super::RunningMoments;
use crate::{BatchSlabs, EnvBatch, EnvError, EnvSpec};

/// Subtracts the running mean and divides by the running standard deviation, shared by all environments.
///
/// The moments belong to the policy, are saved with it, and do not change in evaluation. They are those of complete observations: numbers that
/// agents share count for each of them.
///
/// # Errors
/// Every constructor returns [`EnvError::Space`] for observations that must not be normalized ([`EnvSpec::fixed_obs`]).
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/walk.inc")); }
/// # use shown::*;
/// use brasa_env::wrappers::NormalizeObs;
/// use brasa_env::{BatchSlabs, EnvBatch, EnvVec};
///
/// let mut batch = NormalizeObs::new(EnvVec::new(0..2, |_| Walk(0.0))?)?;
/// let mut slabs = BatchSlabs::new(batch.spec());
/// batch.reset(7, &mut slabs)?;
/// batch.step(ndarray::array![[0.0], [1.0]].view(), &mut slabs)?;
/// // The walks were at 3, 3, 2 and 4: a mean of 3 and a variance of 0.5.
/// assert_eq!(batch.obs_moments().map(|moments| moments.mean[0]), Some(3.0));
/// assert!((slabs.obs[[1, 0]] - 2f32.sqrt()).abs() < 1e-6);
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug)]
pub struct NormalizeObs<B> {
    inner: B,
    moments: RunningMoments,
    mode: Mode,
    spec: EnvSpec,
}

/// Whether moments are updated, and whether observations are normalized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Grow,
    Frozen,
    Watch,
}

impl<B: EnvBatch> NormalizeObs<B> {
    /// Normalizes observations with moments that every step updates.
    ///
    /// # Errors
    /// See [`NormalizeObs`].
    pub fn new(inner: B) -> Result<Self, EnvError> {
        let moments = RunningMoments::new(inner.spec().obs.width());
        Self::with(inner, moments, Mode::Grow)
    }

    /// Normalizes observations with the constant moments of a training run.
    ///
    /// # Errors
    /// [`EnvError::State`] if the width of the moments differs; see [`NormalizeObs`].
    pub fn frozen(inner: B, moments: RunningMoments) -> Result<Self, EnvError> {
        moments.check_width(inner.spec().obs.width())?;
        Self::with(inner, moments, Mode::Frozen)
    }

    /// Updates the moments at every step, but does not normalize observations.
    ///
    /// For loops that replay, which normalize observations when they use them ([`EnvSpec::normalize_on_use`]): stored ones would
    /// keep the moments of their time. Other loops refuse such a batch.
    ///
    /// # Errors
    /// See [`NormalizeObs`].
    pub fn watching(inner: B) -> Result<Self, EnvError> {
        let moments = RunningMoments::new(inner.spec().obs.width());
        Self::with(inner, moments, Mode::Watch)
    }

    fn with(inner: B, moments: RunningMoments, mode: Mode) -> Result<Self, EnvError> {
        let normalized = inner.spec().normalized()?;
        let spec = match mode {
            Mode::Watch => EnvSpec { normalize_on_use: true, ..inner.spec().clone() },
            Mode::Grow | Mode::Frozen => normalized,
        };
        Ok(Self { inner, moments, mode, spec })
    }
}

impl<B> NormalizeObs<B> {
    fn observe(&mut self, out: &BatchSlabs) {
        if self.mode != Mode::Frozen {
            self.moments.add_shared(out.shared.view(), out.obs.view());
        }
    }

    fn apply(&self, shared: &mut Array2<f32>, own: &mut Array2<f32>) {
        if self.mode != Mode::Watch {
            self.moments.normalize_from(0, shared.view_mut());
            self.moments.normalize_from(shared.ncols(), own.view_mut());
        }
    }
}

impl<B: EnvBatch> super::Wrapper for NormalizeObs<B> {
    type Inner = B;
    type State = RunningMoments;

    fn inner(&self) -> &B {
        &self.inner
    }

    fn inner_mut(&mut self) -> &mut B {
        &mut self.inner
    }

    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.inner.reset(seed, out)?;
        self.observe(out);
        self.apply(&mut out.shared, &mut out.obs);
        Ok(())
    }

    fn step(&mut self, actions: ArrayView2<f32>, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.inner.step(actions, out)?;
        self.observe(out);
        self.apply(&mut out.shared, &mut out.obs);
        self.apply(&mut out.next_shared, &mut out.next_obs);
        Ok(())
    }

    fn restart(&mut self, env: usize, out: &mut BatchSlabs) -> Result<(), EnvError> {
        // The other rows of `obs` are already normalized: work on a copy and take only the new rows.
        let mut fresh = out.clone();
        self.inner.restart(env, &mut fresh)?;
        self.apply(&mut fresh.shared, &mut fresh.obs);
        out.shared.row_mut(env).assign(&fresh.shared.row(env));
        let n_agents = self.inner.n_agents();
        for row in env * n_agents..(env + 1) * n_agents {
            out.obs.row_mut(row).assign(&fresh.obs.row(row));
            out.mask.row_mut(row).assign(&fresh.mask.row(row));
        }
        Ok(())
    }

    fn obs_moments(&self) -> Option<&RunningMoments> {
        Some(&self.moments)
    }

    fn set_obs_moments(&mut self, moments: &RunningMoments) -> Result<(), EnvError> {
        moments.check_width(self.inner.spec().obs.width())?;
        self.moments = moments.clone();
        Ok(())
    }

    fn running_moments(&mut self) -> Vec<&mut RunningMoments> {
        let mut all = self.inner.running_moments();
        all.extend((self.mode != Mode::Frozen).then_some(&mut self.moments));
        all
    }

    fn state(&self) -> RunningMoments {
        self.moments.clone()
    }

    fn set_state(&mut self, state: RunningMoments) {
        self.moments = state;
    }
}
