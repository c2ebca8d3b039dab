//! Indices of ranks, nodes and links, each a type of its own: a table indexed by the wrong one does not compile.

/// Position of a compute node in the collective, `0 … N−1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank(u32);

/// Position of a node in [`Topology::nodes`](crate::Topology::nodes).
///
/// Compute nodes come first, in rank order, so the node of rank `r` has index `r`; switches and forwarders
/// follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIndex(u32);

/// Position of a directed link in [`Topology::links`](crate::Topology::links).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkIndex(u32);

macro_rules! index_type {
    ($name:ident) => {
        impl $name {
            /// Wraps a position.
            pub const fn new(position: u32) -> Self {
                Self(position)
            }

            /// The position as the number it was made from.
            pub const fn number(self) -> u32 {
                self.0
            }

            /// The position as an index of a slice.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

index_type!(Rank);
index_type!(NodeIndex);
index_type!(LinkIndex);

impl Rank {
    /// The compute node of this rank; see [`NodeIndex`] for why the numbers agree.
    pub const fn node(self) -> NodeIndex {
        NodeIndex(self.0)
    }
}
