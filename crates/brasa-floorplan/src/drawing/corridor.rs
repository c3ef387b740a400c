//! A floor along one corridor: halls in a row, rooms on both sides, hubs behind their rooms.

use super::geometry::upright;
use super::{Floor, Shape};
use crate::NodeKind;
use crate::outline::{corners, polygon};

/// Width of the corridor, in m.
const CORRIDOR_M: f64 = 2.4;
/// Depth of rooms beside it, in m.
const ROOM_M: f64 = 4.2;
/// Depth of hubs behind them, in m.
const HUB_M: f64 = 2.8;
/// Side of an exit, in m.
const EXIT_M: f64 = 2.0;
/// Smallest and largest length of a wall at the corridor, in m.
const WALL_M: [f64; 2] = [2.6, 9.0];
/// Smallest and largest length of a hall, in m.
const HALL_M: [f64; 2] = [3.0, 12.0];
/// Width of the way from a hub to the corridor, in m.
const LEG_M: f64 = 1.5;
/// Smallest number of doors to rooms of a hub.
const HUB_DOORS: usize = 3;
/// Smallest length of a wall with a door, in m.
const DOOR_M: f64 = 0.8;
/// Occupied fraction of a hall's wall from which rooms are stretched to fill it.
const FILLED: f64 = 0.55;

/// Places joined by doors without the corridor; they are on one side of it.
struct Group {
    /// Place and hall of those beside the corridor.
    front: Vec<(usize, usize)>,
    /// Places behind them, with the hall that they are connected to, if any.
    back: Vec<(usize, Option<usize>)>,
    /// Mean position along the corridor.
    at: f64,
}

/// An object at the wall: a place, or the path to a place behind.
#[derive(Clone, Copy, PartialEq)]
enum Slot {
    Place(usize),
    Leg(usize),
}

