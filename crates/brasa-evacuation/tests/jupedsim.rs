//! Egress compared with JuPedSim, a simulator of pedestrians in continuous space (`scripts/record_jupedsim.py`).
//!
//! A network model has no crowd dynamics: it must agree for free walking, and approximately for flow through a door.

use brasa_env::{Evaluation, Scenario, Who};
use brasa_evacuation::{
    Buildings, Edge, Evacuation, EvacuationConfig, HazardConfig, Layout, Mobility, Node, NodeKind, Occupant,
    OccupantConfig, PersonState, Reference, RulesConfig, Trace,
};
use serde_json::Value;

/// Seconds until the last of `n_people` is out of a room with one door.
fn egress(n_people: usize, door_m: f64, length_m: f64, speed: f64) -> f64 {
    let node = |name: &str, kind: NodeKind| Node {
        name: name.into(),
        kind,
        area_m2: 64.0,
        length_m: 8.0,
        floor: 0,
        high_risk: false,
        polygon: None,
    };
    let edge = Edge { a: 0, b: 1, length_m, width_m: door_m, slope_deg: 0.0, door: true, fire_door: false };
    let layout = Layout {
        name: "room".into(),
        nodes: vec![node("exit", NodeKind::Exit), node("room", NodeKind::Room)],
        edges: vec![edge],
        occupants: vec![Occupant { node: 1, mobility: Mobility::Adult, health: 100.0 }; n_people],
        entries: vec![0],
    };
    let occupants = OccupantConfig {
        alarm_mean_secs: 0.0,
        alarm_std_secs: 0.0,
        unaware_share: 0.0,
        speeds_m_per_s: [speed, 0.5, 0.4],
        ..OccupantConfig::default()
    };
    let hazards = HazardConfig { enabled: false, ..HazardConfig::default() };
    let rules = RulesConfig { responders: [1, 1], hazards, occupants, ..RulesConfig::default() };
    let config = EvacuationConfig { buildings: Buildings::Reference(Reference::Office), rules };
    let scenario = Evacuation::with_layouts(config, vec![layout]).expect("the room is valid");
    let evaluation = Evaluation { n_traces: 1, ..Evaluation::new(1, 0) };
    let outcomes = scenario.evaluate(Who::Baseline("nearest"), &evaluation).expect("rules are legal");
    let trace = outcomes[0].trace.as_ref().and_then(|trace| trace.downcast_ref::<Trace>()).expect("it was asked for");
    let all_out = |frame: &brasa_evacuation::Frame| frame.people.iter().all(|p| p.state == PersonState::Out);
    let ticks = trace.frames.iter().position(all_out).expect("everybody comes out");
    ticks as f64 * trace.tick_secs
}

fn recorded() -> Value {
    serde_json::from_str(include_str!("data/jupedsim.json")).expect("the recording is JSON")
}

#[test]
fn free_walking_takes_as_long() {
    for case in recorded()["alone"].as_array().expect("cases") {
        let number = |name: &str| case[name].as_f64().expect("a number");
        // One tick of one second passes until a person is aware of the alarm.
        let ours = egress(1, 2.0, number("length_m"), number("speed_m_per_s")) - 1.0;
        assert!((ours - number("secs")).abs() <= 1.0, "{ours} s, recorded: {case}");
    }
}

/// The room of 64 m2 is one node here: people walk from its middle, 4 m and the 1.5 m of the passage.
#[test]
fn a_door_empties_a_room_in_about_the_same_time() {
    for case in recorded()["room"].as_array().expect("cases") {
        let number = |name: &str| case[name].as_f64().expect("a number");
        let theirs: Vec<f64> = case["secs"].as_array().expect("seeds").iter().filter_map(Value::as_f64).collect();
        let theirs = theirs.iter().sum::<f64>() / theirs.len() as f64;
        let ours = egress(number("people") as usize, number("door_m"), 5.5, number("speed_m_per_s"));
        // A crowd at a narrow door: in JuPedSim it jams and passes at 0.9 per m and s, here at the design capacity of
        // 1.3.
        let jammed = number("people") > 40.0 && number("door_m") < 1.5;
        let least = if jammed { 0.7 } else { 0.8 };
        assert!((least..=1.2).contains(&(ours / theirs)), "{ours} s, recorded: {case}");
    }
}
