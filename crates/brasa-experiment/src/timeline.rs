//! When a run was trained: the sessions from start, or resume, to end.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use brasa_train::{RunDir, utc_now};
use serde::{Deserialize, Serialize};

use crate::ExperimentError;

/// The file of a run with one line per event.
const FILE: &str = "timeline.jsonl";

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Event {
    /// Training started, or was resumed.
    Start,
    /// All steps were taken.
    Done,
    /// A user or the system stopped the run.
    Stopped,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Line {
    /// As [`utc_now`] writes it.
    time: String,
    event: Event,
    env_steps: u64,
}

/// One process that trained a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Session {
    /// When training started.
    pub start: String,
    /// When it ended; `None` if the process was killed or still runs.
    pub end: Option<String>,
    /// Environment steps at the start.
    pub from_env_steps: u64,
    /// Environment steps at the end.
    pub until_env_steps: Option<u64>,
}

/// Adds an event at the present time to the record of a run.
pub(crate) fn record(run_dir: &RunDir, event: Event, env_steps: u64) -> Result<(), ExperimentError> {
    let path = run_dir.file(FILE);
    let line = serde_json::to_string(&Line { time: utc_now(), event, env_steps }).expect("plain values serialize");
    let file = OpenOptions::new().create(true).append(true).open(&path);
    let written = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    written.map_err(|error| ExperimentError::cannot_write(&path, &error))
}

/// The sessions of the run in `run_dir`, in their order. A run without a record, and a line that is torn, have none.
pub(crate) fn sessions(run_dir: &Path) -> Vec<Session> {
    let text = std::fs::read_to_string(run_dir.join(FILE)).unwrap_or_default();
    let mut sessions: Vec<Session> = Vec::new();
    for Line { time, event, env_steps } in text.lines().filter_map(|line| serde_json::from_str(line).ok()) {
        match (event, sessions.last_mut()) {
            (Event::Start, _) => {
                sessions.push(Session { start: time, end: None, from_env_steps: env_steps, until_env_steps: None });
            }
            (_, Some(last)) if last.end.is_none() => {
                (last.end, last.until_env_steps) = (Some(time), Some(env_steps));
            }
            _ => {}
        }
    }
    sessions
}

impl Session {
    /// Start, end and steps as text.
    pub(crate) fn text(&self) -> String {
        let end = self.end.as_deref().unwrap_or("no end recorded");
        let until = self.until_env_steps.map_or(String::new(), |until| format!(" to {until}"));
        format!("{} to {end}, steps {}{until}", self.start, self.from_env_steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killed_session_has_no_end() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let run_dir = RunDir::create(dir.path().join("run")).expect("the directory is empty");
        assert!(sessions(run_dir.path()).is_empty());
        for (event, steps) in
            [(Event::Start, 0), (Event::Stopped, 100), (Event::Start, 100), (Event::Start, 150), (Event::Done, 300)]
        {
            record(&run_dir, event, steps).expect("the directory can be written");
        }
        let found = sessions(run_dir.path());
        let steps: Vec<_> = found.iter().map(|session| (session.from_env_steps, session.until_env_steps)).collect();
        assert_eq!(steps, [(0, Some(100)), (100, None), (150, Some(300))]);
        assert!(found[1].end.is_none() && found[2].end.as_ref().is_some_and(|end| *end >= found[2].start));
        assert!(found[0].text().ends_with("Z, steps 0 to 100"), "{}", found[0].text());
        assert!(found[1].text().ends_with("to no end recorded, steps 100"), "{}", found[1].text());
    }
}
