//! Linear programs, their solution, and a lower bound that does not depend on the solver.
//!
//! A [`Program`] minimizes a linear cost. Its rows are equations and inequalities, and every variable has finite limits. The
//! bound of a [`Solution`] is computed from the dual variables by weak duality. It holds for any dual variables, so a solver that
//! stops early only makes the bound weaker. The solver is Clarabel, or HiGHS with the feature `highs`.
//!
//! ```
//! use brasa_lp::Program;
//!
//! // Buy 3 kWh in two hours, 2 kWh at most in each; a price per kWh, and a price of the peak above 1 kWh.
//! let mut program = Program::default();
//! let hours = [0.2, 0.1].map(|price| program.variable(price, 0.0, 2.0));
//! program.equal(hours.map(|kwh| (kwh, 1.0)), 3.0);
//! let excess = hours.map(|kwh| program.excess(0.05, 1.0, [(kwh, 1.0)], 1.0));
//!
//! let solution = program.solve()?;
//! assert!((solution.value(hours[1]) - 2.0).abs() < 1e-6);
//! assert!((solution.value(excess[1]) - 1.0).abs() < 1e-6);
//! let cost = program.cost_of(&solution);
//! assert!(solution.bound() <= cost && cost < solution.bound() + 1e-6);
//! # Ok::<(), brasa_lp::Unsolved>(())
//! ```

#[cfg(any(test, not(feature = "highs")))]
mod clarabel;
#[cfg(feature = "highs")]
mod highs;
mod program;

pub use program::{Program, Solution, Unsolved, Variable};
