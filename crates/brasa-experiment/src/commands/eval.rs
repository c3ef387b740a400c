//! `eval`: evaluates the policy of a run.

use brasa_device::open_named;

use super::record;
use crate::args::EvalArgs;
use crate::comparison::ComparisonSetup;
use crate::load::Finished;
use crate::{ExperimentError, Registry};

pub fn run(program: &str, registry: &Registry, args: &EvalArgs) -> Result<String, ExperimentError> {
    if let Some(path) = &args.video {
        return record::run(program, registry, args, path);
    }
    let device = args.device.as_deref().map(open_named).transpose()?;
    let run = Finished::open(registry, &args.run_dir, &args.set, device, args.best, args.trust)?;
    let metrics = run.run_dir.metrics()?;
    let setup = ComparisonSetup::of_run(&run.experiment, &run.policy, &run.run_dir, &metrics);
    let setup = ComparisonSetup { n_episodes: args.episodes, is_best: args.best, ..setup };
    let comparison = setup.run()?.comparison;
    Ok(comparison.to_output(args.json))
}
