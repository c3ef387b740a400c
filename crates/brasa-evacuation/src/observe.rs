//! Observations: a graph as a flat row.
//!
//! A row is that of the deciding responder: index of the building, its current or next node, the [`AGENT`] features of
//! the responder, the [`NODE`] features of every node with those of [`LOCAL`], and the [`PRIVILEGED`] features of every node for the critic
//! alone. Buildings with fewer nodes than the largest are padded with zeros.

use brasa_env::Space;

use crate::building::Building;
use crate::config::{Knowledge, MAX_RESPONDERS, RulesConfig};
use crate::world::{Record, World};
use crate::{Layout, NodeKind, Timing};

/// Names of the features of a node, by the knowledge of the responder.
///
/// ```
/// use brasa_evacuation::observe::NODE;
/// use brasa_evacuation::{Evacuation, EvacuationConfig};
///
/// let office = Evacuation::new(EvacuationConfig::default())?;
/// assert_eq!(office.columns().node, NODE.len());
/// assert_eq!(NODE.iter().position(|name| *name == "swept"), Some(8));
/// # Ok::<(), brasa_evacuation::EvacuationError>(())
/// ```
pub const NODE: [&str; 24] = [
    "is_room",
    "is_hall",
    "is_stair",
    "is_exit",
    "is_door",
    "area_50_m2",
    "needs_me",
    "needs_others",
    "swept",
    "age_60_s",
    "fire",
    "smoke",
    "hops_to_fire_10",
    "adults_3",
    "children_3",
    "limited_3",
    "health",
    "self_here",
    "others_here_2",
    "claimed",
    "time_from_self_60_s",
    "time_to_exit_60_s",
    "high_risk",
    "time_from_nearest_other_60_s",
];

/// Names of further features of a node, present if each responder has its own knowledge.
///
/// Responders of equal knowledge need a reason to choose different rooms: this is the number of other active responders that are nearer to the
/// node, by the knowledge of the responder. Of two at the same distance, the first one is nearer.
///
/// ```
/// use brasa_evacuation::observe::{LOCAL, NODE};
/// use brasa_evacuation::{Evacuation, EvacuationConfig, Knowledge};
///
/// let mut config = EvacuationConfig::default();
/// config.rules.knowledge.mode = Knowledge::Local;
/// assert_eq!(Evacuation::new(config)?.columns().node, NODE.len() + LOCAL.len());
/// # Ok::<(), brasa_evacuation::EvacuationError>(())
/// ```
pub const LOCAL: [&str; 1] = ["nearer_others_3"];

/// Names of the features of the responder.
///
/// ```
/// use brasa_evacuation::observe::AGENT;
/// use brasa_evacuation::{Evacuation, EvacuationConfig};
///
/// // The first columns are building and node; the features of the responder follow.
/// let office = Evacuation::new(EvacuationConfig::default())?;
/// assert_eq!((office.columns().agent, AGENT[0]), (AGENT.len(), "health"));
/// # Ok::<(), brasa_evacuation::EvacuationError>(())
/// ```
pub const AGENT: [&str; 8] =
    ["health", "free_8", "time_per_bound_4", "escorting", "silence_60_s", "team_8", "active", "others_active"];

/// Names of the true features of a node; present unless knowledge is full.
///
/// ```
/// use brasa_evacuation::observe::PRIVILEGED;
/// use brasa_evacuation::{Evacuation, EvacuationConfig, Knowledge};
///
/// let mut config = EvacuationConfig::default();
/// assert_eq!(Evacuation::new(config.clone())?.columns().privileged, 0);
/// config.rules.knowledge.mode = Knowledge::Local;
/// assert_eq!(Evacuation::new(config)?.columns().privileged, PRIVILEGED.len());
/// # Ok::<(), brasa_evacuation::EvacuationError>(())
/// ```
pub const PRIVILEGED: [&str; 5] = ["true_fire", "true_smoke", "true_sweeps_left_2", "true_people_3", "true_helpless_3"];

/// Names of the features of an edge.
///
/// ```
/// use brasa_evacuation::observe::{EDGE, edges};
/// use brasa_evacuation::{Layout, Timing};
///
/// let (_, _, features) = edges(&Layout::office(), &Timing::default())[0];
/// assert_eq!(features.len(), EDGE.len());
/// assert_eq!(EDGE[0], "length_10_m");
/// ```
pub const EDGE: [&str; 6] = ["length_10_m", "width_3_m", "slope_45_deg", "door", "fire_door", "time_10_s"];

/// Times are clipped to this number of minutes, which also stands for closed paths.
const LONGEST: f32 = 5.0;

/// Columns of a row, by kind.
///
/// ```
/// use brasa_evacuation::observe::Columns;
/// use brasa_evacuation::{Evacuation, EvacuationConfig};
///
/// let columns: Columns = Evacuation::new(EvacuationConfig::default())?.columns();
/// assert_eq!(columns.width(), 2 + columns.agent + columns.nodes * columns.node);
/// # Ok::<(), brasa_evacuation::EvacuationError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Columns {
    /// Nodes of the largest building.
    pub nodes: usize,
    /// Features of each node.
    pub node: usize,
    /// True features of each node.
    pub privileged: usize,
    /// Features of the responder.
    pub agent: usize,
}

