//! Environments as tensor operations equal those of the host, and learn.

use brasa::classic::tensor::{
    TensorAcrobot, TensorCartPole, TensorMountainCar, TensorMountainCarContinuous, TensorPendulum,
};
use brasa::classic::{
    Acrobot, CartPole, CartPoleNoVelocity, CartPoleRules, MountainCar, MountainCarContinuous, NoVelocity, Pendulum,
    PendulumNoVelocity, PendulumRules, Spread, SpreadConfig,
};
use brasa::contracts::{
    HostEnv, Obs, ObsForm, ObsParts, RuleTensors, Shared, StepBatch, Successor, TeamObs, TensorDynamics, TensorEnv,
    VecEnv, check_dynamics,
};
use brasa::env::wrappers::{JointObs, NormalizeObs, TimeLimit};
use brasa::env::{Env, EnvBatch, EnvSpec, EnvVec, Episode, episode_rng, named_rng};
use brasa_test::{device, slow};
use burn::tensor::{Int, Tensor, TensorData};
use rand::RngExt;

#[cfg(feature = "energy")]
#[path = "../../../brasa-citylearn/tests/suite/common/data.rs"]
#[allow(dead_code, reason = "only some of it is used here")]
mod small_district;

fn floats<const D: usize>(tensor: &Tensor<D>) -> Vec<f32> {
    tensor.to_data().iter().collect()
}

fn matrix(values: Vec<f32>, width: usize) -> Tensor<2> {
    let rows = values.len() / width;
    Tensor::from_data(TensorData::new(values, [rows, width]), &device())
}

/// Numbers that the host's environments draw at the start of their episodes, for as many episodes as are needed.
struct Starts {
    seed: u64,
    width: usize,
    episodes: Vec<u64>,
}

impl Starts {
    /// `[n_envs, width]`: the noise of the next episode of each environment.
    fn next(&self) -> Tensor<2> {
        let noise = |(env, episode): (usize, &u64)| {
            let mut rng = episode_rng(self.seed, env as u64, *episode);
            (0..self.width).map(move |_| rng.random::<f64>() as f32).collect::<Vec<_>>()
        };
        matrix(self.episodes.iter().enumerate().flat_map(noise).collect(), self.width)
    }

    fn ended(&mut self, step: &StepBatch<Obs>) {
        // An episode ends for all agents of an environment.
        let ends = floats(&step.episode_end());
        let ends = ends.chunks(ends.len() / self.episodes.len()).map(|agents| agents[0]);
        self.episodes.iter_mut().zip(ends).filter(|(_, end)| *end > 0.0).for_each(|(episode, _)| *episode += 1);
    }
}

fn close(a: &[f32], b: &[f32], what: &str) {
    assert_eq!(a.len(), b.len(), "{what}");
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        assert!((a - b).abs() <= 1e-4 * b.abs().max(1.0), "{what}, number {i}: {a} instead of {b}");
    }
}

/// [`compare_batches`] for environments of one agent.
fn compare<E: Env>(
    make: impl FnMut(usize) -> E,
    dynamics: impl TensorDynamics,
    limit: u32,
    n_steps: usize,
    normalizes: bool,
    action: impl FnMut(usize, &[f32]) -> Vec<f32>,
) -> [usize; 2] {
    let batch = TimeLimit::new(EnvVec::new(0..9, make).expect("there are some"), limit).expect("above 0");
    compare_batches(batch, dynamics, limit, n_steps, Wrapped { normalizes, joins: false }, action)
}

/// What is around the environments.
#[derive(Clone, Copy)]
struct Wrapped {
    normalizes: bool,
    joins: bool,
}

