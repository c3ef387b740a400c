//! Simple Tag: predators chase a faster prey between obstacles.

use std::ops::Range;

use brasa_env::{
    Baseline, BaselineKind, BatchSlabs, Curve, Ending, EnvBatch, EnvError, EnvRng, EnvSpec, EnvVec, EpisodeData,
    Evaluation, Figure, InvalidField, MultiAgentEnv, Outcome, Scenario, Space, Split, StepOut, View, Who, field,
};
use ndarray::{ArrayView1, ArrayViewMut2};
use rand::RngExt;
use serde::{Deserialize, Serialize};

use crate::mpe::{
    self, Bounded, MOVES, Point, STEP, advance, chosen, collide, length, limit, minus, plus, point, thrust, towards,
};
use crate::scenario::{BOUND, RANDOM, RULE};

/// Settings of [`Tag`]; the defaults are those of `simple_tag_v3`.
///
/// ```
/// use brasa_classic::{PreyKind, TagConfig};
///
/// let config: TagConfig = serde_json::from_str(r#"{ "prey": "flees" }"#)?;
/// assert_eq!((config.prey, config.predators), (PreyKind::Flees, 3));
/// let error = TagConfig { predators: 0, ..TagConfig::default() }.validate().unwrap_err();
/// assert_eq!(error.to_string(), "`predators` must be between 1 and 64, got 0");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TagConfig {
    /// Who moves the prey: `learns`, the default, is the last agent, and `flees` is a rule, so that the predators are the agents.
    pub prey: PreyKind,
    /// Number of predators, 1 to 64. Default: 3. A single one hardly ever catches the prey, which is faster.
    pub predators: usize,
    /// Number of obstacles, at most 64. Default: 2.
    pub obstacles: usize,
    /// Steps of an episode. Default: 25.
    pub episode_steps: u32,
}

/// Who moves the prey.
///
/// ```
/// use brasa_classic::{PreyKind, TagConfig};
///
/// assert_eq!(TagConfig::default().prey, PreyKind::Learns);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PreyKind {
    /// It is an agent, as in MPE.
    Learns,
    /// A rule: it goes where the nearest predator will be farthest.
    Flees,
}

impl Default for TagConfig {
    fn default() -> Self {
        Self { prey: PreyKind::Learns, predators: 3, obstacles: 2, episode_steps: 25 }
    }
}

impl TagConfig {
    /// Rejects invalid settings.
    ///
    /// # Errors
    /// [`InvalidField`] for the first setting outside of its range.
    pub fn validate(&self) -> Result<(), InvalidField> {
        field::within("predators", self.predators as f64, 1.0, 64.0)?;
        field::at_most("obstacles", self.obstacles as u64, 64)?;
        field::at_least_one("episode_steps", u64::from(self.episode_steps))
    }

    fn n_agents(&self) -> usize {
        self.predators + usize::from(self.prey == PreyKind::Learns)
    }
}

/// Radius, acceleration and greatest speed of a body.
#[derive(Debug, Clone, Copy)]
struct Body {
    radius: f64,
    force: f64,
    speed: f64,
}

/// Of the agent `index`.
fn body(index: usize, predators: usize) -> Body {
    if index < predators { PREDATOR } else { PREY }
}

const PREDATOR: Body = Body { radius: 0.075, force: 3.0, speed: 1.0 };
const PREY: Body = Body { radius: 0.05, force: 4.0, speed: 1.3 };
const OBSTACLE: f64 = 0.2;
/// Reward of a predator for each predator that touches the prey, which loses as much.
const CATCH: f64 = 10.0;
/// Figures of an episode: predators that touched the prey, summed over steps, and what the prey lost outside of the field.
const INFO: [&str; 2] = ["catches", "outside"];

