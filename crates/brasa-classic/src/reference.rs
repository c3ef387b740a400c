//! Simple Reference: two agents tell each other where to go.

use std::ops::Range;

use brasa_env::{
    Autoreset, Baseline, BaselineKind, BatchSlabs, Curve, Ending, EnvBatch, EnvError, EnvSpec, EpisodeData, Evaluation,
    Figure, InvalidField, Outcome, Scenario, Simulation, Space, Split, StateTag, StepOut, View, Who, episode_rng,
    field, option_index,
};
use ndarray::{ArrayView1, ArrayViewMut2};
use rand::RngExt;
use serde::{Deserialize, Serialize};

use crate::mpe::{self, COVER, DAMPING, MOVES, Point, STEP, THRUST, advance, length, minus, point, thrust, towards};
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
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Plane {
    episode: u64,
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

/// Environments of [`Reference`] as a batch.
pub type ReferenceBatch = Autoreset<ReferenceSimulation>;

/// Two agents on planes: the environments of [`Reference`], with the physics, rewards and observations of `simple_reference_v3` of
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
/// let mut batch = Reference::new(ReferenceConfig::default())?.batch(0..3);
/// let mut slabs = BatchSlabs::new(batch.spec());
/// batch.reset(0, &mut slabs)?;
/// // Three environments of two agents. Nobody has said anything.
/// assert_eq!((slabs.obs.dim(), slabs.obs[[0, 11]]), ((6, 21), 0.0));
/// batch.step(Array2::zeros((6, 2)).view(), &mut slabs)?;
/// assert_eq!(slabs.obs[[0, 11]], 1.0);
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug)]
pub struct ReferenceSimulation {
    config: ReferenceConfig,
    spec: EnvSpec,
    first_env: usize,
    seed: u64,
    planes: Vec<Plane>,
}

impl ReferenceSimulation {
    fn new(config: &ReferenceConfig, envs: Range<usize>) -> Self {
        let landmarks = (0..LANDMARKS).flat_map(|id| ["x", "y"].map(|axis| format!("landmark_{id}_{axis}")));
        let color = ["red", "green", "blue"].map(|color| format!("goal_of_other_{color}"));
        let words = (0..WORDS).map(|word| format!("heard_{word}"));
        let speed = ["speed_x", "speed_y"].map(str::to_owned);
        let names: Vec<String> = speed.into_iter().chain(landmarks).chain(color).chain(words).collect();
        let action = Space::MultiDiscrete(vec![MOVES, WORDS]);
        let spec = EnvSpec {
            n_agents: AGENTS,
            truncation_interval: u64::from(config.episode_steps),
            info_names: INFO.map(str::to_owned).to_vec(),
            info_means: INFO.map(str::to_owned).to_vec(),
            ..EnvSpec::new(Space::uniform_box(f32::NEG_INFINITY, f32::INFINITY, names), action, envs.len())
        };
        let planes = vec![Plane::default(); envs.len()];
        Self { config: config.clone(), spec, first_env: envs.start, seed: 0, planes }
    }
}

/// Tag of saved states; the version changes with their content.
const TAG: StateTag = StateTag::new("reference", 1);

impl Simulation for ReferenceSimulation {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn set_seed(&mut self, seed: u64) {
        self.seed = seed;
    }

    fn episode(&self, env: usize) -> u64 {
        self.planes[env].episode
    }

    fn start(&mut self, env: usize, episode: u64, view: View<'_>) -> Result<(), EnvError> {
        let mut rng = episode_rng(self.seed, (self.first_env + env) as u64, episode);
        let mut place = || [(); 2].map(|()| rng.random_range(-1.0..1.0));
        let (positions, landmarks) = ([place(), place()], [place(), place(), place()]);
        let goals = [(); AGENTS].map(|()| rng.random_range(0..LANDMARKS as u32) as usize);
        self.planes[env] = Plane { episode, positions, landmarks, goals, ..Plane::default() };
        self.planes[env].observe(view.obs);
        Ok(())
    }

    fn step(&mut self, env: usize, actions: &[f32], next: View<'_>, out: StepOut<'_>) -> Result<Ending, EnvError> {
        let plane = &mut self.planes[env];
        let mut forces = [[0.0; 2]; AGENTS];
        for (agent, action) in actions.chunks_exact(2).enumerate() {
            forces[agent] = thrust(action);
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
        Ok(Ending::of(false, plane.steps >= self.config.episode_steps))
    }

    fn save(&self) -> Vec<u8> {
        TAG.encode(self.spec.n_envs, &(&self.config, self.seed, &self.planes))
    }

    fn load(&mut self, bytes: &[u8]) -> Result<(), EnvError> {
        let (config, seed, planes) = TAG.decode::<(ReferenceConfig, u64, Vec<Plane>)>(self.spec.n_envs, bytes)?;
        let known = |plane: &Plane| {
            let words = plane.said.iter().flatten().all(|word| *word < WORDS);
            words && plane.goals.iter().all(|goal| *goal < LANDMARKS)
        };
        if config != self.config || planes.len() != self.planes.len() || !planes.iter().all(known) {
            return Err(EnvError::State { reason: "it is a state of `reference` with other settings".into() });
        }
        (self.seed, self.planes) = (seed, planes);
        Ok(())
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
    pub fn batch(&self, envs: Range<usize>) -> ReferenceBatch {
        Autoreset::new(ReferenceSimulation::new(&self.config, envs))
    }

    /// An upper bound of the return of the first episode of an environment: an agent is no nearer than its distance at the start, minus the way that
    /// it can fly by then.
    fn bound(&self, batch: &ReferenceBatch, env: usize) -> f64 {
        let starts = [0, 1].map(|agent| batch.planes[env].distance(agent));
        let (mut way, mut speed, mut sum) = (0.0, 0.0, 0.0);
        for _ in 0..self.config.episode_steps {
            way += speed * STEP;
            speed = speed * (1.0 - DAMPING) + THRUST * (1.0 + 1e-9) * STEP;
            sum += starts.iter().map(|start| f64::max(start - way, 0.0)).sum::<f64>() / 2.0;
        }
        -sum
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
        Ok(Box::new(self.batch(envs)))
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
        let (batch, bound) = (|envs| self.batch(envs), |batch: &ReferenceBatch, env| self.bound(batch, env));
        mpe::evaluate(self, batch, bound, who, evaluation)
    }
}

#[cfg(test)]
mod tests {
    use brasa_env::check_env;

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
            let mut simulation = ReferenceSimulation::new(&config, 0..1);
            let Episode { positions, landmarks, goals, .. } = *episode;
            simulation.planes[0] = Plane { positions, landmarks, goals, ..Plane::default() };
            episode.recorded.replay(&mut simulation, index);
        }
    }

    #[test]
    fn the_contract_holds() {
        let reference = Reference::new(ReferenceConfig::default()).expect("the defaults are valid");
        check_env(60, |envs| Ok::<_, EnvError>(reference.batch(envs))).expect("it holds");
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
