//! Serial or threaded execution of a batch.

use std::fmt;
use std::ops::Range;
use std::time::{Duration, Instant};

use ndarray::Array2;
use serde::{Deserialize, Serialize};

use crate::{BatchSlabs, EnvBatch, EnvError, Threaded, field};

/// Passing a step to another thread and back costs some microseconds; with less work per thread, threads are slower.
const WORTH_A_THREAD: Duration = Duration::from_micros(50);

/// How the environments of a batch are stepped.
///
/// ```
/// use brasa_env::Executor;
///
/// #[derive(serde::Deserialize)]
/// struct Settings {
///     executor: Executor,
/// }
///
/// let settings: Settings = toml::from_str("executor = { threads = 4 }")?;
/// assert_eq!(settings.executor, Executor::Threads(4));
/// let settings: Settings = toml::from_str("executor = 'serial'")?;
/// assert_eq!(settings.executor, Executor::Serial);
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Executor {
    /// Measures the duration of a step and chooses.
    #[default]
    Auto,
    /// On the calling thread.
    Serial,
    /// On this many threads, the calling one included.
    Threads(usize),
}

/// The chosen execution and its reason.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/walk.inc")); }
/// # use shown::*;
/// use brasa_env::{EnvVec, Executor, execute};
///
/// // `Walk` goes on a line from 3 to the goal at 0. Each step has a reward of -1.
/// let (_, choice) = execute(Executor::Serial, 4, |envs| EnvVec::new(envs, |_| Walk(0.0)))?;
/// assert_eq!(choice.n_threads, 1);
/// assert_eq!(choice.to_string(), "environments on 1 thread: as configured");
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Threads that step environments, the calling one included.
    pub n_threads: usize,
    /// The reason, as text.
    pub reason: String,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.n_threads {
            1 => write!(f, "environments on 1 thread: {}", self.reason),
            n => write!(f, "environments on {n} threads: {}", self.reason),
        }
    }
}

/// Builds `n_envs` environments with `make`, which gets ranges of global indices.
///
/// Uses the calling thread, with a warning, on a machine with one core or if no thread can be started.
///
/// # Errors
/// Errors of `make`, and [`EnvError::Argument`] for `n_envs` of 0 or more threads than environments.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/walk.inc")); }
/// # use shown::*;
/// use brasa_env::{EnvBatch, EnvVec, Executor, execute};
///
/// // A step of a walk takes less time than the work of a second thread.
/// let (batch, choice) = execute(Executor::Auto, 4, |envs| EnvVec::new(envs, |_| Walk(0.0)))?;
/// assert_eq!((batch.n_envs(), choice.n_threads), (4, 1));
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
pub fn execute<B: EnvBatch + 'static>(
    executor: Executor,
    n_envs: usize,
    mut make: impl FnMut(Range<usize>) -> Result<B, EnvError>,
) -> Result<(Box<dyn EnvBatch>, Choice), EnvError> {
    field::at_least_one("n_envs", n_envs as u64)?;
    if n_envs > 1 {
        let bytes = make(0..1)?.spec().with_n_envs(n_envs).slab_bytes();
        field::fits_in_memory("n_envs", n_envs, bytes)?;
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (n_threads, reason) = match executor {
        Executor::Serial => (1, "as configured".to_owned()),
        Executor::Threads(n) if n > 1 && cores == 1 => {
            tracing::warn!(
                "{n} threads were asked for, but this machine has one core: environments run on the calling thread"
            );
            (1, format!("{n} were asked for, but this machine has one core"))
        }
        Executor::Threads(n) => (n, "as configured".to_owned()),
        Executor::Auto => {
            let mut batch = make(0..n_envs)?;
            if batch.spec().steps_in_parallel {
                let reason = "they use several cores by themselves".to_owned();
                return Ok((Box::new(batch), Choice { n_threads: 1, reason }));
            }
            let cost = step_cost(&mut batch)?;
            let useful = (cost.as_nanos() / WORTH_A_THREAD.as_nanos()) as usize;
            let n_threads = useful.clamp(1, cores.min(n_envs));
            (n_threads, format!("a step of {n_envs} costs {:.1} us, {cores} cores", cost.as_secs_f64() * 1e6))
        }
    };
    if n_threads == 1 {
        return Ok((Box::new(make(0..n_envs)?), Choice { n_threads, reason }));
    }
    match Threaded::new(n_envs, n_threads, &mut make) {
        Ok(batch) => Ok((Box::new(batch), Choice { n_threads, reason })),
        Err(EnvError::Scenario(error)) if error.is::<std::io::Error>() => {
            tracing::warn!("no thread could be started ({error}): environments run on the calling thread");
            let reason = format!("no thread could be started ({error})");
            Ok((Box::new(make(0..n_envs)?), Choice { n_threads: 1, reason }))
        }
        Err(error) => Err(error),
    }
}

/// Median duration of a step of `batch`, with actions at the middle of a box or the first legal action.
fn step_cost<B: EnvBatch>(batch: &mut B) -> Result<Duration, EnvError> {
    let mut slabs = BatchSlabs::new(batch.spec());
    let mut actions = Array2::zeros((batch.n_rows(), batch.spec().action.width()));
    batch.reset(0, &mut slabs)?;
    let mut times = [Duration::ZERO; 15];
    let span = batch.spec().actions_per_flag();
    let heads = batch.spec().action.heads().to_vec();
    for time in &mut times {
        for (mut action, mask) in actions.rows_mut().into_iter().zip(slabs.mask.rows()) {
            let mut first = 0;
            for (slot, n) in action.iter_mut().zip(&heads) {
                let legal = mask.iter().skip(first / span).take(n / span).position(|legal| *legal > 0.0);
                *slot = (legal.unwrap_or(0) * span) as f32;
                first += n;
            }
        }
        let start = Instant::now();
        batch.step(actions.view(), &mut slabs)?;
        *time = start.elapsed();
    }
    times.sort();
    Ok(times[times.len() / 2])
}
