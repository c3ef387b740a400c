//! The processes of a run.

use std::any::Any;
use std::sync::Arc;

use thiserror::Error;

use crate::tree::{self, Number};

/// Processes or shards that cannot be used.
///
/// ```
/// use brasa_shards::{RunError, ShardError, World};
///
/// let error = World::solo().run(3, || Ok::<_, String>(())).unwrap_err();
/// assert!(matches!(error, RunError::Dist(ShardError::Shards { n_shards: 3, n_ranks: 1 })));
/// let message = "`n_shards` must be a power of two and a multiple of the number of ranks, which is 1, got 3";
/// assert_eq!(error.to_string(), message);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ShardError {
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

/// How the processes of a run exchange bytes: `brasa-mpi` does it by MPI. Every rank calls it in the same order, one thread at a time. What
/// cannot be exchanged ends all processes.
///
/// ```
/// use brasa_shards::{Link, World};
///
/// /// A process that is alone. Every exchange gives its own bytes.
/// struct Alone;
///
/// impl Link for Alone {
///     fn rank(&self) -> usize { 0 }
///     fn n_ranks(&self) -> usize { 1 }
///     fn begin(&self) {}
///     fn swap(&self, _with: usize, own: &[u8], other: &mut [u8]) { other.copy_from_slice(own) }
///     fn all_gather(&self, own: &[u8], all: &mut [u8]) { all.copy_from_slice(own) }
///     fn leave(&self) {}
///     fn abort(&self, _message: &str, _status: u8) {}
/// }
///
/// let all = World::of(Alone, ()).run(2, || Ok::<_, String>(brasa_shards::gather(vec![5])))?;
/// assert_eq!(*all, [[5], [5]]);
/// # Ok::<(), brasa_shards::RunError<String>>(())
/// ```
pub trait Link: Send + Sync {
    /// The index of this process, from 0.
    fn rank(&self) -> usize;

    /// Number of processes.
    fn n_ranks(&self) -> usize;

    /// Another exchange begins: some calls of [`Link::swap`] or [`Link::all_gather`].
    fn begin(&self);

    /// Sends `own` to the rank `with` and receives `other` from it, of the same length.
    fn swap(&self, with: usize, own: &[u8], other: &mut [u8]);

    /// Collects `own` of all ranks in their order, of the same length each.
    fn all_gather(&self, own: &[u8], all: &mut [u8]);

    /// The run of this rank has ended well: waits for the other ranks. A rank that waits for this one in an exchange aborts all.
    fn leave(&self);

    /// Prints `message` and ends all processes with exit status `status`, if there are several.
    fn abort(&self, message: &str, status: u8);
}

/// The ranks as seen by the shards of one process. Only one of them uses it at a time.
pub(crate) struct Ranks(Option<Box<dyn Link>>);

impl std::fmt::Debug for Ranks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Ranks").field(&self.0.as_ref().map(|link| (link.rank(), link.n_ranks()))).finish()
    }
}

/// The processes of a run: the ranks that `mpirun` or `srun` has started, or this process alone.
///
/// It must live until all ranks have finished: when it is dropped, it may wait for them.
///
/// ```
/// use brasa_shards::{World, mean, shard};
///
/// // One process, whose four shards are threads.
/// let world = World::join()?;
/// let loss = world.run(4, || Ok::<_, String>(mean(vec![shard().index as f64])))?;
/// assert_eq!((loss, world.rank(), world.n_ranks()), (vec![1.5], 0, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct World {
    ranks: Arc<Ranks>,
    /// Dropped after the ranks.
    _library: Option<Box<dyn Any>>,
}

/// Variables in which starters of MPI programs (MPICH and Slurm, Open MPI) say how many ranks there are.
const N_RANKS: [&str; 2] = ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE"];

impl World {
    /// This process alone.
    pub fn solo() -> Self {
        Self { ranks: Arc::new(Ranks(None)), _library: None }
    }

