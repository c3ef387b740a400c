//! Environments whose steps are tensor operations, so that nothing leaves the device during a rollout.

use brasa_env::wrappers::RunningMoments;
use brasa_env::{EnvError, EnvSpec, Episode, StateTag, field};
use brasa_kernels::{Formulas, Value, concat_rows, elementwise, total};
use burn::tensor::{Device, Int, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use crate::device_moments::DeviceMoments;
use crate::noise_block::{NoiseBlock, uniform};
use crate::smoothing::Smoothing;
use crate::tensor_dynamics::{NoiseWidths, TensorDynamics, TensorState, TensorStep, replace};
use crate::{Normalization, Obs, ObsForm, ObsParts, StepBatch, Successor, VecEnv, read_back};

/// A batch of environments on a device as a [`VecEnv`], with time limit, automatic reset, episode statistics and normalization of
/// observations.
///
/// A step reads nothing back. Random numbers are drawn on the host for many steps at once and are addressed by seed and step, so
/// that a run is repeatable. What ended is read with [`VecEnv::pending_episodes`] or [`VecEnv::drain_episodes`].
///
/// Numbers that are not finite are found when episodes are read, not at the step.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/envs.inc")); }
/// # use shown::*;
/// use brasa_core::{RuleTensors, TensorEnv, VecEnv};
/// use burn::tensor::Tensor;
///
/// let device = brasa_device::open_named("cpu")?;
/// let mut env = TensorEnv::new(RuleTensors::new(Tank), 8, &device)?.with_time_limit(10)?;
/// env.reset(7)?;
/// for _ in 0..10 {
///     env.step(Tensor::zeros([8, 1], &device))?;
/// }
/// // The statistics of all episodes are read together.
/// let mut episodes = Vec::new();
/// env.drain_episodes(&mut episodes)?;
/// assert_eq!((episodes.len(), episodes[0].length), (8, 10));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TensorEnv<D: TensorDynamics, O = Obs> {
    dynamics: D,
    spec: EnvSpec,
    device: Device,
    assemble: fn(ObsParts) -> O,
    time_limit: Option<u32>,
    moments: Option<DeviceMoments>,
    /// See [`ObsForm::joint`]; `None` where critics see what actors see.
    team: Option<Tensor<1, Int>>,
    reward_scale: f64,
    smoothing: Option<Smoothing>,
    seed: u64,
    /// Steps since the reset.
    steps: u64,
    state: Option<D::State>,
    /// `[n_envs, 2 + figures]`: steps of the current episodes, and sums over them of rewards and figures.
    running: Option<Tensor<2>>,
    noise: Option<NoiseBlock>,
    log: Vec<Logged>,
    ended: Vec<Episode>,
    /// Constants of steps in which no episode ends: zeros and ones, `[n_rows]`.
    zeros: Tensor<1>,
    ones: Tensor<1>,
}

/// A step in which episodes may have ended: their statistics, as [`TensorEnv`] keeps them, and flags of those that ended, `[n_envs, 1]`.
#[derive(Debug)]
struct Logged {
    ended: Tensor<2>,
    running: Tensor<2>,
    /// `[1]`: finite only if the observations before the reset were. A reset hides what was not.
    check: Tensor<1>,
}

/// A saved [`TensorEnv`].
#[derive(Serialize, Deserialize)]
struct Saved {
    seed: u64,
    steps: u64,
    parts: Vec<Part>,
    running: Option<Part>,
    moments: Option<RunningMoments>,
}

/// A saved tensor, `[n_envs, width]`.
#[derive(Serialize, Deserialize)]
struct Part {
    width: usize,
    values: Vec<f32>,
}

impl<D: TensorDynamics> TensorEnv<D> {
    /// `n_envs` environments without a time limit on the non-autodiff `device`, with flat observations.
    ///
    /// # Errors
    /// Those of [`EnvSpec::validate`].
    pub fn new(dynamics: D, n_envs: usize, device: &Device) -> Result<Self, EnvError> {
        Self::in_form(dynamics, n_envs, device)
    }
}

