//! Problems of concurrent flow: demands and the network.

use crate::digraph::Digraph;
use crate::error::DigraphError;
use crate::stop::Stopped;

/// The demands of one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commodity {
    /// The source.
    pub source: u32,
    /// Sinks with their demands: ascending, without the source and without demands of zero.
    pub sinks: Vec<(u32, u64)>,
    /// Number of equivalent sources that this one represents, itself included, if loads are counted by orbits of arcs;
    /// else 1.
    pub copies: u64,
}

/// A validated network with commodities.
#[derive(Clone, Debug)]
pub struct ConcurrentProblem<'a> {
    graph: &'a Digraph,
    commodities: &'a [Commodity],
    /// By arc, the orbit it belongs to; empty where each is alone.
    orbits: &'a [u32],
}

/// Errors of a problem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum ConcurrentError {
    #[error(transparent)]
    Graph(#[from] DigraphError),
    #[error("commodities[{commodity}] starts at node {node}, but the graph has {node_count} nodes")]
    NoSuchSource { commodity: usize, node: u32, node_count: u32 },
    #[error("commodities[{commodity}].copies is 0; give at least 1, the source itself")]
    NoCopies { commodity: usize },
    #[error(
        "commodities[{commodity}].sinks[{sink}] is node {node} with demand {demand}; give sinks in ascending order, \
         below {node_count}, other than the source, with a demand above 0"
    )]
    Sink { commodity: usize, sink: usize, node: u32, demand: u64, node_count: u32 },
    #[error("no commodity has a demand; give at least one")]
    NothingToMove,
    #[error("node {to} has a demand, but no path leads to it from its source {from}")]
    Unreachable { from: u32, to: u32 },
    #[error("{found} orbits for {expected} arcs; give one for each arc, or none")]
    OrbitCount { found: usize, expected: usize },
    #[error("{found} lengths for {expected} arcs; give one for each arc")]
    LengthCount { found: usize, expected: usize },
    #[error("demands of {found} pairs and paths of {expected}; give both for each pair")]
    PairCount { found: usize, expected: usize },
    #[error("pairs[{pair}] has a demand but no path; give it a path, or no demand")]
    NoPath { pair: usize },
    #[error("pairs[{pair}][{path}] passes arc {arc}; use arcs below {arc_count} with a capacity above 0")]
    PathArc { pair: usize, path: usize, arc: u32, arc_count: usize },
    #[error("commodities[{commodity}] has several copies; list each by itself for flows in steps")]
    Copies { commodity: usize },
    #[error("{found} nodes of {expected} are marked as storing or forwarding; mark all of them, or none")]
    TransitCount { found: usize, expected: usize },
    #[error("commodities[{commodity}] starts or ends at node {node}, which only forwards; mark it as storing")]
    TransitEnd { commodity: usize, node: u32 },
    #[error("sums of demands, capacities and lengths overflow 128 bits; use smaller units")]
    TooLarge,
    #[error("stopped before a result was found")]
    Stopped,
    #[error("broken invariant: {what}")]
    Broken { what: &'static str },
}

impl From<Stopped> for ConcurrentError {
    fn from(Stopped: Stopped) -> Self {
        Self::Stopped
    }
}

impl<'a> ConcurrentProblem<'a> {
    /// Validates a problem, except that sinks are within reach, which the solvers check.
    ///
    /// * **In.** `orbits`: by arc the number of the orbit it belongs to under symmetries that carry commodities to those
    ///   that they stand for; empty where there are none. Arcs of an orbit have one capacity.
    /// * **Errors.** [`ConcurrentError`]. **Cost.** O(arcs + demands).
    pub fn new(graph: &'a Digraph, commodities: &'a [Commodity], orbits: &'a [u32]) -> Result<Self, ConcurrentError> {
        let node_count = graph.node_count;
        for (position, arc) in graph.arcs.iter().enumerate() {
            if arc.from >= node_count || arc.to >= node_count {
                let (from, to) = (arc.from, arc.to);
                return Err(DigraphError::NoSuchNode { position, from, to, node_count }.into());
            }
        }
        if !orbits.is_empty() && orbits.len() != graph.arcs.len() {
            return Err(ConcurrentError::OrbitCount { found: orbits.len(), expected: graph.arcs.len() });
        }
        let mut total = 0_u128;
        for (commodity, Commodity { source, sinks, copies }) in commodities.iter().enumerate() {
            if *source >= node_count {
                return Err(ConcurrentError::NoSuchSource { commodity, node: *source, node_count });
            }
            if *copies == 0 {
                return Err(ConcurrentError::NoCopies { commodity });
            }
            let mut before = None;
            for (sink, &(node, demand)) in sinks.iter().enumerate() {
                let ascends = before.replace(node).is_none_or(|before| before < node);
                if !ascends || node >= node_count || node == *source || demand == 0 {
                    return Err(ConcurrentError::Sink { commodity, sink, node, demand, node_count });
                }
                let all = u128::from(demand).checked_mul((*copies).into());
                total = all.and_then(|all| total.checked_add(all)).ok_or(ConcurrentError::TooLarge)?;
            }
        }
        if total == 0 {
            return Err(ConcurrentError::NothingToMove);
        }
        Ok(Self { graph, commodities, orbits })
    }

    /// Variables of its linear program: the arcs, once for each source.
    pub const fn variables(&self) -> u64 {
        self.commodities.len() as u64 * self.graph.arcs.len() as u64
    }

    /// The network.
    pub const fn graph(&self) -> &'a Digraph {
        self.graph
    }

    /// The commodities.
    pub const fn commodities(&self) -> &'a [Commodity] {
        self.commodities
    }

    /// The orbit of each arc; empty if each arc is its own orbit.
    pub const fn orbits(&self) -> &'a [u32] {
        self.orbits
    }
}
