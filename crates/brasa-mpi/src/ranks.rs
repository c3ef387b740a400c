//! Exchanges by MPI that notice ranks whose runs have ended.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use brasa_shards::{Link, ShardError};
use ferrompi::{Communicator, Mpi, Request, Source, ThreadLevel};

/// Variables that only ranks have (MPICH and Slurm, PMIx, Open MPI, Cray).
const RANK: [&str; 4] = ["PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PALS_RANKID"];

/// The message of a rank whose run has ended; exchanges have the tag 0.
const ENDED: i32 = 1;

/// Whether this process is a rank.
pub(crate) fn is_started() -> bool {
    RANK.iter().any(|name| std::env::var_os(name).is_some())
}

/// The ranks of `MPI_COMM_WORLD`.
pub(crate) struct Ranks {
    rank: usize,
    n_ranks: usize,
    world: Communicator,
    /// Exchanges so far.
    rounds: AtomicU64,
    /// The ranks whose runs have ended, with their exchanges.
    ended: Mutex<BTreeMap<i32, u64>>,
}

impl Ranks {
    /// The ranks, and the library, which ends when it is dropped.
    pub(crate) fn join() -> Result<(Self, Mpi), ShardError> {
        // The shard that arrives last at an exchange calls MPI: one thread at a time, but not always the same.
        let mpi = Mpi::init_thread(ThreadLevel::Serialized).map_err(|error| ShardError::Mpi(error.to_string()))?;
        if mpi.thread_level() < ThreadLevel::Serialized {
            return Err(ShardError::Mpi("the library must offer `MPI_THREAD_SERIALIZED`".into()));
        }
        let world = mpi.world();
        let (rank, n_ranks) = (world.rank() as usize, world.size() as usize);
        let (rounds, ended) = Default::default();
        Ok((Self { rank, n_ranks, world, rounds, ended }, mpi))
    }

    /// Receives the messages of ranks that have ended.
    fn note_ended(&self) -> ferrompi::Result<()> {
        while let Some(status) = self.world.iprobe::<u64>(Source::Any, ENDED)? {
            let Source::Rank(rank) = status.source else { break };
            let mut rounds = [0u64];
            self.world.recv(&mut rounds, status.source, ENDED)?;
            self.ended.lock().unwrap_or_else(PoisonError::into_inner).insert(rank, rounds[0]);
        }
        Ok(())
    }

    /// Aborts all ranks if one has ended before this exchange.
    fn check_ended(&self) -> ferrompi::Result<()> {
        self.note_ended()?;
        let (ended, own) =
            (self.ended.lock().unwrap_or_else(PoisonError::into_inner), self.rounds.load(Ordering::Relaxed));
        if let Some((rank, rounds)) = ended.iter().find(|(_, rounds)| **rounds < own) {
            let message =
                format!("it waits in exchange {own} for rank {rank}, whose run ended after {rounds} exchanges");
            self.abort(&message, 1);
        }
        Ok(())
    }

    /// Waits for all of `requests`. Unlike MPI's own waiting it gives the core to others, because a rank may wait for long: for the
    /// evaluation of the first one, or on a machine with fewer cores than ranks.
    fn wait<const N: usize>(&self, mut requests: [Request<'_>; N]) -> ferrompi::Result<()> {
        /// Shorter waits are those of ranks that compute side by side.
        const LONG: Duration = Duration::from_millis(5);
        let begin = Instant::now();
        for request in &mut requests {
            while request.test()?.is_none() {
                match begin.elapsed() > LONG {
                    true => {
                        self.check_ended()?;
                        sleep(Duration::from_micros(100));
                    }
                    false => std::thread::yield_now(),
                }
            }
        }
        Ok(())
    }

    fn left(&self) -> ferrompi::Result<()> {
        let own = [self.rounds.load(Ordering::Relaxed)];
        for rank in (0..self.n_ranks as i32).filter(|rank| *rank != self.rank as i32) {
            // Eight bytes, which MPI sends without waiting for the receiver.
            self.world.send(&own, rank, ENDED)?;
        }
        loop {
            self.note_ended()?;
            let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
            if ended.len() + 1 == self.n_ranks {
                // The next run begins with nobody gone.
                ended.clear();
                return Ok(());
            }
            drop(ended);
            sleep(Duration::from_micros(100));
        }
    }

    /// Errors of MPI end all processes: nothing can be exchanged any more.
    fn check(&self, result: ferrompi::Result<()>) {
        if let Err(error) = result {
            self.abort(&error.to_string(), 1);
        }
    }
}

impl Link for Ranks {
    fn rank(&self) -> usize {
        self.rank
    }

    fn n_ranks(&self) -> usize {
        self.n_ranks
    }

    fn begin(&self) {
        self.rounds.fetch_add(1, Ordering::Relaxed);
    }

    fn swap(&self, with: usize, own: &[u8], other: &mut [u8]) {
        let rank = with as i32;
        self.check(ferrompi::scope(|scope| {
            self.wait([self.world.irecv(scope, other, rank, 0)?, self.world.isend(scope, own, rank, 0)?])
        }));
    }

    fn all_gather(&self, own: &[u8], all: &mut [u8]) {
        self.check(ferrompi::scope(|scope| self.wait([self.world.iallgather(scope, own, all)?])));
    }

    fn leave(&self) {
        if self.n_ranks > 1 {
            self.check(self.left());
        }
    }

    fn abort(&self, message: &str, status: u8) {
        /// Time for `mpirun` to forward what was written: it may drop the rest when a rank aborts.
        const FORWARD: Duration = Duration::from_millis(100);
        if self.n_ranks == 1 {
            return;
        }
        // An error of all ranks, such as one of the configuration, is printed by the first one, which ends the others.
        if self.rank > 0 {
            sleep(3 * FORWARD);
        }
        // One write: standard error is not buffered, and any rank may be ended between two writes.
        let line = format!("error: rank {} of {}: {message}\n", self.rank, self.n_ranks);
        // A closed standard error is no reason to go on.
        let _ = std::io::stderr().write_all(line.as_bytes());
        sleep(FORWARD);
        self.world.abort(i32::from(status));
    }
}
