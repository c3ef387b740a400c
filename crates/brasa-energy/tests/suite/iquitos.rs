//! The Iquitos microgrid: yearly sums computed independently, the environment contract and conservation of energy.

use std::sync::OnceLock;

use brasa_energy::Trace;
use brasa_energy::iquitos::{ActionMode, Iquitos, IquitosConfig, ObservationMode, RewardKind};
use brasa_env::{BatchSlabs, EnvBatch, EnvError, Outcome, Scenario, Who, check_env, named_rng};
use brasa_test::cases;
use brasa_test::outcomes::{episode_return, ledger, one_equals_a_row_of_many, play, ratio, trace, value};
use ndarray::{Array2, ArrayViewMut2};
use proptest::prelude::*;
use rand::RngExt;

fn scenario(config: IquitosConfig) -> Iquitos {
    Iquitos::new(config).expect("the config is valid")
}

fn evaluate(scenario: &Iquitos, rule: &str, seed: u64) -> Outcome {
    play(scenario, Who::Baseline(rule), seed)
}

/// Every microgrid has the same figures.
fn figure(outcome: &Outcome, name: &str) -> f64 {
    static ANY: OnceLock<Iquitos> = OnceLock::new();
    value(ANY.get_or_init(|| scenario(IquitosConfig::seed())), outcome, name)
}

/// `seed` with PV times `scale`.
fn scaled_seed(scale: f64) -> Iquitos {
    let mut config = IquitosConfig::seed();
    config.pv.scale = scale;
    scenario(config)
}

/// Sums computed from the original series, once and outside this repository: import, CO2, cost, curtailed, PV to load,
/// PV to battery, stored, battery out (all per year), and the peak.
#[test]
fn the_seed_year_reproduces_the_anchors() {
    let rows: [(&str, f64, &str, [f64; 9]); 5] = [
        (
            "A greedy",
            1.0,
            "greedy",
            [
                5_659_637.56,
                2_558_722.14,
                1_131_927.51,
                23_240.97,
                6_725_035.53,
                1_294_863.51,
                1_230_120.33,
                1_170_331.91,
                2110.72,
            ],
        ),
        (
            "B battery at rest",
            1.0,
            "idle",
            [6_829_969.47, 3_087_829.20, 1_365_993.89, 1_318_104.47, 6_725_035.53, 0.0, 0.0, 0.0, 2373.40],
        ),
        (
            "B uncontrolled is the same",
            1.0,
            "uncontrolled",
            [6_829_969.47, 3_087_829.20, 1_365_993.89, 1_318_104.47, 6_725_035.53, 0.0, 0.0, 0.0, 2373.40],
        ),
        (
            "C no PV, battery at rest",
            0.0,
            "uncontrolled",
            [13_555_005.00, 6_128_217.76, 2_711_001.00, 0.0, 0.0, 0.0, 0.0, 0.0, 2373.40],
        ),
        (
            "D as A, PV / 1000",
            0.001,
            "greedy",
            [13_545_244.26, 6_123_804.93, 2_709_048.85, 0.0, 8_043.14, 0.0, 0.0, 1_717.60, 2373.40],
        ),
    ];
    for (name, scale, rule, expected) in rows {
        let outcome = evaluate(&scaled_seed(scale), rule, 0);
        let ledger = |name| ledger(&outcome, name);
        let seen = [
            figure(&outcome, "grid_import_kwh"),
            figure(&outcome, "carbon_kg"),
            figure(&outcome, "cost"),
            figure(&outcome, "pv_curtailed_kwh"),
            ledger("pv_used_kwh") - ledger("battery_in_kwh"),
            ledger("battery_in_kwh"),
            0.95 * ledger("battery_in_kwh"),
            ledger("battery_out_kwh"),
            figure(&outcome, "peak_kw"),
        ];
        for (column, (seen, expected)) in seen.iter().zip(expected).enumerate() {
            assert!((seen - expected).abs() <= 0.01, "{name}, column {column}: {seen} instead of {expected}");
        }
    }
}

