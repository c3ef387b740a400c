//! `export`: writes the policy of a run for other programs.

use std::path::{Path, PathBuf};

use brasa_export::{ExportError, ExportedPolicy, JsModule};
use serde_json::json;

use crate::args::{ExportArgs, ExportFormat};
use crate::load::Finished;
use crate::{ExperimentError, Registry, TrainConfig, browser, output};

pub fn run(registry: &Registry, args: &ExportArgs) -> Result<String, ExperimentError> {
    let run = Finished::open(registry, &args.run_dir, &[], TrainConfig::open_device, args.best, args.trust)?;
    let mut policy = run.policy.exported()?;
    policy.about.run = run.run_dir.path().file_name().map(|name| name.to_string_lossy().into_owned());
    policy.about.step = Some(run.env_steps);
    policy.about.config = Some(format!("{:08x}", run.run_dir.config_checksum()?));
    let named = |error: ExportError| ExperimentError::Input(format!("--name: {error}"));
    // Types for a program in TypeScript.
    let mut types = None;
    let (bytes, file) = match args.format {
        ExportFormat::Onnx => (policy.to_onnx().map_err(ExperimentError::input)?, "policy.onnx"),
        ExportFormat::Safetensors => (policy.to_safetensors(), "exported.safetensors"),
        ExportFormat::C => (policy.to_c(&args.name).map_err(named)?.into_bytes(), "policy.h"),
        ExportFormat::Js | ExportFormat::Mjs => {
            let (module, file, end) = match args.format {
                ExportFormat::Mjs => (JsModule::Es, "policy.mjs", "d.mts"),
                _ => (JsModule::Script, "policy.js", "d.ts"),
            };
            types = Some((policy.to_js_types(&args.name, module).map_err(named)?, end));
            (policy.to_js(&args.name, module).map_err(named)?.into_bytes(), file)
        }
        ExportFormat::Html => (browser::page(&run, &policy)?.into_bytes(), "policy.html"),
    };
    let path: PathBuf = args.out.clone().unwrap_or_else(|| args.run_dir.join(file));
    let mut said = summary(&path, &policy, bytes.len(), args.json);
    // A pipe or standard output has no file beside it.
    let said_of_types =
        types.filter(|_| path.extension().is_some_and(|end| ["js", "mjs", "cjs"].iter().any(|js| end == *js)));
    if let Some((text, end)) = said_of_types {
        let end = if path.extension().is_some_and(|end| end == "cjs") { "d.cts" } else { end };
        let path = path.with_extension(end);
        let types = output::write(&path, text.as_bytes(), format!("{}: types for TypeScript\n", path.display()))?;
        said.push_str(if args.json { "" } else { &types });
    }
    output::write(&path, &bytes, said)
}

/// What a written policy takes and returns.
pub(super) fn summary(path: &Path, policy: &ExportedPolicy, n_bytes: usize, json: bool) -> String {
    if json {
        let document = json!({
            "path": path, "bytes": n_bytes, "n_agents": policy.n_agents, "obs_width": policy.obs_width, "masked": policy.masked,
            "n_actions": policy.n_actions(), "action_width": policy.action_width(), "state_width": policy.state_width(),
        });
        return format!("{document}\n");
    }
    let rows = match policy.n_agents {
        1 => String::new(),
        n => format!(" for each of {n} agents"),
    };
    let counted = |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
    let mask = if policy.masked { format!(" and a mask of {}", policy.n_actions()) } else { String::new() };
    let obs = counted(policy.obs_width, "number", "numbers");
    let (n_choices, width) = (policy.output.heads().len(), policy.action_width());
    let parts = [(n_choices, "index", "indices"), (width - n_choices, "number", "numbers")];
    let parts = parts.into_iter().filter(|(n, ..)| *n > 0).map(|(n, one, many)| counted(n, one, many));
    let action = parts.collect::<Vec<_>>().join(" and ");
    let state = match policy.state_width() {
        0 => String::new(),
        n => format!(", with a state of {}", counted(n, "number", "numbers")),
    };
    format!("{}: from {obs}{mask} to {action}{rows}{state}; {n_bytes} bytes\n", path.display())
}
