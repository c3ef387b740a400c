//! Commands that a program has beside those of every program.

use clap::{ArgMatches, Args};

use crate::ExperimentError;

type Run = dyn Fn(&ArgMatches) -> Result<String, ExperimentError> + Send + Sync;

/// A command with its arguments and what it does.
///
/// ```
/// use brasa_experiment::{App, ExtraCommand};
///
/// #[derive(clap::Args)]
/// struct Greeting {
///     name: String,
/// }
///
/// let greet = ExtraCommand::new("greet", "Greets a user", |args: Greeting| Ok(format!("hello {}\n", args.name)));
/// let app = App::new("room").command(greet);
/// assert_eq!(app.run_from(["room", "greet", "Ana"])?, "hello Ana\n");
/// # Ok::<(), brasa_experiment::ExperimentError>(())
/// ```
pub struct ExtraCommand {
    pub(crate) arguments: clap::Command,
    run: Box<Run>,
}

impl std::fmt::Debug for ExtraCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ExtraCommand").field(&self.arguments.get_name()).finish()
    }
}

impl ExtraCommand {
    /// A command `name` with the arguments `A`; `run` returns the text for standard output.
    pub fn new<A: Args>(
        name: &'static str,
        about: &'static str,
        run: impl Fn(A) -> Result<String, ExperimentError> + Send + Sync + 'static,
    ) -> Self {
        let arguments = A::augment_args(clap::Command::new(name)).about(about);
        let run = move |matches: &ArgMatches| run(A::from_arg_matches(matches).map_err(ExperimentError::input)?);
        Self { arguments, run: Box::new(run) }
    }

    pub(crate) fn run(&self, matches: &ArgMatches) -> Result<String, ExperimentError> {
        (self.run)(matches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::App;

    #[derive(clap::Args)]
    struct Greeting {
        name: String,
    }

    #[test]
    fn a_program_has_commands_of_its_own() {
        let greet =
            ExtraCommand::new("greet", "Greets somebody", |args: Greeting| Ok(format!("hello {}\n", args.name)));
        let app = App::new("room").command(greet);
        assert_eq!(app.run_from(["room", "greet", "Ana"]).expect("it runs"), "hello Ana\n");
        let error = app.run_from(["room", "greet"]).expect_err("a name is needed").to_string();
        assert!(error.contains("<NAME>"), "{error}");
        assert!(app.run_from(["room", "list"]).expect("the others remain").contains("Scenarios"));
        let help = app.run_from(["room", "--help"]).expect_err("clap ends with the help").to_string();
        assert!(help.contains("greet") && help.contains("Greets somebody"), "{help}");
    }
}
