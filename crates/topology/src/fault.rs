//! Faults: a topology without some of its links or nodes, or with slower links.
//!
//! All faults are read against the undamaged topology, so their order does not matter: what is removed is gone
//! whatever else is said about it, and several degradations of one link multiply.

use std::collections::{BTreeMap, HashMap};

use crate::error::TopologyError;
use crate::index::NodeIndex;
use crate::limits::TopologyLimits;
use crate::model::{DraftLink, DraftNode, Topology, TopologyDraft};
use crate::shorten::shorten;
use crate::units::Capacity;

/// One thing that is broken or slow. Nodes are named by id; a link means all parallels between its ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A link carries nothing.
    Link {
        /// Id of the node where it starts.
        from: String,
        /// Id of the node where it ends.
        to: String,
        /// Whether the opposite direction is gone too.
        both_ways: bool,
    },
    /// A node is gone, with all its links.
    Node {
        /// Its id.
        id: String,
    },
    /// A link keeps `numerator / denominator` of its capacity.
    Degrade {
        /// Id of the node where it starts.
        from: String,
        /// Id of the node where it ends.
        to: String,
        /// Whether the opposite direction is as slow.
        both_ways: bool,
        /// Upper part of the fraction, 1 to `denominator`.
        numerator: u64,
        /// Lower part of the fraction.
        denominator: u64,
    },
}

/// Why faults cannot be applied to a topology.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum FaultError {
    #[error("the topology has no node `{id}`; name one of its ids")]
    UnknownNode { position: usize, id: String },
    #[error("the topology has no link {from} -> {to}; name two linked nodes, or the one direction there is")]
    UnknownLink { position: usize, from: String, to: String },
    #[error(
        "{numerator}/{denominator} of a link cannot be left; use a fraction above 0 and up to 1, or take the link down"
    )]
    Fraction { position: usize, numerator: u64, denominator: u64 },
    #[error(
        "{numerator}/{denominator} of the link {from} -> {to} ({capacity} bytes/s) is not a whole number of bytes/s above zero; use another fraction"
    )]
    NotWhole { from: String, to: String, capacity: u64, numerator: u128, denominator: u128 },
    #[error("the faults leave {left} compute nodes; at least two must remain")]
    TooFewRanks { left: usize },
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

impl FaultError {
    /// Which of the faults cannot be applied, where one is at fault.
    pub fn position(&self) -> Option<usize> {
        match self {
            Self::UnknownNode { position, .. }
            | Self::UnknownLink { position, .. }
            | Self::Fraction { position, .. } => Some(*position),
            Self::NotWhole { .. } | Self::TooFewRanks { .. } | Self::Topology(_) => None,
        }
    }
}

/// What is left of each directed link that a fault touches.
struct Damage {
    /// Nodes that are gone.
    gone: Vec<bool>,
    /// Remaining fraction of the links between two nodes; zero when the link is down.
    left: BTreeMap<(NodeIndex, NodeIndex), (u128, u128)>,
}

