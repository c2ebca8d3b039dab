//! A closed walk through all ranks on physical routes, and what goes along it.

use canopy_optimize::Stop;
use canopy_topology::{LinkIndex, Rank, Topology};

use crate::error::SynthesisError;
use crate::parts::{Leg, hops};
use crate::reach::ask;
use crate::routing::{Chooser, Heading, Levels, Loads, Network, Passing};

/// Steps from rank to rank over switches only, from the first rank back to it; every rank is passed at least once.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    legs: Vec<Leg>,
    /// By rank: the steps that leave it, in order.
    leaving: Vec<Vec<usize>>,
}

impl Walk {
    /// Joins neighbours of a cyclic order, from one to the next: by a shortest route through switches where there is
    /// one, else by a shortest route through other ranks. Of equally short and wide routes, by the least used.
    ///
    /// All ranks must reach each other. O(N · (nodes + links)).
    pub(super) fn new(topology: &Topology, order: &[Rank], stop: &dyn Stop) -> Result<Self, SynthesisError> {
        Self::beside(&mut Loads::none(topology), topology, order, stop)
    }

    /// The same beside other walks, whose routes count as used, too.
    pub(super) fn beside(
        loads: &mut Loads,
        topology: &Topology,
        order: &[Rank],
        stop: &dyn Stop,
    ) -> Result<Self, SynthesisError> {
        let network = Network::new(topology, Heading::Along);
        let mut chooser = Chooser::new(topology);
        let mut legs = Vec::with_capacity(order.len());
        for (&from, &to) in order.iter().zip(order.iter().cycle().skip(1)) {
            ask(stop)?;
            let route = [Passing::Switches, Passing::Anyone].into_iter().find_map(|passing| {
                let levels = Levels::new(&network, from.node(), passing);
                chooser.choose(&network, &levels, loads, to.node(), |node| node == from.node())
            });
            let route = route.expect("all ranks were found to reach each other");
            loads.add(&route);
            let mut at = from;
            for links in hops(topology, &route) {
                let end = links.last().and_then(|&link| topology.rank_of(topology.link(link).to));
                let next = end.expect("routes end at ranks");
                legs.push(Leg { from: at, to: next, links: links.to_vec() });
                at = next;
            }
        }
        let mut leaving = vec![Vec::new(); topology.rank_count() as usize];
        legs.iter().enumerate().for_each(|(step, leg)| leaving[leg.from.index()].push(step));
        Ok(Self { legs, leaving })
    }

    /// All steps, from one of them on around.
    fn steps(&self, start: usize) -> impl DoubleEndedIterator<Item = &Leg> {
        self.legs[start..].iter().chain(&self.legs[..start])
    }

    /// The tree that the walk makes from a rank on: the steps that reach a rank for the first time, in that order.
    pub(super) fn chain_from(&self, root: Rank) -> impl Iterator<Item = &Leg> {
        let mut is_reached = vec![false; self.leaving.len()];
        is_reached[root.index()] = true;
        let start = self.leaving[root.index()][0];
        self.steps(start).filter(move |leg| !std::mem::replace(&mut is_reached[leg.to.index()], true))
    }

    /// The tree that the walk makes towards a rank: of each other rank the last step that leaves it before the walk
    /// comes to the root, in order.
    pub(super) fn chain_to(&self, root: Rank) -> Vec<&Leg> {
        let mut has_left = vec![false; self.leaving.len()];
        has_left[root.index()] = true;
        let start = self.leaving[root.index()][0];
        let mut chain: Vec<&Leg> =
            self.steps(start).rev().filter(|leg| !std::mem::replace(&mut has_left[leg.from.index()], true)).collect();
        chain.reverse();
        chain
    }

    /// The shortest ways along the walk from one rank to every other. O(length of the walk · times it passes the rank).
    pub(super) fn arcs_from(&self, source: Rank) -> Arcs<'_> {
        let mut shortest = vec![None; self.leaving.len()];
        for &start in &self.leaving[source.index()] {
            for (leg, length) in self.steps(start).zip(1..) {
                let best = &mut shortest[leg.to.index()];
                if best.is_none_or(|(least, _)| length < least) {
                    *best = Some((length, start));
                }
            }
        }
        Arcs { walk: self, shortest }
    }
}

/// Where to begin, and for how many steps to follow the walk, to get from one rank to each other.
#[derive(Clone, Debug)]
pub(super) struct Arcs<'a> {
    walk: &'a Walk,
    /// By rank: number of steps, first step.
    shortest: Vec<Option<(usize, usize)>>,
}

impl Arcs<'_> {
    /// Number of hops and links of the way to another rank; where the walk passes a rank twice on the way, without the
    /// detour.
    pub(super) fn to(&self, destination: Rank) -> (usize, Vec<LinkIndex>) {
        let (length, start) = self.shortest[destination.index()].expect("a walk passes every rank");
        let mut way: Vec<&Leg> = Vec::with_capacity(length);
        for leg in self.walk.steps(start).take(length) {
            // Looks back only where there may be something to find.
            let is_known = |earlier: &&Leg| earlier.from == leg.to;
            let known = (self.walk.leaving[leg.to.index()].len() > 1).then(|| way.iter().position(is_known)).flatten();
            match known {
                Some(position) => way.truncate(position),
                None => way.push(leg),
            }
        }
        (way.len(), way.into_iter().flat_map(|leg| leg.links.iter().copied()).collect())
    }
}
