//! A graph from outlines and openings.

use std::collections::{BTreeMap, HashMap, HashSet};

use geo::{Area as _, Distance, Euclidean, Line, LineString, Point, Polygon};

use super::openings::{gaps, uncovered};
use super::shape;
use super::{MOST_PEOPLE, MOST_PLACES, plan_error};
use crate::builder::Builder;
use crate::layout::{LEAST_WIDTH_M, check_widths};
use crate::outline::corners;
use crate::{FloorPlanError, Layout, Mobility, NodeKind};

/// Length of the way from the door into a room, in m; the search covers the rest.
const INTO_ROOM_M: f64 = 1.0;
/// Smallest length of a way, in m.
const LEAST_WAY_M: f64 = 0.5;
/// Largest distance of the middles of stairs on neighboring floors that are joined, in m.
const SAME_PLACE_M: f64 = 0.5;
/// Default width of stairs, in m.
const STAIR_WIDTH_M: f64 = 1.2;
/// The place outside of an exit: area in m2 and length in m.
const OUTSIDE: (f64, f64) = (4.0, 2.0);

/// A room, hall, stair or exit area.
#[derive(Debug, Clone)]
pub(super) struct Area {
    /// Its name in the file.
    pub(super) id: String,
    pub(super) name: String,
    pub(super) kind: NodeKind,
    pub(super) floor: i32,
    /// With its holes, from [`shape::with_holes`].
    pub(super) outline: Polygon,
    pub(super) high_risk: bool,
    /// Adults, children, people of limited mobility.
    pub(super) people: [usize; 3],
}

/// A door or a passage.
#[derive(Debug, Clone)]
pub(super) struct Opening {
    /// Its name in the file.
    pub(super) id: String,
    pub(super) name: Option<String>,
    pub(super) floor: i32,
    /// Two points or more, or the only one of an opening that is a point.
    pub(super) line: LineString,
    /// Width in m of an opening that is a point.
    pub(super) width_m: Option<f64>,
    /// Whether it leads outside, whatever it touches.
    pub(super) is_exit: bool,
    /// Whether responders enter here, if it is an exit.
    pub(super) is_entry: bool,
    pub(super) door: bool,
    pub(super) fire_door: bool,
}