impl Columns {
    pub(crate) fn new(nodes: usize, rules: &RulesConfig) -> Self {
        let privileged = if rules.knowledge.mode == Knowledge::Full { 0 } else { PRIVILEGED.len() };
        let local = if rules.knowledge.mode == Knowledge::Local { LOCAL.len() } else { 0 };
        Self { nodes, node: NODE.len() + local, privileged, agent: AGENT.len() }
    }

    /// Numbers of a row.
    pub fn width(&self) -> usize {
        2 + self.agent + self.nodes * (self.node + self.privileged)
    }

    pub(crate) fn space(&self, n_buildings: usize) -> Space {
        let mut columns = vec![
            ("building".to_owned(), 0.0, (n_buildings - 1) as f32),
            ("node".to_owned(), 0.0, (self.nodes - 1) as f32),
        ];
        columns.extend(AGENT.iter().map(|name| ((*name).to_owned(), 0.0, 1.0)));
        for node in 0..self.nodes {
            columns.extend(NODE.iter().chain(&LOCAL).take(self.node).map(|name| {
                let high = if name.starts_with("time_") { LONGEST } else { 1.0 };
                (format!("node_{node}_{name}"), 0.0, high)
            }));
        }
        for node in 0..self.nodes {
            columns.extend(PRIVILEGED[..self.privileged].iter().map(|name| (format!("node_{node}_{name}"), 0.0, 1.0)));
        }
        Space::named_box(columns)
    }
}

/// Features of every edge in both directions: source, destination, and the features of [`EDGE`].
///
/// ```
/// use brasa_evacuation::observe::edges;
/// use brasa_evacuation::{Layout, Timing};
///
/// let office = Layout::office();
/// let edges = edges(&office, &Timing::default());
/// // Both directions of each way.
/// assert_eq!(edges.len(), 2 * office.edges.len());
/// assert_eq!((edges[0].0, edges[0].1), (edges[1].1, edges[1].0));
/// ```
pub fn edges(layout: &Layout, timing: &Timing) -> Vec<(usize, usize, [f32; EDGE.len()])> {
    let both = layout.edges.iter().flat_map(|edge| {
        let figures = [
            edge.length_m / 10.0,
            edge.width_m / 3.0,
            edge.slope_deg / 45.0,
            f64::from(u8::from(edge.door)),
            f64::from(u8::from(edge.fire_door)),
            match timing.motion {
                crate::Motion::Hop => 0.5,
                crate::Motion::Metric => timing.travel(edge) / 10.0,
            },
        ];
        let figures = figures.map(|figure| figure as f32);
        [(edge.a, edge.b, figures), (edge.b, edge.a, figures)]
    });
    both.collect()
}

/// The constant features of a building's nodes.
#[derive(Debug)]
pub(crate) struct Template {
    nodes: Vec<f32>,
    /// Scratch: hops to the nearest known fire.
    hops: Vec<u8>,
    queue: Vec<u16>,
    /// Scratch: the true record of every node.
    truth: Vec<Record>,
}

impl Template {
    pub fn new(building: &Building) -> Self {
        let minutes = minutes_per_unit(&building.timing);
        let mut nodes = vec![0.0; building.n_nodes() * NODE.len()];
        for (node, figures) in building.layout.nodes.iter().zip(nodes.chunks_exact_mut(NODE.len())) {
            let kind = match node.kind {
                NodeKind::Room => 0,
                NodeKind::Hall => 1,
                NodeKind::Stair => 2,
                NodeKind::Exit => 3,
                NodeKind::Door => 4,
            };
            figures[kind] = 1.0;
            figures[5] = (node.area_m2 / 50.0).min(1.0) as f32;
            figures[22] = f32::from(u8::from(node.high_risk));
        }
        for (node, time) in building.exit_times.iter().enumerate() {
            nodes[node * NODE.len() + 21] = ((time * minutes) as f32).min(LONGEST);
        }
        Self {
            nodes,
            hops: vec![0; building.n_nodes()],
            queue: Vec::new(),
            truth: vec![Record::default(); building.n_nodes()],
        }
    }