#[test]
fn the_seed_year_has_the_known_sums() {
    let outcome = evaluate(&scenario(IquitosConfig::seed()), "greedy", 0);
    let ledger = |name| ledger(&outcome, name);
    assert!((ledger("pv_available_kwh") - 8_043_140.0).abs() < 1e-3);
    assert!((ledger("load_kwh") - 12_368_025.0).abs() < 1e-3);
    assert!((ledger("ev_delivered_kwh") - 1_186_980.0).abs() < 1e-3);
    assert_eq!(ledger("ev_unmet_kwh"), 0.0);
    // From half full to the minimum of 10 %.
    assert!((ledger("battery_change_kwh") - (452.0 - 2260.0)).abs() < 1e-6);
    assert!((trace::<Trace>(&outcome).soc.last().expect("a year") - 0.1).abs() < 1e-6);
    assert_eq!(trace::<Trace>(&outcome).grid_kw.len(), 8760);
}

#[test]
fn quarter_hours_carry_the_energy_of_hours() {
    let hourly = evaluate(&scenario(IquitosConfig::seed()), "uncontrolled", 0);
    let quarterly = evaluate(&scenario(IquitosConfig { step_minutes: 15, ..IquitosConfig::seed() }), "uncontrolled", 0);
    for name in ["grid_import_kwh", "carbon_kg", "cost", "peak_kw", "pv_curtailed_kwh", "ev_delivered_kwh"] {
        let (a, b) = (figure(&hourly, name), figure(&quarterly, name));
        assert!((a - b).abs() < 1e-5 * a, "{name}: {a} {b}");
    }
}

#[test]
fn the_default_year_is_physical() {
    let scenario = scenario(IquitosConfig::default());
    let mut yields = Vec::new();
    for seed in 0..4 {
        let outcome = evaluate(&scenario, "uncontrolled", seed);
        let per_kwp = ledger(&outcome, "pv_available_kwh") / 4162.0;
        assert!((1250.0..1450.0).contains(&per_kwp), "seed {seed}: {per_kwp} kWh/kWp");
        yields.push(per_kwp);
        assert!((ledger(&outcome, "load_kwh") / 12_368_025.0 - 1.0).abs() < 0.01);
        assert!(figure(&outcome, "ev_unmet_kwh") > 0.0, "the feeder is short at times");
        assert!(outcome.figures.iter().all(|f| f.ratio.is_none_or(|ratio| ratio == 1.0)));
    }
    let mean = yields.iter().sum::<f64>() / 4.0;
    assert!((1300.0..1400.0).contains(&mean), "{mean}");
}

#[test]
fn controllers_rank_as_they_should() {
    let scenario = scenario(IquitosConfig::default());
    let names: Vec<String> = scenario.baselines().into_iter().map(|baseline| baseline.name).collect();
    assert_eq!(names, ["idle", "uncontrolled", "greedy", "price-threshold", "rule-based"]);
    let [idle, uncontrolled, greedy, threshold, rule] =
        ["idle", "uncontrolled", "greedy", "price-threshold", "rule-based"].map(|rule| evaluate(&scenario, rule, 1));
    // It moves energy out of the dear hours, serves the vehicles, and keeps the soft limit like the rule.
    assert!(figure(&threshold, "cost") < figure(&greedy, "cost"));
    assert!(figure(&threshold, "peak_kw") < figure(&uncontrolled, "peak_kw"));
    assert!(figure(&threshold, "ev_unmet_kwh") < 1.05 * figure(&uncontrolled, "ev_unmet_kwh"));
    assert_eq!(ledger(&idle, "ev_delivered_kwh"), 0.0);
    assert!(figure(&idle, "ev_unmet_kwh") > 2.0 * figure(&uncontrolled, "ev_unmet_kwh"));
    assert!(figure(&greedy, "carbon_kg") < figure(&uncontrolled, "carbon_kg"));
    assert!(figure(&rule, "cost") < figure(&greedy, "cost"));
    assert!(figure(&rule, "peak_kw") < figure(&uncontrolled, "peak_kw"));
    assert!(figure(&rule, "ev_unmet_kwh") < figure(&uncontrolled, "ev_unmet_kwh"));
    let [rule_return, greedy_return, least] = [&rule, &greedy, &uncontrolled].map(episode_return);
    assert!(rule_return > greedy_return && greedy_return > least);
    // Arrivals do not depend on actions.
    assert_eq!(figure(&idle, "ev_turned_away"), figure(&rule, "ev_turned_away"));
}

