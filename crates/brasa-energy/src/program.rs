//! A linear programme, its solution, and a bound that does not depend on the solver.

#[cfg(any(test, not(feature = "highs")))]
mod clarabel;
#[cfg(feature = "highs")]
mod highs;

use brasa_env::field;

use crate::EnergyError;

/// Memory that a programme and its solver take per term, in bytes: 450 to 800 were measured with Clarabel.
pub(crate) const BYTES_PER_TERM: f64 = 800.0;

/// Minimizes `cost · x` with rows of linear terms and with finite limits for every variable.
#[derive(Debug, Default)]
pub(crate) struct Program {
    cost: Vec<f64>,
    lower: Vec<f64>,
    upper: Vec<f64>,
    equal: Rows,
    at_most: Rows,
}

/// A variable of a [`Program`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Variable(usize);

/// Rows of one kind, as triplets.
#[derive(Debug, Default)]
struct Rows {
    row: Vec<usize>,
    column: Vec<usize>,
    factor: Vec<f64>,
    right: Vec<f64>,
}

/// What a solver found.
struct Solved {
    values: Vec<f64>,
    /// Multipliers of the equations, by which `cost + A' y + D' z` is 0 for variables between their limits.
    equal: Vec<f64>,
    /// Multipliers `z` of the inequalities, likewise.
    at_most: Vec<f64>,
}

/// A solution of a [`Program`].
#[derive(Debug)]
pub(crate) struct Solution {
    values: Vec<f64>,
    /// The smallest cost is at least this, by the dual variables. It holds for any dual variables, so that a solver that
    /// stops early only makes it weaker.
    pub(crate) bound: f64,
}

impl Program {
    /// A variable from `lower` to `upper`, which must be finite.
    pub(crate) fn variable(&mut self, cost: f64, lower: f64, upper: f64) -> Variable {
        debug_assert!(cost.is_finite() && lower.is_finite() && upper.is_finite() && lower <= upper);
        self.cost.push(cost);
        self.lower.push(lower);
        self.upper.push(upper);
        Variable(self.cost.len() - 1)
    }

    /// Adds to the cost of a variable.
    pub(crate) fn add_cost(&mut self, variable: Variable, cost: f64) {
        self.cost[variable.0] += cost;
    }

    /// The limits of a variable.
    pub(crate) fn limits(&self, variable: Variable) -> (f64, f64) {
        (self.lower[variable.0], self.upper[variable.0])
    }

    /// A row `sum of factor * variable = right`.
    pub(crate) fn equal(&mut self, terms: impl IntoIterator<Item = (Variable, f64)>, right: f64) {
        self.equal.push(terms, right);
    }

    /// A row `sum of factor * variable <= right`.
    pub(crate) fn at_most(&mut self, terms: impl IntoIterator<Item = (Variable, f64)>, right: f64) {
        self.at_most.push(terms, right);
    }

    /// The numbers in the rows.
    pub(crate) fn n_terms(&self) -> usize {
        self.equal.row.len() + self.at_most.row.len()
    }

    /// Solves the programme, with HiGHS where the crate has it and otherwise with Clarabel.
    ///
    /// # Errors
    /// [`EnergyError::Optimum`] if it has no solution, or if the solver stops without one; [`EnergyError::Field`] if this machine has
    /// too little memory for the solver.
    pub(crate) fn solve(&self) -> Result<Solution, EnergyError> {
        field::fits_in_memory("optimum", true, self.n_terms() as f64 * BYTES_PER_TERM)?;
        #[cfg(feature = "highs")]
        let solved = highs::solve(self)?;
        #[cfg(not(feature = "highs"))]
        let solved = clarabel::solve(self)?;
        let bound = self.bound(&solved.equal, &solved.at_most);
        Ok(Solution { values: solved.values, bound })
    }

    /// The cost of a solution.
    pub(crate) fn cost_of(&self, solution: &Solution) -> f64 {
        self.cost.iter().zip(&solution.values).map(|(cost, value)| cost * value).sum()
    }

