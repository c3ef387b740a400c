//! The strongest station for everybody, and channels by graph coloring.

use super::options;
use crate::radio::{Interference, Link};
use crate::snapshot::Snapshot;

/// Every user takes the station that it hears best, at full power; channels are shared out so that those who would
/// disturb each other get different ones.
///
/// Vertices are users. Two are joined if on one channel, with nobody else there, at least one of them loses the
/// satisfaction that it has alone. Vertices are colored in the order of DSATUR (Brelaz, "New methods to color the vertices
/// of a graph", 1979): next comes the user whose neighbors hold the most different channels, of these the one with the most
/// neighbors, of these the first. It takes the channel that holds the fewest of its neighbors, which is none as long as
/// the colors suffice; of these the channel where interference is least in proportion to signals, summed over it and
/// those already there, in both directions; of these the first.
pub fn strongest_coloring(snapshot: &Snapshot) -> Vec<Link> {
    let radio = &snapshot.radio;
    let (n, n_channels) = (radio.n_users, radio.n_channels);
    let power = radio.full_power();
    let stations: Vec<u16> = (0..n).map(|user| options::strongest(snapshot, user)).collect();
    let graph = Graph::new(snapshot, &stations, radio.power_levels[usize::from(power)]);

    let degree: Vec<usize> = (0..n).map(|user| (0..n).filter(|other| graph.joined(user, *other)).count()).collect();
    let mut channels: Vec<Option<usize>> = vec![None; n];
    // Neighbors of each user on each channel.
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

/// Who disturbs whom.
struct Graph {
    n: usize,
    /// `[user, other]`: interference that `user` would get from the signal for `other`, relative to its own signal; 0 for
    /// those who have none, as nothing harms them.
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
                // A station that admits one user per channel turns one of the two down.
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
