//! Networks as tensor operations equal those of the host, with the same random numbers.
#![allow(clippy::expect_used)]

use std::f64::consts::TAU;

use crate::common::tensors::{close, floats, matrix};
use brasa::contracts::{
    HostEnv, Rows, StepBatch, Successor, TeamObs, TensorDynamics, TensorEnv, VecEnv, check_dynamics,
};
use brasa::env::wrappers::EpisodeStats;
use brasa::env::{BatchSlabs, EnvBatch, EnvRng, EnvSpec, Episode, episode_rng, named_rng};
use brasa::uara::{
    Candidates, Coverage, DynamicsConfig, Heuristic, Interference, LayoutConfig, Part, PowerUnit, Redraw, Reward,
    Spread, Start, Uara, UaraBatch, UaraConfig,
};
use brasa_test::device;
use ndarray::Array2;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

/// Uniform numbers from which Box and Muller's formula gives the normal numbers `z`, in pairs over half of their number.
fn for_normals(mut z: Vec<f64>) -> Vec<f32> {
    let half = z.len().div_ceil(2);
    z.resize(2 * half, 0.0);
    let pairs = || (0..half).map(|i| (z[i], z[i + half]));
    let radius = pairs().map(|(a, b)| -(-(a * a + b * b) / 2.0).exp_m1());
    let angle = pairs().map(|(a, b)| (b.atan2(a) / TAU).rem_euclid(1.0));
    radius.chain(angle).map(|x| x as f32).collect()
}

/// The random numbers of an environment on the host, in the order of those on the device.
struct Stream {
    rng: EnvRng,
    homes: Vec<[f64; 2]>,
    waypoints: Vec<[f64; 2]>,
}

/// Shares and angles of points around large cells.
#[derive(Default)]
struct Points {
    shares: Vec<f32>,
    angles: Vec<f32>,
}

impl Points {
    /// The next point, drawn as on the host.
    fn draw(&mut self, config: &UaraConfig, home: [f64; 2], rng: &mut EnvRng) -> [f64; 2] {
        let (share, angle): (f64, f64) = (rng.random(), rng.random());
        self.shares.push(share as f32);
        self.angles.push(angle as f32);
        let radius =
            config.macro_cells.radius_m * if config.layout.spread == Spread::Uniform { share.sqrt() } else { share };
        let angle = (angle - 0.5) * TAU;
        [home[0] + radius * angle.cos(), home[1] + radius * angle.sin()]
    }

    fn noise(self) -> Vec<f32> {
        [self.shares, self.angles].concat()
    }
}

impl Stream {
    fn new() -> Self {
        Self { rng: episode_rng(0, 0, 0), homes: Vec::new(), waypoints: Vec::new() }
    }

    /// `2 * n_links` normal numbers of amplitudes.
    fn amplitudes(&mut self, config: &UaraConfig) -> Vec<f32> {
        let n_links = config.users * config.n_stations();
        let mut z = vec![0.0; 2 * n_links];
        for link in 0..n_links {
            for part in 0..2 {
                let normal: f32 = StandardNormal.sample(&mut self.rng);
                z[part * n_links + link] = normal.into();
            }
        }
        for_normals(z)
    }

    /// The noise of the start of an episode.
    fn begin(&mut self, config: &UaraConfig, batch: &UaraBatch, seed: u64, env: usize, episode: u64) -> Vec<f32> {
        self.rng = episode_rng(seed, env as u64, episode);
        let mut noise = Vec::new();
        if config.layout.redraw == Redraw::Episode {
            let macros = config.macro_cells.count;
            for n in [config.femto_cells.count, config.users] {
                let (mut homes, mut points) = (Vec::new(), Points::default());
                for _ in 0..n {
                    let home = self.rng.random_range(0..macros as u32);
                    homes.push((home as f32 + 0.5) / macros as f32);
                    points.draw(config, [0.0; 2], &mut self.rng);
                }
                noise.extend(homes);
                noise.extend(points.noise());
            }
            if config.dynamics.shadowing_db > 0.0 {
                let n_links = config.users * config.n_stations();
                noise.extend(for_normals((0..n_links).map(|_| StandardNormal.sample(&mut self.rng)).collect()));
            }
        }
        if config.dynamics.fading {
            noise.extend(self.amplitudes(config));
        }
        if config.dynamics.speed_m_per_s > 0.0 {
            let layout = batch.layout(env);
            self.homes = layout.homes.iter().map(|home| layout.stations_m[usize::from(*home)]).collect();
            let mut points = Points::default();
            self.waypoints = self.homes.iter().map(|home| points.draw(config, *home, &mut self.rng)).collect();
            noise.extend(points.noise());
        }
        if config.observes(Part::Tags) {
            noise.extend((0..config.users * config.channels).map(|_| self.rng.random::<f32>()));
        }
        if config.start == Start::Strongest {
            let channels = config.channels as u32;
            let draw = |_| (self.rng.random_range(0..channels) as f32 + 0.5) / channels as f32;
            noise.extend((0..config.users).map(draw).collect::<Vec<_>>());
        }
        noise
    }

