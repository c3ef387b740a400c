//! Rewards of users.

use crate::config::{PowerUnit, Reward, UaraConfig};
use crate::radio::{Link, Radio, dbm_to_mw};
use crate::receiver::Receiver;

/// Computes rewards; reuses its memory between steps.
pub(crate) struct RewardFunction {
    reward: Reward,
    team: bool,
    /// Cost of a step at each power level of each station; empty if power has no cost.
    power_costs: Vec<f32>,
    levels: usize,
    rates: Rates,
    /// For the network without one user.
    receiver: Receiver<f32>,
    sinr: Vec<f32>,
}

/// The links of users in a step, and the results.
pub(crate) struct Step<'a> {
    pub received_mw: &'a [f32],
    pub reached: &'a [bool],
    pub links: &'a [Link],
    pub satisfied: &'a [bool],
    /// Mb/s.
    pub rates: &'a [f32],
}

/// The rate as a function of SINR in 32 bits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rates {
    bandwidth_mhz: f32,
    max_bits_per_hz: f32,
}

impl Rates {
    pub(crate) fn new(radio: &Radio) -> Self {
        let most = radio.max_bits_per_hz.map_or(f32::INFINITY, |bits| bits as f32);
        Self { bandwidth_mhz: (radio.bandwidth_hz / 1e6) as f32, max_bits_per_hz: most }
    }

    /// Mb/s.
    pub(crate) fn mbps(self, sinr: f32) -> f32 {
        self.bandwidth_mhz * (1.0 + sinr).log2().min(self.max_bits_per_hz)
    }
}

impl RewardFunction {
    pub(crate) fn new(config: &UaraConfig, radio: &Radio) -> Self {
        Self {
            reward: config.reward,
            team: config.team_reward,
            power_costs: power_costs(config),
            levels: radio.power_levels.len(),
            rates: Rates::new(radio),
            receiver: Receiver::new(radio),
            sinr: vec![0.0; radio.n_users],
        }
    }

    /// Writes one reward per user.
    pub(crate) fn pay(&mut self, step: &Step<'_>, rewards: &mut [f32]) {
        match self.reward {
            Reward::Binary { satisfied, unsatisfied } => {
                let (yes, no) = (satisfied as f32, unsatisfied as f32);
                let paid = rewards.iter_mut().zip(step.satisfied);
                paid.for_each(|(reward, satisfied)| *reward = if *satisfied { yes } else { no });
            }
            Reward::Rate { per_mbps } => {
                let paid = rewards.iter_mut().zip(step.rates);
                paid.for_each(|(reward, rate)| *reward = per_mbps as f32 * rate);
            }
            Reward::Contribution { per_mbps } => {
                let all = step.rates.iter().sum::<f32>();
                for (user, reward) in rewards.iter_mut().enumerate() {
                    let Step { received_mw, reached, links, .. } = step;
                    self.receiver.sinr_without(Some(user), received_mw, reached, links, &mut self.sinr);
                    let without = self.sinr.iter().map(|sinr| self.rates.mbps(*sinr)).sum::<f32>();
                    *reward = per_mbps as f32 * (all - without);
                }
            }
            Reward::ProfitCost { profit_per_mbps, .. } => {
                for ((reward, rate), link) in rewards.iter_mut().zip(step.rates).zip(step.links) {
                    let cost = self.power_costs[usize::from(link.station) * self.levels + usize::from(link.power)];
                    *reward = profit_per_mbps as f32 * rate - cost;
                }
            }
        }
        if self.team {
            let mean = rewards.iter().sum::<f32>() / rewards.len() as f32;
            rewards.fill(mean);
        }
    }
}

/// Cost of a step at each power level of each station.
pub(crate) fn power_costs(config: &UaraConfig) -> Vec<f32> {
    let Reward::ProfitCost { cost_per_power, unit, cost_per_action, .. } = config.reward else { return Vec::new() };
    let costs = config.station_tiers().map(|tier| tier.transmit_dbm).flat_map(|dbm| {
        config.power_levels.iter().map(move |share| {
            let power = match unit {
                PowerUnit::W => dbm_to_mw(dbm) * share / 1000.0,
                PowerUnit::Mw => dbm_to_mw(dbm) * share,
                PowerUnit::Dbm => dbm + 10.0 * share.log10(),
            };
            (cost_per_power * power + cost_per_action) as f32
        })
    });
    costs.collect()
}
