//! A command-line program for registered scenarios, algorithms and networks.

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::Duration;

use brasa_env::{Scenario, field::printable};
use brasa_nn::Role;
use brasa_shards::{ShardError, World};
use brasa_train::{StandardError, WaitView, note, say, set_quiet};
use clap::{ColorChoice, CommandFactory, FromArgMatches};

use crate::args::{Args, Command, ReferencePage};
use crate::experiment::scenario_entry;
use crate::registry::{Algorithm, Algorithms, Described, ExtraCommand, NetworkKind, Networks, ScenarioEntry, Template};
use crate::source::Source;
use crate::sweep::end_with_sweep;
use crate::{Experiment, ExperimentError, catalog, commands, suggest};

/// The scenarios, algorithms and networks of a program.
///
/// ```
/// # mod program { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/program.inc")); }
/// # use program::*;
/// use brasa_experiment::{NoSettings, Registry, ScenarioEntry};
///
/// let mut registry = registry();
/// let make = |_: NoSettings| Ok::<_, std::convert::Infallible>(brasa_classic::Classic::mountain_car());
/// registry.scenario(ScenarioEntry::new("hill", make));
/// let names: Vec<_> = registry.scenario_names().collect();
/// assert_eq!(names, ["pole", "hill"]);
/// ```
#[derive(Debug, Default)]
pub struct Registry {
    pub(crate) scenarios: Vec<ScenarioEntry>,
    pub(crate) algorithms: Algorithms,
    pub(crate) networks: Networks,
    pub(crate) commands: Vec<ExtraCommand>,
    pub(crate) described: Vec<Described>,
    pub(crate) templates: Vec<Template>,
    /// Joins the processes of a run; `None` for this process alone.
    pub(crate) ranks: Option<fn() -> Result<World, ShardError>>,
}

impl Registry {
    /// Adds a scenario. It replaces a scenario of the same name.
    pub fn scenario<S: Scenario>(&mut self, entry: ScenarioEntry<S>) {
        self.add(entry.erased());
    }

    fn add(&mut self, entry: ScenarioEntry) {
        self.scenarios.retain(|known| known.name != entry.name);
        self.scenarios.push(entry);
    }

    /// The registered algorithms, to add more.
    pub fn algorithms(&mut self) -> &mut Algorithms {
        &mut self.algorithms
    }

    /// Adds a kind of network.
    pub fn network<R: Role>(&mut self, kind: NetworkKind<R>) {
        self.networks.add(kind);
    }

    /// Adds a command to those of every program. It replaces one of the same name that was added.
    pub fn command(&mut self, command: ExtraCommand) {
        self.commands.retain(|known| known.arguments.get_name() != command.arguments.get_name());
        self.commands.push(command);
    }

    /// Adds all entries of `other`. Its scenarios and commands replace those of the same name.
    pub fn extend(&mut self, other: Registry) {
        other.commands.into_iter().for_each(|command| self.command(command));
        other.scenarios.into_iter().for_each(|entry| self.add(entry));
        self.algorithms.0.extend(other.algorithms.0);
        self.networks.extend(other.networks);
        let is_new = |known: &Described| !other.described.iter().any(|new| new.section == known.section);
        self.described.retain(is_new);
        self.described.extend(other.described);
        other.templates.into_iter().for_each(|template| self.template(template));
    }

