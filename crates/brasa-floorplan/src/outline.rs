//! Conversion of outlines between a layout and `geo`.

use geo::{LineString, Polygon};

/// The polygon with these corners, the first not repeated.
pub(crate) fn polygon(corners: impl IntoIterator<Item = [f64; 2]>) -> Polygon {
    Polygon::new(LineString::from_iter(corners), Vec::new())
}

/// Corners of a polygon, the first not repeated.
pub(crate) fn corners(outline: &Polygon) -> Vec<[f64; 2]> {
    let ring = &outline.exterior().0;
    ring[..ring.len().saturating_sub(1)].iter().map(|corner| (*corner).into()).collect()
}
