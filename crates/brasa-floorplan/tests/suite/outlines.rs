//! Plans as other programs write them: their coordinates, their openings, their words.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use approx::assert_relative_eq;
use brasa_floorplan::{Layout, NodeKind};
use serde_json::{Value, json};
use zip::{ZipWriter, write::SimpleFileOptions};

fn data(file: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "data", file].iter().collect()
}

fn feature(id: &str, geometry: &str, coordinates: Value, properties: Value) -> Value {
    let geometry = json!({"type": geometry, "coordinates": coordinates});
    json!({"type": "Feature", "id": id, "geometry": geometry, "properties": properties})
}

fn rectangle(x: [f64; 2], y: [f64; 2]) -> Value {
    json!([[[x[0], y[0]], [x[1], y[0]], [x[1], y[1]], [x[0], y[1]], [x[0], y[0]]]])
}

fn unit(id: &str, x: [f64; 2], y: [f64; 2]) -> Value {
    feature(id, "Polygon", rectangle(x, y), json!({}))
}

fn opening(id: &str, line: Value) -> Value {
    feature(id, "LineString", line, json!({}))
}

fn plan(features: &[Value]) -> Value {
    json!({"type": "FeatureCollection", "features": features})
}

fn read(plan: &Value) -> Layout {
    Layout::from_geojson("plan", &[("text", &plan.to_string())]).unwrap()
}

fn error(plan: &Value) -> String {
    Layout::from_geojson("plan", &[("text", &plan.to_string())]).unwrap_err().to_string()
}

fn wkt(text: &str) -> Layout {
    Layout::from_wkt("plan", text, "text").unwrap()
}

fn wkt_error(text: &str) -> String {
    Layout::from_wkt("plan", text, "text").unwrap_err().to_string()
}

/// Name, width and whether it has a door, of all ways of a place, in their order.
fn ways<'a>(layout: &'a Layout, place: &str) -> Vec<(&'a str, f64, bool)> {
    let node = layout.node(place).unwrap();
    let name = |other: usize| layout.nodes[other].name.as_str();
    let way = |a: usize, b: usize| if a == node { Some(name(b)) } else { (b == node).then(|| name(a)) };
    layout.edges.iter().filter_map(|edge| Some((way(edge.a, edge.b)?, edge.width_m, edge.door))).collect()
}

/// A room of 12 m by 8 m that PROJ projected to 15 systems of EPSG.
#[test]
fn coordinate_systems_are_those_of_proj() {
    let text = fs::read_to_string(data("projections.json")).unwrap();
    let rooms: Value = serde_json::from_str(&text).unwrap();
    for room in rooms["rooms"].as_array().unwrap() {
        let corners = room["corners"].as_array().unwrap();
        let ring: Vec<&Value> = corners.iter().chain(&corners[..1]).collect();
        let code = room["epsg"].as_u64().unwrap();
        let middle = |a: &Value, b: &Value, axis: usize| 0.5 * (a[axis].as_f64().unwrap() + b[axis].as_f64().unwrap());
        let door = json!([corners[1], [middle(&corners[1], &corners[2], 0), middle(&corners[1], &corners[2], 1)]]);
        let mut plan = plan(&[feature("room", "Polygon", json!([ring]), json!({})), opening("door", door)]);
        let name = format!("urn:ogc:def:crs:EPSG::{code}");
        plan["crs"] = json!({"type": "name", "properties": {"name": name}});
        let layout = read(&plan);
        let area_m2 = room["area_m2"].as_f64().unwrap();
        assert_relative_eq!(layout.nodes[0].area_m2, area_m2, max_relative = 2e-5);
        assert_relative_eq!(layout.edges[0].width_m, 4.0, max_relative = 2e-5);
        // The same as text of PostGIS.
        let point = |at: &Value| format!("{} {}", at[0], at[1]);
        let ring: Vec<String> = ring.iter().map(|at| point(at)).collect();
        let door: Vec<String> =
            plan["features"][1]["geometry"]["coordinates"].as_array().unwrap().iter().map(point).collect();
        let text = format!(
            "Office (north): SRID={code};POLYGON (({}))\nSRID={code};LINESTRING ({})",
            ring.join(", "),
            door.join(", ")
        );
        let same = wkt(&text);
        assert_eq!(same.nodes[0].name, "Office (north)");
        assert_eq!(same.nodes[0].area_m2, layout.nodes[0].area_m2, "EPSG:{code}");
    }
}

