//! Environments satisfy the contract that learners rely on, whoever steps them.

use crate::common;

use brasa_env::wrappers::EpisodeStats;
use brasa_env::{
    BatchSlabs, EnvBatch, EnvSpec, Executor, MaskSpec, Space, check_env, execute, named_rng, random_actions,
};
use brasa_gym::{GymConfig, GymVec, GymWrapper, PyValue};
use common::{config, has_package, own, play, python, script, team};
use ndarray::Array2;

fn check(config: &GymConfig, n_steps: usize) {
    // `check_env` makes seven batches, and most of the time is spent on starting their processes.
    let config = GymConfig { n_workers: Some(1), ..config.clone() };
    check_env(n_steps, |envs| GymVec::new(&config, envs)).unwrap_or_else(|error| panic!("{}: {error}", config.id));
}

#[test]
fn environments_of_gymnasium() {
    if python().is_none() {
        return;
    }
    for id in ["CartPole-v1", "Blackjack-v1"] {
        check(&config(id), 120);
    }
}

/// Its state is in the memory of a C library.
#[test]
fn mujoco() {
    if !has_package("mujoco") {
        return;
    }
    check(&GymConfig { max_episode_steps: Some(30), ..config("HalfCheetah-v5") }, 80);
}

#[test]
fn spaces_of_every_kind() {
    if python().is_none() {
        return;
    }
    check(&own("brasa/Rooms-v0", &[]), 60);
    check(&own("brasa/Masked-v0", &[]), 60);
    // It raises if an action is not in its space.
    for kind in ["discrete", "boxes", "mixed"] {
        let mut batch = GymVec::new(&own("brasa/Parts-v0", &[("kind", kind)]), 0..2).expect("the environments start");
        play(&mut batch, 1, 30).expect("every action is in its space");
    }
}

/// They take a byte per pixel on their way.
#[test]
fn images_of_bytes() {
    if python().is_none() {
        return;
    }
    check(&own("brasa/Pictures-v0", &[]), 30);
    for returns in ["bytes", "integers", "whole floats", "a row", "parts"] {
        let mut batch = GymVec::new(&own("brasa/Pictures-v0", &[("returns", returns)]), 0..2).expect("it starts");
        let is_image = !["a row", "parts"].contains(&returns);
        assert!(batch.spec().obs.has_bytes(), "{returns}");
        assert!(!is_image || batch.spec().obs == Space::shaped(0.0, 255.0, [4, 3, 2]).of_bytes());
        let (seen, _) = play(&mut batch, 1, 12).expect("all pixels are bytes");
        for (step, slabs) in seen.iter().enumerate() {
            let pixel = |i: usize| ((37 * i + 101 * (step % 5)) % 256) as f32;
            assert!(slabs.obs.indexed_iter().all(|((_, i), value)| *value == pixel(i)), "{returns}, step {step}");
        }
    }
}

#[test]
fn teams() {
    if python().is_none() {
        return;
    }
    check(&team(&[]), 60);
    let batch = GymVec::new(&team(&[("masked", PyValue::Bool(false))]), 0..2).expect("the environments start");
    let EnvSpec { n_agents, mask, action, obs, truncation_interval, .. } = batch.spec();
    assert_eq!((*n_agents, *mask, action, *truncation_interval), (3, None, &Space::Discrete(3), 1));
    assert_eq!(obs.names(), ["energy_0", "lane_0", "lane_1", "lane_2"]);
}

#[test]
fn teams_have_wrappers() {
    if python().is_none() {
        return;
    }
    let name = format!("{}:Doubled", script("brasa_gym_teams.py"));
    let doubled = GymConfig { wrappers: vec![GymWrapper { name, kwargs: Default::default() }], ..team(&[]) };
    check(&doubled, 40);
    let episodes = |config: &GymConfig| {
        let mut batch = EpisodeStats::new(GymVec::new(config, 0..2).expect("the environments start"));
        play(&mut batch, 1, 60).expect("they run");
        let mut episodes = Vec::new();
        batch.drain_episodes(&mut episodes);
        episodes
    };
    let (plain, doubled) = (episodes(&team(&[])), episodes(&doubled));
    assert!(plain.len() > 4 && plain.len() == doubled.len(), "{plain:?}");
    for (plain, doubled) in plain.iter().zip(&doubled) {
        assert!((2.0 * plain.episode_return - doubled.episode_return).abs() < 1e-9 && plain.episode_return > 0.0);
    }
}

/// A runner who has left observes zeros, has no rewards, and may do anything; its row ends with those of the others.
#[test]
fn who_leaves_keeps_a_row() {
    if python().is_none() {
        return;
    }
    let mut batch = GymVec::new(&team(&[]), 0..4).expect("the environments start");
    let (seen, _) = play(&mut batch, 2, 60).expect("they run");
    let (mut n_gone, mut n_cut) = (0, 0);
    for slabs in &seen[1..] {
        for row in 0..12 {
            assert_eq!(slabs.episode_end(row), slabs.episode_end(row / 3 * 3), "a team ends together");
            n_cut += usize::from(slabs.truncated[row]);
            if slabs.next_obs.row(row).iter().all(|number| *number == 0.0) {
                assert!(slabs.reward[row] == 0.0 && !slabs.truncated[row]);
                assert!(slabs.next_mask.row(row).iter().all(|legal| *legal == 1.0));
                n_gone += 1;
            }
        }
    }
    assert!(n_gone > 10 && n_cut > 2, "{n_gone} rows of runners who left, {n_cut} were cut");
}

