//! Prints the results of the controllers and the speed of steps; only with `BRASA_SLOW=1`, best in release:
//!
//! ```text
//! BRASA_SLOW=1 cargo test --release -p brasa-energy --features optimum --test suite iquitos_report:: -- --nocapture
//! ```

use std::time::Instant;

use brasa_energy::iquitos::{ActionMode, Iquitos, IquitosConfig, ObservationMode};
use brasa_env::{BaselineKind, BatchSlabs, EnvBatch, Evaluation, Scenario, Who, named_rng};
use ndarray::Array2;
use rand::RngExt;

fn slow() -> bool {
    std::env::var("BRASA_SLOW").is_ok_and(|value| value == "1")
}

#[test]
fn controllers() {
    if !slow() {
        return;
    }
    for (preset, config) in [("seed", IquitosConfig::seed()), ("default", IquitosConfig::default())] {
        let config = IquitosConfig { optimum: cfg!(feature = "optimum"), ..config };
        let scenario = Iquitos::new(config).expect("presets are valid");
        let outcomes: Vec<_> = scenario
            .baselines()
            .into_iter()
            .filter(|baseline| baseline.kind != BaselineKind::Bound)
            .map(|baseline| {
                let who = Who::Baseline(&baseline.name);
                let outcome = scenario.evaluate(who, &Evaluation::new(1, 1)).expect("plays").remove(0);
                (baseline.name, outcome)
            })
            .collect();
        println!("\n{preset} (costs in {}), seed 1", scenario.currency());
        print!("{:<20}", "");
        outcomes.iter().for_each(|(rule, _)| print!("{rule:>16}"));
        print!("\n{:<20}", "return");
        outcomes.iter().for_each(|(_, outcome)| print!("{:>16.1}", outcome.episode_return.unwrap_or(f64::NAN)));
        for (i, figure) in scenario.figures().iter().enumerate() {
            print!("\n{:<20}", figure.name);
            for (_, outcome) in &outcomes {
                print!("{:>16.3}", outcome.figures[i].value.expect("every outcome has every figure"));
            }
        }
        let pv_kwh = outcomes[0].1.detail("ledger.pv_available_kwh").expect("a flow of the ledger");
        println!("\nPV yield {:.1} kWh/kWp", pv_kwh / scenario.config().pv.peak_kw);
    }
}

#[test]
fn speed() {
    if !slow() {
        return;
    }
    let full = IquitosConfig::default();
    let compact = IquitosConfig {
        actions: ActionMode::Aggregate,
        observations: ObservationMode::Compact,
        ..IquitosConfig::default()
    };
    for (name, config) in
        [("default, per socket", full), ("default, aggregate and compact", compact), ("seed", IquitosConfig::seed())]
    {
        let scenario = Iquitos::new(config).expect("presets are valid");
        for n_envs in [1, 64, 1024] {
            let mut batch = scenario.batch(0..n_envs).expect("a batch");
            let mut slabs = BatchSlabs::new(batch.spec());
            let mut rng = named_rng(0, "actions", 0);
            let shape = (n_envs, batch.spec().action.width());
            let actions = Array2::from_shape_fn(shape, |_| 2.0 * rng.random::<f32>() - 1.0);
            batch.reset(0, &mut slabs).expect("resets");
            let n_steps = 300_000 / n_envs;
            let mut import_kwh = 0.0;
            let start = Instant::now();
            for _ in 0..n_steps {
                batch.step(actions.view(), &mut slabs).expect("steps");
                import_kwh += slabs.info[[0, 0]];
            }
            let seconds = start.elapsed().as_secs_f64();
            let env_steps = (n_steps * n_envs) as f64;
            println!(
                "{name:<32} {n_envs:>5} envs: {:>10.0} env steps/s, {:.2} us each, mean import {:.1} kWh",
                env_steps / seconds,
                seconds / env_steps * 1e6,
                import_kwh / n_steps as f64
            );
        }
    }
}