#[test]
fn coordinate_systems_that_are_none_are_refused() {
    let mut plan = plan(&[unit("shop", [0.0, 3.0], [0.0, 3.0]), opening("front", json!([[1, 0], [2, 0]]))]);
    for (crs, message) in [
        (json!({"type": "name", "properties": {"name": "local"}}), "`crs`: `local` is not known"),
        (json!({"type": "link", "properties": {"href": "here"}}), "`crs`: it must name a system"),
        (json!({"type": "name", "properties": {"name": "EPSG:1"}}), "those of EPSG:1, which cannot be converted"),
        (json!({"type": "name", "properties": {"name": "EPSG:99999"}}), "`crs`: EPSG:99999 is not known"),
    ] {
        plan["crs"] = crs;
        let error = error(&plan);
        assert!(error.contains(message), "{error}");
    }
    // None is what the format says today.
    plan["crs"] = Value::Null;
    assert_eq!(read(&plan).nodes[0].area_m2, 9.0);
    let room = "POLYGON ((0 0, 4 0, 4 3, 0 3, 0 0))";
    for (text, message) in [
        (format!("SRID=x;{room}"), "line 1: `SRID` must be a number of EPSG, got `x`"),
        (format!("SRID=4326;{room}\nLINESTRING (1 0, 2 0)"), "line 2: `SRID` must be that of the first geometry"),
        (format!("SRID=4326;{}", room.replace('4', "400")), "its point (400, 0) is none of EPSG:4326"),
    ] {
        let error = wkt_error(&text);
        assert!(error.contains(message), "{error}");
    }
    assert_eq!(wkt(&format!("SRID=0;{room}\nLINESTRING (1 0, 2 0)")).nodes[0].area_m2, 12.0);
}

/// A building in degrees stays one if a feature is far away: that feature is wrong, not the unit of all others.
#[test]
fn a_feature_far_away_is_named() {
    let text = fs::read_to_string(data("plans/clinic.geojson")).unwrap();
    let mut plan: Value = serde_json::from_str(&text).unwrap();
    let far = json!([[[0.0, 0.0], [0.0001, 0.0], [0.0001, 0.0001], [0.0, 0.0001], [0.0, 0.0]]]);
    let mut feature = feature("kiosk", "Polygon", far, json!({}));
    feature["feature_type"] = json!("unit");
    plan["features"].as_array_mut().unwrap().push(feature);
    let error = error(&plan);
    assert!(error.contains("unit `kiosk`: it is ") && error.contains(" km from the middle of the plan"), "{error}");
}

/// A building on the line of the date is not as wide as the earth.
#[test]
fn degrees_may_pass_the_line_of_the_date() {
    let east = |x: f64| if x > 180.0 { x - 360.0 } else { x };
    let shift = |x: f64| east(180.0 + x * 1e-5);
    let ring = |x: [f64; 2]| {
        let y = [-16.5, -16.4999];
        json!([[
            [shift(x[0]), y[0]],
            [shift(x[1]), y[0]],
            [shift(x[1]), y[1]],
            [shift(x[0]), y[1]],
            [shift(x[0]), y[0]]
        ]])
    };
    let plan = plan(&[
        feature("west", "Polygon", ring([-9.0, 1.0]), json!({})),
        feature("east", "Polygon", ring([1.0, 11.0]), json!({})),
        opening("inner", json!([[shift(1.0), -16.49995], [shift(1.0), -16.49996]])),
        opening("front", json!([[shift(11.0), -16.49995], [shift(11.0), -16.49996]])),
    ]);
    let layout = read(&plan);
    assert_relative_eq!(layout.nodes[0].area_m2, layout.nodes[1].area_m2, max_relative = 1e-6);
    assert_relative_eq!(layout.nodes[0].area_m2, 118.2, max_relative = 0.01);
}

