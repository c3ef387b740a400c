//! Outlines and lines of plans, in m.

use geo::line_intersection::{LineIntersection, line_intersection};
use geo::{
    Area, BoundingRect, Centroid, Coord, Distance, Euclidean, InterpolateLine, Line, LineString, Point, Polygon,
    Triangle,
};

use super::MOST_METERS;

/// Corners that are nearer are one, in m.
const CLOSED_M: f64 = 1e-3;
/// Most corners of an outline: where all walls are long, each is compared with every other.
const MOST_CORNERS: usize = 10_000;
/// Smaller areas, in m2, are slivers that drawing programs leave, and no places.
pub(super) const LEAST_AREA_M2: f64 = 1e-4;

/// A ring as an outline, counterclockwise; `None` for a sliver.
///
/// # Errors
/// The reason, about `what`: fewer than three corners, the last more than 1 mm from the first, or crossing walls.
fn outline(what: &str, ring: &LineString) -> Result<Option<LineString>, String> {
    let (Some(first), Some(last)) = (ring.0.first(), ring.0.last()) else {
        return Err(format!("{what} is empty"));
    };
    if Euclidean.distance(*first, *last) > CLOSED_M {
        return Err(format!(
            "{what} is not closed: it begins at ({:.3}, {:.3}) and ends at ({:.3}, {:.3})",
            first.x, first.y, last.x, last.y
        ));
    }
    let mut corners = ring.0[..ring.0.len() - 1].to_vec();
    corners.dedup();
    if corners.len() < 3 {
        return Err(format!("{what} has {} corners and needs 3", corners.len()));
    }
    if corners.len() > MOST_CORNERS {
        return Err(format!("{what} has {} corners and may have {MOST_CORNERS}", corners.len()));
    }
    // The triangles from the first corner, each with a positive area: those of an outline that crosses itself do not cancel.
    let triangles = corners[1..].windows(2).map(|pair| Triangle::new(corners[0], pair[0], pair[1]).unsigned_area());
    if triangles.sum::<f64>() < LEAST_AREA_M2 {
        return Ok(None);
    }
    let mut ring = LineString::new(corners);
    ring.close();
    if let Some(Coord { x, y }) = first_crossing(ring.lines().collect()) {
        return Err(format!("{what} crosses itself at ({x:.2}, {y:.2})"));
    }
    let area = Polygon::new(ring.clone(), Vec::new()).signed_area();
    if area.abs() < LEAST_AREA_M2 {
        return Err(format!("{what} has no area"));
    }
    if area < 0.0 {
        // The corner that was last becomes the first.
        ring.0.pop();
        ring.0.reverse();
        ring.close();
    }
    Ok(Some(ring))
}

/// The first ring as an outline with the others as its holes, of which slivers are skipped; `None` if the outline is a sliver.
///
/// # Errors
/// As [`outline`], or holes that are larger than the outline.
pub(super) fn with_holes(rings: &[LineString]) -> Result<Option<Polygon>, String> {
    let [ring, holes @ ..] = rings else { return Err("its outline is empty".into()) };
    let Some(ring) = outline("its outline", ring)? else { return Ok(None) };
    let mut kept = Vec::new();
    for (n, hole) in holes.iter().enumerate() {
        kept.extend(outline(&format!("its hole {}", n + 1), hole)?);
    }
    let whole = Polygon::new(ring.clone(), Vec::new()).unsigned_area();
    let cut: f64 = kept.iter().map(|hole| Polygon::new(hole.clone(), Vec::new()).unsigned_area()).sum();
    if whole - cut < LEAST_AREA_M2 {
        return Err(format!("its holes have {cut} m2, and its outline has {whole}"));
    }
    Ok(Some(Polygon::new(ring, kept)))
}

