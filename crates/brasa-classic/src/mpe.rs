//! What tasks of MPE have in common: agents as points on a plane, in its order of operations.

use brasa_env::{
    EnvError, Evaluation, Measured, MultiAgentEnv, Outcome, RandomController, Scenario, View, Who, episode_rng,
    evaluate_by_playing, option_index,
};
use brasa_number::Number;
use ndarray::ArrayView1;

use crate::scenario::{BOUND, RANDOM};

/// Duration of a step.
pub(crate) const STEP: f64 = 0.1;
/// Share of the speed that a step takes away.
pub(crate) const DAMPING: f64 = 0.25;
/// Acceleration by an action of an ordinary agent.
pub(crate) const THRUST: f64 = 5.0;
/// Stiffness and softness of a contact.
pub(crate) const CONTACT_FORCE: f64 = 100.0;
const CONTACT_MARGIN: f64 = 1e-3;
/// Distance within which a landmark is reached.
pub(crate) const COVER: f64 = 0.1;
/// Number of ways to move: 0 nothing, 1 left, 2 right, 3 down, 4 up.
pub(crate) const MOVES: usize = 5;

/// A place, or a way from one place to another.
pub(crate) type Point<N = f64> = [N; 2];

#[inline(always)]
pub(crate) fn minus<N: Number>(a: Point<N>, b: Point<N>) -> Point<N> {
    [a[0] - b[0], a[1] - b[1]]
}

#[inline(always)]
pub(crate) fn plus<N: Number>(a: Point<N>, b: Point<N>) -> Point<N> {
    [a[0] + b[0], a[1] + b[1]]
}

#[inline(always)]
pub(crate) fn length<N: Number>([x, y]: Point<N>) -> N {
    (x * x + y * y).sqrt()
}

/// The first choice of an action.
pub(crate) fn chosen(action: &[f32]) -> f64 {
    option_index(ArrayView1::from(action), 0, MOVES) as f64
}

/// The force of a move, of this size.
#[inline(always)]
pub(crate) fn thrust<N: Number>(chosen: N, force: f64) -> Point<N> {
    let along = |back: f64, forth: f64| {
        let of = |size: f64| chosen.constant(size);
        let [back, forth] = [back, forth].map(|choice| chosen.equal(of(choice)));
        N::select(back, of(-force), N::select(forth, of(force), of(0.0)))
    };
    [along(1.0, 2.0), along(3.0, 4.0)]
}

/// Distance beyond a touch where a contact has a force below 1e-22, which is left out.
pub(crate) const REACH: f64 = 0.05;

/// The force of a contact with something that is `away` from here, where the radii have the sum `touch`.
#[inline(always)]
pub(crate) fn contact<N: Number>(away: Point<N>, touch: f64) -> Point<N> {
    let distance = length(away);
    // How far they are inside each other, softened.
    let depth = -(distance - touch) / CONTACT_MARGIN;
    let depth = (depth.max_of(0.0) + (-depth.abs()).exp().ln_1p()) * CONTACT_MARGIN;
    // At the same place, nothing is away.
    away.map(|away| away * CONTACT_FORCE / distance.max_of(1e-30) * depth)
}

/// The force on `a` of a [`contact`] with `b`; `None` if they are farther apart than [`REACH`].
#[inline]
pub(crate) fn collide(a: Point, b: Point, touch: f64) -> Option<Point> {
    let away = minus(a, b);
    let square = away[0] * away[0] + away[1] * away[1];
    (square <= (touch + REACH) * (touch + REACH)).then(|| contact(away, touch))
}

/// Shortens a speed that is above `most`.
pub(crate) fn limit(speed: &mut Point, most: f64) {
    let size = length(*speed);
    if size > most {
        *speed = speed.map(|speed| speed / size * most);
    }
}

/// The place after a step: a position moves with the old speed.
#[inline(always)]
pub(crate) fn moved<N: Number>(position: Point<N>, speed: Point<N>) -> Point<N> {
    plus(position, speed.map(|speed| speed * STEP))
}

/// The speed after a step with this force.
#[inline(always)]
pub(crate) fn accelerated<N: Number>(speed: Point<N>, force: Point<N>) -> Point<N> {
    plus(speed.map(|speed| speed * (1.0 - DAMPING)), force.map(|force| force * STEP))
}

/// A step of all agents.
pub(crate) fn advance(positions: &mut [Point], speeds: &mut [Point], forces: &[Point]) {
    for ((position, speed), force) in positions.iter_mut().zip(speeds).zip(forces) {
        *position = moved(*position, *speed);
        *speed = accelerated(*speed, *force);
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

/// An environment of MPE whose returns have a proven bound.
pub(crate) trait Bounded: MultiAgentEnv {
    /// An upper bound of the return of the episode that begins here.
    fn bound(&self) -> f64;
}

/// As the default of a scenario, except for `random`, with a random stream for each agent of each episode, and `bound`, whose only figure is the
/// return: that of the first episode of each environment.
pub(crate) fn evaluate<E: Bounded>(
    scenario: &impl Scenario,
    make: impl Fn() -> E,
    who: Who<'_>,
    evaluation: &Evaluation,
) -> Result<Vec<Outcome>, EnvError> {
    let mut env = make();
    let spec = env.spec();
    match who {
        Who::Baseline(BOUND) => {
            let mut obs = vec![0.0; spec.n_agents * spec.obs.width()];
            let outcome = |index| {
                let view = View { obs: &mut obs, shared: &mut [], mask: &mut [] };
                env.reset(&mut episode_rng(evaluation.seed, index, 0), view);
                let figures = vec![Measured::NONE; spec.info_names.len()];
                Outcome { episode_return: Some(env.bound()), figures, ..Outcome::default() }
            };
            Ok(evaluation.episodes.clone().map(outcome).collect())
        }
        Who::Baseline(RANDOM) => {
            let mut random = RandomController::new(&spec, evaluation.seed, evaluation.episodes.clone());
            evaluate_by_playing(scenario, Who::Controller(&mut random), evaluation)
        }
        _ => evaluate_by_playing(scenario, who, evaluation),
    }
}

#[cfg(test)]
pub(crate) mod recorded {
    use brasa_env::{Ending, EnvSpec, StepOut, View};
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
        /// Plays the actions by `step` in an environment that is as it was at the start of the recording, and compares every number. The figures of
        /// all steps.
        pub(crate) fn replay(
            &self,
            spec: &EnvSpec,
            what: usize,
            mut one: impl FnMut(&[f32], View<'_>, StepOut<'_>) -> Ending,
        ) -> Vec<Vec<f64>> {
            let mut obs = vec![0.0; spec.n_agents * spec.obs.width()];
            let (mut reward, mut elapsed) = (vec![0.0; spec.n_agents], vec![1.0; spec.n_agents]);
            let step = |(step, actions): (usize, &Vec<f32>)| {
                let mut info = vec![0.0; spec.info_names.len()];
                let view = View { obs: &mut obs, shared: &mut [], mask: &mut [] };
                let out = StepOut { reward: &mut reward, elapsed: &mut elapsed, info: &mut info };
                let ending = one(actions, view, out);
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
