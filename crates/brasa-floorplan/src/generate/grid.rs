//! Warehouses: rooms between a grid of aisles.

use super::GeneratorConfig;
use super::draw::{Draw, Size};
use super::plane::{self, EXIT_DEPTH, Rect};
use crate::NodeKind;
use crate::builder::Builder;

/// Fraction of corners of rooms with a door, if not all have one.
const DOOR_SHARE: f64 = 0.6;

/// The grid of all floors, in decimeters.
struct Frame {
    /// Middles of the aisles; rooms are between them.
    columns: Vec<i32>,
    rows: Vec<i32>,
    /// Half the width of an aisle.
    half: i32,
}

/// The end of an aisle at the outer wall.
struct End {
    /// The index of the aisle on a floor.
    hall: usize,
    /// Whether the aisle is a row, which ends at the left and right.
    is_row: bool,
    /// Whether this is its right or upper end.
    is_high: bool,
    /// Middle of the aisle, perpendicular to it.
    middle: i32,
}

/// Adds all floors and returns the exits.
pub(super) fn build(plan: &mut Builder, config: &GeneratorConfig, size: &Size, draw: &mut Draw) -> Vec<usize> {
    let most = size.floors.iter().max().copied().unwrap_or(5);
    let least = size.floors.iter().min().copied().unwrap_or(5);
    let (n_rows, n_columns) = shape(least, most, size.stairwells + size.exits, draw);
    let half = draw.decimeters(config.hall_width_m) / 2;
    let mut middles = |n: usize| -> Vec<i32> {
        let mut at = 0;
        let mut middles = vec![0];
        middles.extend((1..n).map(|_| {
            at += draw.decimeters(config.room_side_m) + 2 * half;
            at
        }));
        middles
    };
    let frame = Frame { columns: middles(n_columns), rows: middles(n_rows), half };
    let door = draw.between(9, 12) as i32;
    let all_doors = draw.chance(0.5);
    let mut outside = frame.ends();
    draw.shuffle(&mut outside);
    let (wells, rest) = outside.split_at(size.stairwells);
    let (doors_out, annexes) = rest.split_at(size.exits);
    let annex_depth = draw.decimeters(config.room_side_m);
    let mut stairs: Vec<usize> = Vec::new();
    let mut exits = Vec::new();
    for (floor, nodes) in size.floors.iter().enumerate() {
        let halls = frame.add_aisles(plan, floor);
        let mut cells: Vec<(usize, usize)> =
            (0..n_rows - 1).flat_map(|row| (0..n_columns - 1).map(move |column| (row, column))).collect();
        while cells.len() > nodes - halls.len() {
            // A block of shelves instead of a room.
            cells.remove(draw.between(0, cells.len() - 1));
        }
        for (row, column) in cells {
            let rect = frame.room(row, column);
            let room = plane::place(plan, format!("F{floor}_R_{row}_{column}"), NodeKind::Room, floor, &rect);
            let always = draw.between(0, 3);
            for corner in 0..4 {
                if all_doors || corner == always || draw.chance(DOOR_SHARE) {
                    let hall = halls[(row + corner / 2) * n_columns + column + corner % 2];
                    plane::doorway(plan, room, hall, door);
                }
            }
        }
        let n_annexes = nodes.saturating_sub(halls.len() + (n_rows - 1) * (n_columns - 1));
        for (n, end) in annexes[..n_annexes].iter().enumerate() {
            let rect = frame.beyond(end, annex_depth);
            let room = plane::place(plan, format!("F{floor}_A{n}"), NodeKind::Room, floor, &rect);
            plane::doorway(plan, room, halls[end.hall], door);
        }
        for (well, end) in wells.iter().enumerate() {
            let rect = frame.beyond(end, EXIT_DEPTH);
            let stair = plane::place(plan, format!("F{floor}_S{well}"), NodeKind::Stair, floor, &rect);
            plan.passage(stair, halls[end.hall], 1.0, plane::meters(2 * half));
            if floor > 0 {
                plan.flight(stairs[well], stair, plane::meters(2 * half));
                stairs[well] = stair;
            } else {
                stairs.push(stair);
            }
        }
        if floor == 0 {
            for (n, end) in doors_out.iter().enumerate() {
                let rect = frame.beyond(end, EXIT_DEPTH);
                let exit = plane::place(plan, format!("EXIT_{n}"), NodeKind::Exit, 0, &rect);
                plane::doorway(plan, exit, halls[end.hall], 2 * half);
                exits.push(exit);
            }
        }
    }
    exits
}

/// Rows and columns of aisles for floors of `least` to `most` nodes.
///
/// A full floor has all aisles and rooms. If it has too many nodes, up to a third of the rooms are omitted; if it has
/// too few, rooms are added outside, at the ends of aisles that are not `taken`. The result is one of the four shapes
/// closest to a full floor.
fn shape(least: usize, most: usize, taken: usize, draw: &mut Draw) -> (usize, usize) {
    let full = |rows: usize, columns: usize| rows * columns + (rows - 1) * (columns - 1);
    let mut shapes: Vec<(usize, usize)> = (2..=most)
        .flat_map(|rows| (2..=3 * rows).map(move |columns| (rows, columns)))
        .filter(|(rows, columns)| {
            let sparse = rows * columns + (2 * (rows - 1) * (columns - 1)).div_ceil(3);
            sparse <= least && full(*rows, *columns) + 2 * (rows + columns) >= most + taken
        })
        .collect();
    shapes.sort_by_key(|(rows, columns)| (full(*rows, *columns).abs_diff(most), *rows));
    shapes.truncate(4);
    // 2 by 2 always fits the smallest floors: 4 aisles and a room.
    if shapes.is_empty() { (2, 2) } else { shapes[draw.between(0, shapes.len() - 1)] }
}

