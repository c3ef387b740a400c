//! The page of an evacuation: its data by itself, and the page in a browser where there is one.
#![allow(clippy::expect_used)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{arg, succeed};
use serde_json::Value;

/// A little learning in the office, with fire and people.
const OFFICE: &str = "[scenario.evacuation]\nbuildings = { reference = \"office\" }\n\
    [scenario.evacuation.rules]\nresponders = [2, 3]\n\
    [train]\ntotal_env_steps = 256\nn_envs = 4\n[ppo]\nn_steps = 32\nbatch_size = 128\nn_epochs = 1\n";

/// A policy over graphs, small but with layers to choose from.
const TWO_LAYERS: &str = "[graph_network]\nlayers = [{ heads = 2, outputs = 4, concat = true }, { heads = 1, outputs = 8, concat = true }]\n";

/// Trains with one more section and returns the directory of the run.
fn train(dir: &Path, section: &str) -> PathBuf {
    let (config, out) = (dir.join("office.toml"), dir.join("run"));
    fs::write(&config, format!("{OFFICE}{section}")).expect("the directory can be written");
    succeed(&["train", arg(&config), "--out", arg(&out), "--quiet"]);
    out
}

/// What the page computes from.
fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("const data = ").expect("the page has data");
    let (text, _) = rest.split_once(";\nconst width").expect("the data end");
    serde_json::from_str(text).expect("the data are JSON")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn number(value: &Value) -> i64 {
    value.as_i64().expect("a whole number")
}

#[test]
fn the_page_stands_alone_and_its_data_are_whole() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let out = train(dir.path(), TWO_LAYERS);
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
        // The same fire and team for everybody.
        assert_eq!(list(&runs["trained"]["crew"]).len(), list(&runs["greedy"]["crew"]).len());
        let trained = &runs["trained"];
        let n_decisions = list(&trained["decisions"]).len();
        assert!(n_decisions > 0);
        for thoughts in ["attention", "probabilities"] {
            assert_eq!(list(&trained[thoughts]).len(), n_decisions);
        }
        assert!(list(&trained["attention"]).iter().all(|layers| list(layers).len() == 2));
    }

    // The checkpoint tells the same story, byte for byte.
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
    let out = train(dir.path(), "[network]\nactor_hidden = [8]\ncritic_hidden = [8]\n");
    let data = data(&fs::read_to_string(out.join("report.html")).expect("the report is there"));
    let run = &data["replay"]["episodes"][0]["runs"]["trained"];
    assert!(number(&run["ticks"]) > 0);
    assert!(run.get("attention").is_none() && run.get("probabilities").is_none());
}

/// A browser that can be run without a screen.
fn browser() -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&paths).flat_map(|dir| names.map(|name| dir.join(name))).find(|path| path.is_file())
}

/// The document that the self-test of a page leaves.
fn tested(browser: &Path, profile: &Path, page: &Path) -> String {
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=60000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}#selftest", page.display()))
        .output()
        .expect("the browser starts");
    let document = String::from_utf8_lossy(&output.stdout).into_owned();
    let report = document.split_once("<pre id=\"selftest\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    report.map(|(report, _)| report.to_owned()).unwrap_or_else(|| {
        panic!("the page ran no self-test: {}\n{}", document.len(), String::from_utf8_lossy(&output.stderr))
    })
}

#[test]
fn the_page_plays_in_a_browser() {
    let Some(browser) = browser() else {
        eprintln!("SKIPPED: no chromium, chromium-browser or google-chrome on the PATH; nobody has played the page");
        return;
    };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let out = train(dir.path(), TWO_LAYERS);
    let (page, profile) = (out.join("report.html"), dir.path().join("profile"));
    let report = tested(&browser, &profile, &page);
    assert!(report.starts_with("PASS"), "{report}");

    // Figures that are not those of the frames are found.
    let text = fs::read_to_string(&page).expect("the report is there");
    let rescued = number(&data(&text)["replay"]["episodes"][2]["runs"]["greedy"]["outcome"]["rescued"]);
    let wrong = text.replace(&format!("\"rescued\":{rescued},"), &format!("\"rescued\":{},", rescued + 1));
    assert_ne!(wrong, text);
    let page = dir.path().join("wrong.html");
    fs::write(&page, wrong).expect("the directory can be written");
    let report = tested(&browser, &profile, &page);
    assert!(report.starts_with("FAIL") && report.contains("greedy in episode 3: people out"), "{report}");
}
