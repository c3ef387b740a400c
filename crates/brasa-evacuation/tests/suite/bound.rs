//! Exact optima of the reference buildings, and bounds that hold on small random ones.
#![allow(clippy::unwrap_used)]

use approx::assert_relative_eq;
use brasa_evacuation::{
    Edge, EvacuationError, Family, GeneratorConfig, Layout, Node, NodeKind, PlanConfig, SweepProblem, Sweeps, Timing,
    generate, held_karp, joint, lower_bound, lower_bound_with_losses, plan,
};
use proptest::prelude::*;

/// Walking at 1.5 m/s also on stairs, and 0.5 s of search per m2.
fn seconds() -> Timing {
    Timing { slope_slowdown: 0.0, ..Timing::default() }
}

fn problem(layout: &Layout, timing: &Timing, sweeps: Sweeps, n_responders: usize) -> SweepProblem {
    SweepProblem::new(layout, timing, sweeps, &layout.starts(n_responders)).unwrap()
}

#[test]
fn exact_optima_are_the_published_ones() {
    let (office, warehouse) = (Layout::office(), Layout::warehouse());
    for (layout, timing, sweeps, n_responders, expected, tolerance) in [
        (&office, Timing::hops(), Sweeps::Once, 2, 13.0, 0.0),
        (&office, Timing::hops(), Sweeps::ByRisk, 2, 13.0, 0.0),
        (&office, Timing::hops(), Sweeps::Once, 1, 26.0, 0.0),
        (&warehouse, Timing::hops(), Sweeps::Once, 2, 48.0, 0.0),
        (&warehouse, Timing::hops(), Sweeps::ByRisk, 2, 60.0, 0.0),
        (&warehouse, Timing::hops(), Sweeps::Once, 1, 90.0, 0.0),
        (&office, seconds(), Sweeps::Once, 2, 32.0, 0.05),
        (&warehouse, seconds(), Sweeps::Once, 2, 171.3, 0.05),
        (&warehouse, seconds(), Sweeps::ByRisk, 2, 214.0, 0.05),
    ] {
        let problem = problem(layout, &timing, sweeps, n_responders);
        let best = held_karp(&problem).unwrap();
        let what = format!("{} {sweeps:?} by {n_responders}", layout.name);
        assert_relative_eq!(best.makespan, expected, epsilon = tolerance);
        assert_relative_eq!(problem.evaluate(&best.routes).unwrap(), best.makespan, epsilon = 1e-9);
        let bound = lower_bound(&problem);
        assert!(bound.best() <= best.makespan + 1e-9, "{what}: {bound:?}");
        assert!(bound.best() >= 0.93 * best.makespan, "{what}: {bound:?} is far from {}", best.makespan);
        let found = plan(&problem, &PlanConfig::default()).unwrap();
        assert!(found.makespan >= best.makespan - 1e-9, "{what}: no plan beats the optimum");
        assert!(found.makespan <= 1.02 * best.makespan, "{what}: {}", found.makespan);
    }
}

#[test]
fn the_search_over_joint_states_agrees() {
    let office = Layout::office();
    for (n_responders, expected) in [(1, 26), (2, 13)] {
        let hops = problem(&office, &Timing::hops(), Sweeps::Once, n_responders);
        assert_eq!(joint(&hops).unwrap(), expected);
    }
    // One second per tick: the office of 32.0 s.
    let ticks = SweepProblem::in_ticks(&office, &seconds(), Sweeps::Once, &office.starts(1)).unwrap();
    assert_eq!(f64::from(joint(&ticks).unwrap()), held_karp(&ticks).unwrap().makespan);
}

/// Terms of the bound for one sweep: 30 non-adjacent rooms, each with an edge in and out, minus two last edges out
/// and plus two edges from the exits; stairs to two floors; 57 ticks of search. 60 + 2 + 57 = 119 ticks for two.
/// By risk, 24 of these rooms need both responders, so both use both stairs: 108 + 4 + 105 = 217 ticks for two.
#[test]
fn the_daycare_is_solved_to_the_proven_optimum() {
    let daycare = Layout::daycare();
    for (sweeps, expected) in [(Sweeps::Once, 60.0), (Sweeps::ByRisk, 109.0)] {
        let problem = problem(&daycare, &Timing::hops(), sweeps, 2);
        assert_eq!(lower_bound(&problem).counting, expected);
        assert_eq!(lower_bound(&problem).best(), expected);
        for seed in 0..3 {
            let found = plan(&problem, &PlanConfig { seed, ..PlanConfig::default() }).unwrap();
            assert_eq!(found.makespan, expected, "{sweeps:?} with seed {seed}");
            assert_eq!(problem.evaluate(&found.routes).unwrap(), expected);
        }
    }
}

