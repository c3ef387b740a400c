//! Offices: rooms on both sides of corridors.

use super::GeneratorConfig;
use super::draw::{Draw, Size};
use super::plane::{self, EXIT_DEPTH, Rect};
use crate::NodeKind;
use crate::builder::Builder;

/// Largest number of rooms on one side of a corridor; more rooms need another corridor.
const MOST_PER_SIDE: usize = 24;

/// The common dimensions of the floors of a building, in decimeters.
struct Frame {
    /// Rooms per side of a part of the corridor.
    bays: usize,
    hall_width: i32,
    /// Depth of a room, perpendicular to the corridor.
    depth: i32,
    /// Length of each part of the corridor.
    lengths: Vec<i32>,
}

/// A place beside a corridor.
struct Slot {
    hall: usize,
    rect: Rect,
}

/// Adds all floors and returns the exits.
pub(super) fn build(plan: &mut Builder, config: &GeneratorConfig, size: &Size, draw: &mut Draw) -> Vec<usize> {
    let bays = draw.between(1, 2);
    let wings = wings(size, bays);
    let halls = |floor: usize| n_halls(size, floor, bays, wings);
    let most_halls = (0..size.floors.len()).map(halls).max().unwrap_or(1).div_ceil(wings);
    let frame = Frame {
        bays,
        hall_width: draw.decimeters(config.hall_width_m),
        depth: draw.decimeters(config.room_side_m),
        lengths: (0..most_halls).map(|_| (0..bays).map(|_| draw.decimeters(config.room_side_m)).sum()).collect(),
    };
    let door = draw.between(9, 12) as i32;
    let mut exits = Vec::new();
    let mut stairs: Vec<usize> = Vec::new();
    for (floor, nodes) in size.floors.iter().enumerate() {
        let n_halls = halls(floor);
        let lobbies = if wings > 1 { wings } else { 0 };
        let mut ends = Vec::new();
        let mut slots = corridors(plan, &frame, floor, n_halls, wings, &mut ends);
        for well in 0..size.stairwells {
            // The same slots on every floor, so that stairs are above each other.
            let slot = slots.remove(if well == 0 { 0 } else { slots.len().min(frame.bays * 2) - 1 });
            let stair = plane::place(plan, format!("F{floor}_S{well}"), NodeKind::Stair, floor, &slot.rect);
            plan.passage(stair, slot.hall, 1.0, plane::meters(door));
            if floor > 0 {
                plan.flight(stairs[well], stair, plane::meters(door));
                stairs[well] = stair;
            } else {
                stairs.push(stair);
            }
        }
        if floor == 0 {
            for n in 0..size.exits {
                // At the ends of corridors first, then between rooms.
                let slot = match ends.is_empty() {
                    false => ends.remove(0),
                    true => slots.remove(draw.between(0, slots.len() - 1)),
                };
                let exit = plane::place(plan, format!("EXIT_{n}"), NodeKind::Exit, 0, &slot.rect);
                plane::doorway(plan, exit, slot.hall, door);
                exits.push(exit);
            }
        }
        let n_rooms = nodes - n_halls - lobbies;
        while slots.len() > n_rooms {
            // A slot without a room: a shaft, or a corridor that is longer on one side.
            slots.remove(draw.between(0, slots.len() - 1));
        }
        for (n, slot) in slots.iter().enumerate() {
            let room = plane::place(plan, format!("F{floor}_R{n}"), NodeKind::Room, floor, &slot.rect);
            plane::doorway(plan, room, slot.hall, door);
        }
    }
    exits
}

/// Number of parallel corridors on every floor.
fn wings(size: &Size, bays: usize) -> usize {
    let most = size.floors.iter().max().copied().unwrap_or(0);
    // A full part of the corridor consists of its rooms and one hall.
    let halls = most.div_ceil(2 * bays + 1);
    (halls * bays).div_ceil(MOST_PER_SIDE)
}

/// Number of parts of all corridors of a floor, as required by its rooms, stairs and exits.
fn n_halls(size: &Size, floor: usize, bays: usize, wings: usize) -> usize {
    let lobbies = if wings > 1 { wings } else { 0 };
    let exits = if floor == 0 { size.exits.saturating_sub(n_ends(wings)) } else { 0 };
    (size.floors[floor] - lobbies + size.stairwells + exits).div_ceil(2 * bays + 1).max(wings)
}

/// Number of corridor ends with a possible exit.
fn n_ends(wings: usize) -> usize {
    wings + 1
}

/// Adds the corridors of a floor; returns the slots beside them and writes those at their `ends`.
fn corridors(
    plan: &mut Builder,
    frame: &Frame,
    floor: usize,
    n_halls: usize,
    wings: usize,
    ends: &mut Vec<Slot>,
) -> Vec<Slot> {
    let mut slots = Vec::new();
    let mut before: Option<(usize, Rect)> = None;
    let pitch = frame.hall_width + 2 * frame.depth;
    for wing in 0..wings {
        let y = wing as i32 * pitch;
        let width = [y, y + frame.hall_width];
        let mut last: Option<(usize, Rect)> = None;
        if wings > 1 {
            let rect = Rect::new([-frame.hall_width, 0], [y - frame.depth, y + frame.hall_width + frame.depth]);
            let lobby = plane::place(plan, format!("F{floor}_L{wing}"), NodeKind::Hall, floor, &rect);
            if let Some((below, other)) = &before {
                plan.passage(*below, lobby, plane::walk(other, &rect), plane::meters(frame.hall_width));
            }
            before = Some((lobby, rect));
            last = before;
        }
        let count = n_halls / wings + usize::from(wing < n_halls % wings);
        let mut x = 0;
        for (part, length) in frame.lengths[..count].iter().enumerate() {
            let rect = Rect::new([x, x + length], width);
            let hall = plane::place(plan, format!("F{floor}_W{wing}_H{part}"), NodeKind::Hall, floor, &rect);
            match &last {
                Some((neighbor, other)) => {
                    plan.passage(*neighbor, hall, plane::walk(other, &rect), plane::meters(frame.hall_width));
                }
                None => ends.push(Slot { hall, rect: Rect::new([-EXIT_DEPTH, 0], width) }),
            }
            for y in [[width[1], width[1] + frame.depth], [width[0] - frame.depth, width[0]]] {
                let bays = frame.bays as i32;
                slots.extend((0..bays).map(|bay| {
                    let sides = [x + length * bay / bays, x + length * (bay + 1) / bays];
                    Slot { hall, rect: Rect::new(sides, y) }
                }));
            }
            x += length;
            last = Some((hall, rect));
        }
        if let Some((hall, _)) = last {
            ends.push(Slot { hall, rect: Rect::new([x, x + EXIT_DEPTH], width) });
        }
    }
    if let Some((lobby, rect)) = before {
        let x = [-frame.hall_width - EXIT_DEPTH, -frame.hall_width];
        ends.insert(0, Slot { hall: lobby, rect: Rect::new(x, [rect.y[0], rect.y[0] + frame.hall_width]) });
    }
    slots
}
