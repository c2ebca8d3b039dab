//! The channels of a program's network, by number.

use crate::routes::program::{Program, QueuePair, RankProgram};

/// A network whose nodes and ports are in order, and the ranks on it.
pub(super) struct Network<'p> {
    program: &'p Program,
    /// By node: the number of its first port's channel.
    first: Vec<u32>,
    /// By rank.
    pub(super) ranks: Vec<&'p RankProgram>,
}

impl<'p> Network<'p> {
    /// Numbers channels by node, then by port; none where there are too many for 32 bits.
    pub(super) fn new(program: &'p Program, ranks: Vec<&'p RankProgram>) -> Option<Self> {
        let mut next = 0_u32;
        let mut first = Vec::with_capacity(program.nodes.len());
        for node in &program.nodes {
            first.push(next);
            next = next.checked_add(u32::try_from(node.ports.len()).ok()?)?;
        }
        Some(Self { program, first, ranks })
    }

    /// The channel of a node's port and the node that it leads to, if there are such.
    pub(super) fn step(&self, node: u32, port: u32) -> Option<(u32, u32)> {
        let to = self.program.nodes.get(node as usize)?.ports.get(port as usize)?.to;
        Some((self.first.get(node as usize)? + port, to))
    }

    /// Channels of a queue pair, as far as its ports exist.
    pub(super) fn channels<'a>(&'a self, rank: &'a RankProgram, pair: &'a QueuePair) -> impl Iterator<Item = u32> + 'a {
        rank.ports_of(pair).iter().scan(rank.rank, |at, &port| {
            let (channel, to) = self.step(*at, port)?;
            *at = to;
            Some(channel)
        })
    }

    /// Rates of all channels, by number.
    pub(super) fn rates(&self) -> impl Iterator<Item = u64> {
        self.program.nodes.iter().flat_map(|node| &node.ports).map(|port| port.rate)
    }

    /// Both ends of an existing channel by the names of the nodes.
    pub(super) fn name(&self, channel: u32) -> String {
        let node = self.first.partition_point(|&first| first <= channel).saturating_sub(1);
        let from = &self.program.nodes[node];
        let to = from.ports.get((channel - self.first[node]) as usize).map(|port| port.to);
        let to = to.and_then(|to| self.program.nodes.get(to as usize)).map_or("?", |node| node.name.as_str());
        format!("{} -> {to}", from.name)
    }
}
