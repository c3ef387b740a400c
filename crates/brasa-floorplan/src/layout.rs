//! A building as a graph of rooms, halls, stairs and exits.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::error::{is_command, printable};
use crate::{FloorPlanError, Graph};

/// Longest and widest way and place of a building, in m.
const MOST_M: f64 = 1e6;
/// Largest place, in m2.
const MOST_M2: f64 = 1e9;
/// Narrowest way that people pass, in m.
pub(crate) const LEAST_WIDTH_M: f64 = 0.3;
/// Widest way, in m, that the middle one of a building may be: a door of 90 or 900 is given in centimeters or millimeters.
const MOST_MEDIAN_WIDTH_M: f64 = 20.0;
/// Highest and deepest floor.
const MOST_FLOOR: u32 = 1000;
/// Farthest corner of an outline from the origin, in m.
const MOST_OUTLINE_M: f64 = 1e8;

/// A building with its people and the entries of responders.
///
/// ```
/// use brasa_floorplan::{Edge, Layout, Node, NodeKind};
///
/// let node = |name: &str, kind| Node {
///     name: name.into(), kind, area_m2: 12.0, length_m: 4.0, floor: 0, high_risk: false, polygon: None,
/// };
/// let kiosk = Layout {
///     name: "kiosk".into(),
///     nodes: vec![node("shop", NodeKind::Room), node("street", NodeKind::Exit)],
///     edges: vec![Edge::new(0, 1, 3.0, 0.9)],
///     occupants: Vec::new(),
///     entries: vec![1],
/// };
/// kiosk.validate()?;
/// assert_eq!((kiosk.node("street"), kiosk.rooms().count()), (Some(1), 1));
/// # Ok::<(), brasa_floorplan::FloorPlanError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Layout {
    /// Name of the building.
    pub name: String,
    /// Rooms, halls, stairs, doors and exits, identified by index.
    pub nodes: Vec<Node>,
    /// Ways between nodes, undirected and listed once.
    pub edges: Vec<Edge>,
    /// People inside at the start.
    pub occupants: Vec<Occupant>,
    /// Start nodes of responders, in the order of responders; a larger team repeats them cyclically.
    pub entries: Vec<usize>,
}

/// A place of a building.
///
/// ```
/// use brasa_floorplan::{Layout, Node, NodeKind};
///
/// let office = Layout::office();
/// let rooms: Vec<&Node> = office.rooms().map(|index| &office.nodes[index]).collect();
/// assert!(rooms.iter().all(|node| node.kind == NodeKind::Room && node.area_m2 > 0.0));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Name, unique in the building.
    pub name: String,
    /// Kind of place.
    pub kind: NodeKind,
    /// Floor area in m2; the search time is proportional to it.
    pub area_m2: f64,
    /// Characteristic length in m.
    pub length_m: f64,
    /// Floor, 0 for the ground floor.
    pub floor: i32,
    /// Whether it must be swept by two different responders, if sweeps are by risk.
    #[serde(default)]
    pub high_risk: bool,
    /// Outline in m, if the plan has one; the first corner is not repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polygon: Option<Vec<[f64; 2]>>,
}

/// The kind of a place. Only rooms must be swept.
///
/// ```
/// use brasa_floorplan::{Layout, NodeKind};
///
/// let office = Layout::office();
/// assert!(office.of_kind(NodeKind::Exit).eq(office.exits()));
/// assert_eq!(serde_json::to_string(&NodeKind::Stair)?, "\"stair\"");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeKind {
    /// A room, which must be swept.
    Room,
    /// A hall or corridor.
    Hall,
    /// Stairs between floors.
    Stair,
    /// An exit to the outside, where people are safe.
    Exit,
    /// An opening that is a node.
    Door,
}

/// A way between two places.
///
/// ```
/// use brasa_floorplan::Edge;
///
/// // A way of 3 m over stairs, behind a fire door.
/// let stairs = Edge { slope_deg: 35.0, door: true, fire_door: true, ..Edge::new(4, 7, 3.0, 1.2) };
/// assert_eq!((stairs.length_m, stairs.width_m), (3.0, 1.2));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Edge {
    /// One end, an index into [`Layout::nodes`].
    pub a: usize,
    /// The other end.
    pub b: usize,
    /// Length in m.
    pub length_m: f64,
    /// Clear width in m; it limits the flow of people.
    pub width_m: f64,
    /// Slope in degrees; 0 on the level, about 35 on stairs.
    #[serde(default)]
    pub slope_deg: f64,
    /// Whether it has a door, which reduces smoke exchange and blocks sight.
    #[serde(default)]
    pub door: bool,
    /// Whether the door is a fire door.
    #[serde(default)]
    pub fire_door: bool,
    /// Ends of the opening in the wall in m, if the plan has outlines; drawings show it there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opening: Option<[[f64; 2]; 2]>,
}

impl Edge {
    /// An open way on the level between two nodes.
    pub fn new(a: usize, b: usize, length_m: f64, width_m: f64) -> Self {
        Self { a, b, length_m, width_m, slope_deg: 0.0, door: false, fire_door: false, opening: None }
    }
}

