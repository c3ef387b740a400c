//! Which places an opening joins, and how much of it is already there.

use geo::{BoundingRect, Contains, Coord, Distance, Euclidean, Length, Line, LineString, Point, Rect, Vector2DOps};

use super::assemble::{Area, Opening};
use super::{plan_error, shape};
use crate::FloorPlanError;

/// Largest distance of an opening from its outline, in m, because of the thickness of walls.
const TOLERANCE_M: f64 = 0.3;
/// Largest distance of the two sides of a wall, in m.
const WALL_M: f64 = 2.0 * TOLERANCE_M;
/// Openings of which less is new are given twice.
const LEAST_NEW: f64 = 0.01;

/// An opening with the one or two places that it touches; none if it is the other side of an opening that touches some.
pub(super) struct Gap {
    pub(super) areas: Vec<usize>,
    pub(super) middle: Point,
    /// From its first to its last point.
    pub(super) chord: Line,
    pub(super) width_m: f64,
    /// Whether it is in the edge of a hole and touches one place only.
    is_in_hole: bool,
}

/// The gaps of openings, in their order.
///
/// # Errors
/// [`FloorPlanError::Plan`] naming an opening that touches no place, more than two, or one whose hole is empty.
pub(super) fn gaps(origin: &str, areas: &[Area], openings: &[Opening]) -> Result<Vec<Gap>, FloorPlanError> {
    let boxes: Vec<Option<Rect>> = areas.iter().map(|area| area.outline.bounding_rect()).collect();
    let gaps = openings.iter().map(|opening| gap(origin, areas, &boxes, opening));
    let mut gaps = gaps.collect::<Result<Vec<_>, _>>()?;
    join_sides(&mut gaps, openings);
    for n in 0..gaps.len() {
        let (gap, opening) = (&gaps[n], &openings[n]);
        let error = |reason: String| Err(plan_error(origin, format!("opening `{}` {reason}", opening.id)));
        if gap.areas.is_empty() {
            let floor = opening.floor;
            let others =
                openings.iter().zip(&gaps).filter(|(other, gap)| other.floor == floor && !gap.areas.is_empty());
            if uncovered(&gap.chord, others.map(|(_, gap)| &gap.chord)) > 0.5 {
                return error(format!("touches no place of floor {floor} within {TOLERANCE_M} m"));
            }
        }
        if gap.is_in_hole && gap.areas.len() == 1 && !opening.is_exit {
            let area = &areas[gap.areas[0]].id;
            return error(format!(
                "is in the edge of a hole of `{area}` without a place inside; draw it, or mark an exit"
            ));
        }
    }
    Ok(gaps)
}

fn gap(origin: &str, areas: &[Area], boxes: &[Option<Rect>], opening: &Opening) -> Result<Gap, FloorPlanError> {
    let middle = match opening.width_m {
        None => shape::point_at(&opening.line, 0.5),
        Some(_) => opening.line.0.first().copied().unwrap_or_default().into(),
    };
    // An opening lies along the wall, so all of it is near; one that ends at a wall is not.
    let samples = match opening.width_m {
        None => vec![shape::point_at(&opening.line, 0.25), middle, shape::point_at(&opening.line, 0.75)],
        Some(_) => vec![middle],
    };
    // What is farther from the box around an outline than from the outline need not be measured.
    let is_near = |area: usize, margin: f64| {
        boxes[area].is_some_and(|around| {
            let (low, high) = (around.min(), around.max());
            let is_within = |x: f64, low: f64, high: f64| x >= low - margin && x <= high + margin;
            is_within(middle.x(), low.x, high.x) && is_within(middle.y(), low.y, high.y)
        })
    };
    let on_floor = |margin: f64| {
        areas.iter().enumerate().filter(move |(n, area)| area.floor == opening.floor && is_near(*n, margin))
    };
    let apart = |ring: &LineString| samples.iter().map(|sample| Euclidean.distance(sample, ring)).fold(0.0, f64::max);
    // In whole micrometers, so that ties are decided by the order of the plan and not by rounding.
    let micrometers = |meters: f64| (meters * 1e6).round() as u64;
    // The distance from the nearest wall, the place, and whether the wall is that of a hole.
    let mut near: Vec<(u64, usize, bool)> = Vec::new();
    for (n, area) in on_floor(2.0 * TOLERANCE_M) {
        let to_outline = micrometers(apart(area.outline.exterior()));
        let to_hole = area.outline.interiors().iter().map(|hole| micrometers(apart(hole))).min();
        let is_hole = to_hole.is_some_and(|hole| hole < to_outline);
        let apart = to_hole.map_or(to_outline, |hole| hole.min(to_outline));
        if apart <= micrometers(TOLERANCE_M) {
            near.push((apart, n, is_hole));
        }
    }
    near.sort_unstable();
    if near.len() > 2 && near[2].0 <= near[1].0 + 1 {
        let ids: Vec<String> = near.iter().map(|(_, area, _)| format!("`{}`", areas[*area].id)).collect();
        let reason = format!("opening `{}` touches more than two places: {}", opening.id, ids.join(", "));
        return Err(plan_error(origin, reason));
    }
    near.truncate(2);
    let mut touched: Vec<usize> = near.iter().map(|(_, area, _)| *area).collect();
    if let [only] = touched[..] {
        // A place may be drawn over a larger one that has no hole for it.
        let around = on_floor(0.0).filter(|(n, area)| *n != only && area.outline.contains(&middle));
        let size = |area: &Area| geo::Area::unsigned_area(&area.outline);
        touched.extend(around.min_by(|(_, a), (_, b)| size(a).total_cmp(&size(b))).map(|(n, _)| n));
    }
    let chord = match opening.width_m {
        None => ends(&opening.line),
        Some(width_m) => along_wall(areas, &touched, middle, width_m),
    };
    let width_m = opening.width_m.unwrap_or_else(|| Euclidean.length(&opening.line));
    Ok(Gap { areas: touched, middle, chord, width_m, is_in_hole: near.first().is_some_and(|(_, _, is_hole)| *is_hole) })
}

