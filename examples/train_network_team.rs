//! Thirty independent learners of a cellular network in one batch, until all users are satisfied, next to two heuristics.
//!
//! `cargo run --release -p brasa-examples --example train_network_team`; a number after `--` replaces the 1,000 steps.

use std::error::Error;

use brasa::buffers::ReplayConfig;
use brasa::contracts::{HostEnv, Schedule};
use brasa::device::open_named;
use brasa::dqn::{Dqn, DqnConfig};
use brasa::env::{Evaluation, Scenario, Who, named_rng};
use brasa::nn::{TeamQNetwork, TeamQNetworkConfig};
use brasa::train::{OffPolicy, OffPolicyConfig, Run, Training, evaluate};
use brasa::uara::{Candidates, Heuristic, Uara, UaraConfig};
use brasa_examples::steps;

fn main() -> Result<(), Box<dyn Error>> {
    let device = open_named("cpu")?;
    // A published network; users can choose the stations whose cell contains them.
    let scenario = Uara::new(UaraConfig { candidates: Candidates::Covered, ..UaraConfig::cly2020() })?;
    let make = || scenario.batch(0..1);
    let env = HostEnv::team(make(), &device);

    // One network per user, with the weights of all users in one tensor per layer.
    let (seed, n_users) = (0, scenario.config().users);
    let network = TeamQNetwork::new(
        &TeamQNetworkConfig::default(),
        n_users,
        &env.spec().obs,
        &env.spec().action,
        &device.clone().autodiff(),
        &mut named_rng(seed, "weights", 0),
    )?;
    // The reward depends on the current step alone, so gamma is 0.
    let dqn = DqnConfig {
        gamma: 0.0,
        learning_rate: Schedule::from(1e-3),
        epsilon: Schedule::linear(0.02, 0.0),
        exploration_fraction: 0.5,
        target_update_interval: 50,
        ..DqnConfig::default()
    };
    let off_policy = OffPolicyConfig {
        learning_starts: 32,
        batch_size: 32,
        log_interval: 50,
        replay: ReplayConfig { capacity: 500, ..ReplayConfig::default() },
        ..OffPolicyConfig::default()
    };
    let run = Run { total_env_steps: steps(1000)?, seed };
    let mut training = OffPolicy::new(env, Dqn::new(network, dqn)?, off_policy, run)?;
    // The first line is the untrained team.
    loop {
        let episode = &evaluate(&training.policy(), &mut HostEnv::team(make(), &device), 1, 1)?[0];
        let satisfied = 100.0 * episode.info[0];
        let env_steps = training.counters().env_steps;
        println!(
            "{env_steps:>5} steps: {satisfied:5.1} % satisfied, {} steps until all are or time is up",
            episode.length
        );
        if training.is_done() {
            break;
        }
        training.iterate()?;
    }
    for rule in [Heuristic::StrongestRandom, Heuristic::Greedy] {
        let outcome = &scenario.evaluate(Who::Baseline(rule.name()), &Evaluation::new(1, 1))?[0];
        let figure = outcome.figure(&scenario.figures(), "qos_rate").and_then(|figure| figure.value);
        let satisfied = 100.0 * figure.unwrap_or(f64::NAN);
        println!("{rule}: {satisfied:.1} % satisfied, {} steps long", outcome.length);
    }
    Ok(())
}
