//! Outlines and lines of plans, in m.

use geo::line_intersection::LineIntersection;
use geo::{
    Area, BoundingRect, Centroid, Coord, Distance, Euclidean, InterpolateLine, Intersections, LineString, Point,
    Polygon,
};

/// Largest distance of corners that are the same corner, in m.
const CLOSED_M: f64 = 1e-3;
/// Smallest area of an outline, in m2.
const LEAST_AREA_M2: f64 = 1e-4;

/// The outline with these corners, counterclockwise; the last corner repeats the first.
///
/// # Errors
/// The reason: fewer than three corners, the last more than 1 mm from the first, a non-finite number,
/// no area, or crossing walls.
pub(super) fn outline(ring: &LineString) -> Result<Polygon, String> {
    if let Some(corner) = ring.coords().find(|corner| !is_finite(corner)) {
        return Err(format!("its corner ({}, {}) is no point", corner.x, corner.y));
    }
    let (Some(first), Some(last)) = (ring.0.first(), ring.0.last()) else {
        return Err("its outline is empty".into());
    };
    if Euclidean.distance(*first, *last) > CLOSED_M {
        return Err(format!(
            "its outline is not closed: it begins at ({:.3}, {:.3}) and ends at ({:.3}, {:.3})",
            first.x, first.y, last.x, last.y
        ));
    }
    let mut corners = ring.0[..ring.0.len() - 1].to_vec();
    corners.dedup();
    if corners.len() < 3 {
        return Err(format!("its outline has {} corners and needs 3", corners.len()));
    }
    let mut outline = Polygon::new(LineString::new(corners), Vec::new());
    if let Some(Coord { x, y }) = Intersections::from_iter(outline.exterior().lines()).find_map(inner_point) {
        return Err(format!("its outline crosses itself at ({x:.2}, {y:.2})"));
    }
    let area = outline.signed_area();
    if area.abs() < LEAST_AREA_M2 {
        return Err("its outline has no area".into());
    }
    if area < 0.0 {
        outline.exterior_mut(|ring| {
            ring.0.pop();
            ring.0.reverse();
        });
    }
    Ok(outline)
}

/// The first ring as an outline, with its area minus that of the others, in m2; `None` without rings.
///
/// # Errors
/// As [`outline`].
pub(super) fn with_holes(rings: impl Iterator<Item = LineString>) -> Result<Option<(Polygon, f64)>, String> {
    let mut outlines = rings.map(|ring| outline(&ring)).collect::<Result<Vec<_>, _>>()?.into_iter();
    let Some(shape) = outlines.next() else { return Ok(None) };
    let area_m2 = shape.signed_area() - outlines.map(|hole| hole.signed_area()).sum::<f64>();
    Ok(Some((shape, area_m2)))
}

/// The common point of two walls, if it is an end of neither.
fn inner_point<T>((_, _, crossing): (T, T, LineIntersection<f64>)) -> Option<Coord> {
    match crossing {
        LineIntersection::SinglePoint { intersection, is_proper: true } => Some(intersection),
        _ => None,
    }
}

pub(super) fn is_finite(point: &Coord) -> bool {
    point.x.is_finite() && point.y.is_finite()
}

/// Middle of an outline: its center of mass.
pub(super) fn middle(outline: &Polygon) -> Point {
    // An outline has an area, so it has a centroid.
    outline.centroid().unwrap_or_default()
}

/// Longer side of the bounding box of an outline, in m.
pub(super) fn longest_side(outline: &Polygon) -> f64 {
    outline.bounding_rect().map_or(0.0, |around| around.width().max(around.height()))
}

/// The point of a line at a fraction of its length.
pub(super) fn point_at(line: &LineString, share: f64) -> Point {
    // A line of a plan has points.
    Euclidean.point_at_ratio_from_start(line, share).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outline::corners;
    use approx::assert_relative_eq;

    type Corner = [f64; 2];

    const L_SHAPE: [Corner; 7] = [[0.0, 0.0], [4.0, 0.0], [4.0, 2.0], [2.0, 2.0], [2.0, 4.0], [0.0, 4.0], [0.0, 0.0]];

    fn outline(points: &[Corner]) -> Result<Polygon, String> {
        super::outline(&points.to_vec().into())
    }

    #[test]
    fn outlines_are_measured() {
        let far: Vec<Corner> = L_SHAPE.iter().map(|p| [p[0] + 4e6, p[1] - 5e6]).collect();
        let shape = outline(&far).unwrap();
        assert_relative_eq!(shape.signed_area(), 12.0, epsilon = 1e-9);
        let (x, y) = middle(&shape).x_y();
        // Two parts: 8 m2 about (2, 1) and 4 m2 about (1, 3).
        assert_relative_eq!(x - 4e6, (8.0 * 2.0 + 4.0) / 12.0, epsilon = 1e-6);
        assert_relative_eq!(y + 5e6, (8.0 + 4.0 * 3.0) / 12.0, epsilon = 1e-6);
        assert_relative_eq!(longest_side(&shape), 4.0);
        // Half a millimeter is rounding, not a gap.
        let mut rounded = L_SHAPE;
        rounded[6] = [0.0005, 0.0];
        assert_eq!(corners(&outline(&rounded).unwrap()), L_SHAPE[..6]);
        // Reversed, so the last corner comes first.
        let clockwise: Vec<Corner> = far.iter().rev().copied().collect();
        let turned = outline(&clockwise).unwrap();
        assert!(turned.signed_area() > 0.0);
        assert_eq!(corners(&turned)[..2], far[1..3]);
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
    fn points_lie_on_lines() {
        let line = vec![[0.0, 0.0], [3.0, 0.0], [3.0, 1.0]].into();
        assert_eq!(point_at(&line, 0.5), [2.0, 0.0].into());
        assert_eq!(point_at(&line, 1.0), [3.0, 1.0].into());
    }
}
