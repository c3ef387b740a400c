//! `baseline`: evaluates the baselines, and a policy from a file.

use brasa_device::open_named;

use crate::args::BaselineArgs;
use crate::comparison::ComparisonSetup;
use crate::policy::LoadedPolicy;
use crate::{ExperimentError, Registry, foreign};

pub fn run(registry: &Registry, args: &BaselineArgs) -> Result<String, ExperimentError> {
    let experiment = registry.load(&args.config, &args.set)?;
    let device = open_named("cpu")?;
    let policy = args.policy.as_deref().map(|path| {
        let policy = LoadedPolicy::of_exported(foreign::read(path)?, &experiment.spec, &device);
        policy.map_err(|error| ExperimentError::Input(format!("{}: {error}", path.display())))
    });
    let policy = policy.transpose()?;
    if policy.is_none() && experiment.scenario.baselines().is_empty() {
        let config = args.config.display();
        return Err(ExperimentError::Input(format!("{config}: this scenario has no baselines to compare with")));
    }
    let setup = ComparisonSetup { n_episodes: args.episodes, ..ComparisonSetup::new(&experiment, policy.as_ref()) };
    let comparison = setup.run()?.comparison;
    Ok(comparison.to_output(args.json))
}
