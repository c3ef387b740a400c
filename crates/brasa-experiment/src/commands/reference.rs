//! Pages of the reference in Markdown, written from what the program knows of itself.

use clap::{Arg, Command};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::PrettyFormatter;

use crate::registry::{Described, Setting};
use crate::{ExperimentError, Registry};

/// The JSON Schema of experiments.
///
/// # Errors
/// [`ExperimentError::Failed`] if it is no text.
pub fn schema(registry: &Registry) -> Result<String, ExperimentError> {
    let failed = |error: &dyn std::fmt::Display| ExperimentError::Failed(error.to_string());
    let mut text = Vec::new();
    // Narrow indents: it is deep.
    let mut writer = Serializer::with_formatter(&mut text, PrettyFormatter::with_indent(b" "));
    registry.schema().serialize(&mut writer).map_err(|error| failed(&error))?;
    text.push(b'\n');
    String::from_utf8(text).map_err(|error| failed(&error))
}

/// Every setting of every section.
pub fn settings(registry: &Registry) -> String {
    let mut page = String::from(
        "# Settings\n\nEvery key of an experiment, with type, default, unit and what its value must be where the other settings have their defaults. `brasa list NAME` prints the settings of a scenario, an algorithm or a \
        network.\n\nFor editors, [configs/schema.json](../../configs/schema.json) contains them as JSON Schema: a first line `#:schema \
        schema.json` in a config is enough.\n\n<!-- Written by a test of crates/brasa-cli from the types of the settings: do not edit. -->\n",
    );
    for described in registry.all_described() {
        page.push_str(&section(&described));
    }
    page
}

fn section(described: &Described) -> String {
    let Described { section, about, .. } = described;
    let mut text = format!("\n## `[{section}]`\n\n{}.\n", about.trim_end_matches('.'));
    let settings = described.settings();
    if settings.is_empty() {
        return format!("{text}\nNo settings.\n");
    }
    text.push_str("\n| key | type | default | unit | must be | meaning |\n|---|---|---|---|---|---|\n");
    for Setting { key, kind, default, unit, rule, about } in settings {
        let default = default.unwrap_or_else(|| "required".into());
        let cells = [
            format!("`{key}`"),
            kind,
            default,
            unit.unwrap_or_default(),
            rule.unwrap_or_default(),
            without_links(&about),
        ];
        let cells = cells.map(|cell| cell.replace('|', "\\|"));
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text
}

/// Text of rustdoc without its links, which lead nowhere on a page.
fn without_links(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        shown.push_str(before);
        match after.split_once(']') {
            Some((name, behind)) if name.starts_with('`') => {
                shown.push_str(name);
                // An explicit target.
                let target = behind.strip_prefix('(').and_then(|target| target.split_once(')'));
                rest = target.map_or(behind, |(_, behind)| behind);
            }
            _ => {
                shown.push('[');
                rest = after;
            }
        }
    }
    shown + rest
}

/// Every command with its arguments.
pub fn commands(mut arguments: Command) -> String {
    arguments.build();
    let program = arguments.get_name().to_owned();
    let mut page = format!(
        "# Commands\n\nEvery command of `{program}` with its arguments. `{program} COMMAND --help` prints this text.\n\n<!-- Written by a test of \
        crates/brasa-cli from the arguments: do not edit. -->\n"
    );
    let common = arguments.get_arguments().filter(|arg| arg.is_global_set()).map(argument).collect::<String>();
    page.push_str(&format!("\n## Options of every command\n\n{common}"));
    if let Some(text) = arguments.get_after_long_help() {
        let lines = text.to_string();
        page.push_str(&format!("\n```text\n{lines}\n```\n"));
    }
    arguments.get_subcommands().for_each(|command| page.push_str(&chapter(command, &program, 2)));
    page
}

fn chapter(command: &Command, parent: &str, level: usize) -> String {
    if command.is_hide_set() || command.get_name() == "help" {
        return String::new();
    }
    let name = format!("{parent} {}", command.get_name());
    let about = command.get_about().map(|about| about.to_string()).unwrap_or_default();
    let mut text = format!("\n{} `{name}`\n\n{about}.\n", "#".repeat(level));
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").trim();
    text.push_str(&format!("\n```text\n{usage}\n```\n\n"));
    let own =
        command.get_arguments().filter(|arg| !arg.is_global_set() && !arg.is_hide_set() && arg.get_id() != "help");
    text.push_str(&own.map(argument).collect::<String>());
    command.get_subcommands().for_each(|inner| text.push_str(&chapter(inner, &name, level + 1)));
    text
}

/// A line of a list.
fn argument(arg: &Arg) -> String {
    let values = || {
        let names = arg.get_value_names().unwrap_or_default();
        names.iter().map(|name| format!(" {name}")).collect::<String>()
    };
    let takes_value = arg.get_action().takes_values();
    let name = match (arg.get_short(), arg.get_long()) {
        (Some(short), Some(long)) => format!("-{short}, --{long}"),
        (None, Some(long)) => format!("--{long}"),
        _ => String::new(),
    };
    let value = if takes_value { values() } else { String::new() };
    let about = arg.get_help().map(|help| help.to_string()).unwrap_or_default();
    let mut text = format!("- `{}`: {about}.", format!("{name}{value}").trim());
    let possible: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|_| takes_value)
        .map(|value| match value.get_help() {
            Some(help) => format!("`{}` ({help})", value.get_name()),
            None => format!("`{}`", value.get_name()),
        })
        .collect();
    if !possible.is_empty() {
        text.push_str(&format!(" One of {}.", possible.join(", ")));
    }
    let defaults: Vec<String> =
        arg.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy())).collect();
    if takes_value && !defaults.is_empty() {
        text.push_str(&format!(" Default {}.", defaults.join(", ")));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_rustdoc_become_their_names() {
        assert_eq!(
            without_links("See [`Room`] and [`Wall`](crate::Wall); [0, 1] stays."),
            "See `Room` and `Wall`; [0, 1] stays."
        );
    }
}
