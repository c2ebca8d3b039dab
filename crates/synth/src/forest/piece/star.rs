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

/// Terminals up to which those that are all alike are left to the general way: with more it takes seconds.
const ALIKE_MAX: u128 = 64;

impl<C: FlowUnit> Piece<'_, C> {
    /// Whether it is terminals around one switch. Others may be left that have no links.
    pub(in crate::forest) fn is_star(&self) -> bool {
        let terminals = self.network.terminal_count;
        let mut ends = self.network.links.iter().map(|way| (way.from.min(way.to), way.from.max(way.to)));
        let hub = ends.next().map_or(terminals, |(_, hub)| hub);
        let is_spoke = |(low, high): (u32, u32)| low < terminals && high == hub;
        hub >= terminals && ends.all(is_spoke)
    }

    /// The solution of a star whose terminals root different numbers of trees, or send different amounts, once what comes from
    /// outside starts where it enters; `None` for everything else. Equal numbers are left to the general way, which finds a
    /// tree per terminal without any search, unless there is a unit, or some can not send that much.
    ///
    /// What a terminal sends to another is spread over the links of both in proportion to what they have left, so that
    /// each rank behind one of them finds a way of its own; in multiples of `unit`, what all trees of a rank are, as far as
    /// that goes: what is no multiple divides trees.
    ///
    /// * **Errors.** Stopped. **Cost.** O(terminals² · links per terminal²).
    pub(super) fn solve_star(&self, unit: u128, stop: &dyn Stop) -> Result<Option<Solution<C>>, SynthesisError> {
        if !self.is_star() {
            return Ok(None);
        }
        let count = self.network.terminal_count;
        let (mut out, mut into) = (Spokes::new(count, unit), Spokes::new(count, unit));
        for ((link, way), &capacity) in self.network.links.iter().enumerate().zip(&self.capacities) {
            if capacity > C::ZERO {
                let (spokes, terminal) = if way.from < count { (&mut out, way.from) } else { (&mut into, way.to) };
                spokes.add(terminal, link, capacity);
            }
        }
        let demands: Vec<u128> = self.demands[..count as usize].iter().map(|demand| demand.to_u128()).collect();
        let total: u128 = demands.iter().sum();
        let is_reached = |(demand, receives): (&u128, u128)| receives >= total - demand;
        if !demands.iter().zip(into.sums()).all(is_reached) {
            return Ok(None);
        }
        let Some(Crossing { entries, exits, demands, sends }) = self.crossing(demands, out.sums(), &into.sums(), unit)
        else {
            return Ok(None);
        };
        let Some(found) = star_trees(&demands, &sends) else { return Ok(None) };
        let inner = u32::try_from(demands.len()).expect("terminals are counted in u32");
        let place = |from: u32, to: u32| from as usize * count as usize + to as usize;
        let mut amounts = vec![0_u128; count as usize * count as usize];
        for tree in &found {
            ask(stop)?;
            tree.edges.iter().for_each(|&(from, to)| amounts[place(from, to)] += tree.weight);
        }
        for (terminal, (&entering, &leaving)) in (0_u32..).zip(entries.iter().zip(&exits)) {
            (amounts[place(inner, terminal)], amounts[place(terminal, inner)]) = (entering, leaving);
        }
        let convert = |amount: u128| C::try_from_u128(amount).expect("no more than the capacities it is sent over");
        let (mut strands, mut ranges) = (Vec::new(), vec![0..0; amounts.len()]);
        let nothing = || vec![Vec::new(); self.links.len()];
        let (mut entries, mut exits) = (nothing(), nothing());
        for (from, offset) in (1..count).flat_map(|offset| (0..count).map(move |from| (from, offset))) {
            ask(stop)?;
            let to = (from + offset) % count;
            let amount = convert(amounts[place(from, to)]);
            let first = strands.len();
            if amount > C::ZERO {
                join(out.take(from, amount), into.take(to, amount), &mut strands);
            }
            ranges[place(from, to)] = first..strands.len();
            for (strand, number) in strands[first..].iter().zip(first..) {
                match (from == inner, to == inner) {
                    (true, _) => entries[strand.links[0].index()].push((to, number)),
                    (_, true) => exits[strand.links[1].index()].push((from, number)),
                    _ => {}
                }
            }
        }
        let mut trees: Vec<Vec<PieceTree<C>>> = (0..inner).map(|_| Vec::new()).collect();
        for tree in found {
            ask(stop)?;
            let edge = |&(tail, head): &_| PieceEdge { tail, head, strands: ranges[place(tail, head)].clone() };
            let edges = tree.edges.iter().map(edge).collect();
            trees[tree.root as usize].push(PieceTree { weight: convert(tree.weight), edges });
        }
        Ok(Some(Solution { trees, strands, entries, exits }))
    }

    /// Where trees enter and leave; `None` if a few terminals are alike, root a tree each and take the same part. Without an
    /// outside, `None` if all demands are equal, each terminal can send its own to everyone, and there is no unit.
    fn crossing(&self, demands: Vec<u128>, sends: Vec<u128>, receives: &[u128], unit: u128) -> Option<Crossing> {
        let count = demands.len() as u128;
        let is_alike = |inside: usize| (1..inside).all(|one| (demands[one], sends[one]) == (demands[0], sends[0]));
        let Some(outside) = self.network.outside.map(|outside| outside as usize) else {
            let each_alone = |(&demand, &sends): (&u128, &u128)| sends >= demand * (count - 1);
            let is_even = demands.iter().all(|&demand| demand == demands[0]);
            let is_plain = is_even && demands.iter().zip(&sends).all(each_alone);
            return (!is_plain || unit > 1).then_some(Crossing {
                entries: Vec::new(),
                exits: Vec::new(),
                demands,
                sends,
            });
        };
        let is_even = [sends.get(outside)?, receives.get(outside)?].iter().all(|sum| sum.is_multiple_of(count - 1));
        // With several trees each, links come in odd numbers that leave the general way little to choose from.
        if count <= ALIKE_MAX && is_alike(outside) && is_even && demands[0] <= 1 {
            return None;
        }
        crossing(outside, demands, sends, receives, unit)
    }
}

