//! A name has one unit: `rollout/NAME`, which comes from the statistics of environments, is what `eval/NAME` says of the same episodes.
#![allow(clippy::expect_used)]

use std::collections::BTreeSet;
use std::path::Path;

use brasa::env::{BatchSlabs, EnvError, EnvSpec, Evaluation, Scenario, Space, Split, Who, play_episodes};
use ndarray::ArrayViewMut2;

/// The first legal action of every row, the number in the middle of the bounds for continuous ones.
fn controller(spec: &EnvSpec) -> impl FnMut(&BatchSlabs, ArrayViewMut2<f32>) -> Result<(), EnvError> + use<> {
    let (action, span) = (spec.action.clone(), spec.actions_per_flag());
    move |view, mut actions| {
        for (row, mut action_row) in actions.rows_mut().into_iter().enumerate() {
            if let Space::Box(space) = &action {
                let bounds = space.low.iter().zip(&space.high);
                action_row.iter_mut().zip(bounds).for_each(|(slot, (low, high))| *slot = 0.25 * low + 0.75 * high);
            }
            let (mask, mut first) = (view.mask.row(row), 0);
            for (slot, n) in action_row.iter_mut().zip(action.heads()) {
                let is_legal = |option: &usize| mask.get((first + option) / span).is_none_or(|legal| *legal > 0.0);
                *slot = (0..*n).find(is_legal).expect("a legal action") as f32;
                first += n;
            }
        }
        Ok(())
    }
}

/// Figures that are shares.
const SHARES: [&str; 7] = ["qos_rate", "final_qos_rate", "success", "jain", "connected_share", "rescued", "idle_share"];

/// Names of figures that were compared.
fn compare(name: &str, scenario: &dyn Scenario) -> BTreeSet<String> {
    let mut compared = BTreeSet::new();
    for seed in [1, 2] {
        let mut batch = scenario.envs(Split::Evaluation, 0..1).expect("they are created");
        let spec = batch.spec().clone();
        let played = play_episodes(&mut *batch, &mut controller(&spec), seed, 0).expect("it is played");
        let evaluation = Evaluation::new(1, seed);
        let outcomes = scenario.evaluate(Who::Controller(&mut controller(&spec)), &evaluation).expect("it is played");
        let ((episode, _), outcome) = (&played[0], &outcomes[0]);
        assert_eq!(episode.length, outcome.length, "{name}: other episodes");
        let near = |what: &str, rollout: f64, eval: f64| {
            let gap = (rollout - eval).abs() / eval.abs().max(1.0);
            assert!(gap < 1e-5, "{name}: `{what}` is {rollout} in training, {eval} in evaluation");
        };
        near("return", episode.episode_return, outcome.episode_return.expect("it was played"));
        for (figure, measured) in scenario.figures().iter().zip(&outcome.figures) {
            let column = spec.info_names.iter().position(|info| *info == figure.name);
            if let (Some(column), Some(value)) = (column, measured.value) {
                near(&figure.name, episode.info[column], value);
                compared.insert(figure.name.clone());
                let is_share = SHARES.contains(&&*figure.name);
                assert!(!is_share || (0.0..=1.0).contains(&value), "{name}: the share `{}` is {value}", figure.name);
            }
        }
        for curve in scenario.curves() {
            let of = |metric: &str| {
                let column = spec
                    .info_names
                    .iter()
                    .position(|info| metric.strip_prefix("rollout/").is_some_and(|name| name == info));
                episode.info[column.unwrap_or_else(|| panic!("{name}: nothing measures `{metric}`"))]
            };
            let rollout = of(&curve.metric) / curve.divided_by.as_deref().map_or(1.0, of);
            let Some(evaluated) = &curve.evaluated else { continue };
            assert_eq!(evaluated.strip_prefix("eval/"), curve.figure.as_deref(), "{name}: {}", curve.label);
            let figure = scenario.figures().iter().position(|figure| Some(&figure.name) == curve.figure.as_ref());
            if let Some(value) = outcome.figures[figure.expect("the curve has a figure")].value {
                near(&curve.label, rollout, value);
                compared.insert(format!("curve of {}", curve.label));
            }
        }
    }
    compared
}

#[test]
fn figures_of_training_have_the_unit_of_those_of_evaluation() {
    let registry = brasa::registry();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
    let files = std::fs::read_dir(&folder).expect("it exists").map(|entry| entry.expect("it is readable").path());
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
    let recipes = files.map(|path| {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        (name, std::fs::read_to_string(&path).expect("it is readable"))
    });
    let with_defaults = |name: &str| (name.to_owned(), format!("[scenario.{name}]\n[ppo]\n"));
    let (mut all, mut tasks) = (BTreeSet::new(), BTreeSet::new());
    for (name, text) in registry.scenario_names().map(with_defaults).chain(recipes) {
        // Python, and files of the user.
        if name.starts_with("gymnasium") || name.starts_with("own-") {
            continue;
        }
        let experiment = match registry.parse(&text, &name, &[]) {
            // Not every scenario has a default.
            Err(error) if error.to_string().contains("missing field") => continue,
            experiment => experiment.expect("it is valid"),
        };
        // Several recipes of a task differ in the algorithm alone.
        let scenario = toml::from_str::<toml::Table>(&experiment.to_toml()).expect("TOML").remove("scenario");
        if tasks.insert(scenario.expect("a section").to_string()) {
            all.extend(compare(&name, &*experiment.scenario));
        }
    }
    let figures = ["qos_rate", "jain", "connected_share", "success", "duplicate_sweeps", "grid_import_kwh", "profit"];
    for name in figures.into_iter().chain(["curve of satisfied users", "curve of rescued", "curve of profit"]) {
        assert!(all.contains(name), "`{name}` was not compared, only {all:?}");
    }
}