/// The shapes of all places; `None` if the floor has no single corridor that connects all places.
pub(super) fn draw(floor: &Floor<'_>) -> Option<Vec<Shape>> {
    let halls = row(floor)?;
    let position = |place: usize| halls.iter().position(|hall| *hall == place);
    let mut ends: [Option<usize>; 2] = [None; 2];
    let mut groups = Vec::new();
    for members in groups_of(floor) {
        if let [exit] = members[..]
            && floor.kind(exit) == NodeKind::Exit
            && let [hall] = floor.neighbors(exit).collect::<Vec<_>>()[..]
        {
            let free = [(0, halls[0]), (1, halls[halls.len() - 1])];
            if let Some((end, _)) = free.into_iter().find(|(end, last)| *last == hall && ends[*end].is_none()) {
                ends[end] = Some(exit);
                continue;
            }
        }
        groups.push(Group::new(floor, &members, position)?);
    }

    // The largest groups first, each on the side with more free wall.
    let wall = |slot: &Slot| match slot {
        Slot::Leg(_) => LEG_M,
        Slot::Place(place) if floor.kind(*place) == NodeKind::Exit => EXIT_M,
        Slot::Place(place) => (floor.node(*place).area_m2 / ROOM_M).clamp(WALL_M[0], WALL_M[1]),
    };
    let mut slots = vec![[Vec::<(f64, Slot)>::new(), Vec::new()]; halls.len()];
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|group| std::cmp::Reverse(groups[*group].front.len()));
    let mut sides = vec![0; groups.len()];
    for group in order {
        let Group { front, back, at } = &groups[group];
        let taken = |side: usize| -> f64 {
            front.iter().map(|(_, hall)| slots[*hall][side].iter().map(|(_, slot)| wall(slot)).sum::<f64>()).sum()
        };
        let side = usize::from(taken(1) < taken(0));
        sides[group] = side;
        front.iter().for_each(|(place, hall)| slots[*hall][side].push((*at, Slot::Place(*place))));
        for (place, hall) in back {
            if let Some(hall) = hall {
                slots[*hall][side].push((*at, Slot::Leg(*place)));
            }
        }
    }

    // The length of halls is that of the places beside them.
    let mut shapes: Vec<Option<Shape>> = vec![None; floor.len()];
    let mut extents: Vec<Option<[f64; 2]>> = vec![None; floor.len()];
    let mut legs: Vec<Option<[f64; 2]>> = vec![None; floor.len()];
    let mut x = 0.0;
    let half = CORRIDOR_M / 2.0;
    for (hall, sides) in halls.iter().zip(&mut slots) {
        let total = |side: &[(f64, Slot)]| side.iter().map(|(_, slot)| wall(slot)).sum::<f64>();
        let least = floor.node(*hall).length_m.clamp(HALL_M[0], HALL_M[1]);
        let length = sides.iter().map(|side| total(side)).fold(least, f64::max);
        shapes[*hall] = Some(Shape::upright([x, -half], [x + length, half]));
        for (side, list) in sides.iter_mut().enumerate() {
            // Stable: places keep the order of their nodes, paths come after the places of their group.
            list.sort_by(|a, b| a.0.total_cmp(&b.0));
            let sum = total(list);
            let (mut at, stretch) = match sum >= FILLED * length {
                true => (x, length / sum),
                false => (x + 0.5 * (length - sum), 1.0),
            };
            for (_, slot) in list.iter() {
                let end = at + wall(slot) * stretch;
                match slot {
                    Slot::Leg(place) => legs[*place] = Some([at, end]),
                    Slot::Place(place) => {
                        extents[*place] = Some([at, end]);
                        let deep = if floor.kind(*place) == NodeKind::Exit { EXIT_M } else { ROOM_M };
                        let (near, far) = (half, half + deep);
                        shapes[*place] = Some(match side {
                            0 => Shape::upright([at, near], [end, far]),
                            _ => Shape::upright([at, -far], [end, -near]),
                        });
                    }
                }
                at = end;
            }
        }
        x += length;
    }
    for (end, exit) in ends.into_iter().enumerate() {
        let Some(exit) = exit else { continue };
        let low = if end == 0 { -EXIT_M } else { x };
        shapes[exit] = Some(Shape::upright([low, -EXIT_M / 2.0], [low + EXIT_M, EXIT_M / 2.0]));
    }

    // Hubs behind the rooms that they have doors to, farther back if another hub is there.
    for side in 0..2 {
        let hubs = groups.iter().zip(&sides).filter(|(_, own)| **own == side).flat_map(|(group, _)| &group.back);
        let mut hubs: Vec<Hub> = hubs.map(|(place, _)| Hub::new(floor, *place, &extents, legs[*place])).collect();
        hubs.sort_by(|a, b| a.wall[0].total_cmp(&b.wall[0]));
        for n in 1..hubs.len() {
            let (before, after) = hubs.split_at_mut(n);
            after[0].part_from(&mut before[n - 1]);
        }
        let mut lanes: Vec<f64> = Vec::new();
        for hub in hubs {
            let [low, high] = hub.wall;
            let lane = lanes.iter().position(|end| *end <= low).unwrap_or(lanes.len());
            lanes.resize(lanes.len().max(lane + 1), high);
            lanes[lane] = high;
            let near = half + ROOM_M + lane as f64 * HUB_M;
            let mut outline = corners(&upright([low, near], [high, near + HUB_M]));
            if let (0, Some([from, to])) = (lane, hub.leg) {
                outline.splice(1..1, [[from, near], [from, half], [to, half], [to, near]]);
                outline.dedup();
            }
            let center = [0.5 * (low + high), near + 0.5 * HUB_M];
            let flip = |point: [f64; 2]| if side == 0 { point } else { [point[0], -point[1]] };
            shapes[hub.place] = Some(Shape { center: flip(center), outline: polygon(outline.into_iter().map(flip)) });
        }
    }
    shapes.into_iter().collect()
}

/// A place behind others.
struct Hub {
    place: usize,
    /// Its start and end along the corridor.
    wall: [f64; 2],
    /// The same for the places that it has doors to, and for its path to the corridor.
    joined: Vec<[f64; 2]>,
    leg: Option<[f64; 2]>,
}

