//! Rules that do not learn, on the reference buildings with the earlier system's semantics.

use brasa_evacuation::{
    Buildings, Control, End, Evacuation, EvacuationConfig, Reference, Rule, RulesConfig,
};

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
        for outcome in &outcomes {
            assert_eq!(outcome.end, End::Success);
            println!("{reference:?} {} {:?} bound {}", outcome.ticks, outcome.sweep_ticks, outcome.bound_ticks);
        }
        for outcome in outcomes {
            assert!(range.contains(&outcome.ticks), "{reference:?}: {} ticks", outcome.ticks);
        }
    }
}
