//! The HTML page of a run.

use brasa_env::Curve;
use brasa_train::{RunDir, curve_value};
use serde_json::{Map, Value, json};

use super::SectionContext;
use super::device::DeviceUse;
use super::player::Player;
use super::table::{MARKED, html_table};
use crate::Experiment;
use crate::comparison::{ComparisonResult, Row, TRAINED, counted};
use crate::policy::LoadedPolicy;

/// The helpers of pages: colors, files and tables, then charts, then charts as files.
const PAGE_JS: &str = concat!(
    include_str!("../../assets/page.js"),
    include_str!("../../assets/chart.js"),
    include_str!("../../assets/chart-svg.js")
);
/// Maximum number of points of a learning curve.
pub(super) const CURVE_POINTS: usize = 1000;

/// The page of a run: result, player of an episode, sections of the scenario, learning curves, experiment.
pub(crate) fn page(
    experiment: &Experiment<'_>,
    run_dir: &RunDir,
    metrics: &[Map<String, Value>],
    result: &ComparisonResult,
    player: &Player,
) -> String {
    let scenario = result.scenario.as_deref().unwrap_or(&*experiment.scenario);
    let comparison = &result.comparison;
    let curves = scenario.curves();
    let mut data = json!({ "curve": learning_curve(metrics) });
    data["curves"] = curves.iter().map(|curve| curve_data(curve, metrics, result)).collect();
    let device = DeviceUse::of(metrics, run_dir);
    data["device"] = device.as_ref().map_or(Value::Null, DeviceUse::curves);
    let (mut places, mut styles, mut scripts) = (String::new(), String::new(), String::new());
    if let Some(policy) = &result.policy {
        let context = SectionContext { scenario, played: &result.played, policy };
        for section in &experiment.entry.sections {
            let drawn = (section.data)(&context).unwrap_or_else(|error| {
                tracing::warn!("the report has no section `{}`: {error}", section.name);
                Value::Null
            });
            if drawn.is_null() {
                continue;
            }
            data[section.name] = drawn;
            places.push_str(&format!("<section id=\"{}\"></section>\n", section.name));
            styles.push_str(section.style);
            scripts.push_str(&section.script());
        }
    }
    // After the sections: no one of them takes its name.
    data["episode_player"] = player.data();
    let player_js = match player {
        Player::Clip(_) => concat!("<script>", include_str!("../../assets/player.js"), "</script>\n"),
        _ => "",
    };
    let title = run_dir.path().file_name().map_or("run".into(), |name| name.to_string_lossy().into_owned());
    let has_table = !comparison.figures.is_empty() || comparison.rows.len() > 1;
    let table = if has_table { html_table(comparison) } else { format!("<p>{}</p>", escape(&comparison.to_text())) };
    let note = if has_table { format!("{} {MARKED}", comparison.note) } else { String::new() };
    let evaluated = curves.iter().any(|curve| curve.evaluated.is_some());
    let parts: [(&str, &str); 13] = [
        ("TITLE", &escape(&title)),
        ("SUMMARY", &escape(&summary(experiment))),
        ("TABLE", &table),
        ("NOTE", &escape(&note)),
        ("CONFIG", &escape(&experiment.to_toml())),
        ("EXPORT", &offer(result, run_dir)),
        ("DEVICE", &device.map_or(String::new(), |device| device.to_html())),
        ("CURVE_NOTE", if evaluated { "; the strong line is without exploration" } else { "" }),
        ("PLAYER", &player.to_html(run_dir)),
        ("PLAYER_JS", player_js),
        ("SECTIONS", &places),
        ("SECTION_CSS", &styles),
        ("SECTION_JS", &scripts),
    ];
    filled(include_str!("../../assets/report.html"), &parts, &data)
}

/// How the policy becomes a page of its own, if it can.
fn offer(result: &ComparisonResult, run_dir: &RunDir) -> String {
    let Some(Ok(_)) = result.policy.as_ref().map(LoadedPolicy::exported) else { return String::new() };
    let path = escape(&run_dir.path().display().to_string());
    format!(
        "<p>This policy runs in a browser without a server: <code>brasa export {path} --format html</code>. Other formats: <code>onnx</code>, \
        <code>c</code>, <code>js</code>, <code>safetensors</code>.</p>\n"
    )
}

