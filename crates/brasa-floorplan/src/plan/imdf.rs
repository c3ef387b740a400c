//! GeoJSON: the Indoor Mapping Data Format (OGC 20-094), indoor maps of OpenStreetMap, and plain polygons and lines.
//!
//! It reads `unit` polygons, `opening` lines and, for the floors, `level`; other features of the format are ignored. In plain
//! GeoJSON without feature types, a polygon is a unit and a line is an opening. Features of OpenStreetMap are told by their tags
//! (see [`super::osm`]). What can be neither is an error that names the feature.
//!
//! - The `category` of a unit is its kind: walkways and lobbies are halls, stairs and elevators are stairs, walls and
//!   voids are ignored, and everything else is a room.
//! - An opening that touches two units is a way between them, and one that touches a single unit leads outside; one of
//!   category `emergencyexit` or `exit` always does. Responders enter at category `pedestrian.principal`, or
//!   at every exit if there is none.
//! - `level_id` refers to a level, whose `ordinal` is the floor; without it the floor is `ordinal`, `floor` or `level` of the
//!   feature, or 0.
//! - Extensions of the standard: `high_risk`, `adults`, `children` and `limited` of a unit, `fire_door` of an opening.
//!
//! Coordinates are those of the member `crs`; without one they are degrees (WGS 84) if most units are smaller than 0.1 in both
//! directions, and meters otherwise.

use std::collections::HashMap;

use geo::{Coord, LineString};
use geojson::{Feature, GeoJson, GeometryValue, JsonObject, JsonValue, Position, feature::Id};

use super::crs::Crs;
use super::element::{Element, Part, Role, build};
use super::{osm, plan_error};
use crate::{FloorPlanError, Layout, NodeKind};

/// Types of features of the format that are neither places nor openings.
const OTHER_FEATURES: [&str; 13] = [
    "address",
    "amenity",
    "anchor",
    "building",
    "detail",
    "fixture",
    "footprint",
    "geofence",
    "kiosk",
    "occupant",
    "relationship",
    "section",
    "venue",
];

/// A feature with its names for errors.
struct Item<'a> {
    origin: &'a str,
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
    /// Of OpenStreetMap, whose tags decide.
    Tagged,
    /// Neither its type nor its tags decide: its geometry does.
    Plain,
}

/// Reads features from files, each a pair of its name and its text.
pub(super) fn read(name: &str, files: &[(&str, &str)]) -> Result<Layout, FloorPlanError> {
    let mut crs = Crs::Unstated;
    let mut features = Vec::new();
    for (origin, text) in files {
        let geojson: GeoJson = super::without_mark(text)
            .parse()
            .map_err(|error| plan_error(origin, format!("it is no GeoJSON: {error}")))?;
        let members = match geojson {
            GeoJson::FeatureCollection(collection) => {
                features.extend(collection.features.into_iter().enumerate().map(|(n, feature)| (*origin, n, feature)));
                collection.foreign_members
            }
            GeoJson::Feature(feature) => {
                let members = feature.foreign_members.clone();
                features.push((*origin, 0, feature));
                members
            }
            GeoJson::Geometry(_) => return Err(plan_error(origin, "it must hold features, got a geometry")),
        };
        let stated = stated_crs(members.as_ref()).map_err(|reason| plan_error(origin, format!("`crs`: {reason}")))?;
        if stated != Crs::Unstated && crs != Crs::Unstated && stated != crs {
            return Err(plan_error(origin, "`crs` must be that of the other files"));
        }
        crs = if stated == Crs::Unstated { crs } else { stated };
    }
    let is_tagged = features.iter().any(|(_, _, feature)| osm::tags(feature).is_some_and(osm::is_indoor));
    let mut items = Vec::new();
    for (origin, n, feature) in features {
        let id = match &feature.id {
            Some(Id::String(id)) => id.clone(),
            Some(Id::Number(id)) => id.to_string(),
            None => format!("feature {n}"),
        };
        let kind =
            kind(&feature, is_tagged).map_err(|reason| plan_error(origin, format!("feature `{id}`: {reason}")))?;
        items.extend(kind.map(|kind| Item { origin, id, kind, feature }));
    }
    let origin = files.iter().map(|(origin, _)| *origin).collect::<Vec<_>>().join(", ");
    let floors = floors(&items)?;
    let mut elements = Vec::new();
    for item in &items {
        match item.kind {
            Kind::Unit => elements.extend(item.unit_of(&floors, item.parts())?),
            Kind::Opening => elements.push(item.opening(&floors)?),
            Kind::Plain => item.plain(&floors, &mut elements)?,
            Kind::Tagged => {
                let id = item.feature.id.as_ref().map(|_| item.id.clone());
                let parts = item.parts();
                elements
                    .extend(osm::element(item.origin, id, &item.feature, parts).map_err(|reason| item.error(reason))?);
            }
            Kind::Level => {}
        }
    }
    build(&origin, name, crs, elements)
}

