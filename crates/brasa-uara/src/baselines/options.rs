//! The options of a user.

use crate::radio::Link;
use crate::snapshot::Snapshot;

/// The stations that `user` may choose, in order; all stations if it may choose none.
pub(super) fn stations(snapshot: &Snapshot, user: usize) -> Vec<u16> {
    let n = snapshot.radio.n_stations;
    let allowed = &snapshot.allowed[user * n..(user + 1) * n];
    let all = !allowed.contains(&true);
    (0..n).filter(|station| all || allowed[*station]).map(|station| station as u16).collect()
}

/// The links that `user` may choose, in the order of options.
pub(super) fn links(snapshot: &Snapshot, user: usize) -> impl Iterator<Item = Link> + use<'_> {
    links_to(snapshot, stations(snapshot, user))
}

/// Those of them to stations that can serve `user`.
pub(super) fn useful_links(snapshot: &Snapshot, user: usize) -> impl Iterator<Item = Link> + use<'_> {
    let reached = &snapshot.reached[user * snapshot.radio.n_stations..];
    let mut stations = stations(snapshot, user);
    stations.retain(|station| reached[usize::from(*station)]);
    links_to(snapshot, stations)
}

fn links_to(snapshot: &Snapshot, stations: Vec<u16>) -> impl Iterator<Item = Link> + use<'_> {
    let radio = &snapshot.radio;
    let per_station = radio.options_per_station();
    let options = move |station: u16| (0..per_station).map(move |choice| usize::from(station) * per_station + choice);
    stations.into_iter().flat_map(options).map(|option| radio.link(option))
}

/// The strongest station that can serve `user`; if none can, the strongest one that it may choose.
pub(super) fn strongest(snapshot: &Snapshot, user: usize) -> u16 {
    let allowed = stations(snapshot, user);
    let mut best = allowed[0];
    for station in allowed {
        let rank = |station: u16| {
            let station = usize::from(station);
            (snapshot.usable(user, station), snapshot.received_mw(user, station))
        };
        if rank(station) > rank(best) {
            best = station;
        }
    }
    best
}
