//! Statistics of training runs in the same episodes: pure functions, each with its reference.
//!
//! Scores are `runs x episodes`: one slice per run, one entry per episode, in the same order in every run. An entry that is
//! `None` or not finite is missing. Missing entries are left out, never replaced: means and interquartile means use the other
//! entries, a resample of an episode uses the runs that have a value in it, and a pair with a missing value is left out.
//!
//! All random numbers come from fixed streams, so the same scores always give the same result.
//!
//! - Agarwal, Schwarzer, Castro, Courville, Bellemare: Deep Reinforcement Learning at the Edge of the Statistical Precipice.
//!   NeurIPS 2021.
//! - Efron, Tibshirani: An Introduction to the Bootstrap. Chapman & Hall 1993.
//! - Fisher: The Design of Experiments. Oliver & Boyd 1935, section 21 (the sign-flip test).
//! - Phipson, Smyth: Permutation P-values Should Never Be Zero. Stat. Appl. Genet. Mol. Biol. 9(1), 2010.
//! - Kruskal, Wallis: Use of Ranks in One-Criterion Variance Analysis. J. Am. Stat. Assoc. 47(260), 1952.
//! - Abramowitz, Stegun: Handbook of Mathematical Functions. 1964.

use std::f64::consts::{FRAC_2_PI, FRAC_PI_2};

use brasa_env::{EnvRng, named_rng};
use rand::{Rng, RngExt};

/// Confidence level of the intervals.
///
/// ```
/// use brasa_experiment::statistics::{CONFIDENCE, mean_interval};
///
/// let interval = mean_interval(&[1.0, 2.0, 3.0]).expect("there are values");
/// // Student's t for 95 % and two degrees of freedom is 4.303.
/// assert_eq!(CONFIDENCE, 0.95);
/// assert!(interval.half_width.is_some_and(|half| (half - 4.303 / 3.0_f64.sqrt()).abs() < 1e-3));
/// ```
pub const CONFIDENCE: f64 = 0.95;
/// Smallest number of runs with a bootstrap interval over runs.
///
/// ```
/// use brasa_experiment::statistics::{MIN_RUNS, iqm_interval_over_runs};
///
/// let runs: Vec<_> = (0..MIN_RUNS).map(|run| vec![Some(run as f64), Some(run as f64 + 0.5)]).collect();
/// assert!(iqm_interval_over_runs(&runs).is_some());
/// assert!(iqm_interval_over_runs(&runs[1..]).is_none());
/// ```
pub const MIN_RUNS: usize = 5;
/// Number of bootstrap resamples.
///
/// ```
/// use brasa_experiment::statistics::{N_RESAMPLES, Resample, iqm_interval};
///
/// // The share of two equal runs in the resamples does not matter: all means are equal.
/// let runs = [[Some(2.0)], [Some(2.0)]];
/// assert_eq!(iqm_interval(&runs, Resample::WholeRuns), Some((2.0, 2.0)));
/// assert_eq!(N_RESAMPLES, 10_000);
/// ```
pub const N_RESAMPLES: usize = 10_000;
/// Maximum number of pairs for an exact permutation test over all `2^n` sign assignments.
///
/// ```
/// use brasa_experiment::statistics::{MAX_EXACT_PAIRS, paired_test};
///
/// // Of all sign assignments, two have a mean difference as large as the observed one.
/// let (values, others) = ([Some(1.0); MAX_EXACT_PAIRS], [Some(0.0); MAX_EXACT_PAIRS]);
/// let test = paired_test(&values, &others).expect("there are pairs");
/// assert_eq!(test.p_value, 2.0 / 2_f64.powi(MAX_EXACT_PAIRS as i32));
/// ```
pub const MAX_EXACT_PAIRS: usize = 16;
/// Number of random sign assignments if there are more pairs.
///
/// ```
/// use brasa_experiment::statistics::{N_FLIPS, paired_test};
///
/// // With 40 pairs, the observed signs are one of 20,001 assignments.
/// let test = paired_test(&[Some(1.0); 40], &[Some(0.0); 40]).expect("there are pairs");
/// assert_eq!(test.p_value, 1.0 / (N_FLIPS + 1) as f64);
/// ```
pub const N_FLIPS: u64 = 20_000;

