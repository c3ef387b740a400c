//! Rules that do not learn, on the reference buildings with the earlier system's semantics.

use brasa_evacuation::{Buildings, Control, End, Evacuation, EvacuationConfig, Reference, Rule, RulesConfig};

fn legacy(reference: Reference) -> Evacuation {
    let config = EvacuationConfig { buildings: Buildings::Reference(reference), rules: RulesConfig::legacy() };
    Evacuation::new(config).expect("the reference buildings are valid")
}

#[test]
fn greedy_lies_where_it_lay() {
    for (reference, range) in
        [(Reference::Office, 13..=14), (Reference::Daycare, 62..=68), (Reference::Warehouse, 48..=51)]
    {
        let outcomes = legacy(reference).evaluate(Control::Rule(Rule::Greedy), 0..20, 0, 0).expect("rules are legal");
        for outcome in outcomes {
            assert_eq!(outcome.end, End::Success);
            assert!(range.contains(&outcome.ticks), "{reference:?}: {} ticks", outcome.ticks);
        }
    }
}

/// What is proven of a building, or of what its fire leaves of it, no rule beats: neither by chance nor in hindsight.
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
                    let envs = if rule == Rule::Hindsight { 0..2 } else { 0..10 };
                    for outcome in scenario.evaluate(Control::Rule(rule), envs, 7, 0).expect("rules are legal") {
                        let swept = outcome.sweep_ticks.unwrap_or(u32::MAX);
                        assert!(swept >= outcome.bound_ticks, "{reference:?}, {n} responders, {rule:?}: {outcome:?}");
                    }
                }
            }
        }
    }
}
