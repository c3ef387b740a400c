//! Energy scenarios beside their rules: a year of each controller.

use std::cmp::Ordering;

use brasa::energy::citylearn::CityLearn;
use brasa::energy::iquitos::Iquitos;
use brasa::energy::{Control, EnergyScenario, Outcome, Trace};
use ndarray::{ArrayView2, ArrayViewMut2};
use serde_json::{Map, Value, json};

use crate::comparison::{Comparison, Figure, Row, TRAINED};
use crate::error::CliError;
use crate::eval::Trained;
use crate::scenario::Yardsticks;

/// Steps of the power flows that are shown: a week of hours.
const WEEK_STEPS: usize = 168;

/// What the command says about an energy scenario.
trait Energy: EnergyScenario {
    /// What ratios are relative to.
    const REFERENCE: &'static str;
    /// The controller whose power flows are shown beside the trained ones.
    const BEFORE: &'static str;
    /// What `cost` is counted in.
    fn currency(&self) -> &str;
}

impl Energy for CityLearn {
    const REFERENCE: &'static str = "the same district without storage";
    const BEFORE: &'static str = "idle";
    fn currency(&self) -> &str {
        "$"
    }
}

impl Energy for Iquitos {
    const REFERENCE: &'static str = "uncontrolled charging with an idle battery";
    const BEFORE: &'static str = "uncontrolled";
    fn currency(&self) -> &str {
        Iquitos::currency(self)
    }
}

impl<S: Energy> Yardsticks for S {
    fn compare(&self, trained: Option<&Trained<'_>>, seed: u64, episodes: Option<u64>) -> Result<Comparison, CliError> {
        let mut outcomes = Vec::new();
        for name in self.controllers() {
            outcomes.push((name, self.evaluate(Control::Rule(name), seed)?));
        }
        let mut returns = Vec::new();
        if let Some(trained) = trained {
            let outcome = year(self, trained, seed)?;
            returns.push(outcome.episode_return);
            for episode in 1..episodes.unwrap_or(1) {
                returns.push(year(self, trained, seed + episode)?.episode_return);
            }
            outcomes.push((TRAINED, outcome));
        }
        let mut note = format!("Beside each figure: its ratio to {}.", S::REFERENCE);
        if returns.len() > 1 {
            let mean = returns.iter().sum::<f64>() / returns.len() as f64;
            note +=
                &format!("\nReturn of the trained policy over {} episodes, one seed each: {mean:.1}.", returns.len());
        }
        let rows = outcomes.iter().map(|(name, outcome)| {
            let figures = outcome.figures.iter().map(|figure| Figure {
                name: figure.name,
                label: label(figure.name, self.currency()),
                value: figure.value,
                ratio: figure.ratio,
                better: better(figure.name),
            });
            let mut details = Map::from_iter([("ledger".to_owned(), json!(outcome.ledger))]);
            if *name == TRAINED {
                details.insert("returns".into(), json!(returns));
            }
            Row {
                name: (*name).to_owned(),
                episode_return: outcome.episode_return,
                figures: figures.collect(),
                details,
            }
        });
        let pictures = Map::from_iter([("week".to_owned(), week(S::BEFORE, &outcomes))]);
        Ok(Comparison { rows: rows.collect(), note, pictures })
    }
}

/// One whole episode of a policy.
fn year<S: Energy>(scenario: &S, trained: &Trained<'_>, seed: u64) -> Result<Outcome, CliError> {
    let mut act = |obs: ArrayView2<f32>, mut actions: ArrayViewMut2<f32>| actions.assign(&trained.act(obs, None));
    Ok(scenario.evaluate(Control::Policy(&mut act), seed)?)
}

/// A figure's name for people: `carbon_kg` becomes `carbon [kg]`.
fn label(name: &str, currency: &str) -> String {
    let units = [("_kwh", "kWh"), ("_kw", "kW"), ("_kg", "kg")];
    let unit = units.into_iter().find_map(|(suffix, unit)| Some((name.strip_suffix(suffix)?, unit)));
    match unit {
        Some((stem, unit)) => format!("{} [{unit}]", stem.replace('_', " ")),
        None if name == "cost" => format!("cost [{currency}]"),
        None => name.replace('_', " "),
    }
}

/// Whether more of a figure is better, less is, or neither.
fn better(name: &str) -> Option<Ordering> {
    match name {
        "ev_delivered_kwh" | "self_sufficiency" | "self_consumption" => Some(Ordering::Greater),
        "battery_out_kwh" | "grid_export_kwh" | "net_kwh" | "net_building_mean" => None,
        _ => Some(Ordering::Less),
    }
}

/// A week of power flows before and after: the one with the largest import without learning.
fn week(before: &str, outcomes: &[(&str, Outcome)]) -> Value {
    let trace = |name: &str| outcomes.iter().find(|(known, _)| *known == name).map(|(_, outcome)| &outcome.trace);
    let (Some(first), Some(after)) = (trace(before), trace(TRAINED)) else { return Value::Null };
    let weeks = first.grid_kw.chunks(WEEK_STEPS).filter(|week| week.len() == WEEK_STEPS);
    let imports = weeks.map(|week| week.iter().map(|kw| kw.max(0.0)).sum::<f32>());
    let Some((index, _)) = imports.enumerate().max_by(|a, b| a.1.total_cmp(&b.1)) else { return Value::Null };
    let flows = |trace: &Trace| flows(trace, index * WEEK_STEPS);
    json!({
        "first_step": index * WEEK_STEPS, "before": flows(first), "before_name": before, "after": flows(after),
    })
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