/// The unit of bootstrap resampling.
///
/// ```
/// use brasa_experiment::statistics::{Resample, iqm_interval};
///
/// // Two runs that differ in their seed, and hardly over episodes.
/// let runs = [[Some(1.0), Some(1.1)], [Some(3.0), Some(3.1)]];
/// let width = |resample| iqm_interval(&runs, resample).map(|(low, high)| high - low);
/// assert!(width(Resample::WholeRuns) >= width(Resample::RunsInEpisodes));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resample {
    /// Runs are resampled independently in each episode, as Agarwal et al. do with the tasks of a benchmark. This assumes that the
    /// episodes of a run are independent. But one policy plays all episodes of a run, so the interval does not include the
    /// variation over seeds.
    RunsInEpisodes,
    /// Runs are resampled with all their episodes, as Agarwal et al. do with the runs of one task. The interval includes the
    /// variation over seeds; it is coarse and too narrow for few runs.
    WholeRuns,
}

/// A mean and its interval.
///
/// ```
/// use brasa_experiment::statistics::{MeanInterval, mean_interval};
///
/// assert_eq!(mean_interval(&[2.0]), Some(MeanInterval { mean: 2.0, half_width: None }));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanInterval {
    /// The mean.
    pub mean: f64,
    /// Half-width of the 95 % interval; `None` with fewer than two values.
    pub half_width: Option<f64>,
}

/// Result of a paired test.
///
/// ```
/// use brasa_experiment::statistics::{PairedTest, paired_test};
///
/// let test = paired_test(&[Some(3.0), Some(5.0), None], &[Some(1.0), Some(4.0), Some(9.0)]);
/// // 2 of 4 sign assignments give a mean difference of at least 1.5; the third pair is incomplete.
/// assert_eq!(test, Some(PairedTest { difference: 1.5, p_value: 0.5, n_pairs: 2 }));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairedTest {
    /// Mean of the differences.
    pub difference: f64,
    /// The two-sided p-value: probability of an absolute mean difference at least as large, if every sign were random.
    pub p_value: f64,
    /// Number of pairs with both values.
    pub n_pairs: usize,
}

/// Mean and 95 % confidence interval by Student's t: `mean ± t(n - 1) s / sqrt(n)`. `None` without a finite value.
///
/// The values must be independent, such as the means of runs with different seeds.
///
/// ```
/// use brasa_experiment::statistics::mean_interval;
///
/// let interval = mean_interval(&[1.0, 2.0, 3.0]).expect("there are values");
/// assert_eq!(interval.mean, 2.0);
/// assert!(interval.half_width.is_some_and(|half_width| (half_width - 2.484).abs() < 1e-3));
/// assert_eq!(mean_interval(&[f64::NAN]), None);
/// ```
pub fn mean_interval(values: &[f64]) -> Option<MeanInterval> {
    let values: Vec<f64> = finite(values.iter().copied().map(Some)).collect();
    let mean = mean(&values)?;
    let half_width =
        deviation(&values).map(|deviation| student_t(values.len() - 1) * deviation / (values.len() as f64).sqrt());
    Some(MeanInterval { mean, half_width })
}

/// Standard deviation of a sample, with `n - 1` in the denominator; `None` with fewer than two values.
///
/// ```
/// use brasa_experiment::statistics::deviation;
///
/// assert_eq!(deviation(&[1.0, 2.0, 3.0]), Some(1.0));
/// assert_eq!(deviation(&[1.0]), None);
/// ```
pub fn deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values).filter(|_| values.len() >= 2)?;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// The number `t` with `P(|T| <= t) = 0.95` for Student's distribution with `df` (at least 1) degrees of freedom.
///
/// The distribution function is a finite sum for whole degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4); bisection
/// inverts it.
fn student_t(df: usize) -> f64 {
    let (mut low, mut high) = (0.0, FRAC_PI_2);
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return (df as f64).sqrt() * middle.tan();
        }
        match student_t_inside(middle, df) < CONFIDENCE {
            true => low = middle,
            false => high = middle,
        }
    }
}

/// `P(|T| <= sqrt(df) tan(theta))`.
fn student_t_inside(theta: f64, df: usize) -> f64 {
    let (sin, cos) = theta.sin_cos();
    // Odd: sin (cos + 2/3 cos^3 + 2 4 / (3 5) cos^5 + ...); even: sin (1 + 1/2 cos^2 + 1 3 / (2 4) cos^4 + ...).
    let is_odd = df % 2 == 1;
    let (mut term, mut sum) = if is_odd { (cos, 0.0) } else { (1.0, 0.0) };
    let mut power = if is_odd { 1 } else { 0 };
    while power + 2 <= df {
        sum += term;
        term *= cos * cos * (power + 1) as f64 / (power + 2) as f64;
        power += 2;
    }
    if is_odd { FRAC_2_PI * (theta + sin * sum) } else { sin * sum }
}

