//! Small environments and helpers for the tests of this crate.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use brasa_env::{BatchSlabs, Env, EnvBatch, EnvError, EnvRng, EnvVec, Space, Step, named_rng};
use ndarray::{Array2, ArrayView1, ArrayViewMut1};
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// A defect of a [`Walk`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Flaw {
    None,
    /// A counter that no reset clears enters the observation.
    LeaksAcrossResets,
    /// The first observation of an episode is outside its space.
    StartsOutOfSpace,
    /// The observation of step 10 is outside its space.
    LeavesSpace,
    /// The reward of step 10 is NaN.
    NanReward,
    /// A figure of step 10 is infinite.
    InfiniteFigure,
    /// The saved state lacks the position.
    ForgetsWhenSaved,
    /// The mask of step 10 allows nothing.
    NothingLegal,
}

/// A random walk that ends at a wall, pushed by one action; at most one action is illegal.
#[derive(Debug, Clone)]
pub struct Walk {
    flaw: Flaw,
    state: WalkState,
    steps_ever: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WalkState {
    position: f32,
    steps: u32,
    last_reward: f32,
}

impl Walk {
    /// Distance of the walls from the start.
    pub const WALL: f32 = 3.0;

    pub fn new() -> Self {
        Self::with(Flaw::None)
    }

    pub fn with(flaw: Flaw) -> Self {
        Self { flaw, state: WalkState { position: 0.0, steps: 0, last_reward: 0.0 }, steps_ever: 0 }
    }

    fn observe(&self, mut obs: ArrayViewMut1<f32>) {
        obs[0] = self.state.position;
        obs[1] = if self.flaw == Flaw::LeaksAcrossResets { self.steps_ever as f32 } else { self.state.steps as f32 };
    }
}

impl Env for Walk {
    type State = WalkState;

    fn obs_space(&self) -> Space {
        let far = 2.0 * Self::WALL;
        Space::named_box([("position", -far, far), ("steps", 0.0, 1e6)])
    }

    fn action_space(&self) -> Space {
        Space::MultiDiscrete(vec![3, 2])
    }

    fn reset(&mut self, rng: &mut EnvRng, obs: ArrayViewMut1<f32>) {
        self.state = WalkState { position: rng.random::<f32>() - 0.5, steps: 0, last_reward: 0.0 };
        if self.flaw == Flaw::StartsOutOfSpace {
            self.state.position = 100.0;
        }
        self.observe(obs);
    }

    fn step(&mut self, action: ArrayView1<f32>, rng: &mut EnvRng, obs: ArrayViewMut1<f32>) -> Step {
        self.steps_ever += 1;
        self.state.steps += 1;
        self.state.position += 0.5 * (action[0] - 1.0) + 0.2 * action[1] + rng.random::<f32>() - 0.6;
        let terminated = self.state.position.abs() >= Self::WALL;
        if self.flaw == Flaw::StartsOutOfSpace {
            self.state.position = 0.0;
        }
        let at_ten = self.state.steps == 10;
        if self.flaw == Flaw::LeavesSpace && at_ten {
            self.state.position = 100.0;
        }
        self.state.last_reward = 1.0 - self.state.position;
        if self.flaw == Flaw::NanReward && at_ten {
            self.state.last_reward = f32::NAN;
        }
        self.observe(obs);
        Step { reward: self.state.last_reward, terminated, truncated: false }
    }

    fn has_mask(&self) -> bool {
        true
    }

    fn mask(&self, mut mask: ArrayViewMut1<f32>) {
        // The push to the left is illegal in every third step.
        mask.fill(1.0);
        mask[0] = f32::from(u8::from(!self.state.steps.is_multiple_of(3)));
        if self.flaw == Flaw::NothingLegal && self.state.steps == 10 {
            mask.fill(0.0);
        }
    }

    fn info_names(&self) -> Vec<String> {
        vec!["steps".into(), "reward_twice".into()]
    }

    fn info(&self, mut info: ArrayViewMut1<f64>) {
        info[0] = if self.flaw == Flaw::InfiniteFigure && self.state.steps == 10 { f64::INFINITY } else { 1.0 };
        info[1] = 2.0 * f64::from(self.state.last_reward);
    }

