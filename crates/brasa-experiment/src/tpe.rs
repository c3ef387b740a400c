//! Tree-structured Parzen estimators (Bergstra et al. 2011): suggestions for the next value of a setting, from the values so far.
//!
//! All formulas are those of Optuna 5.0 with its default arguments, and golden tests compare them. One difference of a suggestion remains: random
//! numbers come from other streams.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use rand::{Rng, RngExt};
use rand_distr::{Distribution, Normal};

/// Values that are sampled before the best one of them is chosen.
const N_CANDIDATES: usize = 24;
/// Largest number of trials that count as good ones.
const MOST_GOOD: usize = 25;
/// Number of latest values with full weight.
const N_FULL_WEIGHT: usize = 25;

/// The values that a setting may have.
///
/// ```
/// use brasa_env::named_rng;
/// use brasa_experiment::tpe::Domain;
///
/// let rng = &mut named_rng(0, "search", 0);
/// let learning_rate = Domain::Interval { low: 1e-5, high: 1e-2, log: true };
/// assert!((1e-5..=1e-2).contains(&learning_rate.random(rng)));
/// let n_steps = Domain::Grid { low: 64.0, high: 256.0, step: 64.0, log: false };
/// assert!([64.0, 128.0, 192.0, 256.0].contains(&n_steps.random(rng)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Domain {
    /// Numbers of an interval, of which the logarithm is uniform with `log`.
    Interval {
        /// The smallest value.
        low: f64,
        /// The largest value.
        high: f64,
        /// Whether values are compared by their logarithm.
        log: bool,
    },
    /// The numbers `low`, `low + step` and so on up to `high`.
    Grid {
        /// The smallest value.
        low: f64,
        /// The largest value, a number of steps above `low`.
        high: f64,
        /// Distance between two values.
        step: f64,
        /// Whether values are compared by their logarithm.
        log: bool,
    },
    /// One of this many choices without an order; the value is the index.
    Choices(usize),
}

impl Domain {
    /// Ends of the interval in which kernels lie, and whether it is one of logarithms. A value of a grid stands for the half steps around it.
    fn ends(self) -> (f64, f64, bool) {
        let (low, high, log) = match self {
            Self::Interval { low, high, log } => (low, high, log),
            Self::Grid { low, high, step, log } => (low - step / 2.0, high + step / 2.0, log),
            Self::Choices(n) => (0.0, n as f64, false),
        };
        if log { (low.ln(), high.ln(), log) } else { (low, high, log) }
    }

    /// The value at `place` between the ends.
    fn value(self, place: f64) -> f64 {
        let (.., log) = self.ends();
        let value = if log { place.exp() } else { place };
        match self {
            Self::Interval { low, high, .. } => value.clamp(low, high),
            Self::Grid { low, high, step, .. } => (low + ((value - low) / step).round() * step).clamp(low, high),
            Self::Choices(n) => value.floor().clamp(0.0, n.saturating_sub(1) as f64),
        }
    }

    /// A value without regard to earlier ones.
    pub fn random(self, rng: &mut (impl Rng + ?Sized)) -> f64 {
        let (low, high, _) = self.ends();
        self.value(low + (high - low) * rng.random::<f64>())
    }
}

/// The next trial: of several that are likely among `good` ones, the one whose density is the largest multiple of that among the `others`. Trials have a
/// value for each domain, and are in their order.
///
/// ```
/// use brasa_env::named_rng;
/// use brasa_experiment::tpe::{Domain, suggest};
///
/// let domains = [Domain::Interval { low: 0.0, high: 10.0, log: false }];
/// // Good trials were near 2, the others near 8.
/// let (good, others) = ([[1.9], [2.0], [2.1]], [[7.8], [8.0], [8.3]]);
/// let next = suggest(&domains, &good, &others, &mut named_rng(0, "search", 0));
/// assert!(next[0] < 5.0);
/// ```
pub fn suggest<T: AsRef<[f64]>>(
    domains: &[Domain],
    good: &[T],
    others: &[T],
    rng: &mut (impl Rng + ?Sized),
) -> Vec<f64> {
    let (good, others) = (Parzen::new(domains, good), Parzen::new(domains, others));
    let candidates = (0..N_CANDIDATES).map(|_| {
        let trial = good.sample(rng);
        (good.log_density(&trial) - others.log_density(&trial), trial)
    });
    // The first of equal ones.
    let best = candidates.reduce(|best, next| if next.0 > best.0 { next } else { best });
    best.map(|(_, trial)| trial).unwrap_or_default()
}

