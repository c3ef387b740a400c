//! Which trials are stopped before their end.

use brasa_env::Better;

/// Values of the evaluations of a trial by their number, from 1 on.
pub(crate) type Evaluations = Vec<(u64, f64)>;

/// The first evaluation at which a trial is worse than the median of the `complete` ones, if there are at least `n_least`. Its best value so far is
/// compared with the latest values of the others at that time, as Optuna's `MedianPruner` does. The first third of `n_evaluations` and the last one
/// stop no trial.
pub(crate) fn prunes(
    trial: &Evaluations,
    complete: &[&Evaluations],
    better: Better,
    n_least: usize,
    n_evaluations: u64,
) -> Option<(u64, f64)> {
    if complete.len() < n_least.max(1) {
        return None;
    }
    // Larger is better.
    let sign = if better == Better::More { 1.0 } else { -1.0 };
    let mut best = f64::NEG_INFINITY;
    for (number, value) in trial {
        best = best.max(sign * value);
        if *number <= n_evaluations / 3 || *number >= n_evaluations {
            continue;
        }
        let at = |others: &Evaluations| {
            others.iter().rev().find(|(other, _)| other <= number).map(|(_, value)| sign * value)
        };
        let mut values: Vec<f64> = complete.iter().filter_map(|others| at(others)).collect();
        values.sort_by(f64::total_cmp);
        let Some(last) = values.len().checked_sub(1) else { continue };
        let median = (values[last / 2] + values[last.div_ceil(2)]) / 2.0;
        if best < median {
            return Some((*number, *value));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(values: &[f64]) -> Evaluations {
        values.iter().enumerate().map(|(i, value)| (i as u64 + 1, *value)).collect()
    }

    #[test]
    fn a_trial_below_the_median_is_stopped_after_a_third() {
        let complete =
            [curve(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), curve(&[1.0; 6]), curve(&[0.0, 0.0, 2.0, 2.0, 2.0, 2.0])];
        let complete: Vec<&Evaluations> = complete.iter().collect();
        let stops = |values: &[f64], n_least| prunes(&curve(values), &complete, Better::More, n_least, 6);
        // The median is 1, 1, 2, 2, 2, 2.
        assert_eq!(stops(&[-5.0, -5.0, -5.0, -5.0], 3), Some((3, -5.0)));
        assert_eq!(stops(&[-5.0, -5.0], 3), None);
        assert_eq!(stops(&[-5.0; 6], 4), None);
        assert_eq!(stops(&[9.0, -5.0, -5.0, -5.0, -5.0, -5.0], 3), None, "the best value counts");
        assert_eq!(stops(&[2.0, 2.0, 2.0, 2.0, 2.0, -9.0], 3), None, "equal values and the last one");
        assert_eq!(prunes(&curve(&[3.0, 3.0, 3.0]), &complete, Better::Less, 3, 6), Some((3, 3.0)));
        assert_eq!(prunes(&curve(&[1.5, 1.5, 1.5]), &complete, Better::Less, 3, 6), None);
        assert_eq!(prunes(&curve(&[0.0; 3]), &[], Better::More, 0, 6), None);
    }

    #[test]
    fn an_evaluation_that_others_skipped_is_compared_with_their_latest() {
        let complete = [vec![(2, 1.0), (6, 5.0)], vec![(2, 1.0), (6, 5.0)]];
        let complete: Vec<&Evaluations> = complete.iter().collect();
        assert_eq!(prunes(&vec![(3, 0.0)], &complete, Better::More, 2, 6), Some((3, 0.0)));
        assert_eq!(prunes(&vec![(3, 2.0)], &complete, Better::More, 2, 6), None);
    }
}
