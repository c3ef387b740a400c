//! Simple Reference: two agents tell each other where to go.

use std::ops::Range;

use brasa_env::{
    Baseline, BaselineKind, BatchSlabs, Curve, Ending, EnvBatch, EnvError, EnvRng, EnvSpec, EnvVec, EpisodeData,
    Evaluation, Figure, InvalidField, MultiAgentEnv, Outcome, Scenario, Space, Split, StepOut, View, Who, field,
    option_index,
};
use ndarray::{ArrayView1, ArrayViewMut2};
use rand::RngExt;
use serde::{Deserialize, Serialize};

use crate::mpe::{
    self, Bounded, COVER, DAMPING, MOVES, Point, STEP, THRUST, advance, chosen, length, minus, point, thrust, towards,
};
use crate::scenario::{BOUND, RANDOM, RULE};

/// Settings of [`Reference`]; the defaults are those of `simple_reference_v3`.
///
/// ```
/// use brasa_classic::ReferenceConfig;
///
/// assert!(ReferenceConfig::default().validate().is_ok());
/// let error = ReferenceConfig { local_ratio: -0.5, ..ReferenceConfig::default() }.validate().unwrap_err();
/// assert_eq!(error.to_string(), "`local_ratio` must be in [0, 1], got -0.5");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReferenceConfig {
    /// Share of the agent that this agent guides in its reward; the rest is the mean over both. Default: 0.5. At 1, an agent has nothing from
    /// going where it is sent.
    pub local_ratio: f64,
    /// Steps of an episode. Default: 25. With fewer, agents do not reach their landmarks.
    pub episode_steps: u32,
}

impl Default for ReferenceConfig {
    fn default() -> Self {
        Self { local_ratio: 0.5, episode_steps: 25 }
    }
}

impl ReferenceConfig {
    /// Rejects invalid settings.
    ///
    /// # Errors
    /// [`InvalidField`] for the first setting outside of its range.
    pub fn validate(&self) -> Result<(), InvalidField> {
        field::share("local_ratio", self.local_ratio)?;
        field::at_least_one("episode_steps", u64::from(self.episode_steps))
    }
}

const AGENTS: usize = 2;
const LANDMARKS: usize = 3;
/// Words that an agent may say.
const WORDS: usize = 10;
/// The color of each landmark, by which an agent sees where the other one should go.
const COLORS: [[f32; 3]; LANDMARKS] = [[0.75, 0.25, 0.25], [0.25, 0.75, 0.25], [0.25, 0.25, 0.75]];
/// The columns of the color and of the word of the other agent.
const COLOR: usize = 2 + 2 * LANDMARKS;
const WORD: usize = COLOR + 3;
/// Numbers of an observation.
const WIDTH: usize = WORD + WORDS;
/// Figures of a step: the mean distance of the agents from their landmarks, and agents that are there.
const INFO: [&str; 2] = ["goal_distance", "at_goal"];

/// One environment.
#[derive(Debug, Clone, Default)]
struct Plane {
    steps: u32,
    positions: [Point; AGENTS],
    speeds: [Point; AGENTS],
    landmarks: [Point; LANDMARKS],
    /// The landmark of each agent, which the other one knows.
    goals: [usize; AGENTS],
    /// What each agent has said; nothing before the first step.
    said: [Option<usize>; AGENTS],
}

impl Plane {
    fn distance(&self, agent: usize) -> f64 {
        length(minus(self.positions[agent], self.landmarks[self.goals[agent]]))
    }

    fn observe(&self, obs: &mut [f32]) {
        for (agent, row) in obs.chunks_exact_mut(WIDTH).enumerate() {
            let (own, other) = (self.positions[agent], 1 - agent);
            let points = [self.speeds[agent]].into_iter().chain(self.landmarks.map(|landmark| minus(landmark, own)));
            let (slots, _) = row[..COLOR].as_chunks_mut::<2>();
            slots.iter_mut().zip(points).for_each(|(slot, point)| *slot = point.map(|number| number as f32));
            row[COLOR..WORD].copy_from_slice(&COLORS[self.goals[other]]);
            row[WORD..].fill(0.0);
            if let Some(word) = self.said[other] {
                row[WORD + word] = 1.0;
            }
        }
    }
}

