//! A batch from a simulation: the loop over its environments, with automatic resets.

use std::ops::{Deref, Range};

use ndarray::{Array2, ArrayView2};

use crate::{BatchSlabs, EnvBatch, EnvError, EnvSpec};

/// Environments that share memory, such as one vector for all sockets of all sites. [`Autoreset`] makes a batch of them. An environment that has its
/// own memory implements [`crate::Env`], or [`crate::MultiAgentEnv`] for several agents.
///
/// ```
/// use brasa_env::{Autoreset, Ending, EnvError, EnvSpec, Simulation, Space, StateTag, StepOut, View, check_env};
///
/// /// Tanks that leak and are filled; the level should be 1.
/// struct Tanks {
///     spec: EnvSpec,
///     /// Seed, levels, and steps and episodes of every tank.
///     state: (u64, Vec<f32>, Vec<u64>, Vec<u64>),
/// }
///
/// const TAG: StateTag = StateTag::new("tanks", 1);
///
/// impl Simulation for Tanks {
///     fn spec(&self) -> &EnvSpec {
///         &self.spec
///     }
///     fn set_seed(&mut self, seed: u64) {
///         self.state.0 = seed;
///     }
///     fn episode(&self, env: usize) -> u64 {
///         self.state.3[env]
///     }
///     fn start(&mut self, env: usize, episode: u64, view: View<'_>) -> Result<(), EnvError> {
///         (self.state.1[env], self.state.2[env], self.state.3[env]) = (0.5, 0, episode);
///         view.obs[0] = 0.5;
///         Ok(())
///     }
///     fn step(&mut self, env: usize, actions: &[f32], next: View<'_>, out: StepOut<'_>) -> Result<Ending, EnvError> {
///         let level = &mut self.state.1[env];
///         *level = (0.9 * *level + 0.2 * actions[0].clamp(0.0, 1.0)).min(2.0);
///         self.state.2[env] += 1;
///         (next.obs[0], out.reward[0]) = (*level, -(*level - 1.0).abs());
///         Ok(Ending::of(false, self.state.2[env] == 20))
///     }
///     fn save(&self) -> Vec<u8> {
///         TAG.encode(self.spec.n_envs, &self.state)
///     }
///     fn load(&mut self, bytes: &[u8]) -> Result<(), EnvError> {
///         self.state = TAG.decode(self.spec.n_envs, bytes)?;
///         Ok(())
///     }
/// }
///
/// check_env(50, |envs| {
///     let (n, level, action) = (envs.len(), Space::uniform_box(0.0, 2.0, ["level"]), Space::uniform_box(0.0, 1.0, ["inflow"]));
///     let spec = EnvSpec { truncation_interval: 20, ..EnvSpec::new(level, action, n) };
///     Ok(Autoreset::new(Tanks { spec, state: (0, vec![0.5; n], vec![0; n], vec![0; n]) }))
/// })?;
/// # Ok::<(), EnvError>(())
/// ```
pub trait Simulation: Send {
    /// The constants of the batch.
    fn spec(&self) -> &EnvSpec;

    /// Sets the seed of the episodes that start from now on.
    fn set_seed(&mut self, seed: u64);

    /// Number of the current episode of an environment.
    fn episode(&self, env: usize) -> u64;

    /// Starts an episode of an environment and writes its first observations.
    ///
    /// # Errors
    /// [`EnvError::Panicked`] if code that the simulation calls panics.
    fn start(&mut self, env: usize, episode: u64, view: View<'_>) -> Result<(), EnvError>;

    /// Steps an environment with the actions of its agents, `[n_agents * action width]`, and writes the observations after the step.
    ///
    /// # Errors
    /// [`EnvError::Argument`] for actions that mean nothing, [`EnvError::Panicked`] if code that the simulation calls panics.
    fn step(&mut self, env: usize, actions: &[f32], next: View<'_>, out: StepOut<'_>) -> Result<Ending, EnvError>;

    /// The complete state for a resume; see [`crate::StateTag`].
    fn save(&self) -> Vec<u8>;

    /// Restores saved bytes.
    ///
    /// # Errors
    /// [`EnvError::State`] if they belong to another simulation.
    fn load(&mut self, bytes: &[u8]) -> Result<(), EnvError>;
}

/// Memory for the observations of one environment.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/tanks.inc")); }
/// # use shown::*;
/// use brasa_env::{Simulation, View};
///
/// // A simulation writes the first observation of an environment into a view of its memory.
/// let mut tanks = Tanks::new(1);
/// let mut level = [0.0];
/// tanks.start(0, 0, View { obs: &mut level, shared: &mut [], mask: &mut [] })?;
/// assert_eq!(level, [0.5]);
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug)]
pub struct View<'a> {
    /// `[n_agents * (obs width - shared width)]`.
    pub obs: &'a mut [f32],
    /// `[shared width]`.
    pub shared: &'a mut [f32],
    /// `[n_agents * flags]`: 1 for legal actions.
    pub mask: &'a mut [f32],
}

/// Memory for what else a step of one environment gives.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/tanks.inc")); }
/// # use shown::*;
/// use brasa_env::{Simulation, StepOut, View};
///
/// let mut tanks = Tanks::new(1);
/// let (mut level, mut reward, mut elapsed) = ([0.0], [0.0], [1.0]);
/// let next = View { obs: &mut level, shared: &mut [], mask: &mut [] };
/// let out = StepOut { reward: &mut reward, elapsed: &mut elapsed, info: &mut [] };
/// tanks.step(0, &[1.0], next, out)?;
/// // The level rose from 0.5 to 0.65, and the reward is the distance to a level of 1.
/// assert!((level[0] - 0.65).abs() < 1e-6 && (reward[0] + 0.35).abs() < 1e-6);
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug)]
pub struct StepOut<'a> {
    /// `[n_agents]`.
    pub reward: &'a mut [f32],
    /// `[n_agents]`, 1 before the step.
    pub elapsed: &'a mut [f32],
    /// The figures of [`EnvSpec::info_names`].
    pub info: &'a mut [f64],
}

