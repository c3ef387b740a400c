//! GeoJSON, in particular the Indoor Mapping Data Format (OGC 20-094).
//!
//! It reads `unit` polygons, `opening` lines and, for the floors, `level`; other features are ignored. In plain
//! GeoJSON without feature types, a polygon is a unit and a line is an opening.
//!
//! - The `category` of a unit is its kind: walkways and lobbies are halls, stairs and elevators are stairs, walls and
//!   voids are ignored, and everything else is a room.
//! - An opening that touches two units is a way between them, and one that touches a single unit leads outside; one of
//!   category `emergencyexit` or `exit` always does. Responders enter at category `pedestrian.principal`, or
//!   at every exit if there is none.
//! - `level_id` refers to a level, whose `ordinal` is the floor; without it the floor is `ordinal` or `floor` of the
//!   feature, or 0.
//! - Extensions of the standard: `high_risk`, `adults`, `children` and `limited` of a unit, `fire_door` of an opening.
//!
//! Coordinates are degrees (WGS 84) if all of them are within half a unit of each other, and meters otherwise.

use std::collections::HashMap;

use geo::LineString;
use geojson::{Feature, GeoJson, GeometryValue, JsonObject, JsonValue, Position, feature::Id};

use super::assemble::{Area, Opening, assemble};
use super::plan_error;
use super::shape;
use crate::{FloorPlanError, Layout, NodeKind};

/// Largest extent of coordinates in degrees: as meters it would be too small for a room, as degrees it is 50 km.
const MOST_DEGREES: f64 = 0.5;
/// WGS 84: equatorial radius in m, and square of the eccentricity.
const EQUATOR_M: f64 = 6_378_137.0;
const ECCENTRICITY_SQUARED: f64 = 6.694_379_990_14e-3;

/// A feature with its names for errors.
struct Item {
    origin: String,
    /// Its name in errors.
    id: String,
    kind: Kind,
    feature: Feature,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Unit,
    Opening,
    Level,
}

/// Reads features from files, each a pair of its name and its text.
pub(super) fn read(name: &str, files: &[(&str, &str)]) -> Result<Layout, FloorPlanError> {
    let mut items = Vec::new();
    for (origin, text) in files {
        let geojson: GeoJson = super::without_mark(text)
            .parse()
            .map_err(|error| plan_error(origin, format!("it is no GeoJSON: {error}")))?;
        let features = match geojson {
            GeoJson::FeatureCollection(collection) => collection.features,
            GeoJson::Feature(feature) => vec![feature],
            GeoJson::Geometry(_) => return Err(plan_error(origin, "it must hold features, got a geometry")),
        };
        for (n, feature) in features.into_iter().enumerate() {
            let id = match &feature.id {
                Some(Id::String(id)) => id.clone(),
                Some(Id::Number(id)) => id.to_string(),
                None => format!("feature {n}"),
            };
            if let Some(kind) = kind(&feature) {
                items.push(Item { origin: (*origin).into(), id, kind, feature });
            }
        }
    }
    let origin = files.iter().map(|(origin, _)| *origin).collect::<Vec<_>>().join(", ");
    let projection = Projection::of(&items);
    let floors = floors(&items)?;
    let mut areas = Vec::new();
    let mut openings = Vec::new();
    for item in &items {
        match item.kind {
            Kind::Unit => areas.extend(item.areas(&projection, &floors)?),
            Kind::Opening => openings.push(item.opening(&projection, &floors)?),
            Kind::Level => {}
        }
    }
    assemble(&origin, name, areas, openings)
}

/// The kind of a feature; `None` if ignored.
fn kind(feature: &Feature) -> Option<Kind> {
    let named = |members: &Option<JsonObject>| {
        members
            .as_ref()
            .and_then(|members| members.get("feature_type"))
            .and_then(|kind| kind.as_str().map(String::from))
    };
    match named(&feature.foreign_members).or_else(|| named(&feature.properties)).as_deref() {
        Some("unit") => Some(Kind::Unit),
        Some("opening") => Some(Kind::Opening),
        Some("level") => Some(Kind::Level),
        Some(_) => None,
        None => match feature.geometry.as_ref().map(|geometry| &geometry.value) {
            Some(GeometryValue::Polygon { .. } | GeometryValue::MultiPolygon { .. }) => Some(Kind::Unit),
            Some(GeometryValue::LineString { .. }) => Some(Kind::Opening),
            _ => None,
        },
    }
}

