//! Daycare centers: rooms along a corridor, and rooms in the middle with doors to most of them.

use super::GeneratorConfig;
use super::draw::{Draw, Size};
use super::plane;
use crate::NodeKind;
use crate::builder::Builder;

/// Fraction of rooms with a door to their hub.
const DOOR_SHARE: f64 = 0.85;
/// Fraction of hubs that also have a door to the corridor.
const OPEN_HUB_SHARE: f64 = 0.3;
/// Rooms and halls per hub, at most.
const NODES_PER_HUB: usize = 20;

/// Adds all floors and returns the exits.
pub(super) fn build(plan: &mut Builder, config: &GeneratorConfig, size: &Size, draw: &mut Draw) -> Vec<usize> {
    let hall_width = draw.decimeters(config.hall_width_m);
    let hall_length = 2 * draw.decimeters(config.room_side_m);
    let door = draw.between(9, 12) as i32;
    let rooms_per_hall = draw.between(3, 5);
    let mut corridors: Vec<Vec<usize>> = Vec::new();
    for (floor, nodes) in size.floors.iter().enumerate() {
        let n_hubs = nodes.div_ceil(NODES_PER_HUB);
        let n_halls = (nodes - n_hubs).div_ceil(rooms_per_hall + 1);
        let n_rooms = nodes - n_hubs - n_halls;
        let corridor: Vec<usize> = (0..n_halls)
            .map(|n| {
                let area_m2 = f64::from(hall_width * hall_length) / 100.0;
                plan.node(format!("F{floor}_H{n}"), NodeKind::Hall, floor as i32, area_m2, plane::meters(hall_length))
            })
            .collect();
        for pair in corridor.windows(2) {
            plan.passage(pair[0], pair[1], plane::meters(hall_length), plane::meters(hall_width));
        }
        let mut room = |plan: &mut Builder, name: String| {
            let (width, depth) = (draw.decimeters(config.room_side_m), draw.decimeters(config.room_side_m));
            let area_m2 = f64::from(width * depth) / 100.0;
            plan.node(name, NodeKind::Room, floor as i32, area_m2, plane::meters(width.max(depth)))
        };
        let rooms: Vec<usize> = (0..n_rooms).map(|n| room(plan, format!("F{floor}_R{n}"))).collect();
        let hubs: Vec<usize> = (0..n_hubs).map(|n| room(plan, format!("F{floor}_HUB{n}"))).collect();
        for (n, room) in rooms.iter().enumerate() {
            // Rooms are along the corridor in order; each section of rooms is around one hub.
            plane::doorway(plan, *room, corridor[n * n_halls / n_rooms], door);
            let is_first_of_hub = n == 0 || (n - 1) * n_hubs / n_rooms != n * n_hubs / n_rooms;
            if is_first_of_hub || draw.chance(DOOR_SHARE) {
                plan.door(hubs[n * n_hubs / n_rooms], *room, 2.0, plane::meters(door));
            }
        }
        for (n, hub) in hubs.iter().enumerate() {
            if draw.chance(OPEN_HUB_SHARE) {
                plane::doorway(plan, *hub, corridor[n * n_halls / n_hubs], door);
            }
        }
        if let Some(below) = corridors.last() {
            plan.flight(below[below.len() / 2], corridor[n_halls / 2], plane::meters(14));
        }
        corridors.push(corridor);
    }
    // At both ends of the ground floor, then anywhere along it.
    let ground = &corridors[0];
    let mut halls = vec![ground[0], ground[ground.len() - 1]];
    halls.extend((2..size.exits).map(|_| ground[draw.between(0, ground.len() - 1)]));
    let exit = |(n, hall): (usize, &usize)| {
        let exit = plan.node(format!("EXIT_{n}"), NodeKind::Exit, 0, 6.0, 3.0);
        plane::doorway(plan, exit, *hall, door);
        exit
    };
    halls.iter().take(size.exits).enumerate().map(exit).collect()
}
