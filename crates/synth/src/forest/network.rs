//! The network at hand: all of a topology, or a piece of it in numbers of its own.

use canopy_optimize::FlowUnit;
use canopy_topology::Topology;

use crate::symmetry::boxes;

/// Nodes and links without capacities, which change while trees are found.
#[derive(Clone, Debug)]
pub(super) struct Network<'a> {
    /// Nodes that every tree must reach come first: ranks, and what stands for several of them.
    pub(super) terminal_count: u32,
    pub(super) node_count: u32,
    /// The terminal that stands for all that is outside of a piece, if this is one.
    pub(super) outside: Option<u32>,
    /// Sorted by both ends.
    pub(super) links: Vec<Way>,
    /// By terminal: the box it is in, as the topology states it.
    pub(super) boxes: Vec<Option<u32>>,
    /// Of the switches, which are the nodes after the terminals.
    pub(super) switch_names: Vec<&'a str>,
}

/// Where a link leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Way {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) latency_ns: u64,
}

impl<'a> Network<'a> {
    /// All of a topology, with its numbers of nodes and links. O(nodes + links).
    pub(super) fn of(topology: &'a Topology) -> Self {
        let way = |link: &canopy_topology::Link| Way {
            from: link.from.number(),
            to: link.to.number(),
            latency_ns: link.latency.nanos(),
        };
        let switches = &topology.nodes()[topology.rank_count() as usize..];
        Self {
            terminal_count: topology.rank_count(),
            node_count: u32::try_from(topology.nodes().len()).expect("limits keep node counts within u32"),
            outside: None,
            links: topology.links().iter().map(way).collect(),
            boxes: boxes(topology),
            switch_names: switches.iter().map(|switch| switch.id.as_str()).collect(),
        }
    }

    /// Whether as much enters every switch as leaves it. Of ranks it need not be so: where `trim` argues with balance, it does
    /// so for sets of switches. O(links).
    pub(super) fn switches_are_balanced<C: FlowUnit>(&self, capacities: &[C]) -> bool {
        let mut entering = vec![C::ZERO; self.node_count as usize];
        let mut leaving = entering.clone();
        for (link, &capacity) in self.links.iter().zip(capacities) {
            leaving[link.from as usize] += capacity;
            entering[link.to as usize] += capacity;
        }
        let switches = self.terminal_count as usize..;
        entering[switches.clone()] == leaving[switches]
    }

    /// Name of a switch.
    pub(super) fn switch_name(&self, switch: u32) -> &'a str {
        self.switch_names[(switch - self.terminal_count) as usize]
    }
}
