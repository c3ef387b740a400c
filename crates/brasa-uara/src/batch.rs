//! Networks as a batch of environments.

use std::ops::Range;
use std::sync::Arc;

use brasa_env::{Autoreset, Ending, EnvError, EnvSpec, MaskSpec, Simulation, Space, StateTag, StepOut, View};

use crate::config::UaraConfig;
use crate::layout::Layout;
use crate::networks::{Networks, State};
use crate::observe::{Columns, write_own};
use crate::radio::{Link, Radio};
use crate::reward::RewardFunction;
use crate::snapshot::Snapshot;

/// Names of the figures of a step, in the order of [`StepOut::info`].
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

/// Networks as a batch of environments; [`UaraSimulation`] describes them.
///
/// ```
/// use brasa_env::{BatchSlabs, EnvBatch};
/// use brasa_uara::{Uara, UaraBatch, UaraConfig};
/// use ndarray::Array2;
///
/// let mut envs: UaraBatch = Uara::new(UaraConfig::cly2020())?.batch(0..2);
/// let mut slabs = BatchSlabs::new(envs.spec());
/// envs.reset(7, &mut slabs)?;
/// // One row per user: 30 users in each of two environments.
/// envs.step(Array2::zeros((60, 1)).view(), &mut slabs)?;
/// assert_eq!(slabs.reward.len(), 60);
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
pub type UaraBatch = Autoreset<UaraSimulation>;

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
///
/// ```
/// use brasa_env::{BatchSlabs, EnvBatch};
/// use brasa_uara::{Uara, UaraConfig};
///
/// let mut envs = Uara::new(UaraConfig::cly2020())?.batch(0..1);
/// let mut slabs = BatchSlabs::new(envs.spec());
/// envs.reset(7, &mut slabs)?;
/// // The batch gives the methods of the simulation.
/// assert_eq!(envs.layout(0).users_m.len(), envs.config().users);
/// assert!(envs.links(0).is_none());
/// let link = envs.link(0, 3, 41.0).expect("all actions are legal");
/// assert_eq!((link.station, link.channel), (2, 1));
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug)]
pub struct UaraSimulation {
    networks: Networks,
    reward: RewardFunction,
    spec: EnvSpec,
}

impl UaraSimulation {
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
    fn observe(&self, env: usize, View { obs, shared, mask }: View<'_>) {
        let width = self.networks.columns.width() - self.networks.columns.shared_width();
        let satisfied = &self.networks.state.satisfied[self.networks.users(env)];
        shared.iter_mut().zip(satisfied).for_each(|(slot, bit)| *slot = f32::from(u8::from(*bit)));
        if width > 0 {
            let view = self.networks.view(env);
            obs.chunks_mut(width)
                .enumerate()
                .for_each(|(user, row)| write_own(&self.networks.columns, &self.networks.radio, &view, user, row));
        }
        if !self.networks.flags.is_empty() {
            mask.copy_from_slice(&self.networks.flags[self.networks.per_candidate(env)]);
        }
    }
}

/// Tag of saved states; the version changes with their content.
const TAG: StateTag = StateTag::new("uara", 1);

impl Simulation for UaraSimulation {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn set_seed(&mut self, seed: u64) {
        self.networks.state.seed = seed;
    }

    fn episode(&self, env: usize) -> u64 {
        self.networks.state.episodes[env]
    }

    fn start(&mut self, env: usize, episode: u64, view: View<'_>) -> Result<(), EnvError> {
        self.networks.begin(env, episode);
        self.observe(env, view);
        Ok(())
    }

    fn step(&mut self, env: usize, actions: &[f32], next: View<'_>, out: StepOut<'_>) -> Result<Ending, EnvError> {
        let handovers = self.networks.decide(env, actions)?;
        self.networks.receive(env);
        self.reward.pay(&self.networks.step(env), out.reward);
        self.networks.state.steps[env] += 1;
        let config = &self.networks.config;
        let success = self.networks.state.satisfied[self.networks.users(env)].iter().all(|satisfied| *satisfied);
        let ends = success && config.end_when_satisfied;
        let is_last = self.networks.state.steps[env] >= config.episode_steps;
        let terminated = ends && !config.parity.bootstrap_success;
        out.info.copy_from_slice(&self.figures(env, handovers, ends || is_last, success));
        self.networks.advance(env);
        self.observe(env, next);
        Ok(Ending::of(terminated, ends || is_last))
    }

    fn save(&self) -> Vec<u8> {
        TAG.encode(self.spec.n_envs, &(&*self.networks.config, &self.networks.state))
    }

    fn load(&mut self, bytes: &[u8]) -> Result<(), EnvError> {
        let fail = |reason: String| EnvError::State { reason };
        let (config, state): (UaraConfig, State) = TAG.decode(self.spec.n_envs, bytes)?;
        if config != *self.networks.config {
            return Err(fail("it belongs to a network with other settings".into()));
        }
        let (held, expected) = (state.steps.len(), self.spec.n_envs);
        if held != expected {
            return Err(fail(format!("it holds {held} environments, the batch {expected}")));
        }
        self.networks.restore(state);
        Ok(())
    }
}
