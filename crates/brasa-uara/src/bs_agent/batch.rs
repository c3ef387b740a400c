//! A batch of networks in which stations choose users.

use std::ops::Range;
use std::sync::Arc;

use brasa_env::{
    Autoreset, Ending, EnvError, EnvSpec, InvalidField, Simulation, Space, StateTag, StepOut, View, episode_rng,
    named_rng,
};
use serde::{Deserialize, Serialize};

use super::cells::{Cells, noise_w};
use super::config::BsAgentConfig;
use crate::config::Redraw;
use crate::error::UaraError;
use crate::radio::bits_per_hz;

/// Names of the figures of a step, in the order of [`StepOut::info`].
const INFO: [&str; 5] = ["connected_share", "connected_users", "sum_rate_mbps", "mean_layers", "success"];

/// Networks in which stations choose users as a batch of environments; [`BsAgentSimulation`] describes them.
///
/// ```
/// use brasa_env::EnvBatch;
/// use brasa_uara::{BsAgentBatch, BsAgentConfig, BsAgentSimulation};
///
/// let config = BsAgentConfig { users: 20, small_cells: 3, ..BsAgentConfig::default() };
/// let envs: BsAgentBatch = BsAgentSimulation::batch(config, 0..2)?;
/// // One row per station; an action is a user.
/// assert_eq!((envs.spec().n_agents, envs.spec().action.n_actions()), (4, 20));
/// # Ok::<(), brasa_uara::UaraError>(())
/// ```
pub type BsAgentBatch = Autoreset<BsAgentSimulation>;

/// Environments in which base stations simultaneously choose users: the historical preset `bs-agent-2025`.
///
/// # Rows
/// One per station, the macro cell first.
///
/// # Actions
/// The user that a station serves in this step.
///
/// # Observations
/// One number per user, the same for all stations: 1 if the user was connected in the latest step. All of them are shared, so
/// `obs` of the slabs has no columns.
///
/// # Steps
/// The rate of a station's user is `B log2(1 + S / (I + N))`, where `I` is the power of the other stations that chose
/// the same user. The user is connected if the rate is at least its base layer. The reward is the rate in Mb/s, or the
/// reward without connection.
///
/// # Episodes
/// An episode ends after a number of steps (truncated), or at success (terminated), which is impossible with the
/// published rule.
///
/// # Figures
/// Fraction of stations that connect their user, number of connected users, sum of the rates of
/// connections in Mb/s, layers of video per station, and success.
///
/// ```
/// use brasa_env::{BatchSlabs, EnvBatch};
/// use brasa_uara::{BsAgentConfig, BsAgentSimulation};
/// use ndarray::array;
///
/// let config = BsAgentConfig { users: 20, small_cells: 3, ..BsAgentConfig::default() };
/// let mut envs = BsAgentSimulation::batch(config, 0..1)?;
/// let mut slabs = BatchSlabs::new(envs.spec());
/// envs.reset(7, &mut slabs)?;
/// // The four stations serve users 0, 1, 2 and 3.
/// envs.step(array![[0.0], [1.0], [2.0], [3.0]].view(), &mut slabs)?;
/// assert!(slabs.reward.iter().all(|rate_mbps| *rate_mbps >= 0.0));
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug)]
pub struct BsAgentSimulation {
    config: BsAgentConfig,
    spec: EnvSpec,
    noise_w: [f64; 2],
    bandwidth_mhz: [f64; 2],
    first_env: usize,
    state: State,
    /// Derived from the state; the same for all environments if it is never redrawn.
    cells: Vec<Arc<Cells>>,
    /// Scratch: the choice of each station.
    choices: Vec<usize>,
}

/// The state for a resume, environment after environment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct State {
    seed: u64,
    episodes: Vec<u64>,
    steps: Vec<u32>,
    /// `[n_envs, users]`.
    connected: Vec<bool>,
}

/// What a station gives to a user that it connects.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Served {
    pub rate_mbps: f64,
    /// Layers of video, with the base layer.
    pub layers: f64,
}

/// Power that `user` receives from `station`, W.
fn received_w(cells: &Cells, n_users: usize, station: usize, user: usize) -> f64 {
    f64::from(cells.received_w[station * n_users + user])
}

