//! Outlines in m. Only sums, products, quotients and square roots, which every machine rounds alike.

use super::Shape;

/// A point in m.
pub(super) type Point = [f64; 2];

/// Areas below are no outlines, in m2.
pub(super) const LEAST_AREA_M2: f64 = 1e-4;
/// Walls of two places that are nearer are one, in m: plans leave out the thickness of walls or draw it.
const WALL_M: f64 = 0.6;
/// Least wall that holds an opening, in m.
const LEAST_WALL_M: f64 = 0.3;
/// Outlines that reach less into each other touch, in m.
const TOUCH_M: f64 = 1e-6;
/// Rows and columns of points that are tried for a center.
const TRIES: usize = 13;

/// The point at `share` of the way from `a` to `b`.
pub(super) fn between(a: Point, b: Point, share: f64) -> Point {
    [a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])]
}

pub(super) fn distance(a: Point, b: Point) -> f64 {
    let (x, y) = (a[0] - b[0], a[1] - b[1]);
    (x * x + y * y).sqrt()
}

/// An upright rectangle.
pub(super) fn upright(low: Point, high: Point) -> Vec<Point> {
    vec![low, [high[0], low[1]], high, [low[0], high[1]]]
}

/// Corners of the upright box around some points; the origin without any.
pub(super) fn bounds<'a>(points: impl Iterator<Item = &'a Point>) -> (Point, Point) {
    let around = points.fold(None, |around: Option<(Point, Point)>, point| {
        let (low, high) = around.unwrap_or((*point, *point));
        let pick = |f: fn(f64, f64) -> f64, corner: Point| [f(corner[0], point[0]), f(corner[1], point[1])];
        Some((pick(f64::min, low), pick(f64::max, high)))
    });
    around.unwrap_or_default()
}

fn walls(outline: &[Point]) -> impl Iterator<Item = (Point, Point)> + '_ {
    (0..outline.len()).map(|n| (outline[n], outline[(n + 1) % outline.len()]))
}

fn cross(a: Point, b: Point) -> f64 {
    a[0] * b[1] - a[1] * b[0]
}

fn minus(a: Point, b: Point) -> Point {
    [a[0] - b[0], a[1] - b[1]]
}

/// Area in m2.
pub(super) fn area(outline: &[Point]) -> f64 {
    // About the first corner, so that large coordinates cost no digits.
    let origin = outline[0];
    (walls(outline).map(|(a, b)| cross(minus(a, origin), minus(b, origin))).sum::<f64>() / 2.0).abs()
}

/// Whether a point lies inside.
pub(super) fn is_inside(outline: &[Point], point: Point) -> bool {
    let crossed = walls(outline).filter(|(a, b)| {
        (a[1] > point[1]) != (b[1] > point[1]) && point[0] < (b[0] - a[0]) * (point[1] - a[1]) / (b[1] - a[1]) + a[0]
    });
    crossed.count() % 2 == 1
}

fn distance_to_wall(outline: &[Point], point: Point) -> f64 {
    let to_wall = |(a, b): (Point, Point)| {
        let along = minus(b, a);
        let squared = along[0] * along[0] + along[1] * along[1];
        let from = minus(point, a);
        let share = if squared > 0.0 { (from[0] * along[0] + from[1] * along[1]) / squared } else { 0.0 };
        distance(point, between(a, b, share.clamp(0.0, 1.0)))
    };
    walls(outline).map(to_wall).fold(f64::INFINITY, f64::min)
}

/// The center of mass; where that is outside, the inner point farthest from walls.
pub(super) fn middle(outline: &[Point]) -> Point {
    let origin = outline[0];
    let (mut sum, mut weight) = ([0.0; 2], 0.0);
    for (a, b) in walls(outline) {
        let (a, b) = (minus(a, origin), minus(b, origin));
        let twice = cross(a, b);
        weight += twice;
        (0..2).for_each(|axis| sum[axis] += (a[axis] + b[axis]) * twice);
    }
    let center = [origin[0] + sum[0] / (3.0 * weight), origin[1] + sum[1] / (3.0 * weight)];
    if is_inside(outline, center) {
        return center;
    }
    let (low, high) = bounds(outline.iter());
    let at = |n: usize, axis: usize| low[axis] + (high[axis] - low[axis]) * (n as f64 + 0.5) / TRIES as f64;
    let mut best = (f64::NEG_INFINITY, center);
    for row in 0..TRIES {
        for column in 0..TRIES {
            let point = [at(column, 0), at(row, 1)];
            let room = if is_inside(outline, point) { distance_to_wall(outline, point) } else { -1.0 };
            if room > best.0 {
                best = (room, point);
            }
        }
    }
    best.1
}

