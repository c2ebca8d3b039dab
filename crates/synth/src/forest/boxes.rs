//! Trees of three hops for machines of boxes: ranks around a switch of their box, each with a link to a switch outside.
//!
//! Where NICs are almost as fast as what is inside a box, nothing can be cut off without loss: ranks need all of their
//! links. But such a machine is made of switches, and of a switch only the sums count that each rank sends and receives. So
//! trees can be written down. A root sends to its own box; members of that send to the other boxes, over the switches
//! outside, each tree to at least one rank of every box; and one of those that got it so sends it to the rest of their box.
//! Where a box cannot send its trees to all others, some of these pass them on to each other, which takes a hop more.
//!
//! What is to be found is numbers only: how many trees of each box enter each rank from outside (`least`, `entries`), so
//! that the rest of them is no more than it can take from its own box; who then passes them on there, and in which of them
//! others need nothing (`primaries`); and who sends them to other boxes (`senders`). All but the last are flows. Where the
//! numbers do not come out, there may be other trees, and it is left to others to find them. Where they do, nothing has to
//! be tested: trees for all demands within all capacities are what was asked.
//!
//! Where demands differ, whole trees are tried first, which are fewer (`whole`).
//!
//! Source: our own.

mod entries;
mod layout;
mod least;
mod primaries;
mod senders;
mod spans;
#[cfg(test)]
mod tests;
mod transport;
mod whole;

use std::collections::HashMap;
use std::ops::Range;

use canopy_optimize::Stop;

use crate::error::SynthesisError;
use crate::forest::ask;
use crate::parts::HOPS_MAX;
pub(super) use layout::{Layout, Member, Ports};
use primaries::passages;
use senders::senders;
use spans::{BySource, Span, cut};
use whole::whole_trees;

/// Equal trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BoxTree {
    pub(super) root: u32,
    pub(super) weight: i64,
    /// Positions in [`BoxTrees::edges`], each after the one into its tail.
    pub(super) edges: Vec<u32>,
}

/// Trees for all demands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BoxTrees {
    /// By root.
    pub(super) trees: Vec<BoxTree>,
    /// Tail, head, and how many trees use it: within a box over its switch, else over one outside.
    pub(super) edges: Vec<(u32, u32, i64)>,
}

/// Trees for the demands of all members; `None` if the numbers do not come out, or there are too many trees.
///
/// * **Out.** What goes through each port is at most what it has. **Errors.** Stopped.
/// * **Cost.** Flows on boxes² for each switch outside, and on boxes · ranks for each box, and what the result takes.
pub(super) fn box_trees(layout: &Layout, stop: &dyn Stop) -> Result<Option<BoxTrees>, SynthesisError> {
    // Of equal demands flows make flatter trees, and divide next to none.
    let mut demands = layout.members.iter().map(|member| member.demand).filter(|&demand| demand > 0);
    let first = demands.next();
    if demands.any(|demand| Some(demand) != first)
        && let Some(found) = whole_trees(layout, stop)?
    {
        return Ok(Some(found));
    }
    let Some(entries) = entries::entries(layout, stop)? else { return Ok(None) };
    let (count, nothing) = (layout.boxes.len(), vec![Vec::new(); layout.members.len()]);
    let mut arrivals: BySource<()> = vec![nothing; count];
    let mut passed: BySource<u32> = vec![vec![Vec::new(); layout.members.len()]; count];
    for (to, members) in layout.boxes.iter().enumerate() {
        ask(stop)?;
        let Some(passages) = passages(layout, to, &entries, stop)? else { return Ok(None) };
        for (from, passage) in passages.iter().enumerate().filter(|&(from, _)| from != to) {
            for (position, &member) in members.iter().enumerate() {
                arrivals[from][member] = passage.entering(position);
                let named = |Span { at, of }: Span<usize>| Span { at, of: number(members[of]) };
                passed[from][member] = passage.passed_on(position).into_iter().map(named).collect();
            }
        }
    }
    let Some(sent) = senders(layout, &arrivals, stop)? else { return Ok(None) };
    let mut edges = Edges::default();
    let mut trees = Vec::new();
    let others = layout.members.len().saturating_sub(1) as u64;
    for ((from, members), (sent, passed)) in layout.boxes.iter().enumerate().zip(sent.into_iter().zip(passed)) {
        ask(stop)?;
        let mut ways: Vec<Vec<Span<u32>>> = Vec::with_capacity(layout.members.len());
        for (to, (mut spans, more)) in sent.into_iter().zip(passed).enumerate() {
            spans.extend(more);
            spans.sort_unstable_by_key(|span| span.at.start);
            ways.push(edges.named(to, spans));
        }
        let parts = cut(&layout.roots_of(from), &ways);
        if (trees.len() as u64 + parts.len() as u64).saturating_mul(others) > HOPS_MAX {
            return Ok(None);
        }
        for (root, at) in parts {
            ask(stop)?;
            trees.push(edges.tree(layout, members, root, &at, &mut ways));
        }
    }
    Ok(Some(BoxTrees { trees, edges: edges.list }))
}

