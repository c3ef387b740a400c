//! A rectangle cut by corridors into blocks, and blocks by walls into rooms.
//!
//! Corridors and stairs, at the ends of the widest corridor, are the same on every floor; walls differ.

use super::GeneratorConfig;
use super::draw::{Draw, Size};
use super::plane::{self, EXIT_DEPTH, Rect};
use crate::NodeKind;
use crate::builder::Builder;

/// Largest number of rooms of a block; larger blocks are cut by a corridor.
const MOST_PER_BLOCK: usize = 9;
/// Inverse of the smallest fraction of rooms among the places of a floor: 1 / 2.
const ROOMS_AT_LEAST: usize = 2;
/// Smallest length of a shared wall with a door, in decimeters.
const DOOR_WALL: i32 = 10;
/// The same between corridors: half the smallest corridor width, so that one of two corridors at its end is joined with
/// it.
const PASSAGE_WALL: i32 = 8;
/// Depth of a stairwell along the corridor, in decimeters.
const STAIR_DEPTH: i32 = 30;
/// Fraction of walls between rooms with an additional door.
const EXTRA_DOOR_SHARE: f64 = 0.12;
/// Fraction of further walls to corridors with a door.
const SECOND_DOOR_SHARE: f64 = 0.15;

/// A place of a floor.
#[derive(Debug, Clone)]
struct Cell {
    rect: Rect,
    kind: NodeKind,
}

/// Adds all floors and returns the exits.
pub(super) fn build(plan: &mut Builder, config: &GeneratorConfig, size: &Size, draw: &mut Draw) -> Vec<usize> {
    let least = size.floors.iter().min().copied().unwrap_or(5);
    let skeleton = Skeleton::draw(config, least, size.stairwells, draw);
    let door = draw.between(9, 12) as i32;
    let mut stairs: Vec<usize> = Vec::new();
    let mut exits = Vec::new();
    for (floor, nodes) in size.floors.iter().enumerate() {
        let mut cells = skeleton.fixed.clone();
        cells.extend(rooms(&skeleton.blocks, nodes + size.stairwells - cells.len(), draw));
        let mut counts = [0; 3];
        let nodes: Vec<usize> = cells
            .iter()
            .map(|cell| {
                let (letter, count) = match cell.kind {
                    NodeKind::Hall => ("H", &mut counts[0]),
                    NodeKind::Stair => ("S", &mut counts[1]),
                    _ => ("R", &mut counts[2]),
                };
                *count += 1;
                plane::place(plan, format!("F{floor}_{letter}{}", *count - 1), cell.kind, floor, &cell.rect)
            })
            .collect();
        join(plan, &cells, &nodes, door, draw);
        let wells: Vec<usize> =
            (0..cells.len()).filter(|n| cells[*n].kind == NodeKind::Stair).map(|n| nodes[n]).collect();
        for (below, above) in stairs.iter().zip(&wells) {
            plan.flight(*below, *above, plane::meters(door));
        }
        stairs = wells;
        if floor == 0 {
            exits = add_exits(plan, &skeleton.outline, &cells, &nodes, size.exits, door, draw);
        }
    }
    exits
}

/// The common parts of all floors.
struct Skeleton {
    outline: Rect,
    /// Corridors and stairwells.
    fixed: Vec<Cell>,
    /// The areas that walls divide into rooms.
    blocks: Vec<Rect>,
}

impl Skeleton {
    /// Samples an outline and its corridors for floors of at least `n_places` rooms and halls.
    fn draw(config: &GeneratorConfig, n_places: usize, stairwells: usize, draw: &mut Draw) -> Self {
        let hall_width = draw.decimeters(config.hall_width_m);
        // Square roots are rounded equally on every machine.
        let side = |side_m: i32, n: usize| (f64::from(side_m * side_m) * n as f64).sqrt() as i32;
        let mean = (draw.decimeters(config.room_side_m) + draw.decimeters(config.room_side_m)) / 2;
        let square = side(mean, n_places) + hall_width;
        // At most one and a half times as long, and narrower by the same factor.
        let stretch = draw.between(100, 150) as i32;
        let width = (square * stretch / 100).max(2 * STAIR_DEPTH + 60);
        let height = (square * 100 / stretch).max(hall_width + 50);
        let outline = Rect::new([0, width], [0, height]);
        let bottom = (height - hall_width) * draw.between(40, 60) as i32 / 100;
        let main = Rect::new([0, width], [bottom, bottom + hall_width]);
        let mut corridors = vec![main];
        let mut blocks = Vec::new();
        let upper = Rect::new([0, width], [main.y[1], height]);
        let lower = Rect::new([0, width], [0, main.y[0]]);
        let total = i64::from(upper.height() + lower.height());
        for block in [upper, lower] {
            let share = (n_places as i64 * i64::from(block.height()) / total) as usize;
            cut_by_corridors(block, share, false, hall_width, &mut corridors, &mut blocks, draw);
        }
        let fixed = Self::parts(&corridors, n_places, stairwells);
        Self { outline, fixed, blocks }
    }