impl<D: TensorDynamics, O: ObsForm> TensorEnv<D, O> {
    /// The same for any form of observations.
    ///
    /// # Errors
    /// Those of [`EnvSpec::validate`].
    pub fn in_form(dynamics: D, n_envs: usize, device: &Device) -> Result<Self, EnvError> {
        let spec = EnvSpec {
            keeps_episodes: true,
            truncation_interval: EnvSpec::NEVER,
            ends_are_known: !dynamics.terminates(),
            ..dynamics.spec(n_envs)
        };
        spec.validate()?;
        let n_rows = spec.n_rows();
        Ok(Self {
            dynamics,
            device: device.clone(),
            assemble: O::assemble,
            time_limit: None,
            moments: None,
            team: None,
            reward_scale: 1.0,
            smoothing: None,
            seed: 0,
            steps: 0,
            state: None,
            running: None,
            noise: None,
            log: Vec::new(),
            ended: Vec::new(),
            zeros: Tensor::zeros([n_rows], device),
            ones: Tensor::ones([n_rows], device),
            spec,
        })
    }

    /// Truncates every episode that did not end within `max_steps` steps.
    ///
    /// # Errors
    /// [`EnvError::Argument`] for a limit of 0.
    pub fn with_time_limit(mut self, max_steps: u32) -> Result<Self, EnvError> {
        field::at_least_one("max_steps", u64::from(max_steps))?;
        self.time_limit = Some(max_steps);
        self.spec.truncation_interval = u64::from(max_steps);
        Ok(self)
    }

    /// Multiplies rewards by `factor`; statistics of episodes use the rewards before.
    pub fn scaling_rewards(self, factor: f64) -> Self {
        Self { reward_scale: factor, ..self }
    }

    /// Smooths scaled rewards over the steps of each row; statistics of episodes use the rewards before. See
    /// [`brasa_env::wrappers::ShapeReward`].
    ///
    /// # Errors
    /// [`EnvError::Argument`] unless `lambda` lies in [0, 1).
    pub fn smoothing_rewards(self, lambda: f64) -> Result<Self, EnvError> {
        field::rule((0.0..1.0).contains(&lambda), "reward_smooth_lambda", "must be in [0, 1)", lambda)?;
        let smoothing = (lambda > 0.0).then(|| Smoothing::new(lambda, self.spec.n_rows(), &self.device));
        Ok(Self { smoothing, ..self })
    }

    /// Normalizes observations with moments that every step updates: see [`brasa_env::wrappers::NormalizeObs::new`].
    ///
    /// # Errors
    /// [`EnvError::Space`] for observations that must not be normalized or cannot be in this form.
    pub fn normalizing(self) -> Result<Self, EnvError> {
        let moments = DeviceMoments::growing(self.own_width(), &self.device);
        self.with_moments(moments)
    }

    /// Updates moments at every step, but does not normalize observations: see [`brasa_env::wrappers::NormalizeObs::watching`].
    ///
    /// # Errors
    /// As [`TensorEnv::normalizing`]; those of [`EnvSpec::joint`] after [`TensorEnv::joining`].
    pub fn watching(self) -> Result<Self, EnvError> {
        let spec = EnvSpec { normalize_on_use: true, ..self.spec.clone() };
        if self.team.is_some() {
            spec.joint()?;
        }
        Ok(Self { spec, ..self.normalizing()? })
    }

    /// Gives critics the observations of all agents: see [`brasa_env::wrappers::JointObs`]. Moments are those of what actors see.
    ///
    /// # Errors
    /// See [`EnvSpec::joint`].
    pub fn joining(self) -> Result<Self, EnvError> {
        let spec = self.spec.joint()?;
        let n = spec.n_agents;
        let rows = (0..spec.n_rows()).flat_map(|row| (1..=n).map(move |place| row - row % n + (row + place) % n));
        let rows: Vec<i64> = rows.map(|row| row as i64).collect();
        let team = Tensor::from_data(TensorData::new(rows, [spec.n_rows() * n]), &self.device);
        Ok(Self { team: Some(team), spec, ..self })
    }

    /// Normalizes observations with the constant moments of a training run.
    ///
    /// # Errors
    /// As [`TensorEnv::normalizing`]; [`EnvError::State`] for moments of another width.
    pub fn normalized_by(self, moments: &RunningMoments) -> Result<Self, EnvError> {
        moments.check_width(self.own_width())?;
        let moments = DeviceMoments::frozen(moments.clone(), &self.device);
        self.with_moments(moments)
    }

