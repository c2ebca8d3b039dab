//! Routes from each of many sources to its targets, one tree for each source: for networks with too many pairs to look for
//! each route alone.

mod reach;

use std::ops::Range;

use canopy_topology::{LinkIndex, NodeIndex};
use rayon::prelude::*;

use self::reach::{Reach, ReachFinder};
use super::choice::{is_less, mixed};
use super::{Levels, Network, Passing};

/// Numbers to keep what all sources reach for as long as the trees are chosen: sources times links. Of larger networks it
/// is found again each time, which takes half of the time then.
const KEPT_MAX: u64 = 1 << 24;

/// Growths of whole routes stay below 2 to this. Loads, doubled and with more chunks, are below 2²⁸, so that 35 bits are left
/// for the nodes of a route and the capacities of links: in networks of a thousand nodes they are told apart by a millionth
/// of the narrowest.
const GROWTH_BITS: u32 = 63 - 28;

/// Where there is no link: at sources, and out of their reach.
const NONE: LinkIndex = LinkIndex::new(u32::MAX);

/// A tree of shortest and widest routes for each source.
#[derive(Debug)]
pub(crate) struct RouteTrees<'a> {
    network: &'a Network<'a>,
    sources: Vec<NodeIndex>,
    finder: ReachFinder,
    /// By source, once it is found, where it is kept.
    reaches: Vec<Option<Reach>>,
    keeps_reaches: bool,
    /// By source and node: the last link of the route.
    links: Vec<LinkIndex>,
    /// By link: where data on it comes from.
    tails: Vec<NodeIndex>,
    /// By link: in inverse proportion to its capacity, rounded down.
    inverses: Vec<u64>,
    /// By link: chunks of all trees.
    loads: Vec<u64>,
    /// By node, of one source: chunks that pass it or end there.
    chunks: Vec<u64>,
    /// By node, of one source: the least growth of a way to it, for each chunk.
    costs: Vec<u64>,
}

impl<'a> RouteTrees<'a> {
    /// Without a route. O(sources · nodes + links).
    pub(crate) fn new(network: &'a Network<'a>, sources: Vec<NodeIndex>) -> Self {
        let (node_count, link_count) = (network.topology.nodes().len(), network.topology.links().len());
        let all_links = || (0_u32..).map(LinkIndex::new).take(link_count);
        let keeps_reaches = (sources.len() as u64).saturating_mul(link_count as u64) <= KEPT_MAX;
        Self {
            finder: ReachFinder::new(network),
            reaches: vec![None; sources.len()],
            keeps_reaches,
            links: vec![NONE; sources.len() * node_count],
            tails: all_links().map(|link| network.tail(link)).collect(),
            inverses: inverses(network),
            loads: vec![0; link_count],
            chunks: vec![0; node_count],
            costs: vec![0; node_count],
            network,
            sources,
        }
    }

    /// Finds what these sources reach, on all threads of the caller's pool, where that is kept.
    pub(crate) fn find_reaches(&mut self, sources: Range<usize>) {
        if self.keeps_reaches {
            let (finder, network) = (&self.finder, self.network);
            let places = self.reaches[sources.clone()].par_iter_mut().zip(&self.sources[sources]);
            places.for_each(|(reach, &source)| *reach = Some(finder.find(network, source)));
        }
    }

    /// Whether some node may be reached in more than one way, as far as that is known once all trees are chosen.
    pub(crate) fn has_choice(&self) -> bool {
        !self.keeps_reaches || self.reaches.iter().flatten().any(Reach::has_choice)
    }

    /// Links of the routes from a source to all targets together: each route has its links whichever is chosen.
    /// `targets` are the source's own, each with its chunks, more than none.
    pub(crate) fn length(&mut self, source: usize, targets: impl Iterator<Item = (NodeIndex, u64)>) -> u64 {
        let reach = self.take_reach(source);
        self.chunks.fill(0);
        targets.for_each(|(target, _)| self.chunks[target.index()] = 1);
        let length = reach.length(|node| self.chunks[node.index()] > 0);
        self.put_reach(source, reach);
        length
    }

