//! Dates, headings and keys of data sets: a row, a column or an attribute that is wrong is found, and published variants load.
#![allow(clippy::unwrap_used)]

use crate::common;

use brasa_citylearn::{CityLearn, CityLearnConfig, Physics};
use brasa_env::Who;
use common::data::{Data, ROWS};
use serde_json::{Value, json};

/// Lines of a file, the heading first.
fn change(data: &Data, file: &str, change: impl FnOnce(&mut Vec<String>)) {
    let path = data.folder.join(file);
    let mut lines: Vec<String> = std::fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect();
    change(&mut lines);
    std::fs::write(path, lines.join("\n") + "\n").unwrap();
}

/// Replaces a cell of a line.
fn set(lines: &mut [String], line: usize, cell: usize, value: &str) {
    let mut cells: Vec<String> = lines[line].split(',').map(str::to_owned).collect();
    cells[cell] = value.to_owned();
    lines[line] = cells.join(",");
}

/// Puts month, hour and type of day in front of a file without them, or in their place; `at` has those of a row.
fn dated(data: &Data, file: &str, at: impl Fn(usize) -> (u32, u32, u32)) {
    change(data, file, |lines| {
        let rest = |line: &str| match file {
            "Home.csv" | "Second.csv" => line.splitn(4, ',').nth(3).unwrap().to_owned(),
            _ => line.to_owned(),
        };
        for (row, line) in lines.iter_mut().enumerate() {
            *line = match row.checked_sub(1).map(&at) {
                None => format!("Month,Hour,Day Type,{}", rest(line)),
                Some((month, hour, day)) => format!("{month},{hour},{day},{}", rest(line)),
            };
        }
    });
}

/// The dates of `Data`, from Monday, July 1, with hours from 1 to 24.
fn july(row: usize) -> (u32, u32, u32) {
    (7, row as u32 % 24 + 1, row as u32 / 24 % 7 + 1)
}

/// Data with a second home, whose file is `Second.csv`.
fn two_homes() -> Data {
    let data = Data::new();
    data.schema(|schema| {
        let mut second = schema["buildings"]["Home"].clone();
        second["energy_simulation"] = json!("Second.csv");
        schema["buildings"]["Second"] = second;
        // A row fewer than there are, so that a missing one is not found by their number.
        schema["simulation_end_time_step"] = json!(ROWS - 30);
    });
    std::fs::copy(data.folder.join("Home.csv"), data.folder.join("Second.csv")).unwrap();
    assert_eq!(data.load().unwrap().buildings().len(), 2);
    data
}

#[test]
fn a_row_that_is_missing_or_repeated_is_found_in_every_file() {
    for file in ["Home.csv", "Second.csv"] {
        let data = two_homes();
        change(&data, file, |lines| drop(lines.remove(101)));
        data.refused(&[file, "row 102, column `Hour`: must be 5, 3600 s after the row before, got `6`"]);
        let data = two_homes();
        change(&data, file, |lines| lines.insert(102, lines[101].clone()));
        data.refused(&[file, "row 103, column `Hour`: must be 6, 3600 s after the row before, got `5`"]);
        // After midnight comes the hour 1 of the next day.
        let data = two_homes();
        change(&data, file, |lines| drop(lines.remove(24)));
        data.refused(&[file, "row 25, column `Hour`: must be 24,", "got `1`"]);
        // A whole day.
        let data = two_homes();
        change(&data, file, |lines| drop(lines.drain(49..73)));
        data.refused(&[file, "row 50, column `Day Type`: must be 3, or 8 for a special day, got `4`"]);
    }
    // Files that have dates of their own.
    for file in ["weather.csv", "pricing.csv", "carbon.csv"] {
        let data = two_homes();
        dated(&data, file, july);
        data.load().unwrap();
        change(&data, file, |lines| drop(lines.remove(101)));
        data.refused(&[file, "row 102, column `Hour`: must be 5,"]);
    }
    // And those that have none.
    for file in ["weather.csv", "pricing.csv", "carbon.csv"] {
        let data = two_homes();
        change(&data, file, |lines| drop(lines.remove(101)));
        data.refused(&[file, "has 239 rows, but", "Home.csv has 240: a row that is missing shifts all that follow"]);
    }
}

