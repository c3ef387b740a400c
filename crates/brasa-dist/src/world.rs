//! The processes of a run.

use std::sync::Arc;
#[cfg(feature = "mpi")]
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use thiserror::Error;

#[cfg(feature = "mpi")]
use crate::tree;
use crate::tree::Number;

/// Processes or shards that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DistError {
    /// The shards cannot be divided among the ranks.
    #[error(
        "`n_shards` must be a power of two and a multiple of the number of ranks, which is {n_ranks}, got {n_shards}"
    )]
    Shards {
        /// Number of shards.
        n_shards: usize,
        /// Number of ranks.
        n_ranks: usize,
    },
    /// The program was started several times as one run, but has no MPI.
    #[error("this is one of {n_ranks} ranks, but the program was built without the feature `mpi`")]
    WithoutMpi {
        /// Number of ranks.
        n_ranks: usize,
    },
    /// The MPI library cannot be used.
    #[error("MPI: {0}")]
    Mpi(String),
}

/// The ranks as seen by the shards of one process. Only one of them uses it at a time.
pub struct Ranks {
    rank: usize,
    n_ranks: usize,
    #[cfg(feature = "mpi")]
    world: Option<ferrompi::Communicator>,
    /// Exchanges so far.
    #[cfg(feature = "mpi")]
    rounds: AtomicU64,
    /// The ranks whose runs have ended, with their exchanges.
    #[cfg(feature = "mpi")]
    ended: Mutex<BTreeMap<i32, u64>>,
}

/// The message of a rank whose run has ended; exchanges have the tag 0.
#[cfg(feature = "mpi")]
const ENDED: i32 = 1;

/// The processes of a run: the ranks that `mpirun` or `srun` has started, or this process alone.
///
/// It must live until all ranks have finished: when it is dropped, it waits for them.
pub struct World {
    ranks: Arc<Ranks>,
    #[cfg(feature = "mpi")]
    _mpi: Option<ferrompi::Mpi>,
}

/// Variables in which starters of MPI programs (MPICH and Slurm, Open MPI) say how many ranks there are.
const N_RANKS: [&str; 2] = ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE"];
/// Variables that only ranks have (MPICH and Slurm, PMIx, Open MPI, Cray).
#[cfg(feature = "mpi")]
const RANK: [&str; 4] = ["PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PALS_RANKID"];

impl World {
    /// This process alone.
    pub fn solo() -> Self {
        Self {
            ranks: Arc::new(Ranks {
                rank: 0,
                n_ranks: 1,
                #[cfg(feature = "mpi")]
                world: None,
                #[cfg(feature = "mpi")]
                rounds: Default::default(),
                #[cfg(feature = "mpi")]
                ended: Default::default(),
            }),
            #[cfg(feature = "mpi")]
            _mpi: None,
        }
    }

    /// The processes that `mpirun`, `mpiexec` or `srun` has started together with this one; this process alone if it was started
    /// without them. A process can join once.
    ///
    /// # Errors
    /// [`DistError::WithoutMpi`] if there are several but the feature `mpi` is off; [`DistError::Mpi`] if the library fails or
    /// refuses calls from several threads.
    pub fn join() -> Result<Self, DistError> {
        #[cfg(feature = "mpi")]
        if RANK.iter().any(|name| std::env::var_os(name).is_some()) {
            return Self::of_mpi();
        }
        match N_RANKS.iter().find_map(|name| std::env::var(name).ok()?.parse().ok()) {
            Some(n_ranks) if n_ranks > 1 => Err(DistError::WithoutMpi { n_ranks }),
            _ => Ok(Self::solo()),
        }
    }

    #[cfg(feature = "mpi")]
    fn of_mpi() -> Result<Self, DistError> {
        use ferrompi::{Mpi, ThreadLevel};
        // The shard that arrives last at an exchange calls MPI: one thread at a time, but not always the same.
        let mpi = Mpi::init_thread(ThreadLevel::Serialized).map_err(|error| DistError::Mpi(error.to_string()))?;
        if mpi.thread_level() < ThreadLevel::Serialized {
            return Err(DistError::Mpi("the library must offer `MPI_THREAD_SERIALIZED`".into()));
        }
        let world = mpi.world();
        let (rank, n_ranks) = (world.rank() as usize, world.size() as usize);
        let (rounds, ended) = Default::default();
        Ok(Self { ranks: Arc::new(Ranks { rank, n_ranks, world: Some(world), rounds, ended }), _mpi: Some(mpi) })
    }

