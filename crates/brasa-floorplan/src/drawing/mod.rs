//! The drawing of a building: positions and outlines of places, and openings of ways in walls.
//!
//! Places with an outline keep it. A floor without outlines is drawn from its graph: as a corridor with rooms on both
//! sides, as aisles with rooms between them, or otherwise so that distances approximate numbers of hops.
//! The result is deterministic and the same on every machine.

mod aisles;
mod beside;
mod corridor;
mod geometry;
mod stress;
#[cfg(test)]
mod tests;

use geo::{Area, Polygon};
use serde::{Deserialize, Serialize};

use self::geometry::Point;
use crate::outline::{corners, polygon};
use crate::{Edge, Graph, Layout, NodeKind};

/// The drawing of a building, with coordinates in m; the second coordinate increases upwards.
///
/// ```
/// use brasa_floorplan::{Drawing, Layout};
///
/// let office = Layout::office();
/// let drawing: Drawing = office.drawing();
/// assert_eq!((drawing.places.len(), drawing.ways.len()), (office.nodes.len(), office.edges.len()));
/// // A building always has one drawing.
/// assert_eq!(office.drawing(), drawing);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Drawing {
    /// The floors, from the lowest.
    pub floors: Vec<FloorDrawing>,
    /// `[n_nodes]`: the places.
    pub places: Vec<PlaceDrawing>,
    /// `[n_edges]`: the ways.
    pub ways: Vec<WayDrawing>,
}

/// The drawing of a floor.
///
/// ```
/// use brasa_floorplan::{FloorDrawing, Layout};
///
/// let drawing = Layout::office().drawing();
/// let FloorDrawing { floor, from_plan, low, high } = &drawing.floors[0];
/// // The reference building has no outlines, so the drawing is computed from its graph.
/// assert_eq!((*floor, *from_plan), (0, false));
/// assert!(low[0] < high[0] && low[1] < high[1]);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FloorDrawing {
    /// Its number, 0 for the ground floor.
    pub floor: i32,
    /// Whether outlines are from a plan.
    pub from_plan: bool,
    /// The lower corner of its axis-aligned bounding box.
    pub low: Point,
    /// The upper corner of its bounding box.
    pub high: Point,
}

/// The drawing of a place.
///
/// ```
/// use brasa_floorplan::{Layout, PlaceDrawing};
///
/// let shop = "Shop: POLYGON ((0 0, 4 0, 4 3, 0 3, 0 0))\nexit: LINESTRING (1 0, 2 0)";
/// let drawing = Layout::from_wkt("shop", shop, "here")?.drawing();
/// let PlaceDrawing { floor, outline, .. } = &drawing.places[0];
/// assert_eq!((*floor, outline.len()), (0, 4));
/// # Ok::<(), brasa_floorplan::FloorPlanError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlaceDrawing {
    /// Its floor, an index into [`Drawing::floors`].
    pub floor: usize,
    /// Position of people at the place.
    pub center: Point,
    /// Its corners, the first one not repeated; empty for a door between two outlines.
    pub outline: Vec<Point>,
}

/// The drawing of a way in two halves, one per end, because it may connect two floors.
///
/// ```
/// use brasa_floorplan::{Layout, WayDrawing};
///
/// let shop = "Shop: POLYGON ((0 0, 4 0, 4 3, 0 3, 0 0))\nexit: LINESTRING (1 0, 2 0)";
/// let drawing = Layout::from_wkt("shop", shop, "here")?.drawing();
/// let way: &WayDrawing = &drawing.ways[0];
/// // The door is 1 m wide.
/// let [a, b] = way.opening.expect("the plan has it");
/// assert_eq!((b[0] - a[0]).abs(), 1.0);
/// # Ok::<(), brasa_floorplan::FloorPlanError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WayDrawing {
    /// From the center of [`Edge::a`](crate::Edge::a) to its middle.
    pub from: Vec<Point>,
    /// From its middle to the center of [`Edge::b`](crate::Edge::b).
    pub to: Vec<Point>,
    /// The opening in the wall, if the plan has it or two places share a wall.
    pub opening: Option<[Point; 2]>,
    /// The line between two places on one floor without a shared wall.
    pub link: Option<[Point; 2]>,
}

/// The shape of a place.
#[derive(Debug, Clone, PartialEq)]
struct Shape {
    center: Point,
    /// Empty for a door between two outlines.
    outline: Polygon,
}

impl Shape {
    fn of(outline: Polygon) -> Self {
        Self { center: geometry::middle(&outline), outline }
    }

    fn upright(low: Point, high: Point) -> Self {
        Self::of(geometry::upright(low, high))
    }

    /// Corners and center.
    fn points(&self) -> impl Iterator<Item = Point> {
        corners(&self.outline).into_iter().chain([self.center])
    }
}

/// The graph of the places of one floor.
struct Floor<'a> {
    layout: &'a Layout,
    /// Indices into [`Layout::nodes`]; all other indices here are those of places of this floor.
    nodes: Vec<usize>,
    graph: Graph,
}

impl<'a> Floor<'a> {
    fn new(layout: &'a Layout, floor: i32) -> Self {
        let nodes: Vec<usize> = (0..layout.nodes.len()).filter(|node| layout.nodes[*node].floor == floor).collect();
        let edges = layout.edges.iter().filter_map(|edge| {
            let place = |node| nodes.binary_search(&node).ok();
            Some((place(edge.a)?, place(edge.b)?))
        });
        Self { layout, graph: Graph::new(nodes.len(), edges), nodes }
    }

