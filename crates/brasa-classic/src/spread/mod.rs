//! Simple Spread: agents that share a plane cover landmarks without touching each other.

mod rule;
mod scenario;
#[cfg(feature = "tensor")]
pub(crate) mod tensor;

use std::ops::Range;

use brasa_env::{Ending, EnvRng, EnvSpec, InvalidField, MultiAgentEnv, Space, StepOut, View, field};
use brasa_number::Number;
use rand::RngExt;
use serde::{Deserialize, Serialize};

use crate::mpe::{COVER, MOVES, Point, THRUST, advance, chosen, collide, length, minus, plus, thrust};
pub use scenario::Spread;

/// Settings of [`Spread`]; the defaults are those of `simple_spread_v3`.
///
/// ```
/// use brasa_classic::SpreadConfig;
///
/// assert!(SpreadConfig::default().validate().is_ok());
/// let error = SpreadConfig { local_ratio: 1.5, ..SpreadConfig::default() }.validate().unwrap_err();
/// assert_eq!(error.to_string(), "`local_ratio` must be in [0, 1], got 1.5");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SpreadConfig {
    /// Number of agents and of landmarks, 1 to 64. Default: 3. An observation has 6 numbers for each, and exploration gets harder.
    pub n_agents: usize,
    /// Share of an agent's own touches in its reward; the rest is for the landmarks, which all share. Default: 0.5. At 0, touches cost nothing;
    /// at 1, nobody covers anything.
    pub local_ratio: f64,
    /// Steps of an episode. Default: 25. With fewer, agents do not reach their landmarks.
    pub episode_steps: u32,
}

impl Default for SpreadConfig {
    fn default() -> Self {
        Self { n_agents: 3, local_ratio: 0.5, episode_steps: 25 }
    }
}

impl SpreadConfig {
    /// Rejects invalid settings.
    ///
    /// # Errors
    /// [`InvalidField`] for the first setting outside of its range.
    pub fn validate(&self) -> Result<(), InvalidField> {
        field::within("n_agents", self.n_agents as f64, 1.0, 64.0)?;
        field::share("local_ratio", self.local_ratio)?;
        field::at_least_one("episode_steps", u64::from(self.episode_steps))
    }
}

/// Figures of a step: the sum of the distances of the landmarks from their nearest agents, covered landmarks, and pairs of agents that touch.
const INFO: [&str; 3] = ["landmark_distance", "covered", "touches"];
/// Distance of two agents that touch.
const TOUCH: f64 = 0.3;
/// Numbers of the messages of another agent, which are always 0: agents of this task are silent.
const MESSAGE: usize = 2;

/// The distance of a landmark from its nearest agent.
#[inline(always)]
fn nearest<N: Number>(landmark: Point<N>, agents: impl Iterator<Item = Point<N>>) -> N {
    let distances = agents.map(|agent| length(minus(agent, landmark)));
    distances.reduce(N::min).expect("there is an agent")
}

/// Whether two agents touch.
#[inline(always)]
fn touch<N: Number>(one: Point<N>, other: Point<N>) -> N::Mask {
    let distance = length(minus(one, other));
    distance.lower(distance.constant(TOUCH))
}

/// The reward of an agent, from the sum of the distances of landmarks and the number of agents that it touches.
#[inline(always)]
fn agent_reward<N: Number>(distances: N, touches: N, local_ratio: f64) -> N {
    -distances * (1.0 - local_ratio) - touches * local_ratio
}

/// What an agent sees, without messages. `around` has the places of landmarks, then of other agents.
#[inline(always)]
fn seen<N: Number>(
    speed: Point<N>,
    own: Point<N>,
    around: impl Iterator<Item = Point<N>>,
) -> impl Iterator<Item = Point<N>> {
    [speed, own].into_iter().chain(around.map(move |place| minus(place, own)))
}

/// One environment.
#[derive(Debug, Clone)]
struct Plane {
    steps: u32,
    positions: Vec<Point>,
    speeds: Vec<Point>,
    landmarks: Vec<Point>,
}

impl Plane {
    /// One step of the physics. `forces` has the thrusts of the agents.
    fn push(&mut self, forces: &mut [Point]) {
        for a in 0..forces.len() {
            for b in a + 1..forces.len() {
                if let Some(force) = collide(self.positions[a], self.positions[b], TOUCH) {
                    forces[a] = plus(forces[a], force);
                    forces[b] = minus(forces[b], force);
                }
            }
        }
        advance(&mut self.positions, &mut self.speeds, forces);
    }

