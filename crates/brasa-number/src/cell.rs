//! Cells of recurrent layers.

use crate::Number;

/// A rule of single numbers: `IN` numbers to `OUT` others, without sums over a row.
///
/// ```
/// use brasa_number::{CellRule, Dual, Gru};
///
/// // With its update gate shut, a cell keeps what it remembers, and so does the derivative.
/// let [h] = Gru.cell(Dual::variables([0.0, 50.0, 0.3, 0.1, 0.7]));
/// assert_eq!((h.value, h.by(4)), (0.7, 1.0));
/// ```
pub trait CellRule<const IN: usize, const OUT: usize>: Copy {
    /// The numbers of a cell.
    fn cell<N: Number>(self, from: [N; IN]) -> [N; OUT];
}

/// A cell of a long short-term memory (Hochreiter and Schmidhuber 1997, with a forget gate), as in PyTorch: from the inputs of its gates `i`,
/// `f`, `g` and `o` and its memory `c`, to its output and its new memory.
///
/// `c' = sigmoid(f) c + sigmoid(i) tanh(g)` and `h' = sigmoid(o) tanh(c')`.
///
/// ```
/// use brasa_number::{CellRule, Lstm};
///
/// // An open forget gate and a shut input gate: the memory stays.
/// let [h, c] = Lstm.cell([-50.0, 50.0, 0.3, 50.0, 0.7]);
/// assert_eq!((h, c), (0.7f64.tanh(), 0.7));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Lstm;

impl CellRule<5, 2> for Lstm {
    #[inline(always)]
    fn cell<N: Number>(self, [i, f, g, o, c]: [N; 5]) -> [N; 2] {
        let memory = sigmoid(f) * c + sigmoid(i) * g.tanh();
        [sigmoid(o) * memory.tanh(), memory]
    }
}

/// A gated recurrent unit (Cho et al. 2014), as in PyTorch: from the inputs of its gates `r` and `z`, the two parts of its candidate, and its
/// output `h` of the step before, to its new output.
///
/// `n = tanh(n_x + sigmoid(r) n_h)` and `h' = (1 - sigmoid(z)) n + sigmoid(z) h`.
///
/// ```
/// use brasa_number::{CellRule, Gru};
///
/// // An open reset gate and a shut update gate: the candidate replaces the output.
/// let [h] = Gru.cell([50.0, -50.0, 0.3, 0.1, 0.7]);
/// assert_eq!(h, 0.4f64.tanh());
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Gru;

impl CellRule<5, 1> for Gru {
    #[inline(always)]
    fn cell<N: Number>(self, [r, z, n_x, n_h, h]: [N; 5]) -> [N; 1] {
        let (candidate, keeps) = ((n_x + sigmoid(r) * n_h).tanh(), sigmoid(z));
        [candidate + keeps * (h - candidate)]
    }
}

/// `1 / (1 + exp(-x))`, by the hyperbolic tangent, which does not overflow.
#[inline(always)]
fn sigmoid<N: Number>(x: N) -> N {
    (x * 0.5).tanh() * 0.5 + 0.5
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dual, Single};

    /// Cells written out with the functions of the standard library.
    #[test]
    fn cells_are_those_of_their_papers() {
        let s = |x: f64| 1.0 / (1.0 + (-x).exp());
        for k in 0..20 {
            let x: [f64; 5] = std::array::from_fn(|i| 3.0 * ((5 * k + i) as f64 * 0.7).sin());
            let [i, f, g, o, c] = x;
            let memory = s(f) * c + s(i) * g.tanh();
            let [h, new] = Lstm.cell(x);
            assert!((h - s(o) * memory.tanh()).abs() < 1e-12 && (new - memory).abs() < 1e-12);
            let [r, z, n_x, n_h, before] = x;
            let candidate = (n_x + s(r) * n_h).tanh();
            let [h] = Gru.cell(x);
            assert!((h - ((1.0 - s(z)) * candidate + s(z) * before)).abs() < 1e-12);
            let [single] = Gru.cell(x.map(|x| Single(x as f32)));
            assert!((f64::from(single.0) - h).abs() < 1e-6);
        }
    }

    #[test]
    fn derivatives_are_those_of_small_differences() {
        let x = [0.3, -0.8, 1.2, 0.4, -0.6];
        let [h, c] = Lstm.cell(Dual::variables(x));
        let [g] = Gru.cell(Dual::variables(x));
        for i in 0..5 {
            let moved = |by: f64| {
                let mut x = x;
                x[i] += by;
                let [h, c] = Lstm.cell(x);
                [h, c, Gru.cell(x)[0]]
            };
            let (up, down) = (moved(1e-6), moved(-1e-6));
            for (k, slope) in [h.by(i), c.by(i), g.by(i)].into_iter().enumerate() {
                assert!((slope - (up[k] - down[k]) / 2e-6).abs() < 1e-8, "{i} {k}");
            }
        }
    }
}