#[test]
fn a_policy_that_does_nothing_special_is_uncontrolled() {
    let scenario = scenario(IquitosConfig::default());
    let by_rule = evaluate(&scenario, "uncontrolled", 5);
    let mut policy = |_: &BatchSlabs, mut actions: ArrayViewMut2<f32>| -> Result<(), EnvError> {
        actions.fill(1.0);
        actions[[0, 0]] = 0.0;
        Ok(())
    };
    let by_policy = play(&scenario, Who::Controller(&mut policy), 5);
    assert_eq!(by_rule.figures, by_policy.figures);
    assert_eq!(by_rule.details, by_policy.details);
    assert_eq!(trace::<Trace>(&by_rule).grid_kw, trace::<Trace>(&by_policy).grid_kw);
    let (by_rule, by_policy) = (trace::<Trace>(&by_rule), trace::<Trace>(&by_policy));
    assert_eq!(by_rule.socket_kw, by_policy.socket_kw);
}

#[test]
fn the_sockets_of_a_trace_add_up_to_its_vehicles() {
    let outcome = evaluate(&scenario(IquitosConfig::default()), "uncontrolled", 3);
    let trace = trace::<Trace>(&outcome);
    assert_eq!((trace.sockets.len(), trace.socket_kw.len()), (128, 8760 * 128));
    let (mut empty, mut waiting) = (0, 0);
    for (sockets, total) in trace.socket_kw.chunks(128).zip(&trace.ev_kw) {
        let powers = sockets.iter().flatten();
        let sum: f64 = powers.clone().map(|kw| f64::from(*kw)).sum();
        assert!((sum - f64::from(*total)).abs() < 1e-3, "{sum} {total}");
        empty += 128 - powers.clone().count();
        waiting += powers.filter(|kw| **kw == 0.0).count();
    }
    assert!(empty > 100_000 && waiting > 1_000, "{empty} {waiting}");
}

/// Import is at least load minus PV minus the initial energy of the battery. With one price and loads that cannot be
/// shifted, no controller is better than greedy: a later discharge, or charging from the grid, never saves more.
#[test]
fn no_policy_beats_the_bound_of_the_seed_year() {
    let bound_kwh = 5_511_865.0 - 1_808.0;
    for actions in [ActionMode::PerSocket, ActionMode::Aggregate] {
        let scenario = scenario(IquitosConfig { actions, ..IquitosConfig::seed() });
        let greedy_kwh = figure(&evaluate(&scenario, "greedy", 0), "grid_import_kwh");
        assert!(greedy_kwh > bound_kwh);
        for seed in 0..3 {
            let mut rng = named_rng(seed, "policy", 0);
            let bias = 2.0 * rng.random::<f32>() - 1.0;
            let mut policy = |_: &BatchSlabs, mut actions: ArrayViewMut2<f32>| -> Result<(), EnvError> {
                actions.iter_mut().for_each(|a| *a = 2.0 * rng.random::<f32>() - 1.0 + bias);
                Ok(())
            };
            let outcome = play(&scenario, Who::Controller(&mut policy), seed);
            assert!(figure(&outcome, "grid_import_kwh") > greedy_kwh - 1e-3);
        }
    }
}

/// The reference of each step is exact for the profile of vehicles, and correct on average for random vehicles.
#[test]
fn the_reference_of_each_step_adds_up_to_the_uncontrolled_year() {
    for (config, tolerance) in [(IquitosConfig::seed(), 1e-12), (IquitosConfig::default(), 5e-3)] {
        let mut batch = scenario(config).batch(7..8).expect("a batch");
        let mut slabs = BatchSlabs::new(batch.spec());
        batch.reset(3, &mut slabs).expect("resets");
        let mut actions = Array2::ones((1, 129));
        actions[[0, 0]] = 0.0;
        let column = |name: &str| batch.spec().info_names.iter().position(|n| n == name).expect("a figure");
        let columns = ["carbon_kg", "reference_carbon_kg", "cost", "reference_cost"].map(column);
        let mut sums = [0.0; 4];
        for _ in 0..8760 {
            batch.step(actions.view(), &mut slabs).expect("steps");
            sums.iter_mut().zip(columns).for_each(|(sum, column)| *sum += slabs.info[[0, column]]);
        }
        let [carbon, reference_carbon, cost, reference_cost] = sums;
        assert!((carbon / reference_carbon - 1.0).abs() < tolerance, "{carbon} {reference_carbon}");
        assert!((cost / reference_cost - 1.0).abs() < 2.0 * tolerance, "{cost} {reference_cost}");
    }
}

