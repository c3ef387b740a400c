//! A layer of graph attention, forward and backward, and PPO with a policy over the graph of an office.

use std::hint::black_box;

use brasa::contracts::ActorCritic;
use brasa::train::OnPolicy;
use brasa_bench_kit::{Place, bench, bench_act, bench_iteration, bench_update, settings};
use brasa_benches::gat::{GatBench, NODES, Office, ROWS};
use brasa_benches::{ENDLESS, allocator, place};
use brasa_gat::Version;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

allocator!();

fn layer(criterion: &mut Criterion) {
    let place = place();
    for (name, version, with_edges) in [
        ("v1", Version::V1, false),
        ("v1-edges", Version::V1, true),
        ("v2", Version::V2, false),
        ("v2-edges", Version::V2, true),
    ] {
        let mut layer = None;
        let (what, size) = (format!("gat-{name}/forward-backward"), format!("{ROWS}-rows-{NODES}-nodes"));
        bench(criterion, &what, size, &place.name, Throughput::Elements(ROWS as u64), |bencher| {
            let layer = layer.get_or_insert_with(|| {
                let layer = GatBench::new(version, with_edges, &place.device);
                layer.check();
                layer
            });
            bencher.iter(|| {
                let grad = layer.forward_backward();
                place.sync();
                black_box(grad)
            });
        });
    }
}

fn office(criterion: &mut Criterion) {
    let (place, office) = (place(), Office::new());
    for n_envs in [1, 64] {
        let make = |n_envs, place: &Place| (office.envs(n_envs, &place.device), office.policy(&place.device));
        bench_act(criterion, "gat-ppo/act", n_envs, &place, make, ActorCritic::host_actor);
    }
    for (size, n_envs, n_steps, batch_size) in [("256-rows", 16, 16, 256), ("2048-rows", 64, 32, 256)] {
        let gradient_steps = (n_envs * n_steps / batch_size) as u64;
        bench_update(criterion, "gat-ppo/update", size, &place, gradient_steps, |place| {
            let rollout = office.rollout(n_envs, n_steps, &place.device);
            (office.ppo(n_steps, batch_size, &place.device), move || rollout.clone())
        });
    }
    bench_iteration(criterion, "gat-ppo/iteration", "16-envs", &place, 256, |place| {
        OnPolicy::new(office.envs(16, &place.device), office.ppo(16, 256, &place.device), ENDLESS).expect("valid")
    });
}

criterion_group! { name = benches; config = settings(); targets = layer, office }
criterion_main!(benches);