/// Whether and how a step ends an episode.
///
/// ```
/// use brasa_env::Ending;
///
/// assert_eq!(Ending::of(false, false), Ending::None);
/// assert_eq!(Ending::of(false, true), Ending::Truncated);
/// // The rules of the task come before a limit.
/// assert_eq!(Ending::of(true, true), Ending::Terminated);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The episode continues.
    None,
    /// By the rules of the task.
    Terminated,
    /// By a limit.
    Truncated,
}

impl Ending {
    /// Terminated or truncated by a condition, in this order.
    pub fn of(terminated: bool, truncated: bool) -> Self {
        match (terminated, truncated) {
            (true, _) => Self::Terminated,
            (false, true) => Self::Truncated,
            (false, false) => Self::None,
        }
    }
}

/// The environments of a [`Simulation`] as a batch, stepped in order on the calling thread.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/tanks.inc")); }
/// # use shown::*;
/// use brasa_env::{Autoreset, BatchSlabs, EnvBatch};
/// use ndarray::array;
///
/// // `Tanks` is the simulation of the page of `Simulation`.
/// let mut batch = Autoreset::new(Tanks::new(2));
/// let mut slabs = BatchSlabs::new(batch.spec());
/// batch.reset(0, &mut slabs)?;
/// batch.step(array![[0.0], [1.0]].view(), &mut slabs)?;
/// assert_eq!(slabs.obs, array![[0.45], [0.65]]);
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug)]
pub struct Autoreset<S>(S);

impl<S: Simulation> Autoreset<S> {
    /// The environments of a simulation.
    pub fn new(simulation: S) -> Self {
        Self(simulation)
    }

    fn start(&mut self, env: usize, episode: u64, out: &mut BatchSlabs) -> Result<(), EnvError> {
        let (rows, of_env) = self.places(env);
        let view = view([&mut out.obs, &mut out.mask], &mut out.shared, (rows, of_env));
        self.0.start(env, episode, view)
    }

    /// The rows of an environment, and its own row in what agents share.
    fn places(&self, env: usize) -> (Range<usize>, usize) {
        let n_agents = self.0.spec().n_agents;
        (env * n_agents..(env + 1) * n_agents, env)
    }
}

/// The simulation can be looked at; only the batch changes it.
impl<S> Deref for Autoreset<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.0
    }
}

/// The memory of some rows.
fn rows(slab: &mut Array2<f32>, rows: Range<usize>) -> &mut [f32] {
    let width = slab.ncols();
    &mut slab.as_slice_mut().expect("slabs are in standard layout")[rows.start * width..rows.end * width]
}

fn view<'a>(
    [obs, mask]: [&'a mut Array2<f32>; 2],
    shared: &'a mut Array2<f32>,
    (agents, env): (Range<usize>, usize),
) -> View<'a> {
    View { obs: rows(obs, agents.clone()), shared: rows(shared, env..env + 1), mask: rows(mask, agents) }
}

/// Copies the rows of one slab into another.
fn copy(from: &mut Array2<f32>, to: &mut Array2<f32>, range: Range<usize>) {
    rows(to, range.clone()).copy_from_slice(rows(from, range));
}

impl<S: Simulation> EnvBatch for Autoreset<S> {
    fn spec(&self) -> &EnvSpec {
        self.0.spec()
    }

    fn reset(&mut self, seed: u64, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.0.set_seed(seed);
        (0..self.n_envs()).try_for_each(|env| self.start(env, 0, out))
    }

    fn step(&mut self, actions: ArrayView2<f32>, out: &mut BatchSlabs) -> Result<(), EnvError> {
        let width = self.spec().action.width();
        assert_eq!(actions.dim(), (self.n_rows(), width), "shape of the actions");
        let actions = actions.as_standard_layout();
        let actions = actions.as_slice().expect("it has just been made so");
        for env in 0..self.n_envs() {
            let (agents, _) = self.places(env);
            let next = view([&mut out.next_obs, &mut out.next_mask], &mut out.next_shared, (agents.clone(), env));
            let mut info = out.info.row_mut(env);
            let [reward, elapsed] = [&mut out.reward, &mut out.elapsed]
                .map(|slab| &mut slab.as_slice_mut().expect("slabs are in standard layout")[agents.clone()]);
            elapsed.fill(1.0);
            let info = info.as_slice_mut().expect("rows are contiguous");
            let of_env = &actions[agents.start * width..agents.end * width];
            let ending = self.0.step(env, of_env, next, StepOut { reward, elapsed, info })?;
            for row in agents.clone() {
                out.terminated[row] = ending == Ending::Terminated;
                out.truncated[row] = ending == Ending::Truncated;
            }
            if ending == Ending::None {
                copy(&mut out.next_obs, &mut out.obs, agents.clone());
                copy(&mut out.next_mask, &mut out.mask, agents);
                copy(&mut out.next_shared, &mut out.shared, env..env + 1);
            } else {
                self.restart(env, out)?;
            }
        }
        Ok(())
    }

    fn restart(&mut self, env: usize, out: &mut BatchSlabs) -> Result<(), EnvError> {
        let episode = self.0.episode(env) + 1;
        self.start(env, episode, out)
    }

    fn save(&self) -> Vec<u8> {
        self.0.save()
    }

    fn load(&mut self, bytes: &[u8]) -> Result<(), EnvError> {
        self.0.load(bytes)
    }
}
