//! Simple Spread for devices.

use brasa_core::{NoiseWidths, ObsParts, TensorDynamics, TensorStep, nearest_option};
use brasa_env::{EnvSpec, MultiAgentEnv};
use brasa_kernels::{Matrix, Value, elementwise};
use burn::tensor::{Device, Tensor, TensorData};

use super::{INFO, MESSAGE, Spread, SpreadConfig, SpreadEnv, TOUCH, agent_reward, nearest, seen, touch, width};
use crate::mpe::{COVER, MOVES, Point, THRUST, accelerated, contact, minus, moved, plus, thrust};

/// [`Spread`] for a device, with the rules of [`SpreadEnv`] in 32 bits: a step is three launches.
///
/// ```
/// # fn on(device: &burn::tensor::Device) -> Result<(), brasa_env::EnvError> {
/// use brasa_classic::tensor::TensorSpread;
/// use brasa_classic::{Spread, SpreadConfig};
/// use brasa_core::{TensorEnv, VecEnv};
///
/// // 64 environments on `device`, with the time limit of the scenario.
/// let (dynamics, steps): (TensorSpread, u32) = Spread::new(SpreadConfig::default())?.tensors(device);
/// let mut envs = TensorEnv::<_>::new(dynamics, 64, device)?.with_time_limit(steps)?;
/// envs.reset(7)?;
/// assert_eq!(envs.spec().n_rows(), 192);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct TensorSpread {
    config: SpreadConfig,
    /// Of one environment.
    spec: EnvSpec,
    /// 0, 1, ..., `[n_agents, 1]`.
    agents: Tensor<2>,
}

impl Spread {
    /// The environments as tensor operations on `device`, and the steps of an episode.
    ///
    /// The example of [`TensorSpread`] steps them.
    pub fn tensors(&self, device: &Device) -> (TensorSpread, u32) {
        let n = self.config().n_agents;
        let agents = TensorData::new((0..n).map(|agent| agent as f32).collect(), [n, 1]);
        let tensors = TensorSpread {
            config: self.config().clone(),
            spec: SpreadEnv::new(self.config()).spec(),
            agents: Tensor::from_data(agents, device),
        };
        (tensors, self.config().episode_steps)
    }
}

/// Parts of a state, each with a column per agent or landmark.
#[derive(Clone, Copy)]
enum Part {
    Position,
    Speed,
    Landmark,
}

/// A state in formulas.
#[derive(Clone, Copy)]
struct Plane<'a> {
    state: Matrix<'a>,
    n: usize,
}

impl<'a> Plane<'a> {
    /// The numbers of a part that `one` reads from their columns.
    fn read(self, part: Part, one: impl Fn(Matrix<'a>, std::ops::Range<usize>) -> Value<'a>) -> Point<Value<'a>> {
        [0, 1].map(|axis| {
            let from = (2 * part as usize + axis) * self.n;
            one(self.state, from..from + self.n)
        })
    }

    /// Of each agent or landmark, in formulas with a column for each.
    fn each(self, part: Part) -> Point<Value<'a>> {
        self.read(part, Matrix::columns)
    }

    /// Of one agent or landmark.
    fn one(self, part: Part, index: usize) -> Point<Value<'a>> {
        self.read(part, |state, columns| state.column(columns.start + index))
    }

    /// Of the agent with a number that is a value.
    fn pick(self, part: Part, index: Value<'a>) -> Point<Value<'a>> {
        self.read(part, |state, columns| state.pick(columns, index))
    }
}

impl TensorDynamics for TensorSpread {
    /// `[n_envs, 6 * n_agents]`: positions, speeds and landmarks; of each first all x, then all y.
    type State = Tensor<2>;

    fn spec(&self, n_envs: usize) -> EnvSpec {
        self.spec.with_n_envs(n_envs)
    }

    /// Two for each agent, then two for each landmark, in the order in which the host draws them.
    fn noise(&self) -> NoiseWidths {
        NoiseWidths { start: 4 * self.config.n_agents, step: 0 }
    }

