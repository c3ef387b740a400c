//! Metrics as a table: one row per reading, one column per metric.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use brasa_core::{Sink, SinkError};
use serde_json::{Map, Value};

use super::Jsonl;
use crate::write_atomically;

const STEPS: &str = "env_steps";

/// Writes the readings of a JSON-lines file as comma-separated values, too. An empty field is a metric that a reading lacks.
///
/// ```
/// use brasa_core::Sink;
/// use brasa_train::sinks::{Csv, Jsonl, Sinks};
///
/// let dir = tempfile::tempdir()?;
/// let (lines, table) = (dir.path().join("metrics.jsonl"), dir.path().join("metrics.csv"));
/// let jsonl = Jsonl::open(&lines, 0)?;
/// let mut sinks = Sinks(vec![Box::new(jsonl), Box::new(Csv::open(&table, &lines)?)]);
/// sinks.scalar(8, "train/loss", 0.5)?;
/// sinks.flush()?;
/// assert_eq!(std::fs::read_to_string(&table)?, "env_steps,train/loss\n8,0.5\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Csv {
    path: PathBuf,
    jsonl: PathBuf,
    file: File,
    columns: Vec<String>,
    line: Map<String, Value>,
}

impl Csv {
    /// Writes the readings in the file `jsonl` to `path`. A [`Jsonl`] sink of this file must receive every reading before this sink.
    ///
    /// # Errors
    /// If a file system operation fails.
    pub fn open(path: &Path, jsonl: &Path) -> io::Result<Self> {
        let (columns, file) = written_anew(path, jsonl)?;
        Ok(Self { path: path.to_owned(), jsonl: jsonl.to_owned(), file, columns, line: Map::new() })
    }
}

/// Writes all readings, and opens the file for the next ones.
fn written_anew(path: &Path, jsonl: &Path) -> io::Result<(Vec<String>, File)> {
    let lines = Jsonl::read(jsonl)?;
    let mut columns = vec![STEPS.to_owned()];
    for name in lines.iter().flat_map(Map::keys) {
        if !columns.contains(name) {
            columns.push(name.clone());
        }
    }
    let mut text = columns.iter().map(|name| field(name)).collect::<Vec<_>>().join(",");
    text.push('\n');
    text.extend(lines.iter().map(|line| row(&columns, line)));
    write_atomically(path, text.as_bytes())?;
    Ok((columns, OpenOptions::new().append(true).open(path)?))
}

fn row(columns: &[String], line: &Map<String, Value>) -> String {
    let values: Vec<String> =
        columns.iter().map(|name| line.get(name).map_or(String::new(), Value::to_string)).collect();
    format!("{}\n", values.join(","))
}

/// Quotes a field as in RFC 4180.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

impl Sink for Csv {
    fn scalar(&mut self, env_steps: u64, name: &str, value: f64) -> Result<(), SinkError> {
        self.line.insert(STEPS.into(), env_steps.into());
        self.line.insert(name.into(), value.into());
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            return Ok(());
        }
        if line.keys().all(|name| self.columns.contains(name)) {
            return Ok(self.file.write_all(row(&self.columns, &line).as_bytes())?);
        }
        // A metric appears for the first time, such as the return once an episode has ended: every row gets its column.
        (self.columns, self.file) = written_anew(&self.path, &self.jsonl)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sinks::Sinks;

    #[test]
    fn a_metric_that_appears_late_gets_a_column_in_every_row() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (jsonl, path) = (dir.path().join("metrics.jsonl"), dir.path().join("metrics.csv"));
        let open = |env_steps| {
            let lines = Jsonl::open(&jsonl, env_steps).expect("the directory can be written");
            Sinks(vec![Box::new(lines), Box::new(Csv::open(&path, &jsonl).expect("the directory can be written"))])
        };
        let push = |sinks: &mut Sinks, step: u64, values: &[(&str, f64)]| {
            values.iter().for_each(|(name, value)| sinks.scalar(step, name, *value).expect("there is room"));
            sinks.flush().expect("there is room");
        };
        let mut sinks = open(0);
        push(&mut sinks, 8, &[("train/loss", 0.5)]);
        push(&mut sinks, 16, &[("train/loss", 0.25), ("a \"figure\", late", 1.0)]);
        push(&mut sinks, 24, &[("train/loss", 0.125)]);
        drop(sinks);
        let text = || std::fs::read_to_string(&path).expect("it was written");
        let head = "env_steps,train/loss,\"a \"\"figure\"\", late\"\n8,0.5,\n16,0.25,1.0\n";
        assert_eq!(text(), format!("{head}24,0.125,\n"));
        // A resumed run writes no row twice.
        let mut sinks = open(16);
        push(&mut sinks, 24, &[("train/loss", 2.0)]);
        assert_eq!(text(), format!("{head}24,2.0,\n"));
    }
}
