//! Breadth-first broadcast: all nodes spread their data at once, and in step t each receives what is t links away.
//!
//! In step t node u receives the whole share of every node v at distance t, over those of its in-links whose tails are
//! one nearer to v. These tails hold the whole share by then, so any division of it among them will do, and the steps of
//! all nodes are independent of each other: each is a small transportation problem, solved exactly here.
//!
//! * **Source.** Zhao 2026, chapter 3 and appendix A.5: linear program (3.1), theorem 19 for its value as a
//!   maximum over sets of in-links, (A.11) for whole chunks, where an integral flow makes rounding needless; (A.12) for
//!   links of different latencies (`delays`).
//! * **Hosts.** Where what a node sends or receives passes a host of limited rate, steps of different nodes depend on
//!   each other, and are solved together (`joint`).

mod arrivals;
mod assign;
mod delays;
mod joint;
mod load;
mod sequence;
#[cfg(test)]
mod tests;

use num_integer::Integer;

use crate::digraph::{Arc, Digraph};
use crate::error::DigraphError;
use crate::fraction::Fraction;
use crate::stop::{Meter, Stop, Stopped};

pub use arrivals::Arrivals;
pub use assign::Piece;
pub use joint::JointArrivals;
pub use sequence::{StepLoads, chunks_needed, step_loads};

/// Greatest sum of all amounts, and of the widths of one node's in-links: products of both fit 127 bits.
const SUM_MAX: u128 = 1 << 63;

/// A graph made ready for breadth-first broadcasts: in-links by head, loops and arcs of capacity zero left out.
#[derive(Clone, Debug)]
pub struct BfbGraph {
    /// In-links of node u are `starts[u] .. starts[u + 1]`.
    starts: Vec<u32>,
    links: Vec<InLink>,
    amounts: Vec<u64>,
    amount_total: u128,
    unit: u64,
    /// What the links' delays are counted in parts of; none where they are left out of account.
    delayed_per: Option<u64>,
    hosts: Option<Hosts>,
}

/// What the hosts of nodes let pass in units of [`BfbGraph::unit`], by node; 0 for a node without one.
#[derive(Clone, Debug)]
struct Hosts {
    send: Vec<u64>,
    receive: Vec<u64>,
}

/// An arc into a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InLink {
    /// Tail.
    pub from: u32,
    /// Which of [`Digraph::arcs`](crate::Digraph::arcs) it is.
    pub arc: u32,
    /// Capacity in units of [`BfbGraph::unit`], at least 1.
    pub width: u64,
    /// How long nothing comes over it at the beginning of a step, as [`BfbGraph::with_delays`] counts it.
    pub delay: u64,
}