impl Hub {
    fn new(floor: &Floor<'_>, place: usize, extents: &[Option<[f64; 2]>], leg: Option<[f64; 2]>) -> Self {
        let joined: Vec<[f64; 2]> =
            floor.neighbors(place).filter_map(|neighbor| extents[neighbor]).chain(leg).collect();
        let spread = joined.iter().copied().reduce(|a, b| [a[0].min(b[0]), a[1].max(b[1])]);
        let [low, high] = spread.unwrap_or([0.0, WALL_M[1]]);
        Self { place, wall: [low, high.max(low + WALL_M[0])], joined, leg }
    }

    /// Divides the overlap with the previous hub, if both can still have all their doors.
    fn part_from(&mut self, before: &mut Hub) {
        let cut = 0.5 * (self.wall[0] + before.wall[1].min(self.wall[1]));
        let keeps_doors = before.joined.iter().all(|wall| wall[0] < cut - DOOR_M)
            && self.joined.iter().all(|wall| wall[1] > cut + DOOR_M)
            && before.leg.is_none_or(|leg| leg[1] <= cut)
            && self.leg.is_none_or(|leg| leg[0] >= cut);
        let stays_wide = cut - before.wall[0] >= WALL_M[0] && self.wall[1] - cut >= WALL_M[0];
        if self.wall[0] < before.wall[1] && keeps_doors && stays_wide {
            (before.wall[1], self.wall[0]) = (cut, cut);
        }
    }
}

/// The halls from one end to the other, if they are a path.
fn row(floor: &Floor<'_>) -> Option<Vec<usize>> {
    let halls = floor.of_kind(NodeKind::Hall);
    let next = |hall: usize| floor.neighbors(hall).filter(|other| floor.kind(*other) == NodeKind::Hall);
    if halls.iter().any(|hall| next(*hall).count() > 2) {
        return None;
    }
    let first = *halls.iter().find(|hall| next(**hall).count() < 2)?;
    let mut row = vec![first];
    while let Some(hall) = next(row[row.len() - 1]).find(|hall| !row.contains(hall)) {
        row.push(hall);
    }
    (row.len() == halls.len()).then_some(row)
}

/// Groups of places that are joined without halls, in the order of their first place.
fn groups_of(floor: &Floor<'_>) -> Vec<Vec<usize>> {
    let mut seen = vec![false; floor.len()];
    let mut groups = Vec::new();
    for place in 0..floor.len() {
        if seen[place] || floor.kind(place) == NodeKind::Hall {
            continue;
        }
        let hops = floor.hops(place, |other| floor.kind(other) != NodeKind::Hall);
        let members: Vec<usize> = (0..floor.len()).filter(|other| hops[*other].is_finite()).collect();
        members.iter().for_each(|member| seen[*member] = true);
        groups.push(members);
    }
    groups
}

impl Group {
    /// `None` without a connection to a hall.
    fn new(floor: &Floor<'_>, members: &[usize], position: impl Fn(usize) -> Option<usize>) -> Option<Self> {
        let hall = |place: usize| floor.neighbors(place).filter_map(&position).min();
        let is_hub = |place: usize| {
            floor.neighbors(place).filter(|neighbor| floor.kind(*neighbor) != NodeKind::Hall).count() >= HUB_DOORS
        };
        let (mut front, mut back) = (Vec::new(), Vec::new());
        for place in members.iter().copied() {
            match hall(place) {
                Some(hall) if !is_hub(place) => front.push((place, hall)),
                hall => back.push((place, hall)),
            }
        }
        if front.is_empty() {
            // Hubs without rooms in front are beside the corridor like rooms.
            back.retain(|(place, hall)| hall.map(|hall| front.push((*place, hall))).is_none());
        }
        let at = front.iter().map(|(_, hall)| *hall as f64).sum::<f64>() / front.len() as f64;
        (!front.is_empty()).then_some(Self { front, back, at })
    }
}