#[test]
fn results_do_not_depend_on_workers_and_ranges() {
    if python().is_none() {
        return;
    }
    for settings in [config("CartPole-v1"), own("brasa/Rooms-v0", &[]), team(&[])] {
        let run = |n_workers| {
            let config = GymConfig { n_workers: Some(n_workers), ..settings.clone() };
            let mut batch = GymVec::new(&config, 3..10).expect("the environments start");
            assert_eq!(batch.process_ids().len(), n_workers);
            play(&mut batch, 5, 60).expect("they run").0
        };
        let one = run(1);
        assert!(one.iter().any(BatchSlabs::any_episode_end), "some episode must end for the test to mean something");
        for n_workers in [2, 3, 7] {
            assert!(run(n_workers) == one, "{}: {n_workers} workers", settings.id);
        }
    }
}

#[test]
fn constants_follow_from_the_spaces() {
    if python().is_none() {
        return;
    }
    let spec = |config: &GymConfig| GymVec::new(config, 0..2).expect("the environments start").spec().clone();
    let cart_pole = spec(&config("CartPole-v1"));
    assert_eq!((cart_pole.action, cart_pole.truncation_interval), (Space::Discrete(2), 500));
    let limited = spec(&GymConfig { max_episode_steps: Some(20), ..config("CartPole-v1") });
    assert_eq!(limited.truncation_interval, 20);
    assert_eq!(spec(&config("Blackjack-v1")).truncation_interval, EnvSpec::NEVER);
    assert_eq!(spec(&config("Pendulum-v1")).action, Space::uniform_box(-2.0, 2.0, ["action_0"]));

    let rooms = spec(&own("brasa/Rooms-v0", &[]));
    assert_eq!((rooms.action, rooms.mask), (Space::MultiDiscrete(vec![3, 2]), Some(MaskSpec::default())));
    // Another package may truncate episodes by its own rules.
    assert_eq!(rooms.truncation_interval, 1);
    let Space::Box(obs) = rooms.obs else { panic!("observations are boxes") };
    let names = [
        "bits_0",
        "bits_1",
        "count_5",
        "count_6",
        "count_7",
        "image_0_0_0",
        "image_0_0_1",
        "image_0_0_2",
        "image_1_0_0",
        "image_1_0_1",
        "image_1_0_2",
        "pair_0_0",
        "pair_0_1",
        "pair_1_0_0",
        "pair_1_0_1",
        "pair_1_1_-1",
        "pair_1_1_0",
        "pair_1_1_1",
        "walls_0_0",
        "walls_0_1",
        "walls_1_0",
        "walls_1_1",
    ];
    assert_eq!(obs.names, names);
    assert_eq!((obs.high[5], obs.low[18], obs.high[2]), (255.0, -1.0, 1.0));
    assert_eq!(spec(&own("brasa/Parts-v0", &[("kind", "discrete")])).action, Space::MultiDiscrete(vec![3, 2, 2, 2, 4]));
    // A row has the choices first; the box is in front of them in the `Dict`.
    let mixed = spec(&own("brasa/Parts-v0", &[("kind", "mixed")])).action;
    assert_eq!(
        (mixed.heads(), mixed.names()),
        (&[3, 2][..], ["choice_0", "choice_1", "a_0", "a_1"].map(String::from).to_vec())
    );

    let unbounded = own("brasa/Parts-v0", &[("kind", "unbounded")]);
    let action = |config: &GymConfig| match spec(config).action {
        Space::Box(space) => (space.low, space.high),
        other => panic!("it is a box, got {other:?}"),
    };
    assert_eq!(action(&unbounded), (vec![f32::NEG_INFINITY, 0.0], vec![f32::INFINITY, 1.0]));
    let bounded = GymConfig { action_bound: Some(3.0), ..unbounded };
    assert_eq!(action(&bounded), (vec![-3.0, 0.0], vec![3.0, 1.0]));
}

