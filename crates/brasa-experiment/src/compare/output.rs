//! Output of a comparison of groups: a table, JSON, CSV.

use brasa_env::BaselineKind;
use serde_json::{Map, Value, json};

use super::summary::{Of, Quantity, Statistics, Summary};
use crate::comparison::{align, number, signed};
use crate::exposure::Exposure;
use crate::timeline::Session;

/// Formats a number in the unit of a quantity.
pub(super) fn shown(quantity: &Quantity, value: f64) -> String {
    match quantity.of {
        of if of.is_ratio() => format!("{value:.4}"),
        Of::DifferenceBesideValue => signed(value),
        _ => number(value),
    }
}

fn p_value(p: f64) -> String {
    if p < 1e-4 { "<0.0001".into() } else { format!("{p:.4}") }
}

/// A line below the line of a quantity. It is omitted if no group has a value.
type Detail = (String, fn(&Quantity, &Statistics) -> Option<String>);

/// The lines below the mean. A ratio or difference below its value has none, because they would repeat those of the value.
pub(super) fn details(quantity: &Quantity, first: &str) -> Vec<(String, Vec<Option<String>>)> {
    let iqm: Detail = ("  IQM".into(), |quantity, statistics| {
        let shown = |value| shown(quantity, value);
        let n = statistics.n_runs();
        let interval = statistics.iqm_over_runs;
        let interval = interval.map(|(low, high)| format!(" [{}, {}] (n={n})", shown(low), shown(high)));
        Some(format!("{}{}", shown(statistics.iqm?), interval.unwrap_or_default()))
    });
    let p: Detail = (format!("  p against {first}"), |_, statistics| {
        // With one pair the p-value is always 1.
        let test = statistics.paired.filter(|test| test.n_pairs > 1)?;
        Some(p_value(test.p_value))
    });
    let improvement: Detail =
        (format!("  P(better than {first})"), |_, statistics| Some(format!("{:.3}", statistics.improvement?)));
    if quantity.of.is_beside_value() {
        return Vec::new();
    }
    let line = |(label, cell): Detail| {
        let cells: Vec<_> = quantity.groups.iter().map(|statistics| cell(quantity, statistics)).collect();
        (label, cells)
    };
    [iqm, p, improvement].map(line).into_iter().filter(|(_, cells)| cells.iter().any(Option::is_some)).collect()
}

/// The mean of a group and the half-width of its interval.
pub(super) fn mean_cell(quantity: &Quantity, statistics: &Statistics) -> String {
    let Some(mean) = statistics.mean else { return String::new() };
    let unsigned = |value| shown(quantity, value).trim_start_matches('+').to_owned();
    let n = statistics.n_runs();
    let half_width = mean.half_width.map(|half| format!(" +- {} (n={n})", unsigned(half))).unwrap_or_default();
    format!("{}{half_width}", shown(quantity, mean.mean))
}

/// The table: a column per group, then a column per baseline.
pub(crate) fn to_text(summary: &Summary) -> String {
    let seeds = |n: usize| if n == 1 { "1 seed".to_owned() } else { format!("{n} seeds") };
    let names = summary.participants.iter().map(|group| group.name.clone());
    let kinds = summary.participants.iter().map(|group| seeds(group.seeds.len()));
    let baseline_names = summary.baselines.iter().map(|(name, _)| name.clone());
    let baseline_kinds = summary.baselines.iter().map(|(_, kind)| kind.map_or("", BaselineKind::name).to_owned());
    let mut lines = vec![
        (String::new(), names.chain(baseline_names).collect::<Vec<_>>()),
        (String::new(), kinds.chain(baseline_kinds).collect()),
    ];
    for quantity in &summary.quantities {
        let groups = quantity.groups.iter().map(|statistics| mean_cell(quantity, statistics));
        let shown = |value: &Option<f64>| value.map(|value| shown(quantity, value)).unwrap_or_default();
        lines.push((quantity.label.clone(), groups.chain(quantity.baselines.iter().map(shown)).collect()));
        let details = details(quantity, &summary.participants[0].name);
        lines.extend(
            details
                .into_iter()
                .map(|(label, cells)| (label, cells.into_iter().map(Option::unwrap_or_default).collect())),
        );
    }
    format!("{}\n{}\n{}", align(&lines), summary.note, timeline(summary))
}

