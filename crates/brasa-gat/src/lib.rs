//! Graph attention: graphs, layers, encoders and policies over graphs.
//!
//! A [`Graph`] is on the host, a table of [`Graphs`] on a device, and a row of an observation has the index of its
//! graph. This crate does not depend on algorithms.
//!
//! ```
//! use brasa_gat::{Gat, GatConfig, Graph, Graphs, Version};
//! use burn::tensor::{Int, Tensor};
//! use rand::SeedableRng;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let device = brasa_device::open_named("cpu")?;
//! // A row of three rooms, and a pair: edges in both directions.
//! let row = Graph::new(3, vec![[0, 1], [1, 0], [1, 2], [2, 1]])?;
//! let pair = Graph::new(2, vec![[0, 1], [1, 0]])?;
//! let graphs = Graphs::new(vec![row, pair], &device)?;
//!
//! let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(0);
//! let layer = Gat::new(&GatConfig::new(Version::V2, 4, 8, 2), &device, &mut rng)?;
//! // Five observations, four features per node; the pair is padded to three nodes.
//! let ids = Tensor::<1, Int>::from_ints([0, 1, 1, 0, 1], &device);
//! let out = layer.forward(Tensor::ones([5, 3, 4], &device), &graphs.batch(ids));
//! assert_eq!(out.dims(), [5, 3, 16]);
//! # Ok(())
//! # }
//! ```

mod actor_critic;
mod config;
mod encoder;
mod error;
mod exported;
mod gat;
mod graph;
mod graphs;
mod norm;

pub use actor_critic::GraphActorCritic;
pub use brasa_core::env::GraphSpec;
pub use config::{GatLayerConfig, GraphActorCriticConfig, HeadConfig, Norm, Readout, Trunk};
pub use error::GatError;
pub use gat::{Gat, GatConfig, Version};
pub use graph::{Attended, Graph};
pub use graphs::{GraphBatch, Graphs};
pub use norm::GraphNorm;
