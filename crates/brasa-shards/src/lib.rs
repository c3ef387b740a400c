//! One training run on several threads and MPI ranks, with a result that does not depend on their number.
//!
//! A run is divided into a fixed number of shards. Each shard is one thread with its own environments, stored experience and copy of
//! the learner; each runs the same program. Shards exchange numbers at a few places: [`mean`] (gradients, moments of advantages,
//! divergences) and [`gather`] (episodes, states of environments). A rank is a process, and holds the same number of consecutive shards
//! as every other rank. Without MPI there is one rank with all shards.
//!
//! Floating-point addition is not associative, so `MPI_Allreduce` gives other bits for other numbers of ranks. Here a sum is always
//! computed in the order of one binary tree over the shards. A rank adds up its own subtree, all ranks exchange these sums, and each
//! computes the rest of the tree: 1, 2 and 4 ranks give the same bits.
//!
//! Code that takes part asks for nothing: outside of a sharded run there is one shard, and [`mean`] and [`gather`] return their
//! argument.
//!
//! ```
//! use brasa_shards::{World, mean, shard};
//!
//! // Four shards in this process. Each computes the gradient of its part of the data, and all get the mean.
//! let data = [3.0f32, 1.0, 7.0, 5.0];
//! let world = World::solo();
//! let gradient = world.run(4, || Ok::<_, String>(mean(vec![data[shard().index]])))?;
//! assert_eq!(gradient, [4.0]);
//! // Outside of a run there is one shard.
//! assert_eq!(mean(vec![2.0f32]), [2.0]);
//! # Ok::<(), brasa_shards::RunError<String>>(())
//! ```
//!
//! A [`Link`] connects several processes; `brasa_mpi::join` connects those that `mpirun` or `srun` started.

mod exchange;
mod run;
mod shard;
mod tree;
mod world;

pub use run::RunError;
pub use shard::{Shard, gather, mean, shard};
pub use tree::Number;
pub use world::{Link, ShardError, World};