    /// Chooses the tree of a source, in place of the one that it has.
    ///
    /// A first pass from the source says what a way to each node costs, as links are used so far. A second one, from the
    /// farthest node on, takes the cheapest last link for all chunks that meet at a node. `seed` breaks ties.
    ///
    /// * **Source.** Our own. **In.** The source's targets, each with its chunks. **Cost.** O(nodes + links).
    pub(crate) fn choose(&mut self, source: usize, targets: impl Iterator<Item = (NodeIndex, u64)> + Clone, seed: u64) {
        let reach = self.take_reach(source);
        let place = self.place(source);
        self.leave(&reach, place, targets.clone());
        self.chunks.fill(0);
        targets.for_each(|(target, chunks)| self.chunks[target.index()] += chunks);
        self.costs[self.sources[source].index()] = 0;
        for (node, ways) in reach.nodes() {
            let least = ways.iter().map(|&way| self.cost(way, 1)).min();
            self.costs[node.index()] = least.unwrap_or_default();
        }
        for (node, ways) in reach.nodes().rev() {
            // Where nothing ends or passes yet, something may in time.
            let chunks = self.chunks[node.index()];
            let Some(link) = self.cheapest(ways, chunks, seed) else { continue };
            self.loads[link.index()] += chunks;
            self.chunks[self.tails[link.index()].index()] += chunks;
            self.links[place + node.index()] = link;
        }
        self.put_reach(source, reach);
    }

    /// Takes the chunks of a tree off its links, if there is one.
    fn leave(&mut self, reach: &Reach, place: usize, targets: impl Iterator<Item = (NodeIndex, u64)>) {
        if reach.nodes().next().is_none_or(|(node, _)| self.links[place + node.index()] == NONE) {
            return;
        }
        self.gather(reach, place, targets);
        for (node, _) in reach.nodes() {
            self.loads[self.links[place + node.index()].index()] -= self.chunks[node.index()];
        }
    }

    /// The way that costs least; of several any, by `seed`.
    fn cheapest(&self, ways: &[LinkIndex], chunks: u64, seed: u64) -> Option<LinkIndex> {
        let (&first, others) = ways.split_first()?;
        if others.is_empty() {
            return Some(first);
        }
        let tie = |way: LinkIndex| mixed(seed.rotate_left(32) ^ u64::from(way.number()));
        let mut best = (self.cost(first, chunks), first);
        for &way in others {
            let cost = self.cost(way, chunks);
            if cost < best.0 || cost == best.0 && tie(way) < tie(best.1) {
                best = (cost, way);
            }
        }
        Some(best.1)
    }

    /// Hangs branches of the tree of a source elsewhere, one after the other, from the farthest on, where Σ load²/capacity
    /// over all links becomes less by that; says whether it became so for any.
    ///
    /// A branch hangs at its last link, and takes all that passes the node there along. Both ways to the node are as long,
    /// so they are compared link by link up to the node where they part.
    ///
    /// * **In.** As for [`choose`](Self::choose), which has chosen the tree.
    /// * **Cost.** O(nodes + links · links of a route); a fraction of it, as ways to a node part late.
    pub(crate) fn rehang(&mut self, source: usize, targets: impl Iterator<Item = (NodeIndex, u64)>) -> bool {
        let reach = self.take_reach(source);
        let place = self.place(source);
        self.gather(&reach, place, targets);
        let mut has_moved = false;
        for (node, ways) in reach.nodes().rev() {
            let chunks = self.chunks[node.index()];
            if chunks == 0 || ways.len() < 2 {
                continue;
            }
            let old = self.links[place + node.index()];
            let others = ways.iter().copied().filter(|&way| way != old);
            let best = others.map(|way| (self.gain(place, old, way, chunks), way)).max_by_key(|&(gain, _)| gain);
            let Some((_, new)) = best.filter(|&(gain, _)| gain > 0) else { continue };
            for (left, taken) in parting(&self.links[place..], &self.tails, old, new) {
                self.loads[left.index()] -= chunks;
                self.loads[taken.index()] += chunks;
                // Where they part, the two changes cancel out.
                self.chunks[self.tails[left.index()].index()] -= chunks;
                self.chunks[self.tails[taken.index()].index()] += chunks;
            }
            self.links[place + node.index()] = new;
            has_moved = true;
        }
        self.put_reach(source, reach);
        has_moved
    }

