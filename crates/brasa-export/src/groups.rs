//! The same layers on several groups of columns, as one layer.

use crate::Layer;

/// Layers that are applied to each group of columns; their results follow one another.
///
/// A Q-network over pairs of items is of this form: group `(i, j)` has the numbers of item `i` and those of item `j`.
///
/// ```
/// use brasa_export::{ExportedPolicy, Groups, Layer, Output};
///
/// # let policy = |obs_width, layers, output| ExportedPolicy {
/// #     obs_width, n_agents: 1, masked: false, layers, output, about: brasa_export::About::default(),
/// # };
/// // The sums of columns 0 and 2, and of columns 1 and 2.
/// let layers = vec![Layer::linear(vec![1.0, 1.0], vec![0.0])];
/// let groups = Groups { width: 2, columns: vec![0, 2, 1, 2], layers };
/// let policy: ExportedPolicy = policy(3, vec![Layer::Groups(groups)], Output::Real);
/// assert_eq!(policy.act(&[1.0, 2.0, 10.0], None), [11.0, 12.0]);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Groups {
    /// Columns of a group.
    pub width: usize,
    /// `[n_groups, width]`: indices of columns of the input. A column may be in several groups.
    pub columns: Vec<usize>,
    /// From the columns of a group to its result, with the same weights for all agents.
    pub layers: Vec<Layer>,
}

impl Groups {
    pub(crate) fn n_groups(&self) -> usize {
        self.columns.len() / self.width
    }

    /// Width of the input of each layer, and of the result of one group.
    pub(crate) fn widths(&self) -> Vec<usize> {
        let widths = self.checked().expect("the layers were checked");
        debug_assert_eq!(widths.len(), self.layers.len() + 1);
        widths
    }

    /// Width of the result for an input of `width`.
    pub(crate) fn result(&self, width: usize) -> Result<usize, String> {
        if self.width == 0 || self.columns.is_empty() || !self.columns.len().is_multiple_of(self.width) {
            let n = self.columns.len();
            return Err(format!("`columns` must have a positive multiple of {} indices, got {n}", self.width));
        }
        if let Some(column) = self.columns.iter().find(|column| **column >= width) {
            return Err(format!("`columns` must be below {width}, got {column}"));
        }
        let widths = self.checked()?;
        let result = widths[self.layers.len()].checked_mul(self.n_groups());
        result.ok_or_else(|| format!("{} groups have too many columns", self.n_groups()))
    }

    fn checked(&self) -> Result<Vec<usize>, String> {
        crate::policy::inner_widths(&self.layers, self.width, "a group")
    }

    pub(crate) fn forward(&self, x: &[f32], y: &mut Vec<f32>) {
        let (mut own, mut result) = (Vec::new(), Vec::new());
        for group in self.columns.chunks_exact(self.width) {
            own.clear();
            own.extend(group.iter().map(|column| x[*column]));
            crate::policy::forward_inside(&self.layers, &mut own, &mut result);
            y.extend_from_slice(&own);
        }
    }
}
