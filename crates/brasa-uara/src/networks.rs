//! The networks of a batch as arrays: positions, links, and results.

use std::ops::Range;
use std::sync::Arc;

use brasa_env::{EnvError, EnvRng, InvalidField, episode_rng, named_rng};
use brasa_number::Single;
use rand::RngExt;
use serde::{Deserialize, Serialize};

use crate::channel::{Channel, fading_correlation};
use crate::config::{Candidates, Coverage, LayoutConfig, Part, Redraw, Start, UaraConfig};
use crate::layout::Layout;
use crate::observe::{Columns, View};
use crate::radio::{Link, Radio};
use crate::receiver::Receiver;
use crate::reward::Step;
use crate::snapshot::Snapshot;

/// The state for a resume, environment after environment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) seed: u64,
    pub(crate) episodes: Vec<u64>,
    pub(crate) steps: Vec<u32>,
    pub(crate) rngs: Vec<EnvRng>,
    pub(crate) channels: Vec<Channel>,
    /// Whether users have chosen yet.
    pub(crate) linked: Vec<bool>,
    /// `[n_envs, n_users]`.
    pub(crate) links: Vec<Link>,
    pub(crate) satisfied: Vec<bool>,
    /// `[n_envs, n_users, n_channels]`; empty if not observed.
    pub(crate) heard_mw: Vec<f32>,
    pub(crate) tags: Vec<f32>,
}

/// Independent networks of one config.
#[derive(Debug)]
pub(crate) struct Networks {
    pub(crate) config: Arc<UaraConfig>,
    pub(crate) radio: Arc<Radio>,
    pub(crate) columns: Columns,
    pub(crate) state: State,
    /// `[n_envs, n_users, n_candidates]`: legal candidates; empty if all are legal.
    pub(crate) flags: Vec<f32>,
    /// The rates of the last evaluated network, Mb/s.
    pub(crate) rates: Vec<f32>,
    first_env: usize,
    correlation: f64,
    /// Mean received power, derived from the state; `[n_envs, n_users, n_stations]`.
    average_mw: Vec<f64>,
    received_mw: Vec<f32>,
    reached: Vec<bool>,
    /// `[n_envs, n_users, n_candidates]`: the stations by rank; empty if all stations are candidates.
    ranks: Vec<u16>,
    /// `[n_envs, n_stations]`: number of users that request each station.
    loads: Vec<u16>,
    /// The link of every action, with a candidate as its station: a lookup is faster than division.
    options: Vec<Link>,
    receiver: Receiver<f32>,
    sinr: Vec<f32>,
}

impl Networks {
    pub(crate) fn new(config: Arc<UaraConfig>, radio: Arc<Radio>, envs: Range<usize>) -> Self {
        let (n, users, stations) = (envs.len(), radio.n_users, radio.n_stations);
        let per_channel = |part: Part| if config.observes(part) { n * users * radio.n_channels } else { 0 };
        let per_candidate = n * users * config.n_candidates();
        let is_ranked = matches!(config.candidates, Candidates::Strongest(_));
        let has_mask = config.candidates != Candidates::All && config.coverage != Coverage::Open;
        let n_actions = config.n_candidates() * radio.options_per_station();
        let state = State {
            seed: 0,
            episodes: vec![0; n],
            steps: vec![0; n],
            channels: vec![Channel::default(); n],
            rngs: vec![episode_rng(0, 0, 0); n],
            linked: vec![false; n],
            links: vec![Link::default(); n * users],
            satisfied: vec![false; n * users],
            heard_mw: vec![0.0; per_channel(Part::Interference)],
            tags: vec![0.0; per_channel(Part::Tags)],
        };
        Self {
            state,
            flags: vec![1.0; if has_mask { per_candidate } else { 0 }],
            rates: vec![0.0; users],
            first_env: envs.start,
            correlation: fading_correlation(&config.dynamics),
            average_mw: vec![0.0; n * users * stations],
            received_mw: vec![0.0; n * users * stations],
            reached: vec![false; n * users * stations],
            ranks: vec![0; if is_ranked { per_candidate } else { 0 }],
            loads: vec![0; n * stations],
            options: (0..n_actions).map(|option| radio.link(option)).collect(),
            receiver: Receiver::new(&radio),
            sinr: vec![0.0; users],
            columns: Columns::new(&config),
            radio,
            config,
        }
    }

    pub(crate) fn n_envs(&self) -> usize {
        self.state.steps.len()
    }

