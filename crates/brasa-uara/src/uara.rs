//! Networks under one config: their environments, and what is known of them.

use std::ops::Range;
use std::sync::Arc;

use brasa_env::PairSpec;

use crate::baselines::Objective;
use crate::batch::UaraBatch;
use crate::config::{Redraw, Reward, UaraConfig};
use crate::error::UaraError;
use crate::observe::Columns;
use crate::radio::Radio;

/// Networks of one config.
///
/// Its baselines are the rules of [`Heuristic::ALL`](crate::Heuristic::ALL), which see every link of the network and decide anew at each step, and,
/// where nothing changes during an episode, `bound`, which plays none: [`upper_bound`](crate::baselines::upper_bound) of the network of each episode.
/// A trace is a [`Trace`](crate::Trace).
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

    /// What does not change.
    pub fn radio(&self) -> &Radio {
        &self.radio
    }

    /// What the rules aim at: satisfied users where those are paid, else the sum of rates.
    pub fn objective(&self) -> Objective {
        match self.config.reward {
            Reward::Binary { .. } => Objective::Satisfied,
            Reward::Rate { .. } | Reward::Contribution { .. } | Reward::ProfitCost { .. } => Objective::SumRate,
        }
    }

    /// Environments with the global indices `envs`; the index, not the place, addresses random numbers.
    pub fn batch(&self, envs: Range<usize>) -> UaraBatch {
        UaraBatch::new(self.config.clone(), self.radio.clone(), envs)
    }

    /// How observations and actions consist of candidates and channels.
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

    /// Whether no link changes while an episode goes on.
    pub(crate) fn is_still(&self) -> bool {
        !self.config.dynamics.changes() && !self.config.dynamics.fading
    }

    /// Whether all episodes are played on one network, which never changes.
    pub(crate) fn stays(&self) -> bool {
        self.config.layout.redraw == Redraw::Never && self.is_still()
    }
}