/// Steps both forms with the same actions and noise, and compares everything. Returns the numbers of rows that terminated and
/// were truncated.
fn compare_batches<D: TensorDynamics>(
    batch: impl EnvBatch + 'static,
    dynamics: D,
    limit: u32,
    n_steps: usize,
    Wrapped { normalizes, joins }: Wrapped,
    mut action: impl FnMut(usize, &[f32]) -> Vec<f32>,
) -> [usize; 2] {
    let (n_envs, n_agents, seed) = (batch.n_envs(), batch.n_agents(), 5);
    check_dynamics(50, &dynamics, &device()).expect("they keep the contract");
    let on_device = TensorEnv::<_>::new(dynamics, n_envs, &device()).expect("there are some");
    let mut on_device = on_device.with_time_limit(limit).expect("above 0");
    let mut batch: Box<dyn EnvBatch> = Box::new(batch);
    if normalizes {
        on_device = on_device.normalizing().expect("observations are flat");
        batch = Box::new(NormalizeObs::new(batch).expect("observations are flat"));
    }
    if joins {
        on_device = on_device.joining().expect("there are several agents");
        batch = Box::new(JointObs::new(batch).expect("there are several agents"));
    }
    let mut host: HostEnv<_, Obs> = HostEnv::new(batch, &device());
    let ends_are_known = !on_device.dynamics().terminates();
    assert_eq!(on_device.spec(), &EnvSpec { keeps_episodes: true, ends_are_known, ..host.spec().clone() });
    let mut starts = Starts { seed, width: on_device.dynamics().noise().start, episodes: vec![0; n_envs] };
    let mut obs = host.reset(seed).expect("it starts");
    let on = on_device.reset_with(starts.next());
    starts.episodes.fill(1);
    close(&floats(&on.values), &floats(&obs.values), "first observations");
    let mut ends = [0, 0];
    for step in 0..n_steps {
        let actions = matrix(action(step, &floats(&obs.values)), 1);
        let expected = host.step(actions.clone()).expect("it steps");
        let no_noise = Tensor::zeros([n_envs, 0], &device());
        let seen = on_device.step_with(actions, no_noise, starts.next());
        starts.ended(&expected);
        let what = |name: &str| format!("{name} of step {step}");
        close(&floats(&seen.reward), &floats(&expected.reward), &what("rewards"));
        close(&floats(&seen.terminated), &floats(&expected.terminated), &what("terminated"));
        close(&floats(&seen.truncated), &floats(&expected.truncated), &what("truncated"));
        close(&floats(&seen.obs.values), &floats(&expected.obs.values), &what("observations"));
        let truncated = floats(&expected.truncated);
        if truncated.iter().any(|flag| *flag > 0.0) {
            assert!(matches!(seen.successor, Successor::Rows(_)));
            let [a, b] = [seen.next_obs(), expected.next_obs()].map(|obs| floats(&obs.values));
            let n_rows = n_envs * n_agents;
            let width = a.len() / n_rows;
            for row in (0..n_rows).filter(|row| truncated[*row] > 0.0) {
                let at = row * width..(row + 1) * width;
                close(&a[at.clone()], &b[at], &what("successors"));
            }
        }
        ends[0] += floats(&expected.terminated).iter().filter(|flag| **flag > 0.0).count();
        ends[1] += truncated.iter().filter(|flag| **flag > 0.0).count();
        obs = expected.obs;
    }
    let (mut a, mut b): (Vec<Episode>, Vec<Episode>) = (Vec::new(), Vec::new());
    on_device.drain_episodes(&mut a).expect("everything is finite");
    host.drain_episodes(&mut b).expect("there is nothing to read");
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(&b) {
        assert_eq!((a.env, a.length), (b.env, b.length));
        let [of_a, of_b] = [a, b].map(|episode| episode.info.iter().map(|figure| *figure as f32).collect::<Vec<_>>());
        close(&of_a, &of_b, "figures");
        assert!((a.episode_return - b.episode_return).abs() < 1e-4 * b.episode_return.abs().max(1.0), "{a:?}, {b:?}");
    }
    if let Some(moments) = host.obs_moments() {
        let own = on_device.obs_moments().expect("it normalizes too");
        assert_eq!(own.count, moments.count);
    }
    ends
}

