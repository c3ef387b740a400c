//! `list`: what experiments may name.

use crate::{ExperimentError, Registry};

pub fn run(registry: &Registry) -> Result<(), ExperimentError> {
    println!("Scenarios   [scenario.NAME]");
    registry.scenarios.iter().for_each(|entry| println!("  {}", entry.name));
    println!("\nAlgorithms  [NAME]");
    registry.algorithms.0.iter().for_each(|algorithm| println!("  {}", algorithm.name()));
    println!("\nNetworks    [NAME]");
    registry.networks.sections().for_each(|section| println!("  {section}"));
    Ok(())
}
