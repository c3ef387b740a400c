//! Errors of environments in worker processes.

use std::ops::Range;

use brasa_env::EnvError;
use thiserror::Error;

/// An error of a batch of Gymnasium environments. Every message names the environment's id.
///
/// After an error a batch has ended its workers, and returns the same error again.
///
/// ```
/// use brasa_env::EnvError;
/// use brasa_gym::{GymConfig, GymError, GymVec};
///
/// let config = GymConfig { python: Some("/no/python".into()), ..GymConfig::new("CartPole-v1") };
/// let EnvError::Scenario(error) = GymVec::new(&config, 0..1).unwrap_err() else { panic!("an error of this crate") };
/// assert!(matches!(error.downcast_ref(), Some(GymError::Interpreter { .. })));
/// let message = "`CartPole-v1`: the Python interpreter `/no/python` (the setting `python`) cannot be started: ";
/// assert!(error.to_string().starts_with(message));
/// ```
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum GymError {
    /// The Python interpreter could not be started.
    #[error("`{id}`: the Python interpreter `{python}` ({source_of}) cannot be started: {message}")]
    Interpreter {
        /// Id of the environment.
        id: String,
        /// The program.
        python: String,
        /// Where the program's name comes from.
        source_of: &'static str,
        /// The reason of the system.
        message: String,
    },
    /// A Python package is missing or too old.
    #[error("`{id}`: the Python interpreter `{python}` lacks a package: {message}{}", install(python, package))]
    MissingPackage {
        /// Id of the environment.
        id: String,
        /// The program.
        python: String,
        /// What to install, if it is known.
        package: Option<String>,
        /// The message of Python.
        message: String,
    },
    /// Gymnasium knows no such environment.
    #[error(
        "`id` must be registered with Gymnasium, got `{id}`: {message} (`import` names the modules that register others)"
    )]
    UnknownId {
        /// Id of the environment.
        id: String,
        /// Gymnasium's message.
        message: String,
    },
    /// A space that no learner can use, or a value that is not in its space.
    #[error("`{id}`: {rule}")]
    Space {
        /// Id of the environment.
        id: String,
        /// The violated rule, with the value.
        rule: String,
    },
    /// Python code raised an exception.
    #[error("`{id}`: {what}{} raised {message}\n{traceback}", of_env(env))]
    Raised {
        /// Id of the environment.
        id: String,
        /// The call, such as `step`.
        what: &'static str,
        /// Index of the environment, if one was in use.
        env: Option<usize>,
        /// Type and text of the exception.
        message: String,
        /// Python's traceback.
        traceback: String,
    },
    /// A worker process ended by itself.
    #[error("`{id}`: the worker of environments {envs:?} ended during `{what}` ({status}); {}", last_words(stderr))]
    WorkerEnded {
        /// Id of the environment.
        id: String,
        /// Environments of the worker.
        envs: Range<usize>,
        /// The call.
        what: &'static str,
        /// Exit status or signal.
        status: String,
        /// The last lines that the worker wrote to stderr.
        stderr: String,
    },
    /// A worker process did not answer in time.
    #[error("`{id}`: `{what}` of environments {envs:?} took more than {secs} s (`timeout_secs`)")]
    Timeout {
        /// Id of the environment.
        id: String,
        /// Environments of the worker.
        envs: Range<usize>,
        /// The call.
        what: &'static str,
        /// The limit in seconds.
        secs: f64,
    },
    /// An environment returned a number that is not finite.
    #[error("`{id}`: environment {env} (seed {seed}) returned {value} as {what} at step {step} of the batch")]
    NotFinite {
        /// Id of the environment.
        id: String,
        /// Index of the environment.
        env: usize,
        /// Seed of the batch.
        seed: u64,
        /// Steps of the batch since its reset.
        step: u64,
        /// `reward`, or the name of the observation.
        what: String,
        /// The number.
        value: f64,
    },
    /// An environment truncated an episode sooner than its limit of steps.
    #[error(
        "`truncation_interval` must be at most the steps between two truncations of `{id}`, got {interval}: environment {env} \
         was truncated after {steps} steps"
    )]
    TruncatedEarly {
        /// Id of the environment.
        id: String,
        /// Index of the environment.
        env: usize,
        /// Steps since it was truncated before.
        steps: u64,
        /// The interval that buffers rely on.
        interval: u64,
    },
    /// The memory that is shared with the workers could not be had.
    #[error("`{id}`: no {bytes} bytes of shared memory in {folder} ({message}); fewer environments need less")]
    SharedMemory {
        /// Id of the environment.
        id: String,
        /// The size.
        bytes: u64,
        /// Where it should be.
        folder: String,
        /// The reason of the system.
        message: String,
    },
    /// A call of the operating system failed.
    #[error("`{id}`: {what}: {message}")]
    System {
        /// Id of the environment.
        id: String,
        /// What was tried.
        what: &'static str,
        /// The reason of the system.
        message: String,
    },
}

impl From<GymError> for EnvError {
    fn from(error: GymError) -> Self {
        Self::Scenario(Box::new(error))
    }
}

fn install(python: &str, package: &Option<String>) -> String {
    package.as_ref().map_or_else(String::new, |package| format!(" (`{python} -m pip install '{package}'`)"))
}

fn of_env(env: &Option<usize>) -> String {
    env.map_or_else(String::new, |env| format!(" of environment {env}"))
}

fn last_words(stderr: &str) -> String {
    match stderr.trim() {
        "" => "it wrote nothing to stderr".into(),
        text => format!("the end of its stderr:\n{text}"),
    }
}
