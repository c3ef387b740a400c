//! Networks for tests.

use std::sync::Arc;

use brasa_env::named_rng;
use brasa_uara::{Interference, Link, PathLoss, Radio, Snapshot, dbm_to_mw};
use rand::RngExt;

/// A station on a plane.
#[derive(Debug, Clone, Copy)]
pub struct Station {
    pub at_m: [f64; 2],
    pub radius_m: f64,
    pub power_dbm: f64,
    pub loss: PathLoss,
}

/// The three kinds of stations of the published scenario.
pub fn macro_cell(at_m: [f64; 2]) -> Station {
    Station { at_m, radius_m: 500.0, power_dbm: 40.0, loss: PathLoss { at_1_m_db: 34.0, decade_db: 40.0 } }
}

pub fn pico_cell(at_m: [f64; 2]) -> Station {
    Station { radius_m: 100.0, power_dbm: 30.0, ..macro_cell(at_m) }
}

pub fn femto_cell(at_m: [f64; 2]) -> Station {
    let loss = PathLoss { at_1_m_db: 37.0, decade_db: 30.0 };
    Station { at_m, radius_m: 30.0, power_dbm: 20.0, loss }
}

/// -174 dBm/Hz in 180 kHz.
pub fn noise_mw() -> f64 {
    dbm_to_mw(-174.0) * 180e3
}

/// The constants of networks of `n_users` and `n_stations`, with a smallest SINR of 5 dB.
pub fn radio(n_users: usize, n_stations: usize, n_channels: usize, interference: Interference) -> Radio {
    Radio {
        n_users,
        n_stations,
        n_channels,
        power_levels: vec![1.0],
        bandwidth_hz: 180e3,
        noise_mw: noise_mw(),
        min_sinr: 10f64.powf(0.5),
        max_bits_per_hz: None,
        interference,
    }
}

/// The network of `stations` and users on a plane; `gated` if stations do not interfere outside their radius.
pub fn snapshot(
    stations: &[Station],
    users_m: &[[f64; 2]],
    n_channels: usize,
    interference: Interference,
    gated: bool,
) -> Snapshot {
    let (mut received_mw, mut reached) = (Vec::new(), Vec::new());
    for user in users_m {
        for station in stations {
            let distance = (user[0] - station.at_m[0]).hypot(user[1] - station.at_m[1]);
            let is_reached = distance <= station.radius_m;
            let power = dbm_to_mw(station.power_dbm - station.loss.db(distance));
            received_mw.push(if is_reached || !gated { power } else { 0.0 });
            reached.push(is_reached);
        }
    }
    let radio = Arc::new(radio(users_m.len(), stations.len(), n_channels, interference));
    Snapshot { radio, received_mw, allowed: vec![true; reached.len()], reached }
}

pub fn link(station: u16, channel: u16) -> Link {
    Link { station, channel, power: 0 }
}

/// A random small network with all kinds of stations, some out of reach.
pub fn random_snapshot(
    seed: u64,
    n_users: usize,
    n_channels: usize,
    interference: Interference,
    gated: bool,
) -> Snapshot {
    let mut rng = named_rng(seed, "network", 0);
    let mut place = |half_m: f64| [0, 1].map(|_| half_m * (2.0 * rng.random::<f64>() - 1.0));
    let stations = [macro_cell(place(60.0)), pico_cell(place(60.0)), femto_cell(place(60.0)), femto_cell(place(60.0))];
    let users: Vec<[f64; 2]> = (0..n_users).map(|_| place(90.0)).collect();
    snapshot(&stations, &users, n_channels, interference, gated)
}
