//! Graph attention: graphs, layers, encoders and policies over graphs.
//!
//! A [`Graph`] stands on the host, a table of [`Graphs`] on a device, and a row of an observation names its graph by index.
//! This crate does not know which algorithm trains what it builds.

mod actor_critic;
mod config;
mod encoder;
mod error;
mod gat;
mod graph;
mod graphs;
mod norm;

pub use actor_critic::GraphActorCritic;
pub use config::{GatLayerConfig, GraphActorCriticConfig, GraphSpec, HeadConfig, Norm, Readout, Trunk};
pub use error::GatError;
pub use gat::{Gat, GatConfig, Version};
pub use graph::{Attended, Graph};
pub use graphs::{Aggregation, GraphBatch, Graphs};
pub use norm::{GraphNorm, LayerNorm};
