//! Faults: a topology without some of its links or nodes, with slower links, or with switches that can do less.
//!
//! All faults apply to the undamaged topology, so their order does not matter. A removed element is gone, and several
//! degradations of one link multiply. The product is rounded down to whole bytes per second; a link with less than one
//! left is gone.

use std::collections::BTreeMap;
use std::sync::Arc;

use num_bigint::BigUint;

use crate::index::{NodeIndex, Rank};
use crate::model::{Link, Node, NodeKind, Topology};
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
    /// A switch still forwards, but loses the features that are true here. Losing a feature that it never had changes
    /// nothing.
    Feature {
        /// Id of the switch.
        switch: String,
        /// It sends one incoming stream to one link only.
        multicast: bool,
        /// It reduces no more.
        aggregate: bool,
    },
}

impl Fault {
    /// Ids of the nodes that it names.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        let (first, second) = match self {
            Self::Link { from, to, .. } | Self::Degrade { from, to, .. } => (from, Some(to)),
            Self::Node { id } | Self::Feature { switch: id, .. } => (id, None),
        };
        std::iter::once(first).chain(second).map(String::as_str)
    }
}

/// Errors of applying faults to a topology.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum FaultError {
    #[error("the topology has no node `{id}`; name one of its ids")]
    UnknownNode { position: usize, id: String },
    #[error("the topology has no link {from} -> {to}; name two linked nodes, or the other direction")]
    UnknownLink { position: usize, from: String, to: String },
    #[error(
        "{numerator}/{denominator} of a link cannot remain; use a fraction above 0 and up to 1, or take the link down"
    )]
    Fraction { position: usize, numerator: u64, denominator: u64 },
    #[error("node `{id}` is not a switch, so it has no feature to lose; name a switch")]
    NotASwitch { position: usize, id: String },
    #[error("the faults leave {left} compute nodes; leave at least two")]
    TooFewRanks { left: usize },
}

impl FaultError {
    /// The position of the fault that cannot be applied, if one is to blame.
    pub fn position(&self) -> Option<usize> {
        match self {
            Self::UnknownNode { position, .. }
            | Self::UnknownLink { position, .. }
            | Self::Fraction { position, .. }
            | Self::NotASwitch { position, .. } => Some(*position),
            Self::TooFewRanks { .. } => None,
        }
    }
}

/// A topology after faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Puncture {
    /// The rest of the network, with ranks renumbered without gaps.
    pub topology: Topology,
    /// The old rank of each new rank, ascending because survivors keep their order.
    pub survivors: Vec<Rank>,
}

/// What is left of the nodes and of each directed link that a fault touches.
struct Damage {
    /// By node: what it can do still; `None` when it is gone.
    kinds: Vec<Option<NodeKind>>,
    /// Remaining fraction of the links between two nodes; zero when the link is down.
    left: BTreeMap<(NodeIndex, NodeIndex), Fraction>,
}

/// A product of fractions, not reduced.
struct Fraction {
    numerator: BigUint,
    denominator: BigUint,
}

impl Topology {
    /// The topology after these faults; see [`Topology::puncture`].
    ///
    /// # Errors
    /// As there.
    pub fn punctured(&self, faults: &[Fault]) -> Result<Self, FaultError> {
        self.puncture(faults).map(|puncture| puncture.topology)
    }

