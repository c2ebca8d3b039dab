//! What a program sends between ranks, and how fast a network carries that.
//!
//! A file says who sends to whom, not on which wires. To give its rate a meaning on a network, every pair of ranks is
//! routed on one shortest route, the same each time; a network that spreads traffic may do better.

use std::collections::{BTreeMap, VecDeque};

use canopy_topology::{LinkIndex, NodeIndex, Rank, Rate, Topology};

use super::program::{Program, expected_chunks};
use crate::proof::Stop;

/// How fast a network carries a program, and what limits it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkLoad {
    /// Bytes of the collective per second once the program is under way: the size of its data divided by the time the
    /// busiest link needs.
    pub algbw: Rate,
    /// The link that takes longest; the first of several.
    pub busiest: LinkIndex,
    /// Chunks that pass it.
    pub chunks: u64,
}

/// Why a program has no load on a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum TrafficError {
    #[error("the file is for {found} ranks, but the network has {expected}; use the network of the file")]
    Ranks { found: u32, expected: u32 },
    #[error("rank {from} sends to rank {to}, but the network has no route between them")]
    Unreachable { from: u32, to: u32 },
    #[error("the file sends nothing between ranks, so no link limits it")]
    Idle,
    #[error("stopped on request before all traffic was routed")]
    Stopped,
}

/// Chunks that each rank sends to each other one, over all channels.
pub fn traffic(program: &Program) -> BTreeMap<(u32, u32), u64> {
    let mut chunks: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for rank in &program.ranks {
        for block in &rank.thread_blocks {
            let Some(to) = block.send else { continue };
            let sent = block.steps.iter().filter(|step| step.operation.sends());
            let sent: u64 = sent.map(|step| u64::from(step.chunk_count)).sum();
            if sent > 0 {
                *chunks.entry((rank.rank, to)).or_default() += sent;
            }
        }
    }
    chunks
}

/// Exact rate of a program on a network with one shortest route per pair of ranks.
///
/// The route has fewest links; among those it is the one a search that visits nodes in the order of their indices
/// finds first. Data may pass other ranks on its way, as it must in networks without switches.
///
/// A link of capacity `c` bytes/s that `m` of the `M` chunks of the collective's data pass takes `m/M` of the data's
/// bytes, so `algbw = min c·M/m` over all links.
///
/// * **Errors.** The number of ranks differs, a pair has no route, nothing is sent, or `stop`, asked for every sending
///   rank, returned true.
/// * **Cost.** O(sending ranks · (nodes + links) + pairs · length of routes).
pub fn network_load(program: &Program, topology: &Topology, stop: Stop<'_>) -> Result<NetworkLoad, TrafficError> {
    let data = program.ranks.first().map_or(0, |rank| {
        let (input, output) = expected_chunks(program, rank);
        u64::from(input.max(output))
    });
    routed(&Demand { rank_count: program.rank_count, chunks: traffic(program), data }, topology, stop)
}

/// What a program sends.
pub(crate) struct Demand {
    /// Ranks of the program.
    pub(crate) rank_count: u32,
    /// Chunks that each rank sends to each other one.
    pub(crate) chunks: BTreeMap<(u32, u32), u64>,
    /// Chunks of the collective's data.
    pub(crate) data: u64,
}

/// Exact rate of what is sent, as [`network_load`] says.
pub(crate) fn routed(demand: &Demand, topology: &Topology, stop: Stop<'_>) -> Result<NetworkLoad, TrafficError> {
    let (found, expected) = (demand.rank_count, topology.rank_count());
    if found != expected {
        return Err(TrafficError::Ranks { found, expected });
    }
    let mut loads = vec![0_u64; topology.links().len()];
    let mut search = Search::new(topology);
    let mut searched = None;
    for (&(from, to), &chunks) in &demand.chunks {
        if from >= found || to >= found {
            return Err(TrafficError::Unreachable { from, to });
        }
        if searched != Some(from) {
            if stop() {
                return Err(TrafficError::Stopped);
            }
            search.run(Rank::new(from).node());
            searched = Some(from);
        }
        let mut node = Rank::new(to).node();
        while node != Rank::new(from).node() {
            let link = search.reached_by[node.index()].ok_or(TrafficError::Unreachable { from, to })?;
            loads[link.index()] += chunks;
            node = topology.link(link).from;
        }
    }
    let data = u128::from(demand.data);
    let rate = |(position, load): (usize, &u64)| {
        let link = LinkIndex::new(u32::try_from(position).ok()?);
        let capacity = u128::from(topology.link(link).capacity.bytes_per_sec());
        Some((Rate::new(capacity * data, u128::from(*load))?, link, *load))
    };
    let slowest = loads.iter().enumerate().filter_map(rate).min_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
    let (algbw, busiest, chunks) = slowest.ok_or(TrafficError::Idle)?;
    Ok(NetworkLoad { algbw, busiest, chunks })
}

