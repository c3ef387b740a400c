//! `brasa report` and the page it makes, `report.html`, which needs nothing else.

use std::cmp::Ordering;

use brasa::train::sinks::Jsonl;
use brasa::train::{RunDir, write_atomically};
use serde_json::{Value, json};

use crate::args::ReportArgs;
use crate::comparison::{Comparison, Row, number};
use crate::error::CliError;
use crate::eval::{Finished, measure};
use crate::experiment::Experiment;

/// Points of a learning curve that a screen can show apart.
const CURVE_POINTS: usize = 1000;

pub fn run(args: &ReportArgs) -> Result<(), CliError> {
    let run = Finished::open(&args.run_dir, &args.set, args.device.as_deref())?;
    let result = measure(&run.scenario, &run.trained(), run.experiment.train.eval_seed, None)?;
    let page = page(&run.experiment, &run.run_dir, &result.text, result.comparison.as_ref())?;
    let path = match &args.out {
        Some(path) => {
            let failed = |error| CliError::Failed(format!("cannot write {}: {error}", path.display()));
            write_atomically(path, page.as_bytes()).map_err(failed)?;
            path.clone()
        }
        None => {
            run.run_dir.write("report.html", page.as_bytes())?;
            run.run_dir.file("report.html")
        }
    };
    println!("Report: {}", path.display());
    Ok(())
}

/// What a page shows beside figures and curves, where there are data of that name.
struct Section {
    name: &'static str,
    style: &'static str,
    /// Parts of one script, in the order in which they are read.
    scripts: &'static [&'static str],
}

const SECTIONS: [Section; 2] = [
    Section {
        name: "replay",
        style: include_str!("../assets/replay.css"),
        scripts: &[include_str!("../assets/replay.js")],
    },
    Section {
        name: "network",
        style: include_str!("../assets/network.css"),
        scripts: &[
            include_str!("../assets/network.js"),
            include_str!("../assets/network-map.js"),
            include_str!("../assets/network-grid.js"),
            include_str!("../assets/network-time.js"),
            include_str!("../assets/network-test.js"),
        ],
    },
];

impl Section {
    /// One scope for all parts, closed to other scripts of the page.
    fn script(&self) -> String {
        format!("(() => {{\n{}}})();\n", self.scripts.concat())
    }
}

/// The page of a finished run.
pub fn page(
    experiment: &Experiment,
    run_dir: &RunDir,
    text: &str,
    comparison: Option<&Comparison>,
) -> Result<String, CliError> {
    let lines = Jsonl::read(&run_dir.file("metrics.jsonl"))
        .map_err(|error| CliError::Failed(format!("cannot read metrics.jsonl: {error}")))?;
    let mut data = json!({ "curve": curve(&lines) });
    let table = match comparison {
        Some(comparison) => {
            comparison.pictures.iter().for_each(|(name, picture)| data[name] = picture.clone());
            html_table(comparison)
        }
        None => format!("<pre>{}</pre>", escape(text)),
    };
    let sections = SECTIONS.iter().filter(|section| data.get(section.name).is_some_and(|picture| !picture.is_null()));
    let (styles, scripts): (Vec<_>, Vec<_>) = sections.map(|section| (section.style, section.script())).unzip();
    let title = run_dir.path().file_name().map_or("run".into(), |name| name.to_string_lossy().into_owned());
    let note =
        comparison.map_or(String::new(), |comparison| format!("{} Color marks the best of each row.", comparison.note));
    Ok(include_str!("../assets/report.html")
        .replace("{{TITLE}}", &escape(&title))
        .replace("{{SUMMARY}}", &escape(&summary(experiment)))
        .replace("{{TABLE}}", &table)
        .replace("{{NOTE}}", &escape(&note))
        .replace("{{CONFIG}}", &escape(&experiment.to_toml()))
        .replace("{{CURVE_NOTE}}", if data["levels"].is_null() { "" } else { "; the strong line without" })
        .replace("{{SECTION_CSS}}", &styles.concat())
        .replace("{{SECTION_JS}}", &scripts.concat())
        .replace("{{UPLOT_CSS}}", include_str!("../assets/uPlot.min.css"))
        .replace("{{UPLOT_JS}}", include_str!("../assets/uPlot.iife.min.js"))
        // A tag inside the data would end the script.
        .replace("{{DATA}}", &data.to_string().replace('<', "\\u003c")))
}

