//! Polygons and lines in m.

/// A corner.
pub(super) type Point = [f64; 2];

/// Corners that are nearer are one, in m.
const CLOSED_M: f64 = 1e-3;
/// Areas below are no outlines, in m2.
const LEAST_AREA_M2: f64 = 1e-4;

/// The outline without its repeated last corner, counterclockwise.
///
/// # Errors
/// What is wrong with it: fewer than three corners, the last more than 1 mm from the first, a number that
/// is none, no area, or walls that cross.
pub(super) fn outline(points: &[Point]) -> Result<Vec<Point>, String> {
    if let Some(point) = points.iter().find(|point| !point.iter().all(|x| x.is_finite())) {
        return Err(format!("its corner ({}, {}) is no point", point[0], point[1]));
    }
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return Err("its outline is empty".into());
    };
    if distance(*first, *last) > CLOSED_M {
        return Err(format!(
            "its outline is not closed: it begins at ({:.3}, {:.3}) and ends at ({:.3}, {:.3})",
            first[0], first[1], last[0], last[1]
        ));
    }
    let mut ring: Vec<Point> = points[..points.len() - 1].to_vec();
    ring.dedup();
    if ring.len() < 3 {
        return Err(format!("its outline has {} corners and needs 3", ring.len()));
    }
    let walls = |n: usize| (ring[n], ring[(n + 1) % ring.len()]);
    for a in 0..ring.len() {
        for b in a + 2..ring.len() {
            let are_neighbors = a == 0 && b == ring.len() - 1;
            if are_neighbors {
                continue;
            }
            if let Some([x, y]) = crossing(walls(a), walls(b)) {
                return Err(format!("its outline crosses itself at ({x:.2}, {y:.2})"));
            }
        }
    }
    let area = signed_area(&ring);
    if area.abs() < LEAST_AREA_M2 {
        return Err("its outline has no area".into());
    }
    if area < 0.0 {
        ring.reverse();
    }
    Ok(ring)
}

/// The inner point that two walls have in common.
fn crossing(a: (Point, Point), b: (Point, Point)) -> Option<Point> {
    let side = |wall: (Point, Point), point: Point| {
        let (p, q) = wall;
        (q[0] - p[0]) * (point[1] - p[1]) - (q[1] - p[1]) * (point[0] - p[0])
    };
    let (from, to) = (side(b, a.0), side(b, a.1));
    if from * to >= 0.0 || side(a, b.0) * side(a, b.1) >= 0.0 {
        return None;
    }
    let share = from / (from - to);
    Some([0, 1].map(|axis| a.0[axis] + share * (a.1[axis] - a.0[axis])))
}

/// Area in m2, negative where the corners go clockwise.
fn signed_area(ring: &[Point]) -> f64 {
    // About the first corner, so that large coordinates cost no digits.
    let origin = ring[0];
    let shifted = |n: usize| [ring[n % ring.len()][0] - origin[0], ring[n % ring.len()][1] - origin[1]];
    (0..ring.len())
        .map(|n| {
            let (a, b) = (shifted(n), shifted(n + 1));
            (a[0] * b[1] - b[0] * a[1]) / 2.0
        })
        .sum()
}

/// Area of an outline, in m2.
pub(super) fn area(ring: &[Point]) -> f64 {
    signed_area(ring).abs()
}

/// Middle of an outline: its center of mass.
pub(super) fn middle(ring: &[Point]) -> Point {
    let origin = ring[0];
    let shifted = |n: usize| [ring[n % ring.len()][0] - origin[0], ring[n % ring.len()][1] - origin[1]];
    let mut sum = [0.0; 2];
    for n in 0..ring.len() {
        let (a, b) = (shifted(n), shifted(n + 1));
        let weight = a[0] * b[1] - b[0] * a[1];
        sum[0] += (a[0] + b[0]) * weight;
        sum[1] += (a[1] + b[1]) * weight;
    }
    let six_areas = 6.0 * signed_area(ring);
    [origin[0] + sum[0] / six_areas, origin[1] + sum[1] / six_areas]
}

/// Longer side of the upright box around an outline, in m.
pub(super) fn longest_side(ring: &[Point]) -> f64 {
    let extent = |axis: usize| {
        let values = ring.iter().map(|point| point[axis]);
        values.clone().fold(f64::NEG_INFINITY, f64::max) - values.fold(f64::INFINITY, f64::min)
    };
    extent(0).max(extent(1))
}

