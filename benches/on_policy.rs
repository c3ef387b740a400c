//! PPO and A2C on CartPole-v1: a decision as training makes it, an update of two sizes, and whole iterations.

use brasa::a2c::{A2c, A2cConfig};
use brasa::buffers::Discounts;
use brasa::contracts::ActorCritic;
use brasa::env::named_rng;
use brasa::nn::{ActorCriticConfig, MlpActorCritic};
use brasa::ppo::{Ppo, PpoConfig};
use brasa::train::OnPolicy;
use brasa_bench_kit::{Place, bench_act, bench_iteration, bench_update, settings};
use brasa_benches::{ENDLESS, allocator, cart_pole_config, cart_poles, collect, place};
use burn::module::Module;
use criterion::{Criterion, criterion_group, criterion_main};

allocator!();

/// Actor and critic with two layers of `hidden` units.
fn network(hidden: usize, place: &Place) -> MlpActorCritic {
    let config = ActorCriticConfig {
        actor_hidden: vec![hidden; 2],
        critic_hidden: vec![hidden; 2],
        ..ActorCriticConfig::default()
    };
    let env = cart_poles(1, &place.device);
    let (autodiff, rng) = (place.device.clone().autodiff(), &mut named_rng(0, "weights", 0));
    MlpActorCritic::new(&config, &env.spec().obs, &env.spec().action, &autodiff, rng).expect("the settings are valid")
}

fn act(criterion: &mut Criterion) {
    // Both algorithms act with the same kind of network.
    for n_envs in [8, 64] {
        let make = |n_envs, place: &Place| (cart_poles(n_envs, &place.device), network(64, place).valid());
        bench_act(criterion, "actor-critic/act", n_envs, &place(), make, ActorCritic::host_actor);
    }
}

/// Environments, steps per rollout, width of the layers, and settings.
type Size<C> = (&'static str, [usize; 3], C);

fn ppo_sizes() -> [Size<PpoConfig>; 2] {
    let large = PpoConfig { n_steps: 128, batch_size: 2048, n_epochs: 4, ..cart_pole_config() };
    [("256-rows", [8, 32, 64], cart_pole_config()), ("8192-rows", [64, 128, 256], large)]
}

fn ppo(criterion: &mut Criterion) {
    let place = place();
    for (size, [n_envs, n_steps, hidden], config) in ppo_sizes() {
        let gradient_steps = config.n_epochs * n_envs * n_steps / config.batch_size;
        let discounts = Discounts { gamma: config.gamma, gae_lambda: config.gae_lambda };
        bench_update(criterion, "ppo/update", size, &place, gradient_steps as u64, |place| {
            let network = network(hidden, place);
            let mut envs = cart_poles(n_envs, &place.device);
            let rollout = collect(&mut envs, &network.valid(), n_steps, discounts);
            (Ppo::new(network, config.clone(), 0).expect("the settings are valid"), move || rollout.clone())
        });
        let size = format!("{n_envs}-envs");
        bench_iteration(criterion, "ppo/iteration", &size, &place, (n_envs * n_steps) as u64, |place| {
            let ppo = Ppo::new(network(hidden, place), config.clone(), 0).expect("the settings are valid");
            OnPolicy::new(cart_poles(n_envs, &place.device), ppo, ENDLESS).expect("the settings are valid")
        });
    }
}

fn a2c(criterion: &mut Criterion) {
    let place = place();
    let sizes: [Size<A2cConfig>; 2] = [
        ("64-rows", [8, 8, 64], A2cConfig { n_steps: 8, ..A2cConfig::default() }),
        ("2048-rows", [64, 32, 256], A2cConfig { n_steps: 32, ..A2cConfig::default() }),
    ];
    for (size, [n_envs, n_steps, hidden], config) in sizes {
        let discounts = Discounts { gamma: config.gamma, gae_lambda: config.gae_lambda };
        bench_update(criterion, "a2c/update", size, &place, 1, |place| {
            let network = network(hidden, place);
            let mut envs = cart_poles(n_envs, &place.device);
            let rollout = collect(&mut envs, &network.valid(), n_steps, discounts);
            (A2c::new(network, config.clone(), 0).expect("the settings are valid"), move || rollout.clone())
        });
        let size = format!("{n_envs}-envs");
        bench_iteration(criterion, "a2c/iteration", &size, &place, (n_envs * n_steps) as u64, |place| {
            let a2c = A2c::new(network(hidden, place), config.clone(), 0).expect("the settings are valid");
            OnPolicy::new(cart_poles(n_envs, &place.device), a2c, ENDLESS).expect("the settings are valid")
        });
    }
}

criterion_group! { name = benches; config = settings(); targets = act, ppo, a2c }
criterion_main!(benches);
