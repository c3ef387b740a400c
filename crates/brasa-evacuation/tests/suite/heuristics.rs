//! Heuristics on the reference buildings with the rules of the earlier system.

use brasa_env::{Evaluation, Outcome, Scenario, Who};
use brasa_evacuation::{Buildings, Evacuation, EvacuationConfig, Reference, Rule, RulesConfig};

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
                for rule in Rule::ALL {
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
