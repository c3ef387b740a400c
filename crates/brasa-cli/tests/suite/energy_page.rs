//! The page of a microgrid: its data, and the page in a browser if there is one.
#![allow(clippy::expect_used)]

use crate::common;

use std::fs;

use common::page::{assert_layout, browser, data, layout_faults, list, opened, train};
use serde_json::Value;

const MICROGRID: &str = "[scenario.iquitos]\nactions = \"aggregate\"\nepisode_steps = 48\nrandom_start = true\n\
    [train]\ntotal_env_steps = 512\nn_envs = 4\n[network]\nactor_hidden = [8]\ncritic_hidden = [8]\n\
    [ppo]\nn_steps = 64\nbatch_size = 64\nn_epochs = 1\n";

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

/// The values of two hexadecimal digits each, with none for `ff`.
fn decoded(text: &Value, low: f64, high: f64) -> Vec<Option<f64>> {
    let digits = text.as_str().expect("digits").as_bytes();
    let value = |pair: &[u8]| {
        let code = u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16).expect("hexadecimal");
        (code < 255).then(|| low + (high - low) * f64::from(code) / 254.0)
    };
    digits.chunks(2).map(value).collect()
}

#[test]
fn the_page_shows_the_year_of_the_result() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let out = train(dir.path(), MICROGRID);
    let page = fs::read_to_string(out.join("report.html")).expect("the report is there");
    for link in ["src=\"http", "href=\"http", "url(http", "import(", "fetch("] {
        assert!(!page.contains(link), "the page needs the network: {link}");
    }
    let result = fs::read_to_string(out.join("result.json")).expect("the result is there");
    let result: Value = serde_json::from_str(&result).expect("the result is JSON");
    let data = data(&page);
    let power = &data["power"];
    assert_eq!((number(&power["n_steps"]), number(&power["first_step"]) % 168.0), (8760.0, 0.0));
    let names: Vec<_> = list(&power["episodes"]).iter().map(|episode| episode["name"].clone()).collect();
    assert_eq!(names, ["idle", "uncontrolled", "greedy", "price-threshold", "rule-based", "trained"]);
    let (peak, n_sockets) = (number(&power["grid_peak"]), list(&power["sockets"]).len());
    for episode in list(&power["episodes"]) {
        let name = episode["name"].as_str().expect("a name");
        let figures = &result["controllers"][name];
        // The map of hours has the energy of the table, within the width of its 254 intervals.
        let hours = decoded(&episode["grid_by_hour"], -peak, peak);
        assert_eq!(hours.len(), 8760);
        let import: f64 = hours.into_iter().map(|kw| kw.expect("power flows in every hour")).sum();
        assert!((import / number(&figures["grid_import_kwh"]) - 1.0).abs() < 0.01, "{name}: {import}");
        let duration: Vec<f64> = list(&episode["grid_duration"]).iter().map(number).collect();
        assert!((duration[0] - number(&figures["peak_kw"])).abs() < 0.01, "{name}: {}", duration[0]);
        assert!(duration.is_sorted_by(|a, b| a >= b));
        assert_eq!(list(&episode["load"]).len(), 168);
        // The sockets of the week deliver what the vehicles get.
        let at_sockets = decoded(&episode["at_sockets"], -number(&power["socket_peak"]), number(&power["socket_peak"]));
        assert_eq!(at_sockets.len(), 168 * n_sockets);
        let delivered: f64 = at_sockets.iter().flatten().sum();
        let vehicles: f64 = list(&episode["ev"]).iter().map(number).sum();
        assert!((delivered - vehicles).abs() <= 0.02 * vehicles, "{name}: {delivered} {vehicles}");
        assert!(at_sockets.iter().any(Option::is_none) && (name == "idle" || delivered > 100.0));
    }

    let Some(browser) = browser() else { return };
    let (document, console) = opened(&browser, &dir.path().join("profile"), &out.join("report.html"), "");
    assert!(console.is_empty(), "{console:?}");
    for heading in
        ["The week with the largest import", "Every hour of the episode", "Load duration", "Who charged when"]
    {
        assert!(document.contains(&format!("<h3>{heading}</h3>")), "no `{heading}` in the page");
    }
    assert!(document.matches("<canvas").count() >= 10, "the charts are drawn");
    // Without files the days are those of a common year.
    assert!(
        power["start"]["month"] == 1 && document.contains("The week with the largest import"),
        "{}",
        power["start"]
    );
    assert!(document.contains("Mon Jan ") || document.contains("Mon Dec "), "the axis has dates");
    assert_layout(&browser, dir.path(), &out.join("report.html"));

    // The look at the layout finds text that leaves the window, text on text, and a chart that nothing describes.
    let wrong = dir.path().join("wrong.html");
    let broken = page
        .replace(
            "<h2>Result</h2>",
            "<h2 style=\"white-space:nowrap\">Result of a run whose heading is so long that it does not fit</h2>",
        )
        .replace("box.setAttribute(\"aria-describedby\", summary.id);", "")
        .replace("</main>", "<svg width=99 height=20><text y=12>one</text><text y=14>two</text></svg></main>");
    fs::write(&wrong, broken).expect("the directory can be written");
    let faults = layout_faults(&browser, dir.path(), &wrong, false).join("\n");
    for fault in ["360 px: the page is", "“two”", "a chart has no summary"] {
        assert!(faults.contains(fault), "not found: {fault} in\n{faults}");
    }
}
