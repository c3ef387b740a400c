//! One's own microgrid from CSV files: what is read is what is played, and what is wrong is named.

use std::path::Path;

use brasa_energy::Trace;
use brasa_energy::iquitos::{FileConfig, Iquitos, IquitosConfig};
use brasa_env::{Who, check_env};
use brasa_test::outcomes::{episode_return, ledger, play, trace, value};

/// Two days in March, one value per hour, at UTC.
fn series(unit: &str, at: impl Fn(usize) -> f64) -> String {
    let rows = (0..72).map(|hour| format!("2024-03-{:02} {:02}:00,{}\n", 1 + hour / 24, hour % 24, at(hour)));
    format!("time [UTC],{unit}\n{}", rows.collect::<String>())
}

const SESSIONS: &str = "arrival [UTC-05:00],departure [UTC-05:00],energy [kWh],class\n\
    2024-03-02 11:00,2024-03-02 12:00,4,mototaxi\n\
    2024-03-01 08:00,2024-03-01 10:00,1.5,moto\n\
    2024-03-01 08:00,2024-03-01 10:00,1.5,moto\n\
    2024-03-01 08:00,2024-03-01 10:00,1.5,moto\n";

const SOCKETS: &str = "class,sockets,power [kW],battery [kWh]\nmototaxi,1,3,4.3\nmoto,2,1,2.1\n";

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).expect("it is written");
}

/// March 1 and 2 of local time are whole: the files are from March 1 00:00 to March 4 00:00 UTC, five hours ahead.
fn site(folder: &Path) -> IquitosConfig {
    write(folder, "pv.csv", &series("pv [kW]", |hour| if hour % 24 == 17 { 40.0 } else { 0.0 }));
    write(folder, "load.csv", &series("load [W]", |hour| 1000.0 * (10 + hour) as f64));
    write(folder, "prices.csv", &series("price [PEN/MWh]", |hour| 100.0 + hour as f64));
    write(folder, "carbon.csv", &series("carbon [g/kWh]", |hour| 400.0 + hour as f64));
    write(folder, "vehicles.csv", SESSIONS);
    write(folder, "sockets.csv", SOCKETS);
    let path = |name: &str| Some(folder.join(name));
    let mut config = IquitosConfig {
        files: FileConfig {
            pv: path("pv.csv"),
            load: path("load.csv"),
            prices: path("prices.csv"),
            carbon: path("carbon.csv"),
            vehicles: path("vehicles.csv"),
            sockets: path("sockets.csv"),
            ..FileConfig::default()
        },
        ..IquitosConfig::default()
    };
    config.pv.peak_kw = 50.0;
    config.battery.capacity_kwh = 0.0;
    config.grid.demand_charge_per_kw = 0.0;
    config
}

#[test]
fn what_is_read_is_what_is_played() {
    let folder = tempfile::tempdir().expect("a folder");
    for step_minutes in [15, 60] {
        let scenario =
            Iquitos::new(IquitosConfig { step_minutes, ..site(folder.path()) }).expect("the files are valid");
        assert_eq!((scenario.config().vehicles.moto.sockets, scenario.config().vehicles.mototaxi.socket_kw), (2, 3.0));
        let outcome = play(&scenario, Who::Baseline("uncontrolled"), 1);
        assert_eq!(outcome.length, 2 * 24 * u64::from(60 / step_minutes));
        // Local midnight is 05:00 UTC: the hours 5 to 52 of the files.
        let hours = 5..53;
        let load_kwh: f64 = hours.clone().map(|hour| f64::from(10 + hour)).sum();
        assert!((ledger(&outcome, "load_kwh") - load_kwh).abs() < 1e-9);
        assert!((ledger(&outcome, "pv_available_kwh") - 80.0).abs() < 1e-9);
        // Two of three motos find a socket, and get 1.5 kWh; a mototaxi gets 3 of 4 kWh in its hour.
        assert_eq!(value(&scenario, &outcome, "ev_turned_away"), 1.0);
        assert!((ledger(&outcome, "ev_delivered_kwh") - 6.0).abs() < 1e-5);
        assert!((ledger(&outcome, "ev_unmet_kwh") - 1.0).abs() < 1e-5);
        // Import and price of every hour; PV is at 12 o'clock of both days, when 17 and 41 kW are the load less it.
        let (mut cost, mut carbon_kg) = (0.0, 0.0);
        for hour in hours {
            let local = hour - 5;
            let vehicles = match local {
                8 => 2.0,
                9 => 1.0,
                35 => 3.0,
                _ => 0.0,
            };
            let pv = if hour % 24 == 17 { 40.0 } else { 0.0 };
            let import = (f64::from(10 + hour) + vehicles - pv).max(0.0);
            cost += import * (100.0 + f64::from(hour)) / 1000.0;
            carbon_kg += import * (400.0 + f64::from(hour)) / 1000.0;
        }
        assert!((value(&scenario, &outcome, "cost") - cost).abs() < 1e-4, "{step_minutes}: {cost}");
        assert!((value(&scenario, &outcome, "carbon_kg") - carbon_kg).abs() < 1e-4);
        let at_eight = 8 * (60 / step_minutes) as usize;
        assert!((trace::<Trace>(&outcome).ev_kw[at_eight] - 2.0).abs() < 1e-5);
        let again = play(&scenario, Who::Baseline("uncontrolled"), 2);
        assert_eq!(outcome.figures, again.figures);
    }
}