    fn state(&self) -> WalkState {
        let mut state = self.state.clone();
        if self.flaw == Flaw::ForgetsWhenSaved {
            state.position = 0.0;
        }
        state
    }

    fn set_state(&mut self, state: WalkState) {
        self.state = state;
    }
}

/// Counts its steps in the observation, has a reward of 1 per step, and ends after `length` steps, if any.
#[derive(Debug, Clone)]
pub struct Clock {
    pub length: Option<u32>,
    /// Panics at this step of an episode while the switch is on; 0 is the reset.
    pub panic_at: Option<(u32, Arc<AtomicBool>)>,
    pub steps: u32,
}

impl Clock {
    pub fn endless() -> Self {
        Self { length: None, panic_at: None, steps: 0 }
    }

    pub fn ending_after(length: u32) -> Self {
        Self { length: Some(length), ..Self::endless() }
    }

    fn maybe_panic(&self) {
        if let Some((step, switch)) = &self.panic_at
            && *step == self.steps
            && switch.load(Ordering::SeqCst)
        {
            panic!("the clock broke at {step}");
        }
    }
}

impl Env for Clock {
    type State = u32;

    fn obs_space(&self) -> Space {
        Space::uniform_box(0.0, 1e6, ["steps"])
    }

    fn action_space(&self) -> Space {
        Space::uniform_box(-1.0, 1.0, ["ignored"])
    }

    fn reset(&mut self, _rng: &mut EnvRng, mut obs: ArrayViewMut1<f32>) {
        self.steps = 0;
        self.maybe_panic();
        obs[0] = 0.0;
    }

    fn step(&mut self, _action: ArrayView1<f32>, _rng: &mut EnvRng, mut obs: ArrayViewMut1<f32>) -> Step {
        self.steps += 1;
        self.maybe_panic();
        obs[0] = self.steps as f32;
        Step { reward: 1.0, terminated: self.length == Some(self.steps), truncated: false }
    }

    fn state(&self) -> u32 {
        self.steps
    }

    fn set_state(&mut self, state: u32) {
        self.steps = state;
    }
}

/// Walks with the global indices `envs`.
pub fn walks(envs: Range<usize>) -> Result<EnvVec<Walk>, EnvError> {
    EnvVec::new(envs, |_| Walk::new())
}

/// `n` clocks of one kind.
pub fn clocks(n: usize, clock: Clock) -> EnvVec<Clock> {
    EnvVec::new(0..n, |_| clock.clone()).expect("there is at least one")
}

/// Steps with actions of a fixed stream from `first_step` on, and returns the slabs of every step.
pub fn play<B: EnvBatch + ?Sized>(
    batch: &mut B,
    slabs: &mut BatchSlabs,
    first_step: usize,
    n_steps: usize,
) -> Vec<BatchSlabs> {
    (first_step..first_step + n_steps)
        .map(|step| {
            batch.step(some_actions(batch, step).view(), slabs).expect("no environment panics");
            slabs.clone()
        })
        .collect()
}

/// Actions of step `step`, the same for every batch of one size.
pub fn some_actions<B: EnvBatch + ?Sized>(batch: &B, step: usize) -> Array2<f32> {
    let mut rng = named_rng(11, "actions", step as u64);
    let width = batch.spec().action.width();
    let mut draw = |_: (usize, usize)| match &batch.spec().action {
        Space::Box(_) | Space::Hybrid { .. } => rng.random::<f32>() * 2.0 - 1.0,
        // Legal for every mask of a walk.
        Space::Discrete(_) | Space::MultiDiscrete(_) => 1.0,
    };
    Array2::from_shape_fn((batch.n_rows(), width), &mut draw)
}

/// Slabs of the reset with `seed` and of `n_steps` steps.
pub fn episode_of<B: EnvBatch + ?Sized>(batch: &mut B, seed: u64, n_steps: usize) -> Vec<BatchSlabs> {
    let mut slabs = BatchSlabs::new(batch.spec());
    batch.reset(seed, &mut slabs).expect("the environments start");
    let mut seen = vec![slabs.clone()];
    seen.extend(play(batch, &mut slabs, 0, n_steps));
    seen
}
