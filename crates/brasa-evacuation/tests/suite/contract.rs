//! The contract of environments, in every mode.

use brasa_env::{BatchSlabs, EnvBatch, Executor, check_env, execute};
use brasa_evacuation::{
    Actions, Buildings, Evacuation, EvacuationConfig, Knowledge, KnowledgeConfig, Reference, RulesConfig,
};
use ndarray::array;

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

/// Responders of equal knowledge differ in one number of a room: how many of the others are nearer.
#[test]
fn responders_of_equal_knowledge_know_their_order() {
    let knowledge = KnowledgeConfig { mode: Knowledge::Local, ..KnowledgeConfig::default() };
    let rules = RulesConfig { responders: [4, 4], knowledge, ..RulesConfig::default() };
    let config = EvacuationConfig { buildings: Buildings::Reference(Reference::Office), rules };
    let scenario = Evacuation::new(config).expect("the office is valid");
    let mut batch = scenario.batch(0..1);
    let mut slabs = BatchSlabs::new(batch.spec());
    batch.reset(0, &mut slabs).expect("it starts");
    let names = batch.spec().obs.names();
    let is_nearer = |column: &usize| names[*column].ends_with("nearer_others_3");
    let nearer: Vec<usize> = (0..names.len()).filter(is_nearer).collect();
    assert_eq!(nearer.len(), scenario.columns().nodes);
    // All four decide at the start, before they hear of each other.
    let mut orders = vec![vec![]; nearer.len()];
    for _ in 0..4 {
        nearer.iter().zip(&mut orders).for_each(|(column, order)| order.push((3.0 * slabs.obs[[0, *column]]).round()));
        let legal = slabs.mask.row(0).iter().position(|flag| *flag > 0.0).expect("something is legal");
        batch.step(array![[legal as f32]].view(), &mut slabs).expect("the option is legal");
    }
    assert!(orders.iter().any(|order| *order != orders[0]), "rooms have different orders: {orders:?}");
    for mut order in orders {
        order.sort_by(f32::total_cmp);
        assert_eq!(order, [0.0, 1.0, 2.0, 3.0]);
    }
}