/// One environment of [`Tag`], with the physics, rewards and observations of `simple_tag_v3` of
/// [MPE2](https://mpe2.farama.org/environments/simple_tag/) (Lowe et al. 2017), in its order of operations.
///
/// # Observations
/// Own speed and position, the obstacles and then the other agents relative to it, and the speed of the prey. The prey, the last agent, does not see
/// the latter: its row ends with two zeros.
///
/// # Actions
/// 0 nothing, 1 left, 2 right, 3 down, 4 up.
///
/// # Rewards
/// Every predator gets 10 for each predator that touches the prey. The prey loses 10 for each, and more the farther it is outside of the field.
///
/// ```
/// use brasa_classic::{Tag, TagConfig};
/// use brasa_env::{BatchSlabs, EnvBatch};
/// use ndarray::Array2;
///
/// let mut batch = Tag::new(TagConfig::default())?.batch(0..2)?;
/// let mut slabs = BatchSlabs::new(batch.spec());
/// batch.reset(0, &mut slabs)?;
/// // Two environments of three predators and a prey.
/// assert_eq!(slabs.obs.dim(), (8, 16));
/// batch.step(Array2::zeros((8, 1)).view(), &mut slabs)?;
/// assert!(slabs.reward[0] >= 0.0 && slabs.reward[3] <= 0.0);
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug, Clone)]
pub struct TagEnv {
    config: TagConfig,
    field: Field,
    /// Memory of a step.
    forces: Vec<Point>,
}

/// Where everything is.
#[derive(Debug, Clone, Default)]
struct Field {
    steps: u32,
    /// Of the predators, then of the prey.
    positions: Vec<Point>,
    speeds: Vec<Point>,
    obstacles: Vec<Point>,
}

impl TagEnv {
    fn new(config: &TagConfig) -> Self {
        Self { config: config.clone(), field: Field::default(), forces: vec![[0.0; 2]; config.predators + 1] }
    }

    fn width(&self) -> usize {
        4 + 2 * self.config.obstacles + 2 * self.config.predators + 2
    }

    fn observe(&self, obs: &mut [f32]) {
        let Field { positions, speeds, obstacles, .. } = &self.field;
        let prey = self.config.predators;
        for (agent, row) in obs.chunks_exact_mut(self.width()).enumerate() {
            let own = positions[agent];
            let others = positions[..agent].iter().chain(&positions[agent + 1..]);
            let around = obstacles.iter().chain(others).map(|place| minus(*place, own));
            let seen = if agent == prey { [0.0; 2] } else { speeds[prey] };
            let points = [speeds[agent], own].into_iter().chain(around).chain([seen]);
            let (slots, _) = row.as_chunks_mut::<2>();
            slots.iter_mut().zip(points).for_each(|(slot, point)| *slot = point.map(|number| number as f32));
        }
    }

    /// One step of the physics.
    fn push(&mut self) {
        let Field { positions, speeds, obstacles, .. } = &mut self.field;
        let (n, predators) = (positions.len(), self.config.predators);
        let radius = |index: usize| body(index, predators).radius;
        for a in 0..n {
            for b in a + 1..n {
                if let Some(force) = collide(positions[a], positions[b], radius(a) + radius(b)) {
                    self.forces[a] = plus(self.forces[a], force);
                    self.forces[b] = minus(self.forces[b], force);
                }
            }
            for obstacle in obstacles.iter() {
                if let Some(force) = collide(positions[a], *obstacle, radius(a) + OBSTACLE) {
                    self.forces[a] = plus(self.forces[a], force);
                }
            }
        }
        advance(positions, speeds, &self.forces);
        for (index, speed) in speeds.iter_mut().enumerate() {
            limit(speed, body(index, predators).speed);
        }
    }

    /// Predators that touch the prey.
    fn catches(&self) -> usize {
        let (prey, predators) = self.field.positions.split_last().expect("there is a prey");
        let touch = PREDATOR.radius + PREY.radius;
        predators.iter().filter(|predator| length(minus(**predator, *prey)) < touch).count()
    }
}

/// What the prey loses for a coordinate outside of the field.
fn outside(coordinate: f64) -> f64 {
    match coordinate.abs() {
        x if x < 0.9 => 0.0,
        x if x < 1.0 => (x - 0.9) * 10.0,
        x => f64::min((2.0 * x - 2.0).exp(), 10.0),
    }
}

impl MultiAgentEnv for TagEnv {
    /// Steps; positions, speeds and obstacles.
    type State = (u32, [Vec<Point>; 3]);

