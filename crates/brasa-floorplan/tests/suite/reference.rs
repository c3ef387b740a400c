//! The reference buildings do not change.
#![allow(clippy::unwrap_used)]

use brasa_floorplan::{Layout, Mobility};

#[test]
fn responders_start_at_opposite_exits() {
    let names =
        |layout: &Layout| layout.starts(3).iter().map(|node| layout.nodes[*node].name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&Layout::office()), ["EXIT_LEFT", "EXIT_RIGHT", "EXIT_LEFT"]);
    assert_eq!(names(&Layout::daycare()), ["EXIT_G_LEFT", "EXIT_G_RIGHT", "EXIT_G_LEFT"]);
    assert_eq!(names(&Layout::warehouse()), ["EXIT_WH_LEFT", "EXIT_WH_RIGHT", "EXIT_WH_LEFT"]);
}

#[test]
fn places_people_and_ways_are_where_they_were() {
    let office = Layout::office();
    let order = ["H0", "H1", "H2", "RT0", "RT1", "RT2", "RB0", "RB1", "RB2", "EXIT_LEFT", "EXIT_RIGHT"];
    assert!(office.nodes.iter().map(|node| node.name.as_str()).eq(order));
    let who: Vec<_> =
        office.occupants.iter().map(|who| (office.nodes[who.node].name.as_str(), who.mobility, who.health)).collect();
    assert_eq!(
        who,
        [
            ("RT0", Mobility::Adult, 95.0),
            ("RT2", Mobility::Limited, 90.0),
            ("RB0", Mobility::Adult, 100.0),
            ("RB2", Mobility::Child, 100.0),
            ("RB1", Mobility::Adult, 100.0),
            ("RB1", Mobility::Adult, 97.0),
        ]
    );
    let daycare = Layout::daycare();
    let stairs: Vec<_> = daycare.edges.iter().filter(|edge| edge.slope_deg > 0.0).collect();
    assert_eq!(stairs.len(), 2);
    assert!(stairs.iter().all(|edge| edge.slope_deg == 35.0 && edge.length_m == 4.0 && !edge.door));
    let hub = daycare.node("F1_NURSE").unwrap();
    assert_eq!(daycare.edges.iter().filter(|edge| edge.a == hub || edge.b == hub).count(), 10);
}
