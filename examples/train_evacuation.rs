//! Trains a policy over graphs to sweep a building of one's own, and compares it with rules and with what nobody can beat.

use brasa::core::{HostEnv, Obs, Policy, Schedule};
use brasa::device::open_named;
use brasa::env::named_rng;
use brasa::evacuation::{
    Buildings, Control, Evacuation, EvacuationConfig, Family, GeneratorConfig, Outcome, Reference, Rule, RulesConfig,
    Split, observe,
};
use brasa::gat::{Aggregation, Graph, GraphActorCritic, GraphActorCriticConfig, GraphSpec, Graphs};
use brasa::ppo::{Ppo, PpoConfig};
use brasa::train::{OnPolicy, Run, Training};
use burn::tensor::{Tensor, TensorData};
use ndarray::{ArrayView2, ArrayViewMut2};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = open_named("cpu")?;
    let seed = 0;

    // Any `Layout` will do: from a floor plan (`Layout::load`), written by hand, or drawn at random as here.
    let generator = GeneratorConfig { nodes: [14, 14], floors: [1, 1], ..GeneratorConfig::default() };
    let building = brasa::evacuation::generate(Family::Comb, &generator, Split::HeldOut.seed(1))?;
    let rules = RulesConfig { responders: [2, 2], ..RulesConfig::default() };
    let config = EvacuationConfig { buildings: Buildings::Reference(Reference::Office), rules };
    let scenario = Evacuation::with_layouts(config, vec![building])?;

    // The network sees the building as a graph; what changes comes with observations.
    let (columns, timing) = (scenario.columns(), &scenario.config().rules.timing);
    let graphs = scenario
        .buildings()
        .iter()
        .map(|building| Graph::from_edges(building.n_nodes(), &observe::edges(building.layout(), timing)));
    let graphs = Graphs::new(graphs.collect::<Result<_, _>>()?, Aggregation::EdgeList, &device)?;
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
    let run = Run { total_env_steps: 40_000, seed };
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
    let mut act = |obs: ArrayView2<f32>, mask: ArrayView2<f32>, mut actions: ArrayViewMut2<f32>| {
        let obs = Obs { values: upload(obs), mask: Some(upload(mask)) };
        let (chosen, _) = policy.act(obs, brasa::core::Explore::Greedy);
        actions.iter_mut().zip(chosen.into_data().iter::<f32>()).for_each(|(slot, option)| *slot = option);
    };
    for rule in Rule::ALL {
        report(rule.name(), &scenario.evaluate(Control::Rule(rule), 0..50, 1_000_003, 0)?);
    }
    report("trained", &scenario.evaluate(Control::Policy(&mut act), 0..50, 1_000_003, 0)?);
    Ok(())
}

fn report(name: &str, outcomes: &[Outcome]) {
    let mean = |figure: &dyn Fn(&Outcome) -> f64| outcomes.iter().map(figure).sum::<f64>() / outcomes.len() as f64;
    println!(
        "{name:<10} return {:>6.3}   all clear after {:>5.1} s, {:.2} times the bound   {:.1} % lost",
        mean(&|o| o.episode_return),
        mean(&|o| f64::from(o.ticks) * o.tick_secs),
        mean(&|o| f64::from(o.ticks) / f64::from(o.bound_ticks)),
        100.0 * mean(&|o| f64::from(o.dead + o.left_behind) / o.people.max(1) as f64),
    );
}
