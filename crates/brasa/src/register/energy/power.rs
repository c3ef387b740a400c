//! The section `power` of reports: a week of power flows, the year by hour and day, load duration, and who charged when, for the
//! policy and every baseline.

use brasa_energy::Trace;
use brasa_experiment::{Section, SectionContext};
use serde_json::{Value, json};

/// Length of the power flows by step.
const WEEK_HOURS: f64 = 168.0;
/// Points of a load duration curve.
const DURATION_POINTS: usize = 300;
/// A value that is missing in a quantised series; the others are 0 to 254.
const MISSING: &str = "ff";

/// The section, which at first compares the policy with the baseline `reference`. Its week is that of the reference's largest import.
pub fn section(reference: &'static str) -> Section {
    Section::new("power")
        .style(include_str!("../../../reports/energy/power.css"))
        .scripts(&[include_str!("../../../reports/energy/heat.js"), include_str!("../../../reports/energy/power.js")])
        .data(move |context| Ok(data(reference, context)))
}

/// An episode of the policy or a baseline.
struct Episode<'a> {
    name: &'a str,
    is_policy: bool,
    trace: &'a Trace,
}

fn data(reference: &str, context: &SectionContext<'_>) -> Value {
    let episodes: Vec<Episode<'_>> = context
        .played
        .iter()
        .filter_map(|played| {
            let trace = played.outcomes.first()?.trace.as_ref()?.downcast_ref::<Trace>()?;
            Some(Episode { name: &played.name, is_policy: played.kind.is_none(), trace })
        })
        .collect();
    let found = episodes.iter().find(|episode| episode.name == reference).or(episodes.first());
    let (Some(first), true) = (found, episodes.iter().any(|episode| episode.is_policy)) else { return Value::Null };
    let Trace { step_hours, start, grid_limit_kw, ev_limit_kw, sockets, .. } = first.trace;
    let n_steps = first.trace.grid_kw.len();
    let week = ((WEEK_HOURS / step_hours).round() as usize).clamp(1, n_steps.max(1));
    let window = largest_import(&first.trace.grid_kw, week);
    let peak_kw = extreme(episodes.iter().flat_map(|episode| &episode.trace.grid_kw));
    let socket_kw = extreme(episodes.iter().flat_map(|episode| episode.trace.socket_kw.iter().flatten()));
    let shown: Vec<Value> = episodes.iter().map(|episode| shown(episode, window.clone(), peak_kw, socket_kw)).collect();
    json!({
        "reference": first.name, "step_hours": step_hours, "start": start,
        "n_steps": n_steps, "first_step": window.start, "grid_steps": window.len(),
        "grid_limit": grid_limit_kw, "ev_limit": ev_limit_kw, "sockets": sockets, "grid_peak": peak_kw,
        "socket_peak": socket_kw, "episodes": shown,
    })
}

/// The window of `length` steps with the largest import, at a multiple of its length.
fn largest_import(grid_kw: &[f32], length: usize) -> std::ops::Range<usize> {
    let imports = grid_kw.chunks_exact(length).map(|steps| steps.iter().map(|kw| kw.max(0.0)).sum::<f32>());
    let index = imports.enumerate().max_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(index, _)| index);
    index * length..((index + 1) * length).min(grid_kw.len())
}

/// The largest magnitude.
fn extreme<'a>(values: impl Iterator<Item = &'a f32>) -> f64 {
    f64::from(values.filter(|kw| kw.is_finite()).fold(0.0_f32, |most, kw| most.max(kw.abs())))
}

fn shown(episode: &Episode<'_>, window: std::ops::Range<usize>, peak_kw: f64, socket_kw: f64) -> Value {
    let trace = episode.trace;
    // Three digits are more precise than a pixel and keep the page small.
    let cut = |series: &[f32]| -> Vec<f64> {
        series.get(window.clone()).unwrap_or_default().iter().map(|x| (f64::from(*x) * 1e3).round() / 1e3).collect()
    };
    let n_sockets = trace.sockets.len();
    let at_sockets = trace.socket_kw.get(window.start * n_sockets..window.end * n_sockets).unwrap_or_default();
    json!({
        "name": episode.name, "is_policy": episode.is_policy,
        "load": cut(&trace.load_kw), "pv": cut(&trace.pv_kw), "battery": cut(&trace.battery_kw),
        "ev": cut(&trace.ev_kw), "grid": cut(&trace.grid_kw), "soc": cut(&trace.soc),
        "grid_by_hour": quantised(by_hour(&trace.grid_kw, trace.step_hours), -peak_kw, peak_kw),
        "soc_by_hour": quantised(by_hour(&trace.soc, trace.step_hours), 0.0, 1.0),
        "grid_duration": duration(&trace.grid_kw), "ev_duration": duration(&trace.ev_kw),
        "at_sockets": quantised(at_sockets.iter().map(|kw| kw.unwrap_or(f32::NAN)), -socket_kw, socket_kw),
    })
}

/// Means by hour; a step of an hour or more counts once.
fn by_hour(series: &[f32], step_hours: f64) -> impl Iterator<Item = f32> {
    let steps = ((1.0 / step_hours).round() as usize).max(1);
    series.chunks_exact(steps).map(|hour| hour.iter().sum::<f32>() / hour.len() as f32)
}

/// Two hexadecimal digits per value: 254 intervals from `low` to `high`.
fn quantised(values: impl Iterator<Item = f32>, low: f64, high: f64) -> String {
    let code = |value: f32| match value.is_finite() && high > low {
        true => format!("{:02x}", ((f64::from(value) - low) / (high - low) * 254.0).round().clamp(0.0, 254.0) as u8),
        false => MISSING.to_owned(),
    };
    values.map(code).collect()
}

/// The values in falling order, at equal distances from the first to the last.
fn duration(series: &[f32]) -> Vec<f64> {
    let mut sorted = series.to_vec();
    sorted.sort_unstable_by(|a, b| b.total_cmp(a));
    let Some(last) = sorted.len().checked_sub(1) else { return Vec::new() };
    let n = DURATION_POINTS.min(sorted.len());
    let at = |i: usize| sorted[if n > 1 { i * last / (n - 1) } else { 0 }];
    (0..n).map(|i| (f64::from(at(i)) * 1e2).round() / 1e2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_the_one_with_the_largest_import() {
        assert_eq!(largest_import(&[1.0, 1.0, 5.0, -9.0, 2.0, 2.0, 7.0], 2), 2..4);
        assert_eq!(largest_import(&[1.0, 2.0], 2), 0..2);
        assert_eq!(largest_import(&[], 1), 0..0);
    }

    #[test]
    fn values_become_digits_of_their_interval() {
        assert_eq!(quantised([-2.0, 0.0, 2.0, f32::NAN, 9.0].into_iter(), -2.0, 2.0), "007ffeffFE".to_lowercase());
        assert_eq!(quantised([1.0].into_iter(), 0.0, 0.0), "ff");
    }

    #[test]
    fn quarters_are_averaged_and_duration_falls() {
        let hours: Vec<f32> = by_hour(&[1.0, 2.0, 3.0, 6.0, 8.0], 0.25).collect();
        assert_eq!(hours, [3.0]);
        assert_eq!(duration(&[1.0, 3.0, 2.0]), [3.0, 2.0, 1.0]);
        let many: Vec<f32> = (0..8760).map(|i| i as f32).collect();
        let curve = duration(&many);
        assert_eq!((curve.len(), curve[0], curve[DURATION_POINTS - 1]), (DURATION_POINTS, 8759.0, 0.0));
    }
}
