//! Complete episodes with heuristics and policies.
#![allow(clippy::unwrap_used)]

use brasa_env::{
    BaselineKind, BatchSlabs, Effort, EnvBatch, EnvError, EpisodeData, Evaluation, Outcome, PairSpec, Scenario, Split,
    Who, named_rng,
};
use brasa_uara::baselines::greedy;
use brasa_uara::{
    BsAgent, BsAgentConfig, BsAgentParity, Candidates, DynamicsConfig, Heuristic, LayoutConfig, Objective, Redraw,
    Trace, Uara, UaraConfig, exploration_floor,
};
use ndarray::ArrayViewMut2;

/// The value of a figure of an outcome.
fn value(outcome: &Outcome, name: &str) -> f64 {
    let figures = Uara::new(UaraConfig::default()).unwrap().figures();
    outcome.figure(&figures, name).and_then(|figure| figure.value).unwrap_or_else(|| panic!("no {name}"))
}

fn trace(outcome: &Outcome) -> Option<&Trace> {
    outcome.trace.as_ref().map(|trace| trace.downcast_ref().expect("a trace of this crate"))
}

/// Layouts of the published network, one per environment.
fn layouts(min_sinr_db: f64) -> Uara {
    let layout = LayoutConfig { redraw: Redraw::Environment, ..UaraConfig::cly2020().layout };
    Uara::new(UaraConfig { layout, min_sinr_db, ..UaraConfig::cly2020() }).unwrap()
}

#[test]
fn v19_rules_satisfy_as_many_as_the_bands_say() {
    for (min_sinr_db, strongest) in [(5.0, 0.62), (0.0, 0.64)] {
        let scenario = layouts(min_sinr_db);
        let (mut random, mut strongest_random, mut greedy) = (0.0, 0.0, 0.0);
        let n = 200;
        let mut batch = scenario.batch(0..n);
        batch.reset(0, &mut BatchSlabs::new(batch.spec())).unwrap();
        let rng = &mut named_rng(0, "test", 0);
        for env in 0..n {
            let snapshot = batch.snapshot(env);
            let mut qos =
                |rule: Heuristic| snapshot.outcome(&rule.choose(&snapshot, Objective::Satisfied, rng)).qos_rate();
            random += qos(Heuristic::Random) / n as f64;
            strongest_random += qos(Heuristic::StrongestRandom) / n as f64;
            greedy += qos(Heuristic::Greedy) / n as f64;
        }
        assert!((random - 0.045).abs() < 0.01, "random {random}");
        assert!((strongest_random - strongest).abs() < 0.03, "strongest {strongest_random}");
        assert!(greedy >= 0.99, "greedy {greedy}");
        println!("{min_sinr_db} dB: random {random:.4}, strongest {strongest_random:.4}, greedy {greedy:.5}");
    }
}

#[test]
fn v20_a_perfect_policy_that_explores_fails_most_of_the_time() {
    let scenario = layouts(5.0);
    let n = 60;
    let mut batch = scenario.batch(0..n);
    batch.reset(0, &mut BatchSlabs::new(batch.spec())).unwrap();
    let rng = &mut named_rng(0, "test", 1);
    let floors: Vec<_> = (0..n)
        .map(|env| {
            let snapshot = batch.snapshot(env);
            let links = greedy(&snapshot, Objective::Satisfied);
            exploration_floor(&snapshot, &links, 0.1, 4000, rng)
        })
        .collect();
    let all = floors.iter().map(|floor| floor.all_satisfied).sum::<f64>() / n as f64;
    assert!((all - 0.046).abs() < 0.003, "{all}");
    println!("all satisfied {all:.4}: {:.1} failed steps", 1.0 / all - 1.0);
}