    /// Reads an experiment and applies `overrides` such as `train.seed=5`. The path `-` is standard input.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] if the file cannot be read or its content is invalid.
    pub fn load(&self, path: &Path, overrides: &[String]) -> Result<Experiment<'_>, ExperimentError> {
        self.read(path, overrides, |source| Experiment::new(self, source))
    }

    /// Reads the file of an experiment and applies `overrides`. Errors of `make` name the file.
    pub(crate) fn read<T>(
        &self,
        path: &Path,
        overrides: &[String],
        make: impl FnOnce(&Source) -> Result<T, ExperimentError>,
    ) -> Result<T, ExperimentError> {
        if let Some(hint) = self.about_file(path) {
            return Err(ExperimentError::Input(hint));
        }
        if path == Path::new(STANDARD_INPUT) {
            return make(&Source::parse(standard_input()?, "standard input", overrides)?);
        }
        let text = std::fs::read_to_string(path)
            .map_err(|error| with_hint(path, format!("cannot read {}: {error}", path.display())))?;
        let made = Source::parse(&text, &path.display().to_string(), overrides).and_then(|source| make(&source));
        made.map_err(|error| match error {
            ExperimentError::Input(message) => with_hint(path, message),
            error => error,
        })
    }

    /// What to do with a file that an experiment may name, instead of taking it for one.
    fn about_file(&self, path: &Path) -> Option<String> {
        let (described, setting) = self.reader_of(path)?;
        let name = described.section.rsplit('.').next().unwrap_or_default();
        let config =
            catalog::find(Path::new(CONFIGS)).into_iter().find(|config| config.scenario.as_deref() == Some(name));
        let config = config.map_or("CONFIG".to_owned(), |config| config.path.display().to_string());
        let (path, section) = (path.display().to_string(), &described.section);
        let setting = setting.replace("PATH", &path);
        let (key, value) = setting.split_once(" = ").unwrap_or((&setting, ""));
        Some(format!(
            "{path} is no experiment, but an experiment may name it: write `{setting}` below [{section}], or use {config} with \
            --set '{section}.{key}={value}'"
        ))
    }

    /// Reads an experiment from `text`; errors name `origin` as its source.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] if the content is invalid.
    pub fn parse(&self, text: &str, origin: &str, overrides: &[String]) -> Result<Experiment<'_>, ExperimentError> {
        Experiment::new(self, &Source::parse(text, origin, overrides)?)
    }

    /// The names of the scenarios.
    pub fn scenario_names(&self) -> impl Iterator<Item = &str> {
        self.scenarios.iter().map(|entry| entry.name.as_str())
    }

    /// Creates the scenario of the section `[scenario.NAME]` in `text`, an experiment or that section alone, for programs that do not
    /// train; errors name `origin` as its source.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] if the section is missing or invalid.
    pub fn parse_scenario(
        &self,
        text: &str,
        origin: &str,
        overrides: &[String],
    ) -> Result<Box<dyn Scenario>, ExperimentError> {
        let source = Source::parse(text, origin, overrides)?;
        Ok(scenario_entry(self, &source)?.make(&source)?.1)
    }
}

/// The directory in which configs are expected.
const CONFIGS: &str = "configs";

/// The path that stands for standard input.
const STANDARD_INPUT: &str = "-";

/// Everything on standard input. It can be read once, and an experiment may be read several times.
fn standard_input() -> Result<&'static str, ExperimentError> {
    static TEXT: OnceLock<Result<String, String>> = OnceLock::new();
    let text = TEXT.get_or_init(|| std::io::read_to_string(std::io::stdin()).map_err(|error| error.to_string()));
    text.as_deref().map_err(|error| ExperimentError::Input(format!("cannot read standard input: {error}")))
}

/// Wrong input from the config at `path`, with what was probably meant.
fn with_hint(path: &Path, message: String) -> ExperimentError {
    match suggest::config(path) {
        Some(hint) => ExperimentError::Input(format!("{message}: {hint}")),
        None => ExperimentError::Input(message),
    }
}

/// The colors that the arguments ask for: they are needed before arguments are read, because their errors have colors, too.
fn color(args: impl Iterator<Item = OsString>) -> ColorChoice {
    let args: Vec<String> = args.map(|arg| arg.to_string_lossy().into_owned()).collect();
    let next = args.windows(2).filter(|pair| pair[0] == "--color").map(|pair| pair[1].as_str());
    let joined = args.iter().filter_map(|arg| arg.strip_prefix("--color="));
    match next.chain(joined).last() {
        Some("always") => ColorChoice::Always,
        Some("never") => ColorChoice::Never,
        _ => ColorChoice::Auto,
    }
}

