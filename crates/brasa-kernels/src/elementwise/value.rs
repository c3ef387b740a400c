//! Numbers in formulas.

use std::ops::{Add, Div, Mul, Neg, Not, Sub};

use brasa_number::Number;

use super::{Formulas, Node, Operation};

/// A number per element, in a formula of [`super::elementwise`]. Conditions are numbers, too: 1 where they hold, and 0 elsewhere.
///
/// Computing with it records what to compute. Numbers are f32; `f64` operands are rounded to that.
///
/// ```
/// use brasa_kernels::{Value, elementwise};
/// use burn::tensor::Tensor;
/// # fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
/// #     tensor.into_data().iter::<f32>().collect()
/// # }
///
/// /// The linear part of Huber's loss where the error is above 1, and the square elsewhere.
/// fn huber(error: Value<'_>) -> Value<'_> {
///     error.abs().greater(1.0).select(error.abs() - 0.5, error.square() * 0.5)
/// }
///
/// let error = Tensor::<2>::from_floats([[0.5, -3.0]], &brasa_device::open_named("cpu")?);
/// let [loss] = elementwise([1, 2], |formulas| [vec![huber(formulas.read(&error))]]);
/// assert_eq!(numbers(loss), [0.125, 2.5]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Value<'a> {
    formulas: &'a Formulas,
    index: usize,
}

/// The other operand of an operation: a [`Value`], or the same `f64` for all elements.
///
/// ```
/// use brasa_kernels::{Operand, Value, elementwise};
/// use burn::tensor::Tensor;
/// # fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
/// #     tensor.into_data().iter::<f32>().collect()
/// # }
///
/// /// Whether a value is in a range whose ends are numbers or values.
/// fn inside<'a>(x: Value<'a>, low: impl Operand<'a>, high: impl Operand<'a>) -> Value<'a> {
///     x.greater_equal(low).and(x.lower_equal(high))
/// }
///
/// let x = Tensor::<2>::from_floats([[0.5, 2.0]], &brasa_device::open_named("cpu")?);
/// let [flags] = elementwise([1, 2], |formulas| {
///     let x = formulas.read(&x);
///     [vec![inside(x, 0.0, 1.0), inside(x, 0.0, x * 2.0)]]
/// });
/// assert_eq!(numbers(flags), [1.0, 0.0, 1.0, 1.0]);
/// # Ok::<(), brasa_device::DeviceError>(())
/// ```
pub trait Operand<'a> {
    /// As a value of the formulas of `other`.
    fn beside(self, other: Value<'a>) -> Value<'a>;
}

impl<'a> Operand<'a> for Value<'a> {
    fn beside(self, _: Value<'a>) -> Value<'a> {
        self
    }
}

impl<'a> Operand<'a> for f64 {
    fn beside(self, other: Value<'a>) -> Value<'a> {
        other.formulas.constant(self)
    }
}

impl<'a> Value<'a> {
    pub(super) fn new(formulas: &'a Formulas, index: usize) -> Self {
        Self { formulas, index }
    }

    pub(crate) fn index(self) -> usize {
        self.index
    }

    /// The same number for all elements.
    pub fn constant(self, value: f64) -> Self {
        self.formulas.constant(value)
    }

    fn unary(self, operation: Operation) -> Self {
        self.formulas.push(Node::Step(operation, [self.index, 0, 0]))
    }

    fn binary(self, operation: Operation, other: Self) -> Self {
        self.formulas.push(Node::Step(operation, [self.index, other.index, 0]))
    }

    /// The absolute value.
    pub fn abs(self) -> Self {
        self.unary(Operation::Abs)
    }

    /// The square root.
    pub fn sqrt(self) -> Self {
        self.unary(Operation::Sqrt)
    }

    /// The square.
    pub fn square(self) -> Self {
        self * self
    }

    /// The sine of radians.
    pub fn sin(self) -> Self {
        self.unary(Operation::Sin)
    }

    /// The cosine of radians.
    pub fn cos(self) -> Self {
        self.unary(Operation::Cos)
    }

    /// The exponential.
    pub fn exp(self) -> Self {
        self.unary(Operation::Exp)
    }

    /// The natural logarithm.
    pub fn ln(self) -> Self {
        self.unary(Operation::Ln)
    }

    /// `ln(1 + x)` with all digits of a small `x`.
    ///
    /// Near 0 from the series of the inverse hyperbolic tangent of `x / (2 + x)`: unlike forms that add and subtract 1, it does not depend on
    /// the order in which a compiler adds.
    pub fn ln_1p(self) -> Self {
        let t = self / (self + 2.0);
        let square = t * t;
        let series = ((((square * (1.0 / 9.0)) + 1.0 / 7.0) * square + 0.2) * square + 1.0 / 3.0) * square + 1.0;
        self.abs().lower(0.25).select(t * 2.0 * series, (self + 1.0).ln())
    }