    /// The distance of every landmark from its nearest agent.
    fn distances(&self) -> impl Iterator<Item = f64> {
        self.landmarks.iter().map(|landmark| nearest(*landmark, self.positions.iter().copied()))
    }

    /// Writes how many other agents each agent touches.
    fn count_touches(&self, touches: &mut [u32]) {
        touches.fill(0);
        for (a, own) in self.positions.iter().enumerate() {
            for (b, other) in self.positions.iter().enumerate().skip(a + 1) {
                let touch = u32::from(touch(*other, *own));
                touches[a] += touch;
                touches[b] += touch;
            }
        }
    }

    fn observe(&self, obs: &mut [f32]) {
        for (agent, row) in obs.chunks_exact_mut(width(self.positions.len())).enumerate() {
            let own = self.positions[agent];
            let others = self.positions[..agent].iter().chain(&self.positions[agent + 1..]);
            let around = self.landmarks.iter().chain(others).copied();
            let (slots, messages) = row.split_at_mut(row.len() - MESSAGE * (self.positions.len() - 1));
            let (slots, _) = slots.as_chunks_mut::<2>();
            let points = seen(self.speeds[agent], own, around);
            slots.iter_mut().zip(points).for_each(|(slot, point)| *slot = point.map(|number| number as f32));
            messages.fill(0.0);
        }
    }
}

/// Numbers of the observation of one of `n` agents.
fn width(n: usize) -> usize {
    4 + 2 * n + (n - 1) * (2 + MESSAGE)
}

/// Agents on a plane: an environment of [`Spread`], with the physics, rewards and observations of `simple_spread_v3` of
/// [MPE2](https://mpe2.farama.org/environments/simple_spread/) (Lowe et al. 2017), in its order of operations.
///
/// # Observations
/// Own speed and position, the landmarks and then the other agents relative to it, and two zeros for each other agent, which MPE reserves for
/// messages.
///
/// # Actions
/// 0 nothing, 1 left, 2 right, 3 down, 4 up.
///
/// # Rewards
/// `-(1 - local_ratio)` times the sum of the distances of the landmarks from their nearest agents, minus `local_ratio` times the number of other
/// agents that this agent touches.
///
/// ```
/// use brasa_classic::{Spread, SpreadConfig};
/// use brasa_env::{BatchSlabs, EnvBatch};
/// use ndarray::Array2;
///
/// let spread = Spread::new(SpreadConfig::default())?;
/// let mut batch = spread.batch(0..2)?;
/// let mut slabs = BatchSlabs::new(batch.spec());
/// batch.reset(0, &mut slabs)?;
/// // Two environments of three agents.
/// assert_eq!(slabs.obs.dim(), (6, 18));
/// batch.step(Array2::zeros((6, 1)).view(), &mut slabs)?;
/// assert!(slabs.reward.iter().all(|reward| *reward < 0.0));
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug, Clone)]
pub struct SpreadEnv {
    config: SpreadConfig,
    plane: Plane,
    /// Memory of a step.
    forces: Vec<Point>,
    touches: Vec<u32>,
}

impl SpreadEnv {
    fn new(config: &SpreadConfig) -> Self {
        let n = config.n_agents;
        let points = || vec![[0.0; 2]; n];
        let plane = Plane { steps: 0, positions: points(), speeds: points(), landmarks: points() };
        Self { config: config.clone(), plane, forces: points(), touches: vec![0; n] }
    }
}

impl MultiAgentEnv for SpreadEnv {
    /// Steps; positions, speeds and landmarks.
    type State = (u32, [Vec<Point>; 3]);

    fn spec(&self) -> EnvSpec {
        let n = self.config.n_agents;
        let points = |name: &str, ids: Range<usize>| -> Vec<String> {
            ids.flat_map(|id| ["x", "y"].map(|axis| format!("{name}_{id}_{axis}"))).collect()
        };
        let own = ["speed_x", "speed_y", "x", "y"].map(str::to_owned).to_vec();
        let names = [own, points("landmark", 0..n), points("other", 0..n - 1), points("message", 0..n - 1)].concat();
        EnvSpec {
            n_agents: n,
            truncation_interval: u64::from(self.config.episode_steps),
            info_names: INFO.map(str::to_owned).to_vec(),
            info_means: INFO.map(str::to_owned).to_vec(),
            ..EnvSpec::new(Space::uniform_box(f32::NEG_INFINITY, f32::INFINITY, names), Space::Discrete(MOVES), 1)
        }
    }

