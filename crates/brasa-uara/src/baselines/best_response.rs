//! What users settle on who think of themselves only.

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

/// The most that a user may still gain in what counts as an equilibrium, Mb/s: rounding.
const TOLERANCE_MBPS: f64 = 1e-12;

/// How long users look for an equilibrium.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BestResponseConfig {
    /// Beginnings; the best of the equilibria counts. Default 4; 1 shows what users reach by themselves, many come near the
    /// best equilibrium there is.
    pub n_starts: usize,
    /// Rounds per beginning, in each of which every user may move once. Default 100; a few usually suffice, and where
    /// there is no equilibrium no number does.
    pub max_rounds: usize,
}

impl Default for BestResponseConfig {
    fn default() -> Self {
        Self { n_starts: 4, max_rounds: 100 }
    }
}

/// A joint choice together with the proof of how far it is from an equilibrium.
#[derive(Debug, Clone, PartialEq)]
pub struct Nash {
    /// One link per user.
    pub links: Vec<Link>,
    /// Rounds that were played to get there.
    pub rounds: usize,
    /// The most that any user would gain by moving alone, Mb/s, from trying every move of everybody; see [`largest_gain`].
    pub largest_gain_mbps: f64,
}

impl Nash {
    /// Whether no user gains by moving alone: a pure Nash equilibrium.
    pub fn is_certified(&self) -> bool {
        self.largest_gain_mbps <= TOLERANCE_MBPS
    }
}

/// Users take turns, each moving to the option with its own largest rate, until nobody gains by moving.
///
/// The utility of a user is its rate. Its own satisfaction first and its rate second would give the same moves, as both
/// grow with the same ratio; so the objective only says which of several equilibria is returned.
///
/// Where links interfere one by one, the best station and power of a user do not depend on the others: everybody ends up at
/// the strongest station at full power, and only channels are played for. Such games need not have an equilibrium that
/// this finds: users move in the order of their index until a joint choice returns, and in random order after that. If no
/// beginning settles, the joint choice with the smallest gain left is returned, and is not certified.
pub fn best_response(snapshot: &Snapshot, objective: Objective, config: &BestResponseConfig, rng: &mut EnvRng) -> Nash {
    let Play { links, rounds, .. } = settle(snapshot, objective, config, rng);
    let largest_gain_mbps = largest_gain(snapshot, &links);
    Nash { links, rounds, largest_gain_mbps }
}

/// The most that any user would gain by moving alone to any option it may choose, Mb/s; 0 where nobody gains.
///
/// Tries every move with the receiver itself and shares nothing with the search.
///
/// # Panics
/// If there is not one link per user, or a link names what does not exist.
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

/// Where one beginning led.
pub(super) struct Play {
    pub links: Vec<Link>,
    rounds: usize,
    settled: bool,
    score: Score,
}

/// The best joint choice of all beginnings, without its proof.
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

/// Plays from one beginning.
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
        // A joint choice that returns would return forever if users went on in the same order.
        in_order &= settled || seen.insert(allocation.links());
        if !in_order {
            (1..order.len()).rev().for_each(|place| order.swap(place, below(rng, place + 1)));
        }
    }
    Play { links: allocation.links(), rounds, settled, score: allocation.score() }
}

/// Moves `user` to its best option; false where it stays, as it gains nothing.
fn respond(allocation: &mut Allocation, snapshot: &Snapshot, user: usize) -> bool {
    let Some(now) = allocation.lift(user) else { return false };
    let (best, gain) = best_move(allocation, snapshot, user, now);
    let moves = gain > TOLERANCE_MBPS;
    allocation.place(user, if moves { best } else { now });
    moves
}

/// The best option of `user`, who has been lifted from `now`, and what it gains there, Mb/s.
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

/// As [`largest_gain`], faster and from the books of the search itself.
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