    /// The greatest load ÷ capacity of a link, as the two numbers; zero where there are no links. O(links).
    pub(crate) fn worst(&self) -> (u64, u64) {
        let loads = self.loads.iter().zip(self.network.topology.links());
        let loads = loads.map(|(&load, link)| (load, link.capacity.bytes_per_sec()));
        loads.fold((0, 1), |worst, load| if is_less(worst, load) { load } else { worst })
    }

    /// All trees, for [`restore`](Self::restore).
    pub(crate) fn trees(&self) -> Vec<LinkIndex> {
        self.links.clone()
    }

    /// Takes up trees as they were, to be written.
    pub(crate) fn restore(&mut self, trees: Vec<LinkIndex>) {
        self.links = trees;
    }

    /// The last link of the route from a source to a node; `None` at the source and out of its reach.
    pub(crate) fn last_link(&self, source: usize, node: NodeIndex) -> Option<LinkIndex> {
        Some(self.links[self.place(source) + node.index()]).filter(|&link| link != NONE)
    }

    /// Where the links of a source begin.
    fn place(&self, source: usize) -> usize {
        source * self.chunks.len()
    }

    /// Counts, by node, the chunks of a tree that end there or pass.
    fn gather(&mut self, reach: &Reach, place: usize, targets: impl Iterator<Item = (NodeIndex, u64)>) {
        self.chunks.fill(0);
        targets.for_each(|(target, chunks)| self.chunks[target.index()] += chunks);
        for (node, _) in reach.nodes().rev() {
            let link = self.links[place + node.index()];
            if link != NONE {
                self.chunks[self.tails[link.index()].index()] += self.chunks[node.index()];
            }
        }
    }

    /// What a way that ends with this link costs each of so many chunks.
    fn cost(&self, way: LinkIndex, chunks: u64) -> u64 {
        self.costs[self.tails[way.index()].index()] + self.growth(self.loads[way.index()], way, chunks)
    }

    /// By how much load²/capacity of a link that has this load grows with so many more chunks, for each of them, scaled.
    fn growth(&self, load: u64, link: LinkIndex, chunks: u64) -> u64 {
        (2 * load + chunks) * self.inverses[link.index()]
    }

    /// What each of so many chunks saves that leave one way to a node for another, both named by their last links; scaled.
    fn gain(&self, place: usize, old: LinkIndex, new: LinkIndex, chunks: u64) -> i64 {
        let (mut saved, mut spent) = (0, 0);
        for (left, taken) in parting(&self.links[place..], &self.tails, old, new) {
            saved += self.growth(self.loads[left.index()] - chunks, left, chunks);
            spent += self.growth(self.loads[taken.index()], taken, chunks);
        }
        saved.cast_signed() - spent.cast_signed()
    }

    fn take_reach(&mut self, source: usize) -> Reach {
        self.reaches[source].take().unwrap_or_else(|| self.finder.find(self.network, self.sources[source]))
    }

    fn put_reach(&mut self, source: usize, reach: Reach) {
        if self.keeps_reaches {
            self.reaches[source] = Some(reach);
        }
    }
}

/// By link, a number in inverse proportion to its capacity; as great as [`GROWTH_BITS`] allow for the narrowest.
fn inverses(network: &Network<'_>) -> Vec<u64> {
    let links = || (0..).map(LinkIndex::new).zip(network.topology.links()).map(|(link, _)| network.width(link));
    let nodes = network.topology.nodes().len().next_power_of_two().trailing_zeros();
    let unit = u128::from(links().min().unwrap_or(1)) << GROWTH_BITS.saturating_sub(nodes);
    links().map(|width| u64::try_from(unit / u128::from(width)).unwrap_or(u64::MAX)).collect()
}

/// The links of two equally long ways to a node, pair by pair from their last ones back to the node where they part.
fn parting<'a>(
    links: &'a [LinkIndex],
    tails: &'a [NodeIndex],
    old: LinkIndex,
    new: LinkIndex,
) -> impl Iterator<Item = (LinkIndex, LinkIndex)> + use<'a> {
    std::iter::successors(Some((old, new)), |&(left, taken)| {
        let (from, other) = (tails[left.index()], tails[taken.index()]);
        (from != other).then(|| (links[from.index()], links[other.index()]))
    })
}
