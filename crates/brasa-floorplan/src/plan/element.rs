//! What the formats with outlines have in common: named places and openings with their geometry.

use geo::{Coord, LineString};

use super::assemble::{Area, Opening, assemble};
use super::crs::{Center, Crs, to_meters};
use super::{plan_error, shape};
use crate::{FloorPlanError, Layout, NodeKind};

/// A piece of geometry, in the coordinates of its file until they are projected.
#[derive(Debug, Clone)]
pub(super) enum Part {
    /// The outline and its holes.
    Polygon(Vec<LineString>),
    Line(LineString),
    Point(Coord),
}

impl Part {
    fn type_name(&self) -> &'static str {
        match self {
            Self::Polygon(_) => "Polygon",
            Self::Line(_) => "LineString",
            Self::Point(_) => "Point",
        }
    }
}

/// What an element is.
#[derive(Debug, Clone)]
pub(super) enum Role {
    Area {
        kind: NodeKind,
        high_risk: bool,
        /// Adults, children, people of limited mobility.
        people: [usize; 3],
    },
    Opening {
        /// Whether it leads outside, whatever it touches.
        is_exit: bool,
        /// Whether responders enter here, if it is an exit.
        is_entry: bool,
        door: bool,
        fire_door: bool,
        /// Width in m where it is a point.
        point_width_m: f64,
    },
}

/// A place or an opening of a file.
#[derive(Debug, Clone)]
pub(super) struct Element<'a> {
    /// The file.
    pub(super) origin: &'a str,
    /// What stands before its name in errors: `unit`, `opening`, `line 3:`.
    pub(super) what: String,
    /// Its name in the file; a place without one is numbered.
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    /// One place or opening for each.
    pub(super) floors: Vec<i32>,
    pub(super) role: Role,
    pub(super) parts: Vec<Part>,
}

impl Element<'_> {
    pub(super) fn error(&self, reason: impl std::fmt::Display) -> FloorPlanError {
        let id = self.id.as_deref().unwrap_or("no name");
        plan_error(self.origin, format!("{} `{id}`: {reason}", self.what))
    }

    pub(super) fn coords(&self) -> impl Iterator<Item = &Coord> {
        self.parts.iter().flat_map(|part| -> Box<dyn Iterator<Item = &Coord>> {
            match part {
                Part::Polygon(rings) => Box::new(rings.iter().flat_map(|ring| &ring.0)),
                Part::Line(line) => Box::new(line.0.iter()),
                Part::Point(at) => Box::new(std::iter::once(at)),
            }
        })
    }

    pub(super) fn coords_mut(&mut self) -> impl Iterator<Item = &mut Coord> {
        self.parts.iter_mut().flat_map(|part| -> Box<dyn Iterator<Item = &mut Coord>> {
            match part {
                Part::Polygon(rings) => Box::new(rings.iter_mut().flat_map(|ring| &mut ring.0)),
                Part::Line(line) => Box::new(line.0.iter_mut()),
                Part::Point(at) => Box::new(std::iter::once(at)),
            }
        })
    }
}

/// The building of elements.
///
/// # Errors
/// [`FloorPlanError::Plan`] naming the element.
pub(super) fn build(
    origin: &str,
    name: &str,
    crs: Crs,
    mut elements: Vec<Element<'_>>,
) -> Result<Layout, FloorPlanError> {
    for element in &elements {
        element.coords().try_for_each(shape::check_point).map_err(|reason| {
            let what = if matches!(element.role, Role::Area { .. }) { "corner" } else { "point" };
            element.error(format!("its {what} {reason}"))
        })?;
    }
    let center = to_meters(crs, origin, &mut elements)?;
    let (mut areas, mut openings) = (Vec::new(), Vec::new());
    let mut n_slivers = 0;
    for mut element in elements {
        match element.role {
            Role::Area { .. } => n_slivers += add_areas(&mut element, center.as_ref(), &mut areas)?,
            Role::Opening { .. } => add_openings(&element, &mut openings)?,
        }
    }
    if areas.is_empty() && n_slivers > 0 {
        let reason = format!("it has no places: {n_slivers} outlines are smaller than {} m2", shape::LEAST_AREA_M2);
        return Err(plan_error(origin, reason));
    }
    assemble(origin, name, areas, openings)
}

/// Adds the places of an element, one for each of its polygons and floors, and returns how many polygons are slivers.
fn add_areas(
    element: &mut Element<'_>,
    center: Option<&Center>,
    areas: &mut Vec<Area>,
) -> Result<usize, FloorPlanError> {
    let Role::Area { kind, high_risk, mut people } = element.role else { return Ok(0) };
    if element.parts.is_empty() {
        return Err(element.error("its geometry must be a Polygon or MultiPolygon, got nothing"));
    }
    let mut n_slivers = 0;
    for part in std::mem::take(&mut element.parts) {
        let numbered = || format!("{} {}", word(kind), areas.len() + 1);
        let id = element.id.clone().unwrap_or_else(numbered);
        let error = |reason: String| plan_error(element.origin, format!("{} `{id}`: {reason}", element.what));
        let Part::Polygon(rings) = part else {
            return Err(error(format!("its geometry must be a Polygon or MultiPolygon, got {}", part.type_name())));
        };
        let Some(outline) = shape::with_holes(&rings).map_err(|reason| error(Center::explain(center, reason)))? else {
            n_slivers += 1;
            continue;
        };
        for floor in &element.floors {
            areas.push(Area {
                name: element.name.clone().unwrap_or_else(|| id.clone()),
                id: id.clone(),
                kind,
                floor: *floor,
                outline: outline.clone(),
                high_risk,
                // All people are in the first part.
                people: std::mem::take(&mut people),
            });
        }
    }
    Ok(n_slivers)
}

fn word(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::Hall => "hall",
        NodeKind::Stair => "stair",
        NodeKind::Exit => "exit",
        NodeKind::Room | NodeKind::Door => "room",
    }
}

/// Adds the openings of an element, one for each of its lines, points and floors.
fn add_openings(element: &Element<'_>, openings: &mut Vec<Opening>) -> Result<(), FloorPlanError> {
    let Role::Opening { is_exit, is_entry, door, fire_door, point_width_m } = element.role else { return Ok(()) };
    let none = |got: &str| element.error(format!("its geometry must be a LineString of two points or more, got {got}"));
    if element.parts.is_empty() {
        return Err(none("nothing"));
    }
    for part in &element.parts {
        let (line, width_m) = match part {
            Part::Line(line) if line.0.len() > 1 => (line.clone(), None),
            Part::Point(at) => (LineString::new(vec![*at]), Some(point_width_m)),
            other => return Err(none(other.type_name())),
        };
        for floor in &element.floors {
            openings.push(Opening {
                id: element.id.clone().unwrap_or_default(),
                name: element.name.clone(),
                floor: *floor,
                line: line.clone(),
                width_m,
                is_exit,
                is_entry,
                door,
                fire_door,
            });
        }
    }
    Ok(())
}
