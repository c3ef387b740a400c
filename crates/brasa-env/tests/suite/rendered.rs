//! Episodes that are rendered.

use crate::common;

use brasa_env::wrappers::TimeLimit;
use brasa_env::{
    EnvBatch, EnvError, Frame, RandomController, RenderedBatch, RenderedEnv, Shown, play_episodes, play_rendered,
};
use common::walks;

fn render(shown: &Shown<'_>) -> Result<Frame, EnvError> {
    let is_start = shown.actions.is_none();
    Ok(Frame::new(1, 1, vec![shown.obs[[0, 0]] as i8 as u8, u8::from(is_start), 0])?)
}

#[test]
fn an_episode_is_that_of_an_evaluation() {
    let batch = |envs| TimeLimit::new(walks(envs).expect("they are sound"), 20).expect("it is a limit");
    for index in 0..5 {
        let random = || RandomController::new(batch(0..1).spec(), 3, index as u64..index as u64 + 1);
        let mut env = RenderedBatch::new(batch(index..index + 1), 0.5, render).expect("it is one environment");
        let (mut frames, mut ends, mut returns) = (Vec::new(), Vec::new(), Vec::new());
        let episode = play_rendered(&mut env, &mut random(), 7, |env, shown, is_last| {
            frames.push(env.render(shown)?);
            ends.push(is_last);
            returns.push(shown.episode_return);
            Ok::<(), EnvError>(())
        })
        .expect("it ends");
        let (expected, series) =
            play_episodes(&mut batch(index..index + 1), &mut random(), 7, 1).expect("it ends").remove(0);
        assert_eq!(episode, expected);
        // A state before each step, and the one that the last step led to.
        let first_obs = 1 + batch(0..1).spec().info_names.len();
        let series = series.expect("it was asked for");
        let places = series.values[first_obs].clone();
        let mut sum = 0.0;
        let sums = series.values[0].iter().map(|reward| {
            sum += f64::from(*reward);
            sum
        });
        assert_eq!(returns, [0.0].into_iter().chain(sums).collect::<Vec<_>>());
        let rendered: Vec<u8> = frames.iter().map(|frame| frame.rgb()[0]).collect();
        assert_eq!(rendered[..rendered.len() - 1], places.iter().map(|place| *place as i8 as u8).collect::<Vec<_>>());
        assert_eq!(rendered.len() as u64, episode.length + 1);
        assert!(frames.iter().enumerate().all(|(step, frame)| (frame.rgb()[1] == 1) == (step == 0)));
        assert!(ends.iter().enumerate().all(|(step, is_last)| *is_last == (step + 1 == ends.len())));
    }
}

#[test]
fn errors_of_the_caller_end_the_episode() {
    let mut env = RenderedBatch::new(walks(0..1).expect("they are sound"), 0.5, render).expect("it is one environment");
    let mut random = RandomController::new(env.batch().spec(), 3, 0..1);
    let full = || EnvError::Scenario("the disk is full".into());
    let error = play_rendered(&mut env, &mut random, 7, |_, _, _| Err::<(), _>(full())).expect_err("it is full");
    assert_eq!(error.to_string(), "the disk is full");
}

#[test]
fn only_one_environment_is_rendered() {
    let error =
        |n, secs| RenderedBatch::new(walks(0..n).expect("they are sound"), secs, render).expect_err("it is wrong");
    assert_eq!(error(2, 0.5).to_string(), "`n_envs` must be 1 for a rendered environment, got 2");
    assert_eq!(error(1, 0.0).to_string(), "`frame_secs` must be finite and above 0, got 0");
}

#[test]
fn frames_have_their_bytes() {
    let error = |width, height, bytes| Frame::new(width, height, vec![0; bytes]).expect_err("it is wrong").to_string();
    assert_eq!(error(0, 1, 0), "`frame width` must be in [1, 4096] pixels, got 0");
    assert_eq!(error(1, u32::MAX, 0), "`frame height` must be in [1, 4096] pixels, got 4294967295");
    assert_eq!(error(2, 3, 17), "`frame bytes` must be 18 for 2x3 pixels, got 17");
}
