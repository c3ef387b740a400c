//! `list`: names that experiments may use, one of them in detail, or the configs of a directory.

use std::path::Path;

use serde_json::{Value, json};

use crate::args::ListArgs;
use crate::catalog::{self, Listed};
use crate::comparison::align;
use crate::registry::{Described, Setting};
use crate::suggest;
use crate::{ExperimentError, Registry};

/// The name that stands for the configs.
const CONFIGS: &str = "configs";

pub fn run(registry: &Registry, args: &ListArgs) -> Result<String, ExperimentError> {
    match args.name.as_deref() {
        None => Ok(names(registry, args.json)),
        Some(CONFIGS) => configs(registry, &args.configs, args.json),
        Some(name) => one(registry, name, args),
    }
}

/// The kinds of names, with how a config uses them.
fn kinds(registry: &Registry) -> [(&'static str, &'static str, Vec<&str>); 3] {
    [
        ("Scenarios", "[scenario.NAME]", registry.scenario_names().collect()),
        ("Algorithms", "[NAME]", registry.algorithms.0.iter().map(|algorithm| algorithm.name()).collect()),
        ("Networks", "[NAME]", registry.networks.sections().collect()),
    ]
}

fn names(registry: &Registry, json: bool) -> String {
    let about = |name: &str| registry.described(name).map(|described| described.about).unwrap_or_default();
    let kinds = kinds(registry);
    if json {
        let of_kind = |(kind, _, names): &(&str, &str, Vec<&str>)| {
            let names = names.iter().map(|name| json!({ "name": name, "about": about(name) }));
            (kind.to_lowercase(), Value::from_iter(names))
        };
        return format!("{}\n", Value::from_iter(kinds.iter().map(of_kind)));
    }
    let width = kinds.iter().flat_map(|(.., names)| names).map(|name| name.len()).max().unwrap_or(0);
    let line = |name: &&str| format!("  {}\n", format!("{name:<width$}  {}", about(name)).trim_end());
    let of_kind = |(kind, usage, names): &(&str, &str, Vec<&str>)| {
        format!("{kind:<11} {usage}\n{}", names.iter().map(line).collect::<String>())
    };
    format!(
        "{}\nSettings of one: `brasa list NAME`. Configs: `brasa list configs`.\n",
        kinds.iter().map(of_kind).collect::<Vec<_>>().join("\n")
    )
}

fn configs(registry: &Registry, folder: &Path, json: bool) -> Result<String, ExperimentError> {
    let found = catalog::find(folder);
    if found.is_empty() {
        let folder = folder.display();
        return Err(ExperimentError::Input(format!(
            "{folder} has no configs: name their directory with --configs DIR"
        )));
    }
    let algorithm = |listed: &Listed| {
        let mut all = registry.algorithms.0.iter().map(|algorithm| algorithm.name());
        let named = all.find(|name| listed.sections.iter().any(|section| section == name));
        named.or(registry.algorithms.0.first().map(|first| first.name())).unwrap_or_default().to_owned()
    };
    if json {
        let one = |listed: &Listed| {
            json!({
                "path": listed.path, "scenario": listed.scenario, "algorithm": algorithm(listed),
                "total_env_steps": listed.total_env_steps,
            })
        };
        return Ok(format!("{}\n", Value::from_iter(found.iter().map(one))));
    }
    let mut lines = vec![(String::new(), vec!["scenario".to_owned(), "algorithm".into(), "steps".into()])];
    lines.extend(found.iter().map(|listed| {
        let scenario = listed.scenario.clone().unwrap_or_default();
        let steps = listed.total_env_steps.map_or("default".into(), |steps| crate::number(steps as f64));
        (listed.path.display().to_string(), vec![scenario, algorithm(listed), steps])
    }));
    Ok(align(&lines))
}

fn one(registry: &Registry, name: &str, args: &ListArgs) -> Result<String, ExperimentError> {
    let known: Vec<&str> = kinds(registry).into_iter().flat_map(|(.., names)| names).collect();
    let described = registry.described(name);
    if described.is_none() && !known.contains(&name) {
        let meant = suggest::in_brackets(name, known.iter().copied());
        let known = known.join(", ");
        return Err(ExperimentError::Input(format!("there is no `{name}`{meant}; there are {known}, configs")));
    }
    let is_scenario = registry.scenario_names().any(|scenario| scenario == name);
    let section = if is_scenario { format!("scenario.{name}") } else { name.to_owned() };
    let about = described.as_ref().map(|described| described.about.clone()).unwrap_or_default();
    let settings = described.as_ref().map(Described::settings).unwrap_or_default();
    let uses = |listed: &Listed| match is_scenario {
        true => listed.scenario.as_deref() == Some(name),
        false => listed.sections.iter().any(|other| other == name),
    };
    let configs: Vec<String> = catalog::find(&args.configs)
        .iter()
        .filter(|listed| uses(listed))
        .map(|listed| listed.path.display().to_string())
        .collect();
    if args.json {
        let setting = |Setting { key, kind, default, unit, rule, about }: &Setting| json!({ "key": key, "type": kind, "default": default, "unit": unit, "must_be": rule, "about": about });
        let document = json!({
            "name": name, "section": section, "about": about, "configs": configs,
            "settings": settings.iter().map(setting).collect::<Vec<_>>(),
        });
        return Ok(format!("{document}\n"));
    }
    let mut text = match about.is_empty() {
        true => format!("[{section}]\n"),
        false => format!("[{section}]  {about}\n"),
    };
    match settings.is_empty() {
        true => text.push_str("\nNo settings.\n"),
        false => text.push_str(&format!("\nSettings (key, default, unit, rule)\n{}", shown(&settings))),
    }
    if !configs.is_empty() {
        text.push_str(&format!("\nConfigs\n{}", configs.iter().map(|path| format!("  {path}\n")).collect::<String>()));
    }
    Ok(text)
}

/// A line for each setting, and one for its meaning.
fn shown(settings: &[Setting]) -> String {
    let line = |Setting { key, default, unit, rule, about, kind }: &Setting| {
        let default = default.as_deref().map_or("required".to_owned(), |default| default.replace('`', ""));
        let unit = unit.as_deref().map_or(String::new(), |unit| format!(" {unit}"));
        let kind = kind.replace('`', "");
        let rule = rule.as_deref().map_or(String::new(), |rule| format!(" ({rule})"));
        format!("  {key} = {default}{unit}{rule}\n      {}\n", if about.is_empty() { &kind } else { about })
    };
    settings.iter().map(line).collect()
}
