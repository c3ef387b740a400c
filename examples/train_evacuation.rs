//! Trains a policy over graphs to sweep a custom building, and compares it with heuristics and the bound.
//!
//! `cargo run --release -p brasa-examples --example train_evacuation`; a number after `--` replaces the 40,000 steps.

use brasa::contracts::{HostEnv, Obs, Policy, Schedule};
use brasa::device::open_named;
use brasa::env::{BatchSlabs, EnvError, Evaluation, Measured, Outcome, Scenario, Who, named_rng};
use brasa::evacuation::{
    Buildings, Evacuation, EvacuationConfig, Family, GeneratorConfig, Reference, RulesConfig, Split, observe,
};
use brasa::gat::{Graph, GraphActorCritic, GraphActorCriticConfig, GraphSpec, Graphs};
use brasa::ppo::{Ppo, PpoConfig};
use brasa::train::{OnPolicy, Run, Training};
use burn::tensor::{Tensor, TensorData};
use ndarray::{ArrayView2, ArrayViewMut2};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = open_named("cpu")?;
    let seed = 0;

    // Any `Layout` is possible: from a floor plan (`Layout::load`), from code, or random as here.
    let generator = GeneratorConfig { nodes: [14, 14], floors: [1, 1], ..GeneratorConfig::default() };
    let building = brasa::evacuation::generate(Family::Comb, &generator, Split::HeldOut.seed(1))?;
    let rules = RulesConfig { responders: [2, 2], ..RulesConfig::default() };
    let config = EvacuationConfig { buildings: Buildings::Reference(Reference::Office), rules };
    let scenario = Evacuation::with_layouts(config, vec![building])?;

    // The network gets the building as a graph; observations have the changing features.
    let (columns, timing) = (scenario.columns(), &scenario.config().rules.timing);
    let graphs = scenario
        .buildings()
        .iter()
        .map(|building| Graph::from_edges(building.n_nodes(), &observe::edges(building.layout(), timing)));
    let graphs = Graphs::new(graphs.collect::<Result<_, _>>()?, &device)?;
    let spec = GraphSpec {
        nodes: columns.nodes,
        node_features: columns.node,
        privileged_features: columns.privileged,
        agent_features: columns.agent,
    };
    let autodiff = device.clone().autodiff(); // only what learns is tracked
    let mut weights = named_rng(seed, "weights", 0);
    let network = GraphActorCritic::new(&GraphActorCriticConfig::lean(), spec, graphs, &autodiff, &mut weights)?;

    let ppo = PpoConfig {
        n_steps: 64,
        batch_size: 256,
        n_epochs: 4,
        gamma: 0.999, // per second: steps last differently long
        learning_rate: Schedule::linear(1e-3, 0.0),
        ..PpoConfig::default()
    };
    let env = HostEnv::new(scenario.batch(0..16), &device);
    let run = Run { total_env_steps: brasa_examples::steps(40_000)?, seed };
    let mut training = OnPolicy::new(env, Ppo::new(network, ppo, seed)?, run)?;
    while !training.is_done() {
        let iteration = training.iterate()?;
        if iteration.env_steps % 8192 == 0 {
            let mean = iteration.metric("rollout/ep_rew_mean").unwrap_or(f64::NAN);
            println!("{:>6} steps  {:>6.0} steps/s  return {mean:.2}", iteration.env_steps, iteration.steps_per_sec);
        }
    }

    // The same fires for every controller.
    let policy = training.policy();
    let upload = |values: ArrayView2<f32>| {
        let data = TensorData::new(values.iter().copied().collect::<Vec<f32>>(), [values.nrows(), values.ncols()]);
        Tensor::<2>::from_data(data, &device)
    };
    let mut act = |view: &BatchSlabs, mut actions: ArrayViewMut2<f32>| -> Result<(), EnvError> {
        let obs = Obs { values: upload(view.obs.view()), mask: Some(upload(view.mask.view())) };
        let (chosen, _) = policy.act(obs, brasa::contracts::Explore::Greedy);
        actions.iter_mut().zip(chosen.into_data().iter::<f32>()).for_each(|(slot, option)| *slot = option);
        Ok(())
    };
    let evaluation = Evaluation::new(50, 1_000_003);
    for baseline in scenario.baselines() {
        let outcomes = scenario.evaluate(Who::Baseline(&baseline.name), &evaluation)?;
        report(&scenario, &baseline.name, &outcomes);
    }
    report(&scenario, "trained", &scenario.evaluate(Who::Controller(&mut act), &evaluation)?);
    Ok(())
}

/// Means over those episodes in which a figure has a meaning: a bound plays none.
fn report(scenario: &Evacuation, name: &str, outcomes: &[Outcome]) {
    let mean = |values: Vec<f64>| match values.len() {
        0 => "-".to_owned(),
        n => format!("{:.3}", values.iter().sum::<f64>() / n as f64),
    };
    let figure = |name: &str, part: fn(Measured) -> Option<f64>| {
        let figures = scenario.figures();
        mean(outcomes.iter().filter_map(|outcome| part(outcome.figure(&figures, name)?)).collect())
    };
    println!(
        "{name:<10} return {:>6}   cleared {}   PAR2 {:>7} s, {} times the bound   share lost {}",
        mean(outcomes.iter().filter_map(|outcome| outcome.episode_return).collect()),
        figure("success", |figure| figure.value),
        figure("par2_secs", |figure| figure.value),
        figure("par2_secs", |figure| figure.ratio),
        figure("lost", |figure| figure.value),
    );
}
