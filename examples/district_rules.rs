//! The district of the 2022 CityLearn challenge without learning: its baselines, and a custom controller.
//!
//! `cargo run --release -p brasa-examples --example district_rules`

use brasa::citylearn::{CityLearn, CityLearnConfig, Physics};
use brasa::env::{BatchSlabs, EnvBatch, EnvError, Evaluation, Outcome, Scenario, Space, Who};
use ndarray::ArrayViewMut2;

fn print(name: &str, district: &CityLearn, outcome: &Outcome) {
    let figures = district.figures();
    let ratio = |name| outcome.figure(&figures, name).and_then(|figure| figure.ratio).unwrap_or(f64::NAN);
    println!(
        "{name:<13} cost {:.4}  carbon {:.4}  score {:.4}",
        ratio("cost"),
        ratio("carbon_kg"),
        ratio("challenge_score")
    );
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The data are part of the crate; `data` may also be the path of another schema.json.
    let district = CityLearn::new(CityLearnConfig { physics: Physics::CityLearn30, ..CityLearnConfig::default() })?;
    let year = Evaluation::new(1, 0);
    for baseline in district.baselines() {
        print(&baseline.name, &district, &district.evaluate(Who::Baseline(&baseline.name), &year)?[0]);
    }

    // Observations have names: charge if there is sun, otherwise discharge.
    let Space::Box(space) = district.batch(0..1)?.spec().obs.clone() else { unreachable!("observations are a box") };
    let find = |name: &str| space.names.iter().position(|known| known.starts_with(name));
    let sun = find("direct_solar_irradiance").ok_or("no such observation")?;
    let mut by_the_sun = |view: &BatchSlabs, mut actions: ArrayViewMut2<f32>| -> Result<(), EnvError> {
        actions.fill(if view.obs[[0, sun]] > 0.1 { 0.15 } else { -0.06 });
        Ok(())
    };
    print("by-the-sun", &district, &district.evaluate(Who::Controller(&mut by_the_sun), &year)?[0]);
    Ok(())
}
