//! Parts of the traffic with their routes, and what links carry: the types that planner and checker have in common.

/// How bytes get from one rank to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Route {
    /// Over the switch of their box.
    Inside,
    /// Over the switch to rank `leaves`, unless that is the sender; out of its NIC and into that of rank `enters`; from
    /// there over the switch to the receiver, unless that is where they are.
    Across {
        /// The rank of the sender's box whose NIC sends.
        leaves: u32,
        /// The rank of the receiver's box whose NIC receives.
        enters: u32,
    },
}

/// Bytes that take one route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    /// From ranks to the switches of their boxes.
    pub inner_out: Vec<u64>,
    /// From the switches to ranks.
    pub inner_in: Vec<u64>,
    /// Out of NICs.
    pub outer_out: Vec<u64>,
    /// Into NICs.
    pub outer_in: Vec<u64>,
}

impl Loads {
    /// No bytes anywhere.
    pub(crate) fn none(ranks: usize) -> Self {
        let zero = || vec![0; ranks];
        Self { inner_out: zero(), inner_in: zero(), outer_out: zero(), outer_in: zero() }
    }

    /// The same by rank, in floats.
    pub(crate) fn links(&self) -> Vec<[f64; 4]> {
        let classes = [&self.inner_out, &self.inner_in, &self.outer_out, &self.outer_in];
        (0..self.inner_out.len()).map(|rank| classes.map(|loads| loads[rank] as f64)).collect()
    }
}
