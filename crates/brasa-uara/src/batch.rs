//! Networks as a batch of environments.

use std::ops::Range;
use std::sync::Arc;

use brasa_env::{BatchSlabs, EnvBatch, EnvError, EnvRng, Space, episode_rng, named_rng};
use ndarray::ArrayView2;
use rand::RngExt;
use serde::{Deserialize, Serialize};

use crate::channel::{Channel, fading_correlation};
use crate::config::{Candidates, Coverage, LayoutConfig, Part, PowerUnit, Redraw, Reward, Start, UaraConfig};
use crate::layout::Layout;
use crate::observe::{Columns, View, write_own};
use crate::radio::{Link, Radio, dbm_to_mw};
use crate::receiver::Receiver;
use crate::snapshot::Snapshot;

/// Names of the figures of a step, in the order of [`BatchSlabs::info`].
pub(crate) const INFO: [&str; 8] = [
    "qos_rate",
    "sum_rate_mbps",
    "jain",
    "handovers",
    "busiest_station_users",
    "rejected",
    "final_qos_rate",
    "success",
];

/// Environments in which users of a cellular network choose stations and channels, all at the same time.
///
/// # Rows
/// One per user.
///
/// # Actions
/// Option `(candidate * n_channels + channel) * n_levels + level`; candidates are the stations in their order, or those of
/// each user by rank. A column of the mask speaks for all options of a candidate.
///
/// # Steps
/// All users switch to what they chose; rates and rewards are those of the links as they are at that moment, the ones that
/// users have just seen. Then time passes, users walk and links fade.
///
/// # Observations
/// See [`Part`](crate::Part). The bits of all users are shared: [`EnvBatch::shared_width`].
///
/// # Episodes
/// End after a number of steps (truncated) or, where the config says so, once everybody is satisfied (terminated).
pub struct UaraBatch {
    config: Arc<UaraConfig>,
    radio: Arc<Radio>,
    columns: Columns,
    obs_space: Space,
    action_space: Space,
    info_names: Vec<String>,
    correlation: f64,
    first_env: usize,
    state: State,
    /// What follows from the state; `[n_envs, n_users, n_stations]`.
    average_mw: Vec<f64>,
    received_mw: Vec<f32>,
    reached: Vec<bool>,
    /// `[n_envs, n_users, n_candidates]`: what may be chosen; empty where everything may.
    flags: Vec<f32>,
    /// `[n_envs, n_users, n_candidates]`: the stations by rank; empty where candidates are all stations.
    ranks: Vec<u16>,
    /// The link of every option, with a candidate as its station: looking it up is faster than dividing.
    options: Vec<Link>,
    /// What a user pays per step at each level of each station; empty where power costs nothing.
    power_costs: Vec<f32>,
    receiver: Receiver<f32>,
    sinr: Vec<f32>,
    rates: Vec<f32>,
    loads: Vec<u16>,
}

/// What a resume needs, environment after environment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct State {
    seed: u64,
    episodes: Vec<u64>,
    steps: Vec<u32>,
    rngs: Vec<EnvRng>,
    channels: Vec<Channel>,
    /// Whether users have chosen yet.
    linked: Vec<bool>,
    /// `[n_envs, n_users]`.
    links: Vec<Link>,
    satisfied: Vec<bool>,
    /// `[n_envs, n_users, n_channels]`; empty where not observed.
    heard_mw: Vec<f32>,
    tags: Vec<f32>,
}

