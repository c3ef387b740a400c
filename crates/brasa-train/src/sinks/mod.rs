//! Sinks: destinations of metrics.

mod csv;
mod jsonl;
mod tensorboard;

pub use csv::Csv;
pub use jsonl::Jsonl;
pub use tensorboard::TensorBoard;

use std::path::Path;

use brasa_core::{Sink, SinkError};

use crate::{RunDir, RunDirError, TrainError};

/// Several sinks as one sink.
///
/// ```
/// use brasa_core::Sink;
/// use brasa_train::sinks::{Jsonl, Sinks, TensorBoard};
///
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("metrics.jsonl");
/// let jsonl = Jsonl::open(&path, 0)?;
/// let mut sinks = Sinks(vec![Box::new(jsonl), Box::new(TensorBoard::create(dir.path(), 0)?)]);
/// sinks.scalar(8, "train/loss", 0.5)?;
/// sinks.flush()?;
/// assert_eq!(std::fs::read_dir(dir.path())?.count(), 2);
/// assert_eq!(std::fs::read_to_string(&path)?, "{\"env_steps\":8,\"train/loss\":0.5}\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct Sinks(pub Vec<Box<dyn Sink>>);

impl std::fmt::Debug for Sinks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Sinks").field(&self.0.len()).finish()
    }
}

impl Sink for Sinks {
    fn scalar(&mut self, env_steps: u64, name: &str, value: f64) -> Result<(), SinkError> {
        self.0.iter_mut().try_for_each(|sink| sink.scalar(env_steps, name, value))
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.0.iter_mut().try_for_each(|sink| sink.flush())
    }
}

/// The sinks of a run directory whose run has taken `env_steps` steps, with a table if `as_csv`.
pub(crate) fn of_run_dir(run_dir: &RunDir, env_steps: u64, as_csv: bool) -> Result<Vec<Box<dyn Sink>>, TrainError> {
    let failed = |path: &Path, cause| TrainError::RunDir(RunDirError::Io { path: path.to_owned(), cause });
    let metrics = run_dir.file("metrics.jsonl");
    let jsonl = Jsonl::open(&metrics, env_steps).map_err(|error| failed(&metrics, error))?;
    let tensorboard = TensorBoard::create(run_dir.path(), env_steps).map_err(|error| failed(run_dir.path(), error))?;
    let mut sinks: Vec<Box<dyn Sink>> = vec![Box::new(jsonl), Box::new(tensorboard)];
    if as_csv {
        let table = run_dir.file("metrics.csv");
        // It reads what the first sink has written.
        sinks.push(Box::new(Csv::open(&table, &metrics).map_err(|error| failed(&table, error))?));
    }
    Ok(sinks)
}