#[test]
fn rules_and_policies_play_the_same_episodes() {
    let scenario = Uara::new(UaraConfig::physical()).unwrap();
    let evaluation = Evaluation { episodes: 3..6, seed: 9, n_traces: 1 };
    let rule = scenario.evaluate(Who::Baseline("greedy"), &evaluation).unwrap();
    // A policy that repeats the choices of greedy has the same outcome.
    let mut batch = scenario.batch(3..6);
    let mut slabs = BatchSlabs::new(batch.spec());
    batch.reset(9, &mut slabs).unwrap();
    let mut repeat = |_: &BatchSlabs, mut actions: ArrayViewMut2<f32>| -> Result<(), EnvError> {
        for env in 0..3 {
            for (user, link) in greedy(&batch.snapshot(env), scenario.objective()).into_iter().enumerate() {
                actions[[env * 30 + user, 0]] = batch.option(env, user, link).unwrap() as f32;
            }
        }
        batch.step(actions.view(), &mut slabs)
    };
    let policy = scenario.evaluate(Who::Controller(&mut repeat), &evaluation).unwrap();
    assert_eq!(format!("{rule:?}"), format!("{policy:?}"));
    let trace = self::trace(&rule[0]).unwrap();
    assert_eq!(Some(trace), self::trace(&policy[0]));
    assert_eq!((trace.frames.len(), trace.stations_m.len(), rule[1].trace.is_none()), (40, 26, true));
    let qos = |frame: &brasa_uara::Frame| frame.satisfied.iter().filter(|on| **on).count() as f64 / 30.0;
    let mean = trace.frames.iter().map(qos).sum::<f64>() / 40.0;
    let qos_rate = value(&rule[0], "qos_rate");
    assert!((mean - qos_rate).abs() < 0.002, "{mean} and {qos_rate}");
    let rate = trace.frames.iter().map(|frame| frame.rate_mbps.iter().sum::<f64>()).sum::<f64>() / 40.0;
    assert!((rate / value(&rule[0], "sum_rate_mbps") - 1.0).abs() < 1e-4);
}

#[test]
fn episodes_end_at_success_or_run_out() {
    let config = UaraConfig { episode_steps: 20, candidates: Candidates::Covered, ..UaraConfig::cly2020() };
    let scenario = Uara::new(config).unwrap();
    let play =
        |rule: Heuristic| scenario.evaluate(Who::Baseline(rule.name()), &Evaluation::new(1, 0)).unwrap().remove(0);
    let (greedy, random) = (play(Heuristic::Greedy), play(Heuristic::Random));
    let figures = |outcome: &Outcome| ["steps", "final_qos_rate", "success"].map(|name| value(outcome, name));
    assert_eq!((greedy.length, figures(&greedy)), (1, [1.0, 1.0, 1.0]));
    let [steps, _, success] = figures(&random);
    assert_eq!((random.length, steps, success), (20, 20.0, 0.0));
    let mean_reward = random.episode_return.unwrap() / 20.0;
    assert!((mean_reward - (2.0 * value(&random, "qos_rate") - 1.0)).abs() < 1e-6);
}

/// A network in which nothing changes during an episode.
fn still(redraw: Redraw) -> Uara {
    let dynamics = DynamicsConfig { speed_m_per_s: 0.0, fading: false, ..DynamicsConfig::default() };
    let layout = LayoutConfig { redraw, ..LayoutConfig::default() };
    Uara::new(UaraConfig { dynamics, layout, users: 10, channels: 7, ..UaraConfig::physical() }).unwrap()
}

