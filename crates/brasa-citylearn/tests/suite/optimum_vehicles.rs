//! The optimum of districts with vehicles, chargers and washing machines: known optima, schedules in the simulation, and a bound that no
//! controller exceeds.
#![allow(clippy::unwrap_used)]

use crate::common;

use std::fmt::Write;
use std::path::Path;

use brasa_citylearn::Optimum;
use brasa_citylearn::{ChallengeWeights as Weights, CityLearn, CityLearnConfig, Reward};
use brasa_env::{Scenario, Who, named_rng};
use brasa_test::outcomes::{episode_return, play};
use brasa_test::slow;
use common::data::{Data, ROWS};
use common::optimum::{no_controller_exceeds_the_bound, scenario};
use rand::{Rng, RngExt};
use serde_json::{Value, json};

const HEADER: &str = "electric_vehicle_charger_state,electric_vehicle_id,electric_vehicle_departure_time,\
    electric_vehicle_required_soc_departure,electric_vehicle_estimated_arrival_time,electric_vehicle_estimated_soc_arrival\n";

/// Constant round-trip efficiency of .81, no aging, no limit of the power.
fn ideal(capacity_kwh: f64, initial_soc: f64) -> Value {
    json!({
        "capacity": capacity_kwh, "nominal_power": 20.0, "initial_soc": initial_soc, "depth_of_discharge": 1.0,
        "efficiency": 0.81, "loss_coefficient": 0.0, "capacity_loss_coefficient": 0.0,
        "power_efficiency_curve": [[0.0, 0.81], [1.0, 0.81]], "capacity_power_curve": [[0.0, 1.0], [1.0, 1.0]],
    })
}

/// A charger that loses a fifth in both directions.
fn charger(name: &str, max_kw: f64) -> Value {
    json!({
        "type": "citylearn.electric_vehicle_charger.Charger", "charger_simulation": format!("{name}.csv"), "autosize": false,
        "attributes": {
            "efficiency": 0.8, "max_charging_power": max_kw, "min_charging_power": 0.0,
            "max_discharging_power": max_kw, "min_discharging_power": 0.0,
        },
    })
}

fn battery(attributes: Value) -> Value {
    json!({"include": true, "battery": {"type": "citylearn.energy_model.Battery", "autosize": false, "attributes": attributes}})
}

/// Adds `electric_vehicles_def` and chargers to the home.
fn with_chargers(schema: &mut Value, vehicles: Value, chargers: Value) {
    schema["electric_vehicles_def"] = vehicles;
    schema["actions"]["electric_vehicle_storage"] = json!({"active": true});
    schema["buildings"]["Home"]["chargers"] = chargers;
}

/// Five rows without sun, the first two at .22 and the others at .54, with loads of 1.25, 1.5, .5, .75 and 1 kWh, and a vehicle of 10 kWh
/// with an initial state of charge of .2 that leaves before the last one.
fn four_hours(required: &str) -> (Data, CityLearn) {
    let data = Data::new();
    let connected = format!("1,Car,,{required},,\n").repeat(17);
    let file = format!("{HEADER}{connected}{}", "3,,,,,\n".repeat(ROWS - 17));
    std::fs::write(data.folder.join("Plug.csv"), file).unwrap();
    data.schema(|schema| {
        schema["simulation_start_time_step"] = 13.into();
        schema["simulation_end_time_step"] = 17.into();
        let home = schema["buildings"]["Home"].as_object_mut().unwrap();
        home.remove("pv");
        home.remove("electrical_storage");
        with_chargers(schema, json!({"Car": battery(ideal(10.0, 0.2))}), json!({"Plug": charger("Plug", 1.5)}));
    });
    let config = CityLearnConfig {
        data: data.folder.to_str().unwrap().to_owned(),
        reward: Reward::Challenge,
        weights: Weights { cost: 1.0, carbon: 0.0, ramping: 0.0, daily_peak: 0.0, vehicle_shortfall: 100.0 },
        ..CityLearnConfig::default()
    };
    let scenario = CityLearn::new(config).unwrap();
    (data, scenario)
}

/// The mean cost of a step without the vehicle, by which costs are divided.
const MEAN_COST: f64 = (2.75 * 0.22 + 2.25 * 0.54) / 5.0;

fn assert_is(optimum: &Optimum, cost: f64) {
    for value in [optimum.value, optimum.planned, optimum.bound] {
        let expected = cost / MEAN_COST;
        assert!((value / expected - 1.0).abs() < 1e-6, "{value} instead of {expected}: {optimum:?}");
    }
}

