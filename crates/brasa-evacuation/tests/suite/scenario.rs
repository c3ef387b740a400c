//! The evacuation scenario through the interface of scenarios.

use brasa_env::{
    BaselineKind, BatchSlabs, Effort, EnvError, Evaluation, GraphWorld, Measured, Outcome, Scenario, Split as EnvSplit,
    Who,
};
use brasa_evacuation::{
    Actions, Buildings, Evacuation, EvacuationConfig, GeneratedConfig, Goal, HazardConfig, Layout, Reference,
    RulesConfig, Split, Trace,
};
use ndarray::ArrayViewMut2;

fn scenario(reference: Reference, rules: RulesConfig) -> Evacuation {
    let config = EvacuationConfig { buildings: Buildings::Reference(reference), rules };
    Evacuation::new(config).expect("the settings are valid")
}

/// Chooses the first legal action of every row.
fn first(view: &BatchSlabs, mut actions: ArrayViewMut2<f32>) -> Result<(), EnvError> {
    assert_eq!(view.obs.nrows(), actions.nrows());
    for (mask, mut action) in view.mask.rows().into_iter().zip(actions.rows_mut()) {
        action[0] = mask.iter().position(|legal| *legal > 0.0).expect("something is legal") as f32;
    }
    Ok(())
}

fn measured(scenario: &dyn Scenario, outcome: &Outcome, name: &str) -> Measured {
    outcome.figure(&scenario.figures(), name).expect("a figure of the scenario")
}

#[test]
fn everybody_is_measured_alike() {
    let generated = EvacuationConfig {
        buildings: Buildings::Generated(GeneratedConfig { count: 3, ..GeneratedConfig::default() }),
        rules: RulesConfig::default(),
    };
    let scenarios = [
        scenario(Reference::Office, RulesConfig::legacy()),
        scenario(Reference::Daycare, RulesConfig { responders: [1, 3], ..RulesConfig::default() }),
        Evacuation::new(generated).expect("the settings are valid"),
    ];
    for (scenario, last) in scenarios.iter().zip(["optimum", "bound", "bound"]) {
        let scenario: &dyn Scenario = scenario;
        let evaluation = Evaluation { episodes: 2..5, seed: 4, n_traces: 2 };
        for baseline in scenario.baselines() {
            let play = || scenario.evaluate(Who::Baseline(&baseline.name), &evaluation).expect("it plays");
            let outcomes = play();
            assert_eq!(format!("{outcomes:?}"), format!("{:?}", play()), "{baseline:?}");
            assert_eq!(outcomes.len(), 3);
            let plays = !matches!(baseline.kind, BaselineKind::Bound | BaselineKind::Optimum);
            for (episode, outcome) in outcomes.iter().enumerate() {
                assert_eq!(outcome.figures.len(), scenario.figures().len(), "{baseline:?}");
                assert_eq!(outcome.episode_return.is_some(), plays);
                let trace = outcome.trace.as_ref().map(|trace| trace.downcast_ref::<Trace>().expect("our trace"));
                assert_eq!(trace.is_some(), plays && episode < 2);
                for name in ["building", "n_responders", "people", "bound_ticks"] {
                    assert!(outcome.detail(name).is_some(), "{name}");
                }
                assert_eq!(outcome.detail("ticks").is_some(), plays);
            }
            assert_eq!(baseline.kind == BaselineKind::Idle, baseline.name == "random");
        }
        assert_eq!(scenario.baselines().last().expect("there are some").name, last);
        let play = || scenario.evaluate(Who::Controller(&mut first), &evaluation).expect("it plays");
        let outcomes = play();
        assert_eq!(format!("{outcomes:?}"), format!("{:?}", play()));
        assert!(outcomes.iter().all(|outcome| outcome.figures.len() == scenario.figures().len()));
        let unknown = scenario.evaluate(Who::Baseline("magic"), &evaluation).expect_err("nobody is called so");
        let names = format!("got `magic`; there are random, nearest, greedy, hindsight, {last}");
        assert!(unknown.to_string().ends_with(&names), "{unknown}");
        let mut illegal = |_: &BatchSlabs, mut actions: ArrayViewMut2<f32>| -> Result<(), EnvError> {
            actions.fill(0.5);
            Ok(())
        };
        let error = scenario.evaluate(Who::Controller(&mut illegal), &evaluation).expect_err("there is no such option");
        assert!(error.to_string().contains("must be options that the mask allows"), "{error}");
    }
}

