//! Random districts: loads, demands, sun, outages, sessions of vehicles and all devices are drawn.
#![allow(clippy::unwrap_used)]

use std::fmt::Write;

use brasa_env::{EnvRng, named_rng};
use rand::RngExt;
use serde_json::{Value, json};

use super::data::{Data, ROWS};

/// Two homes: `Home` has whatever is drawn, `Plain` a battery.
pub struct District {
    pub data: Data,
    pub outages: Vec<bool>,
    /// By charger and row: whether the vehicle of the charger stays from the row before.
    pub stays: Vec<Vec<bool>>,
    pub vehicle_kwh: Vec<f64>,
    pub battery_kwh: f64,
}

pub fn district(seed: u64, has_outages: bool) -> District {
    let mut rng = named_rng(seed, "data", 0);
    let data = Data::new();
    let outages = if has_outages { outages(&mut rng) } else { vec![false; ROWS] };
    let has: [bool; 3] = std::array::from_fn(|_| rng.random());
    std::fs::write(data.folder.join("Random.csv"), home_rows(&mut rng, has, &outages)).unwrap();
    let weather = (0..ROWS).map(|_| rng.random_range(-10.0..40.0_f64)).fold(
        String::from("outdoor_dry_bulb_temperature,outdoor_dry_bulb_temperature_predicted_1\n"),
        |text, celsius| text + &format!("{celsius},{celsius}\n"),
    );
    std::fs::write(data.folder.join("weather.csv"), weather).unwrap();
    let n_chargers = rng.random_range(0..3);
    let stays = (0..n_chargers).map(|i| {
        let (text, stays) = sessions(&mut rng, i);
        std::fs::write(data.folder.join(format!("charger_{i}.csv")), text).unwrap();
        stays
    });
    let stays = stays.collect();
    let battery_kwh = rng.random_range(1.0..30.0);
    let vehicle_kwh: Vec<f64> = (0..n_chargers).map(|_| rng.random_range(20.0..100.0)).collect();
    data.schema(|schema| {
        let plain = schema["buildings"]["Home"].clone();
        let home = &mut schema["buildings"]["Home"];
        home["energy_simulation"] = "Random.csv".into();
        home["power_outage"] = json!({"simulate_power_outage": true, "stochastic_power_outage": false});
        home["pv"]["attributes"]["nominal_power"] = rng.random_range(0.0..20.0).into();
        home["electrical_storage"]["attributes"] = battery(&mut rng, battery_kwh);
        for (slot, part) in ["cooling", "heating", "dhw"].into_iter().enumerate() {
            if has[slot] {
                schema["buildings"]["Home"][format!("{part}_device")] = device(&mut rng, part);
                schema["buildings"]["Home"][format!("{part}_storage")] = tank(&mut rng);
                schema["actions"][format!("{part}_storage")] = json!({"active": true});
            }
        }
        for i in 0..n_chargers {
            schema["buildings"]["Home"]["chargers"][format!("charger_{i}")] = charger(&mut rng, i);
            let attributes = battery(&mut rng, vehicle_kwh[i]);
            let kind = "citylearn.energy_model.Battery";
            schema["electric_vehicles_def"][format!("car_{i}")] =
                json!({"include": true, "battery": {"type": kind, "autosize": false, "attributes": attributes}});
        }
        schema["actions"]["electric_vehicle_storage"] = json!({"active": true});
        schema["buildings"]["Plain"] = plain;
    });
    District { data, outages, stays, vehicle_kwh, battery_kwh }
}

fn outages(rng: &mut EnvRng) -> Vec<bool> {
    let mut left = 0;
    let mut row = |_| {
        if left == 0 && rng.random_range(0..20) == 0 {
            left = rng.random_range(1..12);
        }
        let is_outage = left > 0;
        left -= usize::from(is_outage);
        is_outage
    };
    std::iter::once(false).chain((1..ROWS).map(&mut row)).collect()
}

