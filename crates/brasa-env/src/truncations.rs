//! A check of the steps at which a batch truncates episodes.

use crate::{BatchSlabs, EnvError, EnvSpec};

/// Compares truncations of a batch with its [`EnvSpec::truncation_interval`], step by step.
///
/// ```
/// use brasa_env::{BatchSlabs, EnvSpec, Space, Truncations};
///
/// let (obs, action) = (Space::uniform_box(0.0, 1.0, ["x"]), Space::Discrete(2));
/// let spec = EnvSpec { truncation_interval: 10, ..EnvSpec::new(obs, action, 1) };
/// let mut truncations = Truncations::new(1);
/// let mut slabs = BatchSlabs::new(&spec);
/// slabs.truncated[0] = true;
/// truncations.check(&spec, &slabs)?;
/// // A second truncation one step later violates the interval.
/// assert!(truncations.check(&spec, &slabs).is_err());
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Truncations {
    steps: u64,
    /// Per environment the step of its latest truncation.
    latest: Vec<Option<u64>>,
}

impl Truncations {
    /// For a batch of `n_envs` environments that was just created, reset or loaded.
    pub fn new(n_envs: usize) -> Self {
        Self { steps: 0, latest: vec![None; n_envs] }
    }

    /// Checks the results of the next step.
    ///
    /// # Errors
    /// [`EnvError::Contract`] if an environment was truncated before its interval had passed.
    pub fn check(&mut self, spec: &EnvSpec, slabs: &BatchSlabs) -> Result<(), EnvError> {
        self.steps += 1;
        let interval = spec.truncation_interval;
        if interval == 1 {
            return Ok(());
        }
        for (env, latest) in self.latest.iter_mut().enumerate().filter(|(env, _)| slabs.truncated[env * spec.n_agents])
        {
            let since = latest.replace(self.steps).map(|latest| self.steps - latest);
            if interval == EnvSpec::NEVER || since.is_some_and(|since| since < interval) {
                let since =
                    since.map_or(String::new(), |since| format!(" {since} steps after its previous truncation"));
                let interval =
                    if interval == EnvSpec::NEVER { "`EnvSpec::NEVER`".into() } else { interval.to_string() };
                let step = self.steps;
                let rule = format!(
                    "step {step}, environment {env}: truncated{since}, but its `truncation_interval` is {interval}"
                );
                return Err(EnvError::Contract { rule });
            }
        }
        Ok(())
    }
}
