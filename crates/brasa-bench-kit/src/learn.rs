//! Updates of learners and iterations of training loops.

use std::hint::black_box;

use brasa_core::{Learner, Progress};
use brasa_device::runs_on_host;
use brasa_nn::{Persist, Saved};
use brasa_train::Training;
use criterion::{Criterion, Throughput};

use crate::{Place, bench};

/// Halfway through a run.
const PROGRESS: Progress = Progress::new(50_000, 100_000);

/// Measures one update of a learner, including the construction of its batch. `make` constructs the learner and a function that returns
/// the next batch, for example a sample of a replay buffer or a copy of one rollout. `gradient_steps` is the number of gradient steps of
/// an update.
///
/// Before the clock starts, an update must have finite metrics and change the weights of the policy. On the CPU, a second learner must have
/// the same weights after it.
///
/// # Panics
/// If one of these checks fails.
pub fn bench_update<L, F>(
    criterion: &mut Criterion,
    what: &str,
    size: &str,
    place: &Place,
    gradient_steps: u64,
    make: impl Fn(&Place) -> (L, F),
) where
    L: Learner + Persist,
    F: FnMut() -> L::Batch,
{
    let mut started = None;
    bench(criterion, what, size, &place.name, Throughput::Elements(gradient_steps), |bencher| {
        let (learner, next) = started.get_or_insert_with(|| {
            let (mut learner, mut next) = make(place);
            let before = learner.save();
            let after = updated(&mut learner, &mut next);
            assert_ne!(before.policy, after.policy, "an update changes the weights of the policy");
            if runs_on_host(&place.device) {
                let (mut second, mut batches) = make(place);
                assert!(updated(&mut second, &mut batches) == after, "equal updates give equal weights");
            }
            (learner, next)
        });
        bencher.iter(|| {
            let metrics = learner.update(next(), PROGRESS);
            place.sync();
            black_box(metrics)
        });
    });
}

/// The state after the smallest number of updates that train every part: some learners update their actor every second time.
fn updated<L: Learner + Persist>(learner: &mut L, next: &mut impl FnMut() -> L::Batch) -> Saved {
    for _ in 0..2 {
        learner.update(next(), PROGRESS).read().expect("metrics are finite");
    }
    learner.save()
}

/// Measures an iteration of a training loop: a rollout and its update, or `log_interval` steps with their updates. The loop must not end:
/// give it a `total_env_steps` of `u64::MAX`.
///
/// Before the clock starts, two iterations must take equally many environment steps, with finite metrics.
///
/// # Panics
/// If an iteration fails, or takes no or another number of steps.
pub fn bench_iteration<T: Training>(
    criterion: &mut Criterion,
    what: &str,
    size: &str,
    place: &Place,
    env_steps: u64,
    make: impl Fn(&Place) -> T,
) {
    let mut started = None;
    bench(criterion, what, size, &place.name, Throughput::Elements(env_steps), |bencher| {
        let training = started.get_or_insert_with(|| {
            let mut training = make(place);
            for _ in 0..2 {
                let before = training.counters().env_steps;
                let iteration = training.iterate().expect("an iteration succeeds");
                let taken = iteration.env_steps - before;
                assert_eq!(taken, env_steps, "`env_steps` must be the steps of an iteration");
                let finite = iteration.metrics.iter().all(|(_, value)| value.is_finite());
                assert!(finite, "metrics are finite, got {:?}", iteration.metrics);
            }
            training
        });
        bencher.iter(|| black_box(training.iterate().expect("an iteration succeeds")));
    });
}