    fn spec(&self) -> EnvSpec {
        let points = |name: &str, n: usize| -> Vec<String> {
            (0..n).flat_map(|id| ["x", "y"].map(|axis| format!("{name}_{id}_{axis}"))).collect()
        };
        let own = ["speed_x", "speed_y", "x", "y"].map(str::to_owned).to_vec();
        let prey = ["prey_speed_x", "prey_speed_y"].map(str::to_owned).to_vec();
        let names =
            [own, points("obstacle", self.config.obstacles), points("other", self.config.predators), prey].concat();
        EnvSpec {
            n_agents: self.config.n_agents(),
            truncation_interval: u64::from(self.config.episode_steps),
            info_names: INFO.map(str::to_owned).to_vec(),
            ..EnvSpec::new(Space::uniform_box(f32::NEG_INFINITY, f32::INFINITY, names), Space::Discrete(MOVES), 1)
        }
    }

    fn reset(&mut self, rng: &mut EnvRng, view: View<'_>) {
        let mut place = |from: f64| [(); 2].map(|()| rng.random_range(-from..from));
        let positions = (0..=self.config.predators).map(|_| place(1.0)).collect();
        let obstacles = (0..self.config.obstacles).map(|_| place(0.9)).collect();
        let speeds = vec![[0.0; 2]; self.config.predators + 1];
        self.field = Field { steps: 0, positions, speeds, obstacles };
        self.observe(view.obs);
    }

    fn step(&mut self, actions: &[f32], _: &mut EnvRng, next: View<'_>, out: StepOut<'_>) -> Ending {
        for (index, action) in actions.chunks_exact(1).enumerate() {
            self.forces[index] = thrust(chosen(action), body(index, self.config.predators).force);
        }
        let prey = self.config.predators;
        if self.config.prey == PreyKind::Flees {
            let Field { positions, speeds, .. } = &self.field;
            let predators = positions[..prey].iter().map(|predator| minus(*predator, positions[prey]));
            self.forces[prey] = thrust(f64::from(flee(positions[prey], speeds[prey], predators)), PREY.force);
        }
        self.push();
        self.field.steps += 1;
        let catches = self.catches() as f64;
        let lost = self.field.positions[prey].map(outside).iter().sum::<f64>();
        for (agent, reward) in out.reward.iter_mut().enumerate() {
            *reward = if agent == prey { -CATCH * catches - lost } else { CATCH * catches } as f32;
        }
        out.info.copy_from_slice(&[catches, lost]);
        self.observe(next.obs);
        Ending::of(false, self.field.steps >= self.config.episode_steps)
    }

    fn state(&self) -> Self::State {
        let Field { steps, positions, speeds, obstacles } = self.field.clone();
        (steps, [positions, speeds, obstacles])
    }

    fn set_state(&mut self, (steps, [positions, speeds, obstacles]): Self::State) {
        self.field = Field { steps, positions, speeds, obstacles };
    }
}

impl Bounded for TagEnv {
    /// A predator and the prey fly towards each other at their greatest speeds from the first step on, and the prey never leaves the field.
    fn bound(&self) -> f64 {
        let (prey, predators) = self.field.positions.split_last().expect("there is a prey");
        let closing = (PREDATOR.speed + PREY.speed) * (1.0 + 1e-9) * STEP;
        // In the first step, nobody moves yet.
        let may_touch = |predator: &Point, step: u32| {
            length(minus(*predator, *prey)) - f64::from(step - 1) * closing < PREDATOR.radius + PREY.radius
        };
        let steps = 1..=self.config.episode_steps;
        let catches: usize =
            predators.iter().map(|predator| steps.clone().filter(|step| may_touch(predator, *step)).count()).sum();
        let n = self.config.predators as f64;
        let per_catch = match self.config.prey {
            PreyKind::Flees => CATCH,
            PreyKind::Learns => CATCH * (n - 1.0) / (n + 1.0),
        };
        per_catch * catches as f64
    }
}