impl UaraBatch {
    pub(crate) fn new(config: Arc<UaraConfig>, radio: Arc<Radio>, envs: Range<usize>) -> Self {
        let (n, users, stations) = (envs.len(), radio.n_users, radio.n_stations);
        let columns = Columns::new(&config);
        let per_channel = |part: Part| if config.observes(part) { n * users * radio.n_channels } else { 0 };
        let per_candidate = n * users * config.n_candidates();
        let is_ranked = matches!(config.candidates, Candidates::Strongest(_));
        let has_mask = config.candidates != Candidates::All && config.coverage != Coverage::Open;
        let n_options = config.n_candidates() * radio.options_per_station();
        let rng = episode_rng(0, 0, 0);
        let state = State {
            seed: 0,
            episodes: vec![0; n],
            steps: vec![0; n],
            channels: vec![Channel::default(); n],
            rngs: vec![rng; n],
            linked: vec![false; n],
            links: vec![Link::default(); n * users],
            satisfied: vec![false; n * users],
            heard_mw: vec![0.0; per_channel(Part::Interference)],
            tags: vec![0.0; per_channel(Part::Tags)],
        };
        Self {
            obs_space: columns.space(),
            action_space: Space::Discrete(n_options),
            info_names: INFO.map(str::to_owned).to_vec(),
            correlation: fading_correlation(&config.dynamics),
            first_env: envs.start,
            state,
            average_mw: vec![0.0; n * users * stations],
            received_mw: vec![0.0; n * users * stations],
            reached: vec![false; n * users * stations],
            flags: vec![1.0; if has_mask { per_candidate } else { 0 }],
            ranks: vec![0; if is_ranked { per_candidate } else { 0 }],
            options: (0..n_options).map(|option| radio.link(option)).collect(),
            power_costs: power_costs(&config),
            receiver: Receiver::new(&radio),
            sinr: vec![0.0; users],
            rates: vec![0.0; users],
            loads: vec![0; n * stations],
            columns,
            radio,
            config,
        }
    }

    /// The settings.
    pub fn config(&self) -> &UaraConfig {
        &self.config
    }

    /// Which columns of an observation are what.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// Where everything stands in environment `env`.
    pub fn layout(&self, env: usize) -> &Layout {
        &self.state.channels[env].layout
    }

    /// What the users of environment `env` use; `None` before their first decision.
    pub fn links(&self, env: usize) -> Option<&[Link]> {
        self.state.linked[env].then(|| &self.state.links[self.users(env)])
    }

    /// Environment `env` as the users see it before their next decision.
    pub fn snapshot(&self, env: usize) -> Snapshot {
        let pairs = self.pairs(env);
        let mut allowed = vec![self.flags.is_empty() && self.ranks.is_empty(); pairs.len()];
        let candidates = self.per_candidate(env);
        for (at, place) in candidates.clone().enumerate() {
            let (user, candidate) = (at / self.columns.n_candidates(), at % self.columns.n_candidates());
            let station = self.ranks.get(place).map_or(candidate, |station| usize::from(*station));
            let flag = self.flags.get(place).is_none_or(|flag| *flag > 0.0);
            allowed[user * self.radio.n_stations + station] |= flag;
        }
        Snapshot {
            radio: self.radio.clone(),
            received_mw: self.received_mw[pairs.clone()].iter().map(|mw| f64::from(*mw)).collect(),
            reached: self.reached[pairs].to_vec(),
            allowed,
        }
    }

    fn users(&self, env: usize) -> Range<usize> {
        env * self.radio.n_users..(env + 1) * self.radio.n_users
    }

    fn pairs(&self, env: usize) -> Range<usize> {
        let n = self.radio.n_users * self.radio.n_stations;
        env * n..(env + 1) * n
    }

    fn per_candidate(&self, env: usize) -> Range<usize> {
        let n = self.radio.n_users * self.columns.n_candidates();
        env * n..(env + 1) * n
    }

    fn per_channel(&self, env: usize) -> Range<usize> {
        let n = self.radio.n_users * self.radio.n_channels;
        env * n..(env + 1) * n
    }

    fn begin(&mut self, env: usize, episode: u64) {
        let index = (self.first_env + env) as u64;
        let mut rng = episode_rng(self.state.seed, index, episode);
        let LayoutConfig { redraw, seed, .. } = self.config.layout;
        let dynamics = &self.config.dynamics;
        let is_first = self.state.channels[env].layout.users_m.is_empty();
        if is_first || redraw == Redraw::Episode || dynamics.changes() || dynamics.fading {
            let layout = match redraw {
                Redraw::Never => Layout::draw(&self.config, &mut named_rng(seed, "layout", 0)),
                Redraw::Environment => Layout::draw(&self.config, &mut named_rng(seed, "layout", 1 + index)),
                Redraw::Episode => Layout::draw(&self.config, &mut rng),
            };
            self.state.channels[env] = Channel::new(&self.config, layout, &mut rng);
            self.locate(env);
        }
        let per_channel = self.per_channel(env);
        if let Some(tags) = self.state.tags.get_mut(per_channel.clone()) {
            tags.iter_mut().for_each(|tag| *tag = rng.random());
        }
        if let Some(heard) = self.state.heard_mw.get_mut(per_channel) {
            heard.fill(0.0);
        }
        self.state.episodes[env] = episode;
        self.state.steps[env] = 0;
        self.state.linked[env] = false;
        self.loads[env * self.radio.n_stations..(env + 1) * self.radio.n_stations].fill(0);
        let users = self.users(env);
        self.state.satisfied[users.clone()].fill(false);
        if self.config.start == Start::Strongest {
            for user in users {
                self.state.links[user] = self.strongest(user, &mut rng);
            }
            self.receive(env);
            self.state.linked[env] = true;
        }
        self.state.rngs[env] = rng;
    }

