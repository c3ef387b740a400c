//! `HostEnv`: transfers between host and device, and rejected values.
#![allow(clippy::expect_used)]

use brasa::classic::{CartPole, Pendulum};
use brasa::contracts::{HostEnv, Rows, VecEnv};
use brasa::env::wrappers::{EpisodeStats, TimeLimit};
use brasa::env::{Env, EnvError, EnvRng, EnvSpec, EnvVec, Space, Step};
use brasa_test::device;
use burn::tensor::Tensor;
use ndarray::{ArrayView1, ArrayViewMut1};

/// Counts to `bad_at`, then returns non-finite numbers; truncates at `truncated_at`, whatever its `interval` is.
#[derive(Default)]
struct Failing {
    step: u32,
    bad_at: u32,
    bad_obs: bool,
    truncated_at: u32,
    interval: u64,
}

impl Env for Failing {
    type State = u32;

    fn obs_space(&self) -> Space {
        Space::named_box([("power_kw", -1.0, 1.0)])
    }

    fn action_space(&self) -> Space {
        Space::Discrete(2)
    }

    fn truncation_interval(&self) -> u64 {
        self.interval
    }

    fn reset(&mut self, _rng: &mut EnvRng, mut obs: ArrayViewMut1<f32>) {
        self.step = 0;
        obs[0] = 0.0;
    }

    fn step(&mut self, _action: ArrayView1<f32>, _rng: &mut EnvRng, mut obs: ArrayViewMut1<f32>) -> Step {
        self.step += 1;
        let bad = self.step == self.bad_at;
        obs[0] = if bad && self.bad_obs { f32::INFINITY } else { 0.0 };
        let truncated = self.step == self.truncated_at;
        Step { reward: if bad && !self.bad_obs { f32::NAN } else { 0.0 }, truncated, ..Step::default() }
    }

    fn state(&self) -> u32 {
        self.step
    }

    fn set_state(&mut self, state: u32) {
        self.step = state;
    }
}

