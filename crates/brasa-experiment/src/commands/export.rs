//! `export`: writes the policy of a run for other programs.

use std::path::{Path, PathBuf};

use brasa_exchange::ExportedPolicy;

use crate::args::{ExportArgs, ExportFormat};
use crate::load::Finished;
use crate::{ExperimentError, Registry, browser, output};

pub fn run(registry: &Registry, args: &ExportArgs) -> Result<String, ExperimentError> {
    let run = Finished::open(registry, &args.run_dir, &[], None, args.best, args.trust)?;
    let policy = run.policy.exported()?;
    let (bytes, file) = match args.format {
        ExportFormat::Onnx => (policy.to_onnx().map_err(ExperimentError::input)?, "policy.onnx"),
        ExportFormat::Safetensors => (policy.to_safetensors(), "exported.safetensors"),
        ExportFormat::C => {
            let text = policy.to_c(&args.name).map_err(|error| ExperimentError::Input(format!("--name: {error}")))?;
            (text.into_bytes(), "policy.h")
        }
        ExportFormat::Js => {
            let text = policy.to_js(&args.name).map_err(|error| ExperimentError::Input(format!("--name: {error}")))?;
            (text.into_bytes(), "policy.js")
        }
        ExportFormat::Html => (browser::page(&run, &policy)?.into_bytes(), "policy.html"),
    };
    let path: PathBuf = args.out.clone().unwrap_or_else(|| args.run_dir.join(file));
    output::write(&path, &bytes, summary(&path, &policy, bytes.len()))
}

/// What a written policy takes and returns.
pub(super) fn summary(path: &Path, policy: &ExportedPolicy, n_bytes: usize) -> String {
    let rows = match policy.n_agents {
        1 => String::new(),
        n => format!(" for each of {n} agents"),
    };
    let counted = |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
    let mask = if policy.masked { format!(" and a mask of {}", policy.n_actions()) } else { String::new() };
    let obs = counted(policy.obs_width, "number", "numbers");
    let action = match policy.n_actions() {
        0 => counted(policy.action_width(), "number", "numbers"),
        _ => counted(policy.action_width(), "index", "indices"),
    };
    format!("{}: from {obs}{mask} to {action}{rows}; {n_bytes} bytes\n", path.display())
}