/// Whether two walls cross in a point inside both.
fn do_cross(a: (Point, Point), b: (Point, Point)) -> bool {
    let side = |wall: (Point, Point), point: Point| {
        let along = minus(wall.1, wall.0);
        let length = distance(wall.0, wall.1);
        if length > 0.0 { cross(along, minus(point, wall.0)) / length } else { 0.0 }
    };
    let apart = |x: f64, y: f64| (x > TOUCH_M && y < -TOUCH_M) || (x < -TOUCH_M && y > TOUCH_M);
    apart(side(b, a.0), side(b, a.1)) && apart(side(a, b.0), side(a, b.1))
}

/// Whether two outlines have more than walls in common.
pub(super) fn overlap(a: &[Point], b: &[Point]) -> bool {
    if a.len() < 3 || b.len() < 3 {
        return false;
    }
    let ((low, high), (other_low, other_high)) = (bounds(a.iter()), bounds(b.iter()));
    if (0..2).any(|axis| low[axis] >= other_high[axis] - TOUCH_M || other_low[axis] >= high[axis] - TOUCH_M) {
        return false;
    }
    if walls(a).any(|wall| walls(b).any(|other| do_cross(wall, other))) {
        return true;
    }
    // Corners, the middles of walls and the middle itself tell where no walls cross.
    let holds = |outer: &[Point], inner: &[Point]| {
        let inside = |point: Point| is_inside(outer, point) && distance_to_wall(outer, point) > TOUCH_M;
        inside(middle(inner)) || walls(inner).any(|(from, to)| inside(from) || inside(between(from, to, 0.5)))
    };
    holds(a, b) || holds(b, a)
}

/// Whether any two places overlap, or something is no number.
pub(super) fn any_overlap(shapes: &[Shape]) -> bool {
    let is_finite = |shape: &Shape| shape.outline.iter().chain([&shape.center]).flatten().all(|x| x.is_finite());
    let overlaps = |n: usize| shapes[..n].iter().any(|other| overlap(&other.outline, &shapes[n].outline));
    !shapes.iter().all(is_finite) || (0..shapes.len()).any(overlaps)
}

/// The gap of up to `width_m` in the longest wall that two outlines share.
pub(super) fn opening(a: &[Point], b: &[Point], width_m: f64) -> Option<[Point; 2]> {
    let mut best: Option<(f64, [Point; 2])> = None;
    for (from, to) in walls(a) {
        let length = distance(from, to);
        if length < LEAST_WALL_M {
            continue;
        }
        let along = minus(to, from).map(|x| x / length);
        for (start, end) in walls(b) {
            let turned = cross(along, minus(end, start)).abs();
            if turned > 0.05 * distance(start, end) {
                continue;
            }
            let apart = cross(along, minus(between(start, end, 0.5), from));
            let reach = |point: Point| {
                let from = minus(point, from);
                from[0] * along[0] + from[1] * along[1]
            };
            let low = reach(start).min(reach(end)).max(0.0);
            let high = reach(start).max(reach(end)).min(length);
            // A thick wall is worse than a thin one.
            let worth = high - low - 2.0 * apart.abs();
            let is_better = best.is_none_or(|(most, _)| worth > most + TOUCH_M);
            if apart.abs() <= WALL_M && high - low >= LEAST_WALL_M && is_better {
                let half = 0.5 * width_m.min(0.9 * (high - low));
                let at = |t: f64| {
                    [from[0] + t * along[0] - 0.5 * apart * along[1], from[1] + t * along[1] + 0.5 * apart * along[0]]
                };
                let center = 0.5 * (low + high);
                best = Some((worth, [at(center - half), at(center + half)]));
            }
        }
    }
    best.map(|(_, opening)| opening)
}

/// Whether the line from an inner point to one in a wall stays inside.
pub(super) fn stays_inside(outline: &[Point], from: Point, to: Point) -> bool {
    (1..TRIES).all(|n| {
        let point = between(from, to, n as f64 / TRIES as f64);
        is_inside(outline, point) || distance_to_wall(outline, point) <= WALL_M
    })
}

/// A way from an inner point to one in a wall: straight, or around one corner where that leads outside.
pub(super) fn way_inside(outline: &[Point], from: Point, to: Point) -> Vec<Point> {
    if !stays_inside(outline, from, to) {
        for corner in [[to[0], from[1]], [from[0], to[1]]] {
            if stays_inside(outline, from, corner) && stays_inside(outline, corner, to) {
                return vec![from, corner, to];
            }
        }
    }
    vec![from, to]
}

/// Where the line from the inner point `from` to `to` leaves an outline for good.
pub(super) fn leaves(outline: &[Point], from: Point, to: Point) -> Point {
    let way = minus(to, from);
    let crossing = |(a, b): (Point, Point)| {
        let wall = minus(b, a);
        let turned = cross(way, wall);
        if turned.abs() < 1e-12 {
            return None;
        }
        let share = cross(minus(a, from), wall) / turned;
        let at = cross(minus(a, from), way) / turned;
        ((0.0..=1.0).contains(&share) && (0.0..=1.0).contains(&at)).then_some(share)
    };
    between(from, to, walls(outline).filter_map(crossing).fold(0.0, f64::max))
}