#[test]
fn the_daycare_in_seconds_is_within_the_published_bounds() {
    let daycare = Layout::daycare();
    for (sweeps, (least, most)) in [(Sweeps::Once, (0.0, 179.3)), (Sweeps::ByRisk, (290.3, 329.3))] {
        let problem = problem(&daycare, &seconds(), sweeps, 2);
        let bound = lower_bound(&problem).best();
        let found = plan(&problem, &PlanConfig::default()).unwrap();
        assert!(found.makespan <= most + 0.05 && bound >= least, "{sweeps:?}: {bound} to {}", found.makespan);
        assert!(bound <= found.makespan && bound >= 0.96 * found.makespan, "{sweeps:?}: {bound} to {}", found.makespan);
        assert_relative_eq!(problem.evaluate(&found.routes).unwrap(), found.makespan, epsilon = 1e-9);
    }
}

#[test]
fn a_plan_depends_on_its_seed_alone() {
    let problem = problem(&Layout::daycare(), &Timing::default(), Sweeps::ByRisk, 3);
    let config = PlanConfig { n_starts: 1, n_changes: 2000, ..PlanConfig::default() };
    assert_eq!(plan(&problem, &config).unwrap(), plan(&problem, &config).unwrap());
    assert_ne!(plan(&problem, &config).unwrap(), plan(&problem, &PlanConfig { seed: 1, ..config }).unwrap());
}

#[test]
fn what_cannot_be_solved_is_refused() {
    let daycare = problem(&Layout::daycare(), &Timing::hops(), Sweeps::Once, 2);
    let error = held_karp(&daycare).unwrap_err();
    assert_eq!(error.to_string(), "Held-Karp needs at most 16 rooms and 3 responders, got 33 rooms and 2 responders");
    assert!(matches!(joint(&daycare), Err(EvacuationError::TooLarge { .. })));
    let office = Layout::office();
    let in_seconds = problem(&office, &Timing::default(), Sweeps::Once, 2);
    assert!(joint(&in_seconds).unwrap_err().to_string().ends_with("got times in seconds"));
    let error = lower_bound_with_losses(&in_seconds, |_| Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "`problem` must count whole ticks, got seconds");
    let error = SweepProblem::new(&office, &Timing::hops(), Sweeps::Once, &[]).unwrap_err();
    assert_eq!(error.to_string(), "`starts` must name at least one node, got none");
    let error = SweepProblem::new(&office, &Timing::hops(), Sweeps::Once, &[11]).unwrap_err();
    assert_eq!(error.to_string(), "`starts` must be nodes below 11, got 11");
    let error = plan(&in_seconds, &PlanConfig { memory: 0, ..PlanConfig::default() }).unwrap_err();
    assert_eq!(error.to_string(), "`memory` must be at least 1, got 0");
}

#[test]
fn routes_that_leave_a_search_out_are_refused() {
    let warehouse = Layout::warehouse();
    let problem = problem(&warehouse, &Timing::hops(), Sweeps::ByRisk, 2);
    let routes = held_karp(&problem).unwrap().routes;
    let broken = |change: &dyn Fn(&mut Vec<Vec<usize>>)| {
        let mut routes = routes.clone();
        change(&mut routes);
        problem.evaluate(&routes).unwrap_err().to_string()
    };
    let laboratory = warehouse.node("R_1_2").unwrap();
    let message = broken(&|routes| routes[1].retain(|node| *node != laboratory));
    assert_eq!(message, format!("`routes` must search node {laboratory} 2 times, got 1"));
    let message = broken(&|routes| routes[0].push(laboratory));
    assert_eq!(message, format!("`routes` must search a room once per responder, got node {laboratory} twice"));
    assert_eq!(broken(&|routes| routes[0].push(0)), "`routes` must name rooms, got node 0");
    assert_eq!(broken(&|routes| routes.truncate(1)), "`routes` must be one per responder, 2, got 1");
}

