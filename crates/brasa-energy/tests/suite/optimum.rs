//! The optimum with perfect foresight: its schedule in the simulation, its bound, and every controller beside it.

use brasa_energy::Optimum;
use brasa_energy::iquitos::{Iquitos, IquitosConfig, Objective, RewardKind};
use brasa_env::{Scenario, Who, named_rng};
use brasa_test::outcomes::{episode_return, play, random, value};
use brasa_test::slow;
use rand::{Rng, RngExt};

/// The import alone, by the flat carbon factor of the preset.
const CARBON: Objective = Objective {
    carbon_kg: 1.0,
    cost: 0.0,
    pv_curtailed_kwh: 0.0,
    ev_unmet_kwh: 0.0,
    grid_excess_kwh: 0.0,
    peak_rise_kw: 0.0,
    ramp_kw: 0.0,
    battery_kwh: 0.0,
};

/// With one price, one carbon factor and loads that cannot be shifted, immediate discharge is optimal: the anchor of
/// `greedy`, which HiGHS also gave for this year.
#[test]
fn greedy_is_the_optimum_of_the_seed_preset() {
    let scenario = Iquitos::new(IquitosConfig::seed()).unwrap();
    let optimum = scenario.optimum(&CARBON, 1).unwrap();
    for carbon_kg in [optimum.value, optimum.planned, optimum.bound] {
        assert!((carbon_kg / 0.4521 - 5_659_637.56).abs() < 1.0, "{optimum:?}");
    }
    assert!(optimum.bound <= optimum.value && optimum.gap() < 1e-7, "{optimum:?}");
}

#[test]
fn the_simulation_follows_the_schedule_and_no_controller_is_better() {
    let mut config = IquitosConfig { optimum: true, ..IquitosConfig::default() };
    // A third of the vehicles, and a feeder that still limits them.
    (config.vehicles.moto.arrivals_per_day, config.vehicles.mototaxi.arrivals_per_day) = (270.0, 39.0);
    config.vehicles.feeder_limit_kw = 50.0;
    let scenario = Iquitos::new(config).unwrap();
    let played = play(&scenario, Who::Baseline("perfect-foresight"), 3);
    let [planned, bound, gap] =
        ["planned", "bound", "gap"].map(|name| played.detail(&format!("optimum.{name}")).unwrap());
    // The details are returns, the fields of an optimum are objectives.
    let optimum = Optimum { value: -episode_return(&played), planned: -planned, bound: -bound };
    assert!((optimum.value / optimum.planned - 1.0).abs() < 1e-6, "{optimum:?}");
    assert!(optimum.bound <= optimum.value && optimum.gap() < 2e-4, "{optimum:?} {}", optimum.gap());
    assert!((optimum.gap() - gap).abs() < 1e-6);
    for rule in ["idle", "uncontrolled", "greedy", "price-threshold", "rule-based"] {
        let other = episode_return(&play(&scenario, Who::Baseline(rule), 3));
        assert!(other < -optimum.value, "{rule}: {other} is better than {}", -optimum.value);
    }
    let other = episode_return(&play(&scenario, Who::Controller(&mut random(1)), 3));
    assert!(other < -optimum.value, "{other}");
}

/// Ramps, rises of the peak and wear in the objective; without vehicles and standing losses the schedule is exact.
#[test]
fn the_schedule_weighs_peaks_ramps_and_wear() {
    let sums = |weight: f64| {
        let mut config = IquitosConfig { optimum: true, ..IquitosConfig::seed() };
        (config.reward.peak, config.reward.ramp, config.reward.wear) = (weight, weight, weight);
        let scenario = Iquitos::new(config).unwrap();
        let played = play(&scenario, Who::Baseline("perfect-foresight"), 0);
        // All three are returns.
        let planned = -played.detail("optimum.planned").unwrap();
        let bound = -played.detail("optimum.bound").unwrap();
        let objective = -episode_return(&played);
        let row = play(&scenario, Who::Baseline("bound"), 0);
        assert_eq!((row.episode_return, row.figures.len()), (Some(-bound), 0));
        assert!(
            (objective / planned - 1.0).abs() < 1e-6 && bound <= objective * (1.0 + 1e-9),
            "{objective} {planned} {bound}"
        );
        assert!((objective - bound) / bound < 1e-5, "{objective} {bound}");
        for rule in ["idle", "uncontrolled", "greedy", "rule-based"] {
            let other = -episode_return(&play(&scenario, Who::Baseline(rule), 0));
            assert!(other >= bound, "{rule}: {other} {bound}");
        }
        ["ramp_kw", "peak_kw", "carbon_kg"].map(|name| value(&scenario, &played, name))
    };
    let ([ramp, peak, carbon], [less_ramp, less_peak, more_carbon]) = (sums(0.0), sums(0.1));
    // It pays for smoothness with losses.
    assert!(
        less_ramp < 0.9 * ramp && less_peak < peak && more_carbon > carbon,
        "{less_ramp} {ramp} {less_peak} {peak}"
    );
}