/// Interquartile mean: the mean without the `floor(n / 4)` smallest and largest values (Agarwal et al. 2021, section 4.3, where
/// all runs of all tasks are one sample). `None` without a finite value.
///
/// ```
/// use brasa_experiment::statistics::interquartile_mean;
///
/// // Two runs of two episodes: the smallest and the largest value are left out.
/// let runs = [[Some(1.0), Some(2.0)], [Some(4.0), Some(100.0)]];
/// assert_eq!(interquartile_mean(&runs), Some(3.0));
/// ```
pub fn interquartile_mean<R: AsRef<[Option<f64>]>>(runs: &[R]) -> Option<f64> {
    let mut values: Vec<f64> = finite(runs.iter().flat_map(|run| run.as_ref().iter().copied())).collect();
    (!values.is_empty()).then(|| middle_mean(&mut values))
}

/// 95 % percentile interval of the interquartile mean from 10,000 resamples of runs (Agarwal et al. 2021, section 4.1; Efron and
/// Tibshirani 1993, chapter 13). `None` with fewer than two runs that have a value.
///
/// ```
/// use brasa_experiment::statistics::{Resample, interquartile_mean, iqm_interval};
///
/// let runs = [[Some(1.0), Some(2.0)], [Some(2.0), Some(3.0)], [Some(3.0), Some(4.0)]];
/// let (low, high) = iqm_interval(&runs, Resample::WholeRuns).expect("there are several runs");
/// let center = interquartile_mean(&runs).expect("there are values");
/// assert!(low < center && center < high);
/// // Random numbers come from a fixed stream.
/// assert_eq!(iqm_interval(&runs, Resample::WholeRuns), Some((low, high)));
/// ```
///
/// # Panics
/// If the runs have different numbers of episodes.
pub fn iqm_interval<R: AsRef<[Option<f64>]>>(runs: &[R], resample: Resample) -> Option<(f64, f64)> {
    let mut resampled = resampled_iqms(runs, resample)?;
    resampled.sort_by(f64::total_cmp);
    let tail = 0.5 * (1.0 - CONFIDENCE);
    Some((quantile(&resampled, tail), quantile(&resampled, 1.0 - tail)))
}

/// 95 % interval of the interquartile mean over runs: Student's t times the standard error of the bootstrap of whole runs,
/// which is widened by `sqrt(n / (n - 1))` because the bootstrap divides by `n`. `None` with fewer than [`MIN_RUNS`] runs.
///
/// The percentile interval of [`iqm_interval`] is too narrow for few runs: with 5 normal runs it covers the truth in 85 % of
/// all cases, with 2 in 49 %.
///
/// ```
/// use brasa_experiment::statistics::iqm_interval_over_runs;
///
/// let runs: Vec<_> = (0..5).map(|run| [Some(f64::from(run)), Some(f64::from(run) + 1.0)]).collect();
/// let (low, high) = iqm_interval_over_runs(&runs).expect("there are five runs");
/// assert!(low < 2.5 && 2.5 < high);
/// ```
///
/// # Panics
/// If the runs have different numbers of episodes.
pub fn iqm_interval_over_runs<R: AsRef<[Option<f64>]>>(runs: &[R]) -> Option<(f64, f64)> {
    let n_runs = runs.iter().filter(|run| finite(run.as_ref().iter().copied()).next().is_some()).count();
    if n_runs < MIN_RUNS {
        return None;
    }
    let center = interquartile_mean(runs)?;
    let error = deviation(&resampled_iqms(runs, Resample::WholeRuns)?)? * (n_runs as f64 / (n_runs - 1) as f64).sqrt();
    let half_width = student_t(n_runs - 1) * error;
    Some((center - half_width, center + half_width))
}

