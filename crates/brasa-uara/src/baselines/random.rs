//! Random choices.

use brasa_env::EnvRng;
use rand::RngExt;

use super::options;
use crate::radio::Link;
use crate::snapshot::Snapshot;

/// Every user takes a uniformly random option.
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
