//! Sinks: destinations of metrics.

mod jsonl;
mod tensorboard;

pub use jsonl::Jsonl;
pub use tensorboard::TensorBoard;

use brasa_core::{Sink, SinkError};

/// Several sinks as one sink.
#[derive(Default)]
pub struct Sinks(pub Vec<Box<dyn Sink>>);

impl Sink for Sinks {
    fn scalar(&mut self, env_steps: u64, name: &str, value: f64) -> Result<(), SinkError> {
        self.0.iter_mut().try_for_each(|sink| sink.scalar(env_steps, name, value))
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.0.iter_mut().try_for_each(|sink| sink.flush())
    }
}
