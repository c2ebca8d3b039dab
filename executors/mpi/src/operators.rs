//! Which predefined operators MPI defines on which predefined types.
//!
//! All others run in the MPI library itself, which also says what is wrong with a call that combines them wrongly.

/// A predefined operator that plans can apply: associative and commutative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of MPI")]
pub enum Operator {
    Max,
    Min,
    Sum,
    Product,
    LogicalAnd,
    LogicalOr,
    LogicalXor,
    BitAnd,
    BitOr,
    BitXor,
}

/// A class of types in the table of operators of the MPI standard (5.9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Integers of C, and those that every language has.
    Integer,
    /// Floating point.
    Float,
    /// Truth values.
    Logical,
    /// Complex numbers.
    Complex,
    /// Bytes without meaning.
    Byte,
}

impl Class {
    /// Whether MPI defines an operator on the types of the class.
    pub(crate) const fn allows(self, operator: Operator) -> bool {
        use Operator::{BitAnd, BitOr, BitXor, LogicalAnd, LogicalOr, LogicalXor, Max, Min, Product, Sum};
        match self {
            Self::Integer => true,
            Self::Float => matches!(operator, Max | Min | Sum | Product),
            Self::Logical => matches!(operator, LogicalAnd | LogicalOr | LogicalXor),
            Self::Complex => matches!(operator, Sum | Product),
            Self::Byte => matches!(operator, BitAnd | BitOr | BitXor),
        }
    }
}
