//! What a run records of itself: log, timeline, table of metrics, use of the device; and what `devices` prints.
#![allow(clippy::expect_used)]

use crate::common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use brasa::device::{Gpu, GpuState, Meter, with_driver};
use brasa::experiment::App;
use common::{arg, brasa, run, small_experiment, succeed};

/// Plans measure what is allocated.
#[global_allocator]
static ALLOCATOR: Meter<std::alloc::System> = Meter(std::alloc::System);

fn read(path: &Path) -> String {
    fs::read_to_string(path).expect("the run has it")
}

#[test]
fn a_run_keeps_what_it_printed_and_when() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (config, out) = (small_experiment(dir.path()), dir.path().join("run"));
    let output = run(&["train", arg(&config), "--out", arg(&out), "--steps", "512"]);
    assert!(output.status.success());
    let printed = String::from_utf8(output.stderr).expect("it is text");
    let log = read(&out.join("run.log"));
    let text = |log: &str| -> Vec<String> {
        let of = |line: &str| {
            let (time, text) = line.split_once(' ').expect("a time comes first");
            assert!(time.len() == 20 && time.starts_with("20") && time.ends_with('Z'), "{line}");
            text.to_owned()
        };
        log.lines().map(of).collect()
    };
    assert!(!printed.is_empty());
    assert_eq!(text(&log), printed.lines().collect::<Vec<_>>());
    // A resumed run appends, also the error with which it ends.
    let output = run(&["train", "--resume", arg(&out), "--steps", "1024", "--set", "ppo.gamma=0.5"]);
    assert!(!output.status.success());
    let both = read(&out.join("run.log"));
    let printed = String::from_utf8(output.stderr).expect("it is text");
    assert!(printed.contains("error: "), "{printed}");
    assert_eq!(text(both.strip_prefix(&log).expect("the first part stays")), printed.lines().collect::<Vec<_>>());

    let timeline = read(&out.join("timeline.jsonl"));
    let events: Vec<serde_json::Value> =
        timeline.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
    let events: Vec<_> = events.iter().map(|event| (event["event"].as_str(), event["env_steps"].as_u64())).collect();
    assert_eq!(events, [(Some("start"), Some(0)), (Some("done"), Some(512))], "the other one did not start");
}

#[test]
fn metrics_become_a_table_and_checkpoints_come_by_steps() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (config, out) = (small_experiment(dir.path()), dir.path().join("run"));
    let set = |key: &'static str| ["--set", key];
    let train = ["train", arg(&config), "--out", arg(&out), "--quiet", "--steps", "2048"];
    let csv = set("train.metrics_csv=true");
    let rare = set("train.checkpoint_secs=1000");
    let (every, keep) = (set("train.checkpoint_interval=512"), set("train.keep_checkpoints=9"));
    succeed(&[&train[..], &csv, &rare, &every, &keep].concat());
    let names = fs::read_dir(out.join("checkpoints")).expect("it is a run").flatten();
    let mut names: Vec<String> = names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    assert_eq!(names, [0, 512, 1024, 1536, 2048].map(|step| format!("step-{step:012}")));

    let check = || {
        let (table, lines) = (read(&out.join("metrics.csv")), read(&out.join("metrics.jsonl")));
        let mut rows = table.lines().map(|row| row.split(',').collect::<Vec<_>>());
        let head = rows.next().expect("a head");
        let rows: Vec<_> = rows.collect();
        assert_eq!(rows.len(), lines.lines().count());
        for (row, line) in rows.iter().zip(lines.lines()) {
            let line: serde_json::Value = serde_json::from_str(line).expect("a line is JSON");
            assert_eq!(row.len(), head.len());
            for (name, value) in head.iter().zip(row) {
                assert_eq!(line.get(name).map_or(String::new(), serde_json::Value::to_string), *value, "{name}");
            }
        }
        rows.len()
    };
    let n_rows = check();
    // Long enough for a reading of the device on any machine.
    succeed(&["train", "--resume", arg(&out), "--quiet", "--steps", "65536"]);
    assert!(check() > n_rows);

    let page = read(&out.join("report.html"));
    for part in
        ["<h2>Device</h2>", "Memory was never exhausted.", ">learning</th>", "Processor, share of all threads busy"]
    {
        assert!(page.contains(part), "the report has no `{part}`");
    }
    let refused = run(&["train", arg(&config), "--set", "train.checkpoint_interval=0"]);
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(message.contains("`train.checkpoint_interval` must be at least 1"), "{message}");

    // The sessions of both runs, in a comparison.
    let other = dir.path().join("other");
    succeed(&["train", arg(&config), "--out", arg(&other), "--quiet", "--steps", "65536", "--seed", "1"]);
    let compared = dir.path().join("compare");
    let text = succeed(&["compare", arg(&out), arg(&other), "--episodes", "2", "--out", arg(&compared)]);
    let timeline: Vec<&str> = text.lines().skip_while(|line| *line != "Timeline of the training").collect();
    assert!(timeline.len() >= 4, "{text}");
    assert!(timeline[1].contains("seed 0: 20") && timeline[1].ends_with("steps 0 to 2048"), "{text}");
    assert!(timeline[2].ends_with("steps 2048 to 65536") && timeline[3].contains("seed 1: 20"), "{text}");
    assert!(read(&compared.join("compare.html")).contains("steps 2048 to 65536"));
}

#[test]
fn devices_are_watched_until_nobody_reads() {
    let mut child = brasa()
        .args(["devices", "--watch", "0.2"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    for _ in 0..2 {
        let line = lines.next().expect("it prints").expect("it is text");
        assert!(line.starts_with("20") && line.contains("Z cpu ") && line.contains(" % busy, "), "{line}");
    }
    drop(lines);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let refused = run(&["devices", "--watch", "0.01"]);
    assert_eq!(refused.status.code(), Some(2));
}

/// A card of which other programs leave `free_gib`.
fn card(free_gib: f64) -> Vec<Gpu> {
    vec![Gpu {
        index: 0,
        name: "NVIDIA GeForce RTX 4060".to_owned(),
        memory_gib: 8.0,
        free_gib,
        compute_capability: Some("8.9".to_owned()),
        driver: "580.1".to_owned(),
        n_cores: Some(3072),
        max_clock_mhz: Some(2460.0),
        max_memory_clock_mhz: Some(8501.0),
        bus_bits: Some(128),
        state: GpuState { used_gib: 8.0 - free_gib, ..GpuState::default() },
    }]
}

#[test]
fn memory_of_other_programs_counts_before_a_start() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (config, out) = (small_experiment(dir.path()), dir.path().join("run"));
    let app = App::new("brasa").with(brasa::registry());
    for device in ["rtx-4060", "cuda"] {
        let train = ["brasa", "train", arg(&config), "--device", device, "--out", arg(&out)];
        let error = with_driver(card(0.50001), || app.run_from(train)).expect_err("it does not fit").to_string();
        assert!(error.contains("the run needs ") && error.contains("rtx-4060 has "), "{error}");
        assert!(error.contains(" for it, other programs hold 7.5 GiB: lower "), "{error}");
        let plan = ["brasa", "plan", arg(&config), "--device", device];
        let error = with_driver(card(0.50001), || app.run_from(plan)).expect_err("it does not fit").to_string();
        assert!(error.contains("does not fit"), "{error}");
        with_driver(card(7.9), || app.run_from(plan)).expect("it fits");
    }
    assert!(!out.exists(), "a refused run leaves nothing");
}
