//! Invalid floor plans are errors with a reason.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::PathBuf;

use brasa_floorplan::{FloorPlanError, Layout};
use proptest::prelude::*;

fn path(file: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "data", "plans", "broken", file].iter().collect()
}

/// The error of an invalid plan, without the path at its start.
fn reason(file: &str) -> String {
    let path = path(file);
    match Layout::load(&path).unwrap_err() {
        FloorPlanError::Plan { origin, reason } => {
            assert_eq!(origin, path.display().to_string(), "{file}");
            reason
        }
        other => panic!("{file}: {other}"),
    }
}

const NO_EXIT: &str = "it has no exit: no opening touches one place only, and none is marked as an exit";

#[test]
fn broken_plans_are_refused_by_name() {
    let table = [
        ("across.geojson", "opening `across` touches no place of floor 0 within 0.3 m"),
        ("corner.geojson", "opening `corner` touches more than two places: `yard`, `shop`, `store`"),
        ("count.geojson", "unit `shop`: `adults` must be a whole number up to 10000, got -1"),
        ("crossed.geojson", "unit `shop`: its outline crosses itself at (1.20, 1.20)"),
        ("cut_off.geojson", "no way leads from an exit to `Store`"),
        ("cut_off.json", "no way leads from an exit to `Cellar`"),
        ("cut_off.wkt", "no way leads from an exit to `Store`"),
        ("door_area.wkt", "line 1: a door must be a LINESTRING, got a polygon"),
        ("empty.wkt", "it has no places: no polygon is a room, hall, stair or exit"),
        ("flag.geojson", "unit `shop`: `high_risk` must be true or false, got \"yes\""),
        ("floor.wkt", "line 1: the floor behind `@` must be a whole number, got `high`"),
        ("geometry.geojson", "it must hold features, got a geometry"),
        ("level.geojson", "level `attic`: `ordinal` must be a whole number"),
        ("missing_field.json", "edge 0 (`R`): missing field `width_m`"),
        ("narrow.geojson", "opening `front` is 0.10 m wide and needs 0.3"),
        ("no_area.json", "`area_m2` of node `R` must be positive, got 0"),
        ("no_exit.geojson", NO_EXIT),
        ("no_exit.wkt", NO_EXIT),
        ("no_outline.geojson", "unit `ghost`: its geometry must be a Polygon or MultiPolygon, got nothing"),
        ("no_room.geojson", "it has no room"),
        ("no_version.json", "`version` must be 1, and it is missing"),
        ("not_wkt.wkt", "line 2: `SQUARE (0 0, 3 3)` is no WKT: Invalid type encountered"),
        ("own_exit.json", "no way leads from the entry `X` to `Cellar`"),
        ("own_exit.wkt", "no way leads from the entry `EXIT_0` to `Store`, `Yard`"),
        ("point.geojson", "opening `bell`: its geometry must be a LineString of two points or more, got Point"),
        ("point.wkt", "line 2: a point is neither a room nor a door"),
        ("room_line.wkt", "line 1: `Shop`: a room, hall or stair must be a POLYGON, got a line"),
        ("stray_door.wkt", "opening `Back door` touches no place of floor 1 within 0.3 m"),
        ("stray_opening.geojson", "opening `stray` touches no place of floor 0 within 0.3 m"),
        (
            "truncated.geojson",
            "it is no GeoJSON: Error while deserializing GeoJSON: EOF while parsing a value at line 2 column 106",
        ),
        ("truncated.json", "it is no JSON: EOF while parsing a value at line 15 column 15"),
        ("truncated.wkt", "line 2: the geometry is not complete: `door: LINESTRING (0 1, 0`"),
        ("twice.json", "two nodes are called `R`"),
        (
            "unclosed.geojson",
            "unit `shop`: its outline is not closed: it begins at (0.000, 0.000) and ends at (0.000, 3.000)",
        ),
        (
            "unclosed.wkt",
            "line 1: `Shop`: its outline is not closed: it begins at (0.000, 0.000) and ends at (0.000, 3.000)",
        ),
        (
            "unclosed_degrees.geojson",
            "unit `shop`: its outline is not closed: it begins at (-3.838, -5.558) and ends at (-3.838, 5.558), \
             in m east and north of (6.600050, 46.500050)",
        ),
        ("unknown_end.json", "`b` of edge 0 (`R`-`Y`) must be a node, got `Y`"),
        ("unknown_entry.json", "`entries` 0 must be a node, got `Y`"),
        (
            "unknown_field.json",
            "node 0 (`R`): `color`: unknown field `color`, expected one of `name`, `kind`, `area_m2`, `length_m`, \
             `floor`, `high_risk`, `polygon`",
        ),
        ("unknown_level.geojson", "unit `shop`: `level_id` must be a level, got `attic`"),
        ("unknown_place.json", "`node` of occupant 0 must be a node, got `Y`"),
        (
            "unknown_top.json",
            "`author`: unknown field `author`, expected one of `version`, `name`, `nodes`, `edges`, `occupants`, \
             `entries`",
        ),
        ("version.json", "`version` must be 1, got 2"),
        (
            "wrong_kind.json",
            "node 0 (`R`): `kind`: unknown variant `attic`, expected one of `room`, `hall`, `stair`, `exit`, `door`",
        ),
        ("wrong_type.json", "node 0 (`R`): `area_m2`: invalid type: string \"large\", expected f64"),
    ];
    for (file, message) in table {
        assert_eq!(reason(file), message, "{file}");
    }
    let mut files: Vec<String> =
        fs::read_dir(path("")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    files.sort();
    assert_eq!(files, table.map(|(file, _)| file), "every broken plan is in the table");
}

#[test]
fn files_that_are_not_there_are_named() {
    let missing = path("nowhere.json");
    let error = Layout::load(&missing).unwrap_err();
    assert!(matches!(&error, FloorPlanError::File { action: "read", path, .. } if *path == missing), "{error}");
    // A folder must have units and openings.
    let folder = tempfile::tempdir().unwrap();
    let error = Layout::load(folder.path()).unwrap_err();
    assert!(matches!(&error, FloorPlanError::File { path, .. } if path.ends_with("unit.geojson")), "{error}");
}

/// A truncated file is an error at every length, without a panic.
#[test]
fn every_truncated_plan_is_refused() {
    let office = Layout::office().to_json();
    let hut = fs::read_to_string(path("../hut.json")).unwrap();
    let clinic = fs::read_to_string(path("../clinic.geojson")).unwrap();
    for text in [office.trim_end(), hut.trim_end()] {
        for end in 0..text.len() {
            assert!(Layout::from_json(&text[..end], "text").is_err(), "{end} bytes");
        }
    }
    let clinic = clinic.trim_end();
    for end in (0..clinic.len()).step_by(17) {
        assert!(Layout::from_geojson("clinic", &[("text", &clinic[..end])]).is_err(), "{end} bytes");
    }
    // A text may end after any geometry, so it is only read here.
    let gallery = fs::read_to_string(path("../gallery.wkt")).unwrap();
    let readable = (0..gallery.len()).filter(|end| Layout::from_wkt("gallery", &gallery[..*end], "text").is_ok());
    assert!(readable.count() < 80, "the last door and a line break");
}

const HUT: &str = "Shop: POLYGON ((0 0, 4 0, 4 3, 0 3, 0 0))\nexit: LINESTRING (1 0, 2 0)\n";

/// The parser calls itself for every level, so that a file of a few kB could end the process.
#[test]
fn nested_geometries_are_refused() {
    let nested = |depth: usize, close: &str| {
        let text = format!("{}POINT (0 0){}", "GEOMETRYCOLLECTION(".repeat(depth), close.repeat(depth));
        Layout::from_wkt("plan", &text, "text").unwrap_err().to_string()
    };
    for close in [")", "", "\n)"] {
        assert_eq!(nested(6250, close), "text: line 1: parentheses must be nested at most 16 deep");
    }
    assert_eq!(nested(8, ")"), "text: line 1: a point is neither a room nor a door");
    let collection = format!("GEOMETRYCOLLECTION ({})\n", "POLYGON ((0 0, 4 0, 4 3, 0 3, 0 0))");
    Layout::from_wkt("plan", &format!("{collection}exit: LINESTRING (1 0, 2 0)"), "text").unwrap();
}

/// An arena with that many corners, a line of text for each.
fn arena(n: u32) -> String {
    let corners: String = (0..n)
        .map(|i| f64::from(i) / f64::from(n) * std::f64::consts::TAU)
        .map(|angle| format!("{:.6} {:.6},\n", 900.0 * angle.cos(), 900.0 * angle.sin()))
        .collect();
    format!("Arena: POLYGON ((\n{corners}900.000000 0.000000\n))\nexit: LINESTRING (900 0, 899.99 1)")
}

/// A geometry over many lines is read in time proportional to them. Counting its parentheses again at every line took minutes,
/// and looking for crossings panicked.
#[test]
fn long_geometries_are_read_in_linear_time() {
    let start = std::time::Instant::now();
    let layout = Layout::from_wkt("arena", &arena(9_999), "text").unwrap();
    assert_eq!(layout.nodes[0].polygon.as_ref().unwrap().len(), 9_999);
    let error = Layout::from_wkt("arena", &arena(200_000), "text").unwrap_err().to_string();
    assert_eq!(error, "text: line 1: `Arena`: its outline has 200000 corners and may have 10000");
    // Walls that all reach past each other are the slow case.
    let comb: String = (0..4_000)
        .map(|i| format!("{} {}, {} {},\n", if i % 2 == 0 { 0 } else { 900 }, i, if i % 2 == 0 { 900 } else { 0 }, i))
        .collect();
    let comb = format!("Comb: POLYGON ((0 0, {comb} -1 4000, -1 0, 0 0))\nexit: LINESTRING (-1 5, -1 6)");
    Layout::from_wkt("comb", &comb, "text").unwrap();
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
}

/// A thousand places of one name and one id get theirs without trying all before.
#[test]
fn plans_of_many_places_are_read_or_refused_in_time() {
    let rooms = |n: usize| -> String {
        let room = |i: usize| {
            let x = 4 * i;
            format!(
                "Cell: POLYGON (({x} 0, {} 0, {} 3, {x} 3, {x} 0))\nLINESTRING ({} 1, {} 2)\n",
                x + 4,
                x + 4,
                x + 4,
                x + 4
            )
        };
        (0..n).map(room).collect()
    };
    let start = std::time::Instant::now();
    let row = Layout::from_wkt("row", &rooms(5000), "text").unwrap();
    assert_eq!(row.rooms().count(), 5000);
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
    let error = Layout::from_wkt("row", &rooms(20_001), "text").unwrap_err().to_string();
    assert_eq!(error, "text: it must hold at most 20000 polygons, got 20001");
}

/// Points that are too far for millimeters, and numbers that no building has.
#[test]
fn numbers_without_end_are_refused() {
    let wkt = |from: &str, to: &str| Layout::from_wkt("plan", &HUT.replace(from, to), "text").unwrap_err().to_string();
    let far = "text: line 1: `Shop`: its corner (1e300, 0e0) is more than 1e8 m from the origin";
    assert_eq!(wkt("4 0,", "1e300 0,"), far);
    let far = "text: line 2: `line 2`: its point (1e0, -1e9) is more than 1e8 m from the origin";
    assert_eq!(wkt("(1 0,", "(1 -1e9,"), far);
    assert!(wkt("Shop:", "Shop @ 2000000000:").contains("touches no place of floor 0"));
    let hut = fs::read_to_string(path("../hut.json")).unwrap();
    let layout = Layout::from_json(&hut, "text").unwrap();
    let broken = |change: fn(&mut Layout)| {
        let mut layout = layout.clone();
        change(&mut layout);
        layout.validate().unwrap_err().to_string()
    };
    assert!(broken(|it| it.nodes[0].area_m2 = 1e308).contains("must be at most 1e9, got 1e308"));
    assert!(broken(|it| it.edges[0].length_m = 1e308).contains("must be at most 1e6, got 1e308"));
    assert!(broken(|it| it.nodes[0].floor = i32::MIN).contains("must be between -1000 and 1000, got -2147483648"));
    assert!(
        broken(|it| it.nodes[0].polygon = Some(vec![[0.0, -1e300]])).contains("must be within 1e8 m of the origin")
    );
    let unit = r#"{"type": "Feature", "id": "hall", "properties": {"feature_type": "unit", "adults": 9999},
        "geometry": {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 3], [0, 3], [0, 0]]]}}"#;
    let units = [unit; 11].join(",");
    let text = format!(r#"{{"type": "FeatureCollection", "features": [{units}]}}"#);
    let error = Layout::from_geojson("plan", &[("text", &text)]).unwrap_err().to_string();
    assert_eq!(error, "text: it must hold at most 100000 people, got 109989");
}

