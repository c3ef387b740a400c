//! The optimum of a station with perfect foresight: its bound for every controller, and its schedule in the simulation.

use crate::common;

use brasa_energy::Optimum;
use brasa_energy::station::{ActionMode, ArrivalConfig, LimitMode, Station, StationConfig};
use brasa_env::{BatchSlabs, EnvError, EnvRng, Scenario, Space, Split, Who, named_rng};
use brasa_test::outcomes::{episode_return, play};
use brasa_test::slow;
use common::station::random_config;
use ndarray::ArrayViewMut2;
use rand::RngExt;

const RULES: [&str; 5] = ["idle", "uncontrolled", "spread", "price-threshold", "peak-shaving"];

/// Random actions of the space.
fn random(space: &Space, mut rng: EnvRng) -> impl FnMut(&BatchSlabs, ArrayViewMut2<'_, f32>) -> Result<(), EnvError> {
    let heads = match space {
        Space::MultiDiscrete(heads) => Some(heads.clone()),
        _ => None,
    };
    move |_, mut actions| {
        for (i, action) in actions.iter_mut().enumerate() {
            *action = match &heads {
                Some(heads) => rng.random_range(0..heads[i]) as f32,
                None => 2.0 * rng.random::<f32>() - 1.0,
            };
        }
        Ok(())
    }
}

/// Every controller returns at most the bound, and the schedule at least as much as every rule.
fn check(config: StationConfig, seed: u64) -> f64 {
    let station = Station::new(StationConfig { optimum: true, ..config }).expect("the config is valid");
    let played = play(&station, Who::Baseline("perfect-foresight"), seed);
    let [planned, bound] =
        ["planned", "bound"].map(|name| played.detail(&format!("optimum.{name}")).expect("a detail"));
    // The details are returns, the fields of an optimum are objectives.
    let optimum = Optimum { value: -episode_return(&played), planned: -planned, bound: -bound };
    let row = play(&station, Who::Baseline("bound"), seed);
    assert_eq!((row.episode_return, row.figures.len()), (Some(bound), 0));
    let size = optimum.bound.abs().max(1.0);
    let most = -optimum.bound + 1e-7 * size;
    assert!(-optimum.value <= most, "{seed}: {optimum:?} {:?}", station.config());
    for rule in RULES {
        let other = episode_return(&play(&station, Who::Baseline(rule), seed));
        assert!(other <= most, "{seed} {rule}: {other} {optimum:?} {:?}", station.config());
        assert!(other <= -optimum.value + 1e-9 * size, "{seed} {rule}: {other} {optimum:?} {:?}", station.config());
    }
    let space = station.envs(Split::Train, 0..1).expect("a batch").spec().action.clone();
    for policy in 0..3 {
        let mut controller = random(&space, named_rng(seed, "policy", policy));
        let other = episode_return(&play(&station, Who::Controller(&mut controller), seed));
        assert!(other <= most, "{seed} {policy}: {other} {optimum:?} {:?}", station.config());
    }
    println!("{seed}: {optimum:?} gap {:.1e}", optimum.gap());
    (optimum.value - optimum.bound) / size
}

/// A random station with any weights of the reward, and prices that are sometimes negative.
fn random_station(seed: u64) -> StationConfig {
    let mut rng = named_rng(seed, "weights", 0);
    let mut config = random_config(seed);
    // Thousands of cars make a program that takes minutes.
    config.step_minutes = config.step_minutes.max(10);
    config.arrivals.cars_per_day *= 0.2;
    config.reward.unmet_per_kwh = rng.random_range(0.0..1.0);
    config.reward.excess_per_kwh = rng.random_range(0.0..0.5);
    config.reward.degradation_per_kwh = rng.random_range(0.0..0.1);
    config.reward.turned_away = rng.random_range(0.0..5.0);
    config.reward.overtime_per_hour = rng.random_range(0.0..5.0);
    config.reward.stored_per_kwh = rng.random_range(0.0..0.3);
    if rng.random() {
        config.reward.carbon_per_kg = rng.random_range(0.0..0.5);
        config.reward.peak_per_kw = rng.random_range(0.0..1.0);
        config.reward.ramp_per_kw = rng.random_range(0.0..0.1);
        config.reward.curtailed_per_kwh = rng.random_range(0.0..0.2);
    }
    if rng.random_range(0..3) == 0 {
        config.prices.buy_per_kwh = Some((0..24).map(|_| rng.random_range(-0.2..0.6)).collect());
        config.prices.export_discount_per_kwh = rng.random_range(-0.02..0.1);
    }
    config
}

#[test]
fn no_controller_of_a_random_station_exceeds_the_bound() {
    let n_stations = if slow("95 more random stations") { 100 } else { 5 };
    for seed in 0..n_stations {
        check(random_station(seed), seed);
    }
}

/// Where no driver waits for energy, the cars are where they are whatever a controller does: the schedule reaches the bound.
#[test]
fn without_drivers_that_wait_the_schedule_is_the_optimum() {
    for seed in 0..4 {
        let mut config = StationConfig { step_minutes: 15, v2g: seed % 2 == 1, ..StationConfig::default() };
        config.arrivals.energy_bound_share = Some(0.0);
        if seed > 1 {
            (config.reward.peak_per_kw, config.reward.ramp_per_kw) = (0.2, 0.01);
            (config.reward.carbon_per_kg, config.reward.curtailed_per_kwh) = (0.1, 0.05);
        }
        let gap = check(config, seed);
        assert!(gap < 1e-5, "{seed}: {gap}");
    }
}

/// One car, one battery, two prices: the optimum by hand.
#[test]
fn an_optimum_by_hand() {
    let mut config = StationConfig { step_minutes: 60, first_day: Some(0), ..StationConfig::default() };
    config.pv.peak_kw = 0.0;
    config.arrivals = ArrivalConfig { cars_per_day: 0.0, ..ArrivalConfig::default() };
    let prices = (0..24).map(|hour| if hour < 12 { 0.1 } else { 0.5 }).collect();
    config.prices.buy_per_kwh = Some(prices);
    config.reward.stored_per_kwh = 0.0;
    config.reward.degradation_per_kwh = 0.0;
    let station = Station::new(config).expect("the config is valid");
    let optimum = station.optimum(0).expect("it is solved");
    // It starts with 200 of 400 kWh, buys 200 / 0.95 kWh, and sells 400 * 0.95 kWh, through a node with an efficiency of 0.99.
    let profit = 400.0 * 0.95 * 0.99 * (0.5 - 0.03) - 200.0 / 0.95 / 0.99 * 0.1;
    for objective in [optimum.value, optimum.planned, optimum.bound] {
        assert!((objective + profit).abs() < 1e-4, "{optimum:?} {profit}");
    }
}

#[test]
fn orders_above_limits_and_levels_are_bounded_too() {
    let mut config = StationConfig { limits: LimitMode::Penalize, ..StationConfig::chargax() };
    (config.step_minutes, config.reward.excess_per_kwh) = (15, 0.3);
    (config.actions, config.arrivals.cars_per_day) = (ActionMode::Discrete, 40.0);
    check(config, 1);
}

/// The presets in their own steps.
#[test]
fn the_gaps_of_the_presets() {
    if !slow("the presets in steps of five minutes") {
        return;
    }
    for (config, most) in [(StationConfig::default(), 0.3), (StationConfig::chargax(), 0.6)] {
        for seed in 1..3 {
            let begin = std::time::Instant::now();
            let gap = check(config.clone(), seed);
            println!("gap {gap:.4} after {:?}", begin.elapsed());
            assert!(gap < most, "{seed}: {gap}");
        }
    }
}
