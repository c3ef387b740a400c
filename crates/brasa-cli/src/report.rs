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
    let has_replay = data.get("replay").is_some_and(|replay| !replay.is_null());
    let title = run_dir.path().file_name().map_or("run".into(), |name| name.to_string_lossy().into_owned());
    let note =
        comparison.map_or(String::new(), |comparison| format!("{} Color marks the best of each row.", comparison.note));
    Ok(include_str!("../assets/report.html")
        .replace("{{TITLE}}", &escape(&title))
        .replace("{{SUMMARY}}", &escape(&summary(experiment)))
        .replace("{{TABLE}}", &table)
        .replace("{{NOTE}}", &escape(&note))
        .replace("{{CONFIG}}", &escape(&experiment.to_toml()))
        .replace("{{REPLAY_CSS}}", if has_replay { include_str!("../assets/replay.css") } else { "" })
        .replace("{{REPLAY_JS}}", if has_replay { include_str!("../assets/replay.js") } else { "" })
        .replace("{{UPLOT_CSS}}", include_str!("../assets/uPlot.min.css"))
        .replace("{{UPLOT_JS}}", include_str!("../assets/uPlot.iife.min.js"))
        // A tag inside the data would end the script.
        .replace("{{DATA}}", &data.to_string().replace('<', "\\u003c")))
}

fn summary(experiment: &Experiment) -> String {
    let train = &experiment.train;
    format!(
        "{}, {} environment steps in {} environments, seed {}, device {}",
        experiment.algorithm().name(),
        number(train.total_env_steps as f64),
        train.n_envs,
        train.seed,
        train.device
    )
}

/// Return and carbon over environment steps, thinned to what can be seen.
fn curve(lines: &[serde_json::Map<String, Value>]) -> Value {
    let points: Vec<_> = lines.iter().filter(|line| line.contains_key("rollout/ep_rew_mean")).collect();
    let stride = points.len().div_ceil(CURVE_POINTS).max(1);
    let (mut steps, mut returns, mut carbon) = (vec![], vec![], vec![]);
    for line in points.into_iter().step_by(stride) {
        let value = |name: &str| line.get(name).and_then(Value::as_f64);
        steps.push(value("env_steps"));
        returns.push(value("rollout/ep_rew_mean"));
        let ratio = value("rollout/carbon_kg").zip(value("rollout/reference_carbon_kg"));
        carbon.push(ratio.filter(|(_, reference)| *reference > 0.0).map(|(own, reference)| own / reference));
    }
    let has_carbon = carbon.iter().any(Option::is_some);
    json!({ "steps": steps, "return": returns, "carbon": has_carbon.then_some(carbon) })
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
