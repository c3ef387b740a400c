//! Buildings as graphs: rooms, halls, stairs and exits, the ways between them, and the people inside.
//!
//! For whoever simulates what happens in a building, draws one, or needs many that differ. The crate knows no
//! simulation: what a fire does in a building, and who sweeps its rooms, is the matter of `brasa-evacuation`.
//!
//! # Where a building comes from
//!
//! - The reference buildings [`Layout::office`], [`Layout::daycare`] and [`Layout::warehouse`].
//! - Files, by [`Layout::load`]: GeoJSON with the Indoor Mapping Data Format, well-known text, and a JSON of our own that
//!   [`Layout::save_json`] writes. What cannot be understood is refused with the file and the feature.
//! - The generators of a [`GeneratorConfig`], whose [`Split`]s keep what is learned from apart from what is evaluated on.
//! - Code: the fields of a [`Layout`] are public, and [`Layout::validate`] says what is wrong with them.
//!
//! # What can be done with it
//!
//! [`Layout::drawing`] lays a building out on paper, whether or not its places have outlines. [`Layout::graph`] lays it
//! out for computing: neighbors in one array, and shortest ways by [`Graph::field`] and [`Search`].
//!
//! ```
//! use brasa_floorplan::{Family, GeneratorConfig, Layout, NodeKind, generate};
//!
//! // A shop of 4 m x 3 m with a door to the street, in well-known text.
//! let shop = Layout::from_wkt("shop", "Shop: POLYGON ((0 0, 4 0, 4 3, 0 3, 0 0))\nexit: LINESTRING (1 0, 2 0)", "here")?;
//! assert_eq!(shop.nodes[0].area_m2, 12.0);
//! assert_eq!(shop.of_kind(NodeKind::Exit).count(), 1);
//!
//! // A seed stands for the same building everywhere.
//! let office = generate(Family::Comb, &GeneratorConfig::default(), 7)?;
//! assert_eq!(office, generate(Family::Comb, &GeneratorConfig::default(), 7)?);
//! office.validate()?;
//!
//! // On paper every way leads through a gap in a wall, or from floor to floor.
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
