//! The page of a network: its data, and the page in a browser if there is one.
#![allow(clippy::expect_used)]

use crate::common;

use std::fs;

use common::page::{assert_layout, browser, checked, data, list, opened, text, train};
use common::{arg, succeed};
use serde_json::Value;

/// A short run with a few walking users and evaluations during training.
const NETWORK: &str = "[scenario.uara]\nusers = 9\nchannels = 4\nepisode_steps = 5\n\
    [train]\ntotal_env_steps = 400\nn_envs = 4\neval_interval = 200\n\
    [dqn]\nepsilon = { linear = { from = 1.0, to = 0.1 } }\n[pair_q_network]\nhidden = [8]\n\
    [off_policy]\nlearning_starts = 100\ntrain_freq = 4\nupdates_per_step = 0.25\nbatch_size = 32\nlog_interval = 100\n";

fn figure(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

/// Satisfied users in percent, and the sum of rates.
fn counted(frame: &Value) -> (f64, f64) {
    let satisfied = frame["satisfied"].as_str().expect("a digit for each user");
    let share = satisfied.matches('1').count() as f64 / satisfied.len() as f64;
    (100.0 * share, list(&frame["rate_mbps"]).iter().map(figure).sum())
}

#[test]
fn the_page_stands_alone_and_its_data_are_those_of_the_result() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let out = train(dir.path(), NETWORK);
    let page = fs::read_to_string(out.join("report.html")).expect("the report is there");
    assert!(!page.contains("{{"), "a placeholder was left");
    for link in ["src=\"http", "href=\"http", "url(http", "import(", "fetch("] {
        assert!(!page.contains(link), "the page needs the network: {link}");
    }
    let result = fs::read_to_string(out.join("result.json")).expect("the result is there");
    let result: Value = serde_json::from_str(&result).expect("the result is JSON");
    let data = data(&page);

    let controllers = list(&data["network"]["controllers"]);
    let names: Vec<_> = controllers.iter().map(|of| of["name"].as_str().expect("a name")).collect();
    assert!(names.contains(&"trained") && names.contains(&"greedy"), "{names:?}");
    for controller in controllers {
        let name = controller["name"].as_str().expect("a name");
        let rates = list(&result["controllers"][name]["episodes"]["sum_rate_mbps"]);
        let episodes = list(&controller["episodes"]);
        assert_eq!(episodes.len(), 3);
        for (episode, rate) in episodes.iter().zip(rates) {
            let frames = list(&episode["frames"]);
            assert_eq!(frames.len(), 5);
            assert!(frames[0]["users"].is_array(), "{name}: the first positions are known");
            for frame in frames {
                assert_eq!(list(&frame["links"]).len(), 3 * 9);
                assert_eq!(list(&frame["sinr_db"]).len(), 9);
            }
            let mean = |of: fn((f64, f64)) -> f64| frames.iter().map(|frame| of(counted(frame))).sum::<f64>() / 5.0;
            assert!((mean(|(_, rate)| rate) - figure(rate)).abs() < 0.006, "{name}: sum of rates");
            assert!(
                (mean(|(share, _)| share) / 100.0 - figure(&episode["qos_rate"])).abs() < 1e-9,
                "{name}: satisfied"
            );
        }
    }
    // The lines of the chart equal the values of the table, and the evaluations during training exist.
    let satisfied = &data["curves"][0];
    assert_eq!(satisfied["trained"], result["controllers"]["trained"]["qos_rate"]);
    let greedy = list(&satisfied["levels"]).iter().find(|level| level["name"] == "greedy").expect("it is a level");
    assert_eq!(greedy["value"], result["controllers"]["greedy"]["qos_rate"]);
    assert_eq!(list(&satisfied["evaluated_steps"]), [200.0, 400.0]);
    assert!(list(&satisfied["values"]).iter().all(|share| (0.0..=1.0).contains(&figure(share))));

    // A report from the checkpoint is identical, byte for byte.
    fs::remove_file(out.join("report.html")).expect("the report is there");
    succeed(&["report", arg(&out)]);
    assert_eq!(fs::read_to_string(out.join("report.html")).expect("the report is there again"), page);
}

