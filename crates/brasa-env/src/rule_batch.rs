//! Environments of equal rules as one batch: their states are columns, and a rule is computed for many environments at once.

use std::array::from_fn;
use std::cell::Cell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use brasa_number::{Checked, Real};
use ndarray::{Array2, ArrayView2, aview1};
use rand::RngExt;

use crate::batch::{for_each_set, slab};
use crate::env_vec::tag;
use crate::members::{Saved, panic_message};
use crate::starts::{EPISODES, first_numbers};
use crate::vectorized::vectorized;
use crate::{BatchSlabs, EnvBatch, EnvError, EnvSpec, RuleEnv, RuleState, Rules, episode_rng, option_index};

/// Environments that are computed together.
const LANES: usize = 64;

/// With fewer environments, single ones are faster.
const FEW: usize = 8;

/// Numbers of the environments that are computed together.
type Column<T> = [T; LANES];

/// The environments of [`crate::EnvVec`] whose rules are equal. Random numbers, results and saved states are those of single environments.
#[derive(Debug)]
pub(crate) struct RuleBatch<R, N, const STATE: usize, const ACTION: usize, const OBS: usize> {
    rules: R,
    spec: EnvSpec,
    first_env: usize,
    seed: u64,
    /// Numbers of the states: environment `i` is lane `i % LANES` of tile `i / LANES`.
    states: Vec<[Column<N>; STATE]>,
    /// The current episode of each environment.
    episodes: Vec<u64>,
    /// The step of the batch at which it began.
    starts: Vec<u64>,
    steps: u64,
    /// Memory of a step: environments whose episode ended.
    ended: Vec<usize>,
    /// Memory of a step: the next states of a tile.
    next: [Column<N>; STATE],
}

impl<R: Rules<STATE, ACTION, OBS>, N: Real, const STATE: usize, const ACTION: usize, const OBS: usize>
    RuleBatch<R, N, STATE, ACTION, OBS>
{
    /// Environments with the global indices from `first_env` on, in the given states.
    pub(crate) fn new(rules: R, states: Vec<[f64; STATE]>, first_env: usize, spec: EnvSpec) -> Self {
        let n_envs = states.len();
        let mut batch = Self {
            rules,
            first_env,
            seed: 0,
            states: vec![[[N::default(); LANES]; STATE]; n_envs.div_ceil(LANES)],
            episodes: vec![0; n_envs],
            starts: vec![0; n_envs],
            steps: 0,
            ended: Vec::new(),
            spec,
            next: [[N::default(); LANES]; STATE],
        };
        states.into_iter().enumerate().for_each(|(env, state)| batch.set_state(env, state));
        batch
    }

    fn state(&self, env: usize) -> [f64; STATE] {
        let tile = &self.states[env / LANES];
        from_fn(|i| tile[i][env % LANES].to_f64())
    }

    fn set_state(&mut self, env: usize, state: [f64; STATE]) {
        let tile = &mut self.states[env / LANES];
        tile.iter_mut().zip(state).for_each(|(column, number)| column[env % LANES] = N::nearest(number));
    }

    /// Runs `body`, which is about one environment; a panic becomes an error with its location.
    fn guarded<T>(&mut self, env: usize, body: impl FnOnce(&mut Self) -> T) -> Result<T, EnvError> {
        // The state after a panic is not used again: the batch must be reset first.
        catch_unwind(AssertUnwindSafe(|| body(self))).map_err(|panic| EnvError::Panicked {
            env: self.first_env + env,
            seed: self.seed,
            episode: self.episodes[env],
            step: self.steps - self.starts[env],
            message: panic_message(panic.as_ref()),
        })
    }

    /// Starts the given episodes of at most [`EPISODES`] environments.
    fn begin(&mut self, envs: &[usize], episode: impl Fn(u64) -> u64, out: &mut BatchSlabs) -> Result<(), EnvError> {
        let (mut indices, mut episodes) = ([0; EPISODES], [0; EPISODES]);
        for (l, env) in envs.iter().enumerate() {
            self.episodes[*env] = episode(self.episodes[*env]);
            self.starts[*env] = self.steps;
            (indices[l], episodes[l]) = ((self.first_env + env) as u64, self.episodes[*env]);
        }
        let noise: [_; STATE] = first_numbers(self.seed, &indices, &episodes);
        for (l, env) in envs.iter().enumerate() {
            self.guarded(*env, |batch| {
                let state = batch.rules.begin(from_fn(|i| noise[i][l]));
                batch.set_state(*env, state);
                rows(&mut out.obs)[*env] = RuleEnv::observe::<N>(&batch.rules, state);
            })?;
        }
        Ok(())
    }

    /// Steps all environments of a tile, without resets; `false` if an action or a number needs a look at single environments, which then have their
    /// former states.
    fn step_tile(
        &mut self,
        tile: usize,
        actions: &[[f32; ACTION]; LANES],
        obs: &mut [[f32; OBS]; LANES],
        reward: &mut Column<f32>,
        terminated: &mut Column<bool>,
    ) -> bool {
        if !are_legal(self.spec.action.heads(), actions) {
            return false;
        }
        let Self { rules, states, next, .. } = self;
        // A panic of one environment is found when they are stepped alone.
        let step = AssertUnwindSafe(|| step_lanes(rules, &states[tile], actions, next, obs, reward, terminated));
        let is_valid = catch_unwind(step).unwrap_or(false);
        if is_valid {
            states[tile] = *next;
        }
        is_valid
    }

    /// Steps the environments of the last tile, which are fewer than its lanes.
    fn step_last(&mut self, envs: Range<usize>, actions: &[[f32; ACTION]], out: &mut BatchSlabs) -> bool {
        let n = envs.len();
        let mut lanes = [[0.0; ACTION]; LANES];
        lanes[..n].copy_from_slice(actions);
        let (mut obs, mut reward, mut terminated) = ([[0.0; OBS]; LANES], [0.0; LANES], [false; LANES]);
        let is_valid = self.step_tile(envs.start / LANES, &lanes, &mut obs, &mut reward, &mut terminated);
        rows(&mut out.next_obs)[envs.clone()].copy_from_slice(&obs[..n]);
        slab(&mut out.reward)[envs.clone()].copy_from_slice(&reward[..n]);
        slab(&mut out.terminated)[envs].copy_from_slice(&terminated[..n]);
        is_valid
    }

    /// Steps single environments, without resets.
    fn step_alone(
        &mut self,
        envs: Range<usize>,
        actions: &[[f32; ACTION]],
        out: &mut BatchSlabs,
    ) -> Result<(), EnvError> {
        envs.zip(actions).try_for_each(|(env, action)| {
            self.guarded(env, |batch| {
                for (head, n) in batch.spec.action.heads().iter().enumerate() {
                    option_index(aview1(action), head, *n);
                }
                let (state, obs, step) = RuleEnv::step_alone::<N>(&batch.rules, batch.state(env), *action);
                batch.set_state(env, state);
                rows(&mut out.next_obs)[env] = obs;
                (out.reward[env], out.terminated[env]) = (step.reward, step.terminated);
            })
        })
    }
}