/// Interquartile means of 10,000 resamples; `None` with fewer than two runs that have a value.
fn resampled_iqms<R: AsRef<[Option<f64>]>>(runs: &[R], resample: Resample) -> Option<Vec<f64>> {
    let n_episodes = runs.first()?.as_ref().len();
    assert!(runs.iter().all(|run| run.as_ref().len() == n_episodes), "every run has the same episodes");
    let strata: Vec<Vec<Vec<f64>>> = match resample {
        // Each element is resampled as a unit.
        Resample::RunsInEpisodes => (0..n_episodes)
            .map(|episode| finite(runs.iter().map(|run| run.as_ref()[episode])).map(|value| vec![value]).collect())
            .collect(),
        Resample::WholeRuns => {
            let whole = runs.iter().map(|run| finite(run.as_ref().iter().copied()).collect());
            vec![whole.filter(|run: &Vec<f64>| !run.is_empty()).collect()]
        }
    };
    if strata.iter().all(|units| units.len() < 2) {
        return None;
    }
    let mut rng = named_rng(0, "bootstrap", 0);
    let mut drawn = Vec::new();
    let resampled = (0..N_RESAMPLES).map(|_| {
        drawn.clear();
        for units in &strata {
            (0..units.len()).for_each(|_| drawn.extend(&units[rng.random_range(0..units.len())]));
        }
        middle_mean(&mut drawn)
    });
    Some(resampled.collect())
}

/// Mean over runs in each episode; `None` where no run has a value.
///
/// ```
/// use brasa_experiment::statistics::episode_means;
///
/// // The second episode of the first run has no value, and no run has one of the third episode.
/// let runs = [[Some(1.0), None, None], [Some(3.0), Some(5.0), None]];
/// assert_eq!(episode_means(&runs), [Some(2.0), Some(5.0), None]);
/// ```
pub fn episode_means<R: AsRef<[Option<f64>]>>(runs: &[R]) -> Vec<Option<f64>> {
    let n_episodes = runs.first().map_or(0, |run| run.as_ref().len());
    let of_episode = |episode: usize| finite(runs.iter().map(|run| run.as_ref()[episode])).collect::<Vec<_>>();
    (0..n_episodes).map(|episode| mean(&of_episode(episode))).collect()
}

/// Two-sided sign-flip permutation test of `values - others`, pair by pair (Fisher 1935). `None` without a pair.
///
/// With up to 16 pairs, all `2^n` sign assignments are counted, so the p-value is exact. With more pairs, 20,000 random
/// assignments and the observed one are counted (Phipson and Smyth 2010), so the p-value is at least 1 / 20,001.
///
/// ```
/// use brasa_experiment::statistics::paired_test;
///
/// let (policy, rule) = ([Some(5.0), Some(6.0), Some(7.0), Some(8.0)], [Some(1.0); 4]);
/// let test = paired_test(&policy, &rule).expect("there are pairs");
/// assert_eq!(test.difference, 5.5);
/// // 2 of 16 sign assignments are as extreme.
/// assert_eq!(test.p_value, 0.125);
/// ```
pub fn paired_test(values: &[Option<f64>], others: &[Option<f64>]) -> Option<PairedTest> {
    let pairs = values.iter().zip(others).map(|(value, other)| value.zip(*other).map(|(value, other)| value - other));
    let differences: Vec<f64> = finite(pairs).collect();
    let difference = mean(&differences)?;
    // The tolerance treats sums as equal if they differ only by rounding.
    let rounding = 1e-12 * differences.iter().map(|difference| difference.abs()).sum::<f64>();
    let threshold = differences.iter().sum::<f64>().abs() - rounding;
    let n_pairs = differences.len();
    let p_value = if n_pairs <= MAX_EXACT_PAIRS {
        let n_flips = 1u64 << n_pairs;
        let as_large = (0..n_flips).filter(|signs| signed_sum(&differences, &[*signs]).abs() >= threshold).count();
        as_large as f64 / n_flips as f64
    } else {
        let mut rng: EnvRng = named_rng(0, "sign flips", 0);
        let mut signs = vec![0; n_pairs.div_ceil(64)];
        let as_large = (0..N_FLIPS)
            .filter(|_| {
                signs.fill_with(|| rng.next_u64());
                signed_sum(&differences, &signs).abs() >= threshold
            })
            .count();
        (as_large + 1) as f64 / (N_FLIPS + 1) as f64
    };
    Some(PairedTest { difference, p_value, n_pairs })
}