#[test]
fn everybody_is_measured_alike() {
    let scenarios = [
        Uara::new(UaraConfig { users: 10, channels: 7, ..UaraConfig::physical() }).unwrap(),
        still(Redraw::Episode),
        Uara::new(UaraConfig { candidates: Candidates::Covered, ..UaraConfig::cly2020() }).unwrap(),
    ];
    for scenario in &scenarios {
        let scenario: &dyn Scenario = scenario;
        let evaluation = Evaluation { episodes: 2..5, seed: 4, n_traces: 2 };
        for baseline in scenario.baselines() {
            let play = || scenario.evaluate(Who::Baseline(&baseline.name), &evaluation).unwrap();
            let outcomes = play();
            assert_eq!(format!("{outcomes:?}"), format!("{:?}", play()), "{baseline:?}");
            assert_eq!(outcomes.len(), 3);
            let plays = baseline.kind != BaselineKind::Bound;
            for (episode, outcome) in outcomes.iter().enumerate() {
                assert_eq!(outcome.figures.len(), scenario.figures().len(), "{baseline:?}");
                assert_eq!(outcome.episode_return.is_some(), plays);
                assert_eq!(trace(outcome).is_some(), plays && episode < 2);
                assert_eq!(outcome.figures.iter().all(|figure| figure.value.is_some()), plays);
            }
            let idle = baseline.name.ends_with("random");
            assert_eq!(baseline.kind == BaselineKind::Idle, idle, "{baseline:?}");
        }
        let play = || {
            let mut first = |view: &BatchSlabs, mut actions: ArrayViewMut2<f32>| -> Result<(), EnvError> {
                for (mut action, mask) in actions.rows_mut().into_iter().zip(view.mask.rows()) {
                    let station = mask.iter().position(|legal| *legal > 0.0).unwrap_or(0);
                    action[0] = (station * if mask.is_empty() { 1 } else { 20 }) as f32;
                }
                Ok(())
            };
            scenario.evaluate(Who::Controller(&mut first), &evaluation).unwrap()
        };
        let outcomes = play();
        assert!(outcomes.iter().all(|outcome| outcome.figures.len() == scenario.figures().len()));
        assert_eq!(format!("{outcomes:?}"), format!("{:?}", play()));
        let unknown = scenario.evaluate(Who::Baseline("magic"), &evaluation).unwrap_err().to_string();
        let known =
            "got `magic`; there are random, strongest-random, strongest-coloring, greedy, best-response, annealing";
        assert!(unknown.contains(known), "{unknown}");
        let mut illegal = |_: &BatchSlabs, mut actions: ArrayViewMut2<f32>| -> Result<(), EnvError> {
            actions.fill(-1.0);
            Ok(())
        };
        scenario.evaluate(Who::Controller(&mut illegal), &evaluation).expect_err("there is no such action");
    }
}

/// In static networks the bound holds for every episode.
#[test]
fn nobody_beats_the_bound() {
    for redraw in [Redraw::Never, Redraw::Environment, Redraw::Episode] {
        let scenario = still(redraw);
        let evaluation = Evaluation::new(5, 3);
        let bounds = scenario.evaluate(Who::Baseline("bound"), &evaluation).unwrap();
        assert_eq!(scenario.baselines().last().unwrap().kind, BaselineKind::Bound);
        for rule in Heuristic::ALL {
            let outcomes = scenario.evaluate(Who::Baseline(rule.name()), &evaluation).unwrap();
            for (outcome, bound) in outcomes.iter().zip(&bounds) {
                for name in ["sum_rate_mbps", "qos_rate", "final_qos_rate"] {
                    // The sums of rates in an episode are in f32.
                    assert!(value(outcome, name) <= value(bound, name) * (1.0 + 1e-5), "{rule}: {name}");
                }
            }
        }
    }
    for config in [UaraConfig::physical(), UaraConfig::zhao2019()] {
        let changes = config.dynamics.speed_m_per_s > 0.0 || config.dynamics.fading;
        let names: Vec<String> = Uara::new(config).unwrap().baselines().into_iter().map(|row| row.name).collect();
        assert_eq!(names.contains(&"bound".to_owned()), !changes);
    }
}

