//! Pipes to a worker with a deadline for every call.

use std::fs::File;
use std::io::{self, Read, Write};
use std::thread;
use std::time::{Duration, Instant};

/// How long a read asks again before it sleeps: to be woken takes longer than many a step of an environment.
const PATIENCE: Duration = Duration::from_micros(200);

/// One end of a pipe that never waits longer than a deadline.
#[derive(Debug)]
pub(crate) struct Pipe(File);

impl Pipe {
    #[cfg(unix)]
    pub(crate) fn new(end: impl Into<std::os::fd::OwnedFd>) -> io::Result<Self> {
        use nix::fcntl::{FcntlArg, OFlag, fcntl};

        let end = end.into();
        let flags = OFlag::from_bits_retain(fcntl(&end, FcntlArg::F_GETFL)?);
        fcntl(&end, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
        Ok(Self(File::from(end)))
    }

    #[cfg(not(unix))]
    pub(crate) fn new<T>(_: T) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Writes everything before `deadline`.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] at the deadline, [`io::ErrorKind::BrokenPipe`] if nobody reads any more.
    pub(crate) fn send(&self, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
        while !bytes.is_empty() {
            match (&self.0).write(bytes) {
                Ok(n) => bytes = &bytes[n..],
                Err(error) => self.wait(error, deadline, Direction::Out)?,
            }
        }
        Ok(())
    }

    /// Fills `bytes` before `deadline`.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] at the deadline, [`io::ErrorKind::UnexpectedEof`] if nobody writes any more.
    pub(crate) fn receive(&self, mut bytes: &mut [u8], deadline: Instant) -> io::Result<()> {
        let until = Instant::now() + PATIENCE;
        while !bytes.is_empty() {
            match (&self.0).read(bytes) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => bytes = &mut bytes[n..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < until => {
                    thread::yield_now()
                }
                Err(error) => self.wait(error, deadline, Direction::In)?,
            }
        }
        Ok(())
    }

    /// Waits until a call that was refused with `error` may succeed.
    #[cfg(unix)]
    fn wait(&self, error: io::Error, deadline: Instant, direction: Direction) -> io::Result<()> {
        use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
        use std::os::fd::AsFd;

        match error.kind() {
            io::ErrorKind::Interrupted => return Ok(()),
            io::ErrorKind::WouldBlock => {}
            _ => return Err(error),
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let flags = match direction {
            Direction::In => PollFlags::POLLIN,
            Direction::Out => PollFlags::POLLOUT,
        };
        // At least a millisecond, so that the last one is not spent in a loop.
        let millis = left.as_millis().clamp(1, 1_000_000) as i32;
        let timeout = PollTimeout::try_from(millis).expect("it is above 0");
        match poll(&mut [PollFd::new(self.0.as_fd(), flags)], timeout) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(not(unix))]
    fn wait(&self, error: io::Error, _: Instant, _: Direction) -> io::Result<()> {
        Err(error)
    }
}

#[derive(Clone, Copy)]
enum Direction {
    In,
    Out,
}