    fn with_moments(mut self, moments: DeviceMoments) -> Result<Self, EnvError> {
        self.spec = self.spec.normalized()?;
        let width = self.dynamics.noise().start;
        let example = self.dynamics.start(Tensor::zeros([self.spec.n_envs, width], &self.device));
        if self.seen(&example).normalizable().is_none() {
            let rule = "observations of this form cannot be normalized";
            return Err(EnvError::Space { rule: rule.into() });
        }
        self.moments = Some(moments);
        Ok(self)
    }

    /// Numbers of an observation of an actor.
    fn own_width(&self) -> usize {
        self.dynamics.spec(1).obs.width()
    }

    /// The rules.
    pub fn dynamics(&self) -> &D {
        &self.dynamics
    }

    /// The current states; `None` before the first reset.
    pub fn state(&self) -> Option<&D::State> {
        self.state.as_ref()
    }

    /// Resets every environment with given noise, `[n_envs, start]`: see [`TensorDynamics::start`].
    pub fn reset_with(&mut self, noise: Tensor<2>) -> O {
        let state = self.dynamics.start(noise);
        self.running = Some(self.fresh());
        self.log.clear();
        if let Some(smoothing) = &mut self.smoothing {
            smoothing.reset();
        }
        let obs = self.seen(&state);
        self.state = Some(state);
        self.observed(obs)
    }

    /// Takes one step with given noise for the step, `[n_envs, step]`, and for environments that are reset, `[n_envs, start]`.
    ///
    /// # Panics
    /// Before the first reset.
    pub fn step_with(&mut self, action: Tensor<2>, step: Tensor<2>, start: Tensor<2>) -> StepBatch<O> {
        let state = self.state.take().expect("environments are reset before their first step");
        let n_envs = self.spec.n_envs;
        let together = !self.dynamics.terminates();
        let since = together.then(|| self.time_limit.map_or(self.steps, |limit| self.steps % u64::from(limit)));
        let TensorStep { state, reward, terminated, info } = self.dynamics.step(state, action, step, since);
        self.steps += 1;
        let mut scaled = if self.reward_scale == 1.0 { reward.clone() } else { reward.clone() * self.reward_scale };
        if let Some(smoothing) = &mut self.smoothing {
            scaled = smoothing.apply(scaled);
        }
        let running = self.running.take().expect("environments are reset before their first step");
        let Some(terminated) = terminated else {
            let running = self.counted(&running, &reward, info.as_ref());
            return self.step_together(state, scaled, running, start);
        };
        let [running, ended, truncated, rest] = self.counted_and_reset(&running, &reward, info.as_ref(), &terminated);
        let fresh = self.dynamics.start(start);
        let (next, check) = self.seen_and_summed(&state);
        let state = replace(state, &ended, fresh);
        let obs = self.seen(&state);
        self.state = Some(state);
        let ended_rows = self.smoothing.is_some().then(|| self.per_row(ended.clone().reshape([n_envs])));
        if let (Some(smoothing), Some(ended)) = (&mut self.smoothing, ended_rows) {
            smoothing.end(&ended);
        }
        self.log.push(Logged { ended, running, check });
        self.running = Some(rest);
        let obs = self.observed(obs);
        let (successor, truncated) = match self.time_limit {
            Some(_) => (Successor::Rows(self.shown(next)), self.per_row(truncated.reshape([n_envs]))),
            None => (Successor::Terminal, self.zeros.clone()),
        };
        StepBatch { obs, successor, reward: scaled, terminated: self.per_row(terminated), truncated, elapsed: None }
    }

    /// The statistics after a step, from those before it; both `[n_envs, 2 + figures]`.
    fn counted(&self, running: &Tensor<2>, reward: &Tensor<1>, info: Option<&Tensor<2>>) -> Tensor<2> {
        let [running] = elementwise([self.spec.n_envs, 1], |formulas| [self.counting(formulas, running, reward, info)]);
        running
    }

    /// The same where episodes end one by one: the statistics, flags of those that ended, flags of those that were truncated, and the
    /// statistics with zeros for those that ended. A terminated episode is not truncated.
    fn counted_and_reset(
        &self,
        running: &Tensor<2>,
        reward: &Tensor<1>,
        info: Option<&Tensor<2>>,
        terminated: &Tensor<1>,
    ) -> [Tensor<2>; 4] {
        elementwise([self.spec.n_envs, 1], |formulas| {
            let counted = self.counting(formulas, running, reward, info);
            let terminated = formulas.read(terminated);
            let truncated = match self.time_limit {
                Some(limit) => terminated.select(0.0, counted[0].greater(f64::from(limit) - 0.5)),
                None => formulas.constant(0.0),
            };
            let ended = terminated.or(truncated);
            let rest = counted.iter().map(|value| ended.select(0.0, *value)).collect();
            [counted, vec![ended], vec![truncated], rest]
        })
    }

