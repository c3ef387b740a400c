//! Weeks of a district that training never sees.

use brasa_citylearn::Trace;
use brasa_citylearn::{CityLearn, CityLearnConfig};
use brasa_env::{BatchSlabs, EnvBatch, EnvError, Evaluation, Scenario, Who};
use ndarray::{Array2, ArrayViewMut2};

const WEEK: usize = 168;

fn district(config: CityLearnConfig) -> CityLearn {
    CityLearn::new(config).expect("the config is valid")
}

fn held_out(weeks: usize, episode_steps: usize) -> CityLearnConfig {
    CityLearnConfig {
        held_out_weeks: Some(weeks),
        episode_steps: Some(episode_steps),
        random_start: true,
        ..CityLearnConfig::default()
    }
}

/// The rows of an episode, by the flows of an idle district, which are those of its row.
#[test]
fn episodes_of_training_lie_between_the_weeks() {
    let whole = district(CityLearnConfig::default());
    let idle = whole.record(Who::Baseline("idle"), 0).expect("the baseline exists");
    let import_of_row: Vec<f64> = idle.flows.iter().map(|flows| flows.grid_import_kwh).collect();
    let steps = 100;
    let scenario = district(held_out(4, steps));
    let mut batch = scenario.batch(0..64).expect("a batch");
    let mut slabs = BatchSlabs::new(batch.spec());
    let actions = Array2::zeros((64, batch.spec().action.width()));
    batch.reset(5, &mut slabs).expect("a reset");
    let column = |name: &str| batch.spec().info_names.iter().position(|known| known == name).expect("a column");
    let import = column("grid_import_kwh");
    let mut imports = vec![Vec::new(); 64];
    for _ in 0..steps {
        batch.step(actions.view(), &mut slabs).expect("a step");
        for (env, imports) in imports.iter_mut().enumerate() {
            imports.push(slabs.info[(env, import)]);
        }
    }
    let mut blocks = std::collections::BTreeSet::new();
    for imports in imports {
        let starts = 0..=import_of_row.len() - steps;
        let fits = |start: &usize| imports.iter().zip(&import_of_row[*start..]).all(|(a, b)| (a - b).abs() < 1e-3);
        let start = starts.clone().find(fits).expect("the episode is part of the data");
        let (week, last_week) = (start / WEEK, (start + steps - 1) / WEEK);
        assert!((week..=last_week).all(|week| week % 4 != 3), "rows {start} to {}", start + steps - 1);
        blocks.insert(week / 4);
    }
    assert!(blocks.len() > 8, "episodes start in all parts of the year: {blocks:?}");
}

#[test]
fn the_weeks_are_the_episodes_of_the_evaluation() {
    let (scenario, whole) = (district(held_out(4, WEEK)), district(CityLearnConfig::default()));
    let n = scenario.n_episodes(brasa_env::Effort::Compare);
    assert_eq!(n, 13);
    let evaluation = Evaluation { n_traces: 1, ..Evaluation::new(n, 9) };
    let weeks = scenario.evaluate(Who::Baseline("idle"), &evaluation).expect("the baseline exists");
    let year = whole.record(Who::Baseline("idle"), 9).expect("the baseline exists");
    for (i, week) in weeks.iter().enumerate() {
        assert_eq!(week.length, WEEK as u64);
        let rows = (4 * i + 3) * WEEK..(4 * i + 4) * WEEK;
        let import: f64 = year.flows[rows].iter().map(|flows| flows.grid_import_kwh).sum();
        let figure = brasa_test::outcomes::value(&scenario, week, "grid_import_kwh");
        assert!((figure - import).abs() < 1e-9 * import, "week {i}: {figure} {import}");
        // An idle battery that is empty at first changes nothing.
        assert!(week.figures.iter().all(|figure| figure.ratio.is_none_or(|ratio| (ratio - 1.0).abs() < 1e-9)));
    }
    assert_eq!(brasa_test::outcomes::trace::<Trace>(&weeks[0]).grid_kw.len(), WEEK);
    // A controller plays the same weeks.
    let mut idle = |_: &BatchSlabs, mut actions: ArrayViewMut2<f32>| -> Result<(), EnvError> {
        actions.fill(0.0);
        Ok(())
    };
    let played = scenario.evaluate(Who::Controller(&mut idle), &Evaluation::new(n, 9)).expect("it plays");
    for (a, b) in played.iter().zip(&weeks) {
        assert_eq!((&a.figures, a.episode_return), (&b.figures, b.episode_return));
    }
}

#[cfg(feature = "optimum")]
#[test]
fn no_rule_beats_the_optimum_of_a_week() {
    let config = CityLearnConfig { optimum: true, ..held_out(13, WEEK) };
    let scenario = district(config);
    let evaluation = Evaluation::new(2, 0);
    let returns = |name: &str| -> Vec<f64> {
        let outcomes = scenario.evaluate(Who::Baseline(name), &evaluation).expect("the baseline exists");
        outcomes.iter().map(brasa_test::outcomes::episode_return).collect()
    };
    let best = returns("perfect-foresight");
    for rule in ["idle", "basic-rbc", "optimized-rbc", "rule-based"] {
        for (best, of_rule) in best.iter().zip(returns(rule)) {
            assert!(*best > of_rule, "{rule}: {of_rule} {best}");
        }
    }
}

#[test]
fn weeks_that_leave_nothing_are_refused() {
    let refused = |config: CityLearnConfig| match CityLearn::new(config) {
        Ok(_) => panic!("it must be refused"),
        Err(error) => error.to_string(),
    };
    assert!(refused(held_out(1, 24)).contains("held_out_weeks"));
    assert!(refused(held_out(60, 24)).contains("held_out_weeks"));
    let error = refused(held_out(4, 3 * WEEK + 1));
    assert!(error.contains("episode_steps") && error.contains("504"), "{error}");
    let error = refused(CityLearnConfig { episode_steps: None, random_start: false, ..held_out(4, 1) });
    assert!(error.contains("episode_steps"), "{error}");
}
