//! The network while switches disappear from it: edges between the nodes left, each with the physical routes behind it.

use std::collections::BTreeMap;

use canopy_optimize::{FlowUnit, Stop, Stopped};
use canopy_topology::LinkIndex;

use crate::forest::links::Links;
use crate::forest::network::{Network, Way};
use crate::forest::pattern::quotas;
use crate::forest::{ASK_INTERVAL, ask};

/// A part of an edge's capacity and the route it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Strand<C> {
    /// Trees that can take this route.
    pub(super) amount: C,
    /// Links from the edge's tail to its head; the nodes between are switches, each visited once.
    pub(super) links: Links,
}

/// Edges between nodes, made of strands. Strands of one edge have different routes and positive amounts.
///
/// The digest of routes that the article keeps per removed switch is replaced by the routes themselves: a split cuts
/// and joins strands, so that nothing has to be expanded afterwards and latencies are known at any time.
#[derive(Clone, Debug)]
pub(super) struct LogicalGraph<'a, C> {
    /// Those that [`LinkIndex`] counts here: of the network at hand, which may be a piece of the topology.
    links: &'a [Way],
    edges: Strands<C>,
}

/// Tail and head of an edge.
type Ends = (u32, u32);

/// Strands by edge.
pub(super) type Strands<C> = BTreeMap<Ends, Vec<Strand<C>>>;

/// What enters and leaves a node: `(neighbour, capacity)`, by neighbour.
pub(super) type Sides<C> = (Vec<(u32, C)>, Vec<(u32, C)>);

impl<'a, C: FlowUnit> LogicalGraph<'a, C> {
    /// The physical network: one strand per link that can carry a tree. O(links).
    pub(super) fn new(network: &'a Network<'_>, capacities: &[C], stop: &dyn Stop) -> Result<Self, Stopped> {
        // Links are sorted by both ends, and so a map can be made of the whole list at once.
        let mut edges: Vec<(Ends, Vec<Strand<C>>)> = Vec::new();
        for ((link, &amount), index) in network.links.iter().zip(capacities).zip(0_u32..) {
            if index % ASK_INTERVAL == 0 {
                ask(stop)?;
            }
            if amount > C::ZERO {
                let ends = (link.from, link.to);
                let strand = Strand { amount, links: Links::from([LinkIndex::new(index)].as_slice()) };
                match edges.last_mut().filter(|(known, _)| *known == ends) {
                    Some((_, strands)) => strands.push(strand),
                    None => edges.push((ends, vec![strand])),
                }
            }
        }
        Ok(Self { links: &network.links, edges: edges.into_iter().collect() })
    }

    /// All edges with their capacities, by (tail, head).
    pub(super) fn edges(&self) -> impl Iterator<Item = (u32, u32, C)> {
        self.edges.iter().map(|(&(from, to), strands)| (from, to, sum(strands)))
    }

    /// Neighbours of a node with the capacities from and to them. O(edges).
    pub(super) fn sides(&self, node: u32) -> Sides<C> {
        let (mut entering, mut leaving) = (Vec::new(), Vec::new());
        for (from, to, capacity) in self.edges() {
            if to == node {
                entering.push((from, capacity));
            } else if from == node {
                leaving.push((to, capacity));
            }
        }
        (entering, leaving)
    }

    /// The same of all nodes. O(nodes + edges).
    pub(super) fn all_sides(&self, node_count: u32) -> Vec<Sides<C>> {
        let mut sides: Vec<Sides<C>> = vec![Sides::default(); node_count as usize];
        for (from, to, capacity) in self.edges() {
            sides[from as usize].1.push((to, capacity));
            sides[to as usize].0.push((from, capacity));
        }
        sides
    }

