//! Egress compared with JuPedSim, a simulator of pedestrians in continuous space (`scripts/record_jupedsim.py`).
//!
//! A network model has no crowd dynamics: it must agree for free walking, and approximately for flow through a door.

mod common;

use brasa_evacuation::OccupantConfig;
use serde_json::Value;

/// How `n_people` leave a room with exits of `doors_m`, each at the end of a way of `length_m`.
fn egress(n_people: usize, doors_m: &[f64], length_m: f64, speed: f64) -> common::Egress {
    let exits: Vec<_> = doors_m.iter().map(|door_m| (length_m, *door_m)).collect();
    let occupants = OccupantConfig { speeds_m_per_s: [speed, 0.5, 0.4], ..common::aware() };
    common::egress(&common::room(n_people, &exits), occupants)
}

fn recorded() -> Value {
    serde_json::from_str(include_str!("data/jupedsim.json")).expect("the recording is JSON")
}

#[test]
fn free_walking_takes_as_long() {
    for case in recorded()["alone"].as_array().expect("cases") {
        let number = |name: &str| case[name].as_f64().expect("a number");
        // One tick of one second passes until a person is aware of the alarm.
        let ours = egress(1, &[2.0], number("length_m"), number("speed_m_per_s")).secs - 1.0;
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
        let ours = egress(number("people") as usize, &[number("door_m")], 5.5, number("speed_m_per_s")).secs;
        // A crowd at a narrow door: in JuPedSim it jams and passes at 0.9 per m and s, here at the design capacity of
        // 1.3.
        let jammed = number("people") > 40.0 && number("door_m") < 1.5;
        let least = if jammed { 0.7 } else { 0.8 };
        assert!((least..=1.2).contains(&(ours / theirs)), "{ours} s, recorded: {case}");
    }
}