/// A hall around a core, whose door is in the edge of a hole of the hall, or inside a hall that was drawn without the hole.
#[test]
fn doors_of_a_core_lead_into_the_hall_around_it() {
    let hole = ", (4 4, 6 4, 6 6, 4 6, 4 4)";
    for hole in [hole, ""] {
        let text = format!(
            "hall H: POLYGON ((0 0, 10 0, 10 10, 0 10, 0 0){hole})\n\
             Core: POLYGON ((4 4, 6 4, 6 6, 4 6, 4 4))\n\
             door: LINESTRING (4.5 4, 5.5 4)\n\
             exit: LINESTRING (0 1, 0 2)"
        );
        let layout = wkt(&text);
        assert_eq!(layout.exits().count(), 1, "hole: {hole}");
        assert_eq!(ways(&layout, "Core"), [("H", 1.0, true)]);
        assert_eq!(layout.nodes[0].area_m2, if hole.is_empty() { 100.0 } else { 96.0 });
    }
    let court = format!(
        "R: POLYGON ((0 0, 10 0, 10 10, 0 10, 0 0){hole})\ndoor Court: LINESTRING (4.5 4, 5.5 4)\nexit: LINESTRING (0 1, 0 2)"
    );
    let words =
        "text: opening `Court` is in the edge of a hole of `R` without a place inside; draw it, or mark an exit";
    assert_eq!(wkt_error(&court), words);
    assert_eq!(wkt(&court.replace("door Court", "exit Court")).exits().count(), 2);
}

#[test]
fn openings_come_in_every_geometry_that_can_be_one() {
    let rooms = [unit("a", [0.0, 4.0], [0.0, 4.0]), unit("b", [4.0, 8.0], [0.0, 4.0])];
    let with = |openings: &[Value]| plan(&[&rooms[..], openings].concat());
    // Two leaves of a door, in one feature; a collection with a room and its exit.
    let doors = feature("doors", "MultiLineString", json!([[[4, 1], [4, 2]], [[4, 2.5], [4, 3]]]), json!({}));
    let line = json!({"type": "LineString", "coordinates": [[10, 1], [10, 2]]});
    let polygon = json!({"type": "Polygon", "coordinates": rectangle([8.0, 10.0], [0.0, 4.0])});
    let wing = json!({"type": "Feature", "id": "wing", "properties": {"name": "Wing"},
                      "geometry": {"type": "GeometryCollection", "geometries": [polygon, line]}});
    let layout = read(&with(&[doors, wing, opening("c", json!([[8, 1], [8, 2]]))]));
    assert_eq!(ways(&layout, "a"), [("b", 1.5, true)]);
    assert_eq!(ways(&layout, "Wing"), [("Wing [wing]", 1.0, true), ("b", 1.0, true)]);
    // The others are named.
    let exit = opening("exit", json!([[0, 1], [0, 2]]));
    for (geometry, coordinates) in [("Point", json!([4, 1])), ("MultiPoint", json!([[4, 1]]))] {
        let error = error(&with(&[exit.clone(), feature("bell", geometry, coordinates, json!({}))]));
        let words = format!("text: feature `bell`: {geometry} is neither a place nor an opening; ");
        assert!(error.starts_with(&words), "{error}");
    }
    let nothing = json!({"type": "Feature", "id": "lost", "geometry": null, "properties": {}});
    assert!(error(&with(&[exit.clone(), nothing])).contains("feature `lost`: nothing is neither"));
    let mut mistyped = exit.clone();
    mistyped["feature_type"] = json!("door");
    let words =
        "text: feature `exit`: `feature_type` must be `unit`, `opening`, `level` or another of IMDF, got `door`";
    assert_eq!(error(&with(&[mistyped.clone()])), words);
    mistyped["feature_type"] = json!("Opening");
    assert_eq!(read(&with(&[mistyped, opening("c", json!([[4, 1], [4, 2]]))])).exits().count(), 1);
    let mut surface = unit("gate", [4.0, 4.1], [1.0, 2.0]);
    surface["feature_type"] = json!("opening");
    let words = "text: opening `gate`: its geometry must be a LineString of two points or more, got Polygon";
    assert_eq!(error(&with(&[exit, surface])), words);
}

