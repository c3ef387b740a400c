//! Frames of environments.

use crate::common;

use brasa_env::{BatchSlabs, EnvError, Frame, RenderedEnv, Scenario, play_rendered};
use brasa_gym::{GymConfig, Gymnasium, PyValue};
use common::{config, has_package, own, python, team};
use ndarray::ArrayViewMut2;

fn rendered(config: GymConfig) -> Result<Box<dyn RenderedEnv>, EnvError> {
    let rendered = Gymnasium::new(config).expect("it is valid").rendered(3)?;
    Ok(rendered.expect("Gymnasium has frames"))
}

fn idle(_: &BatchSlabs, mut actions: ArrayViewMut2<f32>) -> Result<(), EnvError> {
    actions.fill(0.0);
    Ok(())
}

/// The frames of an episode.
fn frames(config: GymConfig) -> Result<Vec<Frame>, EnvError> {
    let (mut env, mut frames) = (rendered(config)?, Vec::new());
    let episode = play_rendered(&mut *env, &mut idle, 7, |env, shown, is_last| {
        frames.push(env.render(shown)?);
        // The state before the reset, however often it is rendered.
        if is_last {
            assert_eq!(env.render(shown)?, frames[frames.len() - 1]);
        }
        Ok::<(), EnvError>(())
    })?;
    assert_eq!(frames.len() as u64, episode.length + 1);
    Ok(frames)
}

fn faulty(fault: &str) -> GymConfig {
    own("brasa/Rendered-v0", &[("fault", fault)])
}

fn error(config: GymConfig) -> String {
    frames(config).expect_err("there is a fault").to_string()
}

#[test]
fn an_episode_has_a_frame_for_each_state() {
    if python().is_none() {
        return;
    }
    let frames = frames(faulty("none")).expect("they are rendered");
    assert_eq!(frames.len(), 5);
    for (step, frame) in frames.iter().enumerate() {
        assert_eq!((frame.width(), frame.height()), (6, 5));
        let pixels: Vec<_> = frame.rgb().chunks_exact(3).enumerate().filter(|(_, pixel)| *pixel != [0, 0, 0]).collect();
        assert_eq!(pixels, [(2 * 6 + step, [255, 128, 0].as_slice())], "step {step}");
    }
    assert_eq!(rendered(faulty("none")).expect("it starts").frame_secs(), 0.1);
    assert_eq!(rendered(faulty("rate")).expect("it starts").frame_secs(), 1.0 / 30.0);
}

#[test]
fn a_team_has_frames() {
    if python().is_none() {
        return;
    }
    // Without masks: everybody walks.
    let config = team(&[("masked", PyValue::Bool(false))]);
    let frames = frames(config.clone()).expect("they are rendered");
    assert!((3..=13).contains(&frames.len()), "{}", frames.len());
    for (step, frame) in frames.iter().enumerate() {
        assert_eq!((frame.width(), frame.height()), (3, 1));
        assert!(frame.rgb().chunks_exact(3).all(|pixel| pixel[2] as usize == step), "step {step}");
    }
    assert_eq!(rendered(config).expect("it starts").frame_secs(), 0.25);
}

#[test]
fn environments_without_frames_are_errors() {
    if python().is_none() {
        return;
    }
    const NEEDS: &str = "a video needs `render_mode=\"rgb_array\"`, which this environment does not support";
    let message = error(own("brasa/Masked-v0", &[]));
    assert!(message.starts_with(&format!("`brasa/Masked-v0`: {NEEDS}: ")), "{message}");
    assert!(message.contains("takes no arguments"), "{message}");
    let message = error(faulty("nothing"));
    let modes = "`render()` returned nothing, its modes are ['ansi', 'rgb_array']";
    assert_eq!(message, format!("`brasa/Rendered-v0`: {NEEDS}: {modes}"));
    let message = error(faulty("raise"));
    assert!(message.contains("raised RuntimeError: no display"), "{message}");
}

/// A frame is checked before it takes memory.
#[test]
fn frames_of_wrong_sizes_are_errors() {
    if python().is_none() {
        return;
    }
    for (fault, got) in [("floats", "float64 of shape (5, 6, 3)"), ("gray", "uint8 of shape (5, 6)")] {
        let message = error(faulty(fault));
        assert!(message.ends_with(&format!("the shape (height, width, 3), got {got}")), "{message}");
    }
    let message = |fault: &str| error(faulty(fault));
    let rule = "a frame must have at most 4096 pixels in each direction, got the shape (1, 5000, 3)";
    assert_eq!(message("wide"), format!("`brasa/Rendered-v0`: {rule}"));
    let rule = "`frame width` must be in [1, 4096] pixels, got 2147483648";
    assert_eq!(message("sides"), format!("`brasa/Rendered-v0`: {rule}"));
    let rule = "a frame must begin with its width and height, got 0 bytes";
    assert_eq!(message("empty"), format!("`brasa/Rendered-v0`: {rule}"));
    let message = message("bytes");
    assert!(message.contains("it announces 60000000 bytes, at most 50331656 are read"), "{message}");
}

#[test]
fn environments_of_gymnasium_draw() {
    if python().is_none() || !has_package("pygame") {
        return;
    }
    let frames = frames(config("CartPole-v1")).expect("they are rendered");
    assert_eq!((frames[0].width(), frames[0].height()), (600, 400));
    assert_ne!(frames[0], frames[frames.len() - 1]);
}
