//! How a reduction combines elements.

/// How a reduction combines elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// Their sum.
    Sum,
    /// Their product.
    Product,
    /// The smallest.
    Min,
    /// The greatest.
    Max,
    /// Their mean, as data-parallel training often asks for.
    Average,
    /// One of the caller's own.
    Custom,
}
