//! Statistics equal those of SciPy, rliable and arch (`scripts/record_statistics.py`), densities of searches those of Optuna
//! (`scripts/record_search.py`).
#![allow(clippy::expect_used)]

use std::collections::BTreeMap;

use brasa_env::named_rng;
use brasa_experiment::statistics::{
    Resample, episode_means, explained_share, interquartile_mean, iqm_interval, mean_interval, paired_test,
    probability_of_improvement,
};
use brasa_experiment::tpe::{Domain, Parzen, n_good, suggest};
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

#[derive(Deserialize)]
struct Search {
    densities: Vec<Density>,
    n_good: Vec<(usize, usize)>,
    explained: Vec<Explained>,
    median_best: Best,
}

#[derive(Deserialize)]
struct Density {
    name: String,
    domains: Vec<Recorded>,
    trials: Vec<Vec<f64>>,
    at: Vec<Vec<f64>>,
    log_density: Vec<f64>,
}

#[derive(Deserialize)]
struct Recorded {
    choices: Option<usize>,
    low: Option<f64>,
    high: Option<f64>,
    step: Option<f64>,
    #[serde(default)]
    log: bool,
}

#[derive(Deserialize)]
struct Explained {
    groups: Vec<Vec<f64>>,
    explained: f64,
}

#[derive(Deserialize)]
struct Best {
    tpe: f64,
    random: f64,
}

fn search() -> Search {
    serde_json::from_str(include_str!("data/search.json")).expect("the recording is JSON")
}

#[test]
fn densities_of_values_are_those_of_optuna() {
    let domain = |recorded: &Recorded| match *recorded {
        Recorded { choices: Some(n), .. } => Domain::Choices(n),
        Recorded { low: Some(low), high: Some(high), step: Some(step), log, .. } => {
            Domain::Grid { low, high, step, log }
        }
        Recorded { low, high, log, .. } => {
            Domain::Interval { low: low.expect("an end"), high: high.expect("an end"), log }
        }
    };
    for Density { name, domains, trials, at, log_density } in search().densities {
        let domains: Vec<Domain> = domains.iter().map(domain).collect();
        let parzen = Parzen::new(&domains, &trials);
        close(&name, at.iter().map(|trial| parzen.log_density(trial)), log_density, 1e-9);
    }
    for (n_trials, expected) in search().n_good {
        assert_eq!(n_good(n_trials), expected, "{n_trials}");
    }
}

#[test]
fn explained_shares_are_those_of_scipy() {
    for Explained { groups, explained } in search().explained {
        close("share", explained_share(&groups), [explained], 1e-9);
    }
    assert_eq!(explained_share(&[vec![1.0, 1.0], vec![1.0]]), Some(0.0));
    assert_eq!(explained_share(&[vec![1.0, 2.0]]), None);
}

/// The best of 50 trials of a function with one smallest value, as `scripts/record_search.py` has it: the median over seeds.
#[test]
fn suggestions_find_the_best_of_a_function_as_well_as_those_of_optuna() {
    let domains = [
        Domain::Interval { low: -10.0, high: 10.0, log: false },
        Domain::Interval { low: 1e-5, high: 1e-1, log: true },
        Domain::Choices(3),
    ];
    let objective = |values: &[f64]| {
        let other = if values[2] == 1.0 { 0.0 } else { 2.0 };
        (values[0] - 3.0).powi(2) + (values[1].log10() + 3.0).powi(2) + other
    };
    let best = |seed: u64, n_startup: usize| {
        let mut trials: Vec<(Vec<f64>, f64)> = Vec::new();
        for trial in 0..50 {
            let rng = &mut named_rng(seed, "search", trial);
            let mut order: Vec<usize> = (0..trials.len()).collect();
            order.sort_by(|a, b| trials[*a].1.total_cmp(&trials[*b].1));
            let (good, others) = order.split_at(n_good(trials.len()));
            let of = |indices: &[usize]| {
                let mut indices = indices.to_vec();
                indices.sort_unstable();
                indices.into_iter().map(|index| &trials[index].0).collect::<Vec<_>>()
            };
            let values = match trials.len() < n_startup {
                true => domains.iter().map(|domain| domain.random(rng)).collect(),
                false => suggest(&domains, &of(good), &of(others), rng),
            };
            let value = objective(&values);
            trials.push((values, value));
        }
        trials.iter().map(|(_, value)| *value).fold(f64::INFINITY, f64::min)
    };
    let median = |n_startup: usize| {
        let mut all: Vec<f64> = (0..40).map(|seed| best(seed, n_startup)).collect();
        all.sort_by(f64::total_cmp);
        (all[19] + all[20]) / 2.0
    };
    let (found, random, recorded) = (median(10), median(usize::MAX), search().median_best);
    assert!(found < 2.0 * recorded.tpe && found < 0.3 * random, "{found}, random {random}, Optuna {}", recorded.tpe);
    // The function is the recorded one.
    assert!((0.6..1.6).contains(&(random / recorded.random)), "{random} and {}", recorded.random);
}
