//! Errors of buildings are those of floor plans.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use brasa_evacuation::{
    Buildings, Evacuation, EvacuationConfig, EvacuationError, Family, FloorPlanError, GeneratedConfig, GeneratorConfig,
    Layout, Reference, RulesConfig, SweepProblem, Sweeps, Timing,
};

fn refused(buildings: Buildings) -> EvacuationError {
    Evacuation::new(EvacuationConfig { buildings, rules: RulesConfig::default() }).unwrap_err()
}

#[test]
fn errors_of_floor_plans_are_handed_on_as_they_are() {
    let missing = PathBuf::from("nowhere.json");
    let error = refused(Buildings::File(missing.clone()));
    assert!(error.to_string().starts_with("cannot read nowhere.json: "), "{error}");
    let EvacuationError::FloorPlan(FloorPlanError::File { action: "read", path, .. }) = error else {
        panic!("{error}")
    };
    assert_eq!(path, missing);

    let generator = GeneratorConfig { held_out_family: Family::Grid, ..GeneratorConfig::default() };
    let error = refused(Buildings::Generated(GeneratedConfig { generator, ..GeneratedConfig::default() }));
    assert_eq!(error.to_string(), "`held_out_family` must not be one of `families`, got grid");

    let mut office = Layout::office();
    office.entries.clear();
    let words = "layout `office`: it has no entry for responders";
    let error = SweepProblem::new(&office, &Timing::default(), Sweeps::Once, &[0]).unwrap_err();
    assert_eq!(error.to_string(), words);
    let config = EvacuationConfig { buildings: Buildings::Reference(Reference::Office), rules: RulesConfig::default() };
    assert_eq!(Evacuation::with_layouts(config, vec![office]).unwrap_err().to_string(), words);
}