/// Why there are no breadth-first broadcasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum BfbError {
    #[error("{found} amounts for {node_count} nodes; give one for each node")]
    WrongLength { found: usize, node_count: u32 },
    #[error("{what} add up to {sum}, over the limit of 2^63; divide them by a common factor")]
    TooLarge { what: &'static str, sum: u128 },
    #[error("{found} delays do not cover arc {arc}; give one for each arc")]
    TooFewDelays { found: usize, arc: u32 },
    #[error("times in units of 1/{per} overflow 128 bits; use coarser delays or rounder capacities")]
    InexactDelays { per: u64 },
    #[error("no path leads from node {from} to node {node}; add arcs that connect them")]
    Unreachable { from: u32, node: u32 },
    #[error(transparent)]
    Graph(#[from] DigraphError),
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl BfbGraph {
    /// Makes a graph ready; `amounts` are the sizes of the nodes' shares in any unit, 0 for nodes that have nothing to send.
    ///
    /// Parallel arcs stay links of their own, each of which carries whole chunks.
    ///
    /// # Errors
    /// All but [`BfbError::Unreachable`]. O(nodes + arcs log arcs).
    pub fn new(graph: &Digraph, amounts: &[u64], stop: &dyn Stop) -> Result<Self, BfbError> {
        let node_count = graph.node_count;
        if amounts.len() != node_count as usize {
            return Err(BfbError::WrongLength { found: amounts.len(), node_count });
        }
        let amount_total = amounts.iter().map(|&amount| u128::from(amount)).sum();
        limited("the amounts", amount_total)?;
        u32::try_from(graph.arcs.len())
            .map_err(|_| BfbError::TooLarge { what: "the arcs", sum: graph.arcs.len() as u128 })?;
        let sorted = by_head(graph, &mut Meter::new(stop))?;
        let unit = sorted.iter().fold(0, |unit: u64, (_, link)| unit.gcd(&link.width)).max(1);
        let mut starts = vec![0];
        let mut links = Vec::with_capacity(sorted.len());
        let mut next = sorted.into_iter().peekable();
        for node in 0..node_count {
            let mut sum = 0;
            while let Some((_, link)) = next.next_if(|&(to, _)| to == node) {
                let width = link.width / unit;
                sum += u128::from(width);
                limited("the capacities of one node's arcs, divided by the greatest common divisor of all,", sum)?;
                links.push(InLink { width, ..link });
            }
            starts.push(u32::try_from(links.len()).expect("no more than arcs"));
        }
        Ok(Self { starts, links, amounts: amounts.to_vec(), amount_total, unit, delayed_per: None, hosts: None })
    }

    /// [`new`](Self::new) with shares of one size.
    ///
    /// # Errors
    /// The same.
    pub fn with_equal_shares(graph: &Digraph, stop: &dyn Stop) -> Result<Self, BfbError> {
        Self::new(graph, &vec![1; graph.node_count as usize], stop)
    }

    /// The same graph with each node behind a host: over all its links together, it sends and receives no more than
    /// these capacities, by node. A capacity of 0 is no limit. Only [`JointArrivals`] keep to them.
    ///
    /// # Errors
    /// [`BfbError::TooLarge`]: the amounts of all nodes that receive them, or the capacities of all links and hosts in
    /// units of their greatest common divisor. O(nodes + arcs).
    ///
    /// # Panics
    /// Other numbers of capacities than nodes.
    pub fn with_hosts(mut self, send: &[u64], receive: &[u64]) -> Result<Self, BfbError> {
        let count = self.amounts.len();
        assert!(send.len() == count && receive.len() == count, "each node has a capacity in either direction");
        let unit = send.iter().chain(receive).fold(self.unit, |unit, capacity| unit.gcd(capacity));
        for link in &mut self.links {
            // Widths times the former unit are the capacities, which fit.
            link.width *= self.unit / unit;
        }
        self.unit = unit;
        let scaled = |capacities: &[u64]| capacities.iter().map(|capacity| capacity / unit).collect();
        let hosts = Hosts { send: scaled(send), receive: scaled(receive) };
        let widths = self.links.iter().map(|link| link.width).chain(hosts.send.iter().chain(&hosts.receive).copied());
        let sum = widths.map(u128::from).sum();
        limited("the capacities of all arcs and hosts, divided by the greatest common divisor of all,", sum)?;
        self.hosts = Some(hosts);
        limited("the amounts, once for each node,", self.amount_at_once())?;
        Ok(self)
    }

    /// Whether nodes are behind hosts.
    pub const fn has_hosts(&self) -> bool {
        self.hosts.is_some()
    }

    /// The most that one flow divides: all shares, or where there are hosts, all shares for every node.
    pub fn amount_at_once(&self) -> u128 {
        let copies = if self.has_hosts() { self.amounts.len() as u128 } else { 1 };
        self.amount_total.saturating_mul(copies)
    }

    /// Number of nodes.
    pub fn node_count(&self) -> u32 {
        u32::try_from(self.amounts.len()).expect("counted in u32 by the graph")
    }

    /// Links into a node, by increasing tail, then arc: pieces and sets of in-links refer to positions in this list.
    pub fn in_links(&self, node: u32) -> &[InLink] {
        &self.links[self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize]
    }

    /// Size of a node's share.
    pub fn amount(&self, node: u32) -> u64 {
        self.amounts[node as usize]
    }

    /// Ensures that all shares together have fewer chunks than can be counted.
    fn require_countable(&self, chunks: u64) {
        assert!(
            self.amount_at_once().checked_mul(chunks.into()).is_some_and(|all| all <= SUM_MAX),
            "all chunks together are at most 2^63"
        );
    }

    /// The capacity that a width of 1 stands for: the greatest common divisor of all capacities, at least 1.
    pub const fn unit(&self) -> u64 {
        self.unit
    }
}

fn limited(what: &'static str, sum: u128) -> Result<(), BfbError> {
    if sum > SUM_MAX { Err(BfbError::TooLarge { what, sum }) } else { Ok(()) }
}

/// All arcs that count, each with its head, by increasing head, then tail, then arc. Widths are capacities.
fn by_head(graph: &Digraph, meter: &mut Meter<'_>) -> Result<Vec<(u32, InLink)>, BfbError> {
    let mut links = Vec::with_capacity(graph.arcs.len());
    for (position, (arc, &Arc { from, to, capacity })) in (0..).zip(&graph.arcs).enumerate() {
        meter.spend(1)?;
        if from.max(to) >= graph.node_count {
            let node_count = graph.node_count;
            return Err(DigraphError::NoSuchNode { position, from, to, node_count }.into());
        }
        if from != to && capacity > 0 {
            links.push((to, InLink { from, arc, width: capacity, delay: 0 }));
        }
    }
    links.sort_unstable_by_key(|&(to, InLink { from, arc, .. })| (to, from, arc));
    Ok(links)
}

/// A number that is known to be below 2⁶⁴.
fn narrow(value: u128) -> u64 {
    u64::try_from(value).expect("limited to 2^63")
}

/// A load: data per width of a link. None is `0/1`.
fn ratio(data: u128, width: u128) -> Fraction {
    Fraction::new(data, width).expect("a link has width")
}
