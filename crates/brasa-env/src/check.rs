//! A check of the contract of environments, for use in tests.

use std::ops::Range;

use ndarray::{Array2, ArrayView1, ArrayView2};
use rand::RngExt;

use crate::{BatchSlabs, EnvBatch, EnvError, EnvRng, EnvSpec, Space, Threaded, Truncations, named_rng};

/// Steps environments of `make` with random actions and checks the properties that learners rely on.
///
/// - Results repeat for one seed, and an environment depends on its index only through its random stream.
/// - Observations and rewards are finite, and observations are in their space.
/// - `next_obs` equals `obs` unless the episode ended.
/// - Results are the same for any number of threads and any split into ranges.
/// - A saved state continues bit for bit.
///
/// # Errors
/// [`EnvError::Contract`] with the first violated rule, or an error of the environment.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/walk.inc")); }
/// # use shown::*;
/// use brasa_env::{EnvVec, check_env};
///
/// check_env(50, |envs| EnvVec::new(envs, |_| Walk(0.0)))?;
/// // The first observation is outside the space of observations of these walks.
/// # struct Far(Walk);
/// # impl brasa_env::Env for Far {
/// #     type State = f32;
/// #     fn obs_space(&self) -> brasa_env::Space { self.0.obs_space() }
/// #     fn action_space(&self) -> brasa_env::Space { self.0.action_space() }
/// #     fn reset(&mut self, _: &mut brasa_env::EnvRng, mut obs: ndarray::ArrayViewMut1<f32>) { obs[0] = 500.0; }
/// #     fn step(
/// #         &mut self, action: ndarray::ArrayView1<f32>, rng: &mut brasa_env::EnvRng,
/// #         obs: ndarray::ArrayViewMut1<f32>,
/// #     ) -> brasa_env::Step { self.0.step(action, rng, obs) }
/// #     fn state(&self) -> f32 { self.0.0 }
/// #     fn set_state(&mut self, state: f32) { self.0.0 = state; }
/// # }
/// # use brasa_env::Env;
/// let error = check_env(50, |envs| EnvVec::new(envs, |_| Far(Walk(0.0)))).unwrap_err();
/// let rule = "contract of the environment broken: reset, row 0: `obs` lies outside its space: [500.0]";
/// assert_eq!(error.to_string(), rule);
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
pub fn check_env<B: EnvBatch + 'static>(
    n_steps: usize,
    mut make: impl FnMut(Range<usize>) -> Result<B, EnvError>,
) -> Result<(), EnvError> {
    const N_ENVS: usize = 5;
    let broken = |rule: String| Err(EnvError::Contract { rule });
    let mut batch = make(0..N_ENVS)?;
    batch.spec().validate()?;
    let first = record(&mut batch, n_steps, true)?;
    // Once more on the same object: a reset must clear all state.
    if record(&mut batch, n_steps, false)? != first {
        return broken("a second reset with the same seed gave other numbers".into());
    }
    for n_threads in [2, N_ENVS] {
        if record(&mut Threaded::new(N_ENVS, n_threads, &mut make)?, n_steps, false)? != first {
            return broken(format!("{n_threads} threads gave other numbers than one"));
        }
    }

    // Saved in the middle and continued by a new batch.
    let mut rng = named_rng(0, "check", 0);
    let mut slabs = BatchSlabs::new(batch.spec());
    let mut actions = Array2::zeros((batch.n_rows(), batch.spec().action.width()));
    batch.reset(3, &mut slabs)?;
    for _ in 0..n_steps / 2 {
        random_actions(batch.spec(), slabs.mask.view(), &mut actions, &mut rng)?;
        batch.step(actions.view(), &mut slabs)?;
    }
    let saved = batch.save();
    let (mut twin, mut twin_slabs) = (make(0..N_ENVS)?, slabs.clone());
    twin.load(&saved)?;
    // Every step: once an episode restarts, an incomplete state is forgotten.
    for step in 1..=n_steps / 2 {
        random_actions(batch.spec(), slabs.mask.view(), &mut actions, &mut rng)?;
        batch.step(actions.view(), &mut slabs)?;
        twin.step(actions.view(), &mut twin_slabs)?;
        if slabs != twin_slabs {
            return broken(format!("a restored batch continued with other numbers, {step} steps later"));
        }
    }
    for (bytes, what) in [
        (saved[..saved.len() / 2].to_vec(), "half of a saved state"),
        ([&saved[..], &[0]].concat(), "a saved state with a byte too many"),
    ] {
        if twin.load(&bytes).is_ok() {
            return broken(format!("{what} was accepted"));
        }
    }
    if make(0..N_ENVS - 1)?.load(&saved).is_ok() {
        return broken("a state of another number of environments was accepted".into());
    }

    // A restart writes the first observation of a new episode and nothing of the other environments.
    let before = slabs.clone();
    batch.restart(1, &mut slabs)?;
    let n_agents = batch.n_agents();
    let others = (0..batch.n_rows()).filter(|row| row / n_agents != 1);
    if others.into_iter().any(|row| before.obs.row(row) != slabs.obs.row(row)) {
        return broken("restarting one environment changed the observation of another".into());
    }
    if (0..N_ENVS).any(|env| env != 1 && before.shared.row(env) != slabs.shared.row(env)) {
        return broken("restarting one environment changed the shared observation of another".into());
    }
    Ok(())
}