#[test]
fn openings_given_twice_are_one() {
    let hall = "hall H: POLYGON ((0 0, 10 0, 10 2, 0 2, 0 0))\n";
    let exit = "exit Gate: LINESTRING (0 0.5, 0 1.5)\n";
    let with = |text: &str| wkt(&format!("{hall}{exit}R: POLYGON ((0 2, 10 2, 10 6, 0 6, 0 2))\n{text}"));
    let door = "door: LINESTRING (1 2, 2 2)\n";
    for again in ["", door, "door: LINESTRING (2 2, 1 2)", "door: LINESTRING (1 2.2, 2 2.2)", "door: POINT (1.5 2)"] {
        assert_eq!(ways(&with(&format!("{door}{again}")), "R"), [("H", 1.0, true)], "{again}");
    }
    // Half of the second is new; a second door is another one.
    assert_relative_eq!(ways(&with(&format!("{door}door: LINESTRING (1.5 2, 2.5 2)")), "R")[0].1, 1.5);
    assert_relative_eq!(ways(&with(&format!("{door}door: LINESTRING (2 2, 3 2)")), "R")[0].1, 2.0);
    let layout = with(&format!("{door}{exit}exit: LINESTRING (-0.2 0.5, -0.2 1.5)"));
    assert_eq!(ways(&layout, "H"), [("Gate", 1.0, true), ("R", 1.0, true)]);
    // Walls of 0.5 m, and a door on each side of them: it leads from room to room, and not outside.
    let thick = "A: POLYGON ((0 2.5, 10 2.5, 10 6, 0 6, 0 2.5))\n";
    let text = format!("{hall}{exit}{thick}door: LINESTRING (1 2, 2 2)\ndoor: LINESTRING (1 2.5, 2 2.5)");
    assert_eq!(ways(&wkt(&text), "A"), [("H", 1.0, true)]);
    // The outer side of the wall of an exit touches nothing.
    let text =
        format!("{hall}{exit}exit: LINESTRING (-0.5 0.5, -0.5 1.5)\nR: POLYGON ((0 2, 10 2, 10 6, 0 6, 0 2))\n{door}");
    assert_eq!(wkt(&text).exits().count(), 1);
    // Two places share an exit that both of them touch.
    let text = format!("{hall}R: POLYGON ((0 2, 10 2, 10 6, 0 6, 0 2))\n{door}exit: LINESTRING (4 2, 6 2)");
    assert_eq!(ways(&wkt(&text), "R"), [("H", 1.0, true), ("EXIT_0", 1.0, true)]);
}

#[test]
fn slivers_are_no_places() {
    let hall = "hall H: POLYGON ((0 0, 10 0, 10 2, 0 2, 0 0), (1 1, 3 1, 2 1.00000001, 1 1))\n";
    let text = format!(
        "{hall}R: MULTIPOLYGON (((0 2, 10 2, 10 6, 0 6, 0 2)), ((3 3, 5 3, 4 3.00000001, 3 3)))\n\
         Line: POLYGON ((0 2, 10 2, 5 2.00000001, 0 2))\ndoor: LINESTRING (1 2, 2 2)\nexit: LINESTRING (0 0.5, 0 1.5)"
    );
    let layout = wkt(&text);
    assert_eq!(layout.nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>(), ["H", "R", "EXIT_0"]);
    assert_eq!((layout.nodes[0].area_m2, layout.nodes[1].area_m2), (20.0, 40.0));
    let error = wkt_error("R: POLYGON ((9 50, 9.5 50, 9.6 50.00001, 9 50))");
    assert_eq!(error, "text: it has no places: 1 outlines are smaller than 0.0001 m2");
}

#[test]
fn words_and_numbers_of_indoor_maps_are_read_as_meant() {
    let text = fs::read_to_string(data("plans/clinic.geojson")).unwrap();
    let clinic = Layout::from_geojson("clinic", &[("text", &text)]).unwrap();
    assert!(text.contains("\"walkway\"") && text.contains("\"feature_type\": \"unit\""));
    let shouted = text
        .replace("\"walkway\"", "\"Walkway\"")
        .replace("\"stairs\"", "\"STAIRS\"")
        .replace("\"feature_type\": \"unit\"", "\"feature_type\": \"Unit\"")
        .replace("\"pedestrian.principal\"", "\"Pedestrian.Principal\"");
    assert_ne!(shouted, text);
    assert_eq!(Layout::from_geojson("clinic", &[("text", &shouted)]).unwrap(), clinic);
    // Levels with numbers as names.
    let mut plan: Value = serde_json::from_str(&text).unwrap();
    for feature in plan["features"].as_array_mut().unwrap() {
        let number = |id: &Value| json!(if id.as_str().unwrap().ends_with('1') { 71 } else { 70 });
        if feature["feature_type"] == "level" {
            feature["id"] = number(&feature["id"]);
        } else if feature["properties"]["level_id"].is_string() {
            feature["properties"]["level_id"] = number(&feature["properties"]["level_id"]);
        }
    }
    assert_eq!(read(&plan).nodes, clinic.nodes);
    plan["features"].as_array_mut().unwrap().retain(|feature| feature["id"] != 71);
    assert!(error(&plan).contains("`level_id` must be a level, got `71`"));
}

