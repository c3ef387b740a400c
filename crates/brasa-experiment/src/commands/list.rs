//! `list`: names that experiments may use.

use crate::Registry;

pub fn run(registry: &Registry) -> String {
    let lines = |names: Vec<&str>| names.iter().map(|name| format!("  {name}\n")).collect::<String>();
    let scenarios = lines(registry.scenarios.iter().map(|entry| entry.name.as_str()).collect());
    let algorithms = lines(registry.algorithms.0.iter().map(|algorithm| algorithm.name()).collect());
    let networks = lines(registry.networks.sections().collect());
    format!(
        "Scenarios   [scenario.NAME]\n{scenarios}\nAlgorithms  [NAME]\n{algorithms}\nNetworks    [NAME]\n{networks}"
    )
}