    /// Writes the row of the deciding responder.
    pub fn write(&mut self, world: &World, columns: &Columns, row: &mut [f32]) {
        let r = world.turn();
        row.fill(0.0);
        let (building, state) = (world.building(), &world.state);
        let (head, rest) = row.split_at_mut(2 + columns.agent);
        let (nodes, privileged) = rest.split_at_mut(columns.nodes * columns.node);
        head[0] = state.building as f32;
        let (own, belief) = (&state.crew[r], world.belief(r));
        let rules = &world.rules;
        let dt = rules.timing.tick_secs;
        let secs = |ticks: u32| f64::from(ticks) * dt;
        let n_crew = state.crew.len();
        let n_active = state.crew.iter().filter(|other| !other.is_down()).count();
        let silence = (0..n_crew).filter(|other| *other != r).map(|other| state.tick + 1 - belief.heard[other]).max();
        head[1] = own.heading() as f32;
        let figures = [
            f64::from(own.health) / 100.0,
            state.crew.iter().filter(|other| other.is_free()).count() as f64 / MAX_RESPONDERS as f64,
            f64::from(state.tick) / building.bound_ticks(n_crew) / 4.0,
            f64::from(own.escorting) / rules.crew.capacity as f64,
            match rules.knowledge.mode {
                Knowledge::Local => secs(silence.unwrap_or(0)) / 60.0,
                Knowledge::Full | Knowledge::Shared => 0.0,
            },
            n_crew as f64 / MAX_RESPONDERS as f64,
            f64::from(u8::from(!own.is_down())),
            (n_active - usize::from(!own.is_down())) as f64 / MAX_RESPONDERS as f64,
        ];
        head[2..].iter_mut().zip(figures).for_each(|(slot, figure)| *slot = figure.clamp(0.0, 1.0) as f32);

        let minutes = minutes_per_unit(&rules.timing) as f32;
        let time = |time: f32| (time * minutes).min(LONGEST);
        self.count_hops(world, r);
        let times = world.times(r);
        let templates = self.nodes.chunks_exact(NODE.len());
        for (node, (figures, constant)) in nodes.chunks_exact_mut(columns.node).zip(templates).enumerate() {
            figures[..NODE.len()].copy_from_slice(constant);
            let record = &belief.records[node];
            if building.layout.nodes[node].kind == NodeKind::Room {
                let left = world.known_sweeps_left(r, node);
                let mine = left > 0 && record.swept_by & (1 << r) == 0;
                figures[6] = f32::from(u8::from(mine));
                figures[7] = (left - u32::from(mine)) as f32 / 2.0;
                figures[8] = f32::from(u8::from(left == 0));
            }
            figures[9] = match record.seen {
                0 => 1.0,
                seen => (secs(state.tick + 1 - seen) / 60.0).min(1.0) as f32,
            };
            figures[10] = record.fire;
            figures[11] = record.smoke;
            figures[12] = f32::from(self.hops[node].min(10)) / 10.0;
            for (slot, present) in figures[13..16].iter_mut().zip(record.present) {
                *slot = f32::from(present.min(3)) / 3.0;
            }
            figures[16] = f32::from(record.health) / 100.0;
            figures[20] = time(times[node]);
            let others = (0..n_crew).filter(|other| *other != r && !state.crew[*other].is_down());
            let distance = |from: usize| building.topology.distance(from, node) as f32;
            let others = others.map(|other| (other, distance(belief.places[other] as usize)));
            let nearest = others.clone().map(|(_, distance)| distance).reduce(f32::min);
            figures[23] = time(nearest.unwrap_or(f32::INFINITY));
            if let [nearer] = &mut figures[NODE.len()..] {
                let mine = distance(own.heading());
                let n_nearer =
                    others.filter(|(other, theirs)| *theirs < mine || (*theirs == mine && *other < r)).count();
                *nearer = (n_nearer as f32 / 3.0).min(1.0);
            }
        }
        nodes[own.heading() * columns.node + 17] = 1.0;
        for other in (0..n_crew).filter(|other| *other != r && !state.crew[*other].is_down()) {
            let here = &mut nodes[belief.places[other] as usize * columns.node + 18];
            *here = (*here + 0.5).min(1.0);
            if let Some(claim) = nodes.get_mut(belief.claims[other] as usize * columns.node + 19) {
                *claim = 1.0;
            }
        }
        if columns.privileged > 0 {
            world.census(&mut self.truth);
            for ((node, record), figures) in
                self.truth.iter().enumerate().zip(privileged.chunks_exact_mut(columns.privileged))
            {
                let [people, helpless] =
                    [record.people(), u32::from(record.helpless)].map(|n| (n as f32 / 3.0).min(1.0));
                let sweeps = (world.sweeps_left(node) as f32 / 2.0).min(1.0);
                figures.copy_from_slice(&[record.fire, record.smoke, sweeps, people, helpless]);
            }
        }
    }

    /// Hops from each node to the nearest fire that `r` knows, at most 10.
    fn count_hops(&mut self, world: &World, r: usize) {
        self.hops.fill(10);
        self.queue.clear();
        for (node, record) in world.belief(r).records.iter().enumerate() {
            if record.fire > 0.0 {
                self.hops[node] = 0;
                self.queue.push(node as u16);
            }
        }
        let mut next = 0;
        while next < self.queue.len() {
            let node = self.queue[next] as usize;
            next += 1;
            for (neighbor, _) in world.building().topology.neighbors(node) {
                if self.hops[neighbor] > self.hops[node] + 1 {
                    self.hops[neighbor] = self.hops[node] + 1;
                    self.queue.push(neighbor as u16);
                }
            }
        }
    }
}

/// Minutes in the unit of [`Timing::travel`].
fn minutes_per_unit(timing: &Timing) -> f64 {
    match timing.motion {
        crate::Motion::Hop => timing.tick_secs / 60.0,
        crate::Motion::Metric => 1.0 / 60.0,
    }
}
