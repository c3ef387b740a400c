//! `eval`: evaluates the policy of a run.

use super::record;
use crate::args::EvalArgs;
use crate::comparison::ComparisonSetup;
use crate::load::Finished;
use crate::{ExperimentError, Registry, TrainConfig};

pub fn run(program: &str, registry: &Registry, args: &EvalArgs) -> Result<String, ExperimentError> {
    if let Some(path) = &args.video {
        return record::run(program, registry, args, path);
    }
    let open = |train: &TrainConfig| train.open_device_or(args.device.as_deref());
    let run = Finished::open(registry, &args.run_dir, &args.set, open, args.best, args.trust)?;
    let metrics = run.run_dir.metrics()?;
    let setup = ComparisonSetup::of_run(&run.experiment, &run.policy, &run.run_dir, &metrics);
    let is_sampled = args.sampled || setup.is_sampled;
    let setup = ComparisonSetup { n_episodes: args.episodes, is_best: args.best, is_sampled, ..setup };
    let comparison = setup.run()?.comparison;
    Ok(comparison.to_output(args.json))
}
