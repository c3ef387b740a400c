//! Well-known text: rooms as polygons, doors and exits as lines, in m or degrees as in GeoJSON.
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
//! neighboring floors are joined. A point is an opening of 0.9 m if its label says so. `SRID=25832;` in front of every geometry names
//! the coordinate system of EPSG. The parts of a `MULTIPOLYGON`, `MULTILINESTRING` or `GEOMETRYCOLLECTION` share their
//! label. A geometry may span several lines.

use std::str::FromStr;

use geo::{Coord, LineString};
use wkt::{Wkt, types};

use super::crs::Crs;
use super::element::{Element, Part, Role, build};
use super::{osm, plan_error};
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

/// Words that begin a geometry.
const GEOMETRIES: [&str; 7] =
    ["POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON", "GEOMETRYCOLLECTION"];

pub(super) fn read(name: &str, text: &str, origin: &str) -> Result<Layout, FloorPlanError> {
    let mut reader = Reader { origin, crs: None, elements: Vec::new() };
    let mut statement = String::new();
    let mut first_line = 0;
    // Where the geometry begins, behind the label, whose parentheses do not count.
    let mut begin: Option<usize> = None;
    // Parentheses so far: whether there is one, and how many are open.
    let (mut is_begun, mut depth) = (false, 0i64);
    for (n, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if statement.is_empty() {
            (first_line, begin, is_begun, depth) = (n + 1, None, false, 0);
        }
        let mut counted = line;
        if begin.is_none()
            && let Some(at) = geometry_begin(line)
        {
            begin = Some(statement.len() + at);
            counted = &line[at..];
            (is_begun, depth) = (false, 0);
        }
        for byte in counted.bytes() {
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
            reader.statement(&statement, begin, first_line)?;
            statement.clear();
        }
    }
    if !statement.is_empty() {
        let reason = format!("line {first_line}: the geometry is not complete: `{}`", shorten(&statement));
        return Err(plan_error(origin, reason));
    }
    build(origin, name, reader.crs.unwrap_or(Crs::Unstated), reader.elements)
}

/// Where the geometry of a line begins: at its start or behind the colon of a label, which may hold any other character.
fn geometry_begin(line: &str) -> Option<usize> {
    let starts = std::iter::once(0).chain(line.match_indices(':').map(|(at, _)| at + 1));
    let mut starts = starts.map(|at| at + line[at..].len() - line[at..].trim_start().len());
    starts.find(|at| {
        let rest = &line[*at..];
        let rest = srid(rest).map_or(rest, |(_, rest)| rest);
        let word = rest.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
        GEOMETRIES.iter().any(|name| name.eq_ignore_ascii_case(word))
            && !rest[word.len()..].trim_start().starts_with(':')
    })
}

/// The number of the system of coordinates in front of a geometry, as PostGIS writes it, and what follows.
fn srid(text: &str) -> Option<(&str, &str)> {
    let (head, rest) = text.split_once(';')?;
    let (word, number) = head.split_once('=')?;
    word.trim().eq_ignore_ascii_case("srid").then(|| (number.trim(), rest.trim_start()))
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
    /// The system of the first geometry.
    crs: Option<Crs>,
    elements: Vec<Element<'a>>,
}

impl Reader<'_> {
    /// `begin`: where the geometry begins, if one was found.
    fn statement(&mut self, statement: &str, begin: Option<usize>, line: usize) -> Result<(), FloorPlanError> {
        let fail = |reason: String| plan_error(self.origin, format!("line {line}: {reason}"));
        let begin = begin.or_else(|| {
            // Names may contain colons; coordinates cannot.
            let before = &statement[..statement.find('(').unwrap_or(statement.len())];
            before.rfind(':').map(|colon| colon + 1)
        });
        let (label, geometry) = statement.split_at(begin.unwrap_or(0));
        let label = label.trim().strip_suffix(':').unwrap_or_default();
        let label = Label::parse(label).map_err(fail)?;
        let (crs, geometry) = match srid(geometry) {
            None => (Crs::Unstated, geometry),
            // PostGIS writes 0 for none.
            Some(("0", geometry)) => (Crs::Unstated, geometry),
            Some((number, geometry)) => {
                let code =
                    number.parse().map_err(|_| fail(format!("`SRID` must be a number of EPSG, got `{number}`")))?;
                (Crs::epsg(code).map_err(fail)?, geometry)
            }
        };
        if *self.crs.get_or_insert(crs) != crs {
            return Err(fail("`SRID` must be that of the first geometry".into()));
        }
        let geometry = Wkt::<f64>::from_str(geometry.trim())
            .map_err(|error| fail(format!("`{}` is no WKT: {error}", shorten(geometry))))?;
        self.geometry(&label, &geometry, line)
    }

    fn geometry(&mut self, label: &Label, geometry: &Wkt<f64>, line: usize) -> Result<(), FloorPlanError> {
        match geometry {
            Wkt::Polygon(polygon) => self.area(label, polygon, line),
            Wkt::MultiPolygon(parts) => parts.polygons().iter().try_for_each(|part| self.area(label, part, line)),
            Wkt::LineString(path) => self.opening(label, Part::Line(line_string(path)), line),
            Wkt::MultiLineString(parts) => parts
                .line_strings()
                .iter()
                .try_for_each(|part| self.opening(label, Part::Line(line_string(part)), line)),
            Wkt::GeometryCollection(parts) => {
                parts.geometries().iter().try_for_each(|part| self.geometry(label, part, line))
            }
            Wkt::Point(point) => self.point(label, point, line),
            Wkt::MultiPoint(parts) => parts.points().iter().try_for_each(|part| self.point(label, part, line)),
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
        let role = Role::Area { kind, high_risk: false, people: [0; 3] };
        let rings = polygon.rings().iter().map(line_string).collect();
        self.push(label, label.name.clone(), role, Part::Polygon(rings), line);
        Ok(())
    }

    fn opening(&mut self, label: &Label, part: Part, line: usize) -> Result<(), FloorPlanError> {
        let id = label.name.clone().unwrap_or_else(|| format!("line {line}"));
        let fail = |reason: &str| Err(plan_error(self.origin, format!("line {line}: `{id}`: {reason}")));
        if matches!(label.word, Some(Word::Room | Word::Hall | Word::Stair)) {
            return fail("a room, hall or stair must be a POLYGON, got a line");
        }
        if matches!(&part, Part::Line(line) if line.0.len() < 2) {
            return fail("its geometry must be a LineString of two points or more");
        }
        let role = Role::Opening {
            is_exit: label.word == Some(Word::Exit),
            is_entry: false,
            door: label.word != Some(Word::Passage),
            fire_door: false,
            point_width_m: osm::DOOR_M,
        };
        self.push(label, Some(id), role, part, line);
        Ok(())
    }

    /// A point is an opening only if its label says so.
    fn point(&mut self, label: &Label, point: &types::Point<f64>, line: usize) -> Result<(), FloorPlanError> {
        match (label.word, point.coord()) {
            (Some(Word::Door | Word::Passage | Word::Exit), Some(at)) => {
                self.opening(label, Part::Point(Coord { x: at.x, y: at.y }), line)
            }
            _ => Err(plan_error(self.origin, format!("line {line}: a point is neither a room nor a door"))),
        }
    }

    fn push(&mut self, label: &Label, id: Option<String>, role: Role, part: Part, line: usize) {
        self.elements.push(Element {
            origin: self.origin,
            what: format!("line {line}:"),
            id,
            name: label.name.clone(),
            floors: vec![label.floor],
            role,
            parts: vec![part],
        });
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
