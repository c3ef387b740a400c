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
    /// The column of a part that the node `index` tells.
    Pick {
        part: Part,
        index: usize,
    },
    /// The sum of all columns.
    Sum(Part),
    /// The greatest of all columns.
    Max(Part),
    /// The sum of the columns before that of the element.
    SumBefore(Part),
    /// The sum of the columns behind that of the element.
    SumAfter(Part),
    /// The number of columns that are greater than that of the element, or equal and before it.
    Rank(Part),
    /// The number of columns before the first one that equals the node `value`.
    Find {
        part: Part,
        value: usize,
    },
    /// The number of columns that equal the node `value`.
    Count {
        part: Part,
        value: usize,
    },
    /// The sum of the columns in whose places `keys` equals the node `value`.
    SumWhere {
        part: Part,
        keys: Part,
        value: usize,
    },
    /// An argument of a launch, or a number that a kernel around the program computes.
    Given(usize),
    /// An operation with earlier nodes; those that it does not use are 0.
    Step(Operation, [usize; 3]),
}

/// An element of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Load {
    pub(crate) part: Part,
    /// Whether columns differ.
    pub(crate) by_column: bool,
}

/// Columns of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Part {
    pub(crate) input: usize,
    pub(crate) rows: Rows,
    pub(crate) first: usize,
    pub(crate) end: usize,
}

/// The row of an input that belongs to a row of the outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Rows {
    /// The first one belongs to all.
    One,
    /// That with the same number.
    Each,
    /// One for as many rows that follow each other.
    Groups(usize),
    /// As many, again and again.
    Cycle(usize),
}

#[cfg(feature = "flex")]
impl Rows {
    /// Rows of the input.
    pub(crate) fn count(self, n_rows: usize) -> usize {
        match self {
            Self::One => 1,
            Self::Each => n_rows,
            Self::Groups(size) => n_rows / size,
            Self::Cycle(n) => n,
        }
    }

    /// The row of the input for a row of the outputs.
    pub(crate) fn of(self, row: usize) -> usize {
        match self {
            Self::One => 0,
            Self::Each => row,
            Self::Groups(size) => row / size,
            Self::Cycle(n) => row % n,
        }
    }
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
    Equal,
    /// The second operand where the first is not 0, else the third.
    Select,
    Negate,
    Abs,
    Sqrt,
    Sin,
    Cos,
    Exp,
    Ln,
    Tanh,
    Floor,
}
