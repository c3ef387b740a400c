//! Incremental evaluation of a joint choice in which one user changes at a time.

use crate::radio::{Interference, Link};
use crate::snapshot::Snapshot;

use super::objective::Score;

/// The links of some users, and their rates.
///
/// A change affects only one channel, so its cost is proportional to the users of the channel. The sums of a channel
/// are recomputed whenever a user joins or leaves: subtracting a power from a sum would leave rounding errors of the
/// magnitude of the noise.
pub(super) struct Allocation<'a> {
    snapshot: &'a Snapshot,
    admission: bool,
    links: Vec<Option<Link>>,
    /// The users that requested each channel.
    members: Vec<Vec<u16>>,
    /// Those of them that are served.
    senders: Vec<Vec<u16>>,
    interference_mw: Vec<f64>,
    rate_mbps: Vec<f64>,
    satisfied: Vec<bool>,
}

/// The effect of a choice on the objectives.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Change {
    /// Change of the number of satisfied users; may be negative.
    pub satisfied: f64,
    /// Change of the sum of all rates, Mb/s.
    pub sum_rate_mbps: f64,
}

/// The response of a station to a request.
enum Request {
    Refused,
    /// Served, possibly instead of another user of the channel.
    Served {
        instead_of: Option<u16>,
    },
}

impl<'a> Allocation<'a> {
    /// No user has a link.
    pub fn new(snapshot: &'a Snapshot) -> Self {
        let radio = &snapshot.radio;
        Self {
            snapshot,
            admission: radio.interference == Interference::PerTransmitter,
            links: vec![None; radio.n_users],
            members: vec![Vec::new(); radio.n_channels],
            senders: vec![Vec::new(); radio.n_channels],
            interference_mw: vec![0.0; radio.n_users],
            rate_mbps: vec![0.0; radio.n_users],
            satisfied: vec![false; radio.n_users],
        }
    }

    /// Every user has its link.
    pub fn with_links(snapshot: &'a Snapshot, links: &[Link]) -> Self {
        let mut allocation = Self::new(snapshot);
        for (user, link) in links.iter().enumerate() {
            allocation.links[user] = Some(*link);
            allocation.members[usize::from(link.channel)].push(user as u16);
        }
        (0..snapshot.radio.n_channels).for_each(|channel| allocation.refresh(channel));
        allocation
    }

    /// The links of all users.
    ///
    /// # Panics
    /// If a user has none.
    pub fn links(&self) -> Vec<Link> {
        self.links.iter().map(|link| link.expect("every user has been placed")).collect()
    }

    /// The score of the joint choice.
    pub fn score(&self) -> Score {
        let satisfied = self.satisfied.iter().filter(|satisfied| **satisfied).count();
        Score { satisfied, sum_rate_mbps: self.rate_mbps.iter().sum() }
    }

    /// Assigns `link` to a user without a link.
    pub fn place(&mut self, user: usize, link: Link) {
        debug_assert!(self.links[user].is_none(), "lifted before it is placed");
        self.links[user] = Some(link);
        self.members[usize::from(link.channel)].push(user as u16);
        self.refresh(usize::from(link.channel));
    }

    /// Removes the link of `user`, if any, and returns it.
    pub fn lift(&mut self, user: usize) -> Option<Link> {
        let link = self.links[user].take()?;
        let channel = usize::from(link.channel);
        self.members[channel].retain(|member| usize::from(*member) != user);
        (self.interference_mw[user], self.rate_mbps[user], self.satisfied[user]) = (0.0, 0.0, false);
        self.refresh(channel);
        Some(link)
    }

    /// The effect of assigning `link` to `user`, which has no link.
    pub fn change(&self, user: usize, link: Link) -> Change {
        let Request::Served { instead_of } = self.request(user, link) else { return Change::default() };
        let station = usize::from(link.station);
        let freed = instead_of.map_or(0.0, |other| self.power(usize::from(other)));
        let added = self.level(link) - freed;
        let (mut change, mut interference) = (Change::default(), 0.0);
        for other in self.senders[usize::from(link.channel)].iter().map(|other| usize::from(*other)) {
            let (mut satisfied, mut rate) = (false, 0.0);
            if instead_of != Some(other as u16) {
                interference += self.heard(user, other);
                let further = self.snapshot.received_mw(other, station) * added;
                if further == 0.0 {
                    continue;
                }
                (satisfied, rate) = self.quality(other, self.interference_mw[other] + further);
            }
            change.satisfied += f64::from(u8::from(satisfied)) - f64::from(u8::from(self.satisfied[other]));
            change.sum_rate_mbps += rate - self.rate_mbps[other];
        }
        if self.reached(user, link) {
            let sinr = self.sinr(user, link, interference);
            change.satisfied += f64::from(u8::from(sinr >= self.snapshot.radio.min_sinr));
            change.sum_rate_mbps += self.snapshot.radio.rate_mbps(sinr);
        }
        change
    }

    /// The SINR of `user`, which has no link, on `link`.
    pub fn own_sinr(&self, user: usize, link: Link) -> f64 {
        let Request::Served { instead_of } = self.request(user, link) else { return 0.0 };
        let others = self.senders[usize::from(link.channel)].iter().filter(|other| instead_of != Some(**other));
        let interference = others.map(|other| self.heard(user, usize::from(*other))).sum();
        self.sinr(user, link, interference)
    }

    /// The response of the station of `link` to `user`.
    fn request(&self, user: usize, link: Link) -> Request {
        if !self.admission {
            return Request::Served { instead_of: None };
        }
        if !self.reached(user, link) {
            return Request::Refused;
        }
        let mut senders = self.senders[usize::from(link.channel)].iter();
        match senders.find(|other| self.station(usize::from(**other)) == link.station) {
            Some(other) if self.comes_first(usize::from(*other), user, link.station) => Request::Refused,
            other => Request::Served { instead_of: other.copied() },
        }
    }

