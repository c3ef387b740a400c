//! Evacuation of buildings: fire, smoke, occupants and the responders who sweep room by room.

mod builder;
mod error;
mod layout;
mod reference;
mod timing;
mod topology;

pub use error::EvacuationError;
pub use layout::{Edge, Layout, Mobility, Node, NodeKind, Occupant};
pub use timing::{Motion, Sweeps, Timing};
pub use topology::Topology;
