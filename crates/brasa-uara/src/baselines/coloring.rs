//! The strongest station for every user, and channels by graph coloring.

use super::options;
use crate::radio::{Interference, Link};
use crate::snapshot::Snapshot;

/// Every user takes the station with the strongest signal, at full power; interfering users get different channels, as
/// far as possible.
///
/// Vertices are users. Two users are joined if, alone on one channel, at least one of them loses the satisfaction that
/// it has without the other. Vertices are colored in the order of DSATUR (Brelaz, "New methods to color the vertices of
/// a graph", 1979): next is the user whose neighbors have the most different channels, then the one with the most
/// neighbors, then the first. It takes the channel with the fewest of its neighbors, which is 0 as long as the colors
/// are sufficient; then the channel with the least interference relative to signals, summed over this user and the
/// users of the channel, in both directions; then the first.
///
/// ```
/// # use brasa_uara::{Interference, Radio, Snapshot};
/// # let radio = Radio {
/// #     n_users: 2, n_stations: 2, n_channels: 2, power_levels: vec![1.0], bandwidth_hz: 1e6, noise_mw: 1e-9,
/// #     min_sinr: 8.0, max_bits_per_hz: None, interference: Interference::PerTransmitter,
/// # };
/// # let (received_mw, all) = (vec![63e-9, 7e-9, 7e-9, 63e-9], vec![true; 4]);
/// # let snapshot = Snapshot { radio: radio.into(), received_mw, reached: all.clone(), allowed: all };
/// use brasa_uara::baselines::strongest_coloring;
///
/// // Two users, each near its station; alone on a channel, each has 6 Mb/s.
/// let links = strongest_coloring(&snapshot);
/// assert_eq!([links[0].station, links[1].station], [0, 1]);
/// // They would interfere on one channel.
/// assert_ne!(links[0].channel, links[1].channel);
/// ```
pub fn strongest_coloring(snapshot: &Snapshot) -> Vec<Link> {
    let radio = &snapshot.radio;
    let (n, n_channels) = (radio.n_users, radio.n_channels);
    let power = radio.full_power();
    let stations: Vec<u16> = (0..n).map(|user| options::strongest(snapshot, user)).collect();
    let graph = Graph::new(snapshot, &stations, radio.power_levels[usize::from(power)]);

    let degree: Vec<usize> = (0..n).map(|user| (0..n).filter(|other| graph.joined(user, *other)).count()).collect();
    let mut channels: Vec<Option<usize>> = vec![None; n];
    // Number of neighbors of each user on each channel.
    let mut held = vec![0usize; n * n_channels];
    let mut saturation = vec![0usize; n];
    for _ in 0..n {
        let open = (0..n).filter(|user| channels[*user].is_none());
        let Some(user) = open.max_by_key(|user| (saturation[*user], degree[*user], n - user)) else { break };
        let harm = |channel: usize| -> f64 {
            let there = (0..n).filter(|other| channels[*other] == Some(channel));
            there.map(|other| graph.harm[user * n + other] + graph.harm[other * n + user]).sum()
        };
        let mut best = (0, (usize::MAX, f64::INFINITY));
        for channel in 0..n_channels {
            let neighbors = held[user * n_channels + channel];
            if neighbors <= best.1.0 {
                let cost = (neighbors, harm(channel));
                if cost < best.1 {
                    best = (channel, cost);
                }
            }
        }
        channels[user] = Some(best.0);
        for other in (0..n).filter(|other| graph.joined(user, *other)) {
            let held = &mut held[other * n_channels + best.0];
            saturation[other] += usize::from(*held == 0);
            *held += 1;
        }
    }
    let link = |(station, channel): (&u16, &Option<usize>)| Link {
        station: *station,
        channel: channel.unwrap_or(0) as u16,
        power,
    };
    stations.iter().zip(&channels).map(link).collect()
}

/// The interference graph.
struct Graph {
    n: usize,
    /// `[user, other]`: interference at `user` from the signal for `other`, relative to the signal of `user`; 0 for
    /// users without a signal.
    harm: Vec<f64>,
    joined: Vec<bool>,
}

impl Graph {
    fn new(snapshot: &Snapshot, stations: &[u16], level: f64) -> Self {
        let (radio, n) = (&snapshot.radio, stations.len());
        let received = |user: usize, other: usize| snapshot.received_mw(user, usize::from(stations[other])) * level;
        let served = |user: usize| snapshot.usable(user, usize::from(stations[user]));
        let satisfied = |user: usize, interference: f64| {
            served(user) && received(user, user) / (interference + radio.noise_mw) >= radio.min_sinr
        };
        let admission = radio.interference == Interference::PerTransmitter;
        let mut harm = vec![0.0; n * n];
        let mut joined = vec![false; n * n];
        for user in 0..n {
            let alone = satisfied(user, 0.0);
            for other in (0..n).filter(|other| *other != user) {
                if served(user) {
                    harm[user * n + other] = received(user, other) / received(user, user);
                }
                // A station that admits one user per channel rejects one of the two.
                let one_only = admission && stations[user] == stations[other];
                if alone && (one_only || !satisfied(user, received(user, other))) {
                    joined[user * n + other] = true;
                    joined[other * n + user] = true;
                }
            }
        }
        Self { n, harm, joined }
    }

    fn joined(&self, user: usize, other: usize) -> bool {
        self.joined[user * self.n + other]
    }
}