/// The number of good ones among `n_trials`.
///
/// ```
/// use brasa_experiment::tpe::n_good;
///
/// assert_eq!([1, 10, 11, 1000].map(n_good), [1, 1, 2, 25]);
/// ```
pub fn n_good(n_trials: usize) -> usize {
    n_trials.div_ceil(10).min(MOST_GOOD)
}

/// A density of trials: a kernel for each earlier one, and a wide one as the prior. A kernel is a product over the settings.
///
/// ```
/// use brasa_env::named_rng;
/// use brasa_experiment::tpe::{Domain, Parzen};
///
/// let domains = [Domain::Interval { low: 0.0, high: 10.0, log: false }];
/// let density = Parzen::new(&domains, &[[1.9], [2.0], [2.1]]);
/// assert!(density.log_density(&[2.0]) > density.log_density(&[8.0]));
/// let trial = density.sample(&mut named_rng(0, "search", 0));
/// assert!((0.0..=10.0).contains(&trial[0]));
/// ```
#[derive(Debug)]
pub struct Parzen {
    /// Weights of the kernels; their sum is 1.
    weights: Vec<f64>,
    /// The factors of all kernels, for each setting.
    factors: Vec<(Domain, Factors)>,
}

/// The factors of kernels for a setting.
#[derive(Debug)]
enum Factors {
    /// Mean and standard deviation of each.
    Normal(Vec<(f64, f64)>),
    /// Probabilities of the choices in each.
    Choices(Vec<Vec<f64>>),
}

impl Parzen {
    /// The density of `trials`, which have a value for each of `domains`. They are in their order: the weight of old ones is lower.
    pub fn new<T: AsRef<[f64]>>(domains: &[Domain], trials: &[T]) -> Self {
        let n = trials.len();
        let ramp = n.saturating_sub(N_FULL_WEIGHT);
        let weight = |i: usize| match i < ramp {
            true if ramp > 1 => 1.0 / n as f64 + (1.0 - 1.0 / n as f64) * i as f64 / (ramp - 1) as f64,
            true => 1.0 / n as f64,
            false => 1.0,
        };
        let mut weights: Vec<f64> = (0..n).map(weight).chain([1.0]).collect();
        let sum = weights.iter().sum::<f64>();
        weights.iter_mut().for_each(|weight| *weight /= sum);
        let factors = |(i, domain): (usize, &Domain)| {
            let values: Vec<f64> = trials.iter().map(|trial| trial.as_ref()[i]).collect();
            let factors = match *domain {
                Domain::Choices(n_choices) => Factors::Choices(choices(&values, n_choices)),
                domain => Factors::Normal(normals(domain, &values)),
            };
            (*domain, factors)
        };
        Self { weights, factors: domains.iter().enumerate().map(factors).collect() }
    }

    /// The logarithm of the density at `trial`: of a probability on a grid and of choices.
    pub fn log_density(&self, trial: &[f64]) -> f64 {
        let mut terms: Vec<f64> = self.weights.iter().map(|weight| weight.ln()).collect();
        for ((domain, factors), value) in self.factors.iter().zip(trial) {
            match factors {
                Factors::Choices(rows) => {
                    terms.iter_mut().zip(rows).for_each(|(term, row)| *term += row[*value as usize].ln());
                }
                Factors::Normal(kernels) => {
                    terms
                        .iter_mut()
                        .zip(kernels)
                        .for_each(|(term, kernel)| *term += log_normal(*domain, *kernel, *value));
                }
            }
        }
        let most = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if most == f64::NEG_INFINITY {
            return most;
        }
        most + terms.iter().map(|term| (term - most).exp()).sum::<f64>().ln()
    }