/// Probability of improvement: the probability that a run scores higher than one of `others` in the same episode, averaged
/// over episodes. A tie counts half (Agarwal et al. 2021, section 4.3, with episodes instead of tasks). `None` if no episode
/// has values on both sides.
///
/// ```
/// use brasa_experiment::statistics::probability_of_improvement;
///
/// let (runs, others) = ([[Some(3.0)], [Some(1.0)]], [[Some(2.0)], [Some(1.0)]]);
/// // 3 is above both others; 1 is below the first one and equal to the second one.
/// assert_eq!(probability_of_improvement(&runs, &others), Some(2.5 / 4.0));
/// ```
pub fn probability_of_improvement<R: AsRef<[Option<f64>]>>(runs: &[R], others: &[R]) -> Option<f64> {
    let n_episodes = runs.first()?.as_ref().len();
    let values = |of: &[R], episode: usize| -> Vec<f64> {
        finite(of.iter().map(|run| run.as_ref().get(episode).copied().flatten())).collect()
    };
    let in_episodes = (0..n_episodes).filter_map(|episode| {
        let (values, others) = (values(runs, episode), values(others, episode));
        let wins = values.iter().flat_map(|value| {
            others.iter().map(move |other| if value > other { 1.0 } else { f64::from(u8::from(value == other)) * 0.5 })
        });
        mean(&wins.collect::<Vec<f64>>())
    });
    mean(&in_episodes.collect::<Vec<f64>>())
}

/// Share of the variance of the ranks that the groups explain, without the share that chance alone would explain: `(H - k + 1) / (n - k)` with the
/// statistic `H` of Kruskal and Wallis for `n` values in `k` groups, at least 0. `None` without two groups, or without more values than groups.
///
/// ```
/// use brasa_experiment::statistics::explained_share;
///
/// // Final returns of a sweep, grouped by the value of a setting.
/// let (low, high) = ([1.0, 2.0, 3.0], [11.0, 12.0, 13.0]);
/// assert!(explained_share(&[low, high]).is_some_and(|share| share > 0.7));
/// assert_eq!(explained_share(&[low, low]), Some(0.0));
/// ```
pub fn explained_share<R: AsRef<[f64]>>(groups: &[R]) -> Option<f64> {
    let groups: Vec<&[f64]> = groups.iter().map(AsRef::as_ref).filter(|group| !group.is_empty()).collect();
    let values: Vec<f64> = groups.iter().flat_map(|group| group.iter().copied()).collect();
    let (n, k) = (values.len(), groups.len());
    if k < 2 || n <= k || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    // Equal values share the mean of their ranks.
    let rank = |value: f64| {
        let below = values.iter().filter(|other| **other < value).count() as f64;
        let equal = values.iter().filter(|other| **other == value).count() as f64;
        below + (equal + 1.0) / 2.0
    };
    let center = (n + 1) as f64 / 2.0;
    let total = values.iter().map(|value| (rank(*value) - center).powi(2)).sum::<f64>();
    let between = groups.iter().map(|group| {
        let mean = group.iter().map(|value| rank(*value)).sum::<f64>() / group.len() as f64;
        group.len() as f64 * (mean - center).powi(2)
    });
    let explained = between.sum::<f64>() / total;
    // All values are equal.
    if total == 0.0 {
        return Some(0.0);
    }
    let h = explained * (n - 1) as f64;
    Some(((h - (k - 1) as f64) / (n - k) as f64).max(0.0))
}