    /// The index of this process, from 0.
    pub fn rank(&self) -> usize {
        self.ranks.rank
    }

    /// Number of processes.
    pub fn n_ranks(&self) -> usize {
        self.ranks.n_ranks
    }

    pub(crate) fn ranks(&self) -> Arc<Ranks> {
        self.ranks.clone()
    }

    /// Prints `message` and ends all processes with exit status `status`, if there are several. For a rank that cannot go on while the
    /// others wait for it, or will.
    #[allow(unused_variables, reason = "without MPI there is one process")]
    pub fn abort(&self, message: &str, status: u8) {
        #[cfg(feature = "mpi")]
        self.ranks.abort(message, status);
    }
}

impl Ranks {
    /// The sum over all ranks in the order of the tree, of which `sum` is the subtree of this one. In each of `log2(n_ranks)` rounds the
    /// neighbors of a subtree exchange their sums (recursive doubling), so that all have the sum at the end.
    pub fn sum<T: Number>(&self, sum: Vec<T>) -> Vec<T> {
        #[cfg(feature = "mpi")]
        if let Some(world) = &self.world {
            self.begin_round();
            return self.exchanged(world, sum);
        }
        sum
    }

    #[cfg(feature = "mpi")]
    fn exchanged<T: Number>(&self, world: &ferrompi::Communicator, mut sum: Vec<T>) -> Vec<T> {
        let mut other = vec![T::ZERO; sum.len()];
        let mut size = 1;
        while size < self.n_ranks {
            self.check(T::swap(self, world, self.rank ^ size, &sum, &mut other));
            // The left one is that of the smaller rank, so that both have the same bits.
            if self.rank & size != 0 {
                std::mem::swap(&mut sum, &mut other);
            }
            tree::add(&mut sum, &other);
            size *= 2;
        }
        sum
    }

    /// The byte strings of the shards of all ranks, of which `own` are those of this one.
    pub fn all_gather_bytes(&self, own: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        #[cfg(feature = "mpi")]
        if let Some(world) = &self.world {
            self.begin_round();
            return self.gathered(world, &own);
        }
        own
    }

    #[cfg(feature = "mpi")]
    fn gathered(&self, world: &ferrompi::Communicator, own: &[Vec<u8>]) -> Vec<Vec<u8>> {
        /// Bytes per call: MPI counts in 32 bits, over all ranks together.
        const PIECE: usize = 1 << 20;
        let sizes: Vec<u64> = own.iter().map(|bytes| bytes.len() as u64).collect();
        let mut all_sizes = vec![0u64; sizes.len() * self.n_ranks];
        self.check(self.all_gather(world, &sizes, &mut all_sizes));
        let all_sizes: Vec<usize> = all_sizes.into_iter().map(|size| size as usize).collect();
        let totals: Vec<usize> = all_sizes.chunks_exact(own.len()).map(|sizes| sizes.iter().sum()).collect();
        let mut mine = own.concat();
        let longest = totals.iter().copied().max().unwrap_or(0);
        // Every rank sends pieces of the same length.
        let padded = longest.next_multiple_of(PIECE.min(longest).max(1));
        mine.resize(padded, 0);
        let mut of_ranks = vec![Vec::with_capacity(padded); self.n_ranks];
        for piece in mine.chunks(PIECE) {
            let mut all = vec![0u8; piece.len() * self.n_ranks];
            self.check(self.all_gather(world, piece, &mut all));
            of_ranks.iter_mut().zip(all.chunks_exact(piece.len())).for_each(|(rank, piece)| rank.extend(piece));
        }
        let mut parts = Vec::with_capacity(all_sizes.len());
        for (bytes, sizes) in of_ranks.iter().zip(all_sizes.chunks_exact(own.len())) {
            let mut rest = bytes.as_slice();
            for size in sizes {
                let (part, after) = rest.split_at(*size);
                parts.push(part.to_vec());
                rest = after;
            }
        }
        parts
    }

    /// The run of this rank has ended well. It waits for the other ranks; one that waits for this rank in an exchange aborts all.
    pub fn leave(&self) {
        #[cfg(feature = "mpi")]
        if let Some(world) = self.world.as_ref().filter(|_| self.n_ranks > 1) {
            self.check(self.left(world));
        }
    }

