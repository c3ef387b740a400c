//! The charging station: conservation of energy, limits, the environment contract, controllers and closed cases.

use crate::common;

use brasa_energy::Trace;
use brasa_energy::station::{
    ActionMode, ArrivalConfig, CarModel, LimitMode, NodeConfig, RewardKind, SocketActions, Station, StationBatch,
    StationConfig,
};
use brasa_env::{
    BatchSlabs, EnvBatch, EnvError, Evaluation, Outcome, Reference, Scenario, Space, Split, Who, check_env, named_rng,
};
use brasa_test::cases;
use brasa_test::outcomes::{episode_return, ledger, one_equals_a_row_of_many, play, ratio, trace, value};
use common::station::{random_actions, random_config};
use ndarray::{Array2, ArrayViewMut2};
use proptest::prelude::*;
use rand::RngExt;

const RULES: [&str; 5] = ["idle", "uncontrolled", "spread", "price-threshold", "peak-shaving"];

fn scenario(config: StationConfig) -> Station {
    Station::new(config).expect("the config is valid")
}

fn batch(config: StationConfig, envs: std::ops::Range<usize>) -> (StationBatch, BatchSlabs) {
    let batch = scenario(config).batch(envs).expect("a batch");
    let slabs = BatchSlabs::new(batch.spec());
    (batch, slabs)
}