fn ends(line: &LineString) -> Line {
    let (first, last) = (line.0.first().copied(), line.0.last().copied());
    Line::new(first.unwrap_or_default(), last.unwrap_or_default())
}

/// A line through a point, along the nearest wall of the first place.
fn along_wall(areas: &[Area], touched: &[usize], middle: Point, width_m: f64) -> Line {
    let walls = touched.iter().take(1).flat_map(|area| {
        let outline = &areas[*area].outline;
        outline.interiors().iter().chain([outline.exterior()]).flat_map(LineString::lines)
    });
    let apart = |wall: &Line| Euclidean.distance(&middle, wall);
    let wall = walls.filter(|wall| wall.start != wall.end).min_by(|a, b| apart(a).total_cmp(&apart(b)));
    let along = wall.and_then(|wall| wall.delta().try_normalize()).unwrap_or(Coord { x: 1.0, y: 0.0 });
    Line::new(middle.0 - along * (0.5 * width_m), middle.0 + along * (0.5 * width_m))
}

/// Openings that each touch one place, and face each other, are the two sides of one thick wall: both join both places.
fn join_sides(gaps: &mut [Gap], openings: &[Opening]) {
    let is_single = |n: &usize| gaps[*n].areas.len() == 1 && !openings[*n].is_exit && !gaps[*n].is_in_hole;
    let mut singles: Vec<usize> = (0..gaps.len()).filter(is_single).collect();
    singles.sort_by(|a, b| gaps[*a].middle.x().total_cmp(&gaps[*b].middle.x()));
    let widest = singles.iter().map(|n| gaps[*n].width_m).fold(0.0, f64::max);
    for (rank, &n) in singles.iter().enumerate() {
        for &other in &singles[rank + 1..] {
            if gaps[other].middle.x() - gaps[n].middle.x() > WALL_M + widest {
                break;
            }
            let (a, b) = (gaps[n].areas[0], gaps[other].areas[0]);
            let is_free = gaps[n].areas.len() == 1 && gaps[other].areas.len() == 1 && a != b;
            let is_facing = || uncovered(&gaps[n].chord, [&gaps[other].chord]) < 0.5;
            if is_free && openings[n].floor == openings[other].floor && is_facing() {
                let areas = vec![a.min(b), a.max(b)];
                gaps[n].areas.clone_from(&areas);
                gaps[other].areas = areas;
            }
        }
    }
}

/// How much of an opening is not yet there, from 0 to 1: openings that are given twice, or from both sides of a wall, are one.
pub(super) fn uncovered<'a>(chord: &Line, others: impl IntoIterator<Item = &'a Line>) -> f64 {
    let length = Euclidean.length(chord);
    let Some(along) = chord.delta().try_normalize() else { return 1.0 };
    let mut covered: Vec<(f64, f64)> = Vec::new();
    for other in others {
        let ends = [other.start, other.end].map(|end| end - chord.start);
        if ends.iter().all(|end| along.wedge_product(*end).abs() <= WALL_M) {
            let [a, b] = ends.map(|end| along.dot_product(end).clamp(0.0, length));
            covered.push((a.min(b), a.max(b)));
        }
    }
    covered.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut free, mut reached) = (0.0, 0.0);
    for (from, to) in covered {
        free += f64::max(from - reached, 0.0);
        reached = f64::max(reached, to);
    }
    let new = (free + length - reached) / length;
    if new < LEAST_NEW { 0.0 } else { new }
}

#[cfg(test)]
mod tests {
    use super::*;
    use approx::assert_relative_eq;

    #[test]
    fn what_is_there_twice_counts_once() {
        let line = |a: [f64; 2], b: [f64; 2]| Line::new(Coord::from(a), Coord::from(b));
        let door = line([1.0, 0.0], [2.0, 0.0]);
        assert_eq!(uncovered(&door, []), 1.0);
        // Again, backwards, from the other side of a wall, longer.
        for other in [door, line([2.0, 0.0], [1.0, 0.0]), line([1.0, 0.4], [2.0, 0.4]), line([0.0, 0.1], [3.0, 0.1])] {
            assert_eq!(uncovered(&door, [&other]), 0.0);
        }
        // Beside it, across a room, at a corner.
        for other in [line([2.0, 0.0], [3.0, 0.0]), line([1.0, 2.0], [2.0, 2.0]), line([1.0, 0.0], [1.0, 1.0])] {
            assert_eq!(uncovered(&door, [&other]), 1.0);
        }
        let parts = [line([0.0, 0.0], [1.2, 0.0]), line([1.1, 0.2], [1.4, 0.2]), line([1.9, 0.0], [5.0, 0.0])];
        assert_relative_eq!(uncovered(&door, &parts), 0.5, epsilon = 1e-12);
    }
}
