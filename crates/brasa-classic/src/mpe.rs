//! What tasks of MPE have in common: agents as points on a plane, in its order of operations.

use std::ops::Range;

use brasa_env::{
    BatchSlabs, EnvBatch, EnvError, Evaluation, Measured, Outcome, RandomController, Scenario, Who,
    evaluate_by_playing, option_index,
};
use ndarray::ArrayView1;

use crate::scenario::{BOUND, RANDOM};

/// Duration of a step.
pub(crate) const STEP: f64 = 0.1;
/// Share of the speed that a step takes away.
pub(crate) const DAMPING: f64 = 0.25;
/// Acceleration by an action.
pub(crate) const THRUST: f64 = 5.0;
/// Distance within which a landmark is reached.
pub(crate) const COVER: f64 = 0.1;
/// Number of ways to move: 0 nothing, 1 left, 2 right, 3 down, 4 up.
pub(crate) const MOVES: usize = 5;

pub(crate) type Point = [f64; 2];

pub(crate) fn minus(a: Point, b: Point) -> Point {
    [a[0] - b[0], a[1] - b[1]]
}

pub(crate) fn length([x, y]: Point) -> f64 {
    (x * x + y * y).sqrt()
}

/// The force of the first choice of an action.
pub(crate) fn thrust(action: &[f32]) -> Point {
    match option_index(ArrayView1::from(action), 0, MOVES) {
        1 => [-THRUST, 0.0],
        2 => [THRUST, 0.0],
        3 => [0.0, -THRUST],
        4 => [0.0, THRUST],
        _ => [0.0, 0.0],
    }
}

/// Positions move with the old speeds, then forces change the speeds.
pub(crate) fn advance(positions: &mut [Point], speeds: &mut [Point], forces: &[Point]) {
    for ((position, speed), force) in positions.iter_mut().zip(speeds).zip(forces) {
        for axis in 0..2 {
            position[axis] += speed[axis] * STEP;
            speed[axis] = speed[axis] * (1.0 - DAMPING) + force[axis] * STEP;
        }
    }
}

/// Two numbers of a row.
pub(crate) fn point(row: ArrayView1<f32>, at: usize) -> Point {
    [f64::from(row[at]), f64::from(row[at + 1])]
}

/// The move of an agent with this speed to a place that it sees, along the axis on which it will be farther from it.
pub(crate) fn towards(speed: Point, place: Point) -> f32 {
    /// Steps ahead for which a position is predicted from the speed: the way on which damping stops an agent.
    const AHEAD: f64 = 0.4;
    /// Distance along an axis below which an agent does not correct its place.
    const STILL: f64 = 0.03;
    let [x, y] = minus(place, speed.map(|speed| speed * AHEAD));
    match (x.abs() > y.abs(), x, y) {
        _ if x.abs().max(y.abs()) < STILL => 0.0,
        (true, x, _) if x < 0.0 => 1.0,
        (true, ..) => 2.0,
        (false, _, y) if y < 0.0 => 3.0,
        _ => 4.0,
    }
}

/// As the default of a scenario, except for `random`, with a random stream for each agent of each episode, and `bound`, whose only figure is the
/// return: `bound_of` is an upper bound of that of the first episode of an environment.
pub(crate) fn evaluate<B: EnvBatch>(
    scenario: &impl Scenario,
    batch: impl Fn(Range<usize>) -> B,
    bound_of: impl Fn(&B, usize) -> f64,
    who: Who<'_>,
    evaluation: &Evaluation,
) -> Result<Vec<Outcome>, EnvError> {
    match who {
        Who::Baseline(BOUND) => {
            let envs = evaluation.episodes.start as usize..evaluation.episodes.end as usize;
            let mut batch = batch(envs.clone());
            batch.reset(evaluation.seed, &mut BatchSlabs::new(batch.spec()))?;
            let outcome = |env: usize| Outcome {
                episode_return: Some(bound_of(&batch, env)),
                figures: vec![Measured::NONE; batch.spec().info_names.len()],
                ..Outcome::default()
            };
            Ok((0..envs.len()).map(outcome).collect())
        }
        Who::Baseline(RANDOM) => {
            let mut random = RandomController::new(batch(0..1).spec(), evaluation.seed, evaluation.episodes.clone());
            evaluate_by_playing(scenario, Who::Controller(&mut random), evaluation)
        }
        _ => evaluate_by_playing(scenario, who, evaluation),
    }
}

#[cfg(test)]
pub(crate) mod recorded {
    use brasa_env::{Ending, Simulation, StepOut, View};
    use serde::Deserialize;

    /// What recorded episodes of all tasks have.
    #[derive(Deserialize)]
    pub(crate) struct Recorded {
        actions: Vec<Vec<f32>>,
        /// Of every agent after each step.
        observations: Vec<Vec<Vec<f32>>>,
        rewards: Vec<Vec<f64>>,
        truncated: Vec<bool>,
    }

    impl Recorded {
        /// Plays the actions in the first environment, which is as it was at the start of the recording, and compares every number. The figures of
        /// all steps.
        pub(crate) fn replay(&self, simulation: &mut impl Simulation, what: usize) -> Vec<Vec<f64>> {
            let spec = simulation.spec().clone();
            let mut obs = vec![0.0; spec.n_agents * spec.obs.width()];
            let (mut reward, mut elapsed) = (vec![0.0; spec.n_agents], vec![1.0; spec.n_agents]);
            let step = |(step, actions): (usize, &Vec<f32>)| {
                let mut info = vec![0.0; spec.info_names.len()];
                let view = View { obs: &mut obs, shared: &mut [], mask: &mut [] };
                let out = StepOut { reward: &mut reward, elapsed: &mut elapsed, info: &mut info };
                let ending = simulation.step(0, actions, view, out).expect("the actions are legal");
                assert_eq!(ending == Ending::Truncated, self.truncated[step], "{what}, {step}");
                for (ours, theirs) in obs.iter().zip(self.observations[step].iter().flatten()) {
                    assert!((ours - theirs).abs() <= 1e-6, "{what}, {step}: {ours} {theirs}");
                }
                for (ours, theirs) in reward.iter().zip(&self.rewards[step]) {
                    assert!((f64::from(*ours) - theirs).abs() <= 1e-6, "{what}, {step}: {ours} {theirs}");
                }
                info
            };
            self.actions.iter().enumerate().map(step).collect()
        }
    }
}
