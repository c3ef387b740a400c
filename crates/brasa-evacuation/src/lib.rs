//! Evacuation of buildings: fire, smoke, occupants and the responders who sweep room by room.
//!
//! # Buildings
//!
//! A [`Layout`] has one of three sources: the reference buildings [`Layout::office`], [`Layout::daycare`] and
//! [`Layout::warehouse`]; the generators of a [`GeneratorConfig`], whose [`Split`]s separate training from
//! evaluation; and files, by [`Layout::load`]. All of them are in `brasa-floorplan`, re-exported as [`floorplan`].
//!
//! # Baselines
//!
//! The sweep of a building without fire is a [`SweepProblem`]. [`held_karp`] and [`joint`] solve small problems exactly
//! by independent methods, [`lower_bound`] holds for any size, [`lower_bound_with_losses`] holds with fire, and
//! [`plan`](fn@plan) finds a good solution for any size.
//!
//! ```
//! use brasa_evacuation::{Layout, PlanConfig, SweepProblem, Sweeps, Timing, lower_bound, plan};
//!
//! // 33 rooms on three floors, 24 of which both responders must search: solved to the proven optimum.
//! let daycare = Layout::daycare();
//! let problem = SweepProblem::new(&daycare, &Timing::hops(), Sweeps::ByRisk, &daycare.starts(2))?;
//! let found = plan(&problem, &PlanConfig::default())?;
//! assert_eq!(found.makespan, 109.0);
//! assert_eq!(lower_bound(&problem).best(), 109.0);
//! # Ok::<(), brasa_evacuation::EvacuationError>(())
//! ```

mod batch;
mod bound;
mod building;
mod config;
mod controllers;
mod episode;
mod error;
mod evacuation;
pub mod observe;
mod optimum;
mod scenario;
mod timing;
mod topology;
mod trace;
mod world;

pub use brasa_floorplan as floorplan;
pub use brasa_floorplan::{
    Drawing, Edge, Family, FloorDrawing, FloorPlanError, GeneratorConfig, Layout, Mobility, Node, NodeKind, Occupant,
    PlaceDrawing, Split, WayDrawing, generate,
};

pub use batch::{EvacuationBatch, EvacuationSimulation};
pub use bound::{
    LowerBound, PlanConfig, SweepPlan, SweepProblem, held_karp, joint, lower_bound, lower_bound_with_losses, plan,
};
pub use building::Building;
pub use config::{
    Actions, CrewConfig, Goal, HazardConfig, Knowledge, KnowledgeConfig, MAX_RESPONDERS, OccupantConfig, RewardConfig,
    RulesConfig, Smoke,
};
pub use controllers::Rule;
pub use error::EvacuationError;
pub use evacuation::{Buildings, Evacuation, EvacuationConfig, GeneratedConfig, Reference};
pub use timing::{Motion, Sweeps, Timing};
pub use topology::Topology;
pub use trace::{CrewFrame, DecisionFrame, Doing, Frame, PersonFrame, Trace};
pub use world::{End, PersonState};
