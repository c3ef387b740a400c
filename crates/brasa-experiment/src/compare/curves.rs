//! Learning curves of groups: the mean over seeds and its interval.

use std::collections::BTreeMap;

use brasa_train::EVAL_RETURN;
use serde_json::{Map, Value, json};

use crate::statistics::mean_interval;

/// Maximum number of points of a curve on the page.
const MAX_POINTS: usize = 1000;

/// The mean of a metric over the runs of a group, by environment steps.
#[derive(Debug, Default, PartialEq)]
struct Curve {
    steps: Vec<u64>,
    mean: Vec<f64>,
    /// Bounds of the 95 % interval; empty for one run.
    low: Vec<f64>,
    high: Vec<f64>,
}

impl Curve {
    /// The mean of metric `name` over `runs`. Only steps at which every run has a value are used: with a varying number of seeds
    /// the mean would jump.
    fn new(runs: &[Vec<Map<String, Value>>], name: &str) -> Self {
        let mut at: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for run in runs {
            let values =
                run.iter().filter_map(|line| Some((line.get("env_steps")?.as_u64()?, line.get(name)?.as_f64()?)));
            // A step that was written twice is used once.
            let values: BTreeMap<u64, f64> = values.collect();
            values.into_iter().for_each(|(steps, value)| at.entry(steps).or_default().push(value));
        }
        at.retain(|_, values| values.len() == runs.len());
        let stride = at.len().div_ceil(MAX_POINTS).max(1);
        let mut curve = Self::default();
        for (steps, values) in at.into_iter().step_by(stride) {
            let Some(interval) = mean_interval(&values) else { continue };
            curve.steps.push(steps);
            curve.mean.push(interval.mean);
            if let Some(half_width) = interval.half_width {
                curve.low.push(interval.mean - half_width);
                curve.high.push(interval.mean + half_width);
            }
        }
        curve
    }

    fn to_json(&self) -> Value {
        json!({ "steps": self.steps, "mean": self.mean, "low": self.low, "high": self.high })
    }
}

/// The return of a group during training.
pub(crate) struct GroupCurves {
    exploring: Curve,
    evaluated: Curve,
}

impl GroupCurves {
    /// The curve from the metrics of the runs.
    pub fn new(runs: &[Vec<Map<String, Value>>]) -> Self {
        Self { exploring: Curve::new(runs, "rollout/ep_rew_mean"), evaluated: Curve::new(runs, EVAL_RETURN) }
    }

    /// The data for the page.
    pub fn to_json(&self) -> Value {
        json!({ "exploring": self.exploring.to_json(), "evaluated": self.evaluated.to_json() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(values: &[(u64, f64)]) -> Vec<Map<String, Value>> {
        let line = |(steps, value): &(u64, f64)| json!({ "env_steps": steps, "r": value });
        let lines = values.iter().map(line);
        lines.map(|line| line.as_object().cloned().unwrap_or_default()).collect()
    }

    #[test]
    fn a_mean_is_over_all_seeds_or_not_at_all() {
        let curve = Curve::new(&[run(&[(1, 0.0), (2, 1.0), (4, 3.0)]), run(&[(2, 3.0), (4, 3.0), (5, 9.0)])], "r");
        assert_eq!((curve.steps, curve.mean), (vec![2, 4], vec![2.0, 3.0]));
        // Two values with a difference of 2: t(1) = 12.706 times a standard error of 1.
        assert!((curve.high[0] - 14.706).abs() < 1e-3 && (curve.low[0] + 10.706).abs() < 1e-3);
        assert_eq!((curve.low[1], curve.high[1]), (3.0, 3.0));
        let alone = Curve::new(&[run(&[(1, 5.0)])], "r");
        assert_eq!((alone.mean, alone.low), (vec![5.0], vec![]));
        assert_eq!(Curve::new(&[run(&[(1, 5.0)])], "absent"), Curve::default());
    }
}