/// A page from its template: `parts` and the common ones, which are style, chart library, helpers, and the data for its script, take the places
/// `{{NAME}}`. A name within a part, such as that of a run, is no place.
pub(crate) fn filled(template: &str, parts: &[(&str, &str)], data: &Value) -> String {
    // A closing tag inside the data would end the script.
    let data = data.to_string().replace('<', "\\u003c");
    let common = [
        ("PAGE_CSS", include_str!("../../assets/page.css")),
        ("PAGE_JS", PAGE_JS),
        ("UPLOT_CSS", include_str!("../../assets/uPlot.min.css")),
        ("UPLOT_JS", include_str!("../../assets/uPlot.iife.min.js")),
        ("DATA", &data),
    ];
    let mut pieces = template.split("{{");
    let mut page = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let place = piece.split_once("}}").and_then(|(name, rest)| {
            let (_, text) = parts.iter().chain(&common).find(|(known, _)| *known == name)?;
            Some((*text, rest))
        });
        match place {
            Some((text, rest)) => page.extend([text, rest]),
            None => page.extend(["{{", piece]),
        }
    }
    page
}

fn summary(experiment: &Experiment<'_>) -> String {
    let train = &experiment.train;
    format!(
        "{}, {} in {}, seed {}, device {}",
        experiment.algorithm.to_uppercase(),
        counted(train.total_env_steps, "environment step"),
        counted(train.n_envs as u64, "environment"),
        train.seed,
        train.device
    )
}

pub(super) fn metric(line: &Map<String, Value>, name: &str) -> Option<f64> {
    line.get(name).and_then(Value::as_f64)
}

/// Readings with at least one finished episode, reduced to the maximum number of points.
fn readings(metrics: &[Map<String, Value>]) -> impl Iterator<Item = &Map<String, Value>> {
    let points: Vec<_> = metrics.iter().filter(|line| line.contains_key("rollout/ep_rew_mean")).collect();
    let stride = points.len().div_ceil(CURVE_POINTS).max(1);
    points.into_iter().step_by(stride)
}

/// The return over environment steps.
fn learning_curve(metrics: &[Map<String, Value>]) -> Value {
    let points = readings(metrics).map(|line| (metric(line, "env_steps"), metric(line, "rollout/ep_rew_mean")));
    let (steps, returns): (Vec<_>, Vec<_>) = points.unzip();
    json!({ "steps": steps, "return": returns })
}

/// A curve of the scenario, with and without exploration, and horizontal lines.
fn curve_data(curve: &Curve, metrics: &[Map<String, Value>], result: &ComparisonResult) -> Value {
    let values: Vec<Option<f64>> =
        readings(metrics).map(|line| curve_value(curve, |name| metric(line, name))).collect();
    let evaluated = curve.evaluated.as_ref().map(|name| {
        let points = metrics.iter().filter_map(|line| metric(line, "env_steps").zip(metric(line, name)));
        points.unzip::<f64, f64, Vec<_>, Vec<_>>()
    });
    let comparison = &result.comparison;
    let index =
        curve.figure.as_ref().and_then(|name| comparison.figures.iter().position(|figure| figure.name == *name));
    let value = |row: &Row| index.and_then(|i| row.cells[i].value);
    let baselines = comparison.rows.iter().filter(|row| row.kind.is_some());
    let mut levels: Vec<Value> =
        baselines.filter_map(|row| Some(json!({ "name": row.name, "value": value(row)? }))).collect();
    let remarked = result.remark.levels.iter().filter(|(figure, ..)| Some(figure) == curve.figure.as_ref());
    levels.extend(remarked.map(|(_, name, value)| json!({ "name": name, "value": value, "remark": true })));
    let trained = comparison.rows.iter().find(|row| row.name == TRAINED).and_then(value);
    let (evaluated_steps, evaluated) = evaluated.unwrap_or_default();
    json!({
        "label": curve.label, "values": values, "evaluated_steps": evaluated_steps, "evaluated": evaluated,
        "levels": levels, "trained": trained,
    })
}

/// Escapes text for HTML.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_looks_like_a_place_is_text() {
        let parts = [("TITLE", "{{DATA}}{{NOTE}}"), ("NOTE", "{{TITLE}}")];
        let page = filled("<h1>{{TITLE}}</h1>{{NOTE}}<b>{{DATA}}</b>{{x}}{{", &parts, &Value::from("</script>"));
        assert_eq!(page, "<h1>{{DATA}}{{NOTE}}</h1>{{TITLE}}<b>\"\\u003c/script>\"</b>{{x}}{{");
    }
}