impl Topology {
    /// The topology without what the faults take away. Ranks are renumbered densely, keeping their order.
    ///
    /// # Errors
    /// A node or link that does not exist, a fraction that leaves no whole number of bytes per second, or fewer than
    /// two ranks left. A network that falls apart is *not* refused here; see [`Topology::first_unreachable`].
    ///
    /// O(nodes + links · log links + faults · log faults).
    pub fn punctured(&self, faults: &[Fault]) -> Result<Self, FaultError> {
        let damage = self.assess(faults)?;
        let survives = |node: NodeIndex| !damage.gone[node.index()];
        let ranks_left = self.ranks().filter(|rank| survives(rank.node())).count();
        if ranks_left < 2 {
            return Err(FaultError::TooFewRanks { left: ranks_left });
        }
        let mut draft = TopologyDraft { name: self.name().map(str::to_owned), ..TopologyDraft::default() };
        for (node, gone) in self.nodes().iter().zip(&damage.gone) {
            if !gone {
                let (id, attributes) = (node.id.clone(), node.attributes.clone());
                draft.nodes.push(DraftNode { id, kind: node.kind, rank: None, attributes });
            }
        }
        for link in self.links() {
            let (numerator, denominator) = damage.left.get(&(link.from, link.to)).copied().unwrap_or((1, 1));
            if numerator == 0 || !survives(link.from) || !survives(link.to) {
                continue;
            }
            let (from, to) = (self.node(link.from).id.clone(), self.node(link.to).id.clone());
            let capacity = fraction_of(link.capacity, numerator, denominator).ok_or_else(|| FaultError::NotWhole {
                from: from.clone(),
                to: to.clone(),
                capacity: link.capacity.bytes_per_sec(),
                numerator,
                denominator,
            })?;
            draft.links.push(DraftLink { from, to, capacity, latency: link.latency, count: 1 });
        }
        // The result is no larger than the topology it comes from, whose limits are not known here.
        let limits = TopologyLimits { nodes_max: usize::MAX, links_max: usize::MAX, bytes_max: usize::MAX };
        Ok(draft.build(&limits)?)
    }

    /// Resolves ids and adds up what the faults say about each link.
    fn assess(&self, faults: &[Fault]) -> Result<Damage, FaultError> {
        let index_of: HashMap<&str, NodeIndex> =
            (0_u32..).zip(self.nodes()).map(|(index, node)| (node.id.as_str(), NodeIndex::new(index))).collect();
        let mut damage = Damage { gone: vec![false; self.nodes().len()], left: BTreeMap::new() };
        for (position, fault) in faults.iter().enumerate() {
            let find = |id: &String| {
                let unknown = || FaultError::UnknownNode { position, id: shorten(id) };
                index_of.get(id.as_str()).copied().ok_or_else(unknown)
            };
            let (from, to, both_ways, numerator, denominator) = match fault {
                Fault::Node { id } => {
                    damage.gone[find(id)?.index()] = true;
                    continue;
                }
                Fault::Link { from, to, both_ways } => (from, to, *both_ways, 0, 1),
                Fault::Degrade { from, to, both_ways, numerator, denominator } => {
                    let (numerator, denominator) = (*numerator, *denominator);
                    if numerator == 0 || numerator > denominator {
                        return Err(FaultError::Fraction { position, numerator, denominator });
                    }
                    (from, to, *both_ways, numerator, denominator)
                }
            };
            let (from, to) = (find(from)?, find(to)?);
            self.reduce(&mut damage, position, from, to, (numerator, denominator))?;
            if both_ways {
                self.reduce(&mut damage, position, to, from, (numerator, denominator))?;
            }
        }
        Ok(damage)
    }

    /// Multiplies what is left of one directed link by a fraction.
    fn reduce(
        &self,
        damage: &mut Damage,
        position: usize,
        from: NodeIndex,
        to: NodeIndex,
        (numerator, denominator): (u64, u64),
    ) -> Result<(), FaultError> {
        let id = |node| self.node(node).id.clone();
        if !self.links_from(from).any(|link| self.link(link).to == to) {
            return Err(FaultError::UnknownLink { position, from: id(from), to: id(to) });
        }
        let left = damage.left.entry((from, to)).or_insert((1, 1));
        let product = left.0.checked_mul(u128::from(numerator)).zip(left.1.checked_mul(u128::from(denominator)));
        // A product beyond 128 bits would leave less than a byte of any link.
        *left = product.ok_or(FaultError::Fraction { position, numerator, denominator })?;
        Ok(())
    }
}

/// `capacity · numerator / denominator` if that is a whole number above zero.
fn fraction_of(capacity: Capacity, numerator: u128, denominator: u128) -> Option<Capacity> {
    let scaled = u128::from(capacity.bytes_per_sec()).checked_mul(numerator)?;
    let whole = scaled.is_multiple_of(denominator).then(|| scaled / denominator)?;
    u64::try_from(whole).ok().and_then(Capacity::from_bytes_per_sec)
}

#[cfg(test)]
mod tests;
