//! Episodes of a network as a page draws them: stations and cells, users, what they use and whether that satisfies them.

use brasa::uara::{Frame, Played, Uara};
use serde_json::{Value, json};

/// Episodes that are shown of each controller.
pub const EPISODES: usize = 3;
/// Steps that are shown of an episode; of longer ones the last is shown as well.
const FRAMES: usize = 60;

/// `{"stations": [[x, y, radius, tier]], "channels", "min_sinr_db", "controllers": [{"name", "episodes": [{"steps", "stations",
/// "frames": [{"step", "users": [[x, y]], "links": [[station, channel, level]], "satisfied": [0 or 1], "sinr_db": [dB or
/// null], "rate_mbps": []}]}]}]}`; lengths are in m.
pub fn data(scenario: &Uara, rows: &[(&'static str, Vec<Played>)]) -> Value {
    let config = scenario.config();
    let tiers: Vec<usize> =
        config.tiers().iter().enumerate().flat_map(|(tier, of)| std::iter::repeat_n(tier, of.count)).collect();
    let controllers = rows.iter().filter_map(|(name, played)| {
        let traces = played.iter().filter_map(|played| Some((played, played.trace.as_ref()?)));
        let episodes: Vec<Value> = traces
            .map(|(played, trace)| {
                let stations = trace.stations_m.iter().zip(&trace.radii_m).zip(&tiers);
                let stations: Vec<Value> =
                    stations.map(|((at, radius), tier)| json!([round(at[0], 1), round(at[1], 1), radius, tier])).collect();
                let last = trace.frames.len().saturating_sub(1);
                let shown = trace.frames.iter().enumerate().filter(|(step, _)| *step < FRAMES || *step == last);
                let frames: Vec<Value> = shown.map(|(step, frame)| one(step, frame)).collect();
                json!({ "steps": played.steps, "stations": stations, "frames": frames })
            })
            .collect();
        (!episodes.is_empty()).then(|| json!({ "name": name, "episodes": episodes }))
    });
    json!({
        "channels": config.channels,
        "min_sinr_db": config.min_sinr_db,
        "has_edges": config.coverage != brasa::uara::Coverage::Open,
        "controllers": controllers.collect::<Vec<_>>(),
    })
}

fn one(step: usize, frame: &Frame) -> Value {
    let users: Vec<[f64; 2]> = frame.users_m.iter().map(|at| [round(at[0], 1), round(at[1], 1)]).collect();
    let links: Vec<[u16; 3]> = frame.links.iter().map(|link| [link.station, link.channel, link.power]).collect();
    let satisfied: Vec<u8> = frame.satisfied.iter().map(|on| u8::from(*on)).collect();
    let sinr_db: Vec<Option<f64>> = frame.sinr_db.iter().map(|db| db.map(|db| round(db, 1))).collect();
    let rate_mbps: Vec<f64> = frame.rate_mbps.iter().map(|rate| round(*rate, 3)).collect();
    json!({ "step": step, "users": users, "links": links, "satisfied": satisfied, "sinr_db": sinr_db, "rate_mbps": rate_mbps })
}

fn round(x: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (x * scale).round() / scale
}
