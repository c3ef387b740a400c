//! A worker process: its start, its messages, its end.

use std::cell::{Cell, RefCell};
use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::pipe::Pipe;
use crate::{GymConfig, GymError};

/// The program of a worker.
const SCRIPT: &str = concat!(
    include_str!("python/pipes.py"),
    include_str!("python/spaces.py"),
    include_str!("python/worker.py"),
    include_str!("python/teams.py"),
    include_str!("python/main.py"),
);
/// What a worker sends when the pipes are its own; before, the interpreter may print.
const GREETING: &[u8] = b"brasa-gym\n";
/// Bytes of stderr that are kept for an error.
const TAIL: usize = 4096;
/// Bytes of stderr that are logged at once, if no line ends before.
const LINE: u64 = 1 << 16;
/// More bytes than any description, error or saved state has.
const MOST_BYTES: u64 = 1 << 36;
/// Bytes of a body for which memory is taken at once: a length alone must not take memory.
const CHUNK: usize = 1 << 20;
/// Time for a worker to close its environments.
const CLOSING: Duration = Duration::from_secs(1);
/// Pause between two looks at a process that should have ended.
const PAUSE: Duration = Duration::from_millis(2);

/// A Python process with a range of the environments.
#[derive(Debug)]
pub(crate) struct Worker {
    id: String,
    python: String,
    /// Global indices of its environments.
    pub(crate) envs: Range<usize>,
    timeout_secs: f64,
    deadline: Cell<Instant>,
    /// Commands so far, which is the number of the last reply.
    orders: Cell<u32>,
    commands: RefCell<Option<Pipe>>,
    replies: Pipe,
    child: RefCell<Child>,
    tail: Arc<Mutex<Vec<u8>>>,
}

/// An error as a worker reports it.
#[derive(Deserialize)]
struct Report {
    kind: String,
    message: String,
    #[serde(default)]
    traceback: String,
    #[serde(default)]
    package: Option<String>,
    #[serde(default)]
    env: Option<usize>,
}

