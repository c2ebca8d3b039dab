//! What is to be sent over what.

use crate::digraph::Digraph;
use crate::error::DigraphError;
use crate::stop::Stopped;

/// What one source has for its sinks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commodity {
    /// Where it starts.
    pub source: u32,
    /// Nodes that want something of it with how much they want: ascending, neither the source nor anything of amount zero.
    pub sinks: Vec<(u32, u64)>,
    /// How many sources this one stands for, itself included: where a network looks the same from all of them, and loads are
    /// counted by orbits of arcs. 1 where each stands for itself.
    pub copies: u64,
}

/// A network with commodities, found well-formed.
#[derive(Clone, Debug)]
pub struct ConcurrentProblem<'a> {
    graph: &'a Digraph,
    commodities: &'a [Commodity],
    /// By arc, the orbit it belongs to; empty where each is alone.
    orbits: &'a [u32],
}

/// Why there is nothing to solve.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum ConcurrentError {
    #[error(transparent)]
    Graph(#[from] DigraphError),
    #[error("commodities[{commodity}] starts at node {node}, but the graph has {node_count} nodes")]
    NoSuchSource { commodity: usize, node: u32, node_count: u32 },
    #[error("commodities[{commodity}].copies is zero; a source stands for itself at least")]
    NoCopies { commodity: usize },
    #[error(
        "commodities[{commodity}].sinks[{sink}] is node {node} with demand {demand}; sinks ascend, are nodes of the graph \
         (of which there are {node_count}) other than the source, and want something"
    )]
    Sink { commodity: usize, sink: usize, node: u32, demand: u64, node_count: u32 },
    #[error("no commodity wants anything; there is no rate without demand")]
    NothingToMove,
    #[error("node {to} can not be reached from the source {from}, but wants something of it")]
    Unreachable { from: u32, to: u32 },
    #[error("{found} orbits are given for {expected} arcs; give one for each, or none")]
    OrbitCount { found: usize, expected: usize },
    #[error("lengths for {found} arcs are given, but there are {expected}")]
    LengthCount { found: usize, expected: usize },
    #[error("demands of {found} pairs are given, but paths of {expected}; give one for each")]
    PairCount { found: usize, expected: usize },
    #[error("pairs[{pair}] wants something but has no path; give it one, or no demand")]
    NoPath { pair: usize },
    #[error("pairs[{pair}][{path}] passes arc {arc}; arcs are below {arc_count} and have some capacity")]
    PathArc { pair: usize, path: usize, arc: u32, arc_count: usize },
    #[error("commodities[{commodity}] stands for others; flows in steps need each one by itself, with copies 1")]
    Copies { commodity: usize },
    #[error(
        "{found} nodes are said to rest things or to pass them on, but there are {expected}; say it of each, or of none"
    )]
    TransitCount { found: usize, expected: usize },
    #[error("commodities[{commodity}] starts or ends at node {node}, where things only pass; let it rest things")]
    TransitEnd { commodity: usize, node: u32 },
    #[error("sums of demands, capacities and lengths go beyond 128 bits; use smaller units")]
    TooLarge,
    #[error("stopped before a result was found")]
    Stopped,
    #[error("{what}; this is a fault in the planner, not in the request")]
    Broken { what: &'static str },
}

impl From<Stopped> for ConcurrentError {
    fn from(Stopped: Stopped) -> Self {
        Self::Stopped
    }
}

impl<'a> ConcurrentProblem<'a> {
    /// Accepts what is well-formed. Whether sinks are within reach is found out by whoever searches for paths.
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

    /// The network.
    pub const fn graph(&self) -> &'a Digraph {
        self.graph
    }

    /// What is to be sent.
    pub const fn commodities(&self) -> &'a [Commodity] {
        self.commodities
    }

    /// By arc the number of its orbit; empty where each is alone.
    pub const fn orbits(&self) -> &'a [u32] {
        self.orbits
    }
}
