//! The microgrid as tensor operations equals that of the host, with the same random numbers.
#![allow(clippy::expect_used)]

use std::f64::consts::TAU;

use crate::common::tensors::{close, floats, matrix};
use brasa::contracts::{HostEnv, Obs, StepBatch, TensorDynamics, TensorEnv, VecEnv, check_dynamics};
use brasa::energy::iquitos::{
    ActionMode, ArrivalModel, Iquitos, IquitosConfig, ObservationMode, PvModel, RewardKind, SocketActions, VehicleClass,
};
use brasa::env::wrappers::EpisodeStats;
use brasa::env::{BatchSlabs, EnvBatch, EnvRng, Episode, episode_rng, named_rng};
use brasa_test::{device, slow};
use ndarray::Array2;
use rand::{Rng, RngExt};
use rand_distr::{Distribution, Poisson, StandardNormal};

/// Uniform numbers from which Box and Muller's formula gives `a` and `b`.
fn for_normals(a: f64, b: f64) -> [f32; 2] {
    [-(-(a * a + b * b) / 2.0).exp_m1(), (b.atan2(a) / TAU).rem_euclid(1.0)].map(|x| x as f32)
}

/// A number between the probabilities of less than `k` and of at most `k` events.
fn for_count(mean: f64, k: u32) -> f32 {
    let (mut log_factorial, mut below) = (0.0, 0.0);
    for i in 0..=k {
        log_factorial += f64::from(i.max(1)).ln();
        let probability = (f64::from(i) * mean.ln() - mean - log_factorial).exp();
        if i == k {
            return (below + 0.5 * probability) as f32;
        }
        below += probability;
    }
    unreachable!("the loop ends at k")
}

/// The random numbers of an environment on the host, in the order of those on the device.
struct Stream {
    rng: EnvRng,
    step_of_year: u32,
}

impl Stream {
    /// Mean arrivals of a class in the next step.
    fn mean(&self, config: &IquitosConfig, class: &VehicleClass) -> f64 {
        let per_day = 1440 / config.step_minutes;
        let (day, hour) = (self.step_of_year / per_day, self.step_of_year % per_day * config.step_minutes / 60);
        let v = &config.vehicles;
        let (rush, open) = (v.rush_start_hour..v.rush_end_hour, v.opening_hour..v.closing_hour);
        let share = match (rush.contains(&hour), open.contains(&hour)) {
            (true, _) => v.rush_share / rush.len() as f64,
            (false, true) => (1.0 - v.rush_share) / (open.len() - rush.len()) as f64,
            (false, false) => 0.0,
        };
        let factor = if day % 7 >= 5 { v.weekend_factor } else { 1.0 };
        factor * class.arrivals_per_day * share * config.step_hours()
    }

    /// The noise of the start of an episode.
    fn begin(&mut self, config: &IquitosConfig, seed: u64, env: usize, episode: u64) -> Vec<f32> {
        self.rng = episode_rng(seed, env as u64, episode);
        let (mut noise, per_day) = (Vec::new(), 1440 / config.step_minutes);
        let last_day = (config.steps_per_year() - config.episode_steps.unwrap_or(config.steps_per_year())) / per_day;
        self.step_of_year = 0;
        if config.random_start {
            let day = self.rng.random_range(0..=last_day);
            noise.push((day as f32 + 0.5) / (last_day + 1) as f32);
            self.step_of_year = day * per_day;
        }
        let clouds = if config.pv.model == PvModel::ClearSky { StandardNormal.sample(&mut self.rng) } else { 0.0 };
        noise.extend(for_normals(clouds, 0.0));
        noise.extend(self.next(config, &vec![0.0; config.n_sockets()]));
        noise
    }

    /// The noise of a step after which the next step is `step_of_year`, with the remaining steps of vehicles.
    fn next(&mut self, config: &IquitosConfig, dwell_steps: &[f32]) -> Vec<f32> {
        let mut noise = Vec::new();
        if config.vehicles.arrivals == ArrivalModel::Poisson {
            let (mut soc, mut dwell) = (vec![0.5; dwell_steps.len()], vec![0.5; dwell_steps.len()]);
            let n_motos = config.vehicles.moto.sockets;
            let classes =
                [(&config.vehicles.moto, 0..n_motos), (&config.vehicles.mototaxi, n_motos..dwell_steps.len())];
            for (class, range) in classes {
                let mean = self.mean(config, class);
                let count = Poisson::new(mean).map_or(0, |poisson| poisson.sample(&mut self.rng) as u32);
                noise.push(if mean > 0.0 { for_count(mean, count) } else { 0.5 });
                for socket in range.filter(|socket| dwell_steps[*socket] <= 1.5).take(count as usize) {
                    let bits = self.rng.next_u64();
                    let part = |bits: u32| (f64::from(bits) / 2f64.powi(32)) as f32;
                    (soc[socket], dwell[socket]) = (part((bits >> 32) as u32), part(bits as u32));
                }
            }
            noise.extend(soc);
            noise.extend(dwell);
        }
        let clouds = if config.pv.model == PvModel::ClearSky { StandardNormal.sample(&mut self.rng) } else { 0.0 };
        let load = if config.mall.noise > 0.0 { StandardNormal.sample(&mut self.rng) } else { 0.0 };
        noise.extend(for_normals(clouds, load));
        noise
    }
}

