//! Well-known text: rooms as polygons, doors and exits as lines, in m.
//!
//! The text is a list of geometries, each with an optional label and a colon before it:
//!
//! ```text
//! # A room, a corridor, the door between them and the way out.
//! Office: POLYGON ((0 2, 4 2, 4 6, 0 6, 0 2))
//! hall Corridor: POLYGON ((0 0, 10 0, 10 2, 0 2, 0 0))
//! door: LINESTRING (1 2, 2 2)
//! exit Main door: LINESTRING (10 0.5, 10 1.5)
//! ```
//!
//! The first word of a label may be the kind: `room`, `hall`, `stair` or `exit` for a polygon, `door`, `passage`
//! (without a door) or `exit` for a line. Without it a polygon is a room and a line is a door. A line that touches a
//! single polygon leads outside. `@1` at the end of a label means floor 1; stairs at the same position on
//! neighboring floors are joined. The parts of a `MULTIPOLYGON`, `MULTILINESTRING` or `GEOMETRYCOLLECTION` share their
//! label. A geometry may span several lines.

use std::str::FromStr;

use geo::LineString;
use wkt::{Wkt, types};

use super::assemble::{Area, Opening, assemble};
use super::plan_error;
use super::shape;
use crate::{FloorPlanError, Layout, NodeKind};

/// How deep parentheses may be nested: a collection of multipolygons takes four, and the parser calls itself for each.
const MOST_NESTED: i64 = 16;

/// What stands before the colon.
struct Label {
    /// The kind of the geometry, if given.
    word: Option<Word>,
    name: Option<String>,
    floor: i32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Word {
    Room,
    Hall,
    Stair,
    Exit,
    Door,
    Passage,
}

pub(super) fn read(name: &str, text: &str, origin: &str) -> Result<Layout, FloorPlanError> {
    let mut reader = Reader { origin, areas: Vec::new(), openings: Vec::new() };
    let mut statement = String::new();
    let mut first_line = 0;
    // Parentheses of the statement so far: whether there is one, and how many are open.
    let (mut is_begun, mut depth) = (false, 0i64);
    for (n, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if statement.is_empty() {
            (first_line, is_begun, depth) = (n + 1, false, 0);
        }
        for byte in line.bytes() {
            match byte {
                b'(' => (is_begun, depth) = (true, depth + 1),
                b')' => depth -= 1,
                _ => {}
            }
            if depth > MOST_NESTED {
                let reason = format!("line {}: parentheses must be nested at most {MOST_NESTED} deep", n + 1);
                return Err(plan_error(origin, reason));
            }
        }
        statement.push_str(line);
        statement.push(' ');
        if is_begun && depth <= 0 {
            reader.statement(&statement, first_line)?;
            statement.clear();
        }
    }
    if !statement.is_empty() {
        let reason = format!("line {first_line}: the geometry is not complete: `{}`", shorten(&statement));
        return Err(plan_error(origin, reason));
    }
    assemble(origin, name, reader.areas, reader.openings)
}

fn shorten(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.into(),
    }
}

struct Reader<'a> {
    origin: &'a str,
    areas: Vec<Area>,
    openings: Vec<Opening>,
}

