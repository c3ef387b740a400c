//! Networks as a batch of environments.

use std::ops::Range;
use std::sync::Arc;

use brasa_env::{BatchSlabs, EnvBatch, EnvError, EnvSpec, MaskSpec, Space, StateTag};
use ndarray::ArrayView2;

use crate::config::UaraConfig;
use crate::layout::Layout;
use crate::networks::{Networks, State};
use crate::observe::{Columns, write_own};
use crate::radio::{Link, Radio};
use crate::reward::RewardFunction;
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

/// The figures that an episode has as means over its steps.
pub(crate) const MEANS: [&str; 6] =
    ["qos_rate", "sum_rate_mbps", "jain", "handovers", "busiest_station_users", "rejected"];

/// Environments in which users of a cellular network simultaneously choose stations and channels.
///
/// # Rows
/// One per user.
///
/// # Actions
/// Action `(candidate * n_channels + channel) * n_levels + level`; candidates are the stations in their order, or those
/// of each user by rank. A column of the mask covers all actions of a candidate.
///
/// # Steps
/// All users switch to their chosen links. Rates and rewards are computed from the gains that the users observed; then
/// users move and links fade.
///
/// # Observations
/// See [`Part`](crate::Part). The bits of all users are the shared part: [`EnvSpec::shared_width`].
///
/// # Episodes
/// An episode ends after a number of steps (truncated) or, optionally, when all users are satisfied (terminated).
pub struct UaraBatch {
    networks: Networks,
    reward: RewardFunction,
    spec: EnvSpec,
}

impl UaraBatch {
    pub(crate) fn new(config: Arc<UaraConfig>, radio: Arc<Radio>, envs: Range<usize>) -> Self {
        let reward = RewardFunction::new(&config, &radio);
        let networks = Networks::new(config, radio, envs);
        let mask = MaskSpec { actions_per_flag: networks.radio.options_per_station() };
        let config = &networks.config;
        let success_truncates = config.end_when_satisfied && config.parity.bootstrap_success;
        let truncation_interval = if success_truncates { 1 } else { u64::from(config.episode_steps) };
        let spec = EnvSpec {
            truncation_interval,
            n_agents: networks.radio.n_users,
            shared_width: networks.columns.shared_width(),
            mask: (!networks.flags.is_empty()).then_some(mask),
            fixed_obs: true,
            info_names: INFO.map(str::to_owned).to_vec(),
            info_means: MEANS.map(str::to_owned).to_vec(),
            ..EnvSpec::new(networks.columns.space(), Space::Discrete(networks.n_actions()), networks.n_envs())
        };
        Self { spec, reward, networks }
    }

    /// The settings.
    pub fn config(&self) -> &UaraConfig {
        &self.networks.config
    }

    /// The layout of an observation.
    pub fn columns(&self) -> &Columns {
        &self.networks.columns
    }

    /// The positions in environment `env`.
    pub fn layout(&self, env: usize) -> &Layout {
        &self.networks.state.channels[env].layout
    }

    /// The links of environment `env`; `None` before the first decision.
    pub fn links(&self, env: usize) -> Option<&[Link]> {
        self.networks.links(env)
    }

    /// The link of `action` for `user` of environment `env`; `None` for an illegal action.
    pub fn link(&self, env: usize, user: usize, action: f32) -> Option<Link> {
        self.networks.link(env, user, action)
    }

    /// The action of `link` for `user` of environment `env`; `None` if its station is not a candidate.
    pub fn option(&self, env: usize, user: usize, link: Link) -> Option<usize> {
        self.networks.option(env, user, link)
    }

    /// The snapshot of environment `env` before the next decision.
    pub fn snapshot(&self, env: usize) -> Snapshot {
        self.networks.snapshot(env)
    }

