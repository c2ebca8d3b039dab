//! Networks of ranks alone before they are put together: a graph, names of its nodes, and what each edge carries.
//!
//! Parallel edges and edges from a node to itself are kept as they are: operators count ports, and what a topology makes
//! of them is decided at the end.

use std::collections::HashMap;

use canopy_direct::Digraph;

use crate::draft::TopologyDraft;
use crate::error::TopologyError;
use crate::model::{Attributes, NodeKind};
use crate::units::{Capacity, Latency};

/// What an edge carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wire {
    pub(super) rate: Capacity,
    pub(super) latency: Latency,
}

/// A graph with named nodes and wires for edges.
#[derive(Clone, Debug)]
pub(super) struct Network {
    pub(super) ids: Vec<String>,
    pub(super) graph: Digraph,
    /// By number of the edge.
    pub(super) wires: Vec<Wire>,
}

impl Network {
    /// All edges alike.
    pub(super) fn uniform(ids: Vec<String>, graph: Digraph, wire: Wire) -> Self {
        let wires = vec![wire; graph.edge_count() as usize];
        Self { ids, graph, wires }
    }

    /// A draft without switches; `None` if it has any. O(nodes + links).
    pub(super) fn of_draft(draft: TopologyDraft) -> Option<Self> {
        if draft.nodes.iter().any(|node| node.kind != NodeKind::Compute) {
            return None;
        }
        let order = u32::try_from(draft.nodes.len()).ok()?;
        let numbers: HashMap<&str, u32> = draft.nodes.iter().map(|node| node.id.as_str()).zip(0..).collect();
        let mut edges = Vec::new();
        for link in &draft.links {
            let wire = Wire { rate: link.capacity, latency: link.latency };
            let (tail, head) = (*numbers.get(link.from.as_str())?, *numbers.get(link.to.as_str())?);
            edges.extend((0..link.count).map(|_| (tail, head, wire)));
        }
        // Stable, as the graph puts them by tail.
        edges.sort_by_key(|&(tail, ..)| tail);
        let wires = edges.iter().map(|&(_, _, wire)| wire).collect();
        let graph = Digraph::new(order, edges.iter().map(|&(tail, head, _)| (tail, head))).ok()?;
        Some(Self { ids: draft.nodes.into_iter().map(|node| node.id).collect(), graph, wires })
    }

    /// Wires of the edges that leave a node, in their order.
    pub(super) fn wires_of(&self, node: u32) -> &[Wire] {
        let range = self.graph.out_edges(node);
        &self.wires[range.start as usize..range.end as usize]
    }

    /// Gives every edge this rate and latency, where they are said.
    pub(super) fn set(&mut self, rate: Option<Capacity>, latency: Option<Latency>) {
        for wire in &mut self.wires {
            wire.rate = rate.unwrap_or(wire.rate);
            wire.latency = latency.unwrap_or(wire.latency);
        }
    }

    /// Nodes in their order, edges as links; an edge from a node to itself is no link, but a port that the node has.
    ///
    /// # Errors
    /// The ports of a node that lead back to it have more bandwidth than 64 bits hold.
    pub(super) fn to_draft(&self) -> Result<TopologyDraft, TopologyError> {
        let mut draft = TopologyDraft::default();
        for (node, id) in (0..).zip(&self.ids) {
            let mut loops = 0_u64;
            for (&head, wire) in self.graph.out(node).iter().zip(self.wires_of(node)) {
                if head == node {
                    let sum = loops.checked_add(wire.rate.bytes_per_sec());
                    loops = sum.ok_or_else(|| TopologyError::CapacityOverflow { from: id.clone(), to: id.clone() })?;
                } else {
                    draft.add_link(id.as_str(), self.ids[head as usize].as_str(), wire.rate, wire.latency);
                }
            }
            let attributes = Attributes { loops: Capacity::from_bytes_per_sec(loops), ..Attributes::default() };
            draft.add_node(id.as_str(), NodeKind::Compute, attributes);
        }
        Ok(draft)
    }
}