/// Steps a random station and checks every balance and limit.
fn hold_law(seed: u64) -> Result<(), TestCaseError> {
    let config = random_config(seed);
    let hours = config.step_hours();
    let root = config.nodes[0].clone();
    let (capacity_kwh, pv_kwh) = (config.battery.capacity_kwh, config.pv.peak_kw * hours);
    let (curtails, v2g, export_kw) = (config.limits == LimitMode::Curtail, config.v2g, config.prices.export_limit_kw);
    let (mut batch, mut slabs) = batch(config, 3..5);
    batch.reset(seed, &mut slabs).expect("resets");
    let mut rng = named_rng(seed, "actions", 0);
    for step in 0..60 {
        let (stored_kwh, cars_kwh) = (batch.stored_kwh(0), batch.cars_kwh(0).to_vec());
        let actions = random_actions(&batch, &mut rng);
        batch.step(actions.view(), &mut slabs).expect("steps");
        let flows = batch.flows(0);
        let l = &flows.ledger;
        prop_assert!(l.residual_kwh().abs() < 1e-6, "step {step}: {} in {l:?}", l.residual_kwh());
        prop_assert!(l.battery_residual_kwh().abs() < 1e-6, "step {step}: {l:?}");
        for (name, kwh) in l.entries() {
            prop_assert!(kwh >= -1e-9 || name == "battery_change_kwh", "step {step}: {name} of {l:?}");
        }
        if curtails {
            let limit_kwh = root.limit_kw.map_or(f64::INFINITY, |kw| kw * hours);
            prop_assert!(l.grid_import_kwh <= limit_kwh * (1.0 + 1e-12));
            prop_assert!(l.grid_export_kwh <= export_kw.map_or(limit_kwh, |kw| kw * hours).min(limit_kwh) + 1e-9);
        }
        prop_assert!(l.grid_export_kwh <= l.pv_available_kwh + l.battery_out_kwh + l.ev_returned_kwh + 1e-9);
        prop_assert!(l.grid_import_kwh * l.grid_export_kwh == 0.0 && l.battery_in_kwh * l.battery_out_kwh == 0.0);
        prop_assert!(l.pv_curtailed_kwh <= l.pv_available_kwh && l.pv_available_kwh <= pv_kwh + 1e-9);
        prop_assert!(v2g || l.ev_returned_kwh == 0.0);
        prop_assert!(flows.excess_kwh >= 0.0 && slabs.reward.iter().all(|reward| reward.is_finite()));
        if slabs.truncated[0] {
            continue;
        }
        let change_kwh = batch.stored_kwh(0) - stored_kwh;
        prop_assert!((change_kwh - l.battery_change_kwh).abs() < 1e-9);
        let battery_kwh = 0.1 * capacity_kwh - 1e-9..=0.9 * capacity_kwh + 1e-9;
        prop_assert!(battery_kwh.contains(&batch.stored_kwh(0)), "{} kWh", batch.stored_kwh(0));
        if flows.departed == 0 {
            // What went into the cars is in the cars, or came with new ones.
            let powers_kwh: f64 = batch.socket_powers_kw(0).iter().map(|kw| kw * hours).sum();
            prop_assert!((powers_kwh - (l.ev_delivered_kwh - l.ev_returned_kwh)).abs() < 1e-9);
            for ((before, after), kw) in cars_kwh.iter().zip(batch.cars_kwh(0)).zip(batch.socket_powers_kw(0)) {
                prop_assert!(*before == 0.0 || (after - before - kw * hours).abs() < 1e-9);
            }
        }
    }
    let total = batch.ledger(0);
    prop_assert!(total.residual_kwh().abs() < 1e-6 && total.battery_residual_kwh().abs() < 1e-6);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn energy_is_conserved_at_every_step_of_any_station(seed in any::<u64>()) {
        hold_law(seed)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(100)))]

    /// What is known of an episode bounds every policy: cars take at most their needs, and what they take beyond PV and
    /// the battery's charge is imported at one of the listed prices.
    #[test]
    fn no_policy_beats_the_bounds_of_its_episode(seed in any::<u64>()) {
        let config = StationConfig { step_minutes: 15, ..random_config(seed) };
        let n_steps = config.n_steps();
        // The cars that come after the last step take nothing.
        let (prices, battery) = (config.prices.clone(), config.battery.clone());
        let station = scenario(config);
        let listed = station.episode(seed, 0, 0);
        let need_kwh: f64 = listed.sessions.iter().map(|car| car.target_kwh - car.arrival_kwh).sum();
        let pv_kwh: f64 = listed.pv_kwh.iter().sum();
        let usable_kwh = (battery.soc_start - battery.soc_min) * battery.capacity_kwh;
        let cheapest = listed.buy_per_kwh.iter().copied().fold(f64::INFINITY, f64::min);
        let dearest = listed.export_per_kwh.iter().copied().fold(0.0, f64::max);
        let mut rng = named_rng(seed, "policy", 0);
        let space = station.envs(Split::Train, 0..1).expect("a batch").spec().action.clone();
        let mut policy = |_: &BatchSlabs, mut actions: ArrayViewMut2<f32>| -> Result<(), EnvError> {
            for (i, action) in actions.iter_mut().enumerate() {
                *action = match &space {
                    Space::MultiDiscrete(heads) => rng.random_range(0..heads[i]) as f32,
                    _ => 2.0 * rng.random::<f32>() - 1.0,
                };
            }
            Ok(())
        };
        let mut outcomes: Vec<Outcome> = RULES.map(|rule| play(&station, Who::Baseline(rule), seed)).into();
        outcomes.push(play(&station, Who::Controller(&mut policy), seed));
        for outcome in &outcomes {
            let (seen, l) = (|name: &str| value(&station, outcome, name), |name: &str| ledger(outcome, name));
            prop_assert_eq!(outcome.length, u64::from(n_steps));
            prop_assert!((l("pv_available_kwh") - pv_kwh).abs() < 1e-6);
            let taken_kwh = l("ev_delivered_kwh") - l("ev_returned_kwh");
            prop_assert!((-1e-9..=need_kwh + 1e-6).contains(&taken_kwh), "{taken_kwh} of {need_kwh}");
            prop_assert!(l("grid_import_kwh") >= taken_kwh - pv_kwh - usable_kwh - 1e-6);
            let most = prices.sell_per_kwh * taken_kwh - cheapest * l("grid_import_kwh")
                + dearest * l("grid_export_kwh");
            prop_assert!(seen("profit") <= most + 1e-6, "{} above {most}", seen("profit"));
        }
    }
}

/// Longer than the calendar: after December 31 comes January 1, and all sums hold.
#[test]
fn episodes_have_any_length() {
    let mut config = StationConfig { step_minutes: 60, v2g: true, first_day: Some(0), ..StationConfig::default() };
    config.episode_steps = Some(400 * 24);
    config.battery.standing_loss_per_day = 0.02;
    let (mut batch, mut slabs) = batch(config, 0..1);
    batch.reset(1, &mut slabs).expect("resets");
    let first = slabs.obs.clone();
    let mut rng = named_rng(1, "actions", 0);
    for step in 0..400 * 24 {
        if step == 365 * 24 {
            // The calendar, and the prices of the hours ahead.
            assert_eq!(slabs.obs.slice(ndarray::s![0, ..12]), first.slice(ndarray::s![0, ..12]));
        }
        let total = *batch.ledger(0);
        let actions = random_actions(&batch, &mut rng);
        batch.step(actions.view(), &mut slabs).expect("steps");
        assert_eq!(slabs.truncated[0], step == 400 * 24 - 1);
        if slabs.truncated[0] {
            assert!(total.ev_delivered_kwh > 100_000.0 && total.battery_lost_kwh > 1000.0, "{total:?}");
            assert!(total.residual_kwh().abs() < 1e-6 && total.battery_residual_kwh().abs() < 1e-6);
        }
    }
}

