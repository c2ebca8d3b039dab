//! Pieces of pairs: terminals around one switch, each of which has links to one other as well, with an outside.
//!
//! Two halves of a machine on one leaf, joined by their processors, where neither the half nor the machine can do without
//! some of that. A link between two is as good as a switch of a box of two, so trees are those of a machine of boxes.

use std::collections::BTreeMap;

use canopy_optimize::{FlowUnit, Stop};
use canopy_topology::LinkIndex;

use super::star::{Crossing, Spokes, crossing, join};
use super::{Piece, Solution};
use crate::error::SynthesisError;
use crate::forest::boxes::{Layout, Member, Ports, box_trees};
use crate::forest::links::Links;
use crate::forest::logical::Strand;

/// Terminals from which on it takes seconds to search for trees. Those of fewer are flatter.
const PAIRS_FROM: usize = 48;

/// Links of a piece of pairs.
struct Pairs<C> {
    /// By terminal: to and from the switch, z included.
    out: Spokes<C>,
    into: Spokes<C>,
    /// By terminal: to and from its other half.
    there: Spokes<C>,
    back: Spokes<C>,
    /// By terminal, z excepted: position of its pair.
    pair_of: Vec<usize>,
}

impl<C: FlowUnit> Pairs<C> {
    /// `None` if the piece is something else. O(links).
    fn of(piece: &Piece<'_, C>) -> Option<Self> {
        let count = piece.network.terminal_count;
        let inner = piece.network.outside.filter(|&outside| outside as usize >= PAIRS_FROM)?;
        let spokes = || Spokes::new(count, 1);
        let mut pairs = Self { out: spokes(), into: spokes(), there: spokes(), back: spokes(), pair_of: Vec::new() };
        let mut hub = None;
        let mut half: Vec<Option<u32>> = vec![None; inner as usize];
        for ((link, way), &capacity) in piece.network.links.iter().enumerate().zip(&piece.capacities) {
            if capacity == C::ZERO {
                continue;
            }
            match (way.from < count, way.to < count) {
                (true, false) if *hub.get_or_insert(way.to) == way.to => pairs.out.add(way.from, link, capacity),
                (false, true) if *hub.get_or_insert(way.from) == way.from => pairs.into.add(way.to, link, capacity),
                (true, true) => {
                    if *half.get_mut(way.from as usize)?.get_or_insert(way.to) != way.to {
                        return None;
                    }
                    pairs.there.add(way.from, link, capacity);
                    pairs.back.add(way.to, link, capacity);
                }
                _ => return None,
            }
        }
        let mut numbers: BTreeMap<(u32, u32), usize> = BTreeMap::new();
        for (terminal, other) in (0_u32..).zip(&half) {
            let other = (*other)?;
            if *half.get(other as usize)? != Some(terminal) {
                return None;
            }
            let next = numbers.len();
            pairs.pair_of.push(*numbers.entry((terminal.min(other), terminal.max(other))).or_insert(next));
        }
        Some(pairs)
    }

    /// Pairs as boxes of two, with what is left beside the trees that enter and leave.
    fn layout(&self, crossing: &Crossing) -> Option<Layout> {
        let narrow = |amount: u128| i64::try_from(amount).ok();
        let (there, back, receives) = (self.there.sums(), self.back.sums(), self.into.sums());
        let member = |(terminal, &in_box): (usize, &usize)| {
            Some(Member {
                in_box,
                trunk: Some(0),
                demand: narrow(crossing.demands[terminal])?,
                inner: Ports { sends: narrow(there[terminal])?, receives: narrow(back[terminal])? },
                outer: Ports {
                    sends: narrow(crossing.sends[terminal])?,
                    receives: narrow(receives[terminal].checked_sub(crossing.entries[terminal])?)?,
                },
            })
        };
        Layout::new(self.pair_of.iter().enumerate().map(member).collect::<Option<_>>()?)
    }

    /// The ways that a tree takes from one to the other.
    fn strands(&mut self, from: u32, to: u32, amount: C, strands: &mut Vec<Strand<C>>) {
        let pair = |terminal: u32| self.pair_of.get(terminal as usize);
        if pair(from).is_some() && pair(from) == pair(to) {
            let index = |link: usize| LinkIndex::new(u32::try_from(link).expect("links are counted in u32"));
            let ways = self.there.take(from, amount).into_iter();
            strands.extend(ways.map(|(link, amount)| Strand { amount, links: Links::from([index(link)].as_slice()) }));
        } else {
            join(self.out.take(from, amount), self.into.take(to, amount), strands);
        }
    }
}

impl<C: FlowUnit> Piece<'_, C> {
    /// The solution of a large piece of pairs; `None` for everything else, and where the numbers do not come out.
    ///
    /// * **Errors.** Stopped. **Cost.** That of [`box_trees`].
    pub(super) fn solve_pairs(&self, stop: &dyn Stop) -> Result<Option<Solution<C>>, SynthesisError> {
        let Some(mut pairs) = Pairs::of(self) else { return Ok(None) };
        let inner = u32::try_from(pairs.pair_of.len()).expect("terminals are counted in u32");
        let demands = self.demands[..=inner as usize].iter().map(|demand| demand.to_u128()).collect();
        let Some(crossing) = crossing(inner as usize, demands, pairs.out.sums(), &pairs.into.sums(), 1) else {
            return Ok(None);
        };
        let Some(layout) = pairs.layout(&crossing) else { return Ok(None) };
        let Some(found) = box_trees(&layout, stop)? else { return Ok(None) };
        let convert = |amount: u128| C::try_from_u128(amount).expect("no more than the capacities it is sent over");
        let mut strands = Vec::new();
        let nothing = || vec![Vec::new(); self.links.len()];
        let (mut entries, mut exits) = (nothing(), nothing());
        for (terminal, (&entering, &leaving)) in (0_u32..).zip(crossing.entries.iter().zip(&crossing.exits)) {
            let first = strands.len();
            pairs.strands(inner, terminal, convert(entering), &mut strands);
            for (number, strand) in strands.iter().enumerate().skip(first) {
                entries[strand.links[0].index()].push((terminal, number));
            }
            let first = strands.len();
            pairs.strands(terminal, inner, convert(leaving), &mut strands);
            for (number, strand) in strands.iter().enumerate().skip(first) {
                exits[strand.links[1].index()].push((terminal, number));
            }
        }
        let ways =
            |from: u32, to: u32, amount: C, strands: &mut Vec<Strand<C>>| pairs.strands(from, to, amount, strands);
        let trees = self.trees_on(found, &mut strands, ways, stop)?;
        Ok(Some(Solution { trees, strands, entries, exits }))
    }
}
