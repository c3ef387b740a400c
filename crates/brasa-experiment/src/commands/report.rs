//! `report`: writes the page of a run again.

use std::path::Path;

use serde_json::json;

use crate::args::ReportArgs;
use crate::comparison::ComparisonSetup;
use crate::load::Finished;
use crate::report::Player;
use crate::{ExperimentError, Registry, TrainConfig, output, report};

pub fn run(registry: &Registry, args: &ReportArgs) -> Result<String, ExperimentError> {
    let open = |train: &TrainConfig| train.open_device_or(args.device.as_deref());
    let run = Finished::open(registry, &args.run_dir, &args.set, open, false, args.trust)?;
    let metrics = run.run_dir.metrics()?;
    let result = ComparisonSetup::of_run(&run.experiment, &run.policy, &run.run_dir, &metrics).run()?;
    let page = report::page(&run.experiment, &run.run_dir, &metrics, &result, &Player::of(&run.experiment, &result));
    let summary = |path: &Path| match args.json {
        true => format!("{}\n", json!({ "report": path })),
        false => format!("Report: {}\n", path.display()),
    };
    match &args.out {
        Some(path) => output::write(path, page.as_bytes(), summary(path)),
        None => {
            run.run_dir.write("report.html", page.as_bytes())?;
            Ok(summary(&run.run_dir.file("report.html")))
        }
    }
}