    /// Number of actions of a user.
    pub(crate) fn n_actions(&self) -> usize {
        self.options.len()
    }

    /// The links of `env`; `None` before the first decision.
    pub(crate) fn links(&self, env: usize) -> Option<&[Link]> {
        self.state.linked[env].then(|| &self.state.links[self.users(env)])
    }

    pub(crate) fn users(&self, env: usize) -> Range<usize> {
        env * self.radio.n_users..(env + 1) * self.radio.n_users
    }

    pub(crate) fn pairs(&self, env: usize) -> Range<usize> {
        let n = self.radio.n_users * self.radio.n_stations;
        env * n..(env + 1) * n
    }

    pub(crate) fn per_candidate(&self, env: usize) -> Range<usize> {
        let n = self.radio.n_users * self.columns.n_candidates();
        env * n..(env + 1) * n
    }

    pub(crate) fn per_channel(&self, env: usize) -> Range<usize> {
        let n = self.radio.n_users * self.radio.n_channels;
        env * n..(env + 1) * n
    }

    fn stations(&self, env: usize) -> Range<usize> {
        env * self.radio.n_stations..(env + 1) * self.radio.n_stations
    }

    /// Starts an episode of `env`.
    pub(crate) fn begin(&mut self, env: usize, episode: u64) {
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
        let users = self.users(env);
        self.state.satisfied[users.clone()].fill(false);
        if self.config.start == Start::Strongest {
            for user in users {
                self.state.links[user] = self.strongest(user, &mut rng);
            }
            self.receive(env);
            self.state.linked[env] = true;
        }
        self.count(env);
        self.state.rngs[env] = rng;
    }

    /// The link of `user` (index over all environments) to its strongest station, on a random channel.
    fn strongest(&self, user: usize, rng: &mut EnvRng) -> Link {
        let stations = self.radio.n_stations;
        let of_user = user * stations..(user + 1) * stations;
        let received = self.average_mw[of_user.clone()].iter().zip(&self.reached[of_user]).enumerate();
        let best = received.filter(|(_, (_, reached))| **reached).max_by(|a, b| a.1.0.total_cmp(b.1.0));
        Link {
            station: best.map_or(0, |(station, _)| station) as u16,
            channel: rng.random_range(0..self.radio.n_channels as u32) as u16,
            power: self.radio.full_power(),
        }
    }

    /// Recomputes the values that depend on positions.
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

    /// Advances `env` by one step of time.
    pub(crate) fn advance(&mut self, env: usize) {
        if self.config.dynamics.changes() {
            self.state.channels[env].advance(&self.config, self.correlation, &mut self.state.rngs[env]);
            self.locate(env);
        }
    }

    /// Continues from a saved state.
    pub(crate) fn restore(&mut self, state: State) {
        self.state = state;
        for env in 0..self.n_envs() {
            self.locate(env);
            self.count(env);
        }
    }

    /// Counts the users of each station of `env`.
    fn count(&mut self, env: usize) {
        let (stations, users) = (self.stations(env), self.users(env));
        let loads = &mut self.loads[stations];
        loads.fill(0);
        if self.state.linked[env] {
            self.state.links[users].iter().for_each(|link| loads[usize::from(link.station)] += 1);
        }
    }

    /// Evaluates the links of `env`: SINR, rates, satisfaction, interference.
    pub(crate) fn receive(&mut self, env: usize) {
        let (users, pairs) = (self.users(env), self.pairs(env));
        let links = &self.state.links[users.clone()];
        let received = &self.received_mw[pairs.clone()];
        self.receiver.sinr(received, &self.reached[pairs], links, &mut self.sinr);
        let threshold = self.radio.min_sinr as f32;
        for ((rate, satisfied), sinr) in self.rates.iter_mut().zip(&mut self.state.satisfied[users]).zip(&self.sinr) {
            *rate = self.radio.rate_mbps(Single(*sinr)).0;
            *satisfied = *sinr >= threshold;
        }
        let per_channel = self.per_channel(env);
        let Some(heard) = self.state.heard_mw.get_mut(per_channel) else { return };
        let channels = self.radio.n_channels;
        for (user, heard) in heard.chunks_mut(channels).enumerate() {
            let received = &received[user * self.radio.n_stations..(user + 1) * self.radio.n_stations];
            heard.fill(0.0);
            for (other, (link, rejected)) in links.iter().zip(self.receiver.rejected()).enumerate() {
                if other != user && !rejected {
                    let share = self.radio.power_levels[usize::from(link.power)] as f32;
                    heard[usize::from(link.channel)] += share * received[usize::from(link.station)];
                }
            }
        }
    }

