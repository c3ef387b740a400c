//! A floor of aisles that cross: halls at the crossings, rooms in the blocks between them.

use super::{Floor, Shape};
use crate::NodeKind;
use crate::outline::polygon;

/// Width of an aisle, in m.
const AISLE_M: f64 = 2.8;
/// Depth of a room as a fraction of its width.
const DEPTH: f64 = 0.62;
/// Smallest and largest width of a room, in m.
const ROOM_M: [f64; 2] = [4.0, 14.0];
/// Largest number of halls.
const MOST_HALLS: usize = 150;

/// Right, up, left, down.
const DIRECTIONS: [[i64; 2]; 4] = [[1, 0], [0, 1], [-1, 0], [0, -1]];

/// The shapes of all places; `None` if the halls are not a grid, or a place is neither in a block nor beside the grid.
pub(super) fn draw(floor: &Floor<'_>) -> Option<Vec<Shape>> {
    let halls = floor.of_kind(NodeKind::Hall);
    let crossings = embed(floor, &halls)?;
    let at = |place: usize| halls.iter().position(|hall| *hall == place).map(|n| crossings[n]);
    let is_joined =
        |a: usize, b: [i64; 2]| floor.neighbors(a).any(|neighbor| at(neighbor).is_some_and(|other| other == b));

    let rooms = floor.of_kind(NodeKind::Room);
    let mean = rooms.iter().map(|room| floor.node(*room).area_m2).sum::<f64>() / rooms.len().max(1) as f64;
    let width = (mean / DEPTH).sqrt().clamp(ROOM_M[0], ROOM_M[1]);
    let pitch = [width + AISLE_M, DEPTH * width + AISLE_M];
    let half = AISLE_M / 2.0;
    let corner = |cell: [i64; 2]| [cell[0] as f64 * pitch[0], cell[1] as f64 * pitch[1]];
    let mut taken: Vec<[i64; 2]> = Vec::new();
    let shape = |place: usize| {
        if let Some(cell) = at(place) {
            let arms = DIRECTIONS.map(|step| is_joined(place, [cell[0] + step[0], cell[1] + step[1]]));
            return Some(crossing(corner(cell), arms, pitch));
        }
        let around: Vec<[i64; 2]> = floor.neighbors(place).filter_map(at).collect();
        if around.len() < floor.neighbors(place).len() || around.is_empty() {
            return None;
        }
        if let [cell] = around[..] {
            // Beside the grid, at a position without a hall.
            let is_free = |step: &[i64; 2]| {
                let next = [cell[0] + step[0], cell[1] + step[1]];
                !crossings.contains(&next) && !taken.contains(&next)
            };
            let outwards = [DIRECTIONS[2], DIRECTIONS[0], DIRECTIONS[1], DIRECTIONS[3]];
            let step = outwards.into_iter().find(is_free)?;
            taken.push([cell[0] + step[0], cell[1] + step[1]]);
            let center = corner(cell);
            let [x, y] = [0, 1].map(|axis| center[axis] + AISLE_M * step[axis] as f64);
            return Some(Shape::upright([x - half, y - half], [x + half, y + half]));
        }
        let bound = |axis: usize, least: bool| {
            let values = around.iter().map(|cell| cell[axis]);
            if least { values.min() } else { values.max() }
        };
        let low = [bound(0, true)?, bound(1, true)?];
        if [bound(0, false)?, bound(1, false)?] != [low[0] + 1, low[1] + 1] {
            return None;
        }
        let (low, high) = (corner(low), corner([low[0] + 1, low[1] + 1]));
        Some(Shape::upright([low[0] + half, low[1] + half], [high[0] - half, high[1] - half]))
    };
    (0..floor.len()).map(shape).collect()
}

/// A crossing with an arm to the middle of the way to each neighbor.
fn crossing(center: [f64; 2], arms: [bool; 4], pitch: [f64; 2]) -> Shape {
    let half = AISLE_M / 2.0;
    let reach = |n: usize| if arms[n] { pitch[n % 2] / 2.0 } else { half };
    let (right, up, left, down) = (reach(0), reach(1), -reach(2), -reach(3));
    let outline = [
        [right, -half],
        [right, half],
        [half, half],
        [half, up],
        [-half, up],
        [-half, half],
        [left, half],
        [left, -half],
        [-half, -half],
        [-half, down],
        [half, down],
        [half, -half],
    ];
    let mut outline: Vec<[f64; 2]> = outline.iter().map(|[x, y]| [center[0] + x, center[1] + y]).collect();
    outline.dedup();
    Shape { center, outline: polygon(outline) }
}

/// Positions of the halls on the widest grid in which neighbors have distance one; `None` if there is none.
///
/// The hops from two corners on one side of a grid determine both coordinates of every crossing.
fn embed(floor: &Floor<'_>, halls: &[usize]) -> Option<Vec<[i64; 2]>> {
    if halls.is_empty() || halls.len() > MOST_HALLS {
        return None;
    }
    let is_hall = |place: usize| floor.kind(place) == NodeKind::Hall;
    let hops = halls.iter().map(|hall| {
        let all = floor.hops(*hall, is_hall);
        halls.iter().map(|other| all[*other].is_finite().then_some(all[*other] as i64)).collect::<Option<Vec<i64>>>()
    });
    let hops: Vec<Vec<i64>> = hops.collect::<Option<_>>()?;
    let mut best: Option<(i64, Vec<[i64; 2]>)> = None;
    for (a, from_a) in hops.iter().enumerate() {
        for (b, from_b) in hops.iter().enumerate() {
            let apart = hops[a][b];
            if best.as_ref().is_some_and(|(widest, _)| apart <= *widest) {
                continue;
            }
            // Rows from top to bottom.
            let cells = from_a.iter().zip(from_b).map(|(near, far)| {
                let x = near - far + apart;
                (x % 2 == 0).then_some([x / 2, x / 2 - near])
            });
            let Some(cells) = cells.collect::<Option<Vec<[i64; 2]>>>() else { continue };
            let is_grid = (0..cells.len()).all(|n| {
                let alone = !cells[..n].contains(&cells[n]);
                let unit = |other: usize| {
                    let step = [cells[n][0] - cells[other][0], cells[n][1] - cells[other][1]];
                    hops[n][other] != 1 || step[0].abs() + step[1].abs() == 1
                };
                alone && (0..n).all(unit)
            });
            if is_grid {
                best = Some((apart, cells));
            }
        }
    }
    best.map(|(_, cells)| cells)
}