/// The system of coordinates of a file, by name, by address or by number; `crs` was a member of GeoJSON until 2016.
fn stated_crs(members: Option<&JsonObject>) -> Result<Crs, String> {
    match members.and_then(|members| members.get("crs")) {
        None | Some(JsonValue::Null) => Ok(Crs::Unstated),
        Some(crs) => {
            let property = |name: &str| crs.get("properties").and_then(|properties| properties.get(name));
            match (crs, property("name"), property("code")) {
                (JsonValue::String(name), ..) | (_, Some(JsonValue::String(name)), _) => Crs::named(name),
                (_, None, Some(code)) if code.is_u64() => Crs::epsg(code.as_u64().unwrap_or_default()),
                _ => Err(format!("it must name a system, as `EPSG:25832`, got {crs}")),
            }
        }
    }
}

/// The kind of a feature; `None` if ignored.
fn kind(feature: &Feature, is_tagged: bool) -> Result<Option<Kind>, String> {
    let named =
        |members: &Option<JsonObject>| Some(members.as_ref()?.get("feature_type")?.as_str()?.to_ascii_lowercase());
    match named(&feature.foreign_members).or_else(|| named(&feature.properties)).as_deref() {
        Some("unit") => Ok(Some(Kind::Unit)),
        Some("opening") => Ok(Some(Kind::Opening)),
        Some("level") => Ok(Some(Kind::Level)),
        Some(other) if OTHER_FEATURES.contains(&other) => Ok(None),
        Some(other) => {
            Err(format!("`feature_type` must be `unit`, `opening`, `level` or another of IMDF, got `{other}`"))
        }
        None if osm::tags(feature).is_some_and(osm::is_told) && (is_tagged || is_point(feature)) => {
            Ok(Some(Kind::Tagged))
        }
        // Beside indoor tags, other features are streets and benches.
        None if is_tagged => Ok(None),
        None => Ok(Some(Kind::Plain)),
    }
}

fn is_point(feature: &Feature) -> bool {
    let geometry = feature.geometry.as_ref().map(|geometry| &geometry.value);
    matches!(geometry, Some(GeometryValue::Point { .. } | GeometryValue::MultiPoint { .. }))
}

/// The kind of a unit by category; `None` for walls and voids.
fn unit_kind(category: &str) -> Option<NodeKind> {
    match category.trim().to_ascii_lowercase().as_str() {
        "walkway" | "walkway.island" | "movingwalkway" | "footbridge" | "lobby" | "ramp" | "steps" | "platform"
        | "unenclosedarea" | "terrace" | "corridor" | "hallway" | "hall" => Some(NodeKind::Hall),
        "stairs" | "escalator" | "elevator" => Some(NodeKind::Stair),
        "brick" | "column" | "concrete" | "drywall" | "glass" | "wood" | "opentobelow" | "structure" | "vegetation"
        | "road" => None,
        _ => Some(NodeKind::Room),
    }
}

/// An identifier as text or as number.
fn identifier(value: &JsonValue) -> Option<String> {
    match value {
        JsonValue::String(id) => Some(id.clone()),
        JsonValue::Number(id) => Some(id.to_string()),
        _ => None,
    }
}