/// Steps both forms with the same actions and noise, and compares everything. Returns sums of the figures of all steps.
fn compare(config: IquitosConfig, n_envs: usize, n_steps: usize) -> Vec<f64> {
    let seed = 5;
    let scenario = Iquitos::new(config.clone()).expect("the config is valid");
    // The twin observes the time that every vehicle stays.
    let full = IquitosConfig { observations: ObservationMode::Full, ..config.clone() };
    let mut twin = Iquitos::new(full).expect("the config is valid").batch(0..n_envs).expect("there are some");
    let mut slabs = BatchSlabs::new(twin.spec());
    let (n_sockets, longest) = (config.n_sockets(), (4.0 / config.step_hours()) as f32);
    let dwell_steps = |slabs: &BatchSlabs, env: usize| -> Vec<f32> {
        let first = 20 + 2 * n_sockets;
        (first..first + n_sockets).map(|column| (slabs.obs[[env, column]] * longest).round()).collect()
    };
    let batch = scenario.batch(0..n_envs).expect("there are some");
    let mut host = HostEnv::<_, Obs>::in_form(EpisodeStats::new(batch), &device());
    let (tensors, limit) = scenario.tensors(&device()).expect("the rules have this form");
    check_dynamics(20, &tensors, &device()).expect("they keep the contract");
    let on_device = TensorEnv::<_>::new(tensors, n_envs, &device()).expect("there are some");
    let mut on_device = on_device.with_time_limit(limit).expect("above 0");
    assert_eq!(on_device.spec(), host.spec());
    let mut streams: Vec<Stream> = (0..n_envs).map(|_| Stream { rng: episode_rng(0, 0, 0), step_of_year: 0 }).collect();
    let mut episode = 0;
    twin.reset(seed, &mut slabs).expect("it starts");
    let expected = host.reset(seed).expect("it starts");
    let starts = streams.iter_mut().enumerate().flat_map(|(env, stream)| stream.begin(&config, seed, env, 0));
    let seen = on_device.reset_with(matrix(starts.collect(), n_envs));
    close(&floats(&seen.values), &floats(&expected.values), "first observations");
    let rng = &mut named_rng(seed, "test", 0);
    let width = host.spec().action.width();
    let mut sums = vec![0.0; host.spec().info_names.len()];
    for step in 0..n_steps {
        // For days the battery charges or discharges, and sockets get much or little; some actions are out of range.
        let trend = [1.0f32, -1.0, 0.0, 0.6][step / 30 % 4];
        let actions = Array2::from_shape_fn((n_envs, width), |_| trend + 1.4 * (rng.random::<f32>() - 0.5));
        let dwell: Vec<Vec<f32>> = (0..n_envs).map(|env| dwell_steps(&slabs, env)).collect();
        twin.step(actions.view(), &mut slabs).expect("it steps");
        sums.iter_mut().zip(slabs.info.sum_axis(ndarray::Axis(0))).for_each(|(sum, x)| *sum += x);
        let actions = matrix(actions.into_iter().collect(), n_envs);
        let expected: StepBatch<Obs> = host.step(actions.clone()).expect("it steps");
        let mut noise = Vec::new();
        for (stream, dwell) in streams.iter_mut().zip(&dwell) {
            stream.step_of_year = (stream.step_of_year + 1) % config.steps_per_year();
            noise.extend(stream.next(&config, dwell));
        }
        let ended = (step + 1).is_multiple_of(limit as usize);
        let mut start = Vec::new();
        if ended {
            episode += 1;
            for (env, stream) in streams.iter_mut().enumerate() {
                start.extend(stream.begin(&config, seed, env, episode));
            }
        } else {
            start = vec![0.5; n_envs * on_device.dynamics().noise().start];
        }
        let got = on_device.step_with(actions, matrix(noise, n_envs), matrix(start, n_envs));
        let what = |name: &str| format!("{name} of step {step}");
        close(&floats(&got.reward), &floats(&expected.reward), &what("rewards"));
        close(&floats(&got.truncated), &floats(&expected.truncated), &what("truncated"));
        close(&floats(&got.next_obs().values), &floats(&expected.next_obs().values), &what("successors"));
        close(&floats(&got.obs.values), &floats(&expected.obs.values), &what("observations"));
        assert_eq!(ended, floats(&expected.truncated)[0] > 0.5);
    }
    let (mut a, mut b): (Vec<Episode>, Vec<Episode>) = (Vec::new(), Vec::new());
    on_device.drain_episodes(&mut a).expect("everything is finite");
    host.drain_episodes(&mut b).expect("there is nothing to read");
    assert_eq!((a.len(), a.len()), (b.len(), n_envs * (n_steps / limit as usize)));
    for (a, b) in a.iter().zip(&b) {
        assert_eq!((a.env, a.length), (b.env, b.length));
        let values = |episode: &Episode| [&[episode.episode_return], &episode.info[..]].concat();
        for (i, (a, b)) in values(a).into_iter().zip(values(b)).enumerate() {
            assert!((a - b).abs() < 1e-4 * b.abs().max(1.0), "number {i} of an episode: {a} instead of {b}");
        }
    }
    sums
}