#[test]
fn indoor_maps_of_openstreetmap_are_read() {
    let layout = Layout::load(data("plans/station.geojson")).unwrap();
    let names: Vec<_> = layout.nodes.iter().map(|node| (node.name.as_str(), node.kind, node.floor)).collect();
    assert_eq!(
        names,
        [
            ("Concourse", NodeKind::Hall, 0),
            ("Tickets", NodeKind::Room, 0),
            ("Stairs", NodeKind::Stair, 0),
            ("Stairs [way/13]", NodeKind::Stair, 1),
            ("Lounge", NodeKind::Room, 1),
            ("Main entrance", NodeKind::Exit, 0),
            ("EXIT_1", NodeKind::Exit, 0),
        ]
    );
    assert_eq!(ways(&layout, "Tickets"), [("Concourse", 1.2, true)]);
    // `door=no`, and the width of a door that states none.
    assert_eq!(ways(&layout, "Lounge"), [("Stairs [way/13]", 0.9, false)]);
    // Responders enter at the main entrance.
    assert_eq!(layout.entries, [layout.node("Main entrance").unwrap()]);
}

#[test]
fn archives_of_indoor_maps_are_read() {
    let clinic = Layout::load(data("plans/clinic")).unwrap();
    let file = |name: &str| fs::read(data("plans/clinic").join(name)).unwrap();
    let pack = |entries: &[(&str, Vec<u8>)]| {
        let mut zip = ZipWriter::new(std::io::Cursor::new(Vec::new()));
        for (name, bytes) in entries {
            zip.start_file(*name, SimpleFileOptions::default()).unwrap();
            zip.write_all(bytes).unwrap();
        }
        zip.finish().unwrap().into_inner()
    };
    let [level, unit, opening] = ["level.geojson", "unit.geojson", "opening.geojson"].map(file);
    let whole = [
        ("clinic/manifest.json", b"{}".to_vec()),
        ("clinic/level.geojson", level.clone()),
        ("__MACOSX/clinic/unit.geojson", b"attributes".to_vec()),
        ("clinic/unit.geojson", unit.clone()),
        ("clinic/opening.geojson", opening.clone()),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clinic.zip");
    fs::write(&path, pack(&whole)).unwrap();
    assert_eq!(Layout::load(&path).unwrap(), clinic);
    let error =
        |entries: &[(&str, Vec<u8>)]| Layout::from_bytes("plan", pack(entries), "x.zip").unwrap_err().to_string();
    assert_eq!(error(&whole[..4]), "x.zip: the archive has no `opening.geojson`");
    let twice = [&whole[..], &[("annex/unit.geojson", unit)]].concat();
    assert_eq!(error(&twice), "x.zip: the archive has 2 files `unit.geojson`; it must be one building");
    let broken = [("unit.geojson", b"{".to_vec()), ("opening.geojson", opening)];
    assert!(error(&broken).starts_with("x.zip/unit.geojson: it is no GeoJSON"));
    // A small archive of a large file.
    let zeros = [("unit.geojson", vec![b' '; (1 << 28) + 1]), ("opening.geojson", b"{}".to_vec())];
    assert_eq!(error(&zeros), "x.zip: its files must have at most 268435456 bytes, up to `unit.geojson`");
}

/// Labels are free text.
#[test]
fn labels_may_hold_parentheses_and_colons() {
    let layout = wkt(
        "Office (north): POLYGON ((0 0, 4 0, 4 3, 0 3, 0 0))\nRoom 2: the one :) @0: POLYGON ((4 0, 8 0, 8 3, 4 3, 4 0))\n\
         Point: Polygon: POLYGON Z ((8 0 1, 9 0 1, 9 3 1, 8 3 1, 8 0 1))\n\
         hall Walk (\n: MULTIPOLYGON (((0 3, 9 3, 9 5,\n0 5, 0 3)))\ndoor: LINESTRING (1 3, 2 3)\ndoor: linestring (5 3, 6 3)\n\
         door: LINESTRING (8.1 3, 8.9 3)\nexit (back): LINESTRING (0 3.5, 0 4.5)",
    );
    let names: Vec<&str> = layout.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["Office (north)", "2: the one :)", "Point: Polygon", "Walk (", "(back)"]);
}

