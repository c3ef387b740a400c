//! Thirty independent deep Q-learners in one batch: decisions, updates with their sampling, and whole iterations.

use brasa::contracts::{Learner, Progress};
use brasa::env::named_rng;
use brasa::nn::Sharing;
use brasa_bench_kit::{bench_act, bench_iteration, bench_update, settings};
use brasa_benches::team_dqn::{TeamBench, TeamShape};
use brasa_benches::team_loop::{STEPS, learners, network, training};
use brasa_benches::{allocator, place};
use criterion::{Criterion, criterion_group, criterion_main};

allocator!();

fn team(criterion: &mut Criterion) {
    let place = place();
    let published = TeamShape::PUBLISHED;
    let acting = |_, place: &brasa_bench_kit::Place| {
        let env = network(&place.device);
        let policy = learners(published, &env, &place.device).policy(Progress::new(50_000, 100_000));
        (env, policy)
    };
    bench_act(criterion, "team/act", 1, &place, acting, |_| None);
    for (size, shape) in [
        ("8-rows", TeamShape { batch: 8, ..published }),
        ("32-rows", published),
        ("32-rows-dueling", TeamShape { dueling: true, ..published }),
        ("32-rows-shared-trunk", TeamShape { sharing: Sharing::Trunk, ..published }),
        ("32-rows-shared-all", TeamShape { sharing: Sharing::All, ..published }),
    ] {
        bench_update(criterion, "team/update", size, &place, 1, |place| {
            let (learner, replay) = TeamBench::new(shape, &place.device).into_parts();
            let mut rng = named_rng(0, "replay", 1);
            (learner, move || replay.sample(shape.batch, 0.0, &mut rng))
        });
    }
    bench_iteration(criterion, "team/iteration", "1-envs", &place, STEPS, |place| training(published, &place.device));
}

criterion_group! { name = benches; config = settings(); targets = team }
criterion_main!(benches);
