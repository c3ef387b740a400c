//! Errors of buildings are those of floor plans.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use brasa_env::Scenario;
use brasa_evacuation::{
    Buildings, Edge, Evacuation, EvacuationConfig, EvacuationError, Family, FloorPlanError, GeneratedConfig,
    GeneratorConfig, Layout, Node, NodeKind, Reference, RulesConfig, SweepProblem, Sweeps, Timing,
};

fn refused(buildings: Buildings) -> EvacuationError {
    Evacuation::new(EvacuationConfig { buildings, rules: RulesConfig::default() }).unwrap_err()
}

#[test]
fn errors_of_floor_plans_are_handed_on_as_they_are() {
    let missing = PathBuf::from("nowhere.json");
    let error = refused(Buildings::File(missing.clone()));
    assert!(error.to_string().starts_with("cannot read nowhere.json: "), "{error}");
    let EvacuationError::FloorPlan(FloorPlanError::File { action: "read", path, .. }) = error else {
        panic!("{error}")
    };
    assert_eq!(path, missing);

    let generator = GeneratorConfig { held_out_family: Family::Grid, ..GeneratorConfig::default() };
    let error = refused(Buildings::Generated(GeneratedConfig { generator, ..GeneratedConfig::default() }));
    assert_eq!(error.to_string(), "`held_out_family` must not be one of `families`, got grid");

    let mut office = Layout::office();
    office.entries.clear();
    let words = "layout `office`: it has no entry for responders";
    let error = SweepProblem::new(&office, &Timing::default(), Sweeps::Once, &[0]).unwrap_err();
    assert_eq!(error.to_string(), words);
    let config = EvacuationConfig { buildings: Buildings::Reference(Reference::Office), rules: RulesConfig::default() };
    assert_eq!(Evacuation::with_layouts(config, vec![office]).unwrap_err().to_string(), words);
}

/// What cannot be held or done is refused with what was asked for, before memory or time is spent on it.
#[test]
fn sizes_without_end_are_refused() {
    let refused = |buildings: Buildings, rules: RulesConfig| {
        Evacuation::new(EvacuationConfig { buildings, rules }).unwrap_err().to_string()
    };
    let office = || Buildings::Reference(Reference::Office);
    let many = Buildings::Generated(GeneratedConfig { count: 1_000_000_000, ..GeneratedConfig::default() });
    let words = "`buildings.generated.count` must be at most 10000, got 1000000000";
    assert_eq!(refused(many, RulesConfig::default()), words);
    let pool = Buildings::Generated(GeneratedConfig { count: 1, ..GeneratedConfig::default() });
    let pool = Evacuation::new(EvacuationConfig { buildings: pool, rules: RulesConfig::default() }).unwrap();
    let error = pool.for_evaluation(1_000_000_000).err().unwrap().to_string();
    assert_eq!(error, "`episodes` must be at most 10000, got 1000000000");

    type Change = fn(&mut RulesConfig);
    let cases: [(Change, &str); 9] = [
        (
            |rules| rules.timeout_secs = 1e300,
            "`timeout_secs` must be at most 1000000 ticks of `timing.tick_secs`, 1e0 s",
        ),
        (
            |rules| rules.timing.tick_secs = 1e-9,
            "`timeout_secs` must be at most 1000000 ticks of `timing.tick_secs`, 1e-9 s",
        ),
        (|rules| rules.knowledge.delay_secs = 1e12, "`knowledge.delay_secs` must be at most 1000000 ticks"),
        (|rules| rules.crew.wait_secs = 1e12, "`crew.wait_secs` must be at most 1000000 ticks"),
        (|rules| rules.crew.capacity = 1_000_000_000, "`crew.capacity` must be from 1 to 1000, got 1000000000"),
        (|rules| rules.reward.death = 1e308, "`reward.death` must be at most 1000000, got 1e308"),
        (|rules| rules.occupants.weights[1] = 1e300, "`occupants.weights` must be positive and at most 1000000"),
        (|rules| rules.timing.speed_m_per_s = 1e-9, "`H0-H1 in office` must take at most 1000000 ticks, got 4"),
        (|rules| rules.timing.search_secs_per_m2 = 1e9, "`the search of H0 in office` must take at most 1000000 ticks"),
    ];
    for (change, words) in cases {
        let mut rules = RulesConfig::default();
        change(&mut rules);
        let error = refused(office(), rules);
        assert!(error.starts_with(words), "{error}");
    }
}