#[test]
fn files_begin_at_the_same_time() {
    let data = two_homes();
    change(&data, "Second.csv", |lines| drop(lines.remove(1)));
    data.refused(&["Second.csv, row 2, column `Hour`: must be 1, as in the same row of", "Home.csv, got `2`"]);
    // A day of 24 hours is found by the month.
    let data = two_homes();
    let end_of_july = |row: usize| {
        let day = 27 + row as u32 / 24;
        (if day > 31 { 8 } else { 7 }, row as u32 % 24 + 1, row as u32 / 24 % 7 + 1)
    };
    for file in ["Home.csv", "Second.csv"] {
        dated(&data, file, end_of_july);
    }
    data.load().unwrap();
    change(&data, "Second.csv", |lines| drop(lines.drain(1..25)));
    data.refused(&["Second.csv, row 98, column `Month`: must be 7, as in the same row of", "got `8`"]);
    // The hour 24 of a day is the hour 0 of the next one.
    let data = two_homes();
    dated(&data, "Second.csv", |row| (7, row as u32 % 24, row as u32 / 24 % 7 + 1));
    data.refused(&["Second.csv, row 2, column `Hour`: must be 1,"]);
    dated(&data, "Home.csv", |row| (7, (row as u32 + 23) % 24 + 1, (row as u32 + 167) / 24 % 7 + 1));
    dated(&data, "Second.csv", |row| (7, row as u32 % 24, row as u32 / 24 % 7 + 1));
    data.load().unwrap();
}

#[test]
fn months_have_their_days_and_follow_each_other() {
    let at = |first_month: u32, first_day: u32| {
        move |row: usize| {
            let (lengths, mut month) = ([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], first_month);
            let mut day = first_day + row as u32 / 24;
            while day > lengths[month as usize - 1] {
                day -= lengths[month as usize - 1];
                month = month % 12 + 1;
            }
            (month, row as u32 % 24 + 1, row as u32 / 24 % 7 + 1)
        }
    };
    for (month, day) in [(2, 25), (12, 28), (7, 30)] {
        let data = Data::new();
        dated(&data, "Home.csv", at(month, day));
        data.load().unwrap();
    }
    let refuse = |change_lines: fn(&mut Vec<String>), parts: &[&str]| {
        let data = Data::new();
        dated(&data, "Home.csv", at(12, 28));
        change(&data, "Home.csv", change_lines);
        data.refused(parts);
    };
    refuse(|lines| set(lines, 5, 0, "13"), &["row 6, column `Month`: must be in [1, 12], got `13`"]);
    refuse(|lines| set(lines, 5, 0, "11.5"), &["row 6, column `Month`: must be a whole number, got `11.5`"]);
    refuse(|lines| set(lines, 5, 0, "1"), &["row 6, column `Month`: must be 12, as the day of the row before goes on"]);
    refuse(
        |lines| set(lines, 5, 2, "2"),
        &["row 6, column `Day Type`: must be 1, as the day of the row before goes on"],
    );
    refuse(|lines| set(lines, 5, 2, "9"), &["row 6, column `Day Type`: must be in [1, 8], got `9`"]);
    refuse(|lines| set(lines, 5, 1, "25"), &["row 6, column `Hour`: must be in [0, 24], got `25`"]);
    refuse(
        |lines| (97..lines.len()).for_each(|line| set(lines, line, 0, "3")),
        &["row 98, column `Month`: must be 12 or 1, the month of the row before or the one after it, got `3`"],
    );
    // A special day stands for any, and the next day counts on.
    let data = Data::new();
    change(&data, "Home.csv", |lines| (25..49).for_each(|line| set(lines, line, 2, "8")));
    data.load().unwrap();
    change(&data, "Home.csv", |lines| (49..73).for_each(|line| set(lines, line, 2, "2")));
    data.refused(&["row 50, column `Day Type`: must be 3, or 8 for a special day, got `2`"]);
}