impl Worker {
    /// Starts the process of `envs`, and does not wait for it.
    pub(crate) fn start(config: &GymConfig, envs: Range<usize>) -> Result<Self, GymError> {
        let (path, source_of) = config.interpreter();
        let python = path.display().to_string();
        let id = config.id.clone();
        let mut command = Command::new(path);
        command.args(["-c", SCRIPT]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        for (name, value) in [
            // Sets are iterated in the same order in every process.
            ("PYTHONHASHSEED", "0"),
            // There is a worker for every core already.
            ("OMP_NUM_THREADS", "1"),
            ("OPENBLAS_NUM_THREADS", "1"),
            ("MKL_NUM_THREADS", "1"),
        ] {
            if std::env::var_os(name).is_none() {
                command.env(name, value);
            }
        }
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = spawn(command).map_err(|error| GymError::Interpreter {
            id: id.clone(),
            python: python.clone(),
            source_of,
            message: error.to_string(),
        })?;
        let system = |error: io::Error| GymError::System {
            id: id.clone(),
            what: "the pipes to a worker process",
            message: error.to_string(),
        };
        let commands = Pipe::new(child.stdin.take().expect("it was piped")).map_err(system)?;
        let replies = Pipe::new(child.stdout.take().expect("it was piped")).map_err(system)?;
        let tail = Arc::default();
        listen(child.stderr.take().expect("it was piped"), Arc::clone(&tail)).map_err(system)?;
        Ok(Self {
            id,
            python,
            envs,
            timeout_secs: config.timeout_secs,
            deadline: Cell::new(Instant::now()),
            orders: Cell::new(0),
            commands: RefCell::new(Some(commands)),
            replies,
            child: RefCell::new(child),
            tail,
        })
    }

    /// Sends a command without a body; the deadline of its answer begins.
    pub(crate) fn order(&self, command: u8, what: &'static str) -> Result<(), GymError> {
        self.deadline.set(Instant::now() + Duration::from_secs_f64(self.timeout_secs));
        self.orders.set(self.orders.get().wrapping_add(1));
        self.send(&[command], what)
    }

    /// Sends a command with a body; the deadline of its answer begins.
    pub(crate) fn order_with(&self, command: u8, body: &[u8], what: &'static str) -> Result<(), GymError> {
        self.order(command, what)?;
        self.send(&(body.len() as u64).to_le_bytes(), what)?;
        self.send(body, what)
    }

    /// Waits until the worker has done what was ordered.
    pub(crate) fn done(&self, what: &'static str) -> Result<(), GymError> {
        self.reply(b'd', what).map(|_| ())
    }

    /// Waits for an answer with a body.
    pub(crate) fn answer(&self, kind: u8, what: &'static str) -> Result<Vec<u8>, GymError> {
        self.answer_up_to(MOST_BYTES, kind, what)
    }

    /// Waits for an answer with a body of at most `most` bytes.
    pub(crate) fn answer_up_to(&self, most: u64, kind: u8, what: &'static str) -> Result<Vec<u8>, GymError> {
        self.reply(kind, what)?;
        self.body(most, what)
    }

    /// Waits until the process has started; skips what the interpreter prints before.
    pub(crate) fn greeted(&self) -> Result<(), GymError> {
        let mut last = [0; GREETING.len()];
        while last != GREETING {
            last.rotate_left(1);
            let end = last.len() - 1;
            self.receive(&mut last[end..], "make")?;
        }
        Ok(())
    }

    fn reply(&self, expected: u8, what: &'static str) -> Result<(), GymError> {
        let mut head = [0; 5];
        self.receive(&mut head, what)?;
        let [kind, number @ ..] = head;
        let number = u32::from_le_bytes(number);
        match kind {
            // A byte that something else wrote to the pipe would shift this reply and all that follow.
            kind if number == self.orders.get() && kind == expected => Ok(()),
            b'e' if number == self.orders.get() => Err(self.reported(&self.body(MOST_BYTES, what)?, what)),
            _ => {
                let (last, expected) = (self.orders.get(), char::from(expected));
                let got = head.escape_ascii();
                Err(self.bad_reply(format!(
                    "expected `{expected}` with number {last}, got the bytes \"{got}\": something else writes to the pipe of the worker"
                )))
            }
        }
    }

    fn bad_reply(&self, message: String) -> GymError {
        GymError::System { id: self.id.clone(), what: "a reply of a worker process", message }
    }

    fn body(&self, most: u64, what: &'static str) -> Result<Vec<u8>, GymError> {
        let mut size = [0; 8];
        self.receive(&mut size, what)?;
        let size = u64::from_le_bytes(size);
        if size > most {
            return Err(self.bad_reply(format!("it announces {size} bytes, at most {most} are read")));
        }
        let (size, mut body) = (size as usize, Vec::new());
        while body.len() < size {
            let (begin, chunk) = (body.len(), CHUNK.min(size - body.len()));
            body.try_reserve(chunk).map_err(|error| self.bad_reply(error.to_string()))?;
            body.resize(begin + chunk, 0);
            self.receive(&mut body[begin..], what)?;
        }
        Ok(body)
    }

    fn send(&self, bytes: &[u8], what: &'static str) -> Result<(), GymError> {
        let commands = self.commands.borrow();
        let commands = commands.as_ref().expect("a batch uses its workers until the first error");
        commands.send(bytes, self.deadline.get()).map_err(|error| self.failed(&error, what))
    }

    fn receive(&self, bytes: &mut [u8], what: &'static str) -> Result<(), GymError> {
        self.replies.receive(bytes, self.deadline.get()).map_err(|error| self.failed(&error, what))
    }

    /// The error that a worker reported.
    fn reported(&self, body: &[u8], what: &'static str) -> GymError {
        let id = self.id.clone();
        let report: Report = match serde_json::from_slice(body) {
            Ok(report) => report,
            Err(error) => {
                return GymError::System { id, what: "the error of a worker process", message: error.to_string() };
            }
        };
        match report.kind.as_str() {
            "space" => GymError::Space { id, rule: report.message },
            "unknown_id" => GymError::UnknownId { id, message: report.message },
            "missing" => GymError::MissingPackage {
                id,
                python: self.python.clone(),
                package: report.package,
                message: report.message,
            },
            _ => GymError::Raised {
                id,
                what,
                env: report.env,
                message: report.message,
                traceback: report.traceback.trim_end().to_owned(),
            },
        }
    }

    /// The reason why a pipe failed: a timeout, or the end of the process.
    fn failed(&self, error: &io::Error, what: &'static str) -> GymError {
        let (id, envs) = (self.id.clone(), self.envs.clone());
        match error.kind() {
            io::ErrorKind::TimedOut => GymError::Timeout { id, envs, what, secs: self.timeout_secs },
            io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe => {
                let status = self.wait(CLOSING).map_or_else(|| "it closed its pipes".to_owned(), |s| s.to_string());
                // What it wrote last is read by another thread.
                thread::sleep(10 * PAUSE);
                let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
                GymError::WorkerEnded { id, envs, what, status, stderr: String::from_utf8_lossy(&tail).into_owned() }
            }
            _ => GymError::System { id, what: "the pipes to a worker process", message: error.to_string() },
        }
    }

    /// Waits for the end of the process, at most so long.
    fn wait(&self, at_most: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + at_most;
        loop {
            match self.child.borrow_mut().try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < deadline => thread::sleep(PAUSE),
                _ => return None,
            }
        }
    }

