//! Floor plans give the expected buildings.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::PathBuf;

use approx::assert_relative_eq;
use brasa_floorplan::{Edge, Family, GeneratorConfig, Layout, Mobility, NodeKind, generate};
use proptest::prelude::*;

fn data(file: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "data", "plans", file].iter().collect()
}

fn names(layout: &Layout) -> Vec<(&str, NodeKind, i32)> {
    layout.nodes.iter().map(|node| (node.name.as_str(), node.kind, node.floor)).collect()
}

fn edge<'a>(layout: &'a Layout, a: &str, b: &str) -> &'a Edge {
    let ends = [layout.node(a).unwrap(), layout.node(b).unwrap()];
    layout.edges.iter().find(|edge| ends == [edge.a, edge.b] || ends == [edge.b, edge.a]).unwrap()
}

#[test]
fn reference_buildings_survive_the_way_to_a_file_and_back() {
    let folder = tempfile::tempdir().unwrap();
    for layout in Layout::references() {
        let path = folder.path().join(format!("{}.json", layout.name));
        fs::write(&path, layout.to_json()).unwrap();
        assert_eq!(Layout::load(&path).unwrap(), layout);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn random_buildings_survive_the_way_to_a_text_and_back(seed: u64) {
        for family in Family::ALL {
            let layout = generate(family, &GeneratorConfig::default(), seed).unwrap();
            prop_assert_eq!(Layout::from_json(&layout.to_json(), "text").unwrap(), layout);
        }
    }
}

#[test]
fn a_small_plan_in_json_is_read() {
    let hut = Layout::load(data("hut.json")).unwrap();
    assert_eq!(names(&hut), [("R", NodeKind::Room, 0), ("X", NodeKind::Exit, 0)]);
    assert_eq!(
        (hut.occupants[0].node, hut.occupants[0].mobility, hut.occupants[0].health),
        (0, Mobility::Adult, 100.0)
    );
    assert!(hut.edges[0].door && !hut.edges[0].fire_door);
    assert_eq!(hut.entries, [1]);
}

/// The clinic was drawn in m, 24 by 10, and projected to degrees by the series for the length of a degree.
#[test]
fn indoor_maps_in_degrees_are_read() {
    let clinic = Layout::load(data("clinic.geojson")).unwrap();
    assert_eq!(clinic.name, "clinic");
    let expected = [
        ("Corridor", NodeKind::Hall, 0),
        ("Stairs", NodeKind::Stair, 0),
        ("Office 0A", NodeKind::Room, 0),
        ("Laboratory 0B", NodeKind::Room, 0),
        ("u0-c", NodeKind::Room, 0),
        ("Storage 0D", NodeKind::Room, 0),
        ("Corridor [u1-walk]", NodeKind::Hall, 1),
        ("Stairs [u1-stairs]", NodeKind::Stair, 1),
        ("Office 1A", NodeKind::Room, 1),
        ("Laboratory 1B", NodeKind::Room, 1),
        ("u1-c", NodeKind::Room, 1),
        ("Storage 1D", NodeKind::Room, 1),
        ("Main entrance", NodeKind::Exit, 0),
        ("EXIT_1", NodeKind::Exit, 0),
    ];
    assert_eq!(names(&clinic), expected);
    let node = |name: &str| &clinic.nodes[clinic.node(name).unwrap()];
    for (name, area_m2, length_m) in [("Corridor", 40.0, 20.0), ("Office 0A", 48.0, 12.0), ("Storage 1D", 46.0, 11.5)] {
        assert_relative_eq!(node(name).area_m2, area_m2, epsilon = 1e-3);
        assert_relative_eq!(node(name).length_m, length_m, epsilon = 1e-3);
    }
    assert!(node("Laboratory 1B").high_risk && !node("Office 0A").high_risk);
    // From the middle of the corridor, at (10, 5), to the door at (2.5, 6), and 1 m into the room.
    let door = edge(&clinic, "Corridor", "Office 0A");
    assert_relative_eq!(door.length_m, 7.5f64.hypot(1.0) + 1.0, epsilon = 1e-3);
    assert_relative_eq!(door.width_m, 1.0, epsilon = 1e-3);
    assert!(door.door && !door.fire_door && edge(&clinic, "Corridor", "Laboratory 0B").fire_door);
    let passage = edge(&clinic, "Corridor", "Stairs");
    assert_relative_eq!(passage.length_m, 12.0, epsilon = 1e-3);
    assert!(!passage.door);
    let flight = edge(&clinic, "Stairs", "Stairs [u1-stairs]");
    assert_eq!(flight.slope_deg, 35.0);
    assert_eq!(edge(&clinic, "EXIT_1", "Stairs").slope_deg, 0.0);
    assert_eq!(clinic.edges.len(), 13);
    // Both sides of a wall have the same distance from its door: the order of the plan decides, not rounding.
    assert!(clinic.edges.iter().all(|edge| edge.a < edge.b));
    // Responders use the main entrance.
    assert_eq!(clinic.entries, [clinic.node("Main entrance").unwrap()]);
    let people = |mobility| clinic.occupants.iter().filter(|who| who.mobility == mobility).count();
    assert_eq!(Mobility::ALL.map(people), [6, 0, 2]);
}

#[test]
fn a_folder_of_indoor_maps_is_the_same_as_one_file() {
    assert_eq!(Layout::load(data("clinic")).unwrap(), Layout::load(data("clinic.geojson")).unwrap());
}

#[test]
fn plain_geojson_in_meters_is_read() {
    let kiosk = Layout::load(data("kiosk.geojson")).unwrap();
    let expected = [("Shop", NodeKind::Room, 0), ("Store", NodeKind::Room, 0), ("front", NodeKind::Exit, 0)];
    assert_eq!(names(&kiosk), expected);
    assert_eq!(kiosk.nodes[0].polygon, Some(vec![[0.0, 0.0], [3.0, 0.0], [3.0, 3.0], [0.0, 3.0]]));
    assert_eq!(kiosk.nodes[0].area_m2, 9.0);
    assert_eq!(edge(&kiosk, "Shop", "Store").length_m, 2.0);
    assert_eq!(edge(&kiosk, "Shop", "front").length_m, 1.0);
    assert!(kiosk.edges.iter().all(|edge| edge.door && edge.width_m == 1.0));
}

#[test]
fn text_with_labels_is_read() {
    let gallery = Layout::load(data("gallery.wkt")).unwrap();
    let expected = [
        ("North", NodeKind::Room, 0),
        ("South", NodeKind::Room, 0),
        ("Corridor", NodeKind::Hall, 0),
        ("Steps", NodeKind::Stair, 0),
        ("Steps up", NodeKind::Stair, 1),
        ("Attic", NodeKind::Room, 1),
        ("Street", NodeKind::Exit, 0),
        ("EXIT_1", NodeKind::Exit, 0),
    ];
    assert_eq!(names(&gallery), expected);
    assert_eq!(gallery.nodes[5].area_m2, 15.0, "16 m2 with a hole of 1");
    assert!(!edge(&gallery, "Corridor", "Steps").door && edge(&gallery, "Steps up", "Attic").door);
    assert_eq!(edge(&gallery, "Corridor", "Steps").length_m, 6.0);
    assert_eq!(edge(&gallery, "Steps", "Steps up").slope_deg, 35.0);
    assert_eq!(edge(&gallery, "Corridor", "Street").length_m, 5.0);
    assert_eq!(gallery.entries, [6, 7]);
    assert_eq!(gallery.edges.len(), 7);
}

/// Walls are 0.2 m thick here, and the door is in their middle.
#[test]
fn text_without_labels_is_read() {
    let rooms = Layout::load(data("rooms.wkt")).unwrap();
    let expected = [("room 1", NodeKind::Room, 0), ("room 2", NodeKind::Room, 0), ("EXIT_0", NodeKind::Exit, 0)];
    assert_eq!(names(&rooms), expected);
    assert_eq!(edge(&rooms, "room 1", "room 2").length_m, 2.0);
}

#[test]
fn two_doors_between_the_same_places_are_one_wide_way() {
    let text = "hall H: POLYGON ((0 0, 10 0, 10 2, 0 2, 0 0))\n\
                R: POLYGON ((0 2, 10 2, 10 6, 0 6, 0 2))\n\
                door: LINESTRING (0.5 2, 1.5 2)\n\
                passage: LINESTRING (4.5 2, 6 2)\n\
                exit: LINESTRING (0 0.5, 0 1.5)";
    let layout = Layout::from_wkt("pair", text, "text").unwrap();
    let way = edge(&layout, "H", "R");
    assert_eq!((way.width_m, way.door), (2.5, false));
    assert_relative_eq!(way.length_m, 0.25f64.hypot(1.0) + 1.0, epsilon = 1e-12);
    assert_eq!(layout.edges.len(), 2);
}

#[test]
fn an_emergency_exit_between_two_units_leads_outside_from_both() {
    let text = fs::read_to_string(data("kiosk.geojson")).unwrap();
    let text = text.replace("\"name\": \"inner\"", "\"name\": \"inner\", \"category\": \"emergencyexit\"");
    let layout = Layout::from_geojson("kiosk", &[("text", &text)]).unwrap();
    assert_eq!(layout.exits().count(), 2);
    assert_eq!(edge(&layout, "Shop", "inner").length_m, 1.0);
    assert_eq!(edge(&layout, "Store", "inner").length_m, 1.0);
}

/// The examples of the documentation are valid plans.
#[test]
fn documented_plans_are_read() {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/how-to/floor-plans.md")).unwrap();
    let block = |language: &str| {
        let from = page.split_once(&format!("```{language}\n")).unwrap().1;
        from.split_once("```").unwrap().0
    };
    let hut = Layout::from_json(block("json"), "page").unwrap();
    assert_eq!((hut.nodes.len(), hut.occupants.len(), hut.entries.as_slice()), (2, 1, [1].as_slice()));
    assert_eq!(Layout::from_json(&hut.to_json(), "text").unwrap(), hut);
    let office = Layout::from_wkt("office", block("text"), "page").unwrap();
    assert_eq!(names(&office).iter().map(|(name, ..)| *name).collect::<Vec<_>>(), ["Office", "Corridor", "Main door"]);
}