    /// Whether a station prefers `one` to `other`: the one with the stronger signal, or the first one if equal.
    fn comes_first(&self, one: usize, other: usize, station: u16) -> bool {
        let at = |user| self.snapshot.received_mw(user, usize::from(station));
        (at(one), other) > (at(other), one)
    }

    /// Recomputes the served users of `channel` and the rates of all of its members.
    fn refresh(&mut self, channel: usize) {
        let members = std::mem::take(&mut self.members[channel]);
        let mut senders = std::mem::take(&mut self.senders[channel]);
        senders.clear();
        let is_served = |user: usize| {
            let station = self.station(user);
            let rivals = members.iter().map(|rival| usize::from(*rival)).filter(|rival| *rival != user);
            let mut rivals = rivals.filter(|rival| self.station(*rival) == station && self.is_reached(*rival));
            self.is_reached(user) && !rivals.any(|rival| self.comes_first(rival, user, station))
        };
        senders.extend(members.iter().filter(|user| !self.admission || is_served(usize::from(**user))));
        for user in members.iter().map(|user| usize::from(*user)) {
            (self.interference_mw[user], self.rate_mbps[user], self.satisfied[user]) = (0.0, 0.0, false);
        }
        for user in senders.iter().map(|user| usize::from(*user)) {
            let others = senders.iter().map(|other| usize::from(*other)).filter(|other| *other != user);
            let interference = others.map(|other| self.heard(user, other)).sum();
            self.interference_mw[user] = interference;
            (self.satisfied[user], self.rate_mbps[user]) = self.quality(user, interference);
        }
        self.members[channel] = members;
        self.senders[channel] = senders;
    }

    /// Whether `user` is satisfied on its link, and its rate in Mb/s.
    fn quality(&self, user: usize, interference_mw: f64) -> (bool, f64) {
        let sinr = self.links[user].map_or(0.0, |link| self.sinr(user, link, interference_mw));
        (sinr >= self.snapshot.radio.min_sinr, self.snapshot.radio.rate_mbps(sinr))
    }

    fn sinr(&self, user: usize, link: Link, interference_mw: f64) -> f64 {
        if !self.reached(user, link) {
            return 0.0;
        }
        let signal = self.snapshot.received_mw(user, usize::from(link.station)) * self.level(link);
        signal / (interference_mw + self.snapshot.radio.noise_mw)
    }

    /// The power that `user` receives from the signal for `other`, mW.
    fn heard(&self, user: usize, other: usize) -> f64 {
        self.snapshot.received_mw(user, usize::from(self.station(other))) * self.power(other)
    }

    fn reached(&self, user: usize, link: Link) -> bool {
        self.snapshot.reached[user * self.snapshot.radio.n_stations + usize::from(link.station)]
    }

    fn is_reached(&self, user: usize) -> bool {
        self.links[user].is_some_and(|link| self.reached(user, link))
    }

    fn station(&self, user: usize) -> u16 {
        self.links[user].map_or(u16::MAX, |link| link.station)
    }

    fn power(&self, user: usize) -> f64 {
        self.links[user].map_or(0.0, |link| self.level(link))
    }

    fn level(&self, link: Link) -> f64 {
        self.snapshot.radio.power_levels[usize::from(link.power)]
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use brasa_env::named_rng;
    use rand::RngExt;

    use super::*;
    use crate::radio::Radio;

    /// After any sequence of changes the sums equal the receiver's, and predicted changes are correct.
    #[test]
    fn the_books_agree_with_the_receiver() {
        let mut rng = named_rng(0, "allocation", 0);
        for round in 0..300 {
            let radio = Radio {
                n_users: 7,
                n_stations: 3,
                n_channels: 2,
                power_levels: vec![0.25, 1.0],
                bandwidth_hz: 1e6,
                noise_mw: 0.1,
                min_sinr: 0.8,
                max_bits_per_hz: Some(4.0),
                interference: if round % 2 == 0 { Interference::PerLink } else { Interference::PerTransmitter },
            };
            let reached: Vec<bool> = (0..21).map(|_| rng.random::<f64>() < 0.7).collect();
            // Few distinct powers, so that ties occur.
            let received_mw = reached.iter().map(|_| f64::from(rng.random_range(0..4u32))).collect();
            let snapshot = Snapshot { radio: Arc::new(radio), received_mw, allowed: vec![true; 21], reached };
            let mut draw = || snapshot.radio.link(rng.random_range(0..12u32) as usize);
            let links: Vec<Link> = (0..7).map(|_| draw()).collect();
            let mut allocation = Allocation::with_links(&snapshot, &links);
            for user in 0..7 {
                let link = draw();
                allocation.lift(user);
                let before = allocation.score();
                let (change, own) = (allocation.change(user, link), allocation.own_sinr(user, link));
                allocation.place(user, link);
                let (after, outcome) = (allocation.score(), snapshot.outcome(&allocation.links()));
                assert_eq!(after.satisfied, Score::of(&outcome).satisfied);
                assert!((after.sum_rate_mbps - outcome.sum_rate_mbps()).abs() < 1e-12);
                assert_eq!(after.satisfied as f64 - before.satisfied as f64, change.satisfied);
                assert!((after.sum_rate_mbps - before.sum_rate_mbps - change.sum_rate_mbps).abs() < 1e-12);
                assert!((own - outcome.sinr[user]).abs() < 1e-12);
            }
        }
    }
}