/// The move by which the nearest predator, relative to the prey, will be farthest, if predators stay where they are.
fn flee(position: Point, speed: Point, predators: impl Iterator<Item = Point> + Clone) -> f32 {
    /// Steps that it looks ahead.
    const AHEAD: usize = 6;
    /// Weight of what is lost outside of the field.
    const OUTSIDE: f64 = 0.2;
    let worth = |action: f32| {
        let (mut places, mut speeds) = ([position], [speed]);
        for _ in 0..AHEAD {
            advance(&mut places, &mut speeds, &[thrust(f64::from(action), PREY.force)]);
            limit(&mut speeds[0], PREY.speed);
        }
        let moved = minus(places[0], position);
        let nearest = predators.clone().map(|predator| length(minus(predator, moved))).fold(f64::INFINITY, f64::min);
        nearest - OUTSIDE * places[0].map(outside).iter().sum::<f64>()
    };
    let moves = (0..MOVES).map(|action| action as f32);
    moves.max_by(|a, b| worth(*a).total_cmp(&worth(*b))).expect("there are moves")
}

/// The move of a predator that sees the prey there, relative to it, with this speed: to where the prey will soon be.
fn chase(speed: Point, prey: Point, prey_speed: Point) -> f32 {
    const AHEAD: f64 = 0.3;
    towards(speed, [prey[0] + AHEAD * prey_speed[0], prey[1] + AHEAD * prey_speed[1]])
}

impl Tag {
    /// Predators chase, and the prey flees.
    fn act(&self, view: &BatchSlabs, mut actions: ArrayViewMut2<f32>) {
        let (n, others) = (self.config.n_agents(), 4 + 2 * self.config.obstacles);
        let predators = self.config.predators;
        for (row, seen) in view.obs.rows().into_iter().enumerate() {
            let other = |index: usize| point(seen, others + 2 * index);
            actions[[row, 0]] = match row % n < predators {
                true => chase(point(seen, 0), other(predators - 1), last_point(seen)),
                false => flee(point(seen, 2), point(seen, 0), (0..predators).map(other)),
            };
        }
    }
}

fn last_point(row: ArrayView1<f32>) -> Point {
    point(row, row.len() - 2)
}

/// Simple Tag of MPE: predators chase a faster prey between obstacles.
///
/// In the baseline `rule-based`, predators fly to where the prey will soon be, and the prey flies away from the nearest one. `bound` is a proven upper
/// bound of the return, which is a mean over agents.
///
/// ```
/// use brasa_classic::{PreyKind, Tag, TagConfig};
/// use brasa_env::{Evaluation, Scenario, Who};
///
/// let tag = Tag::new(TagConfig { prey: PreyKind::Flees, ..TagConfig::default() })?;
/// let mean = |name| -> Result<f64, brasa_env::EnvError> {
///     let outcomes = tag.evaluate(Who::Baseline(name), &Evaluation::new(50, 0))?;
///     Ok(outcomes.iter().map(|outcome| outcome.episode_return.unwrap()).sum::<f64>() / 50.0)
/// };
/// let (random, rule, bound) = (mean("random")?, mean("rule-based")?, mean("bound")?);
/// assert!(rule > random && bound > rule);
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Tag {
    config: TagConfig,
}

impl Tag {
    /// Checks the settings.
    ///
    /// # Errors
    /// [`EnvError::Argument`] for the first invalid setting.
    pub fn new(config: TagConfig) -> Result<Self, EnvError> {
        config.validate()?;
        Ok(Self { config })
    }

    /// The settings.
    pub fn config(&self) -> &TagConfig {
        &self.config
    }

    /// Environments with the global indices `envs`; the index addresses the random numbers.
    ///
    /// # Errors
    /// [`EnvError::Argument`] for an empty range.
    pub fn batch(&self, envs: Range<usize>) -> Result<EnvVec<TagEnv>, EnvError> {
        EnvVec::multi_agent(envs, |_| TagEnv::new(&self.config))
    }
}

impl Scenario for Tag {
    fn envs(&self, _: Split, envs: Range<usize>) -> Result<Box<dyn EnvBatch>, EnvError> {
        Ok(Box::new(self.batch(envs)?))
    }