/// When each run was trained, in the order of their starts; empty without a record.
fn timeline(summary: &Summary) -> String {
    let mut lines = Vec::new();
    for group in &summary.participants {
        for (seed, sessions) in group.seeds.iter().zip(&group.sessions) {
            let line = |session: &Session| {
                (session.start.clone(), format!("  {} seed {seed}: {}", group.name, session.text()))
            };
            lines.extend(sessions.iter().map(line));
        }
    }
    // Runs that started in the same second keep the order of their groups.
    lines.sort_by(|(a, _), (b, _)| a.cmp(b));
    let lines: String = lines.into_iter().map(|(_, line)| format!("{line}\n")).collect();
    if lines.is_empty() { lines } else { format!("\nTimeline of the training\n{lines}") }
}

/// The result as JSON, with unrounded numbers.
pub(crate) fn to_json(summary: &Summary) -> Map<String, Value> {
    let statistics = |statistics: &Statistics| {
        let interval = |of: Option<(f64, f64)>| of.map(|(low, high)| [low, high]);
        json!({
            "mean": statistics.mean.map(|mean| mean.mean),
            "half_width": statistics.mean.and_then(|mean| mean.half_width),
            "n_runs": statistics.n_runs(),
            "run_means": statistics.run_means,
            "iqm": statistics.iqm,
            "iqm_interval": interval(statistics.iqm_over_runs),
            "iqm_interval_in_episodes": interval(statistics.iqm_in_episodes),
            "difference": statistics.paired.map(|test| test.difference),
            "p_value": statistics.paired.map(|test| test.p_value),
            "n_pairs": statistics.paired.map(|test| test.n_pairs),
            "probability_of_improvement": statistics.improvement,
            "n_missing": statistics.n_missing(),
        })
    };
    let mut groups = Map::new();
    for (i, group) in summary.participants.iter().enumerate() {
        let named = summary.quantities.iter().map(|quantity| (quantity.name.clone(), statistics(&quantity.groups[i])));
        let named: Map<String, Value> = named.collect();
        groups.insert(
            group.name.clone(),
            json!({ "seeds": group.seeds, "run_dirs": group.run_dirs, "sessions": group.sessions, "statistics": named }),
        );
    }
    let mut baselines = Map::new();
    for (i, (name, kind)) in summary.baselines.iter().enumerate() {
        let means = summary.quantities.iter().filter_map(|quantity| Some((quantity, quantity.baselines[i]?)));
        let mut object: Map<String, Value> =
            means.map(|(quantity, mean)| (quantity.name.clone(), json!(mean))).collect();
        object.insert("kind".into(), json!(kind.map(BaselineKind::name)));
        baselines.insert(name.clone(), Value::Object(object));
    }
    Map::from_iter([
        ("scenario".to_owned(), json!(summary.scenario)),
        ("n_episodes".to_owned(), json!(summary.n_episodes)),
        ("training_data".to_owned(), json!(summary.exposure.map(Exposure::name))),
        ("eval_seed".to_owned(), json!(summary.eval_seed)),
        ("against".to_owned(), json!(summary.participants[0].name)),
        ("groups".to_owned(), Value::Object(groups)),
        ("baselines".to_owned(), Value::Object(baselines)),
    ])
}

/// CSV with one line per group, seed and episode. An empty field is a missing value.
pub(crate) fn to_csv(summary: &Summary) -> String {
    let mut csv = String::from("group,seed,episode,length");
    let quantities = || summary.quantities.iter().filter(|quantity| !quantity.of.is_beside_value());
    for quantity in quantities() {
        csv.push(',');
        csv.push_str(&field(&quantity.name));
    }
    csv.push('\n');
    for (i, group) in summary.participants.iter().enumerate() {
        for (run, (seed, played)) in group.seeds.iter().zip(&group.runs).enumerate() {
            for (episode, outcome) in played.outcomes.iter().enumerate() {
                csv.push_str(&format!("{},{seed},{episode},{}", field(&group.name), outcome.length));
                for quantity in quantities() {
                    let value = quantity.groups[i].episodes[run][episode];
                    csv.push_str(&value.map(|value| format!(",{value}")).unwrap_or_else(|| ",".into()));
                }
                csv.push('\n');
            }
        }
    }
    csv
}

/// Quotes a field as in RFC 4180.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}