impl BsAgentSimulation {
    /// Environments with the global indices `envs`.
    ///
    /// # Errors
    /// [`UaraError::Field`] for the first invalid field.
    pub fn batch(config: BsAgentConfig, envs: Range<usize>) -> Result<BsAgentBatch, UaraError> {
        config.validate()?;
        let (n, users, channels) = (envs.len(), config.users, config.channels as f64);
        let obs = Space::uniform_box(0.0, 1.0, (0..users).map(|user| format!("user_{user}_connected")));
        let spec = EnvSpec {
            n_agents: config.n_stations(),
            shared_width: users,
            truncation_interval: u64::from(config.episode_steps),
            fixed_obs: true,
            info_names: INFO.map(str::to_owned).to_vec(),
            info_means: INFO[..INFO.len() - 1].iter().map(|name| (*name).to_owned()).collect(),
            ..EnvSpec::new(obs, Space::Discrete(users), n)
        };
        let mut batch = Self {
            spec,
            noise_w: noise_w(&config),
            bandwidth_mhz: [config.macro_bandwidth_hz, config.small_bandwidth_hz].map(|hz| hz / channels / 1e6),
            first_env: envs.start,
            state: State { seed: 0, episodes: vec![0; n], steps: vec![0; n], connected: vec![false; n * users] },
            cells: Vec::new(),
            choices: vec![0; config.n_stations()],
            config,
        };
        batch.cells = match batch.config.redraw {
            Redraw::Never => {
                let shared = Arc::new(batch.draw(0));
                vec![shared; n]
            }
            Redraw::Environment => (0..n).map(|env| Arc::new(batch.draw(env))).collect(),
            Redraw::Episode => vec![Arc::default(); n],
        };
        Ok(Autoreset::new(batch))
    }

    /// The settings.
    pub fn config(&self) -> &BsAgentConfig {
        &self.config
    }

    /// The network of environment `env` in its current episode.
    fn draw(&self, env: usize) -> Cells {
        let index = (self.first_env + env) as u64;
        let mut rng = match self.config.redraw {
            Redraw::Never => named_rng(self.config.seed, "bs-agent", 0),
            Redraw::Environment => named_rng(self.config.seed, "bs-agent", 1 + index),
            Redraw::Episode => episode_rng(self.state.seed, index, self.state.episodes[env]),
        };
        Cells::draw(&self.config, &mut rng)
    }

    fn users(&self, env: usize) -> Range<usize> {
        env * self.config.users..(env + 1) * self.config.users
    }

    fn observe(&self, env: usize, view: View<'_>) {
        let slots = view.shared.iter_mut().zip(&self.state.connected[self.users(env)]);
        slots.for_each(|(slot, connected)| *slot = f32::from(u8::from(*connected)));
    }

    /// Reads the choices of the stations of `env`.
    fn choose(&mut self, env: usize, actions: &[f32]) -> Result<(), EnvError> {
        let users = self.config.users;
        for (station, (choice, &action)) in self.choices.iter_mut().zip(actions).enumerate() {
            *choice = action as usize;
            if *choice as f32 != action || *choice >= users {
                return Err(EnvError::Argument(InvalidField::new(
                    "actions",
                    "must be users",
                    format!("{action} for station {station} of environment {}", self.first_env + env),
                )));
            }
        }
        Ok(())
    }

    /// Power that `user` receives from `station` in the current episode of `env`, W.
    pub(super) fn received_w(&self, env: usize, station: usize, user: usize) -> f64 {
        received_w(&self.cells[env], self.config.users, station, user)
    }

    /// What `station` gives to `user` in the current episode of `env` if no other station chooses this user; `None` without connection.
    pub(super) fn alone(&self, env: usize, station: usize, user: usize) -> Option<Served> {
        let cells = &self.cells[env];
        self.served(cells, user, self.rate_mbps(cells, station, user, 0.0))
    }

    /// The rate between `station` and `user`, Mb/s.
    fn rate_mbps(&self, cells: &Cells, station: usize, user: usize, interference_w: f64) -> f64 {
        let kind = usize::from(station > 0);
        let sinr = received_w(cells, self.config.users, station, user) / (interference_w + self.noise_w[kind]);
        self.bandwidth_mhz[kind] * bits_per_hz(sinr)
    }

    /// Power that the user of `station` receives from the other stations that chose this user, W.
    fn interference_w(&self, cells: &Cells, station: usize) -> f64 {
        let user = self.choices[station];
        let others = (0..self.choices.len()).filter(|other| *other != station && self.choices[*other] == user);
        others.map(|other| received_w(cells, self.config.users, other, user)).sum()
    }