    /// Stairwells at the ends of the first corridor, and all corridors divided into parts.
    fn parts(corridors: &[Rect], n_places: usize, stairwells: usize) -> Vec<Cell> {
        let mut fixed = Vec::new();
        let mut main = corridors[0];
        if stairwells > 0 {
            let x = [main.x[0], main.x[0] + STAIR_DEPTH];
            fixed.push(Cell { rect: Rect::new(x, main.y), kind: NodeKind::Stair });
            main.x[0] = x[1];
        }
        if stairwells > 1 {
            let x = [main.x[1] - STAIR_DEPTH, main.x[1]];
            fixed.push(Cell { rect: Rect::new(x, main.y), kind: NodeKind::Stair });
            main.x[1] = x[0];
        }
        // Parts of about 8 m, longer ones if there would be too many halls for the rooms.
        let mut length = 80;
        loop {
            let parts: Vec<Rect> = std::iter::once(&main)
                .chain(&corridors[1..])
                .flat_map(|corridor| {
                    let is_wide = corridor.width() > corridor.height();
                    let along = if is_wide { corridor.x } else { corridor.y };
                    let n = ((along[1] - along[0]) / length).max(1);
                    (0..n).map(move |part| {
                        let at = |part: i32| along[0] + (along[1] - along[0]) * part / n;
                        let ends = [at(part), at(part + 1)];
                        if is_wide { Rect::new(ends, corridor.y) } else { Rect::new(corridor.x, ends) }
                    })
                })
                .collect();
            if parts.len() * ROOMS_AT_LEAST <= n_places || parts.len() == corridors.len() {
                fixed.extend(parts.into_iter().map(|rect| Cell { rect, kind: NodeKind::Hall }));
                return fixed;
            }
            length += 20;
        }
    }
}

/// Divides a block for `n_rooms` recursively by corridors at right angles to the adjacent one.
fn cut_by_corridors(
    block: Rect,
    n_rooms: usize,
    is_upright: bool,
    hall_width: i32,
    corridors: &mut Vec<Rect>,
    blocks: &mut Vec<Rect>,
    draw: &mut Draw,
) {
    // Lengths are measured along the existing corridor, so the new one is perpendicular.
    let along = if is_upright { block.y } else { block.x };
    let room = along[1] - along[0] - hall_width;
    if n_rooms <= MOST_PER_BLOCK || room < 2 * 40 {
        blocks.push(block);
        return;
    }
    let before = room * draw.between(40, 60) as i32 / 100;
    let cuts = [along[0] + before, along[0] + before + hall_width];
    let part = |ends: [i32; 2]| match is_upright {
        true => Rect::new(block.x, ends),
        false => Rect::new(ends, block.y),
    };
    corridors.push(part(cuts));
    let first = n_rooms * before as usize / room as usize;
    for (ends, n_rooms) in [([along[0], cuts[0]], first), ([cuts[1], along[1]], n_rooms - first)] {
        cut_by_corridors(part(ends), n_rooms, !is_upright, hall_width, corridors, blocks, draw);
    }
}

/// Divides blocks by walls until there are `n_rooms`: always the largest room, across its longer side.
fn rooms(blocks: &[Rect], n_rooms: usize, draw: &mut Draw) -> Vec<Cell> {
    let mut rects = blocks.to_vec();
    while rects.len() < n_rooms {
        let area = |n: &usize| rects[*n].width() * rects[*n].height();
        let largest = (0..rects.len()).max_by_key(|n| (area(n), *n)).unwrap_or_default();
        let rect = rects[largest];
        let share = draw.between(35, 65) as i32;
        let (first, second) = if rect.width() >= rect.height() {
            let x = rect.x[0] + rect.width() * share / 100;
            (Rect::new([rect.x[0], x], rect.y), Rect::new([x, rect.x[1]], rect.y))
        } else {
            let y = rect.y[0] + rect.height() * share / 100;
            (Rect::new(rect.x, [rect.y[0], y]), Rect::new(rect.x, [y, rect.y[1]]))
        };
        rects[largest] = first;
        rects.push(second);
    }
    rects.into_iter().map(|rect| Cell { rect, kind: NodeKind::Room }).collect()
}