#[test]
fn the_cart_pole_is_that_of_the_host() {
    for normalizes in [false, true] {
        // Pushes in the direction in which the pole falls, mostly: some episodes last for the limit.
        let mut rng = named_rng(1, "test", 0);
        let action = |_: usize, obs: &[f32]| {
            let push = |row: &[f32]| f32::from(u8::from((row[2] + row[3] > 0.0) != (rng.random::<f32>() < 0.4)));
            obs.chunks(4).map(push).collect()
        };
        let [terminated, truncated] =
            compare(|_| CartPole::default(), TensorCartPole::default(), 60, 300, normalizes, action);
        assert!(truncated >= 5 && (normalizes || terminated >= 1), "{terminated} and {truncated}");
    }
}

#[test]
fn the_pendulum_is_that_of_the_host() {
    for normalizes in [false, true] {
        let action = |step: usize, obs: &[f32]| {
            (0..obs.len() / 3).map(|env| 2.5 * ((step * (env + 1)) as f32 * 0.1).sin()).collect()
        };
        let ends = compare(|_| Pendulum::default(), TensorPendulum::default(), 40, 130, normalizes, action);
        assert_eq!(ends, [0, 27]);
    }
}

#[test]
fn tasks_without_speeds_are_those_of_the_host() {
    // Every other push is against the angle, so that poles fall.
    let push = |step: usize, obs: &[f32]| -> Vec<f32> {
        obs.chunks(4)
            .enumerate()
            .map(|(env, row)| f32::from((row[2] > 0.0) != (step + env).is_multiple_of(3)))
            .collect()
    };
    let pole = |_: usize| CartPoleNoVelocity::default();
    let tensors = RuleTensors::<NoVelocity<CartPoleRules>, 4, 1, 4>::default();
    let [terminated, _] = compare(pole, tensors, 60, 200, false, push);
    assert!(terminated >= 5, "{terminated}");
    let torque = |step: usize, obs: &[f32]| (0..obs.len() / 3).map(|env| ((step + env) as f32 * 0.3).sin()).collect();
    let tensors = RuleTensors::<NoVelocity<PendulumRules>, 2, 1, 3>::default();
    let ends = compare(|_| PendulumNoVelocity::default(), tensors, 40, 130, true, torque);
    assert_eq!(ends, [0, 27]);
}

#[test]
fn cars_and_links_are_those_of_the_host() {
    // Pushes along the movement, which drives the car out of the valley, now and then another one.
    let push = |obs: &[f32], left: f32, right: f32| -> Vec<f32> {
        obs.chunks(2).map(|row| if row[1] < 0.0 { left } else { right }).collect()
    };
    let discrete = |step: usize, obs: &[f32]| if step % 11 == 3 { vec![1.0; 9] } else { push(obs, 0.0, 2.0) };
    let [terminated, _] = compare(|_| MountainCar::default(), TensorMountainCar::default(), 200, 300, false, discrete);
    assert!(terminated >= 9, "{terminated}");
    let continuous = |step: usize, obs: &[f32]| push(obs, -0.7 - (step % 5) as f32 * 0.1, 1.1);
    let [terminated, _] = compare(
        |_| MountainCarContinuous::default(),
        TensorMountainCarContinuous::default(),
        999,
        300,
        true,
        continuous,
    );
    assert!(terminated >= 9, "{terminated}");
    // Links that swing are chaotic: numbers of 32 bits stay near those of 64 for a while.
    let torque = |step: usize, obs: &[f32]| (0..obs.len() / 6).map(|env| ((step / 7 + env) % 3) as f32).collect();
    let ends = compare(|_| Acrobot::default(), TensorAcrobot::default(), 20, 60, false, torque);
    assert_eq!(ends, [0, 27]);
}

