//! Tasks of POPGym equal recorded episodes (`scripts/record_popgym.py`), keep the contract, and have noise of the stated size.
#![allow(clippy::expect_used)]

use brasa_classic::{CardGame, CardState, Classic, Difficulty, PositionOnlyCartPole};
use brasa_env::wrappers::TimeLimit;
use brasa_env::{Env, EnvVec, Evaluation, RuleState, Scenario, Space, Who, check_env, episode_rng};
use ndarray::{Array1, array};
use serde::Deserialize;

#[derive(Deserialize)]
struct Recorded {
    cards: Vec<Cards>,
    poles: Vec<Pole>,
    noisy: Vec<Noisy>,
}

#[derive(Deserialize)]
struct Cards {
    task: String,
    difficulty: Difficulty,
    cards: Vec<u8>,
    queries: Vec<u8>,
    n_actions: usize,
    actions: Vec<u8>,
    observations: Vec<Vec<usize>>,
    rewards: Vec<f64>,
    terminated: Vec<bool>,
}

#[derive(Deserialize)]
struct Pole {
    difficulty: Difficulty,
    state: [f64; 4],
    bounds: [Vec<f32>; 2],
    actions: Vec<u8>,
    observations: Vec<[f32; 2]>,
    rewards: Vec<f64>,
    terminated: Vec<bool>,
    truncated: Vec<bool>,
}

#[derive(Deserialize)]
struct Noisy {
    difficulty: Difficulty,
    sigma: f64,
    steps: u32,
}

fn recorded() -> Recorded {
    serde_json::from_str(include_str!("../data/popgym.json")).expect("the recorded file is valid")
}

fn game(task: &str, difficulty: Difficulty) -> CardGame {
    match task {
        "repeat-first" => CardGame::repeat_first(difficulty),
        "repeat-previous" => CardGame::repeat_previous(difficulty),
        "count-recall" => CardGame::count_recall(difficulty),
        _ => CardGame::autoencode(difficulty),
    }
}

/// POPGym's observation as ours: a column for each kind of card.
fn columns(task: &str, kinds: usize, is_first: bool, seen: &[usize]) -> Vec<f32> {
    let kind = |of: usize| (0..kinds).map(move |kind| f32::from(u8::from(kind == of)));
    let first = std::iter::once(f32::from(u8::from(is_first)));
    match (task, seen) {
        // Whether cards are dealt stands first there.
        ("autoencode", [is_dealt, card]) => first.chain(kind(*card)).chain([*is_dealt as f32]).collect(),
        (_, seen) => first.chain(seen.iter().flat_map(|of| kind(*of))).collect(),
    }
}

#[test]
fn card_games_are_those_of_popgym() {
    let episodes = recorded().cards;
    assert_eq!(episodes.len(), 12);
    for episode in episodes {
        let Cards { task, difficulty, cards, queries, .. } = &episode;
        let what = format!("{task}, {difficulty:?}");
        let mut env = game(task, *difficulty);
        assert_eq!(env.action_space(), Space::Discrete(episode.n_actions), "{what}");
        assert_eq!(env.n_steps(), episode.actions.len(), "{what}");
        // As many cards of each kind as a shuffled deck has.
        let (mut obs, rng) = (Array1::zeros(env.obs_space().width()), &mut episode_rng(0, 0, 0));
        env.reset(rng, obs.view_mut());
        let sorted = |mut cards: Vec<u8>| {
            cards.sort_unstable();
            cards
        };
        let CardState { cards: ours, queries: asked, .. } = env.state();
        assert_eq!(sorted(ours), sorted(cards.clone()), "{what}");
        assert_eq!(sorted(asked), sorted(queries.clone()), "{what}");
        assert_eq!(obs[0], 1.0);

        let kinds = 1 + usize::from(*cards.iter().max().expect("there are cards"));
        env.set_state(CardState::dealt_first(cards.clone(), queries.clone()));
        for (step, action) in episode.actions.iter().enumerate() {
            let got = env.step(array![f32::from(*action)].view(), rng, obs.view_mut());
            let expected = columns(task, kinds, false, &episode.observations[step + 1]);
            assert_eq!(obs.to_vec(), expected, "{what}, step {step}");
            assert_eq!(got.reward, episode.rewards[step] as f32, "{what}, step {step}");
            assert_eq!((got.terminated, got.truncated), (episode.terminated[step], false), "{what}, step {step}");
        }
    }
}

