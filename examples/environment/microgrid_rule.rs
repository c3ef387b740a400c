//! The Iquitos microgrid without learning and without Burn: its own rules, and a custom rule next to them.
//!
//! `cargo run --release -p example-environment --example microgrid_rule`; a number after `--` replaces the 5 episodes.

use brasa_energy::iquitos::{Iquitos, IquitosConfig};
use brasa_env::{BatchSlabs, EnvBatch, EnvError, Evaluation, Outcome, Scenario, Space, Who};
use ndarray::ArrayViewMut2;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let n_episodes = std::env::args().nth(1).map_or(Ok(5), |episodes| episodes.parse())?;
    let microgrid = Iquitos::new(IquitosConfig { episode_steps: Some(720), ..IquitosConfig::default() })?;
    let evaluation = Evaluation::new(n_episodes, 0);
    for baseline in microgrid.baselines() {
        print(&baseline.name, &microgrid.evaluate(Who::Baseline(&baseline.name), &evaluation)?);
    }

    // Every action is a share between -1 and 1 or an index: a rule that keeps the battery idle and charges every vehicle.
    let action = microgrid.batch(0..1)?.spec().action.clone();
    let Space::Box(space) = &action else { return Err("this preset has continuous actions".into()) };
    let battery = space.names.iter().position(|name| name.contains("battery")).ok_or("there is a battery")?;
    let high = space.high.clone();
    let mut rule = |_: &BatchSlabs, mut actions: ArrayViewMut2<f32>| -> Result<(), EnvError> {
        for mut row in actions.rows_mut() {
            row.iter_mut().zip(&high).for_each(|(action, high)| *action = *high);
            row[battery] = 0.0;
        }
        Ok(())
    };
    print("charge all", &microgrid.evaluate(Who::Controller(&mut rule), &evaluation)?);
    Ok(())
}

fn print(name: &str, outcomes: &[Outcome]) {
    let returns: Vec<f64> = outcomes.iter().filter_map(|outcome| outcome.episode_return).collect();
    println!(
        "{name:<24} mean return of {} steps: {:9.1}",
        outcomes[0].length,
        returns.iter().sum::<f64>() / returns.len() as f64
    );
}