#[test]
fn a_vehicle_is_charged_in_the_cheap_hours_first() {
    let (_data, scenario) = four_hours("50");
    let (optimum, recording) = scenario.optimum().unwrap();
    // 3 kWh inside are 3 / .72 on the grid side: 3 kWh at the low price, because of the charger's power, the rest at the high one.
    assert_is(&optimum, 5.0 * MEAN_COST + 3.0 * 0.22 + (3.0 / 0.72 - 3.0) * 0.54);
    assert!((recording.vehicle_soc[(3, 0)] - 0.5).abs() < 1e-6);
}

#[test]
fn a_vehicle_without_a_requirement_feeds_the_home() {
    let (_data, scenario) = four_hours("");
    let (optimum, recording) = scenario.optimum().unwrap();
    // 2 kWh inside are 1.44 on the grid side: 1.25 for the loads at the high price, .19 at the low one.
    assert_is(&optimum, (2.75 - 0.19) * 0.22 + 0.54);
    assert!(recording.vehicle_soc[(3, 0)].abs() < 1e-6);
}

#[test]
fn what_cannot_be_charged_in_time_is_a_shortfall() {
    let (_data, scenario) = four_hours("90");
    let (optimum, recording) = scenario.optimum().unwrap();
    // Four hours of 1.5 kW are 4.32 kWh inside.
    let lacking = 7.0 - 4.32;
    let [cost, mean_import_kwh] = [5.0 * MEAN_COST + 3.0 * (0.22 + 0.54), 1.0];
    assert_is(&optimum, cost + MEAN_COST * 100.0 * lacking / mean_import_kwh);
    assert!((recording.vehicle_soc[(3, 0)] - 0.632).abs() < 1e-6);
}

/// One number in `range`.
fn within(rng: &mut impl Rng, range: std::ops::Range<f64>) -> f64 {
    rng.random_range(range)
}

/// An efficiency that depends on the power.
fn curve(rng: &mut impl Rng) -> Value {
    json!([[0.0, within(rng, 0.6..1.0)], [0.4, within(rng, 0.6..1.0)], [1.0, within(rng, 0.6..1.0)]])
}

/// Ten days of a home with a battery, two chargers, two vehicles that come and go, limits and a washing machine. A `plain` one has constant
/// efficiencies and no smallest powers, so that only whole starts are not linear.
fn random_home(seed: u64, plain: bool) -> Data {
    let rng = &mut named_rng(seed, "home", 0);
    let data = Data::new();
    let mut files = [String::from(HEADER), String::from(HEADER)];
    // Where each vehicle is: a vehicle may come back to the other charger.
    let mut plugged: [Option<usize>; 2] = [None, None];
    let mut rest = [0usize; 2];
    let mut row = 0;
    while row < ROWS {
        for plug in 0..2 {
            if rest[plug] > 0 {
                rest[plug] -= 1;
            } else if plugged[plug].is_some() {
                plugged[plug] = None;
                rest[plug] = rng.random_range(2..14);
            } else {
                let free: Vec<usize> = (0..2).filter(|vehicle| !plugged.contains(&Some(*vehicle))).collect();
                plugged[plug] = free.get(rng.random_range(0..free.len())).copied();
                rest[plug] = rng.random_range(0..10);
            }
            let arrival = if rng.random() { rng.random_range(0..100).to_string() } else { String::new() };
            let required = if rng.random() { rng.random_range(0..100).to_string() } else { String::new() };
            let _ = match plugged[plug] {
                Some(vehicle) => writeln!(files[plug], "1,Car {vehicle},,{required},,{arrival}"),
                None => writeln!(files[plug], "3,,,,,"),
            };
        }
        row += 1;
    }
    for (plug, file) in files.into_iter().enumerate() {
        std::fs::write(data.folder.join(format!("Plug {plug}.csv")), file).unwrap();
    }
    let mut machine = String::from("wm_start_time_step,wm_end_time_step,load_profile\n");
    for row in 0..ROWS {
        let day = row / 24 * 24;
        let _ = match (8..14).contains(&(row % 24)) {
            true => writeln!(machine, "{},{},\"[0.8, 0.3]\"", day + 8, day + 13),
            false => writeln!(machine, "-1,-1,-1"),
        };
    }
    std::fs::write(data.folder.join("Machine.csv"), machine).unwrap();
    data.schema(|schema| {
        let vehicle = |rng: &mut _| {
            let mut attributes = ideal(within(rng, 5.0..60.0), within(rng, 0.0..1.0));
            attributes["nominal_power"] = within(rng, 2.0..12.0).into();
            if !plain {
                attributes["depth_of_discharge"] = within(rng, 0.5..1.0).into();
                attributes["power_efficiency_curve"] = curve(rng);
                attributes["capacity_power_curve"] = json!([[0.0, 1.0], [0.7, 1.0], [1.0, within(rng, 0.1..1.0)]]);
                attributes["loss_coefficient"] = within(rng, 0.0..0.01).into();
                attributes["capacity_loss_coefficient"] = 1e-5.into();
            }
            battery(attributes)
        };
        let vehicles = json!({"Car 0": vehicle(rng), "Car 1": vehicle(rng)});
        let plug = |plug: usize, rng: &mut _| {
            let mut charger = charger(&format!("Plug {plug}"), within(rng, 1.0..11.0));
            let attributes = &mut charger["attributes"];
            if Rng::next_u32(rng) % 3 == 0 {
                attributes["max_discharging_power"] = 0.0.into();
            }
            if !plain {
                attributes["min_charging_power"] = within(rng, 0.0..1.0).into();
                attributes["charge_efficiency_curve"] = curve(rng);
                attributes["discharge_efficiency_curve"] = curve(rng);
            }
            charger
        };
        let chargers = json!({"Plug 0": plug(0, rng), "Plug 1": plug(1, rng)});
        with_chargers(schema, vehicles, chargers);
        schema["actions"]["washing_machine"] = json!({"active": true});
        let home = &mut schema["buildings"]["Home"];
        home["washing_machines"] = json!({"Machine": {
            "type": "citylearn.energy_model.WashingMachine", "autosize": false, "washing_machine_energy_simulation": "Machine.csv",
        }});
        if rng.random() {
            home["charging_constraints"] = json!({
                "building_limit_kw": within(rng, 1.0..12.0),
                "phases": [{"name": "a", "limit_kw": within(rng, 1.0..8.0), "chargers": ["Plug 0"]}],
            });
        }
        if plain {
            home["electrical_storage"]["attributes"] = ideal(6.4, 0.3);
        }
    });
    data
}