/// The slabs of every step.
fn record<B: EnvBatch>(batch: &mut B, n_steps: usize, verify: bool) -> Result<Vec<BatchSlabs>, EnvError> {
    let mut rng = named_rng(1, "check", 0);
    let mut slabs = BatchSlabs::new(batch.spec());
    let mut actions = Array2::zeros((batch.n_rows(), batch.spec().action.width()));
    batch.reset(7, &mut slabs)?;
    if verify {
        for row in 0..batch.n_rows() {
            let obs = [slabs.shared.row(row / batch.n_agents()), slabs.obs.row(row)];
            verify_obs(&batch.spec().obs, obs, &format!("reset, row {row}: `obs`"))?;
        }
    }
    let mut seen = vec![slabs.clone()];
    let mut truncations = Truncations::new(batch.n_envs());
    for step in 0..n_steps {
        random_actions(batch.spec(), slabs.mask.view(), &mut actions, &mut rng)?;
        batch.step(actions.view(), &mut slabs)?;
        if verify {
            verify_step(batch, &slabs, step)?;
            truncations.check(batch.spec(), &slabs)?;
        }
        seen.push(slabs.clone());
    }
    Ok(seen)
}

fn verify_step<B: EnvBatch>(batch: &B, slabs: &BatchSlabs, step: usize) -> Result<(), EnvError> {
    let broken = |rule: String| Err(EnvError::Contract { rule });
    for row in 0..batch.n_rows() {
        let env = row / batch.n_agents();
        let seen = [slabs.shared.row(env), slabs.obs.row(row)];
        let next = [slabs.next_shared.row(env), slabs.next_obs.row(row)];
        for (name, obs) in [("obs", seen), ("next_obs", next)] {
            verify_obs(&batch.spec().obs, obs, &format!("step {step}, row {row}: `{name}`"))?;
        }
        if !slabs.reward[row].is_finite() {
            return broken(format!("step {step}, row {row}: the reward is {}", slabs.reward[row]));
        }
        if !slabs.episode_end(row) && seen != next {
            return broken(format!("step {step}, row {row}: `obs` differs from `next_obs` inside an episode"));
        }
    }
    if let Some(figure) = slabs.info.iter().find(|figure| !figure.is_finite()) {
        return broken(format!("step {step}: a figure is {figure}"));
    }
    Ok(())
}

/// Checks the observation of one row: the shared part and its own.
fn verify_obs(space: &Space, obs: [ArrayView1<f32>; 2], what: &str) -> Result<(), EnvError> {
    let values: Vec<f32> = obs.iter().flatten().copied().collect();
    if space.contains(&values) {
        return Ok(());
    }
    Err(EnvError::Contract { rule: format!("{what} lies outside its space: {values:?}") })
}

/// Random legal actions for all rows. `mask` is `[n_rows, n_flags]`, with no columns where every action is legal. Numbers without a bound
/// are drawn from -10 to 10.
///
/// # Errors
/// [`EnvError::Contract`] for a row without a legal action.
///
/// ```
/// use brasa_env::{EnvSpec, MaskSpec, Space, named_rng, random_actions};
/// use ndarray::{Array2, array};
///
/// let obs = Space::uniform_box(0.0, 1.0, ["x"]);
/// let spec = EnvSpec { mask: Some(MaskSpec::default()), ..EnvSpec::new(obs, Space::Discrete(3), 2) };
/// // One action is legal in each row.
/// let mask = array![[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
/// let mut actions = Array2::zeros((2, 1));
/// random_actions(&spec, mask.view(), &mut actions, &mut named_rng(0, "example", 0))?;
/// assert_eq!(actions, array![[1.0], [2.0]]);
/// # Ok::<(), brasa_env::EnvError>(())
/// ```
pub fn random_actions(
    spec: &EnvSpec,
    mask: ArrayView2<'_, f32>,
    actions: &mut Array2<f32>,
    rng: &mut EnvRng,
) -> Result<(), EnvError> {
    let is_legal = |row: usize, option: usize| mask.ncols() == 0 || mask[[row, option / spec.actions_per_flag()]] > 0.0;
    for (row, mut action) in actions.rows_mut().into_iter().enumerate() {
        let (heads, mut first) = (spec.action.heads(), 0);
        for (x, n) in action.iter_mut().zip(heads) {
            *x = legal_option(row, |option| is_legal(row, first + option), *n, rng)?;
            first += n;
        }
        if let Some(numbers) = spec.action.numbers() {
            numbers.sample(10.0, rng, action.iter_mut().skip(heads.len()));
        }
    }
    Ok(())
}

/// One of the legal actions, all as likely.
fn legal_option(row: usize, is_legal: impl Fn(usize) -> bool, n: usize, rng: &mut EnvRng) -> Result<f32, EnvError> {
    let n_legal = (0..n).filter(|option| is_legal(*option)).count();
    if n_legal == 0 {
        return Err(EnvError::Contract { rule: format!("row {row}: the mask allows none of {n} actions") });
    }
    let nth = rng.random_range(0..n_legal);
    let option = (0..n).filter(|option| is_legal(*option)).nth(nth).expect("there are as many");
    Ok(option as f32)
}