    /// Closes the pipe of commands, which ends the process between two commands.
    pub(crate) fn close(&self) {
        self.commands.borrow_mut().take();
    }

    /// Ends the process, and those that it started. After [`Worker::close`] it has a second to end by itself.
    pub(crate) fn end(&self, kindly: bool) {
        if kindly && self.wait(CLOSING).is_some() {
            return;
        }
        let mut child = self.child.borrow_mut();
        // A process that was waited for has no id any more, which may be that of another one.
        if matches!(child.try_wait(), Ok(None)) {
            #[cfg(unix)]
            {
                use nix::sys::signal::{Signal, killpg};
                let group = nix::unistd::Pid::from_raw(child.id() as i32);
                // Without a group the process itself is ended below.
                let _ = killpg(group, Signal::SIGKILL);
            }
            drop(child.kill());
            drop(child.wait());
        }
    }

    /// Id of the process.
    pub(crate) fn process_id(&self) -> u32 {
        self.child.borrow().id()
    }
}

/// Starts a process on a thread that lives as long as this program: the system ends workers with the thread that started them.
fn spawn(command: Command) -> io::Result<Child> {
    type Job = (Command, Sender<io::Result<Child>>);
    static STARTER: OnceLock<Result<Sender<Job>, String>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (sender, jobs) = mpsc::channel::<Job>();
        let start = move || {
            share_addresses();
            for (mut command, child) in jobs {
                // Whoever asked waits for the answer.
                drop(child.send(command.spawn()));
            }
        };
        let thread = thread::Builder::new().name("brasa-gym-start".into()).spawn(start);
        thread.map(|_| sender).map_err(|error| error.to_string())
    });
    let starter = starter.as_ref().map_err(|message| io::Error::other(message.clone()))?;
    let (sender, child) = mpsc::channel();
    starter.send((command, sender)).map_err(io::Error::other)?;
    child.recv().map_err(io::Error::other)?
}

/// Gives the processes that this thread starts the same addresses, without the random offsets that Linux adds. What a core has
/// learned about the branches of one worker then serves the next one: with more workers than cores, steps take a third less time.
fn share_addresses() {
    #[cfg(target_os = "linux")]
    {
        use nix::sys::personality::{self, Persona};
        let persona = personality::get().unwrap_or(Persona::empty());
        // Some containers forbid it; workers are only slower then.
        let _ = personality::set(persona | Persona::ADDR_NO_RANDOMIZE);
    }
}

/// Reads what a worker writes to stderr, on a thread: it is logged, and its end is kept.
fn listen(stderr: ChildStderr, tail: Arc<Mutex<Vec<u8>>>) -> io::Result<()> {
    let read = move || {
        each_line(BufReader::new(stderr), |line| {
            tracing::debug!(target: "brasa_gym", "{}", String::from_utf8_lossy(line).trim_end());
            let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
            tail.extend_from_slice(line);
            let surplus = tail.len().saturating_sub(TAIL);
            tail.drain(..surplus);
        });
    };
    thread::Builder::new().name("brasa-gym-stderr".into()).spawn(read).map(|_| ())
}

/// Calls `each` with every line; one without an end comes in parts.
fn each_line(mut from: impl BufRead, mut each: impl FnMut(&[u8])) {
    let mut line = Vec::new();
    while matches!(from.by_ref().take(LINE).read_until(b'\n', &mut line), Ok(n) if n > 0) {
        each(&line);
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_an_end_takes_little_memory() {
        let endless = io::repeat(b'x').take(10 * LINE + 7).chain(&b"\nlast"[..]);
        let mut parts = Vec::new();
        each_line(BufReader::new(endless), |part| parts.push(part.to_vec()));
        assert_eq!(parts.len(), 12);
        assert!(parts.iter().all(|part| part.len() as u64 <= LINE));
        assert_eq!(parts[10], b"xxxxxxx\n");
        assert_eq!(parts[11], b"last");
    }
}
