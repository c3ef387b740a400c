//! Formulas as data: what a kernel is translated from.

/// Nodes in the order of their computation, each known by its index.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Program {
    pub(crate) nodes: Vec<Node>,
    /// The values of each output, side by side.
    pub(crate) outputs: Vec<Vec<usize>>,
}

/// A value of every element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    /// The bits of a number.
    Constant(u32),
    Load(Load),
    /// The sum of the columns of an input in `first..end`.
    Sum {
        input: usize,
        first: usize,
        end: usize,
        by_row: bool,
    },
    /// The sum of the columns of an input from `first` on, up to that of the element.
    CumulativeSum {
        input: usize,
        first: usize,
        by_row: bool,
    },
    /// An operation with earlier nodes; those that it does not use are 0.
    Step(Operation, [usize; 3]),
}

/// An element of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Load {
    pub(crate) input: usize,
    /// The column of the first element.
    pub(crate) first: usize,
    /// Whether rows differ; else all have that of the first.
    pub(crate) by_row: bool,
    /// Whether columns differ.
    pub(crate) by_column: bool,
}

/// What a step computes. Conditions are 1 where they hold, and 0 elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
    /// The first operand unless the second is lower.
    Minimum,
    /// The first operand unless the second is greater.
    Maximum,
    Greater,
    GreaterEqual,
    /// The second operand where the first is not 0, else the third.
    Select,
    Negate,
    Abs,
    Sqrt,
    Sin,
    Cos,
    Exp,
    Ln,
    Floor,
}