#[test]
fn episodes_are_said_to_be_where_they_are() {
    let about = |scenario: &Uara| {
        let about = scenario.about_episodes(7);
        let n = [Effort::Compare, Effort::Look].map(|effort| scenario.n_episodes(effort));
        (about.strip_prefix("Means over 7 episodes ").and_then(|about| about.split(',').next()).unwrap().to_owned(), n)
    };
    assert_eq!(about(&still(Redraw::Never)), ("on the layout of training".into(), [50, 20]));
    // Nothing changes there, so that there is one episode.
    let distinct =
        [Redraw::Never, Redraw::Environment, Redraw::Episode].map(|redraw| still(redraw).n_distinct_episodes());
    assert_eq!(distinct, [Some(1), None, None]);
    let data = |redraw, seed| {
        let layout = LayoutConfig { redraw, seed, ..LayoutConfig::default() };
        Uara::new(UaraConfig { layout, ..UaraConfig::physical() }).unwrap().data(Split::Train)
    };
    assert_eq!(data(Redraw::Never, 1), data(Redraw::Never, 1));
    assert_ne!(data(Redraw::Never, 1), data(Redraw::Never, 2));
    assert_eq!(data(Redraw::Episode, 1), EpisodeData::Sampled);
    let each = still(Redraw::Environment).about_episodes(7);
    assert!(each.contains(" on one layout for each environment, with those of training first, "), "{each}");
    assert_eq!(about(&still(Redraw::Episode)), ("on unseen layouts".into(), [50, 20]));
    // Fading differs between episodes on the same layout.
    let layout = LayoutConfig { redraw: Redraw::Never, ..LayoutConfig::default() };
    let fading = Uara::new(UaraConfig { layout, ..UaraConfig::physical() }).unwrap();
    assert_eq!(about(&fading), ("on the layout of training".into(), [50, 20]));
    assert_eq!(fading.n_distinct_episodes(), None);
    // So do walks, from the layout that training began on.
    let dynamics = DynamicsConfig { speed_m_per_s: 1.5, ..DynamicsConfig::still() };
    let layout = LayoutConfig { redraw: Redraw::Never, ..LayoutConfig::default() };
    let walking = Uara::new(UaraConfig { layout, dynamics, ..UaraConfig::physical() }).unwrap();
    assert_eq!(about(&walking), ("on the layout of training".into(), [50, 20]));
    for (redraw, place) in [
        (Redraw::Never, "on the network of training,"),
        (Redraw::Environment, "on one network for each environment, with those of training first,"),
        (Redraw::Episode, "on unseen networks,"),
    ] {
        let about = BsAgent::new(BsAgentConfig { redraw, ..BsAgentConfig::default() }).unwrap().about_episodes(7);
        assert!(about.contains(place), "{about}");
    }
}

#[test]
fn networks_can_know_pairs() {
    for config in [UaraConfig::physical(), UaraConfig::cly2020()] {
        let scenario = Uara::new(config).unwrap();
        let pairs = *scenario.extensions().get::<PairSpec>().expect("users choose pairs");
        let batch = scenario.envs(Split::Train, 0..1).unwrap();
        assert_eq!(pairs.width(), batch.spec().obs.width());
        assert_eq!(pairs.n_first * pairs.n_second * pairs.levels, batch.spec().action.n_actions());
        for curve in scenario.curves() {
            let column = curve.metric.strip_prefix("rollout/").unwrap().to_owned();
            assert!(batch.spec().info_names.contains(&column));
            assert!(scenario.figures().iter().any(|figure| Some(&figure.name) == curve.figure.as_ref()));
        }
    }
}

