//! A vectorized step with the actions on the device: environments of the host (read-back, step on one thread, upload) against the same
//! environments as tensor operations.

use brasa::citylearn::{CityLearn, CityLearnConfig, Physics};
use brasa::classic::tensor::{TensorCartPole, TensorPendulum};
use brasa::classic::{CartPole, Classic, Pendulum};
use brasa::contracts::{HostEnv, TensorDynamics, TensorEnv};
use brasa::energy::iquitos::{Iquitos, IquitosConfig};
use brasa::env::EnvBatch;
use brasa::uara::{Uara, UaraConfig};
use brasa_bench_kit::{bench_device_steps, settings};
use brasa_benches::{allocator, place};
use burn::tensor::Device;
use criterion::{Criterion, criterion_group, criterion_main};

allocator!();

/// Numbers of environments.
const SIZES: [usize; 2] = [64, 1024];

fn task<B: EnvBatch, D: TensorDynamics>(
    criterion: &mut Criterion,
    name: &str,
    host: impl Fn(usize) -> B,
    dynamics: impl Fn(&Device) -> (D, u32),
) {
    let place = place();
    bench_device_steps(criterion, &format!("{name}/step-host-env"), &SIZES, &place, |n_envs, place| {
        HostEnv::new(host(n_envs), &place.device)
    });
    bench_device_steps(criterion, &format!("{name}/step-tensor-env"), &SIZES, &place, |n_envs, place| {
        let (dynamics, limit) = dynamics(&place.device);
        let env = TensorEnv::new(dynamics, n_envs, &place.device).expect("a batch");
        env.with_time_limit(limit).expect("above 0")
    });
}

fn tasks(criterion: &mut Criterion) {
    let cart_pole = |n_envs| Classic::<CartPole>::cart_pole().batch(0..n_envs).expect("a batch");
    task(criterion, "cart-pole", cart_pole, |_| (TensorCartPole::default(), CartPole::TIME_LIMIT));
    let pendulum = |n_envs| Classic::<Pendulum>::pendulum().batch(0..n_envs).expect("a batch");
    task(criterion, "pendulum", pendulum, |_| (TensorPendulum::default(), Pendulum::TIME_LIMIT));
    for (name, physics) in [("district", Physics::Clean), ("district-citylearn", Physics::CityLearn30)] {
        let config = CityLearnConfig { physics, ..CityLearnConfig::default() };
        let district = CityLearn::new(config).expect("the settings are valid");
        let tensors = |device: &Device| district.tensors(device).expect("these rules have a tensor form");
        task(criterion, name, |n_envs| district.batch(0..n_envs).expect("a batch"), tensors);
    }
    for (name, config) in [("uara-cly2020", UaraConfig::cly2020()), ("uara-physical", UaraConfig::physical())] {
        let network = Uara::new(config).expect("the settings are valid");
        let tensors = |device: &Device| network.tensors(device).expect("the rules have a tensor form");
        task(criterion, name, |n_envs| network.batch(0..n_envs), tensors);
    }
    let microgrid = Iquitos::new(IquitosConfig::default()).expect("the settings are valid");
    let tensors = |device: &Device| microgrid.tensors(device).expect("the rules have a tensor form");
    task(criterion, "iquitos", |n_envs| microgrid.batch(0..n_envs).expect("a batch"), tensors);
}

criterion_group! { name = benches; config = settings(); targets = tasks }
criterion_main!(benches);
