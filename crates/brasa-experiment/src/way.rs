//! The normalized return: where a return lies between doing nothing and the best that is known.

use brasa_env::BaselineKind;

use crate::comparison::Row;

/// The returns of doing nothing and of the optimum, or of the bound, or of the best known plan.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Way {
    idle: f64,
    best: f64,
    /// Names of both baselines.
    names: [String; 2],
}

impl Way {
    /// From the idle baseline to the optimum, bound or plan among `rows`, if both have a return. A bound is no smaller than the
    /// return of any controller; a plan may be.
    pub fn among(rows: &[Row]) -> Option<Self> {
        let find = |kind: BaselineKind| {
            let row = rows.iter().find(|row| row.kind == Some(kind))?;
            Some((row.name.clone(), row.episode_return?.0))
        };
        let (idle_name, idle) = find(BaselineKind::Idle)?;
        let upper = [BaselineKind::Optimum, BaselineKind::Bound, BaselineKind::Plan].into_iter().find_map(find);
        let (best_name, best) = upper?;
        (best > idle).then_some(Self { idle, best, names: [idle_name, best_name] })
    }

    /// The normalized return: 0 for the idle baseline, 1 for the upper reference.
    pub fn share(&self, episode_return: f64) -> f64 {
        (episode_return - self.idle) / (self.best - self.idle)
    }

    /// A sentence for tables.
    pub fn note(&self) -> String {
        format!("Normalized return: {} is 0, {} is 1.", self.names[0], self.names[1])
    }

    /// The names of the references, lower and upper.
    pub fn names(&self) -> &[String; 2] {
        &self.names
    }
}

/// Label of [`Way::share`] in tables, below the return.
pub(crate) const WAY: &str = "  normalized return";