fn number(member: usize) -> u32 {
    u32::try_from(member).expect("members are counted in u32")
}

/// Edges by number.
#[derive(Default)]
struct Edges {
    numbers: HashMap<(u32, u32), u32>,
    list: Vec<(u32, u32, i64)>,
}

impl Edges {
    fn number(&mut self, from: u32, to: u32) -> u32 {
        let next = u32::try_from(self.list.len()).expect("pairs of ranks with an edge are counted in u32");
        let number = *self.numbers.entry((from, to)).or_insert(next);
        if number == next {
            self.list.push((from, to, 0));
        }
        number
    }

    /// Numbers of edges in place of senders.
    fn named(&mut self, to: usize, senders: Vec<Span<u32>>) -> Vec<Span<u32>> {
        let named = |Span { at, of }: Span<u32>| Span { of: self.number(of, number(to)), at };
        senders.into_iter().map(named).collect()
    }

    /// Equal trees of these hops.
    fn whole(&mut self, hops: &[(usize, usize)], root: usize, weight: i64) -> BoxTree {
        let edges: Vec<u32> = hops.iter().map(|&(from, to)| self.number(number(from), number(to))).collect();
        for &edge in &edges {
            self.list[edge as usize].2 += weight;
        }
        BoxTree { root: number(root), weight, edges }
    }

    /// The trees at this place. Of the spans of every member those before it are dropped, so that places must come in order.
    fn tree(
        &mut self,
        layout: &Layout,
        home: &[usize],
        root: u32,
        at: &Range<i64>,
        ways: &mut [Vec<Span<u32>>],
    ) -> BoxTree {
        let weight = at.end - at.start;
        let mut edges = Vec::with_capacity(layout.members.len() - 1);
        for &member in home.iter().filter(|&&member| member != root as usize) {
            edges.push(self.number(root, number(member)));
        }
        let (mut relayed, mut last) = (Vec::new(), Vec::new());
        let others = (0..layout.members.len()).filter(|member| home.binary_search(member).is_err());
        for member in others {
            let spans = &mut ways[member];
            let passed = spans.iter().take_while(|span| span.at.end <= at.start).count();
            spans.drain(..passed);
            let edge = spans.first().expect("every tree enters every member").of;
            let (from, ..) = self.list[edge as usize];
            let is_inside = layout.members[from as usize].in_box == layout.members[member].in_box;
            let is_from_home = home.binary_search(&(from as usize)).is_ok();
            let place = if is_inside { &mut last } else { &mut relayed };
            if is_from_home { edges.push(edge) } else { place.push(edge) }
        }
        edges.append(&mut relayed);
        edges.append(&mut last);
        for &edge in &edges {
            self.list[edge as usize].2 += weight;
        }
        BoxTree { root, weight, edges }
    }
}
