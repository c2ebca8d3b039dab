//! Switches that pass on what comes from one neighbour to one other: two links on end, which may as well be one.
//!
//! A NIC between a PCI switch and a leaf, or what is left of a PCI switch whose other links are spare. What enters such
//! a switch from one neighbour can only leave to the other, so nothing is lost.
//!
//! Source: our own.

use std::collections::BTreeSet;

use canopy_optimize::FlowUnit;
use canopy_schedule::RouteTable;
use canopy_topology::LinkIndex;

use crate::forest::RoutedTrees;
use crate::forest::network::{Network, Way};

/// A network without such switches, and without links of no capacity.
pub(super) struct Shortened<'a, C> {
    pub(super) network: Network<'a>,
    pub(super) capacities: Vec<C>,
    pub(super) demands: Vec<C>,
    /// By link: those of the whole network that it stands for, one after the other.
    ways: Vec<Vec<LinkIndex>>,
}

/// A link, or several on end.
struct Chain<C> {
    from: u32,
    to: u32,
    latency_ns: u64,
    capacity: C,
    links: Vec<LinkIndex>,
}

/// The links that lead to a node and from it, as places in a list.
#[derive(Clone, Default)]
struct Ends {
    entering: Vec<usize>,
    leaving: Vec<usize>,
}

struct Shortening<'n, 'a, C> {
    network: &'n Network<'a>,
    /// None: it was put together with others.
    chains: Vec<Option<Chain<C>>>,
    ends: Vec<Ends>,
}

impl<'a, C: FlowUnit> Shortened<'a, C> {
    /// O(links log links).
    pub(super) fn of(network: &Network<'a>, capacities: &[C], demands: &[C]) -> Self {
        let mut shortening = Shortening::new(network, capacities);
        let switches = network.terminal_count..network.node_count;
        let mut next: BTreeSet<u32> = switches.clone().collect();
        let mut is_kept = vec![true; network.node_count as usize];
        while let Some(switch) = next.pop_first() {
            if let Some(neighbours) = shortening.pass_by(switch) {
                is_kept[switch as usize] = false;
                next.extend(neighbours.into_iter().filter(|&node| node >= network.terminal_count));
            }
        }
        shortening.finish(&is_kept, demands)
    }

    /// By link: those of the whole network, one after the other.
    #[cfg(test)]
    pub(super) fn ways(&self) -> &[Vec<LinkIndex>] {
        &self.ways
    }

    /// Trees on the links of the whole network.
    pub(super) fn lengthen(&self, trees: RoutedTrees) -> RoutedTrees {
        let mut routes = RouteTable::default();
        for route in trees.routes.iter() {
            let links: Vec<LinkIndex> = route.iter().flat_map(|link| &self.ways[link.index()]).copied().collect();
            routes.push(&links);
        }
        RoutedTrees { routes, ..trees }
    }
}

impl<'n, 'a, C: FlowUnit> Shortening<'n, 'a, C> {
    fn new(network: &'n Network<'a>, capacities: &[C]) -> Self {
        let mut shortening = Self {
            network,
            chains: Vec::with_capacity(capacities.len()),
            ends: vec![Ends::default(); network.node_count as usize],
        };
        for ((number, way), &capacity) in (0_u32..).zip(&network.links).zip(capacities) {
            let Way { from, to, latency_ns } = *way;
            shortening.add(Chain { from, to, latency_ns, capacity, links: vec![LinkIndex::new(number)] });
        }
        shortening
    }

    fn add(&mut self, chain: Chain<C>) {
        if chain.capacity > C::ZERO {
            self.ends[chain.from as usize].leaving.push(self.chains.len());
            self.ends[chain.to as usize].entering.push(self.chains.len());
            self.chains.push(Some(chain));
        }
    }

    fn chain(&self, place: usize) -> Option<&Chain<C>> {
        self.chains.get(place)?.as_ref()
    }

