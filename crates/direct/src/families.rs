//! Families of graphs: definitions, sizes and the graphs themselves.
//!
//! A [`Family`] is a name with parameters. [`Family::graph`] refuses bad parameters and sizes over the limit, then
//! builds. The text form is the generator expression.

mod circulants;
mod complete;
mod debruijn;
mod distreg;
mod geometry;
mod grids;
mod kautz;

use std::fmt;

use crate::digraph::Digraph;
use crate::families::grids::Lines;
use crate::size::{Limit, Size, TooLarge};

/// A member of a family, by its numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// `ring:8`, `ring:8,dir=uni`: each node with the next, both ways or one way; two are linked once, one not at all.
    Ring {
        /// Number of nodes.
        n: u64,
        /// Onwards only.
        one_way: bool,
    },
    /// `mesh:4x4`: a grid of any dimension, numbered row-major with the first dimension slowest.
    Mesh {
        /// Nodes along each dimension.
        extents: Vec<u64>,
    },
    /// `torus:4x4x4`: a grid of any dimension whose lines are rings: an extent of 2 is one link pair.
    Torus {
        /// Nodes along each dimension.
        extents: Vec<u64>,
    },
    /// `hypercube:6`: 2⁶ nodes; two are linked when their numbers differ in one bit.
    Hypercube {
        /// Number of bits.
        n: u64,
    },
    /// `hamming:3x3`: a grid of any dimension whose lines are complete graphs.
    Hamming {
        /// Nodes along each dimension.
        extents: Vec<u64>,
    },
    /// `dfc2:4x4`: rows and columns that are complete graphs.
    Dfc2 {
        /// Number of rows.
        rows: u64,
        /// Number of columns.
        columns: u64,
    },
    /// `twisted-torus:8x4`, `twisted-torus:4x4x8`: `2a×a` whose second dimension comes back `a` further along the first, or
    /// `a×a×2a` whose first two come back `a` further along the third.
    TwistedTorus {
        /// Nodes along each dimension.
        extents: Vec<u64>,
    },
    /// `twisted-cube`: the cube of eight nodes with two parallel links crossed.
    TwistedCube,
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
    /// `debruijn:d=2,n=4`: `x → d·x + a` modulo `dⁿ` for `a` from 0 to `d − 1`.
    DeBruijn {
        /// Degree.
        d: u64,
        /// Number of digits of a node's number to the base `d`.
        n: u64,
    },
    /// `dbjmod:d=2,n=4`: the de Bruijn graph in which a cycle stands in for edges that lead nowhere new; (2, 3), (2, 4) and
    /// (4, 2) only.
    ModifiedDeBruijn {
        /// Degree.
        d: u64,
        /// Number of digits of a node's number to the base `d`.
        n: u64,
    },
    /// `diamond`: eight nodes of degree 2 within three steps.
    Diamond,
    /// `distreg:n=32,d=4`: the distance-regular graph of degree 4 and so many nodes, which must be one of
    /// [`DISTANCE_REGULAR_ORDERS`](Self::DISTANCE_REGULAR_ORDERS).
    DistanceRegular {
        /// Number of nodes.
        n: u64,
    },
}

