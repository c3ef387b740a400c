//! `new`: writes an experiment with sample data.

use std::fs;
use std::path::Path;

use crate::args::NewArgs;
use crate::registry::Template;
use crate::suggest;
use crate::{ExperimentError, Registry};

pub fn run(program: &str, registry: &Registry, args: &NewArgs) -> Result<String, ExperimentError> {
    let template = chosen(program, registry, args)?;
    let folder = &args.folder;
    let cannot = |path: &Path, error: std::io::Error| ExperimentError::cannot_write(path, &error);
    let is_empty = match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => true,
        Err(error) => return Err(cannot(folder, error)),
    };
    if !is_empty {
        return Err(ExperimentError::Input(format!("{} is not empty: choose another directory", folder.display())));
    }
    let mut text = String::new();
    for (name, content) in template.files {
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).map_err(|error| cannot(parent, error))?;
        fs::write(&path, content).map_err(|error| cannot(&path, error))?;
        text.push_str(&format!("{}\n", path.display()));
    }
    let first = match template.first.strip_prefix("$ ") {
        Some(command) => command.to_owned(),
        None => format!("{program} {}", template.first),
    };
    text.push_str(&format!("\nNext: cd {} && {first}\n", folder.display()));
    Ok(text)
}

fn chosen<'a>(program: &str, registry: &'a Registry, args: &NewArgs) -> Result<&'a Template, ExperimentError> {
    let templates = &registry.templates;
    let choices = || {
        let lines = templates.iter().map(|template| format!("\n  {:<12} {}", template.name, template.about));
        lines.collect::<String>()
    };
    let Some(name) = &args.scenario else {
        let usage = format!("`{program} new DIR --scenario NAME` needs one of");
        return Err(ExperimentError::Input(format!("{usage}{}", choices())));
    };
    templates.iter().find(|template| template.name == *name).ok_or_else(|| {
        let meant = suggest::in_brackets(name, templates.iter().map(|template| template.name));
        ExperimentError::Input(format!("--scenario must be one of the following, got `{name}`{meant}{}", choices()))
    })
}
