//! JSON lines: one object per reading of metrics.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use brasa_core::{Sink, SinkError};
use serde_json::{Map, Value};

use crate::write_atomically;

/// Appends lines such as `{"env_steps":2048,"rollout/ep_rew_mean":21.5}`.
///
/// ```
/// use brasa_core::Sink;
/// use brasa_train::sinks::Jsonl;
///
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("metrics.jsonl");
/// let mut sink = Jsonl::open(&path, 0)?;
/// sink.scalar(2048, "rollout/ep_rew_mean", 21.5)?;
/// sink.flush()?;
/// let lines = Jsonl::read(&path)?;
/// assert_eq!((lines[0]["env_steps"].as_u64(), lines[0]["rollout/ep_rew_mean"].as_f64()), (Some(2048), Some(21.5)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Jsonl {
    file: File,
    line: Map<String, Value>,
}

impl Jsonl {
    /// Creates the file or appends to it. Lines after `env_steps` are removed, because a resumed run writes them again.
    ///
    /// # Errors
    /// If a file system operation fails.
    pub fn open(path: &Path, env_steps: u64) -> io::Result<Self> {
        if path.exists() {
            let kept = keep_until(path, env_steps)?;
            write_atomically(path, &kept)?;
        }
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { file, line: Map::new() })
    }

    /// All complete lines of a file. A line that is not a JSON object is skipped, such as the partial last line of a killed run.
    ///
    /// # Errors
    /// If a file system operation fails.
    pub fn read(path: &Path) -> io::Result<Vec<Map<String, Value>>> {
        // Read as bytes: invalid UTF-8 then affects its own line only.
        let lines = BufReader::new(File::open(path)?).split(b'\n');
        let parsed = lines.map(|line| line.map(|line| serde_json::from_slice(&line).ok()));
        parsed.filter_map(Result::transpose).collect()
    }
}

fn keep_until(path: &Path, env_steps: u64) -> io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    for line in Jsonl::read(path)? {
        if line.get("env_steps").and_then(Value::as_u64).is_some_and(|steps| steps <= env_steps) {
            serde_json::to_writer(&mut kept, &line)?;
            kept.push(b'\n');
        }
    }
    Ok(kept)
}

impl Sink for Jsonl {
    fn scalar(&mut self, env_steps: u64, name: &str, value: f64) -> Result<(), SinkError> {
        self.line.insert("env_steps".into(), env_steps.into());
        self.line.insert(name.into(), value.into());
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        if self.line.is_empty() {
            return Ok(());
        }
        let mut text = serde_json::to_vec(&self.line).expect("names and numbers always serialize");
        text.push(b'\n');
        self.line.clear();
        // One write per line: a kill truncates at most the last line.
        Ok(self.file.write_all(&text)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resumed_run_writes_no_line_twice_and_survives_a_torn_one() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("metrics.jsonl");
        let push = |sink: &mut Jsonl, step: u64| {
            sink.scalar(step, "train/loss", 1.0 / step as f64).expect("the file can be written");
            sink.flush().expect("the file can be written");
        };
        let mut sink = Jsonl::open(&path, 0).expect("the directory can be written");
        (1..=4).for_each(|step| push(&mut sink, step));
        drop(sink);
        // A corrupted byte in the first line, and a partial last line.
        let mut text = std::fs::read(&path).expect("the file is there");
        text.truncate(text.len() - 5);
        text[3] = 0xff;
        std::fs::write(&path, text).expect("the file can be written");

        let mut sink = Jsonl::open(&path, 2).expect("the file is there");
        (3..=5).for_each(|step| push(&mut sink, step));
        let steps: Vec<_> =
            Jsonl::read(&path).expect("the file is there").iter().map(|line| line["env_steps"].as_u64()).collect();
        assert_eq!(steps, [2, 3, 4, 5].map(Some), "all but the broken line");
    }
}
