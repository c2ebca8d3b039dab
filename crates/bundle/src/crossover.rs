//! Which of several plans is fastest at which sizes.
//!
//! Plans that use links best begin late; flat ones end early and waste links. Their times cross at some size, and where they
//! do is found here from nothing but the times themselves.

use std::collections::BTreeMap;

use crate::range::{ByteRange, PlanRange};

/// How much faster than the plan in place another must be to take over: `t · (1 + margin) ≤ t'` for the times `t` and `t'`.
///
/// Ranges that are worth a file differ by more than a simulation errs, and times that touch now and then must not make
/// ranges of a few bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Margin {
    numerator: u32,
    denominator: u32,
}

impl Margin {
    /// Faster is enough.
    pub const NONE: Self = Self { numerator: 0, denominator: 1 };
    /// One part in twenty.
    pub const STANDARD: Self = Self { numerator: 1, denominator: 20 };

    /// A fraction from 0 up; `None` where the denominator is 0.
    pub const fn new(numerator: u32, denominator: u32) -> Option<Self> {
        if denominator == 0 { None } else { Some(Self { numerator, denominator }) }
    }

    /// Numerator and denominator.
    pub const fn parts(self) -> (u32, u32) {
        (self.numerator, self.denominator)
    }

    /// Whether a time is faster than another by the margin, and faster at all.
    pub fn is_beaten(self, time: u64, by: u64) -> bool {
        let sum = u128::from(self.numerator) + u128::from(self.denominator);
        by < time && u128::from(by) * sum <= u128::from(time) * u128::from(self.denominator)
    }
}

/// How ranges are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeSearch {
    /// All sizes that are to be covered.
    pub sizes: ByteRange,
    /// Plans are compared at sizes that are this many times the one before; at least 2. What begins and ends between two of
    /// them is not seen.
    pub factor: u64,
    /// Ranges begin at multiples of this many bytes; 1 for any byte. 0 counts as 1.
    pub align: u64,
    /// What a change of plan must bring.
    pub margin: Margin,
}

impl RangeSearch {
    /// The sizes at which all plans are compared, rising, the first and the last among them.
    pub fn samples(&self) -> Vec<u64> {
        let (first, last) = (self.sizes.first(), self.sizes.last());
        let next = |size: &u64| size.checked_mul(self.factor.max(2));
        let mut sizes: Vec<u64> = std::iter::successors(Some(first), next).take_while(|&size| size < last).collect();
        sizes.push(last);
        sizes
    }
}

/// Times of plans by size, each asked for once.
pub struct Times<'a, E> {
    ask: &'a mut dyn FnMut(usize, u64) -> Result<u64, E>,
    candidates: usize,
    known: BTreeMap<(usize, u64), u64>,
}

impl<'a, E> Times<'a, E> {
    /// Times of `candidates` candidates: `ask` returns the time in picoseconds of a candidate, by number, at a size in
    /// bytes.
    pub fn new(candidates: usize, ask: &'a mut dyn FnMut(usize, u64) -> Result<u64, E>) -> Self {
        Self { ask, candidates, known: BTreeMap::new() }
    }

    /// The time of a candidate at a size.
    ///
    /// # Errors
    /// Errors of the callback.
    pub fn of(&mut self, candidate: usize, bytes: u64) -> Result<u64, E> {
        if let Some(&known) = self.known.get(&(candidate, bytes)) {
            return Ok(known);
        }
        let found = (self.ask)(candidate, bytes)?;
        self.known.insert((candidate, bytes), found);
        Ok(found)
    }

    /// The fastest at a size, the first where several are; `None` without candidates.
    fn fastest(&mut self, bytes: u64) -> Result<Option<usize>, E> {
        let mut best: Option<(u64, usize)> = None;
        for candidate in 0..self.candidates {
            let time = self.of(candidate, bytes)?;
            if best.is_none_or(|(least, _)| time < least) {
                best = Some((time, candidate));
            }
        }
        Ok(best.map(|(_, candidate)| candidate))
    }
}

/// Ranges, rising, disjoint and without gaps, each with the plan that serves it.
///
/// From the largest size down, the fastest plan stays in place until another beats it by the margin at a sample. That one
/// then takes over up to the size where the two are equally fast, found by bisection: the margin decides whether there is a
/// change, and never where. At every sampled size the plan of the range takes at most `1 + margin` times as long as the
/// fastest. `None` if there are no candidates.
///
/// * **Errors.** Errors of the callback. **Cost.** Each candidate at each of log(last/first) sizes, and two at
///   log₂ of the distance for each change.
pub fn ranges<E>(times: &mut Times<'_, E>, search: &RangeSearch) -> Result<Vec<PlanRange>, E> {
    let samples = search.samples();
    let Some(mut current) = times.fastest(search.sizes.last())? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    let mut end = search.sizes.end();
    for &lower in samples.iter().rev().skip(1) {
        let Some(best) = times.fastest(lower)? else { continue };
        if current == best || !search.margin.is_beaten(times.of(current, lower)?, times.of(best, lower)?) {
            continue;
        }
        let begin = crossing(times, search, (current, best), (lower, end), &samples)?;
        // Where the other one is faster up to the end, it takes all of it.
        if let Some(range) = ByteRange::new(begin, end) {
            found.push(PlanRange { candidate: current, range });
            end = begin;
        }
        current = best;
    }
    let rest = ByteRange::new(search.sizes.first(), end);
    found.extend(rest.map(|range| PlanRange { candidate: current, range }));
    found.reverse();
    Ok(joined(found))
}

/// The smallest aligned size above `lower` from which on a plan is as fast as another that is faster at `lower`, or `end`
/// where it is slower at all samples before.
fn crossing<E>(
    times: &mut Times<'_, E>,
    search: &RangeSearch,
    (current, faster): (usize, usize),
    (lower, end): (u64, u64),
    samples: &[u64],
) -> Result<u64, E> {
    let mut is_slower = |bytes: u64| Ok(times.of(faster, bytes)? < times.of(current, bytes)?);
    let mut below = lower;
    let mut above = None;
    for bytes in samples.iter().copied().filter(|&bytes| lower < bytes && bytes < end).chain([end - 1]) {
        if !is_slower(bytes)? {
            above = Some(bytes);
            break;
        }
        below = bytes;
    }
    let Some(above) = above else { return Ok(end) };
    let align = search.align.max(1);
    // In multiples of the alignment: slower at `low`, not slower at `high`.
    let (mut low, mut high) = (below / align, above.div_ceil(align));
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match is_slower(middle.saturating_mul(align))? {
            true => low = middle,
            false => high = middle,
        }
    }
    Ok(high.saturating_mul(align))
}

/// Neighbours of one plan as one range.
pub(crate) fn joined(ranges: Vec<PlanRange>) -> Vec<PlanRange> {
    let mut whole: Vec<PlanRange> = Vec::with_capacity(ranges.len());
    for next in ranges {
        match whole.last_mut() {
            Some(last) if last.candidate == next.candidate && last.range.end() == next.range.first() => {
                last.range = ByteRange::new(last.range.first(), next.range.end()).unwrap_or(last.range);
            }
            _ => whole.push(next),
        }
    }
    whole
}

#[cfg(test)]
mod tests;
