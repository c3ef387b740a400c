//! The interior point method of Clarabel, in Rust alone.

use ::clarabel::algebra::CscMatrix;
use ::clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, SolverStatus, SupportedConeT};

use crate::program::{Program, Solved, Unsolved};

pub(crate) fn solve(program: &Program) -> Result<Solved, Unsolved> {
    let Program { cost, lower, upper, equal, at_most } = program;
    let (n, n_equal, n_at_most) = (cost.len(), equal.right.len(), at_most.right.len());
    let n_rows = n_equal + n_at_most + 2 * n;
    // Rows: equations, inequalities, lower limits as -x <= -lower, upper limits.
    let (mut row, mut column, mut factor) = (equal.row.clone(), equal.column.clone(), equal.factor.clone());
    row.extend(at_most.row.iter().map(|row| n_equal + row));
    column.extend(&at_most.column);
    factor.extend(&at_most.factor);
    for (block, sign) in [(0, -1.0), (1, 1.0)] {
        row.extend((0..n).map(|variable| n_equal + n_at_most + block * n + variable));
        column.extend(0..n);
        factor.extend(std::iter::repeat_n(sign, n));
    }
    let lower = lower.iter().map(|lower| -lower);
    let right: Vec<f64> =
        equal.right.iter().chain(&at_most.right).copied().chain(lower).chain(upper.iter().copied()).collect();
    let matrix = CscMatrix::new_from_triplets(n_rows, n, row, column, factor);
    let cones = [SupportedConeT::ZeroConeT(n_equal), SupportedConeT::NonnegativeConeT(n_at_most + 2 * n)];
    let settings = DefaultSettings { verbose: false, ..DefaultSettings::default() };
    let mut solver = DefaultSolver::new(&CscMatrix::zeros((n, n)), cost, &matrix, &right, &cones, settings)
        .map_err(|error| Unsolved(error.to_string()))?;
    solver.solve();
    let solution = &solver.solution;
    if !matches!(solution.status, SolverStatus::Solved | SolverStatus::AlmostSolved) {
        return Err(Unsolved(format!(
            "the solver ended with `{}` after {} iterations",
            solution.status, solution.iterations
        )));
    }
    let (equal, rest) = solution.z.split_at(n_equal);
    Ok(Solved { values: solution.x.clone(), equal: equal.to_vec(), at_most: rest[..n_at_most].to_vec() })
}
