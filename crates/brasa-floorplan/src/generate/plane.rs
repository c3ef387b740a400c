//! Rectangles in whole decimeters.

use crate::builder::Builder;
use crate::{Edge, NodeKind};

/// An axis-aligned rectangle, in decimeters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rect {
    pub(super) x: [i32; 2],
    pub(super) y: [i32; 2],
}

impl Rect {
    pub(super) fn new(x: [i32; 2], y: [i32; 2]) -> Self {
        debug_assert!(x[0] < x[1] && y[0] < y[1], "{x:?} {y:?}");
        Self { x, y }
    }

    pub(super) fn width(&self) -> i32 {
        self.x[1] - self.x[0]
    }

    pub(super) fn height(&self) -> i32 {
        self.y[1] - self.y[0]
    }

    /// Length of the shared wall of two rectangles; 0 if they do not touch.
    pub(super) fn shared_wall(&self, other: &Self) -> i32 {
        let overlap = |a: [i32; 2], b: [i32; 2]| a[1].min(b[1]) - a[0].max(b[0]);
        let (along_x, along_y) = (overlap(self.x, other.x), overlap(self.y, other.y));
        match (along_x, along_y) {
            (0, wall) | (wall, 0) => wall.max(0),
            _ => 0,
        }
    }

    /// Corners in m, counterclockwise.
    fn polygon(&self) -> Vec<[f64; 2]> {
        let ([x0, x1], [y0, y1]) = (self.x.map(meters), self.y.map(meters));
        vec![[x0, y0], [x1, y0], [x1, y1], [x0, y1]]
    }
}

/// Converts decimeters to m.
pub(super) fn meters(decimeters: i32) -> f64 {
    f64::from(decimeters) / 10.0
}

/// Manhattan distance of two centers, in m.
pub(super) fn walk(a: &Rect, b: &Rect) -> f64 {
    let apart = |a: [i32; 2], b: [i32; 2]| (a[0] + a[1] - b[0] - b[1]).abs();
    f64::from(apart(a.x, b.x) + apart(a.y, b.y)) / 20.0
}

/// Adds a place with a rectangular outline.
pub(super) fn place(plan: &mut Builder, name: String, kind: NodeKind, floor: usize, rect: &Rect) -> usize {
    let area_m2 = f64::from(rect.width() * rect.height()) / 100.0;
    let node = plan.node(name, kind, floor as i32, area_m2, meters(rect.width().max(rect.height())));
    plan.at(node).polygon = Some(rect.polygon());
    node
}

/// Length of the way through the door of a room, in m; the search covers the rest of the room.
const DOORWAY_M: f64 = 1.0;
/// Depth of an exit, in decimeters.
pub(super) const EXIT_DEPTH: i32 = 20;

/// Adds the door of a room or an exit.
pub(super) fn doorway(plan: &mut Builder, a: usize, b: usize, width_dm: i32) -> &mut Edge {
    plan.door(a, b, DOORWAY_M, meters(width_dm))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walls_are_shared_where_rectangles_touch() {
        let base = Rect::new([0, 10], [0, 10]);
        for (x, y, wall) in [
            ([10, 20], [0, 10], 10),
            ([10, 20], [4, 30], 6),
            ([2, 5], [10, 12], 3),
            ([-5, 30], [-4, 0], 10),
            // Only a corner, disjoint, and one inside the other.
            ([10, 20], [10, 20], 0),
            ([11, 20], [0, 10], 0),
            ([2, 8], [2, 8], 0),
        ] {
            let other = Rect::new(x, y);
            assert_eq!((base.shared_wall(&other), other.shared_wall(&base)), (wall, wall), "{other:?}");
        }
    }
}
