//! The optimum of districts with tanks of heat and cold: known optima, schedules in the simulation, and a bound that no controller exceeds.
#![allow(clippy::unwrap_used)]

use crate::common;

use brasa_citylearn::Optimum;
use brasa_citylearn::{ChallengeWeights as Weights, CityLearn, CityLearnConfig, Physics, Reward};
use brasa_env::{Scenario, Who};
use brasa_test::outcomes::{episode_return, play};
use brasa_test::slow;
use common::data::Data;
use common::district::district;
use common::optimum::{no_controller_exceeds_the_bound, scenario};
use common::thermal::{config, cut, golden};
use serde_json::json;

const COST: Weights = Weights { cost: 1.0, carbon: 0.0, ramping: 0.0, daily_peak: 0.0, vehicle_shortfall: 0.0 };
/// Of the load and of hot water in the cheap and in the dear rows.
const LOAD_KWH: [f64; 2] = [2.75, 2.25];

/// Five rows without sun, the first two at .22 and the others at .54, with loads of 1.25, 1.5, .5, .75 and 1 kWh and 2 kWh of hot water
/// each, a heater with an efficiency of .8, and a tank of 6 kWh that loses a tenth of what goes in and of what comes out.
fn five_hours(heater_kw: f64, initial_soc: f64) -> (Data, CityLearn) {
    let data = Data::new();
    let path = data.folder.join("Home.csv");
    let text = std::fs::read_to_string(&path).unwrap();
    let with_demand: String = text.lines().map(|line| line.replace(",0,0,0,", ",2,0,0,") + "\n").collect();
    std::fs::write(path, with_demand).unwrap();
    data.schema(|schema| {
        schema["simulation_start_time_step"] = 13.into();
        schema["simulation_end_time_step"] = 17.into();
        schema["actions"]["dhw_storage"] = json!({"active": true});
        let home = &mut schema["buildings"]["Home"];
        home.as_object_mut().unwrap().remove("pv");
        home.as_object_mut().unwrap().remove("electrical_storage");
        home["dhw_device"] = json!({"type": "citylearn.energy_model.ElectricHeater", "autosize": false,
            "attributes": {"nominal_power": heater_kw, "efficiency": 0.8}});
        home["dhw_storage"] = json!({"type": "citylearn.energy_model.StorageTank", "autosize": false,
            "attributes": {"capacity": 6.0, "loss_coefficient": 0.0, "efficiency": 0.81, "initial_soc": initial_soc}});
    });
    let scenario = scenario(&data, Reward::Challenge, COST);
    (data, scenario)
}

/// The mean cost of a step with 2.5 kWh of electricity for hot water, by which costs are divided.
fn mean_cost() -> f64 {
    ((LOAD_KWH[0] + 5.0) * 0.22 + (LOAD_KWH[1] + 7.5) * 0.54) / 5.0
}

fn assert_is(value: f64, cost: f64, optimum: &Optimum) {
    let expected = cost / mean_cost();
    assert!((value / expected - 1.0).abs() < 1e-6, "{value} instead of {expected}: {optimum:?}");
}

#[test]
fn a_tank_is_heated_in_the_cheap_hours() {
    let (_data, scenario) = five_hours(5.0, 0.0);
    let (optimum, recording) = scenario.optimum().unwrap();
    // Half of the heater's 4 kWh is free: 4 kWh in the two cheap rows, of which .9 * .9 replace heat at the high price.
    let cost = (LOAD_KWH[0] + 10.0) * 0.22 + (LOAD_KWH[1] + (6.0 - 0.81 * 4.0) / 0.8) * 0.54;
    for value in [optimum.value, optimum.planned, optimum.bound] {
        assert_is(value, cost, &optimum);
    }
    assert!((recording.tank_soc[(1, 2)] - 3.6 / 6.0).abs() < 1e-6, "{}", recording.tank_soc);
}

/// A heater of 2 kW gives 1.6 of 2 kWh, so that the first .4 kWh of heat from the tank save nothing.
#[test]
fn a_heater_that_is_too_small_makes_the_bound_a_relaxation() {
    let (_data, scenario) = five_hours(2.0, 1.0);
    let (optimum, _) = scenario.optimum().unwrap();
    // 5.4 kWh of heat: two rows of 2 kWh, and 1.4 kWh that save 1.25 kWh instead of 1.4 by the line from no heat to all.
    let without = (LOAD_KWH[0] + 4.0) * 0.22 + (LOAD_KWH[1] + 6.0) * 0.54;
    assert_is(optimum.bound, without - 5.4 * 0.54, &optimum);
    assert_is(optimum.value, without - 5.25 * 0.54, &optimum);
}