impl Frame {
    /// The room between aisles `row` and `row + 1`, `column` and `column + 1`.
    fn room(&self, row: usize, column: usize) -> Rect {
        let between = |middles: &[i32], n: usize| [middles[n] + self.half, middles[n + 1] - self.half];
        Rect::new(between(&self.columns, column), between(&self.rows, row))
    }

    /// Adds the aisles of a floor: a cross at each crossing, with arms up to the middle of the distance to the next
    /// one.
    fn add_aisles(&self, plan: &mut Builder, floor: usize) -> Vec<usize> {
        let n_columns = self.columns.len();
        let mut halls = Vec::new();
        for row in 0..self.rows.len() {
            for column in 0..n_columns {
                let (polygon, area_m2, length_m) = self.cross(row, column);
                let hall =
                    plan.node(format!("F{floor}_H_{row}_{column}"), NodeKind::Hall, floor as i32, area_m2, length_m);
                plan.at(hall).polygon = Some(polygon);
                let width_m = plane::meters(2 * self.half);
                if column > 0 {
                    let length = self.columns[column] - self.columns[column - 1];
                    plan.passage(halls[row * n_columns + column - 1], hall, plane::meters(length), width_m);
                }
                if row > 0 {
                    let length = self.rows[row] - self.rows[row - 1];
                    plan.passage(halls[(row - 1) * n_columns + column], hall, plane::meters(length), width_m);
                }
                halls.push(hall);
            }
        }
        halls
    }

    /// Outline, area in m2 and longest side in m of the aisle around a crossing.
    fn cross(&self, row: usize, column: usize) -> (Vec<[f64; 2]>, f64, f64) {
        // Ends of the arms to the left and right, and of the square in the middle; the same for down and up.
        let ends = |middles: &[i32], n: usize| {
            let middle = middles[n];
            let low = if n == 0 { middle - self.half } else { (middles[n - 1] + middle).div_euclid(2) };
            let high = middles.get(n + 1).map_or(middle + self.half, |next| (middle + next).div_euclid(2));
            [low, middle - self.half, middle + self.half, high]
        };
        let (x, y) = (ends(&self.columns, column), ends(&self.rows, row));
        // Counterclockwise from the lower end of the left arm.
        let corners = [
            (x[0], y[1]),
            (x[1], y[1]),
            (x[1], y[0]),
            (x[2], y[0]),
            (x[2], y[1]),
            (x[3], y[1]),
            (x[3], y[2]),
            (x[2], y[2]),
            (x[2], y[3]),
            (x[1], y[3]),
            (x[1], y[2]),
            (x[0], y[2]),
        ];
        // An arm of length 0 leaves collinear corners.
        let mut outline: Vec<(i32, i32)> = Vec::new();
        for corner in corners {
            if outline.last() != Some(&corner) {
                outline.push(corner);
            }
        }
        if outline.len() > 1 && outline.first() == outline.last() {
            outline.pop();
        }
        let width = 2 * self.half;
        let area = (x[3] - x[0] + y[3] - y[0] - width) * width;
        let polygon = outline.into_iter().map(|(x, y)| [plane::meters(x), plane::meters(y)]).collect();
        (polygon, f64::from(area) / 100.0, plane::meters((x[3] - x[0]).max(y[3] - y[0])))
    }

    /// The ends of all aisles.
    fn ends(&self) -> Vec<End> {
        let (n_rows, n_columns) = (self.rows.len(), self.columns.len());
        let rows = (0..n_rows).flat_map(|row| {
            let y = self.rows[row];
            [
                End { hall: row * n_columns, is_row: true, is_high: false, middle: y },
                End { hall: (row + 1) * n_columns - 1, is_row: true, is_high: true, middle: y },
            ]
        });
        let columns = (0..n_columns).flat_map(|column| {
            let x = self.columns[column];
            [
                End { hall: column, is_row: false, is_high: false, middle: x },
                End { hall: (n_rows - 1) * n_columns + column, is_row: false, is_high: true, middle: x },
            ]
        });
        rows.chain(columns).collect()
    }

    /// A place outside the grid, as wide as the aisle that ends there.
    fn beyond(&self, end: &End, depth: i32) -> Rect {
        let along = if end.is_row { &self.columns } else { &self.rows };
        let outer = match end.is_high {
            false => [along[0] - self.half - depth, along[0] - self.half],
            true => [along[along.len() - 1] + self.half, along[along.len() - 1] + self.half + depth],
        };
        let across = [end.middle - self.half, end.middle + self.half];
        if end.is_row { Rect::new(outer, across) } else { Rect::new(across, outer) }
    }
}
