//! Examples of Brasa as a library, one topic per file. Run one with
//! `cargo run --release -p brasa-examples --example train_cart_pole`; `docs/reference/examples.md` lists them.
//!
//! This library has what their ends share: the number of steps from the command line, and a comparison with baselines.

use brasa::contracts::{ObsForm, Policy, PolicyController};
use brasa::env::{EnvError, Evaluation, Scenario, Who};
use brasa::train::{ObsOf, PolicyOf, Training};
use burn::tensor::Tensor;

/// The first argument of the command line as a number of steps, or `default`.
///
/// # Errors
/// If the argument is not a number.
pub fn steps(default: u64) -> Result<u64, std::num::ParseIntError> {
    std::env::args().nth(1).map_or(Ok(default), |steps| steps.parse())
}

/// Prints the mean return of `baselines` and of the trained policy over the same 20 episodes, which training did not use.
///
/// # Errors
/// If a baseline has another name, or an environment fails.
pub fn compare<T>(scenario: &dyn Scenario, training: &T, baselines: &[&str]) -> Result<(), Box<dyn std::error::Error>>
where
    T: Training,
    PolicyOf<T>: Policy<Action = Tensor<2>>,
    ObsOf<T>: ObsForm,
{
    let moments = training.obs_moments().cloned();
    let mut trained = PolicyController::new(training.policy(), training.spec(), moments, training.device());
    for name in baselines {
        println!("{name:<12} {:8.1}", mean_return(scenario, Who::Baseline(name))?);
    }
    let mean = mean_return(scenario, Who::Controller(&mut trained))?;
    println!("{:<12} {mean:8.1} after {} steps", "trained", training.counters().env_steps);
    Ok(())
}

/// The mean return over 20 episodes; that of a bound is proven instead of played.
///
/// # Errors
/// If a baseline has another name, or an environment fails.
pub fn mean_return(scenario: &dyn Scenario, who: Who<'_>) -> Result<f64, EnvError> {
    let outcomes = scenario.evaluate(who, &Evaluation::new(20, 1000))?;
    let returns: Vec<f64> = outcomes.iter().filter_map(|outcome| outcome.episode_return).collect();
    Ok(returns.iter().sum::<f64>() / returns.len() as f64)
}

/// The Rust of the book's pages compiles and runs.
#[cfg(doctest)]
mod pages {
    macro_rules! page {
        ($name:ident, $path:literal) => {
            #[doc = include_str!($path)]
            struct $name;
        };
    }
    page!(CityLearn, "../docs/reference/citylearn.md");
    page!(Clusters, "../docs/how-to/multi-core.md");
    page!(Export, "../docs/how-to/export.md");
    page!(Replay, "../docs/reference/replay.md");
    page!(Iquitos, "../docs/reference/iquitos.md");
    page!(OneRule, "../docs/explanation/one-rule.md");
    page!(OwnEnvironment, "../docs/tutorials/own-environment.md");
    page!(Readme, "../README.md");
    page!(Recurrence, "../docs/reference/recurrence.md");
    page!(Images, "../docs/reference/images.md");
    page!(Station, "../docs/reference/station.md");
    page!(Teams, "../docs/reference/teams.md");
}
