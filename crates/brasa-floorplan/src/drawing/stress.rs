//! A floor without special structure: squares whose distances approximate numbers of hops.
//!
//! Stress is minimized by majorization, with weights of one over the squared distance: Gansner, Koren and North,
//! "Graph drawing by stress majorization", 2004.

use super::geometry::{Point, bounds};
use super::{Floor, Shape};

/// Length of a hop, in m.
const HOP_M: f64 = 7.0;
/// Smallest and largest side of a square, in m.
const SIDE_M: [f64; 2] = [2.0, 4.6];
/// Smallest gap between squares, in m.
const GAP_M: f64 = 1.0;
/// Iterations of majorization; further ones have no visible effect.
const ROUNDS: usize = 200;
/// Iterations of separating squares.
const PUSHES: usize = 300;

/// The shapes of all places.
pub(super) fn draw(floor: &Floor<'_>) -> Vec<Shape> {
    let half: Vec<f64> =
        (0..floor.len()).map(|place| 0.5 * floor.node(place).area_m2.sqrt().clamp(SIDE_M[0], SIDE_M[1])).collect();
    let mut centers = vec![[0.0; 2]; floor.len()];
    let mut seen = vec![false; floor.len()];
    let mut x = 0.0;
    for place in 0..floor.len() {
        if seen[place] {
            continue;
        }
        let reached = floor.hops(place, |_| true);
        let members: Vec<usize> = (0..floor.len()).filter(|other| reached[*other].is_finite()).collect();
        members.iter().for_each(|member| seen[*member] = true);
        let halves: Vec<f64> = members.iter().map(|member| half[*member]).collect();
        let mut points = majorize(floor, &members);
        turn(&mut points);
        push_apart(&mut points, &halves);
        // Disconnected parts are placed next to each other.
        let corners: Vec<Point> = points
            .iter()
            .zip(&halves)
            .flat_map(|(p, half)| [[p[0] - half, p[1] - half], [p[0] + half, p[1] + half]])
            .collect();
        let (low, high) = bounds(corners);
        for (member, point) in members.iter().zip(&points) {
            centers[*member] = [point[0] - low[0] + x, point[1] - 0.5 * (low[1] + high[1])];
        }
        x += high[0] - low[0] + HOP_M;
    }
    let square = |(center, half): (Point, f64)| {
        Shape::upright([center[0] - half, center[1] - half], [center[0] + half, center[1] + half])
    };
    centers.into_iter().zip(half).map(square).collect()
}

/// Points for places that are joined, in m.
fn majorize(floor: &Floor<'_>, members: &[usize]) -> Vec<Point> {
    let n = members.len();
    let hops: Vec<Vec<f64>> = members
        .iter()
        .map(|member| {
            let all = floor.hops(*member, |_| true);
            members.iter().map(|other| all[*other]).collect()
        })
        .collect();
    // Initial coordinates are hops from distant places; places with equal coordinates are slightly separated.
    let farthest =
        |from: &dyn Fn(usize) -> f64| (0..n).fold(0, |best, place| if from(place) > from(best) { place } else { best });
    let first = farthest(&|place| hops[0][place]);
    let second = farthest(&|place| hops[first][place]);
    let third = farthest(&|place| hops[first][place].min(hops[second][place]));
    let mut points: Vec<Point> = (0..n)
        .map(|place| {
            let aside = 0.37 * (place % 5) as f64 / 5.0 + 0.01 * place as f64 / n as f64;
            let along = hops[first][place] - hops[second][place];
            [HOP_M * 0.5 * (along + 0.2 * aside), HOP_M * (hops[third][place] + aside)]
        })
        .collect();
    for _ in 0..ROUNDS {
        let before = points.clone();
        for place in 0..n {
            let (mut sum, mut weights) = ([0.0; 2], 0.0);
            for other in (0..n).filter(|other| *other != place) {
                let wanted = HOP_M * hops[place][other];
                let away = [points[place][0] - points[other][0], points[place][1] - points[other][1]];
                let apart = (away[0] * away[0] + away[1] * away[1]).sqrt().max(1e-6);
                let weight = 1.0 / (wanted * wanted);
                (0..2).for_each(|axis| sum[axis] += weight * (points[other][axis] + wanted * away[axis] / apart));
                weights += weight;
            }
            if weights > 0.0 {
                points[place] = sum.map(|x| x / weights);
            }
        }
        let moved = points.iter().zip(&before).flat_map(|(a, b)| [(a[0] - b[0]).abs(), (a[1] - b[1]).abs()]);
        if moved.fold(0.0, f64::max) < 1e-4 * HOP_M {
            break;
        }
    }
    points
}

/// Rotates points so that their largest extent is horizontal.
fn turn(points: &mut [Point]) {
    let n = points.len() as f64;
    let mean = [0, 1].map(|axis| points.iter().map(|point| point[axis]).sum::<f64>() / n);
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for point in points.iter_mut() {
        *point = [point[0] - mean[0], point[1] - mean[1]];
        xx += point[0] * point[0];
        xy += point[0] * point[1];
        yy += point[1] * point[1];
    }
    let half = 0.5 * (xx - yy);
    let largest = 0.5 * (xx + yy) + (half * half + xy * xy).sqrt();
    // Both are eigenvectors; the longer one has less rounding error.
    let axis = [[largest - yy, xy], [xy, largest - xx]]
        .into_iter()
        .max_by(|a, b| (a[0] * a[0] + a[1] * a[1]).total_cmp(&(b[0] * b[0] + b[1] * b[1])))
        .unwrap_or([1.0, 0.0]);
    let length = (axis[0] * axis[0] + axis[1] * axis[1]).sqrt();
    if length < 1e-9 {
        return;
    }
    let axis = axis.map(|x| x / length);
    for point in points {
        *point = [point[0] * axis[0] + point[1] * axis[1], point[1] * axis[0] - point[0] * axis[1]];
    }
}

/// Separates squares until there is a gap between all of them.
fn push_apart(points: &mut [Point], half: &[f64]) {
    for _ in 0..PUSHES {
        let mut moved = false;
        for a in 0..points.len() {
            for b in 0..a {
                let least = half[a] + half[b] + GAP_M;
                let away = [points[a][0] - points[b][0], points[a][1] - points[b][1]];
                let deep = away.map(|x| least - x.abs());
                if deep[0] <= 1e-9 || deep[1] <= 1e-9 {
                    continue;
                }
                moved = true;
                let axis = usize::from(deep[1] < deep[0]);
                let push = 0.5 * deep[axis] + 1e-6;
                let side = if away[axis] < 0.0 { -1.0 } else { 1.0 };
                points[a][axis] += side * push;
                points[b][axis] -= side * push;
            }
        }
        if !moved {
            return;
        }
    }
    // If separating is not enough, all positions are scaled up.
    let overlaps = |points: &[Point]| {
        (0..points.len()).any(|a| {
            (0..a).any(|b| {
                let least = half[a] + half[b];
                (0..2).all(|axis| (points[a][axis] - points[b][axis]).abs() < least)
            })
        })
    };
    while overlaps(points) {
        points.iter_mut().for_each(|point| *point = point.map(|x| 1.1 * x));
    }
}