    /// The noise of a step that begins with users at `users_m`, and the number of users that arrive.
    fn step(&mut self, config: &UaraConfig, users_m: &[[f64; 2]]) -> (Vec<f32>, usize) {
        let mut n_arrived = 0;
        if config.dynamics.speed_m_per_s == 0.0 {
            return (Vec::new(), 0);
        }
        let reach = config.dynamics.speed_m_per_s * config.dynamics.step_secs;
        let (mut shares, mut angles) = (Vec::new(), Vec::new());
        for (user, at) in users_m.iter().enumerate() {
            let mut points = Points::default();
            let to = self.waypoints[user];
            if (to[0] - at[0]).hypot(to[1] - at[1]) <= reach {
                self.waypoints[user] = points.draw(config, self.homes[user], &mut self.rng);
                n_arrived += 1;
            }
            shares.push(points.shares.first().copied().unwrap_or(0.0));
            angles.push(points.angles.first().copied().unwrap_or(0.0));
        }
        let fading = if config.dynamics.fading { self.amplitudes(config) } else { Vec::new() };
        ([shares, angles, fading].concat(), n_arrived)
    }
}

/// What happened in a comparison.
#[derive(Debug, Default)]
struct Seen {
    terminated: usize,
    truncated: usize,
    arrived: usize,
    satisfied: f64,
    rejected: f64,
}

fn compare_obs(a: &TeamObs, b: &TeamObs, rows: Option<&[bool]>, what: &str) {
    let [x, y] = [a, b].map(|obs| (floats(&obs.rows()), obs.mask.as_ref().map(floats)));
    let n_rows = a.n_rows();
    for row in (0..n_rows).filter(|row| rows.is_none_or(|rows| rows[*row])) {
        let part = |values: &[f32]| {
            let width = values.len() / n_rows;
            values[row * width..(row + 1) * width].to_vec()
        };
        close(&part(&x.0), &part(&y.0), &format!("{what}, row {row}"));
        assert_eq!(
            x.1.as_ref().map(|mask| part(mask)),
            y.1.as_ref().map(|mask| part(mask)),
            "mask of {what}, row {row}"
        );
    }
}

