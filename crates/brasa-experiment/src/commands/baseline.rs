//! `baseline`: evaluates the baselines.

use crate::args::BaselineArgs;
use crate::comparison::Question;
use crate::{ExperimentError, Registry};

pub fn run(registry: &Registry, args: &BaselineArgs) -> Result<String, ExperimentError> {
    let experiment = registry.load(&args.config, &args.set)?;
    if experiment.scenario.baselines().is_empty() {
        let config = args.config.display();
        return Err(ExperimentError::Input(format!("{config}: this scenario has no baselines to compare with")));
    }
    let comparison = Question::new(&experiment, None).answer()?.comparison;
    Ok(comparison.to_output(args.json))
}