/// The six rooms of the office with two responders: 13 ticks of 5 s, proven and reached.
#[test]
fn the_table_of_the_office_holds_its_optimum() {
    let harmless = RulesConfig::legacy();
    let without =
        RulesConfig { hazards: HazardConfig { enabled: false, ..HazardConfig::default() }, ..RulesConfig::legacy() };
    let macros = RulesConfig { actions: Actions::Macro, ..without.clone() };
    for rules in [harmless, without, macros] {
        let office = scenario(Reference::Office, rules);
        let evaluation = Evaluation::new(20, 0);
        let row = office.baselines().pop().expect("there are some");
        assert_eq!((row.name.as_str(), row.kind), ("optimum", BaselineKind::Optimum));
        for outcome in office.evaluate(Who::Baseline("optimum"), &evaluation).expect("it is known") {
            let expected = Measured::new(13.0 * 5.0).relative_to(13.0 * 5.0);
            assert_eq!(measured(&office, &outcome, "all_clear_secs"), expected);
            assert_eq!(measured(&office, &outcome, "sweep_secs"), expected);
            assert_eq!(measured(&office, &outcome, "par2_secs"), expected);
            assert_eq!(measured(&office, &outcome, "success"), Measured::NONE);
            assert_eq!(outcome.detail("bound_ticks"), Some(13.0));
        }
        // Some heuristic reaches the optimum, and none is better.
        let hindsight = office.evaluate(Who::Baseline("hindsight"), &evaluation).expect("it plays");
        let ticks = hindsight.iter().map(|outcome| outcome.detail("sweep_ticks").expect("rooms are swept"));
        assert_eq!(ticks.fold(f64::INFINITY, f64::min), 13.0);
    }
}

#[test]
fn an_optimum_is_claimed_only_where_it_is_one() {
    let kind = |reference: Reference, rules: RulesConfig| {
        scenario(reference, rules).baselines().last().expect("there are some").kind
    };
    let legacy = RulesConfig::legacy;
    assert_eq!(kind(Reference::Daycare, legacy()), BaselineKind::Optimum);
    assert_eq!(kind(Reference::Warehouse, legacy()), BaselineKind::Optimum);
    // Rescuing people takes longer than sweeping rooms.
    let people = RulesConfig { goal: Goal::AllClear, ..legacy() };
    assert_eq!(kind(Reference::Office, people), BaselineKind::Bound);
    // Fire blocks paths, smoke slows responders, or responders go down.
    let closed = RulesConfig { hazards: HazardConfig { impassable: 1.0, ..legacy().hazards }, ..legacy() };
    assert_eq!(kind(Reference::Office, closed), BaselineKind::Bound);
    let slow = RulesConfig { hazards: HazardConfig { smoke_slowdown: 0.1, ..legacy().hazards }, ..legacy() };
    assert_eq!(kind(Reference::Office, slow), BaselineKind::Bound);
    let mut deadly = legacy();
    deadly.crew.fire_harm_per_s = 2.0;
    assert_eq!(kind(Reference::Office, deadly), BaselineKind::Bound);
}

