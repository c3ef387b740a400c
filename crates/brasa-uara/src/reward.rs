//! Rewards of users.

use std::sync::Arc;

use brasa_number::{Number, Single};

use crate::config::{PowerUnit, Reward, UaraConfig};
use crate::radio::{Link, Radio, dbm_to_mw};
use crate::receiver::Receiver;

/// Computes rewards; reuses its memory between steps.
#[derive(Debug)]
pub(crate) struct RewardFunction {
    reward: Reward,
    team: bool,
    /// Cost of a step at each power level of each station; empty if power has no cost.
    power_costs: Vec<f32>,
    radio: Arc<Radio>,
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

impl Reward {
    /// The reward of a user from what its link gave. `contribution` and `cost` are called where the reward has them.
    pub(crate) fn of_user<N: Number>(
        self,
        satisfied: N::Mask,
        rate: N,
        contribution: impl FnOnce() -> N,
        cost: impl FnOnce() -> N,
    ) -> N {
        match self {
            Self::Binary { satisfied: yes, unsatisfied: no } => {
                N::select(satisfied, rate.constant(yes), rate.constant(no))
            }
            Self::Rate { per_mbps } => rate * per_mbps,
            Self::Contribution { per_mbps } => contribution() * per_mbps,
            Self::ProfitCost { profit_per_mbps, .. } => rate * profit_per_mbps - cost(),
        }
    }
}

impl RewardFunction {
    pub(crate) fn new(config: &UaraConfig, radio: &Arc<Radio>) -> Self {
        Self {
            reward: config.reward,
            team: config.team_reward,
            power_costs: power_costs(config),
            receiver: Receiver::new(radio),
            sinr: vec![0.0; radio.n_users],
            radio: radio.clone(),
        }
    }

    /// Writes one reward per user.
    pub(crate) fn pay(&mut self, step: &Step<'_>, rewards: &mut [f32]) {
        let Step { received_mw, reached, links, satisfied, rates } = step;
        let (receiver, sinr, radio) = (&mut self.receiver, &mut self.sinr, &*self.radio);
        let all = rates.iter().sum::<f32>();
        for (user, reward) in rewards.iter_mut().enumerate() {
            let contribution = || {
                receiver.sinr_without(Some(user), received_mw, reached, links, sinr);
                Single(all - sinr.iter().map(|sinr| radio.rate_mbps(Single(*sinr)).0).sum::<f32>())
            };
            let cost = || {
                let Link { station, power, .. } = links[user];
                Single(self.power_costs[usize::from(station) * radio.power_levels.len() + usize::from(power)])
            };
            *reward = self.reward.of_user(satisfied[user], Single(rates[user]), contribution, cost).0;
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