/// Two agents on a plane: an environment of [`Reference`], with the physics, rewards and observations of `simple_reference_v3` of
/// [MPE2](https://mpe2.farama.org/environments/simple_reference/) (Lowe et al. 2017), in its order of operations.
///
/// # Observations
/// Own speed, three landmarks relative to the agent, the color of the landmark of the other agent, and the word that the other agent has said in the
/// latest step, as ten flags.
///
/// # Actions
/// Two choices: 0 nothing, 1 left, 2 right, 3 down, 4 up; and one of ten words. MPE has one choice of their 50 pairs.
///
/// # Rewards
/// Minus `local_ratio` times the distance of the other agent from its landmark, minus the rest times the mean distance of both.
///
/// ```
/// use brasa_classic::{Reference, ReferenceConfig};
/// use brasa_env::{BatchSlabs, EnvBatch};
/// use ndarray::Array2;
///
/// let mut batch = Reference::new(ReferenceConfig::default())?.batch(0..3)?;
/// let mut slabs = BatchSlabs::new(batch.spec());
/// batch.reset(0, &mut slabs)?;
/// // Three environments of two agents. Nobody has said anything.
/// assert_eq!((slabs.obs.dim(), slabs.obs[[0, 11]]), ((6, 21), 0.0));
/// batch.step(Array2::zeros((6, 2)).view(), &mut slabs)?;
/// assert_eq!(slabs.obs[[0, 11]], 1.0);
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ReferenceEnv {
    config: ReferenceConfig,
    plane: Plane,
}

impl ReferenceEnv {
    fn new(config: &ReferenceConfig) -> Self {
        Self { config: config.clone(), plane: Plane::default() }
    }
}

impl MultiAgentEnv for ReferenceEnv {
    /// Steps; positions, speeds and landmarks; goals; what was said.
    type State = (u32, [Vec<Point>; 3], [usize; AGENTS], [Option<usize>; AGENTS]);

    fn spec(&self) -> EnvSpec {
        let landmarks = (0..LANDMARKS).flat_map(|id| ["x", "y"].map(|axis| format!("landmark_{id}_{axis}")));
        let color = ["red", "green", "blue"].map(|color| format!("goal_of_other_{color}"));
        let words = (0..WORDS).map(|word| format!("heard_{word}"));
        let speed = ["speed_x", "speed_y"].map(str::to_owned);
        let names: Vec<String> = speed.into_iter().chain(landmarks).chain(color).chain(words).collect();
        let action = Space::MultiDiscrete(vec![MOVES, WORDS]);
        EnvSpec {
            n_agents: AGENTS,
            truncation_interval: u64::from(self.config.episode_steps),
            info_names: INFO.map(str::to_owned).to_vec(),
            info_means: INFO.map(str::to_owned).to_vec(),
            ..EnvSpec::new(Space::uniform_box(f32::NEG_INFINITY, f32::INFINITY, names), action, 1)
        }
    }

    fn reset(&mut self, rng: &mut EnvRng, view: View<'_>) {
        let mut place = || [(); 2].map(|()| rng.random_range(-1.0..1.0));
        let (positions, landmarks) = ([place(), place()], [place(), place(), place()]);
        let goals = [(); AGENTS].map(|()| rng.random_range(0..LANDMARKS as u32) as usize);
        self.plane = Plane { positions, landmarks, goals, ..Plane::default() };
        self.plane.observe(view.obs);
    }

