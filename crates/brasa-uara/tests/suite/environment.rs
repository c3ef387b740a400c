//! The environment satisfies its contract, and rewards equal the formulas.
#![allow(clippy::unwrap_used)]

use brasa_env::{BatchSlabs, EnvBatch, check_env};
use brasa_uara::{Candidates, Link, Part, PowerUnit, Reward, Start, Uara, UaraBatch, UaraConfig};
use ndarray::Array2;

fn started(config: UaraConfig, n_envs: usize, seed: u64) -> (UaraBatch, BatchSlabs) {
    let mut batch = Uara::new(config).unwrap().batch(0..n_envs);
    let mut slabs = BatchSlabs::new(batch.spec());
    batch.reset(seed, &mut slabs).unwrap();
    (batch, slabs)
}

/// All observations, three power levels, all dynamics.
fn everything() -> UaraConfig {
    let mut config = UaraConfig::physical();
    config.observe.extend([Part::State, Part::Agent]);
    config.power_levels = vec![0.25, 0.5, 1.0];
    config.dynamics.speed_m_per_s = 30.0;
    config.episode_steps = 7;
    config
}

#[test]
fn v16_presets_keep_the_contract_on_any_number_of_threads() {
    let masked = UaraConfig { candidates: Candidates::Covered, ..UaraConfig::cly2020() };
    let short = UaraConfig { episode_steps: 9, users: 12, ..UaraConfig::cly2020() };
    for config in [UaraConfig::physical(), UaraConfig::cly2020(), UaraConfig::zhao2019(), masked, short, everything()] {
        let scenario = Uara::new(config).unwrap();
        check_env(40, |envs| Ok(scenario.batch(envs))).unwrap();
    }
}

/// Actions that assign every user to `station` and its own channel.
fn own_channels(config: &UaraConfig, n_envs: usize, station: usize) -> Array2<f32> {
    Array2::from_shape_fn((n_envs * config.users, 1), |(row, _)| {
        (station * config.channels + row % config.users % config.channels) as f32
    })
}

/// One user under one large cell, 5 steps.
fn alone(reward: Reward) -> UaraConfig {
    let mut config = UaraConfig { users: 1, reward, episode_steps: 5, ..UaraConfig::cly2020() };
    (config.macro_cells.count, config.pico_cells.count, config.femto_cells.count) = (1, 0, 0);
    config.end_when_satisfied = false;
    config
}

#[test]
fn a_lonely_user_earns_what_the_formulas_say() {
    let profit =
        |unit| Reward::ProfitCost { profit_per_mbps: 0.5, cost_per_power: 0.0005, unit, cost_per_action: 0.001 };
    for (reward, cost) in [
        (Reward::Rate { per_mbps: 0.5 }, 0.0),
        (profit(PowerUnit::Dbm), 0.0005 * 40.0 + 0.001),
        (profit(PowerUnit::Mw), 0.0005 * 1e4 + 0.001),
        (profit(PowerUnit::W), 0.0005 * 10.0 + 0.001),
    ] {
        let (mut batch, mut slabs) = started(alone(reward), 1, 4);
        let layout = batch.layout(0);
        let [dx, dy] = [0, 1].map(|i| layout.users_m[0][i] - layout.stations_m[0][i]);
        let snr_db = 40.0 - (34.0 + 40.0 * dx.hypot(dy).max(1.0).log10()) - (-174.0 + 10.0 * 180e3f64.log10());
        let rate = 0.18 * (1.0 + 10f64.powf(snr_db / 10.0)).log2();
        batch.step(Array2::zeros((1, 1)).view(), &mut slabs).unwrap();
        assert!((f64::from(slabs.reward[0]) - (0.5 * rate - cost)).abs() < 1e-5, "{reward:?}: {}", slabs.reward[0]);
        assert!((slabs.info[[0, 1]] - rate).abs() < 1e-5);
    }
}

