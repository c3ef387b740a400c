//! Rules for stations that choose users, and an upper bound.
//!
//! A network does not change within an episode, and stations interfere only where they chose the same user. A rule therefore chooses once
//! per episode, and a station has its highest rate with a user that no other station chose.

use std::cmp::Ordering;

use brasa_env::{BatchSlabs, Controller, EnvError, Measured, Outcome, named_rng};
use ndarray::ArrayViewMut2;
use rand::RngExt;

use super::batch::{BsAgentBatch, Served};

/// A rule that chooses a user for every station.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// A uniformly random user in every step.
    Random,
    /// The user that receives the strongest signal from the station, whether other stations serve it or not.
    Strongest,
    /// Pairs of a station and a user by decreasing rate without interference, each station and each user once. Users that a station
    /// cannot connect are left to the stations that remain.
    Greedy,
}

impl Rule {
    pub const ALL: [Self; 3] = [Self::Random, Self::Strongest, Self::Greedy];

    /// Name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Strongest => "strongest",
            Self::Greedy => "greedy",
        }
    }

    /// A controller for the first episodes of `batch`, which was reset with `seed`. `first_env` is the global index of its first environment.
    pub fn controller(self, batch: &BsAgentBatch, first_env: u64, seed: u64) -> Box<dyn Controller> {
        let n_envs = brasa_env::EnvBatch::n_envs(batch);
        let (n_stations, n_users) = (batch.config().n_stations(), batch.config().users);
        if self == Self::Random {
            let mut rngs: Vec<_> =
                (0..n_envs as u64).map(|env| named_rng(seed, "controller", first_env + env)).collect();
            return Box::new(move |_: &BatchSlabs, mut actions: ArrayViewMut2<f32>| -> Result<(), EnvError> {
                for (row, action) in actions.iter_mut().enumerate() {
                    *action = rngs[row / n_stations].random_range(0..n_users as u32) as f32;
                }
                Ok(())
            });
        }
        let choices = |env: usize| if self == Self::Strongest { strongest(batch, env) } else { greedy(batch, env) };
        let all: Vec<usize> = (0..n_envs).flat_map(choices).collect();
        Box::new(move |_: &BatchSlabs, mut actions: ArrayViewMut2<f32>| -> Result<(), EnvError> {
            actions.iter_mut().zip(&all).for_each(|(action, user)| *action = *user as f32);
            Ok(())
        })
    }
}

/// The user with the strongest signal of each station, the first one of equals.
fn strongest(batch: &BsAgentBatch, env: usize) -> Vec<usize> {
    let of = |station: usize| {
        let power = |user: usize| batch.received_w(env, station, user);
        let best = |best: usize, user: usize| if power(user) > power(best) { user } else { best };
        (0..batch.config().users).fold(0, best)
    };
    (0..batch.config().n_stations()).map(of).collect()
}

/// Pairs by decreasing rate, each station and each user once.
fn greedy(batch: &BsAgentBatch, env: usize) -> Vec<usize> {
    let (n_stations, n_users) = (batch.config().n_stations(), batch.config().users);
    let pairs = (0..n_stations).flat_map(|station| (0..n_users).map(move |user| (station, user)));
    let mut pairs: Vec<(f64, usize, usize)> =
        pairs.filter_map(|(station, user)| Some((batch.alone(env, station, user)?.rate_mbps, station, user))).collect();
    // Equal rates keep the order of stations and users.
    pairs.sort_by(|a, b| b.0.partial_cmp(&a.0).unwrap_or(Ordering::Equal));
    let (mut choices, mut is_served) = (vec![None; n_stations], vec![false; n_users]);
    for (_, station, user) in pairs {
        if choices[station].is_none() && !is_served[user] {
            (choices[station], is_served[user]) = (Some(user), true);
        }
    }
    // A station without a user disturbs no other one where there is a free user.
    let mut free = (0..n_users).filter(|user| !is_served[*user]).collect::<Vec<_>>().into_iter();
    choices.into_iter().map(|choice| choice.or_else(|| free.next()).unwrap_or(0)).collect()
}

/// An upper bound of each figure of the episode of environment `env`, and of its return: every station has the best user for this figure,
/// without interference. Success has no bound.
pub(super) fn bound(batch: &BsAgentBatch, env: usize) -> Outcome {
    let config = batch.config();
    let (n_stations, n_users) = (config.n_stations(), config.users);
    let mut can_be_served = vec![false; n_users];
    let (mut n_connected, mut sum_rate_mbps, mut sum_layers, mut sum_reward) = (0usize, 0.0, 0.0, 0.0);
    for station in 0..n_stations {
        let (mut rate_mbps, mut layers) = (0.0f64, 0.0f64);
        for (user, can_be_served) in can_be_served.iter_mut().enumerate() {
            if let Some(Served { rate_mbps: rate, layers: n }) = batch.alone(env, station, user) {
                (rate_mbps, layers, *can_be_served) = (rate_mbps.max(rate), layers.max(n), true);
            }
        }
        n_connected += usize::from(rate_mbps > 0.0);
        sum_rate_mbps += rate_mbps;
        sum_layers += layers;
        // Rewards are numbers of 32 bits.
        let unconnected = f64::from(config.unconnected_reward as f32);
        sum_reward += if rate_mbps > 0.0 { f64::from(rate_mbps as f32).max(unconnected) } else { unconnected };
    }
    let n_users = can_be_served.iter().filter(|can_be_served| **can_be_served).count();
    let reward = sum_reward / n_stations as f64;
    // An episode has at least one step, and success may end it early.
    let steps = if reward >= 0.0 { f64::from(config.episode_steps) } else { 1.0 };
    let figures = [
        n_connected as f64 / n_stations as f64,
        n_connected.min(n_users) as f64,
        sum_rate_mbps,
        sum_layers / n_stations as f64,
    ];
    Outcome {
        episode_return: Some(reward * steps),
        figures: figures.map(Measured::new).into_iter().chain([Measured::NONE]).collect(),
        ..Outcome::default()
    }
}
