//! The bound on all-to-all that lengths of links prove, as the search for good lengths computes it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use canopy_optimize::Stop;
use canopy_schedule::Shares;
use canopy_topology::{NodeIndex, Rate, Topology};
use num_bigint::BigUint;

use super::BoundError;

/// Most different lengths for which nodes wait in one line for each, which are in order without being sorted.
const LINES_MAX: usize = 8;

/// `N·Σ c·ℓ / Σ dist`, for weighted blocks `(W/N)·Σ c·ℓ / Σ w·dist`; `None` where all that has to move is where it should be.
///
/// * **In.** Ranks that reach those they have something for. **Errors.** Stopped.
/// * **Cost.** A search from each rank: O(links) where few lengths differ, by Dijkstra else.
pub(super) fn rate_of(
    topology: &Topology,
    shares: &Shares,
    lengths: &[u64],
    stop: &dyn Stop,
) -> Result<Option<Rate>, BoundError> {
    if lengths.len() != topology.links().len() {
        return Ok(None);
    }
    let volumes = topology.links().iter().zip(lengths);
    let volumes = volumes.map(|(link, &length)| u128::from(link.capacity.bytes_per_sec()) * u128::from(length));
    let volume: BigUint = volumes.map(BigUint::from).sum();
    let mut search = Search::new(topology, lengths);
    let mut total = Sum::default();
    for source in topology.ranks() {
        if stop.is_requested() {
            return Err(BoundError::Stopped);
        }
        search.run(source.node());
        // Every rank that wants something is reached, over fewer than 2³² links of less than 2⁶⁴.
        for (rank, &distance) in topology.ranks().zip(&search.distances) {
            let weight = shares.block(source, rank);
            if rank != source && weight > 0 {
                total.add(distance, weight);
            }
        }
    }
    let (total, ranks) = (total.finish(), topology.rank_count());
    Ok(match shares {
        Shares::Blocks(_) => Rate::new(volume * shares.weight_total(ranks), total * ranks),
        Shares::Equal | Shares::Weighted(_) => Rate::new(volume * ranks, total),
    })
}

/// A sum of products, in 128 bits as far as these last.
#[derive(Default)]
struct Sum {
    small: u128,
    rest: BigUint,
}

impl Sum {
    fn add(&mut self, distance: u128, weight: u64) {
        let product = distance.checked_mul(weight.into());
        match product.and_then(|product| self.small.checked_add(product)) {
            Some(sum) => self.small = sum,
            None => self.rest += BigUint::from(distance) * weight,
        }
    }

    fn finish(self) -> BigUint {
        self.rest + self.small
    }
}

/// Searches for the lengths of shortest paths; keeps its tables from one to the next.
struct Search {
    /// Those of the node at `i` are at `starts[i] .. starts[i + 1]` of `arcs`.
    starts: Vec<usize>,
    /// Where links lead, and which of the different lengths each has.
    arcs: Vec<(u32, u32)>,
    /// Those that differ, rising.
    lengths: Vec<u64>,
    distances: Vec<u128>,
    /// Nodes that were reached over a link of each length, where these are few: what is nearest comes first in each.
    lines: Vec<VecDeque<(u128, u32)>>,
    /// The same for all together, where they are many.
    heap: BinaryHeap<Reverse<(u128, u32)>>,
}

impl Search {
    fn new(topology: &Topology, of_links: &[u64]) -> Self {
        let mut lengths = of_links.to_vec();
        lengths.sort_unstable();
        lengths.dedup();
        let place = |length: u64| u32::try_from(lengths.partition_point(|&other| other < length)).unwrap_or(u32::MAX);
        let (mut starts, mut arcs) = (vec![0], Vec::with_capacity(of_links.len()));
        for (node, _) in (0..).map(NodeIndex::new).zip(topology.nodes()) {
            let leaving = topology.links_from(node);
            arcs.extend(leaving.map(|link| (topology.link(link).to.number(), place(of_links[link.index()]))));
            starts.push(arcs.len());
        }
        let lines = if lengths.len() <= LINES_MAX { lengths.len() } else { 0 };
        let (lines, heap) = (vec![VecDeque::new(); lines], BinaryHeap::new());
        Self { distances: vec![u128::MAX; starts.len() - 1], starts, arcs, lengths, lines, heap }
    }

    /// Finds the distances of all nodes from one.
    fn run(&mut self, source: NodeIndex) {
        self.distances.fill(u128::MAX);
        self.distances[source.index()] = 0;
        let mut next = Some((0, source.number()));
        while let Some((distance, node)) = next {
            let node = node as usize;
            if distance == self.distances[node] {
                for &(to, length) in &self.arcs[self.starts[node]..self.starts[node + 1]] {
                    let through = distance + u128::from(self.lengths[length as usize]);
                    if through < self.distances[to as usize] {
                        self.distances[to as usize] = through;
                        match self.lines.get_mut(length as usize) {
                            Some(line) => line.push_back((through, to)),
                            None => self.heap.push(Reverse((through, to))),
                        }
                    }
                }
            }
            next = self.nearest();
        }
    }

    /// Takes the nearest of the nodes that wait.
    fn nearest(&mut self) -> Option<(u128, u32)> {
        if self.lines.is_empty() {
            return self.heap.pop().map(|Reverse(nearest)| nearest);
        }
        let waiting = self.lines.iter_mut().filter(|line| !line.is_empty());
        waiting.min_by_key(|line| line.front().copied())?.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use canopy_optimize::Never;
    use canopy_topology::{TopologyLimits, generate};

    use super::*;

    /// Lines and heap find the same: many lengths that are all near each other are as good as one.
    #[test]
    fn few_lengths_are_searched_as_many_are() {
        for expression in ["dgx-a100:boxes=2", "torus:3x4", "fat-tree:k=4", "genkautz:n=11,d=3"] {
            let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
            let few: Vec<u64> = (0..).take(topology.links().len()).map(|link| [7, 0, 3][link % 3]).collect();
            let mut search = Search::new(&topology, &few);
            assert_eq!(search.lines.len(), 3);
            let mut by_heap = Search::new(&topology, &few);
            by_heap.lines.clear();
            for source in topology.ranks() {
                search.run(source.node());
                by_heap.run(source.node());
                assert_eq!(search.distances, by_heap.distances, "{expression}");
            }
        }
    }

    /// On a ring of four, ranks are 1, 2 and 1 links from each other, and each link has 25 GB/s: 4 · 8 · 25 / 16.
    #[test]
    fn lengths_of_one_count_links() {
        let topology = generate("ring:4", &TopologyLimits::STANDARD).unwrap();
        let rate = |length: u64| rate_of(&topology, &Shares::Equal, &[length; 8], &Never).unwrap();
        assert_eq!(rate(1), Rate::new(50_000_000_000_u64, 1_u32));
        // Sums of so long ones take more than 128 bits.
        assert_eq!(rate(u64::MAX), rate(1));
        assert_eq!(rate(0), None);
    }

    #[test]
    fn sums_go_beyond_128_bits() {
        let mut sum = Sum::default();
        (0..3).for_each(|_| sum.add(u128::MAX >> 1, u64::MAX));
        (0..3).for_each(|_| sum.add(u128::MAX >> 1, 1));
        assert_eq!(sum.finish(), BigUint::from(u128::MAX >> 1) * 3_u32 * (u128::from(u64::MAX) + 1));
    }
}
