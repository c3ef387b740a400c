//! A linear program, its solution, and the bound.

use thiserror::Error;

/// Minimizes `cost · x` with rows of linear terms and with finite limits for every variable.
///
/// ```
/// use brasa_lp::Program;
///
/// // Buy 3 kWh in two hours with different prices, at most 2 kWh in each.
/// let mut program = Program::default();
/// let hours = [0.2, 0.1].map(|price| program.variable(price, 0.0, 2.0));
/// program.equal(hours.map(|kwh| (kwh, 1.0)), 3.0);
/// let cost = program.cost_of(&program.solve()?);
/// assert!((cost - (0.2 * 1.0 + 0.1 * 2.0)).abs() < 1e-6);
/// # Ok::<(), brasa_lp::Unsolved>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Program {
    pub(crate) cost: Vec<f64>,
    pub(crate) lower: Vec<f64>,
    pub(crate) upper: Vec<f64>,
    pub(crate) equal: Rows,
    pub(crate) at_most: Rows,
}

/// A variable of a [`Program`].
///
/// ```
/// use brasa_lp::{Program, Variable};
///
/// let mut program = Program::default();
/// let power_kw: Variable = program.variable(0.2, -5.0, 5.0);
/// assert_eq!(program.limits(power_kw), (-5.0, 5.0));
/// // A distance from 2 kW that costs more than power itself.
/// program.distance(1.0, 7.0, &[(power_kw, 1.0)], 2.0);
/// assert!((program.solve()?.value(power_kw) - 2.0).abs() < 1e-6);
/// # Ok::<(), brasa_lp::Unsolved>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Variable(usize);

/// Rows of one kind, as triplets.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rows {
    pub(crate) row: Vec<usize>,
    pub(crate) column: Vec<usize>,
    pub(crate) factor: Vec<f64>,
    pub(crate) right: Vec<f64>,
}

/// What a solver found.
pub(crate) struct Solved {
    pub(crate) values: Vec<f64>,
    /// Multipliers of the equations, by which `cost + A' y + D' z` is 0 for variables between their limits.
    pub(crate) equal: Vec<f64>,
    /// Multipliers `z` of the inequalities, likewise.
    pub(crate) at_most: Vec<f64>,
}

/// A solution of a [`Program`].
///
/// ```
/// use brasa_lp::{Program, Solution};
///
/// let mut program = Program::default();
/// let x = program.variable(1.0, 0.0, 10.0);
/// program.at_most([(x, -1.0)], -4.0);
/// let solution: Solution = program.solve()?;
/// assert!((solution.value(x) - 4.0).abs() < 1e-6);
/// // No solution costs less than the bound.
/// assert!((3.99..=4.0).contains(&solution.bound()));
/// # Ok::<(), brasa_lp::Unsolved>(())
/// ```
#[derive(Debug, Clone)]
pub struct Solution {
    values: Vec<f64>,
    bound: f64,
}

/// A program without a solution: it has none, or the solver stopped before one.
///
/// ```
/// use brasa_lp::{Program, Unsolved};
///
/// // At most 1, but equal to 2.
/// let mut program = Program::default();
/// let x = program.variable(1.0, 0.0, 1.0);
/// program.equal([(x, 1.0)], 2.0);
/// let error: Unsolved = program.solve().unwrap_err();
/// assert!(!error.to_string().is_empty());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Unsolved(pub(crate) String);

impl Program {
    /// A variable from `lower` to `upper` with a cost per unit.
    ///
    /// # Panics
    /// If one of them is not finite, or if `lower` is above `upper`.
    pub fn variable(&mut self, cost: f64, lower: f64, upper: f64) -> Variable {
        let finite = [cost, lower, upper].iter().all(|x| x.is_finite());
        assert!(finite && lower <= upper, "a cost of {cost}, limits of {lower} and {upper}");
        self.cost.push(cost);
        self.lower.push(lower);
        self.upper.push(upper);
        Variable(self.cost.len() - 1)
    }

    /// Adds to the cost of a variable of this program.
    pub fn add_cost(&mut self, variable: Variable, cost: f64) {
        self.cost[variable.0] += cost;
    }

    /// The limits of a variable of this program.
    pub fn limits(&self, variable: Variable) -> (f64, f64) {
        (self.lower[variable.0], self.upper[variable.0])
    }

