//! The interpreter of the tests, and environments of `tests/python`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use brasa_env::{BatchSlabs, EnvBatch, EnvError, named_rng, random_actions};
use brasa_gym::{GymConfig, GymVec, PyValue};
use ndarray::Array2;

/// The interpreter with Gymnasium; without one, a test says so and does nothing.
pub fn python() -> Option<&'static Path> {
    static PYTHON: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = PYTHON.get_or_init(|| {
        let name = std::env::var_os("BRASA_PYTHON").unwrap_or_else(|| "python3".into());
        let import = Command::new(&name).args(["-c", "import gymnasium"]).stderr(Stdio::null()).status();
        import.is_ok_and(|status| status.success()).then(|| name.into())
    });
    if found.is_none() {
        eprintln!("SKIPPED: no Python with gymnasium; set BRASA_PYTHON to an interpreter that has it");
    }
    found.as_deref()
}

/// Whether the interpreter has a package.
pub fn has_package(package: &str) -> bool {
    let Some(python) = python() else { return false };
    let import = Command::new(python).args(["-c", &format!("import {package}")]).stderr(Stdio::null()).status();
    let has = import.is_ok_and(|status| status.success());
    if !has {
        eprintln!("SKIPPED: {} has no package `{package}`", python.display());
    }
    has
}

/// A program of `tests/python`.
pub fn script(name: &str) -> String {
    format!("{}/tests/python/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Settings of an environment of Gymnasium.
pub fn config(id: &str) -> GymConfig {
    let python = python().expect("it was asked for before").display().to_string();
    GymConfig { python: Some(python), timeout_secs: 60.0, ..GymConfig::new(id) }
}

/// Settings of the team of `tests/python`.
pub fn team(kwargs: &[(&str, PyValue)]) -> GymConfig {
    let kwargs = kwargs.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    GymConfig { kwargs, ..config(&format!("{}:parallel_env", script("brasa_gym_teams.py"))) }
}

/// Settings of an environment of `tests/python`.
pub fn own(id: &str, kwargs: &[(&str, &str)]) -> GymConfig {
    let kwargs = kwargs.iter().map(|(key, value)| ((*key).to_owned(), PyValue::Text((*value).to_owned()))).collect();
    GymConfig { import: vec![script("brasa_gym_envs.py")], kwargs, ..config(id) }
}

/// Plays `n_steps` random steps after a reset with `seed`; the slabs after the reset and every step, and the actions.
pub fn play(
    batch: &mut dyn EnvBatch,
    seed: u64,
    n_steps: usize,
) -> Result<(Vec<BatchSlabs>, Vec<Array2<f32>>), EnvError> {
    let spec = batch.spec().clone();
    let mut rng = named_rng(seed, "test", 0);
    let mut slabs = BatchSlabs::new(&spec);
    batch.reset(seed, &mut slabs)?;
    let (mut seen, mut taken) = (vec![slabs.clone()], Vec::new());
    let mut actions = Array2::zeros((spec.n_rows(), spec.action.width()));
    for _ in 0..n_steps {
        random_actions(&spec, slabs.mask.view(), &mut actions, &mut rng)?;
        batch.step(actions.view(), &mut slabs)?;
        seen.push(slabs.clone());
        taken.push(actions.clone());
    }
    Ok((seen, taken))
}

/// The message of the error that the environments give when they are made or played.
pub fn error_of(config: &GymConfig) -> String {
    let mut batch = match GymVec::new(config, 0..2) {
        Ok(batch) => batch,
        Err(error) => return error.to_string(),
    };
    let error = play(&mut batch, 1, 5).expect_err("there is a fault").to_string();
    // Again, and at once.
    let mut slabs = BatchSlabs::new(batch.spec());
    let begin = std::time::Instant::now();
    assert_eq!(batch.reset(1, &mut slabs).expect_err("the batch has failed").to_string(), error);
    let actions = Array2::zeros((batch.spec().n_rows(), batch.spec().action.width()));
    assert_eq!(batch.step(actions.view(), &mut slabs).expect_err("the batch has failed").to_string(), error);
    assert_eq!(batch.restart(0, &mut slabs).expect_err("the batch has failed").to_string(), error);
    drop(batch.save());
    assert!(begin.elapsed().as_secs_f64() < 1.0, "{:?}", begin.elapsed());
    error
}