#[test]
fn teams_are_those_of_the_host() {
    // Contacts of agents are chaotic: numbers of 32 bits stay near those of 64 for a while.
    for n_agents in [1, 2, 3, 7] {
        let config = SpreadConfig { n_agents, local_ratio: 0.3, episode_steps: 12 };
        let spread = Spread::new(config).expect("it is valid");
        let (dynamics, limit) = spread.tensors(&device());
        let rng = &mut named_rng(1, "test", n_agents as u64);
        let moves = |_: usize, _: &[f32]| (0..5 * n_agents).map(|_| rng.random_range(0..5) as f32).collect();
        let batch = spread.batch(0..5).expect("there are some");
        let wrapped = Wrapped { normalizes: n_agents < 3, joins: n_agents > 1 };
        let ends = compare_batches(batch, dynamics, limit, 130, wrapped, moves);
        assert_eq!(ends, [0, 10 * 5 * n_agents]);
    }
}

/// Spread shares no numbers; a network of users does.
#[test]
fn teams_with_shared_numbers_are_joint_in_both_forms() {
    let tensor = |values: Vec<f32>, width: usize| Some(matrix(values, width));
    let numbers = |n: usize| (0..n).map(|i| i as f32).collect::<Vec<_>>();
    let (shared, own) = (tensor(numbers(4), 2), tensor(numbers(18), 3));
    let parts = ObsParts { shared, own, mask: None, n_agents: 3, actions_per_flag: 1 };
    let team: Tensor<1, Int> = Tensor::from_ints([1, 2, 0, 2, 0, 1, 0, 1, 2, 4, 5, 3, 5, 3, 4, 3, 4, 5], &device());
    let rows = Obs::assemble(parts.clone()).joint(2, team.clone()).values;
    let joint = TeamObs::assemble(parts).joint(2, team);
    assert_eq!(floats(&rows), floats(&joint.rows()));
    assert_eq!(floats(&rows)[..11], [0.0, 1.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 0.0, 1.0, 2.0]);
    assert!(matches!(joint.shared, Some(Shared::PerEnv(rows)) if rows.dims() == [2, 2]));
}

#[test]
fn what_is_normalized_on_use_is_not_joint() {
    let spread = || {
        let (dynamics, _) = Spread::new(SpreadConfig::default()).expect("it is valid").tensors(&device());
        TensorEnv::<_>::new(dynamics, 2, &device()).expect("there are two")
    };
    let messages = [spread().watching().and_then(TensorEnv::joining), spread().joining().and_then(TensorEnv::watching)];
    for message in messages {
        let error = message.expect_err("moments are those of an actor").to_string();
        assert_eq!(error, "invalid space: observations that are normalized where they are used have no joint form");
    }
}

#[test]
fn moments_for_loops_that_replay_are_those_of_the_host() {
    let (n_envs, seed, limit) = (5, 3, 20);
    let batch = EnvVec::new(0..n_envs, |_| Pendulum::default()).expect("there are some");
    let batch = NormalizeObs::watching(TimeLimit::new(batch, limit).expect("above 0")).expect("observations are flat");
    let mut host: HostEnv<_, Obs> = HostEnv::new(batch, &device());
    let env = TensorEnv::<_>::new(TensorPendulum::default(), n_envs, &device()).expect("there are some");
    let mut on_device = env.with_time_limit(limit).and_then(TensorEnv::watching).expect("observations are flat");
    assert_eq!(on_device.spec(), &EnvSpec { keeps_episodes: true, ..host.spec().clone() });
    let mut starts = Starts { seed, width: 2, episodes: vec![0; n_envs] };
    host.reset(seed).expect("it starts");
    on_device.reset_with(starts.next());
    starts.episodes.fill(1);
    for step in 0..50 {
        let actions = matrix((0..n_envs).map(|env| ((step + env) as f32).sin()).collect(), 1);
        let expected = host.step(actions.clone()).expect("it steps");
        let got = on_device.step_with(actions, Tensor::zeros([n_envs, 0], &device()), starts.next());
        starts.ended(&expected);
        // Observations come as they are, and are normalized with moments of all steps, without a reading.
        close(&floats(&got.obs.values), &floats(&expected.obs.values), "observations");
        let [a, b] = [on_device.normalization(), host.normalization()].map(|by| by.expect("it watches"));
        close(&floats(&a.mean), &floats(&b.mean), "means");
        close(&floats(&a.deviation), &floats(&b.deviation), "deviations");
    }
    assert!(TensorEnv::<_>::new(TensorPendulum::default(), 1, &device()).expect("one").normalization().is_none());
}

