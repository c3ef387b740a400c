//! Progress of waits on a terminal.
#![cfg(unix)]
#![allow(clippy::expect_used)]

use crate::common;

use std::fs;
use std::process::Command;

use common::{arg, brasa};

/// What the command prints on a terminal; `None` without the program `script`, which makes one.
fn on_terminal(args: &[&str]) -> Option<String> {
    let command = [&[env!("CARGO_BIN_EXE_brasa")], args].concat();
    let command = shlex::try_join(command).expect("arguments have no zero bytes");
    let Ok(output) = Command::new("script").args(["-q", "-e", "-c", &command, "/dev/null"]).output() else {
        eprintln!("SKIPPED: there is no program `script`, which makes a terminal");
        return None;
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}");
    Some(said)
}

#[test]
fn waits_of_two_seconds_are_shown_with_their_steps() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = dir.path().join("small.toml");
    fs::write(&config, "[scenario.cart-pole]\n[ppo]\n").expect("the directory can be written");
    // Each of 32 agents looks for the exchange of landmarks that shortens its way.
    let team = dir.path().join("team.toml");
    fs::write(&team, "[scenario.simple-spread]\nn_agents = 32\n[ppo]\n").expect("the directory can be written");
    let Some(said) = on_terminal(&["baseline", arg(&team), "--episodes", "2000"]) else { return };
    let shown: Vec<&str> = said.split(['\r', '\n']).filter(|line| line.contains("`rule-based`: ")).collect();
    let last = shown.last().unwrap_or_else(|| panic!("no wait is shown: {said:?}"));
    assert!(last.contains(" of 2,000 episodes, ") && last.contains(" steps, ") && last.contains(" s"), "{last}");
    // A trial of two seconds, without episodes.
    let said = on_terminal(&["check", arg(&config)]).expect("there is a terminal");
    assert!(said.contains("`check`: 2 s") && said.contains("valid"), "{said:?}");
    let quiet = on_terminal(&["check", arg(&config), "--quiet"]).expect("there is a terminal");
    assert!(!quiet.contains("`check`"), "{quiet:?}");
    // Elsewhere, a short wait prints nothing.
    let output = brasa().args(["check", arg(&config)]).output().expect("the command starts");
    assert!(output.status.success() && !String::from_utf8_lossy(&output.stderr).contains("`check`"));
}
