//! Invariants of drawings, and drawings of the reference buildings.

use proptest::prelude::*;

use super::geometry::{any_overlap, distance, is_inside, leaves, middle, overlap, stays_inside, upright};
use super::{Drawing, Shape};
use crate::outline::polygon;
use crate::{Family, GeneratorConfig, Layout, Mobility, NodeKind, Split};

/// Coordinates are finite and in bounds, no two places of a floor overlap or share a center, and the halves of ways
/// meet.
fn check(layout: &Layout) -> Drawing {
    let drawing = layout.drawing();
    assert_eq!(drawing, layout.drawing(), "{}", layout.name);
    assert_eq!((drawing.places.len(), drawing.ways.len()), (layout.nodes.len(), layout.edges.len()));
    for (index, floor) in drawing.floors.iter().enumerate() {
        let here: Vec<Shape> = drawing
            .places
            .iter()
            .filter(|place| place.floor == index)
            .map(|place| Shape { center: place.center, outline: polygon(place.outline.iter().copied()) })
            .collect();
        assert!(!any_overlap(&here), "{} floor {}: places overlap", layout.name, floor.floor);
        for (n, shape) in here.iter().enumerate() {
            let inside =
                |point: &[f64; 2]| (0..2).all(|axis| (floor.low[axis]..=floor.high[axis]).contains(&point[axis]));
            assert!(shape.points().all(|point| inside(&point)), "{}: off the paper", layout.name);
            let is_there = shape.outline.exterior().0.is_empty() || is_inside(&shape.outline, shape.center);
            assert!(is_there, "{}: {shape:?} has its center outside", layout.name);
            for other in &here[..n] {
                assert!(distance(shape.center, other.center) > 0.5, "{}: one center for two places", layout.name);
            }
        }
    }
    for (edge, way) in layout.edges.iter().zip(&drawing.ways) {
        let ends = [way.from[0], *way.to.last().expect("a way ends")];
        assert_eq!(ends, [edge.a, edge.b].map(|node| drawing.places[node].center));
        let level = layout.nodes[edge.a].floor == layout.nodes[edge.b].floor;
        assert_eq!(way.opening.is_some() || way.link.is_some(), level);
        if level {
            assert_eq!(way.from.last(), way.to.first());
        }
        assert!(way.from.iter().chain(&way.to).flatten().all(|x| x.is_finite()));
        if way.opening.is_some() {
            // Ways do not cross walls: each half of a way is inside its place.
            for (half, node) in [(&way.from, edge.a), (&way.to, edge.b)] {
                let outline = &drawing.places[node].outline;
                let walls = polygon(outline.iter().copied());
                let stays = half.windows(2).all(|pair| stays_inside(&walls, pair[0], pair[1]));
                assert!(stays, "{}: {half:?} leads out of {outline:?}", layout.name);
            }
        }
    }
    drawing
}

fn stripped(mut layout: Layout) -> Layout {
    layout.nodes.iter_mut().for_each(|node| node.polygon = None);
    layout
}

fn place(layout: &Layout, drawing: &Drawing, name: &str) -> [f64; 2] {
    drawing.places[layout.node(name).expect("the node is there")].center
}

#[test]
fn outlines_overlap_where_they_share_more_than_walls() {
    let square = |x: f64, y: f64, side: f64| upright([x, y], [x + side, y + side]);
    let base = square(0.0, 0.0, 4.0);
    for (other, expected) in [
        (square(0.0, 0.0, 4.0), true),
        (square(1.0, 1.0, 1.0), true),
        (square(3.9, 3.9, 4.0), true),
        (square(4.0 - 1e-4, 1.0, 4.0), true),
        // A wall, a wall up to rounding, a corner, nothing.
        (square(4.0, 1.0, 4.0), false),
        (square(4.0 - 1e-7, 1.0, 4.0), false),
        (square(4.0, 4.0, 4.0), false),
        (square(9.0, 0.0, 4.0), false),
        // A cross has no corner in the other.
        (upright([1.0, -2.0], [2.0, 6.0]), true),
        (polygon([]), false),
    ] {
        assert_eq!((overlap(&base, &other), overlap(&other, &base)), (expected, expected), "{other:?}");
    }
    // A U around the base touches it on three sides.
    let around = [[-1.0, -1.0], [5.0, -1.0], [5.0, 4.0], [4.0, 4.0], [4.0, 0.0], [0.0, 0.0], [0.0, 4.0], [-1.0, 4.0]];
    assert!(!overlap(&base, &polygon(around)));
    // Its center of mass is outside; the center is the point farthest from walls.
    let center = middle(&polygon(around));
    assert!(is_inside(&polygon(around), center), "{center:?}");
    let [left, right] = [[-0.5, 1.0], [4.5, 1.0]];
    assert_eq!(leaves(&base, [1.0, 1.0], left), [0.0, 1.0]);
    assert_eq!(leaves(&polygon(around), left, right), [4.0, 1.0]);
}

#[test]
fn reference_buildings_have_walls_and_doors() {
    for layout in Layout::references() {
        let drawing = check(&layout);
        for (edge, way) in layout.edges.iter().zip(&drawing.ways) {
            let level = layout.nodes[edge.a].floor == layout.nodes[edge.b].floor;
            assert_eq!(way.opening.is_some(), level, "{}: {edge:?} leads through no wall", layout.name);
        }
    }
}