    /// Figures of the last step of `env`.
    fn figures(&self, env: usize, handovers: u32, ended: bool, success: bool) -> [f64; INFO.len()] {
        let n = self.networks.radio.n_users as f64;
        let satisfied = self.networks.state.satisfied[self.networks.users(env)]
            .iter()
            .map(|satisfied| u32::from(*satisfied))
            .sum::<u32>();
        let (mut sum, mut squares) = (0.0f32, 0.0f32);
        for rate in &self.networks.rates {
            sum += rate;
            squares += rate * rate;
        }
        let qos = f64::from(satisfied) / n;
        let jain = if squares > 0.0 { f64::from(sum * sum / squares) / n } else { 0.0 };
        let [busiest, rejected] = self.networks.crowding(env);
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

    /// Writes the observations of `env`.
    fn observe(&self, env: usize, obs: &mut [f32], shared: &mut [f32], mask: &mut [f32]) {
        let users = self.networks.users(env);
        let width = self.networks.columns.width() - self.networks.columns.shared_width();
        if self.networks.columns.shared_width() > 0 {
            let bits = self.networks.state.satisfied[users.clone()].iter().map(|bit| f32::from(u8::from(*bit)));
            shared[users.clone()].iter_mut().zip(bits).for_each(|(slot, bit)| *slot = bit);
        }
        if width > 0 {
            let view = self.networks.view(env);
            let rows = obs[users.start * width..users.end * width].chunks_mut(width);
            rows.enumerate()
                .for_each(|(user, row)| write_own(&self.networks.columns, &self.networks.radio, &view, user, row));
        }
        if !self.networks.flags.is_empty() {
            let candidates = self.networks.per_candidate(env);
            mask[candidates.clone()].copy_from_slice(&self.networks.flags[candidates]);
        }
    }

    fn step_env(&mut self, env: usize, actions: &[f32], out: &mut BatchSlabs) -> Result<(), EnvError> {
        const LAYOUT: &str = "slabs are in standard layout";
        let handovers = self.networks.decide(env, actions)?;
        self.networks.receive(env);
        let rewards = &mut out.reward.as_slice_mut().expect(LAYOUT)[self.networks.users(env)];
        self.reward.pay(&self.networks.step(env), rewards);
        self.networks.state.steps[env] += 1;
        let success = self.networks.state.satisfied[self.networks.users(env)].iter().all(|satisfied| *satisfied);
        let terminated = success && self.networks.config.end_when_satisfied;
        let truncated = !terminated && self.networks.state.steps[env] >= self.networks.config.episode_steps;
        let ended = terminated || truncated;
        let bootstraps = self.networks.config.parity.bootstrap_success;
        let users = self.networks.users(env);
        out.terminated.as_slice_mut().expect(LAYOUT)[users.clone()].fill(terminated && !bootstraps);
        out.truncated.as_slice_mut().expect(LAYOUT)[users].fill(truncated || (terminated && bootstraps));
        let figures = self.figures(env, handovers, ended, success);
        out.info.row_mut(env).iter_mut().zip(figures).for_each(|(slot, figure)| *slot = figure);
        self.networks.advance(env);
        let (obs, shared) = (out.obs.as_slice_mut().expect(LAYOUT), out.shared.as_slice_mut().expect(LAYOUT));
        let mask = out.mask.as_slice_mut().expect(LAYOUT);
        let next_obs = out.next_obs.as_slice_mut().expect(LAYOUT);
        let next_shared = out.next_shared.as_slice_mut().expect(LAYOUT);
        let next_mask = out.next_mask.as_slice_mut().expect(LAYOUT);
        self.observe(env, next_obs, next_shared, next_mask);
        if ended {
            self.networks.begin(env, self.networks.state.episodes[env] + 1);
            self.observe(env, obs, shared, mask);
        } else {
            let (users, candidates) = (self.networks.users(env), self.networks.per_candidate(env));
            let width = self.networks.columns.width() - self.networks.columns.shared_width();
            let own = users.start * width..users.end * width;
            obs[own.clone()].copy_from_slice(&next_obs[own]);
            if self.networks.columns.shared_width() > 0 {
                shared[users.clone()].copy_from_slice(&next_shared[users]);
            }
            if !self.networks.flags.is_empty() {
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

/// Tag of saved states; the version changes with their content.
const TAG: StateTag = StateTag::new("uara", 1);

impl EnvBatch for UaraBatch {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.networks.state.seed = seed;
        for env in 0..self.n_envs() {
            self.networks.begin(env, 0);
            self.observe_into(env, out);
        }
        Ok(())
    }

    fn step(&mut self, actions: ArrayView2<f32>, out: &mut BatchSlabs) -> Result<(), EnvError> {
        assert_eq!(actions.dim(), (self.n_rows(), 1), "shape of the actions");
        let actions = actions.as_standard_layout();
        let actions = actions.as_slice().expect("it has just been made so");
        (0..self.n_envs()).try_for_each(|env| self.step_env(env, actions, out))
    }

    fn restart(&mut self, env: usize, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.networks.begin(env, self.networks.state.episodes[env] + 1);
        self.observe_into(env, out);
        Ok(())
    }

    fn save(&self) -> Vec<u8> {
        TAG.encode(self.n_envs(), &(&*self.networks.config, &self.networks.state))
    }

    fn load(&mut self, bytes: &[u8]) -> Result<(), EnvError> {
        let fail = |reason: String| EnvError::State { reason };
        let (config, state): (UaraConfig, State) = TAG.decode(self.n_envs(), bytes)?;
        if config != *self.networks.config {
            return Err(fail("it belongs to a network with other settings".into()));
        }
        let (held, expected) = (state.steps.len(), self.n_envs());
        if held != expected {
            return Err(fail(format!("it holds {held} environments, the batch {expected}")));
        }
        self.networks.restore(state);
        Ok(())
    }
}
