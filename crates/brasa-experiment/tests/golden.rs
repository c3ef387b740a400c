//! Statistics equal those of SciPy, rliable and arch (`scripts/record_statistics.py`).
#![allow(clippy::expect_used)]

use std::collections::BTreeMap;

use brasa_experiment::statistics::{
    Resample, episode_means, interquartile_mean, iqm_interval, mean_interval, paired_test, probability_of_improvement,
};
use brasa_test::golden::close;
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    means: Vec<Means>,
    cases: BTreeMap<String, Case>,
}

#[derive(Deserialize)]
struct Means {
    values: Vec<f64>,
    mean: f64,
    half_width: f64,
}

#[derive(Deserialize)]
struct Case {
    scores: Vec<Vec<Option<f64>>>,
    others: Vec<Vec<Option<f64>>>,
    mean: Mean,
    iqm: f64,
    /// Allowed ranges of the lower and the upper bound.
    runs_in_episodes: [[f64; 2]; 2],
    whole_runs: [[f64; 2]; 2],
    paired: Paired,
    probability_of_improvement: f64,
}

#[derive(Deserialize)]
struct Mean {
    mean: f64,
    half_width: f64,
}

#[derive(Deserialize)]
struct Paired {
    difference: f64,
    p_value: f64,
    allowed: f64,
    n_pairs: usize,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("data/statistics.json")).expect("the recording is JSON")
}

fn run_means(runs: &[Vec<Option<f64>>]) -> Vec<f64> {
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
    runs.iter().map(|run| mean(run.iter().copied().flatten().collect())).collect()
}

#[test]
fn means_and_their_intervals_are_those_of_scipy() {
    let golden = golden();
    let of_cases = golden
        .cases
        .iter()
        .map(|(name, case)| (name.clone(), run_means(&case.scores), case.mean.mean, case.mean.half_width));
    let alone = golden
        .means
        .iter()
        .map(|means| (format!("{} values", means.values.len()), means.values.clone(), means.mean, means.half_width));
    for (name, values, mean, half_width) in of_cases.chain(alone) {
        let found = mean_interval(&values).expect("there are values");
        let found_half = found.half_width.expect("there are two");
        close(&name, [found.mean, found_half], [mean, half_width], 1e-9);
    }
}

#[test]
fn interquartile_means_are_those_of_scipy() {
    for (name, case) in golden().cases {
        close(&name, interquartile_mean(&case.scores), [case.iqm], 1e-9);
    }
}

#[test]
fn bounds_of_bootstraps_are_those_of_rliable_and_arch_within_monte_carlo_error() {
    for (name, case) in golden().cases {
        for (resample, windows) in
            [(Resample::RunsInEpisodes, case.runs_in_episodes), (Resample::WholeRuns, case.whole_runs)]
        {
            let (low, high) = iqm_interval(&case.scores, resample).expect("there are runs");
            for (bound, [from, to]) in [low, high].into_iter().zip(windows) {
                // If few resamples are possible, a range is a single number, and sums have rounding errors.
                assert!(
                    (from - 1e-9..=to + 1e-9).contains(&bound),
                    "{name}, {resample:?}: {bound} is not in {from}..{to}"
                );
            }
        }
    }
}

#[test]
fn permutation_tests_are_those_of_scipy() {
    for (name, case) in golden().cases {
        let found = paired_test(&episode_means(&case.scores), &episode_means(&case.others)).expect("there are pairs");
        let expected = case.paired;
        close(&name, [found.difference], [expected.difference], 1e-9);
        close(&name, [found.p_value], [expected.p_value], expected.allowed);
        assert_eq!(found.n_pairs, expected.n_pairs, "{name}");
    }
}

#[test]
fn probabilities_of_improvement_are_those_of_rliable() {
    for (name, case) in golden().cases {
        let found = probability_of_improvement(&case.scores, &case.others);
        close(&name, found, [case.probability_of_improvement], 1e-12);
    }
}
