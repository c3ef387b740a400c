//! Arguments as users write them: counts, seeds, names that are nearly right, and files of another kind.
#![allow(clippy::expect_used)]

use crate::common;

use std::fs;
use std::io::Write;
use std::process::Stdio;

use common::{arg, brasa, run, small_experiment, succeed};

#[track_caller]
fn refused(args: &[&str], parts: &[&str]) {
    let output = run(args);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
    parts.iter().for_each(|part| assert!(message.contains(part), "{args:?}: no `{part}` in {message}"));
}

#[test]
fn counts_are_written_in_several_ways() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = small_experiment(dir.path());
    for (i, extra) in
        [["--steps", "1_024"], ["--steps", "1.024e3"], ["--set", "train.total_env_steps=1024"]].iter().enumerate()
    {
        let out = dir.path().join(format!("run-{i}"));
        succeed(&[&["train", arg(&config), "--quiet", "--out", arg(&out)], &extra[..]].concat());
        let written = fs::read_to_string(out.join("config.toml")).expect("the run has its experiment");
        assert!(written.contains("total_env_steps = 1024\n"), "{written}");
    }
    // In a file as well.
    let text = fs::read_to_string(&config).expect("it was written");
    let file = dir.path().join("exponent.toml");
    fs::write(&file, text.replace("total_env_steps = 4096", "total_env_steps = 1e3\neval_interval = 5e2"))
        .expect("room");
    succeed(&["check", arg(&file), "--json"]);
    refused(&["train", arg(&config), "--steps", "1.5"], &["--steps", "must be a whole number", "1e6"]);
    refused(&["train", arg(&config), "--seed", "9223372036854775808"], &["--seed", "9223372036854775807"]);
}

#[test]
fn what_was_probably_meant_is_named() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = small_experiment(dir.path());
    for (key, meant) in [("ppo.lr", "learning_rate"), ("ppo.batch", "batch_size"), ("train.sed", "seed")] {
        refused(&["train", arg(&config), "--set", &format!("{key}=1")], &[&format!("Did you mean `{meant}`?")]);
    }
    refused(&["train", arg(&config), "--device", "gpu"], &["(a GPU is `cuda`"]);
    let near = dir.path().join("small");
    refused(&["train", arg(&near)], &["cannot read", "did you mean", "small.toml?"]);
    for (name, text, parts) in [
        ("plan.geojson", "{}", ["is no experiment", "[scenario.evacuation]", "buildings = { file = "]),
        ("load.csv", "time,load [kW]\n", ["load.csv", "an experiment is a TOML file", "configs"]),
    ] {
        let file = dir.path().join(name);
        fs::write(&file, text).expect("there is room");
        refused(&["train", arg(&file)], &parts);
        refused(&["check", arg(&file)], &parts);
    }
}

#[test]
fn an_experiment_comes_from_standard_input() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let text = fs::read_to_string(small_experiment(dir.path())).expect("it was written");
    let piped = |args: &[&str], text: &str| {
        let mut child = brasa()
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it reads");
        child.wait_with_output().expect("it ends")
    };
    let out = dir.path().join("run");
    let output = piped(&["train", "-", "--steps", "256", "--out", arg(&out)], &text);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && out.join("report.html").exists(), "{said}");
    let (first, second) = said.split_once('\n').expect("there are lines");
    assert_eq!(first, "Training PPO on cart-pole: 256 steps, 4 environments, seed 0, device cpu");
    assert!(second.starts_with(&format!("Run directory: {} (Ctrl-C saves and stops)", out.display())), "{said}");
    assert!(said.contains("100 %  256 steps  "), "{said}");
    let output = piped(&["check", "-"], "[scenario.cart-pole]\n[ppo]\ngama = 0.9\n");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("standard input") && said.contains("did you mean `gamma`?"), "{said}");
}