#[test]
fn pages_without_networks_have_none() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (config, out) = (common::small_experiment(dir.path()), dir.path().join("run"));
    succeed(&["train", arg(&config), "--out", arg(&out), "--quiet", "--steps", "256"]);
    let page = fs::read_to_string(out.join("report.html")).expect("the report is there");
    assert!(!page.contains("{{") && !page.contains("#network .panel"));
    let data = data(&page);
    assert!(data.get("network").is_none() && list(&data["curves"]).is_empty());
}

#[test]
fn the_page_shows_its_data_in_a_browser() {
    let Some(browser) = browser() else { return };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let out = train(dir.path(), NETWORK);
    let (page, profile) = (out.join("report.html"), dir.path().join("profile"));
    let source = fs::read_to_string(&page).expect("the report is there");
    let data = data(&source);
    let trained = "trained in episode 3";
    let tested = |source: &str| checked(&browser, dir.path(), source, include_str!("pages/network.js"));

    // The initial view shows the trained policy and greedy at the last step; a link selects another step.
    let frames = |name: &str, episode: usize| {
        let of = list(&data["network"]["controllers"]).iter().find(|of| of["name"] == name);
        list(&of.expect("the controller is shown")["episodes"][episode]["frames"])
    };
    for (hash, names, episode, step) in [
        ("", ["trained", "greedy"], 0, 4),
        ("#network,greedy,strongest-random,2,4", ["greedy", "strongest-random"], 1, 3),
    ] {
        let (document, console) = opened(&browser, &profile, &page, hash);
        assert!(console.is_empty(), "{console:?}");
        for (panel, name) in names.into_iter().enumerate() {
            let (share, rate) = counted(&frames(name, episode)[step]);
            assert_eq!(text(&document, &format!("network-{panel}-satisfied")), format!("{share:.1}"), "{name}");
            assert_eq!(text(&document, &format!("network-{panel}-rate")), format!("{rate:.2}"), "{name}");
            assert_eq!(text(&document, &format!("network-{panel}-step")), format!("{} of 5", step + 1), "{name}");
        }
    }

    assert_layout(&browser, dir.path(), &page);

    // What the page says is what the simulation computed.
    let (report, console) = tested(&source);
    assert!(report.starts_with("PASS") && console.is_empty(), "{report} {console:?}");

    // The test of the page fails if figures and frames differ: with wrong figures, and with wrong frames.
    let last = |what: &str| {
        let begin = source.rfind(what).expect("the data name it") + what.len();
        (begin, begin + source[begin..].find([',', '"', ']', '}']).expect("the data go on"))
    };
    let with = |(begin, end): (usize, usize), other: &str| format!("{}{other}{}", &source[..begin], &source[end..]);
    let place = last("\"sum_rate_mbps\":");
    let rate: f64 = source[place.0..place.1].parse().expect("a number");
    let (report, _) = tested(&with(place, &(rate + 0.1).to_string()));
    assert!(report.starts_with("FAIL") && report.contains(&format!("{trained}: mean of the sum of rates")), "{report}");
    let place = last("\"satisfied\":\"");
    let turned: String = source[place.0..place.1].chars().map(|on| if on == '1' { '0' } else { '1' }).collect();
    let (report, _) = tested(&with(place, &turned));
    assert!(report.starts_with("FAIL") && report.contains(&format!("{trained}: satisfied users")), "{report}");

    // Errors are detected.
    let (_, console) = tested(&source.replace("</body>", "<script>console.error(\"seen\")</script></body>"));
    assert!(console.iter().any(|line| line.contains("seen")), "{console:?}");
}