    /// The topology after these faults, and the ranks that are left. Ranks are renumbered without gaps in their old
    /// order.
    ///
    /// # Errors
    /// A node or link that does not exist, a fraction outside 0 to 1, a feature of a node that is not a switch, or
    /// fewer than two ranks left. A network that is split is *not* refused here; see [`Topology::first_unreachable`]
    /// and [`Topology::components`].
    ///
    /// O(nodes + links + faults · log links), and the square of the degradations of any one link.
    pub fn puncture(&self, faults: &[Fault]) -> Result<Puncture, FaultError> {
        let damage = self.assess(faults)?;
        let survives = |node: NodeIndex| damage.kinds[node.index()].is_some();
        let survivors: Vec<Rank> = self.ranks().filter(|rank| survives(rank.node())).collect();
        if survivors.len() < 2 {
            return Err(FaultError::TooFewRanks { left: survivors.len() });
        }
        // Who is left keeps the order, and so do links: nothing has to be looked up by its name.
        let are_the_same = self.nodes().iter().zip(&damage.kinds).all(|(node, &kind)| kind == Some(node.kind));
        let left = || self.nodes().iter().zip(&damage.kinds).filter_map(|(node, kind)| Some(of_kind(node, (*kind)?)));
        let nodes = if are_the_same { self.shared_nodes() } else { Arc::new(left().collect()) };
        let mut next = (0..).map(NodeIndex::new);
        let images: Vec<Option<NodeIndex>> = damage.kinds.iter().map(|kind| kind.and_then(|_| next.next())).collect();
        let image = |node: NodeIndex| images[node.index()];
        let mut is_touched = vec![false; self.nodes().len()];
        damage.left.keys().for_each(|(from, _)| is_touched[from.index()] = true);
        let mut links = Vec::with_capacity(self.links().len());
        for link in self.links() {
            let Some((from, to)) = image(link.from).zip(image(link.to)) else { continue };
            let touched = is_touched[link.from.index()].then(|| damage.left.get(&(link.from, link.to)));
            let left = touched.flatten();
            if let Some(capacity) = left.map_or(Some(link.capacity), |left| left.of(link.capacity)) {
                links.push(Link { from, to, capacity, latency: link.latency });
            }
        }
        let rank_count = u32::try_from(survivors.len()).expect("no more than there were");
        Ok(Puncture { topology: Self::assemble(self.names(), nodes, links, rank_count), survivors })
    }

    /// Resolves ids and adds up what the faults say about each link.
    fn assess(&self, faults: &[Fault]) -> Result<Damage, FaultError> {
        let index_of = self.find_nodes(faults.iter().flat_map(Fault::ids));
        let kinds = self.nodes().iter().map(|node| Some(node.kind)).collect();
        let mut damage = Damage { kinds, left: BTreeMap::new() };
        for (position, fault) in faults.iter().enumerate() {
            let find = |id: &String| {
                let unknown = || FaultError::UnknownNode { position, id: shorten(id) };
                index_of.get(id.as_str()).copied().ok_or_else(unknown)
            };
            let (from, to, both_ways, numerator, denominator) = match fault {
                Fault::Node { id } => {
                    damage.kinds[find(id)?.index()] = None;
                    continue;
                }
                Fault::Feature { switch, multicast, aggregate } => {
                    let index = find(switch)?;
                    let NodeKind::Switch { .. } = self.node(index).kind else {
                        return Err(FaultError::NotASwitch { position, id: shorten(switch) });
                    };
                    if let Some(NodeKind::Switch { multicast: sends, aggregate: reduces }) =
                        &mut damage.kinds[index.index()]
                    {
                        *sends &= !multicast;
                        *reduces &= !aggregate;
                    }
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
        if !self.has_link(from, to) {
            return Err(FaultError::UnknownLink { position, from: id(from), to: id(to) });
        }
        let one = || Fraction { numerator: 1_u32.into(), denominator: 1_u32.into() };
        let left = damage.left.entry((from, to)).or_insert_with(one);
        left.numerator *= numerator;
        left.denominator *= denominator;
        Ok(())
    }
}

/// The node itself, unless it can do less than it could.
fn of_kind(node: &Arc<Node>, kind: NodeKind) -> Arc<Node> {
    if node.kind == kind { Arc::clone(node) } else { Arc::new(Node { kind, ..Node::clone(node) }) }
}

impl Fraction {
    /// So much of a capacity, in whole bytes per second; `None` when that is less than one.
    fn of(&self, capacity: Capacity) -> Option<Capacity> {
        let whole = (&self.numerator * capacity.bytes_per_sec()) / &self.denominator;
        u64::try_from(whole).ok().and_then(Capacity::from_bytes_per_sec)
    }
}

#[cfg(test)]
mod tests;