/// Rewards of `smoothed` follow from those of `plain`, with the same seed and actions, as [`brasa::env::wrappers::ShapeReward`] defines them;
/// a restored state goes on with them.
fn compare_smoothed<D: TensorDynamics>(make: impl Fn() -> TensorEnv<D>, n_actions: Option<usize>) {
    let (scale, lambda) = (2.0, 0.3);
    let mut plain = make();
    let smooth = || make().scaling_rewards(scale).smoothing_rewards(lambda).expect("it is in [0, 1)");
    let mut smoothed = smooth();
    plain.reset(3).expect("it resets");
    smoothed.reset(3).expect("it resets");
    let n_rows = plain.n_rows();
    let (mut last, mut n_ends) = (vec![None; n_rows], 0.0);
    for step in 0..60 {
        if step == 30 {
            let saved = smoothed.save();
            smoothed = smooth();
            smoothed.load(&saved).expect("it is its own state");
            assert!(make().load(&saved).is_err(), "environments without smoothing have no place for it");
        }
        let numbers = |i: usize| match n_actions {
            Some(n) => ((step * 7 + i * 3) % n) as f32,
            None => ((step * 7 + i * 3) as f32 * 0.1).sin(),
        };
        let action = matrix((0..n_rows).map(numbers).collect(), 1);
        let rewards = floats(&plain.step(action.clone()).expect("it steps").reward);
        let step = smoothed.step(action).expect("it steps");
        let ends = floats(&step.episode_end());
        n_ends += ends.iter().sum::<f32>();
        for (((now, end), last), got) in rewards.iter().zip(ends).zip(&mut last).zip(floats(&step.reward)) {
            let now = f64::from(*now) * scale;
            let expected = last.map_or(now, |last| (1.0 - lambda) * now + lambda * last);
            assert!((f64::from(got) - expected).abs() < 1e-5 * expected.abs().max(1.0), "{got} instead of {expected}");
            *last = (end == 0.0).then_some(expected);
        }
    }
    assert!(n_ends > 0.0, "episodes ended");
}

#[test]
fn smoothed_rewards_are_those_of_the_host() {
    let pole = || {
        TensorEnv::new(TensorCartPole::default(), 5, &device())
            .expect("it is valid")
            .with_time_limit(25)
            .expect("it is above 0")
    };
    compare_smoothed(pole, Some(2));
    let pendulum = || {
        TensorEnv::new(TensorPendulum::default(), 4, &device())
            .expect("it is valid")
            .with_time_limit(13)
            .expect("it is above 0")
    };
    compare_smoothed(pendulum, None);
}

#[test]
fn runs_repeat_and_states_are_restored() {
    let make = || {
        let env = TensorEnv::<_>::new(TensorCartPole::default(), 6, &device()).unwrap();
        env.with_time_limit(20).unwrap().normalizing().unwrap()
    };
    let action = |step: usize| matrix((0..6).map(|env| ((step * 7 + env * 3) % 5 > 2) as u8 as f32).collect(), 1);
    let play = |env: &mut TensorEnv<TensorCartPole>, steps: std::ops::Range<usize>| -> Vec<f32> {
        steps
            .flat_map(|step| {
                let step = env.step(action(step)).expect("it steps");
                [floats(&step.obs.values), floats(&step.reward), floats(&step.next_obs().values)].concat()
            })
            .collect()
    };
    let (mut a, mut b) = (make(), make());
    assert_eq!(floats(&a.reset(3).unwrap().values), floats(&b.reset(3).unwrap().values));
    assert_eq!(play(&mut a, 0..50), play(&mut b, 0..50));
    a.drain_episodes(&mut Vec::new()).unwrap();
    let saved = a.save();
    let mut c = make();
    c.load(&saved).expect("it is its own state");
    assert_eq!(play(&mut a, 50..120), play(&mut c, 50..120));
    let (mut x, mut y) = (Vec::new(), Vec::new());
    a.drain_episodes(&mut x).unwrap();
    c.drain_episodes(&mut y).unwrap();
    assert!(!x.is_empty() && x == y);
    // Another seed, another number of environments, and other rules.
    assert_ne!(floats(&a.reset(4).unwrap().values), floats(&b.reset(3).unwrap().values));
    let others = TensorEnv::<_>::new(TensorCartPole::default(), 5, &device()).unwrap().load(&saved);
    assert!(others.expect_err("another number").to_string().contains("6 environments"));
    let others = TensorEnv::<_>::new(TensorPendulum::default(), 6, &device()).unwrap().load(&saved);
    assert!(
        others.expect_err("other rules").to_string().contains("it is a state of `RuleTensors<CartPoleRules, 4, 1, 4>`")
    );
    let plain = TensorEnv::<_>::new(TensorCartPole::default(), 6, &device()).unwrap().load(&saved);
    assert!(plain.expect_err("no moments").to_string().contains("normalizes observations"));
}

