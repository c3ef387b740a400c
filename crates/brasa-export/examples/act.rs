//! Acts with a policy of a file: `act MODEL [VEC_NORMALIZE] < OBS > ACTIONS`, both lists of numbers as JSON.
//!
//! The model is a zip archive of Stable-Baselines3 or an exported policy. `scripts/check_rl_zoo.py` compares the actions with those of
//! Stable-Baselines3.

use std::error::Error;

use brasa_export::ExportedPolicy;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let bytes = std::fs::read(arguments.next().ok_or("the path of a model is missing")?)?;
    let mut policy = match bytes.starts_with(b"PK") {
        true => ExportedPolicy::from_stable_baselines3(&bytes)?,
        false => ExportedPolicy::from_safetensors(&bytes)?,
    };
    if let Some(statistics) = arguments.next() {
        policy = policy.with_vec_normalize(&std::fs::read(statistics)?)?;
    }
    let obs: Vec<f32> = serde_json::from_reader(std::io::stdin())?;
    if !obs.len().is_multiple_of(policy.obs_width) {
        return Err(format!("observations have {} numbers each, got {} in all", policy.obs_width, obs.len()).into());
    }
    println!("{}", serde_json::to_string(&policy.act(&obs, None))?);
    Ok(())
}
