//! Coordinate systems of plans, and their projection to m.

use geo::{BoundingRect, Coord, LineString};
use proj4rs::Proj;
use proj4rs::adaptors::transform_vertex_2d;

use super::element::{Element, Part};
use crate::FloorPlanError;

/// Half of the largest extent of a plan in degrees: 50 km and more.
const MOST_DEGREES: f64 = 0.5;
/// Largest side of most outlines in degrees: as meters they would be too small for a room, as degrees they are 10 km.
const MOST_DEGREES_OF_ROOM: f64 = 0.1;
/// WGS 84: equatorial radius in m, and square of the eccentricity.
const EQUATOR_M: f64 = 6_378_137.0;
const ECCENTRICITY_SQUARED: f64 = 6.694_379_990_14e-3;
const WGS_84: u16 = 4326;
const WEB_MERCATOR: u16 = 3857;

/// What a file states about its coordinates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Crs {
    /// Nothing.
    Unstated,
    /// A system of the EPSG registry.
    Epsg(u16),
}

impl Crs {
    /// The system of a number in the EPSG registry.
    ///
    /// # Errors
    /// The reason.
    pub(super) fn epsg(code: u64) -> Result<Self, String> {
        match code {
            // Numbers of Web Mercator from before it had one.
            900_913 | 102_100 | 102_113 | 3785 => Ok(Self::Epsg(WEB_MERCATOR)),
            _ => u16::try_from(code).map(Self::Epsg).map_err(|_| format!("EPSG:{code} is not known")),
        }
    }

    /// The system of a name: `EPSG:25832`, `urn:ogc:def:crs:EPSG::25832`, `urn:ogc:def:crs:OGC:1.3:CRS84`, or an address that ends so.
    ///
    /// # Errors
    /// The reason.
    pub(super) fn named(name: &str) -> Result<Self, String> {
        let upper = name.trim().to_ascii_uppercase();
        let last = upper.rsplit([':', '/', '#']).next().unwrap_or_default();
        if matches!(last, "CRS84" | "CRS84H" | "WGS84") {
            return Ok(Self::Epsg(WGS_84));
        }
        match last.parse() {
            Ok(code) if upper.contains("EPSG") => Self::epsg(code),
            _ => Err(format!(
                "`{name}` is not known; give a number of EPSG, as `EPSG:25832`, or coordinates in m without one"
            )),
        }
    }
}

/// Where degrees were projected around: east and north.
pub(super) struct Center([f64; 2]);

impl Center {
    /// A message about corners, with the origin of their coordinates.
    pub(super) fn explain(center: Option<&Self>, reason: String) -> String {
        match center {
            None => reason,
            Some(Self([east, north])) => format!("{reason}, in m east and north of ({east:.6}, {north:.6})"),
        }
    }
}

