//! Parts of the traffic with their routes, and what links carry: the types that planner and checker have in common.

/// How bytes get from one rank to another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Route {
    /// Over the switch of their box, or over the link of the pair.
    Inside,
    /// Inside the box to rank `leaves`, unless that is the sender; out of its NIC and into that of rank `enters`; from
    /// there inside the box to the receiver, unless that is where they are.
    Across {
        /// The rank of the sender's box whose NIC sends.
        leaves: u32,
        /// The rank of the receiver's box whose NIC receives.
        enters: u32,
    },
    /// Hop by hop from the sender to the receiver: over third boxes, or out of a box and back.
    Relayed(Vec<Hop>),
}

/// How bytes get to the next rank of their route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hop {
    /// To this rank of the same box, over its switch or the link of the pair.
    Inside(u32),
    /// Out of the NIC of the rank where they are, into that of this one.
    Across(u32),
}

/// Bytes that take one route.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Part {
    /// The sender.
    pub from: u32,
    /// The receiver.
    pub to: u32,
    /// How they get there.
    pub route: Route,
    /// How many; at least 1.
    pub bytes: u64,
}

/// Bytes on each link, by rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loads {
    /// From ranks to their boxes.
    pub inner_out: Vec<u64>,
    /// From the boxes to ranks.
    pub inner_in: Vec<u64>,
    /// Out of NICs.
    pub outer_out: Vec<u64>,
    /// Into NICs.
    pub outer_in: Vec<u64>,
    /// From each rank to each place of its box, where boxes are joined in pairs; else empty.
    pub pairs: Vec<u64>,
}

impl Loads {
    /// No bytes anywhere.
    pub(crate) fn none(ranks: usize, pairs: usize) -> Self {
        let zero = || vec![0; ranks];
        Self { inner_out: zero(), inner_in: zero(), outer_out: zero(), outer_in: zero(), pairs: vec![0; pairs] }
    }
}
