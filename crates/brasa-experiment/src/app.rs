//! A program with the command, for whatever is registered.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use brasa_env::Scenario;
use brasa_nn::Role;
use brasa_train::say;
use clap::{CommandFactory, FromArgMatches};

use crate::args::{Args, Command};
use crate::registry::{Algorithms, NetworkKind, Networks, ScenarioEntry};
use crate::source::Source;
use crate::{Experiment, ExperimentError, commands};

/// The scenarios, algorithms and networks of a program.
#[derive(Default)]
pub struct Registry {
    pub(crate) scenarios: Vec<ScenarioEntry>,
    pub(crate) algorithms: Algorithms,
    pub(crate) networks: Networks,
}

impl Registry {
    /// Adds a scenario; one of the same name is replaced.
    pub fn scenario<S: Scenario>(&mut self, entry: ScenarioEntry<S>) {
        self.add(entry.erased());
    }

    fn add(&mut self, entry: ScenarioEntry) {
        self.scenarios.retain(|known| known.name != entry.name);
        self.scenarios.push(entry);
    }

    /// Where algorithms are added.
    pub fn algorithms(&mut self) -> &mut Algorithms {
        &mut self.algorithms
    }

    /// Adds a kind of network.
    pub fn network<R: Role>(&mut self, kind: NetworkKind<R>) {
        self.networks.add(kind);
    }

    /// Everything that `other` has as well; its scenarios replace those of the same name.
    pub fn extend(&mut self, other: Registry) {
        other.scenarios.into_iter().for_each(|entry| self.add(entry));
        self.algorithms.0.extend(other.algorithms.0);
        self.networks.extend(other.networks);
    }

    /// Reads an experiment, with some values changed, as in `train.seed=5`.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] for a file that cannot be read or what it says.
    pub fn load(&self, path: &Path, overrides: &[String]) -> Result<Experiment<'_>, ExperimentError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| ExperimentError::Input(format!("cannot read {}: {error}", path.display())))?;
        // Some editors begin a file with it.
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        self.parse(text, &path.display().to_string(), overrides)
    }

    /// The experiment in `text`, which came from `origin`.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] for what it says.
    pub fn parse(&self, text: &str, origin: &str, overrides: &[String]) -> Result<Experiment<'_>, ExperimentError> {
        Experiment::new(self, &Source::parse(text, origin, overrides)?)
    }
}

/// Writes the result of a command. A reader that went away has read what it wanted.
fn print(text: &str) -> Result<(), ExperimentError> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(ExperimentError::Failed(format!("cannot write the result to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// A program with the subcommands `train`, `check`, `eval`, `baseline`, `compare`, `report`, `devices` and `list`.
pub struct App {
    name: &'static str,
    registry: Registry,
}

impl App {
    /// A program called `name`, without anything registered.
    pub fn new(name: &'static str) -> Self {
        Self { name, registry: Registry::default() }
    }

    /// The same with everything that `registry` has.
    pub fn with(mut self, registry: Registry) -> Self {
        self.registry.extend(registry);
        self
    }

    /// The same with a scenario.
    pub fn scenario<S: Scenario>(mut self, entry: ScenarioEntry<S>) -> Self {
        self.registry.scenario(entry);
        self
    }

    /// Does what the arguments of the process say; errors go to standard error.
    pub fn main(self) -> ExitCode {
        tracing_subscriber::fmt()
            .with_writer(std::io::stderr)
            .without_time()
            .with_target(false)
            .with_max_level(tracing::Level::INFO)
            // What cannot be written to standard error is no reason to end a run.
            .log_internal_errors(false)
            .init();
        let matches = Args::command().name(self.name).get_matches();
        let result = match Args::from_arg_matches(&matches) {
            Ok(args) => self.run(&args.command),
            Err(error) => error.exit(),
        };
        match result.and_then(|text| print(&text)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                say(&match &error {
                    ExperimentError::Interrupted(text) => text.clone(),
                    error => format!("error: {error}"),
                });
                error.exit_code()
            }
        }
    }

    /// Runs a command; returns what standard output is to say.
    fn run(&self, command: &Command) -> Result<String, ExperimentError> {
        match command {
            Command::Train(args) => commands::train::run(self.name, &self.registry, args),
            Command::Check(args) => commands::check::run(&self.registry, args),
            Command::Eval(args) => commands::eval::run(&self.registry, args),
            Command::Baseline(args) => commands::baseline::run(&self.registry, args),
            Command::Compare(args) => commands::compare::run(self.name, &self.registry, args),
            Command::Report(args) => commands::report::run(&self.registry, args),
            Command::Devices => Ok(commands::devices::run()),
            Command::List => Ok(commands::list::run(&self.registry)),
        }
    }
}