#[test]
fn actions_are_clipped_to_their_bounds() {
    if python().is_none() {
        return;
    }
    // The environment returns its action, and raises if it is not in its space.
    let mut batch = GymVec::new(&own("brasa/Parts-v0", &[("kind", "boxes")]), 0..1).expect("the environments start");
    let mut slabs = BatchSlabs::new(batch.spec());
    batch.reset(0, &mut slabs).expect("it starts");
    let actions = Array2::from_shape_vec((1, 4), vec![-7.0, 0.25, 1e9, -1e9]).expect("four numbers");
    batch.step(actions.view(), &mut slabs).expect("it runs");
    assert_eq!(slabs.obs.row(0).to_vec(), [-1.0, 0.25, 0.1, 0.0]);
    // Choices are written before numbers, whatever the order of their keys.
    let mut batch = GymVec::new(&own("brasa/Parts-v0", &[("kind", "mixed")]), 0..1).expect("the environments start");
    let mut slabs = BatchSlabs::new(batch.spec());
    batch.reset(0, &mut slabs).expect("it starts");
    let actions = Array2::from_shape_vec((1, 4), vec![2.0, 1.0, -7.0, 0.25]).expect("four numbers");
    batch.step(actions.view(), &mut slabs).expect("it runs");
    // Box `a`, one-hot `b` of three, one-hot `c` of two.
    assert_eq!(slabs.obs.row(0).to_vec(), [-1.0, 0.25, 0.0, 0.0, 1.0, 0.0, 1.0]);
}

#[test]
fn arguments_and_wrappers_arrive() {
    if python().is_none() {
        return;
    }
    let mut config = own("brasa/Rooms-v0", &[]);
    config.kwargs.insert("mask".into(), PyValue::Bool(false));
    let plain = GymVec::new(&config, 0..2).expect("the environments start");
    assert_eq!(plain.spec().mask, None);
    drop(plain);
    let toml = format!("[[wrappers]]\nname = '{}:Scaled'\nkwargs = {{ factor = 4.0 }}", script("brasa_gym_envs.py"));
    let wrapped: GymConfig = toml::from_str(&toml).expect("it is valid");
    let (one, _) = play(&mut GymVec::new(&config, 0..2).expect("the environments start"), 1, 20).expect("they run");
    config.wrappers = wrapped.wrappers;
    let (four, _) = play(&mut GymVec::new(&config, 0..2).expect("the environments start"), 1, 20).expect("they run");
    for (one, four) in one.iter().zip(&four).skip(1) {
        assert_eq!(one.reward.mapv(|reward| 4.0 * reward), four.reward);
    }
}

/// The return of an episode is that of the environment; learners see the rewards of the wrappers.
#[test]
fn returns_are_those_before_the_wrappers() {
    if python().is_none() {
        return;
    }
    let rooms = own("brasa/Rooms-v0", &[]);
    let toml = format!(
        "[[wrappers]]\nname = 'gymnasium.wrappers:NormalizeReward'\n[[wrappers]]\nname = '{}:Scaled'\nkwargs = {{ factor = -4.0 }}",
        script("brasa_gym_envs.py")
    );
    let GymConfig { wrappers, .. } = toml::from_str(&toml).expect("it is valid");
    let wrapped = GymConfig { wrappers, ..rooms.clone() };
    let episodes = |config: &GymConfig| {
        let batch = GymVec::new(config, 0..2).expect("the environments start");
        let mut batch = EpisodeStats::new(batch);
        let (seen, _) = play(&mut batch, 1, 60).expect("they run");
        let mut episodes = Vec::new();
        batch.drain_episodes(&mut episodes);
        (episodes, seen.iter().map(|slabs| slabs.reward.to_vec()).collect::<Vec<_>>())
    };
    let ((plain, rewards), (with_wrappers, other_rewards)) = (episodes(&rooms), episodes(&wrapped));
    assert!(plain.len() > 2 && plain.iter().any(|episode| episode.episode_return != 0.0), "{plain:?}");
    assert_eq!(plain, with_wrappers);
    assert_ne!(rewards, other_rewards);
    // Saved states continue with the sums of their episodes.
    let new = || GymVec::new(&wrapped, 0..2).expect("the environments start");
    let (mut one, mut other) = (new(), new());
    let (seen, _) = play(&mut one, 1, 7).expect("they run");
    other.load(&one.save()).expect("it fits");
    let (mut view, mut other_view) = (seen[7].clone(), seen[7].clone());
    let rng = &mut named_rng(3, "test", 0);
    for _ in 0..40 {
        let mut actions = Array2::zeros((2, one.spec().action.width()));
        random_actions(one.spec(), view.mask.view(), &mut actions, rng).expect("some are legal");
        one.step(actions.view(), &mut view).expect("they run");
        other.step(actions.view(), &mut other_view).expect("they run");
        assert_eq!(view, other_view);
    }
    let [ended, others] = [&mut one, &mut other].map(|batch| {
        let mut episodes = Vec::new();
        batch.drain_episodes(&mut episodes);
        episodes
    });
    assert!(ended.len() > 4, "{ended:?}");
    assert_eq!(ended, others);
}

#[test]
fn batches_use_their_own_workers_and_no_threads() {
    if python().is_none() {
        return;
    }
    let config = config("CartPole-v1");
    let (batch, choice) =
        execute(Executor::Auto, 4, |envs| GymVec::new(&config, envs)).expect("the environments start");
    assert_eq!((batch.n_envs(), choice.n_threads), (4, 1));
    assert_eq!(choice.to_string(), "environments on 1 thread: they use several cores by themselves");
}