    #[cfg(feature = "mpi")]
    fn left(&self, world: &ferrompi::Communicator) -> ferrompi::Result<()> {
        let own = [self.rounds.load(Ordering::Relaxed)];
        for rank in (0..self.n_ranks as i32).filter(|rank| *rank != self.rank as i32) {
            // Eight bytes, which MPI sends without waiting for the receiver.
            world.send(&own, rank, ENDED)?;
        }
        loop {
            self.note_ended(world)?;
            let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
            if ended.len() + 1 == self.n_ranks {
                // The next run begins with nobody gone.
                ended.clear();
                return Ok(());
            }
            drop(ended);
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    /// Receives the messages of ranks that have ended.
    #[cfg(feature = "mpi")]
    fn note_ended(&self, world: &ferrompi::Communicator) -> ferrompi::Result<()> {
        while let Some(status) = world.iprobe::<u64>(ferrompi::Source::Any, ENDED)? {
            let ferrompi::Source::Rank(rank) = status.source else { break };
            let mut rounds = [0u64];
            world.recv(&mut rounds, status.source, ENDED)?;
            self.ended.lock().unwrap_or_else(PoisonError::into_inner).insert(rank, rounds[0]);
        }
        Ok(())
    }

    #[cfg(feature = "mpi")]
    fn begin_round(&self) {
        self.rounds.fetch_add(1, Ordering::Relaxed);
    }

    /// Aborts all ranks if one has ended before this exchange.
    #[cfg(feature = "mpi")]
    fn check_ended(&self, world: &ferrompi::Communicator) -> ferrompi::Result<()> {
        self.note_ended(world)?;
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
    #[cfg(feature = "mpi")]
    fn wait<const N: usize>(
        &self,
        world: &ferrompi::Communicator,
        mut requests: [ferrompi::Request<'_>; N],
    ) -> ferrompi::Result<()> {
        /// Shorter waits are those of ranks that compute side by side.
        const LONG: Duration = Duration::from_millis(5);
        let begin = Instant::now();
        for request in &mut requests {
            while request.test()?.is_none() {
                match begin.elapsed() > LONG {
                    true => {
                        self.check_ended(world)?;
                        std::thread::sleep(Duration::from_micros(100));
                    }
                    false => std::thread::yield_now(),
                }
            }
        }
        Ok(())
    }

    /// Sends `own` to another rank and receives `other` from it.
    #[cfg(feature = "mpi")]
    pub(crate) fn swap<T: ferrompi::MpiDatatype>(
        &self,
        world: &ferrompi::Communicator,
        with: usize,
        own: &[T],
        other: &mut [T],
    ) -> ferrompi::Result<()> {
        let rank = with as i32;
        ferrompi::scope(|scope| {
            self.wait(world, [world.irecv(scope, other, rank, 0)?, world.isend(scope, own, rank, 0)?])
        })
    }

    /// Collects `own` of all ranks.
    #[cfg(feature = "mpi")]
    fn all_gather<T: ferrompi::MpiDatatype>(
        &self,
        world: &ferrompi::Communicator,
        own: &[T],
        all: &mut [T],
    ) -> ferrompi::Result<()> {
        ferrompi::scope(|scope| self.wait(world, [world.iallgather(scope, own, all)?]))
    }

    /// Errors of MPI end all processes: nothing can be exchanged any more.
    #[cfg(feature = "mpi")]
    fn check(&self, result: ferrompi::Result<()>) {
        if let Err(error) = result {
            self.abort(&error.to_string(), 1);
        }
    }

    #[cfg(feature = "mpi")]
    fn abort(&self, message: &str, status: u8) {
        if let Some(world) = self.world.as_ref().filter(|_| self.n_ranks > 1) {
            use std::io::Write;
            use std::thread::sleep;

            /// Time for `mpirun` to forward what was written: it may drop the rest when a rank aborts.
            const FORWARD: Duration = Duration::from_millis(100);
            // An error of all ranks, such as one of the configuration, is printed by the first one, which ends the others.
            if self.rank > 0 {
                sleep(3 * FORWARD);
            }
            // One write: standard error is not buffered, and any rank may be ended between two writes.
            let line = format!("error: rank {} of {}: {message}\n", self.rank, self.n_ranks);
            // A closed standard error is no reason to go on.
            let _ = std::io::stderr().write_all(line.as_bytes());
            sleep(FORWARD);
            world.abort(i32::from(status));
        }
    }
}
