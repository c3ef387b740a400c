//! Reading and writing of floor plans.
//!
//! | format | read | written | content |
//! |---|---|---|---|
//! | Brasa JSON | yes | yes | the graph itself: nodes, ways, people, entries; version 1 |
//! | GeoJSON, IMDF | yes | no | units, openings and levels of OGC 20-094, indoor tags of OpenStreetMap; degrees, meters, a `crs` |
//! | IMDF as it is distributed | yes | no | a zip archive, or a folder, of such files |
//! | WKT, EWKT | yes | no | rooms as polygons and doors as lines, one geometry per line; meters, or an `SRID` |
//!
//! [`Layout::load`] detects the format. Errors name the file and the feature: an
//! outline that is not closed, an opening that touches no place, a building without an exit, unreachable places.
//!
//! A byte order mark is skipped. A file may hold 20,000 polygons or lines, and points within
//! 100,000 km of the origin.
//!
//! Where a plan has outlines, ways are measured so: a room is searched from its door, hence the way from its door is 1
//! m; a hall, a stair or an exit area is measured from its middle. So cut long corridors into parts, with an opening
//! from each to the next.

mod archive;
mod assemble;
mod crs;
mod element;
mod imdf;
mod json;
mod openings;
mod osm;
mod shape;
mod wkt;

use std::fs;
use std::path::Path;

use crate::error::printable;
use crate::{FloorPlanError, Layout};

/// Files of IMDF that are read, and whether they must be there.
const IMDF_FILES: [(&str, bool); 3] = [("level.geojson", false), ("unit.geojson", true), ("opening.geojson", true)];
/// Most polygons, and most lines, of a plan with outlines: every line is compared with every polygon.
const MOST_PLACES: usize = 20_000;
/// Most people of a plan.
const MOST_PEOPLE: usize = 100_000;
/// Farthest from the origin that a point of a plan may be, in m: two and a half times around the earth.
const MOST_METERS: f64 = 1e8;

impl Layout {
    /// Reads a floor plan of any known format.
    ///
    /// A folder, and a zip archive, is a set of IMDF files, `unit.geojson`, `opening.geojson` and optionally `level.geojson`. The format of
    /// a file is detected from its content: GeoJSON has a `type`, Brasa's JSON a `version`, and any text that is not
    /// JSON is WKT. If the format has no name of the building, it is that of the file.
    ///
    /// # Errors
    /// [`FloorPlanError::File`] if the file cannot be read, [`FloorPlanError::Plan`] with the file and the
    /// feature if it is invalid.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, FloorPlanError> {
        let path = path.as_ref();
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        if path.is_dir() {
            let mut files = Vec::new();
            for (file, is_needed) in IMDF_FILES {
                let path = path.join(file);
                if is_needed || path.exists() {
                    files.push((path.display().to_string(), text(&path.display().to_string(), read(&path)?)?));
                }
            }
            return Self::from_geojson(&name, &borrowed(&files));
        }
        Self::from_bytes(&name, read(path)?, &path.display().to_string())
    }

    /// Reads a floor plan of any known format from the bytes of a file; `origin` is its name in errors.
    ///
    /// # Errors
    /// [`FloorPlanError::Plan`].
    pub fn from_bytes(name: &str, bytes: Vec<u8>, origin: &str) -> Result<Self, FloorPlanError> {
        if archive::is_zip(&bytes) {
            let files = archive::read(bytes).map_err(|reason| plan_error(origin, reason))?;
            let files: Vec<_> = files.into_iter().map(|(file, text)| (format!("{origin}/{file}"), text)).collect();
            return Self::from_geojson(name, &borrowed(&files));
        }
        let text = text(origin, bytes)?;
        let text = without_mark(&text);
        if !text.trim_start().starts_with(['{', '[']) {
            return wkt::read(name, text, origin);
        }
        if origin.ends_with(".geojson") || json::is_foreign(text) {
            return imdf::read(name, &[(origin, text)]);
        }
        json::read(text, origin)
    }

    /// Reads a plan in Brasa's JSON; `origin` is the name of the text in errors.
    ///
    /// # Errors
    /// [`FloorPlanError::Plan`].
    pub fn from_json(text: &str, origin: &str) -> Result<Self, FloorPlanError> {
        json::read(without_mark(text), origin)
    }

    /// Reads GeoJSON or IMDF from files in memory, as pairs of name and text.
    ///
    /// # Errors
    /// [`FloorPlanError::Plan`].
    pub fn from_geojson(name: &str, files: &[(&str, &str)]) -> Result<Self, FloorPlanError> {
        imdf::read(name, files)
    }

    /// Reads a plan in WKT; `origin` is the name of the text in errors.
    ///
    /// # Errors
    /// [`FloorPlanError::Plan`].
    pub fn from_wkt(name: &str, text: &str, origin: &str) -> Result<Self, FloorPlanError> {
        wkt::read(name, without_mark(text), origin)
    }

    /// The building in Brasa's JSON, with one line per node, way and person.
    pub fn to_json(&self) -> String {
        json::write(self)
    }
}

/// A text without the byte order mark that editors of some systems put in front.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn read(path: &Path) -> Result<Vec<u8>, FloorPlanError> {
    fs::read(path).map_err(|cause| FloorPlanError::File { action: "read", path: path.into(), cause })
}

fn text(origin: &str, bytes: Vec<u8>) -> Result<String, FloorPlanError> {
    String::from_utf8(bytes)
        .map_err(|error| plan_error(origin, format!("it is no text in UTF-8: {}", error.utf8_error())))
}

fn borrowed(files: &[(String, String)]) -> Vec<(&str, &str)> {
    files.iter().map(|(origin, text)| (origin.as_str(), text.as_str())).collect()
}

fn plan_error(origin: &str, reason: impl Into<String>) -> FloorPlanError {
    FloorPlanError::Plan { origin: printable(origin), reason: printable(&reason.into()) }
}