#[test]
fn stations_that_choose_users_are_measured() {
    let scenario =
        BsAgent::new(BsAgentConfig { users: 20, small_cells: 4, episode_steps: 30, ..BsAgentConfig::default() });
    let scenario: &dyn Scenario = &scenario.unwrap();
    let play = || {
        let mut each = |_: &BatchSlabs, mut actions: ArrayViewMut2<f32>| -> Result<(), EnvError> {
            actions.iter_mut().enumerate().for_each(|(row, action)| *action = (row % 5) as f32);
            Ok(())
        };
        scenario.evaluate(Who::Controller(&mut each), &Evaluation::new(3, 1)).unwrap()
    };
    let outcomes = play();
    assert_eq!(format!("{outcomes:?}"), format!("{:?}", play()));
    for outcome in &outcomes {
        assert_eq!((outcome.length, outcome.figures.len()), (30, scenario.figures().len()));
        let share = outcome.figure(&scenario.figures(), "connected_share").and_then(|figure| figure.value);
        assert!(share.is_some_and(|share| (0.0..=1.0).contains(&share)), "{share:?}");
    }
    let error = BsAgent::new(BsAgentConfig { users: 0, ..BsAgentConfig::default() }).unwrap_err().to_string();
    assert_eq!(error, "`users` must be between 1 and 10000, got 0");
    let error = scenario.evaluate(Who::Baseline("annealing"), &Evaluation::new(1, 0)).unwrap_err().to_string();
    assert!(error.starts_with("`baseline` must be one of the scenario's"), "{error}");
}

/// No assignment of users to stations exceeds the bound, and rules order as they should.
#[test]
fn rules_for_stations_stay_below_their_bound() {
    for parity in [BsAgentParity::default(), BsAgentParity::none()] {
        for (users, small_cells, redraw) in
            [(200, 12, Redraw::Never), (40, 9, Redraw::Episode), (3, 7, Redraw::Environment)]
        {
            let config =
                BsAgentConfig { users, small_cells, redraw, parity, episode_steps: 20, ..BsAgentConfig::default() };
            let scenario: &dyn Scenario = &BsAgent::new(config).unwrap();
            let evaluation = Evaluation::new(4, 3);
            let run = |name: &str| scenario.evaluate(Who::Baseline(name), &evaluation).unwrap();
            let names: Vec<String> = scenario.baselines().into_iter().map(|baseline| baseline.name).collect();
            assert_eq!(names, ["random", "strongest", "greedy", "bound"]);
            let bounds = run("bound");
            let mut rates = Vec::new();
            for name in ["random", "strongest", "greedy"] {
                let outcomes = run(name);
                assert_eq!(format!("{outcomes:?}"), format!("{:?}", run(name)), "{name} repeats");
                for (outcome, bound) in outcomes.iter().zip(&bounds) {
                    let (reached, most) = (outcome.episode_return.unwrap(), bound.episode_return.unwrap());
                    assert!(reached <= most * (1.0 + 1e-9) + 1e-9, "{name}: {reached} of {most}");
                    for (figure, (reached, most)) in
                        scenario.figures().iter().zip(outcome.figures.iter().zip(&bound.figures))
                    {
                        let most = most.value.unwrap_or(f64::INFINITY);
                        assert!(reached.value.unwrap() <= most * (1.0 + 1e-9), "{name}: {} above {most}", figure.name);
                    }
                }
                rates.push(outcomes.iter().map(|outcome| outcome.figures[2].value.unwrap()).sum::<f64>());
            }
            // With more stations than users, signals of others decide: only the bound is certain there.
            if users > small_cells {
                assert!(rates[2] >= rates[1] && rates[2] > 1.5 * rates[0], "{users} users: {rates:?}");
            }
        }
    }
}

#[test]
fn one_network_is_one_episode() {
    let of = |redraw| BsAgent::new(BsAgentConfig { users: 20, redraw, ..BsAgentConfig::default() }).unwrap();
    assert_eq!(of(Redraw::Never).n_distinct_episodes(), Some(1));
    assert_eq!(of(Redraw::Episode).n_distinct_episodes(), None);
    let data =
        |seed| BsAgent::new(BsAgentConfig { users: 20, seed, ..BsAgentConfig::default() }).unwrap().data(Split::Train);
    assert_eq!(data(0), data(0));
    assert_ne!(data(0), data(1));
    assert_eq!(of(Redraw::Episode).data(Split::Train), EpisodeData::Sampled);
}