    /// The processes that `link` connects. `library` is dropped after the link: for example the handle whose drop ends MPI.
    pub fn of(link: impl Link + 'static, library: impl Any) -> Self {
        Self { ranks: Arc::new(Ranks(Some(Box::new(link)))), _library: Some(Box::new(library)) }
    }

    /// This process alone, unless it was started as one of several. A program with MPI calls `brasa_mpi::join` instead.
    ///
    /// # Errors
    /// [`ShardError::WithoutMpi`] if there are several ranks.
    pub fn join() -> Result<Self, ShardError> {
        match N_RANKS.iter().find_map(|name| std::env::var(name).ok()?.parse().ok()) {
            Some(n_ranks) if n_ranks > 1 => Err(ShardError::WithoutMpi { n_ranks }),
            _ => Ok(Self::solo()),
        }
    }

    /// The index of this process, from 0.
    pub fn rank(&self) -> usize {
        self.ranks.0.as_ref().map_or(0, |link| link.rank())
    }

    /// Number of processes.
    pub fn n_ranks(&self) -> usize {
        self.ranks.0.as_ref().map_or(1, |link| link.n_ranks())
    }

    pub(crate) fn ranks(&self) -> Arc<Ranks> {
        self.ranks.clone()
    }

    /// Prints `message` and ends all processes with exit status `status`, if there are several. For a rank that cannot go on while the
    /// others wait for it, or will.
    pub fn abort(&self, message: &str, status: u8) {
        if let Some(link) = &self.ranks.0 {
            link.abort(message, status);
        }
    }
}

impl Ranks {
    /// The sum over all ranks in the order of the tree, of which `sum` is the subtree of this one. In each of `log2(n_ranks)` rounds the
    /// neighbors of a subtree exchange their sums (recursive doubling), so that all have the sum at the end.
    pub fn sum<T: Number>(&self, mut sum: Vec<T>) -> Vec<T> {
        let Some(link) = &self.0 else { return sum };
        link.begin();
        let mut other = vec![T::zeroed(); sum.len()];
        let mut size = 1;
        while size < link.n_ranks() {
            link.swap(link.rank() ^ size, bytemuck::cast_slice(&sum), bytemuck::cast_slice_mut(&mut other));
            // The left one is that of the smaller rank, so that both have the same bits.
            if link.rank() & size != 0 {
                std::mem::swap(&mut sum, &mut other);
            }
            tree::add(&mut sum, &other);
            size *= 2;
        }
        sum
    }

    /// The byte strings of the shards of all ranks, of which `own` are those of this one.
    pub fn all_gather_bytes(&self, own: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        /// Bytes per call: MPI counts in 32 bits, over all ranks together.
        const PIECE: usize = 1 << 20;
        let Some(link) = &self.0 else { return own };
        link.begin();
        let n_ranks = link.n_ranks();
        let sizes: Vec<u64> = own.iter().map(|bytes| bytes.len() as u64).collect();
        let mut all_sizes = vec![0u64; sizes.len() * n_ranks];
        link.all_gather(bytemuck::cast_slice(&sizes), bytemuck::cast_slice_mut(&mut all_sizes));
        let all_sizes: Vec<usize> = all_sizes.into_iter().map(|size| size as usize).collect();
        let totals: Vec<usize> = all_sizes.chunks_exact(own.len()).map(|sizes| sizes.iter().sum()).collect();
        let mut mine = own.concat();
        let longest = totals.iter().copied().max().unwrap_or(0);
        // Every rank sends pieces of the same length.
        let padded = longest.next_multiple_of(PIECE.min(longest).max(1));
        mine.resize(padded, 0);
        let mut of_ranks = vec![Vec::with_capacity(padded); n_ranks];
        for piece in mine.chunks(PIECE) {
            let mut all = vec![0u8; piece.len() * n_ranks];
            link.all_gather(piece, &mut all);
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

    /// The run of this rank has ended well. It waits for the other ranks.
    pub fn leave(&self) {
        if let Some(link) = &self.0 {
            link.leave();
        }
    }
}
