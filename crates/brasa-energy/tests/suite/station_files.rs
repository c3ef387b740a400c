//! One's own site from CSV files: what is read is what is played, and what is wrong is named.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use brasa_energy::Trace;
use brasa_energy::station::{Station, StationConfig};
use brasa_env::{EnvBatch, Scenario, Who};
use brasa_test::outcomes::{ledger, play, trace, value};
use tempfile::TempDir;

const SESSIONS: &str = "arrival [UTC+01:00],departure [UTC+01:00],energy [kWh],socket,power [kW]\n\
    2024-03-02 09:00,2024-03-02 11:00,14,ac,7\n\
    2024-03-01 12:00,2024-03-01 16:00,20,ac,11\n\
    2024-03-01 13:00,2024-03-01 13:30,60,dc,100\n";

/// Two days of hours in UTC, which begin at 01:00 of local time on February 29: March 1 and 2 are whole.
fn write_site(folder: &Path) -> StationConfig {
    let hours = |n: usize| (0..n).map(|hour| (29 + hour / 24, hour % 24));
    let date = |day: usize| if day > 29 { format!("2024-03-{:02}", day - 29) } else { format!("2024-02-{day}") };
    let mut prices = String::from("time [UTC],price [EUR/MWh]\n");
    for (day, hour) in hours(80) {
        writeln!(prices, "{} {hour:02}:00,{}", date(day), 10 * day + hour).expect("a string");
    }
    // PV in quarters of an hour of local time: 40 kW from 12 to 13 o'clock.
    let mut pv = String::from("time [UTC+01:00],pv [kW]\n");
    for (day, hour) in hours(80) {
        for quarter in 0..4 {
            let kw = if hour == 12 { 10 * (quarter + 1) } else { 0 };
            writeln!(pv, "{}T{hour:02}:{:02}:00,{kw}", date(day), 15 * quarter).expect("a string");
        }
    }
    let file = |name: &str, text: &str| -> Option<PathBuf> {
        let path = folder.join(name);
        std::fs::write(&path, text).expect("it is written");
        Some(path)
    };
    let mut config = StationConfig { first_day: Some(0), ..StationConfig::default() };
    config.prices.file = file("prices.csv", &prices);
    config.pv.file = file("pv.csv", &pv);
    config.arrivals.file = file("sessions.csv", SESSIONS);
    config
}

#[test]
fn what_is_read_is_what_is_played() {
    let folder = tempfile::tempdir().expect("a folder");
    for step_minutes in [1, 5, 15, 30, 60] {
        let config = StationConfig { step_minutes, ..write_site(folder.path()) };
        let scenario = Station::new(config.clone()).expect("the files are valid");
        let steps_per_hour = 60 / step_minutes;
        let episode = scenario.episode(1, 0, 0);
        // March 1, 00:00 of local time is 23:00 of February 29 in UTC; UTC's March 1 has the prices from 300.
        assert!((episode.buy_per_kwh[0] - 0.313).abs() < 1e-12);
        assert!((episode.buy_per_kwh[(3 * steps_per_hour) as usize] - 0.302).abs() < 1e-12);
        assert!((episode.pv_kwh.iter().sum::<f64>() - 25.0).abs() < 1e-9);
        assert_eq!(episode.pv_kwh.len() as u32, 24 * steps_per_hour);
        let seen: Vec<_> =
            episode.sessions.iter().map(|car| (car.arrival_step, car.target_kwh, car.ac_kw, car.dc_kw)).collect();
        assert_eq!(seen, [(12 * steps_per_hour, 20.0, 11.0, 0.0), (13 * steps_per_hour, 60.0, 0.0, 100.0)]);
        let outcome = play(&scenario, Who::Baseline("uncontrolled"), 1);
        // 20 kWh are charged with 11 kW; 100 kW for half an hour are 50 kWh of 60, or of an hour's step all 60.
        let unmet_kwh = if step_minutes == 60 { 0.0 } else { 10.0 };
        assert!((value(&scenario, &outcome, "ev_unmet_kwh") - unmet_kwh).abs() < 1e-9, "{step_minutes}");
        assert!((ledger(&outcome, "ev_delivered_kwh") - 80.0 + unmet_kwh).abs() < 1e-9);
        assert!((ledger(&outcome, "pv_available_kwh") - 25.0).abs() < 1e-9);
        let second = Station::new(StationConfig { first_day: Some(1), ..config }).expect("two whole days");
        let outcome = play(&second, Who::Baseline("uncontrolled"), 1);
        assert!((ledger(&outcome, "ev_delivered_kwh") - 14.0).abs() < 1e-9);
        let at_ten = (10 * steps_per_hour) as usize;
        assert!((trace::<Trace>(&outcome).ev_kw[at_ten] - 7.0).abs() < 1e-4);
    }
}