#[test]
fn no_controller_of_a_random_district_exceeds_the_bound() {
    for seed in 0..if slow("100 more random districts") { 110 } else { 6 } {
        no_controller_exceeds_the_bound(&district(seed, false).data, seed);
    }
}

/// Costs without ramps, tanks without batteries and vehicles, large devices: the simulation follows the program.
#[test]
fn the_simulation_follows_the_schedule_of_tanks() {
    let weights = Weights { cost: 1.0, carbon: 0.3, ramping: 0.0, daily_peak: 0.5, vehicle_shortfall: 0.0 };
    let mut n_moved = 0;
    for seed in 0..if slow("20 more random districts") { 24 } else { 6 } {
        let data = district(seed, false).data;
        let mut n_tanks = 0;
        data.edit(|schema| {
            let homes = schema["buildings"].as_object_mut().unwrap();
            homes.remove("Plain");
            let home = &mut homes["Home"];
            home.as_object_mut().unwrap().remove("chargers");
            home.as_object_mut().unwrap().remove("electrical_storage");
            for part in ["cooling", "heating", "dhw"] {
                if home.get(format!("{part}_storage")).is_some() {
                    n_tanks += 1;
                    home[format!("{part}_storage")]["attributes"]["loss_coefficient"] = 0.0.into();
                    home[format!("{part}_device")]["autosize_attributes"]["safety_factor"] = 2.0.into();
                }
            }
        });
        // Every end use is there in half of the districts, so that an eighth has no tank.
        if n_tanks == 0 {
            continue;
        }
        let scenario = scenario(&data, Reward::Challenge, weights);
        let (optimum, recording) = scenario.optimum().unwrap();
        println!("{seed}: {optimum:?} gap {:.1e}", optimum.gap());
        assert!(optimum.gap().abs() < 1e-6, "{seed}: {optimum:?} gap {}", optimum.gap());
        assert!((optimum.planned - optimum.bound).abs() < 1e-7 * optimum.bound.abs(), "{seed}: {optimum:?}");
        // Tanks begin empty.
        n_moved += usize::from(recording.tank_soc.iter().any(|soc| *soc > 0.1));
    }
    assert!(n_moved > 2, "tanks were used in {n_moved} districts");
}

#[test]
fn outages_and_predicted_temperatures_are_refused() {
    let outages = district(0, true).data;
    let networks = cut(&golden("cut_dynamics", "3.0.2"));
    for (folder, what) in [(outages.folder.as_path(), "power outage"), (networks.path(), "predicted temperatures")] {
        let config = CityLearnConfig { optimum: true, ..config(Physics::Clean, folder) };
        let error = CityLearn::new(config).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(&format!("must have no {what} for the optimum")), "{error}");
    }
}

/// Homes of the data of 2020 with heat pumps, heaters and tanks: the schedule is better than all rules.
#[test]
fn the_schedule_of_a_thermal_data_set_beats_the_rules() {
    if !slow("the optimum of three homes with tanks") {
        return;
    }
    let folder = cut(&golden("cut_heating", "3.0.2"));
    for reward in [Reward::Challenge, Reward::GridImport] {
        let config = CityLearnConfig { reward, optimum: true, ..config(Physics::Clean, folder.path()) };
        let scenario = CityLearn::new(config).unwrap();
        let (optimum, recording) = scenario.optimum().unwrap();
        assert!(recording.tank_soc.iter().any(|soc| *soc > 0.5), "tanks are used");
        println!("{reward:?} {optimum:?} gap {:.4}", optimum.gap());
        for baseline in scenario.baselines() {
            let other = -episode_return(&play(&scenario, Who::Baseline(&baseline.name), 0));
            println!("{}: {other:.3}", baseline.name);
            assert!(other >= optimum.bound && other >= optimum.value - 1e-6, "{}: {other} {optimum:?}", baseline.name);
        }
    }
}
