//! The Iquitos microgrid without learning and without Burn: its own rules, and a custom rule next to them.
//!
//! `cargo run --release -p example-environment --example microgrid_rule`; a number after `--` replaces the one episode.

use brasa_energy::iquitos::{Iquitos, IquitosConfig};
use brasa_env::{BatchSlabs, EnvBatch, EnvError, Evaluation, Outcome, Scenario, Space, Who};
use ndarray::ArrayViewMut2;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let n_episodes = std::env::args().nth(1).map_or(Ok(1), |episodes| episodes.parse())?;
    let microgrid = Iquitos::new(IquitosConfig::default())?;
    let evaluation = Evaluation::new(n_episodes, 0);
    for baseline in microgrid.baselines() {
        print(&baseline.name, &microgrid.evaluate(Who::Baseline(&baseline.name), &evaluation)?);
    }

    // Observations and actions have names. The custom rule charges every vehicle; the battery discharges at the peak tariff and charges
    // at other times.
    let spec = microgrid.batch(0..1)?.spec().clone();
    let find = |space: &Space, name: &str| match space {
        Space::Box(space) => space.names.iter().position(|known| known == name).ok_or(format!("no column {name}")),
        _ => Err(format!("{name} needs columns of real numbers")),
    };
    let (peak, battery) = (find(&spec.obs, "is_peak_tariff")?, find(&spec.action, "battery")?);
    let mut rule = |view: &BatchSlabs, mut actions: ArrayViewMut2<f32>| -> Result<(), EnvError> {
        actions.fill(1.0);
        actions.column_mut(battery).zip_mut_with(&view.obs.column(peak), |action, peak| *action = 0.3 - 1.3 * peak);
        Ok(())
    };
    print("custom", &microgrid.evaluate(Who::Controller(&mut rule), &evaluation)?);
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