#[test]
fn the_environment_contract_holds_with_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = IquitosConfig { episode_steps: Some(24), random_start: true, ..site(folder.path()) };
    let scenario = Iquitos::new(config).expect("the files are valid");
    check_env(100, |envs| Ok(scenario.batch(envs)?)).expect("the contract holds");
}

/// The sample folder is complete, and its rules rank as expected.
#[test]
fn the_sample_folder_plays() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/own-site");
    let path = |name: &str| Some(folder.join(name));
    let files = FileConfig {
        utc_offset_hours: 1.0,
        pv: path("pv.csv"),
        load: path("load.csv"),
        prices: path("prices.csv"),
        carbon: path("carbon.csv"),
        vehicles: path("vehicles.csv"),
        sockets: path("sockets.csv"),
        ..FileConfig::default()
    };
    let mut config = IquitosConfig { files, ..IquitosConfig::default() };
    (config.pv.peak_kw, config.battery.capacity_kwh, config.battery.power_kw) = (300.0, 400.0, 200.0);
    (config.vehicles.feeder_limit_kw, config.grid.soft_limit_kw) = (22.0, 200.0);
    (config.grid.currency, config.grid.demand_charge_per_kw) = ("EUR".into(), 2.0);
    let scenario = Iquitos::new(config).expect("the sample is valid");
    let outcome = |rule| play(&scenario, Who::Baseline(rule), 0);
    let [idle, uncontrolled, threshold] = ["idle", "uncontrolled", "price-threshold"].map(outcome);
    assert_eq!(uncontrolled.length, 7 * 24);
    assert!(ledger(&uncontrolled, "ev_delivered_kwh") > 150.0 && ledger(&idle, "ev_delivered_kwh") == 0.0);
    assert!(value(&scenario, &threshold, "cost") < value(&scenario, &uncontrolled, "cost"));
    assert!(episode_return(&threshold) > episode_return(&uncontrolled));
}