    /// [`TensorEnv::counted`] as formulas: one value per column.
    fn counting<'a>(
        &self,
        formulas: &'a Formulas,
        running: &Tensor<2>,
        reward: &Tensor<1>,
        info: Option<&Tensor<2>>,
    ) -> Vec<Value<'a>> {
        let n_agents = self.spec.n_agents;
        let running = formulas.matrix(running);
        let reward = formulas.matrix(&reward.clone().reshape([self.spec.n_envs, n_agents]));
        let mean = reward.sum(0..n_agents) / n_agents as f64;
        let info = info.map(|info| formulas.matrix(info));
        let figures = info.into_iter().flat_map(|info| (0..self.spec.info_names.len()).map(move |i| info.column(i)));
        let added = [formulas.constant(1.0), mean].into_iter().chain(figures);
        added.enumerate().map(|(i, value)| running.column(i) + value).collect()
    }

    /// The end of a step of environments that never terminate: either all episodes are truncated or none.
    fn step_together(
        &mut self,
        state: D::State,
        reward: Tensor<1>,
        running: Tensor<2>,
        start: Tensor<2>,
    ) -> StepBatch<O> {
        let over = self.all_end_at(self.steps);
        let (next, check) = self.seen_and_summed(&state);
        let (obs, successor, truncated) = if over {
            let fresh = self.dynamics.start(start);
            let obs = self.seen(&fresh);
            self.state = Some(fresh);
            let ended = Tensor::ones([self.spec.n_envs, 1], &self.device);
            if let Some(smoothing) = &mut self.smoothing {
                smoothing.end(&self.ones);
            }
            self.log.push(Logged { ended, running, check });
            self.running = Some(self.fresh());
            let obs = self.observed(obs);
            (obs, Successor::Rows(self.shown(next)), self.ones.clone())
        } else {
            (self.state, self.running) = (Some(state), Some(running));
            (self.observed(next), Successor::Same, self.zeros.clone())
        };
        StepBatch { obs, successor, reward, terminated: self.zeros.clone(), truncated, elapsed: None }
    }

    /// `[n_envs]` values as `[n_rows]`: an episode ends for all agents of an environment.
    fn per_row(&self, values: Tensor<1>) -> Tensor<1> {
        let (n_envs, n_agents) = (self.spec.n_envs, self.spec.n_agents);
        match n_agents {
            1 => values,
            n => values.unsqueeze_dim::<2>(1).expand([n_envs, n]).reshape([n_envs * n]),
        }
    }

    /// Statistics of new episodes.
    fn fresh(&self) -> Tensor<2> {
        Tensor::zeros([self.spec.n_envs, 2 + self.spec.info_names.len()], &self.device)
    }

    /// Whether environments that never terminate are truncated at the step `steps` after the reset.
    fn all_end_at(&self, steps: u64) -> bool {
        self.time_limit.is_some_and(|limit| steps.is_multiple_of(u64::from(limit)))
    }

    /// The observations of states, and their sum, `[1]`.
    fn seen_and_summed(&self, state: &D::State) -> (O, Tensor<1>) {
        let parts = self.dynamics.observe(state);
        let sums = [&parts.shared, &parts.own].into_iter().flatten().map(|part| total(part.clone()));
        let sum = sums.reduce(|a, b| a + b).expect("there are shared or own numbers");
        ((self.assemble)(parts), sum)
    }

    fn seen(&self, state: &D::State) -> O {
        (self.assemble)(self.dynamics.observe(state))
    }

    /// Observations that policies see next: they update the moments.
    fn observed(&mut self, obs: O) -> O {
        if let Some(moments) = &mut self.moments {
            let values = obs.normalizable().expect("the form was checked when the normalization was asked for");
            moments.add(values);
        }
        self.shown(obs)
    }

    /// Observations as loops get them.
    fn shown(&self, obs: O) -> O {
        let obs = match &self.moments {
            Some(moments) if !self.spec.normalize_on_use => {
                obs.normalized(&moments.normalization()).expect("the form was checked")
            }
            _ => obs,
        };
        match &self.team {
            Some(team) => obs.joint(self.spec.shared_width, team.clone()),
            None => obs,
        }
    }

    /// The noise of the next step: for the step, and for the start of episodes.
    fn next_noise(&mut self) -> (Tensor<2>, Tensor<2>) {
        let NoiseWidths { start, step } = self.dynamics.noise();
        let n_envs = self.spec.n_envs;
        // Without terminations the host knows when episodes start.
        let starts = self.dynamics.terminates();
        let widths = NoiseWidths { start: if starts { start } else { 0 }, step };
        let n_steps = NoiseBlock::n_steps(n_envs, widths);
        let (index, place) = (self.steps / n_steps as u64, (self.steps % n_steps as u64) as usize);
        let block = match self.noise.take() {
            Some(block) if block.index == index => block,
            _ => NoiseBlock::draw(self.seed, index, n_steps * n_envs, widths, &self.device),
        };
        let (drawn_starts, drawn_steps) = (block.start.clone(), block.step.clone());
        self.noise = Some(block);
        let rows = place * n_envs..(place + 1) * n_envs;
        let starting = match starts {
            true => drawn_starts.slice(rows.clone()),
            false if self.all_end_at(self.steps + 1) => {
                uniform(self.seed, "start", self.steps + 1, n_envs, start, &self.device)
            }
            false => Tensor::empty([n_envs, 0], &self.device),
        };
        (drawn_steps.slice(rows), starting)
    }

    fn tag() -> StateTag {
        StateTag::of::<D>(D::STATE_VERSION)
    }
}

