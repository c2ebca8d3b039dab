//! The best rate of a given number of trees, up and down the same links, where each link carries whole trees.

use std::num::NonZeroU64;

use super::WholeTrees;
use super::breakpoints::{Breakpoints, Side};
use crate::digraph::{Arc, Digraph};
use crate::error::OptimumError;
use crate::fraction::Fraction;
use crate::stop::Stop;
use crate::strength::{orientation, strength};

/// A graph of links that can be passed either way, on which spanning trees of several numbers are compared.
///
/// `k` trees take the least time `U` for which links of capacity `⌊U·b⌋` have a strength of `k`: strength is whole where
/// capacities are, so that the trees come whole, too. Only the times `j/b` matter, and they are bisected as for
/// [`WholeForest`](super::WholeForest).
///
/// At a node that is no terminal, trees come in halves where an odd number of links of odd capacity meet. There the widest
/// of them loses a tree, which makes the result sound, and the best of its kind, but not always the best there is. No
/// link is cut down to `k`: a tree may pass one to such a node several times.
///
/// * **Source.** Tutte 1961 and Nash-Williams 1961: whole capacities pack as many whole trees as the strength allows.
///   The search is that of Zhao 2026, appendix B.5.4.
#[derive(Clone, Debug)]
pub struct WholeSums<'a> {
    graph: &'a Digraph,
    terminals: &'a [bool],
    root: u32,
    /// Time of a tree at the strength of the graph.
    optimum: Fraction,
    breakpoints: Breakpoints,
}

impl<'a> WholeSums<'a> {
    /// Prepares a graph whose arcs are links that trees may pass either way.
    ///
    /// * **Errors.** As [`strength`]; [`OptimumError::Disconnected`] where no tree spans all terminals.
    /// * **Cost.** That of [`strength`].
    pub fn new(graph: &'a Digraph, terminals: &'a [bool], stop: &dyn Stop) -> Result<Self, OptimumError> {
        let found = strength(graph, terminals, stop)?;
        let mut part = vec![false; terminals.len()];
        found.parts.iter().take(1).flatten().for_each(|&node| part[node as usize] = true);
        // There an arc counts half in either direction, here it is a link for both together.
        let time = found.rate.numerator.checked_mul(2).map(|numerator| (found.rate.denominator, numerator));
        let (numerator, denominator) = time.ok_or(OptimumError::TooLarge { weight: found.rate.numerator })?;
        let optimum = Fraction::new(numerator, denominator).ok_or(OptimumError::Disconnected { cut: part })?;
        let root = (0_u32..).zip(terminals).find(|&(_, &is_terminal)| is_terminal).map_or(0, |(node, _)| node);
        Ok(Self { graph, terminals, root, optimum, breakpoints: Breakpoints::of(graph) })
    }

    /// Time of a tree, in reciprocal units of capacity, that no number of trees can beat.
    pub const fn optimum(&self) -> Fraction {
        self.optimum
    }

    /// The least time found for `tree_count` trees, with the capacities that admit them; `None` if it is not less than
    /// `below`, a time per tree.
    ///
    /// * **Out.** Capacities of strength `tree_count` or more, an even number of odd ones at every node that is no
    ///   terminal; `U/k` is at least the optimum and at most `2/(k·b)` more, for the least capacity b.
    /// * **Errors.** Too large for 128 bits, stopped.
    /// * **Cost.** O(log) of the number of breakpoints, each that of an [`orientation`]; a single one if `below` can not be
    ///   beaten.
    pub fn pack(
        &self,
        tree_count: NonZeroU64,
        below: Option<Fraction>,
        stop: &dyn Stop,
    ) -> Result<Option<WholeTrees>, OptimumError> {
        let too_large = || OptimumError::TooLarge { weight: u128::from(tree_count.get()) };
        let factor = u128::from(tree_count.get()) * u128::from(self.breakpoints.unit);
        // In units of capacity from here on.
        let of_all = |time: Fraction| {
            let numerator = time.numerator.checked_mul(factor).ok_or_else(too_large)?;
            Ok::<_, OptimumError>(Fraction::new(numerator, time.denominator).expect("a fraction is one"))
        };
        let (mut low, below) = (of_all(self.optimum)?, below.map(of_all).transpose()?);
        if below.is_some_and(|below| below <= low) {
            return Ok(None);
        }
        if let Some(capacities) = self.admitting(low, tree_count, stop)? {
            return self.answer(low, capacities).map(Some).ok_or_else(too_large);
        }
        // With two more trees of the thinnest link every link carries its share, one of them lost or not.
        let thinnest = self.breakpoints.thinnest().ok_or_else(too_large)?;
        let two = Fraction::new(2, thinnest.into()).expect("no capacity kept is zero");
        let enough = low.checked_add(two).and_then(|enough| self.breakpoints.last(enough, Side::At));
        let enough = enough.ok_or_else(too_large)?;
        let mut high = match below {
            Some(below) if below <= enough => self.breakpoints.last(below, Side::Before).ok_or_else(too_large)?,
            _ => enough,
        };
        if high <= low {
            return Ok(None);
        }
        let Some(mut capacities) = self.admitting(high, tree_count, stop)? else { return Ok(None) };
        while let Some(middle) = self.breakpoints.between(low, high).ok_or_else(too_large)? {
            match self.admitting(middle, tree_count, stop)? {
                Some(admitting) => (high, capacities) = (middle, admitting),
                None => low = middle,
            }
        }
        self.answer(high, capacities).map(Some).ok_or_else(too_large)
    }