#[test]
fn the_environment_contract_holds() {
    let mut discrete = StationConfig { actions: ActionMode::Discrete, v2g: true, ..StationConfig::default() };
    discrete.pv.peak_kw = 0.0;
    let mut small = StationConfig { step_minutes: 60, lookahead_hours: 1, ..StationConfig::default() };
    small.battery.capacity_kwh = 0.0;
    small.sockets.truncate(1);
    for config in [StationConfig::default(), StationConfig::chargax(), discrete, small] {
        for episode_steps in [None, Some(17)] {
            let scenario = scenario(StationConfig { episode_steps, ..config.clone() });
            check_env(100, |envs| Ok(scenario.batch(envs)?)).expect("the contract holds");
        }
    }
}

#[test]
fn one_environment_equals_a_row_of_many() {
    let scenario = scenario(StationConfig { episode_steps: Some(60), v2g: true, ..StationConfig::default() });
    let mut rng = named_rng(0, "actions", 0);
    one_equals_a_row_of_many(&scenario, 4096, 2077, |batch| random_actions(batch, &mut rng));
}

/// Zero actions with `hold-back` are no control, with and without V2G.
#[test]
fn zero_actions_that_hold_nothing_back_are_uncontrolled() {
    for v2g in [false, true] {
        let config = StationConfig { socket_actions: SocketActions::HoldBack, v2g, ..StationConfig::default() };
        let scenario = scenario(config);
        let by_rule = play(&scenario, Who::Baseline("uncontrolled"), 5);
        for more in [0.0, 1.0] {
            let mut policy = |_: &BatchSlabs, mut actions: ArrayViewMut2<f32>| -> Result<(), EnvError> {
                actions.fill(more);
                actions[[0, 0]] = 0.0;
                Ok(())
            };
            let by_policy = play(&scenario, Who::Controller(&mut policy), 5);
            assert_eq!((&by_rule.figures, &by_rule.details), (&by_policy.figures, &by_policy.details));
        }
        let mut least = |_: &BatchSlabs, mut actions: ArrayViewMut2<f32>| -> Result<(), EnvError> {
            actions.fill(-1.0);
            actions[[0, 0]] = 0.0;
            Ok(())
        };
        let idle = play(&scenario, Who::Controller(&mut least), 5);
        assert_eq!(ledger(&idle, "ev_delivered_kwh"), 0.0);
    }
}

/// Rewards of training differ from those of evaluations by what no controller changes: the reference, and with `shaped` the
/// energy that connected cars want at the start and the end, and what arriving cars bring.
#[test]
fn training_and_evaluation_differ_by_what_no_action_changes() {
    let mut config = StationConfig { step_minutes: 15, v2g: true, ..StationConfig::default() };
    (config.reward.kind, config.reward.shaped) = (RewardKind::Improvement, true);
    let w = config.reward.unmet_per_kwh;
    let scenario = scenario(config);
    let listed = scenario.episode(7, 0, 0);
    let mut offsets = Vec::new();
    let mut returns = Vec::new();
    for policy in 0..3 {
        let mut batches = [Split::Train, Split::Evaluation].map(|split| scenario.envs(split, 0..1).expect("a batch"));
        let mut slabs: Vec<BatchSlabs> = batches.iter().map(|batch| BatchSlabs::new(batch.spec())).collect();
        batches.iter_mut().zip(&mut slabs).for_each(|(batch, slabs)| batch.reset(7, slabs).expect("resets"));
        let mut rng = named_rng(policy, "policy", 0);
        let (mut sums, mut connected_kwh) = ([0.0, 0.0], 0.0);
        for _ in 0..scenario.config().n_steps() {
            let actions = random_actions(&*batches[0], &mut rng);
            for (i, batch) in batches.iter_mut().enumerate() {
                batch.step(actions.view(), &mut slabs[i]).expect("steps");
                sums[i] += f64::from(slabs[i].reward[0]);
            }
            // `need` of the sockets after the step, over the largest battery.
            let need = slabs[0].next_obs.slice(ndarray::s![0, 17 + 2 * 16..17 + 3 * 16]).sum();
            connected_kwh = f64::from(need) * 95.0;
        }
        offsets.push(sums[0] - sums[1] + w * connected_kwh);
        returns.push(sums[1]);
    }
    assert!(listed.sessions.len() > 50 && (returns[0] - returns[1]).abs() > 10.0, "{returns:?}");
    for offset in &offsets {
        assert!((offset - offsets[0]).abs() < 0.02, "{offsets:?} {returns:?}");
    }
}