#[test]
fn the_same_choice_satisfies_nobody_and_own_channels_almost_everybody() {
    let config = UaraConfig { users: 15, ..UaraConfig::cly2020() };
    let (mut batch, mut slabs) = started(config.clone(), 3, 0);
    batch.step(Array2::zeros((45, 1)).view(), &mut slabs).unwrap();
    assert!(slabs.reward.iter().all(|reward| *reward == -1.0));
    assert_eq!(slabs.info[[0, 0]], 0.0);
    assert!(slabs.shared.iter().all(|bit| *bit == 0.0));
    batch.step(own_channels(&config, 3, 0).view(), &mut slabs).unwrap();
    let near: Vec<bool> = {
        let layout = batch.layout(0);
        let within = |at: &[f64; 2]| (at[0] - 500.0).hypot(at[1] - 500.0) <= 500.0;
        layout.users_m.iter().map(within).collect()
    };
    for row in 0..45 {
        assert_eq!(slabs.reward[row] == 1.0, near[row % 15], "row {row}");
        assert_eq!(slabs.shared[[row / 15, row % 15]] == 1.0, near[row % 15]);
    }
}

#[test]
fn v15_every_view_of_an_episodes_end_follows_from_one_record() {
    // Episodes of 3 steps: `obs` is that of a new episode, `next_obs` is that before the reset.
    let mut config = UaraConfig { episode_steps: 3, ..UaraConfig::physical() };
    config.candidates = Candidates::All;
    let (mut batch, mut slabs) = started(config.clone(), 2, 0);
    let beginning = slabs.clone();
    let actions = own_channels(&config, 2, 0);
    for step in 1..=9 {
        batch.step(actions.view(), &mut slabs).unwrap();
        let ended = step % 3 == 0;
        assert!(slabs.truncated.iter().all(|cut| *cut == ended) && slabs.terminated.iter().all(|end| !end));
        // SAME_STEP returns `obs` and keeps `next_obs` aside; DISABLED returns `next_obs`; NEXT_STEP returns `next_obs` and
        // hands out `obs` one call later. All three agree on the transition itself.
        assert_eq!(slabs.obs == slabs.next_obs, !ended, "step {step}");
        if ended {
            assert_ne!(slabs.obs, beginning.obs, "the next episode has another layout");
        }
    }
}

#[test]
fn success_is_terminal_unless_parity_asks_for_the_defect() {
    let mut config = alone(Reward::Binary { satisfied: 1.0, unsatisfied: -1.0 });
    config.end_when_satisfied = true;
    for bootstrap_success in [false, true] {
        config.parity.bootstrap_success = bootstrap_success;
        let (mut batch, mut slabs) = started(config.clone(), 1, 0);
        batch.step(Array2::zeros((1, 1)).view(), &mut slabs).unwrap();
        assert_eq!((slabs.terminated[0], slabs.truncated[0]), (!bootstrap_success, bootstrap_success));
        assert_eq!((slabs.info[[0, 6]], slabs.info[[0, 7]]), (1.0, 1.0));
        assert_eq!((slabs.next_shared[[0, 0]], slabs.shared[[0, 0]]), (1.0, 0.0));
    }
}

#[test]
fn unguarded_distances_turn_loss_into_gain() {
    let mut config = UaraConfig { users: 3000, ..alone(Reward::Rate { per_mbps: 1.0 }) };
    let strongest = |config: &UaraConfig| {
        let (batch, _) = started(config.clone(), 1, 0);
        batch.snapshot(0).received_mw.iter().copied().fold(0.0, f64::max)
    };
    let guarded = strongest(&config);
    config.parity.unguarded_distance = true;
    assert!((brasa_uara::mw_to_dbm(guarded) - (40.0 - 34.0)).abs() < 1e-5, "the nearest user counts as 1 m away");
    assert!(strongest(&config) > guarded);
}

