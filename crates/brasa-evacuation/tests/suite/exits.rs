//! Exits and doors are shared: people choose their way by the time that it is expected to take, with its queues.
//!
//! Capacities are 1.3 people per m and s. A tick is 1 s, and the first is that of becoming aware.

use crate::common;

use brasa_evacuation::{Edge, Layout, Mobility, NodeKind, Occupant, OccupantConfig};
use common::{Egress, adults, aware, building, egress, place, room, way};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

const FLOW_PER_M_S: f64 = 1.3;
const SPEED_M_PER_S: f64 = 0.8;

/// Reactions over several minutes.
fn late() -> OccupantConfig {
    OccupantConfig { alarm_mean_secs: 600.0, alarm_std_secs: 200.0, ..aware() }
}

/// `layout` with a responder that comes from so far away that it warns nobody.
fn unwarned(mut layout: Layout) -> Layout {
    layout.nodes.push(place("gate", NodeKind::Door));
    layout.entries = vec![layout.nodes.len() - 1];
    layout.edges.push(way(0, layout.entries[0], 3000.0, 1.0));
    layout
}

fn leave(layout: &Layout) -> Egress {
    egress(layout, aware())
}

/// Time in which `n_people` pass doors of `width_m` in sum and then walk `length_m`.
fn secs(n_people: usize, width_m: f64, length_m: f64) -> f64 {
    n_people as f64 / (width_m * FLOW_PER_M_S) + length_m / SPEED_M_PER_S
}

#[test]
fn a_narrow_exit_nearby_does_not_hide_a_wide_one() {
    let wide = leave(&room(200, &[(3.0, 3.0)]));
    let both = leave(&room(200, &[(3.0, 3.0), (2.0, 0.9)]));
    println!("an exit of 3 m: {wide:?}, and one of 0.9 m: {both:?}");
    assert!((wide.secs - secs(200, 3.0, 3.0)).abs() <= 3.0, "{wide:?}");
    assert!((both.secs - secs(200, 3.9, 3.0)).abs() <= 3.0, "{both:?}");
}

#[test]
fn four_doors_are_as_fast_as_one_of_their_width() {
    let one = leave(&room(400, &[(3.0, 4.0)]));
    let four = leave(&room(400, &[(3.0, 1.0); 4]));
    println!("one exit of 4 m: {one:?}, four of 1 m: {four:?}");
    assert!((one.secs - secs(400, 4.0, 3.0)).abs() <= 3.0, "{one:?}");
    assert!((four.secs - one.secs).abs() <= 2.0 && four.out[1..].iter().all(|n| n.abs_diff(100) <= 2), "{four:?}");
}

#[test]
fn nobody_goes_to_a_far_exit_without_a_queue() {
    let exits = [(4.0, 1.0), (7.0, 5.0)];
    assert_eq!(leave(&room(1, &exits)).out, [0, 1, 0]);
    // One after the other, and a crowd that a wide exit admits at once.
    assert_eq!(egress(&unwarned(room(20, &exits)), late()).out, [0, 20, 0, 0]);
    assert_eq!(leave(&room(20, &[(4.0, 20.0), (7.0, 20.0)])).out, [0, 20, 0]);
}

/// People on their way to a door are no queue if the door admits them as they come.
#[test]
fn nobody_avoids_people_who_walk_ahead() {
    // From the room over a long hall to an exit; the other exit is 8 s farther.
    let nodes = [("room", NodeKind::Room), ("hall", NodeKind::Hall), ("exit", NodeKind::Exit), ("far", NodeKind::Exit)];
    let nodes = nodes.map(|(name, kind)| place(name, kind)).to_vec();
    let edges = vec![way(0, 1, 40.0, 1.0), way(1, 2, 2.0, 1.2), way(0, 3, 48.4, 1.0)];
    assert_eq!(egress(&unwarned(building(nodes, edges, adults(0, 60))), late()).out, [0, 0, 60, 0, 0]);
}

/// Two rooms are joined by doors, each a node of its own, and the second has a wide exit.
fn doors_inside(n_people: usize, n_doors: usize, width_m: f64, slope_deg: f64) -> Layout {
    let mut nodes = vec![place("room", NodeKind::Room), place("hall", NodeKind::Hall), place("exit", NodeKind::Exit)];
    let mut edges = vec![way(1, 2, 2.0, 100.0)];
    for door in 3..3 + n_doors {
        nodes.push(place(format!("door_{door}"), NodeKind::Door));
        edges.push(way(0, door, 3.0, width_m));
        edges.push(Edge { slope_deg, ..way(door, 1, 4.0, width_m) });
    }
    building(nodes, edges, adults(0, n_people))
}