#[test]
fn every_command_is_quiet_colored_and_completed_as_asked() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (config, out) = (small_experiment(dir.path()), dir.path().join("run"));
    let output = run(&["-q", "train", arg(&config), "--steps", "256", "--out", arg(&out)]);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    // What would be printed is in the log.
    let log = fs::read_to_string(out.join("run.log")).expect("the run has a log");
    assert!(log.contains("Training PPO on cart-pole"), "{log}");

    let help = succeed(&["--help"]);
    for part in ["--color <WHEN>", "-q, --quiet", "NO_COLOR", "BRASA_PYTHON"] {
        assert!(help.contains(part), "no {part} in {help}");
    }
    let commands = [
        "train", "check", "plan", "eval", "baseline", "compare", "sweep", "report", "export", "import", "devices",
        "list", "new",
    ];
    for command in commands {
        let help = succeed(&[command, "--help"]);
        assert!(help.contains("-q, --quiet"), "{command}: {help}");
        assert!(help.contains("--json") || command == "new", "{command}: {help}");
    }
    let has_color = |args: &[&str], variable: Option<(&str, &str)>| {
        let output = brasa().args(args).envs(variable).output().expect("it starts");
        [output.stdout, output.stderr].iter().any(|text| text.contains(&0x1b))
    };
    assert!(has_color(&["--color", "always", "eval", "nowhere"], None));
    assert!(has_color(&["--color=always", "train", "--help"], Some(("NO_COLOR", "1"))), "an argument wins");
    assert!(!has_color(&["--color", "never", "eval", "nowhere"], Some(("CLICOLOR_FORCE", "1"))));
    assert!(has_color(&["eval", "nowhere"], Some(("CLICOLOR_FORCE", "1"))));
    assert!(!has_color(&["eval", "nowhere"], Some(("NO_COLOR", "1"))));

    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = succeed(&["completions", shell]);
        assert!(script.contains("brasa") && script.contains("baseline"), "{shell}");
    }
    let man = dir.path().join("man");
    succeed(&["man", arg(&man)]);
    for page in ["brasa.1", "brasa-train.1", "brasa-data-import.1"] {
        let text = fs::read_to_string(man.join(page)).expect("the page is there");
        assert!(text.starts_with(".ie") && text.contains(".TH"), "{page}");
    }
}

#[test]
fn as_many_episodes_are_played_as_asked() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = small_experiment(dir.path());
    let run_dir = dir.path().join("run");
    for (args, controller) in [
        (&["baseline", arg(&config)][..], "rule-based"),
        (&["train", arg(&config), "--steps", "256", "--out", arg(&run_dir)][..], "trained"),
    ] {
        let output = succeed(&[args, &["--episodes", "3", "--json"]].concat());
        let document: serde_json::Value = serde_json::from_str(&output).expect("it is JSON");
        assert_eq!(document["controllers"][controller]["n_episodes"], 3, "{args:?}");
    }
    let refused = run(&["train", arg(&config), "--episodes", "0"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn lists_name_what_there_is() {
    let configs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs");
    let text = succeed(&["list", "sac", "--configs", configs]);
    for part in ["[sac]  Soft actor-critic", "gamma = 0.99", "citylearn-sac.toml"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    let text = succeed(&["list", "iquitos", "--configs", configs]);
    for part in ["[scenario.iquitos]", "battery.capacity_kwh = 4520.0 kWh", "iquitos-ppo.toml"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    let text = succeed(&["list", "configs", "--configs", configs]);
    assert!(text.contains("cart-pole-ppo.toml") && text.contains("cart-pole ") && text.contains("100,000"), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&succeed(&["list", "ppo", "--json", "--configs", configs])).expect("it is JSON");
    assert_eq!((json["section"].as_str(), json["settings"][0]["key"].is_string()), (Some("ppo"), true));
    refused(&["list", "citylern"], &["did you mean `citylearn`?"]);
    refused(&["list", "configs", "--configs", "nowhere"], &["nowhere has no configs", "--configs"]);
}

#[test]
fn a_run_without_a_best_policy_names_the_setting() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (config, out) = (small_experiment(dir.path()), dir.path().join("run"));
    succeed(&["train", arg(&config), "--quiet", "--steps", "256", "--out", arg(&out)]);
    refused(&["eval", arg(&out), "--best"], &["has no best policy", "`train.eval_interval`"]);
    refused(&["export", arg(&out), "--best", "--format", "onnx"], &["has no best policy", "`train.eval_interval`"]);
}

/// A run directory from elsewhere must not start a program by being looked at.
#[test]
#[cfg(unix)]
fn a_run_that_names_a_program_is_opened_with_trust_alone() {
    use std::os::unix::fs::PermissionsExt;

    let dir = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| dir.path().join(name);
    let script = format!("#!/bin/sh\ntouch '{}'\n", at("started").display());
    fs::write(at("program"), script).expect("there is room");
    fs::set_permissions(at("program"), fs::Permissions::from_mode(0o755)).expect("it is ours");
    let text =
        format!("[scenario.gymnasium]\nid = \"CartPole-v1\"\npython = {:?}\n[network]\n[ppo]\n", arg(&at("program")));
    let run_dir = brasa::train::RunDir::create(at("run")).expect("there is room");
    run_dir.write_config(&text).expect("there is room");
    drop(run_dir);
    let run_dir = at("run");
    let run_dir = arg(&run_dir);
    let commands: [&[&str]; 5] = [
        &["eval", run_dir],
        &["report", run_dir],
        &["export", run_dir, "--format", "onnx"],
        &["compare", run_dir],
        &["train", "--resume", run_dir],
    ];
    for command in commands {
        refused(command, &["starts the program", "`scenario.gymnasium.python`", "--trust"]);
        assert!(!at("started").exists(), "{command:?}");
    }
    for command in commands {
        // It is no Python: the command starts it, and fails.
        assert!(!run(&[command, &["--trust"]].concat()).status.success());
        assert!(at("started").exists(), "{command:?}");
        fs::remove_file(at("started")).expect("it is there");
    }
}
