//! An environment whose episodes never end: an evaluation is an error, not a program that never returns.

use brasa_env::wrappers::TimeLimit;
use brasa_env::{
    Env, EnvBatch, EnvError, EnvRng, EnvVec, MAX_EPISODE_STEPS, RandomController, Space, Step, play_episodes,
};
use ndarray::{ArrayView1, ArrayViewMut1};

/// Counts for ever.
#[derive(Clone)]
struct Endless;

impl Env for Endless {
    type State = ();

    fn obs_space(&self) -> Space {
        Space::uniform_box(0.0, 1.0, ["x"])
    }

    fn action_space(&self) -> Space {
        Space::Discrete(2)
    }

    fn reset(&mut self, _: &mut EnvRng, mut obs: ArrayViewMut1<f32>) {
        obs.fill(0.0);
    }

    fn step(&mut self, _: ArrayView1<f32>, _: &mut EnvRng, mut obs: ArrayViewMut1<f32>) -> Step {
        obs.fill(0.0);
        Step::default()
    }

    fn state(&self) {}

    fn set_state(&mut self, (): ()) {}
}

#[test]
fn an_evaluation_of_endless_episodes_is_an_error() {
    let mut endless = EnvVec::new(0..1, |_| Endless).expect("it is sound");
    let mut controller = RandomController::new(endless.spec(), 0, 0..1);
    let error = play_episodes(&mut endless, &mut controller, 0, 0).expect_err("no episode ends");
    assert!(matches!(error, EnvError::Endless { env: 0, steps: MAX_EPISODE_STEPS }), "{error}");
    assert!(error.to_string().contains("`wrappers::TimeLimit`") && error.to_string().contains("`max_episode_steps`"));

    let mut limited =
        TimeLimit::new(EnvVec::new(0..1, |_| Endless).expect("it is sound"), 7).expect("the limit is sound");
    let played = play_episodes(&mut limited, &mut controller, 0, 0).expect("it is cut after 7 steps");
    assert_eq!(played[0].0.length, 7);
}