fn variants() -> Vec<IquitosConfig> {
    let mut exporting = IquitosConfig { step_minutes: 15, ..IquitosConfig::default() };
    exporting.grid.export_limit_kw = 400.0;
    exporting.grid.export_price_per_kwh = 0.1;
    exporting.battery.charge_from_grid = false;
    exporting.observations = ObservationMode::Compact;
    exporting.actions = ActionMode::Aggregate;
    exporting.pv.scale = 3.0;
    let mut original = IquitosConfig::default();
    original.reward.kind = RewardKind::Seed;
    original.grid.carbon_swing = 0.15;
    vec![IquitosConfig::default(), IquitosConfig::seed(), exporting, original]
}

/// Unusual sizes: no battery, five sockets, no PV.
fn small() -> IquitosConfig {
    let mut config = IquitosConfig::default();
    config.battery.capacity_kwh = 0.0;
    config.pv.scale = 0.0;
    config.vehicles.moto.sockets = 4;
    config.vehicles.mototaxi.sockets = 1;
    config
}

#[test]
fn the_environment_contract_holds() {
    for config in variants().into_iter().chain([small()]) {
        for (episode_steps, random_start) in [(None, false), (Some(30), true)] {
            let scenario = scenario(IquitosConfig { episode_steps, random_start, ..config.clone() });
            check_env(100, |envs| Ok(scenario.batch(envs)?)).expect("the contract holds");
        }
    }
}

/// Steps `batch` with random actions that are sometimes extreme.
fn random_actions(batch: &dyn EnvBatch, rng: &mut brasa_env::EnvRng) -> Array2<f32> {
    let extreme = rng.random_range(0..4);
    Array2::from_shape_fn((batch.n_rows(), batch.spec().action.width()), |_| match extreme {
        0 => 5.0,
        1 => -5.0,
        _ => 2.0 * rng.random::<f32>() - 1.0,
    })
}

#[test]
fn one_environment_equals_a_row_of_many() {
    let scenario = scenario(IquitosConfig { episode_steps: Some(40), random_start: true, ..Default::default() });
    let mut rng = named_rng(0, "actions", 0);
    one_equals_a_row_of_many(&scenario, 7, 4, |batch| random_actions(batch, &mut rng));
}

#[test]
fn the_year_ends_by_truncation_and_a_reset_equals_a_fresh_batch() {
    let scenario = scenario(IquitosConfig { observations: ObservationMode::Compact, ..Default::default() });
    let mut batch = scenario.batch(0..1).expect("a batch");
    let mut slabs = BatchSlabs::new(batch.spec());
    batch.reset(1, &mut slabs).expect("resets");
    let first = slabs.obs.clone();
    let actions = Array2::zeros((1, batch.spec().action.width()));
    for step in 0..8760 {
        batch.step(actions.view(), &mut slabs).expect("steps");
        assert_eq!((slabs.truncated[0], slabs.terminated[0]), (step == 8759, false), "{step}");
    }
    assert_ne!(slabs.obs, slabs.next_obs);
    // The next episode differs, but also starts on January 1.
    assert_eq!(slabs.obs.slice(ndarray::s![0, ..6]), first.slice(ndarray::s![0, ..6]));
    assert_ne!(slabs.obs, first);
    batch.reset(1, &mut slabs).expect("resets");
    assert_eq!(slabs.obs, first);
    let other = scenario.batch(0..1).expect("a batch").save();
    batch.load(&other).expect("the same settings");
    let stranger = self::scenario(IquitosConfig::seed()).batch(0..1).expect("a batch").save();
    assert!(batch.load(&stranger).expect_err("other settings").to_string().contains("other settings"));
}