/// Prints an error as clap prints those of arguments, and adds it to the log.
fn print_error(text: &str, arguments: &clap::Command) {
    let error = arguments.get_styles().get_error();
    let line = format!("{error}error:{error:#} {text}");
    note(&format!("error: {text}"));
    let choice = match arguments.get_color() {
        ColorChoice::Always => anstream::ColorChoice::Always,
        ColorChoice::Never => anstream::ColorChoice::Never,
        ColorChoice::Auto => anstream::ColorChoice::Auto,
    };
    // A closed standard error must not hide the exit code.
    let _ = writeln!(anstream::AutoStream::new(std::io::stderr(), choice), "{line}");
}

/// Writes the result of a command to standard output. A closed pipe is not an error.
fn print(text: &str) -> Result<(), ExperimentError> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(ExperimentError::Failed(format!("cannot write the result to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// A program with the subcommands `train`, `check`, `plan`, `eval`, `baseline`, `compare`, `sweep`, `search`, `report`, `export`, `import`, `devices`, `list`, `new`, `schema`,
/// `completions` and `man`.
///
/// ```
/// # mod program { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/program.inc")); }
/// # use program::*;
/// use brasa_experiment::App;
///
/// # let dir = tempfile::tempdir()?;
/// # let config = written(dir.path());
/// // `registry()` has the scenario `pole`; `main` would read the arguments of the process.
/// let app = App::new("room").with(registry());
/// let text = app.run_from(["room", "baseline", "--episodes", "2", &config])?;
/// assert!(text.contains("rule-based"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use]
pub struct App {
    name: &'static str,
    registry: Registry,
}

impl App {
    /// A program called `name` with an empty registry.
    pub fn new(name: &'static str) -> Self {
        Self { name, registry: Registry::default() }
    }

    /// Adds all entries of `registry`.
    pub fn with(mut self, registry: Registry) -> Self {
        self.registry.extend(registry);
        self
    }

    /// Adds a scenario.
    pub fn scenario<S: Scenario>(mut self, entry: ScenarioEntry<S>) -> Self {
        self.registry.scenario(entry);
        self
    }

    /// Adds an algorithm.
    pub fn algorithm(mut self, algorithm: impl Algorithm + 'static) -> Self {
        self.registry.algorithms.add(algorithm);
        self
    }

    /// Adds a command.
    pub fn command(mut self, command: ExtraCommand) -> Self {
        self.registry.command(command);
        self
    }

    /// Connects the processes of a run by `join`, such as `brasa_mpi::join`. Without it, a run has one process.
    pub fn ranks(mut self, join: fn() -> Result<World, ShardError>) -> Self {
        self.registry.ranks = Some(join);
        self
    }

    /// Runs the command in the arguments of the process. Errors go to standard error.
    pub fn main(self) -> ExitCode {
        tracing_subscriber::fmt()
            .with_writer(|| StandardError)
            .without_time()
            .with_target(false)
            .with_max_level(tracing::Level::INFO)
            // A failed write to standard error must not end a run.
            .log_internal_errors(false)
            .init();
        let print_panic = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            note(&panic.to_string());
            print_panic(panic);
        }));
        // A thread that computes with others needs no waking; a program that has such threads already keeps them.
        let _ = rayon::ThreadPoolBuilder::new().use_current_thread().build_global();
        end_with_sweep();
        let arguments = self.arguments().color(color(std::env::args_os()));
        let result = self.run_matches(&arguments.clone().get_matches());
        match result.and_then(|text| print(&text)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                let text = error.to_string();
                match &error {
                    ExperimentError::Interrupted(_) => say(&text),
                    // Names in files are not for the terminal to obey.
                    _ => print_error(&text.lines().map(printable).collect::<Vec<_>>().join("\n"), &arguments),
                }
                error.exit_code()
            }
        }
    }

    /// Runs the command in `args`, the first of which is the name of the program, and returns the text for standard output: for
    /// programs that do more than this, and for tests. `plan` and long commands write to the standard streams as well.
    ///
    /// # Errors
    /// [`ExperimentError`]; [`ExperimentError::Input`] with the usage if the arguments cannot be used.
    ///
    /// ```
    /// let app = brasa_experiment::App::new("room");
    /// assert!(app.run_from(["room", "list"])?.contains("Algorithms"));
    /// assert!(app.run_from(["room", "fly"]).is_err());
    /// # Ok::<(), brasa_experiment::ExperimentError>(())
    /// ```
    pub fn run_from<T: Into<OsString> + Clone>(
        &self,
        args: impl IntoIterator<Item = T>,
    ) -> Result<String, ExperimentError> {
        self.run_matches(&self.arguments().try_get_matches_from(args).map_err(ExperimentError::input)?)
    }

    /// The arguments of all commands.
    pub(crate) fn arguments(&self) -> clap::Command {
        let own = self.registry.commands.iter().map(|command| command.arguments.clone());
        Args::command().name(self.name).subcommands(own)
    }

    fn run_matches(&self, matches: &clap::ArgMatches) -> Result<String, ExperimentError> {
        set_quiet(matches.get_flag("quiet"));
        if let Some((name, matches)) = matches.subcommand()
            && let Some(command) = self.registry.commands.iter().find(|own| own.arguments.get_name() == name)
        {
            return command.run(matches);
        }
        // `train` has one in its first process, and `devices --watch` prints all the time.
        let command = matches.subcommand_name().filter(|name| !["train", "devices"].contains(name));
        let _view = command.map(|name| WaitView::new(&format!("`{name}`")));
        self.run(&Args::from_arg_matches(matches).map_err(ExperimentError::input)?.command)
    }

    /// Runs a command and returns the text for standard output.
    fn run(&self, command: &Command) -> Result<String, ExperimentError> {
        match command {
            Command::Train(args) => commands::train::run(self.name, &self.registry, args),
            Command::Check(args) => commands::check::run(&self.registry, args),
            Command::Plan(args) => {
                let (text, fits) = commands::plan::run(&self.registry, args)?;
                print(&text)?;
                if fits { Ok(String::new()) } else { Err(ExperimentError::Failed("the run does not fit".into())) }
            }
            Command::Eval(args) => commands::eval::run(self.name, &self.registry, args),
            Command::Baseline(args) => commands::baseline::run(&self.registry, args),
            Command::Compare(args) => commands::compare::run(self.name, &self.registry, args),
            Command::Sweep(args) => commands::sweep::run(self.name, &self.registry, args),
            Command::Search(args) => commands::search::run(self.name, &self.registry, args),
            Command::Report(args) => commands::report::run(&self.registry, args),
            Command::Export(args) => commands::export::run(&self.registry, args),
            Command::Import(args) => commands::import::run(args),
            Command::Devices(args) => match args.watch {
                None => Ok(commands::devices::run(args.json)),
                Some(secs) => commands::devices::watch(Duration::from_secs_f64(secs)),
            },
            Command::List(args) => commands::list::run(&self.registry, args),
            Command::New(args) => commands::new::run(self.name, &self.registry, args),
            Command::Schema => commands::reference::schema(&self.registry),
            Command::Reference(args) => Ok(match args.page {
                ReferencePage::Settings => commands::reference::settings(&self.registry),
                ReferencePage::Commands => commands::reference::commands(self.arguments()),
            }),
            Command::Completions(args) => commands::shell::completions(self.arguments(), args.shell),
            Command::Man(args) => commands::shell::man(self.arguments(), &args.folder),
        }
    }
}