#[test]
fn what_is_wrong_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let head = "arrival [UTC],departure [UTC],energy [kWh],class\n";
    let valid = series("pv [kW]", |_| 0.0);
    let gap: String =
        valid.lines().filter(|line| !line.starts_with("2024-03-01 02")).map(|l| format!("{l}\n")).collect();
    let cases: [(&str, String, &str); 22] = [
        ("pv.csv", valid.replace("[UTC]", ""), "pv.csv, row 1, column `time`: must state its offset from UTC"),
        (
            "pv.csv",
            valid.replace("[kW]", "[MW]"),
            "row 1, column `pv [MW]`: must state its unit as `pv [kW]` or `pv [W]`",
        ),
        ("pv.csv", valid.replace("pv [kW]", "power [kW]"), "no column `pv`"),
        ("pv.csv", gap, "row 4, column `time [UTC]`: must be 2024-03-01 02:00, 60 minutes after the row before"),
        (
            "pv.csv",
            valid.replacen(",0\n", ",51\n", 1),
            "row 2, column `pv [kW]`: must be between -2.5 and 50, got `51`",
        ),
        ("pv.csv", valid.replacen(",0\n", ",\n", 1), "row 2, column `pv [kW]`: must be a number"),
        ("load.csv", series("load [kW]", |_| -1.0), "column `load [kW]`: must be between 0 and 1000000, got `-1`"),
        (
            "prices.csv",
            series("price [EUR/kWh]", |_| 1.0),
            "must state its unit as `price [PEN/kWh]` or `price [PEN/MWh]`",
        ),
        ("prices.csv", series("price [PEN/kWh]", |_| -0.1), "must be between 0 and 1000, got `-0.1`"),
        ("carbon.csv", series("carbon [kg/kWh]", |_| 452.1), "must be between 0 and 2, got `452.1`"),
        ("pv.csv", valid.replacen(",0\n", ",-3\n", 1), "must be between -2.5 and 50, got `-3`"),
        (
            "load.csv",
            series("load [W],load [kW]", |_| 1.0),
            "must have `load` once, got column 2 `load [W]` and column 3 `load [kW]`",
        ),
        ("load.csv", series("load [kW]", |_| 1.0).replace(',', ";"), "its columns are separated by semicolons"),
        (
            "sockets.csv",
            "class,sockets,power [kW],power [W],battery [kWh]\n".into(),
            "must have `power` once, got column 3 `power [kW]` and column 4 `power [W]`",
        ),
        (
            "vehicles.csv",
            format!("{head}2024-03-02 10:00,2024-03-02 11:00,0,moto\n"),
            "must have at least one session with energy",
        ),
        ("vehicles.csv", head.into(), "must have at least one session"),
        (
            "vehicles.csv",
            format!("{head}2024-03-02 10:00,2024-03-02 09:00,1,moto\n"),
            "row 2, column `departure [UTC]`: must be after the arrival, by at most 24 hours",
        ),
        (
            "vehicles.csv",
            format!("{head}2024-03-02 10:00,2024-03-02 11:00,1500,moto\n"),
            "row 2, column `energy [kWh]`: must be between 0 and 2.21",
        ),
        (
            "vehicles.csv",
            format!("{head}2024-03-02 10:00,2024-03-02 11:00,1,truck\n"),
            "row 2, column `class`: must be `moto` or `mototaxi`, got `truck`",
        ),
        (
            "vehicles.csv",
            format!("{head}2024-03-09 10:00,2024-03-09 11:00,1,moto\n"),
            "must be between 2024-03-01 00:00 and 2024-03-03 00:00 of local time",
        ),
        (
            "sockets.csv",
            SOCKETS.replace("moto,2", "moto,0"),
            "column `sockets`: must be a number of sockets from 1 to 10000",
        ),
        ("sockets.csv", SOCKETS.replace("\nmoto,", "\nmototaxi,"), "column `class`: must be a class once"),
    ];
    for (name, text, message) in cases {
        let config = site(folder.path());
        write(folder.path(), name, &text);
        let error = Iquitos::new(config).expect_err(message).to_string();
        assert!(error.contains(message) && error.contains(name), "{name}: {error} instead of {message}");
    }
    write(folder.path(), "sockets.csv", "class,sockets,power [kW],battery [kWh]\nmoto,2,1,2.1\n");
    let config = IquitosConfig {
        files: FileConfig { sockets: Some(folder.path().join("sockets.csv")), ..FileConfig::default() },
        ..IquitosConfig::default()
    };
    let error = Iquitos::new(config).expect_err("one class is missing").to_string();
    assert!(error.contains("must have a row for `moto` and one for `mototaxi`"), "{error}");
}

/// What loggers and inverters write is read where its meaning is plain.
#[test]
fn plain_variants_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let played = |config: IquitosConfig| {
        let scenario = Iquitos::new(config).expect("the files are valid");
        (play(&scenario, Who::Baseline("uncontrolled"), 1).figures, scenario.warnings().to_vec())
    };
    let (plain, no_warnings) = played(site(folder.path()));
    assert_eq!(no_warnings, [""; 0]);
    // Inverters take some power at night.
    let config = site(folder.path());
    write(folder.path(), "pv.csv", &series("pv [kW]", |hour| if hour % 24 == 17 { 40.0 } else { -0.12 }));
    assert_eq!(played(config), (plain.clone(), vec![]));
    // Times with seconds and their own offset, the latter instead of the heading's.
    let config = site(folder.path());
    let stated = SESSIONS.replace(" [UTC-05:00]", "").replace(":00,", ":00:59-05:00,");
    assert!(stated.contains("2024-03-01 08:00:59-05:00,2024-03-01 10:00:59-05:00,1.5"), "{stated}");
    write(folder.path(), "vehicles.csv", &stated);
    assert_eq!(played(config), (plain.clone(), vec![]));
    // Sessions that charge nothing, even for no time or for days.
    let config = site(folder.path());
    let more = "2024-03-02 11:00,2024-03-02 11:00,0,moto\n2024-03-01 11:00,2024-03-09 11:00,0.0004,moto\n";
    write(folder.path(), "vehicles.csv", &format!("{SESSIONS}{more}"));
    let (figures, warnings) = played(config);
    assert_eq!(figures, plain);
    let [warning] = warnings.as_slice() else { panic!("{warnings:?}") };
    assert!(warning.contains("vehicles.csv: 2 sessions with less than 0.001 kWh are left out"), "{warning}");
}