#[test]
fn numbers_that_are_not_finite_are_found_when_episodes_are_read() {
    let mut env = TensorEnv::<_>::new(TensorPendulum::default(), 2, &device()).unwrap();
    env.reset(0).unwrap();
    env.step(matrix(vec![f32::NAN, 0.0], 1)).unwrap();
    let numbers = floats(&env.pending_episodes().expect("it was reset"));
    let error = env.accept_episodes(&numbers).expect_err("an angle is NaN");
    assert!(error.to_string().contains("NaN"), "{error}");
    // A reset leaves nothing of it in the state: the episode that ended tells.
    let mut env = TensorEnv::<_>::new(TensorPendulum::default(), 2, &device()).unwrap().with_time_limit(3).unwrap();
    env.reset(0).unwrap();
    for step in 0..7 {
        env.step(matrix(vec![0.0, if step == 1 { f32::NAN } else { 0.0 }], 1)).unwrap();
    }
    let error = env.drain_episodes(&mut Vec::new()).expect_err("an angle was NaN");
    assert!(matches!(error, brasa::env::EnvError::NotFinite { env: 1, .. }), "{error}");
}

/// Steps a district in both forms over whole episodes, in which batteries become full and empty, and compares everything.
#[cfg(feature = "energy")]
fn compare_districts(config: brasa::citylearn::CityLearnConfig, n_batteries: usize, n_steps: usize) {
    use brasa::citylearn::{CityLearn, Physics};
    let (n_envs, seed) = (3, 5);
    let (physics, random_start) = (config.physics, config.random_start);
    let scenario = CityLearn::new(config).expect("the settings are valid");
    let batch = scenario.batch(0..n_envs).expect("there are some");
    let mut host = HostEnv::new(batch, &device());
    let (tensors, limit) = scenario.tensors(&device()).expect("the rules have this form");
    check_dynamics(20, &tensors, &device()).expect("they keep the contract");
    let mut on_device = TensorEnv::<_>::new(tensors, n_envs, &device())
        .expect("there are some")
        .with_time_limit(limit)
        .expect("above 0");
    assert_eq!(on_device.spec(), &EnvSpec { keeps_episodes: true, ..host.spec().clone() });
    // The rows on which the host's episodes start.
    let rows = 8760 - usize::from(physics != Physics::Clean);
    let (weeks, length) = ([336_usize, 504], (limit as usize).min(90));
    let starts = rows / weeks[1] * (weeks[0] - length + 1) + rows % weeks[1] + 1 - length;
    let noise = |episode: u64| match random_start {
        true => {
            let row = |env| episode_rng(seed, env, episode).random_range(0..=starts - 1);
            let noise = (0..n_envs as u64).map(|env| (row(env) as f32 + 0.5) / starts as f32);
            matrix(noise.collect(), 1)
        }
        false => Tensor::zeros([n_envs, 0], &device()),
    };
    let obs = host.reset(seed).expect("it starts");
    let seen = on_device.reset_with(noise(0));
    close(&floats(&seen.values), &floats(&obs.values), "first observations");
    let mut rng = named_rng(2, "test", 0);
    for step in 0..n_steps {
        let actions = (0..n_envs * n_batteries).map(|i| {
            // Some charge for days, some discharge for days, some do this and that.
            let trend = [0.8f32, -0.8, 0.0][(step / 60 + i) % 3];
            trend + rng.random::<f32>() - 0.5
        });
        let actions = matrix(actions.collect(), n_batteries);
        let expected = host.step(actions.clone()).expect("it steps");
        let nothing = Tensor::zeros([n_envs, 0], &device());
        let got = on_device.step_with(actions, nothing, noise((step as u64 + 1) / u64::from(limit)));
        let what = |name: &str| format!("{name} of step {step}, {physics:?}, random start {random_start}");
        close(&floats(&got.reward), &floats(&expected.reward), &what("rewards"));
        close(&floats(&got.truncated), &floats(&expected.truncated), &what("truncated"));
        close(&floats(&got.obs.values), &floats(&expected.obs.values), &what("observations"));
        close(&floats(&got.next_obs().values), &floats(&expected.next_obs().values), &what("successors"));
    }
    let (mut a, mut b) = (Vec::new(), Vec::new());
    on_device.drain_episodes(&mut a).expect("everything is finite");
    host.drain_episodes(&mut b).expect("there is nothing to read");
    assert_eq!((a.len(), b.len() >= n_envs), (b.len(), true));
    for (a, b) in a.iter().zip(&b) {
        let values = |episode: &Episode| [&[episode.episode_return], &episode.info[..]].concat();
        for (a, b) in values(a).iter().zip(values(b)) {
            assert!((a - b).abs() < 1e-4 * b.abs().max(1.0), "{a} instead of {b}");
        }
    }
}