/// Assembles a building from areas and openings.
pub(super) fn assemble(
    origin: &str,
    name: &str,
    areas: Vec<Area>,
    openings: Vec<Opening>,
) -> Result<Layout, FloorPlanError> {
    if areas.is_empty() {
        return Err(plan_error(origin, "it has no places: no polygon is a room, hall, stair or exit"));
    }
    let n_people = areas.iter().flat_map(|area| area.people).sum::<usize>();
    for (what, n, most) in [
        ("polygons", areas.len(), MOST_PLACES),
        ("openings", openings.len(), MOST_PLACES),
        ("people", n_people, MOST_PEOPLE),
    ] {
        if n > most {
            return Err(plan_error(origin, format!("it must hold at most {most} {what}, got {n}")));
        }
    }
    let mut plan = Builder::new(name);
    let mut names = Names::default();
    for area in &areas {
        let name = names.unique(&area.name, &area.id);
        let area_m2 = area.outline.unsigned_area();
        let node = plan.node(name, area.kind, area.floor, area_m2, shape::longest_side(&area.outline));
        plan.at(node).high_risk = area.high_risk;
        plan.at(node).polygon = Some(corners(&area.outline));
    }
    let mut exits: Vec<(usize, bool)> =
        (0..areas.len()).filter(|n| areas[*n].kind == NodeKind::Exit).map(|n| (n, false)).collect();
    // The edge of two places, or the exits of one or two, with the openings so far.
    let mut joined: HashMap<[usize; 2], (usize, Vec<Line>)> = HashMap::new();
    let mut outside: HashMap<Vec<usize>, Vec<(usize, Line)>> = HashMap::new();
    let gaps = gaps(origin, &areas, &openings)?;
    check_widths(gaps.iter().map(|gap| gap.width_m)).map_err(|reason| plan_error(origin, reason))?;
    for (opening, gap) in openings.iter().zip(gaps) {
        let width_m = gap.width_m;
        if width_m < LEAST_WIDTH_M {
            let reason = format!("opening `{}` is {width_m:.2} m wide and needs {LEAST_WIDTH_M}", opening.id);
            return Err(plan_error(origin, reason));
        }
        let way = |area: usize| match areas[area].kind {
            NodeKind::Room => INTO_ROOM_M,
            _ => Euclidean.distance(shape::middle(&areas[area].outline), gap.middle),
        };
        let ends = Some([gap.chord.start.into(), gap.chord.end.into()]);
        match gap.areas[..] {
            // The other side of another opening.
            [] => {}
            [a, b] if !opening.is_exit => {
                let length_m = (way(a) + way(b)).max(LEAST_WAY_M);
                let (edge, lines) = joined.entry([a.min(b), a.max(b)]).or_insert_with(|| {
                    let edge = plan.passage(a, b, length_m, 0.0);
                    (edge.door, edge.fire_door, edge.opening) = (opening.door, opening.fire_door, ends);
                    (plan.n_edges() - 1, Vec::new())
                });
                // Of several openings between the same places, the shortest length is used, and the widths are added.
                let edge = plan.edge_at(*edge);
                edge.length_m = edge.length_m.min(length_m);
                edge.width_m += width_m * uncovered(&gap.chord, lines.iter());
                edge.door &= opening.door;
                edge.fire_door &= opening.fire_door;
                lines.push(gap.chord);
            }
            _ => {
                let before = outside.entry(gap.areas.clone()).or_default();
                let new = uncovered(&gap.chord, before.iter().map(|(_, line)| line));
                if new == 0.0 {
                    // Given twice: responders enter if one of the two says so.
                    let same = before.iter().filter(|(_, line)| uncovered(&gap.chord, [line]) < 1.0);
                    let nodes: Vec<usize> = same.map(|(node, _)| *node).collect();
                    exits.iter_mut().filter(|(node, _)| nodes.contains(node)).for_each(|(_, is_entry)| {
                        *is_entry |= opening.is_entry;
                    });
                    continue;
                }
                let wanted = opening.name.clone().unwrap_or_else(|| format!("EXIT_{}", exits.len()));
                let name = names.unique(&wanted, &opening.id);
                let exit = plan.node(name, NodeKind::Exit, opening.floor, OUTSIDE.0, OUTSIDE.1);
                // Two places share what is wide enough for both.
                let width_m = (width_m * new / gap.areas.len() as f64).max(LEAST_WIDTH_M);
                for area in &gap.areas {
                    let edge = plan.passage(*area, exit, way(*area).max(LEAST_WAY_M), width_m);
                    (edge.door, edge.fire_door, edge.opening) = (opening.door, opening.fire_door, ends);
                }
                before.push((exit, gap.chord));
                exits.push((exit, opening.is_entry));
            }
        }
    }
    join_stairs(&mut plan, &areas);
    for (node, area) in areas.iter().enumerate() {
        for (mobility, n) in Mobility::ALL.into_iter().zip(area.people) {
            (0..n).for_each(|_| plan.occupant(node, mobility, 100.0));
        }
    }
    if exits.is_empty() {
        let reason = "it has no exit: no opening touches one place only, and none is marked as an exit";
        return Err(plan_error(origin, reason));
    }
    let has_entry = exits.iter().any(|(_, is_entry)| *is_entry);
    let entries = exits.iter().filter(|(_, is_entry)| *is_entry || !has_entry).map(|(exit, _)| *exit).collect();
    check(origin, plan.finish(entries))
}

/// Joins stairs with those at the same position on the next floor.
fn join_stairs(plan: &mut Builder, areas: &[Area]) {
    let mut floors: BTreeMap<i32, Vec<(usize, Point)>> = BTreeMap::new();
    for (n, area) in areas.iter().enumerate() {
        let stairs = floors.entry(area.floor).or_default();
        if area.kind == NodeKind::Stair {
            stairs.push((n, shape::middle(&area.outline)));
        }
    }
    let floors: Vec<Vec<(usize, Point)>> = floors.into_values().collect();
    for pair in floors.windows(2) {
        for (below, here) in &pair[0] {
            for (above, there) in &pair[1] {
                let [lower, upper] = [below, above].map(|stair| areas[*stair].outline.unsigned_area());
                let is_alike = lower.min(upper) >= 0.8 * lower.max(upper);
                if is_alike && Euclidean.distance(*here, *there) <= SAME_PLACE_M {
                    plan.flight(*below, *above, STAIR_WIDTH_M);
                }
            }
        }
    }
}

/// A valid layout, or the error of its plan.
pub(super) fn check(origin: &str, layout: Layout) -> Result<Layout, FloorPlanError> {
    match layout.validate() {
        Ok(()) => Ok(layout),
        Err(FloorPlanError::Layout { reason, .. }) => Err(plan_error(origin, reason)),
        Err(other) => Err(other),
    }
}

/// Used names.
#[derive(Default)]
struct Names {
    used: HashSet<String>,
    /// The number that a name got last: to try them from 2 again takes ages where thousands have one name.
    numbers: HashMap<String, usize>,
}

impl Names {
    /// `name`, or if it is used, `name` with the id of the feature and then a number.
    fn unique(&mut self, name: &str, id: &str) -> String {
        let long = format!("{name} [{id}]");
        for candidate in [name, &long] {
            if self.used.insert(candidate.to_owned()) {
                return candidate.to_owned();
            }
        }
        let number = self.numbers.entry(long.clone()).or_insert(1);
        loop {
            *number += 1;
            let candidate = format!("{long} {number}");
            if self.used.insert(candidate.clone()) {
                return candidate;
            }
        }
    }
}
