//! Best-response dynamics of selfish users.

use std::collections::HashSet;

use brasa_env::EnvRng;
use serde::{Deserialize, Serialize};

use super::allocation::Allocation;
use super::objective::{Objective, Score};
use super::options;
use super::random::{below, random, strongest_random};
use crate::radio::Link;
use crate::receiver::Receiver;
use crate::snapshot::Snapshot;

/// Largest gain of a user in an equilibrium, Mb/s, because of rounding.
const TOLERANCE_MBPS: f64 = 1e-12;

/// Settings of the search for an equilibrium.
///
/// ```
/// use brasa_uara::baselines::BestResponseConfig;
///
/// let config: BestResponseConfig = toml::from_str("n_starts = 1")?;
/// assert_eq!(config, BestResponseConfig { n_starts: 1, ..BestResponseConfig::default() });
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BestResponseConfig {
    /// Number of starts; the best equilibrium is returned. Default 4. 1 shows a typical equilibrium; many starts
    /// approach the best one.
    pub n_starts: usize,
    /// Rounds per start; every user may move once per round. Default 100. A few are usually enough; if there is no
    /// equilibrium, no number is.
    pub max_rounds: usize,
}

impl Default for BestResponseConfig {
    fn default() -> Self {
        Self { n_starts: 4, max_rounds: 100 }
    }
}

/// A joint choice with a certificate of its distance from an equilibrium.
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
/// use brasa_uara::baselines::{BestResponseConfig, Nash, Objective, best_response};
///
/// // Two users, each near its station; alone on a channel, each has 6 Mb/s.
/// let (config, rng) = (BestResponseConfig::default(), &mut named_rng(0, "best response", 0));
/// let found: Nash = best_response(&snapshot, Objective::SumRate, &config, rng);
/// assert!(found.is_certified() && found.rounds >= 1);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Nash {
    /// One link per user.
    pub links: Vec<Link>,
    /// Number of rounds.
    pub rounds: usize,
    /// The largest gain of any user by a unilateral move, Mb/s, over all moves of all users; see [`largest_gain`].
    pub largest_gain_mbps: f64,
}

impl Nash {
    /// Whether no user gains by a unilateral move: a pure Nash equilibrium.
    pub fn is_certified(&self) -> bool {
        self.largest_gain_mbps <= TOLERANCE_MBPS
    }
}

/// Users move one after the other to the option with their own largest rate, until no user gains.
///
/// The utility of a user is its rate. Satisfaction first and rate second would give the same moves, because both
/// increase with the SINR; so the objective only selects among several equilibria.
///
/// With interference per link, the best station and power of a user do not depend on the others: all users choose the
/// strongest station at full power, and only the channels depend on the others. The search may fail to find an
/// equilibrium: users move in the order of their index until a joint choice repeats, and in random order after that. If
/// no start converges, the joint choice with the smallest remaining gain is returned, without a certificate.
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
/// use brasa_uara::baselines::{BestResponseConfig, Objective, best_response};
///
/// // Two users, each near its station; alone on a channel, each has 6 Mb/s.
/// let (config, rng) = (BestResponseConfig::default(), &mut named_rng(0, "best response", 0));
/// let links = best_response(&snapshot, Objective::SumRate, &config, rng).links;
/// // Selfish users choose different channels.
/// assert_ne!(links[0].channel, links[1].channel);
/// ```
pub fn best_response(snapshot: &Snapshot, objective: Objective, config: &BestResponseConfig, rng: &mut EnvRng) -> Nash {
    let Play { links, rounds, .. } = settle(snapshot, objective, config, rng);
    let largest_gain_mbps = largest_gain(snapshot, &links);
    Nash { links, rounds, largest_gain_mbps }
}