#[test]
fn a_team_shares_its_rewards() {
    let config = UaraConfig { candidates: Candidates::All, ..UaraConfig::physical() };
    let run = |team_reward: bool| {
        let (mut batch, mut slabs) = started(UaraConfig { team_reward, ..config.clone() }, 1, 1);
        batch.step(own_channels(&config, 1, 0).view(), &mut slabs).unwrap();
        slabs.reward.to_vec()
    };
    let (own, shared) = (run(false), run(true));
    let mean = own.iter().sum::<f32>() / own.len() as f32;
    assert!(own.iter().any(|reward| (reward - mean).abs() > 0.1));
    assert!(shared.iter().all(|reward| (reward - mean).abs() < 1e-6));
}

#[test]
fn a_contribution_is_the_sum_less_that_of_the_others_alone() {
    let reward = Reward::Contribution { per_mbps: 2.0 };
    for config in [
        UaraConfig { reward, candidates: Candidates::All, ..UaraConfig::physical() },
        UaraConfig { reward, interference: brasa_uara::Interference::PerLink, ..UaraConfig::zhao2019() },
    ] {
        let (mut batch, mut slabs) = started(config.clone(), 1, 3);
        // Three channels and two stations for all users: interference and rejections occur.
        let n = config.users;
        let actions = Array2::from_shape_fn((n, 1), |(user, _)| ((user % 2) * 20 + user % 3) as f32);
        let snapshot = batch.snapshot(0);
        let links: Vec<Link> = (0..n).map(|user| batch.link(0, user, actions[[user, 0]]).unwrap()).collect();
        batch.step(actions.view(), &mut slabs).unwrap();
        let all = snapshot.outcome(&links).sum_rate_mbps();
        for user in 0..n {
            let mut others = snapshot.clone();
            others.radio = std::sync::Arc::new(brasa_uara::Radio { n_users: n - 1, ..(*snapshot.radio).clone() });
            let row = user * 26..(user + 1) * 26;
            others.received_mw.drain(row.clone());
            others.reached.drain(row.clone());
            others.allowed.drain(row);
            let links: Vec<Link> = (0..n).filter(|other| *other != user).map(|other| links[other]).collect();
            let expected = 2.0 * (all - others.outcome(&links).sum_rate_mbps());
            assert!((f64::from(slabs.reward[user]) - expected).abs() < 1e-3, "{} of {expected}", slabs.reward[user]);
        }
        let rates = snapshot.outcome(&links).rate_mbps;
        assert!(slabs.reward.iter().zip(rates).any(|(reward, rate)| (f64::from(*reward) - 2.0 * rate).abs() > 0.05));
    }
}

#[test]
fn users_see_what_they_should() {
    let mut config = everything();
    config.dynamics = brasa_uara::DynamicsConfig::still();
    (config.power_levels, config.candidates, config.start) = (vec![1.0], Candidates::All, Start::Nothing);
    let (mut batch, mut slabs) = started(config.clone(), 1, 2);
    let column = |slabs: &BatchSlabs, batch: &UaraBatch, part: Part, user: usize| -> Vec<f32> {
        let columns = batch.columns().of(part).unwrap();
        let row: Vec<f32> = slabs.shared.row(0).iter().chain(slabs.obs.row(user)).copied().collect();
        row[columns].to_vec()
    };
    assert!(column(&slabs, &batch, Part::LastStation, 3).iter().all(|bit| *bit == 0.0));
    // Users 0 and 1 share channel 5, user 2 is alone on channel 6.
    let links: Vec<Link> = (0..30u16)
        .map(|user| Link {
            station: user % 2,
            channel: [5, 5, 6].get(usize::from(user)).copied().unwrap_or(7 + user % 3),
            power: 0,
        })
        .collect();
    let actions: Vec<f32> = links.iter().map(|link| f32::from(link.station * 20 + link.channel)).collect();
    batch.step(Array2::from_shape_vec((30, 1), actions).unwrap().view(), &mut slabs).unwrap();
    let snapshot = batch.snapshot(0);
    let outcome = snapshot.outcome(&links);
    let bit = |on: bool| f32::from(u8::from(on));
    assert_eq!(column(&slabs, &batch, Part::State, 9), outcome.satisfied.iter().map(|on| bit(*on)).collect::<Vec<_>>());
    assert_eq!(column(&slabs, &batch, Part::Satisfied, 2), [bit(outcome.satisfied[2])]);
    assert_eq!(column(&slabs, &batch, Part::Agent, 2)[2], 1.0);
    assert_eq!(column(&slabs, &batch, Part::LastStation, 3)[1], 1.0);
    assert_eq!(column(&slabs, &batch, Part::LastChannel, 2)[6], 1.0);
    let load = column(&slabs, &batch, Part::Load, 0);
    assert!((load[0] - 0.5).abs() < 1e-6 && (load[1] - 0.5).abs() < 1e-6 && load[2] == 0.0);
    let noise_dbm = brasa_uara::mw_to_dbm(snapshot.radio.noise_mw);
    let level = |mw: f64| ((brasa_uara::mw_to_dbm(mw) - noise_dbm).clamp(0.0, 80.0) / 80.0) as f32;
    let heard = column(&slabs, &batch, Part::Interference, 0);
    let expected = level(snapshot.received_mw(0, 1) + snapshot.radio.noise_mw);
    assert!((heard[5] - expected).abs() < 1e-4, "{} instead of {expected}", heard[5]);
    assert_eq!((heard[0], column(&slabs, &batch, Part::Interference, 0)[19]), (0.0, 0.0));
    let gains = column(&slabs, &batch, Part::Gains, 4);
    assert!((gains[7] - level(snapshot.received_mw(4, 7))).abs() < 1e-4);
    let tags = column(&slabs, &batch, Part::Tags, 4);
    assert!(tags.iter().all(|tag| (0.0..1.0).contains(tag)) && tags != column(&slabs, &batch, Part::Tags, 5));
}

