//! Evacuation of buildings: fire, smoke, occupants and the responders who sweep room by room.

mod batch;
mod bound;
mod builder;
mod building;
mod config;
mod controllers;
mod error;
mod generate;
mod layout;
pub mod observe;
mod plan;
mod reference;
mod scenario;
mod timing;
mod topology;
mod trace;
mod world;

pub use batch::EvacuationBatch;
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
pub use generate::{Family, GeneratorConfig, Split, generate};
pub use layout::{Edge, Layout, Mobility, Node, NodeKind, Occupant};
pub use scenario::{Buildings, Control, Evacuation, EvacuationConfig, GeneratedConfig, Outcome, PolicyFn, Reference};
pub use timing::{Motion, Sweeps, Timing};
pub use topology::Topology;
pub use trace::{CrewFrame, Doing, Frame, PersonFrame, Trace};
pub use world::{End, PersonState};
