//! Places without an outline on a floor with outlines: exits outside, doors in walls, other places nearby.

use super::geometry::{Point, between, bounds, distance, opening, overlap, upright};
use super::{Floor, Shape};
use crate::NodeKind;
use crate::outline::{corners, polygon};

/// Side of an exit, in m.
const EXIT_M: f64 = 1.8;
/// Side of other places, in m.
const OTHER_M: f64 = 1.4;
/// Candidate distances from the wall, in m.
const AWAY_M: [f64; 6] = [0.0, 0.6, 1.5, 3.0, 6.0, 12.0];
/// Candidate positions along a wall, nearest to its middle first.
const ALONG: [f64; 5] = [0.5, 0.3, 0.7, 0.12, 0.88];

/// Assigns shapes to places without one.
pub(super) fn complete(floor: &Floor<'_>, mut shapes: Vec<Option<Shape>>) -> Vec<Shape> {
    let (low, high) = bounds(shapes.iter().flatten().flat_map(|shape| corners(&shape.outline)));
    let center = between(low, high, 0.5);
    // Neighbors of drawn places first, so that chains of places without outline start there.
    while let Some(place) = next(floor, &shapes) {
        let known: Vec<&Shape> = floor.neighbors(place).filter_map(|other| shapes[other].as_ref()).collect();
        let shape = in_wall(floor, place, &known)
            .or_else(|| at_opening(floor, place, &known, &shapes))
            .or_else(|| outside(floor, place, &known, &shapes, center))
            .unwrap_or_else(|| apart(&shapes));
        shapes[place] = Some(shape);
    }
    shapes.into_iter().flatten().collect()
}

/// The next place: the one with the most drawn neighbors.
fn next(floor: &Floor<'_>, shapes: &[Option<Shape>]) -> Option<usize> {
    let known = |place: usize| floor.neighbors(place).filter(|other| shapes[*other].is_some()).count();
    (0..floor.len()).filter(|place| shapes[*place].is_none()).max_by_key(|place| (known(*place), floor.len() - place))
}

/// A door in the wall between two outlines: a point.
fn in_wall(floor: &Floor<'_>, place: usize, known: &[&Shape]) -> Option<Shape> {
    let (NodeKind::Door, [a, b]) = (floor.kind(place), known) else { return None };
    let [from, to] = opening(&a.outline, &b.outline, 1.0)?;
    Some(Shape { center: between(from, to, 0.5), outline: polygon([]) })
}

/// A square before the first opening of the plan that leads to a place, on the side away from its neighbors.
fn at_opening(floor: &Floor<'_>, place: usize, known: &[&Shape], shapes: &[Option<Shape>]) -> Option<Shape> {
    let [a, b] = floor.openings(place).next()?;
    let (middle, length) = (between(a, b, 0.5), distance(a, b));
    if length < 1e-6 {
        return None;
    }
    let normal = [(b[1] - a[1]) / length, (a[0] - b[0]) / length];
    let half = half_side(floor, place);
    AWAY_M.into_iter().find_map(|away| {
        let sides = [1.0, -1.0]
            .into_iter()
            .filter_map(|side| free_square(beside(middle, normal, side, half, away), half, shapes));
        let from_neighbors =
            |shape: &Shape| known.iter().map(|other| distance(other.center, shape.center)).sum::<f64>();
        sides.max_by(|a, b| from_neighbors(a).total_cmp(&from_neighbors(b)))
    })
}

/// Half the side of the square of a place without an outline.
fn half_side(floor: &Floor<'_>, place: usize) -> f64 {
    0.5 * if floor.kind(place) == NodeKind::Exit { EXIT_M } else { OTHER_M }
}

/// The middle of a square on one side of a wall and `away` from it: an axis-aligned square does not overlap a slanted wall.
fn beside(wall: Point, normal: Point, side: f64, half: f64, away: f64) -> Point {
    let reach = side * (half * (normal[0].abs() + normal[1].abs()) + away);
    [wall[0] + reach * normal[0], wall[1] + reach * normal[1]]
}

/// The square around a point, if no other place is there.
fn free_square(at: Point, half: f64, shapes: &[Option<Shape>]) -> Option<Shape> {
    let outline = upright([at[0] - half, at[1] - half], [at[0] + half, at[1] + half]);
    let is_free = |other: &Shape| !overlap(&other.outline, &outline) && distance(other.center, at) > half;
    shapes.iter().flatten().all(is_free).then_some(Shape { center: at, outline })
}

/// A square at a free position at a wall of a neighbor: near the other neighbors, and exits far from the middle.
fn outside(
    floor: &Floor<'_>,
    place: usize,
    known: &[&Shape],
    shapes: &[Option<Shape>],
    center: Point,
) -> Option<Shape> {
    let is_exit = floor.kind(place) == NodeKind::Exit;
    let half = half_side(floor, place);
    for away in AWAY_M {
        let mut best: Option<(f64, Shape)> = None;
        for neighbor in known {
            for wall in neighbor.outline.exterior().lines() {
                let (a, b) = (wall.start.into(), wall.end.into());
                let length = distance(a, b);
                if length < 1e-6 {
                    continue;
                }
                let normal = [(b[1] - a[1]) / length, (a[0] - b[0]) / length];
                for (rank, share) in ALONG.into_iter().enumerate() {
                    for side in [1.0, -1.0] {
                        let at = beside(between(a, b, share), normal, side, half, away);
                        let ways: f64 = known.iter().map(|other| distance(other.center, at)).sum();
                        let inwards = if is_exit { -distance(center, at) } else { 0.0 };
                        let cost = ways + inwards + 0.1 * rank as f64;
                        if best.as_ref().is_none_or(|(least, _)| cost < *least - 1e-9)
                            && let Some(shape) = free_square(at, half, shapes)
                        {
                            best = Some((cost, shape));
                        }
                    }
                }
            }
        }
        if let Some((_, shape)) = best {
            return Some(shape);
        }
    }
    None
}

/// A square to the right of all shapes.
fn apart(shapes: &[Option<Shape>]) -> Shape {
    let (low, high) = bounds(shapes.iter().flatten().flat_map(Shape::points));
    Shape::upright([high[0] + OTHER_M, low[1]], [high[0] + 2.0 * OTHER_M, low[1] + OTHER_M])
}
