//! Outlines in m.
//!
//! Coordinates are computed only by sums, products, quotients and square roots, which every machine rounds equally.
//! Distances of `geo` by `hypot` are used only in comparisons with a margin.

use geo::line_intersection::{LineIntersection, line_intersection};
use geo::{
    Area, BooleanOps, BoundingRect, Centroid, Contains, Coord, Distance, Euclidean, Length, Line, Polygon, Vector2DOps,
};

use super::Shape;
use crate::outline::{corners, polygon};

/// A point in m.
pub(super) type Point = [f64; 2];

/// Smallest area of an outline, in m2.
pub(super) const LEAST_AREA_M2: f64 = 1e-4;
/// Largest distance of two walls that are the same wall, in m, because plans may include the thickness of walls.
const WALL_M: f64 = 0.6;
/// Smallest length of a wall with an opening, in m.
const LEAST_WALL_M: f64 = 0.3;
/// Largest overlap of outlines that only touch, in m.
const TOUCH_M: f64 = 1e-6;
/// Rows and columns of candidate points for a center.
const TRIES: usize = 13;

/// The point at `share` of the way from `a` to `b`.
pub(super) fn between(a: Point, b: Point, share: f64) -> Point {
    [a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])]
}

pub(super) fn distance(a: Point, b: Point) -> f64 {
    let (x, y) = (a[0] - b[0], a[1] - b[1]);
    (x * x + y * y).sqrt()
}

/// An axis-aligned rectangle.
pub(super) fn upright(low: Point, high: Point) -> Polygon {
    polygon([low, [high[0], low[1]], high, [low[0], high[1]]])
}

/// Corners of the axis-aligned bounding box of points; the origin without points.
pub(super) fn bounds(points: impl IntoIterator<Item = Point>) -> (Point, Point) {
    let around = geo::LineString::from_iter(points).bounding_rect();
    around.map(|around| (around.min().into(), around.max().into())).unwrap_or_default()
}

/// Whether a point lies inside.
pub(super) fn is_inside(outline: &Polygon, point: Point) -> bool {
    outline.contains(&Coord::from(point))
}

/// The center of mass, or, if that is outside, the inner point farthest from walls.
pub(super) fn middle(outline: &Polygon) -> Point {
    let center = outline.centroid().unwrap_or_default().into();
    if is_inside(outline, center) {
        return center;
    }
    let (low, high) = bounds(corners(outline));
    let at = |n: usize, axis: usize| low[axis] + (high[axis] - low[axis]) * (n as f64 + 0.5) / TRIES as f64;
    let mut best = (-1.0, center);
    for row in 0..TRIES {
        for column in 0..TRIES {
            let point = [at(column, 0), at(row, 1)];
            if is_inside(outline, point) {
                let room = Euclidean.distance(&geo::Point::from(point), outline.exterior());
                if room > best.0 + TOUCH_M {
                    best = (room, point);
                }
            }
        }
    }
    best.1
}

/// Whether two outlines overlap by more than walls.
pub(super) fn overlap(a: &Polygon, b: &Polygon) -> bool {
    let (Some(box_a), Some(box_b)) = (a.bounding_rect(), b.bounding_rect()) else { return false };
    let (low, high) = (box_a.min() - box_b.max(), box_b.min() - box_a.max());
    // Most places are far from each other, which is a fast check.
    if [low.x, low.y, high.x, high.y].into_iter().any(|gap| gap >= -TOUCH_M) {
        return false;
    }
    let common = a.intersection(b);
    let walls: f64 = common.iter().map(|part| Euclidean.length(part.exterior())).sum();
    // The depth of a strip is twice its area divided by the length of its walls.
    2.0 * common.unsigned_area() > TOUCH_M * walls
}

/// Whether any two places overlap, or a coordinate is not finite.
pub(super) fn any_overlap(shapes: &[Shape]) -> bool {
    let is_finite = |shape: &Shape| shape.points().flatten().all(f64::is_finite);
    let overlaps = |n: usize| shapes[..n].iter().any(|other| overlap(&other.outline, &shapes[n].outline));
    !shapes.iter().all(is_finite) || (0..shapes.len()).any(overlaps)
}

/// The gap of up to `width_m` in the longest wall that two outlines share.
pub(super) fn opening(a: &Polygon, b: &Polygon, width_m: f64) -> Option<[Point; 2]> {
    let length = |wall: &Line| wall.delta().magnitude_squared().sqrt();
    let mut best: Option<(f64, [Point; 2])> = None;
    for wall in a.exterior().lines().filter(|wall| length(wall) >= LEAST_WALL_M) {
        let along = wall.delta() / length(&wall);
        for other in b.exterior().lines() {
            if along.wedge_product(other.delta()).abs() > 0.05 * length(&other) {
                continue;
            }
            let apart = along.wedge_product(other.start + other.delta() * 0.5 - wall.start);
            let [start, end] = [other.start, other.end].map(|end| along.dot_product(end - wall.start));
            let low = start.min(end).max(0.0);
            let high = start.max(end).min(length(&wall));
            // Thin walls are preferred.
            let worth = high - low - 2.0 * apart.abs();
            let is_better = best.is_none_or(|(most, _)| worth > most + TOUCH_M);
            if apart.abs() <= WALL_M && high - low >= LEAST_WALL_M && is_better {
                let half = 0.5 * width_m.min(0.9 * (high - low));
                let at = |t: f64| (wall.start + along * t + along.left() * (0.5 * apart)).into();
                let center = 0.5 * (low + high);
                best = Some((worth, [at(center - half), at(center + half)]));
            }
        }
    }
    best.map(|(_, opening)| opening)
}

/// Whether the line from an inner point to one in a wall stays inside.
pub(super) fn stays_inside(outline: &Polygon, from: Point, to: Point) -> bool {
    (1..TRIES).all(|n| {
        let point = geo::Point::from(between(from, to, n as f64 / TRIES as f64));
        Euclidean.distance(&point, outline) <= WALL_M + TOUCH_M
    })
}

/// A path from an inner point to a point in a wall: straight, or with one corner if the straight line leads outside.
pub(super) fn way_inside(outline: &Polygon, from: Point, to: Point) -> Vec<Point> {
    if !stays_inside(outline, from, to) {
        for corner in [[to[0], from[1]], [from[0], to[1]]] {
            if stays_inside(outline, from, corner) && stays_inside(outline, corner, to) {
                return vec![from, corner, to];
            }
        }
    }
    vec![from, to]
}

/// The last point at which the line from the inner point `from` to `to` leaves an outline.
pub(super) fn leaves(outline: &Polygon, from: Point, to: Point) -> Point {
    let from = Coord::from(from);
    let way = Line::new(from, Coord::from(to));
    let crossings = outline.exterior().lines().filter_map(|wall| match line_intersection(way, wall)? {
        LineIntersection::SinglePoint { intersection, .. } => Some(intersection),
        // The adjacent walls begin at the end of this one.
        LineIntersection::Collinear { .. } => None,
    });
    let far = |point: &Coord| (*point - from).magnitude_squared();
    crossings.max_by(|a, b| far(a).total_cmp(&far(b))).unwrap_or(from).into()
}
