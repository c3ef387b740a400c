//! `check`: validates an experiment and estimates its cost. It writes no files.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use brasa_device::{autocast, measure, runs_on_host};
use brasa_train::{in_words, phases};
use serde_json::json;

use super::train::start;
use crate::args::CheckArgs;
use crate::need::bytes;
use crate::placement::device_line;
use crate::source::override_of;
use crate::{ExperimentError, Registry, number};

/// Duration of the trial run.
const PROBE: Duration = Duration::from_secs(2);

pub fn run(registry: &Registry, args: &CheckArgs) -> Result<String, ExperimentError> {
    let mut overrides = args.set.clone();
    overrides.extend(args.device.iter().map(|device| override_of("train.device", device)));
    let experiment = registry.load(&args.config, &overrides)?;
    let train = &experiment.train;
    let device = train.open_device()?;
    let placed = RefCell::new(None);
    let probe = || start(&experiment, &device, &placed).and_then(|session| session.probe(PROBE));
    let (probed, usage) = measure(|| autocast(experiment.train.precision, probe));
    let probed = probed?;
    // Without the counts of the allocator, or on a GPU, what the process uses.
    let counted = usage.filter(|_| runs_on_host(&device)).map(|usage| usage.peak as u64);
    let memory = counted.or_else(memory);
    let placed = placed.into_inner().map(|placed| placed.to_string()).unwrap_or_default();
    let secs = train.total_env_steps as f64 / probed.steps_per_sec.max(1e-9);
    let duration = in_words(Duration::from_secs_f64(secs.min(1e12)));
    let (directory, free) = free_space();
    let kept = probed.checkpoint_bytes as f64 * (train.keep_checkpoints + 1) as f64;
    if args.json {
        let document = json!({
            "algorithm": experiment.algorithm, "scenario": experiment.entry.name, "device": train.device,
            "total_env_steps": train.total_env_steps, "steps_per_sec": probed.steps_per_sec, "expected_secs": secs,
            "checkpoint_bytes": probed.checkpoint_bytes, "free_disk_bytes": free, "memory_bytes": memory,
        });
        return Ok(format!("{document}\n"));
    }
    let metric = |name: &str| probed.metrics.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
    let mut text = String::new();
    let mut line = |name: &str, value: String| text.push_str(&format!("{name:<12}  {value}\n"));
    line("experiment", format!("{} on {}, valid", experiment.algorithm, experiment.entry.name));
    line("device", format!("{}: works", device_line(train)));
    line("environments", format!("{} {placed}", train.n_envs));
    line("speed", format!("{} environment steps per second", number(probed.steps_per_sec)));
    line("", phases(metric).unwrap_or_default());
    let steps = number(train.total_env_steps as f64);
    line(
        "duration",
        format!("about {duration} for {steps} environment steps; evaluations and the comparison come on top"),
    );
    line("memory", memory.map_or("unknown".into(), |n| format!("{} at most, buffers included", bytes(n as f64))));
    let megabytes = number(probed.checkpoint_bytes as f64 / 1e6);
    let disk = free.map_or("unknown".into(), |free| bytes(free as f64));
    line(
        "disk",
        format!("{megabytes} MB per checkpoint; a replay makes it larger; {disk} free for {}", directory.display()),
    );
    if secs > 3600.0 {
        line("warning", format!("more than an hour: about {duration}"));
    }
    if free.is_some_and(|free| kept > free as f64) {
        line("warning", format!("the disk has no room for {} checkpoints", train.keep_checkpoints + 1));
    }
    Ok(text)
}

/// The default directory of runs, or its first existing parent, and its free disk space in bytes.
fn free_space() -> (PathBuf, Option<u64>) {
    let runs = Path::new("runs").to_path_buf();
    let existing = if runs.exists() { runs.clone() } else { PathBuf::from(".") };
    (runs, fs4::available_space(existing).ok())
}

/// Memory of this process in bytes; `None` if the system does not provide it.
fn memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let kib = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.trim().strip_suffix(" kB")?;
    Some(kib.trim().parse::<u64>().ok()? * 1024)
}