/// Rooms are lost one after the other; a sweep that ends at the bound or later needs only the remaining rooms.
#[test]
fn rooms_lost_to_the_fire_lower_the_bound() {
    let office = Layout::office();
    let problem = problem(&office, &Timing::hops(), Sweeps::Once, 2);
    let rooms: Vec<usize> = office.rooms().collect();
    let none = lower_bound_with_losses(&problem, |_| Vec::new()).unwrap();
    assert_eq!(f64::from(none), lower_bound(&problem).best());
    // All but the first room are lost after 3 ticks: the remaining sweep takes 4, from the exit over the hall.
    let most = |tick: u32| if tick < 3 { Vec::new() } else { rooms[1..].to_vec() };
    assert_eq!(lower_bound_with_losses(&problem, most).unwrap(), 4);
    // All are lost before the first search could end.
    let all = |tick: u32| if tick < 2 { Vec::new() } else { rooms.clone() };
    assert_eq!(lower_bound_with_losses(&problem, all).unwrap(), 2);
    // Too late to have an effect.
    let late = |tick: u32| if tick < 13 { Vec::new() } else { rooms.clone() };
    assert_eq!(lower_bound_with_losses(&problem, late).unwrap(), none);
}

/// Twelve buildings of up to 16 rooms: a short search is close to the optimum, and the bound is not trivial.
#[test]
fn small_random_buildings_are_planned_and_bounded_well() {
    let generator = GeneratorConfig { nodes: [12, 20], floors: [1, 2], ..GeneratorConfig::default() };
    let config = PlanConfig { n_starts: 2, n_changes: 40_000, memory: 500, ..PlanConfig::default() };
    for seed in 0..3 {
        for family in Family::ALL {
            let layout = generate(family, &generator, seed).unwrap();
            let starts = layout.starts(2);
            let problem = SweepProblem::in_ticks(&layout, &Timing::default(), Sweeps::ByRisk, &starts).unwrap();
            let exact = held_karp(&problem).unwrap().makespan;
            let found = plan(&problem, &config).unwrap().makespan;
            let bound = lower_bound(&problem).best();
            assert!((exact..=1.03 * exact).contains(&found), "{}: {found} for {exact}", layout.name);
            assert!((0.75 * exact..=exact).contains(&bound), "{}: {bound} for {exact}", layout.name);
        }
    }
}

/// A connected building of some halls, up to `max_rooms` rooms and one or two exits, on up to three floors.
fn building(max_rooms: usize) -> impl Strategy<Value = Layout> {
    let rooms = prop::collection::vec((1u32..30, any::<bool>(), 0usize..100, 1u32..12), 1..=max_rooms);
    let halls = prop::collection::vec((0usize..100, 1u32..12, 0i32..3), 1..=4);
    let shortcuts = prop::collection::vec((0usize..100, 0usize..100, 1u32..12), 0..=3);
    let exits = prop::collection::vec((0usize..100, 1u32..12), 1..=2);
    (halls, rooms, shortcuts, exits).prop_map(|(halls, rooms, shortcuts, exits)| {
        let mut nodes: Vec<Node> = Vec::new();
        let mut edges: Vec<Edge> = Vec::new();
        let mut node = |kind, area_m2: u32, floor, high_risk| {
            let name = format!("{}", nodes.len());
            let area_m2 = f64::from(area_m2);
            nodes.push(Node { name, kind, area_m2, length_m: 1.0, floor, high_risk, polygon: None });
            nodes.len() - 1
        };
        let mut edge = |a: usize, b: usize, length_m: u32| {
            let is_known = edges.iter().any(|edge| (edge.a, edge.b) == (a, b) || (edge.a, edge.b) == (b, a));
            if a != b && !is_known {
                let length_m = f64::from(length_m);
                edges.push(Edge::new(a, b, length_m, 1.0));
            }
        };
        for (place, (at, length_m, floor)) in halls.iter().enumerate() {
            let hall = node(NodeKind::Hall, 1, *floor, false);
            if place > 0 {
                edge(hall, at % place, *length_m);
            }
        }
        // Behind a hall or behind another room.
        for (area_m2, high_risk, at, length_m) in rooms {
            let room = node(NodeKind::Room, area_m2, halls[at % halls.len()].2, high_risk);
            edge(room, at % room, length_m);
        }
        let n_inside = node(NodeKind::Exit, 1, 0, false);
        edge(n_inside, 0, 1);
        for (a, b, length_m) in shortcuts {
            edge(a % n_inside, b % n_inside, length_m);
        }
        let mut entries = vec![n_inside];
        for (at, length_m) in exits.iter().skip(1) {
            let exit = node(NodeKind::Exit, 1, 0, false);
            edge(exit, at % n_inside, *length_m);
            entries.push(exit);
        }
        Layout { name: "random".into(), nodes, edges, occupants: Vec::new(), entries }
    })
}

