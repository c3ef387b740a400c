//! One layer of graph attention, timed as in `benches/peers/pyg_gat.py`; prints one line of JSON.
//!
//! ```text
//! cargo run --release --package brasa-benches --example gat -- --layer v2 --passes 200
//! ```
//!
//! `--layer` is `v1`, `v2`, `v1-edges` or `v2-edges`; a pass is forward and backward. `lean` times PPO with the lean policy
//! in the office instead; a pass is an update of 1,024 rows.

use std::time::Instant;

use brasa::contracts::{Learner, Progress};
use brasa_benches::gat::{GatBench, HEADS, INPUTS, NODES, OUTPUTS, Office, ROWS};
use brasa_benches::{argument, place};
use brasa_gat::Version;
use serde_json::json;

brasa_benches::allocator!();

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let layer: String = argument("--layer", "v2".into())?;
    let passes: u32 = argument("--passes", 200)?;
    let place = place();
    let version = if layer.starts_with("v1") { Version::V1 } else { Version::V2 };
    let seconds = if layer == "lean" {
        let office = Office::new();
        let (mut ppo, rollout) = (office.ppo(16, 256, &place.device), office.rollout(64, 16, &place.device));
        timed(passes, || drop(ppo.update(rollout.clone(), Progress::new(0, 1))), || place.sync())
    } else {
        let bench = GatBench::new(version, layer.ends_with("edges"), &place.device);
        timed(passes, || drop(bench.forward_backward()), || place.sync())
    };
    let line = json!({
        "library": "brasa",
        "task": format!("graph attention, {layer}"),
        "shape": format!("{ROWS}x{NODES}x{INPUTS} to {HEADS}x{OUTPUTS}"),
        "passes": passes,
        "seconds": seconds,
        "milliseconds_per_pass": 1e3 * seconds / f64::from(passes),
        "device": place.name,
        "versions": { "brasa": env!("CARGO_PKG_VERSION") },
    });
    println!("{line}");
    Ok(())
}

/// Seconds of `n` calls, after warm-up calls.
fn timed(n: u32, mut work: impl FnMut(), sync: impl Fn()) -> f64 {
    (0..20).for_each(|_| work());
    sync();
    let begin = Instant::now();
    (0..n).for_each(|_| work());
    sync();
    begin.elapsed().as_secs_f64()
}