    /// The link of `user`, counted over all environments, to the station that it receives best, on a random channel.
    fn strongest(&self, user: usize, rng: &mut EnvRng) -> Link {
        let stations = self.radio.n_stations;
        let of_user = user * stations..(user + 1) * stations;
        let received = self.average_mw[of_user.clone()].iter().zip(&self.reached[of_user]).enumerate();
        let best = received.filter(|(_, (_, reached))| **reached).max_by(|a, b| a.1.0.total_cmp(b.1.0));
        let levels = self.radio.power_levels.iter().enumerate();
        let full = levels.max_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(level, _)| level);
        Link {
            station: best.map_or(0, |(station, _)| station) as u16,
            channel: rng.random_range(0..self.radio.n_channels as u32) as u16,
            power: full as u16,
        }
    }

    /// Works out what follows from where everything stands.
    fn locate(&mut self, env: usize) {
        let pairs = self.pairs(env);
        let channel = &self.state.channels[env];
        let (average, reached) = (&mut self.average_mw[pairs.clone()], &mut self.reached[pairs.clone()]);
        channel.layout.links(&self.config, average, reached);
        channel.fade(average, &mut self.received_mw[pairs.clone()]);
        let stations = self.radio.n_stations;
        let (candidates, per_user) = (self.per_candidate(env), self.columns.n_candidates());
        let (average, reached) = (&self.average_mw[pairs.clone()], &self.reached[pairs]);
        if let Some(ranks) = self.ranks.get_mut(candidates.clone()) {
            let rows = ranks.chunks_mut(per_user).zip(average.chunks(stations)).zip(reached.chunks(stations));
            rows.for_each(|((ranks, average), reached)| rank(average, reached, ranks));
        }
        let ranks = self.ranks.get(candidates.clone());
        let Some(flags) = self.flags.get_mut(candidates) else { return };
        for (at, flag) in flags.iter_mut().enumerate() {
            let station = ranks.map_or(at % per_user, |ranks| usize::from(ranks[at]));
            *flag = f32::from(u8::from(reached[at / per_user * stations + station]));
        }
    }

    /// Lets the users of `env` use their links: ratios, rates, who is satisfied, what is heard.
    fn receive(&mut self, env: usize) {
        let (users, pairs) = (self.users(env), self.pairs(env));
        let links = &self.state.links[users.clone()];
        let received = &self.received_mw[pairs.clone()];
        self.receiver.sinr(received, &self.reached[pairs], links, &mut self.sinr);
        let (threshold, mbps) = (self.radio.min_sinr as f32, (self.radio.bandwidth_hz / 1e6) as f32);
        let most = self.radio.max_bits_per_hz.map_or(f32::INFINITY, |bits| bits as f32);
        for ((rate, satisfied), sinr) in self.rates.iter_mut().zip(&mut self.state.satisfied[users]).zip(&self.sinr) {
            *rate = mbps * (1.0 + sinr).log2().min(most);
            *satisfied = *sinr >= threshold;
        }
        let rejected = self.receiver.rejected();
        let loads = &mut self.loads[env * self.radio.n_stations..(env + 1) * self.radio.n_stations];
        loads.fill(0);
        links.iter().for_each(|link| loads[usize::from(link.station)] += 1);
        let per_channel = self.per_channel(env);
        let Some(heard) = self.state.heard_mw.get_mut(per_channel) else { return };
        let channels = self.radio.n_channels;
        for (user, heard) in heard.chunks_mut(channels).enumerate() {
            let received = &received[user * self.radio.n_stations..(user + 1) * self.radio.n_stations];
            heard.fill(0.0);
            for (other, (link, rejected)) in links.iter().zip(rejected).enumerate() {
                if other != user && !rejected {
                    let share = self.radio.power_levels[usize::from(link.power)] as f32;
                    heard[usize::from(link.channel)] += share * received[usize::from(link.station)];
                }
            }
        }
    }

    /// Pays the users of `env` for what they have just received.
    fn pay(&self, env: usize, rewards: &mut [f32]) {
        let users = self.users(env);
        match self.config.reward {
            Reward::Binary { satisfied, unsatisfied } => {
                let (yes, no) = (satisfied as f32, unsatisfied as f32);
                let paid = rewards.iter_mut().zip(&self.state.satisfied[users]);
                paid.for_each(|(reward, satisfied)| *reward = if *satisfied { yes } else { no });
            }
            Reward::Rate { per_mbps } => {
                let paid = rewards.iter_mut().zip(&self.rates);
                paid.for_each(|(reward, rate)| *reward = per_mbps as f32 * rate);
            }
            Reward::ProfitCost { profit_per_mbps, .. } => {
                let levels = self.radio.power_levels.len();
                let paid = rewards.iter_mut().zip(&self.rates).zip(&self.state.links[users]);
                for ((reward, rate), link) in paid {
                    let cost = self.power_costs[usize::from(link.station) * levels + usize::from(link.power)];
                    *reward = profit_per_mbps as f32 * rate - cost;
                }
            }
        }
        if self.config.team_reward {
            let mean = rewards.iter().sum::<f32>() / rewards.len() as f32;
            rewards.fill(mean);
        }
    }

    /// The link that `action` means for the user whose candidates begin at `first`; `None` if it may not choose that.
    fn link_of(&self, action: f32, first: usize) -> Option<Link> {
        // What is no number of an option becomes one that does not exist.
        let option = action as u32;
        let link = *self.options.get(option as usize).filter(|_| option as f32 == action)?;
        let candidate = first + usize::from(link.station);
        if self.flags.get(candidate) == Some(&0.0) {
            return None;
        }
        Some(match self.ranks.get(candidate) {
            Some(station) => Link { station: *station, ..link },
            None => link,
        })
    }

    /// The link that `action` means for `user` of environment `env`; `None` if it may not choose that.
    pub fn link(&self, env: usize, user: usize, action: f32) -> Option<Link> {
        self.link_of(action, self.per_candidate(env).start + user * self.columns.n_candidates())
    }

    /// The option by which `user` of environment `env` chooses `link`; `None` if its station is no candidate.
    pub fn option(&self, env: usize, user: usize, link: Link) -> Option<usize> {
        let first = self.per_candidate(env).start + user * self.columns.n_candidates();
        let candidate = match self.ranks.get(first..first + self.columns.n_candidates()) {
            Some(ranks) => ranks.iter().position(|station| *station == link.station)? as u16,
            None => link.station,
        };
        Some(self.radio.option(Link { station: candidate, ..link }))
    }

    /// Takes the decisions of the users of `env`; returns how many changed their station.
    fn decide(&mut self, env: usize, actions: ArrayView2<f32>) -> Result<u32, EnvError> {
        let (users, first) = (self.users(env), self.per_candidate(env).start);
        let per_user = self.columns.n_candidates();
        let was_linked = self.state.linked[env];
        let mut handovers = 0;
        for (place, user) in users.enumerate() {
            let action = actions[[user, 0]];
            let Some(link) = self.link_of(action, first + place * per_user) else {
                return Err(EnvError::Argument {
                    field: "actions",
                    rule: "must be options that the mask allows",
                    value: format!("{action} for user {place} of environment {}", self.first_env + env),
                });
            };
            let before = std::mem::replace(&mut self.state.links[user], link);
            handovers += u32::from(was_linked && before.station != link.station);
        }
        self.state.linked[env] = true;
        Ok(handovers)
    }

    /// Figures of the step that `env` has just taken.
    fn figures(&self, env: usize, handovers: u32, ended: bool, success: bool) -> [f64; INFO.len()] {
        let n = self.radio.n_users as f64;
        let satisfied =
            self.state.satisfied[self.users(env)].iter().map(|satisfied| u32::from(*satisfied)).sum::<u32>();
        let (mut sum, mut squares) = (0.0f32, 0.0f32);
        for rate in &self.rates {
            sum += rate;
            squares += rate * rate;
        }
        let qos = f64::from(satisfied) / n;
        let jain = if squares > 0.0 { f64::from(sum * sum / squares) / n } else { 0.0 };
        let rejected = self.receiver.rejected().iter().map(|rejected| u32::from(*rejected)).sum::<u32>();
        let loads = &self.loads[env * self.radio.n_stations..(env + 1) * self.radio.n_stations];
        let busiest = loads.iter().max().copied().unwrap_or(0);
        [
            qos,
            f64::from(sum),
            jain,
            f64::from(handovers),
            f64::from(busiest),
            f64::from(rejected),
            if ended { qos } else { 0.0 },
            f64::from(u8::from(success)),
        ]
    }

    fn view(&self, env: usize) -> View<'_> {
        let (users, pairs, per_channel) = (self.users(env), self.pairs(env), self.per_channel(env));
        View {
            received_mw: &self.received_mw[pairs.clone()],
            reached: &self.reached[pairs],
            ranks: self.ranks.get(self.per_candidate(env)).unwrap_or_default(),
            links: self.links(env),
            loads: &self.loads[env * self.radio.n_stations..(env + 1) * self.radio.n_stations],
            satisfied: &self.state.satisfied[users],
            heard_mw: self.state.heard_mw.get(per_channel.clone()).unwrap_or_default(),
            tags: self.state.tags.get(per_channel).unwrap_or_default(),
        }
    }

    /// Writes what the users of `env` see.
    fn observe(&self, env: usize, obs: &mut [f32], shared: &mut [f32], mask: &mut [f32]) {
        let users = self.users(env);
        let width = self.columns.width() - self.columns.shared_width();
        if self.columns.shared_width() > 0 {
            let bits = self.state.satisfied[users.clone()].iter().map(|bit| f32::from(u8::from(*bit)));
            shared[users.clone()].iter_mut().zip(bits).for_each(|(slot, bit)| *slot = bit);
        }
        if width > 0 {
            let view = self.view(env);
            let rows = obs[users.start * width..users.end * width].chunks_mut(width);
            rows.enumerate().for_each(|(user, row)| write_own(&self.columns, &self.radio, &view, user, row));
        }
        if !self.flags.is_empty() {
            let candidates = self.per_candidate(env);
            mask[candidates.clone()].copy_from_slice(&self.flags[candidates]);
        }
    }

    fn step_env(&mut self, env: usize, actions: ArrayView2<f32>, out: &mut BatchSlabs) -> Result<(), EnvError> {
        const LAYOUT: &str = "slabs are in standard layout";
        let handovers = self.decide(env, actions)?;
        self.receive(env);
        self.pay(env, &mut out.reward.as_slice_mut().expect(LAYOUT)[self.users(env)]);
        self.state.steps[env] += 1;
        let success = self.state.satisfied[self.users(env)].iter().all(|satisfied| *satisfied);
        let terminated = success && self.config.end_when_satisfied;
        let truncated = !terminated && self.state.steps[env] >= self.config.episode_steps;
        let ended = terminated || truncated;
        let bootstraps = self.config.parity.bootstrap_success;
        let users = self.users(env);
        out.terminated.as_slice_mut().expect(LAYOUT)[users.clone()].fill(terminated && !bootstraps);
        out.truncated.as_slice_mut().expect(LAYOUT)[users].fill(truncated || (terminated && bootstraps));
        let figures = self.figures(env, handovers, ended, success);
        out.info.row_mut(env).iter_mut().zip(figures).for_each(|(slot, figure)| *slot = figure);
        if self.config.dynamics.changes() {
            self.state.channels[env].advance(&self.config, self.correlation, &mut self.state.rngs[env]);
            self.locate(env);
        }
        let (obs, shared) = (out.obs.as_slice_mut().expect(LAYOUT), out.shared.as_slice_mut().expect(LAYOUT));
        let mask = out.mask.as_slice_mut().expect(LAYOUT);
        let next_obs = out.next_obs.as_slice_mut().expect(LAYOUT);
        let next_shared = out.next_shared.as_slice_mut().expect(LAYOUT);
        let next_mask = out.next_mask.as_slice_mut().expect(LAYOUT);
        self.observe(env, next_obs, next_shared, next_mask);
        if ended {
            self.begin(env, self.state.episodes[env] + 1);
            self.observe(env, obs, shared, mask);
        } else {
            let (users, candidates) = (self.users(env), self.per_candidate(env));
            let width = self.columns.width() - self.columns.shared_width();
            let own = users.start * width..users.end * width;
            obs[own.clone()].copy_from_slice(&next_obs[own]);
            if self.columns.shared_width() > 0 {
                shared[users.clone()].copy_from_slice(&next_shared[users]);
            }
            if !self.flags.is_empty() {
                mask[candidates.clone()].copy_from_slice(&next_mask[candidates]);
            }
        }
        Ok(())
    }

    fn observe_into(&self, env: usize, out: &mut BatchSlabs) {
        const LAYOUT: &str = "slabs are in standard layout";
        let (obs, shared) = (out.obs.as_slice_mut().expect(LAYOUT), out.shared.as_slice_mut().expect(LAYOUT));
        self.observe(env, obs, shared, out.mask.as_slice_mut().expect(LAYOUT));
    }
}