    fn figures(&self) -> Vec<Figure> {
        let [catches, outside] = INFO;
        let catches = Figure::new(catches, "catches");
        vec![
            match self.config.prey {
                PreyKind::Flees => catches.more_is_better(),
                // Good for some, bad for another.
                PreyKind::Learns => catches,
            },
            Figure::new(outside, "lost by the prey outside of the field"),
        ]
    }

    fn baselines(&self) -> Vec<Baseline> {
        let tag = self.clone();
        let act = move || -> Box<dyn brasa_env::Controller> {
            let tag = tag.clone();
            Box::new(move |view: &BatchSlabs, actions: ArrayViewMut2<f32>| -> Result<(), EnvError> {
                tag.act(view, actions);
                Ok(())
            })
        };
        vec![
            Baseline::new(RANDOM, BaselineKind::Idle).random(),
            Baseline::new(RULE, BaselineKind::Heuristic).by(act),
            Baseline::new(BOUND, BaselineKind::Bound),
        ]
    }

    /// Every episode starts in a random state.
    fn data(&self, _: Split) -> EpisodeData {
        EpisodeData::Sampled
    }

    fn curves(&self) -> Vec<Curve> {
        vec![Curve {
            label: "catches".to_owned(),
            metric: "rollout/catches".to_owned(),
            divided_by: None,
            evaluated: Some("eval/catches".to_owned()),
            figure: Some("catches".to_owned()),
        }]
    }

    fn evaluate(&self, who: Who<'_>, evaluation: &Evaluation) -> Result<Vec<Outcome>, EnvError> {
        mpe::evaluate(self, || TagEnv::new(&self.config), who, evaluation)
    }
}

#[cfg(test)]
mod tests {
    use brasa_env::{check_env, episode_rng};

    use super::*;
    use crate::mpe::recorded::Recorded;

    #[derive(Deserialize)]
    struct Episode {
        positions: Vec<Point>,
        landmarks: Vec<Point>,
        speeds: Vec<Point>,
        #[serde(flatten)]
        recorded: Recorded,
    }

    /// Recorded from MPE2 by `scripts/record_mpe.py`.
    #[test]
    fn episodes_are_those_of_mpe() {
        let text = include_str!("../tests/data/tag.json");
        let episodes: Vec<Episode> = serde_json::from_str(text).expect("the recording is well-formed");
        assert_eq!(episodes.len(), 6);
        let (mut catches, mut lost) = (0.0, 0.0);
        for (index, Episode { positions, landmarks, speeds, recorded }) in episodes.into_iter().enumerate() {
            let config = TagConfig { predators: positions.len() - 1, obstacles: landmarks.len(), ..Default::default() };
            let mut env =
                TagEnv { field: Field { steps: 0, positions, speeds, obstacles: landmarks }, ..TagEnv::new(&config) };
            let (spec, rng) = (env.spec(), &mut episode_rng(0, 0, 0));
            for info in recorded.replay(&spec, index, |actions, view, out| env.step(actions, rng, view, out)) {
                catches += info[0];
                lost += info[1];
            }
        }
        assert!(catches >= 10.0 && lost > 1.0, "{catches} {lost}");
    }

    #[test]
    fn the_contract_holds() {
        for prey in [PreyKind::Learns, PreyKind::Flees] {
            let tag = Tag::new(TagConfig { prey, ..TagConfig::default() }).expect("it is valid");
            check_env(60, |envs| tag.batch(envs)).expect("it holds");
            let returns = |name| {
                let outcomes = tag.evaluate(Who::Baseline(name), &Evaluation::new(200, 3)).expect("it plays");
                outcomes.into_iter().map(|outcome| outcome.episode_return.expect("there is one")).collect::<Vec<_>>()
            };
            // No episode is above its bound, and predators that chase catch more.
            let (bound, rule) = (returns("bound"), returns("rule-based"));
            assert!(bound.iter().zip(&rule).all(|(bound, rule)| bound >= rule));
            let sum = |returns: &[f64]| returns.iter().sum::<f64>();
            assert!(sum(&rule) > sum(&returns("random")), "{}", sum(&rule));
        }
    }
}