#[test]
fn numbers_that_are_not_finite_are_stopped_and_named() {
    for (bad_obs, what, value) in [(false, "reward", "NaN"), (true, "observation `power_kw`", "inf")] {
        // Only the environment with index 2 fails.
        let make = |env: usize| {
            let bad_at = if env == 2 { 3 } else { 0 };
            Failing { bad_at, bad_obs, interval: 1, ..Failing::default() }
        };
        let envs = EnvVec::new(0..4, make).expect("there are some");
        let mut env = HostEnv::new(envs, &device());
        env.reset(11).expect("the first observation is finite");
        let actions = Tensor::zeros([4, 1], &device());
        for _ in 0..2 {
            env.step(actions.clone()).expect("nothing is wrong yet");
        }
        let error = env.step(actions).expect_err("a number is not finite");
        assert!(matches!(error, EnvError::NotFinite { env: 2, seed: 11, step: 3, .. }), "{error}");
        let message = format!("environment 2 (seed 11) returned {value} as {what} at step 3 of the batch");
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn truncations_that_the_specification_excludes_are_errors() {
    let refused = |interval| {
        let envs =
            EnvVec::new(0..2, |_| Failing { truncated_at: 3, interval, ..Failing::default() }).expect("there are some");
        let mut env = HostEnv::new(envs, &device());
        env.reset(0).expect("it starts");
        (1..20).find_map(|step| {
            let error = env.step(Tensor::zeros([2, 1], &device())).err()?;
            Some((step, error.to_string()))
        })
    };
    assert_eq!([1, 3].map(refused), [None, None]);
    let (step, error) = refused(4).expect("it comes after three steps");
    assert_eq!(step, 6);
    let rule =
        "step 6, environment 0: truncated 3 steps after its previous truncation, but its `truncation_interval` is 4";
    assert!(error.contains(rule), "{error}");
    let (step, error) = refused(EnvSpec::NEVER).expect("it is never");
    assert_eq!(step, 3);
    assert!(error.contains("environment 0: truncated, but its `truncation_interval` is `EnvSpec::NEVER`"), "{error}");
}

/// Two choices; the second one has no legal action after step 2 of certain episodes.
struct Dead {
    env: usize,
    steps: u32,
}

impl Env for Dead {
    type State = u32;

    fn obs_space(&self) -> Space {
        Space::uniform_box(0.0, 1.0, ["nothing"])
    }

    fn action_space(&self) -> Space {
        Space::MultiDiscrete(vec![3, 2])
    }

    fn reset(&mut self, _: &mut EnvRng, mut obs: ArrayViewMut1<f32>) {
        self.steps = 0;
        obs.fill(0.0);
    }

    fn step(&mut self, _: ArrayView1<f32>, _: &mut EnvRng, mut obs: ArrayViewMut1<f32>) -> Step {
        self.steps += 1;
        obs.fill(0.0);
        Step::default()
    }

    fn has_mask(&self) -> bool {
        true
    }

    fn mask(&self, mut mask: ArrayViewMut1<f32>) {
        mask.fill(1.0);
        if self.env == 1 && self.steps == 2 {
            mask.slice_mut(ndarray::s![3..]).fill(0.0);
        }
    }

    fn state(&self) -> u32 {
        self.steps
    }

    fn set_state(&mut self, state: u32) {
        self.steps = state;
    }
}

#[test]
fn v18_a_mask_that_allows_nothing_is_an_error() {
    let envs = EnvVec::new(0..3, |env| Dead { env, steps: 0 }).expect("there are some");
    let mut env = HostEnv::new(envs, &device());
    env.reset(7).expect("everything is legal");
    let actions = Tensor::<2>::zeros([3, 2], &device());
    env.step(actions.clone()).expect("everything is legal");
    let error = env.step(actions).expect_err("nothing is legal");
    assert!(matches!(error, EnvError::NothingLegal { env: 1, agent: 0, seed: 7, step: 2 }), "{error}");
    let message = "environment 1 (seed 7): the mask of agent 0 forbids every action at step 2 of the batch";
    assert_eq!(error.to_string(), message);
}

#[test]
fn one_upload_and_one_read_back_per_step() {
    let envs = EnvVec::new(0..8, |_| Pendulum::default()).expect("there are some");
    let mut env = HostEnv::new(TimeLimit::new(envs, 50).expect("the limit is above 0"), &device());
    env.reset(0).expect("the environments start");
    let before = env.transfers();
    let mut ends = 0;
    for _ in 0..200 {
        let step = env.step(Tensor::zeros([8, 1], &device())).expect("the environments step");
        ends += u64::from(step.successor.rows().is_some());
    }
    let after = env.transfers();
    assert_eq!(ends, 4, "all environments end together, every 50 steps");
    assert_eq!(after.read_backs - before.read_backs, 200);
    assert_eq!(after.uploads - before.uploads, 200 + ends);
}

#[test]
fn what_the_device_sees_is_what_the_host_wrote() {
    let envs = EnvVec::new(0..3, |_| CartPole::default()).expect("there are some");
    let mut env = HostEnv::new(EpisodeStats::new(TimeLimit::new(envs, 5).expect("above 0")), &device());
    let obs = env.reset(1).expect("the environments start");
    assert_eq!(obs.n_rows(), 3);
    for step in 1..=12 {
        let batch = env.step(Tensor::ones([3, 1], &device())).expect("the environments step");
        let slabs = env.slabs();
        let values = |tensor: Tensor<2>| tensor.into_data().iter::<f32>().collect::<Vec<_>>();
        assert_eq!(values(batch.obs.values.clone()), slabs.obs.iter().copied().collect::<Vec<_>>());
        assert_eq!(values(batch.next_obs().values), slabs.next_obs.iter().copied().collect::<Vec<_>>());
        let truncated: Vec<f32> = batch.truncated.clone().into_data().iter::<f32>().collect();
        assert_eq!(truncated, vec![f32::from(u8::from(step % 5 == 0)); 3]);
        assert_eq!(batch.terminated.into_data().iter::<f32>().sum::<f32>(), 0.0);
    }
    let mut episodes = Vec::new();
    env.drain_episodes(&mut episodes).expect("there is nothing to read");
    assert_eq!(episodes.len(), 6);
    assert!(episodes.iter().all(|episode| episode.length == 5 && episode.episode_return == 5.0));
}

#[test]
fn saved_environments_go_on_bit_for_bit() {
    let make = || {
        let envs = EnvVec::new(0..4, |_| CartPole::default()).expect("there are some");
        HostEnv::new(TimeLimit::new(envs, 20).expect("above 0"), &device())
    };
    let actions = |step: usize| Tensor::<2>::full([4, 1], (step % 2) as f32, &device());
    let mut env = make();
    env.reset(5).expect("the environments start");
    for step in 0..30 {
        env.step(actions(step)).expect("the environments step");
    }
    let saved = env.save();
    let mut twin = make();
    let resumed = twin.load(&saved).expect("it was saved by the same kind");
    assert_eq!(
        resumed.values.into_data().iter::<f32>().collect::<Vec<_>>(),
        env.slabs().obs.as_slice().expect("contiguous")
    );
    for step in 30..60 {
        env.step(actions(step)).expect("the environments step");
        twin.step(actions(step)).expect("the environments step");
        assert_eq!(env.slabs(), twin.slabs());
    }
    assert!(twin.load(&saved[..10]).is_err());
}
