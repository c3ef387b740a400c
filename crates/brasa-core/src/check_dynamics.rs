//! A check of the contract of environments on a device, for use in tests.

use brasa_env::{EnvError, EnvSpec, named_rng, random_actions};
use burn::tensor::{Device, Tensor, TensorData};
use ndarray::{Array2, Axis};
use rand::RngExt;

use crate::{NoiseWidths, TensorDynamics, TensorState, TensorStep, read_back};

/// Number of environments of the check.
const N_ENVS: usize = 4;
/// Largest difference between numbers that must be equal, relative to numbers above 1: products sum in another order in another batch.
const TOLERANCE: f32 = 1e-5;

/// Steps environments of `dynamics` with random actions and checks what [`crate::TensorEnv`] and learners rely on.
///
/// - Tensors have the shapes of [`TensorDynamics::spec`] and [`TensorDynamics::noise`].
/// - Observations are in their space, rewards and figures are finite, flags are 0 or 1 and there if episodes can terminate.
/// - Results repeat: all random numbers come from the noise.
/// - An environment depends on its own rows alone, and on no number of environments.
/// - A state is complete: `from_parts(parts())` continues as the state itself.
///
/// Whether the numbers are those of the host's form, a comparison on the same noise must show.
///
/// # Errors
/// [`EnvError::Contract`] with the first violated rule.
///
/// ```
/// # mod shown { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shown/envs.inc")); }
/// # use shown::*;
/// use brasa_core::{RuleTensors, check_dynamics};
///
/// // `Tank` is the tank of the page of `brasa_env::Rules`.
/// let device = brasa_device::open_named("cpu")?;
/// check_dynamics(20, &RuleTensors::new(Tank), &device)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn check_dynamics<D: TensorDynamics>(n_steps: usize, dynamics: &D, device: &Device) -> Result<(), EnvError> {
    let spec = dynamics.spec(N_ENVS);
    spec.validate()?;
    let first = record(dynamics, device, n_steps, 0..N_ENVS, false)?;
    for (step, seen) in first.iter().enumerate() {
        seen.verify(&spec, dynamics.terminates()).map_err(|rule| broken(step, &rule))?;
    }
    let other = [(0..N_ENVS, false, "again"), (0..N_ENVS, true, "with states that were taken apart and put together")];
    for (envs, apart, how) in other {
        differs(&first, &record(dynamics, device, n_steps, envs, apart)?, 0.0, how)?;
    }
    let alone = record(dynamics, device, n_steps, 1..2, false)?;
    let own: Vec<Seen> = first.iter().map(|seen| seen.of_env(1)).collect();
    differs(&own, &alone, TOLERANCE, "without the other environments")
}

fn broken(step: usize, rule: &str) -> EnvError {
    EnvError::Contract { rule: format!("step {step}: {rule}") }
}

/// What is seen of some environments after a step, on the host.
struct Seen {
    /// Name and `[n_envs or n_rows, width]` numbers; a state has several of one name.
    arrays: Vec<(&'static str, Array2<f32>)>,
    n_envs: usize,
}

fn on_host(tensor: &Tensor<2>) -> Array2<f32> {
    let [rows, columns] = tensor.dims();
    if rows * columns == 0 {
        return Array2::zeros((rows, columns));
    }
    Array2::from_shape_vec((rows, columns), read_back(tensor.clone())).expect("a tensor has as many numbers")
}

impl Seen {
    fn array(&self, name: &str) -> Option<&Array2<f32>> {
        self.arrays.iter().find(|(known, _)| *known == name).map(|(_, array)| array)
    }

    /// The rows of one environment.
    fn of_env(&self, env: usize) -> Self {
        let rows = |array: &Array2<f32>| {
            let n = array.nrows() / self.n_envs;
            let indices: Vec<usize> = (env * n..(env + 1) * n).collect();
            array.select(Axis(0), &indices)
        };
        Self { arrays: self.arrays.iter().map(|(name, array)| (*name, rows(array))).collect(), n_envs: 1 }
    }