/// Two of three exits are behind a hall: nobody sees their queue from the room, but those on the way are counted.
#[test]
fn queues_behind_a_hall_count() {
    let nodes = [("room", NodeKind::Room), ("hall", NodeKind::Hall), ("near", NodeKind::Exit), ("far", NodeKind::Exit)];
    let nodes = nodes.map(|(name, kind)| place(name, kind)).to_vec();
    let edges = vec![way(0, 1, 40.0, 10.0), way(0, 2, 2.0, 1.0), way(1, 3, 2.0, 1.0)];
    let Egress { secs, out } = leave(&building(nodes, edges, adults(0, 400)));
    // Both are busy until the end: n / 1.3 in the room, 50 s + (400 - n) / 1.3 in the hall.
    let optimum = (400.0 / FLOW_PER_M_S + 50.0) / 2.0;
    assert!(secs <= 1.05 * optimum + 5.0, "{secs} s instead of {optimum}: {out:?}");
}

/// The hall of an office: people of all rooms share the exits at its ends.
#[test]
fn both_ends_of_a_hall_are_used() {
    let mut nodes: Vec<_> = (0..5).map(|n| place(format!("hall_{n}"), NodeKind::Hall)).collect();
    nodes.extend((0..5).map(|n| place(format!("room_{n}"), NodeKind::Room)));
    nodes.extend(["left", "right"].map(|name| place(name, NodeKind::Exit)));
    let mut edges: Vec<_> = (0..4).map(|n| way(n, n + 1, 6.0, 2.0)).collect();
    edges.extend((0..5).map(|n| way(n, n + 5, 1.0, 0.9)));
    edges.extend([way(0, 10, 1.0, 1.2), way(4, 11, 1.0, 1.2)]);
    // Everybody works at the left end.
    let occupants = [(5, 100), (6, 100)].into_iter().flat_map(|(node, n)| adults(node, n)).collect();
    let Egress { secs: both, out } = leave(&building(nodes.clone(), edges.clone(), occupants));
    // The doors of the two rooms admit 1.17 people per s each, and an exit 1.56: some go to the other end.
    assert!(out[11] >= 30, "{both} s: {out:?}");
    assert!(both <= secs(200, 1.8, 27.0), "{both} s: {out:?}");
}

/// A child passes a door together with the adult that leads it, and both count.
#[test]
fn pairs_share_exits_as_well() {
    for (far_m, near) in [(4.0, 60), (24.0, 76)] {
        let mut layout = room(60, &[(4.0, 1.0), (far_m, 1.0)]);
        let child = Occupant { node: 0, mobility: Mobility::Child, health: 100.0 };
        layout.occupants.extend(vec![child; 60]);
        let Egress { secs: took, out } = leave(&layout);
        assert!(out[1].abs_diff(near) <= 4, "{out:?} instead of {near}");
        assert!((took - secs(near, 1.0, 4.0)).abs() <= 4.0, "{took} s");
    }
}

/// Who reacts late takes the way that is best then: the near exit, because its queue has passed.
#[test]
fn late_people_meet_the_queue_of_their_time() {
    let layout = unwarned(room(60, &[(4.0, 1.0), (20.0, 1.0)]));
    let (crowd, spread) = (leave(&layout).out, egress(&layout, late()).out);
    assert!(crowd[2] >= 15 && spread[2] == 0, "{crowd:?} at once, {spread:?} one after the other");
}

