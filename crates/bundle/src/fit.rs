//! Fewer ranges: where one is too narrow to be worth a file, and where a runtime reads fewer files than there are ranges.

use crate::crossover::{Times, joined};
use crate::range::PlanRange;

/// Assignments of sizes to plans, each with fewer plans than the one before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ladder {
    /// The ranges of each way, the one with most first; the last has one range. Empty where there are none at all.
    steps: Vec<Vec<PlanRange>>,
    /// What each step down costs.
    costs: Vec<Slowdown>,
}

impl Ladder {
    /// A plan for all sizes, or none at all.
    pub fn single(range: Option<PlanRange>) -> Self {
        Self { steps: range.into_iter().map(|range| vec![range]).collect(), costs: Vec::new() }
    }

    /// Number of ways.
    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    /// The same with other numbers for the candidates.
    #[must_use]
    pub fn renamed(mut self, name: impl Fn(usize) -> usize) -> Self {
        for found in self.steps.iter_mut().flatten() {
            found.candidate = name(found.candidate);
        }
        self
    }

    /// The ranges after `step` steps down, or after the last step.
    pub fn at(&self, step: usize) -> &[PlanRange] {
        let last = self.steps.len().saturating_sub(1);
        self.steps.get(step.min(last)).map_or(&[], Vec::as_slice)
    }
}

/// How many times as long a plan takes as the one in whose place it is: `slower / faster`, at the size where it is worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slowdown {
    slower: u64,
    faster: u64,
}

impl Slowdown {
    const NONE: Self = Self { slower: 0, faster: 1 };

    /// Whether this is less than another.
    fn is_less(self, other: Self) -> bool {
        u128::from(self.slower) * u128::from(other.faster.max(1))
            < u128::from(other.slower) * u128::from(self.faster.max(1))
    }
}

/// The ladder that starts with these ranges, without ranges that do not reach twice their smallest size.
///
/// Each step gives one range to a neighbour: the one where the slowest size suffers least.
///
/// * **In.** Ranges of [`ranges`](crate::ranges), and `samples` of sizes where plans are compared besides at their ends.
/// * **Errors.** Errors of the callback. **Cost.** O(ranges² · samples) times.
pub fn ladder<E>(ranges: Vec<PlanRange>, samples: &[u64], times: &mut Times<'_, E>) -> Result<Ladder, E> {
    let mut current = ranges;
    while let Some(narrow) = current.iter().position(|found| found.range.is_narrow()).filter(|_| current.len() > 1) {
        let (_, merged) = cheapest(&current, narrow..narrow + 1, samples, times)?;
        current = merged;
    }
    let mut ladder = Ladder::default();
    while current.len() > 1 {
        let (cost, merged) = cheapest(&current, 0..current.len(), samples, times)?;
        ladder.steps.push(std::mem::replace(&mut current, merged));
        ladder.costs.push(cost);
    }
    if !current.is_empty() {
        ladder.steps.push(current);
    }
    Ok(ladder)
}

/// The best way to give one of these ranges to a neighbour, and what it costs.
fn cheapest<E>(
    ranges: &[PlanRange],
    which: std::ops::Range<usize>,
    samples: &[u64],
    times: &mut Times<'_, E>,
) -> Result<(Slowdown, Vec<PlanRange>), E> {
    let mut best: Option<(Slowdown, Vec<PlanRange>)> = None;
    for position in which {
        let neighbours = [position.checked_sub(1), position.checked_add(1)];
        for neighbour in neighbours.into_iter().flatten() {
            let (Some(range), Some(taker)) = (ranges.get(position), ranges.get(neighbour)) else { continue };
            let cost = slowdown(*range, taker.candidate, samples, times)?;
            if best.as_ref().is_none_or(|(least, _)| cost.is_less(*least)) {
                let taken = ranges.iter().enumerate().map(|(at, &found)| match at == position {
                    true => PlanRange { candidate: taker.candidate, ..found },
                    false => found,
                });
                best = Some((cost, joined(taken.collect())));
            }
        }
    }
    // Without a neighbour nothing is given away.
    Ok(best.unwrap_or_else(|| (Slowdown::NONE, ranges.to_vec())))
}

/// What it costs to serve a range by another plan.
fn slowdown<E>(range: PlanRange, by: usize, samples: &[u64], times: &mut Times<'_, E>) -> Result<Slowdown, E> {
    let PlanRange { candidate, range } = range;
    let inside = samples.iter().copied().filter(|&bytes| range.contains(bytes));
    let mut worst = Slowdown::NONE;
    for bytes in inside.chain([range.first(), range.last()]) {
        let cost = Slowdown { slower: times.of(by, bytes)?, faster: times.of(candidate, bytes)? };
        if worst.is_less(cost) {
            worst = cost;
        }
    }
    Ok(worst)
}

/// How many steps down each ladder has to be taken for all together to have at most so many ranges; `None` for those that
/// get none at all, which are the last ones.
///
/// As long as there are too many, the step that costs least is taken. O(ladders · steps).
pub fn fit(ladders: &[Ladder], files_max: usize) -> Vec<Option<usize>> {
    let served = |position: usize| position < files_max;
    let mut steps = vec![0; ladders.len()];
    // Ladders without ranges need no file, and take no place.
    let mut places = 0;
    let is_served: Vec<bool> = ladders
        .iter()
        .map(|ladder| {
            let place = places;
            places += usize::from(!ladder.steps.is_empty());
            served(place)
        })
        .collect();
    loop {
        let counted = ladders.iter().zip(&steps).zip(&is_served);
        let files: usize =
            counted.filter(|&(_, &is_served)| is_served).map(|((ladder, &step), _)| ladder.at(step).len()).sum();
        if files <= files_max {
            break;
        }
        let mut next: Option<(Slowdown, usize)> = None;
        for (position, ladder) in ladders.iter().enumerate().filter(|&(position, _)| is_served[position]) {
            if let Some(&cost) = ladder.costs.get(steps[position])
                && next.is_none_or(|(least, _)| cost.is_less(least))
            {
                next = Some((cost, position));
            }
        }
        let Some((_, position)) = next else { break };
        steps[position] += 1;
    }
    steps.into_iter().zip(is_served).map(|(step, is_served)| is_served.then_some(step)).collect()
}

#[cfg(test)]
mod tests;
