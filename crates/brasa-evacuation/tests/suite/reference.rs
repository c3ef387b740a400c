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
fn high_risk_rooms_are_swept_twice() {
    let twice = |layout: &Layout| {
        let sweeps = |node| Sweeps::ByRisk.required(node, 2);
        layout.nodes.iter().filter(|node| sweeps(node) == 2).map(|node| node.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(twice(&Layout::warehouse()), ["R_0_0", "R_0_4", "R_1_2", "R_2_0", "R_2_4"]);
    assert_eq!(twice(&Layout::daycare()).len(), 24);
    assert!(twice(&Layout::office()).is_empty());
}