    /// A lower bound of the cost by weak duality: with multipliers `y` of the equations and `z >= 0` of the inequalities,
    /// `cost · x >= -y · b - z · d + sum of min over the limits of (cost + A' y + D' z)_j x_j`, less what the sums may lose in rounding.
    fn bound(&self, equal: &[f64], at_most: &[f64]) -> f64 {
        /// Part of the sum of magnitudes; sums of a hundred thousand terms were seen to lose 3e-15 of it.
        const ROUNDING: f64 = 1e-13;
        let mut reduced = self.cost.clone();
        let (mut bound, mut magnitude) = (0.0, 0.0);
        for (rows, multipliers, smallest) in [(&self.equal, equal, f64::NEG_INFINITY), (&self.at_most, at_most, 0.0)] {
            for ((row, column), factor) in rows.row.iter().zip(&rows.column).zip(&rows.factor) {
                reduced[*column] += factor * multipliers[*row].max(smallest);
            }
            for term in rows.right.iter().zip(multipliers).map(|(right, y)| right * y.max(smallest)) {
                bound -= term;
                magnitude += term.abs();
            }
        }
        for (r, (lower, upper)) in reduced.iter().zip(self.lower.iter().zip(&self.upper)) {
            let term = (r * lower).min(r * upper);
            bound += term;
            magnitude += term.abs();
        }
        bound - ROUNDING * magnitude
    }
}

impl Rows {
    fn push(&mut self, terms: impl IntoIterator<Item = (Variable, f64)>, right: f64) {
        for (variable, factor) in terms {
            self.row.push(self.right.len());
            self.column.push(variable.0);
            self.factor.push(factor);
        }
        self.right.push(right);
    }
}

impl Solution {
    /// The value of a variable.
    pub(crate) fn value(&self, variable: Variable) -> f64 {
        self.values[variable.0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_programme_has_its_known_optimum() {
        // Minimize -3x - 5y with x <= 4, 2y <= 12, 3x + 2y <= 18: -36 at (2, 6).
        let mut program = Program::default();
        let (x, y) = (program.variable(-3.0, 0.0, 4.0), program.variable(-5.0, 0.0, 100.0));
        program.at_most([(y, 2.0)], 12.0);
        program.at_most([(x, 3.0), (y, 2.0)], 18.0);
        let solution = program.solve().unwrap();
        assert!((solution.value(x) - 2.0).abs() < 1e-6 && (solution.value(y) - 6.0).abs() < 1e-6);
        assert!(solution.bound <= -36.0 + 1e-9 && solution.bound > -36.0 - 1e-5, "{}", solution.bound);
    }

    #[test]
    fn any_multipliers_give_a_bound() {
        let mut program = Program::default();
        let (x, y) = (program.variable(1.0, 0.0, 10.0), program.variable(2.0, -1.0, 10.0));
        program.equal([(x, 1.0), (y, 1.0)], 3.0);
        program.at_most([(x, 1.0)], 2.5);
        // The optimum is 2.5 + 2 * 0.5 = 3.5.
        for (y, z) in [(0.0, 0.0), (-2.0, 1.0), (-1.0, 0.0), (5.0, 7.0), (-2.0, -3.0)] {
            assert!(program.bound(&[y], &[z]) <= 3.5 + 1e-12, "{y} {z}");
        }
        assert!((program.bound(&[-2.0], &[1.0]) - 3.5).abs() < 1e-12);
    }

    #[test]
    fn an_infeasible_programme_is_an_error() {
        let mut program = Program::default();
        let x = program.variable(1.0, 0.0, 1.0);
        program.equal([(x, 1.0)], 2.0);
        let error = program.solve().unwrap_err().to_string();
        let status = if cfg!(feature = "highs") { "`Infeasible`" } else { "`PrimalInfeasible`" };
        assert!(error.contains(status), "{error}");
    }

    /// Both solvers find the same optimum, and their multipliers the same bound.
    #[cfg(feature = "highs")]
    #[test]
    fn solvers_agree() {
        let mut program = Program::default();
        // A battery over ten steps with prices: charge, discharge, energy.
        let mut before: Option<Variable> = None;
        for step in 0..10 {
            let price = 1.0 + f64::from(step * 7 % 5);
            let (charge, discharge) = (program.variable(price, 0.0, 2.0), program.variable(-0.9 * price, 0.0, 2.0));
            let energy = program.variable(0.0, 0.0, 5.0);
            let gain = [(energy, 1.0), (charge, -0.95), (discharge, 1.0 / 0.95)];
            program.equal(gain.into_iter().chain(before.map(|before| (before, -1.0))), 0.0);
            program.at_most([(charge, 1.0), (discharge, 1.0)], 2.5);
            before = Some(energy);
        }
        let found = [clarabel::solve(&program).unwrap(), highs::solve(&program).unwrap()].map(|solved| {
            let bound = program.bound(&solved.equal, &solved.at_most);
            (program.cost_of(&Solution { values: solved.values, bound }), bound)
        });
        assert!(found[0].0 < -1.0);
        for (cost, bound) in found {
            assert!((cost - found[0].0).abs() < 1e-6 && (bound - cost).abs() < 1e-6, "{cost} {bound}");
        }
    }
}