/// A building with random halls, rooms and exits; each node is joined with an earlier one, and some with a second.
fn any_building() -> impl Strategy<Value = Layout> {
    let hall =
        (any::<prop::sample::Index>(), any::<Option<prop::sample::Index>>(), 2.0f64..20.0, 0.8f64..3.0, 0usize..60);
    (
        prop::collection::vec(hall, 1..8),
        prop::collection::vec((any::<prop::sample::Index>(), 1.0f64..20.0, 0.8f64..3.0), 1..4),
    )
        .prop_map(|(halls, exits)| {
            let mut nodes = vec![place("start", NodeKind::Room)];
            let (mut edges, mut occupants) = (Vec::new(), adults(0, 40));
            for (first, second, length_m, width_m, n_people) in halls {
                let node = nodes.len();
                nodes.push(place(format!("room_{node}"), NodeKind::Room));
                let a = first.index(node);
                edges.push(way(a, node, length_m, width_m));
                if let Some(b) = second.map(|second| second.index(node)).filter(|b| *b != a) {
                    edges.push(way(b, node, length_m, width_m));
                }
                occupants.extend(adults(node, n_people));
            }
            let n_rooms = nodes.len();
            for (room, length_m, width_m) in exits {
                let node = nodes.len();
                nodes.push(place(format!("exit_{node}"), NodeKind::Exit));
                edges.push(way(room.index(n_rooms), node, length_m, width_m));
            }
            building(nodes, edges, occupants)
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Doors side by side admit whole people each, and one at once: a person per door, and a tick.
    #[test]
    fn doors_side_by_side_are_one_wide_door(n_doors in 2usize..6, width_m in 0.7f64..2.0, n_people in 1usize..300) {
        let one = leave(&room(n_people, &[(3.0, width_m * n_doors as f64)])).secs;
        let many = leave(&room(n_people, &vec![(3.0, width_m); n_doors])).secs;
        let slack = 1.0 / (width_m * FLOW_PER_M_S) + 1.0;
        prop_assert!((one - many).abs() <= slack, "{} s through one, {} s through {}", one, many, n_doors);
    }

    #[test]
    fn doors_and_stairs_inside_are_shared(n_doors in 2usize..5, width_m in 0.7f64..2.0, n_people in 1usize..200, slope in prop_oneof![Just(0.0), Just(35.0)]) {
        let one = leave(&doors_inside(n_people, 1, width_m * n_doors as f64, slope)).secs;
        let many = leave(&doors_inside(n_people, n_doors, width_m, slope)).secs;
        // Two doors in a row.
        let slack = 2.0 * (1.0 / (width_m * FLOW_PER_M_S) + 1.0);
        prop_assert!((one - many).abs() <= slack, "{} s through one, {} s through {}", one, many, n_doors);
    }

    #[test]
    fn exits_are_used_by_capacity(widths in (0.7f64..3.0, 0.7f64..3.0), n_people in 50usize..300) {
        let Egress { out, .. } = leave(&room(n_people, &[(4.0, widths.0), (4.0, widths.1)]));
        let expected = n_people as f64 * widths.0 / (widths.0 + widths.1);
        // What passes in the first and in the last tick.
        let slack = 1.0 + 1.3 * widths.0.max(widths.1);
        prop_assert!((out[1] as f64 - expected).abs() <= slack, "{:?} instead of {}", out, expected);
    }
}

/// Each person takes the way that is best for itself, and cannot see who sets out later. So a new exit can slow a
/// building: a few by more than 5 %, none by much more. `BRASA_SLOW=1` tries 6,000 buildings instead of 200.
#[test]
fn a_new_exit_slows_nobody_much() {
    let n = if std::env::var_os("BRASA_SLOW").is_some() { 6000 } else { 200 };
    let strategy = (any_building(), any::<prop::sample::Index>(), 1.0f64..20.0, 0.8f64..3.0);
    let mut runner = TestRunner::deterministic();
    let (mut before, mut after, mut slower, mut worst) = (0.0, 0.0, 0, 0.0f64);
    for _ in 0..n {
        let (mut layout, room, length_m, width_m) = strategy.new_tree(&mut runner).expect("a building").current();
        let without = leave(&layout).secs;
        let rooms: Vec<usize> = layout.rooms().collect();
        layout.nodes.push(place("new", NodeKind::Exit));
        layout.edges.push(way(rooms[room.index(rooms.len())], layout.nodes.len() - 1, length_m, width_m));
        let with = leave(&layout).secs;
        (before, after) = (before + without, after + with);
        // Times are whole ticks.
        if with > without + 3.0 {
            slower += usize::from(with > 1.05 * without);
            worst = worst.max(with / without - 1.0);
        }
    }
    println!(
        "{n} buildings: sum {before} s before, {after} s after; {slower} more than 5 % slower, the worst {worst:.3}"
    );
    assert!(after < 0.9 * before && slower <= n / 100 && worst <= 0.2);
}
