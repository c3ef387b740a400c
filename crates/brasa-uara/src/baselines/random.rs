//! Random choices.

use brasa_env::EnvRng;
use rand::RngExt;

use super::options;
use crate::radio::Link;
use crate::snapshot::Snapshot;

/// Every user takes a uniformly random option.
///
/// ```
/// # use brasa_uara::{Interference, Radio, Snapshot};
/// # let radio = Radio {
/// #     n_users: 2, n_stations: 2, n_channels: 2, power_levels: vec![1.0], bandwidth_hz: 1e6, noise_mw: 1e-9,
/// #     min_sinr: 8.0, max_bits_per_hz: None, interference: Interference::PerTransmitter,
/// # };
/// # let (received_mw, all) = (vec![63e-9, 7e-9, 7e-9, 63e-9], vec![true; 4]);
/// # let snapshot = Snapshot { radio: radio.into(), received_mw, reached: all.clone(), allowed: all };
/// use brasa_env::named_rng;
/// use brasa_uara::baselines::random;
///
/// let links = random(&snapshot, &mut named_rng(0, "random", 0));
/// assert_eq!(links.len(), 2);
/// assert!(links.iter().all(|link| link.station < 2 && link.channel < 2));
/// ```
pub fn random(snapshot: &Snapshot, rng: &mut EnvRng) -> Vec<Link> {
    let radio = &snapshot.radio;
    let draw = |user| {
        let stations = options::stations(snapshot, user);
        let station = stations[below(rng, stations.len())];
        radio.link(usize::from(station) * radio.options_per_station() + below(rng, radio.options_per_station()))
    };
    (0..radio.n_users).map(draw).collect()
}

/// Every user takes the strongest station, at full power, on a random channel.
///
/// ```
/// # use brasa_uara::{Interference, Radio, Snapshot};
/// # let radio = Radio {
/// #     n_users: 2, n_stations: 2, n_channels: 2, power_levels: vec![1.0], bandwidth_hz: 1e6, noise_mw: 1e-9,
/// #     min_sinr: 8.0, max_bits_per_hz: None, interference: Interference::PerTransmitter,
/// # };
/// # let (received_mw, all) = (vec![63e-9, 7e-9, 7e-9, 63e-9], vec![true; 4]);
/// # let snapshot = Snapshot { radio: radio.into(), received_mw, reached: all.clone(), allowed: all };
/// use brasa_env::named_rng;
/// use brasa_uara::baselines::strongest_random;
///
/// // Two users, each near its station; alone on a channel, each has 6 Mb/s.
/// let links = strongest_random(&snapshot, &mut named_rng(0, "random", 0));
/// assert_eq!([links[0].station, links[1].station], [0, 1]);
/// ```
pub fn strongest_random(snapshot: &Snapshot, rng: &mut EnvRng) -> Vec<Link> {
    let radio = &snapshot.radio;
    let power = radio.full_power();
    let draw = |user| {
        let channel = below(rng, radio.n_channels) as u16;
        Link { station: options::strongest(snapshot, user), channel, power }
    };
    (0..radio.n_users).map(draw).collect()
}

/// A whole number below `n`, the same on every machine.
pub(super) fn below(rng: &mut EnvRng, n: usize) -> usize {
    rng.random_range(0..n as u32) as usize
}