/// An exit and rooms one behind the other.
fn chain(n: usize) -> Layout {
    let node = |n: usize| Node {
        name: format!("{n}"),
        kind: if n == 0 { NodeKind::Exit } else { NodeKind::Room },
        area_m2: 9.0,
        length_m: 3.0,
        floor: 0,
        high_risk: false,
        polygon: None,
    };
    let edge = |n: usize| Edge::new(n - 1, n, 3.0, 1.0);
    Layout {
        name: "chain".into(),
        nodes: (0..n).map(node).collect(),
        edges: (1..n).map(edge).collect(),
        occupants: vec![],
        entries: vec![0],
    }
}

/// Times between all pairs of a hundred thousand places would take 75 GiB.
#[test]
fn buildings_that_cannot_be_held_are_refused() {
    let words = "`nodes of chain` must be at most 4096, got 100000, whose times between all pairs take 74.5 GiB";
    let error = SweepProblem::new(&chain(100_000), &Timing::default(), Sweeps::Once, &[0]).unwrap_err();
    assert_eq!(error.to_string(), words);
    let config = EvacuationConfig { buildings: Buildings::Reference(Reference::Office), rules: RulesConfig::default() };
    let with = |layout| Evacuation::with_layouts(config.clone(), vec![layout]);
    assert_eq!(with(chain(100_000)).unwrap_err().to_string(), words);
    // What is not refused is ready in seconds.
    let start = std::time::Instant::now();
    assert!(with(chain(4096)).is_ok());
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}

/// A room that only its own exit reaches cannot be cleared by who comes in elsewhere.
#[test]
fn rooms_out_of_reach_of_responders_are_refused() {
    let mut office = Layout::office();
    let cut = office.node("RT1").unwrap();
    office.edges.retain(|edge| edge.a != cut && edge.b != cut);
    let exit = Node { name: "Hatch".into(), kind: NodeKind::Exit, ..office.nodes[cut].clone() };
    office.nodes.push(exit);
    let edge = Edge { a: cut, b: office.nodes.len() - 1, ..office.edges[0].clone() };
    office.edges.push(edge);
    let config = EvacuationConfig { buildings: Buildings::Reference(Reference::Office), rules: RulesConfig::default() };
    let error = Evacuation::with_layouts(config, vec![office]).unwrap_err().to_string();
    assert_eq!(error, "layout `office`: no way leads from the entry `EXIT_LEFT` to `RT1`");
}

/// A change of one key that puts a second kind of buildings beside the first names the kinds that there are.
#[test]
fn buildings_are_of_one_kind() {
    let read = |text: &str| serde_json::from_str::<EvacuationConfig>(text);
    for text in [r#"{"buildings": {"reference": "office", "file": "plan.json"}}"#, r#"{"buildings": {}}"#] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains("must be one of `reference`, `file`, `generated`, got "), "{error}");
    }
    for (text, words) in [
        (
            r#"{"buildings": {"drawn": {}}}"#,
            "unknown variant `drawn`, expected one of `reference`, `file`, `generated`",
        ),
        (r#"{"buildings": {"generated": {"bogus": 1}}}"#, "unknown field `bogus`, expected one of `count`"),
        (r#"{"buildings": {"reference": "castle"}}"#, "expected one of `office`, `daycare`, `warehouse`"),
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let config = read(r#"{"buildings": {"generated": {"count": 3}}}"#).unwrap();
    assert_eq!(read(&serde_json::to_string(&config).unwrap()).unwrap(), config);
}