    /// Replaces `amount` of `from → via → to` by as much of an edge `from → to`; drops it where `from` is `to`.
    ///
    /// # Panics
    /// One of the two edges has less than `amount`.
    pub(super) fn split(&mut self, from: u32, via: u32, to: u32, amount: C) {
        let mut heads = self.take(from, via, amount);
        let mut tails = self.take(via, to, amount);
        if from == to {
            return;
        }
        while let (Some(mut head), Some(mut tail)) = (heads.pop(), tails.pop()) {
            let joint = head.amount.min(tail.amount);
            self.add(from, to, Strand { amount: joint, links: self.join(&head.links, &tail.links) });
            head.amount -= joint;
            tail.amount -= joint;
            heads.extend(Some(head).filter(|strand| strand.amount > C::ZERO));
            tails.extend(Some(tail).filter(|strand| strand.amount > C::ZERO));
        }
    }

    /// Strands of all edges, shortest routes first, then least latency.
    pub(super) fn into_strands(self, stop: &dyn Stop) -> Result<Strands<C>, Stopped> {
        let Self { links, mut edges } = self;
        let latency =
            |route: &[LinkIndex]| -> u128 { route.iter().map(|link| u128::from(links[link.index()].latency_ns)).sum() };
        for (strands, place) in edges.values_mut().zip(0_u32..) {
            if place.is_multiple_of(ASK_INTERVAL) {
                ask(stop)?;
            }
            if strands.len() > 1 {
                strands
                    .sort_by_cached_key(|strand| (strand.links.len(), latency(&strand.links), strand.links.to_vec()));
            }
        }
        Ok(edges)
    }

    /// Removes strands of this total from an edge: of parallel links equal parts; else a strand of just this amount if
    /// there is one, else the last ones.
    fn take(&mut self, from: u32, to: u32, amount: C) -> Vec<Strand<C>> {
        let strands = self.edges.get_mut(&(from, to)).expect("only existing edges are split");
        let mut taken = Vec::new();
        let mut missing = amount;
        if strands.len() > 1 && strands.iter().all(|strand| strand.links.len() == 1) {
            let room: Vec<C> = strands.iter().map(|strand| strand.amount).collect();
            for (strand, part) in strands.iter_mut().zip(quotas(&room, amount)).filter(|(_, part)| *part > C::ZERO) {
                taken.push(Strand { amount: part, links: strand.links.clone() });
                strand.amount -= part;
            }
            strands.retain(|strand| strand.amount > C::ZERO);
            missing = C::ZERO;
        }
        if let Some(position) = strands.iter().position(|strand| missing > C::ZERO && strand.amount == amount) {
            taken.push(strands.remove(position));
            missing = C::ZERO;
        }
        while missing > C::ZERO {
            let last = strands.last_mut().expect("no more is split than an edge has");
            let part = last.amount.min(missing);
            taken.push(Strand { amount: part, links: last.links.clone() });
            last.amount -= part;
            missing -= part;
            if last.amount == C::ZERO {
                strands.pop();
            }
        }
        if strands.is_empty() {
            self.edges.remove(&(from, to));
        }
        taken
    }

    fn add(&mut self, from: u32, to: u32, strand: Strand<C>) {
        let strands = self.edges.entry((from, to)).or_default();
        match strands.iter_mut().find(|known| known.links == strand.links) {
            Some(known) => known.amount += strand.amount,
            None => strands.push(strand),
        }
    }

    /// One route after the other, without the loops this may make: links left out carry less, which harms nobody.
    fn join(&self, head: &[LinkIndex], tail: &[LinkIndex]) -> Links {
        let mut joined: Vec<LinkIndex> = head.to_vec();
        for &link in tail {
            let reached = self.links[link.index()].to;
            match joined.iter().position(|earlier| self.links[earlier.index()].from == reached) {
                Some(position) => joined.truncate(position),
                None => joined.push(link),
            }
        }
        Links::from(joined.as_slice())
    }
}

fn sum<C: FlowUnit>(strands: &[Strand<C>]) -> C {
    strands.iter().fold(C::ZERO, |total, strand| total + strand.amount)
}