#[test]
fn lengths_in_other_units_are_noticed() {
    let plan = |unit: f64| {
        let at = |x: f64, y: f64| format!("{} {}", x * unit, y * unit);
        let ring = |x: [f64; 2], y: [f64; 2]| {
            [at(x[0], y[0]), at(x[1], y[0]), at(x[1], y[1]), at(x[0], y[1]), at(x[0], y[0])].join(", ")
        };
        format!(
            "hall H: POLYGON (({}))\nR: POLYGON (({}))\ndoor: LINESTRING ({}, {})\nexit: LINESTRING ({}, {})",
            ring([0.0, 10.0], [0.0, 2.0]),
            ring([0.0, 10.0], [2.0, 6.0]),
            at(1.0, 2.0),
            at(1.9, 2.0),
            at(0.0, 0.5),
            at(0.0, 1.5)
        )
    };
    wkt(&plan(1.0));
    for unit in [100.0, 1000.0] {
        let error = wkt_error(&plan(unit));
        assert!(error.contains("lengths must be in m, not in centimeters or millimeters"), "{error}");
    }
    let mut office = Layout::office();
    office.edges.iter_mut().for_each(|edge| edge.width_m *= 100.0);
    assert!(office.validate().unwrap_err().to_string().contains("not in centimeters"));
    // Nobody passes a door of 1 mm.
    let mut office = Layout::office();
    office.edges[0].width_m = 0.001;
    assert!(office.validate().unwrap_err().to_string().contains("must be at least 0.3, got 0.001"));
}

/// An exit is drawn outside of the wall that it is in, given as a line or as a point, also near a corner.
#[test]
fn exits_are_drawn_at_their_wall() {
    let hall = "hall H: POLYGON ((0 0, 20 0, 20 8, 0 8, 0 0))\nR: POLYGON ((0 8, 20 8, 20 12, 0 12, 0 8))\ndoor: LINESTRING (9 8, 10 8)";
    for (wall, line, point) in [
        ("east", "LINESTRING (20 6.8, 20 7.8)", "POINT (20 0.6)"),
        ("west", "LINESTRING (0 0.2, 0 1.2)", "POINT (0 7.4)"),
        ("south", "LINESTRING (18.8 0, 19.8 0)", "POINT (0.6 0)"),
    ] {
        for shape in [line, point] {
            let layout = wkt(&format!("{hall}\nexit X: {shape}"));
            let drawing = layout.drawing();
            let [x, y] = drawing.places[layout.node("X").unwrap()].center;
            let (is_there, along, expected) = match wall {
                "east" => (x > 20.0, y, if shape == line { 7.3 } else { 0.6 }),
                "west" => (x < 0.0, y, if shape == line { 0.7 } else { 7.4 }),
                _ => (y < 0.0, x, if shape == line { 19.3 } else { 0.6 }),
            };
            assert!(is_there && (along - expected).abs() < 1e-6, "{wall} wall, {shape}: {x} {y}");
        }
    }
}

/// Openings and exits are drawn where the plan has them.
#[test]
fn drawings_show_openings_where_they_are() {
    let layout = wkt("hall H: POLYGON ((0 0, 20 0, 20 2, 0 2, 0 0))\nR: POLYGON ((0 2, 20 2, 20 6, 0 6, 0 2))\n\
         door: LINESTRING (18 2, 19 2)\nexit East: LINESTRING (20 0.5, 20 1.5)");
    let drawing = layout.drawing();
    assert_eq!(drawing.ways[0].opening, Some([[18.0, 2.0], [19.0, 2.0]]));
    assert_eq!(drawing.ways[1].opening, Some([[20.0, 0.5], [20.0, 1.5]]));
    let east = &drawing.places[layout.node("East").unwrap()];
    assert!(east.center[0] > 20.0 && (east.center[1] - 1.0).abs() < 1e-9, "{:?}", east.center);
    // Also after the way through Brasa's own format.
    assert_eq!(Layout::from_json(&layout.to_json(), "text").unwrap().drawing(), drawing);
}
