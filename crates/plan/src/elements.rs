//! What programs are run on: types of elements, data of them, and how reductions combine two of them.
//!
//! Integers only: their operations are exact and do not depend on the order of a tree, so one wrong bit is a wrong
//! program. Each element lies in the low bits of a word.

mod data;

pub(crate) use data::{Data, DataFault, Random, mix};

/// Type of the elements a program is run with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ElementType {
    /// Unsigned, 8 bits.
    U8,
    /// Signed, 8 bits.
    I8,
    /// Unsigned, 32 bits.
    U32,
    /// Signed, 32 bits.
    I32,
    /// Unsigned, 64 bits.
    U64,
    /// Signed, 64 bits.
    I64,
}

impl ElementType {
    /// All types.
    pub const ALL: [Self; 6] = [Self::U8, Self::I8, Self::U32, Self::I32, Self::U64, Self::I64];

    const fn bits(self) -> u32 {
        match self {
            Self::U8 | Self::I8 => 8,
            Self::U32 | Self::I32 => 32,
            Self::U64 | Self::I64 => 64,
        }
    }

    const fn is_signed(self) -> bool {
        matches!(self, Self::I8 | Self::I32 | Self::I64)
    }

    /// The low bits of a word that make an element.
    pub(crate) const fn truncate(self, word: u64) -> u64 {
        word & (u64::MAX >> (64 - self.bits()))
    }

    /// A number that is ordered as the elements are.
    const fn rank(self, element: u64) -> u64 {
        // Adding half the range turns two's complement order into unsigned order.
        let shifted = element << (64 - self.bits());
        if self.is_signed() { shifted ^ (1 << 63) } else { shifted }
    }

    /// Combines two elements.
    pub(crate) const fn combine(self, operator: Operator, first: u64, second: u64) -> u64 {
        match operator {
            Operator::Sum => self.truncate(first.wrapping_add(second)),
            Operator::Product => self.truncate(first.wrapping_mul(second)),
            Operator::Min if self.rank(second) < self.rank(first) => second,
            Operator::Max if self.rank(second) > self.rank(first) => second,
            Operator::Min | Operator::Max => first,
            Operator::Xor => first ^ second,
        }
    }
}

/// How reductions combine two elements. All are associative and commutative, so the order of a tree does not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// Wrapping sum.
    Sum,
    /// Wrapping product.
    Product,
    /// Smaller.
    Min,
    /// Larger.
    Max,
    /// Bitwise exclusive or.
    Xor,
}

impl Operator {
    /// All operators.
    pub const ALL: [Self; 5] = [Self::Sum, Self::Product, Self::Min, Self::Max, Self::Xor];
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the arithmetic of the language, for values around every edge.
    #[test]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        reason = "the low bits of a word are the element"
    )]
    fn elements_behave_as_their_types_do() {
        let edges = [0_u64, 1, 2, 127, 128, 129, 255, 1 << 31, (1 << 31) - 1, u64::MAX, 1 << 63, 0x1234_5678_9abc_def0];
        for a in edges {
            for b in edges {
                let of = |element: ElementType, operator| {
                    element.combine(operator, element.truncate(a), element.truncate(b))
                };
                let (x, y) = (a as u8, b as u8);
                assert_eq!(of(ElementType::U8, Operator::Sum), u64::from(x.wrapping_add(y)));
                assert_eq!(of(ElementType::U8, Operator::Product), u64::from(x.wrapping_mul(y)));
                assert_eq!(of(ElementType::U8, Operator::Max), u64::from(x.max(y)));
                assert_eq!(of(ElementType::I8, Operator::Min), u64::from((x as i8).min(y as i8) as u8));
                let (x, y) = (a as i32, b as i32);
                assert_eq!(of(ElementType::I32, Operator::Sum), u64::from(x.wrapping_add(y) as u32));
                assert_eq!(of(ElementType::I32, Operator::Product), u64::from(x.wrapping_mul(y) as u32));
                assert_eq!(of(ElementType::I32, Operator::Min), u64::from(x.min(y) as u32));
                assert_eq!(of(ElementType::I32, Operator::Max), u64::from(x.max(y) as u32));
                assert_eq!(of(ElementType::U32, Operator::Min), u64::from((x as u32).min(y as u32)));
                assert_eq!(of(ElementType::U64, Operator::Min), a.min(b));
                assert_eq!(of(ElementType::I64, Operator::Max), (a as i64).max(b as i64) as u64);
                assert_eq!(of(ElementType::I64, Operator::Xor), a ^ b);
            }
        }
    }
}