#[test]
fn actions_that_are_no_numbers_are_refused() {
    let mut batch = scenario(IquitosConfig::default()).batch(0..2).expect("a batch");
    let mut slabs = BatchSlabs::new(batch.spec());
    batch.reset(0, &mut slabs).expect("resets");
    let mut actions = Array2::zeros((2, 129));
    actions[[1, 77]] = f32::NAN;
    assert!(matches!(batch.step(actions.view(), &mut slabs), Err(EnvError::Argument(_))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(24)))]

    #[test]
    fn greedy_lies_between_the_bound_and_a_battery_at_rest(
        scale in 0.0..2.0, capacity_kwh in 0.0..20_000.0, power_kw in 0.0..5000.0, efficiency in 0.7..1.0,
    ) {
        let mut config = IquitosConfig::seed();
        config.pv.scale = scale;
        config.battery.capacity_kwh = capacity_kwh;
        config.battery.power_kw = power_kw;
        config.battery.charge_efficiency = efficiency;
        let scenario = scenario(config);
        let greedy = evaluate(&scenario, "greedy", 0);
        let l = |name| ledger(&greedy, name);
        let stored_kwh = 0.4 * capacity_kwh * 0.95;
        let bound_kwh = (l("load_kwh") + l("ev_delivered_kwh") - l("pv_available_kwh") - stored_kwh).max(0.0);
        prop_assert!(bound_kwh <= l("grid_import_kwh") + 1e-6);
        prop_assert!(ratio(&scenario, &greedy, "grid_import_kwh") <= 1.0 + 1e-12);
    }

    #[test]
    fn energy_is_conserved_at_every_step(variant in 0_usize..4, seed in any::<u64>(), start in any::<u64>()) {
        let config = IquitosConfig { episode_steps: Some(70), random_start: true, ..variants()[variant].clone() };
        let limit_kwh = config.vehicles.feeder_limit_kw * config.step_hours();
        let export_kwh = config.grid.export_limit_kw * config.step_hours();
        let mut batch = scenario(config).batch(3..5).expect("a batch");
        let mut slabs = BatchSlabs::new(batch.spec());
        batch.reset(start, &mut slabs).expect("resets");
        let mut rng = named_rng(seed, "actions", 0);
        for step in 0..100 {
            let before = batch.soc(0);
            let actions = random_actions(&batch, &mut rng);
            batch.step(actions.view(), &mut slabs).expect("steps");
            let flows = batch.flows(0);
            let l = &flows.ledger;
            prop_assert!(l.bus_residual_kwh().abs() < 1e-6, "step {step}: {l:?}");
            prop_assert!(l.battery_residual_kwh().abs() < 1e-6, "step {step}: {l:?}");
            let pv_kwh = l.pv_used_kwh + l.pv_curtailed_kwh - l.pv_available_kwh;
            prop_assert!(pv_kwh.abs() < 1e-6 || l.grid_export_kwh > 0.0);
            prop_assert!(l.grid_export_kwh <= (l.pv_available_kwh + l.battery_out_kwh).min(export_kwh) + 1e-9);
            prop_assert!(l.ev_delivered_kwh <= limit_kwh * (1.0 + 1e-6));
            let flows_kwh = [
                l.pv_used_kwh, l.pv_curtailed_kwh, l.grid_export_kwh, l.grid_import_kwh, l.load_kwh, l.battery_in_kwh,
                l.battery_out_kwh, l.battery_lost_kwh, l.ev_delivered_kwh, l.ev_unmet_kwh, flows.feeder_excess_kwh,
            ];
            prop_assert!(flows_kwh.iter().all(|kwh| *kwh >= -1e-9), "step {step}: {l:?}");
            prop_assert!((0.1 - 1e-9..=0.95 + 1e-9).contains(&batch.soc(0)));
            if !slabs.truncated[0] {
                let change = (batch.soc(0) - before) * 4520.0;
                prop_assert!((change - l.battery_change_kwh).abs() < 1e-6);
            }
            prop_assert!(slabs.reward.iter().all(|r| r.is_finite()));
        }
        let total = batch.ledger(0);
        prop_assert!(total.bus_residual_kwh().abs() < 1e-6 && total.battery_residual_kwh().abs() < 1e-6);
    }
}

/// The rewards `normalised` and `improvement` differ by what no controller changes.
#[test]
fn improvement_differs_from_the_reward_by_a_constant() {
    let returns = |kind| {
        let mut config = IquitosConfig::default();
        config.reward.kind = kind;
        let scenario = Iquitos::new(config).unwrap();
        ["idle", "uncontrolled", "greedy", "price-threshold", "rule-based"]
            .map(|rule| episode_return(&play(&scenario, Who::Baseline(rule), 5)))
    };
    let (normalised, improvement) = (returns(RewardKind::Normalised), returns(RewardKind::Improvement));
    let offset = improvement[0] - normalised[0];
    for (normalised, improvement) in normalised.into_iter().zip(improvement) {
        assert!((improvement - normalised - offset).abs() < 1e-6, "{improvement} {normalised} {offset}");
    }
    // The reference serves the mean vehicle, and its peak of a month is that of means.
    assert!(improvement[1].abs() < 0.02 * normalised[1].abs(), "{improvement:?} {normalised:?}");
}
