//! Derivatives that come with a rule are those of the function.

use brasa_number::{Dual, Number, Single};
use proptest::prelude::*;

/// Every operation of two numbers.
fn everything<N: Number>(x: N, y: N) -> Vec<N> {
    vec![
        x + y * 3.0 - 1.0,
        (x - y) * (y + 2.0) / (x.square() + 1.5),
        -(x * 0.5).exp() / (y.abs() + 0.7),
        (x.abs() + 0.3).ln() * (y.square() + 0.2).sqrt(),
        x.min(y) * 2.0 + x.max(y).square(),
        x.clamp(-0.5, 0.75) * y - x.min_of(0.1) + y.max_of(-0.2),
        N::select(x.lower(y), x * y, x / (y.square() + 1.0)),
        x.or_zero(y.lower(x)) + y.or_zero(x.equal(x)),
        x.constant(4.0) - y,
        (x * 1.5).sin() * y.cos() + (y + 2.0).floor(),
        (x * y).tanh() - (x.abs() * 0.2).ln_1p(),
        x.modulo(5.0) * y,
        (x.square() + 0.4).log2() * y + (y.square() + 0.6).log10(),
        (x * y).or_zero(N::both(x.lower(y), y.greater(x.constant(-3.0)))),
        x.or_zero(N::either(y.lower(x), y.greater(x))),
    ]
}

/// Whether a step of the differences crosses a place without derivative.
fn is_near_a_kink(x: f64, y: f64) -> bool {
    let kinks = [x, y, x - y, x + 0.5, x - 0.75, x - 0.1, y + 0.2, y - y.round()];
    kinks.iter().any(|distance| distance.abs() < 1e-4)
}

proptest! {
    #[test]
    fn equal_central_differences(x in -2.0f64..2.0, y in -2.0f64..2.0) {
        prop_assume!(!is_near_a_kink(x, y));
        const H: f64 = 1e-6;
        let [u, v] = Dual::variables([x, y]);
        let values = everything(u, v);
        let by_x = everything(x + H, y).into_iter().zip(everything(x - H, y));
        let by_y = everything(x, y + H).into_iter().zip(everything(x, y - H));
        for (i, ((value, by_x), by_y)) in values.iter().zip(by_x).zip(by_y).enumerate() {
            prop_assert_eq!(value.value, everything(x, y)[i]);
            for (got, (high, low)) in [(value.by(0), by_x), (value.by(1), by_y)] {
                let expected = (high - low) / (2.0 * H);
                prop_assert!((got - expected).abs() < 1e-7 * expected.abs().max(1.0), "{}: {} instead of {}", i, got, expected);
            }
        }
    }

    #[test]
    fn thirty_two_bits_are_those_of_sixty_four(x in -2.0f32..2.0, y in -2.0f32..2.0) {
        let wide = everything(f64::from(x), f64::from(y));
        for (i, (got, expected)) in everything(Single(x), Single(y)).into_iter().zip(wide).enumerate() {
            let gap = (f64::from(got.0) - expected).abs();
            prop_assert!(gap < 2e-6 * expected.abs().max(1.0), "{}: {:?} instead of {}", i, got, expected);
        }
    }
}

#[test]
fn what_does_not_matter_has_no_derivative() {
    let [x, y] = Dual::variables([2.0, 3.0]);
    let z = (x * 4.0).exp() - x.constant(1.0);
    assert!(z.slopes[0].is_some() && z.slopes[1].is_none());
    assert_eq!(z.by(1), 0.0);
    assert!((z * y).slopes.iter().all(Option::is_some));
}

#[test]
fn what_is_not_a_number_shows() {
    let nan = f64::NAN;
    for results in [everything(nan, 1.0), everything(1.0, nan)] {
        // The first operand stays if a comparison fails, as `select` does.
        let shown = results.iter().filter(|x| x.is_nan()).count();
        assert!(shown >= 6, "{results:?}");
    }
    assert!(Number::min(nan, 1.0).is_nan() && Number::max(nan, 1.0).is_nan());
    assert!(Number::clamp(nan, 0.0, 1.0).is_nan() && Number::abs(nan).is_nan());
    let [x] = Dual::variables([Single(f32::INFINITY)]);
    assert!((x - x).value.0.is_nan() && x.exp().value.0 == f32::INFINITY);
}