fn window(config: IquitosConfig) -> IquitosConfig {
    let steps = 60 * 24 * 5 / config.step_minutes;
    IquitosConfig { episode_steps: Some(steps), random_start: true, ..config }
}

#[test]
fn weeks_are_those_of_the_host() {
    let aggregate = IquitosConfig {
        actions: ActionMode::Aggregate,
        observations: ObservationMode::Compact,
        ..IquitosConfig::default()
    };
    for config in [IquitosConfig::default(), aggregate, IquitosConfig::seed()] {
        let sums = compare(window(config.clone()), 3, 300);
        // Something happened to everything that can happen.
        let random = config.vehicles.arrivals == ArrivalModel::Poisson;
        let used = [0, 1, 2, 3, 4, 5, 7, 8].iter().all(|i| sums[*i] > 0.0);
        assert!(used && [9, 10, 12].iter().all(|i| (sums[*i] > 0.0) == random), "{sums:?}");
    }
}

#[test]
fn a_year_is_that_of_the_host() {
    if !brasa::device::runs_on_host(&device()) && !slow("a year of a microgrid on another device") {
        return;
    }
    let config = IquitosConfig { observations: ObservationMode::Compact, ..IquitosConfig::default() };
    compare(config, 1, 8800);
}

#[test]
fn every_setting_has_the_same_meaning() {
    let mut config = IquitosConfig { step_minutes: 30, ..IquitosConfig::default() };
    (config.battery.charge_from_grid, config.battery.wear_cost_per_kwh, config.pv.scale) = (false, 0.02, 2.0);
    (config.grid.export_limit_kw, config.grid.export_price_per_kwh, config.grid.carbon_swing) = (300.0, 0.1, 0.15);
    (config.grid.soft_limit_kw, config.vehicles.feeder_limit_kw) = (900.0, 60.0);
    let sums = compare(window(config.clone()), 2, 500);
    assert!(sums[6] > 0.0 && sums[11] > 0.0, "curtailed PV and excess import: {sums:?}");
    (config.reward.kind, config.reward.shaped) = (RewardKind::Improvement, true);
    config.socket_actions = SocketActions::HoldBack;
    compare(window(config.clone()), 2, 500);
    (config.reward.peak, config.reward.ramp, config.reward.wear) = (0.3, 0.2, 0.1);
    config.reward.feeder = 0.4;
    compare(window(config.clone()), 2, 500);
    (config.reward.peak, config.reward.ramp, config.reward.wear) = (0.0, 0.0, 0.0);
    config.reward.feeder = 0.0;
    config.reward.shaped = false;
    config.reward.kind = RewardKind::Seed;
    compare(window(config.clone()), 2, 500);
    config.pv.scale = 0.05;
    config.mall.hourly_kw = [60.0; 24];
    compare(window(config), 2, 500);
    let mut config = IquitosConfig::seed();
    config.reward.kind = RewardKind::Seed;
    (config.battery.capacity_kwh, config.battery.power_kw) = (0.0, 0.0);
    compare(window(config), 2, 200);
}

#[test]
fn too_many_arrivals_are_named() {
    let mut config = IquitosConfig::default();
    config.vehicles.mototaxi.arrivals_per_day = 1e6;
    let error = Iquitos::new(config).expect("it is valid on the host").tensors(&device()).expect_err("too many");
    assert!(
        error.to_string().contains("`vehicles.mototaxi.arrivals_per_day` must be at most 4000 in a step"),
        "{error}"
    );
}
