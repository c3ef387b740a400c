//! The optimum of an episode with perfect foresight.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use brasa_env::{ComparisonMemory, Outcome, field};
use brasa_lp::{Program, Solution};

use crate::EnergyError;
use crate::scenario::BOUND;

/// Memory that a program and its solver take per term, in bytes: 450 to 800 were measured with Clarabel.
const BYTES_PER_TERM: f64 = 800.0;

/// The solution of a program, if this machine has the memory for it.
///
/// ```
/// use brasa_lp::Program;
/// use brasa_power::optimum::solve;
///
/// // Buy 3 kWh at 0.2 EUR per kWh.
/// let mut program = Program::default();
/// let kwh = program.variable(0.2, 0.0, 5.0);
/// program.equal([(kwh, 1.0)], 3.0);
/// let solution = solve(&program)?;
/// assert!((program.cost_of(&solution) - 0.6).abs() < 1e-6);
/// # Ok::<(), brasa_power::EnergyError>(())
/// ```
///
/// # Errors
/// [`EnergyError::Optimum`] without a solution, [`EnergyError::Field`] without the memory.
pub fn solve(program: &Program) -> Result<Solution, EnergyError> {
    field::fits_in_memory("optimum", true, program.n_terms() as f64 * BYTES_PER_TERM)?;
    program.solve().map_err(|error| EnergyError::Optimum(error.to_string()))
}

/// An optimum with perfect foresight: what a schedule reaches, and what no controller can exceed.
///
/// Objectives are minimized; that of the return is minus the return, up to a constant of the episode.
///
/// ```
/// use brasa_power::Optimum;
///
/// // A schedule that costs 102 in the simulation; no controller costs less than 100.
/// let optimum = Optimum { value: 102.0, planned: 101.0, bound: 100.0 };
/// assert_eq!(optimum.gap(), 0.02);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Optimum {
    /// The objective that the schedule reaches in the simulation.
    pub value: f64,
    /// The objective of the schedule in the linear program.
    pub planned: f64,
    /// No controller has a smaller objective. It follows from dual variables by weak duality, independent of how well the
    /// solver converged.
    pub bound: f64,
}

impl Optimum {
    /// What the simulated schedule may be above the true optimum, relative to the bound.
    pub fn gap(&self) -> f64 {
        (self.value - self.bound) / self.bound.abs().max(f64::MIN_POSITIVE)
    }

    /// As details of the outcome of the schedule, whose return is `episode_return`: the planned return, the bound of the return,
    /// and the part of the bound that is missing.
    fn details(&self, episode_return: f64) -> [(String, f64); 3] {
        let planned = episode_return + self.value - self.planned;
        let bound = self.return_bound(episode_return);
        let gap = (bound - episode_return) / bound.abs().max(f64::MIN_POSITIVE);
        [("optimum.planned", planned), ("optimum.bound", bound), ("optimum.gap", gap)]
            .map(|(name, value)| (name.to_owned(), value))
    }

    /// The return that no controller exceeds in the episode in which the schedule has `episode_return`: return and objective add
    /// up to a constant of the episode.
    fn return_bound(&self, episode_return: f64) -> f64 {
        episode_return + self.value - self.bound
    }
}

/// The memory of a comparison with programs of so many terms.
///
/// ```
/// use brasa_power::optimum::memory;
///
/// let memory = memory(1e6);
/// assert_eq!((memory.bytes, memory.setting), (8e8, "optimum"));
/// ```
pub fn memory(n_terms: f64) -> ComparisonMemory {
    ComparisonMemory { bytes: n_terms * BYTES_PER_TERM, setting: "optimum" }
}

/// Bounds of the return by episode: a program that was solved for the schedule is not solved again for the bound.
///
/// ```
/// use brasa_env::Outcome;
/// use brasa_power::optimum::{Bounds, Optimum};
/// use brasa_power::scenario::{BOUND, FORESIGHT};
///
/// let optimum = Optimum { value: 102.0, planned: 102.0, bound: 100.0 };
/// let schedule = Outcome { episode_return: Some(-102.0), ..Outcome::default() };
/// let bounds = Bounds::default();
/// bounds.outcome::<()>(FORESIGHT, (0, 7), || Ok((optimum, schedule)))?;
/// // The program of the episode is not solved again.
/// let bound = bounds.outcome::<()>(BOUND, (0, 7), || unreachable!("it is known"))?;
/// assert_eq!(bound.episode_return, Some(-100.0));
/// # Ok::<(), ()>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Bounds(Arc<Mutex<BTreeMap<(u64, u64), f64>>>);

impl Bounds {
    /// The outcome of a baseline with perfect foresight in `episode`: of the schedule, with the bound among its details, or for
    /// [`BOUND`] the bound of the return alone. `solve` gives the optimum and the outcome of its schedule.
    pub fn outcome<E>(
        &self,
        baseline: &str,
        episode: (u64, u64),
        solve: impl FnOnce() -> Result<(Optimum, Outcome), E>,
    ) -> Result<Outcome, E> {
        let of_bound = |bound: f64| Outcome { episode_return: Some(bound), ..Outcome::default() };
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&episode).copied();
        if let Some(bound) = known.filter(|_| baseline == BOUND) {
            return Ok(of_bound(bound));
        }
        let (optimum, mut outcome) = solve()?;
        let episode_return = outcome.episode_return.expect("a schedule is played");
        let bound = optimum.return_bound(episode_return);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(episode, bound);
        if baseline == BOUND {
            return Ok(of_bound(bound));
        }
        outcome.details.extend(optimum.details(episode_return));
        Ok(outcome)
    }
}