    fn terminates(&self) -> bool {
        false
    }

    fn start(&self, noise: Tensor<2>) -> Tensor<2> {
        let n = self.config.n_agents;
        let agents = self.agents.clone().transpose();
        let [state] = elementwise([noise.dims()[0], n], |formulas| {
            let (noise, index) = (formulas.matrix(&noise), formulas.read(&agents));
            let place =
                |from: usize| [0, 1].map(|axis| noise.pick(0..4 * n, index * 2.0 + (from + axis) as f64) * 2.0 - 1.0);
            [[place(0), [formulas.constant(0.0); 2], place(2 * n)].concat()]
        });
        state
    }

    fn observe(&self, state: &Tensor<2>) -> ObsParts {
        let (n, n_envs) = (self.config.n_agents, state.dims()[0]);
        let [obs] = elementwise([n_envs * n, 1], |formulas| {
            let plane = Plane { state: formulas.matrix(state), n };
            let agent = formulas.cycle(&self.agents).column(0);
            let landmarks = (0..n).map(|landmark| plane.one(Part::Landmark, landmark));
            // The others are those before the agent, then those behind it.
            let others = (0..n - 1).map(|other| {
                let other = agent.greater(other as f64).select(other as f64, formulas.constant(other as f64 + 1.0));
                plane.pick(Part::Position, other)
            });
            let own = [Part::Speed, Part::Position].map(|part| plane.pick(part, agent));
            let seen = seen(own[0], own[1], landmarks.chain(others)).flatten();
            let messages = vec![formulas.constant(0.0); MESSAGE * (n - 1)];
            let row: Vec<_> = seen.chain(messages).collect();
            debug_assert_eq!(row.len(), width(n), "the row is that of the host");
            [row]
        });
        ObsParts { shared: None, own: Some(obs), mask: None, n_agents: n, actions_per_flag: 1 }
    }

    fn step(&self, state: Tensor<2>, action: Tensor<2>, _: Tensor<2>, _: Option<u64>) -> TensorStep<Tensor<2>> {
        let (n, n_envs) = (self.config.n_agents, state.dims()[0]);
        let action = action.reshape([n_envs, n]);
        let [state, outcome] = elementwise([n_envs, n], |formulas| {
            let plane = Plane { state: formulas.matrix(&state), n };
            let [position, speed, landmark] =
                [Part::Position, Part::Speed, Part::Landmark].map(|part| plane.each(part));
            let others = || (0..n).map(|other| plane.one(Part::Position, other));
            let pushed = thrust(nearest_option(formulas.read(&action), MOVES), THRUST);
            // An agent that is at its own place does not push itself.
            let force = others().fold(pushed, |force, other| plus(force, contact(minus(position, other), TOUCH)));
            let after = moved(position, speed);
            let all = || others().zip(0..n).map(|(other, index)| moved(other, plane.one(Part::Speed, index)));
            let distance = nearest(landmark, all());
            // An agent touches itself.
            let touches = all().map(|other| touch(after, other)).fold(formulas.constant(-1.0), |sum, one| sum + one);
            let covered = distance.lower(COVER);
            let state = [after, accelerated(speed, force), landmark].concat();
            [state, vec![distance, touches, covered]]
        });
        let [reward, info] = elementwise([n_envs, 1], |formulas| {
            let outcome = formulas.matrix(&outcome);
            let sum = |part: usize| outcome.sum(part * n..(part + 1) * n);
            let distance = sum(0);
            let reward = |agent| agent_reward(distance, outcome.column(n + agent), self.config.local_ratio);
            let figures: [_; INFO.len()] = [distance, sum(2), sum(1) / 2.0];
            [(0..n).map(reward).collect(), figures.to_vec()]
        });
        TensorStep { state, reward: reward.reshape([n_envs * n]), terminated: None, info: Some(info) }
    }
}