/// Errors of a member of a family.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum FamilyError {
    /// `key` is the key of the expression language, `size` for the bare value.
    #[error("{family}: {key} cannot be {found}; expected {expected}")]
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
    /// Numbers of nodes of [`Family::DistanceRegular`].
    pub const DISTANCE_REGULAR_ORDERS: &[u64] = &distreg::ORDERS;

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
                "more than 6 if no offsets are given (use complete:n for fewer)",
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
            Self::Ring { n, one_way: true } => grids::one_way_ring_size(n),
            Self::Ring { n, one_way: false } => grids::grid_size("ring", Lines::Ring, &[n]),
            Self::Mesh { ref extents } => grids::grid_size("mesh", Lines::Open, extents),
            Self::Torus { ref extents } => grids::grid_size("torus", Lines::Ring, extents),
            Self::Hypercube { n } => grids::hypercube_size(n),
            Self::Hamming { ref extents } => grids::grid_size("hamming", Lines::Complete, extents),
            Self::Dfc2 { rows, columns } => grids::grid_size("dfc2", Lines::Complete, &[rows, columns]),
            Self::TwistedTorus { ref extents } => grids::twisted_torus_size(extents),
            Self::TwistedCube => Ok(Size::regular(8, 3)),
            Self::Complete { n } => complete::complete_size(n),
            Self::Bipartite { left, right } => complete::bipartite_size(left, right),
            Self::UniRing { n, d } => circulants::uni_ring_size(n, d),
            Self::BiRing { n, d } => circulants::bi_ring_size(n, d),
            Self::Circulant { n, ref offsets, copies } => circulants::circulant_size(n, offsets, copies),
            Self::DirectedCirculant { d } => circulants::directed_size(d),
            Self::GenKautz { n, d } => kautz::generalized_size(n, d),
            Self::Kautz { d, n } => kautz::kautz_size(d, n),
            Self::DeBruijn { d, n } => debruijn::debruijn_size(d, n),
            Self::ModifiedDeBruijn { d, n } => debruijn::modified_size(d, n),
            Self::Diamond => Ok(Size::regular(8, 2)),
            Self::DistanceRegular { n } => distreg::distance_regular_size(n),
        }
    }

    /// Its graph. O(size of the graph).
    ///
    /// # Errors
    /// What [`size`](Self::size) refuses, and [`FamilyError::TooLarge`] over the limit, before anything is built.
    pub fn graph(&self, limit: Limit) -> Result<Digraph, FamilyError> {
        self.size()?.check(limit)?;
        Ok(match *self {
            Self::Ring { n, one_way: true } => grids::one_way_ring(narrow(n)),
            Self::Ring { n, one_way: false } => grids::grid(Lines::Ring, &[narrow(n)], limit),
            Self::Mesh { ref extents } => grids::grid(Lines::Open, &narrowed(extents), limit),
            Self::Torus { ref extents } => grids::grid(Lines::Ring, &narrowed(extents), limit),
            Self::Hypercube { n } => grids::hypercube(narrow(n)),
            Self::Hamming { ref extents } => grids::grid(Lines::Complete, &narrowed(extents), limit),
            Self::Dfc2 { rows, columns } => grids::grid(Lines::Complete, &narrowed(&[rows, columns]), limit),
            Self::TwistedTorus { ref extents } => grids::twisted_torus(&narrowed(extents)),
            Self::TwistedCube => grids::twisted_cube(),
            Self::Complete { n } => complete::complete(narrow(n)),
            Self::Bipartite { left, right } => complete::bipartite(narrow(left), narrow(right)),
            Self::UniRing { n, d } => circulants::uni_ring(narrow(n), narrow(d)),
            Self::BiRing { n, d } => circulants::bi_ring(narrow(n), narrow(d)),
            Self::Circulant { n, ref offsets, copies } => {
                circulants::circulant(narrow(n), &narrowed(offsets), narrow(copies))
            }
            Self::DirectedCirculant { d } => circulants::directed(narrow(d)),
            Self::GenKautz { n, d } => kautz::generalized(narrow(n), narrow(d)),
            Self::Kautz { d, n } => kautz::kautz(narrow(d), narrow(n)),
            Self::DeBruijn { d, n } => debruijn::debruijn(narrow(d), narrow(n)),
            Self::ModifiedDeBruijn { d, n } => debruijn::modified(narrow(d), narrow(n)),
            Self::Diamond => debruijn::diamond(),
            Self::DistanceRegular { n } => distreg::distance_regular(narrow(n)),
        })
    }
}

/// A number of a family whose size was checked: every one is at most the number of nodes or edges then.
fn narrow(number: u64) -> u32 {
    u32::try_from(number).expect("the size was checked")
}

fn narrowed(numbers: &[u64]) -> Vec<u32> {
    numbers.iter().copied().map(narrow).collect()
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ring { n, one_way } => write!(f, "ring:{n}{}", if *one_way { ",dir=uni" } else { "" }),
            Self::Mesh { extents } => write!(f, "mesh:{}", joined(extents, "x")),
            Self::Torus { extents } => write!(f, "torus:{}", joined(extents, "x")),
            Self::Hypercube { n } => write!(f, "hypercube:{n}"),
            Self::Hamming { extents } => write!(f, "hamming:{}", joined(extents, "x")),
            Self::Dfc2 { rows, columns } => write!(f, "dfc2:{rows}x{columns}"),
            Self::TwistedTorus { extents } => write!(f, "twisted-torus:{}", joined(extents, "x")),
            Self::TwistedCube => f.write_str("twisted-cube"),
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
            Self::DeBruijn { d, n } => write!(f, "debruijn:d={d},n={n}"),
            Self::ModifiedDeBruijn { d, n } => write!(f, "dbjmod:d={d},n={n}"),
            Self::Diamond => f.write_str("diamond"),
            Self::DistanceRegular { n } => write!(f, "distreg:n={n},d=4"),
        }
    }
}

fn joined(numbers: &[u64], separator: &str) -> String {
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(separator)
}

#[cfg(test)]
mod tests;
