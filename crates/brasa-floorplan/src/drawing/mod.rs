//! A building as it is drawn: where places lie on their floor, their outlines, and where ways lead through walls.
//!
//! Places with an outline keep it. A floor without any is drawn as its ways suggest: as a corridor with rooms on both
//! sides, as aisles with rooms between them, or, where it is neither, so that distances come close to numbers of hops.
//! Nothing is drawn at random and nothing is computed that machines round differently.

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
use crate::{Graph, Layout, NodeKind};

/// A building on paper: coordinates in m, the second one upwards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Drawing {
    /// The floors, from below.
    pub floors: Vec<FloorDrawing>,
    /// `[n_nodes]`: the places.
    pub places: Vec<PlaceDrawing>,
    /// `[n_edges]`: the ways.
    pub ways: Vec<WayDrawing>,
}

/// A floor on paper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FloorDrawing {
    /// Its number, 0 for the ground floor.
    pub floor: i32,
    /// Whether outlines come from a plan.
    pub from_plan: bool,
    /// The corner with the least coordinates of the upright box around it.
    pub low: Point,
    /// The corner with the greatest.
    pub high: Point,
}

/// A place on paper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlaceDrawing {
    /// Its floor, an index of [`Drawing::floors`].
    pub floor: usize,
    /// Where who is there stands.
    pub center: Point,
    /// Its corners, the first not repeated; none for a door between two outlines.
    pub outline: Vec<Point>,
}

/// A way on paper: half of it belongs to either end, so that it can lead from floor to floor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WayDrawing {
    /// From the center of [`Edge::a`](crate::Edge::a) to its middle.
    pub from: Vec<Point>,
    /// From its middle to the center of [`Edge::b`](crate::Edge::b).
    pub to: Vec<Point>,
    /// The gap in the wall through which it leads, where two places share one.
    pub opening: Option<[Point; 2]>,
    /// The line to draw between two places that share no wall, on one floor.
    pub link: Option<[Point; 2]>,
}

/// Where a place lies.
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

/// The places of one floor as a graph of their own.
struct Floor<'a> {
    layout: &'a Layout,
    /// Indices of [`Layout::nodes`]; everything else here counts places of this floor.
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

    /// Hops from `source` to every place over the places that `open` lets through; infinite where no way leads.
    fn hops(&self, source: usize, open: impl Fn(usize) -> bool) -> Vec<f64> {
        let mut hops = vec![f64::INFINITY; self.len()];
        self.graph.field(&[source], |_, place| if open(place) { 1.0 } else { f64::INFINITY }, &mut hops);
        hops
    }

    /// The outline of a place in its plan, if that is one.
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
    /// The building as it is drawn.
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
                true => level_way(a, b, edge.width_m),
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

/// A way between places of one floor.
fn level_way(a: &Shape, b: &Shape, width_m: f64) -> WayDrawing {
    if let Some(opening) = geometry::opening(&a.outline, &b.outline, width_m) {
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

/// Where stairs begin at a place: those up to the right of its center, those down to the left.
fn stairs(place: &Shape, up: bool) -> Point {
    let (low, high) = geometry::bounds(place.points());
    let aside = (0.25 * (high[0] - low[0])).min(1.5);
    let point = [place.center[0] + if up { aside } else { -aside }, place.center[1]];
    if geometry::is_inside(&place.outline, point) { point } else { place.center }
}