/// A point that two walls have in common and that is an end of neither.
///
/// Walls go by from left to right, each beside those that reach as far as where it begins. `geo` has a faster sweep that
/// panics where rounding puts walls out of order, as in a circle of 40,000 corners.
fn first_crossing(mut walls: Vec<Line>) -> Option<Coord> {
    let low = |wall: &Line| wall.start.x.min(wall.end.x);
    let high = |wall: &Line| wall.start.x.max(wall.end.x);
    let span = |wall: &Line| (wall.start.y.min(wall.end.y), wall.start.y.max(wall.end.y));
    walls.sort_by(|a, b| low(a).total_cmp(&low(b)));
    let mut beside: Vec<Line> = Vec::new();
    for wall in walls {
        beside.retain(|other| high(other) >= low(&wall));
        let (bottom, top) = span(&wall);
        for other in &beside {
            let (others_bottom, others_top) = span(other);
            if others_bottom > top || others_top < bottom {
                continue;
            }
            if let Some(LineIntersection::SinglePoint { intersection, is_proper: true }) =
                line_intersection(wall, *other)
            {
                return Some(intersection);
            }
        }
        beside.push(wall);
    }
    None
}

/// Refuses a point that is none, or so far away that computing with it loses the millimeters.
pub(super) fn check_point(point: &Coord) -> Result<(), String> {
    let (x, y) = point.x_y();
    if !(x.is_finite() && y.is_finite()) {
        return Err(format!("({x}, {y}) is no point"));
    }
    if x.abs() > MOST_METERS || y.abs() > MOST_METERS {
        return Err(format!("({x:e}, {y:e}) is more than {MOST_METERS:e} m from the origin"));
    }
    Ok(())
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
        let shape = with_holes(&[points.to_vec().into()])?;
        Ok(shape.expect("no sliver"))
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
            (
                &[[0.0, 0.0], [2.0, 2.0], [2.0, 0.0], [0.0, 1.0], [0.0, 0.0]],
                "its outline crosses itself at (0.67, 0.67)",
            ),
        ] {
            assert_eq!(outline(points).unwrap_err(), message);
        }
        assert_eq!(check_point(&Coord { x: f64::NAN, y: 0.0 }).unwrap_err(), "(NaN, 0) is no point");
    }

    /// Slivers are neither places nor holes; a bow tie, whose halves cancel, is no sliver.
    #[test]
    fn slivers_are_skipped() {
        let square: LineString = vec![[0.0, 0.0], [4.0, 0.0], [4.0, 4.0], [0.0, 4.0], [0.0, 0.0]].into();
        let sliver: LineString = vec![[1.0, 1.0], [3.0, 1.0], [2.0, 1.0 + 1e-8], [1.0, 1.0]].into();
        let flat: LineString = vec![[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [0.0, 0.0]].into();
        for none in [&sliver, &flat] {
            assert_eq!(with_holes(std::slice::from_ref(none)), Ok(None));
            let whole = with_holes(&[square.clone(), none.clone()]).unwrap().unwrap();
            assert_eq!((whole.unsigned_area(), whole.interiors().len()), (16.0, 0));
        }
        let tie: LineString = vec![[1.0, 1.0], [3.0, 3.0], [3.0, 1.0], [1.0, 3.0], [1.0, 1.0]].into();
        assert_eq!(with_holes(std::slice::from_ref(&tie)).unwrap_err(), "its outline crosses itself at (2.00, 2.00)");
        assert_eq!(with_holes(&[square.clone(), tie]).unwrap_err(), "its hole 1 crosses itself at (2.00, 2.00)");
        let error = with_holes(&[square.clone(), square]).unwrap_err();
        assert_eq!(error, "its holes have 16 m2, and its outline has 16");
    }

    #[test]
    fn points_lie_on_lines() {
        let line = vec![[0.0, 0.0], [3.0, 0.0], [3.0, 1.0]].into();
        assert_eq!(point_at(&line, 0.5), [2.0, 0.0].into());
        assert_eq!(point_at(&line, 1.0), [3.0, 1.0].into());
    }
}