    /// What a rate gives to `user`; `None` if it is below the base layer.
    fn served(&self, cells: &Cells, user: usize, rate_mbps: f64) -> Option<Served> {
        let class = usize::from(cells.class[user]);
        let above = rate_mbps - self.config.base_mbps[class];
        (above >= 0.0).then(|| Served { rate_mbps, layers: 1.0 + (above / self.config.layer_mbps[class]).floor() })
    }

    /// Computes the connections of `env` and writes rewards; returns the figures of the step.
    fn serve(&mut self, env: usize, rewards: &mut [f32]) -> [f64; INFO.len()] {
        let (users, n_stations) = (self.users(env), self.choices.len());
        let cells = self.cells[env].clone();
        let mut connected = std::mem::take(&mut self.state.connected);
        let bits = &mut connected[users];
        bits.fill(false);
        let (mut connections, mut sum_rate_mbps, mut layers) = (0usize, 0.0, 0.0);
        for (station, reward) in rewards.iter_mut().enumerate() {
            let user = self.choices[station];
            let rate = self.rate_mbps(&cells, station, user, self.interference_w(&cells, station));
            let served = self.served(&cells, user, rate);
            bits[user] = served.is_some() || (bits[user] && !self.config.parity.later_write_wins);
            *reward = served.map_or(self.config.unconnected_reward, |served| served.rate_mbps) as f32;
            if let Some(served) = served {
                connections += 1;
                sum_rate_mbps += served.rate_mbps;
                layers += served.layers;
            }
        }
        let connected_users = bits.iter().filter(|bit| **bit).count();
        self.state.connected = connected;
        let needed = match self.config.parity.all_users_must_connect {
            true => self.config.users,
            false => self.config.users.min(n_stations),
        };
        [
            connections as f64 / n_stations as f64,
            connected_users as f64,
            sum_rate_mbps,
            layers / n_stations as f64,
            f64::from(u8::from(connected_users >= needed)),
        ]
    }
}

/// Tag of saved states; the version changes with their content.
const TAG: StateTag = StateTag::new("uara-bs-agent", 1);

impl Simulation for BsAgentSimulation {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn set_seed(&mut self, seed: u64) {
        self.state.seed = seed;
    }

    fn episode(&self, env: usize) -> u64 {
        self.state.episodes[env]
    }

    fn start(&mut self, env: usize, episode: u64, view: View<'_>) -> Result<(), EnvError> {
        self.state.episodes[env] = episode;
        self.state.steps[env] = 0;
        let users = self.users(env);
        self.state.connected[users].fill(false);
        if self.config.redraw == Redraw::Episode {
            self.cells[env] = Arc::new(self.draw(env));
        }
        self.observe(env, view);
        Ok(())
    }

    fn step(&mut self, env: usize, actions: &[f32], next: View<'_>, out: StepOut<'_>) -> Result<Ending, EnvError> {
        self.choose(env, actions)?;
        let figures = self.serve(env, out.reward);
        self.state.steps[env] += 1;
        out.info.copy_from_slice(&figures);
        self.observe(env, next);
        Ok(Ending::of(figures[INFO.len() - 1] > 0.0, self.state.steps[env] >= self.config.episode_steps))
    }

    fn save(&self) -> Vec<u8> {
        TAG.encode(self.spec.n_envs, &(&self.config, &self.state))
    }

    fn load(&mut self, bytes: &[u8]) -> Result<(), EnvError> {
        let fail = |reason: String| EnvError::State { reason };
        let (config, state): (BsAgentConfig, State) = TAG.decode(self.spec.n_envs, bytes)?;
        if config != self.config {
            return Err(fail("it belongs to another config".into()));
        }
        let (held, n) = (state.episodes.len(), self.spec.n_envs);
        if held != n {
            return Err(fail(format!("it holds {held} environments, the batch {n}")));
        }
        if state.steps.len() != n || state.connected.len() != n * self.config.users {
            return Err(fail("its parts have different lengths".into()));
        }
        self.state = state;
        if self.config.redraw == Redraw::Episode {
            self.cells = (0..n).map(|env| Arc::new(self.draw(env))).collect();
        }
        Ok(())
    }
}
