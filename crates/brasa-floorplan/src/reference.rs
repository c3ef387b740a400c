//! The three reference buildings: an office, a daycare center and a warehouse.
//!
//! They are the layouts of an earlier simulator of the task of HiMCM 2025, problem A, with one correction: its
//! marks of high-risk rooms were lost, so that no room had to be swept twice. Use `Sweeps::Once` of
//! `brasa-evacuation` to count sweeps in the same way.
//!
//! | layout | halls | rooms | exits | ways | mean degree | diameter in hops | people |
//! |---|---|---|---|---|---|---|---|
//! | office | 3 | 6 | 2 | 10 | 1.82 | 4 | 6 |
//! | daycare | 9 | 33 | 3 | 71 | 3.16 | 6 | 39 |
//! | warehouse | 24 | 15 | 2 | 100 | 4.88 | 8 | 6 |
//!
//! The order of nodes is fixed, so an index always refers to the same place.

use crate::builder::Builder;
use crate::{Layout, Mobility, NodeKind};

/// Floors of the daycare center.
const DAYCARE_FLOORS: i32 = 3;
/// Rows and columns of the warehouse's halls.
const WAREHOUSE_HALLS: (usize, usize) = (4, 6);
/// Rooms of the warehouse that are laboratories: the corners and one in the middle.
const LABORATORIES: [(usize, usize); 5] = [(0, 0), (0, 4), (2, 0), (2, 4), (1, 2)];

impl Layout {
    /// An office: a hall of three parts, three rooms on each side, an exit at both ends.
    pub fn office() -> Self {
        let mut plan = Builder::new("office");
        let halls: Vec<usize> = (0..3).map(|i| plan.node(format!("H{i}"), NodeKind::Hall, 0, 12.0, 6.0)).collect();
        for pair in halls.windows(2) {
            plan.passage(pair[0], pair[1], 6.0, 2.0);
        }
        let mut side = |prefix: &str| {
            [0, 1, 2].map(|i| {
                let room = plan.node(format!("{prefix}{i}"), NodeKind::Room, 0, 16.0, 4.0);
                plan.door(room, halls[i], 1.0, 0.9);
                room
            })
        };
        let (top, bottom) = (side("RT"), side("RB"));
        let exits = [("EXIT_LEFT", halls[0]), ("EXIT_RIGHT", halls[2])].map(|(name, hall)| {
            let exit = plan.node(name, NodeKind::Exit, 0, 4.0, 2.0);
            plan.door(exit, hall, 1.0, 1.2);
            exit
        });
        plan.occupant(top[0], Mobility::Adult, 95.0);
        plan.occupant(top[2], Mobility::Limited, 90.0);
        plan.occupant(bottom[0], Mobility::Adult, 100.0);
        plan.occupant(bottom[2], Mobility::Child, 100.0);
        plan.occupant(bottom[1], Mobility::Adult, 100.0);
        plan.occupant(bottom[1], Mobility::Adult, 97.0);
        plan.finish(exits.to_vec())
    }