#[test]
fn positions_are_those_of_popgym() {
    for episode in recorded().poles {
        let pole = PositionOnlyCartPole::new(episode.difficulty);
        let limit = pole.n_steps() as usize;
        let Space::Box(space) = pole.obs_space() else { panic!("numbers are seen") };
        assert_eq!([space.low, space.high], episode.bounds);
        let (mut env, mut obs, rng) = (pole, Array1::zeros(2), &mut episode_rng(0, 0, 0));
        env.set_state(RuleState(episode.state));
        for (step, action) in episode.actions.iter().enumerate() {
            let got = env.step(array![f32::from(*action)].view(), rng, obs.view_mut());
            for (got, expected) in obs.iter().zip(episode.observations[step + 1]) {
                assert!((got - expected).abs() < 1e-6, "step {step}: {got} instead of {expected}");
            }
            assert!((f64::from(got.reward) - episode.rewards[step]).abs() < 1e-8);
            assert_eq!(got.terminated, episode.terminated[step]);
            assert_eq!(step + 1 == limit, episode.truncated[step], "the limit of the scenario");
        }
    }
}

#[test]
fn noise_has_the_stated_deviation() {
    for Noisy { difficulty, sigma, steps } in recorded().noisy {
        let mut env = PositionOnlyCartPole::noisy(difficulty);
        assert_eq!(env.n_steps(), steps);
        let (mut obs, rng) = (Array1::zeros(2), &mut episode_rng(0, 0, 0));
        let (mut square, n) = (0.0, 20_000);
        for _ in 0..n {
            env.reset(rng, obs.view_mut());
            // The true place is within 0.05 of 0, uniformly.
            square += f64::from(obs[0]).powi(2) - 0.05f64.powi(2) / 3.0;
            assert!(obs[1].abs() <= 0.418_879_04, "noise stays within the bounds");
        }
        let deviation = (square / f64::from(n)).sqrt();
        assert!((deviation - sigma).abs() < 0.02 * sigma, "{difficulty:?}: {deviation} instead of {sigma}");
    }
}

#[test]
fn the_contract_holds() {
    for difficulty in [Difficulty::Easy, Difficulty::Medium, Difficulty::Hard] {
        for task in ["repeat-first", "repeat-previous", "count-recall", "autoencode"] {
            check_env(120, |envs| EnvVec::new(envs, |_| game(task, difficulty))).expect(task);
        }
        check_env(120, |envs| TimeLimit::new(EnvVec::new(envs, |_| PositionOnlyCartPole::new(difficulty))?, 50))
            .expect("positions");
        check_env(120, |envs| TimeLimit::new(EnvVec::new(envs, |_| PositionOnlyCartPole::noisy(difficulty))?, 50))
            .expect("noise");
    }
}

/// Who knows the deck has a return of 1; who is always wrong, -1; random actions are right in one of four cases.
#[test]
fn returns_are_between_minus_one_and_one() {
    for task in ["repeat-first", "repeat-previous", "autoencode"] {
        let mut env = game(task, Difficulty::Easy);
        let (mut obs, rng) = (Array1::zeros(env.obs_space().width()), &mut episode_rng(7, 0, 0));
        for shift in [0, 1] {
            env.reset(rng, obs.view_mut());
            let mut sum = 0.0;
            loop {
                let CardState { cards, n_dealt, n_named, .. } = env.state();
                let right = match task {
                    "repeat-first" => cards[0],
                    "repeat-previous" => cards[n_dealt.saturating_sub(4)],
                    _ => cards[cards.len() - 1 - n_named],
                };
                let step = env.step(array![f32::from((right + shift) % 4)].view(), rng, obs.view_mut());
                sum += step.reward;
                if step.terminated {
                    break;
                }
            }
            let expected = if shift == 0 { 1.0 } else { -1.0 };
            assert!((sum - expected).abs() < 1e-5, "{task}: {sum} instead of {expected}");
        }
    }
    let scenario = Classic::repeat_first(Difficulty::Easy);
    let outcomes = scenario.evaluate(Who::Baseline("random"), &Evaluation::new(200, 0)).expect("it is played");
    let returns: f64 = outcomes.iter().map(|outcome| outcome.episode_return.expect("it was played")).sum();
    assert!((returns / 200.0 + 0.5).abs() < 0.03, "{returns}");
    let bound = scenario.evaluate(Who::Baseline("bound"), &Evaluation::new(1, 0)).expect("it is known");
    assert_eq!(bound[0].episode_return, Some(1.0));
}
