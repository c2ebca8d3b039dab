//! Bounds on algbw and the certificates that prove them.

use canopy_topology::{NodeIndex, Rate};

/// Bounds on the best algbw that any schedule can reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Proven upper bound.
    pub upper: Rate,
    /// A rate known to be reachable; equal to `upper` exactly when the bound is tight.
    pub lower: Rate,
    /// Proof of `upper`.
    pub certificate: Certificate,
}

impl Bound {
    /// Whether the upper bound is known to be reachable.
    pub fn is_tight(&self) -> bool {
        self.upper == self.lower
    }
}

/// Proof of an upper bound on algbw that anyone can re-check by adding up capacities.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Certificate {
    /// A set of nodes, sorted, and which of its boundary links are counted.
    Cut {
        /// Links that leave the set, or that enter it.
        direction: CutDirection,
        /// The set S, sorted.
        nodes: Vec<NodeIndex>,
    },
    /// p ≥ 2 disjoint sets of nodes, each sorted and with a rank, together all ranks (allreduce).
    Partition {
        /// The sets S_i.
        sets: Vec<Vec<NodeIndex>>,
    },
    /// Several cuts, or partitions for an allreduce, at once, where what enters a switch must leave it: no single cut knows
    /// that a link is of no use since its switch can not pass on what it carries.
    Sum {
        /// Cuts and partitions, each with how often it counts.
        terms: Vec<(u64, Certificate)>,
        /// Potentials of switches, sorted by node, none of them 0: a link counts by how much the potential rises along it, too.
        potentials: Vec<(NodeIndex, i64)>,
    },
    /// A length for each link (all-to-all): data that travels far takes up capacity on the way.
    LpDual {
        /// Lengths ℓ, by link index. Only their proportions matter.
        lengths: Vec<u64>,
    },
}

/// Which boundary links of a cut bind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CutDirection {
    /// Those that leave the set: B⁺(S).
    Out,
    /// Those that enter the set: B⁻(S).
    In,
}

impl CutDirection {
    /// The word in JSON and proto text: `out` or `in`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Out => "out",
            Self::In => "in",
        }
    }
}