    fn answer(&self, scale: Fraction, capacities: Vec<u128>) -> Option<WholeTrees> {
        let denominator = scale.denominator.checked_mul(self.breakpoints.unit.into())?;
        Some(WholeTrees { scale: Fraction::new(scale.numerator, denominator)?, capacities })
    }

    /// Capacities `⌊scale·b⌋`, less what would make halves, if they admit so many whole trees.
    fn admitting(
        &self,
        scale: Fraction,
        tree_count: NonZeroU64,
        stop: &dyn Stop,
    ) -> Result<Option<Vec<u128>>, OptimumError> {
        let too_large = || OptimumError::TooLarge { weight: u128::from(tree_count.get()) };
        let unit = self.breakpoints.unit;
        let floor = |arc: &Arc| Breakpoints::whole_part(scale, arc.capacity / unit).map(|(trees, _)| trees);
        let floors = self.graph.arcs.iter().map(|arc| floor(arc).and_then(|trees| u64::try_from(trees).ok()));
        let mut floors = floors.collect::<Option<Vec<u64>>>().ok_or_else(too_large)?;
        self.make_even(&mut floors);
        let arcs = self.graph.arcs.iter().zip(&floors).map(|(&arc, &capacity)| Arc { capacity, ..arc });
        let whole = Digraph { node_count: self.graph.node_count, arcs: arcs.collect() };
        let wanted = Fraction { numerator: tree_count.get().into(), denominator: 1 };
        let found = orientation(&whole, self.terminals, wanted, self.root, stop)?;
        let is_whole = found.is_some_and(|found| wanted.numerator.is_multiple_of(found.tree_count));
        Ok(is_whole.then(|| floors.into_iter().map(u128::from).collect()))
    }

    /// Takes a tree from a link wherever an odd number of odd ones meet at a node that is no terminal: from the widest that
    /// leads to a terminal, else from one that leads to another such node.
    fn make_even(&self, capacities: &mut [u64]) {
        let mut links_at = vec![Vec::new(); self.terminals.len()];
        for (position, arc) in self.graph.arcs.iter().enumerate().filter(|(_, arc)| arc.from != arc.to) {
            for (node, other) in [(arc.from, arc.to), (arc.to, arc.from)] {
                if !self.terminals[node as usize] {
                    links_at[node as usize].push((position, other));
                }
            }
        }
        let mut suspects: Vec<usize> = (0..links_at.len()).rev().collect();
        while let Some(node) = suspects.pop() {
            let odd = || links_at[node].iter().filter(|&&(position, _)| !capacities[position].is_multiple_of(2));
            if odd().count().is_multiple_of(2) {
                continue;
            }
            let widest = odd().max_by_key(|&&(position, other)| {
                (self.terminals[other as usize], capacities[position], std::cmp::Reverse(position))
            });
            let &(position, other) = widest.expect("an odd number is not zero");
            capacities[position] -= 1;
            // Lowered once, a link is even, so this ends.
            suspects.push(other as usize);
        }
    }
}
