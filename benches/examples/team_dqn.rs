//! Acting and learning of a team, timed as in `benches/peers/uara_torch.py`; prints one line of JSON.
//!
//! ```text
//! cargo run --release --package brasa-benches --example team_dqn -- --task learn --passes 2000
//! ```
//!
//! `--task` is `act`, `sample`, `learn` (which samples first), `both`, or `loop`: the whole loop, its environment included.

use std::time::Instant;

use brasa_benches::team_dqn::{AGENTS, TeamBench, TeamShape};
use brasa_benches::team_loop::{STEPS, TeamLoop};
use brasa_benches::{argument, place};
use serde_json::json;

brasa_benches::allocator!();

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let task: String = argument("--task", "both".into())?;
    let passes: u32 = argument("--passes", 2000)?;
    let batch: usize = argument("--batch", TeamShape::PUBLISHED.batch)?;
    let place = place();
    let shape = TeamShape { batch, dueling: argument("--dueling", false)?, ..TeamShape::PUBLISHED };
    let mut bench = TeamBench::new(shape, &place.device);
    if task == "loop" {
        let mut team = TeamLoop::new(shape, &place.device);
        let rounds = passes.div_ceil(STEPS as u32);
        team.steps();
        let begin = Instant::now();
        (0..rounds).for_each(|_| team.steps());
        place.sync();
        print(&task, batch, rounds * STEPS as u32, begin.elapsed().as_secs_f64(), &place.name);
        return Ok(());
    }
    let mut work = || match task.as_str() {
        "act" => bench.act(),
        "sample" => bench.sample(),
        "learn" => bench.learn(),
        _ => {
            bench.act();
            bench.learn();
        }
    };
    (0..50).for_each(|_| work());
    place.sync();
    let begin = Instant::now();
    (0..passes).for_each(|_| work());
    place.sync();
    print(&task, batch, passes, begin.elapsed().as_secs_f64(), &place.name);
    Ok(())
}

fn print(task: &str, batch: usize, passes: u32, seconds: f64, device_name: &str) {
    let line = json!({
        "library": "brasa",
        "task": task,
        "agents": AGENTS,
        "batch": batch,
        "passes": passes,
        "milliseconds_per_pass": 1e3 * seconds / f64::from(passes),
        "per_second": f64::from(passes) / seconds,
        "device": device_name,
    });
    println!("{line}");
}
