//! The checker of finished routes: every byte arrives once, over links that exist. It knows nothing of how routes are
//! found.

use canopy_optimize::Fraction;

use crate::matrix::Matrix;
use crate::route::{Loads, Part, Route};
use crate::tiers::{Fabric, Tiers};

/// A kind of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkKind {
    /// From a rank to the switch of its box.
    InnerOut,
    /// From the switch of its box to a rank.
    InnerIn,
    /// Out of a NIC.
    OuterOut,
    /// Into a NIC.
    OuterIn,
}

/// What routes load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Bytes by link.
    pub loads: Loads,
    /// Time of the busiest link in seconds: its bytes ÷ its rate.
    pub time: Fraction,
    /// That link by its kind and rank; `None` if nothing is sent.
    pub busiest: Option<(LinkKind, usize)>,
}

/// What is wrong with routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum CheckError {
    #[error("the network has {ranks} ranks, and the matrix {matrix}; give it a row and a column for each")]
    Ranks { ranks: usize, matrix: usize },
    #[error("parts[{part}] names rank {rank}, and there are {ranks}, numbered from 0")]
    NoSuchRank { part: usize, rank: u32, ranks: usize },
    #[error("parts[{part}] has 0 bytes; leave it out")]
    Empty { part: usize },
    #[error("parts[{part}] is inside a box, and ranks {from} and {to} are not; state an outer route")]
    NotInside { part: usize, from: u32, to: u32 },
    #[error("parts[{part}] uses the NIC of rank {rank}, which is not in the box of rank {end}; take one of that box")]
    ForeignNic { part: usize, rank: u32, end: u32 },
    #[error("parts[{part}] leaves and enters the same box; bytes for it take its switch")]
    SameBox { part: usize },
    #[error("parts[{part}] changes rails between the NICs of ranks {leaves} and {enters}; take NICs at the same place")]
    OtherRail { part: usize, leaves: u32, enters: u32 },
    #[error("parts[{part}] uses the dead NIC of rank {rank}; take another one")]
    DeadNic { part: usize, rank: u32 },
    #[error("rank {to} gets {found} bytes of rank {from} instead of {expected}")]
    Bytes { from: usize, to: usize, found: u128, expected: u64 },
}

/// Checks routes and adds up what they load.
///
/// * **Errors.** [`CheckError`]: the first fault.
/// * **Cost.** O(parts + ranks²).
pub fn check(tiers: &Tiers, matrix: &Matrix, parts: &[Part]) -> Result<Checked, CheckError> {
    let ranks = tiers.ranks();
    if matrix.ranks() != ranks {
        return Err(CheckError::Ranks { ranks, matrix: matrix.ranks() });
    }
    let mut arrived = vec![0_u128; ranks * ranks];
    let mut loads = Loads::none(ranks);
    for (number, part) in parts.iter().enumerate() {
        let links = links(tiers, number, part)?;
        arrived[part.from as usize * ranks + part.to as usize] += u128::from(part.bytes);
        for (kind, rank) in links.into_iter().flatten() {
            let load = match kind {
                LinkKind::InnerOut => &mut loads.inner_out[rank],
                LinkKind::InnerIn => &mut loads.inner_in[rank],
                LinkKind::OuterOut => &mut loads.outer_out[rank],
                LinkKind::OuterIn => &mut loads.outer_in[rank],
            };
            // Routes of more bytes than fit are found out below, by what arrives.
            *load = load.saturating_add(part.bytes);
        }
    }
    for from in 0..ranks {
        let row = matrix.row(from).iter().zip(&arrived[from * ranks..]);
        for (to, (&expected, &found)) in row.enumerate() {
            let expected = if from == to { 0 } else { expected };
            if found != u128::from(expected) {
                return Err(CheckError::Bytes { from, to, found, expected });
            }
        }
    }
    let (time, busiest) = busiest(tiers, &loads);
    Ok(Checked { loads, time, busiest })
}

/// The links of a part's route, if that exists.
fn links(tiers: &Tiers, number: usize, part: &Part) -> Result<[Option<(LinkKind, usize)>; 6], CheckError> {
    let (ranks, size) = (tiers.ranks(), tiers.box_size());
    let rank = |rank: u32| match usize::try_from(rank) {
        Ok(known) if known < ranks => Ok(known),
        _ => Err(CheckError::NoSuchRank { part: number, rank, ranks }),
    };
    let (from, to) = (rank(part.from)?, rank(part.to)?);
    if part.bytes == 0 {
        return Err(CheckError::Empty { part: number });
    }
    let mut links = [None; 6];
    match part.route {
        Route::Inside => {
            if from / size != to / size || from == to {
                return Err(CheckError::NotInside { part: number, from: part.from, to: part.to });
            }
            links[0] = Some((LinkKind::InnerOut, from));
            links[1] = Some((LinkKind::InnerIn, to));
        }
        Route::Across { leaves, enters } => {
            let (leaving, entering) = (rank(leaves)?, rank(enters)?);
            for (nic, name, end, end_name) in [(leaving, leaves, from, part.from), (entering, enters, to, part.to)] {
                if nic / size != end / size {
                    return Err(CheckError::ForeignNic { part: number, rank: name, end: end_name });
                }
            }
            if from / size == to / size {
                return Err(CheckError::SameBox { part: number });
            }
            if tiers.fabric() == Fabric::Rails && leaving % size != entering % size {
                return Err(CheckError::OtherRail { part: number, leaves, enters });
            }
            if tiers.rates().outer_out[leaving] == 0 {
                return Err(CheckError::DeadNic { part: number, rank: leaves });
            }
            if tiers.rates().outer_in[entering] == 0 {
                return Err(CheckError::DeadNic { part: number, rank: enters });
            }
            links[2] = Some((LinkKind::OuterOut, leaving));
            links[3] = Some((LinkKind::OuterIn, entering));
            if leaving != from {
                links[0] = Some((LinkKind::InnerOut, from));
                links[1] = Some((LinkKind::InnerIn, leaving));
            }
            if entering != to {
                links[4] = Some((LinkKind::InnerOut, entering));
                links[5] = Some((LinkKind::InnerIn, to));
            }
        }
    }
    Ok(links)
}

/// The greatest time of a link, and the first link that takes it.
fn busiest(tiers: &Tiers, loads: &Loads) -> (Fraction, Option<(LinkKind, usize)>) {
    let rates = tiers.rates();
    let classes = [
        (LinkKind::InnerOut, &loads.inner_out, &rates.inner_out),
        (LinkKind::InnerIn, &loads.inner_in, &rates.inner_in),
        (LinkKind::OuterOut, &loads.outer_out, &rates.outer_out),
        (LinkKind::OuterIn, &loads.outer_in, &rates.outer_in),
    ];
    let mut greatest = (Fraction::ZERO, None);
    for (kind, loads, rates) in classes {
        for (rank, (&load, &rate)) in loads.iter().zip(rates).enumerate() {
            let time = Fraction::new(u128::from(load), u128::from(rate));
            // Dead links carry nothing.
            let Some(time) = time else { continue };
            if time > greatest.0 {
                greatest = (time, Some((kind, rank)));
            }
        }
    }
    greatest
}

/// What a time reaches of the optimum at least: `bound ÷ time`, and 1 if nothing is sent; `None` where it does not fit
/// 128 bits.
pub fn ratio(bound: Fraction, time: Fraction) -> Option<Fraction> {
    match time.inverse() {
        Some(inverse) => bound.checked_mul(inverse),
        None => Some(Fraction { numerator: 1, denominator: 1 }),
    }
}

#[cfg(test)]
mod tests;