    fn verify(&self, spec: &EnvSpec, terminates: bool) -> Result<(), String> {
        let (n_rows, shared) = (spec.n_rows(), spec.shared_width);
        let own = spec.obs.width() - shared;
        let expected = [
            ("shared", spec.n_envs, shared),
            ("own", n_rows, own),
            ("mask", n_rows, spec.mask_width()),
            ("reward", n_rows, 1),
            ("info", spec.n_envs, spec.info_names.len()),
        ];
        for (name, rows, columns) in expected {
            let is_first = self.array("reward").is_none();
            let dim = self.array(name).map_or((rows, 0), |array| array.dim());
            // The first observation has no reward and no figures.
            if dim != (rows, columns) && !(is_first && ["reward", "info"].contains(&name)) {
                return Err(format!("`{name}` is {dim:?} instead of [{rows}, {columns}]"));
            }
        }
        for row in 0..n_rows {
            let part = |name, row: usize| self.array(name).map_or(Vec::new(), |array| array.row(row).to_vec());
            let obs = [part("shared", row / spec.n_agents), part("own", row)].concat();
            if !spec.obs.contains(&obs) {
                return Err(format!("the observation of row {row} lies outside its space: {obs:?}"));
            }
        }
        for (name, array) in &self.arrays {
            if let Some(x) = array.iter().find(|x| !x.is_finite()) {
                return Err(format!("a number of `{name}` is {x}"));
            }
        }
        if let Some(flags) = self.array("terminated") {
            if !terminates {
                return Err("`terminated` is there, but `terminates` says that no episode can terminate".into());
            }
            if flags.dim() != (spec.n_envs, 1) || flags.iter().any(|flag| *flag != 0.0 && *flag != 1.0) {
                return Err(format!("`terminated` must be {} times 0 or 1: {flags:?}", spec.n_envs));
            }
        } else if terminates && self.array("reward").is_some() {
            return Err("`terminated` is missing, but `terminates` says that episodes can terminate".into());
        }
        Ok(())
    }
}

/// Plays the environments `envs` of the check; `apart` takes every state apart and puts it together again.
fn record<D: TensorDynamics>(
    dynamics: &D,
    device: &Device,
    n_steps: usize,
    envs: std::ops::Range<usize>,
    apart: bool,
) -> Result<Vec<Seen>, EnvError> {
    let (n_envs, first) = (envs.len(), envs.start);
    let spec = dynamics.spec(N_ENVS);
    let NoiseWidths { start, step } = dynamics.noise();
    let upload = |array: &Array2<f32>| {
        let n = array.nrows() / N_ENVS;
        let rows: Vec<usize> = (first * n..(first + n_envs) * n).collect();
        let part = array.select(Axis(0), &rows);
        let shape = [part.nrows(), part.ncols()];
        match shape[0] * shape[1] {
            0 => Tensor::<2>::zeros(shape, device),
            _ => Tensor::from_data(TensorData::new(part.iter().copied().collect::<Vec<f32>>(), shape), device),
        }
    };
    let uniform = |width: usize, index: u64| {
        let mut rng = named_rng(2, "check", index);
        upload(&Array2::from_shape_fn((N_ENVS, width), |_| rng.random()))
    };
    let look = |state: &D::State, step: Option<&TensorStep<D::State>>| {
        let parts = dynamics.observe(state);
        let mut arrays = Vec::new();
        for (name, part) in [("shared", &parts.shared), ("own", &parts.own), ("mask", &parts.mask)] {
            arrays.extend(part.as_ref().map(|part| (name, on_host(part))));
        }
        arrays.extend(state.parts().iter().filter(|part| part.dims()[1] > 0).map(|part| ("state", on_host(part))));
        if let Some(step) = step {
            let column = |tensor: &Tensor<1>| on_host(&tensor.clone().unsqueeze_dim(1));
            arrays.push(("reward", column(&step.reward)));
            arrays.extend(step.terminated.as_ref().map(|flags| ("terminated", column(flags))));
            arrays.extend(step.info.as_ref().map(|info| ("info", on_host(info))));
        }
        Seen { arrays, n_envs }
    };
    let mut state = dynamics.start(uniform(start, 0));
    let mut seen = vec![look(&state, None)];
    // Of all environments, also where only one is played: an action must be legal in this one alone.
    let mut actions = Array2::zeros((spec.n_rows(), spec.action.width()));
    for at in 0..n_steps {
        if apart {
            state = D::State::from_parts(state.parts());
        }
        let mut mask = Array2::ones((spec.n_rows(), spec.mask_width()));
        if let Some(known) = seen.last().and_then(|seen| seen.array("mask")) {
            let n = spec.n_agents;
            mask.slice_mut(ndarray::s![first * n..(first + n_envs) * n, ..]).assign(known);
        }
        random_actions(&spec, mask.view(), &mut actions, &mut named_rng(3, "check", at as u64))?;
        let since = (!dynamics.terminates()).then_some(at as u64);
        let result = dynamics.step(state, upload(&actions), uniform(step, 1 + at as u64), since);
        let now = look(&result.state, Some(&result));
        let ended = now.array("terminated").is_some_and(|flags| flags.iter().any(|flag| *flag > 0.5));
        seen.push(now);
        if ended {
            break;
        }
        state = result.state;
    }
    Ok(seen)
}

/// An error if two recordings differ in the steps that both have.
fn differs(first: &[Seen], other: &[Seen], tolerance: f32, how: &str) -> Result<(), EnvError> {
    for (step, (a, b)) in first.iter().zip(other).enumerate() {
        for ((name, a), (_, b)) in a.arrays.iter().zip(&b.arrays) {
            let close = |(a, b): (&f32, &f32)| (a - b).abs() <= tolerance * a.abs().max(1.0);
            if a.dim() != b.dim() || !a.iter().zip(b).all(close) {
                return Err(broken(step, &format!("`{name}` has other numbers {how}")));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use brasa_env::Space;

    use super::*;
    use crate::ObsParts;

    /// A random walk, with a fault.
    struct Walk(Fault);

    #[derive(Clone, Copy, PartialEq)]
    enum Fault {
        None,
        Shape,
        Infinite,
        Outside,
        Neighbour,
        Unrepeatable,
        Incomplete,
        Flags,
        NoFlags,
    }

    /// Place, and a number that is not saved.
    #[derive(Clone)]
    struct Place(Tensor<2>, f32);

    impl TensorState for Place {
        fn parts(&self) -> Vec<Tensor<2>> {
            vec![self.0.clone()]
        }

        fn from_parts(parts: Vec<Tensor<2>>) -> Self {
            Self(parts.into_iter().next().expect("it has one part"), 0.0)
        }
    }

    impl TensorDynamics for Walk {
        type State = Place;

        fn spec(&self, n_envs: usize) -> EnvSpec {
            EnvSpec::new(Space::uniform_box(-100.0, 100.0, ["place"]), Space::Discrete(2), n_envs)
        }

        fn noise(&self) -> NoiseWidths {
            NoiseWidths { start: 1, step: 1 }
        }

        fn start(&self, noise: Tensor<2>) -> Place {
            Place(noise, 0.0)
        }

        fn observe(&self, state: &Place) -> ObsParts {
            let own = if self.0 == Fault::Outside { state.0.clone() + 100.0 } else { state.0.clone() };
            ObsParts { shared: None, own: Some(own), mask: None, n_agents: 1, actions_per_flag: 1 }
        }

        fn step(&self, state: Place, action: Tensor<2>, noise: Tensor<2>, _: Option<u64>) -> TensorStep<Place> {
            let [n, _] = noise.dims();
            let mut place = state.0 + (action * 2.0 - 1.0) * noise + f64::from(state.1);
            if self.0 == Fault::Neighbour {
                place = place.clone() + place.mean_dim(0) * 0.1;
            }
            if self.0 == Fault::Unrepeatable {
                static CALLS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
                place = place + f64::from(CALLS.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) * 0.01;
            }
            let hidden = if self.0 == Fault::Incomplete { 0.5 } else { 0.0 };
            let reward = place.clone().reshape([n]);
            let reward = if self.0 == Fault::Infinite { reward.log() - f32::INFINITY } else { reward };
            let flags = Tensor::full([n], if self.0 == Fault::Flags { 0.5 } else { 0.0 }, &place.device());
            TensorStep {
                reward: if self.0 == Fault::Shape { reward.clone().repeat_dim(0, 2) } else { reward },
                terminated: (self.0 != Fault::NoFlags).then_some(flags),
                info: None,
                state: Place(place, hidden),
            }
        }
    }

    #[test]
    fn each_fault_is_found() {
        let checked = |fault| check_dynamics(5, &Walk(fault), &brasa_test::device()).map_err(|error| error.to_string());
        assert_eq!(checked(Fault::None), Ok(()));
        for (fault, rule) in [
            (Fault::Shape, "`reward` is (8, 1) instead of [4, 1]"),
            (Fault::Infinite, "a number of `reward` is"),
            (Fault::Outside, "the observation of row 0 lies outside its space"),
            (Fault::Neighbour, "has other numbers without the other environments"),
            (Fault::Unrepeatable, "has other numbers again"),
            (Fault::Incomplete, "has other numbers with states that were taken apart and put together"),
            (Fault::Flags, "`terminated` must be 4 times 0 or 1"),
            (Fault::NoFlags, "`terminated` is missing"),
        ] {
            let error = checked(fault).expect_err(rule);
            assert!(error.contains(rule), "{error}");
        }
    }
}
