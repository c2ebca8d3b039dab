//! Pieces between boxes when faults have touched one of them.

use std::collections::{BTreeMap, BTreeSet};

use canopy_schedule::{Exchange, Piece, Pieces, Seating, Stages};

use crate::symmetric::nics::Nics;
use crate::symmetric::relay;

/// States the pieces of all exchanges with an odd box, so that all its NICs take equally long.
///
/// Exchanges of two odd boxes come first, in proportion to the slower NIC at both ends of each place. What each NIC is
/// still to carry is then divided among the exchanges with sound boxes alike.
///
/// In an allreduce a box with slow NICs has to get everything and to send everything, but not to pass on what it got:
/// of its runs others send as much as makes its NICs take as long as theirs.
///
/// * **Source.** Theorem T7 of the design: a box with a dead NIC gets what it needs at the rate of the others, and what
///   a sound box sends it more over one rail than over others is little, as it is one of many.
/// * **Cost.** O(odd boxes · Σ digits · places²).
pub(crate) fn state(stages: &mut Stages, seating: &Seating, nics: &Nics, odd: &[u32]) {
    let rules = Pieces::new(stages, seating);
    let most = relay::most(stages, seating);
    let mut planner = Planner { nics, odd: BTreeMap::new(), stated: BTreeMap::new() };
    let exchanges = |of_box| Exchange::into_box(&stages.grid, of_box).filter(|&exchange| is_made(seating, exchange));
    let (mut handed_over, mut given) = (BTreeSet::new(), 0);
    for &of_box in odd {
        if stages.actions.len() > 1 {
            let has_others = |out: &Exchange| out.run(&stages.grid).any(|of_box| !odd.contains(&of_box));
            let others = exchanges(of_box).map(back).filter(|out| !odd.contains(&out.to) && has_others(out));
            handed_over.extend(handed(nics, of_box, others).map(|out| (out.from, out.to)));
        }
        let into: u64 = exchanges(of_box).map(|exchange| rules.chunks(exchange)).sum();
        let own = exchanges(of_box).map(back).filter(|out| !handed_over.contains(&(out.from, out.to)));
        let out: u64 = own.map(|out| rules.chunks(out)).sum();
        let rates =
            |of: fn(&(u64, u64)) -> u64| nics.get(of_box as usize).into_iter().flatten().map(of).collect::<Vec<_>>();
        let left = Left { out: quotas(&rates(|nic| nic.0), out), into: quotas(&rates(|nic| nic.1), into) };
        planner.odd.insert(of_box, left);
    }
    for are_both_odd in [true, false] {
        for &of_box in odd {
            let all = exchanges(of_box).filter(|exchange| planner.is_odd(exchange.from) == are_both_odd);
            for exchange in all.collect::<Vec<_>>() {
                planner.divide(exchange, rules.chunks(exchange));
                let back = back(exchange);
                if handed_over.contains(&(back.from, back.to)) {
                    let senders: Vec<u32> = back.run(&stages.grid).filter(|of_box| !odd.contains(of_box)).collect();
                    let chunks = rules.chunks(back);
                    let pieces = relay::divide(nics, back.to, &senders, chunks, chunks.div_ceil(most), &mut given);
                    planner.stated.insert((back.from, back.to), pieces);
                } else if !are_both_odd {
                    planner.divide(back, rules.chunks(back));
                }
            }
        }
    }
    // What the rule says without them is not stated.
    let mut usual = Vec::new();
    let mut is_other = |(from, to): (u32, u32), pieces: &[Piece]| {
        if let Some(exchange) = Exchange::between(&stages.grid, from, to) {
            rules.put(exchange, &mut usual);
        }
        usual != pieces
    };
    planner.stated.retain(|&pair, pieces| is_other(pair, pieces));
    stages.exceptions = planner.stated;
}

