//! Pieces that are stars: terminals around one switch, each of which may have several links to it.

use canopy_optimize::{FlowUnit, Stop};
use canopy_topology::LinkIndex;

use super::{Piece, PieceEdge, PieceTree, Solution};
use crate::error::SynthesisError;
use crate::forest::ask;
use crate::forest::links::Links;
use crate::forest::logical::Strand;
use crate::forest::pattern::quotas;
use crate::forest::star::star_trees;

impl<C: FlowUnit> Piece<'_, C> {
    /// The solution of a star whose terminals root different numbers of trees; `None` for everything else. Equal numbers
    /// are left to the general way, which finds a tree per terminal without any search.
    ///
    /// What a terminal sends to another is spread over the links of both in proportion to what they have left, so that
    /// each rank behind one of them finds a way of its own.
    ///
    /// * **Errors.** Stopped. **Cost.** O(terminals² · links per terminal²).
    pub(super) fn solve_star(&self, stop: &dyn Stop) -> Result<Option<Solution<C>>, SynthesisError> {
        let hub = self.network.terminal_count;
        let is_spoke = |from: u32, to: u32| (from == hub) != (to == hub);
        let is_star = self.network.outside.is_none()
            && self.network.node_count == hub + 1
            && self.network.links.iter().all(|way| is_spoke(way.from, way.to));
        let demands: Vec<u128> = self.demands[..hub as usize].iter().map(|demand| demand.to_u128()).collect();
        if !is_star || demands.iter().all(|&demand| demand == demands[0]) {
            return Ok(None);
        }
        let (mut out, mut into) = (Spokes::new(hub), Spokes::new(hub));
        for ((link, way), &capacity) in self.network.links.iter().enumerate().zip(&self.capacities) {
            if capacity > C::ZERO {
                let (spokes, terminal) = if way.to == hub { (&mut out, way.from) } else { (&mut into, way.to) };
                spokes.add(terminal, link, capacity);
            }
        }
        let total: u128 = demands.iter().sum();
        let is_reached = |(demand, receives): (&u128, u128)| receives >= total - demand;
        if !demands.iter().zip(into.sums()).all(is_reached) {
            return Ok(None);
        }
        let Some(found) = star_trees(&demands, &out.sums()) else { return Ok(None) };
        let place = |from: u32, to: u32| from as usize * demands.len() + to as usize;
        let mut amounts = vec![0_u128; demands.len() * demands.len()];
        for tree in &found {
            ask(stop)?;
            tree.edges.iter().for_each(|&(from, to)| amounts[place(from, to)] += tree.weight);
        }
        let convert = |amount: u128| C::try_from_u128(amount).expect("no more than the capacities it is sent over");
        let (mut strands, mut ranges) = (Vec::new(), vec![0..0; amounts.len()]);
        for (from, offset) in (1..hub).flat_map(|offset| (0..hub).map(move |from| (from, offset))) {
            ask(stop)?;
            let to = (from + offset) % hub;
            let amount = convert(amounts[place(from, to)]);
            let first = strands.len();
            if amount > C::ZERO {
                join(out.take(from, amount), into.take(to, amount), &mut strands);
            }
            ranges[place(from, to)] = first..strands.len();
        }
        let mut trees: Vec<Vec<PieceTree<C>>> = (0..hub).map(|_| Vec::new()).collect();
        for tree in found {
            ask(stop)?;
            let edge = |&(tail, head): &_| PieceEdge { tail, head, strands: ranges[place(tail, head)].clone() };
            let edges = tree.edges.iter().map(edge).collect();
            trees[tree.root as usize].push(PieceTree { weight: convert(tree.weight), edges });
        }
        let nothing = || vec![Vec::new(); self.links.len()];
        Ok(Some(Solution { trees, strands, entries: nothing(), exits: nothing() }))
    }
}

/// The links of one direction between terminals and the switch, with what they have left.
pub(super) struct Spokes<C> {
    /// By terminal.
    links: Vec<Vec<usize>>,
    left: Vec<Vec<C>>,
}

impl<C: FlowUnit> Spokes<C> {
    pub(super) fn new(terminal_count: u32) -> Self {
        Self { links: vec![Vec::new(); terminal_count as usize], left: vec![Vec::new(); terminal_count as usize] }
    }

    pub(super) fn add(&mut self, terminal: u32, link: usize, capacity: C) {
        self.links[terminal as usize].push(link);
        self.left[terminal as usize].push(capacity);
    }

    pub(super) fn sums(&self) -> Vec<u128> {
        self.left.iter().map(|left| left.iter().map(|capacity| capacity.to_u128()).sum()).collect()
    }

    /// Takes an amount off the links of a terminal, at most what they have left: how much of each.
    pub(super) fn take(&mut self, terminal: u32, amount: C) -> Vec<(usize, C)> {
        let left = &mut self.left[terminal as usize];
        let parts = quotas(left, amount);
        left.iter_mut().zip(&parts).for_each(|(left, &part)| *left -= part);
        self.links[terminal as usize].iter().copied().zip(parts).filter(|&(_, part)| part > C::ZERO).collect()
    }
}

/// Joins links to the switch with links from it that take the same amount together, in their order.
pub(super) fn join<C: FlowUnit>(out: Vec<(usize, C)>, into: Vec<(usize, C)>, strands: &mut Vec<Strand<C>>) {
    let index = |link: usize| LinkIndex::new(u32::try_from(link).expect("links are counted in u32"));
    let mut into = into.into_iter();
    let mut second = into.next();
    for (first, mut left) in out {
        while left > C::ZERO
            && let Some((link, room)) = &mut second
        {
            let amount = left.min(*room);
            strands.push(Strand { amount, links: Links::from([index(first), index(*link)].as_slice()) });
            left -= amount;
            *room -= amount;
            if *room == C::ZERO {
                second = into.next();
            }
        }
    }
}
