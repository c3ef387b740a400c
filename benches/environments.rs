//! Steps of every environment on the host with random legal actions: one environment, a batch, and a batch on all cores.

use std::ops::Range;

use brasa::citylearn::{CityLearn, CityLearnConfig};
use brasa::classic::{
    Acrobot, CartPole, Classic, MountainCar, MountainCarContinuous, Pendulum, Spread, SpreadConfig, Tag, TagConfig,
};
use brasa::energy::iquitos::{Iquitos, IquitosConfig};
use brasa::energy::station::{Station, StationConfig};
use brasa::env::{EnvBatch, Precision, Threaded};
use brasa::evacuation::{Buildings, Evacuation, EvacuationConfig, Reference, RulesConfig};
use brasa::uara::{Candidates, LayoutConfig, Redraw, Uara, UaraConfig, baselines::greedy};
use brasa_bench_kit::{bench, bench_steps, settings};
use brasa_benches::allocator;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

allocator!();

/// Measures one environment and `n_envs` of them, on one thread and on as many threads as there are cores.
fn task<B: EnvBatch + 'static>(criterion: &mut Criterion, name: &str, n_envs: usize, make: impl Fn(Range<usize>) -> B) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    sizes(criterion, name, &[1, n_envs], (&[n_envs], cores), make);
}

/// Measures numbers of environments on one thread, and others on several threads.
fn sizes<B: EnvBatch + 'static>(
    criterion: &mut Criterion,
    name: &str,
    on_one: &[usize],
    (on_several, n_threads): (&[usize], usize),
    make: impl Fn(Range<usize>) -> B,
) {
    bench_steps(criterion, &format!("{name}/step"), on_one, &make);
    bench_steps(criterion, &format!("{name}/step-threaded"), on_several, |envs| {
        Threaded::new(envs.len(), n_threads.min(envs.len()), |range| Ok(make(range))).expect("threads start")
    });
}

fn classic(criterion: &mut Criterion) {
    const N_ENVS: usize = 1024;
    // One step of 1,024 takes some microseconds, about as long as to wake a thread.
    let (on_one, on_two) = ([1, 64, N_ENVS], (&[N_ENVS, 16 * N_ENVS][..], 2));
    for (precision, ending) in [(Precision::F64, ""), (Precision::F32, "-f32")] {
        let cart_pole = Classic::<CartPole>::cart_pole().with_precision(precision);
        let batch = |envs| cart_pole.batch(envs).expect("a batch");
        sizes(criterion, &format!("cart-pole{ending}"), &on_one, on_two, batch);
        let pendulum = Classic::<Pendulum>::pendulum().with_precision(precision);
        let batch = |envs| pendulum.batch(envs).expect("a batch");
        sizes(criterion, &format!("pendulum{ending}"), &on_one, on_two, batch);
    }
    task(criterion, "acrobot", N_ENVS, |envs| Classic::<Acrobot>::acrobot().batch(envs).expect("a batch"));
    task(criterion, "mountain-car", N_ENVS, |envs| {
        Classic::<MountainCar>::mountain_car().batch(envs).expect("a batch")
    });
    task(criterion, "mountain-car-continuous", N_ENVS, |envs| {
        Classic::<MountainCarContinuous>::mountain_car_continuous().batch(envs).expect("a batch")
    });
    let spread = Spread::new(SpreadConfig::default()).expect("the default is valid");
    task(criterion, "simple-spread", N_ENVS, |envs| spread.batch(envs).expect("there are some"));
    let tag = Tag::new(TagConfig::default()).expect("the default is valid");
    task(criterion, "simple-tag", N_ENVS, |envs| tag.batch(envs).expect("there are some"));
}

fn energy(criterion: &mut Criterion) {
    let district = CityLearn::new(CityLearnConfig::default()).expect("the default is valid");
    task(criterion, "district", 1024, |envs| district.batch(envs).expect("a batch"));
    let microgrid = Iquitos::new(IquitosConfig::default()).expect("the default is valid");
    task(criterion, "iquitos", 64, |envs| microgrid.batch(envs).expect("a batch"));
    for (name, config) in [("station", StationConfig::default()), ("station-chargax", StationConfig::chargax())] {
        let station = Station::new(config).expect("presets are valid");
        task(criterion, name, 64, |envs| station.batch(envs).expect("a batch"));
    }
}

fn evacuation(criterion: &mut Criterion) {
    for (name, reference) in [
        ("evacuation-office", Reference::Office),
        ("evacuation-daycare", Reference::Daycare),
        ("evacuation-warehouse", Reference::Warehouse),
    ] {
        let config = EvacuationConfig { buildings: Buildings::Reference(reference), rules: RulesConfig::default() };
        let building = Evacuation::new(config).expect("the settings are valid");
        task(criterion, name, 64, |envs| building.batch(envs));
    }
}

fn networks(criterion: &mut Criterion) {
    // Every network has its own layout, so that results do not profit from the cache.
    let layouts = |config: UaraConfig| UaraConfig {
        layout: LayoutConfig { redraw: Redraw::Environment, ..config.layout },
        candidates: Candidates::Covered,
        ..config
    };
    for (name, config, n_envs) in [
        ("uara-cly2020", layouts(UaraConfig::cly2020()), 256),
        ("uara-zhao2019", layouts(UaraConfig::zhao2019()), 256),
        ("uara-physical", UaraConfig::physical(), 16),
    ] {
        let network = Uara::new(config).expect("the settings are valid");
        task(criterion, name, n_envs, |envs| network.batch(envs));
        let mut snapshot = None;
        let throughput = Throughput::Elements(1);
        bench(criterion, &format!("{name}/greedy"), "1-envs", "cpu", throughput, |bencher| {
            let snapshot = snapshot.get_or_insert_with(|| {
                let mut batch = network.batch(0..1);
                batch.reset(0, &mut brasa::env::BatchSlabs::new(batch.spec())).expect("the environment starts");
                let snapshot = batch.snapshot(0);
                let rate = snapshot.outcome(&greedy(&snapshot, network.objective())).qos_rate();
                assert!(rate > 0.5, "the heuristic satisfies most users, got {rate}");
                snapshot
            });
            bencher.iter(|| greedy(snapshot, network.objective()));
        });
    }
}

criterion_group! { name = benches; config = settings(); targets = classic, energy, evacuation, networks }
criterion_main!(benches);