/// A controller that plans with forecasts is better than every rule, and worse than foresight.
#[test]
fn planning_ahead_is_better_than_rules() {
    if !slow("a year of receding horizons") {
        return;
    }
    let scenario = Iquitos::new(IquitosConfig { optimum: true, ..IquitosConfig::default() }).unwrap();
    let names: Vec<String> = scenario.baselines().into_iter().map(|baseline| baseline.name).collect();
    let returns: Vec<f64> = names.iter().map(|name| episode_return(&play(&scenario, Who::Baseline(name), 1))).collect();
    println!("{names:?} {returns:?}");
    let [rules @ .., planned, foreseen] = &returns[..] else { panic!("{names:?}") };
    assert!(rules.iter().all(|rule| rule < planned) && planned < foreseen, "{names:?} {returns:?}");
}

/// A random site: sizes, efficiencies, tariff; vehicles by the profile, so that a year takes a second.
fn random_site(rng: &mut impl Rng) -> IquitosConfig {
    let mut config = IquitosConfig::default();
    config.vehicles.arrivals = IquitosConfig::seed().vehicles.arrivals;
    config.pv.scale = rng.random_range(0.0..2.0);
    config.battery.capacity_kwh = rng.random_range(100.0..20_000.0);
    config.battery.power_kw = config.battery.capacity_kwh * rng.random_range(0.1..1.0);
    config.battery.charge_efficiency = rng.random_range(0.8..1.0);
    config.battery.discharge_efficiency = rng.random_range(0.8..1.0);
    config.battery.soc_min = rng.random_range(0.0..0.3);
    config.battery.standing_loss_per_day = if rng.random() { rng.random_range(0.0..0.01) } else { 0.0 };
    config.battery.charge_from_grid = rng.random();
    config.grid.peak_price_per_kwh = rng.random_range(0.1..1.0);
    config.grid.demand_charge_per_kw = rng.random_range(0.0..50.0);
    config.grid.export_limit_kw = rng.random_range(0.0..1000.0);
    config.grid.export_price_per_kwh = rng.random_range(0.0..0.1);
    config.grid.carbon_swing = 0.0;
    config
}

/// By the carbon of the import: bound <= schedule <= greedy <= an unused battery. By the return: the bound holds for every rule.
#[test]
fn optimum_greedy_and_idle_are_in_this_order_for_random_sites() {
    let n_sites = if slow("99 more random sites") { 100 } else { 1 };
    for site in 0..n_sites {
        let config = random_site(&mut named_rng(site, "site", 0));
        let scenario = Iquitos::new(config.clone()).unwrap();
        let optimum = scenario.optimum(&CARBON, site).unwrap();
        let carbon = |rule| value(&scenario, &play(&scenario, Who::Baseline(rule), site), "carbon_kg");
        let (greedy, unused) = (carbon("greedy"), carbon("uncontrolled"));
        let slack = 1e-7 * unused;
        assert!(optimum.bound <= optimum.value + slack, "{site}: {optimum:?} {config:?}");
        assert!(optimum.bound <= greedy + slack, "{site}: {optimum:?} greedy {greedy} {config:?}");
        // With a standing loss, the steps at the minimum are those of the relaxed program, which may not be the best ones.
        let chosen = if config.battery.standing_loss_per_day > 0.0 { 1e-5 * unused } else { slack };
        assert!(optimum.value <= greedy + chosen, "{site}: {optimum:?} greedy {greedy} {config:?}");
        assert!(greedy <= unused + slack, "{site}: greedy {greedy} unused {unused} {config:?}");

        let best = scenario.optimum(&scenario.objective_of_return().unwrap(), site).unwrap();
        for rule in ["idle", "uncontrolled", "greedy", "price-threshold", "rule-based"] {
            let other = -episode_return(&play(&scenario, Who::Baseline(rule), site));
            assert!(best.bound <= other + 1e-7 * other.abs(), "{site} {rule}: {other} {best:?} {config:?}");
        }
        println!("{site}: gap by carbon {:.1e}, by return {:.1e}", optimum.gap(), best.gap());
    }
}

#[test]
fn what_no_linear_program_knows_is_refused() {
    let mut config = IquitosConfig { optimum: true, ..IquitosConfig::default() };
    config.reward.kind = RewardKind::Seed;
    let error = Iquitos::new(config).err().unwrap().to_string();
    assert!(error.starts_with("`reward.kind` must not be `seed` for `optimum`"), "{error}");
    let scenario = Iquitos::new(IquitosConfig::default()).unwrap();
    let error = scenario.optimum(&Objective { cost: -1.0, ..CARBON }, 0).unwrap_err().to_string();
    assert!(error.contains("objective.cost") && error.contains("at least 0"), "{error}");
}