/// The same station with its two groups of sockets in another order: cars choose by power, so every car finds the same
/// socket, and only the order of observations and actions changes.
#[test]
fn permuting_sockets_permutes_observations_only() {
    let straight = StationConfig { v2g: true, ..StationConfig::default() };
    let mut turned = straight.clone();
    turned.sockets.reverse();
    let (mut a, mut a_slabs) = batch(straight, 0..2);
    let (mut b, mut b_slabs) = batch(turned, 0..2);
    let names = |space: &Space| match space {
        Space::Box(space) => space.names.clone(),
        _ => panic!("a box"),
    };
    let places = |from: &Space, to: &Space| -> Vec<usize> {
        let (from, to) = (names(from), names(to));
        to.iter().map(|name| from.iter().position(|other| other == name).expect("the same names")).collect()
    };
    let obs_places = places(&a.spec().obs, &b.spec().obs);
    let action_places = places(&a.spec().action, &b.spec().action);
    assert!(obs_places.iter().enumerate().any(|(i, place)| i != *place));
    a.reset(5, &mut a_slabs).expect("resets");
    b.reset(5, &mut b_slabs).expect("resets");
    let mut rng = named_rng(1, "actions", 0);
    for step in 0..288 {
        let a_actions = random_actions(&a, &mut rng);
        let b_actions = a_actions.select(ndarray::Axis(1), &action_places).as_standard_layout().into_owned();
        a.step(a_actions.view(), &mut a_slabs).expect("steps");
        b.step(b_actions.view(), &mut b_slabs).expect("steps");
        let expected = a_slabs.next_obs.select(ndarray::Axis(1), &obs_places);
        for (seen, expected) in b_slabs.next_obs.iter().zip(&expected) {
            assert!((seen - expected).abs() < 1e-5, "step {step}: {seen} instead of {expected}");
        }
        assert!((a_slabs.reward[0] - b_slabs.reward[0]).abs() < 1e-4, "step {step}");
    }
}

#[test]
fn a_day_ends_by_truncation_and_a_reset_equals_a_fresh_batch() {
    let scenario = scenario(StationConfig { first_day: Some(364), ..StationConfig::default() });
    let mut batch = scenario.batch(0..1).expect("a batch");
    let mut slabs = BatchSlabs::new(batch.spec());
    batch.reset(1, &mut slabs).expect("resets");
    let first = slabs.obs.clone();
    let actions = Array2::zeros((1, batch.spec().action.width()));
    for step in 0..288 {
        batch.step(actions.view(), &mut slabs).expect("steps");
        assert_eq!((slabs.truncated[0], slabs.terminated[0]), (step == 287, false), "{step}");
    }
    // The next episode starts at the same hour of the same day, the successor of the last step on January 1.
    assert_eq!(slabs.obs.slice(ndarray::s![0, ..6]), first.slice(ndarray::s![0, ..6]));
    assert_ne!(slabs.obs.slice(ndarray::s![0, 2..6]), slabs.next_obs.slice(ndarray::s![0, 2..6]));
    batch.reset(1, &mut slabs).expect("resets");
    assert_eq!(slabs.obs, first);
    let stranger = self::scenario(StationConfig::default()).batch(0..1).expect("a batch").save();
    assert!(batch.load(&stranger).expect_err("other settings").to_string().contains("other settings"));
}

#[test]
fn actions_that_mean_nothing_are_refused() {
    let (mut numbers, mut slabs) = batch(StationConfig::default(), 0..2);
    numbers.reset(0, &mut slabs).expect("resets");
    let mut actions = Array2::zeros((2, 17));
    actions[[1, 7]] = f32::NAN;
    let error = numbers.step(actions.view(), &mut slabs).expect_err("no number").to_string();
    assert_eq!(error, "`actions` must be numbers, got NaN");
    let (mut levels, mut slabs) = batch(StationConfig::chargax(), 0..1);
    assert_eq!(levels.spec().action, Space::MultiDiscrete(vec![21; 7]));
    levels.reset(0, &mut slabs).expect("resets");
    for wrong in [21.0, -1.0, 0.5, f32::NAN] {
        let mut actions = Array2::from_elem((1, 7), 10.0);
        actions[[0, 3]] = wrong;
        let error = levels.step(actions.view(), &mut slabs).expect_err("no level").to_string();
        assert!(error.contains("`actions` must be levels of their heads"), "{error}");
    }
    let (one_way, _) = batch(StationConfig { v2g: false, ..StationConfig::chargax() }, 0..1);
    assert_eq!(one_way.spec().action, Space::MultiDiscrete(vec![21, 11, 11, 11, 11, 11, 11]));
}