pub(super) fn distance(a: Point, b: Point) -> f64 {
    (a[0] - b[0]).hypot(a[1] - b[1])
}

/// Length of a line, in m.
pub(super) fn length(line: &[Point]) -> f64 {
    line.windows(2).map(|pair| distance(pair[0], pair[1])).sum()
}

/// The point of a line at a share of its length.
pub(super) fn point_at(line: &[Point], share: f64) -> Point {
    let mut left = share * length(line);
    for pair in line.windows(2) {
        let step = distance(pair[0], pair[1]);
        if left <= step && step > 0.0 {
            let t = left / step;
            return [pair[0][0] + t * (pair[1][0] - pair[0][0]), pair[0][1] + t * (pair[1][1] - pair[0][1])];
        }
        left -= step;
    }
    line[line.len() - 1]
}

/// Distance from a point to the nearest wall of an outline, in m.
pub(super) fn distance_to_wall(point: Point, ring: &[Point]) -> f64 {
    let to_wall = |n: usize| {
        let (a, b) = (ring[n], ring[(n + 1) % ring.len()]);
        let along = [b[0] - a[0], b[1] - a[1]];
        let squared = along[0] * along[0] + along[1] * along[1];
        let t = match squared > 0.0 {
            true => (((point[0] - a[0]) * along[0] + (point[1] - a[1]) * along[1]) / squared).clamp(0.0, 1.0),
            false => 0.0,
        };
        distance(point, [a[0] + t * along[0], a[1] + t * along[1]])
    };
    (0..ring.len()).map(to_wall).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use approx::assert_relative_eq;

    const L_SHAPE: [Point; 7] = [[0.0, 0.0], [4.0, 0.0], [4.0, 2.0], [2.0, 2.0], [2.0, 4.0], [0.0, 4.0], [0.0, 0.0]];

    #[test]
    fn outlines_are_measured() {
        let far: Vec<Point> = L_SHAPE.iter().map(|p| [p[0] + 4e6, p[1] - 5e6]).collect();
        let ring = outline(&far).unwrap();
        assert_relative_eq!(area(&ring), 12.0, epsilon = 1e-9);
        let [x, y] = middle(&ring);
        // Two parts: 8 m2 about (2, 1) and 4 m2 about (1, 3).
        assert_relative_eq!(x - 4e6, (8.0 * 2.0 + 4.0) / 12.0, epsilon = 1e-6);
        assert_relative_eq!(y + 5e6, (8.0 + 4.0 * 3.0) / 12.0, epsilon = 1e-6);
        assert_relative_eq!(longest_side(&ring), 4.0);
        // Half a millimeter is a rounding, not a gap.
        let mut rounded = L_SHAPE;
        rounded[6] = [0.0005, 0.0];
        assert_eq!(outline(&rounded).unwrap().len(), 6);
        let clockwise: Vec<Point> = far.iter().rev().copied().collect();
        assert!(signed_area(&outline(&clockwise).unwrap()) > 0.0);
    }

    #[test]
    fn outlines_that_are_none_are_refused() {
        for (points, message) in [
            (&L_SHAPE[..6], "its outline is not closed: it begins at (0.000, 0.000) and ends at (0.000, 4.000)"),
            (&[], "its outline is empty"),
            (&[[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]], "its outline has 2 corners and needs 3"),
            (&[[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [0.0, 0.0]], "its outline has no area"),
            (
                &[[0.0, 0.0], [2.0, 2.0], [2.0, 0.0], [0.0, 1.0], [0.0, 0.0]],
                "its outline crosses itself at (0.67, 0.67)",
            ),
            (&[[0.0, 0.0], [f64::NAN, 0.0]], "its corner (NaN, 0) is no point"),
        ] {
            assert_eq!(outline(points).unwrap_err(), message);
        }
    }

    #[test]
    fn lines_are_measured() {
        let line = [[0.0, 0.0], [3.0, 0.0], [3.0, 1.0]];
        assert_eq!(length(&line), 4.0);
        assert_eq!(point_at(&line, 0.5), [2.0, 0.0]);
        assert_eq!(point_at(&line, 1.0), [3.0, 1.0]);
        let ring = outline(&L_SHAPE).unwrap();
        for (point, expected) in [([3.0, 3.0], 1.0), ([1.0, 1.0], 1.0), ([5.0, -1.0], 2f64.sqrt()), ([2.0, 3.0], 0.0)] {
            assert_relative_eq!(distance_to_wall(point, &ring), expected);
        }
    }
}
