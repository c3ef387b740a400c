//! `brasa baseline`: the controllers that do not learn.

use crate::args::BaselineArgs;
use crate::error::CliError;
use crate::experiment::Experiment;
use crate::outcomes::Outcomes;
use crate::scenario::Scenario;

pub fn run(args: &BaselineArgs) -> Result<(), CliError> {
    let experiment = Experiment::load(&args.config, &args.set)?;
    let scenario = Scenario::build(&experiment.scenario)?;
    let Some(energy) = scenario.energy() else {
        return Err(CliError::Input(format!(
            "{}: this scenario has no controllers to compare with",
            args.config.display()
        )));
    };
    let outcomes = Outcomes::of_rules(energy, experiment.train.eval_seed)?;
    match args.json {
        true => println!("{}", serde_json::Value::Object(outcomes.to_json())),
        false => print!("{}", outcomes.to_table(energy)),
    }
    Ok(())
}