    fn len(&self) -> usize {
        self.nodes.len()
    }

    fn node(&self, place: usize) -> &crate::Node {
        &self.layout.nodes[self.nodes[place]]
    }

    fn kind(&self, place: usize) -> NodeKind {
        self.node(place).kind
    }

    fn of_kind(&self, kind: NodeKind) -> Vec<usize> {
        (0..self.len()).filter(|place| self.kind(*place) == kind).collect()
    }

    /// Neighbors of a place, ascending.
    fn neighbors(&self, place: usize) -> impl ExactSizeIterator<Item = usize> + '_ {
        self.graph.neighbors(place).map(|(other, _)| other)
    }

    /// Openings of ways to a place in its plan.
    fn openings(&self, place: usize) -> impl Iterator<Item = [Point; 2]> + '_ {
        let node = self.nodes[place];
        self.layout.edges.iter().filter(move |edge| edge.a == node || edge.b == node).filter_map(|edge| edge.opening)
    }

    /// Hops from `source` to every place over places with `open`; infinite if unreachable.
    fn hops(&self, source: usize, open: impl Fn(usize) -> bool) -> Vec<f64> {
        let mut hops = vec![f64::INFINITY; self.len()];
        self.graph.field(&[source], |_, place| if open(place) { 1.0 } else { f64::INFINITY }, &mut hops);
        hops
    }

    /// The outline of a place in its plan, if valid.
    fn planned(&self, place: usize) -> Option<Shape> {
        let outline = self.node(place).polygon.as_ref()?;
        if !outline.iter().flatten().all(|x| x.is_finite()) {
            return None;
        }
        let outline = polygon(outline.iter().copied());
        (outline.unsigned_area() > geometry::LEAST_AREA_M2).then(|| Shape::of(outline))
    }

    fn shapes(&self) -> (Vec<Shape>, bool) {
        let planned: Vec<Option<Shape>> = (0..self.len()).map(|place| self.planned(place)).collect();
        if planned.iter().any(Option::is_some) {
            return (beside::complete(self, planned), true);
        }
        let drawn = corridor::draw(self).or_else(|| aisles::draw(self)).filter(|shapes| !geometry::any_overlap(shapes));
        (drawn.unwrap_or_else(|| stress::draw(self)), false)
    }
}

impl Layout {
    /// The drawing of the building.
    pub fn drawing(&self) -> Drawing {
        let mut numbers: Vec<i32> = self.nodes.iter().map(|node| node.floor).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut places: Vec<Option<(usize, Shape)>> = vec![None; self.nodes.len()];
        let mut floors = Vec::new();
        for (index, number) in numbers.into_iter().enumerate() {
            let floor = Floor::new(self, number);
            let (shapes, from_plan) = floor.shapes();
            let (low, high) = geometry::bounds(shapes.iter().flat_map(Shape::points));
            floors.push(FloorDrawing { floor: number, from_plan, low, high });
            for (node, shape) in floor.nodes.iter().zip(shapes) {
                places[*node] = Some((index, shape));
            }
        }
        // Every node is on one of the floors.
        let places: Vec<(usize, Shape)> = places.into_iter().flatten().collect();
        let ways = self.edges.iter().map(|edge| {
            let ((floor_a, a), (floor_b, b)) = (&places[edge.a], &places[edge.b]);
            match floor_a == floor_b {
                true => level_way(a, b, edge),
                false => {
                    let up = floor_a < floor_b;
                    WayDrawing {
                        from: vec![a.center, stairs(a, up)],
                        to: vec![stairs(b, !up), b.center],
                        opening: None,
                        link: None,
                    }
                }
            }
        });
        let ways = ways.collect();
        let place = |(floor, shape): (usize, Shape)| PlaceDrawing {
            floor,
            center: shape.center,
            outline: corners(&shape.outline),
        };
        Drawing { ways, floors, places: places.into_iter().map(place).collect() }
    }
}

/// A way between places of one floor, through the opening of the plan or else in the middle of their wall.
fn level_way(a: &Shape, b: &Shape, edge: &Edge) -> WayDrawing {
    if let Some(opening) = edge.opening.or_else(|| geometry::opening(&a.outline, &b.outline, edge.width_m)) {
        let middle = geometry::between(opening[0], opening[1], 0.5);
        let from = geometry::way_inside(&a.outline, a.center, middle);
        let to = geometry::way_inside(&b.outline, b.center, middle).into_iter().rev().collect();
        return WayDrawing { from, to, opening: Some(opening), link: None };
    }
    let leaves = geometry::leaves(&a.outline, a.center, b.center);
    let enters = geometry::leaves(&b.outline, b.center, a.center);
    let middle = geometry::between(leaves, enters, 0.5);
    WayDrawing { from: vec![a.center, middle], to: vec![middle, b.center], opening: None, link: Some([leaves, enters]) }
}

/// Start of stairs at a place: upward stairs to the right of its center, downward stairs to the left.
fn stairs(place: &Shape, up: bool) -> Point {
    let (low, high) = geometry::bounds(place.points());
    let aside = (0.25 * (high[0] - low[0])).min(1.5);
    let point = [place.center[0] + if up { aside } else { -aside }, place.center[1]];
    if geometry::is_inside(&place.outline, point) { point } else { place.center }
}