/// One AC socket of 10 kW without losses, and cars that bring 20 of 100 kWh and want 80, one a day at noon.
fn lone_socket() -> StationConfig {
    let mut config = StationConfig { step_minutes: 60, first_day: Some(0), ..StationConfig::default() };
    config.nodes = vec![NodeConfig::new("grid", None, 50.0, 1.0)];
    config.sockets.truncate(1);
    let socket = &mut config.sockets[0];
    (socket.parent, socket.count, socket.efficiency) = ("grid".into(), 1, 1.0);
    (socket.voltage_v, socket.current_a, socket.phases) = (200.0, 50.0, 1);
    config.battery.capacity_kwh = 0.0;
    config.pv.peak_kw = 0.0;
    let car = CarModel {
        name: "car".into(),
        share: 1.0,
        battery_kwh: 100.0,
        ac_kw: 50.0,
        dc_kw: 50.0,
        taper_soc: 1.0,
        taper_end: 0.0,
    };
    config.cars = vec![car];
    let mut noon = vec![0.0; 24];
    noon[12] = 1.0;
    config.arrivals = ArrivalConfig {
        cars_per_day: 5.0,
        workday_hours: Some(noon),
        stay_median_hours: Some(4.0),
        stay_spread: Some(0.01),
        target_soc_low: 0.8,
        target_soc_high: 0.8,
        energy_bound_share: Some(0.0),
        ..ArrivalConfig::default()
    };
    config.prices.buy_per_kwh = Some((0..24).map(|hour| 0.01 * f64::from(hour)).collect());
    config
}

#[test]
fn a_lone_car_is_charged_and_paid_as_computed_by_hand() {
    let scenario = scenario(lone_socket());
    let outcome = play(&scenario, Who::Baseline("uncontrolled"), 3);
    let sessions = scenario.episode(3, 0, 0).sessions;
    assert!(sessions.len() > 1 && sessions.iter().all(|car| car.arrival_step == 12 && car.departure_step == 16));
    let need_kwh = 80.0 - sessions[0].arrival_kwh;
    // 10 kW from 12 to 16 o'clock, as far as the car needs it.
    let delivered: Vec<f64> = (0..4).map(|hour| (need_kwh - 10.0 * f64::from(hour)).clamp(0.0, 10.0)).collect();
    let cost: f64 = delivered.iter().zip([0.12, 0.13, 0.14, 0.15]).map(|(kwh, price)| kwh * price).sum();
    let kwh: f64 = delivered.iter().sum();
    let seen = |name: &str| value(&scenario, &outcome, name);
    assert!((seen("ev_delivered_kwh") - kwh).abs() < 1e-9 && (seen("grid_import_kwh") - kwh).abs() < 1e-9);
    assert!((seen("ev_unmet_kwh") - (need_kwh - kwh)).abs() < 1e-9);
    assert!((seen("energy_cost") - cost).abs() < 1e-9 && (seen("revenue") - 0.45 * kwh).abs() < 1e-9);
    assert_eq!(seen("turned_away"), (sessions.len() - 1) as f64);
}

#[test]
fn drivers_bound_by_energy_leave_with_it_or_without_patience() {
    let mut config = lone_socket();
    config.arrivals.energy_bound_share = Some(1.0);
    config.arrivals.patience_hours = 2.0;
    config.prices.sell_per_kwh = 1.0;
    let slow = scenario(config.clone());
    // Nobody charges: the driver waits two hours beyond the four of the stay, then leaves.
    let outcome = play(&slow, Who::Baseline("idle"), 3);
    assert_eq!(value(&slow, &outcome, "overtime_hours"), 2.0);
    assert!(value(&slow, &outcome, "ev_unmet_kwh") > 0.0);
    // 50 kW: the driver leaves within two hours, and the second car of noon was turned away nevertheless.
    config.sockets[0].current_a = 250.0;
    let fast = scenario(config);
    let outcome = play(&fast, Who::Baseline("uncontrolled"), 3);
    assert_eq!((value(&fast, &outcome, "overtime_hours"), value(&fast, &outcome, "ev_unmet_kwh")), (0.0, 0.0));
    let ev_kw = &trace::<Trace>(&outcome).ev_kw;
    let busy: Vec<usize> = (0..24).filter(|hour| ev_kw[*hour] > 0.0).collect();
    assert!(busy[0] == 12 && busy.len() <= 2, "{busy:?}");
}

