//! Readers of files survive broken ones: no panic, no endless loop, no memory without end.
#![allow(clippy::unwrap_used)]

use std::fmt::Write;

use brasa_energy::station::{Station, StationConfig};
use brasa_test::{memory::Counting, mutate::hold_reader};

#[global_allocator]
static MEMORY: Counting = Counting::new();

/// Files of each reader where nobody asks for a million.
const FEW: u64 = 1000;

/// Holds a reader of the station, whose file is set by `set`.
fn hold_station(reader: &str, text: &str, set: fn(&mut StationConfig, std::path::PathBuf)) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.csv");
    // A wrong date may ask for ten years: long steps and no sun keep their tables small.
    let mut config = StationConfig { step_minutes: 60, ..StationConfig::default() };
    config.pv.peak_kw = 0.0;
    set(&mut config, path.clone());
    hold_reader(reader, &[text.as_bytes().to_vec()], &MEMORY, FEW, |bytes| {
        std::fs::write(&path, bytes).unwrap();
        Station::new(config.clone()).map(|station| {
            let episode = station.episode(0, 0, 0);
            assert!(episode.buy_per_kwh.iter().chain(&episode.pv_kwh).all(|value| value.is_finite()));
        })
    });
}

#[test]
fn station_series() {
    let mut text = String::from("time [UTC+01:00],price [EUR/MWh]\n");
    (0..48).for_each(|hour| writeln!(text, "2024-03-{:02} {:02}:00,{hour}.5", 1 + hour / 24, hour % 24).unwrap());
    hold_station("station prices", &text, |config, path| config.prices.file = Some(path));
}

#[test]
fn station_sessions() {
    let mut text = String::from("arrival [UTC],departure [UTC],energy [kWh],socket,power [kW]\n");
    (1..9).for_each(|day| writeln!(text, "2024-03-0{day} 08:00,2024-03-0{day} 17:00,12.{day},ac,11").unwrap());
    hold_station("station sessions", &text, |config, path| config.arrivals.file = Some(path));
}
