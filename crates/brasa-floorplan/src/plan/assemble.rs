//! A graph from outlines and openings.

use std::collections::{BTreeMap, HashMap, HashSet};

use geo::{BoundingRect, Distance, Euclidean, Length, LineString, Point, Polygon, Rect};

use super::shape;
use super::{MOST_PEOPLE, MOST_PLACES, plan_error};
use crate::builder::Builder;
use crate::outline::corners;
use crate::{FloorPlanError, Layout, Mobility, NodeKind};

/// Largest distance of an opening from its outline, in m, because of the thickness of walls.
const TOLERANCE_M: f64 = 0.3;
/// Length of the way from the door into a room, in m; the search covers the rest.
const INTO_ROOM_M: f64 = 1.0;
/// Smallest length of a way, in m.
const LEAST_WAY_M: f64 = 0.5;
/// Smallest width of an opening, in m.
const LEAST_WIDTH_M: f64 = 0.3;
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
    /// Checked by [`shape::outline`].
    pub(super) outline: Polygon,
    /// Without its holes.
    pub(super) area_m2: f64,
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
    pub(super) line: LineString,
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
    let boxes: Vec<Option<Rect>> = areas.iter().map(|area| area.outline.bounding_rect()).collect();
    let mut plan = Builder::new(name);
    let mut names = Names::default();
    for area in &areas {
        let name = names.unique(&area.name, &area.id);
        let node = plan.node(name, area.kind, area.floor, area.area_m2, shape::longest_side(&area.outline));
        plan.at(node).high_risk = area.high_risk;
        plan.at(node).polygon = Some(corners(&area.outline));
    }
    let mut exits: Vec<(usize, bool)> =
        (0..areas.len()).filter(|n| areas[*n].kind == NodeKind::Exit).map(|n| (n, false)).collect();
    let mut joined: HashMap<(usize, usize), usize> = HashMap::new();
    for opening in &openings {
        let width_m = Euclidean.length(&opening.line);
        if width_m < LEAST_WIDTH_M {
            return Err(plan_error(
                origin,
                format!("opening `{}` is {width_m:.2} m wide and needs {LEAST_WIDTH_M}", opening.id),
            ));
        }
        let touched = touched(origin, &areas, &boxes, opening)?;
        let middle = shape::point_at(&opening.line, 0.5);
        let way = |area: usize| match areas[area].kind {
            NodeKind::Room => INTO_ROOM_M,
            _ => Euclidean.distance(shape::middle(&areas[area].outline), middle),
        };
        match touched[..] {
            [a, b] if !opening.is_exit => {
                let length_m = (way(a) + way(b)).max(LEAST_WAY_M);
                let key = (a.min(b), a.max(b));
                if let Some(edge) = joined.get(&key) {
                    // A second opening between the same places: the shorter length is used, and the widths are added.
                    let edge = plan.edge_at(*edge);
                    edge.length_m = edge.length_m.min(length_m);
                    edge.width_m += width_m;
                    edge.door &= opening.door;
                    edge.fire_door &= opening.fire_door;
                    continue;
                }
                let edge = plan.passage(a, b, length_m, width_m);
                (edge.door, edge.fire_door) = (opening.door, opening.fire_door);
                joined.insert(key, plan.n_edges() - 1);
            }
            _ => {
                let wanted = opening.name.clone().unwrap_or_else(|| format!("EXIT_{}", exits.len()));
                let name = names.unique(&wanted, &opening.id);
                let exit = plan.node(name, NodeKind::Exit, opening.floor, OUTSIDE.0, OUTSIDE.1);
                for area in touched {
                    let edge = plan.passage(area, exit, way(area).max(LEAST_WAY_M), width_m);
                    (edge.door, edge.fire_door) = (opening.door, opening.fire_door);
                }
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

/// The one or two areas that an opening leads into.
fn touched(
    origin: &str,
    areas: &[Area],
    boxes: &[Option<Rect>],
    opening: &Opening,
) -> Result<Vec<usize>, FloorPlanError> {
    let middle = shape::point_at(&opening.line, 0.5);
    // What is farther from the box around an outline than from the outline need not be measured.
    let is_near = |area: usize| {
        boxes[area].is_some_and(|around| {
            let (low, high) = (around.min(), around.max());
            let is_within = |x: f64, low: f64, high: f64| x >= low - 2.0 * TOLERANCE_M && x <= high + 2.0 * TOLERANCE_M;
            is_within(middle.x(), low.x, high.x) && is_within(middle.y(), low.y, high.y)
        })
    };
    // An opening lies along the wall, so all of it is near; one that ends at a wall is not.
    let apart = |area: &Area| {
        [0.25, 0.5, 0.75]
            .map(|share| Euclidean.distance(&shape::point_at(&opening.line, share), area.outline.exterior()))
            .into_iter()
            .fold(0.0, f64::max)
    };
    // In whole micrometers, so that ties are decided by the order of the plan and not by rounding.
    let micrometers = |meters: f64| (meters * 1e6).round() as u64;
    let mut near: Vec<(u64, usize)> = areas
        .iter()
        .enumerate()
        .filter(|(n, area)| area.floor == opening.floor && is_near(*n))
        .map(|(n, area)| (micrometers(apart(area)), n))
        .filter(|(apart, _)| *apart <= micrometers(TOLERANCE_M))
        .collect();
    near.sort_unstable();
    match near.len() {
        0 => Err(plan_error(
            origin,
            format!("opening `{}` touches no place of floor {} within {TOLERANCE_M} m", opening.id, opening.floor),
        )),
        1 | 2 => Ok(near.into_iter().map(|(_, area)| area).collect()),
        _ if near[2].0 > near[1].0 + 1 => Ok(near[..2].iter().map(|(_, area)| *area).collect()),
        _ => {
            let ids: Vec<String> = near.iter().map(|(_, area)| format!("`{}`", areas[*area].id)).collect();
            Err(plan_error(
                origin,
                format!("opening `{}` touches more than two places: {}", opening.id, ids.join(", ")),
            ))
        }
    }
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
                let (lower, upper) = (areas[*below].area_m2, areas[*above].area_m2);
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