    fn reset(&mut self, rng: &mut EnvRng, view: View<'_>) {
        let plane = &mut self.plane;
        for point in plane.positions.iter_mut().chain(&mut plane.landmarks) {
            *point = [(); 2].map(|()| rng.random_range(-1.0..1.0));
        }
        plane.speeds.fill([0.0; 2]);
        plane.steps = 0;
        plane.observe(view.obs);
    }

    fn step(&mut self, actions: &[f32], _: &mut EnvRng, next: View<'_>, out: StepOut<'_>) -> Ending {
        let plane = &mut self.plane;
        self.forces
            .iter_mut()
            .zip(actions.chunks_exact(1))
            .for_each(|(force, action)| *force = thrust(chosen(action), THRUST));
        plane.push(&mut self.forces);
        plane.steps += 1;
        let (mut sum, mut covered) = (0.0, 0);
        for distance in plane.distances() {
            sum += distance;
            covered += usize::from(distance < COVER);
        }
        plane.count_touches(&mut self.touches);
        let share = self.config.local_ratio;
        for (own, reward) in self.touches.iter().zip(out.reward.iter_mut()) {
            *reward = agent_reward(sum, f64::from(*own), share) as f32;
        }
        let touches = f64::from(self.touches.iter().sum::<u32>());
        out.info.copy_from_slice(&[sum, covered as f64, touches / 2.0]);
        plane.observe(next.obs);
        Ending::of(false, plane.steps >= self.config.episode_steps)
    }

    fn state(&self) -> Self::State {
        let Plane { steps, positions, speeds, landmarks } = self.plane.clone();
        (steps, [positions, speeds, landmarks])
    }

    fn set_state(&mut self, (steps, [positions, speeds, landmarks]): Self::State) {
        self.plane = Plane { steps, positions, speeds, landmarks };
    }
}

#[cfg(test)]
mod tests {
    use brasa_env::{Evaluation, Scenario, Who, check_env, episode_rng};

    use super::*;
    use crate::mpe::recorded::Recorded;

    #[derive(Deserialize)]
    struct Episode {
        local_ratio: f64,
        positions: Vec<Point>,
        landmarks: Vec<Point>,
        #[serde(flatten)]
        recorded: Recorded,
    }

    /// Recorded from MPE2 by `scripts/record_mpe.py`.
    #[test]
    fn episodes_are_those_of_mpe() {
        let text = include_str!("../../tests/data/spread.json");
        let episodes: Vec<Episode> = serde_json::from_str(text).expect("the recording is well-formed");
        assert_eq!(episodes.len(), 8);
        let mut n_touches = 0;
        for (index, episode) in episodes.iter().enumerate() {
            let n = episode.positions.len();
            let config = SpreadConfig { n_agents: n, local_ratio: episode.local_ratio, ..SpreadConfig::default() };
            let mut env = SpreadEnv::new(&config);
            (env.plane.positions, env.plane.landmarks) = (episode.positions.clone(), episode.landmarks.clone());
            let (spec, rng) = (env.spec(), &mut episode_rng(0, 0, 0));
            for info in episode.recorded.replay(&spec, index, |actions, view, out| env.step(actions, rng, view, out)) {
                n_touches += info[2] as usize;
            }
        }
        assert!(n_touches >= 19, "agents touch {n_touches} times");
    }

    #[test]
    fn the_contract_holds() {
        let spread = Spread::new(SpreadConfig::default()).expect("the defaults are valid");
        check_env(60, |envs| spread.batch(envs)).expect("it holds");
        // No episode is above its bound.
        let returns = |name| {
            let outcomes = spread.evaluate(Who::Baseline(name), &Evaluation::new(200, 3)).expect("it plays");
            outcomes.into_iter().map(|outcome| outcome.episode_return.expect("there is one")).collect::<Vec<_>>()
        };
        for (bound, rule) in returns("bound").into_iter().zip(returns("rule-based")) {
            assert!(bound >= rule, "{bound} {rule}");
        }
    }
}