/// Of what a box sends, the exchanges that other boxes of its run make in its place in an allreduce: evenly spread, and
/// as many as there are NICs missing twice over, as the fastest box uses its own for what it gets and for what it sends.
fn handed(nics: &Nics, of_box: u32, out: impl Iterator<Item = Exchange>) -> impl Iterator<Item = Exchange> {
    let rate = |places: &Vec<(u64, u64)>| places.iter().map(|nic| u128::from(nic.0.min(nic.1))).sum::<u128>();
    let fastest = nics.iter().map(rate).max().unwrap_or(0);
    let own = nics.get(of_box as usize).map_or(0, rate);
    let missing = fastest.saturating_sub(own).saturating_mul(2).min(fastest);
    let mut due = 0;
    out.filter(move |_| {
        due += missing;
        let is_due = fastest > 0 && due >= fastest;
        due -= if is_due { fastest } else { 0 };
        is_due
    })
}

/// The exchange the other way round.
const fn back(exchange: Exchange) -> Exchange {
    Exchange { stage: exchange.stage, from: exchange.to, to: exchange.from }
}

/// Whether both boxes have ranks.
fn is_made(seating: &Seating, exchange: Exchange) -> bool {
    [exchange.from, exchange.to].into_iter().all(|of_box| !seating.is_empty(of_box))
}

/// Chunks for each NIC, in proportion to the rates as well as whole numbers can be.
fn quotas(rates: &[u64], chunks: u64) -> Vec<u64> {
    let total: u128 = rates.iter().map(|&rate| u128::from(rate)).sum();
    if total == 0 {
        return vec![0; rates.len()];
    }
    let part = |rate: u64| u64::try_from(u128::from(chunks) * u128::from(rate) / total).unwrap_or(chunks);
    let mut quotas: Vec<u64> = rates.iter().map(|&rate| part(rate)).collect();
    for _ in 0..chunks - quotas.iter().sum::<u64>() {
        // The one that takes least time with one more.
        let live = (0..rates.len()).filter(|&place| rates[place] > 0);
        let time = |place: usize| (u128::from(quotas[place]) + 1, u128::from(rates[place]));
        let least = live.min_by(|&one, &other| (time(one).0 * time(other).1).cmp(&(time(other).0 * time(one).1)));
        if let Some(least) = least {
            quotas[least] += 1;
        }
    }
    quotas
}

/// What the NICs of an odd box are still to carry, by place.
struct Left {
    out: Vec<u64>,
    into: Vec<u64>,
}

struct Planner<'a> {
    nics: &'a Nics,
    odd: BTreeMap<u32, Left>,
    stated: BTreeMap<(u32, u32), Vec<Piece>>,
}

impl Planner<'_> {
    fn is_odd(&self, of_box: u32) -> bool {
        self.odd.contains_key(&of_box)
    }

    /// States the pieces of one exchange. None where no place has a NIC in both boxes.
    fn divide(&mut self, exchange: Exchange, chunks: u64) {
        let Exchange { from, to, .. } = exchange;
        let places = self.nics.get(to as usize).map_or(0, Vec::len);
        let rate =
            |of_box: u32, place: usize| self.nics.get(of_box as usize).and_then(|places| places.get(place)).copied();
        let slower = |place| rate(from, place).unwrap_or_default().0.min(rate(to, place).unwrap_or_default().1);
        let rates: Vec<u64> = (0..places).map(slower).collect();
        let (out, into) = (self.odd.get(&from).map(|left| &left.out), self.odd.get(&to).map(|left| &left.into));
        let weights: Vec<u64> = match (out, into) {
            (Some(left), None) | (None, Some(left)) => {
                left.iter().zip(&rates).map(|(&left, &rate)| if rate > 0 { left } else { 0 }).collect()
            }
            _ => rates.clone(),
        };
        let is_enough = weights.iter().any(|&weight| weight > 0);
        let lengths = quotas(if is_enough { &weights } else { &rates }, chunks);
        for (of_box, is_out) in [(from, true), (to, false)] {
            if let Some(left) = self.odd.get_mut(&of_box) {
                let left = if is_out { &mut left.out } else { &mut left.into };
                left.iter_mut().zip(&lengths).for_each(|(left, &length)| *left = left.saturating_sub(length));
            }
        }
        let pieces = (0..).zip(lengths).filter(|&(_, length)| length > 0);
        let pieces =
            pieces.map(|(place, length)| Piece { sender: from, leaves: place, enters: place, chunk_count: length });
        self.stated.insert((from, to), pieces.collect());
    }
}