/// The stations that a user receives best on average, those that reach it before others; the first of equals.
fn rank(average_mw: &[f64], reached: &[bool], ranks: &mut [u16]) {
    for place in 0..ranks.len() {
        let (found, next) = ranks.split_at_mut(place);
        let left = (0..average_mw.len()).filter(|station| !found.contains(&(*station as u16)));
        let key = |station: usize| (reached[station], average_mw[station]);
        let best = left.reduce(|a, b| if key(b) > key(a) { b } else { a });
        next[0] = best.expect("there are no more ranks than stations") as u16;
    }
}

/// What a step costs at each level of each station.
fn power_costs(config: &UaraConfig) -> Vec<f32> {
    let Reward::ProfitCost { cost_per_power, unit, cost_per_action, .. } = config.reward else { return Vec::new() };
    let tiers = config.tiers().into_iter().flat_map(|tier| std::iter::repeat_n(tier.transmit_dbm, tier.count));
    let costs = tiers.flat_map(|dbm| {
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

impl EnvBatch for UaraBatch {
    fn n_envs(&self) -> usize {
        self.state.steps.len()
    }

    fn n_agents(&self) -> usize {
        self.radio.n_users
    }

    fn obs_space(&self) -> &Space {
        &self.obs_space
    }

    fn action_space(&self) -> &Space {
        &self.action_space
    }

    fn shared_width(&self) -> usize {
        self.columns.shared_width()
    }

    fn has_mask(&self) -> bool {
        !self.flags.is_empty()
    }

    fn options_per_flag(&self) -> usize {
        self.radio.options_per_station()
    }

    fn info_names(&self) -> &[String] {
        &self.info_names
    }

    fn reset(&mut self, seed: u64, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.state.seed = seed;
        for env in 0..self.n_envs() {
            self.begin(env, 0);
            self.observe_into(env, out);
        }
        Ok(())
    }

    fn step(&mut self, actions: ArrayView2<f32>, out: &mut BatchSlabs) -> Result<(), EnvError> {
        assert_eq!(actions.dim(), (self.n_rows(), 1), "shape of the actions");
        (0..self.n_envs()).try_for_each(|env| self.step_env(env, actions, out))
    }

    fn restart(&mut self, env: usize, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.begin(env, self.state.episodes[env] + 1);
        self.observe_into(env, out);
        Ok(())
    }

    fn save(&self) -> Vec<u8> {
        postcard::to_stdvec(&(&*self.config, &self.state)).expect("plain values always serialize")
    }

    fn load(&mut self, bytes: &[u8]) -> Result<(), EnvError> {
        let fail = |reason: String| EnvError::State { reason };
        let (config, state): (UaraConfig, State) =
            postcard::from_bytes(bytes).map_err(|error| fail(error.to_string()))?;
        if config != *self.config {
            return Err(fail("it belongs to a network with other settings".into()));
        }
        let (held, expected) = (state.steps.len(), self.n_envs());
        if held != expected {
            return Err(fail(format!("it holds {held} environments, the batch {expected}")));
        }
        self.state = state;
        for env in 0..expected {
            self.locate(env);
            let loads = &mut self.loads[env * self.radio.n_stations..(env + 1) * self.radio.n_stations];
            loads.fill(0);
            if self.state.linked[env] {
                let users = env * self.radio.n_users..(env + 1) * self.radio.n_users;
                self.state.links[users].iter().for_each(|link| loads[usize::from(link.station)] += 1);
            }
        }
        Ok(())
    }
}
