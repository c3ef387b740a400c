//! The page of an evacuation: its data, and the page in a browser if there is one.
#![allow(clippy::expect_used)]

use crate::common;

use std::fs;

use common::page::{assert_layout, browser, checked, data, list, train};
use common::{arg, succeed};
use serde_json::Value;

/// A short run in the office, with fire and people.
const OFFICE: &str = "[scenario.evacuation]\nbuildings = { reference = \"office\" }\n\
    [scenario.evacuation.rules]\nresponders = [2, 3]\n\
    [train]\ntotal_env_steps = 256\nn_envs = 4\n[ppo]\nn_steps = 32\nbatch_size = 128\nn_epochs = 1\n";

/// A small graph policy with several layers to select.
const TWO_LAYERS: &str = "[graph_network]\nlayers = [{ heads = 2, outputs = 4, concat = true }, { heads = 1, outputs = 8, concat = true }]\n";

fn number(value: &Value) -> i64 {
    value.as_i64().expect("a whole number")
}

#[test]
fn the_page_stands_alone_and_its_data_are_whole() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let out = train(dir.path(), &format!("{OFFICE}{TWO_LAYERS}"));
    let page = fs::read_to_string(out.join("report.html")).expect("the report is there");
    assert!(!page.contains("{{"), "a placeholder was left");
    for link in ["src=\"http", "href=\"http", "url(http", "import(", "fetch("] {
        assert!(!page.contains(link), "the page needs the network: {link}");
    }
    let data = data(&page);
    let replay = &data["replay"];
    assert_eq!(replay["controllers"], serde_json::json!(["trained", "greedy", "hindsight"]));
    let episodes = list(&replay["episodes"]);
    assert_eq!(episodes.len(), 3);
    for episode in episodes {
        let building = &replay["buildings"][number(&episode["building"]) as usize];
        assert_eq!(building["name"], "office");
        let runs = episode["runs"].as_object().expect("runs by controller");
        for (name, run) in runs {
            let frames = number(&run["ticks"]) + 1;
            let whole = |spells: &Value| list(spells).iter().map(|spell| number(&spell[0])).sum::<i64>() == frames;
            assert!(list(&run["crew"]).iter().all(whole), "{name}: spells of responders have gaps");
            assert_eq!(list(&run["people"]).len(), list(&building["people"]).len());
            assert!(list(&run["people"]).iter().all(whole), "{name}: spells of people have gaps");
            assert_eq!(run.get("attention").is_some(), name == "trained");
        }
        // All controllers have the same fire and team.
        assert_eq!(list(&runs["trained"]["crew"]).len(), list(&runs["greedy"]["crew"]).len());
        let trained = &runs["trained"];
        let n_decisions = list(&trained["decisions"]).len();
        assert!(n_decisions > 0);
        for thoughts in ["attention", "probabilities"] {
            assert_eq!(list(&trained[thoughts]).len(), n_decisions);
        }
        assert!(list(&trained["attention"]).iter().all(|layers| list(layers).len() == 2));
    }

    // A report from the checkpoint is identical, byte for byte.
    fs::remove_file(out.join("report.html")).expect("the report is there");
    let said = succeed(&["report", arg(&out)]);
    assert!(said.contains("report.html"), "{said}");
    assert_eq!(fs::read_to_string(out.join("report.html")).expect("the report is there again"), page);
    let elsewhere = dir.path().join("warehouse.html");
    let set = "scenario.evacuation.buildings.reference=warehouse";
    succeed(&["report", arg(&out), "--set", set, "--out", arg(&elsewhere)]);
    let other = self::data(&fs::read_to_string(elsewhere).expect("the page is there"));
    assert_eq!(other["replay"]["buildings"][0]["name"], "warehouse");
}

#[test]
fn networks_without_attention_show_none() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let out = train(dir.path(), &format!("{OFFICE}[network]\nactor_hidden = [8]\ncritic_hidden = [8]\n"));
    let data = data(&fs::read_to_string(out.join("report.html")).expect("the report is there"));
    let run = &data["replay"]["episodes"][0]["runs"]["trained"];
    assert!(number(&run["ticks"]) > 0);
    assert!(run.get("attention").is_none() && run.get("probabilities").is_none());
}

#[test]
fn the_page_plays_in_a_browser() {
    let Some(browser) = browser() else { return };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let out = train(dir.path(), &format!("{OFFICE}{TWO_LAYERS}"));
    let page = out.join("report.html");
    let source = fs::read_to_string(&page).expect("the report is there");
    let tested = |source: &str| checked(&browser, dir.path(), source, include_str!("pages/replay.js")).0;
    let report = tested(&source);
    assert!(report.starts_with("PASS"), "{report}");
    assert_layout(&browser, dir.path(), &page);

    // The test of the page fails if figures and frames differ.
    let rescued = number(&data(&source)["replay"]["episodes"][2]["runs"]["greedy"]["outcome"]["rescued"]);
    let wrong = source.replace(&format!("\"rescued\":{rescued},"), &format!("\"rescued\":{},", rescued + 1));
    assert_ne!(wrong, source);
    let report = tested(&wrong);
    assert!(report.starts_with("FAIL") && report.contains("greedy in episode 3: people out"), "{report}");

    // And if an exit is drawn inside of the building.
    let building = &data(&source)["replay"]["buildings"][0];
    let nodes = list(&building["nodes"]);
    let at = |kind: &str| {
        let node = nodes.iter().find(|node| node["kind"] == kind).expect("it has one");
        format!("\"at\":{}", node["at"])
    };
    let wrong = source.replacen(&at("exit"), &at("room"), 1);
    assert_ne!(wrong, source);
    let report = tested(&wrong);
    assert!(report.starts_with("FAIL") && report.contains("is outside"), "{report}");
}