/// A month that is complete at its start must be at its end.
#[test]
fn a_missing_end_of_a_month_is_found() {
    let data = Data::new();
    data.schema(|schema| {
        schema["seconds_per_time_step"] = json!(86_400);
        schema["observations"] = json!({"hour": {"active": true}});
    });
    let days = |gap: usize| {
        move |row: usize| {
            let day = row + if row >= gap { 7 } else { 0 };
            let (mut month, mut left) = (0, day);
            for (index, length) in [31, 28, 31, 30, 31, 30, 31, 31, 30].into_iter().enumerate() {
                if left < length {
                    month = index as u32 + 1;
                    break;
                }
                left -= length;
            }
            (month, 1, day as u32 % 7 + 1)
        }
    };
    dated(&data, "Home.csv", days(ROWS));
    data.load().unwrap();
    // A week is missing from the middle of March: the weekdays go on.
    dated(&data, "Home.csv", days(70));
    data.refused(&["row 85, column `Month`: must be 3, as it has 31 days and this is day 25, got `4`"]);
}

/// Dates may jump where an episode of the schema starts, and weekdays where a year does.
#[test]
fn episodes_of_the_schema_may_start_anywhere() {
    let data = Data::new();
    let jump = |row: usize| if row < 120 { july(row) } else { (1, row as u32 % 24 + 1, (row as u32 / 24 + 3) % 7 + 1) };
    dated(&data, "Home.csv", jump);
    data.refused(&["row 122, column `Month`: must be 7 or 8"]);
    data.edit(|schema| schema["episode_time_steps"] = json!([[0, 119], [120, 239]]));
    data.load().unwrap();
    let year = |row: usize| (if row < 120 { 12 } else { 1 }, row as u32 % 24 + 1, row as u32 / 24 % 5 + 1);
    let data = Data::new();
    dated(&data, "Home.csv", year);
    data.load().unwrap();
}

/// The clock is put forward and back where the column of daylight saving time changes, or stays that of the winter as in published data.
#[test]
fn daylight_saving_time_may_shift_the_clock() {
    let with_status = |hours: &dyn Fn(usize) -> (u32, bool)| {
        let data = Data::new();
        change(&data, "Home.csv", |lines| {
            for (row, line) in lines.iter_mut().enumerate() {
                let status = match row.checked_sub(1) {
                    None => "Daylight Savings Status".into(),
                    Some(row) => u8::from(hours(row).1).to_string(),
                };
                *line = format!("{line},{status}");
            }
        });
        change(&data, "Home.csv", |lines| {
            for row in 0..ROWS {
                let hour = hours(row).0;
                set(lines, row + 1, 1, &(hour % 24).to_string());
                set(lines, row + 1, 2, &(hour / 24 % 7 + 1).to_string());
            }
        });
        data
    };
    // From row 50 to 100 the clock is one hour ahead.
    let is_summer = |row: usize| (50..100).contains(&row);
    with_status(&|row| (row as u32 + u32::from(is_summer(row)), is_summer(row))).load().unwrap();
    with_status(&|row| (row as u32, is_summer(row))).load().unwrap();
    // Without the status it is a missing row.
    with_status(&|row| (row as u32 + u32::from(row >= 50), false))
        .refused(&["row 52, column `Hour`: must be 2,", "got `3`"]);
}

#[test]
fn quarters_of_an_hour_are_checked_by_their_minutes() {
    let data = Data::new();
    data.schema(|schema| schema["seconds_per_time_step"] = json!(900));
    change(&data, "Home.csv", |lines| {
        lines[0] += ",minutes";
        for row in 0..ROWS {
            set(lines, row + 1, 1, &(row / 4 % 24).to_string());
            set(lines, row + 1, 2, &(row / 96 + 1).to_string());
            lines[row + 1] += &format!(",{}", row % 4 * 15);
        }
    });
    data.load().unwrap();
    data.edit(|schema| schema["simulation_end_time_step"] = json!(ROWS - 2));
    change(&data, "Home.csv", |lines| drop(lines.remove(51)));
    data.refused(&["row 52, column `Hour`: must be 12 with 30 minutes, 900 s after the row before, got `12`"]);
}

