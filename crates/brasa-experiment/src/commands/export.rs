//! `export`: writes the policy of a run for other programs.

use std::path::PathBuf;

use brasa_train::write_atomically;

use crate::args::{ExportArgs, ExportFormat};
use crate::load::Finished;
use crate::{ExperimentError, Registry};

pub fn run(registry: &Registry, args: &ExportArgs) -> Result<String, ExperimentError> {
    let run = Finished::open(registry, &args.run_dir, &[], None, args.best)?;
    let policy = run.policy.exported()?;
    let (bytes, file) = match args.format {
        ExportFormat::Onnx => (policy.to_onnx().map_err(ExperimentError::input)?, "policy.onnx"),
        ExportFormat::Safetensors => (policy.to_safetensors(), "exported.safetensors"),
        ExportFormat::C => {
            let text = policy.to_c(&args.name).map_err(|error| ExperimentError::Input(format!("--name: {error}")))?;
            (text.into_bytes(), "policy.h")
        }
    };
    let path: PathBuf = args.out.clone().unwrap_or_else(|| args.run_dir.join(file));
    let failed = |error| ExperimentError::Failed(format!("cannot write {}: {error}", path.display()));
    write_atomically(&path, &bytes).map_err(failed)?;
    let rows = match policy.n_agents {
        1 => String::new(),
        n => format!(" for each of {n} agents"),
    };
    let mask = if policy.masked { format!(" and a mask of {}", policy.n_actions()) } else { String::new() };
    let kind = if policy.n_actions() > 0 { "indices" } else { "numbers" };
    Ok(format!(
        "{}: {} numbers{mask} to {} {kind}{rows}, {} bytes\n",
        path.display(),
        policy.obs_width,
        policy.action_width(),
        bytes.len()
    ))
}