fn finite(values: impl Iterator<Item = Option<f64>>) -> impl Iterator<Item = f64> {
    values.flatten().filter(|value| value.is_finite())
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Interquartile mean; reorders `values`.
fn middle_mean(values: &mut [f64]) -> f64 {
    let n = values.len();
    let cut = n / 4;
    if cut > 0 {
        values.select_nth_unstable_by(cut, f64::total_cmp);
        values[cut..].select_nth_unstable_by(n - 2 * cut - 1, f64::total_cmp);
    }
    let middle = &values[cut..n - cut];
    middle.iter().sum::<f64>() / middle.len() as f64
}

/// Quantile of sorted values with linear interpolation (definition 7 of Hyndman and Fan, The American Statistician 50(4), 1996).
fn quantile(sorted: &[f64], probability: f64) -> f64 {
    let at = probability * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    below + (above - below) * at.fract()
}

/// Sum in which the values whose bit is set change their sign.
fn signed_sum(values: &[f64], signs: &[u64]) -> f64 {
    let is_flipped = |i: usize| signs[i / 64] >> (i % 64) & 1 == 1;
    values.iter().enumerate().map(|(i, value)| if is_flipped(i) { -value } else { *value }).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_has_no_interval_and_no_run_has_nothing() {
        assert_eq!(mean_interval(&[3.0]), Some(MeanInterval { mean: 3.0, half_width: None }));
        assert_eq!(mean_interval(&[]), None);
        assert_eq!(mean_interval(&[f64::NAN]), None);
        let one = [vec![Some(1.0), Some(2.0), None]];
        for resample in [Resample::RunsInEpisodes, Resample::WholeRuns] {
            assert_eq!(iqm_interval(&one, resample), None);
            assert_eq!(iqm_interval::<Vec<_>>(&[], resample), None);
        }
        assert_eq!(interquartile_mean(&[vec![None, Some(f64::INFINITY)]]), None);
        assert_eq!(paired_test(&[None, Some(1.0)], &[Some(1.0), None]), None);
        assert_eq!(probability_of_improvement(&one, &[vec![None, None, Some(1.0)]]), None);
    }

    #[test]
    fn missing_entries_are_left_out() {
        let runs = [vec![Some(1.0), None, Some(f64::NAN)], vec![Some(3.0), Some(5.0), None]];
        assert_eq!(interquartile_mean(&runs), Some(3.0));
        assert_eq!(episode_means(&runs), [Some(2.0), Some(5.0), None]);
        let test = paired_test(&[Some(2.0), None, Some(3.0)], &[Some(1.0), Some(9.0), Some(1.0)]).expect("two pairs");
        // Two of the four sums of +-1 and +-2 have an absolute value of at least 3.
        assert_eq!(test, PairedTest { difference: 1.5, p_value: 0.5, n_pairs: 2 });
    }

    #[test]
    fn an_interval_over_whole_runs_sees_that_runs_differ() {
        // Runs differ, but the episodes of a run hardly do: only resampling of whole runs shows this.
        let run = |level: f64| (0..40).map(|i| Some(level + 0.01 * f64::from(i % 3))).collect::<Vec<_>>();
        let runs: Vec<_> = [0.0, 1.0, 2.0, 3.0, 4.0].map(run).into();
        let width = |resample| iqm_interval(&runs, resample).map(|(low, high)| high - low).expect("five runs");
        let (in_episodes, whole) = (width(Resample::RunsInEpisodes), width(Resample::WholeRuns));
        assert!(in_episodes < 1.0 && whole > 2.0, "{in_episodes} and {whole}");
    }

    #[test]
    fn equal_scores_are_no_evidence() {
        let same = vec![Some(1.5); 40];
        let test = paired_test(&same, &same).expect("40 pairs");
        assert_eq!((test.difference, test.p_value), (0.0, 1.0));
        assert_eq!(probability_of_improvement(std::slice::from_ref(&same), std::slice::from_ref(&same)), Some(0.5));
    }

    /// The share of 95 % intervals that contain the truth, for normal runs with normal episodes: the mean over runs by Student's t,
    /// and the interquartile mean by the bootstrap, whose truth is the same.
    #[test]
    fn intervals_cover_the_truth_as_often_as_they_say() {
        const N: usize = 400;
        let mut rng = named_rng(1, "coverage", 0);
        // The sum of twelve uniform numbers is nearly normal.
        let mut normal = |deviation: f64| deviation * ((0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0);
        for n_runs in [2, 3, 5, 10] {
            let (mut of_mean, mut of_iqm) = (0, 0);
            for _ in 0..N {
                let runs: Vec<Vec<Option<f64>>> = (0..n_runs)
                    .map(|_| {
                        let level = normal(1.0);
                        (0..8).map(|_| Some(level + normal(0.5))).collect()
                    })
                    .collect();
                let means: Vec<f64> = runs.iter().map(|run| run.iter().flatten().sum::<f64>() / 8.0).collect();
                let interval = mean_interval(&means).expect("there are runs");
                of_mean += usize::from(interval.mean.abs() <= interval.half_width.expect("there are two"));
                match iqm_interval_over_runs(&runs) {
                    Some((low, high)) => of_iqm += usize::from(low <= 0.0 && 0.0 <= high),
                    None => assert!(n_runs < MIN_RUNS),
                }
            }
            let share = |n: usize| n as f64 / N as f64;
            // Three standard errors of a share of 0.95 of 400 are 0.033.
            assert!((share(of_mean) - 0.95).abs() < 0.035, "{n_runs} runs: {}", share(of_mean));
            assert!(n_runs < MIN_RUNS || share(of_iqm) > 0.92, "{n_runs} runs: {}", share(of_iqm));
        }
    }
}