    /// Leads past a switch between two neighbours, or leaves out one without any, and returns the neighbours; `None` if it has
    /// others, or several links to one, or if one of them would no longer be balanced.
    fn pass_by(&mut self, switch: u32) -> Option<Vec<u32>> {
        let ends = self.ends[switch as usize].clone();
        let from = |&place: &usize| self.chain(place).map(|chain| chain.from);
        let to = |&place: &usize| self.chain(place).map(|chain| chain.to);
        let neighbours: BTreeSet<u32> =
            ends.entering.iter().filter_map(from).chain(ends.leaving.iter().filter_map(to)).collect();
        let neighbours: Vec<u32> = neighbours.into_iter().collect();
        let &[a, b] = neighbours.as_slice() else { return neighbours.is_empty().then_some(neighbours) };
        let entering = |node: u32| only(ends.entering.iter().copied().filter(|place| from(place) == Some(node)));
        let leaving = |node: u32| only(ends.leaving.iter().copied().filter(|place| to(place) == Some(node)));
        let (from_a, from_b, to_a, to_b) = (entering(a)?, entering(b)?, leaving(a)?, leaving(b)?);
        let capacity = |place: Option<usize>| place.and_then(|place| self.chain(place)).map_or(C::ZERO, |c| c.capacity);
        let (there, back) = (capacity(from_a).min(capacity(to_b)), capacity(from_b).min(capacity(to_a)));
        for (node, leaves, enters, less, more) in [(a, from_a, to_a, there, back), (b, from_b, to_b, back, there)] {
            if node >= self.network.terminal_count && capacity(leaves) - less != capacity(enters) - more {
                return None;
            }
        }
        for (first, second, capacity) in [(from_a, to_b, there), (from_b, to_a, back)] {
            let taken = [first, second].map(|place| place.and_then(|place| self.take(place)));
            if let [Some(first), Some(second)] = taken {
                let latency_ns = first.latency_ns.saturating_add(second.latency_ns);
                let links = [first.links, second.links].concat();
                self.add(Chain { from: first.from, to: second.to, latency_ns, capacity, links });
            }
        }
        Some(neighbours)
    }

    fn take(&mut self, place: usize) -> Option<Chain<C>> {
        let chain = self.chains[place].take()?;
        self.ends[chain.from as usize].leaving.retain(|&other| other != place);
        self.ends[chain.to as usize].entering.retain(|&other| other != place);
        Some(chain)
    }

    fn finish(self, is_kept: &[bool], demands: &[C]) -> Shortened<'a, C> {
        let Network { terminal_count, outside, ref boxes, ref switch_names, .. } = *self.network;
        let mut node_count = 0;
        let number = |&is_kept: &bool| {
            node_count += u32::from(is_kept);
            node_count.saturating_sub(1)
        };
        let numbers: Vec<u32> = is_kept.iter().map(number).collect();
        let mut chains: Vec<Chain<C>> = self.chains.into_iter().flatten().collect();
        chains.sort_by_key(|chain| (chain.from, chain.to));
        let kept_switches = &is_kept[terminal_count as usize..];
        let names = switch_names.iter().zip(kept_switches).filter(|(_, is_kept)| **is_kept).map(|(name, _)| *name);
        let way = |chain: &Chain<C>| Way {
            from: numbers[chain.from as usize],
            to: numbers[chain.to as usize],
            latency_ns: chain.latency_ns,
        };
        let network = Network {
            terminal_count,
            node_count,
            outside,
            links: chains.iter().map(way).collect(),
            boxes: boxes.clone(),
            switch_names: names.collect(),
        };
        let demands = demands.iter().zip(is_kept).filter(|(_, is_kept)| **is_kept).map(|(demand, _)| *demand);
        Shortened {
            network,
            capacities: chains.iter().map(|chain| chain.capacity).collect(),
            demands: demands.collect(),
            ways: chains.into_iter().map(|chain| chain.links).collect(),
        }
    }
}

/// The one thing, if there is one; `None` if there are several.
fn only(mut things: impl Iterator<Item = usize>) -> Option<Option<usize>> {
    let first = things.next();
    things.next().is_none().then_some(first)
}