    fn step(&mut self, actions: &[f32], _: &mut EnvRng, next: View<'_>, out: StepOut<'_>) -> Ending {
        let plane = &mut self.plane;
        let mut forces = [[0.0; 2]; AGENTS];
        for (agent, action) in actions.chunks_exact(2).enumerate() {
            forces[agent] = thrust(chosen(action), THRUST);
            plane.said[agent] = Some(option_index(ArrayView1::from(action), 1, WORDS));
        }
        advance(&mut plane.positions, &mut plane.speeds, &forces);
        plane.steps += 1;
        let distances = [0, 1].map(|agent| plane.distance(agent));
        let (mean, local) = ((distances[0] + distances[1]) / 2.0, self.config.local_ratio);
        for (agent, reward) in out.reward.iter_mut().enumerate() {
            *reward = (-mean * (1.0 - local) - distances[1 - agent] * local) as f32;
        }
        let there = distances.iter().filter(|distance| **distance < COVER).count();
        out.info.copy_from_slice(&[mean, there as f64]);
        plane.observe(next.obs);
        Ending::of(false, plane.steps >= self.config.episode_steps)
    }

    fn state(&self) -> Self::State {
        let Plane { steps, positions, speeds, landmarks, goals, said } = self.plane.clone();
        (steps, [positions.to_vec(), speeds.to_vec(), landmarks.to_vec()], goals, said)
    }

    fn set_state(&mut self, (steps, [positions, speeds, landmarks], goals, said): Self::State) {
        let plane = Plane { steps, goals, said, ..Plane::default() };
        self.plane = plane;
        self.plane.positions.copy_from_slice(&positions);
        self.plane.speeds.copy_from_slice(&speeds);
        self.plane.landmarks.copy_from_slice(&landmarks);
    }
}

impl Bounded for ReferenceEnv {
    /// An agent is no nearer than its distance at the start, minus the way that it can fly by then.
    fn bound(&self) -> f64 {
        let starts = [0, 1].map(|agent| self.plane.distance(agent));
        let (mut way, mut speed, mut sum) = (0.0, 0.0, 0.0);
        for _ in 0..self.config.episode_steps {
            way += speed * STEP;
            speed = speed * (1.0 - DAMPING) + THRUST * (1.0 + 1e-9) * STEP;
            sum += starts.iter().map(|start| f64::max(start - way, 0.0)).sum::<f64>() / 2.0;
        }
        -sum
    }
}

/// Simple Reference of MPE: each of two agents must go to one of three landmarks that only the other one knows, so they must talk.
///
/// In the baseline `rule-based`, agents say the number of a landmark, and go where they are sent. `bound` is a proven upper bound of the return of an
/// episode: every agent flies straight to its landmark from the first step on.
///
/// ```
/// use brasa_classic::{Reference, ReferenceConfig};
/// use brasa_env::{Evaluation, Scenario, Who};
///
/// let reference = Reference::new(ReferenceConfig::default())?;
/// let mean = |name| -> Result<f64, brasa_env::EnvError> {
///     let outcomes = reference.evaluate(Who::Baseline(name), &Evaluation::new(50, 0))?;
///     Ok(outcomes.iter().map(|outcome| outcome.episode_return.unwrap()).sum::<f64>() / 50.0)
/// };
/// let (random, rule, bound) = (mean("random")?, mean("rule-based")?, mean("bound")?);
/// assert!(random < -20.0 && rule > 0.6 * random && bound > rule);
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Reference {
    config: ReferenceConfig,
}

impl Reference {
    /// Checks the settings.
    ///
    /// # Errors
    /// [`EnvError::Argument`] for the first invalid setting.
    pub fn new(config: ReferenceConfig) -> Result<Self, EnvError> {
        config.validate()?;
        Ok(Self { config })
    }

    /// The settings.
    pub fn config(&self) -> &ReferenceConfig {
        &self.config
    }

    /// Environments with the global indices `envs`; the index addresses the random numbers.
    ///
    /// # Errors
    /// [`EnvError::Argument`] for an empty range.
    pub fn batch(&self, envs: Range<usize>) -> Result<EnvVec<ReferenceEnv>, EnvError> {
        EnvVec::multi_agent(envs, |_| ReferenceEnv::new(&self.config))
    }
}

/// Each agent says the number of the landmark of the other one, and goes to that of which it has heard.
fn talk(view: &BatchSlabs, mut actions: ArrayViewMut2<f32>) -> Result<(), EnvError> {
    for (row, mut action) in view.obs.rows().into_iter().zip(actions.rows_mut()) {
        let named = |landmark: &usize| row[COLOR + landmark] > 0.5;
        action[1] = (0..LANDMARKS).find(named).unwrap_or(0) as f32;
        let heard = (0..LANDMARKS).find(|landmark| row[WORD + landmark] > 0.5);
        action[0] = heard.map_or(0.0, |landmark| towards(point(row, 0), point(row, 2 + 2 * landmark)));
    }
    Ok(())
}

