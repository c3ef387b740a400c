//! The historical networks as a scenario.

use std::ops::Range;

use brasa_env::{EnvBatch, EnvError, Figure, Scenario, Split};

use super::batch::BsAgentBatch;
use super::config::BsAgentConfig;
use crate::error::UaraError;

/// Networks in which stations choose users. There are no published controllers for them, so there are no baselines.
#[derive(Debug, Clone)]
pub struct BsAgent {
    config: BsAgentConfig,
}

impl BsAgent {
    /// Checks the config.
    ///
    /// # Errors
    /// [`UaraError::Field`] for the first invalid field.
    pub fn new(config: BsAgentConfig) -> Result<Self, UaraError> {
        config.validate()?;
        Ok(Self { config })
    }

    /// The settings.
    pub fn config(&self) -> &BsAgentConfig {
        &self.config
    }
}

impl Scenario for BsAgent {
    fn envs(&self, _: Split, envs: Range<usize>) -> Result<Box<dyn EnvBatch>, EnvError> {
        Ok(Box::new(BsAgentBatch::new(self.config.clone(), envs)?))
    }

    /// Figures of the batch; an episode succeeds at its last step if at all.
    fn figures(&self) -> Vec<Figure> {
        vec![
            Figure::new("connected_share", "stations that connect their user").more_is_better(),
            Figure::new("connected_users", "connected users").more_is_better(),
            Figure::new("sum_rate_mbps", "sum of rates [Mb/s]").more_is_better(),
            Figure::new("mean_layers", "layers of video per station").more_is_better(),
            Figure::new("success", "success").more_is_better(),
        ]
    }

    fn about_episodes(&self, n_episodes: u64) -> String {
        let place = self.config.redraw.place("network");
        format!("Means over {n_episodes} episodes on {place}, the same for every controller.")
    }
}
