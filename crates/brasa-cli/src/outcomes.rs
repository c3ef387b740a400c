//! What controllers achieved: as a table for people, as JSON for programs.

use brasa::energy::{Control, Outcome};
use brasa::env::Episode;
use serde_json::{Map, Value, json};

use crate::error::CliError;
use crate::scenario::Energy;

/// The policy that was learned, among controllers that do not learn.
pub const TRAINED: &str = "trained";

/// Outcomes by controller, in the order of reports.
pub struct Outcomes {
    pub rows: Vec<(String, Outcome)>,
}

impl Outcomes {
    /// Runs every controller that does not learn.
    pub fn of_rules(scenario: &dyn Energy, seed: u64) -> Result<Self, CliError> {
        let mut rows = Vec::new();
        for name in scenario.controllers() {
            rows.push((name.to_owned(), scenario.evaluate(Control::Rule(name), seed)?));
        }
        Ok(Self { rows })
    }

    /// The outcome of one controller.
    pub fn get(&self, name: &str) -> Option<&Outcome> {
        self.rows.iter().find(|(known, _)| known == name).map(|(_, outcome)| outcome)
    }

    /// `{"controllers": {name: {"return", figures ..., "ratios": {...}, "ledger": {...}}}}`.
    pub fn to_json(&self) -> Map<String, Value> {
        let controllers = self.rows.iter().map(|(name, outcome)| (name.clone(), outcome_json(outcome)));
        Map::from_iter([("controllers".to_owned(), Value::Object(controllers.collect()))])
    }

    /// One row per figure, one column per controller: the absolute figure with its ratio to the reference.
    pub fn to_table(&self, scenario: &dyn Energy) -> String {
        let Some((_, first)) = self.rows.first() else { return String::new() };
        let header: Vec<String> = self.rows.iter().map(|(name, _)| name.clone()).collect();
        let mut lines = vec![(String::new(), header)];
        let returns = self.rows.iter().map(|(_, outcome)| number(outcome.episode_return)).collect();
        lines.push(("return".into(), returns));
        for (i, figure) in first.figures.iter().enumerate() {
            let cells = self.rows.iter().map(|(_, outcome)| {
                let figure = &outcome.figures[i];
                let ratio = figure.ratio.map(|ratio| format!("{ratio:.4}")).unwrap_or_default();
                match figure.value {
                    Some(value) => format!("{} {ratio:>7}", number(value)),
                    None => ratio,
                }
            });
            lines.push((label(figure.name, scenario), cells.collect()));
        }
        format!("{}\nBeside each figure: its ratio to {}.\n", align(&lines), scenario.reference())
    }
}

fn outcome_json(outcome: &Outcome) -> Value {
    let mut object = Map::new();
    object.insert("return".into(), json!(outcome.episode_return));
    for figure in &outcome.figures {
        if let Some(value) = figure.value {
            object.insert(figure.name.into(), json!(value));
        }
    }
    let ratios = outcome.figures.iter().filter_map(|f| Some((f.name.to_owned(), json!(f.ratio?))));
    object.insert("ratios".into(), Value::Object(ratios.collect()));
    object.insert("ledger".into(), json!(outcome.ledger));
    Value::Object(object)
}

/// A figure's name for people: `carbon_kg` becomes `carbon [kg]`.
pub fn label(name: &str, scenario: &dyn Energy) -> String {
    let units = [("_kwh", "kWh"), ("_kw", "kW"), ("_kg", "kg")];
    let unit = units.into_iter().find_map(|(suffix, unit)| Some((name.strip_suffix(suffix)?, unit)));
    match unit {
        Some((stem, unit)) => format!("{} [{unit}]", stem.replace('_', " ")),
        None if name == "cost" => format!("cost [{}]", scenario.currency()),
        None => name.replace('_', " "),
    }
}

/// Whether more of a figure is better, less is, or neither.
pub fn better(name: &str) -> Option<std::cmp::Ordering> {
    match name {
        "ev_delivered_kwh" | "self_sufficiency" | "self_consumption" => Some(std::cmp::Ordering::Greater),
        "battery_out_kwh" | "grid_export_kwh" | "net_kwh" | "net_building_mean" => None,
        _ => Some(std::cmp::Ordering::Less),
    }
}

/// Mean and spread of evaluation episodes, for scenarios that have only a return.
pub fn episodes_json(episodes: &[Episode]) -> Map<String, Value> {
    let (mean, spread) = mean_and_spread(episodes);
    let length = episodes.iter().map(|e| e.length as f64).sum::<f64>() / episodes.len() as f64;
    let trained = json!({ "return": mean, "return_std": spread, "length": length, "episodes": episodes.len() });
    Map::from_iter([("controllers".to_owned(), json!({ TRAINED: trained }))])
}

/// The same for a person.
pub fn episodes_text(episodes: &[Episode]) -> String {
    let (mean, spread) = mean_and_spread(episodes);
    format!("return {mean:.1} +- {spread:.1} over {} episodes\n", episodes.len())
}

fn mean_and_spread(episodes: &[Episode]) -> (f64, f64) {
    let n = episodes.len() as f64;
    let mean = episodes.iter().map(|e| e.episode_return).sum::<f64>() / n;
    let variance = episodes.iter().map(|e| (e.episode_return - mean).powi(2)).sum::<f64>() / n;
    (mean, variance.sqrt())
}

/// A number with as many digits as a reader compares, thousands apart.
pub fn number(value: f64) -> String {
    let decimals = match value.abs() {
        x if x >= 1000.0 => 0,
        x if x >= 10.0 => 1,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    let (sign, digits) = text.strip_prefix('-').map_or(("", text.as_str()), |digits| ("-", digits));
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(a, b)| (a, Some(b)));
    let mut grouped = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    match fraction {
        Some(fraction) => format!("{sign}{grouped}.{fraction}"),
        None => format!("{sign}{grouped}"),
    }
}

/// First column to the left, the others to the right.
fn align(lines: &[(String, Vec<String>)]) -> String {
    let n_columns = lines.iter().map(|(_, cells)| cells.len()).max().unwrap_or(0);
    let first = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let width = |column: usize| lines.iter().filter_map(|(_, cells)| cells.get(column)).map(String::len).max();
    let widths: Vec<usize> = (0..n_columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for (i, (name, cells)) in lines.iter().enumerate() {
        let mut line = format!("{name:<first$}");
        for (cell, width) in cells.iter().zip(&widths) {
            line.push_str(&format!("   {cell:>width$}"));
        }
        text.push_str(line.trim_end());
        text.push('\n');
        if i == 0 {
            text.push_str(&"-".repeat(first + widths.iter().map(|width| width + 3).sum::<usize>()));
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_rounded() {
        for (value, text) in [
            (1234567.8, "1,234,568"),
            (-29272.373, "-29,272"),
            (43.84, "43.8"),
            (0.90531, "0.905"),
            (999.96, "1,000.0"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn columns_line_up() {
        let lines = vec![
            (String::new(), vec!["idle".into(), "trained".into()]),
            ("cost".into(), vec!["1".into(), "12".into()]),
        ];
        assert_eq!(align(&lines), "       idle   trained\n---------------------\ncost      1        12\n");
    }
}
