//! Sequential greedy choice.

use super::allocation::Allocation;
use super::objective::Objective;
use super::options;
use crate::radio::Link;
use crate::snapshot::Snapshot;

/// Users choose in the order of their index. Each takes the option that increases the objective most, given the earlier
/// users and without the later ones; the first option if several are equal.
///
/// If every useful option costs the others more than the user gains, it takes the least harmful option, which may
/// be a station that cannot serve it.
///
/// ```
/// # use brasa_uara::{Interference, Radio, Snapshot};
/// # let radio = Radio {
/// #     n_users: 2, n_stations: 2, n_channels: 2, power_levels: vec![1.0], bandwidth_hz: 1e6, noise_mw: 1e-9,
/// #     min_sinr: 8.0, max_bits_per_hz: None, interference: Interference::PerTransmitter,
/// # };
/// # let (received_mw, all) = (vec![63e-9, 7e-9, 7e-9, 63e-9], vec![true; 4]);
/// # let snapshot = Snapshot { radio: radio.into(), received_mw, reached: all.clone(), allowed: all };
/// use brasa_uara::baselines::{Objective, greedy};
///
/// // Two users, each near its station; alone on a channel, each has 6 Mb/s.
/// let links = greedy(&snapshot, Objective::Satisfied);
/// assert_eq!(snapshot.outcome(&links).satisfied, [true, true]);
/// ```
pub fn greedy(snapshot: &Snapshot, objective: Objective) -> Vec<Link> {
    let mut allocation = Allocation::new(snapshot);
    for user in 0..snapshot.radio.n_users {
        let mut best: Option<([f64; 2], Link)> = None;
        for link in options::links(snapshot, user) {
            let change = allocation.change(user, link);
            let rank = objective.rank(change.satisfied, change.sum_rate_mbps);
            if best.is_none_or(|(most, _)| rank > most) {
                best = Some((rank, link));
            }
        }
        allocation.place(user, best.map_or_else(Link::default, |(_, link)| link));
    }
    allocation.links()
}
