//! The page of a comparison of groups: `compare.html`, a single file.

use std::path::PathBuf;

use brasa_env::{BaselineKind, Better};
use serde_json::{Value, json};

use super::output::{details, mean_cell, shown};
use super::summary::Quantity;
use super::{GroupCurves, Groups, Summary};
use crate::report::{boxed, escape, filled};
use crate::timeline::Session;

/// The page with the learning curves of all groups and the table.
pub(crate) fn page(summary: &Summary, curves: &[GroupCurves], groups: &Groups<'_>) -> String {
    let group = |(i, curves): (usize, &GroupCurves)| -> Value {
        json!({ "name": summary.participants[i].name, "n_seeds": summary.participants[i].seeds.len(), "curves": curves.to_json() })
    };
    let data = json!({
        "groups": curves.iter().enumerate().map(group).collect::<Vec<_>>(),
        "figures": summary.quantities.iter().filter_map(figure).collect::<Vec<_>>(),
        "baselines": summary.baselines.iter().map(|(name, kind)| json!({ "name": name, "kind": kind.map(BaselineKind::name) })).collect::<Vec<_>>(),
    });
    let names: Vec<&str> = summary.participants.iter().map(|group| group.name.as_str()).collect();
    let note = format!("{} Color marks the best group of each row.", summary.note.replace("+-:", "±:"));
    let parts: [(&str, &str); 6] = [
        ("TITLE", &escape(&names.join(", "))),
        ("SUMMARY", &escape(&about(summary, groups))),
        ("TABLE", &html_table(summary)),
        ("RUNS", &runs(summary)),
        ("TRADE_OFF_JS", include_str!("../../assets/trade-off.js")),
        ("NOTE", &escape(&note)),
    ];
    filled(include_str!("../../assets/compare.html"), &parts, &data)
}

/// The means of a figure with a better direction, for the chart of two figures.
fn figure(quantity: &Quantity) -> Option<Value> {
    let better = quantity.better.filter(|_| !quantity.of.is_beside_value())?;
    let groups: Vec<_> = quantity.groups.iter().map(|group| group.mean.map(|mean| mean.mean)).collect();
    let runs: Vec<_> = quantity.groups.iter().map(|group| &group.run_means).collect();
    Some(json!({
        "label": quantity.label.trim(), "more": better == Better::More, "groups": groups, "runs": runs, "baselines": quantity.baselines,
    }))
}

fn about(summary: &Summary, groups: &Groups<'_>) -> String {
    let n_runs: usize = groups.groups.iter().map(|group| group.members.len()).sum();
    let count = |n: u64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    format!(
        "Scenario {}, {} in {}, {} of seed {} for every run",
        summary.scenario,
        count(n_runs as u64, "run"),
        count(groups.groups.len() as u64, "group"),
        count(summary.n_episodes, "evaluation episode"),
        summary.eval_seed
    )
}

/// The table: a column for each group and baseline.
pub(crate) fn html_table(summary: &Summary) -> String {
    let mut html = String::from("<table><thead><tr><th scope=\"col\">group</th>");
    for (i, group) in summary.participants.iter().enumerate() {
        let (n, s) = (group.seeds.len(), if group.seeds.len() == 1 { "" } else { "s" });
        html.push_str(&format!(
            "<th scope=\"col\"><i class=swatch data-group={i}></i>{}<small>{n} seed{s}</small></th>",
            escape(&group.name)
        ));
    }
    for (name, kind) in &summary.baselines {
        let kind = kind.map_or("", BaselineKind::name);
        html.push_str(&format!("<th scope=\"col\">{}<small>{kind}</small></th>", escape(name)));
    }
    html.push_str("</tr></thead><tbody>");
    for quantity in &summary.quantities {
        let means: Vec<Option<f64>> =
            quantity.groups.iter().map(|statistics| statistics.mean.map(|mean| mean.mean)).collect();
        let best = quantity.better.filter(|_| means.len() > 1 && !quantity.of.is_beside_value()).and_then(|better| {
            let means = || means.iter().copied().flatten();
            let best = if better == Better::More { means().reduce(f64::max) } else { means().reduce(f64::min) };
            best.filter(|best| means().any(|mean| shown(quantity, mean) != shown(quantity, *best)))
        });
        let class = if quantity.of.is_beside_value() { "mean beside" } else { "mean" };
        html.push_str(&format!("<tr class=\"{class}\"><th scope=\"row\">{}</th>", escape(quantity.label.trim())));
        for (statistics, mean) in quantity.groups.iter().zip(&means) {
            // Means that read alike are alike: a tie has all marks.
            let is_best = best.zip(*mean).is_some_and(|(best, mean)| shown(quantity, mean) == shown(quantity, best));
            let class = if is_best { " class=best" } else { "" };
            let mark = if is_best { "<span class=\"sr\">best</span>" } else { "" };
            let cell = mean_cell(quantity, statistics).replace("+-", "±");
            html.push_str(&format!("<td{class}>{mark}{cell}</td>"));
        }
        for value in &quantity.baselines {
            html.push_str(&format!("<td>{}</td>", value.map(|value| shown(quantity, value)).unwrap_or_default()));
        }
        html.push_str("</tr>");
        for (label, cells) in details(quantity, &summary.participants[0].name) {
            html.push_str(&format!("<tr class=detail><th scope=\"row\">{}</th>", escape(label.trim())));
            for cell in &cells {
                html.push_str(&format!("<td>{}</td>", escape(cell.as_deref().unwrap_or(""))));
            }
            html.push_str(&"<td></td>".repeat(quantity.baselines.len()));
            html.push_str("</tr>");
        }
    }
    html.push_str("</tbody></table>");
    boxed("comparison", &html, "")
}

/// A list of the run directories of each group.
fn runs(summary: &Summary) -> String {
    let group = |group: &super::Participant| {
        let runs = group.seeds.iter().zip(&group.run_dirs).zip(&group.sessions);
        let run = |((seed, dir), sessions): ((&u64, &PathBuf), &Vec<Session>)| {
            let sessions: String = sessions.iter().map(|session| format!("\n    {}", session.text())).collect();
            format!("  seed {seed}: {}{sessions}", dir.display())
        };
        let runs: Vec<String> = runs.map(run).collect();
        format!("{}\n{}\n", group.name, runs.join("\n"))
    };
    escape(&summary.participants.iter().map(group).collect::<String>())
}
