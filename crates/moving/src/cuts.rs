//! The least time that each box takes by itself, in closed form: cuts around single ranks and around the NICs of a box.
//!
//! On one fabric nothing else can bind routes that relay in the boxes of their ends, see [`least`].

use canopy_optimize::Fraction;

use crate::matrix::Sums;
use crate::prices::Prices;
use crate::tiers::Tiers;

/// What a rank adds to a cut around the NICs of its box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// Its NIC in the direction of the cut.
    Nic,
    /// Its link to the switch, over which relayed bytes come to its NIC.
    Relay,
    /// That, and the NIC of the other direction.
    RelayAndNic,
}

/// Routes that must pass a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Those that relay in the boxes of sender and receiver, and leave no box for a rank of the same one.
    Ends,
    /// All.
    All,
}

/// Directions of a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Out,
    In,
}

/// Links that bytes must pass.
#[derive(Clone, Debug)]
enum Links {
    /// All links of a rank in a direction, or only the one to its switch.
    Rank { rank: usize, direction: Direction, with_nic: bool },
    /// Around the NICs of the box of `first`, one choice by rank.
    Nics { first: usize, direction: Direction, sides: Vec<Side> },
}

/// A cut: bytes that must pass its links, and what these take in a second.
#[derive(Clone, Debug)]
pub(crate) struct Cut {
    pub(crate) bytes: u128,
    pub(crate) rate: u128,
    links: Links,
}

impl Cut {
    /// The time that the bytes take; none for links that are dead.
    pub(crate) fn time(&self) -> Option<Fraction> {
        Fraction::new(self.bytes, self.rate)
    }

    /// A price of 1 on each link of the cut.
    pub(crate) fn prices(&self, tiers: &Tiers) -> Prices {
        let mut prices = Prices::free(tiers);
        match &self.links {
            &Links::Rank { rank, direction, with_nic } => {
                let (inner, outer) = match direction {
                    Direction::Out => (&mut prices.inner_out, &mut prices.outer_out),
                    Direction::In => (&mut prices.inner_in, &mut prices.outer_in),
                };
                inner[rank] = 1;
                outer[rank] = u32::from(with_nic);
            }
            Links::Nics { first, direction, sides } => {
                let (nic, relay, other) = match direction {
                    Direction::Out => (&mut prices.outer_out, &mut prices.inner_in, &mut prices.outer_in),
                    Direction::In => (&mut prices.outer_in, &mut prices.inner_out, &mut prices.outer_out),
                };
                for (rank, side) in (*first..).zip(sides) {
                    nic[rank] = u32::from(*side == Side::Nic);
                    relay[rank] = u32::from(*side != Side::Nic);
                    other[rank] = u32::from(*side == Side::RelayAndNic);
                }
            }
        }
        prices
    }
}

/// The cuts of all boxes: those of each rank and direction, and the worst around the NICs of each box and direction.
///
/// Let a rank send `E` to other boxes and `N` within its box, and its links have rates `O` (NIC) and `I` (switch). What
/// leaves it needs `(N + E)/(I + O)`, and `N/I`. With the other direction marked by `'`, what leaves the box by a
/// rank's NIC is at most `O·T`, and at most `I'·T − N'` more than the rank's own bytes, as relayed bytes come over its
/// link from the switch, and so does what its own NIC cannot receive, `R − O'·T`. Hence for each choice by rank
///
/// `T ≥ Σ {E or N' or N' + R} ÷ Σ {O or I' or I' + O'}`,
///
/// and the other way round for what enters. On one fabric, a time for which all of these hold is enough for routes of
/// [`Scope::Ends`]: both ends of a route can be chosen independently, and sending and relaying share no other link.
///
/// If bytes within a box may leave it and come back, what a rank receives may all come by its NIC. Then `N/I` does not
/// hold, and of the choice `N' ÷ I'` only `0 ÷ I'`. The others do: each counted byte leaves its sender, passes a NIC of
/// the cut, or enters a rank whose NIC is not in it.
///
/// * **Cost.** O(ranks), with a few rounds of Dinkelbach's method for each box.
pub(crate) fn cuts(tiers: &Tiers, sums: &Sums, scope: Scope) -> Vec<Cut> {
    let rates = tiers.rates();
    let mut cuts = Vec::with_capacity(4 * tiers.ranks() + 2 * tiers.boxes());
    for rank in 0..tiers.ranks() {
        let sides = [
            (Direction::Out, &sums.inside_out, &sums.across_out, rates.inner_out[rank], rates.outer_out[rank]),
            (Direction::In, &sums.inside_in, &sums.across_in, rates.inner_in[rank], rates.outer_in[rank]),
        ];
        for (direction, inside, across, inner, outer) in sides {
            let (inside, across) = (u128::from(inside[rank]), u128::from(across[rank]));
            let (inner, outer) = (u128::from(inner), u128::from(outer));
            let mut add = |with_nic, bytes, rate| {
                cuts.push(Cut { bytes, rate, links: Links::Rank { rank, direction, with_nic } })
            };
            if scope == Scope::Ends {
                add(false, inside, inner);
            }
            add(true, inside + across, inner + outer);
        }
    }
    for first in (0..tiers.ranks()).step_by(tiers.box_size()) {
        cuts.push(around_nics(tiers, sums, first, Direction::Out, scope));
        cuts.push(around_nics(tiers, sums, first, Direction::In, scope));
    }
    cuts
}

