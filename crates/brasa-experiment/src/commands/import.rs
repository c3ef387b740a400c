//! `import`: converts a model of Stable-Baselines3 to an exported policy.

use super::export::summary;
use crate::args::ImportArgs;
use crate::{ExperimentError, foreign, output};

pub fn run(args: &ImportArgs) -> Result<String, ExperimentError> {
    let mut policy = foreign::read(&args.model)?;
    if let Some(path) = &args.vec_normalize {
        let named = |error: &dyn std::fmt::Display| ExperimentError::Input(format!("{}: {error}", path.display()));
        let bytes = std::fs::read(path).map_err(|error| named(&error))?;
        policy = policy.with_vec_normalize(&bytes).map_err(|error| named(&error))?;
    }
    let path = args.out.clone().unwrap_or_else(|| args.model.with_extension("safetensors"));
    if path.exists() && args.out.is_none() {
        return Err(ExperimentError::Input(format!("{} exists: choose another file with --out", path.display())));
    }
    let bytes = policy.to_safetensors();
    output::write(&path, &bytes, summary(&path, &policy, bytes.len(), args.json))
}
