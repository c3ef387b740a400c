//! Data of network episodes for the report: stations and cells, users, their links and satisfaction.

use brasa_env::{Figure, Outcome, Scenario};
use brasa_experiment::SectionContext;
use brasa_uara::{Coverage, Frame, Link, Trace, Uara};
use serde_json::{Value, json};

/// Number of episodes per controller.
pub const EPISODES: usize = 3;
/// Largest number of first steps of an episode; the last step is also included.
const FRAMES: usize = 60;
/// Labels of the kinds of stations.
const TIERS: [&str; 3] = ["macro", "pico", "femto"];

/// `{"channels", "levels", "min_sinr_db", "has_edges", "tiers": [name], "controllers": [{"name", "episodes": [{"steps",
/// "qos_rate", "final_qos_rate", "sum_rate_mbps", "stations": [[x, y, radius, tier]], "frames": [{"step", "users": [x, y, ...]
/// unless no user moved, "links": [station, channel, level, ...], "satisfied": 0 or 1 per user, "sinr_db": [dB or null],
/// "rate_mbps": []}]}]}]}`; lengths are in m. The figures of an episode are results of the simulation: the page compares its
/// own figures with them.
pub fn data(context: &SectionContext<'_>) -> Value {
    let Some(scenario) = context.scenario_as::<Uara>() else { return Value::Null };
    let (config, figures) = (scenario.config(), scenario.figures());
    let tiers: Vec<usize> =
        config.tiers().iter().enumerate().flat_map(|(tier, of)| std::iter::repeat_n(tier, of.count)).collect();
    let controllers = context.played.iter().filter_map(|row| {
        let episodes: Vec<Value> = row.outcomes.iter().filter_map(|o| episode(o, &figures, &tiers)).collect();
        (!episodes.is_empty()).then(|| json!({ "name": row.name, "episodes": episodes }))
    });
    json!({
        "channels": config.channels,
        "levels": config.power_levels.len(),
        "min_sinr_db": config.min_sinr_db,
        "has_edges": config.coverage != Coverage::Open,
        "tiers": TIERS,
        "controllers": controllers.collect::<Vec<_>>(),
    })
}

/// An episode, if it was traced.
fn episode(outcome: &Outcome, figures: &[Figure], tiers: &[usize]) -> Option<Value> {
    let trace: &Trace = outcome.trace.as_ref()?.downcast_ref()?;
    let figure = |name: &str| outcome.figure(figures, name).and_then(|measured| measured.value);
    let stations = trace.stations_m.iter().zip(&trace.radii_m).zip(tiers);
    let stations: Vec<Value> =
        stations.map(|((at, radius), tier)| json!([round(at[0], 1), round(at[1], 1), radius, tier])).collect();
    let last = trace.frames.len().saturating_sub(1);
    let mut before = None;
    let mut frames = Vec::new();
    for (step, of) in trace.frames.iter().enumerate().filter(|(step, _)| *step < FRAMES || *step == last) {
        let mut frame = frame(step, of);
        let users: Vec<f64> = of.users_m.iter().flatten().map(|length| round(*length, 1)).collect();
        // Positions are half of the data, and in many networks no user moves.
        if before.as_ref() != Some(&users) {
            frame["users"] = json!(users);
        }
        before = Some(users);
        frames.push(frame);
    }
    Some(json!({
        "steps": outcome.length,
        "qos_rate": figure("qos_rate"),
        "final_qos_rate": figure("final_qos_rate"),
        "sum_rate_mbps": figure("sum_rate_mbps"),
        "stations": stations,
        "frames": frames,
    }))
}

/// A step without positions.
fn frame(step: usize, frame: &Frame) -> Value {
    let links = frame.links.iter().flat_map(|Link { station, channel, power }| [*station, *channel, *power]);
    let sinr_db: Vec<Option<f64>> = frame.sinr_db.iter().map(|db| db.map(|db| round(db, 1))).collect();
    json!({
        "step": step,
        "links": links.collect::<Vec<u16>>(),
        "satisfied": frame.satisfied.iter().map(|on| if *on { '1' } else { '0' }).collect::<String>(),
        "sinr_db": sinr_db,
        "rate_mbps": frame.rate_mbps.iter().map(|rate| round(*rate, 3)).collect::<Vec<f64>>(),
    })
}

fn round(x: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (x * scale).round() / scale
}
