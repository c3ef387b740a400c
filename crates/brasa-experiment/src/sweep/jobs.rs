//! Runs of a sweep as processes of this program, several at a time.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use brasa_train::{RunsView, say};

use super::parent::of_this_sweep;

/// Time between two looks at the processes.
const LOOK: Duration = Duration::from_millis(200);
/// Bytes at the end of `metrics.jsonl` that contain its last complete line.
const TAIL: u64 = 64 * 1024;

/// A run to train.
pub(crate) struct Job {
    pub name: String,
    /// Arguments of this program.
    pub args: Vec<OsString>,
    /// File for its output.
    pub log: PathBuf,
    pub run_dir: PathBuf,
    pub total_env_steps: u64,
}

/// How the runs of a sweep ended.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub finished: usize,
    /// Name, log and last words of each failed run.
    pub failed: Vec<(String, PathBuf, String)>,
    pub interrupted: bool,
}

/// A running process; it is stopped when this is dropped.
struct Running {
    job: Job,
    child: Child,
}

/// The processes of a sweep.
pub(crate) struct Jobs {
    pub waiting: Vec<Job>,
    /// Largest number of processes.
    pub at_once: usize,
    /// Threads of each process.
    pub threads: usize,
}

impl Jobs {
    /// Trains all runs. A run that fails does not stop the others. When `is_stopped`, no run is started, and those that run save a
    /// checkpoint and end.
    ///
    /// # Errors
    /// If a process cannot be started or a log cannot be written; the others are stopped.
    pub(crate) fn train(mut self, is_stopped: impl Fn() -> bool) -> io::Result<Outcome> {
        self.waiting.reverse();
        let n_runs = self.waiting.len();
        let total = self.waiting.iter().map(|job| job.total_env_steps).sum::<u64>();
        let mut view = RunsView::new(total, n_runs);
        let (mut running, mut outcome): (Vec<Running>, Outcome) = Default::default();
        let (mut ended_steps, mut signalled) = (0, false);
        loop {
            let stopped = is_stopped();
            while !stopped && running.len() < self.at_once.max(1) {
                let Some(job) = self.waiting.pop() else { break };
                running.push(Running { child: self.start(&job)?, job });
            }
            if stopped && !signalled {
                running.iter_mut().for_each(Running::interrupt);
                signalled = true;
            }
            let mut i = 0;
            while i < running.len() {
                let Some(status) = running[i].child.try_wait()? else {
                    i += 1;
                    continue;
                };
                let ended = running.swap_remove(i);
                let job = &ended.job;
                ended_steps += job.total_env_steps;
                match (status.success(), stopped) {
                    (true, _) => outcome.finished += 1,
                    (false, true) => outcome.interrupted = true,
                    (false, false) => {
                        say(&format!("{} failed: {}", job.name, job.log.display()));
                        outcome.failed.push((job.name.clone(), job.log.clone(), last_words(&job.log)));
                    }
                }
            }
            let steps = running.iter().map(|of| env_steps(&of.job.run_dir).min(of.job.total_env_steps)).sum::<u64>();
            view.show(ended_steps + steps, outcome.finished, running.len(), outcome.failed.len());
            if running.is_empty() && (stopped || self.waiting.is_empty()) {
                outcome.interrupted |= !self.waiting.is_empty();
                return Ok(outcome);
            }
            thread::sleep(LOOK);
        }
    }

    fn start(&self, job: &Job) -> io::Result<Child> {
        if let Some(folder) = job.log.parent() {
            fs::create_dir_all(folder)?;
        }
        let log = File::create(&job.log)?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(&job.args).env("RAYON_NUM_THREADS", self.threads.to_string());
        of_this_sweep(&mut command);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        // Ctrl-C in a terminal reaches all processes of a group: this one passes it on, once.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command.spawn()
    }
}

impl Running {
    /// Asks the process to save a checkpoint and to end.
    fn interrupt(&mut self) {
        #[cfg(unix)]
        {
            use nix::sys::signal::{Signal, kill};
            let pid = i32::try_from(self.child.id()).map(nix::unistd::Pid::from_raw);
            // A process that has ended needs no signal.
            let _ = pid.map(|pid| kill(pid, Signal::SIGINT));
        }
        #[cfg(not(unix))]
        let _ = self.child.kill();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.interrupt();
            let _ = self.child.wait();
        }
    }
}

/// Environment steps of a run so far, by the end of its metrics.
fn env_steps(run_dir: &Path) -> u64 {
    let last = tail(&run_dir.join("metrics.jsonl")).unwrap_or_default();
    let steps = |line: &str| serde_json::from_str::<serde_json::Value>(line).ok()?.get("env_steps")?.as_u64();
    last.lines().rev().find_map(steps).unwrap_or(0)
}

/// The last lines of a log that are not empty.
fn last_words(log: &Path) -> String {
    let text = tail(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].join("\n")
}

/// The end of a file.
fn tail(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::*;

    #[test]
    fn the_last_complete_line_has_the_steps() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        assert_eq!(env_steps(dir.path()), 0);
        let metrics = dir.path().join("metrics.jsonl");
        fs::write(&metrics, "{\"env_steps\":10}\n{\"env_steps\":20,\"x\":1}\n{\"env_st").expect("a file");
        assert_eq!(env_steps(dir.path()), 20);
        fs::write(&metrics, "error\n\na\nb\nc: 5\n").expect("a file");
        assert_eq!((env_steps(dir.path()), last_words(&metrics).as_str()), (0, "a\nb\nc: 5"));
    }
}