/// Numbers in another unit than the heading's are likely if they are a thousand times too large or too small.
#[test]
fn unlikely_units_are_warned_of() {
    type Case = (&'static str, fn(f64) -> String, &'static str);
    let cases: [Case; 5] = [
        ("load.csv", |x| series("load [kW]", |_| 60_000.0 * x), "the largest load is 60000 kW, but 0.1 to 10000 kW"),
        ("load.csv", |x| series("load [W]", |_| 60.0 * x), "the largest load is 0.06 kW, but 0.1 to 10000 kW"),
        ("pv.csv", |x| series("pv [W]", |_| 40.0 * x), "the largest PV is 0.04 kW, but 0.5 to 50 kW"),
        ("prices.csv", |x| series("price [PEN/kWh]", |_| 450.0 * x), "the mean price is 450 PEN/kWh, but 0.005 to 3"),
        (
            "carbon.csv",
            |x| series("carbon [g/kWh]", |_| 0.4 * x),
            "the mean of the emissions is 0.0004 kg/kWh, but 0.001",
        ),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text, message) in cases {
        let config = site(folder.path());
        write(folder.path(), name, &text(1.0));
        let scenario = Iquitos::new(config).expect("it is valid");
        let [warning] = scenario.warnings() else { panic!("{name}: {:?}", scenario.warnings()) };
        assert!(warning.contains(name) && warning.contains(message), "{warning}");
    }
}

#[test]
fn settings_that_a_file_replaces_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    type Break = fn(&mut IquitosConfig);
    let cases: [(Break, &str); 8] = [
        (|c| c.pv.tilt_deg = 20.0, "`files.pv` must not come with settings of `pv` other than `peak_kw`"),
        (|c| c.mall.noise = 0.0, "`files.load` must not come with settings of `mall`"),
        (|c| c.grid.peak_price_per_kwh = 0.5, "`files.prices` must not come with prices of `grid`"),
        (|c| c.grid.carbon_swing = 0.1, "`files.carbon` must not come with carbon of `grid`"),
        (|c| c.vehicles.moto.arrivals_per_day = 1.0, "`files.vehicles` must not come with settings of arrivals"),
        (|c| c.files.utc_offset_hours = 15.0, "`files.utc_offset_hours` must be between -12 and 14, got 15"),
        (
            |c| (c.files.utc_offset_hours, c.files.pv) = (1.0, None),
            "`files.utc_offset_hours` must be -5, the clock of the simulated sun, without `files.pv`",
        ),
        (|c| c.episode_steps = Some(72), "`files.pv` must have, with the other files, whole days for an episode (3)"),
    ];
    for (break_it, message) in cases {
        let mut config = site(folder.path());
        break_it(&mut config);
        let error = Iquitos::new(config).expect_err(message).to_string();
        assert!(error.contains(message), "{error} instead of {message}");
    }
    let mut config = site(folder.path());
    config.files.load = Some(folder.path().join("absent.csv"));
    let error = Iquitos::new(config).expect_err("no file").to_string();
    assert!(error.contains("absent.csv"), "{error}");
    // Half-hours do not fit to steps of 20 minutes.
    let text: String =
        (0..144).map(|i| format!("2024-03-{:02} {:02}:{:02},0\n", 1 + i / 48, i / 2 % 24, i % 2 * 30)).collect();
    let config = IquitosConfig { step_minutes: 20, ..site(folder.path()) };
    write(folder.path(), "pv.csv", &format!("time [UTC],pv [kW]\n{text}"));
    let error = Iquitos::new(config).expect_err("it does not fit").to_string();
    assert!(error.contains("`files.pv` must have an interval that fits to steps of 20 minutes"), "{error}");
}
