//! The contract of environments, in every mode.

use brasa_env::{Executor, check_env, execute};
use brasa_evacuation::{
    Actions, Buildings, Evacuation, EvacuationConfig, Knowledge, KnowledgeConfig, Reference, RulesConfig,
};

fn check(reference: Reference, rules: RulesConfig) {
    let config = EvacuationConfig { buildings: Buildings::Reference(reference), rules };
    let scenario = Evacuation::new(config.clone()).expect("the settings are valid");
    if let Err(error) = check_env(400, |envs| Ok(scenario.batch(envs))) {
        panic!("{reference:?}, {:?}, {:?}: {error}", config.rules.actions, config.rules.knowledge.mode);
    }
}

#[test]
fn every_mode_keeps_the_contract() {
    for reference in [Reference::Office, Reference::Daycare, Reference::Warehouse] {
        check(reference, RulesConfig::legacy());
    }
    for mode in [Knowledge::Full, Knowledge::Shared, Knowledge::Local] {
        for actions in [Actions::Macro, Actions::Primitive] {
            let knowledge = KnowledgeConfig { mode, radius_m: Some(30.0), ..KnowledgeConfig::default() };
            check(Reference::Daycare, RulesConfig { responders: [1, 4], knowledge, actions, ..RulesConfig::default() });
        }
    }
}

/// The actions of the executor's measurement must be legal, otherwise the step is an error.
#[test]
fn an_executor_can_be_chosen() {
    let config = EvacuationConfig { buildings: Buildings::Reference(Reference::Office), rules: RulesConfig::default() };
    let scenario = Evacuation::new(config).expect("the office is valid");
    execute(Executor::Auto, 4, |envs| Ok(scenario.batch(envs))).expect("only legal options are measured");
}
