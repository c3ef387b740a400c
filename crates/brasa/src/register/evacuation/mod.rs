//! Evacuation: a replay of episodes in the report.

mod replay;

use brasa_evacuation::Evacuation;
use brasa_experiment::{Registry, ScenarioEntry, Section};

pub fn register(registry: &mut Registry) {
    // Episodes of the best heuristic without and with hindsight, and of the policy.
    let replay = Section::new("replay")
        .style(include_str!("replay.css"))
        .scripts(&[include_str!("replay.js")])
        .shows(&["greedy", "hindsight"], replay::EPISODES)
        .data(|context| Ok(replay::data(context)));
    registry.scenario(ScenarioEntry::new("evacuation", Evacuation::new).section(replay));
}