#[test]
fn headings_have_commas_and_every_column_once() {
    let data = Data::new();
    change(&data, "Home.csv", |lines| lines.iter_mut().for_each(|line| *line = line.replace(',', ";")));
    data.refused(&["Home.csv: its columns are separated by semicolons, but must be separated by commas"]);
    let data = Data::new();
    change(&data, "Home.csv", |lines| lines.iter_mut().for_each(|line| *line += ",1"));
    change(&data, "Home.csv", |lines| lines[0] = lines[0].replace(",1", ",Hour"));
    data.refused(&["Home.csv: must have `Hour` once, got column 2 `Hour` and column 9 `Hour`"]);
    change(&data, "Home.csv", |lines| lines[0] = lines[0].replace("kW],Hour", "kW],non_shiftable_load"));
    data.refused(&[
        "must have `non_shiftable_load` once, got column 4 `Equipment Electric Power [kWh]` and column 9 `non_shiftable_load`",
    ]);
}

/// `NaN` is what pandas writes for an empty cell: unknown where a cell may be empty, and named where it may not.
#[test]
fn nan_is_a_missing_number() {
    Data::new()
        .replace("Home.csv", "7,2,1,0.75", "7,2,1,nan")
        .refused(&["row 3", "`NaN` stands for a number that is missing"]);
    Data::new()
        .replace("Home.csv", "7,2,1,0.75", "7,,1,0.75")
        .refused(&["row 3, column `Hour`: must be a number, got ``"]);
    let data = Data::new();
    change(&data, "Home.csv", |lines| lines.iter_mut().for_each(|line| *line += ",NaN"));
    change(&data, "Home.csv", |lines| lines[0] = lines[0].replace(",NaN", ",Occupant Count [people]"));
    data.load().unwrap();
    let data = Data::new();
    let path = data.folder.join("schema.json");
    let text = std::fs::read_to_string(&path).unwrap().replace("6.4", "NaN");
    std::fs::write(path, text).unwrap();
    data.refused(&["schema.json", "line 1", "JSON has no `NaN`: write null, or leave the key out"]);
}

#[test]
fn keys_with_an_error_of_typing_are_refused_with_what_was_meant() {
    type Edit = fn(&mut Value);
    let cases: [(Edit, &str); 12] = [
        (
            |s| s["buildings"]["Home"]["electrical_storage"]["attributes"]["efficency"] = json!(0.9),
            "`Home.electrical_storage.attributes` has the unknown key `efficency`; did you mean `efficiency`?",
        ),
        (|s| s["buildings"]["Home"]["electrical_storag"] = json!({}), "`Home` has the unknown key `electrical_storag`"),
        (|s| s["buildings"]["Home"]["pv"]["atributes"] = json!({}), "did you mean `attributes`?"),
        (|s| s["buildings"]["Home"]["pv"]["attributes"]["nominal_pwr"] = json!(1), "did you mean `nominal_power`?"),
        (|s| s["simulation_end_timestep"] = json!(9), "did you mean `simulation_end_time_step`?"),
        (|s| s["observations"]["hour"]["actve"] = json!(true), "`observations.hour` has the unknown key `actve`"),
        (|s| s["actions"]["electrical_storage"]["activ"] = json!(true), "did you mean `active`?"),
        (
            |s| s["buildings"]["Home"]["inactive_actions"] = json!(["electrical_storge"]),
            "`Home.inactive_actions` has `electrical_storge`; did you mean `electrical_storage`?",
        ),
        (
            |s| {
                s["buildings"]["Home"]["cooling_device"] =
                    json!({"type": "citylearn.energy_model.HeatPump", "attributes": {"nominal_powr": 1}});
            },
            "`Home.cooling_device.attributes` has the unknown key `nominal_powr`; did you mean `nominal_power`?",
        ),
        (
            |s| s["buildings"]["Home"]["power_outage"] = json!({"simulate_power_outages": true}),
            "did you mean `simulate_power_outage`?",
        ),
        (
            |s| {
                s["electric_vehicles_def"] = json!({"Car": {"battery": {"attributes":
                    {"capacity": 40, "nominal_power": 50, "depth_of_dischage": 0.9}}}});
            },
            "did you mean `depth_of_discharge`?",
        ),
        (
            |s| {
                let storage = &mut s["buildings"]["Home"]["electrical_storage"];
                (storage["autosize"], storage["autosize_attributes"]) = (json!(true), json!({"safety_facter": 2}));
            },
            "`Home.electrical_storage.autosize_attributes` has the unknown key `safety_facter`; did you mean `safety_factor`?",
        ),
    ];
    for (edit, message) in cases {
        let data = Data::new();
        data.schema(edit);
        data.refused(&["schema.json", message]);
    }
}