impl Scenario for Reference {
    fn envs(&self, _: Split, envs: Range<usize>) -> Result<Box<dyn EnvBatch>, EnvError> {
        Ok(Box::new(self.batch(envs)?))
    }

    fn figures(&self) -> Vec<Figure> {
        let [distance, there] = INFO;
        vec![
            Figure::new(distance, "distance from goals").less_is_better(),
            Figure::new(there, "agents at their goals").more_is_better(),
        ]
    }

    fn baselines(&self) -> Vec<Baseline> {
        vec![
            Baseline::new(RANDOM, BaselineKind::Idle).random(),
            Baseline::new(RULE, BaselineKind::Heuristic).by(|| Box::new(talk)),
            Baseline::new(BOUND, BaselineKind::Bound),
        ]
    }

    /// Every episode starts in a random state.
    fn data(&self, _: Split) -> EpisodeData {
        EpisodeData::Sampled
    }

    fn curves(&self) -> Vec<Curve> {
        vec![Curve {
            label: "agents at their goals".to_owned(),
            metric: "rollout/at_goal".to_owned(),
            divided_by: None,
            evaluated: Some("eval/at_goal".to_owned()),
            figure: Some("at_goal".to_owned()),
        }]
    }

    fn evaluate(&self, who: Who<'_>, evaluation: &Evaluation) -> Result<Vec<Outcome>, EnvError> {
        mpe::evaluate(self, || ReferenceEnv::new(&self.config), who, evaluation)
    }
}

#[cfg(test)]
mod tests {
    use brasa_env::{check_env, episode_rng};

    use super::*;
    use crate::mpe::recorded::Recorded;

    #[derive(Deserialize)]
    struct Episode {
        local_ratio: f64,
        positions: [Point; AGENTS],
        landmarks: [Point; LANDMARKS],
        goals: [usize; AGENTS],
        #[serde(flatten)]
        recorded: Recorded,
    }

    /// Recorded from MPE2 by `scripts/record_mpe.py`.
    #[test]
    fn episodes_are_those_of_mpe() {
        let text = include_str!("../tests/data/reference.json");
        let episodes: Vec<Episode> = serde_json::from_str(text).expect("the recording is well-formed");
        assert_eq!(episodes.len(), 6);
        for (index, episode) in episodes.iter().enumerate() {
            let config = ReferenceConfig { local_ratio: episode.local_ratio, ..ReferenceConfig::default() };
            let Episode { positions, landmarks, goals, .. } = *episode;
            let mut env = ReferenceEnv::new(&config);
            env.plane = Plane { positions, landmarks, goals, ..Plane::default() };
            let (spec, rng) = (env.spec(), &mut episode_rng(0, 0, 0));
            episode.recorded.replay(&spec, index, |actions, view, out| env.step(actions, rng, view, out));
        }
    }

    #[test]
    fn the_contract_holds() {
        let reference = Reference::new(ReferenceConfig::default()).expect("the defaults are valid");
        check_env(60, |envs| reference.batch(envs)).expect("it holds");
        // No episode is above its bound, and who does not talk is far below.
        let returns = |name| {
            let outcomes = reference.evaluate(Who::Baseline(name), &Evaluation::new(200, 3)).expect("it plays");
            outcomes.into_iter().map(|outcome| outcome.episode_return.expect("there is one")).collect::<Vec<_>>()
        };
        let (bound, rule) = (returns("bound"), returns("rule-based"));
        assert!(bound.iter().zip(&rule).all(|(bound, rule)| bound >= rule));
        let mean = |returns: &[f64]| returns.iter().sum::<f64>() / returns.len() as f64;
        assert!(mean(&rule) > 0.5 * mean(&returns("random")), "{}", mean(&rule));
    }
}