    /// A trial with this density.
    pub fn sample(&self, rng: &mut (impl Rng + ?Sized)) -> Vec<f64> {
        let kernel = pick(&self.weights, rng);
        let value = |(domain, factors): &(Domain, Factors)| match factors {
            Factors::Choices(rows) => pick(&rows[kernel], rng) as f64,
            Factors::Normal(kernels) => normal_between(*domain, kernels[kernel], rng),
        };
        self.factors.iter().map(value).collect()
    }
}

/// The logarithm of the density of a normal number between the ends of `domain`.
fn log_normal(domain: Domain, (mean, deviation): (f64, f64), value: f64) -> f64 {
    let (low, high, log) = domain.ends();
    let at = |place: f64| (place - mean) / deviation;
    let place = |value: f64| at(if log { value.ln() } else { value });
    let log_density = match domain {
        Domain::Grid { step, .. } => mass(place(value - step / 2.0), place(value + step / 2.0)).ln(),
        _ => -0.5 * place(value).powi(2) - (deviation * (2.0 * PI).sqrt()).ln(),
    };
    log_density - mass(at(low), at(high)).ln()
}

/// A normal number between the ends of `domain`.
fn normal_between(domain: Domain, (mean, deviation): (f64, f64), rng: &mut (impl Rng + ?Sized)) -> f64 {
    let (low, high, _) = domain.ends();
    let Ok(normal) = Normal::new(mean, deviation) else { return domain.random(rng) };
    // The mean is between the ends, and the deviation at most their distance: a third of all numbers or more is accepted.
    loop {
        let place = normal.sample(rng);
        if (low..=high).contains(&place) {
            return domain.value(place);
        }
    }
}

/// The probabilities of choices for each value, and of the prior.
fn choices(values: &[f64], n_choices: usize) -> Vec<Vec<f64>> {
    if values.is_empty() {
        return vec![vec![1.0 / n_choices as f64; n_choices]];
    }
    let n_kernels = (values.len() + 1) as f64;
    let row = |chosen: Option<usize>| {
        let count = |choice| 1.0 / n_kernels + if Some(choice) == chosen { 1.0 } else { 0.0 };
        let counts: Vec<f64> = (0..n_choices).map(count).collect();
        let sum = counts.iter().sum::<f64>();
        counts.into_iter().map(|count| count / sum).collect()
    };
    values.iter().map(|value| row(Some(*value as usize))).chain([row(None)]).collect()
}

/// A kernel for each value, as wide as the distance to its farther neighbor, and the prior.
fn normals(domain: Domain, values: &[f64]) -> Vec<(f64, f64)> {
    let (low, high, log) = domain.ends();
    let means: Vec<f64> = values.iter().map(|value| if log { value.ln() } else { *value }).collect();
    let n = means.len();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|a, b| means[*a].total_cmp(&means[*b]));
    let width = high - low;
    let narrowest = width / (n as f64 + 2.0).min(100.0);
    let mut kernels: Vec<(f64, f64)> = means.iter().map(|mean| (*mean, width)).collect();
    for (rank, index) in order.iter().enumerate() {
        let mean = means[*index];
        let (before, after) = (
            rank.checked_sub(1).map(|rank| mean - means[order[rank]]),
            order.get(rank + 1).map(|next| means[*next] - mean),
        );
        let deviation = match (before, after) {
            (Some(before), Some(after)) => before.max(after),
            // The ends are no values.
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => (mean - low).max(high - mean),
        };
        kernels[*index].1 = deviation.clamp(narrowest, width);
    }
    kernels.push((0.5 * (low + high), width));
    kernels
}

/// The probability of a standard normal number between `a` and `b`. Far from 0, the difference of the tails keeps its digits.
fn mass(a: f64, b: f64) -> f64 {
    let tail = |x: f64| 0.5 * libm::erfc(x * FRAC_1_SQRT_2);
    if a > 0.0 { tail(a) - tail(b) } else { tail(-b) - tail(-a) }
}

/// An index with a probability of its weight.
fn pick(weights: &[f64], rng: &mut (impl Rng + ?Sized)) -> usize {
    let mut rest = rng.random::<f64>();
    let is_it = |weight: &f64| {
        rest -= weight;
        rest < 0.0
    };
    // Rounding may leave a rest.
    weights.iter().position(is_it).unwrap_or(weights.len() - 1)
}