/// Where trees enter and leave terminals around a switch that z, the last of them, is on, too; `None` if more leaves than they
/// send beyond a link for each of their trees.
///
/// * **In.** By terminal: demands, and what it sends to the switch and receives from there; of what enters and leaves there are
///   multiples of `unit`, as far as that goes. **Cost.** O(terminals).
pub(super) fn crossing(
    outside: usize,
    mut demands: Vec<u128>,
    mut sends: Vec<u128>,
    receives: &[u128],
    unit: u128,
) -> Option<Crossing> {
    let shared = |values: &[u128], amount: u128| -> Option<Vec<u128>> {
        let parts = parts(&signed(values)?, i128::try_from(amount).ok()?, unit);
        Some(parts.into_iter().map(i128::unsigned_abs).collect())
    };
    let (entering, leaving) = (sends.get(outside).copied()?, receives.get(outside).copied()?);
    demands.truncate(outside);
    sends.truncate(outside);
    // Who sends much takes in much that it can send on.
    if sends.iter().sum::<u128>() < entering {
        return None;
    }
    let entries = shared(&sends, entering)?;
    demands.iter_mut().zip(&entries).for_each(|(demand, entry)| *demand += entry);
    // What is left once a terminal has sent all of its trees to everyone leaves first, then what others can relay.
    let others = (outside as u128).saturating_sub(1);
    let beyond = |times: u128| -> Vec<u128> {
        sends.iter().zip(&demands).map(|(sends, demand)| sends.saturating_sub(demand * times)).collect()
    };
    let (first, most) = (beyond(others), beyond(1));
    let first_sum: u128 = first.iter().sum();
    let exits: Vec<u128> = if first_sum >= leaving {
        shared(&first, leaving)?
    } else {
        let rest: Vec<u128> = most.iter().zip(&first).map(|(most, first)| most - first).collect();
        if rest.iter().sum::<u128>() < leaving - first_sum {
            return None;
        }
        let rest = shared(&rest, leaving - first_sum)?;
        first.iter().zip(rest).map(|(first, rest)| first + rest).collect()
    };
    sends.iter_mut().zip(&exits).for_each(|(sends, exit)| *sends -= exit);
    Some(Crossing { entries, exits, demands, sends })
}