    /// A row `sum of factor * variable = right`.
    pub fn equal(&mut self, terms: impl IntoIterator<Item = (Variable, f64)>, right: f64) {
        self.equal.push(terms, right);
    }

    /// A row `sum of factor * variable <= right`.
    pub fn at_most(&mut self, terms: impl IntoIterator<Item = (Variable, f64)>, right: f64) {
        self.at_most.push(terms, right);
    }

    /// A variable that is at least `sum of factor * variable - right`, at least 0, and at most `most`, with a cost per unit.
    ///
    /// With a positive cost it is the part of the sum above `right`: an import that no supply covers, or energy beyond a limit.
    pub fn excess(
        &mut self,
        cost: f64,
        most: f64,
        terms: impl IntoIterator<Item = (Variable, f64)>,
        right: f64,
    ) -> Variable {
        let excess = self.variable(cost, 0.0, most);
        self.at_most(terms.into_iter().chain([(excess, -1.0)]), right);
        excess
    }

    /// A variable that is at least the distance between `sum of factor * variable` and `right`, and at most `most`, with a cost per unit.
    ///
    /// With a positive cost it is the distance: a change of power between two steps, for example.
    pub fn distance(&mut self, cost: f64, most: f64, terms: &[(Variable, f64)], right: f64) -> Variable {
        let distance = self.excess(cost, most, terms.iter().copied(), right);
        let negative = terms.iter().map(|(variable, factor)| (*variable, -factor));
        self.at_most(negative.chain([(distance, -1.0)]), -right);
        distance
    }

    /// The numbers in the rows. Clarabel was measured to take 450 to 800 bytes for each.
    pub fn n_terms(&self) -> usize {
        self.equal.row.len() + self.at_most.row.len()
    }

    /// Solves the program, with HiGHS if the crate has it and otherwise with Clarabel.
    ///
    /// # Errors
    /// If the program has no solution, or if the solver stops without one.
    pub fn solve(&self) -> Result<Solution, Unsolved> {
        #[cfg(feature = "highs")]
        let solved = crate::highs::solve(self)?;
        #[cfg(not(feature = "highs"))]
        let solved = crate::clarabel::solve(self)?;
        let bound = self.bound(&solved.equal, &solved.at_most);
        Ok(Solution { values: solved.values, bound })
    }

    /// The cost of a solution.
    pub fn cost_of(&self, solution: &Solution) -> f64 {
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
    /// No solution has a lower cost.
    ///
    /// It follows from the dual variables, and holds for any of them: a solver that stops early only makes it weaker.
    pub fn bound(&self) -> f64 {
        self.bound
    }

    /// The value of a variable.
    pub fn value(&self, variable: Variable) -> f64 {
        self.values[variable.0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_program_has_its_known_optimum() {
        // Minimize -3x - 5y with x <= 4, 2y <= 12, 3x + 2y <= 18: -36 at (2, 6).
        let mut program = Program::default();
        let (x, y) = (program.variable(-3.0, 0.0, 4.0), program.variable(-5.0, 0.0, 100.0));
        program.at_most([(y, 2.0)], 12.0);
        program.at_most([(x, 3.0), (y, 2.0)], 18.0);
        let solution = program.solve().unwrap();
        assert!((solution.value(x) - 2.0).abs() < 1e-6 && (solution.value(y) - 6.0).abs() < 1e-6);
        assert!(solution.bound() <= -36.0 + 1e-9 && solution.bound() > -36.0 - 1e-5, "{}", solution.bound());
    }

    #[test]
    fn a_distance_is_positive_on_both_sides() {
        for target in [1.0, 5.0] {
            let mut program = Program::default();
            let x = program.variable(0.0, 3.0, 3.0);
            let distance = program.distance(1.0, 10.0, &[(x, 1.0)], target);
            let solution = program.solve().unwrap();
            assert!((solution.value(distance) - 2.0).abs() < 1e-6, "{}", solution.value(distance));
        }
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
    fn an_infeasible_program_is_an_error() {
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
        let found = [crate::clarabel::solve(&program).unwrap(), crate::highs::solve(&program).unwrap()].map(|solved| {
            let bound = program.bound(&solved.equal, &solved.at_most);
            (program.cost_of(&Solution { values: solved.values, bound }), bound)
        });
        assert!(found[0].0 < -1.0);
        for (cost, bound) in found {
            assert!((cost - found[0].0).abs() < 1e-6 && (bound - cost).abs() < 1e-6, "{cost} {bound}");
        }
    }
}