impl<D: TensorDynamics, O: ObsForm> VecEnv for TensorEnv<D, O> {
    type Obs = O;
    type Action = Tensor<2>;

    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn device(&self) -> &Device {
        &self.device
    }

    fn reset(&mut self, seed: u64) -> Result<O, EnvError> {
        (self.seed, self.steps, self.noise) = (seed, 0, None);
        self.ended.clear();
        let width = self.dynamics.noise().start;
        let noise = uniform(seed, "start", 0, self.spec.n_envs, width, &self.device);
        Ok(self.reset_with(noise))
    }

    fn step(&mut self, action: Tensor<2>) -> Result<StepBatch<O>, EnvError> {
        let (step, start) = self.next_noise();
        Ok(self.step_with(action, step, start))
    }

    /// The log of ended episodes, the moments of observations, and a sum that is finite only if everything was.
    fn pending_episodes(&self) -> Option<Tensor<1>> {
        let state = self.state.as_ref()?;
        let mut parts: Vec<Tensor<1>> = Vec::new();
        let flat = |tensor: Tensor<2>| {
            let [rows, columns] = tensor.dims();
            tensor.reshape([rows * columns])
        };
        let sums = state.parts().into_iter().filter(|part| part.dims()[1] > 0).map(|part| part.sum());
        let running = self.running.as_ref().map(|running| running.clone().sum());
        let check = sums.chain(running).reduce(|a, b| a + b);
        parts.extend(check.map(|sum| sum.reshape([1])));
        if let Some(moments) = &self.moments {
            parts.extend(moments.tensors());
        }
        for logged in &self.log {
            parts.extend([flat(logged.ended.clone()), flat(logged.running.clone()), logged.check.clone()]);
        }
        Some(concat_rows(parts))
    }

    fn accept_episodes(&mut self, data: &[f32]) -> Result<(), EnvError> {
        let (n_envs, columns) = (self.spec.n_envs, 2 + self.spec.info_names.len());
        let Some((check, mut rest)) = data.split_first() else { return Ok(()) };
        let (seed, step) = (self.seed, self.steps);
        let verify = |env: usize, value: f32| match value.is_finite() {
            true => Ok(()),
            false => {
                let what = "state or reward of an environment on the device".to_owned();
                Err(EnvError::NotFinite { env, seed, step, what, value })
            }
        };
        verify(0, *check)?;
        if let Some(moments) = &mut self.moments {
            rest = moments.accept(rest);
        }
        for _ in self.log.drain(..) {
            let (ended, tail) = rest.split_at(n_envs);
            let (rows, tail) = tail.split_at(n_envs * columns);
            rest = &tail[1..];
            for (env, row) in rows.chunks_exact(columns).enumerate().filter(|(env, _)| ended[*env] > 0.5) {
                verify(env, row.iter().sum())?;
                let info = row[2..].iter().map(|x| f64::from(*x)).collect();
                let length = row[0] as u64;
                let info = self.spec.episode_figures(info, length);
                self.ended.push(Episode { env, episode_return: f64::from(row[1]), length, info });
            }
            verify(0, tail[0])?;
        }
        Ok(())
    }