#[test]
fn masks_allow_the_cells_that_cover_a_user_and_other_choices_are_refused() {
    let config = UaraConfig { candidates: Candidates::Covered, episode_steps: 5, ..UaraConfig::cly2020() };
    let (mut batch, mut slabs) = started(config, 1, 0);
    let reached = batch.snapshot(0).reached;
    assert!(slabs.mask.iter().zip(&reached).all(|(flag, reached)| (*flag == 1.0) == *reached));
    assert_eq!(batch.snapshot(0).allowed, reached);
    let forbidden = (0..26).find(|station| slabs.mask[[0, *station]] == 0.0).unwrap();
    let mut actions = Array2::from_shape_fn((30, 1), |(user, _)| {
        let station = (0..26).find(|station| slabs.mask[[user, *station]] == 1.0).unwrap();
        (station * 20) as f32
    });
    batch.step(actions.view(), &mut slabs).unwrap();
    actions[[0, 0]] = (forbidden * 20) as f32;
    let message = batch.step(actions.view(), &mut slabs).unwrap_err().to_string();
    assert!(message.contains("actions") && message.contains("user 0 of environment 0"), "{message}");
    for nonsense in [-1.0, 0.5, 520.0, f32::NAN] {
        actions[[0, 0]] = nonsense;
        assert!(batch.step(actions.view(), &mut slabs).is_err(), "{nonsense}");
    }
}

#[test]
fn ranked_candidates_are_the_strongest_and_name_the_same_links() {
    let mut config = UaraConfig::physical();
    config.dynamics = brasa_uara::DynamicsConfig { shadowing_db: 8.0, ..brasa_uara::DynamicsConfig::still() };
    let (mut batch, mut slabs) = started(config, 2, 0);
    assert_eq!((slabs.mask.ncols(), batch.spec().action.n_actions()), (0, 80));
    let snapshot = batch.snapshot(1);
    for user in 0..30 {
        let mut order: Vec<u16> = (0..26).collect();
        order.sort_by(|a, b| {
            let received = |station: &u16| snapshot.received_mw(user, usize::from(*station));
            received(b).total_cmp(&received(a))
        });
        for (rank, station) in order.iter().enumerate() {
            let link = Link { station: *station, channel: 3, power: 0 };
            let option = batch.option(1, user, link);
            assert_eq!(option, (rank < 4).then_some(rank * 20 + 3));
            assert_eq!(snapshot.allowed[user * 26 + usize::from(*station)], rank < 4);
            option.iter().for_each(|option| assert_eq!(batch.link(1, user, *option as f32), Some(link)));
        }
        // Observed by rank, the best first.
        let columns = batch.columns().of(Part::Gains).unwrap();
        let gains: Vec<f32> = slabs.obs.row(30 + user).iter().copied().skip(columns.start).take(4).collect();
        assert!(gains.windows(2).all(|pair| pair[0] >= pair[1]), "{gains:?}");
    }
    batch.step(Array2::from_elem((60, 1), 25.0).view(), &mut slabs).unwrap();
    let columns = batch.columns().of(Part::LastStation).unwrap();
    assert!(slabs.obs.rows().into_iter().all(|row| row[columns.start + 1] == 1.0 && row[columns.start] == 0.0));
}