/// The kind of a unit by category; `None` for walls and voids.
fn unit_kind(category: &str) -> Option<NodeKind> {
    match category {
        "walkway" | "walkway.island" | "movingwalkway" | "footbridge" | "lobby" | "ramp" | "steps" | "platform"
        | "unenclosedarea" | "terrace" | "corridor" | "hallway" | "hall" => Some(NodeKind::Hall),
        "stairs" | "escalator" | "elevator" => Some(NodeKind::Stair),
        "brick" | "column" | "concrete" | "drywall" | "glass" | "wood" | "opentobelow" | "structure" | "vegetation"
        | "road" => None,
        _ => Some(NodeKind::Room),
    }
}

/// Floors of the levels by their id.
fn floors(items: &[Item]) -> Result<HashMap<String, i32>, FloorPlanError> {
    let mut floors = HashMap::new();
    for item in items.iter().filter(|item| item.kind == Kind::Level) {
        let ordinal = item.property("ordinal").and_then(JsonValue::as_i64).and_then(|n| i32::try_from(n).ok());
        let Some(ordinal) = ordinal else {
            return Err(item.error("`ordinal` must be a whole number"));
        };
        floors.insert(item.id.clone(), ordinal);
    }
    Ok(floors)
}

impl Item {
    fn property(&self, name: &str) -> Option<&JsonValue> {
        self.feature.properties.as_ref().and_then(|properties| properties.get(name)).filter(|value| !value.is_null())
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.property(name).and_then(JsonValue::as_str)
    }

    fn error(&self, reason: impl std::fmt::Display) -> FloorPlanError {
        let what = match self.kind {
            Kind::Unit => "unit",
            Kind::Opening => "opening",
            Kind::Level => "level",
        };
        plan_error(&self.origin, format!("{what} `{}`: {reason}", self.id))
    }

    /// Its name, from a text or one text per language.
    fn name(&self) -> Option<String> {
        match self.property("name")? {
            JsonValue::String(name) => Some(name.clone()),
            JsonValue::Object(names) => names.values().find_map(JsonValue::as_str).map(String::from),
            _ => None,
        }
    }

    fn flag(&self, name: &str) -> Result<bool, FloorPlanError> {
        match self.property(name) {
            None => Ok(false),
            Some(JsonValue::Bool(flag)) => Ok(*flag),
            Some(other) => Err(self.error(format!("`{name}` must be true or false, got {other}"))),
        }
    }

    fn count(&self, name: &str) -> Result<usize, FloorPlanError> {
        match self.property(name) {
            None => Ok(0),
            Some(value) => match value.as_u64().filter(|n| *n <= 10_000) {
                Some(n) => Ok(n as usize),
                None => Err(self.error(format!("`{name}` must be a whole number up to 10000, got {value}"))),
            },
        }
    }

    fn floor(&self, floors: &HashMap<String, i32>) -> Result<i32, FloorPlanError> {
        if let Some(level) = self.text("level_id") {
            return match floors.get(level) {
                Some(floor) => Ok(*floor),
                None => Err(self.error(format!("`level_id` must be a level, got `{level}`"))),
            };
        }
        match self.property("ordinal").or_else(|| self.property("floor")) {
            None => Ok(0),
            Some(value) => match value.as_i64().and_then(|n| i32::try_from(n).ok()) {
                Some(floor) => Ok(floor),
                None => Err(self.error(format!("its floor must be a whole number, got {value}"))),
            },
        }
    }

    /// The places of a unit, one for each of its polygons.
    fn areas(&self, projection: &Projection, floors: &HashMap<String, i32>) -> Result<Vec<Area>, FloorPlanError> {
        let Some(kind) = unit_kind(self.text("category").unwrap_or("unspecified")) else {
            return Ok(Vec::new());
        };
        let polygons: Vec<&Vec<Vec<Position>>> = match self.feature.geometry.as_ref().map(|geometry| &geometry.value) {
            Some(GeometryValue::Polygon { coordinates }) => vec![coordinates],
            Some(GeometryValue::MultiPolygon { coordinates }) => coordinates.iter().collect(),
            other => {
                let got = other.map_or("nothing", |geometry| geometry.type_name());
                return Err(self.error(format!("its geometry must be a Polygon or MultiPolygon, got {got}")));
            }
        };
        let mut areas = Vec::new();
        for rings in polygons {
            let rings = rings.iter().map(|ring| projection.line(ring));
            let outline = shape::with_holes(rings).map_err(|reason| self.error(projection.explain(reason)))?;
            let Some((outline, area_m2)) = outline else {
                return Err(self.error("its outline is empty"));
            };
            areas.push(Area {
                id: self.id.clone(),
                name: self.name().unwrap_or_else(|| self.id.clone()),
                kind,
                floor: self.floor(floors)?,
                outline,
                area_m2,
                high_risk: self.flag("high_risk")?,
                people: [0; 3],
            });
        }
        // All people are in the first part of a unit.
        if let Some(first) = areas.first_mut() {
            first.people = [self.count("adults")?, self.count("children")?, self.count("limited")?];
        }
        Ok(areas)
    }