    /// A daycare center of three floors: on each a corridor of three parts, six nurseries and two playrooms of high
    /// risk, a kitchen, a storage room, and the nurses' room, which has a door to every other room and none to the
    /// corridor.
    pub fn daycare() -> Self {
        let mut plan = Builder::new("daycare");
        let mut corridors = Vec::new();
        let mut nurse_rooms = Vec::new();
        let mut nurseries = Vec::new();
        for floor in 0..DAYCARE_FLOORS {
            let corridor: [usize; 3] =
                [0, 1, 2].map(|i| plan.node(format!("F{floor}_C{i}"), NodeKind::Hall, floor, 16.0, 8.0));
            plan.passage(corridor[0], corridor[1], 8.0, 2.2);
            plan.passage(corridor[1], corridor[2], 8.0, 2.2);
            let mut room = |name: String, area_m2: f64, length_m: f64, way: Option<(usize, f64)>, high_risk: bool| {
                let room = plan.node(format!("F{floor}_{name}"), NodeKind::Room, floor, area_m2, length_m);
                plan.at(room).high_risk = high_risk;
                if let Some((corridor, width_m)) = way {
                    plan.door(room, corridor, 1.0, width_m);
                }
                room
            };
            let beds: Vec<usize> =
                (0..6).map(|i| room(format!("NUR{i}"), 20.0, 5.0, Some((corridor[i / 2], 1.0)), true)).collect();
            let nurses = room("NURSE".into(), 12.0, 4.0, None, false);
            let others = [
                room("PLAY0".into(), 24.0, 6.0, Some((corridor[2], 1.2)), true),
                room("PLAY1".into(), 24.0, 6.0, Some((corridor[0], 1.2)), true),
                room("KITCHEN".into(), 10.0, 4.0, Some((corridor[0], 1.0)), false),
                room("STORAGE".into(), 10.0, 4.0, Some((corridor[2], 1.0)), false),
            ];
            for neighbor in beds.iter().chain(&others) {
                plan.door(nurses, *neighbor, 2.0, 1.0);
            }
            corridors.push(corridor);
            nurse_rooms.push(nurses);
            nurseries.push(beds);
        }
        for pair in corridors.windows(2) {
            plan.passage(pair[0][1], pair[1][1], 4.0, 1.6).slope_deg = 35.0;
        }
        let mut exit = |name: &str, corridor: usize, floor: i32, area_m2: f64, length_m: f64, width_m: f64| {
            let exit = plan.node(name, NodeKind::Exit, floor, area_m2, length_m);
            plan.door(exit, corridor, 1.0, width_m);
            exit
        };
        let left = exit("EXIT_G_LEFT", corridors[0][0], 0, 6.0, 3.0, 1.6);
        let right = exit("EXIT_G_RIGHT", corridors[0][2], 0, 6.0, 3.0, 1.6);
        exit("F2_ROOF_EXIT", corridors[2][2], DAYCARE_FLOORS - 1, 4.0, 2.0, 1.0);
        for (nurses, beds) in nurse_rooms.into_iter().zip(nurseries) {
            plan.occupant(nurses, Mobility::Adult, 100.0);
            for nursery in beds {
                plan.occupant(nursery, Mobility::Adult, 100.0);
                plan.occupant(nursery, Mobility::Child, 100.0);
            }
        }
        plan.finish(vec![left, right])
    }

    /// A warehouse: halls in four rows of six, and between them fifteen rooms with a door at each corner, five of
    /// them laboratories of high risk.
    pub fn warehouse() -> Self {
        let mut plan = Builder::new("warehouse");
        let (rows, columns) = WAREHOUSE_HALLS;
        let places = || (0..rows).flat_map(move |row| (0..columns).map(move |column| (row, column)));
        let hall = |row: usize, column: usize| row * columns + column;
        for (row, column) in places() {
            plan.node(format!("H_{row}_{column}"), NodeKind::Hall, 0, 30.0, 10.0);
        }
        for (row, column) in places() {
            if column + 1 < columns {
                plan.passage(hall(row, column), hall(row, column + 1), 8.0, 3.0);
            }
            if row + 1 < rows {
                plan.passage(hall(row, column), hall(row + 1, column), 8.0, 3.0);
            }
        }
        let mut workers = Vec::new();
        for (row, column) in places().filter(|(row, column)| row + 1 < rows && column + 1 < columns) {
            let room = plan.node(format!("R_{row}_{column}"), NodeKind::Room, 0, 40.0, 6.0);
            plan.at(room).high_risk = LABORATORIES.contains(&(row, column));
            for corner in [(row, column), (row, column + 1), (row + 1, column), (row + 1, column + 1)] {
                plan.door(room, hall(corner.0, corner.1), 1.0, 1.2);
            }
            if row % 2 == 0 && column % 2 == 0 {
                workers.push(room);
            }
        }
        let exits = [("EXIT_WH_LEFT", hall(2, 0)), ("EXIT_WH_RIGHT", hall(2, columns - 1))].map(|(name, hall)| {
            let exit = plan.node(name, NodeKind::Exit, 0, 8.0, 4.0);
            plan.door(exit, hall, 2.0, 2.0);
            exit
        });
        for room in workers {
            plan.occupant(room, Mobility::Adult, 100.0);
        }
        plan.finish(exits.to_vec())
    }

    /// The three reference buildings.
    pub fn references() -> [Self; 3] {
        [Self::office(), Self::daycare(), Self::warehouse()]
    }
}