/// A person inside.
///
/// ```
/// use brasa_floorplan::{Layout, Mobility, Occupant};
///
/// let mut office = Layout::office();
/// let room = office.rooms().next().expect("a building has rooms");
/// office.occupants.push(Occupant { node: room, mobility: Mobility::Child, health: 100.0 });
/// office.validate()?;
/// office.occupants[0].health = 0.0;
/// assert!(office.validate().is_err());
/// # Ok::<(), brasa_floorplan::FloorPlanError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Occupant {
    /// Position, an index into [`Layout::nodes`].
    pub node: usize,
    /// Mobility of the person.
    pub mobility: Mobility,
    /// Initial health in (0, 100].
    #[serde(default = "full_health")]
    pub health: f64,
}

fn full_health() -> f64 {
    100.0
}

/// Mobility of a person.
///
/// ```
/// use brasa_floorplan::{Layout, Mobility};
///
/// // Children per building; they must be led.
/// let children = |layout: Layout| layout.occupants.iter().filter(|one| one.mobility == Mobility::Child).count();
/// assert!(children(Layout::daycare()) > children(Layout::office()));
/// assert_eq!(Mobility::ALL[Mobility::Limited.index()], Mobility::Limited);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mobility {
    /// Walks out alone once aware.
    Adult,
    /// Must be led.
    Child,
    /// Needs help to walk.
    Limited,
}

impl Mobility {
    /// All of them, in the order of observations.
    pub const ALL: [Mobility; 3] = [Mobility::Adult, Mobility::Child, Mobility::Limited];

    /// Index in [`Mobility::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }
}

