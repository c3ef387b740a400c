//! Every environment satisfies the contract that learners rely on.

use brasa_classic::probe::{
    ActionReward, ConstantReward, ContinuousIdentity, DelayedReward, DiscreteIdentity, HybridIdentity, MaskedIdentity,
    MultiDiscreteIdentity, ObservationReward,
};
use brasa_env::{Env, EnvVec, check_env};

fn check<E: Env + Default>(name: &str) {
    check_env(120, |envs| EnvVec::new(envs, |_| E::default())).unwrap_or_else(|error| panic!("{name}: {error}"));
}

#[test]
fn classic_control() {
    every_task!(check);
}

#[test]
fn probes() {
    check::<ConstantReward>("constant reward");
    check::<ObservationReward>("reward of the observation");
    check::<DelayedReward>("delayed reward");
    check::<ActionReward>("reward of the action");
    check::<DiscreteIdentity>("discrete identity");
    check::<ContinuousIdentity>("continuous identity");
    check::<MultiDiscreteIdentity>("multi-discrete identity");
    check::<MaskedIdentity>("masked identity");
    check::<HybridIdentity>("hybrid identity");
}
