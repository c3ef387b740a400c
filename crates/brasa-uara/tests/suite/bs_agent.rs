//! The historical scenario in which stations choose users.

use brasa_env::{BatchSlabs, EnvBatch, EnvError, check_env, named_rng};
use brasa_uara::{BsAgentBatch, BsAgentConfig, BsAgentParity, BsAgentSimulation, Redraw};
use ndarray::Array2;
use rand::RngExt;

fn small(parity: BsAgentParity) -> BsAgentConfig {
    BsAgentConfig { users: 20, small_cells: 5, episode_steps: 10, parity, ..BsAgentConfig::default() }
}

fn published() -> BsAgentParity {
    BsAgentParity::default()
}

fn started(config: BsAgentConfig, n_envs: usize) -> (BsAgentBatch, BatchSlabs) {
    let mut batch = BsAgentSimulation::batch(config, 0..n_envs).expect("a valid config");
    let mut slabs = BatchSlabs::new(batch.spec());
    batch.reset(0, &mut slabs).expect("no environment panics");
    (batch, slabs)
}

/// Steps one environment; `choices` are its stations' users.
fn step(batch: &mut BsAgentBatch, slabs: &mut BatchSlabs, choices: &[usize]) {
    let actions = choices.iter().map(|user| *user as f32).collect();
    let actions = Array2::from_shape_vec((choices.len(), 1), actions).expect("one column");
    batch.step(actions.view(), slabs).expect("users that exist");
}

#[test]
fn the_contract_holds() {
    for redraw in [Redraw::Never, Redraw::Environment, Redraw::Episode] {
        for parity in [published(), BsAgentParity::none()] {
            check_env(40, |envs| {
                let config = BsAgentConfig { redraw, ..small(parity) };
                BsAgentSimulation::batch(config, envs).map_err(|error| EnvError::State { reason: error.to_string() })
            })
            .unwrap();
        }
    }
}

#[test]
fn the_published_system_has_its_published_shape() {
    let (mut batch, mut slabs) = started(BsAgentConfig::default(), 1);
    assert_eq!((batch.n_agents(), batch.spec().shared_width, batch.spec().action.n_actions()), (36, 1000, 1000));
    assert_eq!((slabs.obs.dim(), slabs.shared.dim()), ((36, 0), (1, 1000)));
    assert!(slabs.shared.iter().all(|bit| *bit == 0.0));
    let mut rng = named_rng(0, "shape", 0);
    for at in 1..=500 {
        let choices: Vec<usize> = (0..36).map(|_| rng.random_range(0..1000u32) as usize).collect();
        step(&mut batch, &mut slabs, &choices);
        // A connected station's reward is its rate, otherwise 0.
        let paid: f32 = slabs.reward.iter().sum();
        assert!((f64::from(paid) - slabs.info[[0, 2]]).abs() < 1e-2);
        let connected: f32 = slabs.next_shared.iter().sum();
        assert_eq!(f64::from(connected), slabs.info[[0, 1]]);
        assert!(connected <= 36.0);
        // No episode succeeds: all are truncated.
        assert!(slabs.terminated.iter().all(|terminated| !terminated));
        assert!(slabs.truncated.iter().all(|truncated| *truncated == (at == 500)));
    }
    assert!(slabs.shared.iter().all(|bit| *bit == 0.0), "the next episode begins with nobody connected");
    assert!(slabs.next_shared.iter().any(|bit| *bit == 1.0));
}

/// The rate of one station alone with a user, for every pair of `config`.
fn rates_alone(config: &BsAgentConfig) -> Vec<Vec<f32>> {
    let config = BsAgentConfig { base_mbps: [1e-9; 3], ..config.clone() };
    let (mut batch, mut slabs) = started(config.clone(), 1);
    (0..config.users)
        .map(|first| {
            // Every station has a different user.
            let choices: Vec<usize> =
                (0..config.n_stations()).map(|station| (first + station) % config.users).collect();
            step(&mut batch, &mut slabs, &choices);
            slabs.reward.to_vec()
        })
        .collect()
}

#[test]
fn noise_of_the_own_bandwidth_takes_from_the_macro_cell_and_gives_to_small_ones() {
    let fixed = BsAgentParity { mismatched_noise: false, ..published() };
    let pairs = rates_alone(&small(published())).into_iter().zip(rates_alone(&small(fixed)));
    for (published, fixed) in pairs {
        assert!(fixed[0] < published[0]);
        assert!(fixed[1..].iter().zip(&published[1..]).all(|(fixed, published)| fixed > published));
    }
}

#[test]
fn power_that_is_divided_once_is_more() {
    let fixed = BsAgentParity { power_divided_twice: false, ..published() };
    for (published, fixed) in rates_alone(&small(published())).into_iter().zip(rates_alone(&small(fixed))) {
        assert_eq!(fixed[0], published[0]);
        assert!(fixed[1..].iter().zip(&published[1..]).all(|(fixed, published)| fixed > published));
    }
}