/// Breadth-first search over all nodes.
struct Search<'t> {
    topology: &'t Topology,
    /// The last link of the route to each node.
    reached_by: Vec<Option<LinkIndex>>,
    queue: VecDeque<NodeIndex>,
}

impl<'t> Search<'t> {
    fn new(topology: &'t Topology) -> Self {
        Self { topology, reached_by: vec![None; topology.nodes().len()], queue: VecDeque::new() }
    }

    fn run(&mut self, start: NodeIndex) {
        self.reached_by.fill(None);
        self.queue.push_back(start);
        while let Some(node) = self.queue.pop_front() {
            for link in self.topology.links_from(node) {
                let to = self.topology.link(link).to;
                if to != start && self.reached_by[to.index()].is_none() {
                    self.reached_by[to.index()] = Some(link);
                    self.queue.push_back(to);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use canopy_schedule::CollectiveKind;
    use canopy_topology::{TopologyLimits, generate};

    use super::*;
    use crate::msccl::examples::{block, program, rank, ring_allgather, ring_allreduce, step};

    fn load(program: &Program, expression: &str) -> Result<NetworkLoad, TrafficError> {
        network_load(program, &generate(expression, &TopologyLimits::STANDARD).unwrap(), &|| false)
    }

    /// A ring of four with links of 12 bytes/s in either direction: an allgather sends 3 of 4 chunks over each link of
    /// one direction, an allreduce 6 of 4.
    #[test]
    fn a_ring_is_limited_by_what_passes_each_link() {
        let of = |program| load(&program, "ring:4,bw=12GB/s").unwrap().algbw.to_string();
        assert_eq!(of(ring_allgather(1)), "16000000000");
        assert_eq!(of(ring_allgather(5)), "16000000000");
        assert_eq!(of(ring_allreduce()), "8000000000");
    }

    #[test]
    fn pairs_that_are_no_neighbours_use_the_links_between() {
        // Ranks 0 and 2 of a line of three swap: both links of each direction carry one of two chunks.
        let swap = |own: u32| {
            let other = 2 - own;
            let steps = vec![step("s", &format!("i{other}"), "o0", 1), step("r", "i0", &format!("o{other}"), 1)];
            rank(own, [3, 3, 0], vec![block(Some(other), Some(other), steps)])
        };
        let idle = rank(1, [3, 3, 0], Vec::new());
        let swap = program(CollectiveKind::AllToAll, false, 3, vec![swap(0), idle, swap(2)]);
        let line = load(&swap, "mesh:3,bw=5GB/s").unwrap();
        assert_eq!((line.algbw.to_string(), line.chunks), ("15000000000".to_owned(), 1));
        assert_eq!(traffic(&swap).into_iter().collect::<Vec<_>>(), [((0, 2), 1), ((2, 0), 1)]);
    }

    #[test]
    fn what_cannot_be_routed_is_refused() {
        assert_eq!(load(&ring_allgather(1), "ring:5"), Err(TrafficError::Ranks { found: 4, expected: 5 }));
        let mut silent = ring_allgather(1);
        silent.ranks.iter_mut().for_each(|rank| rank.thread_blocks.clear());
        assert_eq!(load(&silent, "ring:4"), Err(TrafficError::Idle));
        let ring = generate("ring:4", &TopologyLimits::STANDARD).unwrap();
        assert_eq!(network_load(&ring_allgather(1), &ring, &|| true), Err(TrafficError::Stopped));
    }
}