/// A battery without parameters is one of CityLearn's models, a whole number of times, and runs with all rules that draw parameters.
#[test]
fn batteries_are_sized_by_the_load() {
    let data = Data::new();
    let sized = json!({"type": "citylearn.energy_model.Battery", "autosize": true});
    data.home(|home| home["electrical_storage"] = sized);
    let capacity_kwh = |data: &Data| data.load().unwrap().buildings()[0].battery.as_ref().unwrap().capacity_kwh;
    // The largest load of 1.5 kW is above the power of one model.
    assert_eq!(capacity_kwh(&data), 3.5);
    data.edit(|schema| {
        schema["buildings"]["Home"]["electrical_storage"]["autosize_attributes"] = json!({"duration": 24.0});
    });
    assert_eq!(capacity_kwh(&data), 10.0 * 3.5);
    for physics in Physics::ALL {
        let config =
            CityLearnConfig { data: data.folder.to_str().unwrap().into(), physics, ..CityLearnConfig::default() };
        match (physics, CityLearn::new(config)) {
            (Physics::CityLearn21, scenario) => {
                let error = scenario.err().unwrap().to_string();
                assert!(
                    error.contains("must not be `citylearn-2.1` for data with batteries that are sized"),
                    "{error}"
                );
            }
            (_, scenario) => {
                let recording = scenario.unwrap().record(Who::Baseline("rule-based"), 0).unwrap();
                assert!(recording.battery_kwh.iter().any(|kwh| *kwh > 0.1), "{physics:?}");
            }
        }
    }
}

/// A demand is divided by the efficiency of its device.
#[test]
fn efficiencies_that_make_no_number_are_refused() {
    let data = Data::new();
    data.home(|home| {
        let attributes = json!({"nominal_power": 1.0, "efficiency": 1e-300});
        home["dhw_device"] = json!({"type": "citylearn.energy_model.ElectricHeater", "attributes": attributes});
    });
    data.refused(&["`Home.dhw_device.attributes.efficiency` must be in [0.001, 1]"]);
}

#[test]
fn notes_are_listed_once_and_change_nothing() {
    let data = Data::new();
    let plain = data.load().unwrap();
    assert_eq!(plain.warnings(), [""; 0]);
    data.schema(|schema| {
        schema["author"] = json!("me");
        schema["buildings"]["Home"]["comment"] = json!("the one at the corner");
        schema["buildings"]["Home"]["pv"]["attributes"]["manufacturer"] = json!("unknown");
    });
    let noted = data.load().unwrap();
    let [warning] = noted.warnings() else { panic!("{:?}", noted.warnings()) };
    let keys = "schema.json: unknown keys without effect: `author`, `Home.comment`, `Home.pv.attributes.manufacturer`";
    assert!(warning.ends_with(keys), "{warning}");
    assert_eq!(noted.buildings(), plain.buildings());
    // Many are counted.
    data.schema(|schema| (0..30).for_each(|i| schema[format!("zz{i:02}")] = json!(i)));
    let many = data.load().unwrap();
    assert!(many.warnings()[0].ends_with("`zz19` and 10 more"), "{:?}", many.warnings());
}

#[test]
fn a_load_in_watts_is_warned_of() {
    let data = Data::new();
    change(&data, "Home.csv", |lines| set(lines, 7, 3, "60000"));
    let district = data.load().unwrap();
    let [warning] = district.warnings() else { panic!("{:?}", district.warnings()) };
    assert!(
        warning.contains("Home.csv: the largest `non_shiftable_load` is 60000 kW, but 0.1 to 10000 kW"),
        "{warning}"
    );
}
