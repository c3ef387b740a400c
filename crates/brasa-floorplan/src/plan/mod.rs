//! Reading and writing of floor plans.
//!
//! | format | read | written | content |
//! |---|---|---|---|
//! | Brasa JSON | yes | yes | the graph itself: nodes, ways, people, entries; version 1 |
//! | GeoJSON, IMDF | yes | no | units, openings and levels of OGC 20-094, in degrees or meters |
//! | WKT | yes | no | rooms as polygons and doors as lines, one geometry per line |
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

mod assemble;
mod imdf;
mod json;
mod shape;
mod wkt;

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use crate::error::printable;
use crate::{FloorPlanError, Layout};

/// Most polygons, and most lines, of a plan with outlines: every line is compared with every polygon.
const MOST_PLACES: usize = 20_000;
/// Most people of a plan.
const MOST_PEOPLE: usize = 100_000;
/// Farthest from the origin that a point of a plan may be, in m: two and a half times around the earth.
const MOST_METERS: f64 = 1e8;

impl Layout {
    /// Reads a floor plan of any known format.
    ///
    /// A folder is a set of IMDF files, `unit.geojson`, `opening.geojson` and optionally `level.geojson`. The format of
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
            for (file, is_needed) in [("level.geojson", false), ("unit.geojson", true), ("opening.geojson", true)] {
                let path = path.join(file);
                if is_needed || path.exists() {
                    files.push((path.display().to_string(), read(&path)?));
                }
            }
            let files: Vec<(&str, &str)> =
                files.iter().map(|(origin, text)| (origin.as_str(), text.as_str())).collect();
            return imdf::read(&name, &files);
        }
        let text = read(path)?;
        let text = without_mark(&text);
        let origin = path.display().to_string();
        if !text.trim_start().starts_with(['{', '[']) {
            return wkt::read(&name, text, &origin);
        }
        let is_geojson = path.extension().is_some_and(|extension| extension == "geojson");
        if is_geojson || json::is_foreign(text) {
            return imdf::read(&name, &[(&origin, text)]);
        }
        json::read(text, &origin)
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

    /// Writes Brasa's JSON atomically.
    ///
    /// # Errors
    /// [`FloorPlanError::File`] if writing fails; an existing file is then unchanged.
    pub fn save_json(&self, path: impl AsRef<Path>) -> Result<(), FloorPlanError> {
        let path = path.as_ref();
        write_whole(path, self.to_json().as_bytes()).map_err(|source| FloorPlanError::File {
            action: "write",
            path: path.into(),
            source,
        })
    }
}

/// A text without the byte order mark that editors of some systems put in front.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn read(path: &Path) -> Result<String, FloorPlanError> {
    fs::read_to_string(path).map_err(|source| FloorPlanError::File { action: "read", path: path.into(), source })
}

/// Writes a temporary file, waits for the disk, and renames it to `path`.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    let temporary = path.with_file_name(name);
    let write = || {
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    write().inspect_err(|_| {
        // The incomplete temporary file is removed.
        let _ = fs::remove_file(&temporary);
    })
}

fn plan_error(origin: &str, reason: impl Into<String>) -> FloorPlanError {
    FloorPlanError::Plan { origin: printable(origin), reason: printable(&reason.into()) }
}
