//! The ranks of a sharded run that `mpirun` or `srun` started: the link of [`brasa_shards`] by MPI.
//!
//! ```no_run
//! use brasa_shards::{mean, shard};
//!
//! let world = brasa_mpi::join()?;
//! let gradient = world.run(8, || Ok::<_, String>(mean(vec![shard().index as f32])))?;
//! assert_eq!(gradient, [3.5]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Without the feature `mpi`, which needs an MPI library at build time, [`join`] is [`World::join`].

#[cfg(feature = "mpi")]
mod ranks;

use brasa_shards::{ShardError, World};

/// The processes that `mpirun`, `mpiexec` or `srun` has started together with this one; this process alone if it was started without them. A
/// process can join once.
///
/// The result must live until all ranks have finished: when it is dropped, it waits for them.
///
/// # Errors
/// [`ShardError::WithoutMpi`] if there are several but the feature `mpi` is off; [`ShardError::Mpi`] if the library fails or refuses calls
/// from several threads.
pub fn join() -> Result<World, ShardError> {
    #[cfg(feature = "mpi")]
    if ranks::is_started() {
        let (ranks, library) = ranks::Ranks::join()?;
        return Ok(World::of(ranks, library));
    }
    World::join()
}