/// The largest gain of any user by a unilateral move to any of its options, Mb/s; 0 if no user gains.
///
/// It evaluates every move with the receiver, independently of the search.
///
/// ```
/// # use brasa_uara::{Interference, Radio, Snapshot};
/// # let radio = Radio {
/// #     n_users: 2, n_stations: 2, n_channels: 2, power_levels: vec![1.0], bandwidth_hz: 1e6, noise_mw: 1e-9,
/// #     min_sinr: 8.0, max_bits_per_hz: None, interference: Interference::PerTransmitter,
/// # };
/// # let (received_mw, all) = (vec![63e-9, 7e-9, 7e-9, 63e-9], vec![true; 4]);
/// # let snapshot = Snapshot { radio: radio.into(), received_mw, reached: all.clone(), allowed: all };
/// use brasa_uara::{Link, baselines::largest_gain};
///
/// // Two users, each near its station; alone on a channel, each has 6 Mb/s.
/// let link = |station, channel| Link { station, channel, power: 0 };
/// assert_eq!(largest_gain(&snapshot, &[link(0, 0), link(1, 1)]), 0.0);
/// // Both on one channel: each gains by a move to the other channel.
/// assert!(largest_gain(&snapshot, &[link(0, 0), link(1, 0)]) > 2.8);
/// ```
///
/// # Panics
/// If there is not one link per user, or a link is invalid.
pub fn largest_gain(snapshot: &Snapshot, links: &[Link]) -> f64 {
    let mut receiver = Receiver::new(&snapshot.radio);
    let mut sinr = vec![0.0; links.len()];
    let mut changed = links.to_vec();
    let mut largest = 0.0f64;
    for user in 0..links.len() {
        let mut rate = |link: Link| {
            changed[user] = link;
            receiver.sinr(&snapshot.received_mw, &snapshot.reached, &changed, &mut sinr);
            snapshot.radio.rate_mbps(sinr[user])
        };
        let now = rate(links[user]);
        let best = options::links(snapshot, user).map(&mut rate).fold(now, f64::max);
        largest = largest.max(best - now);
        changed[user] = links[user];
    }
    largest
}

/// Result of one start.
pub(super) struct Play {
    pub links: Vec<Link>,
    rounds: usize,
    settled: bool,
    score: Score,
}

/// The best joint choice of all starts, without a certificate.
pub(super) fn settle(snapshot: &Snapshot, objective: Objective, config: &BestResponseConfig, rng: &mut EnvRng) -> Play {
    let first = play(snapshot, strongest_random(snapshot, rng), config.max_rounds, rng);
    let mut plays = vec![first];
    for _ in 1..config.n_starts {
        let start = random(snapshot, rng);
        plays.push(play(snapshot, start, config.max_rounds, rng));
    }
    if plays.iter().any(|play| play.settled) {
        plays.retain(|play| play.settled);
        let better = |best: Play, play: Play| if objective.is_better(play.score, best.score) { play } else { best };
        return plays.into_iter().reduce(better).expect("one settled");
    }
    let gain = |play: &Play| gain_left(snapshot, &play.links);
    let closest = plays.into_iter().map(|play| (gain(&play), play)).min_by(|one, other| one.0.total_cmp(&other.0));
    closest.expect("at least one beginning").1
}

/// Runs the dynamics from one start.
fn play(snapshot: &Snapshot, start: Vec<Link>, max_rounds: usize, rng: &mut EnvRng) -> Play {
    let mut allocation = Allocation::with_links(snapshot, &start);
    let mut order: Vec<usize> = (0..start.len()).collect();
    let mut seen = HashSet::from([start]);
    let (mut in_order, mut settled, mut rounds) = (true, false, 0);
    while rounds < max_rounds && !settled {
        rounds += 1;
        settled = true;
        for user in &order {
            settled &= !respond(&mut allocation, snapshot, *user);
        }
        // A repeated joint choice would repeat forever in the same order of users.
        in_order &= settled || seen.insert(allocation.links());
        if !in_order {
            (1..order.len()).rev().for_each(|place| order.swap(place, below(rng, place + 1)));
        }
    }
    Play { links: allocation.links(), rounds, settled, score: allocation.score() }
}

/// Moves `user` to its best option; returns false if it gains nothing and stays.
fn respond(allocation: &mut Allocation, snapshot: &Snapshot, user: usize) -> bool {
    let Some(now) = allocation.lift(user) else { return false };
    let (best, gain) = best_move(allocation, snapshot, user, now);
    let moves = gain > TOLERANCE_MBPS;
    allocation.place(user, if moves { best } else { now });
    moves
}

/// The best option of `user`, whose link `now` was removed, and its gain, Mb/s.
fn best_move(allocation: &Allocation, snapshot: &Snapshot, user: usize, now: Link) -> (Link, f64) {
    let current = allocation.own_sinr(user, now);
    let mut best = (current, now);
    for link in options::useful_links(snapshot, user) {
        let sinr = allocation.own_sinr(user, link);
        if sinr > best.0 {
            best = (sinr, link);
        }
    }
    (best.1, snapshot.radio.rate_mbps(best.0) - snapshot.radio.rate_mbps(current))
}

/// As [`largest_gain`], faster, from the sums of the search.
fn gain_left(snapshot: &Snapshot, links: &[Link]) -> f64 {
    let mut allocation = Allocation::with_links(snapshot, links);
    let mut largest = 0.0f64;
    for (user, now) in links.iter().enumerate() {
        allocation.lift(user);
        largest = largest.max(best_move(&allocation, snapshot, user, *now).1);
        allocation.place(user, *now);
    }
    largest
}
