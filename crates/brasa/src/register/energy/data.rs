//! `data`: data sets for `[scenario.citylearn]`.

use std::path::{Path, PathBuf};

use brasa_citylearn::{data_sets, import};
use brasa_experiment::{ExperimentError, ExtraCommand};
use clap::{Args, Subcommand};

#[derive(Args)]
struct DataArgs {
    #[command(subcommand)]
    command: DataCommand,
}

#[derive(Subcommand)]
enum DataCommand {
    /// Writes a data set of CityLearn to a directory, with the weights of its networks, and verifies that it loads
    Import(ImportArgs),
}

#[derive(Args)]
struct ImportArgs {
    /// A `schema.json`, its directory, or a wheel of CityLearn: CityLearn-2.1.2-py3-none-any.whl:NAME; a wheel alone lists its data sets
    #[arg(value_name = "SCHEMA|WHEEL[:NAME]")]
    source: String,
    /// The directory to write, new or empty
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// The data set of the wheel
    #[arg(long, value_name = "NAME")]
    set: Option<String>,
}

pub fn command() -> ExtraCommand {
    ExtraCommand::new("data", "Imports data sets", |args: DataArgs| match args.command {
        DataCommand::Import(args) => run(&args),
    })
}

fn run(args: &ImportArgs) -> Result<String, ExperimentError> {
    let (source, set) = parts(args)?;
    let Some(folder) = &args.folder else {
        if set.is_some() || !source.ends_with(".whl") {
            return Err(ExperimentError::Input("`brasa data import` needs DIR, the folder to write".into()));
        }
        let sets = data_sets(Path::new(source)).map_err(ExperimentError::input)?;
        return Ok(sets.iter().map(|name| format!("{name}\n")).collect());
    };
    import(Path::new(source), set, folder).map(|imported| imported.to_string()).map_err(ExperimentError::input)
}

/// The path, and the name of a data set from behind a colon or from `--set`.
fn parts(args: &ImportArgs) -> Result<(&str, Option<&str>), ExperimentError> {
    let (source, named) = match args.source.rsplit_once(".whl:") {
        Some((stem, name)) => (&args.source[..stem.len() + ".whl".len()], Some(name)),
        None => (args.source.as_str(), None),
    };
    match (named, args.set.as_deref()) {
        (Some(named), Some(set)) if named != set => {
            let message = format!("the data set must be named once, got `{named}` and --set {set}");
            Err(ExperimentError::Input(message))
        }
        (named, set) => Ok((source, named.or(set))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wheel_may_name_its_data_set() {
        let args = |source: &str, set: Option<&str>| ImportArgs {
            source: source.into(),
            folder: None,
            set: set.map(str::to_owned),
        };
        let check = |source, set, expected| {
            let args = args(source, set);
            assert_eq!(parts(&args).ok(), expected, "{source}");
        };
        check("a/x.whl:one", None, Some(("a/x.whl", Some("one"))));
        check("a/x.whl", Some("one"), Some(("a/x.whl", Some("one"))));
        check("a/x.whl:one", Some("one"), Some(("a/x.whl", Some("one"))));
        check("a/x.whl:one", Some("two"), None);
        check("C:/a/schema.json", None, Some(("C:/a/schema.json", None)));
        let error = run(&args("a/schema.json", None)).expect_err("a folder is needed").to_string();
        assert!(error.contains("needs DIR"), "{error}");
    }
}