impl<R: Rules<STATE, ACTION, OBS>, N: Real, const STATE: usize, const ACTION: usize, const OBS: usize> EnvBatch
    for RuleBatch<R, N, STATE, ACTION, OBS>
{
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64, out: &mut BatchSlabs) -> Result<(), EnvError> {
        (self.seed, self.steps) = (seed, 0);
        let envs: Vec<usize> = (0..self.n_envs()).collect();
        envs.chunks(EPISODES).try_for_each(|envs| self.begin(envs, |_| 0, out))
    }

    fn step(&mut self, actions: ArrayView2<f32>, out: &mut BatchSlabs) -> Result<(), EnvError> {
        let n_envs = self.n_envs();
        assert_eq!(actions.dim(), (n_envs, ACTION), "shape of the actions");
        let actions = actions.as_standard_layout();
        let (actions, _) = actions.as_slice().expect("it has just been made so").as_chunks::<ACTION>();
        let (tiles, last) = actions.as_chunks::<LANES>();
        for (tile, actions) in tiles.iter().enumerate() {
            let obs = &mut rows(&mut out.next_obs).as_chunks_mut().0[tile];
            let reward = &mut slab(&mut out.reward).as_chunks_mut().0[tile];
            let terminated = &mut slab(&mut out.terminated).as_chunks_mut().0[tile];
            if !self.step_tile(tile, actions, obs, reward, terminated) {
                self.step_alone(tile * LANES..(tile + 1) * LANES, actions, out)?;
            }
            go_on(tile * LANES..(tile + 1) * LANES, out);
        }
        let envs = n_envs - last.len()..n_envs;
        if last.len() < FEW || !self.step_last(envs.clone(), last, out) {
            self.step_alone(envs.clone(), last, out)?;
        }
        go_on(envs, out);
        self.steps += 1;
        out.truncated.fill(false);
        if R::TERMINATES {
            let mut ended = std::mem::take(&mut self.ended);
            for_each_set([slab(&mut out.terminated)], |env| ended.push(env));
            ended.chunks(EPISODES).try_for_each(|envs| self.begin(envs, |episode| episode + 1, out))?;
            ended.clear();
            self.ended = ended;
        }
        Ok(())
    }

    fn restart(&mut self, env: usize, out: &mut BatchSlabs) -> Result<(), EnvError> {
        self.begin(&[env], |episode| episode + 1, out)
    }

    fn save(&self) -> Vec<u8> {
        let saved = |env| {
            let mut rng = episode_rng(self.seed, (self.first_env + env) as u64, self.episodes[env]);
            // What the start of the episode took.
            let _: [f64; STATE] = from_fn(|_| rng.random());
            let (episode, step) = (self.episodes[env], self.steps - self.starts[env]);
            Saved { state: RuleState(self.state(env)), rng, episode, step }
        };
        let saved: Vec<_> = (0..self.n_envs()).map(saved).collect();
        tag::<RuleEnv<R, STATE, ACTION, OBS>>().encode(self.n_envs(), &(self.seed, saved))
    }

    fn load(&mut self, bytes: &[u8]) -> Result<(), EnvError> {
        let tag = tag::<RuleEnv<R, STATE, ACTION, OBS>>();
        let (seed, saved): (u64, Vec<Saved<RuleState<STATE>>>) = tag.decode(self.n_envs(), bytes)?;
        self.seed = seed;
        self.steps = saved.iter().map(|saved| saved.step).max().unwrap_or(0);
        for (env, Saved { state: RuleState(state), episode, step, .. }) in saved.into_iter().enumerate() {
            self.set_state(env, state);
            (self.episodes[env], self.starts[env]) = (episode, self.steps - step);
        }
        Ok(())
    }
}