#[test]
fn power_falls_linearly_above_the_taper() {
    let mut config = lone_socket();
    config.step_minutes = 1;
    (config.cars[0].taper_soc, config.cars[0].taper_end) = (0.5, 0.1);
    (config.arrivals.target_soc_low, config.arrivals.target_soc_high) = (1.0, 1.0);
    config.sockets[0].current_a = 500.0;
    config.nodes[0].limit_kw = None;
    let scenario = scenario(config);
    let session = scenario.episode(3, 0, 0).sessions[0];
    assert_eq!((session.taper_soc, (session.taper_end * 1e9).round()), (0.5, 1e8));
    let outcome = play(&scenario, Who::Baseline("uncontrolled"), 3);
    let mut stored_kwh = session.arrival_kwh;
    for step in session.arrival_step..session.departure_step {
        let soc = stored_kwh / 100.0;
        let kw = (50.0 * (1.0 - 0.9 * (soc - 0.5).max(0.0) / 0.5)).min(60.0 * (100.0 - stored_kwh));
        assert!((f64::from(trace::<Trace>(&outcome).ev_kw[step as usize]) - kw).abs() < 1e-4, "{step}");
        stored_kwh += kw / 60.0;
    }
    assert!(stored_kwh > 85.0, "{stored_kwh} {session:?}");
}

#[test]
fn v2g_never_goes_below_the_energy_at_arrival() {
    let mut config = StationConfig { v2g: true, ..lone_socket() };
    config.prices.sell_per_kwh = 0.0;
    let (mut batch, mut slabs) = batch(config, 0..1);
    batch.reset(3, &mut slabs).expect("resets");
    let mut returned_kwh = 0.0;
    let mut arrived_kwh = None;
    for hour in 0..24 {
        // Charge for two hours, then discharge.
        let action = if hour < 14 { 1.0 } else { -1.0 };
        batch.step(Array2::from_elem((1, 1), action).view(), &mut slabs).expect("steps");
        returned_kwh += batch.flows(0).ledger.ev_returned_kwh;
        let stored_kwh = batch.cars_kwh(0)[0];
        if stored_kwh > 0.0 {
            assert!(stored_kwh >= *arrived_kwh.get_or_insert(stored_kwh));
        }
    }
    assert!((returned_kwh - 20.0).abs() < 1e-9, "{returned_kwh}");
}

#[test]
fn the_episode_listed_ahead_is_the_one_that_is_played() {
    for config in [StationConfig::default(), StationConfig::chargax(), lone_socket()] {
        let scenario = scenario(config.clone());
        for (seed, rule) in [(4, "idle"), (5, "uncontrolled")] {
            let listed = scenario.episode(seed, 0, 0);
            let n_steps = config.n_steps() as usize;
            assert_eq!(listed.pv_kwh.len(), n_steps);
            assert!(
                listed
                    .buy_per_kwh
                    .iter()
                    .zip(&listed.export_per_kwh)
                    .all(|(buy, sell)| buy - sell == 0.03 || (buy - sell - 0.03).abs() < 1e-12)
            );
            let outcome = play(&scenario, Who::Baseline(rule), seed);
            let pv_kwh: f64 = listed.pv_kwh.iter().sum();
            assert!((ledger(&outcome, "pv_available_kwh") - pv_kwh).abs() < 1e-9);
            // Every car is turned away, or plugged in; the order of draws does not depend on the controller.
            assert!(value(&scenario, &outcome, "turned_away") <= listed.sessions.len() as f64);
        }
        // Environments and episodes have their own cars.
        assert_ne!(scenario.episode(4, 0, 0).sessions, scenario.episode(4, 1, 0).sessions);
        assert_ne!(scenario.episode(4, 0, 0), scenario.episode(4, 0, 1));
    }
}

/// Every car that comes departs, is turned away, or is still there, whoever controls the station.
#[test]
fn no_car_is_lost() {
    for (preset, cars_per_day) in [("default", 300.0), ("chargax", 2000.0)] {
        let mut config = StationConfig::preset(preset).expect("a preset");
        config.arrivals.cars_per_day = cars_per_day;
        config.arrivals.workday_hours = Some(vec![1.0; 24]);
        config.arrivals.weekend_hours = Some(vec![1.0; 24]);
        // The cars that come after the last step are those before the first step of the day after.
        let longer = scenario(StationConfig { episode_steps: Some(289), ..config.clone() });
        let came = longer.episode(6, 0, 0).sessions.len();
        let (mut batch, mut slabs) = batch(config, 0..1);
        batch.reset(6, &mut slabs).expect("resets");
        let mut rng = named_rng(6, "actions", 0);
        let (mut departed, mut turned_away, mut connected) = (0, 0, 0);
        for _ in 0..288 {
            let actions = random_actions(&batch, &mut rng);
            batch.step(actions.view(), &mut slabs).expect("steps");
            departed += batch.flows(0).departed as usize;
            turned_away += batch.flows(0).turned_away as usize;
            let names = match &batch.spec().obs {
                Space::Box(space) => &space.names,
                _ => panic!("a box"),
            };
            let occupied = names.iter().zip(slabs.next_obs.row(0)).filter(|(name, _)| name.ends_with("_occupied"));
            connected = occupied.filter(|(name, x)| *name != "sockets_occupied" && **x == 1.0).count();
        }
        assert!(departed > 50 && turned_away > 50 && connected > 0);
        assert_eq!(departed + turned_away + connected, came, "{preset}");
    }
}