/// Projects all coordinates to m, and returns the center if they were degrees or came from a system of coordinates.
///
/// Coordinates of no stated system are degrees if most outlines are too small for rooms in m.
///
/// # Errors
/// [`FloorPlanError::Plan`] naming an element whose coordinates are none of the system, or that is far from the others.
pub(super) fn to_meters(
    crs: Crs,
    origin: &str,
    elements: &mut [Element<'_>],
) -> Result<Option<Center>, FloorPlanError> {
    match crs {
        Crs::Unstated if !look_like_degrees(elements) => return Ok(None),
        Crs::Unstated => {}
        Crs::Epsg(code) => to_degrees(code, origin, elements)?,
    }
    let Some(&first) = elements.iter().flat_map(Element::coords).next() else { return Ok(None) };
    elements.iter_mut().flat_map(Element::coords_mut).for_each(|at| unwrap(first, at));
    // One element in a wrong place must not move the middle.
    let middle = |axis: fn(&Coord) -> f64| {
        let mut values: Vec<f64> = elements.iter().filter_map(|element| element.coords().next().map(axis)).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let middle = Coord { x: middle(|at| at.x), y: middle(|at| at.y) };
    let metric = Metric::at(middle);
    for element in elements.iter() {
        let is_far = |at: &&Coord| {
            let away = **at - middle;
            at.x.is_finite() && at.y.is_finite() && (away.x.abs() > MOST_DEGREES || away.y.abs() > MOST_DEGREES)
        };
        if let Some(at) = element.coords().find(is_far) {
            let away = metric.meters(*at - middle);
            let away_km = away.x.hypot(away.y) / 1e3;
            return Err(element.error(format!("it is {away_km:.0} km from the middle of the plan")));
        }
    }
    let all: LineString = elements.iter().flat_map(Element::coords).copied().collect();
    let center = all.bounding_rect().map_or(middle, |around| around.center());
    let metric = Metric::at(center);
    elements.iter_mut().flat_map(Element::coords_mut).for_each(|at| *at = metric.meters(*at - center));
    Ok(Some(Center(center.into())))
}

/// m per degree to the east and to the north.
struct Metric {
    scale: [f64; 2],
}

impl Metric {
    /// Radii of curvature of the ellipsoid, for the parallel and the meridian.
    fn at(center: Coord) -> Self {
        let latitude = center.y.to_radians();
        let shrink = 1.0 - ECCENTRICITY_SQUARED * latitude.sin() * latitude.sin();
        let normal = EQUATOR_M / shrink.sqrt();
        let meridian = normal * (1.0 - ECCENTRICITY_SQUARED) / shrink;
        Self { scale: [(normal * latitude.cos()).to_radians(), meridian.to_radians()] }
    }

    fn meters(&self, away: Coord) -> Coord {
        Coord { x: away.x * self.scale[0], y: away.y * self.scale[1] }
    }
}

/// Moves a point to the side of `first`: buildings may stand on the line where 180 degrees east are 180 degrees west.
fn unwrap(first: Coord, at: &mut Coord) {
    at.x -= 360.0 * ((at.x - first.x) / 360.0).round();
}

fn is_on_earth(at: &Coord) -> bool {
    at.x.abs() <= 180.0 && at.y.abs() <= 90.0
}

/// Whether most outlines have sides that are rooms in degrees and none in m.
fn look_like_degrees(elements: &[Element<'_>]) -> bool {
    let outlines = elements.iter().flat_map(|element| &element.parts).filter_map(|part| {
        let Part::Polygon(rings) = part else { return None };
        let mut ring = rings.first()?.clone();
        let first = *ring.0.first()?;
        ring.0.iter_mut().for_each(|at| unwrap(first, at));
        ring.bounding_rect()
    });
    let mut sides: Vec<f64> = outlines.map(|around| around.width().max(around.height())).collect();
    sides.sort_by(f64::total_cmp);
    let is_small = sides.get(sides.len() / 2).is_some_and(|side| *side <= MOST_DEGREES_OF_ROOM);
    is_small && elements.iter().flat_map(Element::coords).all(is_on_earth)
}

/// Coordinates of a system as degrees east and north.
fn to_degrees(code: u16, origin: &str, elements: &mut [Element<'_>]) -> Result<(), FloorPlanError> {
    let refuse = |error: proj4rs::errors::Error| {
        super::plan_error(
            origin,
            format!("its coordinates are those of EPSG:{code}, which cannot be converted: {error}"),
        )
    };
    let source = Proj::from_epsg_code(code).map_err(refuse)?;
    let earth = Proj::from_epsg_code(WGS_84).map_err(refuse)?;
    for element in elements {
        let mut wrong = None;
        for at in element.coords_mut() {
            let (x, y) = if source.is_latlong() { (at.x.to_radians(), at.y.to_radians()) } else { at.x_y() };
            let is_possible = !source.is_latlong() || is_on_earth(at);
            match transform_vertex_2d(&source, &earth, (x, y)) {
                Ok((east, north)) if is_possible && east.is_finite() && north.is_finite() => {
                    *at = Coord { x: east.to_degrees(), y: north.to_degrees() };
                }
                _ => wrong = wrong.or(Some(*at)),
            }
        }
        if let Some(Coord { x, y }) = wrong {
            return Err(element.error(format!("its point ({x}, {y}) is none of EPSG:{code}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_have_many_names() {
        for (name, code) in [
            ("EPSG:3857", 3857),
            ("urn:ogc:def:crs:EPSG::25832", 25_832),
            ("urn:ogc:def:crs:EPSG:6.9:2056", 2056),
            ("urn:ogc:def:crs:OGC:1.3:CRS84", 4326),
            ("http://www.opengis.net/def/crs/EPSG/0/4326", 4326),
            ("epsg:900913", 3857),
        ] {
            assert_eq!(Crs::named(name), Ok(Crs::Epsg(code)), "{name}");
        }
        for name in ["", "EPSG:", "EPSG:70000", "local", "ESRI:102100", "EPSG:-1"] {
            assert!(Crs::named(name).is_err(), "{name}");
        }
    }
}