#[test]
fn episodes_stay_within_the_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let site = write_site(folder.path());
    let scenario = Station::new(StationConfig { first_day: None, ..site.clone() }).expect("valid");
    let days: std::collections::BTreeSet<u32> = (0..30).map(|seed| scenario.episode(seed, 0, 0).first_day).collect();
    assert_eq!(days, [0, 1].into());
    let both = StationConfig { first_day: None, episode_steps: Some(2 * 288), ..site.clone() };
    let scenario = Station::new(both).expect("valid");
    assert_eq!(scenario.episode(7, 0, 0).sessions.len(), 3);
    brasa_env::check_env(700, |envs| Ok(scenario.batch(envs)?)).expect("the contract holds");
    let message = |config: StationConfig| Station::new(config).expect_err("it is refused").to_string();
    let long = StationConfig { episode_steps: Some(2 * 288 + 1), first_day: None, ..site.clone() };
    let rule = "must have, with the other files, whole days for an episode (3), at most 3660";
    assert_eq!(message(long), format!("`prices.file` {rule}, got 2 days"));
    let late = StationConfig { first_day: Some(2), ..site };
    assert_eq!(message(late), "`first_day` must be below 2, got 2");
}

/// Any one of the files alone gives the calendar; the rest is random or a closed form.
#[test]
fn every_file_stands_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let site = write_site(folder.path());
    let alone = |change: fn(&mut StationConfig, &StationConfig)| {
        let mut config = StationConfig::default();
        change(&mut config, &site);
        Station::new(config).expect("valid").episode(3, 0, 0)
    };
    let prices = alone(|config, site| config.prices.file = site.prices.file.clone());
    let pv = alone(|config, site| config.pv.file = site.pv.file.clone());
    let sessions = alone(|config, site| config.arrivals.file = site.arrivals.file.clone());
    assert!(prices.sessions.len() > 50 && pv.sessions.len() > 50 && sessions.sessions.len() < 3);
    assert!(prices.buy_per_kwh[0] > 0.25 && pv.buy_per_kwh[0] < 0.2 && sessions.buy_per_kwh[0] < 0.2);
    assert!((pv.pv_kwh.iter().sum::<f64>() - 25.0).abs() < 1e-9 && sessions.pv_kwh.iter().sum::<f64>() > 25.0);
    assert!([prices, pv, sessions].iter().all(|episode| episode.first_day < 3));
}

fn refused(change: impl Fn(&mut StationConfig, &TempDir)) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = write_site(folder.path());
    change(&mut config, &folder);
    let error = Station::new(config).expect_err("it is refused").to_string();
    error.replace(&format!("{}/", folder.path().display()), "")
}

