//! Benches of a custom environment and of PPO on it: `cargo bench -p own-bench`.

use brasa::ppo::{Ppo, PpoConfig};
use brasa::prelude::*;
use brasa::{burn::module::Module, burn::tensor::Device, contracts::ActorCritic, train::OnPolicy};
use brasa_bench_kit::criterion::{Criterion, criterion_group, criterion_main};
use brasa_bench_kit::{Place, bench_act, bench_iteration, bench_steps, settings};

#[path = "../own_environment.rs"]
#[allow(dead_code, reason = "the other example's own main")]
mod own;

fn rooms(envs: std::ops::Range<usize>) -> TimeLimit<EnvVec<own::Room>> {
    TimeLimit::new(EnvVec::new(envs, |_| own::Room::default()).expect("one or more"), 96).expect("above 0")
}

fn network(device: &Device) -> MlpActorCritic {
    let (spec, rng) = (rooms(0..1).spec().clone(), &mut named_rng(0, "weights", 0));
    MlpActorCritic::new(&Default::default(), &spec.obs, &spec.action, device, rng).expect("valid")
}

fn room(criterion: &mut Criterion) {
    let place = Place::from_env().expect("the device can be opened");
    let envs = |n, place: &Place| HostEnv::new(rooms(0..n), &place.device);
    bench_steps(criterion, "room/step", &[1, 64], rooms);
    let acting = |n, place: &Place| (envs(n, place), network(&place.device.clone().autodiff()).valid());
    bench_act(criterion, "room/act", 64, &place, acting, ActorCritic::host_actor);
    bench_iteration(criterion, "room/iteration", "8-envs", &place, 8 * 128, |place| {
        let config = PpoConfig { n_steps: 128, ..PpoConfig::default() };
        let ppo = Ppo::new(network(&place.device.clone().autodiff()), config, 0).expect("valid");
        OnPolicy::new(envs(8, place), ppo, Run { total_env_steps: u64::MAX, seed: 0 }).expect("valid")
    });
}

criterion_group! { name = benches; config = settings(); targets = room }
criterion_main!(benches);
