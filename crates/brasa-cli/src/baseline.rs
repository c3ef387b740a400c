//! `brasa baseline`: the controllers that do not learn.

use crate::args::BaselineArgs;
use crate::error::CliError;
use crate::experiment::Experiment;
use crate::scenario::Scenario;

pub fn run(args: &BaselineArgs) -> Result<(), CliError> {
    let experiment = Experiment::load(&args.config, &args.set)?;
    let scenario = Scenario::build(&experiment.scenario)?;
    let Some(yardsticks) = scenario.yardsticks() else {
        return Err(CliError::Input(format!(
            "{}: this scenario has no controllers to compare with",
            args.config.display()
        )));
    };
    let comparison = yardsticks.compare(None, experiment.train.eval_seed, None)?;
    match args.json {
        true => println!("{}", serde_json::Value::Object(comparison.to_json())),
        false => print!("{}", comparison.to_table()),
    }
    Ok(())
}