fn home_rows(rng: &mut EnvRng, has: [bool; 3], outages: &[bool]) -> String {
    let mut text = String::from(
        "month,hour,day_type,non_shiftable_load,dhw_demand,cooling_demand,heating_demand,solar_generation,power_outage\n",
    );
    for (row, outage) in outages.iter().enumerate() {
        let hour = row % 24 + 1;
        let mut amount = |most: f64, is_there: bool| if is_there { rng.random_range(0.0..most) } else { 0.0 };
        let (load, sun) = (amount(3.0, true), amount(900.0, (7..19).contains(&hour)));
        let [cooling, heating, dhw] = has.map(|is_there| amount(4.0, is_there));
        let outage = u8::from(*outage);
        writeln!(text, "7,{hour},{},{load},{dhw},{cooling},{heating},{sun},{outage}", row / 24 % 7 + 1).unwrap();
    }
    text
}

fn sessions(rng: &mut EnvRng, charger: usize) -> (String, Vec<bool>) {
    let mut text = String::from(
        "electric_vehicle_charger_state,electric_vehicle_id,electric_vehicle_departure_time,\
         electric_vehicle_required_soc_departure,electric_vehicle_estimated_arrival_time,\
         electric_vehicle_estimated_soc_arrival\n",
    );
    let mut stays = Vec::new();
    while stays.len() < ROWS {
        let (away, here) = (rng.random_range(1..20), rng.random_range(1..20));
        let (required, arrival) = (rng.random_range(20..100), rng.random_range(2..90));
        for left in (0..away).rev() {
            writeln!(text, "2,car_{charger},,,{left},{arrival}").unwrap();
            stays.push(false);
        }
        for left in (0..here).rev() {
            writeln!(text, "1,car_{charger},{left},{required},,").unwrap();
            stays.push(left + 1 < here);
        }
    }
    (text, stays)
}

fn battery(rng: &mut EnvRng, capacity: f64) -> Value {
    json!({
        "capacity": capacity, "nominal_power": capacity * rng.random_range(0.1..1.5),
        "efficiency": rng.random_range(0.6..=1.0), "loss_coefficient": rng.random_range(0.0..0.05),
        "capacity_loss_coefficient": rng.random_range(0.0..1e-4), "depth_of_discharge": rng.random_range(0.3..=1.0),
    })
}

fn device(rng: &mut EnvRng, part: &str) -> Value {
    let efficiency = rng.random_range(0.2..0.9);
    let kind = if part != "cooling" && rng.random() { "ElectricHeater" } else { "HeatPump" };
    let mut attributes = json!({"nominal_power": null, "efficiency": efficiency});
    if kind == "HeatPump" {
        attributes["target_cooling_temperature"] = 8.0.into();
        attributes["target_heating_temperature"] = 45.0.into();
    }
    json!({
        "type": format!("citylearn.energy_model.{kind}"), "autosize": true, "attributes": attributes,
        "autosize_attributes": {"safety_factor": rng.random_range(0.5..3.0)},
    })
}

fn tank(rng: &mut EnvRng) -> Value {
    let (capacity, loss) = (rng.random_range(1.0..20.0), rng.random_range(0.0..0.05));
    json!({"type": "citylearn.energy_model.StorageTank", "autosize": false,
        "attributes": {"capacity": capacity, "loss_coefficient": loss}})
}

fn charger(rng: &mut EnvRng, place: usize) -> Value {
    let (most, back) = (rng.random_range(2.0..22.0), rng.random_range(0.0..11.0));
    json!({
        "type": "citylearn.electric_vehicle_charger.Charger", "autosize": false,
        "charger_simulation": format!("charger_{place}.csv"),
        "attributes": {
            "efficiency": rng.random_range(0.7..=1.0), "max_charging_power": most,
            "min_charging_power": rng.random_range(0.0..2.0), "max_discharging_power": back, "min_discharging_power": 0.0,
        },
    })
}