    /// The link of `action` for the user whose candidates begin at `first`; `None` for an illegal action.
    fn link_of(&self, action: f32, first: usize) -> Option<Link> {
        // Invalid numbers become an action that does not exist.
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

    /// The link of `action` for `user` of environment `env`; `None` for an illegal action.
    pub(crate) fn link(&self, env: usize, user: usize, action: f32) -> Option<Link> {
        self.link_of(action, self.per_candidate(env).start + user * self.columns.n_candidates())
    }

    /// The action of `link` for `user` of environment `env`; `None` if its station is not a candidate.
    pub(crate) fn option(&self, env: usize, user: usize, link: Link) -> Option<usize> {
        let first = self.per_candidate(env).start + user * self.columns.n_candidates();
        let candidate = match self.ranks.get(first..first + self.columns.n_candidates()) {
            Some(ranks) => ranks.iter().position(|station| *station == link.station)? as u16,
            None => link.station,
        };
        Some(self.radio.option(Link { station: candidate, ..link }))
    }

    /// Applies the actions of the users of `env`; returns the number of handovers.
    pub(crate) fn decide(&mut self, env: usize, actions: &[f32]) -> Result<u32, EnvError> {
        let (users, first, stations) = (self.users(env), self.per_candidate(env).start, self.stations(env));
        let per_user = self.columns.n_candidates();
        let was_linked = self.state.linked[env];
        let mut handovers = 0;
        self.loads[stations.clone()].fill(0);
        for (place, (user, action)) in users.zip(actions).enumerate() {
            let Some(link) = self.link_of(*action, first + place * per_user) else {
                return Err(EnvError::Argument(InvalidField::new(
                    "actions",
                    "must be options that the mask allows",
                    format!("{action} for user {place} of environment {}", self.first_env + env),
                )));
            };
            let before = std::mem::replace(&mut self.state.links[user], link);
            handovers += u32::from(was_linked && before.station != link.station);
            self.loads[stations.start + usize::from(link.station)] += 1;
        }
        self.state.linked[env] = true;
        Ok(handovers)
    }

    /// The links and results of the last step of `env`.
    pub(crate) fn step(&self, env: usize) -> Step<'_> {
        let (users, pairs) = (self.users(env), self.pairs(env));
        Step {
            received_mw: &self.received_mw[pairs.clone()],
            reached: &self.reached[pairs],
            links: &self.state.links[users.clone()],
            satisfied: &self.state.satisfied[users],
            rates: &self.rates,
        }
    }

    /// Number of users of the busiest station of `env`, and of rejected users.
    pub(crate) fn crowding(&self, env: usize) -> [u32; 2] {
        let busiest = self.loads[self.stations(env)].iter().max().copied().unwrap_or(0);
        [busiest.into(), self.receiver.rejected().iter().map(|rejected| u32::from(*rejected)).sum()]
    }

    pub(crate) fn view(&self, env: usize) -> View<'_> {
        let (users, pairs, per_channel) = (self.users(env), self.pairs(env), self.per_channel(env));
        View {
            received_mw: &self.received_mw[pairs.clone()],
            reached: &self.reached[pairs],
            ranks: self.ranks.get(self.per_candidate(env)).unwrap_or_default(),
            links: self.links(env),
            loads: &self.loads[self.stations(env)],
            satisfied: &self.state.satisfied[users],
            heard_mw: self.state.heard_mw.get(per_channel.clone()).unwrap_or_default(),
            tags: self.state.tags.get(per_channel).unwrap_or_default(),
        }
    }

    /// The snapshot of environment `env` before the next decision.
    pub(crate) fn snapshot(&self, env: usize) -> Snapshot {
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
}

/// The stations by mean received power, those that reach the user before others; the first one if equal.
fn rank(average_mw: &[f64], reached: &[bool], ranks: &mut [u16]) {
    for place in 0..ranks.len() {
        let (found, next) = ranks.split_at_mut(place);
        let left = (0..average_mw.len()).filter(|station| !found.contains(&(*station as u16)));
        let key = |station: usize| (reached[station], average_mw[station]);
        let best = left.reduce(|a, b| if key(b) > key(a) { b } else { a });
        next[0] = best.expect("there are no more ranks than stations") as u16;
    }
}