#[test]
fn settings_outside_their_rules_are_named() {
    let message = |change: fn(&mut UaraConfig)| {
        let mut config = UaraConfig::cly2020();
        change(&mut config);
        Uara::new(config).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert_eq!(
        message(|config| config.pico_cells.count = 9),
        "`pico_cells.count` must be at most 4 per large cell, got 9"
    );
    assert_eq!(message(|config| config.users = 0), "`users` must be between 1 and 10000, got 0");
    assert!(message(|config| config.power_levels = vec![]).starts_with("`power_levels` must be one or more shares"));
    assert!(
        message(|config| config.candidates = Candidates::Strongest(27))
            .starts_with("`candidates.strongest` must be between 1")
    );
    assert!(message(|config| config.observe = vec![]).starts_with("`observe` must name at least one part"));
    assert!(message(|config| config.observe.push(Part::State)).starts_with("`observe` must name each part once"));
    assert!(toml::from_str::<UaraConfig>("nMBS = 2").unwrap_err().to_string().contains("unknown field `nMBS`"));
    let config = everything();
    assert_eq!(toml::from_str::<UaraConfig>(&toml::to_string(&config).unwrap()).unwrap(), config);
}

/// A key that a variant does not have is an error that names those it has; so is a variant that there is not.
#[test]
fn keys_of_rewards_are_known() {
    // From a text, and from a table that a change of a single key was made in.
    let refused = |reward: &str| {
        let text = format!("reward = {reward}");
        let table: toml::Table = toml::from_str(&text).unwrap();
        [toml::from_str::<UaraConfig>(&text), table.try_into()].map(|config| config.unwrap_err().to_string())
    };
    let unknown: [(&str, &[&str]); 6] = [
        ("{ rate = { per_mbps = 1.0, bogus = 1 } }", &["bogus", "per_mbps"]),
        ("{ contribution = { per_mbps = 1.0, cost_per_action = 2.0 } }", &["cost_per_action", "per_mbps"]),
        (
            "{ binary = { satisfied = 1.0, unsatisfied = 0.0, per_mbps = 1.0 } }",
            &["per_mbps", "satisfied", "unsatisfied"],
        ),
        (
            "{ profit-cost = { profit_per_mbps = 1.0, cost_per_power = 0.1, unit = \"w\", cost_per_action = 0.0, x = 1 } }",
            &["x", "profit_per_mbps", "cost_per_power", "unit", "cost_per_action"],
        ),
        ("{ rates = { per_mbps = 1.0 } }", &["rates", "binary", "profit-cost", "rate", "contribution"]),
        ("{ rate = { } }", &["missing field `per_mbps`"]),
    ];
    for (reward, words) in unknown {
        for error in refused(reward) {
            // A text's error quotes it, so only what comes after the quotation says something.
            let said = error.rsplit("^\n").next().unwrap();
            assert!(words.iter().all(|word| said.contains(word)), "{error}");
        }
    }
    // Two variants at once, as a change of one by the other's key makes them, are none.
    for error in refused("{ rate = { per_mbps = 1.0 }, binary = { satisfied = 1.0, unsatisfied = 0.0 } }") {
        let words = "must be one of `binary`, `profit-cost`, `rate`, `contribution`, got `";
        assert!(error.contains(words) && error.contains("` beside another"), "{error}");
    }
    for error in refused("{}") {
        assert!(error.contains("must be one of `binary`, `profit-cost`, `rate`, `contribution`, got none"), "{error}");
    }
    for candidates in ["{ strongest = 4, covered = 1 }", "{ strongest = 4, all = {} }", "\"near\"", "3", "{}"] {
        let error = toml::from_str::<UaraConfig>(&format!("candidates = {candidates}")).unwrap_err().to_string();
        assert!(error.contains("`all`, `covered`, `strongest`"), "{error}");
    }
    let error = toml::from_str::<UaraConfig>("candidates = { covered = 1 }").unwrap_err().to_string();
    assert!(error.contains("written as its name alone"), "{error}");
}

/// What cannot be held or done is refused by name before memory is asked for, and so is what 32 bits cannot tell.
#[test]
fn sizes_and_numbers_without_end_are_refused() {
    let message = |change: fn(&mut UaraConfig)| {
        let mut config = UaraConfig::physical();
        change(&mut config);
        Uara::new(config).err().map(|error| error.to_string()).unwrap_or_default()
    };
    const MANY: usize = 1_000_000_000;
    type Change = fn(&mut UaraConfig);
    let cases: [(Change, &str); 12] = [
        (|config| config.users = MANY, "`users` must be between 1 and 10000, got 1000000000"),
        (|config| config.channels = MANY, "`channels` must be between 1 and 10000, got 1000000000"),
        (|config| config.femto_cells.count = MANY, "`femto_cells.count` must be at most 10000, got 1000000000"),
        (|config| config.candidates = Candidates::Strongest(MANY), "`candidates.strongest` must be between 1 and"),
        (|config| config.episode_steps = u32::MAX, "`episode_steps` must be at most 10000000, got 4294967295"),
        (|config| config.noise_dbm_per_hz = 7.0, "`noise_dbm_per_hz` must be between -300 and -50 dB, got 7"),
        (|config| config.noise_figure_db = 300.0, "`noise_figure_db` must be between 0 and 100 dB, got 300"),
        (|config| config.layout.spacing_m = 1e300, "`layout.spacing_m` must be between 0 and 10000000, got 1e300"),
        (|config| config.layout.first_m[1] = -1e300, "`layout.first_m` must be between -10000000 and 10000000"),
        (|config| config.macro_cells.radius_m = 1e300, "`macro_cells.radius_m` must be above 0 and at most 10000000"),
        (|config| config.dynamics.speed_m_per_s = 1e300, "`dynamics.speed_m_per_s` must be between 0 and 1000"),
        (
            |config| config.reward = Reward::Rate { per_mbps: 1e308 },
            "`reward` must consist of numbers from -1000000 to 1000000",
        ),
    ];
    for (change, words) in cases {
        let error = message(change);
        assert!(error.starts_with(words), "{error}");
    }
    // Each count alone is allowed.
    let together = |config: &mut UaraConfig| {
        (config.users, config.macro_cells.count, config.femto_cells.count) = (10_000, 10_000, 10_000);
        config.channels = 1;
    };
    let mut config = UaraConfig::physical();
    together(&mut config);
    // Whether it fits depends on the machine; nothing is allocated to find out.
    if let Err(error) = Uara::new(config) {
        assert!(error.to_string().starts_with("`users` must fit into the memory of this machine"), "{error}");
    }
    // At the edge of the rules all numbers are numbers.
    for noise_dbm_per_hz in [-300.0, -50.0] {
        let config = UaraConfig { users: 4, noise_dbm_per_hz, noise_figure_db: 100.0, ..UaraConfig::physical() };
        let (mut batch, mut slabs) = started(config, 1, 0);
        batch.step(Array2::zeros((4, 1)).view(), &mut slabs).unwrap();
        assert!(slabs.obs.iter().chain(&slabs.next_obs).all(|x| x.is_finite()), "{noise_dbm_per_hz}");
        assert!(slabs.info.iter().all(|x| x.is_finite()));
    }
}
