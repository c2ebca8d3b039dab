//! The checker of finished routes: every byte arrives once, over links that exist. It knows nothing of how routes are
//! found.

use canopy_optimize::Fraction;

use crate::matrix::Matrix;
use crate::route::{Hop, Loads, Part, Route};
use crate::tiers::{Fabric, Tiers};

/// A kind of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkKind {
    /// From a rank to the switch of its box, or all its links to others of the box.
    InnerOut,
    /// From the switch of its box to a rank, or all links from others of the box.
    InnerIn,
    /// Out of a NIC.
    OuterOut,
    /// Into a NIC.
    OuterIn,
    /// From a rank to this other one of its box, where links join pairs.
    Pair(usize),
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
    #[error("parts[{part}] uses the dead link from rank {from} to rank {to} of its box; take another one")]
    DeadPair { part: usize, from: usize, to: usize },
    #[error("parts[{part}] stays at rank {rank} for a hop; leave that out")]
    Idle { part: usize, rank: u32 },
    #[error("parts[{part}] hops inside a box from rank {from} to rank {to}, which is in another one; hop across")]
    Outside { part: usize, from: usize, to: u32 },
    #[error("parts[{part}] ends at rank {rank}, and its receiver is rank {to}; add the hops that are missing")]
    Ends { part: usize, rank: usize, to: u32 },
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
    let mut loads = Loads::none(ranks, tiers.pairs().len());
    for (number, part) in parts.iter().enumerate() {
        Walk { tiers, number, part, loads: &mut loads }.follow()?;
        arrived[part.from as usize * ranks + part.to as usize] += u128::from(part.bytes);
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

/// A part on its route.
struct Walk<'a> {
    tiers: &'a Tiers,
    number: usize,
    part: &'a Part,
    loads: &'a mut Loads,
}

impl Walk<'_> {
    /// Loads the links of the route, if that exists.
    fn follow(&mut self) -> Result<(), CheckError> {
        let (part, number, size) = (self.part, self.number, self.tiers.box_size());
        let (from, to) = (self.rank(part.from)?, self.rank(part.to)?);
        if part.bytes == 0 {
            return Err(CheckError::Empty { part: number });
        }
        let is_inside = from / size == to / size;
        match &part.route {
            Route::Inside if !is_inside || from == to => {
                Err(CheckError::NotInside { part: number, from: part.from, to: part.to })
            }
            Route::Inside => self.inside(from, to),
            &Route::Across { leaves, enters } => {
                let (leaving, entering) = (self.rank(leaves)?, self.rank(enters)?);
                for (nic, name, end, end_name) in [(leaving, leaves, from, part.from), (entering, enters, to, part.to)]
                {
                    if nic / size != end / size {
                        return Err(CheckError::ForeignNic { part: number, rank: name, end: end_name });
                    }
                }
                if is_inside {
                    return Err(CheckError::SameBox { part: number });
                }
                if leaving != from {
                    self.inside(from, leaving)?;
                }
                self.across(leaving, entering)?;
                if entering == to { Ok(()) } else { self.inside(entering, to) }
            }
            Route::Relayed(hops) => {
                let mut at = from;
                for hop in hops {
                    let (Hop::Inside(name) | Hop::Across(name)) = *hop;
                    let next = self.rank(name)?;
                    if next == at {
                        return Err(CheckError::Idle { part: number, rank: name });
                    }
                    match hop {
                        Hop::Inside(_) if next / size != at / size => {
                            return Err(CheckError::Outside { part: number, from: at, to: name });
                        }
                        Hop::Inside(_) => self.inside(at, next)?,
                        Hop::Across(_) => self.across(at, next)?,
                    }
                    at = next;
                }
                if at == to { Ok(()) } else { Err(CheckError::Ends { part: number, rank: at, to: part.to }) }
            }
        }
    }

    fn rank(&self, rank: u32) -> Result<usize, CheckError> {
        let ranks = self.tiers.ranks();
        match usize::try_from(rank) {
            Ok(known) if known < ranks => Ok(known),
            _ => Err(CheckError::NoSuchRank { part: self.number, rank, ranks }),
        }
    }

    /// Loads what leads from a rank to another one of its box.
    fn inside(&mut self, from: usize, to: usize) -> Result<(), CheckError> {
        let pair = from * self.tiers.box_size() + to % self.tiers.box_size();
        if self.tiers.pairs().get(pair) == Some(&0) {
            return Err(CheckError::DeadPair { part: self.number, from, to });
        }
        self.load(|loads| &mut loads.inner_out, from);
        self.load(|loads| &mut loads.inner_in, to);
        if !self.tiers.pairs().is_empty() {
            self.load(|loads| &mut loads.pairs, pair);
        }
        Ok(())
    }

    /// Loads two NICs.
    fn across(&mut self, leaves: usize, enters: usize) -> Result<(), CheckError> {
        let (tiers, part, size) = (self.tiers, self.number, self.tiers.box_size());
        let name = |rank: usize| u32::try_from(rank).unwrap_or(u32::MAX);
        if tiers.fabric() == Fabric::Rails && leaves % size != enters % size {
            return Err(CheckError::OtherRail { part, leaves: name(leaves), enters: name(enters) });
        }
        if tiers.rates().outer_out[leaves] == 0 {
            return Err(CheckError::DeadNic { part, rank: name(leaves) });
        }
        if tiers.rates().outer_in[enters] == 0 {
            return Err(CheckError::DeadNic { part, rank: name(enters) });
        }
        self.load(|loads| &mut loads.outer_out, leaves);
        self.load(|loads| &mut loads.outer_in, enters);
        Ok(())
    }

    fn load(&mut self, links: impl Fn(&mut Loads) -> &mut Vec<u64>, at: usize) {
        let load = &mut links(self.loads)[at];
        // More bytes than fit are found by what arrives.
        *load = load.saturating_add(self.part.bytes);
    }
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
    let by_rank = classes.into_iter().flat_map(|(kind, loads, rates)| {
        loads.iter().zip(rates).enumerate().map(move |(rank, (&load, &rate))| (kind, rank, load, rate))
    });
    let size = tiers.box_size();
    let by_pair = loads.pairs.iter().zip(tiers.pairs()).enumerate().map(|(link, (&load, &rate))| {
        let rank = link / size;
        (LinkKind::Pair(rank / size * size + link % size), rank, load, rate)
    });
    let mut greatest = (Fraction::ZERO, None);
    for (kind, rank, load, rate) in by_rank.chain(by_pair) {
        let time = Fraction::new(u128::from(load), u128::from(rate));
        // Dead links carry nothing.
        let Some(time) = time else { continue };
        if time > greatest.0 {
            greatest = (time, Some((kind, rank)));
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