vectorized! {
    /// Computes a step of all lanes; `false` if a number was out of the range of [`Checked`].
    #[allow(clippy::needless_range_loop, reason = "a compiler vectorizes loops over constant ranges")]
    fn step_lanes[R: Rules<STATE, ACTION, OBS>, N: Real, const STATE: usize, const ACTION: usize, const OBS: usize](
        rules: &R,
        states: &[Column<N>; STATE],
        actions: &[[f32; ACTION]; LANES],
        next: &mut [Column<N>; STATE],
        obs: &mut [[f32; OBS]; LANES],
        reward: &mut Column<f32>,
        terminated: &mut Column<bool>,
    ) -> bool {
        let out_of_range = Cell::new(false);
        let number = |number| Checked::<N>::new(number, &out_of_range);
        for l in 0..LANES {
            let action = from_fn(|i| number(N::nearest(f64::from(actions[l][i]))));
            let (after, seen) = RuleEnv::advance(rules, from_fn(|i| number(states[i][l])), action, N::BITS);
            for i in 0..STATE {
                next[i][l] = after.state[i].value;
            }
            for i in 0..OBS {
                obs[l][i] = seen[i].value.to_f64() as f32;
            }
            reward[l] = after.reward.value.to_f64() as f32;
            terminated[l] = after.terminated.unwrap_or(false);
        }
        !out_of_range.get()
    }
}

vectorized! {
    /// Whether every discrete action is an index below its number of alternatives, below 2^22.
    fn are_legal[const ACTION: usize](heads: &[usize], actions: &[[f32; ACTION]; LANES]) -> bool {
        /// Adding and subtracting this rounds to an integer.
        const ROUND: f32 = 8_388_608.0;
        heads.iter().enumerate().all(|(head, n)| {
            let n = (*n).min(1 << 22) as f32;
            let is_index = |x: f32| (x >= 0.0) & (x < n) & ((x + ROUND) - ROUND == x);
            actions.iter().fold(true, |legal, action| legal & is_index(action[head]))
        })
    }
}

/// Copies observations after a step to those before the next one, while they are near: at the end of an episode, another one follows.
fn go_on(envs: Range<usize>, out: &mut BatchSlabs) {
    let width = out.obs.ncols();
    let numbers = envs.start * width..envs.end * width;
    slab(&mut out.obs)[numbers.clone()].copy_from_slice(&slab(&mut out.next_obs)[numbers]);
}

/// The rows of a slab.
fn rows<const OBS: usize>(matrix: &mut Array2<f32>) -> &mut [[f32; OBS]] {
    slab(matrix).as_chunks_mut().0
}