#[test]
fn sight_and_shadowing_change_rates() {
    let mean = |parity, station: usize| {
        let config = BsAgentConfig { users: 2000, ..small(parity) };
        let rates = rates_alone(&config);
        rates.iter().map(|rates| f64::from(rates[station])).sum::<f64>() / rates.len() as f64
    };
    // Most users have no line of sight to the macro cell, which costs about 20 dB.
    let hidden = BsAgentParity { macro_always_in_sight: false, ..published() };
    assert!(mean(hidden, 0) < 0.8 * mean(published(), 0));
    assert_eq!(mean(hidden, 1), mean(published(), 1));
    let decibels = BsAgentParity { linear_shadowing_variance: false, ..published() };
    assert!((mean(decibels, 0) / mean(published(), 0) - 1.0).abs() > 0.01);
}

#[test]
fn success_is_possible_where_stations_suffice() {
    let reachable = BsAgentParity { power_divided_twice: false, mismatched_noise: false, ..published() };
    let fixed = BsAgentParity { all_users_must_connect: false, ..reachable };
    let modest = |parity| BsAgentConfig { base_mbps: [1e-6; 3], ..small(parity) };
    let (mut batch, mut slabs) = started(modest(fixed), 1);
    // Two stations choose one user.
    step(&mut batch, &mut slabs, &[0, 1, 2, 3, 4, 4]);
    assert_eq!((slabs.terminated[0], slabs.info[[0, 4]]), (false, 0.0));
    step(&mut batch, &mut slabs, &[0, 1, 2, 3, 4, 5]);
    assert_eq!((slabs.terminated[0], slabs.truncated[0], slabs.info[[0, 4]]), (true, false, 1.0));
    assert_eq!((slabs.shared.sum(), slabs.next_shared.sum()), (0.0, 6.0));
    let (mut batch, mut slabs) = started(modest(reachable), 1);
    step(&mut batch, &mut slabs, &[0, 1, 2, 3, 4, 5]);
    assert!(!slabs.terminated[0] && slabs.info[[0, 0]] == 1.0);
}

#[test]
fn of_two_stations_at_one_user_the_later_one_decides() {
    let fixed = BsAgentParity { later_write_wins: false, ..published() };
    let mut differs = 0;
    for user in 0..20 {
        // The last two stations choose `user`; the others choose other users.
        let choices = [[1, 2, 3, 4].map(|other| (user + other) % 20).as_slice(), &[user, user]].concat();
        let [kept, either] = [published(), fixed].map(|parity| {
            let (mut batch, mut slabs) = started(small(parity), 1);
            step(&mut batch, &mut slabs, &choices);
            let (first, second) = (slabs.reward[4] > 0.0, slabs.reward[5] > 0.0);
            let expected = second || (first && !parity.later_write_wins);
            let bit = slabs.next_shared[[0, user]] == 1.0;
            assert_eq!(bit, expected);
            bit
        });
        differs += usize::from(kept != either);
    }
    assert!(differs > 0, "no user tells the two rules apart");
}

#[test]
fn layers_follow_from_rates() {
    let config = small(published());
    let (mut batch, mut slabs) = started(config, 1);
    step(&mut batch, &mut slabs, &[0, 1, 2, 3, 4, 5]);
    let connections = slabs.reward.iter().filter(|reward| **reward > 0.0).count();
    assert_eq!(slabs.info[[0, 0]], connections as f64 / 6.0);
    // A connection has at least one layer, and another at most every 9 Mb/s.
    let layers = 6.0 * slabs.info[[0, 3]];
    assert!(layers.fract() < 1e-9 || layers.fract() > 1.0 - 1e-9);
    assert!(layers >= connections as f64 && layers <= connections as f64 + slabs.info[[0, 2]] / 9.0);
}

#[test]
fn broken_settings_and_actions_are_named() {
    let error =
        |config: BsAgentConfig| BsAgentSimulation::batch(config, 0..1).expect_err("an invalid config").to_string();
    assert_eq!(
        error(BsAgentConfig { users: 0, ..BsAgentConfig::default() }),
        "`users` must be between 1 and 10000, got 0"
    );
    let many = BsAgentConfig { small_cells: 1_000_000_000, ..BsAgentConfig::default() };
    assert_eq!(error(many), "`small_cells` must be between 0 and 10000, got 1000000000");
    let long = BsAgentConfig { episode_steps: 1_000_000_000, ..BsAgentConfig::default() };
    assert_eq!(error(long), "`episode_steps` must be at most 10000000, got 1000000000");
    let nan = BsAgentConfig { base_mbps: [4.0, f64::NAN, 1.0], ..BsAgentConfig::default() };
    assert_eq!(error(nan), "`base_mbps` must be finite and above 0, got [4.0, NaN, 1.0]");
    assert!(toml::from_str::<BsAgentConfig>("profit = 0.5").unwrap_err().to_string().contains("profit"));
    assert!(toml::from_str::<BsAgentConfig>("parity = { cost = 1 }").is_err());
    let config = BsAgentConfig { redraw: Redraw::Episode, ..BsAgentConfig::default() };
    assert_eq!(toml::from_str::<BsAgentConfig>(&toml::to_string(&config).unwrap()).unwrap(), config);

    let (mut batch, mut slabs) = started(small(published()), 1);
    for broken in [20.0, -1.0, 0.5, f32::NAN] {
        let mut actions = Array2::zeros((6, 1));
        actions[[3, 0]] = broken;
        let error = batch.step(actions.view(), &mut slabs).unwrap_err().to_string();
        assert!(error.contains("for station 3 of environment 0"), "{error}");
    }
}