/// Editors of some systems put a byte order mark in front.
#[test]
fn byte_order_marks_are_skipped() {
    let folder = tempfile::tempdir().unwrap();
    for file in ["hut.json", "kiosk.geojson", "clinic.geojson", "gallery.wkt"] {
        let plain = fs::read_to_string(path("..").join(file)).unwrap();
        let (marked, at) = (format!("\u{feff}{plain}"), folder.path().join(file));
        fs::write(&at, &marked).unwrap();
        let layout = Layout::load(path("..").join(file)).unwrap();
        assert_eq!(Layout::load(&at).unwrap(), layout, "{file}");
    }
    let hut = fs::read_to_string(path("../hut.json")).unwrap();
    assert!(Layout::from_json(&format!("\u{feff}{hut}"), "text").is_ok());
    assert!(Layout::from_wkt("plan", &format!("\u{feff}{HUT}"), "text").is_ok());
    let kiosk = fs::read_to_string(path("../kiosk.geojson")).unwrap();
    assert!(Layout::from_geojson("kiosk", &[("text", &format!("\u{feff}{kiosk}"))]).is_ok());
}

/// Names end up on terminals and pages, which obey control characters.
#[test]
fn names_command_no_terminal() {
    let named = |name: &str| Layout::from_wkt("plan", &HUT.replace("Shop", name), "text").unwrap_err().to_string();
    let words = "text: the name of node `A\\u{1b}[31mB` must hold no control characters";
    assert_eq!(named("A\u{1b}[31mB"), words);
    assert!(named("A\u{202e}B").contains("`A\\u{202e}B` must hold no control characters"));
    let error = Layout::from_wkt("a\u{7}", HUT, "text").unwrap_err().to_string();
    assert_eq!(error, "text: the name of the building must hold no control characters");
    // What is wrong with something else is said without obeying names either.
    let error = Layout::from_wkt("plan", "\u{1b}[2J: POLYGON ((0 0, 1 1, 0 0))", "text").unwrap_err().to_string();
    assert!(error.contains("`\\u{1b}[2J`") && !error.contains('\u{1b}'), "{error}");
}

proptest! {
    /// Any text is read or is an error, without a panic.
    #[test]
    fn damaged_plans_do_not_panic(place in 0usize..12_000, byte in 32u8..127, format in 0usize..3) {
        let file = ["../hut.json", "../kiosk.geojson", "../gallery.wkt"][format];
        let mut text = fs::read_to_string(path(file)).unwrap().into_bytes();
        let place = place % text.len();
        text[place] = byte;
        let text = String::from_utf8(text).unwrap();
        let read = match format {
            0 => Layout::from_json(&text, "text"),
            1 => Layout::from_geojson("kiosk", &[("text", &text)]),
            _ => Layout::from_wkt("gallery", &text, "text"),
        };
        if let Ok(layout) = read {
            prop_assert!(layout.validate().is_ok());
        }
    }
}
