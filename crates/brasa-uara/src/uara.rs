//! Networks of one config and their environments.

use std::ops::Range;
use std::sync::Arc;

use brasa_env::{Autoreset, PairSpec};

use crate::baselines::Objective;
use crate::batch::{UaraBatch, UaraSimulation};
use crate::config::{Redraw, Reward, UaraConfig};
use crate::error::UaraError;
use crate::observe::Columns;
use crate::radio::Radio;

/// Networks of one config.
///
/// Its baselines are the heuristics of [`Heuristic::ALL`](crate::Heuristic::ALL), which know every link of the network
/// and decide at each step. If nothing changes during an episode, `bound` is the
/// [`upper_bound`](crate::baselines::upper_bound) of the network of each episode. A trace is a [`Trace`](crate::Trace).
///
/// ```
/// use brasa_env::EnvBatch;
/// use brasa_uara::{Objective, Uara, UaraConfig};
///
/// let uara = Uara::new(UaraConfig { users: 10, ..UaraConfig::physical() })?;
/// assert_eq!(uara.objective(), Objective::SumRate);
/// // Actions are pairs of four candidates and 20 channels.
/// assert_eq!((uara.pairs().n_first, uara.pairs().n_second), (4, 20));
/// assert_eq!(uara.batch(0..8).spec().n_rows(), 80);
/// # Ok::<(), brasa_uara::UaraError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Uara {
    config: Arc<UaraConfig>,
    radio: Arc<Radio>,
}

impl Uara {
    /// Checks the config.
    ///
    /// # Errors
    /// [`UaraError::Field`] for the first invalid field.
    pub fn new(config: UaraConfig) -> Result<Self, UaraError> {
        config.validate()?;
        let radio = Arc::new(config.radio());
        Ok(Self { config: Arc::new(config), radio })
    }

    /// The settings.
    pub fn config(&self) -> &UaraConfig {
        &self.config
    }

    /// The constants of the network.
    pub fn radio(&self) -> &Radio {
        &self.radio
    }

    /// The objective of the heuristics: satisfied users for the binary reward, otherwise the sum of rates.
    pub fn objective(&self) -> Objective {
        match self.config.reward {
            Reward::Binary { .. } => Objective::Satisfied,
            Reward::Rate { .. } | Reward::Contribution { .. } | Reward::ProfitCost { .. } => Objective::SumRate,
        }
    }

    /// Environments with the global indices `envs`; the index addresses the random numbers.
    pub fn batch(&self, envs: Range<usize>) -> UaraBatch {
        Autoreset::new(UaraSimulation::new(self.config.clone(), self.radio.clone(), envs))
    }

    /// Layout of observations and actions over candidates and channels.
    pub fn pairs(&self) -> PairSpec {
        let [context, first_features, second_features] = Columns::new(&self.config).blocks();
        PairSpec {
            context,
            n_first: self.config.n_candidates(),
            first_features,
            n_second: self.radio.n_channels,
            second_features,
            levels: self.radio.power_levels.len(),
        }
    }

    #[cfg(feature = "tensor")]
    pub(crate) fn shared_config(&self) -> Arc<UaraConfig> {
        self.config.clone()
    }

    #[cfg(feature = "tensor")]
    pub(crate) fn shared_radio(&self) -> Arc<Radio> {
        self.radio.clone()
    }

    /// Whether no link changes during an episode.
    pub(crate) fn is_still(&self) -> bool {
        !self.config.dynamics.changes() && !self.config.dynamics.fading
    }

    /// Whether all episodes use one network that never changes.
    pub(crate) fn stays(&self) -> bool {
        self.config.layout.redraw == Redraw::Never && self.is_still()
    }
}
