//! The fastest of some algorithms for each size.

use canopy_schedule::CollectiveKind;

use super::paths::{Line, Paths};
use super::patterns::{Pattern, Round};

/// An algorithm of a library, as its tables name it.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Its number in Open MPI; 0 elsewhere.
    pub id: u32,
    /// Its name.
    pub name: &'static str,
    /// Bytes of a segment; 0 where it sends whole messages.
    pub segment: u64,
    pub(super) sends: Sends,
}

/// What it sends on so many ranks; in segments, if it takes them.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sends {
    Whole(fn(u64) -> Option<Pattern>),
    Segments(fn(u64, u64) -> Option<Pattern>),
}

/// What is fastest for some sizes of a collective on a communicator, both ends included.
#[derive(Clone, Copy, Debug)]
pub struct MpiChoice {
    /// What is called.
    pub collective: CollectiveKind,
    /// Ranks of the communicator.
    pub ranks: u64,
    /// Smallest message, in bytes of the whole.
    pub first: u64,
    /// Largest.
    pub last: u64,
    /// What is fastest.
    pub candidate: Candidate,
}

/// Last power of two at which times are compared.
const POWER_MAX: u32 = 40;

/// How long an algorithm takes.
enum Clock {
    Rounds { parts: u64, rounds: Vec<(Vec<Line>, u64)> },
    Pipeline { hops: u64, lines: Vec<Line>, segment: u64 },
}

fn slowest(lines: &[Line], bytes: u64, parts: u64) -> u128 {
    lines.iter().map(|line| line.time_ps(bytes, parts)).max().unwrap_or(0)
}

impl Clock {
    fn of(paths: &Paths<'_>, pattern: Pattern) -> Self {
        let timed = |Round { messages, times }: Round| (paths.lines(&messages), times);
        match pattern {
            Pattern::Rounds { parts, rounds } => {
                Self::Rounds { parts, rounds: rounds.into_iter().map(timed).collect() }
            }
            Pattern::Pipeline { hops, round, segment } => {
                Self::Pipeline { hops, lines: timed(round).0, segment: segment.max(1) }
            }
        }
    }

    fn time_ps(&self, bytes: u64) -> u128 {
        match self {
            Self::Rounds { parts, rounds } => {
                rounds.iter().map(|(lines, times)| slowest(lines, bytes, *parts) * u128::from(*times)).sum()
            }
            Self::Pipeline { hops, lines, segment } => {
                let segments = bytes.div_ceil(*segment).max(1);
                u128::from(hops + segments - 1) * slowest(lines, bytes.min(*segment), 1)
            }
        }
    }
}

/// The fastest for every size from 0 on, in rising order without gaps; of equally fast ones the first. Compared at powers
/// of two, and where the fastest changes, to the byte between them.
pub(super) fn choices(
    paths: &Paths<'_>,
    collective: CollectiveKind,
    candidates: impl IntoIterator<Item = Candidate>,
) -> Vec<MpiChoice> {
    let ranks = paths.ranks();
    let clock = |candidate: Candidate| {
        let pattern = match candidate.sends {
            Sends::Whole(sends) => sends(ranks),
            Sends::Segments(sends) => sends(ranks, candidate.segment),
        };
        Some((candidate, Clock::of(paths, pattern?)))
    };
    let clocks: Vec<(Candidate, Clock)> = candidates.into_iter().filter_map(clock).collect();
    let fastest = |bytes: u64| clocks.iter().enumerate().min_by_key(|(_, (_, clock))| clock.time_ps(bytes));
    let mut found: Vec<(u64, usize)> = Vec::new();
    for power in 0..=POWER_MAX {
        let size = 1_u64 << power;
        let Some((place, (_, clock))) = fastest(size) else { continue };
        match found.last() {
            None => found.push((0, place)),
            Some(&(_, before)) if before == place => {}
            Some(&(_, before)) => {
                let Some((_, old)) = clocks.get(before) else { continue };
                // Below `low` the one before is still as fast, from `high` on it is not.
                let (mut low, mut high) = (size / 2, size);
                while high - low > 1 {
                    let middle = low + (high - low) / 2;
                    if old.time_ps(middle) <= clock.time_ps(middle) { low = middle } else { high = middle }
                }
                found.push((high, place));
            }
        }
    }
    let ends = found.iter().skip(1).map(|&(first, _)| first - 1).chain([u64::MAX]);
    let choice = |(&(first, place), last): (&(u64, usize), u64)| {
        let candidate = clocks.get(place)?.0;
        Some(MpiChoice { collective, ranks, first, last, candidate })
    };
    found.iter().zip(ends).filter_map(choice).collect()
}

#[cfg(test)]
mod tests;
