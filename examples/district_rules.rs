//! The district of the 2022 CityLearn challenge without any learning: two rules, and a controller of one's own.

use brasa::energy::citylearn::{CityLearn, CityLearnConfig, Physics};
use brasa::energy::{Control, EnergyScenario, Outcome};
use brasa::env::{EnvBatch, Space};
use ndarray::{ArrayView2, ArrayViewMut2};

fn print(name: &str, outcome: &Outcome) {
    let ratio = |figure| outcome.ratio(figure).unwrap_or(f64::NAN);
    println!(
        "{name:<12} cost {:.4}  carbon {:.4}  score {:.4}",
        ratio("cost"),
        ratio("carbon_kg"),
        ratio("challenge_score")
    );
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The data comes with the crate; `data` may also be the path of another schema.json.
    let district = CityLearn::new(CityLearnConfig { physics: Physics::CityLearn30, ..CityLearnConfig::default() })?;
    for rule in district.controllers() {
        print(rule, &district.evaluate(Control::Rule(rule), 0)?);
    }

    // Observations have names: charge where the sun shines, discharge where it does not.
    let Space::Box(space) = district.batch(0..1)?.spec().obs.clone() else { unreachable!("observations are a box") };
    let find = |name: &str| space.names.iter().position(|known| known.starts_with(name));
    let sun = find("direct_solar_irradiance").ok_or("no such observation")?;
    let mut by_the_sun = |obs: ArrayView2<f32>, mut actions: ArrayViewMut2<f32>| {
        actions.fill(if obs[[0, sun]] > 0.1 { 0.15 } else { -0.06 });
    };
    print("by-the-sun", &district.evaluate(Control::Policy(&mut by_the_sun), 0)?);
    Ok(())
}