/// Searches and walks of one to several ticks.
fn coarse() -> impl Strategy<Value = Timing> {
    prop_oneof![
        Just(Timing::hops()),
        Just(Timing { tick_secs: 3.0, ..seconds() }),
        Just(Timing { tick_secs: 2.0, search_secs_per_m2: 0.2, ..seconds() })
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Two independent exact methods agree, and are between the bounds.
    #[test]
    fn exact_methods_agree(layout in building(4), timing in coarse(), n_responders in 1usize..=2, twice: bool) {
        let sweeps = if twice { Sweeps::ByRisk } else { Sweeps::Once };
        let problem = SweepProblem::in_ticks(&layout, &timing, sweeps, &layout.starts(n_responders)).unwrap();
        prop_assert_eq!(f64::from(joint(&problem).unwrap()), held_karp(&problem).unwrap().makespan);
    }

    /// The optimum is between lower and upper bound, and its routes have its makespan.
    #[test]
    fn bounds_enclose_the_optimum(
        layout in building(7),
        timing in coarse(),
        n_responders in 1usize..=3,
        twice: bool,
        whole: bool,
    ) {
        let sweeps = if twice { Sweeps::ByRisk } else { Sweeps::Once };
        let starts = layout.starts(n_responders);
        let make = if whole { SweepProblem::in_ticks } else { SweepProblem::new };
        let problem = make(&layout, &timing, sweeps, &starts).unwrap();
        let best = held_karp(&problem).unwrap();
        prop_assert!((problem.evaluate(&best.routes).unwrap() - best.makespan).abs() < 1e-9);
        let bound = lower_bound(&problem);
        for value in [bound.farthest, bound.counting, bound.share, bound.spanning] {
            prop_assert!(value <= best.makespan + 1e-6, "{bound:?} above {}", best.makespan);
        }
        let config = PlanConfig { n_starts: 1, n_changes: 500, memory: 20, ..PlanConfig::default() };
        let found = plan(&problem, &config).unwrap();
        prop_assert!(found.makespan >= best.makespan - 1e-9);
        prop_assert!((problem.evaluate(&found.routes).unwrap() - found.makespan).abs() < 1e-9);
    }

    /// A sweep of the remaining rooms at some tick takes at least the bound.
    #[test]
    fn no_sweep_under_fire_beats_the_bound(
        layout in building(5),
        n_responders in 1usize..=2,
        lost_at in prop::collection::vec(0u32..60, 5),
    ) {
        let problem = SweepProblem::new(&layout, &Timing::hops(), Sweeps::ByRisk, &layout.starts(n_responders)).unwrap();
        let rooms: Vec<usize> = problem.rooms().collect();
        let lost = |tick: u32| -> Vec<usize> {
            rooms.iter().zip(&lost_at).filter(|(_, at)| **at <= tick).map(|(room, _)| *room).collect()
        };
        let bound = lower_bound_with_losses(&problem, lost).unwrap();
        // The smallest tick at which the remaining rooms could have been searched.
        let exact = (0..).find(|tick| {
            let lost = lost(*tick);
            held_karp(&problem.without(|node| lost.contains(&node))).unwrap().makespan <= f64::from(*tick)
        });
        prop_assert!(exact.is_some_and(|exact| bound <= exact), "{bound} above {exact:?}");
    }
}
