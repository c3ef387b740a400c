//! Prints the results of the controllers and the speed of steps; only with `BRASA_SLOW=1`, best in release:
//!
//! ```text
//! BRASA_SLOW=1 cargo test --release -p brasa-energy --test suite station_report:: -- --nocapture --test-threads=1
//! ```

use std::time::Instant;

use brasa_energy::station::{Station, StationConfig};
use brasa_env::{BatchSlabs, EnvBatch, Evaluation, Scenario, Space, Who, named_rng};
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
    for preset in ["default", "chargax"] {
        let scenario = Station::new(StationConfig::preset(preset).expect("a preset")).expect("presets are valid");
        let n = 100;
        let figures = scenario.figures();
        println!("\n{preset}: means over {n} days of seed 1 (money in {})", scenario.currency());
        print!("{:<20}", "");
        let outcomes: Vec<_> = scenario
            .baselines()
            .into_iter()
            .map(|baseline| {
                print!("{:>18}", baseline.name);
                scenario.evaluate(Who::Baseline(&baseline.name), &Evaluation::new(n, 1)).expect("plays")
            })
            .collect();
        print!("\n{:<20}", "return");
        for outcomes in &outcomes {
            print!("{:>18.2}", outcomes.iter().filter_map(|x| x.episode_return).sum::<f64>() / n as f64);
        }
        for (i, figure) in figures.iter().enumerate() {
            print!("\n{:<20}", figure.name);
            for outcomes in &outcomes {
                print!("{:>18.2}", outcomes.iter().filter_map(|x| x.figures[i].value).sum::<f64>() / n as f64);
            }
        }
        println!();
    }
}

#[test]
fn speed() {
    if !slow() {
        return;
    }
    for preset in ["chargax", "default"] {
        let scenario = Station::new(StationConfig::preset(preset).expect("a preset")).expect("presets are valid");
        for n_envs in [1, 16, 64, 256, 1024] {
            let mut batch = scenario.batch(0..n_envs).expect("a batch");
            let mut slabs = BatchSlabs::new(batch.spec());
            let mut rng = named_rng(0, "actions", 0);
            let shape = (n_envs, batch.spec().action.width());
            // Enough sets of random actions that none is repeated within an hour.
            let actions: Vec<Array2<f32>> = (0..16)
                .map(|_| {
                    Array2::from_shape_fn(shape, |(_, head)| match &batch.spec().action {
                        Space::MultiDiscrete(heads) => rng.random_range(0..heads[head]) as f32,
                        _ => 2.0 * rng.random::<f32>() - 1.0,
                    })
                })
                .collect();
            batch.reset(0, &mut slabs).expect("resets");
            let n_steps = 1_000_000 / n_envs;
            let mut import_kwh = 0.0;
            // The best of ten counts: other jobs of the machine only ever add time.
            let mut seconds = f64::INFINITY;
            for _ in 0..10 {
                let start = Instant::now();
                for step in 0..n_steps {
                    batch.step(actions[step % 16].view(), &mut slabs).expect("steps");
                    import_kwh += slabs.info[[0, 3]];
                }
                seconds = seconds.min(start.elapsed().as_secs_f64());
            }
            let env_steps = (n_steps * n_envs) as f64;
            println!(
                "{preset:<10} {n_envs:>5} envs: {:>10.0} env steps/s, {:.0} ns each, mean import {:.2} kWh",
                env_steps / seconds,
                seconds / env_steps * 1e9,
                import_kwh / (10 * n_steps) as f64
            );
        }
    }
}
