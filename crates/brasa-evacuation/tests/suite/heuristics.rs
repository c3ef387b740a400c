//! Heuristics on the reference buildings with the rules of the earlier system.

use brasa_env::{Evaluation, Outcome, Scenario, Who};
use brasa_evacuation::{Buildings, Evacuation, EvacuationConfig, Knowledge, Reference, Rule, RulesConfig};

fn value(scenario: &Evacuation, outcome: &Outcome, name: &str) -> Option<f64> {
    outcome.figure(&scenario.figures(), name).expect("a figure of the scenario").value
}

fn legacy(reference: Reference) -> Evacuation {
    let config = EvacuationConfig { buildings: Buildings::Reference(reference), rules: RulesConfig::legacy() };
    Evacuation::new(config).expect("the reference buildings are valid")
}

#[test]
fn greedy_lies_where_it_lay() {
    for (reference, range) in
        [(Reference::Office, 13..=14), (Reference::Daycare, 62..=68), (Reference::Warehouse, 48..=51)]
    {
        let scenario = legacy(reference);
        let outcomes = scenario.evaluate(Who::Baseline("greedy"), &Evaluation::new(20, 0)).expect("rules are legal");
        for outcome in outcomes {
            assert_eq!(value(&scenario, &outcome, "success"), Some(1.0));
            let ticks = outcome.detail("ticks").expect("it was played") as u32;
            assert!(range.contains(&ticks), "{reference:?}: {ticks} ticks");
        }
    }
}

/// No heuristic is faster than the proven bound of a building, or of the rooms that its fire leaves.
#[test]
fn nobody_beats_a_bound() {
    for reference in [Reference::Office, Reference::Daycare, Reference::Warehouse] {
        for n in [1, 2, 4] {
            for legacy in [true, false] {
                let rules = if legacy { RulesConfig::legacy() } else { RulesConfig::default() };
                let rules = RulesConfig { responders: [n, n], ..rules };
                let config = EvacuationConfig { buildings: Buildings::Reference(reference), rules };
                let scenario = Evacuation::new(config).expect("the settings are valid");
                for rule in Rule::ALL.into_iter().filter(|rule| *rule != Rule::Decentralized) {
                    let evaluation = Evaluation::new(if rule == Rule::Hindsight { 2 } else { 10 }, 7);
                    let outcomes = scenario.evaluate(Who::Baseline(rule.name()), &evaluation);
                    for outcome in outcomes.expect("rules are legal") {
                        let bound = outcome.detail("bound_ticks").expect("it is always known");
                        let swept = outcome.detail("sweep_ticks").unwrap_or(f64::INFINITY);
                        assert!(swept >= bound, "{reference:?}, {n} responders, {rule:?}: {outcome:?}");
                    }
                }
            }
        }
    }
}

/// Messages that are late or lost cost a planner little, and plans without the others cost much.
#[test]
fn who_plans_for_all_by_its_own_knowledge_rarely_searches_in_vain() {
    let searches = |n: usize, rule: Rule| {
        let mut rules = RulesConfig { responders: [n, n], ..RulesConfig::default() };
        rules.knowledge.mode = Knowledge::Local;
        let config = EvacuationConfig { buildings: Buildings::Reference(Reference::Daycare), rules };
        let scenario = Evacuation::new(config).expect("the settings are valid");
        assert!(scenario.baselines().iter().any(|known| known.name == rule.name()));
        let outcomes = scenario.evaluate(Who::Baseline(rule.name()), &Evaluation::new(20, 3)).expect("rules are legal");
        let of = |name| outcomes.iter().map(|outcome| value(&scenario, outcome, name).expect("it ended")).collect();
        let [needless, lost]: [Vec<f64>; 2] = ["duplicate_sweeps", "lost"].map(of);
        (needless.iter().sum::<f64>() / 20.0, lost)
    };
    let [(alone, _), (planned, _)] = [Rule::Nearest, Rule::Decentralized].map(|rule| searches(4, rule));
    assert!(alone > 4.0 && planned < alone / 3.0, "{planned} of {alone}");
    // Nobody else needs to be told anything.
    assert_eq!(searches(1, Rule::Decentralized), searches(1, Rule::Greedy));
}