    /// The hyperbolic tangent.
    pub fn tanh(self) -> Self {
        self.unary(Operation::Tanh)
    }

    /// The largest whole number that is not above this.
    pub fn floor(self) -> Self {
        self.unary(Operation::Floor)
    }

    /// The lower of two numbers; this one if one of them is not a number.
    pub fn min(self, other: impl Operand<'a>) -> Self {
        self.binary(Operation::Minimum, other.beside(self))
    }

    /// The greater of two numbers; this one if one of them is not a number.
    pub fn max(self, other: impl Operand<'a>) -> Self {
        self.binary(Operation::Maximum, other.beside(self))
    }

    /// At least `low` and at most `high`.
    pub fn clamp(self, low: impl Operand<'a>, high: impl Operand<'a>) -> Self {
        self.max(low).min(high)
    }

    /// Whether this is greater.
    pub fn greater(self, other: impl Operand<'a>) -> Self {
        self.binary(Operation::Greater, other.beside(self))
    }

    /// Whether this is greater or equal.
    pub fn greater_equal(self, other: impl Operand<'a>) -> Self {
        self.binary(Operation::GreaterEqual, other.beside(self))
    }

    /// Whether this is lower.
    pub fn lower(self, other: impl Operand<'a>) -> Self {
        other.beside(self).greater(self)
    }

    /// Whether this is lower or equal.
    pub fn lower_equal(self, other: impl Operand<'a>) -> Self {
        other.beside(self).greater_equal(self)
    }

    /// Whether both numbers are the same.
    pub fn equal(self, other: impl Operand<'a>) -> Self {
        self.binary(Operation::Equal, other.beside(self))
    }

    /// Whether both conditions hold.
    pub fn and(self, other: Self) -> Self {
        self * other
    }

    /// Whether one of two conditions holds.
    pub fn or(self, other: Self) -> Self {
        self.max(other)
    }

    /// `yes` where this condition holds, and `no` elsewhere. The other one is computed too, and does not matter there even if it is not a
    /// number.
    pub fn select(self, yes: impl Operand<'a>, no: impl Operand<'a>) -> Self {
        let operands = [self.index, yes.beside(self).index, no.beside(self).index];
        self.formulas.push(Node::Step(Operation::Select, operands))
    }
}

impl<'a, T: Operand<'a>> Add<T> for Value<'a> {
    type Output = Self;

    fn add(self, other: T) -> Self {
        self.binary(Operation::Add, other.beside(self))
    }
}

impl<'a, T: Operand<'a>> Sub<T> for Value<'a> {
    type Output = Self;

    fn sub(self, other: T) -> Self {
        self.binary(Operation::Subtract, other.beside(self))
    }
}

impl<'a, T: Operand<'a>> Mul<T> for Value<'a> {
    type Output = Self;

    fn mul(self, other: T) -> Self {
        self.binary(Operation::Multiply, other.beside(self))
    }
}

impl<'a, T: Operand<'a>> Div<T> for Value<'a> {
    type Output = Self;

    fn div(self, other: T) -> Self {
        self.binary(Operation::Divide, other.beside(self))
    }
}

impl Neg for Value<'_> {
    type Output = Self;

    fn neg(self) -> Self {
        self.unary(Operation::Negate)
    }
}

/// Whether a condition does not hold.
impl Not for Value<'_> {
    type Output = Self;

    fn not(self) -> Self {
        self.select(0.0, 1.0)
    }
}

/// Functions that [`Value`] has by the same names.
macro_rules! own {
    ($($name:ident ($($argument:ident),*)),*) => {$(
        fn $name(self, $($argument: Self),*) -> Self {
            Value::$name(self, $($argument),*)
        }
    )*};
}

impl Number for Value<'_> {
    type Mask = Self;

    own!(exp(), ln(), ln_1p(), tanh(), sqrt(), sin(), cos(), floor(), lower(other), equal(other));

    fn constant(self, value: f64) -> Self {
        Value::constant(self, value)
    }

    fn not(mask: Self) -> Self {
        !mask
    }

    fn both(one: Self, other: Self) -> Self {
        one.and(other)
    }

    fn either(one: Self, other: Self) -> Self {
        one.or(other)
    }

    fn select(mask: Self, yes: Self, no: Self) -> Self {
        Value::select(mask, yes, no)
    }
}