impl Reader<'_> {
    fn statement(&mut self, statement: &str, line: usize) -> Result<(), FloorPlanError> {
        // Names may contain colons; coordinates cannot.
        let before = &statement[..statement.find('(').unwrap_or(statement.len())];
        let (label, geometry) = match before.rfind(':') {
            Some(colon) => (&statement[..colon], &statement[colon + 1..]),
            None => ("", statement),
        };
        let fail = |reason: String| plan_error(self.origin, format!("line {line}: {reason}"));
        let label = Label::parse(label).map_err(fail)?;
        let geometry = Wkt::<f64>::from_str(geometry.trim())
            .map_err(|error| fail(format!("`{}` is no WKT: {error}", shorten(geometry))))?;
        self.geometry(&label, &geometry, line)
    }

    fn geometry(&mut self, label: &Label, geometry: &Wkt<f64>, line: usize) -> Result<(), FloorPlanError> {
        match geometry {
            Wkt::Polygon(polygon) => self.area(label, polygon, line),
            Wkt::MultiPolygon(parts) => parts.polygons().iter().try_for_each(|part| self.area(label, part, line)),
            Wkt::LineString(path) => self.opening(label, path, line),
            Wkt::MultiLineString(parts) => {
                parts.line_strings().iter().try_for_each(|part| self.opening(label, part, line))
            }
            Wkt::GeometryCollection(parts) => {
                parts.geometries().iter().try_for_each(|part| self.geometry(label, part, line))
            }
            Wkt::Point(_) | Wkt::MultiPoint(_) => {
                Err(plan_error(self.origin, format!("line {line}: a point is neither a room nor a door")))
            }
        }
    }

    fn area(&mut self, label: &Label, polygon: &types::Polygon<f64>, line: usize) -> Result<(), FloorPlanError> {
        let kind = match label.word {
            None | Some(Word::Room) => NodeKind::Room,
            Some(Word::Hall) => NodeKind::Hall,
            Some(Word::Stair) => NodeKind::Stair,
            Some(Word::Exit) => NodeKind::Exit,
            Some(Word::Door | Word::Passage) => {
                let reason = format!("line {line}: a door must be a LINESTRING, got a polygon");
                return Err(plan_error(self.origin, reason));
            }
        };
        let default = match kind {
            NodeKind::Hall => "hall",
            NodeKind::Stair => "stair",
            NodeKind::Exit => "exit",
            _ => "room",
        };
        let id = label.name.clone().unwrap_or_else(|| format!("{default} {}", self.areas.len() + 1));
        let fail = |reason: String| plan_error(self.origin, format!("line {line}: `{id}`: {reason}"));
        let rings = polygon.rings().iter().map(line_string);
        let Some((outline, area_m2)) = shape::with_holes(rings).map_err(fail)? else {
            return Err(fail("its outline is empty".into()));
        };
        self.areas.push(Area {
            name: id.clone(),
            id,
            kind,
            floor: label.floor,
            outline,
            area_m2,
            high_risk: false,
            people: [0; 3],
        });
        Ok(())
    }

    fn opening(&mut self, label: &Label, path: &types::LineString<f64>, line: usize) -> Result<(), FloorPlanError> {
        let id = label.name.clone().unwrap_or_else(|| format!("line {line}"));
        let fail = |reason: &str| Err(plan_error(self.origin, format!("line {line}: `{id}`: {reason}")));
        if matches!(label.word, Some(Word::Room | Word::Hall | Word::Stair)) {
            return fail("a room, hall or stair must be a POLYGON, got a line");
        }
        let line = line_string(path);
        if line.0.len() < 2 {
            return fail("its line needs two points or more");
        }
        line.coords().try_for_each(shape::check_point).or_else(|reason| fail(&format!("its point {reason}")))?;
        self.openings.push(Opening {
            id,
            name: label.name.clone(),
            floor: label.floor,
            line,
            is_exit: label.word == Some(Word::Exit),
            is_entry: false,
            door: label.word != Some(Word::Passage),
            fire_door: false,
        });
        Ok(())
    }
}

fn line_string(line: &types::LineString<f64>) -> LineString {
    line.coords().iter().map(|point| (point.x, point.y)).collect()
}

impl Label {
    fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (text, floor) = match text.rsplit_once('@') {
            Some((text, floor)) => match floor.trim().parse() {
                Ok(floor) => (text.trim(), floor),
                Err(_) => return Err(format!("the floor behind `@` must be a whole number, got `{}`", floor.trim())),
            },
            None => (text, 0),
        };
        let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let word = match first.to_ascii_lowercase().as_str() {
            "room" => Some(Word::Room),
            "hall" => Some(Word::Hall),
            "stair" => Some(Word::Stair),
            "exit" => Some(Word::Exit),
            "door" => Some(Word::Door),
            "passage" => Some(Word::Passage),
            _ => None,
        };
        let name = if word.is_some() { rest.trim() } else { text };
        Ok(Self { word, name: (!name.is_empty()).then(|| name.to_owned()), floor })
    }
}
