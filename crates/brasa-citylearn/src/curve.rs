//! Piecewise linear curves.

use brasa_power::{EnergyError, fail};
use serde::{Deserialize, Serialize};

/// A piecewise linear curve over `[0, 1]` through points.
///
/// ```
/// use brasa_citylearn::Curve;
///
/// let efficiency = Curve::through("power_efficiency", &[(0.0, 0.5), (1.0, 1.0)])?;
/// assert_eq!((efficiency.at(0.5), efficiency.at(1.0)), (0.75, 1.0));
/// let error = Curve::through("power_efficiency", &[(0.0, 0.5)]).unwrap_err();
/// assert!(error.to_string().starts_with("`power_efficiency` must have points whose first numbers rise from 0 to 1"));
/// # Ok::<(), brasa_citylearn::EnergyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    start: f64,
    segments: Vec<Segment>,
}

/// A segment between two points; the default contributes 0.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Segment {
    pub(super) from: f64,
    pub(super) length: f64,
    pub(super) slope: f64,
}

impl Curve {
    /// A constant curve.
    pub fn constant(value: f64) -> Self {
        Self { start: value, segments: Vec::new() }
    }

    /// The curve through `(x, y)` points; `field` names it in errors.
    ///
    /// # Errors
    /// If the points do not go from 0 to 1 in increasing order, or a value is outside `(0, 1]`. CityLearn
    /// extrapolates silently outside the points, so a curve must cover `[0, 1]`.
    pub fn through(field: &str, points: &[(f64, f64)]) -> Result<Self, EnergyError> {
        let fail = |rule: &str| fail(field, rule, format!("{points:?}"));
        let ends = (points.first().map(|p| p.0), points.last().map(|p| p.0));
        if points.len() < 2 || ends != (Some(0.0), Some(1.0)) || points.windows(2).any(|pair| pair[1].0 <= pair[0].0) {
            return fail("must have points whose first numbers rise from 0 to 1");
        }
        if points.iter().any(|(_, y)| !(*y > 0.0 && *y <= 1.0)) {
            return fail("must have values in (0, 1]");
        }
        let segments = points.windows(2).map(|pair| {
            let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
            Segment { from: x0, length: x1 - x0, slope: (y1 - y0) / (x1 - x0) }
        });
        Ok(Self { start: points[0].1, segments: segments.collect() })
    }

    /// The value at `x` in `[0, 1]`.
    ///
    /// Computed as a sum over the segments instead of a search, without branches that depend on `x`.
    #[inline]
    pub fn at(&self, x: f64) -> f64 {
        self.segments.iter().fold(self.start, |y, segment| {
            let inside = x - segment.from;
            let inside = if inside > 0.0 { inside } else { 0.0 };
            let inside = if inside < segment.length { inside } else { segment.length };
            y + segment.slope * inside
        })
    }

    pub(super) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The points, in increasing order.
    pub fn points(&self) -> Vec<(f64, f64)> {
        if self.segments.is_empty() {
            return vec![(0.0, self.start), (1.0, self.start)];
        }
        let ends = self.segments.iter().map(|segment| segment.from + segment.length);
        std::iter::once(0.0).chain(ends).map(|x| (x, self.at(x))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpolates_between_points_and_meets_them() {
        let points = [(0.0, 0.83), (0.3, 0.83), (0.7, 0.9), (0.8, 0.9), (1.0, 0.85)];
        let curve = Curve::through("curve", &points).expect("the points are in order");
        for (x, y) in points {
            approx::assert_abs_diff_eq!(curve.at(x), y, epsilon = 1e-15);
        }
        approx::assert_abs_diff_eq!(curve.at(0.5), 0.865, epsilon = 1e-15);
        approx::assert_abs_diff_eq!(curve.at(0.9), 0.875, epsilon = 1e-15);
    }

    #[test]
    fn refuses_curves_that_do_not_cover_the_range() {
        for points in [vec![(0.0, 0.9)], vec![(0.0, 0.9), (0.9, 0.8)], vec![(0.0, 0.9), (0.0, 0.8), (1.0, 0.8)]] {
            assert!(Curve::through("curve", &points).is_err(), "{points:?}");
        }
        let error = Curve::through("curve", &[(0.0, 0.0), (1.0, 1.0)]).expect_err("0 is no efficiency");
        assert!(error.to_string().contains("(0, 1]"), "{error}");
    }
}
