//! From proposed flows to whole chunks: rounding that conserves exactly, relief of the busiest arcs, and paths.

mod apportion;
mod distances;
mod paths;
mod relief;
mod support;

use std::cmp::Ordering;

use self::apportion::Apportioner;
pub use self::paths::WholePath;
use self::relief::Relief;
use super::ProposedFlow;
use super::problem::{ConcurrentError, ConcurrentProblem};
use crate::fraction::Fraction;
use crate::stop::Stop;

/// Flows in whole chunks, with a number of chunks for each unit of demand.
///
/// Every commodity's flow conserves exactly: as much more enters a sink as it wants, elsewhere as much as leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WholeFlow {
    /// K: chunks for each unit of demand.
    pub chunks: u64,
    /// By commodity: arcs that carry something, ascending, with how many chunks.
    pub amounts: Vec<Vec<(u32, u64)>>,
    classes: Classes,
}

/// Effort to move chunks off the busiest arcs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Chunks move to arcs with room.
    Quick,
    /// They also make room for each other: where whole chunks fit exactly, that is what it takes to fit them.
    Full,
}

/// What loads are counted by: arcs, or orbits of arcs, each with all of its capacity and all that it carries.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Classes {
    /// By arc; empty where each is a class of its own.
    of_arc: Vec<u32>,
    capacities: Vec<u128>,
    loads: Vec<u128>,
}

impl Classes {
    fn new(problem: &ConcurrentProblem<'_>) -> Self {
        let arcs = &problem.graph().arcs;
        let of_arc = problem.orbits().to_vec();
        let count = of_arc.iter().max().map_or(arcs.len(), |&last| last as usize + 1);
        let mut classes = Self { of_arc, capacities: vec![0; count], loads: vec![0; count] };
        for (arc, index) in arcs.iter().zip(0..) {
            let class = classes.of(index);
            classes.capacities[class] += u128::from(arc.capacity);
        }
        classes
    }

    fn of(&self, arc: u32) -> usize {
        self.of_arc.get(arc as usize).copied().unwrap_or(arc) as usize
    }

    fn add(&mut self, arc: u32, chunks: u128) {
        let class = self.of(arc);
        self.loads[class] += chunks;
    }

    /// The class whose capacity is used most, with its load and capacity.
    fn busiest(&self) -> Option<(u128, u128)> {
        let used = self.loads.iter().copied().zip(self.capacities.iter().copied());
        used.max_by(|&(load, capacity), &(other, its_capacity)| compare((load, capacity), (other, its_capacity)))
    }
}

/// Order of two quotients of load and capacity; nothing over nothing is nothing, anything over nothing is more than all else.
fn compare((load, capacity): (u128, u128), (other, its_capacity): (u128, u128)) -> Ordering {
    let (left, right) = (Fraction::new(load, capacity), Fraction::new(other, its_capacity));
    match (left, right) {
        (Some(left), Some(right)) => left.cmp(&right),
        (None, Some(_)) => {
            if load > 0 {
                Ordering::Greater
            } else {
                Ordering::Less
            }
        }
        (Some(_), None) => {
            if other > 0 {
                Ordering::Less
            } else {
                Ordering::Greater
            }
        }
        (None, None) => load.cmp(&other),
    }
}

impl WholeFlow {
    /// Rounds a proposed flow to whole chunks, so that the busiest arc is hardly busier than it proposes.
    ///
    /// From the sinks back to the source, what leaves a node and what it wants itself is divided among the arcs that enter
    /// it in the proportions proposed; what does not divide goes where, over all commodities so far, least was given of what
    /// was due. So errors do not add up: on a thousand nodes one chunk for each unit loses less than a percent.
    /// Then single chunks are taken off arcs that carry more than the limit allows, by circulations in their commodity.
    ///
    /// * **Source.** Basu 2024 §4 asks for whole chunks (§6.1 of its digest: largest remainders); carrying errors over from
    ///   source to source, and the relief, are our own.
    /// * **In.** `chunks` ≥ 1 for each unit of demand; `lengths` and `limit`: what proves a rate that no flow
    ///   exceeds, whose loads are aimed at, on ways that are short by these lengths.
    /// * **Errors.** Sinks out of reach, numbers beyond 64 bits, stopped.
    /// * **Cost.** O(amounts), and for each chunk that is moved a search over the arcs.
    pub fn new(
        problem: &ConcurrentProblem<'_>,
        proposed: &ProposedFlow,
        chunks: u64,
        (lengths, limit): (&[u64], Fraction),
        effort: Effort,
        stop: &dyn Stop,
    ) -> Result<Self, ConcurrentError> {
        require_room(problem, chunks)?;
        let mut classes = Classes::new(problem);
        let mut apportioner = Apportioner::new(problem, &mut classes, chunks);
        let mut amounts = Vec::with_capacity(problem.commodities().len());
        let none = Vec::new();
        for (position, commodity) in problem.commodities().iter().enumerate() {
            if stop.is_requested() {
                return Err(ConcurrentError::Stopped);
            }
            amounts.push(apportioner.round(commodity, proposed.amounts.get(position).unwrap_or(&none))?);
        }
        let mut whole = Self { chunks, amounts, classes };
        Relief::new(problem, &mut whole, lengths).relieve(limit, effort, stop)?;
        Ok(whole)
    }

    /// The rate of this flow: F for each unit of demand, in units of capacity; `None` where something runs over an arc
    /// without capacity, or numbers go beyond 128 bits. O(arcs).
    pub fn rate(&self) -> Option<Fraction> {
        let (load, capacity) = self.classes.busiest()?;
        Fraction::new(capacity.checked_mul(self.chunks.into())?, load).filter(|_| capacity > 0)
    }

    /// Takes the flow of one commodity apart into paths, sinks in rising order, each the widest that is left.
    ///
    /// * **Source.** Basu 2024 §3.2.1 (MCF-extP), on all that a source sends at once: sinks that come last in the order of
    ///   the flow take their paths first, so what is left always serves the others.
    /// * **In.** A number of a commodity. **Errors.** Only for flows that do not conserve, which rounding does not make.
    /// * **Cost.** O(arcs carrying) and for each path O(arcs through which its sink gets anything).
    pub fn paths(&self, problem: &ConcurrentProblem<'_>, commodity: usize) -> Result<Vec<WholePath>, ConcurrentError> {
        let broken = ConcurrentError::Broken { what: "unknown commodity" };
        let (wanted, amounts) = problem.commodities().get(commodity).zip(self.amounts.get(commodity)).ok_or(broken)?;
        paths::extracted(problem.graph(), wanted, self.chunks, amounts)
    }
}

/// All chunks of all copies are counted in 64 bits, and so is what any arc carries, as flows have no cycles.
fn require_room(problem: &ConcurrentProblem<'_>, chunks: u64) -> Result<(), ConcurrentError> {
    let mut total = 0_u64;
    for commodity in problem.commodities() {
        for &(_, demand) in &commodity.sinks {
            let all = demand.checked_mul(commodity.copies).and_then(|all| all.checked_mul(chunks));
            total = all.and_then(|all| total.checked_add(all)).ok_or(ConcurrentError::TooLarge)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
