//! A page that acts with an exported policy in a browser, without a server.

use brasa_env::{BatchSlabs, EnvSpec, Space, Split};
use brasa_export::{ExportedPolicy, JsModule};
use ndarray::Array2;
use serde_json::{Value, json};

use crate::load::Finished;
use crate::report::{escape, filled};
use crate::{Experiment, ExperimentError};

/// Largest number of recorded steps.
const STEPS: usize = 200;

/// The page of `policy`: an evaluation episode of its run, whose actions the page computes again, and controls for the observation.
pub(crate) fn page(run: &Finished<'_>, policy: &ExportedPolicy) -> Result<String, ExperimentError> {
    let spec = run.policy.spec();
    let (low, high) = bounds(&spec.action);
    let data = json!({
        "obs_names": spec.obs.names(),
        "action_names": spec.action.names(),
        "low": low,
        "high": high,
        "steps": recorded(run)?,
    });
    let script = policy.to_js("policy", JsModule::Script).map_err(ExperimentError::input)?;
    let title = run.run_dir.path().file_name().map_or("run".into(), |name| name.to_string_lossy().into_owned());
    let parts: [(&str, &str); 4] = [
        ("TITLE", &escape(&title)),
        ("SUMMARY", &escape(&summary(&run.experiment, policy))),
        ("TASK_JS", run.experiment.entry.playable.unwrap_or("const task = null;\n")),
        ("POLICY_JS", &script),
    ];
    Ok(filled(include_str!("../assets/policy.html"), &parts, &data))
}

fn summary(experiment: &Experiment<'_>, policy: &ExportedPolicy) -> String {
    let agents = if policy.n_agents > 1 { format!(", {} agents", policy.n_agents) } else { String::new() };
    format!("{}, {} environment steps{agents}", experiment.algorithm.to_uppercase(), experiment.train.total_env_steps)
}

/// Finite bounds of the numbers among actions; JSON has no infinity.
fn bounds(space: &Space) -> (Vec<Option<f32>>, Vec<Option<f32>>) {
    let finite = |values: &[f32]| values.iter().map(|x| x.is_finite().then_some(*x)).collect();
    space.numbers().map_or_else(Default::default, |numbers| (finite(&numbers.low), finite(&numbers.high)))
}

/// The first episode of an evaluation: observations, masks and actions of the run's own policy.
fn recorded(run: &Finished<'_>) -> Result<Vec<Value>, ExperimentError> {
    let experiment = &run.experiment;
    let mut envs = experiment.scenario.envs(Split::Evaluation, 0..1)?;
    let spec = envs.spec().clone();
    let mut slabs = BatchSlabs::new(&spec);
    let mut controller = run.policy.controller(&spec);
    let mut actions = Array2::zeros((spec.n_rows(), spec.action.width()));
    envs.reset(experiment.train.eval_seed, &mut slabs)?;
    controller.begin();
    let mut steps = Vec::new();
    while steps.len() < STEPS {
        controller.act(&slabs, actions.view_mut())?;
        let (obs, mask) = rows(&slabs, &spec);
        steps.push(json!({ "obs": obs, "mask": mask, "action": actions.iter().collect::<Vec<_>>() }));
        envs.step(actions.view(), &mut slabs)?;
        if slabs.terminated[0] || slabs.truncated[0] {
            break;
        }
    }
    Ok(steps)
}

/// Whole observations and masks of all agents, one after the other.
pub(crate) fn rows(view: &BatchSlabs, spec: &EnvSpec) -> (Vec<f32>, Option<Vec<f32>>) {
    let mut obs = Vec::with_capacity(view.obs.nrows() * spec.obs.width());
    for (row, own) in view.obs.rows().into_iter().enumerate() {
        obs.extend(view.shared.row(row / spec.n_agents));
        obs.extend(own);
    }
    let per_flag = spec.actions_per_flag();
    let flags = view.mask.rows().into_iter().flat_map(|row| row.to_vec());
    let mask: Vec<f32> =
        flags.flat_map(|flag| std::iter::repeat_n(f32::from(u8::from(flag != 0.0)), per_flag)).collect();
    (obs, (!mask.is_empty()).then_some(mask))
}
