//! Cellular networks: episodes for the report, and bounds of the networks.

mod map;
mod study;

use brasa_experiment::{Registry, ScenarioEntry, Section};
use brasa_uara::{BsAgent, BsAgentConfig, Uara, UaraConfig};

pub fn register(registry: &mut Registry) {
    let scripts: &[&str] = &[
        include_str!("../../../reports/uara/network.js"),
        include_str!("../../../reports/uara/network-map.js"),
        include_str!("../../../reports/uara/network-grid.js"),
        include_str!("../../../reports/uara/network-time.js"),
    ];
    // Users without a planner, the best planner, and the policy.
    let network = Section::new("network")
        .style(include_str!("../../../reports/uara/network.css"))
        .scripts(scripts)
        .shows(&["strongest-random", "greedy"], map::EPISODES)
        .data(|context| Ok(map::data(context)));
    let uara = ScenarioEntry::new("uara", Uara::new).section(network).remark(study::remark);
    #[cfg(feature = "tensor")]
    let uara = uara.tensor(|uara: &Uara, device| uara.tensors(device).map(|(tensors, steps)| (tensors, Some(steps))));
    registry.scenario(uara);
    registry.scenario(ScenarioEntry::new("uara-bs-agent", BsAgent::new));
    registry
        .settings::<UaraConfig>("scenario.uara", "Users of a cellular network who choose station, channel and power");
    registry.settings::<BsAgentConfig>(
        "scenario.uara-bs-agent",
        "Base stations of a cellular network that choose users and channels",
    );
    registry.rules("scenario.uara", || drop(UaraConfig::default().validate()));
    registry.rules("scenario.uara-bs-agent", || drop(BsAgentConfig::default().validate()));
}
