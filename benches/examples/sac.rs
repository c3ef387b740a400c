//! Soft actor-critic, timed as in `benches/peers/sb3_sac.py`; prints one line of JSON.
//!
//! ```text
//! cargo run --release --package brasa-benches --example sac -- --task synthetic --updates 2000
//! ```
//!
//! `--task small` is the update of Pendulum-v1's size alone, `--task products` the matrix products of an update alone. `--capture true`
//! records updates and replays them on a GPU.

use std::time::Instant;

use brasa_benches::sac::{Products, SacBench, SacShape};
use brasa_benches::{argument, place};
use serde_json::json;

brasa_benches::allocator!();

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let task: String = argument("--task", "synthetic".into())?;
    let updates: u64 = argument("--updates", 2000)?;
    let captures: bool = argument("--capture", false)?;
    let place = place();
    let shape = if task.starts_with("small") { SacShape::SMALL } else { SacShape::LARGE };
    let seconds = if task.ends_with("products") {
        let products = Products::new(shape, &place.device);
        timed(updates, || products.multiply(), || place.sync())
    } else {
        let mut bench = SacBench::new(shape, &place.device);
        if captures {
            bench.record();
        }
        timed(updates, || bench.update(), || place.sync())
    };
    let line = json!({
        "library": "brasa",
        "task": format!("SAC, {task}"),
        "updates": updates,
        "seconds": seconds,
        "updates_per_second": updates as f64 / seconds,
        "batch_size": shape.batch,
        "capture": captures,
        "device": place.name,
        "versions": { "brasa": env!("CARGO_PKG_VERSION") },
    });
    println!("{line}");
    Ok(())
}

/// Seconds of `n` calls, after fifty warm-up calls.
fn timed(n: u64, mut work: impl FnMut(), sync: impl Fn()) -> f64 {
    (0..50).for_each(|_| work());
    sync();
    let begin = Instant::now();
    (0..n).for_each(|_| work());
    sync();
    begin.elapsed().as_secs_f64()
}
