//! The page of a search: `search.html`, a single file.

use brasa_env::Better;
use serde_json::{Value, json};

use super::config::{Metric, SearchConfig};
use super::record::{Record, State, Trial};
use super::space::{Space, text};
use crate::compare::{Summary, html_table};
use crate::comparison::{counted, number};
use crate::report::{boxed, escape, filled};
use crate::tpe::Domain;

/// What a page is about.
pub(crate) struct Page<'a> {
    pub title: &'a str,
    pub scenario: &'a str,
    pub algorithm: &'a str,
    pub config: &'a SearchConfig,
}

/// The page with the history, the settings of all trials, their importance and a table.
pub(crate) fn page(
    of: &Page<'_>,
    space: &Space,
    metric: &Metric,
    record: &Record,
    summary: Option<&Summary>,
) -> String {
    let importance = record.importance(space);
    let dimension = |(i, dimension): (usize, &super::space::Dimension)| {
        let (low, high, log) = match dimension.domain {
            Domain::Interval { low, high, log } | Domain::Grid { low, high, log, .. } => (low, high, log),
            Domain::Choices(n) => (0.0, n as f64 - 1.0, false),
        };
        json!({
            "key": dimension.key, "low": low, "high": high, "log": log, "choices": dimension.labels(), "importance": importance[i],
        })
    };
    let trial = |trial: &Trial| {
        json!({
            "number": trial.number, "state": trial.state.name(), "value": trial.value, "point": trial.point,
            "evaluations": trial.evaluations,
        })
    };
    let best = record.best();
    let data = json!({
        "metric": metric.name, "more": metric.better == Better::More, "best": best.map(|trial| trial.number),
        "space": space.0.iter().enumerate().map(dimension).collect::<Vec<Value>>(),
        "trials": record.trials.iter().map(trial).collect::<Vec<Value>>(),
    });
    let parts: [(&str, &str); 6] = [
        ("TITLE", &escape(of.title)),
        ("SUMMARY", &escape(&about(of, metric, record))),
        ("BEST", &best.map_or(String::new(), |best| about_best(of, space, metric, best))),
        ("RESULT", &summary.map_or(String::new(), |summary| result(of, summary))),
        ("TABLE", &table(space, metric, record)),
        ("SEARCH_JS", include_str!("../../assets/search.js")),
    ];
    filled(include_str!("../../assets/search.html"), &parts, &data)
}

fn about(of: &Page<'_>, metric: &Metric, record: &Record) -> String {
    let Page { scenario, algorithm, config, .. } = of;
    let secs = record.trials.iter().map(|trial| trial.secs).sum::<f64>();
    let direction = if metric.better == Better::More { "more is better" } else { "less is better" };
    format!(
        "{} on {scenario}: {} of {}, {} complete, {} pruned, {} failed, {:.0} s of training; metric {} ({direction})",
        algorithm.to_uppercase(),
        record.trials.len() - record.count(State::Running),
        counted(config.trials, "trial"),
        record.count(State::Complete),
        record.count(State::Pruned),
        record.count(State::Failed),
        secs,
        metric.name
    )
}

/// The best settings.
fn about_best(of: &Page<'_>, space: &Space, metric: &Metric, best: &Trial) -> String {
    let value = best.reached(of.config);
    let settings = if best.set.is_empty() {
        "the settings of the experiment".to_owned()
    } else {
        let setting =
            |(key, value): (&str, toml::Value)| format!("<code>{} = {}</code>", escape(key), escape(&text(&value)));
        space.settings(&best.point).map(setting).collect::<Vec<_>>().join(", ")
    };
    format!(
        "<p>Best: trial {} with {} {value}: {settings}. The config is <code>best.toml</code>.</p>\n",
        best.number,
        escape(&metric.name)
    )
}

/// The comparison with the experiment.
fn result(of: &Page<'_>, summary: &Summary) -> String {
    format!(
        "<p>The experiment (base) and the best trial, trained with {}, which no trial had.</p>\n{}<p>{}</p>\n",
        of.config.unseen_in_words(),
        html_table(summary),
        escape(&summary.note.replace("+-:", "±:"))
    )
}

/// All trials, a row each.
fn table(space: &Space, metric: &Metric, record: &Record) -> String {
    let head = ["trial".to_owned(), "state".to_owned(), metric.name.clone()].into_iter();
    let head = head.chain(space.0.iter().map(|dimension| dimension.key.clone())).chain(["seconds".to_owned()]);
    let head: String = head.map(|name| format!("<th scope=\"col\">{}</th>", escape(&name))).collect();
    let best = record.best().map(|trial| trial.number);
    let row = |trial: &Trial| {
        let is_best = Some(trial.number) == best;
        let mark = if is_best { "<span class=\"sr\">best</span>" } else { "" };
        let class = if is_best { " class=best" } else { "" };
        let settings: Vec<String> = match (trial.point.is_empty(), trial.set.is_empty()) {
            (true, _) => vec!["of the experiment".to_owned(); space.0.len()],
            (false, _) => space.settings(&trial.point).map(|(_, value)| shown(&value)).collect(),
        };
        let settings: String = settings.iter().map(|value| format!("<td>{}</td>", escape(value))).collect();
        let state = match &trial.reason {
            Some(reason) => format!("<td title=\"{}\">{}</td>", escape(reason), trial.state.name()),
            None => format!("<td>{}</td>", trial.state.name()),
        };
        let in_final = trial.final_value.map(|value| format!(" (final {})", number(value)));
        let value = trial.value.map_or_else(String::new, number) + &in_final.unwrap_or_default();
        format!(
            "<tr><th scope=\"row\">{}</th>{state}<td{class}>{mark}{value}</td>{settings}<td>{:.1}</td></tr>",
            trial.number, trial.secs
        )
    };
    let rows: String = record.trials.iter().map(row).collect();
    boxed("trials", &format!("<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"), "")
}

fn shown(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        value => text(value),
    }
}