/// Trees of a star as seen from inside.
pub(super) struct Crossing {
    /// By terminal, z excepted: trees that enter there, and that leave from there; empty without an outside.
    pub(super) entries: Vec<u128>,
    pub(super) exits: Vec<u128>,
    /// Trees to root there, those that enter included, and what it can send to the others.
    pub(super) demands: Vec<u128>,
    pub(super) sends: Vec<u128>,
}

fn signed(values: &[u128]) -> Option<Vec<i128>> {
    values.iter().map(|&value| i128::try_from(value).ok()).collect()
}

/// The links of one direction between terminals and the switch, with what they have left.
pub(super) struct Spokes<C> {
    /// By terminal.
    links: Vec<Vec<usize>>,
    left: Vec<Vec<C>>,
    /// Whole numbers of this are taken while there are some.
    unit: u128,
}

impl<C: FlowUnit> Spokes<C> {
    pub(super) fn new(terminal_count: u32, unit: u128) -> Self {
        let (links, left) = (vec![Vec::new(); terminal_count as usize], vec![Vec::new(); terminal_count as usize]);
        Self { links, left, unit }
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
        let parts = parts(left, amount, self.unit);
        left.iter_mut().zip(&parts).for_each(|(left, &part)| *left -= part);
        self.links[terminal as usize].iter().copied().zip(parts).filter(|&(_, part)| part > C::ZERO).collect()
    }
}

/// Parts of `amount` in proportion to `capacities`, as many as possible of them multiples of `unit`, none above its capacity.
/// `amount` is at most the sum. What is no multiple is taken where as much is no multiple anyway.
fn parts<C: FlowUnit>(capacities: &[C], amount: C, unit: u128) -> Vec<C> {
    let less = |number: u128| C::try_from_u128(number).expect("no more than the capacities");
    let units: Vec<C> = capacities.iter().map(|capacity| less(capacity.to_u128() / unit)).collect();
    let unit_count = units.iter().map(|units| units.to_u128()).sum::<u128>().min(amount.to_u128() / unit);
    let whole = quotas(&units, less(unit_count)).into_iter().map(|units| less(units.to_u128() * unit));
    let mut parts: Vec<C> = whole.collect();
    let mut left: Vec<C> = capacities.iter().zip(&parts).map(|(&capacity, &part)| capacity - part).collect();
    let mut rest = amount - less(unit_count * unit);
    if rest.to_u128() >= unit {
        let more = quotas(&left, rest);
        parts.iter_mut().zip(more).for_each(|(part, more)| *part += more);
        return parts;
    }
    while rest > C::ZERO {
        // The least that is enough, else the most.
        let odd = |&link: &usize| less(left[link].to_u128() % unit);
        let enough = (0..left.len()).filter(|link| odd(link) >= rest).min_by_key(odd);
        let most = || (0..left.len()).rev().max_by_key(|link| (odd(link).min(rest), left[*link]));
        let Some(link) = enough.or_else(most) else { break };
        let part = if odd(&link) > C::ZERO { odd(&link) } else { left[link] }.min(rest);
        if part == C::ZERO {
            break;
        }
        parts[link] += part;
        left[link] -= part;
        rest -= part;
    }
    parts
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