    fn opening(&self, projection: &Projection, floors: &HashMap<String, i32>) -> Result<Opening, FloorPlanError> {
        let line = match self.feature.geometry.as_ref().map(|geometry| &geometry.value) {
            Some(GeometryValue::LineString { coordinates }) if coordinates.len() > 1 => projection.line(coordinates),
            other => {
                let got = other.map_or("nothing", |geometry| geometry.type_name());
                return Err(self.error(format!("its geometry must be a LineString of two points or more, got {got}")));
            }
        };
        line.coords().try_for_each(shape::check_point).map_err(|reason| self.error(format!("its point {reason}")))?;
        let category = self.text("category").unwrap_or("pedestrian");
        // In plain GeoJSON, which has no `door`, an opening has a door; in IMDF `door: null` is an open passage.
        let door = match self.feature.properties.as_ref().and_then(|properties| properties.get("door")) {
            None => true,
            Some(JsonValue::Null) => false,
            Some(door) => door.get("type").and_then(JsonValue::as_str) != Some("open"),
        };
        Ok(Opening {
            id: self.id.clone(),
            name: self.name(),
            floor: self.floor(floors)?,
            line,
            is_exit: matches!(category, "emergencyexit" | "exit"),
            is_entry: category == "pedestrian.principal",
            door,
            fire_door: self.flag("fire_door")?,
        })
    }
}

/// Projection of coordinates to m.
enum Projection {
    Meters,
    /// Degrees around a center, with m per degree to the east and to the north.
    Degrees {
        center: [f64; 2],
        scale: [f64; 2],
    },
}

impl Projection {
    /// The projection for the given features.
    fn of(items: &[Item]) -> Self {
        let mut low = [f64::INFINITY; 2];
        let mut high = [f64::NEG_INFINITY; 2];
        let mut see = |position: &Position| {
            for (axis, value) in position.as_slice().iter().take(2).enumerate() {
                low[axis] = low[axis].min(*value);
                high[axis] = high[axis].max(*value);
            }
        };
        for geometry in items.iter().filter_map(|item| item.feature.geometry.as_ref()) {
            match &geometry.value {
                GeometryValue::LineString { coordinates } => coordinates.iter().for_each(&mut see),
                GeometryValue::Polygon { coordinates } => coordinates.iter().flatten().for_each(&mut see),
                GeometryValue::MultiPolygon { coordinates } => {
                    coordinates.iter().flatten().flatten().for_each(&mut see)
                }
                _ => {}
            }
        }
        if !(high[0] - low[0] <= MOST_DEGREES && high[1] - low[1] <= MOST_DEGREES) {
            return Self::Meters;
        }
        let center = [(low[0] + high[0]) / 2.0, (low[1] + high[1]) / 2.0];
        // Radii of curvature of the ellipsoid, for the parallel and the meridian.
        let latitude = center[1].to_radians();
        let shrink = 1.0 - ECCENTRICITY_SQUARED * latitude.sin() * latitude.sin();
        let normal = EQUATOR_M / shrink.sqrt();
        let meridian = normal * (1.0 - ECCENTRICITY_SQUARED) / shrink;
        Self::Degrees { center, scale: [(normal * latitude.cos()).to_radians(), meridian.to_radians()] }
    }

    /// A message about corners, with the origin of their coordinates.
    fn explain(&self, reason: String) -> String {
        match self {
            Self::Meters => reason,
            Self::Degrees { center, .. } => {
                format!("{reason}, in m east and north of ({:.6}, {:.6})", center[0], center[1])
            }
        }
    }

    fn line(&self, positions: &[Position]) -> LineString {
        let point = |position: &Position| {
            let at = |axis: usize| position.as_slice().get(axis).copied().unwrap_or(f64::NAN);
            match self {
                Self::Meters => [at(0), at(1)],
                Self::Degrees { center, scale } => [(at(0) - center[0]) * scale[0], (at(1) - center[1]) * scale[1]],
            }
        };
        positions.iter().map(point).collect()
    }
}
