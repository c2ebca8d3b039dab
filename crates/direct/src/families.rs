//! Families of graphs: what each is, how large it becomes, and the graph itself.
//!
//! A [`Family`] is a name with its numbers; nothing is built until [`Family::graph`] is called, which refuses bad numbers
//! and over-limit sizes first. Written out it is the expression that generates it.

mod circulants;
mod complete;
mod kautz;

use std::fmt;

use crate::digraph::Digraph;
use crate::size::{Limit, Size, TooLarge};

/// A member of a family, by its numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// `complete:n`: every ordered pair of different nodes.
    Complete {
        /// Number of nodes.
        n: u64,
    },
    /// `bipartite:axb`: every node of the first part with every node of the second, which is numbered after it, both ways.
    Bipartite {
        /// Size of the first part.
        left: u64,
        /// Size of the second part.
        right: u64,
    },
    /// `uniring:n=8,d=2`: `d` parallel edges from each node to the next.
    UniRing {
        /// Number of nodes, at least 2.
        n: u64,
        /// Degree.
        d: u64,
    },
    /// `biring:n=8,d=4`: `d/2` parallel edges from each node to the next and as many back.
    BiRing {
        /// Number of nodes, at least 3: two would have each pair of links twice.
        n: u64,
        /// Degree, even.
        d: u64,
    },
    /// `circulant:n=16,offsets=3+4`: node `i` with `i ± a` modulo `n` for every offset `a`, each so many times.
    Circulant {
        /// Number of nodes.
        n: u64,
        /// Offsets, distinct, from 1 to below n/2, with no common divisor of themselves and `n`.
        offsets: Vec<u64>,
        /// Parallel edges of each offset and direction.
        copies: u64,
    },
    /// `dcirculant:d=4`: `i → i + 1, …, i + d` modulo `d + 2`, all other nodes but one.
    DirectedCirculant {
        /// Degree.
        d: u64,
    },
    /// `genkautz:n=64,d=4`: `x → −d·x − a` modulo `n` for `a` from 1 to `d`.
    GenKautz {
        /// Number of nodes, more than `d`.
        n: u64,
        /// Degree.
        d: u64,
    },
    /// `kautz:d=2,n=4`: words of `n` letters out of `d + 1`, no letter twice in a row, in alphabetical order; a word leads
    /// to those that drop its first letter and append one, in the order of that letter.
    Kautz {
        /// Degree: one less than there are letters.
        d: u64,
        /// Length of the words.
        n: u64,
    },
}

/// Why a member of a family was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum FamilyError {
    /// `key` is the key of the expression language, `size` for the bare value.
    #[error("{family}: {key} {found} is not usable; expected {expected}")]
    Value { family: &'static str, key: &'static str, found: String, expected: &'static str },
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
}

impl FamilyError {
    /// Refuses the value of a key.
    fn value(family: &'static str, key: &'static str, found: impl fmt::Display, expected: &'static str) -> Self {
        Self::Value { family, key, found: found.to_string(), expected }
    }
}

impl Family {
    /// The circulant of degree 4 and least diameter `m` on `n > 6` nodes: offsets `m` and `m + 1` with
    /// `m = ⌈(√(2n−1) − 1)/2⌉`. In `degree`, a multiple of 4, every edge is that many times parallel.
    ///
    /// Source: Zhao 2026, theorem 22, which says nothing of six nodes and fewer: these have complete graphs.
    ///
    /// # Errors
    /// [`FamilyError::Value`] for other numbers of nodes and degrees.
    pub fn least_circulant(n: u64, degree: u64) -> Result<Self, FamilyError> {
        if n <= 6 {
            return Err(FamilyError::value(
                "circulant",
                "n",
                n,
                "more than 6 without offsets; for fewer take complete:n",
            ));
        }
        if degree == 0 || !degree.is_multiple_of(4) {
            let expected = "a multiple of 4 without offsets, which two pairs of links share";
            return Err(FamilyError::value("circulant", "d", degree, expected));
        }
        let m = circulants::least_diameter(n);
        Ok(Self::Circulant { n, offsets: vec![m, m + 1], copies: degree / 4 })
    }

    /// The size of its graph, by formula.
    ///
    /// # Errors
    /// [`FamilyError::Value`] for numbers that make no graph of the family.
    pub fn size(&self) -> Result<Size, FamilyError> {
        match *self {
            Self::Complete { n } => complete::complete_size(n),
            Self::Bipartite { left, right } => complete::bipartite_size(left, right),
            Self::UniRing { n, d } => circulants::uni_ring_size(n, d),
            Self::BiRing { n, d } => circulants::bi_ring_size(n, d),
            Self::Circulant { n, ref offsets, copies } => circulants::circulant_size(n, offsets, copies),
            Self::DirectedCirculant { d } => circulants::directed_size(d),
            Self::GenKautz { n, d } => kautz::generalized_size(n, d),
            Self::Kautz { d, n } => kautz::kautz_size(d, n),
        }
    }

    /// Its graph. O(size of the graph).
    ///
    /// # Errors
    /// What [`size`](Self::size) refuses, and [`FamilyError::TooLarge`] over the limit, before anything is built.
    pub fn graph(&self, limit: Limit) -> Result<Digraph, FamilyError> {
        self.size()?.check(limit)?;
        Ok(match *self {
            Self::Complete { n } => complete::complete(narrow(n)),
            Self::Bipartite { left, right } => complete::bipartite(narrow(left), narrow(right)),
            Self::UniRing { n, d } => circulants::uni_ring(narrow(n), narrow(d)),
            Self::BiRing { n, d } => circulants::bi_ring(narrow(n), narrow(d)),
            Self::Circulant { n, ref offsets, copies } => {
                let offsets: Vec<u32> = offsets.iter().copied().map(narrow).collect();
                circulants::circulant(narrow(n), &offsets, narrow(copies))
            }
            Self::DirectedCirculant { d } => circulants::directed(narrow(d)),
            Self::GenKautz { n, d } => kautz::generalized(narrow(n), narrow(d)),
            Self::Kautz { d, n } => kautz::kautz(narrow(d), narrow(n)),
        })
    }
}

/// A number of a family whose size was checked: every one is at most the number of nodes or edges then.
fn narrow(number: u64) -> u32 {
    u32::try_from(number).expect("the size was checked")
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Complete { n } => write!(f, "complete:{n}"),
            Self::Bipartite { left, right } => write!(f, "bipartite:{left}x{right}"),
            Self::UniRing { n, d } => write!(f, "uniring:n={n},d={d}"),
            Self::BiRing { n, d } => write!(f, "biring:n={n},d={d}"),
            Self::Circulant { n, offsets, copies } => {
                write!(f, "circulant:n={n},offsets={}", joined(offsets, "+"))?;
                if *copies == 1 { Ok(()) } else { write!(f, ",d={}", 2 * u128::from(*copies) * offsets.len() as u128) }
            }
            Self::DirectedCirculant { d } => write!(f, "dcirculant:d={d}"),
            Self::GenKautz { n, d } => write!(f, "genkautz:n={n},d={d}"),
            Self::Kautz { d, n } => write!(f, "kautz:d={d},n={n}"),
        }
    }
}

fn joined(numbers: &[u64], separator: &str) -> String {
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(separator)
}

#[cfg(test)]
mod tests;
