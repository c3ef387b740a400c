//! The page of an exported policy, in a browser if there is one, and its tasks in Node.
#![allow(clippy::expect_used)]

use crate::common;

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use brasa::classic::CartPole;
use brasa::env::{Env, RuleState, named_rng};
use brasa::ndarray::{Array1, array};
use brasa::rand::RngExt;
use common::page::{SMALL, browser, opened, text, train};
use common::{arg, succeed};

#[test]
fn pages_act_as_the_run_does() {
    let Some(browser) = browser() else { return };
    for (name, scenario) in [
        ("cart-pole", "[scenario.cart-pole]\n"),
        ("pendulum", "[scenario.pendulum]\n"),
        // Masks, attention over a graph.
        ("office", "[scenario.evacuation]\nbuildings = { reference = \"office\" }\n"),
        // Several choices.
        ("links", "[scenario.uara]\nusers = 3\nchannels = 2\nepisode_steps = 5\n"),
    ] {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let out = train(dir.path(), &format!("{scenario}{SMALL}"));
        assert!(fs::read_to_string(out.join("report.html")).expect("written").contains("--format html"));
        succeed(&["export", arg(&out), "--format", "html"]);
        let path = out.join("policy.html");
        let page = fs::read_to_string(&path).expect("it was written");
        assert!(!page.contains("{{"), "a placeholder was left");
        for link in ["src=\"http", "href=\"http", "url(http", "import(", "fetch("] {
            assert!(!page.contains(link), "the page needs the network: {link}");
        }
        let (document, console) = opened(&browser, dir.path(), &path, "");
        assert!(console.is_empty(), "{name}: {console:?}");
        let words: Vec<&str> = text(&document, "same").split(' ').collect();
        assert_eq!(words[0], words[2], "{name}: {words:?}");
        assert_ne!(words[2], "0", "{name}");
        let live = document.contains("<section id=\"live\">");
        assert_eq!(live, name == "cart-pole", "{name}: only tasks with a script are played");
        // The chosen action is marked.
        assert_eq!(document.contains("class=\"best\""), name != "pendulum", "{name}");
    }
}

#[test]
fn the_cart_pole_of_the_page_is_that_of_training() {
    if Command::new("node").arg("--version").output().is_err() {
        eprintln!("SKIPPED: there is no node");
        return;
    }
    let rng = &mut named_rng(3, "test", 0);
    let mut cases = Vec::new();
    let mut env = CartPole::default();
    for _ in 0..200 {
        let mut number = || rng.random_range(-2.0..2.0);
        let begin = [number(), number(), 0.1 * number(), number()];
        let action = rng.random_range(0..2u8);
        env.set_state(RuleState(begin));
        let mut obs = Array1::zeros(4);
        let step = env.step(array![f32::from(action)].view(), rng, obs.view_mut());
        cases.push(serde_json::json!([begin, action, obs.to_vec(), step.terminated]));
    }
    let script = format!(
        "{}\nfor (const [[x, speed, angle, turning], action, obs, done] of {}) {{\n\
        const next = task.step({{ x, speed, angle, turning, steps: 0 }}, [action]);\n\
        task.observe(next).forEach((x, i) => {{\n\
        if (Math.abs(x - obs[i]) > 1e-6 * Math.max(1, Math.abs(obs[i])) || next.done !== done)\n\
        throw new Error(`${{x}} instead of ${{obs[i]}}`);\n}});\n}}\n",
        include_str!("../../../brasa/reports/classic/cart_pole.js"),
        serde_json::Value::from(cases)
    );
    let mut node =
        Command::new("node").arg("-").stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    node.stdin.take().expect("a pipe").write_all(script.as_bytes()).expect("it reads");
    let output = node.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
