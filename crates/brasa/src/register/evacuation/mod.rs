//! Evacuation: a replay of episodes in the report.

mod replay;

use brasa_evacuation::{Evacuation, EvacuationConfig};
use brasa_experiment::{Registry, ScenarioEntry, Section};

/// Endings of floor plans.
const PLANS: &[&str] = &["geojson", "wkt"];

pub fn register(registry: &mut Registry) {
    // Episodes of the best heuristic without and with hindsight, and of the policy.
    let scripts = &[
        include_str!("../../../reports/evacuation/replay.js"),
        include_str!("../../../reports/evacuation/replay-map.js"),
        include_str!("../../../reports/evacuation/replay-time.js"),
    ];
    let replay = Section::new("replay")
        .style(include_str!("../../../reports/evacuation/replay.css"))
        .scripts(scripts)
        .shows(&["greedy", "hindsight"], replay::EPISODES)
        .data(|context| Ok(replay::data(context)));
    registry.scenario(ScenarioEntry::new("evacuation", Evacuation::new).section(replay));
    registry
        .settings::<EvacuationConfig>("scenario.evacuation", "Responders who search and evacuate a burning building");
    registry.rules("scenario.evacuation", || drop(EvacuationConfig::default().validate()));
    registry.reads_files("scenario.evacuation", PLANS, "buildings = { file = \"PATH\" }");
}