/// People are conserved: those not outside are dead or inside, for every cause of the end.
#[test]
fn people_are_rescued_or_lost() {
    for (timeout_secs, goal) in [(20.0, Goal::AllClear), (1200.0, Goal::AllClear), (1200.0, Goal::Sweep)] {
        let rules = RulesConfig { timeout_secs, goal, ..RulesConfig::default() };
        let daycare = scenario(Reference::Daycare, rules);
        for name in ["random", "greedy"] {
            for outcome in daycare.evaluate(Who::Baseline(name), &Evaluation::new(10, 3)).expect("it plays") {
                let [rescued, lost] = ["rescued", "lost"].map(|name| measured(&daycare, &outcome, name));
                assert!((rescued.value.expect("there are people") + lost.value.expect("as well") - 1.0).abs() < 1e-12);
                assert_eq!((rescued.weight, lost.weight), (39.0, 39.0));
                let detail = |name: &str| outcome.detail(name).expect("it was played");
                assert_eq!(detail("rescued_people") + detail("dead_people") + detail("people_left_inside"), 39.0);
                // Times exist only for events that happened.
                let success = measured(&daycare, &outcome, "success").value == Some(1.0);
                let cleared = measured(&daycare, &outcome, "all_clear_secs");
                assert_eq!((cleared.value.is_some(), cleared.ratio.is_some()), (success, success));
                let swept = outcome.detail("sweep_ticks").is_some();
                let sweep = measured(&daycare, &outcome, "sweep_secs");
                assert_eq!((sweep.value.is_some(), sweep.ratio.is_some()), (swept, swept));
                // What compares controllers has a value in every episode: who clears nothing is never the fastest.
                let par2 = measured(&daycare, &outcome, "par2_secs");
                assert_eq!(par2.value, Some(cleared.value.unwrap_or(2.0 * timeout_secs)));
                assert!(par2.ratio >= Some(1.0), "{outcome:?}");
                if timeout_secs < 100.0 {
                    assert!(!success && !swept && lost.value > Some(0.5), "{outcome:?}");
                }
            }
        }
    }
}

/// Where no team can be in time, no controller is faster than the lower bound.
#[test]
fn a_limit_that_nobody_can_meet_is_missed_by_all_alike() {
    let rules = RulesConfig { timeout_secs: 20.0, ..RulesConfig::default() };
    let daycare = scenario(Reference::Daycare, rules);
    for name in ["random", "greedy", "bound"] {
        for outcome in daycare.evaluate(Who::Baseline(name), &Evaluation::new(5, 3)).expect("it plays") {
            assert_eq!(measured(&daycare, &outcome, "par2_secs"), Measured::new(40.0).relative_to(40.0), "{name}");
        }
    }
    let about = daycare.about_episodes(5);
    assert!(about.ends_with("one that is not cleared counts twice the time limit, 40 s."), "{about}");
    // Times over the episodes that somebody happened to clear rank nobody.
    for name in ["all_clear_secs", "sweep_secs"] {
        let figures = daycare.figures();
        assert_eq!(figures.iter().find(|figure| figure.name == name).expect("a figure").better, None);
    }
}

/// The time limit is a rule of the task: who is inside then is lost, and the reward says so.
#[test]
fn who_is_inside_at_the_time_limit_is_paid_for() {
    let play = |death: f64| {
        let mut rules = RulesConfig { timeout_secs: 30.0, ..RulesConfig::default() };
        rules.reward.death = death;
        let daycare = scenario(Reference::Daycare, rules);
        let outcomes = daycare.evaluate(Who::Baseline("greedy"), &Evaluation::new(6, 3)).expect("it plays");
        let lost = |outcome: &Outcome| measured(&daycare, outcome, "lost").value.expect("there are people");
        outcomes
            .iter()
            .map(|outcome| (outcome.episode_return.expect("it was played"), lost(outcome)))
            .collect::<Vec<_>>()
    };
    for ((free, lost), (paid, _)) in play(0.0).into_iter().zip(play(1.0)) {
        // Weighted 1, 3 and 2, the share differs from that of heads, but nobody who is lost is free.
        assert!(lost > 0.5 && free - paid > 0.5, "{lost}: {free} and {paid}");
    }
}