/// Steps both forms with the same actions and noise, and compares everything. Users act randomly, and sometimes as a planner tells them.
fn compare(config: UaraConfig, n_envs: usize, n_steps: usize) -> Seen {
    let (seed, users) = (5, config.users);
    let scenario = Uara::new(config.clone()).expect("the config is valid");
    // The twin tells positions and decides.
    let mut twin = scenario.batch(0..n_envs);
    let mut slabs = BatchSlabs::new(twin.spec());
    let mut host = HostEnv::team(EpisodeStats::new(scenario.batch(0..n_envs)), &device());
    let (tensors, limit) = scenario.tensors(&device()).expect("the rules have this form");
    check_dynamics(10, &tensors, &device()).expect("they keep the contract");
    let on_device = TensorEnv::<_, TeamObs>::in_form(tensors, n_envs, &device()).expect("there are some");
    let mut on_device = on_device.with_time_limit(limit).expect("above 0");
    let ends_are_known = !config.end_when_satisfied;
    assert_eq!(on_device.spec(), &EnvSpec { ends_are_known, ..host.spec().clone() });
    let mut streams: Vec<Stream> = (0..n_envs).map(|_| Stream::new()).collect();
    let mut episodes = vec![0; n_envs];
    twin.reset(seed, &mut slabs).expect("it starts");
    let expected = host.reset(seed).expect("it starts");
    let starts = streams.iter_mut().enumerate().flat_map(|(env, stream)| stream.begin(&config, &twin, seed, env, 0));
    let seen = on_device.reset_with(matrix(starts.collect(), n_envs));
    let mut count = Seen::default();
    compare_obs(&seen, &expected, None, "first observations");
    let rng = &mut named_rng(seed, "test", 0);
    let n_actions = twin.spec().action.n_actions();
    let per_flag = twin.spec().actions_per_flag();
    for step in 0..n_steps {
        let mut actions = Array2::zeros((n_envs * users, 1));
        for env in 0..n_envs {
            let snapshot = twin.snapshot(env);
            let rule = [Some(Heuristic::Greedy), Some(Heuristic::StrongestRandom), None, None][rng.random_range(0..4)];
            let links = rule.map(|rule| rule.choose(&snapshot, scenario.objective(), rng));
            for user in 0..users {
                let planned = links.as_ref().and_then(|links| twin.option(env, user, links[user]));
                let row = env * users + user;
                let legal = |action: usize| slabs.mask.is_empty() || slabs.mask[[row, action / per_flag]] > 0.0;
                let any = || loop {
                    let action = rng.random_range(0..n_actions);
                    if legal(action) {
                        return action;
                    }
                };
                actions[[row, 0]] = planned.filter(|action| legal(*action)).unwrap_or_else(any) as f32;
            }
        }
        let mut noise = Vec::new();
        for (env, stream) in streams.iter_mut().enumerate() {
            let (numbers, n_arrived) = stream.step(&config, &twin.layout(env).users_m);
            noise.extend(numbers);
            count.arrived += n_arrived;
        }
        twin.step(actions.view(), &mut slabs).expect("actions are legal");
        let actions = matrix(actions.into_iter().collect(), n_envs * users);
        let expected: StepBatch<TeamObs> = host.step(actions.clone()).expect("actions are legal");
        let ends: Vec<bool> = floats(&expected.episode_end()).into_iter().map(|flag| flag > 0.0).collect();
        let width = on_device.dynamics().noise().start;
        let mut start = Vec::new();
        for (env, stream) in streams.iter_mut().enumerate() {
            if ends[env * users] {
                episodes[env] += 1;
                start.extend(stream.begin(&config, &twin, seed, env, episodes[env]));
            } else {
                start.extend(vec![0.5; width]);
            }
        }
        let got = on_device.step_with(actions, matrix(noise, n_envs), matrix(start, n_envs));
        let what = |name: &str| format!("{name} of step {step}");
        close(&floats(&got.reward), &floats(&expected.reward), &what("rewards"));
        close(&floats(&got.terminated), &floats(&expected.terminated), &what("terminated"));
        close(&floats(&got.truncated), &floats(&expected.truncated), &what("truncated"));
        compare_obs(&got.obs, &expected.obs, None, &what("observations"));
        let truncated: Vec<bool> = floats(&expected.truncated).iter().map(|flag| *flag > 0.0).collect();
        if truncated.contains(&true) {
            assert!(matches!(got.successor, Successor::Rows(_)));
            compare_obs(&got.next_obs(), &expected.next_obs(), Some(&truncated), &what("successors"));
        }
        count.truncated += truncated.iter().filter(|flag| **flag).count() / users;
        count.terminated += floats(&expected.terminated).iter().filter(|flag| **flag > 0.0).count() / users;
        count.satisfied += slabs.info.column(0).sum() / (n_envs * n_steps) as f64;
        count.rejected += slabs.info.column(5).sum();
    }
    let (mut a, mut b): (Vec<Episode>, Vec<Episode>) = (Vec::new(), Vec::new());
    on_device.drain_episodes(&mut a).expect("everything is finite");
    host.drain_episodes(&mut b).expect("there is nothing to read");
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(&b) {
        assert_eq!((a.env, a.length), (b.env, b.length));
        let values = |episode: &Episode| [&[episode.episode_return], &episode.info[..]].concat();
        for (i, (a, b)) in values(a).into_iter().zip(values(b)).enumerate() {
            assert!((a - b).abs() < 1e-4 * b.abs().max(1.0), "number {i} of an episode: {a} instead of {b}");
        }
    }
    count
}

