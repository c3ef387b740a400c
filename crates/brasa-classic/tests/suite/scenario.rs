//! Classic tasks through the interface of scenarios.

use brasa_classic::probe::{ContinuousIdentity, MaskedIdentity, MultiDiscreteIdentity};
use brasa_classic::{Classic, MountainCar};
use brasa_env::{BaselineKind, BatchSlabs, Effort, EnvError, EpisodeSeries, Evaluation, Outcome, Scenario, Split, Who};
use ndarray::ArrayViewMut2;

fn scenarios() -> [(&'static str, Box<dyn Scenario>, u64); 5] {
    [
        ("cart-pole", Box::new(Classic::cart_pole()), 500),
        ("pendulum", Box::new(Classic::pendulum()), 200),
        ("acrobot", Box::new(Classic::acrobot()), 500),
        ("mountain car", Box::new(Classic::mountain_car()), 200),
        ("mountain car, continuous", Box::new(Classic::mountain_car_continuous()), 999),
    ]
}

fn evaluate(scenario: &dyn Scenario, name: &str, evaluation: &Evaluation) -> Vec<Outcome> {
    scenario.evaluate(Who::Baseline(name), evaluation).expect("it plays")
}

fn mean(outcomes: &[Outcome]) -> f64 {
    let returns = outcomes.iter().map(|outcome| outcome.episode_return.expect("everybody has one"));
    returns.sum::<f64>() / outcomes.len() as f64
}

#[test]
fn rules_beat_chance_and_nobody_beats_a_bound() {
    for (name, scenario, _) in scenarios() {
        let evaluation = Evaluation::new(scenario.n_episodes(Effort::Compare), 1);
        let rows: Vec<_> = scenario
            .baselines()
            .into_iter()
            .map(|baseline| (mean(&evaluate(&*scenario, &baseline.name, &evaluation)), baseline))
            .collect();
        println!("{name}: {rows:?}");
        let find = |kind| rows.iter().find(|(_, baseline)| baseline.kind == kind).map(|(mean, _)| *mean);
        let (random, rule) = (find(BaselineKind::Idle), find(BaselineKind::Heuristic));
        assert!(rule > random, "{name}: {rule:?} and {random:?}");
        let bound = find(BaselineKind::Bound);
        assert_eq!(
            bound,
            match name {
                "cart-pole" => Some(500.0),
                "pendulum" => Some(0.0),
                _ => None,
            }
        );
        assert!(bound.is_none_or(|bound| rule <= Some(bound)), "{name}");
    }
}

#[test]
fn rules_do_what_they_are_known_for() {
    let evaluation = Evaluation::new(20, 1);
    let lengths = |scenario: &dyn Scenario, most: u64| {
        let outcomes = evaluate(scenario, "rule-based", &evaluation);
        assert!(outcomes.iter().all(|outcome| outcome.length < most), "{outcomes:?}");
    };
    // The goal is always reached.
    lengths(&Classic::mountain_car(), 200);
    lengths(&Classic::mountain_car_continuous(), 200);
    lengths(&Classic::acrobot(), 250);
    assert!(mean(&evaluate(&Classic::cart_pole(), "rule-based", &evaluation)) > 150.0);
    // A pendulum that is never held costs more than 1000.
    assert!(mean(&evaluate(&Classic::pendulum(), "rule-based", &evaluation)) > -300.0);
}

#[test]
fn everybody_is_measured_alike() {
    for (name, scenario, limit) in scenarios() {
        let scenario = &*scenario;
        let evaluation = Evaluation { episodes: 2..5, seed: 4, n_traces: 2 };
        for baseline in scenario.baselines() {
            let outcomes = evaluate(scenario, &baseline.name, &evaluation);
            assert_eq!(format!("{outcomes:?}"), format!("{:?}", evaluate(scenario, &baseline.name, &evaluation)));
            assert_eq!(outcomes.len(), 3, "{name}");
            let plays = baseline.kind != BaselineKind::Bound;
            for (episode, outcome) in outcomes.iter().enumerate() {
                assert_eq!(outcome.figures.len(), scenario.figures().len());
                assert_eq!((outcome.length > 0, outcome.length <= limit), (plays, true));
                let series = outcome.trace.as_ref().map(|trace| trace.downcast_ref::<EpisodeSeries>().expect("series"));
                assert_eq!(series.is_some(), plays && episode < 2);
            }
            // An episode does not depend on others in the batch.
            let alone = evaluate(scenario, &baseline.name, &Evaluation { episodes: 3..4, ..evaluation.clone() });
            assert_eq!(alone[0].episode_return, outcomes[1].episode_return, "{name}, {baseline:?}");
        }
        let play = || {
            let mut zero = |_: &BatchSlabs, mut actions: ArrayViewMut2<f32>| -> Result<(), EnvError> {
                actions.fill(0.0);
                Ok(())
            };
            scenario.evaluate(Who::Controller(&mut zero), &evaluation).expect("it plays")
        };
        assert_eq!(format!("{:?}", play()), format!("{:?}", play()));
        let unknown = scenario.evaluate(Who::Baseline("magic"), &evaluation).expect_err("nobody is called so");
        assert!(unknown.to_string().contains("got `magic`; there are random, rule-based"), "{unknown}");
        assert_eq!(scenario.envs(Split::Train, 0..3).expect("a batch").n_envs(), 3);
        scenario.envs(Split::Train, 0..0).expect_err("a batch of nothing");
    }
}

#[test]
fn chance_keeps_to_every_space() {
    let evaluation = Evaluation::new(4, 0);
    let scenarios: [Box<dyn Scenario>; 4] = [
        Box::new(Classic::new(MaskedIdentity::default, 20)),
        Box::new(Classic::new(MultiDiscreteIdentity::default, 20)),
        Box::new(Classic::new(ContinuousIdentity::default, 20)),
        Box::new(Classic::new(MountainCar::default, 20)),
    ];
    for scenario in scenarios {
        assert_eq!(scenario.baselines().len(), 1);
        assert_eq!(evaluate(&*scenario, "random", &evaluation).len(), 4);
    }
}