#[test]
fn a_building_without_people_has_no_shares_of_them() {
    let mut layout = Layout::office();
    layout.occupants.clear();
    let config = EvacuationConfig { buildings: Buildings::Reference(Reference::Office), rules: RulesConfig::default() };
    let office = Evacuation::with_layouts(config, vec![layout]).expect("it is valid");
    let outcome = office.evaluate(Who::Baseline("greedy"), &Evaluation::new(1, 0)).expect("it plays").remove(0);
    assert_eq!(measured(&office, &outcome, "rescued"), Measured::NONE.weighted(0.0));
}

/// A program with nothing but the name of the scenario has environments.
#[test]
fn without_settings_the_building_is_the_office() {
    let config = EvacuationConfig::default();
    assert_eq!(serde_json::from_str::<EvacuationConfig>("{}").expect("nothing is missing"), config);
    let pool = Evacuation::new(config).expect("the settings are valid");
    assert_eq!(pool.buildings()[0].layout().name, "office");
}

#[test]
fn unseen_buildings_are_for_evaluation() {
    let generated = |evaluate| {
        let generated = GeneratedConfig { count: 2, evaluate, ..GeneratedConfig::default() };
        let config = EvacuationConfig { buildings: Buildings::Generated(generated), rules: RulesConfig::default() };
        Evacuation::new(config).expect("the settings are valid")
    };
    let unseen = generated(Split::HeldOut);
    let other = unseen.for_evaluation(4).expect("they can be made").expect("they are others");
    let world = other.extensions().get::<GraphWorld>().expect("buildings are graphs").clone();
    assert_eq!(world.graphs.len(), 4);
    assert_eq!(unseen.extensions().get::<GraphWorld>().expect("as well").graphs.len(), 2);
    let batch = other.envs(EnvSplit::Evaluation, 0..1).expect("a batch");
    assert_eq!(world.spec.width(), batch.spec().obs.width());
    assert_eq!(world.spec.options(), batch.spec().action.n_actions());
    assert!(world.graphs.iter().all(|graph| graph.n_nodes <= world.spec.nodes && !graph.ends.is_empty()));
    let about = other.about_episodes(4);
    assert!(about.starts_with("Means over 4 episodes in unseen buildings, the same for every controller. "), "{about}");
    assert!(generated(Split::Larger).about_episodes(4).contains("two to four times as large"));
    let office = scenario(Reference::Office, RulesConfig::default());
    assert!(office.for_evaluation(4).expect("nothing is made").is_none());
    let about = office.about_episodes(4);
    assert!(
        about.starts_with("Means over 4 episodes in the building of training, the same for every controller. "),
        "{about}"
    );
    // Buildings said to be of training are.
    let seen = generated(Split::Train);
    let again = seen.for_evaluation(9).expect("they can be made").expect("a pool of its own");
    assert_eq!(again.extensions().get::<GraphWorld>(), seen.extensions().get::<GraphWorld>());
    assert!(seen.about_episodes(9).starts_with("Means over 9 episodes in buildings of training, "));
    assert_eq!((office.n_episodes(Effort::Compare), office.n_episodes(Effort::Look)), (100, 20));
}

/// A controller decides for one row per running episode, and traces record its observations.
#[test]
fn rows_of_episodes_that_ended_are_gone() {
    let office = scenario(Reference::Office, RulesConfig::default());
    let mut rows = Vec::new();
    let mut count = |view: &BatchSlabs, actions: ArrayViewMut2<f32>| {
        rows.push(view.obs.nrows());
        first(view, actions)
    };
    let evaluation = Evaluation { n_traces: 6, ..Evaluation::new(6, 1) };
    let outcomes = office.evaluate(Who::Controller(&mut count), &evaluation).expect("it plays");
    let going_on = |call: usize| outcomes.iter().filter(|outcome| outcome.length > call as u64).count();
    assert!(rows.iter().enumerate().all(|(call, n)| *n == going_on(call)), "{rows:?}");
    for outcome in &outcomes {
        let trace = outcome.trace.as_ref().and_then(|trace| trace.downcast_ref::<Trace>()).expect("a trace");
        assert_eq!(trace.seen.len() as u64, outcome.length);
        assert_eq!(trace.building, "office");
    }
}