    fn drain_episodes(&mut self, episodes: &mut Vec<Episode>) -> Result<(), EnvError> {
        if !self.log.is_empty() {
            let numbers: Vec<f32> = self.pending_episodes().map_or(Vec::new(), read_back);
            self.accept_episodes(&numbers)?;
        }
        episodes.append(&mut self.ended);
        Ok(())
    }

    fn obs_moments(&self) -> Option<&RunningMoments> {
        self.moments.as_ref().map(DeviceMoments::on_host)
    }

    fn set_obs_moments(&mut self, moments: &RunningMoments) -> Result<(), EnvError> {
        let width = self.own_width();
        let Some(own) = &mut self.moments else {
            return Err(EnvError::not_normalized());
        };
        moments.check_width(width)?;
        own.set(moments.clone(), &self.device);
        Ok(())
    }

    /// From the moments on the device, which are newer than those on the host.
    fn normalization(&self) -> Option<Normalization> {
        self.moments.as_ref().filter(|_| self.spec.normalize_on_use).map(DeviceMoments::normalization)
    }

    /// Reads from the device. Episodes that were not drained are not saved.
    fn save(&self) -> Vec<u8> {
        let mut parts = self.state.as_ref().map_or(Vec::new(), TensorState::parts);
        if let (Some(smoothing), true) = (&self.smoothing, self.state.is_some()) {
            parts.push(smoothing.save(self.spec.n_envs));
        }
        let running = self.running.clone();
        let numbers = |tensor: Tensor<2>| Part { width: tensor.dims()[1], values: read_back(tensor) };
        let saved = Saved {
            seed: self.seed,
            steps: self.steps,
            parts: parts.into_iter().map(numbers).collect(),
            running: running.map(numbers),
            moments: self.obs_moments().cloned(),
        };
        Self::tag().encode(self.n_envs(), &saved)
    }

    fn load(&mut self, bytes: &[u8]) -> Result<O, EnvError> {
        let saved: Saved = Self::tag().decode(self.n_envs(), bytes)?;
        let fail = |reason: &str| EnvError::State { reason: reason.to_owned() };
        let width = self.dynamics.noise().start;
        let mut example = self.dynamics.start(Tensor::zeros([self.spec.n_envs, width], &self.device)).parts();
        example.extend(self.smoothing.as_ref().map(|smoothing| smoothing.save(self.spec.n_envs)));
        let fits = |part: &Part, width: usize| part.width == width && part.values.len() == width * self.spec.n_envs;
        let widths = example.iter().map(|part| part.dims()[1]);
        if saved.parts.len() != example.len() || !saved.parts.iter().zip(widths).all(|(part, width)| fits(part, width))
        {
            return Err(fail("its tensors have other shapes"));
        }
        let Some(running) = saved.running.filter(|running| fits(running, 2 + self.spec.info_names.len())) else {
            return Err(fail("its statistics have another shape"));
        };
        let own_width = self.own_width();
        match (&mut self.moments, saved.moments) {
            (None, None) => {}
            (Some(own), Some(moments)) => {
                moments.check_width(own_width)?;
                own.set(moments, &self.device);
            }
            _ => return Err(fail("only one of the two normalizes observations")),
        }
        let n_envs = self.spec.n_envs;
        let upload =
            |part: Part| Tensor::<2>::from_data(TensorData::new(part.values, [n_envs, part.width]), &self.device);
        let mut parts: Vec<_> = saved.parts.into_iter().map(upload).collect();
        if let Some(smoothing) = &mut self.smoothing {
            smoothing.load(parts.pop().expect("it was counted above"));
        }
        let state = D::State::from_parts(parts);
        self.running = Some(upload(running));
        (self.seed, self.steps, self.noise) = (saved.seed, saved.steps, None);
        self.log.clear();
        self.ended.clear();
        let obs = self.shown(self.seen(&state));
        self.state = Some(state);
        Ok(obs)
    }
}