/// Floors of the levels by their id.
fn floors(items: &[Item<'_>]) -> Result<HashMap<String, i32>, FloorPlanError> {
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

/// Polygons, lines and points of a geometry, also of collections.
fn add_parts(geometry: &GeometryValue, parts: &mut Vec<Part>) {
    let coord = |position: &Position| {
        let at = |axis: usize| position.as_slice().get(axis).copied().unwrap_or(f64::NAN);
        Coord { x: at(0), y: at(1) }
    };
    let line = |positions: &Vec<Position>| positions.iter().map(coord).collect::<LineString>();
    let polygon = |rings: &Vec<Vec<Position>>| Part::Polygon(rings.iter().map(line).collect());
    match geometry {
        GeometryValue::Point { coordinates } => parts.push(Part::Point(coord(coordinates))),
        GeometryValue::MultiPoint { coordinates } => parts.extend(coordinates.iter().map(coord).map(Part::Point)),
        GeometryValue::LineString { coordinates } => parts.push(Part::Line(line(coordinates))),
        GeometryValue::MultiLineString { coordinates } => parts.extend(coordinates.iter().map(line).map(Part::Line)),
        GeometryValue::Polygon { coordinates } => parts.push(polygon(coordinates)),
        GeometryValue::MultiPolygon { coordinates } => parts.extend(coordinates.iter().map(polygon)),
        GeometryValue::GeometryCollection { geometries } => {
            geometries.iter().for_each(|geometry| add_parts(&geometry.value, parts));
        }
    }
}

impl<'a> Item<'a> {
    fn property(&self, name: &str) -> Option<&JsonValue> {
        self.feature.properties.as_ref().and_then(|properties| properties.get(name)).filter(|value| !value.is_null())
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.property(name).and_then(JsonValue::as_str)
    }

    fn parts(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        if let Some(geometry) = &self.feature.geometry {
            add_parts(&geometry.value, &mut parts);
        }
        parts
    }

    fn what(&self) -> &'static str {
        match self.kind {
            Kind::Unit => "unit",
            Kind::Opening => "opening",
            Kind::Level => "level",
            Kind::Tagged | Kind::Plain => "feature",
        }
    }

    fn error(&self, reason: impl std::fmt::Display) -> FloorPlanError {
        plan_error(self.origin, format!("{} `{}`: {reason}", self.what(), self.id))
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
        if let Some(level) = self.property("level_id") {
            let floor = identifier(level).and_then(|level| floors.get(&level).copied());
            let got = identifier(level).unwrap_or_else(|| level.to_string());
            return floor.ok_or_else(|| self.error(format!("`level_id` must be a level, got `{got}`")));
        }
        match ["ordinal", "floor", "level"].into_iter().find_map(|name| self.property(name)) {
            None => Ok(0),
            Some(value) => {
                let number = value.as_i64().or_else(|| value.as_str()?.trim().parse().ok());
                let floor = number.and_then(|n| i32::try_from(n).ok());
                floor.ok_or_else(|| self.error(format!("its floor must be a whole number, got {value}")))
            }
        }
    }

    fn element(
        &self,
        floors: &HashMap<String, i32>,
        role: Role,
        parts: Vec<Part>,
    ) -> Result<Element<'a>, FloorPlanError> {
        Ok(Element {
            origin: self.origin,
            what: self.what().into(),
            id: Some(self.id.clone()),
            name: self.name(),
            floors: vec![self.floor(floors)?],
            role,
            parts,
        })
    }

    /// A unit of these parts; `None` for walls and voids.
    fn unit_of(&self, floors: &HashMap<String, i32>, parts: Vec<Part>) -> Result<Option<Element<'a>>, FloorPlanError> {
        let Some(kind) = unit_kind(self.text("category").unwrap_or("unspecified")) else { return Ok(None) };
        let people = [self.count("adults")?, self.count("children")?, self.count("limited")?];
        self.element(floors, Role::Area { kind, high_risk: self.flag("high_risk")?, people }, parts).map(Some)
    }

    fn opening(&self, floors: &HashMap<String, i32>) -> Result<Element<'a>, FloorPlanError> {
        let parts = self.parts();
        if let Some(Part::Point(_)) = parts.first() {
            return Err(self.error("its geometry must be a LineString of two points or more, got Point"));
        }
        self.opening_of(floors, parts)
    }

    fn opening_of(&self, floors: &HashMap<String, i32>, parts: Vec<Part>) -> Result<Element<'a>, FloorPlanError> {
        let category = self.text("category").unwrap_or("pedestrian").trim().to_ascii_lowercase();
        let role = Role::Opening {
            is_exit: matches!(category.as_str(), "emergencyexit" | "exit"),
            is_entry: category == "pedestrian.principal",
            door: has_door(self.feature.properties.as_ref().and_then(|properties| properties.get("door"))),
            fire_door: self.flag("fire_door")?,
            point_width_m: osm::DOOR_M,
        };
        self.element(floors, role, parts)
    }

    /// A feature without a type: its polygons are units, its lines openings.
    fn plain(&self, floors: &HashMap<String, i32>, elements: &mut Vec<Element<'a>>) -> Result<(), FloorPlanError> {
        let parts = self.parts();
        if parts.is_empty() || parts.iter().any(|part| matches!(part, Part::Point(_))) {
            let got = self.feature.geometry.as_ref().map_or("nothing", |geometry| geometry.value.type_name());
            return Err(self.error(format!(
                "{got} is neither a place nor an opening; give it a `feature_type`, or `door` or `entrance` if it is one"
            )));
        }
        let (polygons, lines): (Vec<Part>, Vec<Part>) =
            parts.into_iter().partition(|part| matches!(part, Part::Polygon(_)));
        // Features without a type are named after what they are.
        let named = |what: &str, element: Element<'a>| Element { what: what.into(), ..element };
        if !polygons.is_empty() {
            elements.extend(self.unit_of(floors, polygons)?.map(|unit| named("unit", unit)));
        }
        if !lines.is_empty() {
            elements.push(named("opening", self.opening_of(floors, lines)?));
        }
        Ok(())
    }
}

/// In plain GeoJSON, which has no `door`, an opening has a door; in IMDF `door: null` is an open passage.
pub(super) fn has_door(door: Option<&JsonValue>) -> bool {
    let is_open = |kind: &str| matches!(kind.to_ascii_lowercase().as_str(), "open" | "no" | "false" | "opening");
    match door {
        None => true,
        Some(JsonValue::Null) => false,
        Some(JsonValue::Bool(door)) => *door,
        Some(JsonValue::String(kind)) => !is_open(kind),
        Some(door) => !door.get("type").and_then(JsonValue::as_str).is_some_and(is_open),
    }
}
