//! `report`: writes the page of a run again.

use brasa_device::open_named;
use brasa_train::write_atomically;

use crate::args::ReportArgs;
use crate::comparison::Question;
use crate::load::Finished;
use crate::{ExperimentError, Registry, report};

pub fn run(registry: &Registry, args: &ReportArgs) -> Result<String, ExperimentError> {
    let device = args.device.as_deref().map(open_named).transpose()?;
    let run = Finished::open(registry, &args.run_dir, &args.set, device, false)?;
    let metrics = run.run_dir.metrics()?;
    let answer = Question::of_run(&run.experiment, &run.policy, &run.run_dir, &metrics).answer()?;
    let page = report::page(&run.experiment, &run.run_dir, &metrics, &answer);
    let path = match &args.out {
        Some(path) => {
            let failed = |error| ExperimentError::Failed(format!("cannot write {}: {error}", path.display()));
            write_atomically(path, page.as_bytes()).map_err(failed)?;
            path.clone()
        }
        None => {
            run.run_dir.write("report.html", page.as_bytes())?;
            run.run_dir.file("report.html")
        }
    };
    Ok(format!("Report: {}\n", path.display()))
}
