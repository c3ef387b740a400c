//! Heuristics and upper bounds for users of cellular networks, without learning.
//!
//! `cargo run --release -p brasa-examples --example network_rules`; a number after `--` replaces the 400 layouts.

use std::error::Error;

use brasa::env::{BatchSlabs, EnvBatch, named_rng};
use brasa::uara::baselines::{largest_gain, upper_bound};
use brasa::uara::{Heuristic, LayoutConfig, Objective, Redraw, Uara, UaraConfig};

/// Largest gain of a user in an equilibrium, Mb/s, because of rounding.
const ROUNDING_MBPS: f64 = 1e-12;

fn main() -> Result<(), Box<dyn Error>> {
    let n_layouts = brasa_examples::steps(400)? as usize;
    println!("share of users satisfied, layouts where it is all of them, over {n_layouts} layouts");
    for (name, config) in
        [("cly2020", UaraConfig::cly2020()), ("zhao2019", UaraConfig::zhao2019()), ("physical", UaraConfig::physical())]
    {
        // Each environment has its own layout.
        let layout = LayoutConfig { redraw: Redraw::Environment, ..config.layout };
        let scenario = Uara::new(UaraConfig { layout, ..config })?;
        let mut batch = scenario.batch(0..n_layouts);
        batch.reset(0, &mut BatchSlabs::new(batch.spec()))?;
        let snapshots: Vec<_> = (0..n_layouts).map(|env| batch.snapshot(env)).collect();
        for rule in Heuristic::ALL {
            let rng = &mut named_rng(0, "rules", 0);
            let (mut share, mut all, mut equilibria) = (0.0, 0, 0);
            for snapshot in &snapshots {
                let links = rule.choose(snapshot, Objective::Satisfied, rng);
                let qos = snapshot.outcome(&links).qos_rate();
                share += qos / n_layouts as f64;
                all += usize::from(qos == 1.0);
                equilibria +=
                    usize::from(rule == Heuristic::BestResponse && largest_gain(snapshot, &links) <= ROUNDING_MBPS);
            }
            let certified =
                if rule == Heuristic::BestResponse { format!(", certified on {equilibria}") } else { String::new() };
            println!("{name} {rule}: {share:.4}, {all}{certified}");
        }
        let bounds: Vec<usize> = snapshots.iter().map(|snapshot| upper_bound(snapshot).satisfied).collect();
        let n_users = scenario.config().users;
        let share = bounds.iter().sum::<usize>() as f64 / (n_layouts * n_users) as f64;
        println!("{name} upper bound: {share:.4}, {}", bounds.iter().filter(|bound| **bound == n_users).count());
    }
    Ok(())
}
