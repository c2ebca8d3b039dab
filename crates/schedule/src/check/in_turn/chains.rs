//! Times as chains of sends, for lanes whose times have no common unit that 128 bits can count.
//!
//! Links with measured rates are of this kind: a few rates of eleven digits have a common multiple of hundreds of
//! bits. The end of a send is the end of one before it and what its lane takes. So a time is the last send of a chain,
//! with a lower limit in whole ticks. Mostly these limits tell two times apart. Where they do not, the sends that only
//! one of the chains has are counted by pace, and the sums are compared as fractions.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use num_bigint::{BigInt, BigUint, Sign};
use num_integer::Integer as _;

use super::Clock;
use super::lanes::{Lanes, Pace};
use crate::check::seconds::Seconds;
use crate::route::RouteIndex;
use crate::transfer::TransferGraph;

/// Bits of the ticks that all sends take one after the other.
const TOTAL_BITS: u64 = 126;
/// Bits after the point of a second before ticks are chosen: the fastest lane takes at least 2⁻⁶⁴ seconds.
const SECOND_BITS: u64 = 256;

/// Sends that each begin when another ends.
pub(super) struct Chains<'a> {
    lanes: &'a Lanes,
    /// By pace, whole ticks of one chunk, rounded down.
    ticks: Vec<u128>,
    /// The first is the start, when nothing has been sent.
    sends: Vec<Sent>,
}

/// A send at the end of a chain.
#[derive(Clone, Copy, Default)]
struct Sent {
    /// The send that it begins after.
    before: usize,
    pace: usize,
    chunks: u64,
    /// Ticks from the start to its end, rounded down for each chunk.
    ticks: u128,
    /// Chunks of the chain: the end is at `ticks` or later, and before `ticks + rounded`, unless that is 0.
    rounded: u128,
}

impl<'a> Chains<'a> {
    /// An empty list of chains. O(carriers).
    pub(super) fn of(lanes: &'a Lanes, graph: &TransferGraph) -> Self {
        let mut chunks = vec![0_u128; lanes.paces.len()];
        for carrier in graph.transfers.iter().flat_map(|transfer| graph.carriers_of(transfer)) {
            chunks[lanes.pace_of[carrier.route.index()]] += u128::from(carrier.chunk_count);
        }
        let fine = |pace: &Pace| (BigUint::from(pace.shared) << SECOND_BITS) / pace.capacity;
        let fine: Vec<BigUint> = lanes.paces.iter().map(fine).collect();
        let total: BigUint = fine.iter().zip(&chunks).map(|(time, &count)| (time + 1_u8) * count).sum();
        let excess = total.bits().saturating_sub(TOTAL_BITS);
        let ticks = fine.into_iter().map(|time| u128::try_from(time >> excess).unwrap_or(0)).collect();
        Self { lanes, ticks, sends: vec![Sent::default()] }
    }

    /// A time in seconds: the sum over its chain.
    pub(super) fn seconds(&self, count: u32, end: usize) -> Seconds {
        let sums = self.chunks_between(end, Self::START);
        let (numerator, denominator) = self.sum(&sums);
        Seconds { count, numerator: numerator.magnitude().clone(), denominator }
    }

    /// Chunks by pace of the sends that only the first of two chains has, less those that only the second has.
    fn chunks_between(&self, mut a: usize, mut b: usize) -> BTreeMap<usize, i128> {
        let mut chunks = BTreeMap::new();
        // A send comes after those before it, so the later of two is not in the chain of the other.
        while a != b {
            let (send, sign) = if a > b { (&mut a, 1) } else { (&mut b, -1) };
            let Sent { before, pace, chunks: count, .. } = self.sends[*send];
            *chunks.entry(pace).or_default() += sign * i128::from(count);
            *send = before;
        }
        chunks.retain(|_, count| *count != 0);
        chunks
    }

    /// Seconds that chunks of some paces take together, as a fraction that need not be reduced.
    fn sum(&self, chunks: &BTreeMap<usize, i128>) -> (BigInt, BigUint) {
        let paces = || chunks.iter().map(|(&pace, &count)| (self.lanes.paces[pace], count));
        let common =
            paces().fold(BigUint::from(1_u8), |common, (Pace { capacity, .. }, _)| common.lcm(&capacity.into()));
        let seconds =
            |(Pace { shared, capacity }, count): (Pace, i128)| BigInt::from(&common / capacity * shared) * count;
        (paces().map(seconds).sum(), common)
    }

    fn compared(&self, a: usize, b: usize) -> Ordering {
        let (first, second) = (self.sends[a], self.sends[b]);
        if a == b {
            return Ordering::Equal;
        }
        if first.ticks >= second.ticks + second.rounded {
            return Ordering::Greater;
        }
        if second.ticks >= first.ticks + first.rounded {
            return Ordering::Less;
        }
        match self.sum(&self.chunks_between(a, b)).0.sign() {
            Sign::Plus => Ordering::Greater,
            Sign::NoSign => Ordering::Equal,
            Sign::Minus => Ordering::Less,
        }
    }
}

impl Clock for Chains<'_> {
    type Time = usize;

    const START: usize = 0;

    fn later(&self, a: usize, b: usize) -> usize {
        // Equal times may have different chains: either of them tells the time.
        if self.compared(a, b).is_lt() { b } else { a }
    }

    fn after(&mut self, begin: usize, lane: RouteIndex, chunks: u64) -> Option<usize> {
        let pace = self.lanes.pace_of[lane.index()];
        let Sent { ticks, rounded, .. } = self.sends[begin];
        let count = u128::from(chunks);
        self.sends.push(Sent {
            before: begin,
            pace,
            chunks,
            // No chain is longer than all sends together, which have no more than 126 bits.
            ticks: ticks + self.ticks[pace] * count,
            rounded: rounded + count,
        });
        Some(self.sends.len() - 1)
    }
}
