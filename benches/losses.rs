//! Losses of 256 rows with their derivatives, each from one rule: PPO's, SAC's critics', DQN's; and PPO's written out row by row.
//!
//! The speed of a rule is fragile: where numbers stand behind a reference, a compiler stops to vectorize, and no test fails. So this bench stops
//! with an error if PPO's rule takes longer than the loop that is written out.

use std::hint::black_box;
use std::time::Instant;

use brasa::dqn::DqnLoss;
use brasa::kernels::{HostLossData, HostTensor, LossData, row_loss_on_host};
use brasa::number::{Number, RowLoss};
use brasa::ppo::{Surrogate, ValueLoss};
use brasa::sac::BellmanError;
use brasa_bench_kit::{bench, settings};
use brasa_benches::allocator;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

allocator!();

const ROWS: usize = 256;
const CLIP: f32 = 0.2;
const SURROGATE: Surrogate =
    Surrogate { dual_clip: None, clip_range_vf: None, vf_loss: ValueLoss::Clipped, vf_coef: 0.5, ent_coef: 0.01 };

/// Numbers between -0.5 and 0.5, different for every column.
fn column(seed: usize) -> Vec<f32> {
    (0..ROWS).map(|i| ((i * 7919 + seed * 104_729) % 1009) as f32 / 1009.0 - 0.5).collect()
}

fn data<const D: usize>() -> [HostLossData; D] {
    std::array::from_fn(|i| {
        let tensor = HostTensor::tensor::<1>(column(i + 10), [ROWS]);
        HostLossData::of(LossData::Rows(&tensor)).expect("on the CPU")
    })
}

/// PPO's loss, its three parts, share of clipped ratios and divergence, and derivatives, row by row.
fn written_out(results: [&[f32]; 3], data: [&[f32]; 5]) -> ([f64; 6], [Vec<f32>; 3]) {
    let ([log_prob, entropy, value], [old_log_prob, _, advantage, returns, weight]) = (results, data);
    let mean = 1.0 / ROWS as f32;
    let (mut sums, mut slopes) = ([0.0f64; 6], [(); 3].map(|()| Vec::with_capacity(ROWS)));
    for i in 0..ROWS {
        let (weight, advantage) = (weight[i], advantage[i] * weight[i]);
        let log_ratio = log_prob[i] - old_log_prob[i];
        let ratio = log_ratio.exp();
        let (plain, bounded) = (ratio * advantage, ratio.clamp(1.0 - CLIP, 1.0 + CLIP) * advantage);
        let is_clipped = bounded < plain;
        slopes[0].push(if is_clipped { 0.0 } else { -plain * mean });
        slopes[1].push(-weight * mean * SURROGATE.ent_coef as f32);
        let error = returns[i] - value[i];
        slopes[2].push(-2.0 * error * mean * SURROGATE.vf_coef as f32);
        let policy = -(if is_clipped { bounded } else { plain });
        let (square, certainty) = (error * error, -weight * entropy[i]);
        let clipped = if (ratio - 1.0).abs() > CLIP { weight } else { 0.0 };
        let loss = policy + square * SURROGATE.vf_coef as f32 + certainty * SURROGATE.ent_coef as f32;
        let parts = [loss, policy, square, certainty, clipped, weight * (ratio - 1.0 - log_ratio)];
        sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += f64::from(part));
    }
    (sums.map(|sum| sum / ROWS as f64), slopes)
}

/// The shortest of many runs, in seconds.
fn shortest(mut work: impl FnMut()) -> f64 {
    let one = |_| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64()
    };
    (0..3000).map(one).fold(f64::INFINITY, f64::min)
}

/// The means of a loss in 64 bits.
fn check<const X: usize, const D: usize, const R: usize>(loss: &impl RowLoss<X, D, R>, got: [f64; R]) {
    let (results, data): ([Vec<f32>; X], [Vec<f32>; D]) =
        (std::array::from_fn(column), std::array::from_fn(|i| column(i + 10)));
    let of = |columns: &[Vec<f32>], row: usize, i: usize| f64::from(columns[i][row]);
    for (k, got) in got.into_iter().enumerate() {
        let sum: f64 = (0..ROWS)
            .map(|row| {
                loss.row(std::array::from_fn(|i| of(&results, row, i)), std::array::from_fn(|i| of(&data, row, i)))[k]
            })
            .sum();
        let expected = sum / ROWS as f64;
        assert!((got - expected).abs() < 1e-5 * expected.abs().max(1.0), "{got} instead of {expected}");
    }
}

fn of_rule<const X: usize, const D: usize, const R: usize>(
    criterion: &mut Criterion,
    what: &str,
    loss: &(impl RowLoss<X, D, R> + Copy),
) {
    let (results, data): ([Vec<f32>; X], _) = (std::array::from_fn(column), data::<D>());
    let run = || row_loss_on_host(loss, results.each_ref().map(|x| black_box(&x[..])), data.each_ref(), 1);
    check(loss, run().0);
    bench(criterion, what, "256-rows", "cpu", Throughput::Elements(ROWS as u64), |bencher| bencher.iter(run));
}

/// PPO's loss with a clip range that is the same for all rows.
#[derive(Clone, Copy)]
struct WithClip;

impl RowLoss<3, 5, 6> for WithClip {
    #[inline(always)]
    fn row<N: Number>(&self, results: [N; 3], [a, b, c, d, e]: [N; 5]) -> [N; 6] {
        SURROGATE.row(results, [a, b, c, d, e, e.constant(f64::from(CLIP))])
    }
}

fn losses(criterion: &mut Criterion) {
    let (results, columns): ([Vec<f32>; 3], [Vec<f32>; 5]) =
        (std::array::from_fn(column), std::array::from_fn(|i| column(i + 10)));
    let data = data::<5>();
    let literal = || written_out(results.each_ref().map(|x| black_box(&x[..])), columns.each_ref().map(|x| &x[..]));
    let rule = || row_loss_on_host(&WithClip, results.each_ref().map(|x| black_box(&x[..])), data.each_ref(), 1);
    check(&WithClip, literal().0);
    let (by_rule, by_hand) = (shortest(|| drop(black_box(rule()))), shortest(|| drop(black_box(literal()))));
    // Without optimization nothing is vectorized.
    assert!(
        cfg!(debug_assertions) || by_rule < by_hand,
        "PPO's rule takes {by_rule:.1e} s, written out {by_hand:.1e} s"
    );
    bench(criterion, "ppo/loss-written-out", "256-rows", "cpu", Throughput::Elements(ROWS as u64), |bencher| {
        bencher.iter(literal);
    });
    of_rule(criterion, "ppo/loss", &WithClip);
    of_rule(criterion, "sac/critic-loss", &BellmanError);
    of_rule(criterion, "dqn/loss", &DqnLoss::Huber);
}

criterion_group! { name = benches; config = settings(); targets = losses }
criterion_main!(benches);
