//! Replays trajectories recorded from Gymnasium by `scripts/record_gymnasium.py`.

use brasa_classic::{CartPole, CartPoleState, Pendulum, PendulumState};
use brasa_env::{Env, episode_rng};
use ndarray::{Array1, array};
use serde::Deserialize;

#[derive(Deserialize)]
struct Recording {
    cartpole: Vec<Episode>,
    pendulum: Vec<Episode>,
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
    serde_json::from_str(include_str!("data/gymnasium.json")).expect("the recording is well-formed")
}

/// Replays `episode` and gives the largest difference of observations and rewards.
fn replay<E: Env>(mut env: E, episode: &Episode) -> f64 {
    let (mut obs, mut rng) = (Array1::zeros(env.obs_space().width()), episode_rng(0, 0, 0));
    let mut largest = 0.0_f64;
    for (i, action) in episode.actions.iter().enumerate() {
        let step = env.step(array![*action].view(), &mut rng, obs.view_mut());
        assert_eq!(step.terminated, episode.terminated[i], "{}, step {i}", episode.name);
        assert!(!step.truncated, "{}, step {i}: no time limit inside", episode.name);
        largest = largest.max((f64::from(step.reward) - episode.rewards[i]).abs());
        for (ours, theirs) in obs.iter().zip(&episode.observations[i]) {
            let difference = f64::from((ours - theirs).abs());
            assert!(difference <= 1e-6, "{}, step {i}: {ours} instead of {theirs}", episode.name);
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
        let env = CartPole::from_state(CartPoleState {
            position_m: s[0],
            speed_m_per_s: s[1],
            angle_rad: s[2],
            angular_speed_rad_per_s: s[3],
        });
        let largest = replay(env, episode);
        assert!(largest <= 1e-6, "{}: {largest}", episode.name);
        // The step that ends an episode pays like every other.
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
        let largest = replay(Pendulum::from_state(PendulumState { angle_rad: s[0], speed_rad_per_s: s[1] }), episode);
        // Rewards reach -16, where f32 itself is exact to 1e-6 only.
        assert!(largest <= 2e-6, "{}: {largest}", episode.name);
    }
    let beyond = |episode: &Episode| episode.actions.iter().any(|torque| torque.abs() > 2.0);
    assert!(episodes.iter().any(beyond), "torques beyond the limit are part of the recording");
    assert!(episodes.iter().flat_map(|e| &e.observations).any(|obs| obs[2].abs() == 8.0), "so is the speed limit");
}