#[cfg(feature = "energy")]
#[test]
fn the_district_is_that_of_the_host() {
    use brasa::citylearn::{CityLearnConfig, Observations, Physics, Reward};
    for physics in [Physics::Clean, Physics::CityLearn25, Physics::CityLearn30] {
        let whole = brasa::device::runs_on_host(&device()) || slow("a year of a district on another device");
        let first = if whole { (None, false, 8800) } else { (Some(70), false, 80) };
        for (episode_steps, random_start, n_steps) in [first, (Some(90), true, if whole { 400 } else { 100 })] {
            let (observations, reward) = match random_start {
                true => (Observations::Raw, Reward::Challenge),
                false => (Observations::Normalized, Reward::ChallengeImprovement),
            };
            // With random starts also without every third week, and with shaped rewards.
            let (held_out_weeks, shaped) = (random_start.then_some(3), random_start);
            let config = CityLearnConfig {
                physics,
                episode_steps,
                random_start,
                held_out_weeks,
                observations,
                reward,
                shaped,
                ..Default::default()
            };
            compare_districts(config, 5, n_steps);
        }
    }
}

/// Batteries are not numbered as buildings are.
#[cfg(feature = "energy")]
#[test]
fn a_district_in_which_few_buildings_have_a_battery_is_that_of_the_host() {
    use brasa::citylearn::{CityLearnConfig, Physics};
    let data = small_district::Data::new();
    data.edit(|schema| {
        let home = schema["buildings"]["Home"].clone();
        let mut bare = home.clone();
        bare.as_object_mut().expect("a building").remove("electrical_storage");
        bare["pv"]["attributes"]["nominal_power"] = 1.5.into();
        let mut larger = home;
        larger["electrical_storage"]["attributes"]["capacity"] = 9.0.into();
        schema["buildings"] =
            serde_json::json!({ "A": bare, "B": schema["buildings"]["Home"], "C": bare, "D": larger });
    });
    for physics in [Physics::Clean, Physics::CityLearn25, Physics::CityLearn30] {
        let folder = data.folder.to_str().expect("a name in UTF-8").to_owned();
        let config = CityLearnConfig { physics, data: folder, ..Default::default() };
        compare_districts(config, 2, small_district::ROWS + 20);
    }
}