#[test]
fn what_is_wrong_is_named() {
    const HEAD: &str = "arrival [UTC+01:00],departure [UTC+01:00],energy [kWh],socket\n";
    let sessions = |head: &str, rows: &str| {
        refused(|config, folder| {
            let path = folder.path().join("sessions.csv");
            std::fs::write(&path, format!("{head}{rows}")).expect("it is written");
            config.arrivals.file = Some(path);
        })
    };
    for (head, rows, message) in [
        (
            "arrival [UTC],departure [UTC],energy [kWh]\n",
            "",
            "sessions.csv: no column `socket` (also looked for: no other name)",
        ),
        (
            "arrival [UTC],departure [UTC],energy [MJ],socket\n",
            "",
            "sessions.csv, row 1, column `energy [MJ]`: must state its unit as `energy [kWh]` or `energy [Wh]`, got `energy [MJ]`",
        ),
        (HEAD, "", "sessions.csv: must have at least one session with energy"),
        (
            HEAD,
            "2024-03-01 12:00,2024-03-01 12:00,5,ac\n",
            "sessions.csv, row 2, column `departure [UTC+01:00]`: must be after the arrival, by at most 48 hours (a longer stay is storage, so end it then or leave it out), got `2024-03-01 12:00`",
        ),
        (
            HEAD,
            "2024-03-01 12:00,2024-03-03 12:01,5,ac\n",
            "sessions.csv, row 2, column `departure [UTC+01:00]`: must be after the arrival, by at most 48 hours (a longer stay is storage, so end it then or leave it out), got `2024-03-03 12:01`",
        ),
        (
            "arrival [UTC],departure [UTC],energy [kWh],socket,power [kW],power [W]\n",
            "",
            "sessions.csv: must have `power` once, got column 5 `power [kW]` and column 6 `power [W]`",
        ),
        (
            "arrival [UTC],departure [UTC],energy [kWh],socket,socket\n",
            "",
            "sessions.csv: must have `socket` once, got column 4 `socket` and column 5 `socket`",
        ),
        (
            HEAD,
            "2024-03-01 12:00,2024-03-01 13:00,-5,ac\n",
            "sessions.csv, row 2, column `energy [kWh]`: must be between 0 and 2000, got `-5`",
        ),
        (
            HEAD,
            "2024-03-01 12:00,2024-03-01 13:00,5,CCS\n",
            "sessions.csv, row 2, column `socket`: must be `ac`, `dc` or `any`, got `CCS`",
        ),
        (
            HEAD,
            "2024-03-01 12:00,2024-03-01 13:00,5,ac\n2024-04-01 12:00,2024-04-01 13:00,5,ac\n",
            "sessions.csv, row 3, column `arrival [UTC+01:00]`: must be between 2024-03-01 00:00 and 2024-03-03 00:00 of local time, the days of the other files, got `2024-04-01 12:00`",
        ),
    ] {
        assert_eq!(sessions(head, rows), message);
    }
    let no_dc = refused(|config, _| config.sockets.truncate(1));
    assert_eq!(no_dc, "sessions.csv, row 4, column `socket`: must be a kind of sockets of the station, got `dc`");
    let dollars = refused(|config, _| config.prices.currency = "USD".into());
    assert_eq!(
        dollars,
        "prices.csv, row 1, column `price [EUR/MWh]`: must state its unit as `price [USD/kWh]` or `price [USD/MWh]`, got `price [EUR/MWh]`"
    );
    let small = refused(|config, _| config.pv.peak_kw = 30.0);
    assert_eq!(small, "pv.csv, row 53, column `pv [kW]`: must be between -1.5 and 30, got `40`");
    let coarse = refused(|config, _| config.step_minutes = 10);
    assert_eq!(
        coarse,
        "`pv.file` must have an interval that fits to steps of 10 minutes from midnight on, got 15 minutes"
    );
    let nobody = refused(|config, folder| config.prices.file = Some(folder.path().join("nobody.csv")));
    assert!(nobody.starts_with("cannot read nobody.csv: "), "{nobody}");
}

/// What loggers and inverters write is read where its meaning is plain.
#[test]
fn plain_variants_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let site = write_site(folder.path());
    let plain = Station::new(site.clone()).expect("valid");
    assert_eq!(plain.warnings(), [""; 0]);
    let change = |name: &str, from: &str, to: &str| {
        let path = folder.path().join(name);
        let text = std::fs::read_to_string(&path).expect("it is there");
        assert!(text.contains(from), "{name}");
        std::fs::write(path, text.replace(from, to)).expect("it is written");
    };
    change("pv.csv", ":00,0\n", ":00,-0.12\n");
    change("prices.csv", ":00,", ":00:07Z,");
    change("sessions.csv", "16:00,20", "16:00:42+01:00,20");
    change("sessions.csv", "2024-03-02 09", "2024-03-01 10:00,2024-03-01 10:00,0,ac,7\n2024-03-02 09");
    let variant = Station::new(site).expect("valid");
    for first in [0, 1] {
        let (plain, variant) = (plain.episode(1, 0, first), variant.episode(1, 0, first));
        assert_eq!((plain.pv_kwh, plain.buy_per_kwh), (variant.pv_kwh, variant.buy_per_kwh));
        assert_eq!(plain.sessions.len(), variant.sessions.len());
    }
    let [warning] = variant.warnings() else { panic!("{:?}", variant.warnings()) };
    assert!(warning.contains("sessions.csv: 1 sessions with less than 0.001 kWh are left out"), "{warning}");
}

/// A state that was saved with files continues with them.
#[test]
fn a_saved_state_with_files_continues() {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = Station::new(write_site(folder.path())).expect("valid");
    let saved = scenario.batch(0..2).expect("a batch").save();
    scenario.batch(0..2).expect("a batch").load(&saved).expect("the same settings");
    assert_eq!(scenario.baselines().len(), 5);
}