/// With sockets for everyone, all listed cars are charged, and the sum of their needs is what is delivered or unmet.
#[test]
fn listed_needs_are_delivered_or_unmet() {
    let mut config = StationConfig { step_minutes: 5, episode_steps: Some(3 * 288), ..StationConfig::default() };
    config.sockets[0].count = 400;
    config.arrivals.energy_bound_share = Some(0.0);
    let scenario = scenario(config);
    let listed = scenario.episode(9, 0, 0);
    let departed = listed.sessions.iter().filter(|car| car.departure_step <= 3 * 288);
    let need_kwh: f64 = departed.map(|car| car.target_kwh - car.arrival_kwh).sum();
    let outcome = play(&scenario, Who::Baseline("idle"), 9);
    assert_eq!(value(&scenario, &outcome, "turned_away"), 0.0);
    assert!((value(&scenario, &outcome, "ev_unmet_kwh") - need_kwh).abs() < 1e-6, "{need_kwh}");
}

#[test]
fn a_station_ten_times_as_large_has_ten_times_the_flows() {
    let small = StationConfig { v2g: true, ..StationConfig::default() };
    let mut large = small.clone();
    for node in &mut large.nodes {
        node.limit_kw = node.limit_kw.map(|kw| 10.0 * kw);
        node.limit_a = node.limit_a.map(|ampere| 10.0 * ampere);
    }
    large.sockets.iter_mut().for_each(|group| group.current_a *= 10.0);
    large.battery.capacity_kwh *= 10.0;
    large.battery.power_kw *= 10.0;
    large.pv.peak_kw *= 10.0;
    for model in &mut large.cars {
        (model.battery_kwh, model.ac_kw, model.dc_kw) =
            (10.0 * model.battery_kwh, 10.0 * model.ac_kw, 10.0 * model.dc_kw);
    }
    let (mut a, mut a_slabs) = batch(small, 0..1);
    let (mut b, mut b_slabs) = batch(large, 0..1);
    a.reset(2, &mut a_slabs).expect("resets");
    b.reset(2, &mut b_slabs).expect("resets");
    let mut rng = named_rng(2, "actions", 0);
    for step in 0..287 {
        let actions = random_actions(&a, &mut rng);
        a.step(actions.view(), &mut a_slabs).expect("steps");
        b.step(actions.view(), &mut b_slabs).expect("steps");
        for ((name, one), (_, ten)) in a.ledger(0).entries().into_iter().zip(b.ledger(0).entries()) {
            assert!((10.0 * one - ten).abs() < 1e-6, "step {step}: {name} {one} {ten}");
        }
        for (one, ten) in a_slabs.obs.iter().zip(&b_slabs.obs) {
            assert!((one - ten).abs() < 1e-5, "step {step}");
        }
    }
}

fn mean(scenario: &Station, rule: &str, name: &str) -> f64 {
    let outcomes = scenario.evaluate(Who::Baseline(rule), &Evaluation::new(20, 100)).expect("plays");
    outcomes.iter().map(|outcome| value(scenario, outcome, name)).sum::<f64>() / 20.0
}

#[test]
fn controllers_rank_as_they_should() {
    let scenario = scenario(StationConfig::default());
    assert_eq!(scenario.baselines().into_iter().map(|baseline| baseline.name).collect::<Vec<_>>(), RULES);
    let [idle, uncontrolled, spread, threshold, shaving] = RULES;
    assert_eq!(mean(&scenario, idle, "ev_delivered_kwh"), 0.0);
    assert!(mean(&scenario, idle, "profit") < mean(&scenario, spread, "profit"));
    assert!(mean(&scenario, spread, "peak_kw") < mean(&scenario, uncontrolled, "peak_kw"));
    let unit_cost = |rule| mean(&scenario, rule, "energy_cost") / mean(&scenario, rule, "ev_delivered_kwh");
    assert!(unit_cost(threshold) < unit_cost(uncontrolled));
    assert!(mean(&scenario, shaving, "ev_unmet_kwh") <= mean(&scenario, uncontrolled, "ev_unmet_kwh"));
    let chargax = self::scenario(StationConfig::chargax());
    assert!(mean(&chargax, shaving, "profit") > mean(&chargax, uncontrolled, "profit"));
}

