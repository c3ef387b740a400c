//! Buildings in which everybody walks out, and the times that it takes.

use brasa_env::{Evaluation, Scenario, Who};
use brasa_evacuation::{
    Buildings, Edge, Evacuation, EvacuationConfig, HazardConfig, Layout, Mobility, Node, NodeKind, Occupant,
    OccupantConfig, PersonState, Reference, RulesConfig, Trace,
};

/// A place called `name`.
pub fn place(name: impl Into<String>, kind: NodeKind) -> Node {
    Node { name: name.into(), kind, area_m2: 64.0, length_m: 8.0, floor: 0, high_risk: false, polygon: None }
}

/// A way of `length_m` through a door of `width_m`.
pub fn way(a: usize, b: usize, length_m: f64, width_m: f64) -> Edge {
    Edge { door: true, ..Edge::new(a, b, length_m, width_m) }
}

/// `n` adults at `node`.
pub fn adults(node: usize, n: usize) -> Vec<Occupant> {
    vec![Occupant { node, mobility: Mobility::Adult, health: 100.0 }; n]
}

/// A building whose responder enters at node 0.
pub fn building(nodes: Vec<Node>, edges: Vec<Edge>, occupants: Vec<Occupant>) -> Layout {
    Layout { name: "building".into(), nodes, edges, occupants, entries: vec![0] }
}

/// A room, node 0, with `n_people` and exits with ways of `(length_m, width_m)`, nodes 1 and on.
pub fn room(n_people: usize, exits: &[(f64, f64)]) -> Layout {
    let mut nodes = vec![place("room", NodeKind::Room)];
    nodes.extend((1..=exits.len()).map(|n| place(format!("exit_{n}"), NodeKind::Exit)));
    let edges = exits.iter().enumerate().map(|(n, (length_m, width_m))| way(0, n + 1, *length_m, *width_m)).collect();
    building(nodes, edges, adults(0, n_people))
}

/// People who are aware of the danger at once.
pub fn aware() -> OccupantConfig {
    OccupantConfig { alarm_mean_secs: 0.0, alarm_std_secs: 0.0, unaware_share: 0.0, ..OccupantConfig::default() }
}

/// How a building was left.
#[derive(Debug, Clone, PartialEq)]
pub struct Egress {
    /// Time until everybody was out.
    pub secs: f64,
    /// `[n_nodes]`: people who left there.
    pub out: Vec<usize>,
}

/// Everybody leaves `layout`, in which nothing burns.
pub fn egress(layout: &Layout, occupants: OccupantConfig) -> Egress {
    let hazards = HazardConfig { enabled: false, ..HazardConfig::default() };
    let rules =
        RulesConfig { responders: [1, 1], hazards, occupants, timeout_secs: 20_000.0, ..RulesConfig::default() };
    let config = EvacuationConfig { buildings: Buildings::Reference(Reference::Office), rules };
    let scenario = Evacuation::with_layouts(config, vec![layout.clone()]).expect("the building is valid");
    let evaluation = Evaluation { n_traces: 1, ..Evaluation::new(1, 0) };
    let outcomes = scenario.evaluate(Who::Baseline("nearest"), &evaluation).expect("rules are legal");
    let trace = outcomes[0].trace.as_ref().and_then(|trace| trace.downcast_ref::<Trace>()).expect("it was asked for");
    let all_out = |frame: &brasa_evacuation::Frame| frame.people.iter().all(|p| p.state == PersonState::Out);
    let ticks = trace.frames.iter().position(all_out).expect("everybody comes out");
    let mut out = vec![0; layout.nodes.len()];
    trace.frames[ticks].people.iter().for_each(|person| out[usize::from(person.node)] += 1);
    Egress { secs: ticks as f64 * trace.tick_secs, out }
}
