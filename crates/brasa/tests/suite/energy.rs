//! Energy scenarios through the interface of scenarios.

use brasa::citylearn::{CityLearn, CityLearnConfig};
use brasa::energy::iquitos::{Iquitos, IquitosConfig};
use brasa::energy::{Ledger, Trace};
use brasa::env::{
    BaselineKind, BatchSlabs, Better, Effort, EnvError, Evaluation, InvalidField, Outcome, Reference, Scenario, Split,
    Who,
};
use ndarray::ArrayViewMut2;

fn scenarios() -> [(Box<dyn Scenario>, &'static str); 2] {
    let citylearn = CityLearn::new(CityLearnConfig::default()).expect("the default is valid");
    let iquitos = Iquitos::new(IquitosConfig::default()).expect("the default is valid");
    [
        (Box::new(citylearn), "idle, basic-rbc, optimized-rbc, rule-based"),
        (Box::new(iquitos), "idle, uncontrolled, greedy, price-threshold, rule-based"),
    ]
}

fn check(scenario: &dyn Scenario, outcomes: &[Outcome]) {
    assert_eq!(outcomes.len(), 2);
    for (episode, outcome) in outcomes.iter().enumerate() {
        assert_eq!(outcome.figures.len(), scenario.figures().len());
        assert!(outcome.figures.iter().all(|figure| figure.value.is_some() || figure.ratio.is_some()));
        assert!(outcome.episode_return.is_some() && outcome.length >= 8759);
        assert_eq!(outcome.details.len(), Ledger::default().entries().len());
        assert!(outcome.details.iter().all(|(name, _)| name.starts_with("ledger.")));
        assert_eq!(outcome.trace.is_some(), episode == 0);
    }
    let trace: Option<&Trace> = outcomes[0].trace.as_ref().and_then(|trace| trace.downcast_ref());
    assert_eq!(trace.expect("a trace of this crate").grid_kw.len() as u64, outcomes[0].length);
}

#[test]
fn everybody_is_measured_alike() {
    for (scenario, names) in scenarios() {
        let scenario = &*scenario;
        let evaluation = Evaluation { episodes: 3..5, seed: 11, n_traces: 1 };
        for baseline in scenario.baselines() {
            let play = || scenario.evaluate(Who::Baseline(&baseline.name), &evaluation).expect("it plays");
            let outcomes = play();
            check(scenario, &outcomes);
            assert_eq!(format!("{outcomes:?}"), format!("{:?}", play()), "{baseline:?}");
            assert_eq!(baseline.kind == BaselineKind::Idle, baseline.name == "idle");
        }
        let play = || {
            let mut half = |_: &BatchSlabs, mut actions: ArrayViewMut2<f32>| -> Result<(), EnvError> {
                actions.fill(0.5);
                Ok(())
            };
            scenario.evaluate(Who::Controller(&mut half), &evaluation).expect("it plays")
        };
        let outcomes = play();
        check(scenario, &outcomes);
        assert_eq!(format!("{outcomes:?}"), format!("{:?}", play()));
        // The seed of an episode is the evaluation's plus its index.
        let moved = Evaluation { episodes: 4..5, seed: 11, n_traces: 0 };
        let alone = scenario.evaluate(Who::Baseline("rule-based"), &moved).expect("it plays");
        let both = scenario.evaluate(Who::Baseline("rule-based"), &evaluation).expect("it plays");
        assert_eq!(alone[0].figures, both[1].figures);
        let unknown = scenario.evaluate(Who::Baseline("magic"), &evaluation).expect_err("nobody is called so");
        let message = format!("`baseline` must be one of the scenario's, got `magic`; there are {names}");
        assert_eq!(unknown.to_string(), message);
    }
}

#[test]
fn a_controller_that_fails_is_heard() {
    for (scenario, _) in scenarios() {
        let mut broken = |_: &BatchSlabs, _: ArrayViewMut2<f32>| -> Result<(), EnvError> {
            Err(EnvError::Argument(InvalidField::new("policy", "must be there", "nobody")))
        };
        let error = scenario.evaluate(Who::Controller(&mut broken), &Evaluation::new(1, 0)).expect_err("it fails");
        assert_eq!(error.to_string(), "`policy` must be there, got nobody");
    }
}

#[test]
fn figures_say_what_they_are() {
    let [(citylearn, _), (iquitos, _)] = scenarios();
    for (scenario, cost, reference) in [
        (&citylearn, "cost [$]", "the same district without storage"),
        (&iquitos, "cost [PEN]", "uncontrolled charging with an idle battery"),
    ] {
        let figures = scenario.figures();
        let find = |name: &str| figures.iter().find(|figure| figure.name == name).expect("a figure");
        assert_eq!(find("cost").label, cost);
        assert_eq!((find("carbon_kg").label.as_str(), find("carbon_kg").better), ("carbon [kg]", Some(Better::Less)));
        let reference = Some(Reference::OfEpisode(reference.into()));
        assert!(figures.iter().all(|figure| figure.reference == reference));
        for curve in scenario.curves() {
            let info_names = scenario.envs(Split::Train, 0..1).expect("a batch").spec().info_names.clone();
            for metric in [Some(curve.metric), curve.divided_by].into_iter().flatten() {
                let column = metric.strip_prefix("rollout/").expect("it is of the rollout");
                assert!(info_names.iter().any(|name| name == column), "{column}");
            }
        }
        assert_eq!((scenario.n_episodes(Effort::Look), scenario.n_episodes(Effort::Compare)), (1, 1));
    }
    let better = |name: &str| iquitos.figures().into_iter().find(|figure| figure.name == name).expect("there").better;
    assert_eq!(better("self_sufficiency"), Some(Better::More));
    assert_eq!(better("grid_export_kwh"), None);
}

#[test]
fn environments_to_be_measured_in_play_whole_years() {
    let citylearn = CityLearnConfig { episode_steps: Some(24), random_start: true, ..CityLearnConfig::default() };
    let iquitos = IquitosConfig { episode_steps: Some(24), random_start: true, ..IquitosConfig::default() };
    let scenarios: [Box<dyn Scenario>; 2] = [
        Box::new(CityLearn::new(citylearn).expect("valid settings")),
        Box::new(Iquitos::new(iquitos).expect("valid settings")),
    ];
    for scenario in scenarios {
        let length = |split: Split| {
            let mut batch = scenario.envs(split, 0..1).expect("a batch");
            let mut slabs = BatchSlabs::new(batch.spec());
            batch.reset(0, &mut slabs).expect("it starts");
            let actions = ndarray::Array2::zeros((1, batch.spec().action.width()));
            (1..).find(|_| {
                batch.step(actions.view(), &mut slabs).expect("it steps");
                slabs.episode_end(0)
            })
        };
        assert_eq!(length(Split::Train), Some(24));
        let idle = scenario.evaluate(Who::Baseline("idle"), &Evaluation::new(1, 0)).expect("it plays");
        assert_eq!(length(Split::Evaluation), Some(idle[0].length));
    }
}
