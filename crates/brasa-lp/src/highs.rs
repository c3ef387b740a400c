//! HiGHS, a library in C++, on one thread.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use ::highs::{HighsModelStatus, RowProblem, Sense};

use crate::program::{Program, Rows, Solved, Unsolved};

pub(crate) fn solve(program: &Program) -> Result<Solved, Unsolved> {
    let mut problem = RowProblem::default();
    let limits = program.lower.iter().zip(&program.upper);
    let columns: Vec<_> = program
        .cost
        .iter()
        .zip(limits)
        .map(|(cost, (lower, upper))| problem.add_column(*cost, *lower..=*upper))
        .collect();
    let mut add = |rows: &Rows, is_equation: bool| {
        // It refuses rows that name a variable twice.
        let mut terms = vec![BTreeMap::new(); rows.right.len()];
        for ((row, column), factor) in rows.row.iter().zip(&rows.column).zip(&rows.factor) {
            *terms[*row].entry(*column).or_insert(0.0) += factor;
        }
        for (right, terms) in rows.right.iter().zip(terms) {
            let terms = terms.into_iter().map(|(column, factor)| (columns[column], factor));
            match is_equation {
                true => problem.add_row(*right..=*right, terms),
                false => problem.add_row(..=*right, terms),
            };
        }
    };
    add(&program.equal, true);
    add(&program.at_most, false);
    let failed = |status: String| Unsolved(format!("the solver ended with `{status}`"));
    let mut model = problem.try_optimise(Sense::Minimise).map_err(|status| failed(format!("{status:?}")))?;
    model.make_quiet();
    model.set_threads(NonZeroU32::MIN);
    let solved = model.try_solve().map_err(|status| failed(format!("{status:?}")))?;
    if solved.status() != HighsModelStatus::Optimal {
        return Err(failed(format!("{:?}", solved.status())));
    }
    let solution = solved.get_solution();
    // Its multipliers are the derivatives of the smallest cost by the right sides.
    let mut equal: Vec<f64> = solution.dual_rows().iter().map(|dual| -dual).collect();
    let at_most = equal.split_off(program.equal.right.len());
    Ok(Solved { values: solution.columns().to_vec(), equal, at_most })
}
