//! `report.html`: one page that needs nothing else.

use std::cmp::Ordering;

use brasa::energy::{Outcome, Trace};
use brasa::train::RunDir;
use brasa::train::sinks::Jsonl;
use serde_json::{Value, json};

use crate::error::CliError;
use crate::experiment::Experiment;
use crate::outcomes::{Outcomes, TRAINED, better, label, number};
use crate::scenario::Energy;

/// Points of a learning curve that a screen can show apart.
const CURVE_POINTS: usize = 1000;
/// Steps of the power flows that are shown: a week of hours.
const WEEK_STEPS: usize = 168;

/// The page of a finished run.
pub fn page(
    experiment: &Experiment,
    run_dir: &RunDir,
    text: &str,
    outcomes: Option<(&dyn Energy, &Outcomes)>,
) -> Result<String, CliError> {
    let lines = Jsonl::read(&run_dir.file("metrics.jsonl"))
        .map_err(|error| CliError::Failed(format!("cannot read metrics.jsonl: {error}")))?;
    let mut data = json!({ "curve": curve(&lines) });
    let table = match outcomes {
        Some((energy, outcomes)) => {
            data["week"] = week(energy, outcomes);
            html_table(energy, outcomes)
        }
        None => format!("<pre>{}</pre>", escape(text)),
    };
    let title = run_dir.path().file_name().map_or("run".into(), |name| name.to_string_lossy().into_owned());
    let note = outcomes.map_or(String::new(), |(energy, _)| {
        format!("Small figures are ratios to {}. Color marks the best of each row.", energy.reference())
    });
    Ok(include_str!("../assets/report.html")
        .replace("{{TITLE}}", &escape(&title))
        .replace("{{SUMMARY}}", &escape(&summary(experiment)))
        .replace("{{TABLE}}", &table)
        .replace("{{NOTE}}", &escape(&note))
        .replace("{{CONFIG}}", &escape(&experiment.to_toml()))
        .replace("{{UPLOT_CSS}}", include_str!("../assets/uPlot.min.css"))
        .replace("{{UPLOT_JS}}", include_str!("../assets/uPlot.iife.min.js"))
        // A closing tag inside the data would end the script.
        .replace("{{DATA}}", &data.to_string().replace("</", "<\\/")))
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

/// A week of power flows before and after: the one with the largest import without learning.
fn week(energy: &dyn Energy, outcomes: &Outcomes) -> Value {
    let (Some(before), Some(after)) = (outcomes.get(energy.before()), outcomes.get(TRAINED)) else {
        return Value::Null;
    };
    let weeks = before.trace.grid_kw.chunks(WEEK_STEPS).filter(|week| week.len() == WEEK_STEPS);
    let imports = weeks.map(|week| week.iter().map(|kw| kw.max(0.0)).sum::<f32>());
    let Some((index, _)) = imports.enumerate().max_by(|a, b| a.1.total_cmp(&b.1)) else { return Value::Null };
    let flows = |outcome: &Outcome| flows(&outcome.trace, index * WEEK_STEPS);
    json!({ "first_step": index * WEEK_STEPS, "before": flows(before), "before_name": energy.before(), "after": flows(after) })
}

fn flows(trace: &Trace, first: usize) -> Value {
    let cut = |series: &[f32]| -> Vec<f64> {
        let end = (first + WEEK_STEPS).min(series.len());
        // Three digits are finer than a pixel and keep the page small.
        series[first.min(end)..end].iter().map(|x| (f64::from(*x) * 1000.0).round() / 1000.0).collect()
    };
    json!({
        "load": cut(&trace.load_kw), "pv": cut(&trace.pv_kw), "battery": cut(&trace.battery_kw),
        "ev": cut(&trace.ev_kw), "grid": cut(&trace.grid_kw), "soc": cut(&trace.soc),
    })
}

fn html_table(energy: &dyn Energy, outcomes: &Outcomes) -> String {
    let mut html = String::from("<table><thead><tr><th></th>");
    for (name, _) in &outcomes.rows {
        html.push_str(&format!("<th>{}</th>", escape(name)));
    }
    html.push_str("</tr></thead><tbody>");
    let Some((_, first)) = outcomes.rows.first() else { return html };
    for (i, figure) in first.figures.iter().enumerate() {
        let ratios = || outcomes.rows.iter().filter_map(|(_, outcome)| outcome.figures[i].ratio);
        let best = match better(figure.name) {
            Some(Ordering::Less) => ratios().reduce(f64::min),
            Some(_) => ratios().reduce(f64::max),
            None => None,
        };
        // Where all are alike there is no best.
        let best = best.filter(|best| ratios().any(|ratio| (ratio - best).abs() > 1e-9));
        html.push_str(&format!("<tr><th>{}</th>", escape(&label(figure.name, energy))));
        for (_, outcome) in &outcomes.rows {
            let figure = &outcome.figures[i];
            let value = figure.value.map(number).unwrap_or_default();
            let ratio = figure.ratio.map(|ratio| format!("{ratio:.4}")).unwrap_or_default();
            let class = if best.is_some() && figure.ratio == best { " class=best" } else { "" };
            html.push_str(&format!("<td{class}>{value}<small>{ratio}</small></td>"));
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table>");
    html
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
