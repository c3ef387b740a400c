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
    /// Name, log and last words of each failed run.
    pub failed: Vec<(String, PathBuf, String)>,
    pub interrupted: bool,
}

/// How a run ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    Finished,
    /// It failed, with its last words.
    Failed(String),
    /// It saved a checkpoint and ended, because it was not needed any more.
    Stopped,
    /// It saved a checkpoint and ended, because everything is stopped.
    Interrupted,
}

/// Runs to train, of which some may follow from the results of others.
pub(crate) trait Runs {
    /// Environment steps of all runs.
    fn total_env_steps(&self) -> u64;

    /// Number of all runs.
    fn n_runs(&self) -> usize;

    /// The next run to start; `None` if there is none now.
    ///
    /// # Errors
    /// Ends all runs.
    fn next(&mut self) -> io::Result<Option<Job>>;

    /// Whether a run that has started is not needed any more.
    fn is_unneeded(&mut self, _job: &Job) -> bool {
        false
    }

    /// Is called when a run has ended.
    ///
    /// # Errors
    /// Ends all runs.
    fn ended(&mut self, job: &Job, end: End) -> io::Result<()>;
}

/// Runs that do not depend on each other.
pub(crate) struct Independent {
    waiting: std::vec::IntoIter<Job>,
    total_env_steps: u64,
    n_runs: usize,
    outcome: Outcome,
}

impl Independent {
    pub(crate) fn new(jobs: Vec<Job>) -> Self {
        let total_env_steps = jobs.iter().map(|job| job.total_env_steps).sum();
        Self { n_runs: jobs.len(), total_env_steps, waiting: jobs.into_iter(), outcome: Outcome::default() }
    }

    pub(crate) fn outcome(self) -> Outcome {
        let interrupted = self.outcome.interrupted || self.waiting.len() > 0;
        Outcome { interrupted, ..self.outcome }
    }
}

impl Runs for Independent {
    fn total_env_steps(&self) -> u64 {
        self.total_env_steps
    }

    fn n_runs(&self) -> usize {
        self.n_runs
    }

    fn next(&mut self) -> io::Result<Option<Job>> {
        Ok(self.waiting.next())
    }

    fn ended(&mut self, job: &Job, end: End) -> io::Result<()> {
        match end {
            End::Finished => {}
            End::Failed(words) => {
                say(&format!("{} failed: {}", job.name, job.log.display()));
                self.outcome.failed.push((job.name.clone(), job.log.clone(), words));
            }
            End::Stopped | End::Interrupted => self.outcome.interrupted = true,
        }
        Ok(())
    }
}

/// A running process; it is stopped when this is dropped.
struct Running {
    job: Job,
    child: Child,
    /// It was asked to end.
    is_stopped: bool,
}

/// The processes of a sweep.
pub(crate) struct Jobs {
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
    pub(crate) fn train(&self, runs: &mut impl Runs, is_stopped: impl Fn() -> bool) -> io::Result<()> {
        let mut view = RunsView::new(runs.total_env_steps(), runs.n_runs());
        let mut running: Vec<Running> = Vec::new();
        let (mut ended_steps, mut finished, mut failed) = (0, 0, 0);
        loop {
            let stopped = is_stopped();
            while !stopped && running.len() < self.at_once.max(1) {
                let Some(job) = runs.next()? else { break };
                running.push(Running { child: self.start(&job)?, job, is_stopped: false });
            }
            if running.is_empty() {
                return Ok(());
            }
            for run in running.iter_mut().filter(|run| !run.is_stopped) {
                if stopped || runs.is_unneeded(&run.job) {
                    run.interrupt();
                }
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
                let end = match (status.success(), stopped, ended.is_stopped) {
                    (true, ..) => End::Finished,
                    (false, true, _) => End::Interrupted,
                    (false, false, true) => End::Stopped,
                    (false, false, false) => End::Failed(last_words(&job.log)),
                };
                failed += usize::from(matches!(end, End::Failed(_)));
                finished += usize::from(matches!(end, End::Finished | End::Stopped));
                runs.ended(job, end)?;
            }
            let steps = running.iter().map(|of| env_steps(&of.job.run_dir).min(of.job.total_env_steps)).sum::<u64>();
            view.show(ended_steps + steps, finished, running.len(), failed);
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
        self.is_stopped = true;
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