/// Adds the ways of a floor: touching corridors are joined; rooms get a door to a corridor or, if they touch
/// none, to a room that is already connected.
fn join(plan: &mut Builder, cells: &[Cell], nodes: &[usize], door: i32, draw: &mut Draw) {
    let is_room = |n: usize| cells[n].kind == NodeKind::Room;
    let mut walls = Vec::new();
    for a in 0..cells.len() {
        for b in a + 1..cells.len() {
            let wall = cells[a].rect.shared_wall(&cells[b].rect);
            if wall > 0 {
                walls.push((a, b, wall));
            }
        }
    }
    let mut is_reached: Vec<bool> = (0..cells.len()).map(|n| !is_room(n)).collect();
    let mut has_door = vec![false; walls.len()];
    for (a, b, wall) in walls.iter().filter(|(a, b, wall)| !is_room(*a) && !is_room(*b) && *wall >= PASSAGE_WALL) {
        plan.passage(nodes[*a], nodes[*b], plane::walk(&cells[*a].rect, &cells[*b].rect), plane::meters(*wall));
    }
    // From room to room, starting at the corridors. Walls that are too short for a door, and those of a stairwell,
    // come last.
    let mut order: Vec<usize> = (0..walls.len()).collect();
    draw.shuffle(&mut order);
    for is_last in [false, true] {
        let serves = |wall: &&usize| {
            let (a, b, length) = walls[**wall];
            is_last || (length >= DOOR_WALL && ![a, b].iter().any(|n| cells[*n].kind == NodeKind::Stair))
        };
        let good: Vec<usize> = order.iter().filter(serves).copied().collect();
        while let Some(wall) =
            good.iter().copied().find(|wall| is_reached[walls[*wall].0] != is_reached[walls[*wall].1])
        {
            let (a, b, _) = walls[wall];
            let inner = if is_reached[a] { b } else { a };
            // A corridor is preferred to another room.
            let is_to_hall = |other: &usize| {
                let (a, b, _) = walls[*other];
                (a == inner && cells[b].kind == NodeKind::Hall) || (b == inner && cells[a].kind == NodeKind::Hall)
            };
            has_door[good.iter().copied().find(is_to_hall).unwrap_or(wall)] = true;
            is_reached[inner] = true;
        }
    }
    for (wall, (a, b, length)) in walls.iter().enumerate() {
        let share = match (is_room(*a), is_room(*b)) {
            (true, true) => EXTRA_DOOR_SHARE,
            (false, false) => continue,
            _ if [*a, *b].iter().any(|n| cells[*n].kind == NodeKind::Stair) => 0.0,
            _ => SECOND_DOOR_SHARE,
        };
        if has_door[wall] || (*length >= DOOR_WALL && draw.chance(share)) {
            plane::doorway(plan, nodes[*a], nodes[*b], door);
        }
    }
}

/// Adds exits at outer walls, at corridors first.
fn add_exits(
    plan: &mut Builder,
    outline: &Rect,
    cells: &[Cell],
    nodes: &[usize],
    n_exits: usize,
    door: i32,
    draw: &mut Draw,
) -> Vec<usize> {
    let mut sides = Vec::new();
    for (n, cell) in cells.iter().enumerate().filter(|(_, cell)| cell.kind != NodeKind::Stair) {
        let Rect { x, y } = cell.rect;
        let outer = [
            (x[0] == outline.x[0], Rect { x: [x[0] - EXIT_DEPTH, x[0]], y }),
            (x[1] == outline.x[1], Rect { x: [x[1], x[1] + EXIT_DEPTH], y }),
            (y[0] == outline.y[0], Rect { x, y: [y[0] - EXIT_DEPTH, y[0]] }),
            (y[1] == outline.y[1], Rect { x, y: [y[1], y[1] + EXIT_DEPTH] }),
        ];
        sides.extend(outer.into_iter().filter(|(is_outer, _)| *is_outer).map(|(_, rect)| (n, rect)));
    }
    draw.shuffle(&mut sides);
    sides.sort_by_key(|(n, _)| cells[*n].kind == NodeKind::Room);
    let mut exits = Vec::new();
    for (n, rect) in sides.into_iter().take(n_exits) {
        let exit = plane::place(plan, format!("EXIT_{}", exits.len()), NodeKind::Exit, 0, &rect);
        plane::doorway(plan, exit, nodes[n], door);
        exits.push(exit);
    }
    exits
}
