//! What controllers achieved: as a table for people, as JSON for programs.

use std::cmp::Ordering;

use brasa::env::Episode;
use serde_json::{Map, Value, json};

/// The policy that was learned, among controllers that do not learn.
pub const TRAINED: &str = "trained";

/// What every controller achieved, in the order of reports.
#[derive(Debug, Default)]
pub struct Comparison {
    pub rows: Vec<Row>,
    /// What the small numbers are, in a sentence.
    pub note: String,
    /// What a report draws, by the name of its section.
    pub pictures: Map<String, Value>,
}

/// What one controller achieved.
#[derive(Debug)]
pub struct Row {
    pub name: String,
    pub episode_return: f64,
    /// The same figures in the same order for every controller.
    pub figures: Vec<Figure>,
    /// What else a program may want to know.
    pub details: Map<String, Value>,
}

/// One figure.
#[derive(Debug)]
pub struct Figure {
    /// Its name for programs, with its unit.
    pub name: &'static str,
    /// Its name for people.
    pub label: String,
    /// `None` where only the ratio has a meaning.
    pub value: Option<f64>,
    /// Against the reference of the scenario.
    pub ratio: Option<f64>,
    /// Whether more is better, less is, or neither.
    pub better: Option<Ordering>,
}

impl Comparison {
    /// `{"controllers": {name: {"return", figures ..., "ratios": {...}, details ...}}}`.
    pub fn to_json(&self) -> Map<String, Value> {
        let controllers = self.rows.iter().map(|row| (row.name.clone(), row.to_json()));
        Map::from_iter([("controllers".to_owned(), Value::Object(controllers.collect()))])
    }

    /// One row per figure, one column per controller: the absolute figure with its ratio to the reference.
    pub fn to_table(&self) -> String {
        let Some(first) = self.rows.first() else { return String::new() };
        let mut lines = vec![(String::new(), self.rows.iter().map(|row| row.name.clone()).collect())];
        lines.push(("return".into(), self.rows.iter().map(|row| number(row.episode_return)).collect()));
        let has_ratio = |i: usize| self.rows.iter().any(|row| row.figures[i].ratio.is_some());
        for (i, figure) in first.figures.iter().enumerate() {
            let cells = self.rows.iter().map(|row| {
                let figure = &row.figures[i];
                let ratio = figure.ratio.map(|ratio| format!("{ratio:.4}")).unwrap_or_default();
                match figure.value {
                    Some(value) if has_ratio(i) => format!("{} {ratio:>7}", number(value)),
                    Some(value) => number(value),
                    None => ratio,
                }
            });
            lines.push((figure.label.clone(), cells.collect()));
        }
        format!("{}\n{}\n", align(&lines), self.note)
    }
}

impl Row {
    fn to_json(&self) -> Value {
        let mut object = Map::new();
        object.insert("return".into(), json!(self.episode_return));
        for figure in &self.figures {
            if let Some(value) = figure.value {
                object.insert(figure.name.into(), json!(value));
            }
        }
        let ratios = self.figures.iter().filter_map(|f| Some((f.name.to_owned(), json!(f.ratio?))));
        object.insert("ratios".into(), Value::Object(ratios.collect()));
        object.extend(self.details.clone());
        Value::Object(object)
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