#[test]
fn no_controller_of_a_random_home_exceeds_the_bound() {
    for seed in 0..if slow("100 more random homes") { 110 } else { 6 } {
        no_controller_exceeds_the_bound(&random_home(seed, seed % 2 == 0), seed);
    }
}

/// Cost and shortfall, without ramps, for which it would pay to lose energy: the simulation follows the program.
#[test]
fn the_simulation_follows_the_schedule_of_plain_vehicles() {
    let weights = Weights { cost: 1.0, carbon: 0.3, ramping: 0.0, daily_peak: 0.5, vehicle_shortfall: 3.0 };
    for seed in 0..if slow("20 more random homes") { 24 } else { 4 } {
        let data = random_home(seed, true);
        let scenario = scenario(&data, Reward::Challenge, weights);
        let (optimum, recording) = scenario.optimum().unwrap();
        assert!(optimum.gap().abs() < 1e-6, "{seed}: {optimum:?} gap {}", optimum.gap());
        assert!((optimum.planned - optimum.bound).abs() < 1e-7 * optimum.bound.abs(), "{seed}: {optimum:?}");
        assert!(recording.charger_kwh.iter().any(|kwh| *kwh > 0.1), "{seed}: nothing was charged");
        println!("{seed}: {optimum:?} gap {:.1e}", optimum.gap());
    }
}

/// Nine weeks of three homes with four chargers, as they come: the schedule is better than all rules.
#[test]
fn the_schedule_of_the_data_set_with_vehicles_beats_the_rules() {
    if !slow("the optimum of three homes with four chargers") {
        return;
    }
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/citylearn_ev");
    let folder = common::golden::unpacked(&data);
    for reward in [Reward::Challenge, Reward::GridImport] {
        let config = CityLearnConfig {
            data: folder.path().to_str().unwrap().to_owned(),
            accept_unlikely_pv: true,
            reward,
            optimum: true,
            ..CityLearnConfig::default()
        };
        let scenario = CityLearn::new(config).unwrap();
        let begin = std::time::Instant::now();
        let (optimum, _) = scenario.optimum().unwrap();
        println!("{reward:?} {optimum:?} gap {:.4}, {:.1} s", optimum.gap(), begin.elapsed().as_secs_f64());
        for baseline in scenario.baselines() {
            let other = -episode_return(&play(&scenario, Who::Baseline(&baseline.name), 0));
            println!("{}: {other:.3}", baseline.name);
            assert!(other >= optimum.bound && other >= optimum.value - 1e-6, "{}: {other} {optimum:?}", baseline.name);
        }
    }
}