#[test]
fn the_office_is_a_corridor_with_rooms_on_both_sides() {
    let layout = Layout::office();
    let drawing = check(&layout);
    for i in 0..3 {
        let [top, hall, bottom] = ["RT", "H", "RB"].map(|name| place(&layout, &drawing, &format!("{name}{i}")));
        assert!(top[1] > hall[1] && hall[1] > bottom[1]);
        assert!((top[0] - hall[0]).abs() < 1e-9 && (bottom[0] - hall[0]).abs() < 1e-9);
    }
    let [left, right] = ["EXIT_LEFT", "EXIT_RIGHT"].map(|name| place(&layout, &drawing, name));
    let [first, last] = ["H0", "H2"].map(|name| place(&layout, &drawing, name));
    assert!(left[0] < first[0] && first[0] < last[0] && last[0] < right[0]);
}

#[test]
fn the_warehouse_is_a_grid() {
    let layout = Layout::warehouse();
    let drawing = check(&layout);
    let at = |name: String| place(&layout, &drawing, &name);
    for row in 0..4 {
        for column in 0..6 {
            let hall = at(format!("H_{row}_{column}"));
            assert!((hall[0] - f64::from(column) * at("H_0_1".into())[0]).abs() < 1e-9);
            assert!((hall[1] - f64::from(row) * at("H_1_0".into())[1]).abs() < 1e-9);
        }
    }
    for row in 0..3 {
        for column in 0..5 {
            let (room, low, high) = (
                at(format!("R_{row}_{column}")),
                at(format!("H_{row}_{column}")),
                at(format!("H_{}_{}", row + 1, column + 1)),
            );
            (0..2).for_each(|axis| assert!((2.0 * room[axis] - low[axis] - high[axis]).abs() < 1e-9));
        }
    }
}

#[test]
fn floors_of_the_daycare_lie_one_above_the_other() {
    let layout = Layout::daycare();
    let drawing = check(&layout);
    assert_eq!(drawing.floors.iter().map(|floor| floor.floor).collect::<Vec<_>>(), [0, 1, 2]);
    for name in ["C0", "C1", "C2", "NURSE", "NUR3", "STORAGE"] {
        let [ground, first, second] = [0, 1, 2].map(|floor| place(&layout, &drawing, &format!("F{floor}_{name}")));
        assert_eq!((ground, first), (first, second));
    }
}

#[test]
fn any_graph_can_be_drawn() {
    // A ring of halls with a room in its middle, rooms behind rooms, and a part that is connected only by stairs.
    let mut plan = crate::builder::Builder::new("odd");
    let halls: Vec<usize> = (0..5).map(|n| plan.node(format!("H{n}"), NodeKind::Hall, 0, 9.0, 3.0)).collect();
    (0..5).for_each(|n| drop(plan.passage(halls[n], halls[(n + 1) % 5], 4.0, 2.0).clone()));
    let inner = plan.node("inner", NodeKind::Room, 0, 20.0, 5.0);
    halls.iter().for_each(|hall| drop(plan.door(inner, *hall, 1.0, 1.0).clone()));
    let behind = plan.node("behind", NodeKind::Room, 0, 400.0, 20.0);
    plan.door(behind, inner, 1.0, 1.0);
    let alone = plan.node("alone", NodeKind::Stair, 0, 4.0, 2.0);
    let above = plan.node("above", NodeKind::Room, 1, 4.0, 2.0);
    plan.flight(alone, above, 1.0);
    plan.flight(halls[0], above, 1.0);
    let exit = plan.node("exit", NodeKind::Exit, 0, 4.0, 2.0);
    plan.door(exit, halls[3], 1.0, 1.0);
    plan.occupant(inner, Mobility::Adult, 100.0);
    let layout = plan.finish(vec![exit]);
    layout.validate().expect("the building is valid");
    check(&layout);
}

#[test]
fn what_has_no_outline_in_a_plan_stands_beside_its_neighbors() {
    let mut plan = crate::builder::Builder::new("plan");
    let hall = plan.node("hall", NodeKind::Hall, 0, 20.0, 10.0);
    plan.at(hall).polygon = Some(vec![[0.0, 0.0], [10.0, 0.0], [10.0, 2.0], [0.0, 2.0]]);
    let room = plan.node("room", NodeKind::Room, 0, 40.0, 10.0);
    plan.at(room).polygon = Some(vec![[0.0, 2.0], [10.0, 2.0], [10.0, 6.0], [0.0, 6.0]]);
    let door = plan.node("door", NodeKind::Door, 0, 1.0, 1.0);
    let [exit, far] = ["exit", "far"].map(|name| plan.node(name, NodeKind::Exit, 0, 2.0, 1.0));
    plan.passage(hall, door, 1.0, 1.0);
    plan.passage(door, room, 1.0, 1.0);
    plan.door(hall, exit, 1.0, 1.0);
    plan.door(far, exit, 1.0, 1.0);
    let layout = plan.finish(vec![exit]);
    let drawing = check(&layout);
    assert_eq!(drawing.places[door].center, [5.0, 2.0]);
    assert!(drawing.floors[0].from_plan);
    let [x, y] = drawing.places[exit].center;
    assert!(!(0.0..=10.0).contains(&x) || y < 0.0, "the exit stands inside: {x} {y}");
    assert!(distance(drawing.places[exit].center, drawing.places[hall].center) < 7.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn generated_buildings_can_be_drawn(family in 0usize..4, index in 0u64..10_000, nodes in 12usize..90) {
        let family = Family::ALL[family];
        let held_out_family = if family == Family::Bsp { Family::Comb } else { Family::Bsp };
        let config = GeneratorConfig { families: vec![family], held_out_family, nodes: [nodes, nodes], ..GeneratorConfig::default() };
        let layout = config.layout(Split::Train, index).expect("the settings are valid");
        let drawing = check(&layout);
        prop_assert_eq!(drawing.floors[0].from_plan, family != Family::Hub);
        check(&stripped(layout));
    }
}