impl Layout {
    /// Index of the node `name`.
    pub fn node(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.name == name)
    }

    /// Indices of all nodes of a kind, in order.
    pub fn of_kind(&self, kind: NodeKind) -> impl Iterator<Item = usize> + '_ {
        self.nodes.iter().enumerate().filter(move |(_, node)| node.kind == kind).map(|(index, _)| index)
    }

    /// Indices of the rooms.
    pub fn rooms(&self) -> impl Iterator<Item = usize> + '_ {
        self.of_kind(NodeKind::Room)
    }

    /// Indices of the exits.
    pub fn exits(&self) -> impl Iterator<Item = usize> + '_ {
        self.of_kind(NodeKind::Exit)
    }

    /// Start nodes of the first `n` responders.
    pub fn starts(&self, n: usize) -> Vec<usize> {
        self.entries.iter().copied().cycle().take(n).collect()
    }

    /// Validates the building.
    ///
    /// # Errors
    /// [`FloorPlanError::Layout`] naming the node or edge: names must be unique and hold no control characters, floors, lengths,
    /// widths and areas must be those of buildings,
    /// edges between two different existing nodes and listed once, at least one exit, one room and one entry, every
    /// node reachable from an exit, every room and every person reachable from every entry, health in (0, 100].
    pub fn validate(&self) -> Result<(), FloorPlanError> {
        let fail =
            |reason: String| Err(FloorPlanError::Layout { layout: printable(&self.name), reason: printable(&reason) });
        if self.name.contains(is_command) {
            return fail("the name of the building must hold no control characters".into());
        }
        let mut names = HashSet::new();
        for node in &self.nodes {
            if node.name.contains(is_command) {
                return fail(format!("the name of node `{}` must hold no control characters", node.name));
            }
            if !names.insert(&node.name) {
                return fail(format!("two nodes are called `{}`", node.name));
            }
            for (field, value, most) in [("area_m2", node.area_m2, MOST_M2), ("length_m", node.length_m, MOST_M)] {
                if !(value > 0.0 && value <= most) {
                    let rule = if value > most { format!("at most {most:e}") } else { "positive".to_owned() };
                    return fail(format!("`{field}` of node `{}` must be {rule}, got {}", node.name, amount(value)));
                }
            }
            if node.floor.abs_diff(0) > MOST_FLOOR {
                let rule = format!("must be between -{MOST_FLOOR} and {MOST_FLOOR}");
                return fail(format!("`floor` of node `{}` {rule}, got {}", node.name, node.floor));
            }
            if let Some(reason) = far(node.polygon.iter().flatten().flatten()) {
                return fail(format!("`polygon` of node `{}` {reason}", node.name));
            }
        }
        for (kind, what) in [(NodeKind::Exit, "exit"), (NodeKind::Room, "room")] {
            if self.of_kind(kind).next().is_none() {
                return fail(format!("it has no {what}"));
            }
        }
        let mut seen: HashMap<(usize, usize), usize> = HashMap::new();
        for (index, edge) in self.edges.iter().enumerate() {
            let (a, b) = (edge.a, edge.b);
            if a >= self.nodes.len() || b >= self.nodes.len() {
                return fail(format!("edge {index} joins nodes {a} and {b}, but there are {}", self.nodes.len()));
            }
            let name = format!("`{}`-`{}`", self.nodes[a].name, self.nodes[b].name);
            if a == b {
                return fail(format!("edge {name} joins a node with itself"));
            }
            if seen.insert((a.min(b), a.max(b)), index).is_some() {
                return fail(format!("edge {name} is listed twice"));
            }
            for (field, value, least) in [("length_m", edge.length_m, 0.0), ("width_m", edge.width_m, LEAST_WIDTH_M)] {
                if !(value > 0.0 && value >= least && value <= MOST_M) {
                    let rule = match least {
                        _ if value > MOST_M => format!("at most {MOST_M:e}"),
                        0.0 => "positive".to_owned(),
                        least => format!("at least {least}"),
                    };
                    return fail(format!("`{field}` of edge {name} must be {rule}, got {}", amount(value)));
                }
            }
            if let Some(reason) = far(edge.opening.iter().flatten().flatten()) {
                return fail(format!("`opening` of edge {name} {reason}"));
            }
            if !(0.0..90.0).contains(&edge.slope_deg) {
                return fail(format!("`slope_deg` of edge {name} must be in [0, 90), got {}", edge.slope_deg));
            }
        }
        if let Err(reason) = check_widths(self.edges.iter().map(|edge| edge.width_m)) {
            return fail(reason);
        }
        if self.entries.is_empty() {
            return fail("it has no entry for responders".into());
        }
        if let Some(entry) = self.entries.iter().find(|entry| **entry >= self.nodes.len()) {
            return fail(format!("entry {entry} is no node: there are {}", self.nodes.len()));
        }
        for (index, occupant) in self.occupants.iter().enumerate() {
            if occupant.node >= self.nodes.len() {
                return fail(format!("occupant {index} stands at node {}, which does not exist", occupant.node));
            }
            if !(occupant.health > 0.0 && occupant.health <= 100.0) {
                return fail(format!("health of occupant {index} must be in (0, 100], got {}", occupant.health));
            }
        }
        let graph = self.graph();
        let exits: Vec<usize> = self.exits().collect();
        let cut_off = unreached(&graph, &exits);
        if !cut_off.is_empty() {
            return fail(format!("no way leads from an exit to {}", self.names(&cut_off)));
        }
        // Ways are walked in both directions, so who reaches all from one entry reaches all from each that is reached.
        let entry = self.entries[0];
        let mut is_needed: Vec<bool> = self.nodes.iter().map(|node| node.kind == NodeKind::Room).collect();
        self.occupants.iter().for_each(|occupant| is_needed[occupant.node] = true);
        self.entries.iter().for_each(|entry| is_needed[*entry] = true);
        let mut missed = unreached(&graph, &[entry]);
        missed.retain(|node| is_needed[*node]);
        if !missed.is_empty() {
            let entry = &self.nodes[entry].name;
            return fail(format!("no way leads from the entry `{entry}` to {}", self.names(&missed)));
        }
        Ok(())
    }

    /// Nodes that are not connected with an exit.
    pub fn cut_off(&self) -> Vec<usize> {
        unreached(&self.graph(), &self.exits().collect::<Vec<_>>())
    }

    /// The names of nodes, of many only the first.
    fn names(&self, nodes: &[usize]) -> String {
        let mut names: Vec<_> = nodes.iter().take(8).map(|node| format!("`{}`", self.nodes[*node].name)).collect();
        if nodes.len() > names.len() {
            names.push(format!("{} more", nodes.len() - names.len()));
        }
        names.join(", ")
    }
}

/// Refuses widths of which most are those of no door in m.
pub(crate) fn check_widths(widths: impl Iterator<Item = f64>) -> Result<(), String> {
    let mut widths: Vec<f64> = widths.collect();
    widths.sort_by(f64::total_cmp);
    match widths.get(widths.len() / 2) {
        Some(median) if *median > MOST_MEDIAN_WIDTH_M => Err(format!(
            "half of its openings are {} wide or more: lengths must be in m, not in centimeters or millimeters",
            amount(*median)
        )),
        _ => Ok(()),
    }
}

/// What is wrong with coordinates of which one is too far away.
fn far<'a>(mut coordinates: impl Iterator<Item = &'a f64>) -> Option<String> {
    let far = coordinates.find(|x| !(-MOST_OUTLINE_M..=MOST_OUTLINE_M).contains(*x))?;
    Some(format!("must be within {MOST_OUTLINE_M:e} m of the origin, got {}", amount(*far)))
}

/// A number without three hundred digits.
fn amount(x: f64) -> String {
    if x.abs() < 1e12 { format!("{x}") } else { format!("{x:e}") }
}

/// Nodes that no way joins with one of `sources`.
fn unreached(graph: &Graph, sources: &[usize]) -> Vec<usize> {
    let mut costs = vec![0.0_f32; graph.n_nodes()];
    graph.field(sources, |_, _| 1.0, &mut costs);
    (0..graph.n_nodes()).filter(|node| costs[*node].is_infinite()).collect()
}
