//! A network that is ready to run.

use std::ops::Range;
use std::sync::Arc;

use crate::config::UaraConfig;
use crate::radio::Radio;
use crate::{UaraBatch, UaraError};

/// Networks of one config.
#[derive(Debug, Clone)]
pub struct Uara {
    config: Arc<UaraConfig>,
    radio: Arc<Radio>,
}

impl Uara {
    /// Checks the config.
    ///
    /// # Errors
    /// [`UaraError::Field`] naming the first field outside its rule.
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

    /// Environments with the global indices `envs`.
    pub fn batch(&self, envs: Range<usize>) -> UaraBatch {
        UaraBatch::new(self.config.clone(), self.radio.clone(), envs)
    }
}
