//! Graphs of ranks alone that are described by more than a formula for the next rank.

use crate::draft::TopologyDraft;
use crate::generate::arguments::Arguments;
use crate::generate::error::ExpressionError;
use crate::generate::size::Size;
use crate::limits::TopologyLimits;
use crate::units::Latency;

/// Rate of a link where nothing is said: a 200 Gbps port.
const RATE: u64 = 25_000_000_000;

/// `slim-fly:q=5`: 2·q² ranks of (3q − δ)/2 links each, any two of which are two links apart at most, for primes
/// `q = 4w + δ`, δ being 1 or −1.
///
/// Rank `(s, x, y)`, numbered `(s·q + x)·q + y`, is linked with `(s, x, y')` where `y − y'` is in a set of its side `s`, and
/// `(0, x, y)` with `(1, m, c)` where `y = m·x + c`, all modulo q. The sets are powers of a primitive root ξ: for δ = 1 the even
/// ones and the odd ones, for δ = −1 those of Hafner.
///
/// Source: McKay, Miller and Širáň 1998; Besta and Hoefler, "Slim Fly", SC 2014, §II-B.
pub(super) fn slim_fly(arguments: &Arguments<'_>, limits: &TopologyLimits) -> Result<TopologyDraft, ExpressionError> {
    let q = arguments.number("q", None)?;
    let wide = u128::from(q);
    // Of larger ones there are too many ranks, whatever the limits are.
    let is_fit = q > 3 && q < 1 << 16 && (2..).take_while(|factor| factor * factor <= q).all(|factor| q % factor != 0);
    if !is_fit {
        return Err(arguments.refused("q", "primes from 5 below 65536"));
    }
    let bandwidth = arguments.rate("bw", RATE)?;
    let is_one = q % 4 == 1;
    let degree = if is_one { 3 * wide / 2 } else { (3 * wide).div_ceil(2) };
    Size { ranks: 2 * wide * wide, switches: 0, links: 2 * wide * wide * degree }.check(limits)?;
    let power = |base: u64, exponent: u64| (0..exponent).fold(1, |power, _| power * base % q);
    let order = |base: u64| (1..q).find(|&exponent| power(base, exponent) == 1);
    let root = (2..q).find(|&base| order(base) == Some(q - 1)).expect("every prime has a primitive root");
    let w = q.div_ceil(4);
    let exponents: [Vec<u64>; 2] = if is_one {
        [(0..q - 1).step_by(2).collect(), (1..q - 1).step_by(2).collect()]
    } else {
        [
            (0..2 * w - 1).step_by(2).chain((2 * w - 1..4 * w - 2).step_by(2)).collect(),
            (1..2 * w).step_by(2).chain((2 * w..4 * w - 1).step_by(2)).collect(),
        ]
    };
    let mut draft = TopologyDraft::default();
    let id = |side: u64, x: u64, y: u64| ((side * q + x) * q + y).to_string();
    (0..2 * q * q).for_each(|rank| draft.add_compute(rank.to_string()));
    for (side, exponents) in (0..).zip(&exponents) {
        let mut is_in = vec![false; usize::try_from(q).expect("below 2^16")];
        exponents.iter().for_each(|&exponent| is_in[usize::try_from(power(root, exponent)).expect("below q")] = true);
        for x in 0..q {
            for y in 0..q {
                let further = (y + 1..q).filter(|next| is_in[usize::try_from(next - y).expect("below q")]);
                further.for_each(|next| {
                    draft.add_both(&id(side, x, y), &id(side, x, next), bandwidth, Latency::default())
                });
            }
        }
    }
    for x in 0..q {
        for m in 0..q {
            for c in 0..q {
                draft.add_both(&id(0, x, (m * x + c) % q), &id(1, m, c), bandwidth, Latency::default());
            }
        }
    }
    Ok(draft)
}

/// `double-tree:n=16`: the links of two binary trees of all ranks. In the first, rank v hangs by the lowest bit that is set in
/// it, rank 0 on top; in the second the same shape has rank `n − 1 − v`, or rank `v + 1` for odd n, in place of rank v, so
/// that inner ranks of one tree are leaves of the other. Links of both trees add up.
///
/// Source: Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", 2009.
pub(super) fn double_tree(
    arguments: &Arguments<'_>,
    limits: &TopologyLimits,
) -> Result<TopologyDraft, ExpressionError> {
    let n = arguments.number("n", None)?;
    if n < 2 {
        return Err(arguments.refused("n", "whole numbers from 2"));
    }
    let bandwidth = arguments.rate("bw", RATE)?;
    Size { ranks: n.into(), switches: 0, links: 4 * (u128::from(n) - 1) }.check(limits)?;
    let mut draft = TopologyDraft::default();
    (0..n).for_each(|rank| draft.add_compute(rank.to_string()));
    for is_second in [false, true] {
        let place = |rank: u64| match (is_second, n.is_multiple_of(2)) {
            (false, _) => rank,
            (true, true) => n - 1 - rank,
            (true, false) => (rank + 1) % n,
        };
        for rank in 1..n {
            let bit = rank & rank.wrapping_neg();
            // The parent has that bit cleared and the next one set, or where there is none, that bit cleared alone.
            let up = (rank ^ bit) | bit << 1;
            let parent = if up < n { up } else { rank ^ bit };
            draft.add_both(&place(rank).to_string(), &place(parent).to_string(), bandwidth, Latency::default());
        }
    }
    Ok(draft)
}