fn summary(experiment: &Experiment) -> String {
    let train = &experiment.train;
    format!(
        "{}, {} environment steps in {} environment{}, seed {}, device {}",
        experiment.algorithm().name(),
        number(train.total_env_steps as f64),
        train.n_envs,
        if train.n_envs == 1 { "" } else { "s" },
        train.seed,
        train.device
    )
}

/// Return, carbon and satisfied users over environment steps, thinned to what can be seen.
fn curve(lines: &[serde_json::Map<String, Value>]) -> Value {
    let points: Vec<_> = lines.iter().filter(|line| line.contains_key("rollout/ep_rew_mean")).collect();
    let stride = points.len().div_ceil(CURVE_POINTS).max(1);
    let value = |line: &serde_json::Map<String, Value>, name: &str| line.get(name).and_then(Value::as_f64);
    let (mut steps, mut returns, mut carbon, mut exploring) = (vec![], vec![], vec![], vec![]);
    for line in points.into_iter().step_by(stride) {
        let quotient = |of: &str, by: &str| {
            let both = value(line, of).zip(value(line, by));
            both.filter(|(_, by)| *by > 0.0).map(|(of, by)| of / by)
        };
        steps.push(value(line, "env_steps"));
        returns.push(value(line, "rollout/ep_rew_mean"));
        carbon.push(quotient("rollout/carbon_kg", "rollout/reference_carbon_kg"));
        // Summed over an episode, hence the mean over its steps.
        exploring.push(quotient("rollout/qos_rate", "rollout/ep_len_mean"));
    }
    let evaluations = lines.iter().filter_map(|line| value(line, "env_steps").zip(value(line, "eval/qos_rate")));
    let (evaluated_steps, evaluated): (Vec<f64>, Vec<f64>) = evaluations.unzip();
    let mut curve = json!({ "steps": steps, "return": returns });
    curve["carbon"] = json!(carbon.iter().any(Option::is_some).then_some(carbon));
    if exploring.iter().any(Option::is_some) || !evaluated.is_empty() {
        curve["satisfied"] =
            json!({ "exploring": exploring, "evaluated_steps": evaluated_steps, "evaluated": evaluated });
    }
    curve
}

fn html_table(comparison: &Comparison) -> String {
    let mut html = String::from("<table><thead><tr><th></th>");
    for row in &comparison.rows {
        html.push_str(&format!("<th>{}</th>", escape(&row.name)));
    }
    html.push_str("</tr></thead><tbody>");
    let Some(first) = comparison.rows.first() else { return html };
    for (i, figure) in first.figures.iter().enumerate() {
        // Ratios where there are any, else the figures themselves.
        let score = |row: &Row| row.figures[i].ratio.or(row.figures[i].value);
        let scores = || comparison.rows.iter().filter_map(score);
        let best = match figure.better {
            Some(Ordering::Less) => scores().reduce(f64::min),
            Some(_) => scores().reduce(f64::max),
            None => None,
        };
        // Where all are alike there is no best.
        let best = best.filter(|best| scores().any(|score| (score - best).abs() > 1e-9));
        html.push_str(&format!("<tr><th>{}</th>", escape(&figure.label)));
        for row in &comparison.rows {
            let figure = &row.figures[i];
            let value = figure.value.map(number).unwrap_or_default();
            let ratio = figure.ratio.map(|ratio| format!("<small>{ratio:.4}</small>")).unwrap_or_default();
            let class = if best.is_some() && score(row) == best { " class=best" } else { "" };
            html.push_str(&format!("<td{class}>{value}{ratio}</td>"));
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table>");
    html
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
