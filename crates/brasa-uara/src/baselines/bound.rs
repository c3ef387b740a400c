//! What no joint choice exceeds.

use super::options;
use crate::radio::Interference;
use crate::snapshot::Snapshot;

/// What no joint choice exceeds; see [`upper_bound`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UpperBound {
    /// Satisfied users.
    pub satisfied: usize,
    /// Sum of all rates, Mb/s.
    pub sum_rate_mbps: f64,
}

/// What one user can get at best.
struct Best {
    /// Rate with only noise on the channel, Mb/s.
    alone_mbps: f64,
    /// Rate with one more signal there, the weakest for it that there is, Mb/s.
    shared_mbps: f64,
    /// Whether it can be satisfied with one more signal there.
    satisfied_shared: bool,
    /// The stations that satisfy it alone on a channel.
    satisfied_by: Vec<usize>,
}

/// Bounds on both objectives that hold for every joint choice of the network; they need not be reachable.
///
/// **Proof for rates.** At most `n_channels` users are the only one with a signal on their channel and get at most
/// their rate against noise alone; every other user hears at least one further signal, which is at least as strong as that of
/// the station it hears least, at the lowest power. If stations admit one user per channel, no more than
/// `n_stations * n_channels` users have a rate at all.
///
/// **Proof for satisfied users.** In the same way, at most `n_channels` of those are satisfied whom a shared channel cannot
/// satisfy. And where a station can satisfy only one user per channel, each takes one of its `n_channels` places
/// at a station that would satisfy it alone, so a largest assignment of users to such places is a bound: this holds with
/// admission, and without if `min_sinr >= 1`, since of two users of a station on a channel one has no more signal than
/// interference.
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
    // Others may choose any station, whether it serves them or not.
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

/// How many users find a place at a station that satisfies them, at most `places` each: augmenting paths (Kuhn 1955).
fn most_places(users: &[Best], n_stations: usize, places: usize) -> usize {
    let mut taken: Vec<Vec<usize>> = vec![Vec::new(); n_stations];
    let seat = |user: usize| seat(user, users, places, &mut taken, &mut vec![false; n_stations]);
    (0..users.len()).map(seat).filter(|found| *found).count()
}

/// Finds a place for `user`, moving others if that helps.
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
