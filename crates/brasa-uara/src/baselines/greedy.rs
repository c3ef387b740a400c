//! One user after the other.

use super::allocation::Allocation;
use super::objective::Objective;
use super::options;
use crate::radio::Link;
use crate::snapshot::Snapshot;

/// Users come in the order of their index; each takes the option that raises the objective most, counting everybody who
/// came before and nobody who comes later. Of equal options the first one.
///
/// A user whom every useful option would cost the others more than it gains itself takes one that harms least, which may
/// be a station that cannot serve it.
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
