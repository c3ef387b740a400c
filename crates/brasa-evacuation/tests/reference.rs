//! The reference buildings are those of the published table.
#![allow(clippy::unwrap_used)]

use approx::assert_relative_eq;
use brasa_evacuation::{Layout, Mobility, NodeKind, Sweeps, Timing, Topology};

#[derive(Debug, PartialEq)]
struct Facts {
    halls: usize,
    rooms: usize,
    exits: usize,
    edges: usize,
    degrees: (usize, usize),
    diameter_hops: f64,
    /// Adults, children, people of limited mobility.
    people: [usize; 3],
    /// Rooms by the ticks that their search takes.
    searches: Vec<(u32, usize)>,
    high_risk: usize,
}

fn facts(layout: &Layout) -> Facts {
    let topology = Topology::new(layout, &Timing::hops());
    let n = layout.nodes.len();
    let degrees = || (0..n).map(|node| topology.neighbors(node).len());
    let count = |kind| layout.of_kind(kind).count();
    assert_eq!(count(NodeKind::Hall) + count(NodeKind::Room) + count(NodeKind::Exit), n);
    let mut searches: Vec<(u32, usize)> = Vec::new();
    for ticks in layout.rooms().map(|room| Timing::hops().search_ticks(&layout.nodes[room])) {
        match searches.iter_mut().find(|(other, _)| *other == ticks) {
            Some((_, n)) => *n += 1,
            None => searches.push((ticks, 1)),
        }
    }
    Facts {
        halls: count(NodeKind::Hall),
        rooms: count(NodeKind::Room),
        exits: count(NodeKind::Exit),
        edges: layout.edges.len(),
        degrees: (degrees().min().unwrap(), degrees().max().unwrap()),
        diameter_hops: (0..n * n).map(|i| topology.distance(i / n, i % n)).fold(0.0, f64::max),
        people: Mobility::ALL.map(|mobility| layout.occupants.iter().filter(|who| who.mobility == mobility).count()),
        searches,
        high_risk: layout.nodes.iter().filter(|node| node.high_risk).count(),
    }
}

#[test]
fn the_reference_buildings_are_those_of_the_table() {
    let table = [
        Facts {
            halls: 3,
            rooms: 6,
            exits: 2,
            edges: 10,
            degrees: (1, 4),
            diameter_hops: 4.0,
            people: [4, 1, 1],
            searches: vec![(2, 6)],
            high_risk: 0,
        },
        Facts {
            halls: 9,
            rooms: 33,
            exits: 3,
            edges: 71,
            degrees: (1, 10),
            diameter_hops: 6.0,
            people: [21, 18, 0],
            searches: vec![(2, 24), (1, 9)],
            high_risk: 24,
        },
        Facts {
            halls: 24,
            rooms: 15,
            exits: 2,
            edges: 100,
            degrees: (1, 8),
            diameter_hops: 8.0,
            people: [6, 0, 0],
            searches: vec![(4, 15)],
            high_risk: 5,
        },
    ];
    for ((layout, expected), mean) in Layout::references().iter().zip(table).zip([1.82, 3.16, 4.88]) {
        layout.validate().unwrap();
        assert_eq!(facts(layout), expected, "{}", layout.name);
        let mean_degree = 2.0 * layout.edges.len() as f64 / layout.nodes.len() as f64;
        assert_relative_eq!(mean_degree, mean, epsilon = 0.005);
    }
}

#[test]
fn responders_start_at_opposite_exits() {
    let names =
        |layout: &Layout| layout.starts(3).iter().map(|node| layout.nodes[*node].name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&Layout::office()), ["EXIT_LEFT", "EXIT_RIGHT", "EXIT_LEFT"]);
    assert_eq!(names(&Layout::daycare()), ["EXIT_G_LEFT", "EXIT_G_RIGHT", "EXIT_G_LEFT"]);
    assert_eq!(names(&Layout::warehouse()), ["EXIT_WH_LEFT", "EXIT_WH_RIGHT", "EXIT_WH_LEFT"]);
}

#[test]
fn places_people_and_sweeps_are_where_they_were() {
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
    let twice = |layout: &Layout| {
        let sweeps = |node| Sweeps::ByRisk.required(node, 2);
        layout.nodes.iter().filter(|node| sweeps(node) == 2).map(|node| node.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(twice(&Layout::warehouse()), ["R_0_0", "R_0_4", "R_1_2", "R_2_0", "R_2_4"]);
    assert_eq!(twice(&daycare).len(), 24);
    assert!(twice(&office).is_empty());
}