/// The greatest time that a cut demands of routes that relay in the boxes of their ends: on one fabric, the least that
/// suffices for them. Zero if there is no traffic.
pub(crate) fn least(tiers: &Tiers, sums: &Sums) -> Fraction {
    cuts(tiers, sums, Scope::Ends).iter().filter_map(Cut::time).max().unwrap_or(Fraction::ZERO)
}

/// The worst choice by rank for the NICs of a box (Dinkelbach: the choice that is best for the last quotient, until
/// none is better).
fn around_nics(tiers: &Tiers, sums: &Sums, first: usize, direction: Direction, scope: Scope) -> Cut {
    let rates = tiers.rates();
    let options = |rank: usize| {
        let (sent, relayed, received, nic, relay, other) = match direction {
            Direction::Out => (
                sums.across_out[rank],
                sums.inside_in[rank],
                sums.across_in[rank],
                rates.outer_out[rank],
                rates.inner_in[rank],
                rates.outer_in[rank],
            ),
            Direction::In => (
                sums.across_in[rank],
                sums.inside_out[rank],
                sums.across_out[rank],
                rates.outer_in[rank],
                rates.inner_out[rank],
                rates.outer_out[rank],
            ),
        };
        let only_inside = if scope == Scope::Ends { relayed } else { 0 };
        [
            (Side::Nic, sent, nic),
            (Side::Relay, only_inside, relay),
            (Side::RelayAndNic, relayed + received, relay + other),
        ]
    };
    let ranks = first..first + tiers.box_size();
    let (mut bytes, mut rate) = (0_u128, 0_u128);
    for (_, sent, nic) in ranks.clone().map(|rank| options(rank)[0]) {
        bytes += u128::from(sent);
        rate += u128::from(nic);
    }
    let mut sides = vec![Side::Nic; tiers.box_size()];
    // Each round has a greater quotient, and each rank leaves one option for one of a greater rate at most twice.
    for _ in 0..=2 * tiers.box_size() {
        let (mut more_bytes, mut more_rate) = (0_u128, 0_u128);
        let mut chosen = Vec::with_capacity(sides.len());
        for rank in ranks.clone() {
            // Bytes below 2^61 and rates below 2^62 in sum.
            let worth = |option: &(Side, u64, u64)| {
                (u128::from(option.1) * rate).cast_signed() - (u128::from(option.2) * bytes).cast_signed()
            };
            let [mut best, relay, relay_and_nic] = options(rank);
            for other in [relay, relay_and_nic] {
                if worth(&other) > worth(&best) {
                    best = other;
                }
            }
            more_bytes += u128::from(best.1);
            more_rate += u128::from(best.2);
            chosen.push(best.0);
        }
        if more_bytes * rate <= bytes * more_rate {
            break;
        }
        (bytes, rate, sides) = (more_bytes, more_rate, chosen);
    }
    Cut { bytes, rate, links: Links::Nics { first, direction, sides } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Matrix;
    use crate::tiers::{Fabric, Rates};

    /// Rank 0 of two has all that its box sends.
    fn sums(tiers: &Tiers, bytes: u64) -> (Sums, Matrix) {
        let mut entries = vec![0; 16];
        entries[2] = bytes;
        let matrix = Matrix::new(4, entries).unwrap();
        (Sums::new(tiers, &matrix), matrix)
    }

    #[track_caller]
    fn check(inner_out: u64, inner_in: u64, expected: (u128, u128)) {
        let all = |rate: u64| vec![rate; 4];
        let rates = Rates {
            inner_out: vec![inner_out, 99, 99, 99],
            inner_in: vec![99, inner_in, 99, 99],
            outer_out: all(6),
            outer_in: all(50),
        };
        let tiers = Tiers::new(Fabric::Full, 2, rates).unwrap();
        let (sums, matrix) = sums(&tiers, 120);
        let expected = Fraction::new(expected.0, expected.1).unwrap();
        assert_eq!(least(&tiers, &sums), expected);
        let cuts = cuts(&tiers, &sums, Scope::All);
        let worst = cuts.iter().max_by_key(|cut| cut.time()).unwrap();
        assert_eq!(worst.prices(&tiers).least_time(&tiers, &matrix), Ok(expected));
    }

    /// 120 bytes over two NICs of 6; over its own NIC and a link of 2; over its own NIC and the relay's link of 4.
    #[test]
    fn nics_senders_and_relays_bind() {
        check(99, 99, (120, 12));
        check(2, 99, (120, 8));
        check(99, 4, (120, 10));
    }

    /// Every cut that holds for all routes proves with its prices what it states, or more.
    #[test]
    fn prices_of_cuts_prove_them() {
        for fabric in [Fabric::Rails, Fabric::Full] {
            let tiers = Tiers::even(fabric, 2, 2, 5, 3).unwrap();
            for scale in 1..20 {
                let matrix = Matrix::new(4, (0..16).map(|entry| entry * entry * scale % 11).collect()).unwrap();
                let cuts = cuts(&tiers, &Sums::new(&tiers, &matrix), Scope::All);
                assert_eq!(cuts.len(), 12);
                for cut in cuts {
                    let proven = cut.prices(&tiers).least_time(&tiers, &matrix).unwrap();
                    assert!(proven >= cut.time().unwrap(), "{cut:?}");
                }
            }
        }
    }
}
