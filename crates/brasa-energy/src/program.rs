//! A linear programme, its solution, and a bound that does not depend on the solver.

use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, SolverStatus, SupportedConeT};

use crate::EnergyError;

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

    /// Solves the programme by an interior point method.
    ///
    /// # Errors
    /// [`EnergyError::Optimum`] if it has no solution, or if the solver stops without one.
    pub(crate) fn solve(&self) -> Result<Solution, EnergyError> {
        let (n, n_equal, n_at_most) = (self.cost.len(), self.equal.right.len(), self.at_most.right.len());
        let n_rows = n_equal + n_at_most + 2 * n;
        // Rows: equations, inequalities, lower limits as -x <= -lower, upper limits.
        let (mut row, mut column, mut factor) =
            (self.equal.row.clone(), self.equal.column.clone(), self.equal.factor.clone());
        row.extend(self.at_most.row.iter().map(|row| n_equal + row));
        column.extend(&self.at_most.column);
        factor.extend(&self.at_most.factor);
        for (block, sign) in [(0, -1.0), (1, 1.0)] {
            row.extend((0..n).map(|variable| n_equal + n_at_most + block * n + variable));
            column.extend(0..n);
            factor.extend(std::iter::repeat_n(sign, n));
        }
        let lower = self.lower.iter().map(|lower| -lower);
        let right: Vec<f64> = self
            .equal
            .right
            .iter()
            .chain(&self.at_most.right)
            .copied()
            .chain(lower)
            .chain(self.upper.clone())
            .collect();
        let matrix = CscMatrix::new_from_triplets(n_rows, n, row, column, factor);
        let cones = [SupportedConeT::ZeroConeT(n_equal), SupportedConeT::NonnegativeConeT(n_at_most + 2 * n)];
        let settings = DefaultSettings { verbose: false, ..DefaultSettings::default() };
        let mut solver = DefaultSolver::new(&CscMatrix::zeros((n, n)), &self.cost, &matrix, &right, &cones, settings)
            .map_err(|error| EnergyError::Optimum(error.to_string()))?;
        solver.solve();
        let solution = &solver.solution;
        if !matches!(solution.status, SolverStatus::Solved | SolverStatus::AlmostSolved) {
            return Err(EnergyError::Optimum(format!(
                "the solver ended with `{}` after {} iterations",
                solution.status, solution.iterations
            )));
        }
        let (equal, rest) = solution.z.split_at(n_equal);
        let bound = self.bound(equal, &rest[..n_at_most]);
        Ok(Solution { values: solution.x.clone(), bound })
    }

    /// The cost of a solution.
    pub(crate) fn cost_of(&self, solution: &Solution) -> f64 {
        self.cost.iter().zip(&solution.values).map(|(cost, value)| cost * value).sum()
    }

    /// A lower bound of the cost by weak duality: with multipliers `y` of the equations and `z >= 0` of the inequalities,
    /// `cost · x >= -y · b - z · d + sum of min over the limits of (cost + A' y + D' z)_j x_j`.
    fn bound(&self, equal: &[f64], at_most: &[f64]) -> f64 {
        let mut reduced = self.cost.clone();
        let mut bound = 0.0;
        for (rows, multipliers, smallest) in [(&self.equal, equal, f64::NEG_INFINITY), (&self.at_most, at_most, 0.0)] {
            for ((row, column), factor) in rows.row.iter().zip(&rows.column).zip(&rows.factor) {
                reduced[*column] += factor * multipliers[*row].max(smallest);
            }
            bound -= rows.right.iter().zip(multipliers).map(|(right, y)| right * y.max(smallest)).sum::<f64>();
        }
        let limits = self.lower.iter().zip(&self.upper);
        bound + reduced.iter().zip(limits).map(|(r, (lower, upper))| (r * lower).min(r * upper)).sum::<f64>()
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
        assert!(error.contains("PrimalInfeasible"), "{error}");
    }
}