#[test]
fn a_policy_that_does_nothing_special_is_uncontrolled() {
    let scenario = scenario(StationConfig::default());
    let by_rule = play(&scenario, Who::Baseline("uncontrolled"), 5);
    let mut policy = |_: &BatchSlabs, mut actions: ArrayViewMut2<f32>| -> Result<(), EnvError> {
        actions.fill(1.0);
        actions[[0, 0]] = 0.0;
        Ok(())
    };
    let by_policy = play(&scenario, Who::Controller(&mut policy), 5);
    assert_eq!(by_rule.figures, by_policy.figures);
    assert_eq!(by_rule.details, by_policy.details);
    assert_eq!(trace::<Trace>(&by_rule), trace::<Trace>(&by_policy));
    assert!((episode_return(&by_rule) - episode_return(&by_policy)).abs() < 1e-3);
    assert_eq!(ratio(&scenario, &by_rule, "profit"), 1.0);
}

#[test]
fn everybody_is_measured_alike() {
    let scenario = scenario(StationConfig::default());
    let evaluation = Evaluation { episodes: 3..5, seed: 11, n_traces: 1 };
    let check = |outcomes: &[Outcome]| {
        for (episode, outcome) in outcomes.iter().enumerate() {
            assert_eq!((outcome.figures.len(), outcome.length), (scenario.figures().len(), 288));
            assert_eq!(outcome.trace.is_some(), episode == 0);
        }
        let trace: Option<&Trace> = outcomes[0].trace.as_ref().and_then(|trace| trace.downcast_ref());
        assert_eq!(trace.expect("a trace").grid_kw.len(), 288);
    };
    for rule in RULES {
        let outcomes = scenario.evaluate(Who::Baseline(rule), &evaluation).expect("plays");
        check(&outcomes);
        // The seed of an episode is the evaluation's plus its index.
        let moved = Evaluation { episodes: 4..5, seed: 11, n_traces: 0 };
        let alone = scenario.evaluate(Who::Baseline(rule), &moved).expect("plays");
        assert_eq!(alone[0].figures, outcomes[1].figures);
    }
    let unknown = scenario.evaluate(Who::Baseline("magic"), &evaluation).expect_err("nobody is called so");
    assert!(unknown.to_string().ends_with("there are idle, uncontrolled, spread, price-threshold, peak-shaving"));
    let mut broken = |_: &BatchSlabs, _: ArrayViewMut2<f32>| -> Result<(), EnvError> {
        Err(EnvError::State { reason: "no policy".into() })
    };
    assert!(scenario.evaluate(Who::Controller(&mut broken), &evaluation).is_err());
    let figures = scenario.figures();
    let reference = Some(Reference::OfEpisode("uncontrolled charging with an idle battery".into()));
    assert!(figures.iter().all(|figure| figure.reference == reference));
    let info_names = scenario.envs(Split::Train, 0..1).expect("a batch").spec().info_names.clone();
    for curve in scenario.curves() {
        let column = curve.metric.strip_prefix("rollout/").expect("it is of the rollout").to_owned();
        assert!(info_names.contains(&column), "{column}");
    }
}

#[test]
fn the_sockets_of_a_trace_add_up_to_its_vehicles() {
    let scenario = scenario(StationConfig::default());
    let mut policy = |_: &BatchSlabs, mut actions: ArrayViewMut2<f32>| -> Result<(), EnvError> {
        actions.fill(0.7);
        Ok(())
    };
    for outcome in [play(&scenario, Who::Baseline("uncontrolled"), 3), play(&scenario, Who::Controller(&mut policy), 3)]
    {
        let trace = trace::<Trace>(&outcome);
        assert_eq!((trace.sockets.len(), trace.socket_kw.len()), (16, 288 * 16));
        assert_eq!((&*trace.sockets[0], &*trace.sockets[15]), ("ac 1", "dc 4"));
        for (sockets, total) in trace.socket_kw.chunks(16).zip(&trace.ev_kw) {
            let sum: f32 = sockets.iter().flatten().sum();
            assert!((sum - total).abs() < 1e-3, "{sum} {total}");
        }
        assert!(trace.socket_kw.contains(&None) && trace.socket_kw.iter().flatten().any(|kw| *kw > 20.0));
    }
}
