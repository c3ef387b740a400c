//! Buildings as graphs: rooms, halls, stairs and exits, ways between them, and people.
//!
//! The crate reads, generates and draws buildings for simulations. It contains no simulation: fire and
//! responders are in `brasa-evacuation`.
//!
//! # Sources of buildings
//!
//! - The reference buildings [`Layout::office`], [`Layout::daycare`] and [`Layout::warehouse`].
//! - Files, by [`Layout::load`]: GeoJSON with the Indoor Mapping Data Format or tags of OpenStreetMap, well-known text, and Brasa's
//!   JSON, which [`Layout::to_json`] writes. Errors name the file and the feature.
//! - The generators of a [`GeneratorConfig`], whose [`Split`]s separate training from evaluation.
//! - Code: the fields of a [`Layout`] are public, and [`Layout::validate`] checks them.
//!
//! # Uses of a building
//!
//! [`Layout::drawing`] computes a drawing, with or without given outlines. [`Layout::graph`] is the adjacency
//! for algorithms; [`Graph::field`] and [`Search`] compute shortest paths.
//!
//! ```
//! use brasa_floorplan::{Family, GeneratorConfig, Layout, NodeKind, generate};
//!
//! // A shop of 4 m x 3 m with a door to the street, in well-known text.
//! let shop = Layout::from_wkt("shop", "Shop: POLYGON ((0 0, 4 0, 4 3, 0 3, 0 0))\nexit: LINESTRING (1 0, 2 0)", "here")?;
//! assert_eq!(shop.nodes[0].area_m2, 12.0);
//! assert_eq!(shop.of_kind(NodeKind::Exit).count(), 1);
//!
//! // A seed gives the same building on every machine.
//! let office = generate(Family::Comb, &GeneratorConfig::default(), 7)?;
//! assert_eq!(office, generate(Family::Comb, &GeneratorConfig::default(), 7)?);
//! office.validate()?;
//!
//! // In the drawing every way has an opening in a wall, or connects two floors.
//! let drawing = office.drawing();
//! assert_eq!(drawing.ways.len(), office.edges.len());
//! # Ok::<(), brasa_floorplan::FloorPlanError>(())
//! ```

mod builder;
mod drawing;
mod error;
mod generate;
mod graph;
mod layout;
mod outline;
mod plan;
mod reference;

pub use drawing::{Drawing, FloorDrawing, PlaceDrawing, WayDrawing};
pub use error::FloorPlanError;
pub use generate::{Family, GeneratorConfig, Split, generate};
pub use graph::{Cost, Graph, Search};
pub use layout::{Edge, Layout, Mobility, Node, NodeKind, Occupant};