#[test]
fn the_published_network_is_that_of_the_host() {
    for candidates in [Candidates::All, Candidates::Covered] {
        let config = UaraConfig { episode_steps: 30, candidates, ..UaraConfig::cly2020() };
        let seen = compare(config, 5, 80);
        assert!(seen.terminated >= 10 && seen.satisfied > 0.3, "{seen:?}");
    }
    // Episodes to their limit.
    let config = UaraConfig { episode_steps: 6, end_when_satisfied: false, ..UaraConfig::cly2020() };
    assert_eq!(compare(config, 5, 20).truncated, 15);
    let seen = compare(UaraConfig { users: 4, channels: 3, episode_steps: 3, ..UaraConfig::zhao2019() }, 4, 40);
    assert!(seen.terminated >= 1 && seen.truncated >= 1 && seen.rejected > 0.0, "{seen:?}");
}

#[test]
fn the_physical_network_is_that_of_the_host() {
    let seen = compare(UaraConfig::physical(), 3, 90);
    assert!(seen.truncated == 6 && seen.rejected > 0.0 && seen.satisfied > 0.3, "{seen:?}");
}

const PARTS: [Part; 9] = [
    Part::State,
    Part::Agent,
    Part::Satisfied,
    Part::Gains,
    Part::LastStation,
    Part::Load,
    Part::Interference,
    Part::LastChannel,
    Part::Tags,
];

#[test]
fn every_setting_has_the_same_meaning() {
    let base = || {
        let mut config = UaraConfig { users: 7, channels: 3, episode_steps: 12, ..UaraConfig::physical() };
        (config.femto_cells.count, config.pico_cells.count) = (4, 2);
        config.observe = PARTS.to_vec();
        // Users arrive every few steps.
        config.dynamics = DynamicsConfig { speed_m_per_s: 40.0, step_secs: 2.0, ..DynamicsConfig::default() };
        config
    };
    let mut n_arrived = 0;
    for coverage in [Coverage::Open, Coverage::Service, Coverage::Everything] {
        for interference in [Interference::PerLink, Interference::PerTransmitter] {
            for candidates in [Candidates::All, Candidates::Covered, Candidates::Strongest(4)] {
                if coverage == Coverage::Open && candidates == Candidates::Covered {
                    continue;
                }
                let power_levels = vec![0.25, 1.0, 0.5];
                let config = UaraConfig { coverage, interference, candidates, power_levels, ..base() };
                n_arrived += compare(config, 2, 26).arrived;
            }
        }
    }
    assert!(n_arrived > 50, "{n_arrived}");
    let rewards = [
        Reward::Rate { per_mbps: 2.0 },
        Reward::ProfitCost { profit_per_mbps: 0.5, cost_per_power: 0.001, unit: PowerUnit::Dbm, cost_per_action: 0.1 },
        Reward::Binary { satisfied: 2.0, unsatisfied: -0.5 },
    ];
    for reward in rewards {
        compare(UaraConfig { reward, power_levels: vec![0.5, 1.0], team_reward: true, ..base() }, 2, 14);
    }
    // One layout with walking users; fading without movement; a single user; no small cells.
    let layout = LayoutConfig { redraw: Redraw::Never, spread: Spread::Center, ..LayoutConfig::default() };
    compare(UaraConfig { layout: layout.clone(), ..base() }, 2, 26);
    let dynamics = DynamicsConfig { speed_m_per_s: 0.0, ..DynamicsConfig::default() };
    compare(UaraConfig { dynamics: dynamics.clone(), ..base() }, 2, 26);
    compare(UaraConfig { dynamics, layout, start: Start::Nothing, ..base() }, 2, 26);
    for users in [1, 2, 8] {
        compare(UaraConfig { users, ..base() }, 2, 14);
    }
    let mut config = base();
    (config.femto_cells.count, config.pico_cells.count, config.dynamics.fading) = (0, 0, false);
    config.candidates = Candidates::All;
    compare(config, 2, 14);
}

#[test]
fn what_has_no_such_form_is_named() {
    let refused = |config: UaraConfig| {
        let scenario = Uara::new(config).expect("the config is valid");
        scenario.tensors(&device()).expect_err("it has no such form").to_string()
    };
    let layout = LayoutConfig { redraw: Redraw::Environment, ..LayoutConfig::default() };
    assert!(refused(UaraConfig { layout, ..UaraConfig::physical() }).contains("`layout.redraw` must be `never`"));
    let mut config = UaraConfig::cly2020();
    config.parity.bootstrap_success = true;
    assert!(refused(config).contains("`parity.bootstrap_success` must be off"));
}
