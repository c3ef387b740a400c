//! Replays trajectories recorded from Gymnasium by `scripts/record_gymnasium.py`.

use brasa_classic::{Acrobot, CartPole, Catch, MountainCar, MountainCarContinuous, Pendulum};
use brasa_env::{Env, Precision, episode_rng};
use ndarray::{Array1, array};
use serde::Deserialize;

#[derive(Deserialize)]
struct Recording {
    cartpole: Vec<Episode>,
    pendulum: Vec<Episode>,
    mountain_car: Vec<Episode>,
    mountain_car_continuous: Vec<Episode>,
    acrobot: Vec<Episode>,
}

#[derive(Deserialize)]
struct Episode {
    name: String,
    initial_state: Vec<f64>,
    actions: Vec<f32>,
    observations: Vec<Vec<f32>>,
    rewards: Vec<f64>,
    terminated: Vec<bool>,
}

fn recording() -> Recording {
    serde_json::from_str(include_str!("../data/gymnasium.json")).expect("the recording is well-formed")
}

/// Replays `episode` and returns the largest difference of observations and rewards.
fn replay<E: Env>(env: E, episode: &Episode) -> f64 {
    replay_within(1e-6, env, episode)
}

/// Replays `episode`, whose observations are to be within `limit`, and returns the largest difference of observations and rewards.
fn replay_within<E: Env>(limit: f64, mut env: E, episode: &Episode) -> f64 {
    let (mut obs, mut rng) = (Array1::zeros(env.obs_space().width()), episode_rng(0, 0, 0));
    let mut largest = 0.0_f64;
    for (i, action) in episode.actions.iter().enumerate() {
        let step = env.step(array![*action].view(), &mut rng, obs.view_mut());
        assert_eq!(step.terminated, episode.terminated[i], "{}, step {i}", episode.name);
        assert!(!step.truncated, "{}, step {i}: no time limit inside", episode.name);
        largest = largest.max((f64::from(step.reward) - episode.rewards[i]).abs());
        for (ours, theirs) in obs.iter().zip(&episode.observations[i]) {
            let difference = f64::from((ours - theirs).abs());
            assert!(difference <= limit, "{}, step {i}: {ours} instead of {theirs}", episode.name);
            largest = largest.max(difference);
        }
    }
    largest
}

#[test]
fn cart_pole_matches() {
    let episodes = recording().cartpole;
    assert_eq!(episodes.len(), 6);
    for episode in &episodes {
        let s = &episode.initial_state;
        let env = CartPole::at(Default::default(), [s[0], s[1], s[2], s[3]]);
        let largest = replay(env, episode);
        assert!(largest <= 1e-6, "{}: {largest}", episode.name);
        // The last step of an episode has a reward like every other.
        assert!(episode.rewards.iter().all(|reward| *reward == 1.0), "{}", episode.name);
    }
    assert!(episodes.iter().filter(|episode| episode.terminated.last() == Some(&true)).count() >= 5);
}

#[test]
fn pendulum_matches() {
    let episodes = recording().pendulum;
    assert_eq!(episodes.len(), 5);
    for episode in &episodes {
        let s = &episode.initial_state;
        let largest = replay(Pendulum::at(Default::default(), [s[0], s[1]]), episode);
        // Rewards reach -16, where the precision of f32 is 1e-6.
        assert!(largest <= 2e-6, "{}: {largest}", episode.name);
    }
    let beyond = |episode: &Episode| episode.actions.iter().any(|torque| torque.abs() > 2.0);
    assert!(episodes.iter().any(beyond), "torques beyond the limit are part of the recording");
    assert!(episodes.iter().flat_map(|e| &e.observations).any(|obs| obs[2].abs() == 8.0), "so is the speed limit");
}

/// Poles and pendulums near upright are chaotic: numbers of 32 bits stay near those of 64 for a while.
#[test]
fn numbers_of_32_bits_are_near_those_of_gymnasium() {
    let mut recording = recording();
    recording.cartpole.iter_mut().chain(&mut recording.pendulum).for_each(|episode| episode.actions.truncate(60));
    let mut largest = [0.0f64; 2];
    for episode in &recording.cartpole {
        let s = &episode.initial_state;
        let env = CartPole::at(Default::default(), [s[0], s[1], s[2], s[3]]).with_precision(Precision::F32);
        largest[0] = largest[0].max(replay_within(1e-5, env, episode));
    }
    for episode in &recording.pendulum {
        let s = &episode.initial_state;
        let env = Pendulum::at(Default::default(), [s[0], s[1]]).with_precision(Precision::F32);
        largest[1] = largest[1].max(replay_within(1e-3, env, episode));
    }
    // They are other numbers.
    assert!(largest.iter().all(|largest| *largest > 1e-6), "{largest:?}");
}

/// Recorded from bsuite by `scripts/record_catch.py`.
#[test]
fn catch_matches() {
    let episodes: Vec<Episode> =
        serde_json::from_str(include_str!("../data/catch.json")).expect("the recording is well-formed");
    for episode in &episodes {
        let s = &episode.initial_state;
        let largest = replay(Catch::at(Default::default(), [s[0], s[1], s[2]]), episode);
        assert_eq!(largest, 0.0, "{}", episode.name);
    }
    assert_eq!(ends(&episodes), episodes.len());
    let caught = episodes.iter().filter(|episode| episode.rewards.last() == Some(&1.0)).count();
    assert!((3..episodes.len()).contains(&caught), "{caught} of {}", episodes.len());
}

fn ends(episodes: &[Episode]) -> usize {
    episodes.iter().filter(|episode| episode.terminated.last() == Some(&true)).count()
}

#[test]
fn mountain_cars_match() {
    let Recording { mountain_car, mountain_car_continuous, .. } = recording();
    let state = |episode: &Episode| [episode.initial_state[0], episode.initial_state[1]];
    for episode in &mountain_car {
        let largest = replay(MountainCar::at(Default::default(), state(episode)), episode);
        assert!(largest <= 1e-6, "{}: {largest}", episode.name);
    }
    for episode in &mountain_car_continuous {
        let largest = replay(MountainCarContinuous::at(Default::default(), state(episode)), episode);
        // The reward of the last step is nearly 100, where the precision of f32 is 4e-6.
        assert!(largest <= 4e-6, "{}: {largest}", episode.name);
    }
    assert_eq!((ends(&mountain_car), ends(&mountain_car_continuous)), (1, 1));
}

#[test]
fn acrobot_matches() {
    let episodes = recording().acrobot;
    for episode in &episodes {
        let s = &episode.initial_state;
        let largest = replay(Acrobot::at(Default::default(), [s[0], s[1], s[2], s[3]]), episode);
        assert!(largest <= 1e-6, "{}: {largest}", episode.name);
    }
    assert!(ends(&episodes) >= 1, "one episode swings up");
}
