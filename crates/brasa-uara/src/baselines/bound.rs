//! Upper bounds on all joint choices.

use super::options;
use crate::radio::Interference;
use crate::snapshot::Snapshot;

/// Upper bounds on all joint choices; see [`upper_bound`].
///
/// ```
/// # use brasa_uara::{Interference, Radio, Snapshot};
/// # let radio = Radio {
/// #     n_users: 2, n_stations: 2, n_channels: 2, power_levels: vec![1.0], bandwidth_hz: 1e6, noise_mw: 1e-9,
/// #     min_sinr: 8.0, max_bits_per_hz: None, interference: Interference::PerTransmitter,
/// # };
/// # let (received_mw, all) = (vec![63e-9, 7e-9, 7e-9, 63e-9], vec![true; 4]);
/// # let snapshot = Snapshot { radio: radio.into(), received_mw, reached: all.clone(), allowed: all };
/// use brasa_uara::baselines::{UpperBound, upper_bound};
///
/// // Two users, each near its station; alone on a channel, each has 6 Mb/s.
/// let UpperBound { satisfied, sum_rate_mbps } = upper_bound(&snapshot);
/// assert_eq!(satisfied, 2);
/// assert!((sum_rate_mbps - 12.0).abs() < 1e-9);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UpperBound {
    /// Satisfied users.
    pub satisfied: usize,
    /// Sum of all rates, Mb/s.
    pub sum_rate_mbps: f64,
}

/// The best possible results of one user.
struct Best {
    /// Rate without interference, Mb/s.
    alone_mbps: f64,
    /// Rate with the weakest possible interferer, Mb/s.
    shared_mbps: f64,
    /// Whether it can be satisfied with one interferer.
    satisfied_shared: bool,
    /// The stations that satisfy it without interference.
    satisfied_by: Vec<usize>,
}

/// Bounds on both objectives for every joint choice of the network; they may be unreachable.
///
/// **Proof for rates.** At most `n_channels` users are alone on their channel; each has at most its rate without
/// interference. Every other user has at least one interferer, which is at least as strong as the weakest station for
/// this user, at the lowest power. If stations admit one user per channel, at most `n_stations * n_channels` users have
/// a rate above 0.
///
/// **Proof for satisfied users.** Of the users that cannot be satisfied on a shared channel, at most `n_channels` are
/// satisfied, by the same argument. If a station can satisfy only one user per channel, each satisfied user needs one
/// of the `n_channels` places of a station that satisfies it without interference, so the maximum assignment of users
/// to places is a bound. This condition holds with admission, and without it for `min_sinr >= 1`, because of two users
/// of a station on one channel, one has at most as much signal as interference.
///
/// ```
/// # use brasa_uara::{Interference, Radio, Snapshot};
/// # let radio = Radio {
/// #     n_users: 2, n_stations: 2, n_channels: 2, power_levels: vec![1.0], bandwidth_hz: 1e6, noise_mw: 1e-9,
/// #     min_sinr: 8.0, max_bits_per_hz: None, interference: Interference::PerTransmitter,
/// # };
/// # let (received_mw, all) = (vec![63e-9, 7e-9, 7e-9, 63e-9], vec![true; 4]);
/// # let snapshot = Snapshot { radio: radio.into(), received_mw, reached: all.clone(), allowed: all };
/// use brasa_uara::baselines::{Objective, greedy, upper_bound};
///
/// // Two users, each near its station; alone on a channel, each has 6 Mb/s.
/// let bound = upper_bound(&snapshot);
/// let found = snapshot.outcome(&greedy(&snapshot, Objective::SumRate));
/// assert!(found.sum_rate_mbps() <= bound.sum_rate_mbps + 1e-9);
/// ```
pub fn upper_bound(snapshot: &Snapshot) -> UpperBound {
    let radio = &snapshot.radio;
    let users: Vec<Best> = (0..radio.n_users).map(|user| best(snapshot, user)).collect();
    let admission = radio.interference == Interference::PerTransmitter;

    let shared: f64 = users.iter().map(|user| user.shared_mbps).sum();
    let gains = users.iter().map(|user| user.alone_mbps - user.shared_mbps).collect();
    let mut sum_rate_mbps = shared + largest(gains, radio.n_channels);
    if admission {
        let alone = users.iter().map(|user| user.alone_mbps).collect();
        sum_rate_mbps = sum_rate_mbps.min(largest(alone, radio.n_stations * radio.n_channels));
    }

    let shared = users.iter().filter(|user| user.satisfied_shared).count();
    let only_alone = users.iter().filter(|user| !user.satisfied_shared && !user.satisfied_by.is_empty()).count();
    let mut satisfied = shared + only_alone.min(radio.n_channels);
    if admission || radio.min_sinr >= 1.0 {
        satisfied = satisfied.min(most_places(&users, radio.n_stations, radio.n_channels));
    }
    UpperBound { satisfied, sum_rate_mbps }
}

fn best(snapshot: &Snapshot, user: usize) -> Best {
    let radio = &snapshot.radio;
    let levels = || radio.power_levels.iter().copied();
    let (low, high) = (levels().fold(f64::INFINITY, f64::min), levels().fold(0.0, f64::max));
    let received = |station: usize| snapshot.received_mw(user, station);
    // Others may choose any station, even if it does not reach them.
    let weakest = low * (0..radio.n_stations).map(received).fold(f64::INFINITY, f64::min);
    let sinr = |station: usize, interference: f64| high * received(station) / (interference + radio.noise_mw);
    let mut best = Best { alone_mbps: 0.0, shared_mbps: 0.0, satisfied_shared: false, satisfied_by: Vec::new() };
    for station in options::stations(snapshot, user).into_iter().map(usize::from) {
        if !snapshot.reached[user * radio.n_stations + station] {
            continue;
        }
        best.alone_mbps = best.alone_mbps.max(radio.rate_mbps(sinr(station, 0.0)));
        best.shared_mbps = best.shared_mbps.max(radio.rate_mbps(sinr(station, weakest)));
        best.satisfied_shared |= sinr(station, weakest) >= radio.min_sinr;
        if sinr(station, 0.0) >= radio.min_sinr {
            best.satisfied_by.push(station);
        }
    }
    best
}

/// The sum of the `n` largest values.
fn largest(mut values: Vec<f64>, n: usize) -> f64 {
    values.sort_unstable_by(|one, other| other.total_cmp(one));
    values.iter().take(n).sum()
}

/// Maximum number of users with a place at a station that satisfies them, `places` per station: augmenting paths (Kuhn
/// 1955).
fn most_places(users: &[Best], n_stations: usize, places: usize) -> usize {
    let mut taken: Vec<Vec<usize>> = vec![Vec::new(); n_stations];
    let seat = |user: usize| seat(user, users, places, &mut taken, &mut vec![false; n_stations]);
    (0..users.len()).map(seat).filter(|found| *found).count()
}

/// Finds a place for `user`, moving others if necessary.
fn seat(user: usize, users: &[Best], places: usize, taken: &mut [Vec<usize>], tried: &mut [bool]) -> bool {
    for station in users[user].satisfied_by.iter().copied() {
        if std::mem::replace(&mut tried[station], true) {
            continue;
        }
        if taken[station].len() < places {
            taken[station].push(user);
            return true;
        }
        for place in 0..taken[station].len() {
            if seat(taken[station][place], users, places, taken, tried) {
                taken[station][place] = user;
                return true;
            }
        }
    }
    false
}
